# attnscope_settings for the page, which Emscripten compiles: as in Settings.cmake, without threads, BLAS and LAPACK.
set(ATTNSCOPE_LIBRARIES "" CACHE PATH "Where scripts/web_libraries.sh has installed the libraries")
set(ATTNSCOPE_DEBIAN "" CACHE PATH "Unpacked packages of Debian: headers of Armadillo, {fmt} and nlohmann-json, and DejaVu")
list(APPEND CMAKE_FIND_ROOT_PATH "${ATTNSCOPE_LIBRARIES}")
set(ENV{PKG_CONFIG_LIBDIR} "${ATTNSCOPE_LIBRARIES}/lib/pkgconfig")
set(CMAKE_UNITY_BUILD ON CACHE BOOL "Compile the files of a target in batches")
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8 CACHE STRING "Files in a batch; 0 for all of a target")
find_package(PkgConfig REQUIRED)

add_library(attnscope_settings INTERFACE)
target_include_directories(attnscope_settings INTERFACE "${PROJECT_SOURCE_DIR}")
target_include_directories(attnscope_settings SYSTEM INTERFACE "${PROJECT_SOURCE_DIR}/app/web/stand_ins" "${ATTNSCOPE_DEBIAN}/usr/include")
# libc++ has std::jthread and std::stop_token only among its experiments.
target_compile_definitions(attnscope_settings INTERFACE ARMA_DONT_USE_WRAPPER ARMA_DONT_USE_BLAS ARMA_DONT_USE_LAPACK
                           ARMA_32BIT_WORD ARMA_DONT_USE_OPENMP ARMA_DONT_PRINT_FAST_MATH_WARNING ARMA_NO_DEBUG FMT_HEADER_ONLY
                           _LIBCPP_ENABLE_EXPERIMENTAL)
target_compile_options(attnscope_settings INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow -Wno-bitwise-conditional-parentheses
                       "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
add_compile_options(-msimd128 -fwasm-exceptions -sSUPPORT_LONGJMP=wasm)
add_link_options(-msimd128 -fwasm-exceptions -sSUPPORT_LONGJMP=wasm)
