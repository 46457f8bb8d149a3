#include "app/screen/page_window.hpp"

#include <backends/imgui_impl_opengl3.h>
#include <emscripten.h>
#include <emscripten/html5.h>

#include <algorithm>
#include <cmath>

#include "app/screen/gl.hpp"
#include "app/theme/imgui_compat.hpp"
#include "core/base/error.hpp"
#include "core/base/utf8.hpp"

// clang-format off
EM_JS(void, page_set_title, (const char* title), { document.title = UTF8ToString(title); });
EM_JS(void, page_set_cursor, (const char* name), { Module.canvas.style.cursor = UTF8ToString(name); });
EM_JS(void, page_copy, (const char* text), { Module.page.copy(UTF8ToString(text)); });
EM_JS(void, page_set_fullscreen, (int on), { Module.page.fullscreen(on); });
EM_JS(void, page_place_text, (int on, float x, float y, float height), { Module.page.placeText(on, x, y, height); });
EM_JS(void, page_wake, (), { Module.page.wake(); });
EM_JS(void, page_choose_files, (), { Module.page.choose(); });
EM_JS(void, page_describe, (const char* text), { Module.page.describe(UTF8ToString(text)); });
EM_JS(void, page_offer, (const char* name, const char* bytes, std::size_t size), { Module.page.offer(UTF8ToString(name), HEAPU8.slice(bytes, bytes + size)); });
// clang-format on

