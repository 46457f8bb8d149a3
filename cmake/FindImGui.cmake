# Dear ImGui with its GLFW and OpenGL 3 backends: ImGui::core and ImGui::glfw_opengl3.
#
# Both are one archive: linking only ImGui::core (tests without a window) pulls in neither GLFW nor OpenGL.
# IMGUI_ROOT, or ImGui_ROOT, is another place to search.
find_path(IMGUI_INCLUDE_DIR imgui.h PATH_SUFFIXES imgui)
find_library(IMGUI_LIBRARY imgui)
find_library(STB_LIBRARY stb)
mark_as_advanced(IMGUI_INCLUDE_DIR IMGUI_LIBRARY STB_LIBRARY)

if(IMGUI_INCLUDE_DIR)
  file(STRINGS "${IMGUI_INCLUDE_DIR}/imgui.h" ImGui_VERSION REGEX "#define IMGUI_VERSION[ \t]+\"")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" ImGui_VERSION "${ImGui_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ImGui REQUIRED_VARS IMGUI_LIBRARY IMGUI_INCLUDE_DIR STB_LIBRARY
                                  VERSION_VAR ImGui_VERSION)

if(ImGui_FOUND AND NOT TARGET ImGui::core)
  find_package(Freetype REQUIRED)
  # UNKNOWN IMPORTED, so that the archive precedes its own dependencies on the linker's command line.
  foreach(part core glfw_opengl3)
    add_library(ImGui::${part} UNKNOWN IMPORTED)
    set_target_properties(ImGui::${part} PROPERTIES
      IMPORTED_LOCATION "${IMGUI_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${IMGUI_INCLUDE_DIR}"
      INTERFACE_LINK_LIBRARIES "${STB_LIBRARY};Freetype::Freetype")
  endforeach()
  if(NOT EMSCRIPTEN)
    find_package(glfw3 3.3 REQUIRED)
    set_property(TARGET ImGui::glfw_opengl3 APPEND PROPERTY INTERFACE_LINK_LIBRARIES glfw ${CMAKE_DL_LIBS})
  endif()
endif()
