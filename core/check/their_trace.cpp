#include "core/check/their_trace.hpp"

namespace core::check {
namespace {

/// One head's numbers of a tensor; of columns of all heads side by side, those that are its own.
arma::mat numbers_of(const Model& model, const Theirs& theirs, const Reading& r, std::size_t s,
                     std::size_t head) {
  const std::size_t n_columns = attention::shape_of(model, r.stage).n_cols;
  arma::mat numbers(r.n_rows, n_columns);
  const std::size_t nth = r.joined      ? 0
                          : r.of_groups ? matrix_of_head(model, r.stage, head)
                                        : head - r.first_head;
  for (std::size_t i = 0; i < r.n_rows; ++i)
    for (std::size_t j = 0; j < n_columns; ++j) {
      const std::size_t column =
          r.joined ? attention::column_of_head(model, r.stage, matrix_of_head(model, r.stage, head), j) : j;
      numbers(i, j) = theirs.tensor.numbers[r.at(s, nth, i, column)];
    }
  return numbers;
}

}  // namespace

TheirTrace their_trace(const Model& model, const Matched& matched, const Report& report,
                       std::size_t sequence) {
  TheirTrace result;
  result.trace.heads.resize(model.n_heads);
  for (std::size_t k = 0; k < matched.theirs.size(); ++k) {
    const Reading* r = report.readings[k];
    if (!r || r->layout.is_mean || sequence < r->first_sequence ||
        sequence >= r->first_sequence + r->n_sequences)
      continue;
    const attention::StageInfo& stage = attention::info(r->stage);
    const std::size_t first = stage.per_head ? r->first_head : 0;
    const std::size_t count = !stage.per_head ? 1 : r->joined || r->of_groups ? model.n_heads : r->n_heads;
    for (std::size_t h = first; h < first + count; ++h)
      matrix_of(result.trace, stage, h) =
          numbers_of(model, matched.theirs[k], *r, sequence - r->first_sequence, h);
  }
  for (const attention::StageInfo& stage : attention::stages()) {
    bool whole = true;
    for (std::size_t h = 0; h < (stage.per_head ? model.n_heads : 1); ++h)
      whole = whole && stage.matrix(result.trace, h).n_rows() > 0;
    if (whole) result.stages.push_back(stage.stage);
  }
  return result;
}

}  // namespace core::check
