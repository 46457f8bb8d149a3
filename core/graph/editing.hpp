#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/graph/matrices.hpp"
#include "core/graph/number_words.hpp"
#include "core/graph/variants.hpp"

namespace core::graph {

using attention::ProjectionName;

/// Steps from the scores to the input of the softmax, in the usual order.
inline constexpr std::array score_step_stages{Stage::scaled_scores, Stage::capped_scores,
                                              Stage::biased_scores, Stage::masked_scores};
inline constexpr std::array projected_stages{Stage::queries, Stage::keys, Stage::values, Stage::output};

/// Returns the hidden stage in which the heads of a part are projected together, or the output.
Stage linear_stage(ProjectionName part);
/// Return the stages of queries, or else of keys, after the norm and after the rotation.
Stage normed_stage(ProjectionName part);
Stage rotated_stage(ProjectionName part);

/// A graph that is being edited. Copies are cheap: they share all that neither of them has edited.
///
/// Sizes are read from the graph's model, so that an edit fits models of any length. An edit does nothing if
/// an earlier one has removed what it changes.
class Editing {
 public:
  explicit Editing(std::shared_ptr<const Model> model, Precision precision_of_numbers = Precision::float64);
  /// Edits a graph of a model, which must outlive this, that is shown: what is left out vanishes from it.
  Editing(Graph shown, const Model& model);

  Graph graph;
  NumberWords words;  ///< of numbers in this model

  const Model& model() const { return *model_; }
  /// Replaces the model, and makes its graph anew; only before other edits.
  void rebuild(Model model);

  const Node* find(Stage stage) const { return graph.find(stage); }
  template <class OperationType>
  const OperationType* get(Stage stage) const {
    return graph.get<OperationType>(stage);
  }
  /// Changes the operation of a type that makes a stage, alone or wrapped; returns whether there is one.
  template <class OperationType, class Change>
  bool change(Stage stage, Change change) {
    auto* operation = graph.get<OperationType>(stage);
    if (operation) change(*operation);
    return operation;
  }

  /// Changes every operation of a type for which has(operation) holds.
  template <class OperationType, class Has, class Change>
  void change_all(Has has, Change change) {
    for (Node& node : graph.nodes) {
      const auto* own = dynamic_cast<const OperationType*>(node.operation.get());
      if (own && has(*own)) change(dynamic_cast<OperationType&>(node.operation.edit()));
    }
  }

  // The learned matrices of a projection as they are now, empty if there is none.
  bool has_projection(ProjectionName part) const { return linear(part); }
  mat weight(ProjectionName part) const;
  /// Returns whether it has the weight of the model, and not that of another one.
  bool has_own_weight(ProjectionName part) const;
  mat bias(ProjectionName part) const;
  void set_weight(ProjectionName part, mat weight);
  /// Sets a bias, or leaves it out if it is empty.
  void set_bias(ProjectionName part, mat bias);

  /// Returns the softmax that makes the weights, also before they are masked, or nullptr.
  const Softmax* softmax() const;

  // Change operations that have variants, first into these.
  void change_norm(ProjectionName part, const std::function<void(NormVariant&)>& change);
  void change_rotation(ProjectionName part, const std::function<void(RotationVariant&)>& change);
  /// Returns a rotation as it is now, nothing where there is none.
  std::optional<RotationVariant> rotation(ProjectionName part) const;
  void change_softmax(const std::function<void(SoftmaxVariant&)>& change);
  void change_mask(const std::function<void(attention::Mask&)>& change);
  /// Masks what a further condition masks, see MaskVariant.
  void mask_also(std::function<bool(std::int64_t query, std::int64_t key, std::int64_t first)> condition);

  /// Computes a stage by a function of other stages.
  void compute(Stage stage, std::vector<Input> from, StageFunction::Function function);
  /// Wraps a stage in a function of it (input 0) and of others; `cells` as in Input, "::" if it reads other
  /// rows of it.
  void wrap(Stage stage, StageFunction::Function function, std::vector<Input> others = {},
            const char* cells = "ij");
  /// Wraps a stage in a function of each number, or multiplies it.
  void map(Stage stage, std::function<double(double)> function);
  void scale(Stage stage, double factor);
  /// Inserts a step after a stage: the stage stays as it is, its readers read the result.
  template <class NewOperation>
  void insert_after(Stage stage, NewOperation step) {
    const Node* node = graph.find(stage);
    if (!node) return;
    const Stage next = graph.next_internal();
    step.inputs[0].source = stage;
    Node added{next, node->heads, node->has_key_rows, SharedOperation(std::move(step))};
    graph.redirect_readers(stage, next);
    graph.nodes.push_back(std::move(added));
    graph.sort();
  }
  /// Leaves a step out; its stage becomes a copy of its input, which may have been observed under its name.
  void leave_out(Stage stage);
  /// Lets each head of a stage be another: [head]: matrix.
  void reorder_heads(Stage stage, std::vector<std::size_t> order);
  /// Reports a function of stages under the name of a stage that stays as it is.
  void report(Stage stage, NodeHeads heads, std::vector<Input> from, StageFunction::Function function);
  /// Returns the stage that is reported under the name of a stage.
  Stage reported(Stage stage) const;

  /// Returns the steps of the scores that the graph has, in its order.
  std::vector<Stage> score_steps() const;
  /// Puts the steps of the scores into an order; their names are then ambiguous.
  void order_scores(std::span<const Stage> steps);
  bool has_reordered_scores() const { return has_reordered_scores_; }

 private:
  const Project* linear(ProjectionName part) const;
  Project* linear(ProjectionName part);
  mat matrix_of(const Input& input) const;

  std::shared_ptr<const Model> model_;
  bool is_shown_ = false;
  std::vector<std::pair<Stage, Stage>> reported_;
  bool has_reordered_scores_ = false;
};

}  // namespace core::graph
