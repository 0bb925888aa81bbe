# How everything is compiled: one INTERFACE target carries the language, the warnings and the sanitizers, so a target
# that links `sluice_build` sets no flags itself.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

set(SLUICE_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, for example address,undefined")
option(SLUICE_COVERAGE "Instrument for gcov" OFF)
option(SLUICE_FUZZ "Build the fuzzers (clang)" OFF)

add_library(sluice_build INTERFACE)
target_compile_definitions(sluice_build INTERFACE _GNU_SOURCE SLUICE_VERSION="${PROJECT_VERSION}")
target_include_directories(sluice_build INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(sluice_build INTERFACE
    -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes
    -Wwrite-strings -Wvla -Wformat=2 -Wundef -fno-common)

# Assertions stay enabled in what users run. CMake adds -DNDEBUG to each build type but Debug, and a packager's CFLAGS
# may contain it. Options of a target come after all of these, and the last one counts.
target_compile_options(sluice_build INTERFACE -UNDEBUG)

if(SLUICE_SANITIZE)
    target_compile_options(sluice_build INTERFACE
        -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(sluice_build INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
if(SLUICE_COVERAGE)
    target_compile_options(sluice_build INTERFACE --coverage)
    target_link_options(sluice_build INTERFACE --coverage)
endif()
if(SLUICE_FUZZ)
    # coverage for libFuzzer in everything that a fuzzer may link; its main only in fuzzers
    target_compile_options(sluice_build INTERFACE -fsanitize=fuzzer-no-link)
endif()
