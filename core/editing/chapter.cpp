#include "core/editing/chapter.hpp"

#include "core/editing/drawn.hpp"

namespace core::editing::chapter {

using attention::Linear;
using attention::Model;
using attention::Projections;
using random::Generator;

namespace {

Model sentence(std::size_t n_sequences) {
  Model m;
  m.sequences.assign(n_sequences, your_journey());
  m.context_length = m.n_tokens();
  return m;
}

Linear side_by_side(const Linear& left, const Linear& right) {
  return {arma::mat(arma::join_rows(*left.weight, *right.weight)), std::nullopt};
}

Model with_output_projection(std::size_t n_sequences, std::size_t d_out) {
  Model m = sentence(n_sequences);
  Generator g(123);
  m.projections = drawn_projections(g, 3, d_out);
  m.projections->output = drawn_linear(g, d_out, d_out, true);
  m.n_heads = 2;
  return m;
}

}  // namespace

Model causal_class() {
  Model m = sentence(2);
  Generator g(123);
  m.projections = drawn_projections(g, 3, 2);
  return m;
}

Model two_heads() {
  Model m = sentence(2);
  Generator g(123);
  const Projections first = drawn_projections(g, 3, 2), second = drawn_projections(g, 3, 2);
  m.projections = Projections{side_by_side(first.query, second.query), side_by_side(first.key, second.key),
                              side_by_side(first.value, second.value), std::nullopt};
  m.n_heads = 2;
  return m;
}

Model multi_head() {
  return with_output_projection(2, 2);
}

Model dropped_weights() {
  Model m = sentence(1);
  Generator g(789);
  m.projections = drawn_projections(g, 3, 2);
  m.dropout.rate = 0.5;
  m.dropout.seed = 123;
  return m;
}

Model wider_multi_head() {
  Model m = with_output_projection(1, 4);
  m.context_length.reset();
  return m;
}

}  // namespace core::editing::chapter
