// Frame times in the real window: printed, not asserted. Needs a display.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>

#include "app/screen/heatmap_renderer.hpp"
#include "app/screen/window.hpp"
#include "app/session/full_model_reading.hpp"
#include "app/session/store.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/window/loop.hpp"
#include "core/training/task.hpp"
#include "tests/support/imgui_input.hpp"
#include "tests/support/look.hpp"

extern "C" void openblas_set_num_threads(int);
extern char** environ;

namespace {

using app::Tab;
using core::attention::Model;

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Returns the CPU time of all threads so far in milliseconds, or of ended children for RUSAGE_CHILDREN.
double processor_ms(int whose = RUSAGE_SELF) {
  rusage usage{};
  ::getrusage(whose, &usage);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

/// Measured values with a name.
struct Result {
  std::string name, words;
  std::vector<double> values;
  double processor_ms = 0;  ///< of all threads, per value
  const char* unit = "ms";

  double at(double share) const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  }
};

/// Results, printed as they are added and written together.
class Results {
 public:
  void add(Result result) {
    if (result.values.empty()) return;
    std::printf("%-34s median %8.2f   95 %% %8.2f   longest %8.2f %-2s  processor %7.2f ms   of %-4zu %s\n",
                result.name.c_str(), result.at(0.5), result.at(0.95), result.at(1), result.unit,
                result.processor_ms, result.values.size(), result.words.c_str());
    std::fflush(stdout);
    all_.push_back(std::move(result));
  }
  /// Adds the values that a function returns, with its CPU time.
  template <class Function>
  void measure(std::string name, std::string words, Function&& function) {
    const double before = processor_ms();
    std::vector<double> values = function();
    const double used = (processor_ms() - before) / static_cast<double>(values.size());
    add({std::move(name), std::move(words), std::move(values), used});
  }
  bool write(const char* path) const {
    std::FILE* file = std::fopen(path, "w");
    if (!file) return false;
    std::fputs("{\n", file);
    for (std::size_t i = 0; i < all_.size(); ++i)
      std::fprintf(
          file,
          "  \"%s\": {\"median\": %.3f, \"p95\": %.3f, \"longest\": %.3f, \"processor\": %.3f, \"unit\": \"%s\", \"count\": %zu}%s\n",
          all_[i].name.c_str(), all_[i].at(0.5), all_[i].at(0.95), all_[i].at(1), all_[i].processor_ms,
          all_[i].unit, all_[i].values.size(), i + 1 < all_.size() ? "," : "");
    std::fputs("}\n", file);
    return std::fclose(file) == 0;
  }

 private:
  std::vector<Result> all_;
};

constexpr int width = 1600, height = 1000;

/// Returns a causal model without biases, with an output projection and randomly initialized weights.
Model initialized_model(std::size_t n_tokens, std::size_t d_model, std::size_t n_heads) {
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

/// Returns the pointer position on an ellipse around the middle of the window, one step per frame.
ImVec2 pointer_at(int frame) {
  const float turn = static_cast<float>(frame) * 0.07f;
  return {width * (0.5f + 0.2f * std::cos(turn)), height * (0.5f + 0.35f * std::sin(turn))};
}

/// Window under simulated use; each measurement returns one number per frame.
class Bench {
 public:
  Bench(app::platform::Window& window, app::Store& store, app::Loop& loop)
      : window_(window), store_(store), loop_(loop) {}

  void open(const Model& model) {
    store_.dispatch(app::ApplyEdit{core::editing::ReplaceModel{model}});
    if (store_.view().forms.dialog == app::Dialog::memory) store_.dispatch(app::AllowMemory{});
    settle();
    store_.dispatch(app::ShowDialog{app::Dialog::none});
  }
  void show(Tab tab) {
    support::look(store_, [tab](app::View& v) { v.look.tab = tab; });
    settle();
  }
  void drop(double rate) {
    store_.dispatch(app::ApplyEdit{core::editing::SetDropoutRate{rate}});
    settle();
  }
  void open_full_model(const std::string& path, const std::string& text) {
    store_.open(path, text);
    store_.dispatch(app::ShowDialog{app::Dialog::none});
    settle();
  }
  /// Returns frame times from ablating or enabling a head until the prediction is ready.
  std::vector<double> switching_heads(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      store_.dispatch(app::ToggleLayerHead{0, static_cast<std::size_t>(i / 2)});
      for (const double time : settle()) times.push_back(time);
    }
    return times;
  }
  /// Returns the times of frames while a network of width 32 learns induction for so many steps.
  std::vector<double> learning(std::size_t n_steps) {
    const core::training::Task& task = *core::training::find_task("induction");
    core::training::TrainingSetup setup = task.setup;
    setup.d_model = 32;
    store_.dispatch(app::SetLearning{task.name, "", setup});
    settle();
    support::look(store_, [](app::View& v) { v.learning.plays = true; });
    std::vector<double> times;
    while (store_.learning().run()->n_steps() < n_steps) {
      times.push_back(timed_frame([](ImGuiIO&) {}));
      window_.wait(std::max(0.0, 1.0 / 60 - times.back() / 1e3));
    }
    support::look(store_, [](app::View& v) { v.learning.plays = false; });
    settle();
    return times;
  }
  /// Returns the times of frames while the maps of patches between two prompts are computed.
  std::vector<double> patching(const std::string& first, const std::string& second) {
    store_.dispatch(app::SetPrompts{core::experiment::FirstPrompt{first}, second});
    std::vector<double> times;
    const auto is_computing = [&] {
      const auto& patches = store_.pending().reading->patches();
      const auto [n_known, n_wanted] = patches.progress();
      return patches.error().empty() && (n_wanted == 0 || n_known < n_wanted);
    };
    do {
      times.push_back(timed_frame([](ImGuiIO&) {}));
      window_.wait(std::max(0.0, 1.0 / 60 - times.back() / 1e3));
    } while (is_computing());
    store_.dispatch(app::SetPrompts{std::nullopt, first});
    settle();
    return times;
  }
  void keep_reference() { store_.dispatch(app::AddReference{}); }

  std::vector<double> moving(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i)
      times.push_back(timed_frame([&](ImGuiIO& io) { support::put_mouse(io, pointer_at(i)); }));
    return times;
  }

