#include "app/screen/heatmap_renderer.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <unordered_map>

#include "app/screen/gl.hpp"
#include "app/screen/heatmap_image.hpp"
#include "app/theme/imgui_compat.hpp"
#include "core/base/error.hpp"
#include "shaders.hpp"

namespace app::render {
namespace {

constexpr std::uint64_t max_unused_frames = 120;
constexpr double max_cells_per_frame = 7e6, max_immediate_cells = 1e5;

void require(bool is_done, const char* what, std::string_view log) {
  if (is_done) return;
  throw core::Error(std::string("the ") + what +
                    " on this driver: " + std::string(log.substr(0, log.find('\n'))));
}

}  // namespace

/// Shaders that draw a picture with all pixels off its cross blended with the background.
class CrossProgram {
 public:
  CrossProgram() : id_(glCreateProgram()) {
    attach(GL_VERTEX_SHADER, shaders::heatmap_vert, "vertex shader does not compile");
    attach(GL_FRAGMENT_SHADER, shaders::heatmap_frag, "fragment shader does not compile");
    glLinkProgram(id_);
    GLint done = GL_FALSE;
    glGetProgramiv(id_, GL_LINK_STATUS, &done);
    std::array<char, 1024> log{};
    glGetProgramInfoLog(id_, static_cast<GLsizei>(log.size()), nullptr, log.data());
    require(done == GL_TRUE, "shaders do not link", log.data());
    // Here, as a page waits for each answer of OpenGL.
    ground_ = glGetUniformLocation(id_, "ground"), ground_share_ = glGetUniformLocation(id_, "ground_share"),
    cross_at_ = glGetUniformLocation(id_, "cross_at");
    glGenVertexArrays(1, &no_vertices_);
  }
  ~CrossProgram() {
    glDeleteVertexArrays(1, &no_vertices_);
    glDeleteProgram(id_);
  }
  CrossProgram(const CrossProgram&) = delete;
  CrossProgram& operator=(const CrossProgram&) = delete;

  void draw(const Texture& pixels, int width, int height, const ScreenRect& cross, bool dark,
            const Texture& to) {
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, framebuffer_.id());
    glFramebufferTexture2D(GL_DRAW_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, to.id(), 0);
    glViewport(0, 0, width, height);
    for (const GLenum off : {GL_BLEND, GL_SCISSOR_TEST, GL_DEPTH_TEST, GL_CULL_FACE}) glDisable(off);
    glBindTexture(GL_TEXTURE_2D, pixels.id());
    glUseProgram(id_);
    const ImVec4 background = vec(palette(dark).background.back);
    glUniform3f(ground_, background.x, background.y, background.z);
    glUniform1f(ground_share_, dark ? 0.46f : 0.55f);
    glUniform4i(cross_at_, cross.left, cross.top, cross.right, cross.bottom);
    glBindVertexArray(no_vertices_);
    glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
    glBindVertexArray(0);
    glUseProgram(0);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
  }

 private:
  void attach(GLenum kind, std::string_view source, const char* failure) {
    const GLuint shader = glCreateShader(kind);
    const std::string text = std::string(glsl_version) + "\n" + std::string(source);
    const GLchar* lines = text.c_str();
    glShaderSource(shader, 1, &lines, nullptr);
    glCompileShader(shader);
    GLint done = GL_FALSE;
    glGetShaderiv(shader, GL_COMPILE_STATUS, &done);
    std::array<char, 1024> log{};
    glGetShaderInfoLog(shader, static_cast<GLsizei>(log.size()), nullptr, log.data());
    glAttachShader(id_, shader);
    glDeleteShader(shader);  // deleted with the program
    require(done == GL_TRUE, failure, log.data());
  }

  GLuint id_, no_vertices_ = 0;  // empty: the vertex shader needs none, but a core context does
  GLint ground_ = -1, ground_share_ = -1, cross_at_ = -1;  // pixels are of texture unit 0
  Framebuffer framebuffer_;
};

/// Picture of one place.
struct CachedHeatmap {
  explicit CachedHeatmap(core::ThreadPool& threads) : image(threads) {}

  /// Uploads the rows of pixels that changed.
  void upload(const HeatmapImage::PixelRows& rows) {
    if (rows.begin >= rows.end) return;
    const bool fits = width == image.width() && height == image.height();
    width = image.width(), height = image.height();
    if (!fits) return pixels.fill(GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, width, height, image.pixels().data());
    glBindTexture(GL_TEXTURE_2D, pixels.id());
    glTexSubImage2D(
        GL_TEXTURE_2D, 0, 0, rows.begin, width, rows.end - rows.begin, GL_RGBA, GL_UNSIGNED_BYTE,
        image.pixels().data() + static_cast<std::size_t>(rows.begin) * static_cast<std::size_t>(width));
  }

