// The program as functions that assets/web/page.js calls. The script frees the texts that it is given.
#include <emscripten.h>
#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>

#include "app/screen/page_window.hpp"
#include "app/ui/actions/actions.hpp"
#include "app/window/program.hpp"
#include "core/files/json.hpp"

// clang-format off
EM_JS(void, page_fail, (const char* message), { Module.page.fail(UTF8ToString(message)); });
// clang-format on

namespace app {
namespace {

/// The program and its window, which the program owns.
struct WebProgram {
  explicit WebProgram(const OpenWindow& options)
      : program(options, [this](Jobs& jobs, int, int, float font_scale) {
          auto opened = std::make_unique<platform::PageWindow>(jobs, font_scale);
          window = opened.get();
          return opened;
        }) {}

  platform::PageWindow* window = nullptr;
  Program program;
};

/// Returns whether a key is one of the program's, which the browser should not use.
bool is_own_key(const Store& store, const KeyPress& press) {
  const bool edits_text = press.ctrl && !press.alt &&
                          (press.key == Key::a || press.key == Key::c || press.key == Key::x ||
                           press.key == Key::y || press.key == Key::z);
  const bool is_named = press.key >= Key::escape && press.key <= Key::page_down;
  if (edits_text || is_named) return true;
  const DisplayedState shown = displayed_state(store);
  const PersistentState kept = store.persistent_state();
  const View& view = store.view();
  for (const Action& action : actions({shown.displayed(),
                                       store.pending(),
                                       view.settings,
                                       view.forms,
                                       store.document(),
                                       {},
                                       &kept.progress}))
    if (std::ranges::find(action.keys, press) != action.keys.end()) return true;
  return false;
}

char* copy_for_page(const std::string& text) {
  return ::strdup(text.c_str());
}

}  // namespace
}  // namespace app

using app::WebProgram;

extern "C" {

/// Returns the opened program, which begins with that link unless it is "", or nullptr if it cannot begin.
EMSCRIPTEN_KEEPALIVE WebProgram* page_open(const char* link, int is_embedded) {
  try {
    app::OpenWindow options;
    if (*link) options.file = link;
    options.is_embedded = is_embedded;
    return new WebProgram(options);
  } catch (const std::exception& error) {
    page_fail(error.what());
    return nullptr;
  }
}

/// Makes one step; returns the seconds until the next one is due without an event, or −1 when the program has
/// ended.
EMSCRIPTEN_KEEPALIVE double page_step(WebProgram* page) {
  try {
    if (!page->program.step()) {
      page->program.finish();
      delete page;
      return -1;
    }
    return page->window->has_events() ? 0 : page->program.seconds_to_wait();
  } catch (const std::exception& error) {
    page->program.quit();  // the next page offers the unsaved work
    page_fail(error.what());
    return -1;
  }
}

/// Returns whether the next step runs a job, and may take long.
EMSCRIPTEN_KEEPALIVE int page_has_job(WebProgram* page) {
  return page->program.has_job();
}

// Events; lengths are in CSS pixels.
EMSCRIPTEN_KEEPALIVE void page_resize(WebProgram* page, float width, float height, float pixel_ratio) {
  page->window->resize(width, height, pixel_ratio);
}
EMSCRIPTEN_KEEPALIVE void page_mouse(WebProgram* page, float x, float y, int is_touch) {
  page->window->move_mouse(x, y, is_touch);
}
EMSCRIPTEN_KEEPALIVE void page_leave(WebProgram* page) {
  page->window->leave();
}
EMSCRIPTEN_KEEPALIVE void page_button(WebProgram* page, int button, int is_down) {
  page->window->press_mouse(button, is_down);
}
EMSCRIPTEN_KEEPALIVE void page_wheel(WebProgram* page, float right, float down) {
  page->window->turn_wheel(right, down);
}
/// The wheel with Ctrl held.
EMSCRIPTEN_KEEPALIVE void page_zoom(WebProgram* page, float in) {
  page->window->zoom(in);
}
/// Returns whether the browser should not use the key.
EMSCRIPTEN_KEEPALIVE int page_key(WebProgram* page, const char* code, const char* name, int is_down, int ctrl,
                                  int shift, int alt) {
  const auto press = page->window->press_key(code, name, is_down, ctrl, shift, alt);
  return press && app::is_own_key(page->program.store(), *press);
}
EMSCRIPTEN_KEEPALIVE void page_type(WebProgram* page, const char* text) {
  page->window->type(text);
}
EMSCRIPTEN_KEEPALIVE void page_paste(WebProgram* page, const char* text) {
  page->window->paste(text);
}
EMSCRIPTEN_KEEPALIVE void page_focus(WebProgram* page, int has_focus) {
  page->window->focus(has_focus);
}
/// Takes a file or a link.
EMSCRIPTEN_KEEPALIVE void page_drop(WebProgram* page, const char* path) {
  page->window->drop(path);
}

EMSCRIPTEN_KEEPALIVE int page_is_modified(WebProgram* page) {
  return page->program.store().document().modified;
}
/// Returns the rectangles of the window's parts by name, in CSS pixels, as JSON.
EMSCRIPTEN_KEEPALIVE char* page_landmarks(WebProgram* page) {
  std::string text = "{";
  const float ratio = page->window->scale();
  for (const auto& [name, rect] : page->program.landmarks().all())
    text += fmt::format("{}{}:[{},{},{},{}]", text.size() > 1 ? "," : "", core::formats::json_quoted(name),
                        rect.min.x / ratio, rect.min.y / ratio, rect.max.x / ratio, rect.max.y / ratio);
  return app::copy_for_page(text + "}");
}
/// Returns what is open, the message at the lower edge, and how many frames were drawn, as JSON.
EMSCRIPTEN_KEEPALIVE char* page_state(WebProgram* page) {
  const app::Store& store = page->program.store();
  const app::DocumentState document = store.document();
  return app::copy_for_page(fmt::format(
      R"({{"title":{},"modified":{},"message":{},"frames":{}}})", core::formats::json_quoted(document.title),
      document.modified, core::formats::json_quoted(store.message().text), page->window->n_frames()));
}

}  // extern "C"