  /// Returns times from the edit of a random number to the frame that shows it.
  std::vector<double> editing(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      const auto before = Clock::now();
      edit();
      store_.update();
      while (store_.live().is_behind()) {
        window_.wait(0.01);
        store_.update();
      }
      loop_.frame();
      times.push_back(ms_since(before));
    }
    settle();
    return times;
  }

  std::vector<double> scrolling(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i)
      times.push_back(timed_frame([&](ImGuiIO& io) {
        support::put_mouse(io, {width / 2.0f, height / 2.0f});
        support::put_modifiers(io, false, true, false);
        support::put_wheel(io, 0, i < count / 2 ? -1.0f : 1.0f);
      }));
    loop_.frame([](ImGuiIO& io) { support::put_modifiers(io, false, false, false); });
    return times;
  }

  /// Changes a number in every frame, as in a drag; returns the times of frames with their edits, and the
  /// times between picture updates.
  using Slider = void (Bench::*)();
  std::pair<std::vector<double>, std::vector<double>> dragging(double seconds, Slider slider) {
    std::vector<double> times, renewed;
    const auto start = Clock::now();
    auto last = start;
    for (std::uint64_t version = store_.live().version(); ms_since(start) < seconds * 1e3;) {
      const auto before = Clock::now();
      (this->*slider)();
      loop_.frame();
      times.push_back(ms_since(before));
      if (std::exchange(version, store_.live().version()) == store_.live().version()) continue;
      renewed.push_back(ms_since(last));
      last = Clock::now();
    }
    settle();
    return {times, renewed};
  }

  /// Returns frame times after an edit until no background work is left.
  std::vector<double> after_edits(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      edit();
      for (const double ms : settle()) times.push_back(ms);
    }
    return times;
  }

  /// Returns frame times while the wheel zooms into a picture and out again.
  std::vector<double> zooming(const std::string& picture, int count) {
    const auto place = loop_.landmarks().find(picture);
    if (!place) throw std::runtime_error(picture + " is not on the screen");
    std::vector<double> times;
    for (int i = 0; i < count; ++i)
      times.push_back(timed_frame([&](ImGuiIO& io) {
        support::put_mouse(io, place->center());
        support::put_wheel(io, 0, i < count / 2 ? 0.5f : -0.5f);
      }));
    support::look(store_, [](app::View& v) { v.look.zoomed.clear(); });
    settle();
    return times;
  }

  /// Returns frame times while the snapshot replaces the live state and back, `count` times.
  std::vector<double> holding_space(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i)
      for (const bool down : {true, false}) {
        times.push_back(timed_frame([&](ImGuiIO& io) { support::put_key(io, ImGuiKey_Space, down); }));
        for (const double ms : settle()) times.push_back(ms);
      }
    return times;
  }

  /// Returns the CPU time while nothing happens, in percent of one processor.
  double idle(double seconds) {
    const auto start = Clock::now();
    const double used = processor_ms();
    while (ms_since(start) < seconds * 1e3)
      if (window_.wait(seconds - ms_since(start) / 1e3)) loop_.frame();
    return 100 * (processor_ms() - used) / ms_since(start);
  }

  void drag_number() { edit(0); }
  void drag_dropout() {
    store_.dispatch(
        app::ApplyEdit{core::editing::SetDropoutRate{static_cast<double>(1 + random_() % 90) / 100}});
  }

 private:
  double timed_frame(const std::function<void(ImGuiIO&)>& adjust = {}) {
    const auto before = Clock::now();
    loop_.frame(adjust);
    return ms_since(before);
  }
  void edit() { edit(random_() % store_.model().n_tokens()); }
  void edit(std::size_t row) {
    store_.dispatch(
        app::ApplyEdit{core::editing::SetCell{{}, row, 0, std::sin(static_cast<double>(random_() % 1000))}});
  }
  /// Runs frames until no work is left; after 3 s, only until the trace is up to date.
  std::vector<double> settle() {
    constexpr double most_ms = 3000;
    const auto start = Clock::now();
    std::vector<double> times;
    for (int quiet = 0; quiet < 10 && (store_.live().is_behind() || ms_since(start) < most_ms); ++quiet) {
      times.push_back(timed_frame());
      if (!store_.live().is_behind() && !store_.is_working() && !loop_.is_working()) continue;
      window_.wait(0.01);
      quiet = 0;
    }
    return times;
  }

  app::platform::Window& window_;
  app::Store& store_;
  app::Loop& loop_;
  std::mt19937 random_{5};
};

