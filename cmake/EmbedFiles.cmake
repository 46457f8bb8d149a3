# embed_files(TARGET NAME file…): compiles text files into a target.
#
# They become embedded::NAME, an array of {name, text} in the given order, in the generated embedded_NAME.hpp.
# The file is also the script that writes the generated source, so that nothing but CMake is needed.
if(CMAKE_SCRIPT_MODE_FILE)
  set(entries "")
  set(count 0)
  foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME)
    file(READ "${file}" text)
    string(APPEND entries "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
    math(EXPR count "${count} + 1")
  endforeach()
  file(WRITE "${OUTPUT}.hpp" "#pragma once\n\n#include <array>\n#include <string_view>\n\nnamespace embedded {\n\n#ifndef EMBEDDED_FILE\n#define EMBEDDED_FILE\nstruct File {\n  std::string_view name, text;\n};\n#endif\n\nextern const std::array<File, ${count}> ${NAME};\n\n}  // namespace embedded\n")
  file(WRITE "${OUTPUT}.cpp" "#include \"embedded_${NAME}.hpp\"\n\nnamespace embedded {\n\nconst std::array<File, ${count}> ${NAME}{{\n${entries}}};\n\n}  // namespace embedded\n")
  return()
endif()

set(EMBED_FILES_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(embed_files target name)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/generated/embedded_${name}")
  add_custom_command(
    OUTPUT "${output}.cpp" "${output}.hpp"
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARGN}" "-DNAME=${name}" "-DOUTPUT=${output}" -P "${EMBED_FILES_SCRIPT}"
    DEPENDS ${ARGN} "${EMBED_FILES_SCRIPT}"
    COMMENT "Embedding ${name}" VERBATIM)
  target_sources(${target} PRIVATE "${output}.cpp" "${output}.hpp")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/generated")
endfunction()
