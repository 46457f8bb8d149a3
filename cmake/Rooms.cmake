# attnscope_room(TARGET SOURCES file… USES target…): one room of the program, a library of its folder's name.
#
# All rooms and programs share one precompiled header of what most of them include.
add_library(attnscope_common STATIC "${CMAKE_CURRENT_LIST_DIR}/common.cpp")
target_link_libraries(attnscope_common PUBLIC attnscope_settings)
target_precompile_headers(attnscope_common PRIVATE <armadillo> <filesystem> <functional> <map> <optional> <set> <string> <variant> <vector>)

function(attnscope_room target)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES" ${ARGN})
  add_library(${target} STATIC ${ROOM_SOURCES})
  target_link_libraries(${target} PUBLIC ${ROOM_USES})
  target_precompile_headers(${target} REUSE_FROM attnscope_common)
endfunction()
