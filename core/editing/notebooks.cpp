#include "core/editing/notebooks.hpp"

#include <cmath>

#include "core/editing/drawn.hpp"

namespace core::editing::notebooks {

using attention::MaskMethod;
using attention::MergeRule;
using attention::Model;
using attention::Projections;
using attention::ScaleRule;
using attention::ScoreRule;
using attention::Sequence;
using random::Generator;

Model causal_step_by_step() {
  Generator g(123);
  Model m;
  m.sequences = {{{"The", "cat", "ran", "to", "the", "door"}, filled(g.rand(18), 6, 3)}};
  m.projections = drawn_projections(g, 3, 3);
  return m;
}

Model raw_dot_product() {
  Model m;
  m.sequences = {your_journey()};
  m.scale.rule = ScaleRule::none;
  m.mask.causal = false;
  return m;
}

Model attention_class(const ClassSize& size, bool causal) {
  Generator g(size.seed);
  Model m;
  m.sequences = drawn_batch(g, size.n_sequences, 4, size.d_model);
  m.projections = drawn_projections(g, size.d_model, size.d_model, true);
  m.mask.causal = causal;
  return m;
}

Model multi_head_class(const ClassSize& size, MergeRule merge) {
  Generator g(size.seed);
  Model m;
  m.projections = drawn_projections(g, size.d_model, size.d_model);
  m.projections->output = drawn_linear(g, size.d_model, size.d_model, true);
  m.sequences = drawn_batch(g, size.n_sequences, 4, size.d_model);  // this class draws its input last
  m.n_heads = size.n_heads;
  m.merge = merge;
  return m;
}

Model averaging(MaskMethod method) {
  Generator g(1337);
  Model m;
  m.sequences = drawn_batch(g, 4, 8, 65);
  m.scores = ScoreRule::uniform;
  m.mask.method = method;
  return m;
}

Model full_attention() {
  Generator g(1337);
  Model m;
  m.sequences = drawn_batch(g, 4, 8, 65);
  m.projections = drawn_projections(g, 65, 65, false, LayerOrder::key_query_value);
  return m;
}

Model as_printed() {
  Generator inputs(1337), layers(1337);  // the seed was set twice
  Model m;
  m.sequences = drawn_batch(inputs, 4, 8, 32);
  layers.randint(6, 0, 10);  // what an earlier cell took
  m.projections = drawn_projections(layers, 32, 16, false, LayerOrder::key_query_value);
  m.scale.rule = ScaleRule::none;
  return m;
}

Model library() {
  // One-hot tokens; the question's scores are logarithms of the relevance, so that softmax gives the
  // relevance back.
  const std::vector<double> relevance{0.35, 0.40, 0.20, 0.00, 0.05};
  const std::size_t n = relevance.size() + 1, question = n - 1;
  Model m;
  m.sequences = {
      {{"Climate Change Overview", "Polar Bear Biology", "Arctic Ecosystems", "17th Century Poetry",
        "Ocean Acidification", "How does climate change affect polar bears?"},
       arma::mat(n, n, arma::fill::eye)}};
  Projections p;
  p.key.weight = p.value.weight = arma::mat(n, n, arma::fill::eye);
  arma::mat query(n, n, arma::fill::zeros);
  for (std::size_t book = 0; book < question; ++book) {
    if (relevance[book] > 0)
      query(question, book) = std::log(relevance[book]);
    else
      m.mask.cells.push_back({question, book, false});  // the logarithm of nothing is −∞
  }
  m.mask.cells.push_back({question, question, false});  // the question is no book
  p.query.weight = query;
  m.projections = p;
  m.scale.rule = ScaleRule::none;
  return m;
}

Model causal_class() {
  Generator g(123);
  const Sequence words{attention::numbered_tokens(6), filled(g.normal(18), 6, 3)};
  Model m;
  m.sequences = {words, words};
  m.projections = drawn_projections(g, 3, 2);
  m.context_length = 6;
  return m;
}

Model masked_scores() {
  // One-hot tokens, queries that are the scores themselves and one-hot keys: QKᵀ is the drawn matrix to the
  // last bit.
  constexpr std::size_t n = 5;
  Generator g(123);
  Model m;
  m.sequences = {{attention::numbered_tokens(n), arma::mat(n, n, arma::fill::eye)}};
  Projections p;
  p.query.weight = filled(g.normal(n * n), n, n);
  p.key.weight = arma::mat(n, n, arma::fill::eye);
  p.value.weight = arma::mat(n, n, arma::fill::eye);
  m.projections = p;
  m.scale.rule = ScaleRule::none;
  return m;
}

Model ten_ones_dropped() {
  // One token that attends to itself with weight 1 in each of ten heads: the output is
  // nn.Dropout(0.5)(ones(10)).
  constexpr std::size_t n = 10;
  Model m;
  m.sequences = {{{"ones"}, arma::mat(1, n, arma::fill::ones)}};
  m.n_heads = n;
  m.dropout.rate = 0.5;
  m.dropout.seed = 123;
  return m;
}

Model your_journey_attention(bool causal, MaskMethod method, double dropout_rate) {
  Generator g(123);
  Model m;
  m.sequences = {your_journey()};
  m.projections = drawn_projections(g, 3, 2);
  m.mask.causal = causal;
  m.mask.method = method;
  m.dropout.rate = dropout_rate;
  m.dropout.seed = 123;
  return m;
}

}  // namespace core::editing::notebooks
