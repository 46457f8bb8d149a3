#include "core/check/cut_products.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/graph/attend.hpp"
#include "core/graph/matrices.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/stages.hpp"

namespace core::check {
namespace {

using attention::Model;
using attention::SharedMatrix;
using attention::Stage;
using attention::Trace;

arma::mat cut(arma::mat numbers) {
  numbers.transform(cut_to_tf32);
  return numbers;
}

/// The same model in float32, of which embeddings and weights are cut.
Model with_cut_weights(const Model& model) {
  Model next = model;
  next.departures.precision = attention::Precision::float32;
  next.departures.product_inputs = attention::Precision::float64;
  for (attention::Sequence& sequence : next.sequences) {
    sequence.embeddings = cut(sequence.embeddings);
    if (next.has_memory()) sequence.key_embeddings = cut(sequence.key_embeddings);
  }
  for (const attention::Part part : attention::all_parts)
    if (attention::Linear* linear = find_linear(next, part)) linear->weight = cut(linear->weight);
  return next;
}

/// Gives a stage of one sequence the cut numbers of one of a trace; what the other sequences have counts for
/// nothing.
void give_cut(Model& model, Stage stage, const Trace& trace, Stage from) {
  std::vector<SharedMatrix> heads;
  for (std::size_t k = 0; k < n_matrices(model, stage); ++k)
    heads.emplace_back(cut(attention::info(from).matrix(trace, head_of_matrix(model, stage, k))));
  attention::GivenStage given{stage, {}};
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    given.matrices.insert(given.matrices.end(), heads.begin(), heads.end());
  auto& stages = model.given.stages;
  std::erase_if(stages, [&](const attention::GivenStage& other) { return other.stage == stage; });
  stages.insert(std::ranges::find_if(stages, [&](const auto& other) { return other.stage > stage; }),
                std::move(given));
}

}  // namespace

double cut_to_tf32(double number) {
  constexpr int n_cut = 53 - 11;
  const double single = attention::rounded(attention::Precision::float32, number);
  if (!std::isfinite(single) || std::abs(single) < 0x1p-126) return single;
  const auto bits = std::bit_cast<std::uint64_t>(single);
  return std::bit_cast<double>(bits >> n_cut << n_cut);
}

Trace trace_with_cut_products(const Model& model, std::size_t sequence) {
  const Model projecting = with_cut_weights(model);
  Trace result = attention::attend(projecting, sequence);
  const bool has_projected = result.heads.front().queries.n_rows() > 0;

  Model scoring = projecting;  // queries, keys and values are what they were made; products take them cut
  if (has_projected && !model.given.find(Stage::scores)) {
    const attention::LastStages last = last_stages(model);
    give_cut(scoring, Stage::queries, result, last.queries);
    give_cut(scoring, Stage::keys, result, last.keys);
    scoring.additions.normalise.reset();  // which they have behind them
    scoring.additions.positions.rotary.reset();
  }
  const Trace scored = attention::attend(scoring, sequence);

  Model mixing = projecting;
  mixing.given.stages.clear();
  mixing.dropout.training = false;
  give_cut(mixing, Stage::values, result, Stage::values);
  Trace dropped = scored;  // with what is mixed in the place of the weights
  for (attention::HeadTrace& head : dropped.heads) head.weights = head.dropped_weights;
  give_cut(mixing, Stage::weights, dropped, Stage::weights);
  const Trace mixed = attention::attend(mixing, sequence);

  for (std::size_t h = 0; h < model.n_heads; ++h) {
    attention::HeadTrace head = scored.heads[h];
    head.queries = result.heads[h].queries, head.keys = result.heads[h].keys;
    head.prepared = result.heads[h].prepared;
    head.values = result.heads[h].values, head.contexts = mixed.heads[h].contexts;
    result.heads[h] = std::move(head);
  }
  result.embeddings = arma::mat(model.sequences[sequence].embeddings);
  result.concatenated = mixed.concatenated;
  Model combined = projecting;
  combined.given = {};
  give_cut(combined, Stage::concatenated, mixed, Stage::concatenated);
  result.output = attention::attend_checked(combined, sequence).output;
  return result;
}

}  // namespace core::check
