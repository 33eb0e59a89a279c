# Clang, LLVM and LLD as libraries, version 14 to 19, the newest that has all
# its parts. -DSBPC_LLVM=17 asks for one. Gives SBPC_LLVM_FOUND_VERSION,
# SBPC_LLVM_INCLUDE_DIRS and SBPC_LLVM_LIBRARIES.
set(SBPC_LLVM "" CACHE STRING "version of LLVM, 14 to 19; empty: any")
set(versions 19 18 17 16 15 14)
if(SBPC_LLVM)
	set(versions ${SBPC_LLVM})
endif()
foreach(version ${versions})
	# Without a version: LLVM's own check wants 18.1 and 19.1 spelled out.
	unset(LLVM_DIR CACHE)
	unset(LLVM_FOUND)
	find_package(LLVM QUIET CONFIG
		PATHS /usr/lib/llvm-${version} NO_DEFAULT_PATH)
	if(NOT LLVM_FOUND)
		find_package(LLVM QUIET CONFIG)
	endif()
	if(NOT LLVM_FOUND OR NOT LLVM_VERSION_MAJOR EQUAL version)
		continue()
	endif()
	unset(clang_cpp CACHE)
	unset(lld_elf CACHE)
	unset(lld_common CACHE)
	unset(llvm_so CACHE)
	set(places PATHS ${LLVM_LIBRARY_DIRS} NO_DEFAULT_PATH)
	find_library(clang_cpp NAMES clang-cpp libclang-cpp.so.${version}
		libclang-cpp.so.${version}.1 ${places})
	find_library(lld_elf NAMES lldELF ${places})
	find_library(lld_common NAMES lldCommon ${places})
	find_library(llvm_so NAMES LLVM-${version} LLVM ${places})
	if(clang_cpp AND lld_elf AND lld_common AND llvm_so AND
	   EXISTS ${LLVM_INCLUDE_DIR}/clang/Frontend/CompilerInstance.h AND
	   EXISTS ${LLVM_INCLUDE_DIR}/lld/Common/Driver.h)
		set(SBPC_LLVM_FOUND_VERSION ${version})
		break()
	endif()
endforeach()
if(NOT SBPC_LLVM_FOUND_VERSION)
	message(FATAL_ERROR "Clang, LLVM and LLD libraries not found: install "
		"llvm-N-dev, libclang-N-dev and liblld-N-dev, N from 14 to 19")
endif()
message(STATUS "Clang, LLVM, LLD: ${LLVM_PACKAGE_VERSION}")
set(SBPC_LLVM_INCLUDE_DIRS ${LLVM_INCLUDE_DIRS})
set(SBPC_LLVM_LIBRARIES ${lld_elf} ${lld_common} ${clang_cpp} ${llvm_so})
