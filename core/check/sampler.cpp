#include "core/check/sampler.hpp"

#include <algorithm>
#include <array>

#include "core/graph/operations.hpp"
#include "core/graph/stages.hpp"

namespace core::check {
namespace {

using attention::SharedMatrix;
using attention::Stage;

/// What of the projected embeddings is kept at most, in numbers.
constexpr std::size_t most_kept = std::size_t{1} << 27;

}  // namespace

bool Sampler::Projected::made_like(const Projected& other) const {
  return precision == other.precision && factors == other.factors && sums == other.sums &&
         linear == other.linear && embeddings == other.embeddings;
}

Trace Sampler::trace(const Model& model) const {
  attention::require(model, sample_.sequence);
  graph::Graph g = graph::attention(model);
  const graph::Evaluation stages = [&] {
    graph::Evaluation known;
    const auto put = [&](Stage stage, const SharedMatrix& all) { known.stages[graph::index(stage)] = {all}; };
    const attention::Dropout drawn = [&] {
      attention::Dropout dropout = model.dropout;
      dropout.rescale = true;  // which decides nothing of what is kept
      return dropout;
    }();
    if (kept_ && kept_->first == drawn) put(graph::kept_weights, kept_->second);
    std::vector<std::pair<Stage, Projected>> wanted;
    for (const auto& [stage, part] : {std::pair{graph::all_keys, attention::Part::key},
                                      std::pair{graph::all_values, attention::Part::value}})
      if (const auto* linear = g.get<graph::Linear>(stage))
        wanted.emplace_back(stage,
                            Projected{model.sequences[sample_.sequence].embeddings, *find_linear(model, part),
                                      g.precision, linear->factors, linear->sums});
    for (const auto& [stage, projected] : wanted) {
      const auto same = [&](const Projected& made) { return made.made_like(projected); };
      const auto found = std::ranges::find_if(projected_, same);
      if (found != projected_.end()) put(stage, found->all);
    }
    graph::Evaluation made = graph::evaluate(g, model, sample_.sequence, sample_.rows, std::move(known));
    for (auto& [stage, projected] : wanted) {
      if (made[stage].empty() || made.partial[graph::index(stage)]) continue;
      projected.all = made[stage].front();
      const auto same = [&](const Projected& other) { return other.made_like(projected); };
      const std::size_t n = projected.all.n_rows() * projected.all.n_cols();
      if (std::ranges::none_of(projected_, same) && (projected_.size() + 1) * n <= most_kept)
        projected_.push_back(projected);
    }
    if (!made[graph::kept_weights].empty()) kept_.emplace(drawn, made[graph::kept_weights].front());
    return made;
  }();

  Trace t;
  t.sequence = sample_.sequence;
  t.heads.resize(model.n_heads);
  const arma::uvec rows = arma::conv_to<arma::uvec>::from(sample_.rows);
  for (const graph::Node& node : g.nodes) {
    if (graph::is_hidden(node.stage) || stages[node.stage].empty()) continue;
    const bool is_partial = stages.partial[graph::index(node.stage)];
    for (std::size_t h = 0; h < (node.heads == graph::Heads::shared ? 1 : model.n_heads); ++h) {
      const SharedMatrix& numbers = stages[node.stage][nth_matrix(g, node, h)];
      matrix_of(t, attention::info(node.stage), h) = is_partial ? numbers : SharedMatrix(numbers->rows(rows));
    }
  }
  return t;
}

}  // namespace core::check
