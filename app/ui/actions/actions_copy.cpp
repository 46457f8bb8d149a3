#include <array>

#include "app/session/exporting.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "core/base/error.hpp"

namespace app::rows {
namespace {

using core::formats::CopyExtent;

struct Extent {
  CopyExtent extent;
  const char* name;
  const char* words;
};
constexpr std::array extents{Extent{CopyExtent::matrix, "matrix", "Matrix"},
                             Extent{CopyExtent::row, "row", "Row"},
                             Extent{CopyExtent::number, "number", "Number"}};
constexpr std::array decimals{1, 2, 3, 4, 6, 8, 12};

Asked copy_program(const Situation& s) {
  try {
    return {CopyText{program_of(s.newest.model, s.forms, s.document.title)}};
  } catch (const core::Error& error) {  // not every model can be written so
    return {ShowMessage{error.what(), true}};
  }
}

/// What was chosen last, in words: "row as LaTeX".
std::string last_choice(const Situation& s) {
  std::string words = "matrix";
  for (const Extent& extent : extents)
    if (extent.extent == s.settings.copy.extent) words = extent.name;
  return words + " as " + core::formats::copy_forms().at(s.settings.copy.form).title;
}

Action form_row(const Situation& s, const std::string& menu, const std::optional<CellRef>& cell,
                const Extent& extent, std::size_t form) {
  const auto& info = core::formats::copy_forms()[form];
  const CopyChoice choice{extent.extent, form};
  const std::string rounded = ", " + std::to_string(s.settings.copy_decimals) + " decimals";
  Action row{.id = std::string("copy/") + extent.name + "/" + info.name,
             .title = info.title + (info.takes_decimals ? rounded : std::string()),
             .menu = menu + "/" + extent.words,
             .group = 1};
  if (extent.extent != CopyExtent::matrix)
    row.why_not =
        unless([cell](const Situation& now) { return names_a_cell(now, cell); }, "no cell is chosen");
  row.command = [cell, choice](const Situation& now) {
    return Asked{ChangeView{[choice](View& view) { view.settings.copy = choice; }},
                 CopyText{copied_as(now, copy_source(now, cell), choice)}};
  };
  return row;
}

}  // namespace

void add_copying_matrix(Rows& rows, const Situation& s, const std::string& menu, const CellRef& cell) {
  for (std::size_t form = 0; form < core::formats::copy_forms().size(); ++form) {
    Action row = form_row(s, menu, cell, extents[0], form);
    row.menu = menu, row.group = 2;
    rows.push_back(std::move(row));
  }
}

void add_copying(Rows& rows, const Situation& s, const std::string& menu,
                 const std::optional<CellRef>& cell) {
  rows.push_back({.id = "copy/source", .title = copied_words(s, cell), .menu = menu, .group = 1});
  for (const Extent& extent : extents)
    for (std::size_t form = 0; form < core::formats::copy_forms().size(); ++form)
      rows.push_back(form_row(s, menu, cell, extent, form));
  for (const int n : decimals)
    rows.push_back({.id = "copy/decimals/" + std::to_string(n),
                    .title = std::to_string(n),
                    .menu = menu + "/Decimals of Markdown and LaTeX",
                    .group = 1,
                    .command = looks([n](View& view) { view.settings.copy_decimals = n; }),
                    .checked = [n](const Situation& now) { return now.settings.copy_decimals == n; }});
  rows.push_back({.id = "copy/program",
                  .title = "The model as a PyTorch program",
                  .menu = menu,
                  .group = 1,
                  .part = 1,
                  .command = copy_program});
  rows.push_back({.id = "copy/again",
                  .title = "Copy again: " + last_choice(s),
                  .menu = cell ? "" : "Edit",
                  .group = 1,
                  .keys = {ctrl_shift(Key::c)},
                  .sheet = "Copy again, as chosen last in Copy as",
                  .command = [](const Situation& now) {
                    return Asked{CopyText{copied_as(now, copy_source(now), now.settings.copy)}};
                  }});
}

}  // namespace app::rows
