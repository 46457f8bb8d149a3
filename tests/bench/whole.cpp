// How long a whole model takes: a text read from its beginning, one token more, one head off.
//   attnscope_bench_whole MODEL [BENCHMARK-OPTIONS]
// tests/bench/whole.py makes the model and measures PyTorch beside it.
#include <benchmark/benchmark.h>

#include <cblas.h>
#include <sys/resource.h>

#include <exception>
#include <iostream>
#include <limits>
#include <string>

#include "core/base/thread_pool.hpp"
#include "core/model/transformer.hpp"

namespace {

using namespace core::transformer;

constexpr std::size_t n_tokens = 64;

/// A model with its weights read, and a text for it.
struct Opened {
  std::shared_ptr<const Transformer> model;
  core::ThreadPool pool{std::thread::hardware_concurrency()};
  core::Token progress;
  std::vector<std::size_t> ids;

  explicit Opened(const std::string& path)
      : model(open_transformer(path, std::numeric_limits<std::uint64_t>::max())) {
    for (std::size_t k = 0; k < n_tokens; ++k)
      ids.push_back((k * 31 + 7) % model->description().sizes.n_vocabulary);
    logits_of(ids, {});
  }
  Means means() { return {pool, progress}; }
  /// Takes over from passes that are kept.
  arma::frowvec logits_of(const std::vector<std::size_t>& text, const std::vector<Edit>& edits) {
    return model->next(*model->run(text, edits, means()), text.size() - 1, means());
  }
};

/// A text from its beginning to the scores of what may follow it.
void read_text(benchmark::State& state, Opened& opened) {
  for (auto _ : state) benchmark::DoNotOptimize(opened.logits_of(opened.ids, {}).memptr());
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  state.counters["peak_kib"] = static_cast<double>(use.ru_maxrss);
}

/// One token behind the text, whose keys and values are kept.
void token_more(benchmark::State& state, Opened& opened) {
  const PassRef before = opened.model->run(opened.ids, {}, opened.means());
  std::vector<std::size_t> more = opened.ids;
  more.push_back(opened.ids[0]);
  for (auto _ : state) benchmark::DoNotOptimize(opened.logits_of(more, {}).memptr());
}

/// The scores after one head of the last layer but one was switched off.
void head_off(benchmark::State& state, Opened& opened) {
  const std::size_t n_layers = opened.model->description().sizes.n_layers,
                    layer = n_layers >= 2 ? n_layers - 2 : 0;
  const PassRef before = opened.model->run(opened.ids, {}, opened.means());
  for (auto _ : state) benchmark::DoNotOptimize(opened.logits_of(opened.ids, {HeadOff{layer, 0}}).memptr());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: attnscope_bench_whole MODEL [BENCHMARK-OPTIONS]\n";
    return 2;
  }
  openblas_set_num_threads(1);  // as the program does
  try {
    Opened opened(arguments[1]);
    const auto add = [&](const char* name, auto* function) {
      benchmark::RegisterBenchmark(name, [&opened, function](benchmark::State& s) { function(s, opened); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    add("read_text", read_text);
    add("token_more", token_more);
    add("head_off", head_off);
    arguments[1] = arguments[0];
    int rest = count - 1;
    benchmark::Initialize(&rest, arguments + 1);
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
