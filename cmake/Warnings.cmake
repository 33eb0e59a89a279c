# Flags that all targets of this project share.
set(SBPC_WARNINGS -Wall -Wextra)
if(SBPC_WERROR)
	list(APPEND SBPC_WARNINGS -Werror)
endif()
# gcc's -Wmaybe-uninitialized errs in code with checks.
set(SBPC_CHECKS -fsanitize=address,undefined -fno-sanitize-recover=all
	-Wno-maybe-uninitialized)

# No contraction: the same source gives the same bits at any -march.
add_compile_options(-ffp-contract=off -fno-omit-frame-pointer)
include_directories(${CMAKE_SOURCE_DIR})

# Everything but what users link with their programs runs under sanitizers in
# the preset `dev`.
function(sbpc_flags target)
	target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
	target_compile_options(${target} PRIVATE ${SBPC_WARNINGS})
	if(SBPC_SANITIZE)
		target_compile_options(${target} PRIVATE ${SBPC_CHECKS})
		target_link_options(${target} PRIVATE ${SBPC_CHECKS})
	endif()
endfunction()
