// How long attend() takes at n_tokens/width/n_heads: causal, projections without bias, output projection on.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "core/attention/attend.hpp"
#include "core/editing/edit.hpp"
#include "core/editing/history.hpp"

namespace {

using core::attention::Linear;
using core::attention::Model;
using core::attention::Projections;

Model random_model(std::size_t n_tokens, std::size_t width, std::size_t n_heads) {
  arma::arma_rng::set_seed(1);
  const auto matrix = [](std::size_t rows, std::size_t columns) -> arma::mat {
    return arma::mat(rows, columns, arma::fill::randn) / std::sqrt(static_cast<double>(columns));
  };
  const auto linear = [&] { return Linear{matrix(width, width), std::nullopt}; };
  Model model;
  model.sequences = {{core::attention::numbered_tokens(n_tokens), matrix(n_tokens, width)}};
  model.projections = Projections{linear(), linear(), linear(), linear()};
  model.n_heads = n_heads;
  return model;
}

Model model_of(const benchmark::State& state) {
  return random_model(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)),
                      static_cast<std::size_t>(state.range(2)));
}

void forward(benchmark::State& state) {
  const Model model = model_of(state);
  for (auto _ : state) benchmark::DoNotOptimize(core::attention::attend(model));
}

void edit_and_forward(benchmark::State& state) {
  Model model = model_of(state);
  core::editing::SetCell edit;
  for (auto _ : state) {
    edit.value += 0.01;
    model = core::editing::apply(model, edit);
    benchmark::DoNotOptimize(core::attention::attend(model));
  }
}

void edit_alone(benchmark::State& state) {
  Model model = model_of(state);
  core::editing::SetCell edit;
  for (auto _ : state) {
    edit.value += 0.01;
    model = core::editing::apply(model, edit);
  }
}

/// record() alone, in a history that is filled to its budget, so that each step pushes old ones out.
void record(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  Model model = model_of(state);
  core::editing::History history;
  core::editing::SetCell edit;
  for (auto _ : state) {
    edit.value += 0.01;
    Model next = core::editing::apply(model, edit);
    const auto start = Clock::now();
    history.record(model, "", "");
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
    model = std::move(next);
  }
  state.counters["MiB"] = static_cast<double>(history.bytes()) / 0x1p20;
}

BENCHMARK(forward)
    ->Args({6, 3, 1})
    ->Args({64, 64, 4})
    ->Args({256, 768, 12})
    ->Args({1024, 768, 12})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(edit_and_forward)->Args({6, 3, 1})->Unit(benchmark::kMicrosecond);
BENCHMARK(edit_alone)->Args({6, 3, 1})->Args({1024, 768, 12})->Unit(benchmark::kMicrosecond);
BENCHMARK(record)->UseManualTime()->Args({6, 3, 1})->Args({1024, 768, 12})->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
