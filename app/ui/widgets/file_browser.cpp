#include "app/ui/widgets/file_browser.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/files/tensor_formats.hpp"

namespace app::widgets {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> home() {
  const char* path = std::getenv("HOME");
  return path && *path ? std::optional<fs::path>(path) : std::nullopt;
}

bool is_listed(const BrowserEntry& entry, const std::string& name, Listed listed) {
  if (entry.name.starts_with('.') && !name.starts_with('.')) return false;
  if (entry.is_directory) return true;
  if (listed == Listed::directories) return false;
  const bool is_session = entry.name.ends_with(".json"),
             has_tensors = core::formats::has_tensor_ending(entry.name);
  return (is_session && listed != Listed::tensors) || (has_tensors && listed != Listed::sessions);
}

std::string size_text(std::uintmax_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  if (bytes < 1000 * 1000) return std::to_string(bytes / 1000) + " kB";
  return std::to_string(bytes / 1000 / 1000) + " MB";
}

/// "today, 09:12", "23 Nov", "18 Nov 2025".
std::string date_text(std::int64_t seconds) {
  if (seconds == 0) return "";
  const auto local = [](std::time_t time) {
    std::tm fields{};
    localtime_r(&time, &fields);
    return fields;
  };
  const std::tm then = local(static_cast<std::time_t>(seconds)), now = local(std::time(nullptr));
  const bool is_today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;
  char text[32];
  std::strftime(text, sizeof text,
                is_today                      ? "today, %H:%M"
                : then.tm_year == now.tm_year ? "%e %b"
                                              : "%e %b %Y",
                &then);
  return text;
}

void set_name(const Frame& frame, const std::string& name) {
  frame.commands.add(set<&Browser::name>(name), set<&Browser::asks_to_replace>(false));
}

void path_line(const Frame& frame, float width) {
  const fs::path& directory = frame.forms.browser.directory;
  if (button(frame, "browser/parent", "up") && directory.has_parent_path())
    frame.commands.add(BrowseTo{directory.parent_path()});
  ImGui::SameLine();
  if (button(frame, "browser/home", "home"))
    if (const auto path = home()) frame.commands.add(BrowseTo{*path});
  ImGui::SameLine();
  const std::array<std::string, 2> orders{"by name", "by date"};
  if (const auto order = segmented(frame, "browser/order", orders, frame.forms.browser.by_date ? 1 : 0))
    frame.commands.add(set<&Browser::by_date>(*order == 1));
  ImGui::SameLine();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = width - (at.x - ImGui::GetWindowPos().x - ImGui::GetStyle().WindowPadding.x);
  ImFont* font = frame.fonts.sans14;
  draw_text_within(font, {at.x, centred_y(font, at.y, frame.metrics.frame)}, room, frame.palette.dim,
                   directory.string());
  ImGui::NewLine();
}

/// True when the entry was chosen by a double click.
bool entry_line(const Frame& frame, const BrowserEntry& entry) {
  const std::string words = entry.is_directory ? entry.name + "/" : entry.name;
  const bool selected = entry.name == frame.forms.browser.name;
  const bool pressed =
      ImGui::Selectable((words + "##entry").c_str(), selected,
                        ImGuiSelectableFlags_AllowDoubleClick | ImGuiSelectableFlags_DontClosePopups);
  frame.landmarks.mark_item("browser/entry/" + entry.name);
  const ImVec2 min = ImGui::GetItemRectMin(), max = ImGui::GetItemRectMax();
  ImFont* font = frame.fonts.mono12;
  const float right = max.x - frame.metrics.px(6), top = centred_y(font, min.y, max.y - min.y);
  if (!entry.is_directory) draw_text_right(font, right, top, frame.palette.faint, size_text(entry.size));
  draw_text_right(font, right - frame.metrics.px(70), top, frame.palette.faint, date_text(entry.changed));
  if (!pressed) return false;
  if (!ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
    // What is saved keeps its name when a folder is looked for.
    if (!entry.is_directory || frame.forms.dialog != Dialog::save_as) set_name(frame, entry.name);
    return false;
  }
  if (entry.is_directory) frame.commands.add(BrowseTo{frame.forms.browser.directory / entry.name});
  return !entry.is_directory;
}

}  // namespace

fs::path chosen_path(const Browser& browser) {
  if (browser.name == "~" || browser.name.starts_with("~/"))
    if (const auto path = home())
      return *path / fs::path(browser.name.substr(std::min<std::size_t>(2, browser.name.size())));
  return browser.name.empty() ? browser.directory : browser.directory / browser.name;
}

Browser as_typed(const Frame& frame, const std::string& proposed) {
  Browser browser = frame.forms.browser;
  browser.entries.clear();
  const auto& typed = frame.forms.typed;
  if (typed && typed->field == "browser/name") browser.name = typed->text;
  if (browser.name.empty()) browser.name = proposed;
  return browser;
}

std::optional<fs::path> file_browser(const Frame& frame, Listed listed, ImVec2 size,
                                     const std::string& proposed) {
  const Browser& browser = frame.forms.browser;
  std::optional<fs::path> chosen;
  path_line(frame, size.x);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(frame.palette.ground.back));
  const float list_height = size.y - 3 * (frame.metrics.frame + ImGui::GetStyle().ItemSpacing.y);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.metrics.px(10), frame.metrics.px(6)});
  const bool visible = platform::begin_child("entries", {size.x, std::max(frame.metrics.px(80), list_height)},
                                             false, ImGuiWindowFlags_AlwaysUseWindowPadding);
  ImGui::PopStyleVar();
  if (visible) {
    platform::push_font(frame.fonts.sans15);
    if (browser.is_listing) ImGui::TextUnformatted("…");
    int id = 0;
    std::vector<const BrowserEntry*> entries;
    for (const BrowserEntry& entry : browser.entries)
      if (is_listed(entry, browser.name, listed)) entries.push_back(&entry);
    if (browser.by_date) std::ranges::stable_sort(entries, std::ranges::greater(), &BrowserEntry::changed);
    for (const BrowserEntry* entry : entries) {
      ImGui::PushID(id++);
      if (entry_line(frame, *entry)) chosen = browser.directory / entry->name;
      ImGui::PopID();
    }
    ImGui::PopFont();
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();

  FieldStyle style;
  style.width = size.x, style.font = frame.fonts.sans15, style.alignment = Alignment::left;
  style.tells_refusal = false;
  const std::string shown = browser.name.empty() ? proposed : browser.name;
  const auto answer = text_field(frame, "browser/name", shown, style);
  if (answer.text) set_name(frame, *answer.text);
  const std::string name = answer.text.value_or(shown);
  if (answer.left && platform::key_pressed(ImGuiKey_Enter, false) && !name.empty()) {
    Browser typed = browser;
    typed.name = name;
    chosen = chosen_path(typed);
  }
  const std::string& error =
      browser.error.empty() && frame.message.is_error ? frame.message.text : browser.error;
  paragraph(frame.fonts.sans14, frame.palette.status.bad, size.x, error.empty() ? " " : error);
  return chosen;
}

}  // namespace app::widgets
