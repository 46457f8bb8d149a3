# For builds from the source distribution with pip: one line that says what is missing and how to install it.
set(missing "")
foreach(header armadillo nlohmann/json.hpp CLI/CLI.hpp zip.h zlib.h cairo/cairo.h pcre2.h utf8proc.h fmt/core.h tbb/task_arena.h
               imgui.h stb/stb_image_write.h GLFW/glfw3.h epoxy/gl.h freetype2/ft2build.h fontconfig/fontconfig.h)
  string(MAKE_C_IDENTIFIER "ATTNSCOPE_HAS_${header}" found)
  find_file(${found} NAMES "${header}" PATH_SUFFIXES imgui)
  if(NOT ${found})
    list(APPEND missing "${header}")
  endif()
endforeach()
if(missing)
  file(READ "${PROJECT_SOURCE_DIR}/scripts/packages.sh" lists)
  string(REGEX MATCH "run_packages=\"([^\"]*)\"" _ "${lists}")
  string(REPLACE "\n" " " packages "${CMAKE_MATCH_1}")
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "attnscope is built with libraries of the system and these are missing: ${missing}. "
                      "On Debian and Ubuntu: sudo apt-get install --no-install-recommends ${packages}")
endif()
