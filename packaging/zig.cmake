# Compile with the package ziglang: clang, its linker and the libraries of C and C++ for every platform.
# ZIG_TARGET (in the environment) such as aarch64-linux-gnu.2.17 compiles for another machine, or
# for an older C library.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(Python_EXECUTABLE)
  set(Python3_EXECUTABLE ${Python_EXECUTABLE})
endif()
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import os, ziglang; print(os.path.dirname(ziglang.__file__))"
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE folder COMMAND_ERROR_IS_FATAL ANY)
set(zig "${folder}/zig${CMAKE_EXECUTABLE_SUFFIX}")
set(CMAKE_CXX_COMPILER "${zig}" c++)
set(CMAKE_CXX_ARCHIVE_CREATE "${zig} ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "${zig} ranlib <TARGET>")
set(KERNELBANK_ZIG ON)
if(NOT "$ENV{ZIG_TARGET}" STREQUAL "")
  list(APPEND CMAKE_CXX_COMPILER -target $ENV{ZIG_TARGET})
  string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "$ENV{ZIG_TARGET}")
  set(CMAKE_SYSTEM_NAME Linux)
endif()
