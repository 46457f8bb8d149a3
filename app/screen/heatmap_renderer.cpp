#include "app/screen/heatmap_renderer.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <unordered_map>

#include "app/screen/brush.hpp"
#include "app/screen/kept_picture.hpp"
#include "app/theme/imgui_compat.hpp"

namespace app::render {
namespace {

constexpr std::uint64_t frames_kept = 120;
constexpr double cells_a_frame = 7e6, few_cells = 1e5;

}  // namespace

struct HeatmapRenderer::State {
  struct Entry {
    explicit Entry(core::ThreadPool& threads) : picture(threads) {}
    KeptPicture picture;
    std::uint64_t last_frame = 0;
  };

  Brush brush;
  core::ThreadPool threads{std::max(1u, std::thread::hardware_concurrency())};
  std::map<std::string, Entry> pictures;  // by their places
  std::unordered_map<std::uint64_t, const KeptPicture*> by_texture;
  std::deque<std::string>
      waiting;            // places of pictures that one of the next frames renews, the first ones first
  double cells_read = 0;  // in this frame
  std::uint64_t frame = 0;
  float scale = 1;
  Work work;

  /// Whether a picture can be renewed in this frame; else it waits for its turn, or it is so large that it
  /// takes several.
  bool has_turn(KeptPicture& kept, const Picture& picture) {
    const double cells = kept.cells_to_read(picture);
    const auto in_line = std::find(waiting.begin(), waiting.end(), picture.place);
    const bool is_next = waiting.empty() || in_line == waiting.begin();
    const bool goes_on =
        cells <= few_cells || (is_next && (cells_read == 0 || cells_read + cells <= cells_a_frame));
    if (goes_on) cells_read += std::min(cells, cells_a_frame);
    if (goes_on && (cells <= cells_a_frame || kept.prepare(picture, cells_a_frame))) {
      if (in_line != waiting.end()) waiting.erase(in_line);
      return true;
    }
    if (in_line == waiting.end()) waiting.push_back(picture.place);
    return false;
  }
};

HeatmapRenderer::HeatmapRenderer() : state_(std::make_unique<State>()) {}
HeatmapRenderer::~HeatmapRenderer() = default;

ImTextureID HeatmapRenderer::paint(const Picture& picture) {
  State& s = *state_;
  auto found = s.pictures.find(picture.place);
  if (found == s.pictures.end()) {
    const KeptState as_it_was;
    found = s.pictures.try_emplace(picture.place, s.threads).first;
  }
  KeptPicture& kept = found->second.picture;
  found->second.last_frame = s.frame;
  const bool renews = !picture.pending && !kept.has_texels_of(picture) && s.has_turn(kept, picture);
  if (renews || kept.wants_drawing(picture, s.scale)) {
    const KeptState as_it_was;
    if (renews) kept.renew(picture, s.work);
    if (kept.wants_drawing(picture, s.scale)) kept.draw(picture, s.scale, s.brush, s.work);
    s.by_texture[kept.texture()] = &kept;
  }
  return platform::texture_id(kept.texture());
}

void HeatmapRenderer::set_scale(float scale) {
  state_->scale = scale;
}

void HeatmapRenderer::end_frame() {
  State& s = *state_;
  std::erase_if(s.waiting,
                [&](const std::string& place) { return s.pictures.at(place).last_frame != s.frame; });
  s.cells_read = 0;
  ++s.frame;
  std::erase_if(s.pictures, [&](const auto& entry) {
    const bool outdated = s.frame - entry.second.last_frame > frames_kept;
    if (outdated) s.by_texture.erase(entry.second.picture.texture());
    return outdated;
  });
}

bool HeatmapRenderer::is_behind() const {
  return !state_->waiting.empty();
}

std::uint64_t HeatmapRenderer::painted(std::uint64_t texture, const Share& part) const {
  const auto found = state_->by_texture.find(texture);
  return found == state_->by_texture.end() ? 0 : found->second->painted(part);
}

Work HeatmapRenderer::work() const {
  return state_->work;
}
std::size_t HeatmapRenderer::pictures_kept() const {
  return state_->pictures.size();
}

}  // namespace app::render
