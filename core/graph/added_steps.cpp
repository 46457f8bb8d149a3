#include "core/graph/added_steps.hpp"

#include <cmath>
#include "core/graph/operations.hpp"

namespace core::explain {
namespace {

/// first·cos − second·sin, or second·cos + first·sin, of a cell's own number and the other one of its pair.
void write_rotation(const Work& w, Step& step, Operand own, Operand other) {
  graph::Graph g = graph::attention(w.model);
  const graph::Rotate& rotation = *g.get<graph::Rotate>(w.cell.stage);
  const positions::Rotary& rotary = rotation.rotary;
  const std::size_t d_head = w.model.d_head(), pair = *pair_of(rotary, w.cell.column, d_head);
  const auto all = positions::frequencies(rotary, d_head);
  const std::int64_t position = rotation.first + rotation.offset + static_cast<std::int64_t>(w.cell.row);
  const double at = scaled_position(rotary, static_cast<double>(position));
  if (rotary.scaling.rule == positions::ScalingRule::linear)
    add_line(step, line(Form::division, {static_cast<double>(position), {}}, {rotary.scaling.factor, {}}, at,
                        "position, scaled"));
  const double angle = at * all[pair], cosine = std::cos(angle), sine = std::sin(angle);
  const bool is_first = columns_of(rotary, pair, d_head).first == w.cell.column;
  add_line(step, line(Form::factor, {at, {}}, {all[pair], {}}, angle, "angle: position × frequency"));
  add_line(step, note("its cosine", cosine));
  add_line(step, note("its sine", sine));
  const double signed_sine = is_first ? -sine : sine;
  add_term(step, line(Form::product, own, {cosine, {}}, own.value * cosine), {});
  add_term(step, line(Form::product, other, {signed_sine, {}}, other.value * signed_sine), {});
  add_total(step, own.value * cosine + other.value * signed_sine);
}

/// A value as it is before the mistake turns it.
double value_before_turning(const Work& w, std::size_t column) {
  graph::Graph g = graph::attention(w.model);
  g.result = *g.find(Stage::values)->operation->inputs[0].stage();
  const auto stages = graph::evaluate(g, w.model, w.trace.sequence, std::vector{w.cell.row});
  const std::size_t nth = graph::nth_matrix(g, *g.find(g.result), w.cell.head);
  return stages[g.result][nth].at(stages.partial[graph::index(g.result)] ? 0 : w.cell.row, column);
}

}  // namespace

void write_capped(const Work& w, Step& step) {
  const Operand score = w.first();
  const double c = *w.model.additions.score_cap, part = score.value / c, bent = std::tanh(part);
  add_line(step, line(Form::division, score, {c, {}}, part));
  add_line(step, note("tanh of it", bent));
  add_line(step, line(Form::factor, {c, {}}, {bent, {}}, c * bent));
}

void write_sloped(const Work& w, Step& step) {
  const auto& [stage, head, row, column] = w.cell;
  const double slope = positions::slope_of(*w.model.additions.positions.alibi, head, w.model.n_heads);
  const auto apart = position_of_query(w.model, row) - position_of_key(w.model, column);
  const double distance = static_cast<double>(std::abs(apart));
  const auto own = w.cells(0);
  step.lines.push_back(own ? line(Form::single, w.operand(*own, 0), {}, slope, "slope of the head")
                           : note("slope of the head", slope));
  add_line(step, line(Form::factor, {-slope, {}}, {distance, {}}, -slope * distance, "−slope × distance"));
}

void write_biased(const Work& w, Step& step) {
  Operand sum = w.first();
  for (const std::size_t part : {std::size_t{1}, std::size_t{2}})
    if (const auto cells = w.cells(part)) {
      const Operand bias = w.operand(*cells, 0);
      add_line(step, line(Form::addition, sum, bias, sum.value + bias.value));
      sum = {step.result, {}};
    }
}

void write_normed(const Work& w, Step& step) {
  const attention::HeadNorm& norm = *w.model.additions.normalise;
  const Cells row = *w.cells(0);
  const double n = static_cast<double>(row.count());
  double mean = 0;
  for (std::size_t k = 0; k < row.count() && norm.rule == attention::NormRule::layer; ++k)
    mean += w.operand(row, k).value / n;
  if (norm.rule == attention::NormRule::layer) add_line(step, note("mean of the row", mean));
  double squares = 0;
  for (std::size_t k = 0; k < row.count(); ++k) {
    Operand x = w.operand(row, k);
    if (norm.rule == attention::NormRule::layer) x = {x.value - mean, x.place};
    squares += x.value * x.value;
    add_term(step, line(Form::product, x, x, x.value * x.value), {Label::column, k});
  }
  add_total(step, squares);
  add_line(step, line(Form::division, {squares, {}}, {n, {}}, squares / n, "mean of the squares"));
  const double root = std::sqrt(step.result + norm.epsilon);
  add_line(step, note("its root, after + ε", root));
  const Operand own = w.operand(row, w.cell.column), factor = w.second();
  const double centred = own.value - mean;
  add_line(step, line(Form::division, {centred, own.place}, {root, {}}, centred / root));
  add_line(step, line(Form::factor, {step.result, {}}, factor, step.result * factor.value));
}

void write_turned(const Work& w, Step& step) {
  write_rotation(w, step, w.first(), w.second());
}

void write_turned_product(const Work& w, Step& step) {
  const positions::Rotary& rotary = *w.model.additions.positions.rotary;
  const auto pair = pair_of(rotary, w.cell.column, w.model.d_head());
  const double own = value_before_turning(w, w.cell.column);
  add_line(step, note("projected", own));
  if (!pair) return add_line(step, note("not one of the columns that turn", own));
  const auto [first, second] = columns_of(rotary, *pair, w.model.d_head());
  const std::size_t partner = first + second - w.cell.column;
  const double other = value_before_turning(w, partner);
  add_line(step, note("projected, column " + std::to_string(partner), other));
  write_rotation(w, step, {own, {}}, {other, {}});
}

}  // namespace core::explain
