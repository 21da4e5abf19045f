# gflags and glog as static libraries, so that a program needs no more on the machine that it is
# copied to than the C and C++ libraries. Debian's own CMake packages offer only the shared ones.
find_path(GLOG_INCLUDE_DIR glog/logging.h REQUIRED DOC "Debian: libgoogle-glog-dev")
find_path(GFLAGS_INCLUDE_DIR gflags/gflags.h REQUIRED DOC "Debian: libgflags-dev")
find_library(GFLAGS_STATIC_LIBRARY libgflags.a REQUIRED DOC "Debian: libgflags-dev")
find_library(GLOG_STATIC_LIBRARY libglog.a REQUIRED DOC "Debian: libgoogle-glog-dev")
# What glog is built with differs by release and machine; both are part of Debian's.
find_library(UNWIND_STATIC_LIBRARY libunwind.a DOC "Debian: libunwind-dev")
find_library(LZMA_STATIC_LIBRARY liblzma.a DOC "Debian: liblzma-dev")

add_library(static_logging INTERFACE)
target_include_directories(static_logging SYSTEM INTERFACE
  ${GLOG_INCLUDE_DIR} ${GFLAGS_INCLUDE_DIR})
target_link_libraries(static_logging INTERFACE ${GLOG_STATIC_LIBRARY} ${GFLAGS_STATIC_LIBRARY})
foreach(library UNWIND_STATIC_LIBRARY LZMA_STATIC_LIBRARY)
  if(${library})
    target_link_libraries(static_logging INTERFACE ${${library}})
  endif()
endforeach()
target_link_libraries(static_logging INTERFACE Threads::Threads)
