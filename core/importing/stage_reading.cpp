#include "core/importing/stage_reading.hpp"

#include <algorithm>
#include <span>

#include "core/base/error.hpp"
#include "core/graph/limits.hpp"
#include "core/importing/arranging.hpp"
#include "core/importing/first_line.hpp"

namespace core::importing {
namespace {

using attention::Stage;

/// Whether the columns of all heads may stand side by side.
bool is_band(Stage stage) {
  return stage == Stage::queries || stage == Stage::keys || stage == Stage::values;
}

}  // namespace

StageReading::StageReading(const formats::TensorFile& file, const Choices& choices, const LayerOf& layer,
                           const core::Token& progress, Account& account)
    : file_(file),
      layer_(layer),
      progress_(progress),
      account_(account),
      first_line_is_names_(choices.first_line_is_names),
      n_heads_(choices.n_heads) {}

formats::TensorStage StageReading::read(const StageSource& source) {
  const bool has_bands = is_band(source.stage) && source.tensors.size() == 1;
  formats::TensorStage all{{source.stage, {}}, 1};
  for (const std::string& name : source.tensors) {
    const std::string place = file_.place() + name + ": ";
    formats::Tensor tensor = numbers_of(file_.info(name));
    note_counting_line(file_, tensor, first_line_is_names_, account_);
    if (source.stage == Stage::weights) tensor = with_heads_in_front(std::move(tensor), account_);
    if (has_bands && !n_heads_) n_heads_ = heads_by_name(tensor, account_);
    if (has_bands) tensor = with_heads(std::move(tensor), n_heads_, place, account_);
    auto part = formats::stage_of(tensor, source.stage, has_bands ? n_heads_.value_or(1) : 1, place);
    all.n_sequences = part.n_sequences;
    for (auto& matrix : part.given.matrices) all.given.matrices.push_back(std::move(matrix));
  }
  repeat_groups(source, all);
  const std::size_t n = all.given.matrices.size() / std::max<std::size_t>(1, all.n_sequences);
  if (n_heads_ && *n_heads_ != n)
    throw Error(file_.place() + source.tensors.front() + ": expected " + std::to_string(*n_heads_) +
                " heads, got " + std::to_string(n) + " in " +
                formats::shape_text(file_.info(source.tensors.front()).shape));
  n_heads_ = n;
  return all;
}

std::vector<formats::TensorStage> StageReading::read_all(std::vector<StageSource> stages) {
  std::stable_partition(stages.begin(), stages.end(), [](const StageSource& s) { return !is_band(s.stage); });
  std::vector<formats::TensorStage> all;
  for (const StageSource& source : stages) {
    formats::TensorStage stage = read(source);
    if (!all.empty() && stage.n_sequences != all.front().n_sequences)
      throw Error(file_.place() + source.tensors.front() + ": expected " +
                  std::to_string(all.front().n_sequences) + " sequences, as the other stages have, got " +
                  std::to_string(stage.n_sequences));
    all.push_back(std::move(stage));
  }
  return all;
}

formats::Tensor StageReading::numbers_of(const formats::TensorInfo& info) const {
  const std::vector<std::size_t> leading =
      layer_.n > 0 ? std::vector{layer_.index} : std::vector<std::size_t>();
  // Sequences, heads, tokens and columns have one limit; a model beyond it is refused before it is read.
  const bool is_within = std::ranges::all_of(std::span(info.shape).subspan(leading.size()),
                                             [](std::size_t n) { return n <= attention::max_tokens; });
  if (!is_within)
    throw Error(file_.place() + info.name + ": expected axes of at most " +
                std::to_string(attention::max_tokens) + ", got " + formats::shape_text(info.shape));
  return file_.read(info.name, leading, progress_);
}

/// Gives every query's head the keys or values of its group.
void StageReading::repeat_groups(const StageSource& source, formats::TensorStage& stage) {
  if (!n_heads_ || !is_band(source.stage) || source.stage == Stage::queries || stage.n_sequences == 0) return;
  auto& matrices = stage.given.matrices;
  const std::size_t n = matrices.size() / stage.n_sequences;
  if (n == 0 || n >= *n_heads_ || *n_heads_ % n != 0) return;
  std::vector<attention::SharedMatrix> repeated;
  for (const auto& matrix : matrices)
    for (std::size_t k = 0; k < *n_heads_ / n; ++k) repeated.push_back(matrix);
  matrices = std::move(repeated);
  account_.used.push_back(std::to_string(n) + " heads of " + source.tensors.front() + ", each for " +
                          std::to_string(*n_heads_ / n) + " heads of queries");
}

}  // namespace core::importing
