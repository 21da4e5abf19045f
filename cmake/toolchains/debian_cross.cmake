# What the toolchain files beside this one share. Each sets, before it includes this:
#   preset         its own name, also that of the sysroot that scripts/make_sysroot makes
#   triplet        Debian's name for the target: of the cross compiler, of library folders
#   emulator       qemu's name for the machine
#   emulator_cpu   the oldest CPU of this kind that programs have to run on

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})

# The C and C++ libraries are those of the cross compiler's own packages; all other libraries and
# headers come from the sysroot, never from this machine.
set(RUN_MODEL_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/sysroot/${preset} CACHE PATH
  "Folder with the libraries of the target (made by scripts/make_sysroot)")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RUN_MODEL_SYSROOT)
if(NOT IS_DIRECTORY ${RUN_MODEL_SYSROOT})
  message(FATAL_ERROR "There are no libraries for ${preset} in ${RUN_MODEL_SYSROOT}. "
    "Run scripts/make_sysroot ${preset}, then configure again.")
endif()
get_filename_component(sysroot ${RUN_MODEL_SYSROOT} REALPATH)
set(CMAKE_FIND_ROOT_PATH ${sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Runs the target's programs here, with the cross compiler's C and C++ libraries.
find_program(RUN_MODEL_QEMU NAMES qemu-${emulator} qemu-${emulator}-static
  DOC "Runs programs of the target on this machine (Debian: qemu-user)")
if(RUN_MODEL_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${RUN_MODEL_QEMU} -cpu ${emulator_cpu} -L /usr/${triplet})
endif()
