# run_model::libz and run_model::libjpeg: zlib and libjpeg-turbo as static libraries, so that a program
# needs no shared ones on the machine that it is copied to. Both the build and find_package(run_model)
# include this file; it leaves nothing but cache entries in the scope of who does. A library that is
# not found becomes part of <missing>.
function(run_model_find_codec missing target library header package)
  if(TARGET run_model::${target})
    return()
  endif()
  string(TOUPPER RUN_MODEL_${target} name)
  find_library(${name}_LIBRARY ${library} DOC "Static library (Debian: ${package})")
  find_path(${name}_INCLUDE_DIR ${header} DOC "Folder of ${header} (Debian: ${package})")
  mark_as_advanced(${name}_LIBRARY ${name}_INCLUDE_DIR)
  if(NOT ${name}_LIBRARY OR NOT ${name}_INCLUDE_DIR)
    set(${missing} "${${missing}};${library} (Debian: ${package})" PARENT_SCOPE)
    return()
  endif()
  add_library(run_model::${target} STATIC IMPORTED GLOBAL)
  set_target_properties(run_model::${target} PROPERTIES
    IMPORTED_LOCATION "${${name}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${${name}_INCLUDE_DIR}")
endfunction()

# run_model_find_codecs(<missing>)
function(run_model_find_codecs missing)
  set(not_found "")
  run_model_find_codec(not_found libz libz.a zlib.h zlib1g-dev)
  run_model_find_codec(not_found libjpeg libjpeg.a jpeglib.h libjpeg62-turbo-dev)
  list(REMOVE_ITEM not_found "")
  set(${missing} "${not_found}" PARENT_SCOPE)
endfunction()
