# gflags and glog as static libraries, so that a program needs no more on the machine that it is
# copied to than the C and C++ libraries. Debian's own CMake packages offer only the shared ones.
find_path(GLOG_INCLUDE_DIR glog/logging.h REQUIRED DOC "Debian: libgoogle-glog-dev")
find_path(GFLAGS_INCLUDE_DIR gflags/gflags.h REQUIRED DOC "Debian: libgflags-dev")
find_library(GFLAGS_STATIC_LIBRARY libgflags.a REQUIRED DOC "Debian: libgflags-dev")
find_library(GLOG_STATIC_LIBRARY libglog.a REQUIRED DOC "Debian: libgoogle-glog-dev")

add_library(no_stack_traces STATIC ${PROJECT_SOURCE_DIR}/run_model/shared/no_stack_traces.cc)
run_model_configure_target(no_stack_traces)

add_library(static_logging INTERFACE)
target_include_directories(static_logging SYSTEM INTERFACE
  ${GLOG_INCLUDE_DIR} ${GFLAGS_INCLUDE_DIR})
target_link_libraries(static_logging INTERFACE
  ${GLOG_STATIC_LIBRARY} no_stack_traces ${GFLAGS_STATIC_LIBRARY} Threads::Threads)
