// How long attention takes at n_tokens/width/n_heads: causal, projections without bias, output projection on.
// The medians that scripts/bench prints are measured here.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "core/editing/edit.hpp"
#include "core/editing/history.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/kernels.hpp"
#include "core/graph/attend.hpp"

namespace {

using core::attention::Linear;
using core::attention::Model;
using core::attention::Projections;
using core::attention::SharedMatrix;
using core::attention::fast::Engine;
using core::attention::fast::Kernels;
using Clock = std::chrono::steady_clock;

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

/// Every stage at once, by the formulas.
void reference(benchmark::State& state) {
  const Model model = model_of(state);
  for (auto _ : state) {
    const core::attention::Trace trace = core::attention::attend(model);
    const auto* address = &trace;  // a value that holds constants cannot be handed over itself
    benchmark::DoNotOptimize(address);
    benchmark::ClobberMemory();
  }
}

void full_pass(benchmark::State& state, const Model& model) {
  Engine engine;
  engine.compute(model);
  for (auto _ : state) {
    engine.compute(model);
    benchmark::DoNotOptimize(engine.output().memptr());
  }
}

/// A full pass of the engine, with the output.
void forward(benchmark::State& state) {
  full_pass(state, model_of(state));
}

/// The same with four groups of heads and rotary positions.
void grouped_rotary(benchmark::State& state) {
  Model model = model_of(state);
  model.n_kv_heads = 4;
  for (Linear* linear : {&model.projections->key, &model.projections->value})
    linear->weight = arma::mat(linear->weight->head_cols(4 * model.d_head()));
  model.additions.positions.rotary.emplace();
  full_pass(state, model);
}

/// The same with a window of 128 keys.
void windowed(benchmark::State& state) {
  Model model = model_of(state);
  model.mask.window.left = 127;
  full_pass(state, model);
}

/// Updates after one number of a matrix is another: to and fro along a row of models, each the one before it
/// but for a random entry. The time is that of the update; making such a model is measured by edit_alone.
template <class Matrix>
void edit(benchmark::State& state, Matrix matrix, bool with_output) {
  std::mt19937 random(1);
  std::vector<Model> models{model_of(state)};
  while (models.size() < 16) {
    SharedMatrix& edited = matrix(models.emplace_back(models.back()));
    const std::size_t row = random() % edited->n_rows, column = random() % edited->n_cols;
    edited.set(row, column, edited->at(row, column) + static_cast<double>(random() % 1001) * 1e-4 - 0.05);
  }
  Engine engine;
  engine.compute(models.front());
  engine.output();
  std::size_t at = 0, step = 1;
  for (auto _ : state) {
    at += step;
    if (at == 0 || at + 1 == models.size()) step = -step;
    benchmark::DoNotOptimize(engine.update(models[at]));
    if (with_output) benchmark::DoNotOptimize(engine.output().memptr());
  }
}

SharedMatrix& embeddings(Model& m) {
  return m.sequences[0].embeddings;
}
SharedMatrix& query_weight(Model& m) {
  return m.projections->query.weight;
}
SharedMatrix& value_weight(Model& m) {
  return m.projections->value.weight;
}

void edit_embedding(benchmark::State& state) {
  edit(state, embeddings, false);
}
void edit_query_weight(benchmark::State& state) {
  edit(state, query_weight, false);
}
void edit_value_weight(benchmark::State& state) {
  edit(state, value_weight, false);
}
void edit_embedding_with_output(benchmark::State& state) {
  edit(state, embeddings, true);
}
void edit_query_weight_with_output(benchmark::State& state) {
  edit(state, query_weight, true);
}

/// The edit itself: a new model that shares all but one matrix with the old one.
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

/// Multiplications with additions of doubles that one core can do, with nothing to load or store.
void peak(benchmark::State& state) {
  const Kernels& kernels = core::attention::fast::kernels_of_this_processor().front();
  constexpr std::size_t n_rounds = 100000;
  for (auto _ : state) benchmark::DoNotOptimize(kernels.multiply_add(n_rounds));
  state.counters["multiply_adds_per_second"] = benchmark::Counter(
      static_cast<double>(state.iterations() * n_rounds * Kernels::yardstick_vectors * kernels.lanes),
      benchmark::Counter::kIsRate);
}

void all_sizes(benchmark::internal::Benchmark* b) {
  b->Args({6, 3, 1})->Args({64, 64, 4})->Args({256, 768, 12})->Args({1024, 768, 12})->Args({2048, 768, 12});
  b->Unit(benchmark::kMicrosecond);
}

BENCHMARK(forward)->Apply(all_sizes)->Args({4096, 64, 4});
BENCHMARK(grouped_rotary)->Args({1024, 768, 12})->Unit(benchmark::kMicrosecond);
BENCHMARK(windowed)->Args({4096, 64, 4})->Unit(benchmark::kMicrosecond);
BENCHMARK(reference)
    ->Args({6, 3, 1})
    ->Args({64, 64, 4})
    ->Args({256, 768, 12})
    ->Args({1024, 768, 12})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(edit_embedding)->Apply(all_sizes);
BENCHMARK(edit_query_weight)->Apply(all_sizes);
BENCHMARK(edit_value_weight)->Apply(all_sizes);
BENCHMARK(edit_embedding_with_output)->Apply(all_sizes);
BENCHMARK(edit_query_weight_with_output)->Apply(all_sizes);
BENCHMARK(edit_alone)->Args({6, 3, 1})->Args({1024, 768, 12})->Unit(benchmark::kMicrosecond);
BENCHMARK(record)->UseManualTime()->Args({6, 3, 1})->Args({1024, 768, 12})->Unit(benchmark::kMicrosecond);
BENCHMARK(peak)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
