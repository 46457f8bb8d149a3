// Takes the documentation's pictures from the real window.
//   attnscope_pictures FOLDER            writes FOLDER/NAME.ppm, and the film's FOLDER/frame000.ppm …
//   attnscope_pictures --check FOLDER    compares with FOLDER/NAME.png: exit status 1 when they are stale
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>

#include "core/training/task.hpp"
#include "tests/support/look.hpp"
#include "tests/support/waiting.hpp"
#include "tests/walk/walk.hpp"

extern "C" void openblas_set_num_threads(int);

namespace {

namespace fs = std::filesystem;
using app::Key;
using app::Stage;
using app::platform::RgbaImage;

constexpr int width = 1440, height = 900, frame_ms = 80;
const std::string tiny_gpt = ASSETS "/examples/tiny_gpt", prompt = "egg jam fig and egg jam f";

void write_ppm(const fs::path& path, const RgbaImage& image) {
  std::ofstream file(path, std::ios::binary);
  file << "P6\n" << image.width << " " << image.height << "\n255\n";
  for (std::size_t k = 0; k < image.rgba.size(); k += 4)
    file.write(reinterpret_cast<const char*>(&image.rgba[k]), 3);
  if (!file) throw std::runtime_error(path.string() + ": cannot be written");
}

/// Window with a simulated user whose pointer can be filmed.
class Scene : public walk::Walk {
 public:
  Scene() : Walk(width, height) {}

  /// Runs frames until no work is left.
  void settle() {
    support::settle(store, [&] { run(1); });
    run();
  }
  void open(const std::string& preset) {
    store.dispatch(app::LoadPreset{preset});
    settle();
  }
  void open_tiny_gpt() {
    store.open(tiny_gpt, prompt, 2);
    settle();
  }
  void rest_pointer() { play(support::move_to({width * 0.75f, 8})); }  // empty part of the menu bar

  // The film: each call writes frames of frame_ms.
  void film_into(const fs::path& folder, int first = 0) { film_ = folder, number_ = first; }
  int n_filmed() const { return number_; }
  void hold(int frames) {
    for (int k = 0; k < frames; ++k) shoot({});
  }
  void glide(ImVec2 to, int frames, std::optional<bool> left = {}) {
    const ImVec2 from = pointer_;
    for (int k = 1; k <= frames; ++k) {
      const float t = static_cast<float>(k) / static_cast<float>(frames), s = t * t * (3 - 2 * t);
      support::InputFrame input;
      pointer_ = {from.x + (to.x - from.x) * s, from.y + (to.y - from.y) * s};
      input.mouse = pointer_;
      input.left = left;
      shoot(input);
    }
  }
  void start_pointer_at(ImVec2 at) { pointer_ = at; }

 private:
  void shoot(support::InputFrame input) {
    input.seconds = frame_ms / 1000.f;
    frame(input);
    settle();
    RgbaImage image = window.read_pixels();
    draw_pointer(image);
    char name[16];
    std::snprintf(name, sizeof name, "frame%03d.ppm", number_++);
    write_ppm(film_ / name, image);
  }
  /// Draws the usual arrow, which the window itself does not draw.
  void draw_pointer(RgbaImage& image) const {
    for (int y = 0; y < 22; ++y)
      for (int x = 0; x <= y * 2 / 3 && x < 15; ++x) {
        const bool in_tail = y > 15;
        if (in_tail && (x < 4 + (y - 15) / 2 || x > 7 + (y - 15) / 2)) continue;
        const bool is_edge = !in_tail && (x == 0 || x >= y * 2 / 3 - 1 || y >= 14);
        const int px = static_cast<int>(pointer_.x) + x, py = static_cast<int>(pointer_.y) + y;
        if (px < 0 || py < 0 || px >= image.width || py >= image.height) continue;
        const auto at = static_cast<std::size_t>(py * image.width + px) * 4;
        for (std::size_t c = 0; c < 3; ++c) image.rgba[at + c] = is_edge ? 0 : 255;
      }
  }

