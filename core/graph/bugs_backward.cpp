#include "core/graph/bugs_backward.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <typeinfo>
#include <utility>

#include "core/graph/gradients.hpp"

/// Bugs of a backward: the stages are right, their gradients are not. They are only found.
namespace core::bugs {
namespace {

using arma::mat;
using arma::vec;
using graph::DotProducts;
using graph::MaskedFill;
using graph::Multiply;
using graph::OperationGradient;
using graph::Rotate;
using graph::Softmax;
using graph::WeightedSum;

template <class Right>
using Backward = std::function<void(const Right&, const OperationGradient&)>;

/// An operation with another backward.
template <class Right>
struct WithBackward : Right {
  Backward<Right> other;
  WithBackward(const Right& right, Backward<Right> instead) : Right(right), other(std::move(instead)) {}
  void backward(const OperationGradient& gradient) const override { other(*this, gradient); }
};

/// Changes the backward of all operations of that type, or of the one that makes a stage.
template <class Right>
void set_backward(Editing& e, Backward<Right> backward, std::optional<Stage> of = {}) {
  for (graph::Node& node : e.graph.nodes)
    if (const graph::Operation& old = *node.operation;
        typeid(old) == typeid(Right) && node.stage == of.value_or(node.stage))
      node.operation = graph::SharedOperation(WithBackward<Right>(static_cast<const Right&>(old), backward));
}

/// What the right backward adds to the gradients of the inputs.
template <class Right>
class Added {
 public:
  Added(const Right& right, const OperationGradient& g) : gradient_{g.in, g.y, g.dy, sums_} {
    right.Right::backward(gradient_);
  }
  const mat& of(std::size_t k) const { return gradient_.of(k); }

