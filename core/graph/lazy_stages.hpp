#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/graph/graph.hpp"

namespace core::graph {

/// Work of computing stages, the same on every machine: numbers, 100 for each matrix, and products / 16.
struct Work {
  double cells = 0;
};

/// Stages of a graph, computed when they are read: each matrix of each sequence for itself, whole or only the
/// selected rows. Overrides of the model are read as they are.
class LazyStages {
 public:
  /// Both must outlive this.
  LazyStages(const Graph& graph, const Model& model, RowSelection rows = {});
  /// Reads from `base` every stage that the edits of its graph leave as it is; base must outlive this.
  LazyStages(const Graph& edited, const Model& model, LazyStages& base);

  /// Sets a stage that is then not computed: [sequence · n + k], which must outlive this.
  void give(Stage stage, const std::vector<SharedMatrix>& matrices);
  /// Sets one computed matrix, which may differ from that of the base.
  void put(Stage stage, std::size_t sequence, std::size_t nth, SharedMatrix matrix);
  /// Counts what is computed from now on, here and where this is the base.
  void count_in(Work& work) { work_ = &work; }

  const Node* find(Stage stage) const { return nodes_[index(stage)]; }
  bool is_given(Stage stage) const { return given_[index(stage)]; }
  /// Returns whether edits left a stage as it is in the base.
  bool is_unchanged(Stage stage) const { return same_[index(stage)].has_value(); }
  std::size_t n_matrices(Stage stage) const { return graph::n_matrices(*find(stage), model_); }

  /// Returns the nth matrix of a stage that exists, see existing_nodes(): all of it, or the selected rows.
  const SharedMatrix& matrix(Stage stage, std::size_t sequence, std::size_t nth, bool by_rows = false);
  /// Returns some columns of a matrix, nothing if it lacks one; of a projection, only these are computed.
  mat columns(Stage stage, std::size_t sequence, std::size_t nth, bool by_rows, const arma::uvec& which);

 private:
  using Matrices = std::array<std::vector<std::optional<SharedMatrix>>, max_stages>;

  /// Returns a whole matrix if it has been computed here, or nullptr.
  const SharedMatrix* computed(Stage stage, std::size_t sequence, std::size_t nth) const;
  SharedMatrix compute(Stage stage, std::size_t sequence, std::size_t nth, bool by_rows);
  /// Counts and rounds the numbers that an operation has computed.
  mat finished(const Node& node, const OperationInputs& inputs, mat numbers);

  const Graph& graph_;
  const Model& model_;
  RowSelection rows_;
  LazyStages* base_ = nullptr;
  Work* work_ = nullptr;
  std::array<const Node*, max_stages> nodes_{};
  std::array<const std::vector<SharedMatrix>*, max_stages> given_{};
  std::array<std::optional<Stage>, max_stages> same_{};  ///< the same stage in the base
  Matrices whole_, some_;
};

}  // namespace core::graph