  fs::path film_;
  int number_ = 0;
  ImVec2 pointer_{0, 0};
};

/// Writes tensors of an implementation with softmax over the wrong axis and returns their path.
fs::path tensors_with_a_bug(const fs::path& folder) {
  const std::string session = (folder / "bug.json").string(), tensors = (folder / "mine.npz").string();
  const std::string line = "'" PROGRAM
                           "' session --preset 004-causal --mistake softmax_over_queries --out '" +
                           session + "' && '" PROGRAM "' export '" + session +
                           "' --stages weights,contexts --no-labels --out '" + tensors + "'";
  if (std::system(line.c_str()) != 0) throw std::runtime_error("no tensors to check");
  return tensors;
}

struct Picture {
  const char* name;
  std::function<void(Scene&)> take;
};

const std::vector<Picture>& pictures() {
  static const std::vector<Picture> all{
      {"stages",
       [](Scene& ui) {
         ui.open("multi-head");
         ui.store.dispatch(app::PinCell{{Stage::weights, 0, 2, 1}});
       }},
      {"layers", [](Scene& ui) { ui.open_tiny_gpt(); }},
      {"sources",
       [](Scene& ui) {
         ui.open_tiny_gpt();
         ui.store.dispatch(app::AskSources{{Stage::weights, 0, 13, 6}});
         ui.settle();
         ui.store.dispatch(app::set<&app::LayersLook::source>("head 0.2"));
       }},
      {"prompts",
       [](Scene& ui) {
         ui.open_tiny_gpt();
         ui.store.dispatch(app::SetPrompts{core::experiment::FirstPrompt{prompt, "ig", "ood"},
                                           "egg jam food and egg jam f"});
         ui.settle();
         ui.store.dispatch(app::TogglePatch{{2, core::transformer::PatchedPart::head, 0}});
       }},
      {"lesson",
       [](Scene& ui) {
         ui.store.dispatch(app::StartLesson{"000"});
         for (int k = 0; k < 5; ++k) ui.store.dispatch(app::StepLesson{1});
       }},
      {"tokens",
       [](Scene& ui) {
         ui.open("head-induction");
         ui.store.dispatch(app::set<&app::Look::tab>(app::Tab::tokens));
         ui.settle();
         ui.store.dispatch(app::PinQuery{5});
       }},
      {"compare",
       [](Scene& ui) {
         ui.open("004-causal");
         ui.store.dispatch(app::AddReference{});
         ui.store.dispatch(app::ApplyEdit{core::editing::SetCell{{}, 2, 0, -0.5}});
         ui.store.dispatch(app::EndGesture{});
         ui.store.dispatch(app::set<&app::Look::tab>(app::Tab::compare));
       }},
      {"check",
       [](Scene& ui) {
         const support::TemporaryDirectory folder;
         ui.open("004-causal");
         ui.store.dispatch(app::CheckTensors{tensors_with_a_bug(folder.path())});
         ui.settle();
         ui.store.dispatch(app::set<&app::Look::tab>(app::Tab::compare));
         ui.settle();
       }},
      {"rotary",
       [](Scene& ui) {
         ui.open("modern-llama");
         ui.store.dispatch(app::set<&app::Look::large>(Stage::rotated_queries));
         ui.settle();
         ui.store.dispatch(app::PinCell{{Stage::rotated_queries, 0, 5, 0}});
       }},
      {"learn",
       [](Scene& ui) {
         const auto& task = *core::training::find_task("induction");
         ui.store.dispatch(app::SetLearning{task.name, "", task.setup});
         ui.settle();
         ui.store.dispatch(app::StepLearning{155});
         ui.store.dispatch(app::set<&app::LearningLook::head>({1, 1}));
       }},
      {"present",
       [](Scene& ui) {
         ui.open("004-causal");
         ui.store.dispatch(app::PinCell{{Stage::weights, 0, 3, 1}});
         ui.run();
         ui.key(Key::f5);
       }},
  };
  return all;
}

RgbaImage taken(const Picture& picture) {
  Scene ui;
  ui.rest_pointer();
  picture.take(ui);
  ui.settle();
  ui.store.dispatch(app::ShowMessage{""});
  ui.run(5);
  return ui.window.read_pixels();
}

/// Films a dragged number and its weights, then ablated heads that change the next word of a model.
void film(const fs::path& folder) {
  int n_frames = 0;
  {
    Scene ui;
    ui.open("004-causal");
    const ImVec2 number = ui.center("edit/cell/2/0");
    ui.start_pointer_at({number.x + 260, number.y - 120});
    ui.film_into(folder);
    ui.hold(3);
    ui.glide(number, 8);
    ui.glide({number.x + 110, number.y}, 14, true);
    ui.glide({number.x - 120, number.y}, 18, true);
    ui.glide({number.x - 120, number.y}, 1, false);
    ui.hold(5);
    n_frames = ui.n_filmed();
  }
  Scene ui;
  ui.open_tiny_gpt();
  ui.start_pointer_at(ui.center("tabs/Layers"));
  ui.film_into(folder, n_frames);
  ui.hold(6);
  for (const char* head : {"layers/2.0", "layers/2.3"}) {
    ui.glide(ui.center(head), 6);
    ui.click(head);
    ui.hold(2);
    ui.key(Key::x);
    ui.glide(ui.center("whole/prompt"), 6);
    ui.hold(7);
  }
}

/// Returns the share of pixel blocks with another mean, which ignores how font releases differ in detail.
double changed_share(const RgbaImage& a, const RgbaImage& b) {
  if (a.width != b.width || a.height != b.height) return 1;
  constexpr int side = 16;
  int blocks = 0, different = 0;
  for (int top = 0; top + side <= a.height; top += side)
    for (int left = 0; left + side <= a.width; left += side, ++blocks) {
      double difference = 0;
      for (int y = top; y < top + side; ++y)
        for (int x = left; x < left + side; ++x)
          for (int c = 0; c < 3; ++c) {
            const auto at = static_cast<std::size_t>((y * a.width + x) * 4 + c);
            difference += a.rgba[at] - b.rgba[at];
          }
      different += std::abs(difference) / (3 * side * side) > 24;
    }
  return static_cast<double>(different) / blocks;
}

RgbaImage read_png(const fs::path& path) {
  RgbaImage image;
  const std::unique_ptr<stbi_uc, void (*)(void*)> read(
      stbi_load(path.c_str(), &image.width, &image.height, nullptr, 4), stbi_image_free);
  if (!read) return {};
  image.rgba.assign(read.get(), read.get() + static_cast<std::size_t>(image.width * image.height) * 4);
  return image;
}

int check(const fs::path& folder) {
  constexpr double most = 0.05;
  int stale = 0;
  for (const Picture& picture : pictures())
    if (const double share =
            changed_share(taken(picture), read_png(folder / (std::string(picture.name) + ".png")));
        share > most) {
      std::cout << picture.name << ".png is stale: " << std::lround(100 * share)
                << " % of it differ; scripts/docs takes it anew\n";
      ++stale;
    }
  return stale > 0;
}

}  // namespace

int main(int argc, char** argv) {
  openblas_set_num_threads(1);
  if (argc == 3 && std::string(argv[1]) == "--check") return check(argv[2]);
  if (argc != 2) return 2;
  for (const Picture& picture : pictures())
    write_ppm(fs::path(argv[1]) / (std::string(picture.name) + ".ppm"), taken(picture));
  film(argv[1]);
  return 0;
}
