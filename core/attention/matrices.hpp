#pragma once

#include <array>

#include "core/attention/model.hpp"

/// The matrices that a model is made of, by name.
namespace core::attention {

/// One of the four projections.
enum class Part { query, key, value, output };
inline constexpr std::array all_parts{Part::query, Part::key, Part::value, Part::output};

/// "query": as files name it.
const char* name_of(Part part);

/// That projection, or nullptr when the model has none.
const Linear* find_linear(const Model& model, Part part);
Linear* find_linear(Model& model, Part part);

/// The embeddings, then the weights and the biases of the projections in the order of Part.
enum class MatrixName {
  embeddings,
  query_weight,
  key_weight,
  value_weight,
  output_weight,
  query_bias,
  key_bias,
  value_bias,
  output_bias
};

constexpr bool is_bias(MatrixName name) {
  return name >= MatrixName::query_bias;
}

/// The projection that a weight or a bias belongs to.
Part part_of(MatrixName name);

/// "X", "W_q", "b_o": in the field's notation.
const char* symbol(MatrixName name);

/// One matrix; the sequence counts for embeddings only.
struct MatrixPlace {
  MatrixName name = MatrixName::embeddings;
  std::size_t sequence = 0;
  friend bool operator==(const MatrixPlace&, const MatrixPlace&) = default;
};

/// The matrix at a place, or nullptr when the model has none there.
const SharedMatrix* find_matrix(const Model& model, MatrixPlace place);

}  // namespace core::attention
