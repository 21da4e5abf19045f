# Functions that every room uses to declare its targets in the same way.

set(RUN_MODEL_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of overlapping copies in every string concatenation (GCC bug 105651).
  list(APPEND RUN_MODEL_WARNINGS -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
  # GCC notes at each call how GCC 6 would have passed the argument.
  list(APPEND RUN_MODEL_WARNINGS -Wno-psabi)
endif()

# It takes half as long as the usual linker for what sanitizers make of a program.
if(RUN_MODEL_SANITIZE)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=gold RUN_MODEL_HAS_GOLD)
endif()

# Functions of which a program has several, alike to the byte, become one: templates of C++ make many.
# "safe" leaves those alone whose address is taken, -O2 lets texts share their ends. The usual linker
# cannot do the former.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  include(CheckLinkerFlag)
  check_linker_flag(CXX "-fuse-ld=gold;LINKER:--icf=safe,-O2" RUN_MODEL_CAN_FOLD)
endif()
set(RUN_MODEL_FOLDING $<$<BOOL:${RUN_MODEL_CAN_FOLD}>:-fuse-ld=gold;LINKER:--icf=safe,-O2>)

function(run_model_configure_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  if(PROJECT_IS_TOP_LEVEL)
    # A file takes less memory than this; below it GCC looks for none to use again, 5 % of its time.
    target_compile_options(${target} PRIVATE ${RUN_MODEL_WARNINGS}
      $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
  endif()
  # 32-bit machines: files beyond 2 GiB, and file systems that number their files in 64 bits.
  target_compile_definitions(${target} PRIVATE _FILE_OFFSET_BITS=64)
  # One section a function, so that the linker drops what a program does not use.
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  if(RUN_MODEL_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${RUN_MODEL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # AddressSanitizer notices the use of what is null, gone, too small or elsewhere by itself; these are a
    # third of the time that a file takes to compile.
    if(RUN_MODEL_SANITIZE MATCHES "undefined")
      target_compile_options(${target} PRIVATE -fno-sanitize=null,object-size,vptr,pointer-overflow)
    endif()
    target_link_options(${target} PUBLIC -fsanitize=${RUN_MODEL_SANITIZE})
    if(RUN_MODEL_HAS_GOLD)
      target_link_options(${target} PUBLIC -fuse-ld=gold)
    endif()
  endif()
endfunction()

# run_model_add_library(<room> SOURCES … HEADERS … [PUBLIC libs…] [PRIVATE libs…])
# A static library run_model_<room>, alias run_model::<room>. HEADERS are the public ones, below
# <room>/include: everybody, here and after the installation, includes them as <run_model/….h>. All
# others are included by their path from the top of the tree, which no user of the library sees.
function(run_model_add_library room)
  cmake_parse_arguments(arg "" "" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target run_model_${room})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(run_model::${room} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${room})
  target_sources(${target} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${CMAKE_CURRENT_SOURCE_DIR}/include FILES ${arg_HEADERS})
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  run_model_configure_target(${target})
  install(TARGETS ${target} EXPORT run_model_targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# What nearly every test includes, parsed once for all of them: a third of the time that they take to
# compile. Tests name the headers that they use all the same.
function(run_model_precompile_test_headers target)
  if(NOT TARGET run_model_test_headers)
    set(source ${PROJECT_BINARY_DIR}/run_model_test_headers.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    add_executable(run_model_test_headers ${source})
    target_link_libraries(run_model_test_headers PRIVATE GTest::gmock GTest::gtest)
    run_model_configure_target(run_model_test_headers)
    run_model_compile_test_fast(run_model_test_headers)
    target_precompile_headers(run_model_test_headers PRIVATE
      <filesystem> <gmock/gmock.h> <gtest/gtest.h> <string> <vector>)
  endif()
  target_precompile_headers(${target} REUSE_FROM run_model_test_headers)
endfunction()

# GoogleTest's and JSON's templates take minutes to optimise, more than all tests take to run; looking
# for undefined behaviour, and for every temporary's end, in them doubles that, where it is the code
# under test that is looked at. A
# failure names its line by itself, so that lines for debuggers, a fifth of the time, are for who debugs
# (preset `coverage` and Debug builds keep theirs).
function(run_model_compile_test_fast target)
  target_compile_options(${target} PRIVATE -O0 $<$<CONFIG:RelWithDebInfo>:-g0>)
  if(RUN_MODEL_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  if(RUN_MODEL_SANITIZE MATCHES "address")
    target_compile_options(${target} PRIVATE -fno-sanitize-address-use-after-scope)
  endif()
endfunction()

# run_model_add_test_program(<name> SOURCES … [LIBS …] [DEFINITIONS …])
# A GoogleTest program without a CTest test.
function(run_model_add_test_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;DEFINITIONS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    RUN_MODEL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ${arg_DEFINITIONS})
  run_model_configure_target(${name})
  run_model_compile_test_fast(${name})
  run_model_precompile_test_headers(${name})
endfunction()

# run_model_add_test(<name> SOURCES … [LIBS …] [DEFINITIONS …] [MACHINE|WORD_SIZE|LABEL label]
#   [SWEEPS pattern])
# A GoogleTest program <name> and a CTest test of the same name that runs all of its cases in one
# process; build/PRESET/…/<name> --gtest_filter=SUITE.CASE runs one.
#   MACHINE    what it tests depends on the machine, so that it also runs under the emulators
#   WORD_SIZE  what it tests depends on the size of a pointer: the same for 32-bit machines
#   SWEEPS     cases that try thousands of damaged inputs, as --gtest_filter takes them: they show
#              nothing more under an emulator or ThreadSanitizer, where they take minutes
# Its label is machine where it runs under emulators, else unit, if none is given. The target unit_tests
# builds those, program_tests the others: what runs a whole program needs all of it, so that the quick
# tests have them on programs without sanitizers.
function(run_model_add_test name)
  cmake_parse_arguments(arg "MACHINE;WORD_SIZE" "LABEL;SWEEPS" "SOURCES;LIBS;DEFINITIONS" ${ARGN})
  run_model_add_test_program(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS}
    DEFINITIONS ${arg_DEFINITIONS})
  set(filter "")
  if(arg_SWEEPS AND (CMAKE_CROSSCOMPILING OR RUN_MODEL_SANITIZE MATCHES "thread"))
    set(filter "--gtest_filter=-${arg_SWEEPS}")
  endif()
  set(label unit)
  set(group unit_tests)
  if(arg_LABEL)
    set(label ${arg_LABEL})
    set(group program_tests)
  elseif(arg_MACHINE OR (arg_WORD_SIZE AND CMAKE_SIZEOF_VOID_P EQUAL 4))
    set(label machine)
  endif()
  if(NOT TARGET ${group})
    add_custom_target(${group})
  endif()
  add_dependencies(${group} ${name})
  if(label MATCHES "^(unit|machine|program)$")
    set_property(GLOBAL APPEND PROPERTY RUN_MODEL_ASAN_TESTS ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 ${filter})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 600)
endfunction()

# run_model_add_rest()
# A target `rest`: all that this folder and those below it build but the tests that asan has of this
# machine, with labels unit, machine and program.
function(run_model_add_rest)
  get_property(asan_tests GLOBAL PROPERTY RUN_MODEL_ASAN_TESTS)
  set(folders ${CMAKE_CURRENT_SOURCE_DIR})
  set(targets "")
  while(folders)
    list(POP_FRONT folders folder)
    get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    get_property(here DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    list(APPEND folders ${below})
    list(APPEND targets ${here})
  endwhile()
  list(REMOVE_ITEM targets unit_tests program_tests wheel ${asan_tests})
  add_custom_target(rest DEPENDS ${targets})
endfunction()

# run_model_add_pytest(<name> LABELS … FILES … [ARGUMENTS …] [ENVIRONMENT …] [TIMEOUT seconds]
#   [COST seconds] [PYTHON command …])
# A CTest test that runs files or folders of Python tests in one process of build/venv's pytest. Tests of
# the greatest COST, which is 20 if not given, start first, so that no long one is left for the end, when
# there is nothing to run beside it.  Tools that tests start, some hundred times, keep what Python has
# parsed, whatever the caller's environment says, and NumPy has one thread in each (environment.py).
function(run_model_add_pytest name)
  cmake_parse_arguments(arg "" "TIMEOUT;COST" "LABELS;FILES;ARGUMENTS;ENVIRONMENT;PYTHON" ${ARGN})
  if(NOT arg_PYTHON)
    set(arg_PYTHON ${PROJECT_SOURCE_DIR}/build/venv/bin/python -m pytest -p no:cacheprovider)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 2400)
  endif()
  if(NOT arg_COST)
    set(arg_COST 20)
  endif()
  list(TRANSFORM arg_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_test(NAME ${name} COMMAND ${arg_PYTHON} -q -rs ${arg_ARGUMENTS} ${arg_FILES})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST ${arg_COST}
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=;OPENBLAS_NUM_THREADS=1;${arg_ENVIRONMENT}")
endfunction()

# run_model_compile_files(<target> <option> <file>…)
# Files of a target that a release build compiles with an option of their own: as one file, where other
# builds have them among all files. Headers are precompiled for other options.
function(run_model_compile_files target option)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    return()
  endif()
  set(files ${ARGN})
  if(CMAKE_UNITY_BUILD)
    set_source_files_properties(${ARGN} PROPERTIES HEADER_FILE_ONLY ON)
    list(TRANSFORM ARGN REPLACE "(.+)" "#include \"${CMAKE_CURRENT_SOURCE_DIR}/\\1\"\n"
      OUTPUT_VARIABLE includes)
    list(JOIN includes "" includes)
    set(files ${CMAKE_CURRENT_BINARY_DIR}/${target}${option}.cc)
    file(CONFIGURE OUTPUT ${files} CONTENT "${includes}" @ONLY)
    target_sources(${target} PRIVATE ${files})
  endif()
  set_source_files_properties(${files} PROPERTIES
    COMPILE_OPTIONS ${option} SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# For code that runs once for each start of a program: a release build takes its size over its speed.
# What most of these files include is parsed once for all of them, where they are compiled together; they
# name the headers that they use all the same, as the preset `separate` shows.
function(run_model_optimize_for_size target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  if(CMAKE_UNITY_BUILD AND target STREQUAL "run_model_base")
    target_precompile_headers(run_model_base PRIVATE
      <algorithm> <filesystem> <functional> <map> <memory> <optional> <span> <string> <vector>)
  elseif(CMAKE_UNITY_BUILD)
    target_precompile_headers(${target} REUSE_FROM run_model_base)
  endif()
endfunction()
