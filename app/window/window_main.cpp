#include "app/window/window_main.hpp"

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include "app/screen/heatmap_renderer.hpp"
#include "app/screen/paths.hpp"
#include "app/screen/window.hpp"
#include "app/session/navigation.hpp"
#include "app/session/opening.hpp"
#include "app/session/remembered.hpp"
#include "app/session/store.hpp"
#include "app/window/loop.hpp"
#include "core/base/error.hpp"
#include "core/system/file.hpp"
#include "core/system/process.hpp"

namespace app {

namespace {

constexpr std::chrono::milliseconds between_looks(50);  // at whether a signal has come

}  // namespace

EndWatch::EndWatch(const core::system::SignalBlocker& blocker) {
  thread_ = std::jthread([this, &blocker](const std::stop_token& ends) {
    for (; !ends.stop_requested(); std::this_thread::sleep_for(between_looks))
      if (const int came = blocker.take()) take(came);
  });
}

void EndWatch::take(int signal) {
  const std::lock_guard lock(mutex_);
  signal_ = signal;
  if (!had_window_)
    std::_Exit(status_of_signal(signal));  // nothing has been edited; a display may not answer
  if (wake_) wake_();
}

EndWatch::Window::Window(EndWatch& watch, std::function<void()> wake) : watch_(watch) {
  const std::lock_guard lock(watch.mutex_);
  watch.had_window_ = true;
  watch.wake_ = std::move(wake);
}

EndWatch::Window::~Window() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.wake_ = nullptr;
}

namespace {

void recall_all(const platform::Memory& memory, Store& store) {
  Kept kept{memory.recent, {}, platform::state_directory(), {}};
  for (const auto& folder : platform::example_directories())
    if (whole_model_at(folder)) kept.models.push_back(folder);
  for (const core::lessons::Lesson& lesson : core::lessons::lessons()) {
    const auto text = memory.settings.find(std::string("lesson ") + lesson.name);
    if (text == memory.settings.end()) continue;
    if (const auto known = read_progress(text->second, lesson.steps.size()))
      kept.progress[lesson.name] = *known;
  }
  store.recall(std::move(kept), memory.settings);
}

platform::Memory memory_of(const Store& store, ImVec2 size) {
  const Kept kept = store.kept();
  platform::Memory memory;
  memory.recent = kept.recent;
  for (const auto& [name, progress] : kept.progress)
    memory.settings["lesson " + name] = progress_text(progress);
  for (const auto& [key, value] : remembered(store.view())) memory.settings[key] = value;
  memory.settings["width"] = std::to_string(static_cast<int>(size.x));
  memory.settings["height"] = std::to_string(static_cast<int>(size.y));
  return memory;
}

}  // namespace

int run_window(const WindowOptions& options) {
  if (options.file) core::system::read_pipe_whole(*options.file);  // which may be asked to end
  const core::system::SignalBlocker blocker;
  EndWatch end(blocker);
  const platform::Memory before = platform::read_memory(platform::config_directory());
  const int width = remembered_number(before.settings, "width", 960, 16384).value_or(1600);
  const int height = remembered_number(before.settings, "height", 600, 16384).value_or(1000);
  Store store;
  recall_all(before, store);
  const platform::Memory began = memory_of(store, {static_cast<float>(width), static_cast<float>(height)});
  if (!options.address.empty()) {
    store.attach(options.address, options.token, options.text, options.layer);
  } else if (options.file) {
    store.open(*options.file, options.text, options.layer);
  } else if (!options.preset.empty()) {
    store.dispatch(LoadPreset{options.preset});
  } else if (store.view().settings.start_page) {
    store.dispatch(set<&Forms::start_page>(true));
  } else if (!store.view().settings.knows_tour) {
    store.dispatch(StartTour{});
  }
  platform::Window window(store.jobs(), "attnscope", width, height,
                          store.view().settings.scale * store.view().settings.text_size);
  render::HeatmapRenderer renderer;
  Loop loop(window, renderer, store);
  const EndWatch::Window called(end, [&window] { window.wake(); });
  Remembering remembering(store.jobs(), platform::config_directory(), began);
  try {
    while (loop.step()) {
      if (end.signal() != 0) store.dispatch(EndNow{});
      remembering.follow(memory_of(store, window.size()));
    }
  } catch (...) {
    store.dispatch(EndNow{});  // the next window offers what is not saved
    throw;
  }
  remembering.finish(memory_of(store, window.size()));
  return end.signal() == 0 ? 0 : status_of_signal(end.signal());
}

}  // namespace app
