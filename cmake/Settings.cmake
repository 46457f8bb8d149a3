# attnscope_settings: compile options of every target of the project.
#
# Files are compiled in batches, which saves most of the cost of headers. If off, each is compiled alone: repeated changes of one
# file build faster, and clang-tidy can read it.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "Compile the files of a target in batches")
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8 CACHE STRING "Files in a batch; 0 for all of a target")
find_package(Armadillo REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

add_library(attnscope_settings INTERFACE)
target_include_directories(attnscope_settings INTERFACE "${PROJECT_SOURCE_DIR}")
target_include_directories(attnscope_settings SYSTEM INTERFACE ${ARMADILLO_INCLUDE_DIRS})
# The wrapper library is not used: its random generator and its BLAS differ from those linked here.
target_compile_definitions(attnscope_settings INTERFACE ARMA_DONT_USE_WRAPPER ARMA_USE_BLAS ARMA_USE_LAPACK
                           ARMA_DONT_USE_OPENMP ARMA_DONT_PRINT_FAST_MATH_WARNING)
# Indices of containers and matrices are checked, in releases too, at a cost of one or two percent. In the engine's inner loops
# an edit would take a fifth longer, so a target with ATTNSCOPE_UNCHECKED is checked in the Debug presets only.
# Inline functions shared by both kinds differ only in the checks: the linker may keep either.
set(is_checked "$<OR:$<CONFIG:Debug>,$<NOT:$<BOOL:$<TARGET_PROPERTY:ATTNSCOPE_UNCHECKED>>>>")
target_compile_definitions(attnscope_settings INTERFACE "$<IF:${is_checked},_GLIBCXX_ASSERTIONS,ARMA_NO_DEBUG>")
# Contraction is off everywhere: the generator's bits and the tests' exact equalities depend on it.
target_compile_options(attnscope_settings INTERFACE -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow
                       $<$<BOOL:${ATTNSCOPE_STRICT}>:-Werror>)
string(COMPARE NOTEQUAL "${ATTNSCOPE_SANITIZE}" "" is_sanitized)  # its commas would separate arguments of an expression
# When optimizing or sanitizing, g++ 12 warns of copies inside std::string that cannot happen (GCC bug 105651, fixed in 13), and of
# the contents of an empty std::optional.
target_compile_options(attnscope_settings INTERFACE
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>,$<OR:$<NOT:$<CONFIG:Debug>>,$<BOOL:${is_sanitized}>>>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds;-Wno-restrict;-Wno-maybe-uninitialized>")
target_link_libraries(attnscope_settings INTERFACE PkgConfig::OPENBLAS Threads::Threads fmt::fmt)
# Releases do not contain the build path.
target_compile_options(attnscope_settings INTERFACE
  "$<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.;-ffile-prefix-map=${PROJECT_BINARY_DIR}=build>")
# Memory written after startup is not executable, and function addresses are read-only. Costly hardening is in optimized builds only.
target_link_options(attnscope_settings INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT is_sanitized)
  target_compile_options(attnscope_settings INTERFACE
    "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2;-fstack-protector-strong;-fstack-clash-protection>")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|i.86|AMD64")
    target_compile_options(attnscope_settings INTERFACE "$<$<NOT:$<CONFIG:Debug>>:-fcf-protection>")
  endif()
endif()
if(is_sanitized)
  # g++ mistakes sanitizer code for uses of uninitialized variables.
  target_compile_options(attnscope_settings INTERFACE -fsanitize=${ATTNSCOPE_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  target_link_options(attnscope_settings INTERFACE -fsanitize=${ATTNSCOPE_SANITIZE})
  if(ATTNSCOPE_FUZZ)
    target_compile_options(attnscope_settings INTERFACE -fsanitize=fuzzer-no-link,float-cast-overflow)
  endif()
endif()
