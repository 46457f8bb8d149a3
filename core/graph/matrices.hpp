#pragma once

#include <array>
#include <string>

#include "core/graph/model.hpp"

/// Matrices of a model, by name.
namespace core::attention {

/// One of the four projections.
enum class ProjectionName { query, key, value, output };
inline constexpr std::array all_parts{ProjectionName::query, ProjectionName::key, ProjectionName::value,
                                      ProjectionName::output};

/// Returns the name as in files: "query".
const char* name_of(ProjectionName part);

/// Returns that projection, or nullptr if the model has none.
const Linear* find_linear(const Model& model, ProjectionName part);
Linear* find_linear(Model& model, ProjectionName part);

/// Embeddings, weights and biases of the projections in the order of Part, then the additions.
enum class MatrixName {
  embeddings,
  key_embeddings,
  query_weight,
  key_weight,
  value_weight,
  output_weight,
  query_bias,
  key_bias,
  value_bias,
  output_bias,
  query_norm,
  key_norm,
  frequencies,    ///< of RoPE
  slopes,         ///< of ALiBi
  relative_bias,  ///< [head][bucket]
  score_bias,
  sink
};
inline constexpr std::size_t n_matrix_names = static_cast<std::size_t>(MatrixName::sink) + 1;

constexpr bool is_weight(MatrixName name) {
  return name >= MatrixName::query_weight && name <= MatrixName::output_weight;
}
constexpr bool is_bias(MatrixName name) {
  return name >= MatrixName::query_bias && name <= MatrixName::output_bias;
}
constexpr bool has_one_row(MatrixName name) {
  return name >= MatrixName::query_bias && name != MatrixName::relative_bias &&
         name != MatrixName::score_bias;
}

/// Returns the projection that a weight or bias belongs to.
ProjectionName part_of(MatrixName name);

/// Returns the path in the session file: "projections.key.weight".
std::string path_of(MatrixName name);

/// Returns the symbol in the field's notation: "X", "W_q", "b_o", "sink".
const char* symbol(MatrixName name);

/// One matrix, the nth if there are several of that name: embeddings of a sequence, attention bias of a head.
struct MatrixRef {
  MatrixName name = MatrixName::embeddings;
  std::size_t nth = 0;
  friend bool operator==(const MatrixRef&, const MatrixRef&) = default;
};

/// Returns the matrix at a place, or nullptr if the model has none there.
const SharedMatrix* find_matrix(const Model& model, MatrixRef place);
SharedMatrix* find_matrix(Model& model, MatrixRef place);

/// Returns the place of the matrix of that name for a sequence and a head.
MatrixRef matrix_ref(const Model& model, MatrixName name, std::size_t sequence, std::size_t head);

}  // namespace core::attention
