# What a board needs, as Debian packages and archives: run-model has programs, labels, man pages, completion,
# python3-run-model the shared library and its Python module. Headers and static libraries for other projects' builds
# are not in them; `cmake --install` has them too.
#   cpack --config build/<preset>/CPackConfig.cmake -B build/<preset>/packages
# With SOURCE_DATE_EPOCH in the environment, the same build always gives the same packages.
set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/run-model)
set(data_dir ${CMAKE_INSTALL_DATAROOTDIR}/run_model)
set(programs run_model)
foreach(program check_zoo rpc_server)
  if(TARGET ${program})
    list(APPEND programs ${program})
  endif()
endforeach()

install(FILES labels/imagenet.txt labels/README.md DESTINATION ${data_dir}/labels
  COMPONENT programs)
install(FILES artifacts/targets.json DESTINATION ${data_dir} COMPONENT programs)
if(TARGET check_zoo)
  install(FILES artifacts/tolerances.json DESTINATION ${data_dir} COMPONENT programs)
endif()
if(TARGET rpc_server)
  install(FILES run_model/rpc_server/rpc_server.service DESTINATION lib/systemd/system
    COMPONENT programs)
  # The client's side of --auth-key-file: one file that needs Python and nothing of this project.
  install(PROGRAMS scripts/run_model_tools/boards/rpc_auth_proxy.py DESTINATION ${CMAKE_INSTALL_BINDIR}
    RENAME rpc_auth_proxy COMPONENT programs)
  set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS python3)
endif()
include(package/copyright)
run_model_write_copyright(${PROJECT_BINARY_DIR}/copyright missing_notices)
install(FILES README.md LICENSE ${PROJECT_BINARY_DIR}/copyright DESTINATION ${doc_dir}
  COMPONENT programs)
install(FILES bindings/README.md LICENSE ${PROJECT_BINARY_DIR}/copyright
  DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/python3-run-model COMPONENT python)

# -n leaves the time and the name out, so that the same page always gives the same file.
find_program(GZIP gzip REQUIRED)
foreach(program ${programs})
  set(page ${PROJECT_BINARY_DIR}/man/${program}.1)
  add_custom_command(OUTPUT ${page}.gz
    COMMAND ${GZIP} -9nc ${page} > ${page}.gz
    DEPENDS ${page} documents VERBATIM)
  list(APPEND pages ${page}.gz)
  list(APPEND completions ${PROJECT_BINARY_DIR}/completions/${program})
endforeach()
add_custom_target(man_pages ALL DEPENDS ${pages})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT programs)
install(FILES ${completions} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions
  COMPONENT programs)

# Debian's names of architectures, by CMake's.
set(architecture_of_x86_64 amd64)
set(architecture_of_aarch64 arm64)
set(architecture_of_armv7l armhf)
set(architecture_of_riscv64 riscv64)
set(architecture ${architecture_of_${CMAKE_SYSTEM_PROCESSOR}})
if(NOT architecture)
  set(architecture ${CMAKE_SYSTEM_PROCESSOR})
endif()

# For the tests of the packages.
set_property(GLOBAL PROPERTY RUN_MODEL_DEBIAN_ARCHITECTURE ${architecture})
set_property(GLOBAL PROPERTY RUN_MODEL_INSTALLED_PROGRAMS ${programs})

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_VENDOR "run_model developers")
set(CPACK_PACKAGE_CONTACT "run_model developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run models compiled with TVM, without TVM")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME run-model)
set(CPACK_PACKAGE_FILE_NAME run-model_${PROJECT_VERSION}_${architecture})  # and the folder in archives
set(CPACK_ARCHIVE_PROGRAMS_FILE_NAME ${CPACK_PACKAGE_FILE_NAME})
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION
"run_model runs neural networks that TVM 0.7 to 0.19 has compiled for the
graph executor, on boards that have no TVM: it prepares a picture exactly as
in training, runs the network and prints the most likely classes, or takes
and gives tensors in NumPy's files.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-run-model)
set(CPACK_ARCHIVE_PYTHON_FILE_NAME python3-${CPACK_PACKAGE_FILE_NAME})
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
"For Python and C: librun_model.so runs neural networks that TVM has compiled, prepares pictures
as in training, and reads what outputs mean; run_model.py calls it with NumPy.")
# So that programs find the library.
file(WRITE ${PROJECT_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/triggers)
set(CPACK_COMPONENTS_ALL programs python)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${architecture})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

# Read by cpack itself, once for each kind of package.
foreach(program ${programs})
  list(APPEND program_files ${PROJECT_BINARY_DIR}/bin/${program})
endforeach()
list(JOIN program_files " " program_files_list)
set(library_file ${PROJECT_BINARY_DIR}/bin/librun_model.so)
configure_file(${CMAKE_CURRENT_LIST_DIR}/package/project_config.cmake.in
  ${PROJECT_BINARY_DIR}/run_model_package.cmake @ONLY)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/run_model_package.cmake)
include(CPack)
