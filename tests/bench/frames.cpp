// How long frames take in the real window: printed, not asserted. Needs a display.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "app/loop.hpp"
#include "app/platform/imgui_compat.hpp"
#include "app/store.hpp"

extern "C" void openblas_set_num_threads(int);

namespace {

using Clock = std::chrono::steady_clock;
using core::attention::Model;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Processor time of all threads so far, in milliseconds.
double processor_ms() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

/// What was measured, by name; in milliseconds.
struct Result {
  std::string name, words;
  std::vector<double> times;

  double at(double share) const {
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  }
};

class Results {
 public:
  void add(Result result) {
    std::printf("%-34s median %8.2f ms   95 %% %8.2f ms   of %zu   %s\n", result.name.c_str(), result.at(0.5),
                result.at(0.95), result.times.size(), result.words.c_str());
    std::fflush(stdout);
    all_.push_back(std::move(result));
  }
  bool write(const char* path) const {
    std::FILE* file = std::fopen(path, "w");
    if (!file) return false;
    std::fputs("{\n", file);
    for (std::size_t i = 0; i < all_.size(); ++i)
      std::fprintf(file, "  \"%s\": {\"median_ms\": %.3f, \"p95_ms\": %.3f, \"count\": %zu}%s\n",
                   all_[i].name.c_str(), all_[i].at(0.5), all_[i].at(0.95), all_[i].times.size(),
                   i + 1 < all_.size() ? "," : "");
    std::fputs("}\n", file);
    return std::fclose(file) == 0;
  }

 private:
  std::vector<Result> all_;
};

/// Causal, without biases, with an output projection, drawn as layers are initialised.
Model drawn_model(std::size_t n_tokens, std::size_t d_model, std::size_t n_heads) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const auto drawn = [&](std::size_t rows, double deviation) {
    arma::mat m(rows, d_model);
    m.imbue([&] { return deviation * normal(random); });
    return m;
  };
  const double spread = 1 / std::sqrt(static_cast<double>(d_model));
  Model model;
  model.sequences.push_back({core::attention::numbered_tokens(n_tokens), drawn(n_tokens, 1)});
  model.projections.emplace();
  auto& p = *model.projections;
  for (core::attention::Linear* linear : {&p.query, &p.key, &p.value})
    linear->weight = drawn(d_model, spread);
  p.output = core::attention::Linear{drawn(d_model, spread), std::nullopt};
  model.n_heads = n_heads;
  return model;
}

/// The pointer's circle through the middle of the window, a step a frame.
ImVec2 pointer_at(int frame, ImVec2 window) {
  const float turn = static_cast<float>(frame) * 0.07f;
  return {window.x * (0.5f + 0.2f * std::cos(turn)), window.y * (0.5f + 0.35f * std::sin(turn))};
}

class Bench {
 public:
  Bench(app::platform::Window& window, app::Store& store, app::Loop& loop)
      : window_(window), store_(store), loop_(loop) {}

  void measure(Results& results) {
    results.add({"first_frame", "from the start of the program", {started_}});
    show(app::Tab::stages);
    results.add({"mouse_over_strip", "the strip of six tokens", moving(200)});
    results.add({"edit_six_tokens", "every number of the strip changes", editing(200, 2)});
    results.add({"idle", "processor time in 5 s of doing nothing", {idle()}});
    open(drawn_model(256, 768, 12));
    show(app::Tab::heads);
    results.add({"mouse_over_12_heads_of_256", "the pointer moves over cells", moving(200)});
    results.add({"edit_12_heads_of_256", "edit to picture", editing(60, 255)});
    open(drawn_model(1024, 768, 12));
    results.add({"mouse_over_12_heads_of_1024", "the pointer moves over cells", moving(100)});
    results.add({"edit_12_heads_of_1024", "edit to picture, random rows", editing(100, 1023)});
    open(drawn_model(512, 1152, 144));
    results.add({"scroll_144_heads_of_512", "a frame while scrolling", scrolling(200)});
  }
  void started_after(double ms) { started_ = ms; }

 private:
  void frames(int count) {
    for (int i = 0; i < count; ++i) loop_.frame();
  }
  void settle() {
    while (store_.is_renewing()) {
      window_.wait(0.01);
      store_.settle();
    }
    frames(10);
  }
  void open(const Model& model) {
    store_.dispatch(app::ApplyEdit{core::editing::ReplaceModel{model}});
    if (store_.view().dialog == app::Dialog::memory) store_.dispatch(app::TakeMemory{});
    store_.settle();
    settle();
  }
  void show(app::Tab tab) {
    store_.dispatch(app::ChangeView{[tab](app::View& v) { v.tab = tab; }});
    frames(20);
  }

  std::vector<double> moving(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      const auto before = Clock::now();
      loop_.frame([&](ImGuiIO& io) { app::platform::put_mouse(io, pointer_at(i, window_.size())); });
      times.push_back(ms_since(before));
    }
    return times;
  }

  /// From the edit to the frame that shows it, with the row drawn at random up to the last one.
  std::vector<double> editing(int count, std::size_t last_row) {
    std::vector<double> times;
    std::mt19937 random(5);
    for (int i = 0; i < count; ++i) {
      const core::editing::SetCell edit{{}, random() % (last_row + 1), 0, std::sin(i)};
      const auto before = Clock::now();
      store_.dispatch(app::ApplyEdit{edit});
      store_.settle();
      while (store_.is_renewing()) {
        window_.wait(0.01);
        store_.settle();
      }
      loop_.frame();
      times.push_back(ms_since(before));
    }
    frames(10);
    return times;
  }

  std::vector<double> scrolling(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      const auto before = Clock::now();
      loop_.frame([&](ImGuiIO& io) {
        app::platform::put_mouse(io, {window_.size().x / 2, window_.size().y / 2});
        app::platform::put_modifiers(io, false, true, false);
        app::platform::put_wheel(io, 0, i < count / 2 ? -1.0f : 1.0f);
      });
      times.push_back(ms_since(before));
    }
    return times;
  }

  double idle() {
    for (int i = 0; i < 10; ++i) window_.wait(0.01), loop_.step();
    const auto start = Clock::now();
    const double used = processor_ms();
    while (ms_since(start) < 5000)
      if (window_.wait((5000 - std::min(5000.0, ms_since(start))) / 1e3)) loop_.frame();
    return processor_ms() - used;
  }

  app::platform::Window& window_;
  app::Store& store_;
  app::Loop& loop_;
  double started_ = 0;
};

int run(const char* json) {
  const auto start = Clock::now();
  app::Store store;
  app::platform::Window window("attnscope", 1600, 1000);
  app::Loop loop(window, store);
  loop.frame();
  Bench bench(window, store, loop);
  bench.started_after(ms_since(start));
  std::printf("first frame: %.0f ms of processor time\n", processor_ms());
  Results results;
  bench.measure(results);
  if (!json || results.write(json)) return 0;
  std::fprintf(stderr, "attnscope_frames: %s: cannot be written\n", json);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 1 && !(argc == 3 && std::strcmp(argv[1], "--json") == 0)) {
    std::fprintf(stderr, "attnscope_frames: expected nothing or --json FILE\n");
    return 2;
  }
  try {
    openblas_set_num_threads(1);
    return run(argc == 3 ? argv[2] : nullptr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attnscope_frames: %s\n", error.what());
    return 1;
  }
}
