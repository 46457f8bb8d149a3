# embed_shaders(TARGET file…): compiles GLSL files into a target.
#
# Each becomes a string_view in the generated shaders.hpp, named after the file: heatmap.frag is shaders::heatmap_frag.
# The file is also the script that writes the generated source, so that nothing but CMake is needed.
if(CMAKE_SCRIPT_MODE_FILE)
  set(declarations "")
  set(definitions "")
  foreach(file IN LISTS SHADERS)
    get_filename_component(name "${file}" NAME)
    string(REPLACE "." "_" name "${name}")
    file(READ "${file}" text)
    string(APPEND declarations "extern const std::string_view ${name};\n")
    string(APPEND definitions "const std::string_view ${name} = R\"glsl(${text})glsl\";\n")
  endforeach()
  file(WRITE "${OUTPUT}.hpp" "#pragma once\n\n#include <string_view>\n\nnamespace shaders {\n${declarations}}\n")
  file(WRITE "${OUTPUT}.cpp" "#include \"shaders.hpp\"\n\nnamespace shaders {\n${definitions}}\n")
  return()
endif()

set(EMBED_SHADERS_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(embed_shaders target)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/generated/shaders")
  add_custom_command(
    OUTPUT "${output}.cpp" "${output}.hpp"
    COMMAND ${CMAKE_COMMAND} "-DSHADERS=${ARGN}" "-DOUTPUT=${output}" -P "${EMBED_SHADERS_SCRIPT}"
    DEPENDS ${ARGN} "${EMBED_SHADERS_SCRIPT}"
    COMMENT "Embedding shaders" VERBATIM)
  target_sources(${target} PRIVATE "${output}.cpp" "${output}.hpp")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/generated")
endfunction()
