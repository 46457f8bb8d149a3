# attnscope_room(TARGET SOURCES file… USES target… [PRECOMPILES header | PRECOMPILED_IN target]): adds one room of the program, a
# library named after its folder.
#
# All rooms and programs share one precompiled header of common includes; the rooms of the window share the session's.
set(ATTNSCOPE_PRECOMPILED <armadillo> <filesystem> <functional> <map> <optional> <set> <string> <variant> <vector>)
add_library(attnscope_common STATIC "${CMAKE_CURRENT_LIST_DIR}/common.cpp")
target_link_libraries(attnscope_common PUBLIC attnscope_settings)
target_precompile_headers(attnscope_common PRIVATE ${ATTNSCOPE_PRECOMPILED})

function(attnscope_room target)
  cmake_parse_arguments(ROOM "" "PRECOMPILES;PRECOMPILED_IN" "SOURCES;USES" ${ARGN})
  add_library(${target} STATIC ${ROOM_SOURCES})
  target_link_libraries(${target} PUBLIC ${ROOM_USES})
  if(ROOM_PRECOMPILES)
    target_precompile_headers(${target} PRIVATE ${ATTNSCOPE_PRECOMPILED} "${PROJECT_SOURCE_DIR}/${ROOM_PRECOMPILES}")
  elseif(ROOM_PRECOMPILED_IN)
    target_precompile_headers(${target} REUSE_FROM ${ROOM_PRECOMPILED_IN})
  else()
    target_precompile_headers(${target} REUSE_FROM attnscope_common)
  endif()
endfunction()