/// Returns the time from starting a process until it reports its first displayed frame.
double ms_to_first_frame(const char* program) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const auto start = Clock::now();
  const std::string name = program;
  std::string option = "--one-frame";
  std::string words = name;
  char* const arguments[] = {words.data(), option.data(), nullptr};
  pid_t child = 0;
  const bool is_started = ::posix_spawn(&child, program, &actions, nullptr, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  char said = 0;
  const bool is_shown = is_started && ::read(ends[0], &said, 1) == 1;
  const double ms = ms_since(start);
  ::close(ends[0]);
  int status = 0;
  if (!is_shown || ::waitpid(child, &status, 0) != child || status != 0)
    throw std::runtime_error("cannot start " + name + " again");
  return ms;
}

void measure_small(Bench& b, Results& results) {
  b.show(Tab::stages);
  results.measure("mouse_over_strip", "the strip of six tokens", [&] { return b.moving(200); });
  results.measure("edit_six_tokens", "every number of the strip changes", [&] { return b.editing(200); });
  results.add({"idle", "of a processor, nothing happens for 4 s", {b.idle(4)}, 0, "%"});
}

void measure_heads(Bench& b, Results& results) {
  for (const std::size_t n : {256, 1024}) {
    b.open(initialized_model(n, 768, 12));
    b.show(Tab::heads);
    const std::string of = "_12_heads_of_" + std::to_string(n);
    results.measure("mouse_over" + of, "the pointer moves over cells", [&] { return b.moving(150); });
    results.measure("edit" + of, "edit to picture, random rows", [&] { return b.editing(100); });
  }
}

/// Measures the whole model in ATTNSCOPE_BENCH_MODEL, or else the bundled one, on 256 tokens.
void measure_layers(Bench& b, Results& results) {
  const char* named = std::getenv("ATTNSCOPE_BENCH_MODEL");
  std::string text = "egg";
  for (int k = 0; k < 252; ++k) text += k % 4 == 3 ? "\n" : "!";
  b.open_full_model(named ? named : BENCH_EXAMPLES "/tiny_gpt", text);
  results.measure("mouse_over_layers", "the pointer moves over the heads of all layers",
                  [&] { return b.moving(150); });
  results.measure("head_off", "frames after a head is switched off", [&] { return b.switching_heads(6); });
}

void measure_patches(Bench& b, Results& results) {
  const char* named = std::getenv("ATTNSCOPE_BENCH_MODEL");
  const std::string text = "egg jam fig and egg jam ham eggs";
  std::string other = text;
  other.replace(other.find("fig"), 3, "fog");
  b.open_full_model(named ? named : BENCH_EXAMPLES "/tiny_gpt", text);
  results.measure("patches", "frames while maps of patches are computed",
                  [&] { return b.patching(text, other); });
}

void measure_learn(Bench& b, Results& results) {
  results.measure("learn", "frames while two layers of width 32 learn for 300 steps",
                  [&] { return b.learning(300); });
}

