// Attention times at n_tokens/width/n_heads: causal, projections without bias, with output projection.
// Source of the medians that scripts/bench prints.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/editing/edit.hpp"
#include "core/editing/history.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/kernels.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/gradients.hpp"

namespace {

using core::attention::Linear;
using core::attention::Model;
using core::attention::Precision;
using core::attention::Projections;
using core::attention::SharedMatrix;
using core::attention::fast::AttentionKernels;
using core::attention::fast::Engine;
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

Model model_of(const benchmark::State& state, Precision precision = Precision::float64) {
  Model model =
      random_model(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)),
                   static_cast<std::size_t>(state.range(2)));
  model.arithmetic.precision = precision;
  return model;
}

/// Times all stages by the reference formulas.
void reference(benchmark::State& state) {
  const Model model = model_of(state);
  for (auto _ : state) {
    const core::attention::Trace trace = core::attention::attend(model);
    const auto* address = &trace;  // a value with const members cannot be passed itself
    benchmark::DoNotOptimize(address);
    benchmark::ClobberMemory();
  }
}

/// Times the gradients of the output's sum with respect to everything, with the stages that they need.
void gradients(benchmark::State& state) {
  const Model model = model_of(state);
  const core::graph::Graph graph = core::graph::attention(model);
  for (auto _ : state)
    benchmark::DoNotOptimize(core::graph::gradients(graph, model, 0, {core::attention::Stage::output}).value);
}

void full_pass(benchmark::State& state, const Model& model) {
  Engine engine;
  engine.compute(model);
  for (auto _ : state) {
    engine.compute(model);
    benchmark::DoNotOptimize(engine.output().memptr());
  }
}

/// Times a full pass of the engine, with the output.
void forward(benchmark::State& state) {
  full_pass(state, model_of(state));
}
void forward_float32(benchmark::State& state) {
  full_pass(state, model_of(state, Precision::float32));
}

/// Times the same with four KV heads and RoPE.
void grouped_rotary(benchmark::State& state) {
  Model model = model_of(state);
  model.n_kv_heads = 4;
  for (Linear* linear : {&model.projections->key, &model.projections->value})
    linear->weight = arma::mat(linear->weight->head_cols(4 * model.d_head()));
  model.additions.positions.rotary.emplace();
  full_pass(state, model);
}

/// Times the same with a sliding window of 128 keys.
void windowed(benchmark::State& state) {
  Model model = model_of(state);
  model.mask.window.left = 127;
  full_pass(state, model);
}

/// Times updates after one matrix entry changed, back and forth along a list of models that each differ from
/// the previous one in a random entry. edit_alone times making such a model.
template <class Matrix>
void edit(benchmark::State& state, Matrix matrix, bool with_output, Precision precision) {
  std::mt19937 random(1);
  std::vector<Model> models{model_of(state, precision)};
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

/// Times the edit itself: a new model that shares all but one matrix with the old one.
void edit_alone(benchmark::State& state) {
  Model model = model_of(state);
  core::editing::SetCell edit;
  for (auto _ : state) {
    edit.value += 0.01;
    model = core::editing::apply(model, edit);
  }
}

/// Times record() alone, in a full history, so that each step evicts old ones.
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

/// Measures the peak rate of float64 multiply-adds of one core, without loads or stores.
void peak(benchmark::State& state) {
  const AttentionKernels<double>& kernels = core::attention::fast::supported_kernels<double>().front();
  constexpr std::size_t n_rounds = 100000;
  for (auto _ : state) benchmark::DoNotOptimize(kernels.multiply_add(n_rounds));
  state.counters["multiply_adds_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations() * n_rounds *
                                             AttentionKernels<double>::benchmark_vectors * kernels.lanes),
                         benchmark::Counter::kIsRate);
}

using Sizes = std::vector<std::vector<std::int64_t>>;
const Sizes all_sizes{{6, 3, 1}, {64, 64, 4}, {256, 768, 12}, {1024, 768, 12}, {2048, 768, 12}};

template <class Function>
auto* add(const char* name, Function function, const Sizes& sizes) {
  auto* added = benchmark::RegisterBenchmark(name, function)->Unit(benchmark::kMicrosecond);
  for (const auto& size : sizes) added->Args(size);
  return added;
}

void add_all() {
  const Sizes small_and_large{all_sizes[0], all_sizes[3]};
  add("forward", forward, all_sizes)->Args({4096, 64, 4});
  add("forward_float32", forward_float32, all_sizes);
  add("grouped_rotary", grouped_rotary, {all_sizes[3]});
  add("windowed", windowed, {{4096, 64, 4}});
  add("reference", reference, {all_sizes.begin(), all_sizes.begin() + 4});
  add("gradients", gradients, {all_sizes.begin(), all_sizes.begin() + 4});
  const auto embeddings = [](Model& m) -> SharedMatrix& { return m.sequences[0].embeddings; };
  const auto query = [](Model& m) -> SharedMatrix& { return m.projections->query.weight; };
  const auto value = [](Model& m) -> SharedMatrix& { return m.projections->value.weight; };
  for (const auto& [suffix, precision] :
       {std::pair("", Precision::float64), std::pair("_float32", Precision::float32)}) {
    const auto add_edit = [&](const std::string& name, auto matrix, bool with_output) {
      add((name + suffix).c_str(),
          [=, p = precision](benchmark::State& state) { edit(state, matrix, with_output, p); }, all_sizes);
    };
    add_edit("edit_embedding", embeddings, false);
    add_edit("edit_query_weight", query, false);
    add_edit("edit_value_weight", value, false);
    add_edit("edit_embedding_with_output", embeddings, true);
    add_edit("edit_query_weight_with_output", query, true);
  }
  add("edit_alone", edit_alone, small_and_large);
  add("record", record, small_and_large)->UseManualTime();
  add("peak", peak, {});
}

}  // namespace

int main(int count, char** arguments) {
  add_all();
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
}
