#include "core/editing/drawn.hpp"

namespace core::editing {

using attention::Linear;
using attention::Projections;
using attention::Sequence;

arma::mat filled(const std::vector<float>& numbers, std::size_t rows, std::size_t columns) {
  return arma::conv_to<arma::mat>::from(arma::fmat(numbers.data(), columns, rows)).t();
}

Linear drawn_linear(random::Generator& g, std::size_t d_in, std::size_t d_out, bool bias) {
  Linear linear;
  linear.weight = arma::mat(filled(g.linear_weight(d_in, d_out), d_out, d_in).t());
  if (bias) linear.bias = filled(g.linear_bias(d_in, d_out), 1, d_out);
  return linear;
}

Projections drawn_projections(random::Generator& g, std::size_t d_in, std::size_t d_out, bool bias,
                              LayerOrder order) {
  Projections p;
  const bool query_first = order == LayerOrder::query_key_value;
  (query_first ? p.query : p.key) = drawn_linear(g, d_in, d_out, bias);
  (query_first ? p.key : p.query) = drawn_linear(g, d_in, d_out, bias);
  p.value = drawn_linear(g, d_in, d_out, bias);
  return p;
}

std::vector<Sequence> drawn_batch(random::Generator& g, std::size_t n_sequences, std::size_t n_tokens,
                                  std::size_t d_model) {
  const arma::mat all = filled(g.normal(n_sequences * n_tokens * d_model), n_sequences * n_tokens, d_model);
  std::vector<Sequence> batch;
  for (std::size_t s = 0; s < n_sequences; ++s)
    batch.push_back(
        {attention::numbered_tokens(n_tokens), arma::mat(all.rows(s * n_tokens, (s + 1) * n_tokens - 1))});
  return batch;
}

Sequence your_journey() {
  const std::vector<float> features{0.43f, 0.15f, 0.89f, 0.55f, 0.87f, 0.66f, 0.57f, 0.85f, 0.64f,
                                    0.22f, 0.58f, 0.33f, 0.77f, 0.25f, 0.10f, 0.05f, 0.80f, 0.55f};
  return {{"Your", "journey", "starts", "with", "one", "step"}, filled(features, 6, 3)};
}

}  // namespace core::editing