void measure_many(Bench& b, Results& results) {
  b.open(initialized_model(512, 1152, 144));
  b.show(Tab::heads);
  results.measure("scroll_144_heads_of_512", "a frame while scrolling", [&] { return b.scrolling(200); });
}

struct Size {
  std::size_t n_tokens, d_model, n_heads;
  std::string name() const { return "_" + std::to_string(n_tokens) + (n_heads == 1 ? "_one_head" : ""); }
};

void measure_views_of(Bench& b, const Size& size, Results& results) {
  b.open(initialized_model(size.n_tokens, size.d_model, size.n_heads));
  b.keep_reference();
  const std::string of = size.name();
  const bool is_large = size.n_tokens > 2048;
  const auto drag = [&](const std::string& what, const std::string& words, Bench::Slider slider) {
    const auto [frames, renewed] = b.dragging(2, slider);
    results.add({what + of, "frames while " + words + " is dragged", frames});
    results.add({what + "_follows" + of, "from one renewed picture to the next", renewed});
  };
  for (const auto& [tab, name] : {std::pair{Tab::stages, "stages"},
                                  {Tab::heads, "heads"},
                                  {Tab::tokens, "tokens"},
                                  {Tab::compare, "compare"},
                                  {Tab::laboratory, "laboratory"}}) {
    if (tab == Tab::compare && is_large)
      continue;  // all stages of both states need more memory than most machines have
    b.show(tab);
    if (tab == Tab::laboratory) b.drop(0.1);
    results.measure(name + of, "frames after an edit", [&] { return b.after_edits(is_large ? 1 : 3); });
    drag(std::string("drag_in_") + name, "a number of the first row", &Bench::drag_number);
    drag(std::string("drag_dropout_in_") + name, "the rate of dropout", &Bench::drag_dropout);
    b.drop(0);
  }
  b.show(Tab::heads);
  results.measure("zoom_heads" + of, "the wheel over a head", [&] { return b.zooming("heads/0", 40); });
  results.measure("hold_heads" + of, "A in place of B and back", [&] { return b.holding_space(2); });
  b.show(Tab::stages);
  results.measure("zoom_stages" + of, "the wheel over scores", [&] { return b.zooming("strip/scores", 40); });
  results.measure("hold_stages" + of, "A in place of B and back", [&] { return b.holding_space(2); });
}

const std::vector<std::pair<std::string, void (*)(Bench&, Results&)>> parts{
    {"small", measure_small},
    {"heads", measure_heads},
    {"layers", measure_layers},
    {"patches", measure_patches},
    {"learn", measure_learn},
    {"many", measure_many},
    {"views_1024",
     [](Bench& b, Results& r) {
       measure_views_of(b, {1024, 768, 12}, r);
     }},
    {"views_4096_one_head",
     [](Bench& b, Results& r) {
       measure_views_of(b, {4096, 64, 1}, r);
     }},
    {"views_4096", [](Bench& b, Results& r) {
       measure_views_of(b, {4096, 768, 12}, r);
     }}};

int run(const char* program, const char* json, const std::string& only) {
  Results results;
  if (only.empty() || only == "start") {
    std::vector<double> starts;
    for (int i = 0; i < 9; ++i) starts.push_back(ms_to_first_frame(program));
    results.add({"first_frame", "from the start of a process to its first frame on the screen", starts,
                 processor_ms(RUSAGE_CHILDREN) / 9});
  }
  app::Store store;
  app::platform::Window window(store.jobs(), "attnscope", width, height);
  app::render::HeatmapRenderer renderer;
  app::Loop loop(window, renderer, store);
  loop.frame();
  if (only == "one frame") return ::write(STDOUT_FILENO, "1", 1) == 1 ? 0 : 1;
  Bench bench(window, store, loop);
  for (const auto& [name, measure] : parts)
    if (name.starts_with(only)) measure(bench, results);
  if (!json || results.write(json)) return 0;
  std::fprintf(stderr, "attnscope_frames: %s: cannot be written\n", json);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* json = nullptr;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--one-frame") == 0) {
      only = "one frame";
    } else if (i + 1 < argc && std::strcmp(argv[i], "--json") == 0) {
      json = argv[++i];
    } else if (i + 1 < argc && std::strcmp(argv[i], "--only") == 0) {
      only = argv[++i];
    } else {
      std::fprintf(
          stderr,
          "attnscope_frames: expected --json FILE or --only start|small|heads|layers|patches|learn|many|views|views_…\n");
      return 2;
    }
  }
  try {
    openblas_set_num_threads(1);
    return run(argv[0], json, only);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attnscope_frames: %s\n", error.what());
    return 1;
  }
}
