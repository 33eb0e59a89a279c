# Static zlib and jansson: they become part of libsbp.a, so that a compiled
# program needs neither.
find_library(SBPC_ZLIB NAMES libz.a REQUIRED)
find_library(SBPC_JANSSON NAMES libjansson.a REQUIRED)
find_path(SBPC_ZLIB_INCLUDE zlib.h REQUIRED)
find_path(SBPC_JANSSON_INCLUDE jansson.h REQUIRED)
