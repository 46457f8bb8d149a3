#pragma once

#include <imgui.h>

#include <map>
#include <optional>
#include <string>

namespace app {

/// A rectangle on the screen, in pixels.
struct Rect {
  ImVec2 min, max;
  ImVec2 center() const { return {(min.x + max.x) / 2, (min.y + max.y) / 2}; }
  float width() const { return max.x - min.x; }
  float height() const { return max.y - min.y; }
};

/// Rectangles of the window's parts, by name: lessons point at them and tests click on them.
///
/// Names are paths: "model/causal", "edit/cell/1/2", "strip/weights", "menu/File".
class Landmarks {
 public:
  /// Removes the marks of the last frame.
  void clear() { rects_.clear(); }
  void mark(const std::string& name, ImVec2 min, ImVec2 max) { rects_[name] = {min, max}; }
  /// Marks ImGui's last item.
  void mark_item(const std::string& name) { mark(name, ImGui::GetItemRectMin(), ImGui::GetItemRectMax()); }
  std::optional<Rect> find(const std::string& name) const {
    const auto it = rects_.find(name);
    return it == rects_.end() ? std::nullopt : std::optional(it->second);
  }
  const std::map<std::string, Rect>& all() const { return rects_; }

 private:
  std::map<std::string, Rect> rects_;
};

}  // namespace app
