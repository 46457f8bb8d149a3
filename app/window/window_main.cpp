#include "app/window/window_main.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "app/screen/heatmap_renderer.hpp"
#include "app/screen/paths.hpp"
#include "app/screen/window.hpp"
#include "app/session/navigation.hpp"
#include "app/session/opening.hpp"
#include "app/session/recording.hpp"
#include "app/session/remembered.hpp"
#include "app/session/store.hpp"
#include "app/window/loop.hpp"
#include "core/base/error.hpp"
#include "core/system/file.hpp"
#include "core/system/process.hpp"

namespace app {

namespace {

constexpr std::chrono::milliseconds signal_poll_interval(50);  // between two checks for a signal

/// Returns the exit status of a program ended by a signal, as in shells.
int status_of_signal(int signal) {
  return 128 + signal;
}

/// Waits in the background for SIGTERM, SIGHUP and SIGINT. Before there is a window, such a signal ends the
/// program at once.
class SignalWatcher {
 public:
  explicit SignalWatcher(const core::system::SignalBlocker& blocker)
      : thread_([this, &blocker](const std::stop_token& ends) {
          for (; !ends.stop_requested(); std::this_thread::sleep_for(signal_poll_interval))
            if (const int came = blocker.take()) take(came);
        }) {}

  /// Declares that there is a window; `wake` is called from another thread when a signal arrives, until it is
  /// replaced.
  void set_wake_callback(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    has_window_ = true;
    wake_ = std::move(wake);
  }
  /// Returns the signal that arrived, or 0.
  int signal() const { return signal_; }

 private:
  void take(int signal) {
    const std::lock_guard lock(mutex_);
    signal_ = signal;
    if (!has_window_)
      std::_Exit(status_of_signal(signal));  // there are no edits yet, and a display may not respond
    if (wake_) wake_();
  }

  std::atomic<int> signal_ = 0;
  std::mutex mutex_;
  std::function<void()> wake_;  // guarded by the mutex, as its target must exist during the call
  bool has_window_ = false;
  std::jthread thread_;
};

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
  memory.recent = kept.recent;
  for (const auto& [name, progress] : kept.progress)
    memory.settings["lesson " + name] = progress_text(progress);
  for (const auto& [key, value] : saved_settings(store.view())) memory.settings[key] = value;
  memory.settings["width"] = std::to_string(static_cast<int>(size.x));
  memory.settings["height"] = std::to_string(static_cast<int>(size.y));
  return memory;
}

}  // namespace

int run_window(const OpenWindow& options) {
  if (options.file) core::system::buffer_pipe_to_file(*options.file);  // may be ended by a signal
  const core::system::SignalBlocker blocker;
  SignalWatcher end(blocker);
  // What a replay shows is the work and the settings of somebody else, which are not kept.
  const bool keeps_state = !options.replay;
  const platform::UserState before =
      keeps_state ? platform::read_user_state(platform::config_directory()) : platform::UserState();
  const int width = setting_number(before.settings, "width", 960, 16384).value_or(1600);
  const int height = setting_number(before.settings, "height", 600, 16384).value_or(1000);
  Store store;
  restore_settings(before, keeps_state ? platform::state_directory() : "", store);
  if (options.record) record(store, *options.record);
  const platform::UserState initial =
      memory_of(store, {static_cast<float>(width), static_cast<float>(height)});
  if (!options.address.empty()) {
    store.attach(options.address, options.token, options.text, options.layer);
  } else if (options.file) {
    store.open(*options.file, options.text, options.layer);
  } else if (options.replay) {
    replay(store, *options.replay, options.until);
  } else if (options.preset) {
    store.dispatch(LoadPreset{options.preset->name});
  } else if (store.view().settings.start_page) {
    store.dispatch(set<&Forms::start_page>(true));
  } else if (!store.view().settings.has_seen_tour) {
    store.dispatch(StartTour{});
  }
  platform::Window window(store.jobs(), "attnscope", width, height,
                          store.view().settings.scale * store.view().settings.text_size);
  render::HeatmapRenderer renderer;
  Loop loop(window, renderer, store);
  SettingsWriter settings_writer(store.jobs(), platform::config_directory(), initial);
  try {
    end.set_wake_callback([&window] { window.wake(); });
    while (loop.step()) {
      if (end.signal() != 0) store.dispatch(QuitNow{});
      if (keeps_state) settings_writer.follow(memory_of(store, window.size()));
    }
  } catch (...) {
    end.set_wake_callback({});
    store.dispatch(QuitNow{});  // the next window offers the unsaved work
    throw;
  }
  end.set_wake_callback({});
  if (keeps_state) settings_writer.finish(memory_of(store, window.size()));
  return end.signal() == 0 ? 0 : status_of_signal(end.signal());
}

}  // namespace app
