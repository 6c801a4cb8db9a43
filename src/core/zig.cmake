# Compile with the package ziglang: clang, its linker and the libraries of C and C++ for many platforms.
# ZIG_TARGET in the environment, such as aarch64-linux-gnu.2.17, compiles for another machine or for
# an older C library.
if(NOT DEFINED ENV{ZIG})  # CMake reads this file again for each of its trials
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import os, ziglang; print(os.path.dirname(ziglang.__file__))"
                  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE folder COMMAND_ERROR_IS_FATAL ANY)
  set(ENV{ZIG} "${folder}/zig${CMAKE_EXECUTABLE_SUFFIX}")
endif()
set(KERNELBANK_ZIG ON)
set(CMAKE_CXX_COMPILER "$ENV{ZIG}" c++)
if(NOT "$ENV{ZIG_TARGET}" STREQUAL "")
  list(APPEND CMAKE_CXX_COMPILER -target $ENV{ZIG_TARGET})
  string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "$ENV{ZIG_TARGET}")
  set(CMAKE_SYSTEM_NAME Linux)
endif()
set(CMAKE_CXX_ARCHIVE_CREATE "$ENV{ZIG} ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "$ENV{ZIG} ranlib <TARGET>")