namespace app::platform {
namespace {

struct NamedKey {
  std::string_view name;  ///< KeyboardEvent.code
  ImGuiKey imgui;
  std::optional<Key> key = std::nullopt;  ///< of the program
};

constexpr NamedKey named_keys[]{{"ArrowLeft", ImGuiKey_LeftArrow, Key::left},
                                {"ArrowRight", ImGuiKey_RightArrow, Key::right},
                                {"ArrowUp", ImGuiKey_UpArrow, Key::up},
                                {"ArrowDown", ImGuiKey_DownArrow, Key::down},
                                {"PageUp", ImGuiKey_PageUp, Key::page_up},
                                {"PageDown", ImGuiKey_PageDown, Key::page_down},
                                {"Home", ImGuiKey_Home, Key::home},
                                {"End", ImGuiKey_End, Key::end},
                                {"Insert", ImGuiKey_Insert},
                                {"Delete", ImGuiKey_Delete, Key::delete_},
                                {"Backspace", ImGuiKey_Backspace, Key::backspace},
                                {"Space", ImGuiKey_Space},
                                {"Enter", ImGuiKey_Enter, Key::enter},
                                {"NumpadEnter", ImGuiKey_KeypadEnter, Key::enter},
                                {"Escape", ImGuiKey_Escape, Key::escape},
                                {"Tab", ImGuiKey_Tab, Key::tab},
                                {"ShiftLeft", ImGuiKey_LeftShift},
                                {"ShiftRight", ImGuiKey_RightShift},
                                {"ControlLeft", ImGuiKey_LeftCtrl},
                                {"ControlRight", ImGuiKey_RightCtrl},
                                {"AltLeft", ImGuiKey_LeftAlt},
                                {"AltRight", ImGuiKey_RightAlt},
                                {"MetaLeft", ImGuiKey_LeftCtrl},
                                {"MetaRight", ImGuiKey_RightCtrl}};

const NamedKey* named_key(std::string_view code) {
  const auto found = std::ranges::find(named_keys, code, &NamedKey::name);
  return found == std::end(named_keys) ? nullptr : &*found;
}

/// Returns the key F1 … F12 of a name, or nothing.
std::optional<Key> function_key(const std::string& name) {
  if (name.size() < 2 || name[0] != 'F' || name.find_first_not_of("0123456789", 1) != name.npos) return {};
  const int number = std::stoi(name.substr(1, 2));
  if (number < 1 || number > 12) return {};
  return nth_key(Key::f1, static_cast<unsigned>(number - 1));
}

/// Returns ImGui's key of a letter or digit in the keyboard layout.
ImGuiKey key_of_letter(const std::string& name) {
  if (name.size() != 1) return ImGuiKey_None;
  const char c = name[0];
  if (c >= 'a' && c <= 'z') return static_cast<ImGuiKey>(ImGuiKey_A + (c - 'a'));
  if (c >= 'A' && c <= 'Z') return static_cast<ImGuiKey>(ImGuiKey_A + (c - 'A'));
  if (c >= '0' && c <= '9') return static_cast<ImGuiKey>(ImGuiKey_0 + (c - '0'));
  return ImGuiKey_None;
}

const char* cursor_name(ImGuiMouseCursor cursor) {
  switch (cursor) {
    case ImGuiMouseCursor_TextInput:
      return "text";
    case ImGuiMouseCursor_ResizeEW:
      return "ew-resize";
    case ImGuiMouseCursor_ResizeNS:
      return "ns-resize";
    case ImGuiMouseCursor_ResizeAll:
      return "move";
    case ImGuiMouseCursor_Hand:
      return "pointer";
    case ImGuiMouseCursor_NotAllowed:
      return "not-allowed";
    default:
      return "default";
  }
}

PageWindow& window_of_clipboard() {
  return *static_cast<PageWindow*>(ImGui::GetPlatformIO().Platform_ClipboardUserData);
}

}  // namespace

PageWindow::PageWindow(Jobs& jobs, float font_scale) : font_loader_(jobs, font_scale) {
  EmscriptenWebGLContextAttributes attributes;
  emscripten_webgl_init_context_attributes(&attributes);
  attributes.majorVersion = 2;
  // With antialiasing, nothing could be copied to the canvas.
  attributes.alpha = attributes.depth = attributes.stencil = attributes.antialias = false;
  const auto context = emscripten_webgl_create_context("#canvas", &attributes);
  if (context <= 0) throw core::Error("this browser offers no WebGL 2, which attnscope draws with");
  emscripten_webgl_make_context_current(context);

  IMGUI_CHECKVERSION();
  ImGui::CreateContext(font_loader_.first_atlas());
  ImGuiIO& io = ImGui::GetIO();
  io.UserData = &font_loader_.characters();
  io.IniFilename = nullptr;  // the theme determines the layout, not a file
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  io.BackendFlags |= ImGuiBackendFlags_HasMouseCursors;
  ImGui::GetStyle().ScrollbarPadding = 3;  // as it was before it could be set
  ImGuiPlatformIO& platform = ImGui::GetPlatformIO();
  platform.Platform_ClipboardUserData = this;
  platform.Platform_SetClipboardTextFn = [](ImGuiContext*, const char* text) {
    window_of_clipboard().clipboard_ = text;
    page_copy(text);
  };
  platform.Platform_GetClipboardTextFn = [](ImGuiContext*) {
    return window_of_clipboard().clipboard_.c_str();
  };
  // Input methods show their candidates beside the text.
  platform.Platform_SetImeDataFn = [](ImGuiContext*, ImGuiViewport*, ImGuiPlatformImeData* text) {
    const float ratio = window_of_clipboard().pixel_ratio_;
    page_place_text(text->WantVisible, text->InputPos.x / ratio, text->InputPos.y / ratio,
                    text->InputLineHeight / ratio);
  };
  ImGui_ImplOpenGL3_Init(render::glsl_version);
  canvas_.emplace();
}

PageWindow::~PageWindow() {
  canvas_.reset();
  ImGui_ImplOpenGL3_Shutdown();
  font_loader_.stop();
  ImGui::DestroyContext();
}

bool PageWindow::wait(double) {
  return std::exchange(had_events_, false);
}

void PageWindow::wake() {
  add_event();
  page_wake();
}

void PageWindow::begin_frame(const std::function<void(ImGuiIO&)>& adjust) {
  ImGui_ImplOpenGL3_NewFrame();
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = size_;
  const double now = emscripten_get_now() / 1000;
  constexpr float usual = 1.0f / 60, least = 1e-5f;
  io.DeltaTime = last_frame_ > 0 ? std::max(least, static_cast<float>(now - last_frame_)) : usual;
  last_frame_ = now;
  if (adjust) adjust(io);
  ImGui::NewFrame();
  // As events of a key and the wheel, which ImGui may part, it would scroll.
  if (const float zoom = std::exchange(zoom_, 0.0f); zoom != 0) io.MouseWheel = zoom, io.KeyCtrl = true;
}

bool PageWindow::end_frame(Rgb background, const render::Damage::TextureVersion& version) {
  ImGui::Render();
  const ImGuiMouseCursor cursor = ImGui::GetMouseCursor();
  if (std::exchange(cursor_, cursor) != cursor) page_set_cursor(cursor_name(cursor));
  ImDrawData& data = *ImGui::GetDrawData();
  if (!canvas_->resize(static_cast<int>(size_.x), static_cast<int>(size_.y)) ||
      std::exchange(background_, background) != background)
    damage_.invalidate();
  const std::vector<render::ScreenRect> areas = damage_.update(data, version);
  if (areas.empty() && !std::exchange(is_exposed_, false)) return false;
  canvas_->draw(data, areas, background);
  return !areas.empty();
}

bool PageWindow::prepare_fonts(float scale) {
  if (!font_loader_.update(scale)) return false;
  use_first_font();
  damage_.invalidate();
  return true;
}

void PageWindow::set_title(const std::string& title) {
  if (std::exchange(title_, title) != title) page_set_title(title.c_str());
}

void PageWindow::set_fullscreen(bool on) {
  page_set_fullscreen(on);
}

void PageWindow::choose_files() {
  page_choose_files();
}

void PageWindow::set_description(const std::string& text) {
  if (std::exchange(description_, text) != text) page_describe(text.c_str());
}

void PageWindow::offer_file(const std::string& name, std::string_view bytes) {
  page_offer(name.c_str(), bytes.data(), bytes.size());
}

void PageWindow::resize(float width, float height, float pixel_ratio) {
  pixel_ratio_ = pixel_ratio;
  size_ = {std::max(1.0f, std::round(width * pixel_ratio)), std::max(1.0f, std::round(height * pixel_ratio))};
  emscripten_set_canvas_element_size("#canvas", static_cast<int>(size_.x), static_cast<int>(size_.y));
  is_exposed_ = true;
  add_event();
}

void PageWindow::move_mouse(float x, float y, bool is_touch) {
  ImGuiIO& io = ImGui::GetIO();
  io.AddMouseSourceEvent(is_touch ? ImGuiMouseSource_TouchScreen : ImGuiMouseSource_Mouse);
  io.AddMousePosEvent(x * pixel_ratio_, y * pixel_ratio_);
  add_event();
}

void PageWindow::leave() {
  ImGui::GetIO().AddMousePosEvent(-FLT_MAX, -FLT_MAX);
  add_event();
}

void PageWindow::press_mouse(int button, bool is_down) {
  if (button >= 0 && button < ImGuiMouseButton_COUNT) ImGui::GetIO().AddMouseButtonEvent(button, is_down);
  add_event();
}

void PageWindow::turn_wheel(float right, float down) {
  ImGui::GetIO().AddMouseWheelEvent(-right, -down);
  add_event();
}

void PageWindow::zoom(float in) {
  zoom_ += in;
  add_event();
}

std::optional<KeyPress> PageWindow::press_key(const std::string& code, const std::string& name, bool is_down,
                                              bool ctrl, bool shift, bool alt) {
  ImGuiIO& io = ImGui::GetIO();
  io.AddKeyEvent(ImGuiMod_Ctrl, ctrl);
  io.AddKeyEvent(ImGuiMod_Shift, shift);
  io.AddKeyEvent(ImGuiMod_Alt, alt);
  const NamedKey* named = named_key(code);
  if (const ImGuiKey key = named ? named->imgui : key_of_letter(name); key != ImGuiKey_None)
    io.AddKeyEvent(key, is_down);
  add_event();
  std::optional<Key> key = named ? named->key : function_key(code);
  // Plain characters come as text.
  if (!key && (ctrl || alt) && name.size() == 1) key = key_of_character(static_cast<unsigned char>(name[0]));
  if (!key) return {};
  const KeyPress press{*key, ctrl, shift, alt};
  if (is_down) keys_.push_back(press);
  return press;
}

void PageWindow::type(const std::string& text) {
  ImGui::GetIO().AddInputCharactersUTF8(text.c_str());
  const bool shift = ImGui::GetIO().KeyShift;
  for (const char32_t character : core::text::decode_utf8_lossy(text))
    if (const auto key = key_of_character(character)) keys_.push_back({*key, false, shift, false});
  add_event();
}

void PageWindow::focus(bool has_focus) {
  ImGui::GetIO().AddFocusEvent(has_focus);
  add_event();
}

void PageWindow::drop(const std::filesystem::path& path) {
  dropped_.push_back(path);
  add_event();
}

}  // namespace app::platform