 private:
  graph::GradientSums sums_;
  OperationGradient gradient_;
};

/// Returns a stage of the head whose gradient is passed on.
const mat& stage_of(const OperationGradient& g, Stage stage) {
  return *g.in.stages.matrix(stage, g.in.sequence, g.in.head);
}

// The softmax.

/// Changes D, the row sum of dP ⊙ P that a softmax subtracts.
template <vec (*delta)(const OperationGradient&)>
void change_delta(Editing& e, const BugCase&, ProjectionName) {
  set_backward<Softmax>(e, [](const Softmax& right, const OperationGradient& g) {
    mat dx = g.dy;
    dx.each_col() -= delta(g);
    g.of(0) += dx % g.y;
    if (right.inputs.size() > 1) g.of(1) += Added(right, g).of(1);
  });
}
vec no_delta(const OperationGradient& g) {
  return vec(g.dy.n_rows, arma::fill::zeros);
}
vec undropped_delta(const OperationGradient& g) {
  const auto& of_dropped = g.sums.stages[graph::index(Stage::dropped_weights)];
  return vec(arma::sum((of_dropped.empty() ? g.dy : of_dropped[g.in.head]) % g.y, 1));
}

/// Returns exp(score − log of the row's sum) of scores that are not masked; the sum is right.
mat unmasked_weights(const OperationGradient& g) {
  const mat &weights = stage_of(g, Stage::weights), &masked = stage_of(g, Stage::masked_scores);
  mat unmasked = stage_of(g, *g.in.graph.get<MaskedFill>(Stage::masked_scores)->inputs[0].stage());
  for (std::size_t i = 0; i < weights.n_rows; ++i) {
    const std::size_t j = weights.row(i).index_max();
    unmasked.row(i) = arma::exp(unmasked.row(i) - masked(i, j) + std::log(weights(i, j)));
  }
  return unmasked;
}
void forget_mask(Editing& e, const BugCase&, ProjectionName) {
  const auto* softmax = e.softmax();
  if (!e.get<MaskedFill>(Stage::masked_scores) || !softmax ||
      softmax->inputs[0].source != graph::Source(Stage::masked_scores))
    return;
  set_backward<MaskedFill>(e, [](const MaskedFill&, const OperationGradient& g) { g.of(0) += g.dy; });
  set_backward<Softmax>(e, [](const Softmax& right, const OperationGradient& g) {
    const mat weights = unmasked_weights(g);
    right.Softmax::backward({g.in, weights, g.dy, g.sums});
  });
  set_backward<WeightedSum>(e, [](const WeightedSum& right, const OperationGradient& g) {
    mat weights = unmasked_weights(g);
    if (const auto* dropout = g.in.graph.get<Multiply>(Stage::dropped_weights))
      weights %= stage_of(g, *dropout->inputs[1].stage());
    g.of(0) += Added(right, g).of(0);
    g.of(1) += weights.t() * g.dy;
  });
}

// Dropout.

/// Replaces the factors by which the gradient of the weights is multiplied.
template <double (*factor)(double right, double keep)>
void change_dropout(Editing& e, const BugCase&, ProjectionName) {
  if (!e.get<Multiply>(Stage::dropped_weights)) return;
  set_backward<Multiply>(e, [keep = 1 - e.model().dropout.rate](const Multiply&, const OperationGradient& g) {
    mat factors = g[1];
    factors.transform([keep](double right) { return factor(right, keep); });
    g.of(0) += g.dy % factors;
  });
}
double without_scale(double right, double keep) {
  return right * keep;
}
double undropped(double, double) {
  return 1;
}
void sum_undropped(Editing& e, const BugCase&, ProjectionName) {
  if (!e.get<Multiply>(Stage::dropped_weights)) return;
  set_backward<WeightedSum>(e, [](const WeightedSum& right, const OperationGradient& g) {
    g.of(0) += Added(right, g).of(0);
    g.of(1) += stage_of(g, Stage::weights).t() * g.dy;
  });
}

// Scores.

void forget_softcap(Editing& e, const BugCase&, ProjectionName) {
  set_backward<graph::Softcap>(e, [](const graph::Softcap&, const OperationGradient& g) { g.of(0) += g.dy; });
}
/// Multiplies the gradients of queries and keys by powers of the scale.
template <int of_queries, int of_keys>
void scale_gradients(Editing& e, const BugCase&, ProjectionName) {
  const auto* scale = e.get<graph::ScaleScores>(Stage::scaled_scores);
  if (!scale) return;
  set_backward<DotProducts>(e, [by = scale->factor](const DotProducts& right, const OperationGradient& g) {
    const Added added(right, g);
    g.of(0) += added.of(0) * std::pow(by, of_queries);
    g.of(1) += added.of(1) * std::pow(by, of_keys);
  });
}
void forget_transpose(Editing& e, const BugCase&, ProjectionName) {
  if (!are_scores_square(e)) return;
  set_backward<DotProducts>(e, [](const DotProducts& right, const OperationGradient& g) {
    g.of(0) += Added(right, g).of(0);
    g.of(1) += g.dy * g[0] * right.pre_scale.value_or(1);
  });
}
void swap_gradients(Editing& e, const BugCase&, ProjectionName) {
  if (!are_scores_square(e)) return;
  set_backward<DotProducts>(e, [](const DotProducts& right, const OperationGradient& g) {
    const Added added(right, g);
    g.of(0) += added.of(1);
    g.of(1) += added.of(0);
  });
}

// Positions.

/// Rotates the gradient of queries or keys as these, or not at all.
template <bool is_forward>
void rotate_gradients(Editing& e, const BugCase&, ProjectionName part) {
  set_backward<Rotate>(
      e,
      [](const Rotate& right, const OperationGradient& g) {
        g.of(0) += is_forward ? positions::rotate(g.dy, right.first + right.offset, right.rotary) : g.dy;
      },
      graph::rotated_stage(part));
}

// Heads that share keys and values.

/// KV head that gets what a head adds, and which part of it.
struct KvShare {
  std::size_t kv_head;
  double part;
};
using KvShareRule = KvShare (*)(std::size_t head, std::size_t n_kv, std::size_t group);

template <class Right>
void change_shares(Editing& e, KvShareRule rule) {
  set_backward<Right>(e, [rule](const Right& right, const OperationGradient& g) {
    const Added added(right, g);
    const std::size_t n_kv = g.in.model.kv_heads(), group = g.in.model.n_heads / n_kv;
    const auto [kv_head, part] = rule(g.in.head, n_kv, group);
    g.of(0) += added.of(0);
    g.of_head(1, kv_head * group) += added.of(1) * part;
  });
}
template <KvShareRule rule>
void change_groups(Editing& e, const BugCase&, ProjectionName) {
  if (e.model().kv_heads() == e.model().n_heads) return;
  change_shares<DotProducts>(e, rule);
  change_shares<WeightedSum>(e, rule);
}
KvShare of_last_head(std::size_t head, std::size_t, std::size_t group) {
  return {head / group, head % group + 1 == group ? 1.0 : 0.0};
}
KvShare mean_of_heads(std::size_t head, std::size_t, std::size_t group) {
  return {head / group, 1 / static_cast<double>(group)};
}
KvShare of_tiled_heads(std::size_t head, std::size_t n_kv, std::size_t) {
  return {head % n_kv, 1};
}

Bug backward_row(const char* name, const char* about, const char* fix, decltype(Bug::edit) edit,
                 const char* sides = "") {
  return {.name = name, .texts = {.about = about, .fix = fix}, .edit = edit, .default_sides = sides};
}

constexpr const char *rotate_back = "Rotate the gradient by minus the angle.",
                     *scale_once = "Multiply dQ and dK by the scale, each once.",
                     *sum_group = "Sum the gradients of all heads of a group, which are neighbors.",
                     *drop_gradient = "Multiply dP by the dropout mask and by 1/(1 − p).";

const std::array backward_rows{
    backward_row("backward_unmasked", "The backward recomputes the weights without the mask.",
                 "Mask the scores before exp(scores − logsumexp).", forget_mask),
    backward_row("backward_dropout_unscaled",
                 "The gradient of the weights passes the dropout mask without 1/(1 − p).", drop_gradient,
                 change_dropout<without_scale>),
    backward_row("backward_dropout_missing", "The gradient of the weights does not pass the dropout mask.",
                 drop_gradient, change_dropout<undropped>),
    backward_row("backward_values_undropped", "dV is computed from the weights before dropout.",
                 "Compute dV from the weights after dropout.", sum_undropped),
    backward_row("backward_delta_undropped",
                 "D, the row sum of dP ⊙ P, is computed from dP before the dropout mask.",
                 "Apply the dropout mask to dP first, or compute D as the row sum of dO ⊙ O.",
                 change_delta<undropped_delta>),
    backward_row("backward_delta_missing", "D, the row sum of dP ⊙ P, is not subtracted: dS is P ⊙ dP.",
                 "dS = P ⊙ (dP − D).", change_delta<no_delta>),
    backward_row("backward_softcap_missing", "The gradient does not pass the derivative of the softcap.",
                 "Multiply by 1 − (capped / cap)².", forget_softcap),
    backward_row("backward_scale_missing", "The scale is missing in dQ and dK.", scale_once,
                 scale_gradients<-1, -1>),
    backward_row("backward_scale_twice", "The scale is applied twice in dQ and dK.", scale_once,
                 scale_gradients<1, 1>),
    backward_row("backward_scale_missing_in_queries", "The scale is missing in dQ.", scale_once,
                 scale_gradients<-1, 0>),
    backward_row("backward_scale_missing_in_keys", "The scale is missing in dK.", scale_once,
                 scale_gradients<0, -1>),
    backward_row("backward_untransposed", "dK is dS·Q, without the transpose.", "dK = dSᵀ·Q.",
                 forget_transpose),
    backward_row("backward_swapped", "dQ and dK are swapped.", "dQ = dS·K, dK = dSᵀ·Q.", swap_gradients),
    backward_row("backward_rotated_forward", "dQ and dK are rotated forward, as queries and keys are.",
                 rotate_back, rotate_gradients<true>, "qk"),
    backward_row("backward_rotated_forward:queries", "dQ is rotated forward, as queries are.", rotate_back,
                 rotate_gradients<true>, "q"),
    backward_row("backward_rotated_forward:keys", "dK is rotated forward, as keys are.", rotate_back,
                 rotate_gradients<true>, "k"),
    backward_row("backward_rotation_missing", "dQ and dK are not rotated back.", rotate_back,
                 rotate_gradients<false>, "qk"),
    backward_row("backward_rotation_missing:queries", "dQ is not rotated back.", rotate_back,
                 rotate_gradients<false>, "q"),
    backward_row("backward_rotation_missing:keys", "dK is not rotated back.", rotate_back,
                 rotate_gradients<false>, "k"),
    backward_row("backward_last_head",
                 "dK and dV of a KV head are those of the last head of its group alone.", sum_group,
                 change_groups<of_last_head>),
    backward_row("backward_mean_of_heads", "dK and dV of a KV head are the mean over the heads of its group.",
                 sum_group, change_groups<mean_of_heads>),
    backward_row("backward_groups_tiled", "dK and dV are summed over heads h, h + n, …, with n KV heads.",
                 sum_group, change_groups<of_tiled_heads>),
};

}  // namespace

std::span<const Bug> backward_bugs() {
  return backward_rows;
}

}  // namespace core::bugs
