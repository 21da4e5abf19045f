# Drivers of GPUs are opened when a program runs; to build, their headers are enough. These are the same
# for all machines, so that builds for others take this machine's, in a folder of their own:
# /usr/include has the C library of this machine beside them.

# Another place can be given as <variable>_FOUND, for instance
# -DRUN_MODEL_VULKAN_HEADERS_FOUND=/opt/vulkan/include.
#
# run_model_find_device_headers(<variable> <header> <package> <folder>…)
# Sets <variable> to a folder with links to the <folder>s that lie beside <header>'s, or to nothing where
# the header is not found.
function(run_model_find_device_headers variable header package)
  set(${variable} "" PARENT_SCOPE)
  find_path(${variable}_FOUND ${header} PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH
    DOC "Folder of ${header} (Debian: ${package})")
  mark_as_advanced(${variable}_FOUND)
  if(NOT ${variable}_FOUND)
    message(WARNING "${header} was not found (Debian: ${package}): programs will be built without it")
    return()
  endif()
  set(links ${PROJECT_BINARY_DIR}/device_headers)
  file(MAKE_DIRECTORY ${links})
  foreach(folder ${ARGN})
    if(EXISTS ${${variable}_FOUND}/${folder})
      file(CREATE_LINK ${${variable}_FOUND}/${folder} ${links}/${folder} SYMBOLIC)
    endif()
  endforeach()
  set(${variable} ${links} PARENT_SCOPE)
endfunction()

if(RUN_MODEL_OPENCL)
  run_model_find_device_headers(RUN_MODEL_OPENCL_HEADERS CL/cl.h opencl-c-headers CL)
endif()
if(RUN_MODEL_VULKAN)
  run_model_find_device_headers(RUN_MODEL_VULKAN_HEADERS
    vulkan/vulkan_core.h libvulkan-dev vulkan vk_video)
endif()

# Its functions are declared in the source; NVIDIA has no driver for machines of 32 bits.
set(RUN_MODEL_WITH_CUDA OFF)
if(RUN_MODEL_CUDA AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(RUN_MODEL_WITH_CUDA ON)
endif()
