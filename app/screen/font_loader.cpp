#include "app/screen/font_loader.hpp"

#include <new>
#include <utility>

#include "app/theme/imgui_compat.hpp"

namespace app::platform {
namespace {

/// ImGui looks at no null: memory that is not there ends what asked for it, and not the program.
void* allocated(std::size_t bytes, void*) {
  return ::operator new(bytes);
}
void freed(void* memory, void*) {
  ::operator delete(memory);
}

}  // namespace

FontLoader::Set FontLoader::load(float scale, Glyphs glyphs) {
  Set set{std::make_unique<ImFontAtlas>(), {}, glyphs, scale};
  set.fonts = load_fonts(*set.atlas, scale, glyphs);
  return set;
}

FontLoader::FontLoader(Jobs& jobs, float scale) : lane_(jobs) {
  ImGui::SetAllocatorFunctions(allocated, freed);  // fonts are the first that it makes
  if (!makes_letters_when_asked) begin(scale, Glyphs::first);
}

void FontLoader::begin(float scale, Glyphs glyphs) {
  lane_.start([this, scale, glyphs](const core::Token&) -> Jobs::Delivery {
    const auto set = std::make_shared<Set>(load(scale, glyphs));
    return [this, set] { coming_ = std::move(*set); };
  });
}

ImFontAtlas* FontLoader::first_atlas() {
  lane_.wait();
  lane_.jobs().deliver();
  if (coming_) now_ = *std::exchange(coming_, std::nullopt);
  return now_.atlas.get();
}

void FontLoader::begin_again() {
  if (now_.atlas)
    now_.atlas->Locked = false;  // as every frame leaves it
  else
    now_.scale = 0;  // they have ended with the context
}

bool FontLoader::follow(float scale) {
  if (makes_letters_when_asked) {
    if (now_.scale == scale) return false;
    now_ = {nullptr, load_fonts(*ImGui::GetIO().Fonts, scale, Glyphs::all), Glyphs::all, scale};
    return true;
  }
  const auto take = [this](Set set) {
    ImGui::GetIO().Fonts = set.atlas.get();
    now_ = std::move(set);
  };
  const bool changed = now_.scale != scale;
  if (changed) take(load(scale, Glyphs::first));
  if (lane_.is_busy()) return changed;
  if (coming_)
    if (Set set = *std::exchange(coming_, std::nullopt); set.scale == scale)
      return take(std::move(set)), true;
  const bool is_first_frame = ImGui::GetFrameCount() == 0;  // it has the processors to itself
  if (now_.glyphs != Glyphs::all && !is_first_frame) begin(scale, Glyphs::all);
  return changed;
}

}  // namespace app::platform
