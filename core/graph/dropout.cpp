#include "core/graph/dropout.hpp"

namespace core::attention {
namespace {

std::vector<arma::mat> drawn(const Model& model, std::size_t sequence) {
  const std::size_t n_queries = model.n_tokens(), n_keys = model.n_keys(),
                    per_sequence = model.n_heads * n_queries * n_keys;
  random::Generator generator(model.dropout.seed);
  const std::size_t draws = (sequence + 1) * per_sequence;  // earlier sequences take their numbers first
  const random::Bits survivors = kept(generator, model.dropout, draws);
  std::vector<arma::mat> masks;
  for (std::size_t h = 0; h < model.n_heads; ++h)
    masks.push_back(mask_of(survivors, sequence * per_sequence + h * n_queries * n_keys, n_queries, n_keys,
                            model.dropout));
  return masks;
}

}  // namespace

arma::mat mask_of(const random::Bits& kept, std::size_t first, std::size_t n_rows, std::size_t n_columns,
                  const Dropout& dropout) {
  const double factor = survivor_factor(dropout);
  arma::mat mask(n_rows, n_columns);
  for (std::size_t i = 0; i < n_rows; ++i)
    for (std::size_t j = 0; j < n_columns; ++j) mask(i, j) = kept[first++] ? factor : 0;
  return mask;
}

random::Bits kept(random::Generator& generator, const Dropout& dropout, std::size_t n) {
  return dropout.stream == DropoutStream::mkl ? generator.dropout_kept_mkl(n, dropout.rate)
                                              : generator.dropout_kept(n, dropout.rate);
}

std::vector<arma::mat> drawn_dropout_masks(const Model& model, std::size_t sequence) {
  if (!model.dropout.active())
    return std::vector<arma::mat>(model.n_heads, arma::ones(model.n_tokens(), model.n_keys()));
  if (model.dropout.given.empty()) return drawn(model, sequence);
  std::vector<arma::mat> masks;
  for (std::size_t h = 0; h < model.n_heads; ++h)
    masks.push_back(*model.dropout.given[sequence * model.n_heads + h] * survivor_factor(model.dropout));
  return masks;
}

}  // namespace core::attention
