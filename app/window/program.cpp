#include "app/window/program.hpp"

#include <filesystem>
#include <string>
#include <utility>

#include "app/screen/paths.hpp"
#include "app/session/navigation.hpp"
#include "app/session/recording.hpp"
#include "app/session/remembered.hpp"

namespace app {

namespace {

void restore_settings(const platform::UserState& memory, const std::filesystem::path& journals,
                      Store& store) {
  PersistentState kept{memory.recent, {}, journals, {}};
  for (const auto& folder : platform::example_directories())
    if (full_model_at(folder)) kept.models.push_back(folder);
  for (const core::lessons::Lesson& lesson : core::lessons::lessons()) {
    const auto text = memory.settings.find(std::string("lesson ") + lesson.name);
    if (text == memory.settings.end()) continue;
    if (const auto known = parse_progress(text->second, lesson.steps.size()))
      kept.progress[lesson.name] = *known;
  }
  store.apply_settings(std::move(kept), memory.settings);
}

platform::UserState memory_of(const Store& store, ImVec2 size) {
  const PersistentState kept = store.persistent_state();
  platform::UserState memory;
  if (!store.view().forms.in_browser) memory.recent = kept.recent;  // of which a page keeps none
  for (const auto& [name, progress] : kept.progress)
    memory.settings["lesson " + name] = progress_text(progress);
  for (const auto& [key, value] : saved_settings(store.view())) memory.settings[key] = value;
  memory.settings["width"] = std::to_string(static_cast<int>(size.x));
  memory.settings["height"] = std::to_string(static_cast<int>(size.y));
  return memory;
}

}  // namespace

Program::Program(const OpenWindow& options, const OpenScreen& open_screen) {
  // What a replay shows is the work and the settings of somebody else, which are not kept.
  const bool keeps_state = !options.replay;
  const platform::UserState before =
      keeps_state ? platform::read_user_state(platform::config_directory()) : platform::UserState();
  const int width = setting_number(before.settings, "width", 960, 16384).value_or(1600);
  const int height = setting_number(before.settings, "height", 600, 16384).value_or(1000);
  restore_settings(before, keeps_state ? platform::state_directory() : "", store_);
  if (options.record) record(store_, *options.record);
  if (keeps_state)
    settings_writer_.emplace(store_.jobs(), platform::config_directory(),
                             memory_of(store_, {static_cast<float>(width), static_cast<float>(height)}));
  if (!options.address.empty()) {
    store_.attach(options.address, options.token, options.text, options.layer);
  } else if (options.file) {
    store_.open(*options.file, options.text, options.layer);
  } else if (options.replay) {
    replay(store_, *options.replay, options.until);
  } else if (options.preset) {
    store_.dispatch(LoadPreset{options.preset->name});
  } else if (options.is_embedded) {
    // the view alone, of the first model
  } else if (store_.view().settings.start_page) {
    store_.dispatch(set<&Forms::start_page>(true));
  } else if (!store_.view().settings.has_seen_tour) {
    store_.dispatch(StartTour{});
  }
  const Settings& settings = store_.view().settings;
  screen_ = open_screen(store_.jobs(), width, height, settings.scale * settings.text_size);
  if (screen_->in_browser()) store_.set_in_browser(options.is_embedded);
  renderer_.emplace();
  loop_.emplace(*screen_, *renderer_, store_);
}

bool Program::step() {
  if (!loop_->step()) return false;
  if (settings_writer_) settings_writer_->follow(memory_of(store_, screen_->size()));
  return true;
}

void Program::finish() {
  if (settings_writer_) settings_writer_->finish(memory_of(store_, screen_->size()));
}

}  // namespace app
