#include "core/check/other_heads.hpp"

#include <algorithm>

#include "core/check/names.hpp"
#include "core/graph/changes.hpp"

namespace core::check {

std::vector<std::size_t> other_head_numbers(const Model& model) {
  std::vector<std::size_t> numbers;
  for (std::size_t n = 1; n <= model.d_out(); ++n)
    if (n != model.n_heads && mistakes::with_heads(model, n).n_heads == n) numbers.push_back(n);
  return numbers;
}

std::optional<Model> with_wider_output(const Model& model) {
  const bool has_output = model.projections && model.projections->output;
  if (!has_output) return std::nullopt;
  const arma::mat& weight = model.projections->output->weight;
  if (weight.n_rows == weight.n_cols) return std::nullopt;
  return mistakes::without_output_projection(model);
}

std::vector<Reading> readings_in(const Model& other, std::string_view name, Stage stage,
                                 const formats::Shape& shape) {
  const Name parts = take_apart(name);
  std::vector<Stage> stages = meaning_of(parts.base).stages;
  if (std::ranges::find(stages, stage) == stages.end()) stages = {stage};  // said by hand
  std::vector<Reading> all;
  for (const Stage each : stages)
    for (const Reading& reading : readings_of(other, each, shape, parts.sequence.value_or(0), parts.head))
      all.push_back(reading);
  return all;
}

std::vector<Theirs> read_again(const Model& other, const std::vector<Theirs>& theirs) {
  std::vector<std::vector<Reading>> readings;
  for (const Theirs& tensor : theirs) {
    readings.push_back(readings_in(other, tensor.name, tensor.stage, tensor.tensor.shape));
    if (readings.back().empty() || tensor.tensor.numbers.empty()) return {};
  }
  std::vector<Theirs> all = theirs;
  for (std::size_t k = 0; k < all.size(); ++k) {
    all[k].readings = std::move(readings[k]);
    mark_masked(all[k]);
  }
  return all;
}

}  // namespace core::check