  HeatmapImage image;
  Texture pixels;
  int width = 0, height = 0;  // of the texture
  std::uint64_t last_frame = 0;

  /// The same picture with a cross.
  struct CrossImage {
    Texture texture;
    int width = 0, height = 0;
    ScreenRect at;
    bool dark = false;
    std::uint64_t image_version = 0, n_moves = 0;  // moves of the cross, which may change any pixel
  };
  std::unique_ptr<CrossImage> cross_image;
};

struct HeatmapRenderer::State {
  CrossProgram program;
  core::ThreadPool threads;
  std::map<std::string, CachedHeatmap> pictures;  // by their places
  std::unordered_map<std::uint64_t, const CachedHeatmap*> by_texture;
  std::deque<std::string> waiting;  // places of pictures to read in the next frames, in order
  double cells_read = 0;            // in this frame
  std::uint64_t frame = 0;
  float scale = 1;

  /// Reads the numbers of a picture if it is its turn in this frame; else, and if it needs several frames,
  /// the picture waits.
  void read(HeatmapImage& image, const HeatmapPicture& picture) {
    const double cells = image.cells_to_read(picture);
    const auto queued = std::find(waiting.begin(), waiting.end(), picture.place);
    const bool is_next = waiting.empty() || queued == waiting.begin();
    const bool can_read = cells <= max_immediate_cells ||
                          (is_next && (cells_read == 0 || cells_read + cells <= max_cells_per_frame));
    if (can_read) cells_read += std::min(cells, max_cells_per_frame);
    const bool is_read = can_read && image.read(picture, max_cells_per_frame);
    if (is_read && queued != waiting.end()) waiting.erase(queued);
    if (!is_read && queued == waiting.end()) waiting.push_back(picture.place);
  }

  const Texture& with_cross(CachedHeatmap& e, const Cross& cross, bool dark) {
    if (!e.cross_image) e.cross_image = std::make_unique<CachedHeatmap::CrossImage>();
    CachedHeatmap::CrossImage& c = *e.cross_image;
    const ScreenRect at = e.image.cross_area(cross);
    const std::uint64_t image_version = e.image.painted({});
    const bool fits = c.width == e.width && c.height == e.height;
    if (fits && c.at == at && c.dark == dark && c.image_version == image_version) return c.texture;
    if (!fits) c.texture.fill(GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE, e.width, e.height, nullptr);
    if (!fits || c.at != at || c.dark != dark) ++c.n_moves;
    c.width = e.width, c.height = e.height, c.at = at, c.dark = dark, c.image_version = image_version;
    program.draw(e.pixels, e.width, e.height, at, dark, c.texture);
    return c.texture;
  }
};

HeatmapRenderer::HeatmapRenderer() : state_(std::make_unique<State>()) {}
HeatmapRenderer::~HeatmapRenderer() = default;

ImTextureID HeatmapRenderer::paint(const HeatmapPicture& picture) {
  State& s = *state_;
  CachedHeatmap& e = s.pictures.try_emplace(picture.place, s.threads).first->second;
  e.last_frame = s.frame;
  if (!picture.pending && !e.image.has_numbers_of(picture)) s.read(e.image, picture);
  if (e.image.needs_painting(picture, s.scale)) e.upload(e.image.paint(picture, s.scale));
  const Texture& shown = picture.cross ? s.with_cross(e, *picture.cross, picture.dark) : e.pixels;
  s.by_texture[shown.id()] = &e;
  return platform::texture_id(shown.id());
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
    const bool is_outdated = s.frame - entry.second.last_frame > max_unused_frames;
    if (is_outdated) std::erase_if(s.by_texture, [&](const auto& t) { return t.second == &entry.second; });
    return is_outdated;
  });
}

bool HeatmapRenderer::is_behind() const {
  return !state_->waiting.empty();
}

std::uint64_t HeatmapRenderer::painted(std::uint64_t texture, const UvRect& part) const {
  const auto found = state_->by_texture.find(texture);
  if (found == state_->by_texture.end()) return 0;
  const CachedHeatmap& e = *found->second;
  return e.image.painted(part) + (texture == e.pixels.id() ? 0 : e.cross_image->n_moves);
}

std::size_t HeatmapRenderer::n_cached_pictures() const {
  return state_->pictures.size();
}

}  // namespace app::render
