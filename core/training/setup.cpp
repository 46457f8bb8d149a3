#include "core/training/setup.hpp"

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/graph/bugs.hpp"

namespace core::training {
namespace {

struct CountLimit {
  const char* option;
  std::size_t TrainingSetup::*count;
  std::size_t least, most;
};
constexpr CountLimit count_limits[]{
    {"--layers", &TrainingSetup::n_layers, 1, 3}, {"--heads", &TrainingSetup::n_heads, 1, 4},
    {"--width", &TrainingSetup::d_model, 16, 64}, {"--mlp", &TrainingSetup::d_mlp, 0, 256},
    {"--batch", &TrainingSetup::batch, 1, 256},   {"--steps", &TrainingSetup::n_steps, 1, 100'000}};

struct NumberLimit {
  const char* option;
  double TrainingSetup::*number;
  double least, most;
};
constexpr NumberLimit number_limits[]{{"--dropout", &TrainingSetup::dropout, 0, 0.9},
                                      {"--rate", &TrainingSetup::rate, 1e-6, 10}};

}  // namespace

std::optional<SetupProblem> check(const TrainingSetup& s) {
  for (const auto& [option, count, least, most] : count_limits)
    if (s.*count < least || s.*count > most)
      return SetupProblem{option, fmt::format("expected {} to {}, got {}", least, most, s.*count)};
  for (const auto& [option, number, least, most] : number_limits)
    if (!(s.*number >= least && s.*number <= most))
      return SetupProblem{option, fmt::format("expected {} to {}, got {}", text::number_text(least),
                                              text::number_text(most), text::number_text(s.*number))};
  if (s.d_model % s.n_heads != 0)
    return SetupProblem{"--width",
                        fmt::format("expected a multiple of the {} heads, got {}", s.n_heads, s.d_model)};
  if (s.positions == PositionChoice::rotary && s.d_head() % 2 != 0)
    return SetupProblem{"--width",
                        fmt::format("expected an even number of columns of each head, which rotary "
                                    "positions pair, got {}",
                                    s.d_head())};
  if (s.n_heads % s.kv_heads() != 0)
    return SetupProblem{"--kv-heads",
                        fmt::format("expected a divisor of the {} heads, got {}", s.n_heads, s.n_kv_heads)};
  if (!s.mistake.empty() && !bugs::find_offered_bug(s.mistake))
    return SetupProblem{"--mistake", "there is no bug \"" + s.mistake + "\"; attnscope mistakes lists them"};
  return std::nullopt;
}

bool learns_on(const TrainingSetup& before, const TrainingSetup& after) {
  TrainingSetup same = after;
  same.optimizer = before.optimizer, same.rate = before.rate, same.batch = before.batch;
  same.n_steps = before.n_steps, same.dropout = before.dropout, same.causal = before.causal;
  same.mistake = before.mistake;
  return same == before;
}

void require(const TrainingSetup& setup) {
  if (const auto problem = check(setup)) throw Error(problem->option + (": " + problem->message));
}

}  // namespace core::training
