# run_model_write_copyright(<file> <missing>)
# The project's licence, then the notices of all libraries that the programs contain, which their
# licences ask for. <missing> becomes the list of packages whose notices were not found.
function(run_model_write_copyright file missing)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/copyright.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  set(not_found "")
  foreach(package libgflags-dev libgoogle-glog-dev nlohmann-json3-dev libdlpack-dev libstb-dev
      libxxhash-dev zlib1g-dev libjpeg62-turbo-dev)
    # Of a library that was built from source, this machine's package of the same name has it.
    find_file(notice copyright NO_CACHE NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
      PATHS ${CMAKE_FIND_ROOT_PATH}/usr/share/doc/${package} /usr/share/doc/${package})
    if(notice)
      string(REGEX REPLACE "." "=" underline ${package})
      file(READ ${notice} words)
      string(APPEND text "\n\n${package}\n${underline}\n\n${words}")
    else()
      list(APPEND not_found ${package})
    endif()
    unset(notice)
  endforeach()
  file(CONFIGURE OUTPUT ${file} CONTENT "@text@" @ONLY)
  set(${missing} "${not_found}" PARENT_SCOPE)
endfunction()
