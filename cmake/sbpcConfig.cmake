# The CMake package of sbpc:
#
#	find_package(sbpc REQUIRED)
#	sbpc_model(net net.sbp DEFINES n=16 d=2)
#	add_executable(program main.c)
#	target_link_libraries(program PRIVATE net)
#
# sbpc_model makes a static library of a model, whose header net.h can be
# included, and compiles it again when one of its files changes.
# sbpc::runtime is the runtime alone, with <sbp.h>.
get_filename_component(prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
set(SBPC_EXECUTABLE ${prefix}/bin/sbpc)
set(SBPRUN_EXECUTABLE ${prefix}/bin/sbprun)

find_package(Threads REQUIRED)
if(NOT TARGET sbpc::runtime)
	add_library(sbpc::runtime STATIC IMPORTED)
	set_target_properties(sbpc::runtime PROPERTIES
		IMPORTED_LOCATION ${prefix}/lib/sbpc/libsbp.a
		INTERFACE_INCLUDE_DIRECTORIES ${prefix}/include/sbpc)
	# SLEEF is needed by models whose kernels call it.
	find_library(SBPC_SLEEF NAMES sleef libsleef.so.3)
	set_property(TARGET sbpc::runtime PROPERTY INTERFACE_LINK_LIBRARIES
		m ${CMAKE_DL_LIBS} Threads::Threads
		$<$<BOOL:${SBPC_SLEEF}>:${SBPC_SLEEF}>)
endif()

function(sbpc_model target file)
	cmake_parse_arguments(PARSE_ARGV 2 arg "" "MODEL" "DEFINES;OPTIONS")
	set(out ${CMAKE_CURRENT_BINARY_DIR}/${target})
	set(options ${arg_OPTIONS})
	foreach(define ${arg_DEFINES})
		list(APPEND options -D ${define})
	endforeach()
	if(arg_MODEL)
		list(APPEND options --model=${arg_MODEL})
	endif()
	cmake_path(ABSOLUTE_PATH file)
	add_custom_command(OUTPUT ${out}.o ${out}.h
		COMMAND ${SBPC_EXECUTABLE} ${options} --emit=obj -MF ${out}.d
			-MT ${out}.o -o ${out}.o ${file}
		COMMAND ${SBPC_EXECUTABLE} ${options} --emit=header
			-o ${out}.h ${file}
		DEPENDS ${file} DEPFILE ${out}.d VERBATIM)
	add_library(${target} STATIC ${out}.o ${out}.h)
	set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
	target_include_directories(${target} INTERFACE
		${CMAKE_CURRENT_BINARY_DIR})
	target_link_libraries(${target} PUBLIC sbpc::runtime)
endfunction()
