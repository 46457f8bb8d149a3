#include "app/ui/actions/action_rows.hpp"
#include "core/editing/presets.hpp"

namespace app::rows {
namespace {

namespace editing = core::editing;

void add_presets(Rows& rows) {
  for (const auto& preset : editing::presets()) {
    const bool is_default = &preset == &editing::default_preset();
    Action row{.id = std::string("new/") + preset.name, .title = preset.title, .menu = "File/New"};
    row.about = preset.about;
    if (is_default) row.keys = {ctrl(Key::n)}, row.sheet = "Start anew";
    row.command = always(LoadPreset{preset.name});
    rows.push_back(std::move(row));
  }
}

void add_recent(Rows& rows, const Situation& s) {
  for (std::size_t k = 0; k < s.document.recent.size(); ++k) {
    const auto& path = s.document.recent[k];
    rows.push_back({.id = "recent/" + std::to_string(k),
                    .title = path.filename().string(),
                    .menu = "File/Open recent",
                    .about = path.string(),
                    .command = always(OpenFile{path})});
  }
  if (s.document.recent.empty())
    rows.push_back({.id = "recent/none",
                    .title = "none yet",
                    .menu = "File/Open recent",
                    .why_not = [](const Situation&) { return "no file was opened or saved"; }});
}

/// The whole models that the program brings.
void add_models(Rows& rows, const Situation& s) {
  for (const auto& path : s.forms.models)
    rows.push_back({.id = "model/" + path.filename().string(),
                    .title = path.filename().string(),
                    .menu = "File/Models",
                    .about = path.string(),
                    .command = always(OpenFile{.path = path})});
  if (s.forms.models.empty())
    rows.push_back(
        {.id = "model/none", .title = "none", .menu = "File/Models", .why_not = [](const Situation&) {
           return "no whole model lies beside the program";
         }});
}

void add_layers(Rows& rows, const Situation& s) {
  for (std::size_t k = 0; k < s.document.layers.size(); ++k)
    rows.push_back({.id = "layer/" + std::to_string(k),
                    .title = s.document.layers[k].empty() ? std::to_string(k) : s.document.layers[k],
                    .menu = "File/Layer of this file",
                    .command = always(ChooseLayer{k}),
                    .checked = [k](const Situation& now) { return now.document.layer == k; }});
}

}  // namespace

std::vector<Action> of_file(const Situation& s) {
  Rows rows;
  add_presets(rows);
  rows.push_back({.id = "file/open",
                  .title = "Open…",
                  .menu = "File",
                  .keys = {ctrl(Key::o)},
                  .command = shows(Dialog::open)});
  add_models(rows, s);
  rows.push_back(
      {.id = "file/as_tensors",
       .title = "Open its tensors, not the whole model",
       .menu = "File",
       .about = "One layer of the open model's file, as a checkpoint's layer is opened",
       .why_not =
           unless([](const Situation& now) { return now.newest.whole != nullptr; }, "no whole model is open"),
       .command = [](const Situation& now) {
         return Asked{OpenFile{.path = now.newest.whole->model->description().file, .as_tensors = true}};
       }});
  add_recent(rows, s);
  rows.push_back({.id = "file/choose",
                  .title = "Choose from this file…",
                  .menu = "File",
                  .why_not = unless([](const Situation& now) { return now.document.of_tensors; },
                                    "the model was not made of a file of tensors"),
                  .command = shows(Dialog::import_tensors)});
  add_layers(rows, s);
  rows.push_back({.id = "file/check_tensors",
                  .title = "Check tensors…",
                  .menu = "File",
                  .group = 1,
                  .about = "Tensors of your own against the model: the first stage that differs, and why",
                  .keys = {ctrl(Key::k)},
                  .sheet = "Check tensors of your own against the model",
                  .command = shows(Dialog::open_tensors)});
  rows.push_back({.id = "file/save",
                  .title = "Save",
                  .menu = "File",
                  .group = 2,
                  .keys = {ctrl(Key::s)},
                  .command = always(SaveFile{})});
  rows.push_back({.id = "file/save_as",
                  .title = "Save as…",
                  .menu = "File",
                  .group = 2,
                  .keys = {ctrl_shift(Key::s)},
                  .sheet = "Save under another name",
                  .command = shows(Dialog::save_as)});
  rows.push_back({.id = "file/export",
                  .title = "Export…",
                  .menu = "File",
                  .group = 2,
                  .about = "Numbers, a figure or a program",
                  .keys = {ctrl(Key::e)},
                  .sheet = "Export numbers, a figure or a program",
                  .command = [](const Situation&) {
                    return Asked{ChangeView{[](View& view) { view.forms.exporting.from.reset(); }},
                                 ShowDialog{Dialog::export_files}};
                  }});
  rows.push_back({.id = "file/quit",
                  .title = "Quit",
                  .menu = "File",
                  .group = 3,
                  .keys = {ctrl(Key::q)},
                  .command = always(Quit{})});
  return rows;
}

}  // namespace app::rows
