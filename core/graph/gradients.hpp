#pragma once

#include <array>
#include <functional>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/target.hpp"

/// Gradients: the derivatives of one number with respect to every other, as PyTorch's autograd computes them.
namespace core::graph {

/// Throws core::Error if the model does not have the stage or the head.
void require_stage(const Graph& graph, const Model& model, const Target& target);

/// Returns the cells of a target in a stage of that shape. Throws core::Error, one line with the range, if it
/// does not have them.
SourceRect cells_of(const Target& target, attention::StageShape shape);

/// Returns the name of a learned matrix in files of gradients: "query_weight"; nullptr for those without
/// gradients of their own: embeddings, which are a stage, and frequencies.
const char* gradient_name(MatrixName name);

/// Returns the matrices of a model that are learned, each score bias on its own; not embeddings and
/// frequencies.
std::vector<attention::MatrixRef> learned_matrices(const Model& model);

/// Gradients of a target: of every stage, as a trace of the sequence, and of the learned matrices. Zero where
/// the target does not depend on a number.
struct Gradients {
  double value = 0;  ///< of the target
  Trace stages;
  std::array<std::vector<mat>, attention::n_matrix_names> matrices = {};  ///< [nth of the name]

  /// Returns the gradient of a learned matrix, of embeddings that of the sequence; empty if it does not
  /// matter.
  const mat& of(attention::MatrixRef place) const;
};

/// Computes the gradients of a target in one sequence.
///
/// Overridden cells and given stages have a gradient but do not pass it on: nothing determines them. Heads
/// that share a KV head have the same gradient of its keys and values, the sum over all of them. Rounding
/// counts as the identity. NaN is as in PyTorch, where 0 · NaN is NaN. Throws core::Error, one line with what
/// is possible, if the model does not have the target, and Stopped.
Gradients gradients(const Graph& graph, const Model& model, std::size_t sequence, const Target& target,
                    const StopToken* progress = nullptr);

/// Returns the value of a target in one sequence; throws as gradients().
double value_of(const Graph& graph, const Model& model, std::size_t sequence, const Target& target);

/// Sees, and may change, the gradient of each stage once it is complete.
using VisitGradient = std::function<void(Stage stage, std::size_t nth, mat& gradient)>;

/// Computes the gradients of a number whose gradients with respect to a stage, [nth matrix], are known; its
/// value is not. The stages may be other numbers than those of the model, as rounded ones.
Gradients gradients_from(const Graph& graph, const Model& model, LazyStages& stages, std::size_t sequence,
                         Stage stage, std::vector<mat> of_stage, const VisitGradient& visit = {});

/// Another number in the explanation of a cell's gradient: one that is computed from the cell, or one that
/// the cell is computed from.
struct GradientTerm {
  explain::SourceCell cell;
  double gradient = 0;    ///< of the other number
  double derivative = 0;  ///< of the later one of the two with respect to the earlier one
};
/// Returns the numbers that are computed from a cell: its gradient is the sum of gradient · derivative, plus
/// 1 in the target itself, except where `explain::results` lacks a reader.
std::vector<GradientTerm> gradient_readers(const explain::Computation& of, const Gradients& all,
                                           const explain::CellAddress& cell);
/// Returns the numbers that a cell passes its gradient on to, those with the most first.
std::vector<GradientTerm> gradient_inputs(const explain::Computation& of, const Gradients& all,
                                          const explain::CellAddress& cell);

// Of the operations.

/// Gradients during the computation, by stage and by learned matrix, each [nth matrix]; empty where nothing
/// has been added.
struct GradientSums {
  std::array<std::vector<mat>, max_stages> stages = {};
  std::array<std::vector<mat>, attention::n_matrix_names> matrices = {};
};

/// Inputs of an operation, its result for one head of one sequence, and the gradient of that result.
struct OperationGradient {
  const OperationInputs& in;
  const mat& y;  ///< as computed, without overridden cells
  const mat& dy;
  GradientSums& sums;
  mutable mat unused = {};

  const mat& operator[](std::size_t k) const { return in[k]; }
  /// Returns the gradient of input k, of this head or of another one, to be added to.
  mat& of(std::size_t k) const { return of_head(k, in.head); }
  mat& of_head(std::size_t k, std::size_t other) const;
};

}  // namespace core::graph
