#include "tests/rules/rooms.hpp"

#include "tests/rules/source_tree.hpp"

namespace tests::rules {

const std::vector<Room>& rooms() {
  static const std::vector<Room> table{
      {"core", {}, {}},
      {"core/matrix", {}, {}},
      {"core/random", {"core"}, {}},
      {"core/text", {"core"}, {}},
      {"core/attention", {"core", "core/matrix", "core/random", "core/text"}, {}},
      {"core/parallel", {}, {}},
      {"core/attention/fast", {"core", "core/random", "core/attention", "core/parallel"}, {}},
      {"core/formats/files", {"core", "core/text"}, {"nlohmann/"}},
      {"core/formats/tensors", {"core", "core/text", "core/formats/files"}, {}},
      {"core/mistakes", {"core/attention"}, {}},
      {"core/check", {"core", "core/text", "core/attention", "core/formats/files", "core/formats/tensors", "core/mistakes"}, {}},
      {"core/colour", {}, {}},
      {"core/statistics", {"core", "core/random", "core/attention"}, {}},
      {"core/compare", {"core", "core/text", "core/attention", "core/statistics"}, {}},
      {"core/editing/presets", {"core/random", "core/attention"}, {}},
      {"core/editing", {"core", "core/random", "core/text", "core/attention", "core/mistakes", "core/editing/presets"}, {}},
      {"core/explain", {"core", "core/attention"}, {}},
      {"core/formats/writers", {"core", "core/text", "core/attention", "core/formats/files", "core/editing"}, {"zip.h"}},
      {"core/figures", {"core", "core/text", "core/attention", "core/formats/files", "core/colour", "core/formats/writers"}, {"cairo"}},
      {"core/formats/checkpoints", {"core", "core/attention", "core/formats/files", "core/formats/tensors"}, {}},
      {"core/formats/readers", {"core", "core/text", "core/formats/files", "core/formats/tensors"}, {"zip.h"}},
      {"core/formats/sessions", {"core", "core/matrix", "core/attention", "core/formats/files", "core/formats/tensors", "core/formats/checkpoints", "core/formats/readers"}, {}},
      {"core/importing", {"core", "core/random", "core/text", "core/attention", "core/formats/files", "core/formats/tensors", "core/check", "core/formats/checkpoints", "core/formats/readers", "core/formats/sessions"}, {}},
      {"core/lessons", {"core", "core/text", "core/attention", "core/statistics", "core/editing"}, {}},
      {"app/state", {"core/attention", "core/formats/files", "core/colour", "core/statistics", "core/compare", "core/editing", "core/explain", "core/formats/writers", "core/importing", "core/lessons"}, {}},
      {"app/work", {"core", "core/text", "core/attention", "core/attention/fast", "core/formats/files", "core/check", "core/statistics", "core/compare", "core/figures", "app/state"}, {}},
      {"app/command_line", {"core", "core/random", "core/text", "core/attention", "core/formats/files", "core/mistakes", "core/check", "core/editing", "core/formats/writers", "core/figures", "core/formats/readers", "core/formats/sessions", "core/importing", "app/state", "app/work"}, {"CLI/"}},
      {"app/files", {"core", "core/text", "core/attention", "core/attention/fast", "core/formats/files", "core/formats/tensors", "core/editing", "core/formats/writers", "core/figures", "core/formats/checkpoints", "core/formats/readers", "core/formats/sessions", "core/importing", "app/state", "app/work"}, {}},
      {"app/theme", {"core/colour"}, {"imgui"}},
      {"app/render", {"core", "core/parallel", "core/attention/fast", "core/colour", "app/theme"}, {"epoxy/", "imgui"}},
      {"app/platform", {"core", "app/state", "app/work", "app/theme", "app/render"}, {"GLFW/", "backends/imgui_impl", "fontconfig/", "imgui"}},
      {"app/store", {"core", "core/attention", "core/formats/tensors", "core/check", "core/compare", "core/editing", "core/formats/readers", "core/formats/sessions", "app/state", "app/work", "app/files"}, {}},
      {"app/ui", {"core/attention", "app/state", "app/work", "app/files", "app/theme", "app/render"}, {"imgui"}},
      {"app/ui/actions", {"core", "core/formats/files", "core/mistakes", "core/compare", "core/editing", "core/lessons", "app/state", "app/files"}, {}},
      {"app/ui/widgets", {"core/text", "core/attention", "core/formats/files", "core/explain", "core/figures", "core/formats/readers", "core/lessons", "app/state", "app/theme", "app/ui"}, {"imgui"}},
      {"app/ui/widgets/heatmap", {"core/text", "core/colour", "core/explain", "core/figures", "app/state", "app/work", "app/ui", "app/ui/widgets"}, {"imgui"}},
      {"app/ui/panels/menus", {"app/ui", "app/ui/actions", "app/ui/widgets", "app/ui/widgets/heatmap"}, {}},
      {"app/ui/panels/stages", {"core/text", "app/state", "app/ui", "app/ui/widgets", "app/ui/widgets/heatmap", "app/ui/panels/menus"}, {}},
      {"app/ui/panels/bars", {"app/work", "app/ui", "app/ui/actions", "app/ui/widgets", "app/ui/panels/menus", "app/ui/panels/stages"}, {}},
      {"app/ui/panels/compare", {"core/text", "core/compare", "app/state", "app/work", "app/theme", "app/ui", "app/ui/widgets", "app/ui/widgets/heatmap"}, {}},
      {"app/ui/widgets/editor", {"core", "core/text", "core/formats/files", "core/formats/tensors", "core/formats/readers", "app/theme", "app/render", "app/ui", "app/ui/widgets"}, {"imgui"}},
      {"app/ui/panels/dialogs", {"core", "core/random", "core/text", "core/attention", "core/editing", "core/formats/sessions", "core/lessons", "app/work", "app/files", "app/theme", "app/ui", "app/ui/actions", "app/ui/widgets", "app/ui/panels/menus", "app/ui/panels/compare", "app/ui/widgets/editor"}, {}},
      {"app/ui/panels/edit", {"core/text", "core/editing", "app/state", "app/ui", "app/ui/widgets", "app/ui/widgets/editor", "app/ui/panels/dialogs"}, {}},
      {"app/ui/panels/heads", {"app/ui", "app/ui/widgets", "app/ui/widgets/heatmap"}, {}},
      {"app/ui/panels/tokens", {"app/state", "app/theme", "app/ui", "app/ui/widgets"}, {}},
      {"app/ui/panels/inspector", {"core/formats/files", "core/statistics", "core/explain", "app/state", "app/ui", "app/ui/widgets", "app/ui/panels/heads", "app/ui/panels/tokens"}, {}},
      {"app/ui/panels/laboratory", {"app/ui", "app/ui/widgets", "app/ui/widgets/heatmap"}, {"imgui"}},
      {"app/ui/panels/lessons", {"core/lessons", "app/ui", "app/ui/widgets", "app/ui/widgets/heatmap"}, {}},
      {"app/ui/panels/model", {"core/text", "core/attention", "core/formats/files", "core/mistakes", "core/editing", "app/ui", "app/ui/widgets", "app/ui/panels/menus"}, {}},
      {"app/window", {"core", "app/state", "app/work", "app/files", "app/theme", "app/render", "app/platform", "app/store", "app/ui", "app/ui/actions", "app/ui/widgets", "app/ui/panels/stages", "app/ui/panels/bars", "app/ui/panels/compare", "app/ui/panels/dialogs", "app/ui/panels/edit", "app/ui/panels/heads", "app/ui/panels/tokens", "app/ui/panels/inspector", "app/ui/panels/laboratory", "app/ui/panels/lessons", "app/ui/panels/model"}, {}},
      {"app", {"app/command_line", "app/window"}, {}},
  };
  return table;
}

const std::vector<std::string_view>& guarded_libraries() {
  static const std::vector<std::string_view> guarded{"imgui", "epoxy/", "GLFW/", "backends/imgui_impl", "fontconfig/", "cairo", "zip.h", "zlib.h", "nlohmann/", "CLI/", "stb_"};
  return guarded;
}

const Room* room_of(std::string_view path) {
  const Room* found = nullptr;
  for (const Room& room : rooms()) {
    const std::size_t end = path.rfind('/');
    if (path == room.folder || path.substr(0, end) == room.folder) found = &room;
  }
  return found;
}

}  // namespace tests::rules
