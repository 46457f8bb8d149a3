#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/visible.hpp"
#include "core/graph/words.hpp"

/// Derivation of a cell by each operation: its steps, line by line, and their titles.
namespace core::graph {
namespace {

using std::to_string;

std::string column_words(std::size_t j) {
  return ", column " + to_string(j);
}

std::string positions_words(const Cell& c) {
  return fmt::format("query at {}, key at {}", position_of_query(c.model, c.i),
                     position_of_key(c.model, c.j));
}

/// Writes a number copied from another place.
void copy(const Cell& c, Derivation& d, std::string formula, Label label = {}) {
  const Operand x = c.operand(0);
  d.begin(d.title(), std::move(formula));
  d.line(LineForm::single, x, {}, x.value);
  d.steps.back().lines.back().label = label;
}

void write_zero(Derivation& d, std::string title, std::string formula) {
  d.begin(std::move(title), std::move(formula));
  d.note("zero", 0);
}

}  // namespace

// By default a cell depends on all inputs, and continues the first one if a single cell of it enters.

bool Operation::uses(const Cell&, std::size_t k) const {
  return inputs[k].is_read();
}

std::optional<std::size_t> Operation::previous_operand(const Cell&) const {
  const Input& first = inputs[0];
  const bool is_one_cell = first.layout || std::string_view(first.cells).find(':') == std::string_view::npos;
  return is_one_cell ? std::optional<std::size_t>(0) : std::nullopt;
}

void Parameter::terms(const Cell& c, Derivation& d) const {
  d.begin(d.title(), (name == MatrixName::key_embeddings ? "m_" : "x_") + to_string(c.i) + column_words(c.j));
  d.note("given", c.trace.at(c.node.stage, c.head)(c.i, c.j));
}

void Copy::terms(const Cell& c, Derivation& d) const {
  if (c.is_internal(0)) return c.inner(0).derive(d);
  copy(c, d, cell_formula);
}

// Products.

void Product::write_products(const Cell& c, Derivation& d,
                             const std::function<Label(std::size_t)>& label) const {
  const Precision in_sums = sums.value_or(Precision::float64);
  std::vector<Operand> first = c.operands(0), second = c.operands(1);
  double sum = 0;
  for (std::size_t k = 0; k < first.size(); ++k) {
    Operand &a = first[k], &b = second[k];
    a.value = attention::rounded(factors, a.value), b.value = attention::rounded(factors, b.value);
    const double product = attention::rounded(in_sums, a.value * b.value);
    sum = attention::rounded(in_sums, sum + product);
    d.term(LineForm::product, a, b, product, label(k));
  }
  d.sum(sum);
}

void Project::terms(const Cell& c, Derivation& d) const {
  const std::string weight = inputs[1].symbol(), column = column_words(c.j);
  if (x_symbol.empty())
    d.begin("Projected", fmt::format("row {} · column {} of {}", c.i, c.j, weight));
  else
    d.begin(d.title(), fmt::format("{}{} · {}{}", x_symbol == "M" ? "m_" : "x_", c.i, weight, column));
  const Operation& of_x = *c.graph.find(*inputs[0].stage())->operation;
  write_products(c, d, [&](std::size_t k) { return of_x.label(c.model, k); });
  if (!has_bias()) return;
  const double sum = d.result();
  const Operand bias = c.operand(2);
  d.begin("Bias", inputs[2].symbol() + column);
  d.line(LineForm::addition, {sum, {}}, bias, sum + bias.value);
}

std::optional<std::size_t> Project::previous_operand(const Cell& c) const {
  const std::vector<Operand> x = c.operands(0), weight = c.operands(1);
  std::size_t best = 0;
  double largest = -1;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double term = std::abs(x[k].value * weight[k].value);
    if (term > largest) largest = term, best = k;
  }
  return best;
}

void DotProducts::terms(const Cell& c, Derivation& d) const {
  const std::string i = to_string(c.i), j = to_string(c.j);
  d.begin(d.title(),
          is_swapped ? "k_" + i + " · q_" + j + ", in each other's place" : "q_" + i + " · k_" + j);
  write_products(c, d, [](std::size_t) { return Label(); });
  if (const double sum = d.result(); pre_scale)
    d.line(LineForm::factor, {sum, {}}, {*pre_scale, {}}, sum * *pre_scale, "of scaled queries");
}

void WeightedSum::terms(const Cell& c, Derivation& d) const {
  d.begin(d.title(), (c.model.n_heads > 1 ? fmt::format("head {}{}", c.head, column_words(c.j))
                                          : "column " + to_string(c.j)) +
                         (c.model.dropout.active() ? ": dropped weights · values" : ": weights · values"));
  write_products(c, d, [](std::size_t k) { return Label{Label::token, k}; });
}

void UniformScores::terms(const Cell&, Derivation& d) const {
  write_zero(d, d.title(), "no query prefers any key");
}

// Heads.

void SplitHeads::terms(const Cell& c, Derivation& d) const {
  if (c.is_internal(0)) return c.inner(0).derive(d);
  const SourceCell from = c.cells(0).at(0);
  copy(c, d,
       fmt::format("{}{}{}: no projection", from.source == Source(Stage::key_embeddings) ? "m_" : "x_",
                   from.row, column_words(from.column)));
}

bool CombineHeads::uses(const Cell& c, std::size_t k) const {
  return !c.model.is_ablated(c.cells(k).head);
}

Label CombineHeads::label(const Model& m, std::size_t k) const {
  return inputs[0].layout == &contiguous ? Label{Label::head, k / m.d_value()} : Label{Label::column, k};
}

void CombineHeads::terms(const Cell& c, Derivation& d) const {
  const std::size_t head = c.cells(0).head;
  if (c.model.is_ablated(head)) return write_zero(d, d.title(), fmt::format("head {} is off", head));
  copy(c, d,
       inputs[0].layout == &interleaved  ? "heads interleaved"
       : inputs[0].layout != &contiguous ? formula(false, "")
       : n_heads > 1                     ? "the heads concatenated"
                                         : "one head",
       {Label::head, head});
}

// Queries and keys.

void Normalize::terms(const Cell& c, Derivation& d) const {
  std::vector<Operand> row = c.operands(0);
  const bool over_all = is_over_all_heads();
  std::vector<double> others;  // the same row in the other heads
  for (std::size_t h = 0, next = 0; over_all && h < c.model.n_heads; ++h) {
    if (nth_matrix(c.graph, c.node, h) != next) continue;
    ++next;
    if (nth_matrix(c.graph, c.node, h) == nth_matrix(c.graph, c.node, c.head)) continue;
    Cell other = c;
    other.head = h;
    for (const Operand& x : other.operands(0)) others.push_back(x.value);
  }
  const double n = static_cast<double>(row.size() + others.size());
  const std::string over_words = over_all ? " over all heads" : "";
  d.begin(d.title(), is_centered ? "(x − mean) ÷ deviation" + over_words + " · w"
                                 : "x ÷ √(mean of x²" + over_words + " + ε) · w");
  double mean = 0, squares = 0;
  for (std::size_t k = 0; is_centered && k < row.size(); ++k) mean += row[k].value / n;
  for (std::size_t k = 0; is_centered && k < others.size(); ++k) mean += others[k] / n;
  if (is_centered) d.note("mean of the row" + over_words, mean);
  for (std::size_t k = 0; k < row.size(); ++k) {
    Operand& x = row[k];
    x.value -= mean;
    squares += x.value * x.value;
    d.term(LineForm::product, x, x, x.value * x.value, {Label::column, k});
  }
  d.sum(squares);
  if (over_all) {
    double of_others = 0;
    for (const double x : others) of_others += (x - mean) * (x - mean);
    d.note("squares of the other heads", of_others);
    squares += of_others;
    d.note("squares of all heads", squares);
  }
  d.line(LineForm::division, {squares, {}}, {n, {}}, squares / n, "mean of the squares");
  const double root = std::sqrt(d.result() + epsilon);
  d.note("its square root, after + ε", root);
  const Operand own = row[c.j], factor = c.operand(1);
  d.line(LineForm::division, own, {root, {}}, own.value / root);
  d.line(LineForm::factor, {d.result(), {}}, factor, d.result() * factor.value);
}

std::size_t Rotate::column(const Model& m, std::size_t, std::size_t j) const {
  const auto pair = pair_of_column(rotary, j, m.d_head());
  if (!pair) return j;
  const auto [one, other] = pair_columns(rotary, *pair, m.d_head());
  return one + other - j;
}

bool Rotate::uses(const Cell& c, std::size_t k) const {
  return k == 0 || (k == 1 && column(c.model, c.i, c.j) != c.j);
}

void Rotate::terms(const Cell& c, Derivation& d) const {
  const std::size_t d_head = c.model.d_head(), other_column = column(c.model, c.i, c.j);
  const auto pair = pair_of_column(rotary, c.j, d_head);
  const std::int64_t position = first + offset + static_cast<std::int64_t>(c.i);
  if (c.is_internal(0)) {
    Derivation before{d.cell};
    c.inner(0).derive(before);
    d.begin(d.title(), before.steps[0].formula + ", rotated: an injected bug");
    d.note("projected", before.result());
    if (!pair) return d.note("not one of the rotated columns", before.result());
  } else if (!pair) {
    return copy(c, d, fmt::format("column {} is not rotated", c.j));
  } else {
    const auto [one, other] = pair_columns(rotary, *pair, d_head);
    d.begin(d.title(), fmt::format("columns {}, {} at position {}", one, other, position));
  }
  const Operand own = c.operand(0), other = c.operand(1);
  if (c.is_internal(0)) d.note("projected, column " + to_string(other_column), other.value);
  const double frequency = positions::frequencies(rotary, d_head)[*pair],
               at = scaled_position(rotary, static_cast<double>(position)), angle = at * frequency,
               by = positions::attention_factor(rotary), cosine = std::cos(angle) * by,
               sine = std::sin(angle) * by;
  if (rotary.scaling.rule == positions::ScalingRule::linear)
    d.line(LineForm::division, {static_cast<double>(position), {}}, {rotary.scaling.factor, {}}, at,
           "position, scaled");
  d.line(LineForm::factor, {at, {}}, {frequency, {}}, angle, "angle: position × frequency");
  const std::string times = by == 1 ? "" : " × attention factor " + text::number_text(by);
  d.note("its cosine" + times, cosine);
  d.note("its sine" + times, sine);
  const double signed_sine = pair_columns(rotary, *pair, d_head).first == c.j ? -sine : sine;
  d.term(LineForm::product, own, {cosine, {}}, own.value * cosine);
  d.term(LineForm::product, other, {signed_sine, {}}, other.value * signed_sine);
  d.sum(own.value * cosine + other.value * signed_sine);
}

// Scores.

void ScaleScores::terms(const Cell& c, Derivation& d) const {
  using attention::ScaleRule;
  const Operand score = c.operand(0);
  const bool by_model = rule == ScaleRule::inverse_sqrt_d_model;
  if (by_model || rule == ScaleRule::inverse_sqrt_d_head) {
    const double root = std::sqrt(static_cast<double>(width));
    d.begin(d.title(), fmt::format("÷ √d{}, d = {}", by_model ? " of the model" : "", width));
    return d.line(LineForm::division, score, {root, {}}, score.value / root);
  }
  d.begin(d.title(), formula(false, ""));
  if (rule == ScaleRule::factor)
    d.line(LineForm::factor, score, {factor, {}}, score.value * factor);
  else
    d.line(LineForm::single, score, {}, score.value * factor);
}

void Softcap::terms(const Cell& c, Derivation& d) const {
  const Operand score = c.operand(0);
  const double part = score.value / cap, bent = std::tanh(part);
  d.begin(d.title(), formula(false, ""));
  d.line(LineForm::division, score, {cap, {}}, part);
  d.note("tanh of it", bent);
  d.line(LineForm::factor, {cap, {}}, {bent, {}}, cap * bent);
}

void AlibiBias::terms(const Cell& c, Derivation& d) const {
  const double slope = slopes[c.head];
  const auto relative_position = position_of_query(c.model, c.i) - position_of_key(c.model, c.j);
  const double distance = static_cast<double>(std::abs(relative_position));
  d.begin(d.title(), positions_words(c));
  if (inputs.empty())
    d.note("slope of the head", slope);
  else
    d.line(LineForm::single, c.operand(0), {}, slope, "slope of the head");
  d.line(LineForm::factor, {-slope, {}}, {distance, {}}, -slope * distance, "−slope × distance");
}

std::size_t RelativeBias::column(const Model& m, std::size_t i, std::size_t j) const {
  return positions::relative_position_bucket(position_of_key(m, j) - position_of_query(m, i), relative);
}

void RelativeBias::terms(const Cell& c, Derivation& d) const {
  copy(c, d, fmt::format("bucket {}: {}", column(c.model, c.i, c.j), positions_words(c)));
}

void AddBiases::terms(const Cell& c, Derivation& d) const {
  d.begin(d.title(), "score " + formula(false, ""));
  Operand sum = c.operand(0);
  for (std::size_t k = 1; k < inputs.size(); ++k) {
    const Operand bias = c.operand(k);
    d.line(LineForm::addition, sum, bias, sum.value + bias.value);
    sum = {d.result(), {}};
  }
}

// The mask.

void AttentionMask::terms(const Cell& c, Derivation& d) const {
  const bool visible = attention::visibility(c.model, c.trace.sequence, c.i, c.j).visible;
  d.begin(d.title(), explain::visibility_formula(c.model, c.trace.sequence, c.i, c.j));
  d.note(visible ? "unmasked" : "masked", visible);
}

void MaskedFill::terms(const Cell& c, Derivation& d) const {
  const bool drops = c.is_internal(0);
  d.begin(drops ? "Dropped and masked" : d.title(),
          explain::visibility_formula(c.model, c.trace.sequence, c.i, c.j));
  const Operand score = c.operand(0, &d);
  if (drops) d.steps.back().lines.back().words = "score × dropout mask";
  if (c.operand(1).value != 0)
    return d.line(LineForm::words, score, {}, score.value, "unmasked, so unchanged");
  d.note("masked, so " + attention::fill_text(fill), fill);
}

// The softmax.

std::string Softmax::scope_text(const Cell& c) const {
  const std::string sink = has_sink() ? " and the sink" : "";
  if (c.model.mask.method != attention::MaskMethod::negative_infinity) return "over all keys" + sink;
  const arma::rowvec mask = c.trace.at(attention::Stage::mask).row(c.i);
  if (!arma::any(mask))
    return has_sink() ? "every key is masked: the sink takes all" : "every key is masked: 0/0";
  return (arma::all(mask) ? "over all keys" : "over the unmasked keys") + sink;
}

std::string SoftmaxOverQueries::scope_text(const Cell& c) const {
  return "over the queries of key " + to_string(c.j);
}

void Softmax::terms(const Cell& c, Derivation& d) const {
  d.begin("Softmax", c.is_internal(0) ? "of scores × dropout mask" : scope_text(c));
  const attention::Blocks in = key_blocks();
  const bool in_blocks = in.rule != attention::BlockRule::whole;
  std::vector<Operand> scores = c.operands(0, &d);
  arma::rowvec row(scores.size());
  for (std::size_t k = 0; k < scores.size(); ++k)
    row[k] = scores[k].value = attention::rounded(precision, scores[k].value);
  const bool is_empty = arma::all(row == -infinity);
  if (has_sink() && !in_blocks) row.insert_cols(row.n_cols, arma::rowvec{c.operand(1).value});
  const auto [largest_of_own, largest, last] = block_maxima(row, in);
  const bool adds_nothing = !is_empty || in_blocks || has_sink();  // a score of −∞; otherwise it gives NaN
  const std::size_t self = own(c);
  const Label::LabelKind kind = inputs[0].cells[0] == 'i' ? Label::token : Label::query;
  double sum = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    if (scores[k].value == -infinity && adds_nothing) continue;
    const double term = std::exp(scores[k].value - largest[k]);
    sum += term;
    if (largest[k] < infinity)  // otherwise the key is skipped
      d.term(LineForm::exponential, scores[k], {largest[k], {}}, term, {kind, k});
  }
  if (has_sink()) {
    const Operand sink = c.operand(1);
    const double term = std::exp(sink.value - last);
    sum += term;
    d.term(LineForm::exponential, sink, {last, {}}, term, {Label::sink});
  }
  d.sum(sum);
  const double score = scores[self].value,
               part = score == -infinity && adds_nothing ? 0 : std::exp(score - largest_of_own[self]);
  d.line(LineForm::division, {part, {}}, {sum, {}}, part / sum);
  const double nearest = attention::rounded(precision, d.result());
  if (nearest != d.result() && !std::isnan(nearest))
    d.note(std::string("rounded to ") + attention::name_of(precision), nearest);
}

void Multiply::terms(const Cell& c, Derivation& d) const {
  const Stage by = *inputs[1].stage();
  const Operand a = c.operand(0), b = c.operand(1);
  const bool is_score = attention::info(*inputs[0].stage()).line == 2;
  d.begin(by == Stage::mask ? "Zeroed" : "Weights after dropout",
          std::string(is_score ? "score" : "weight") + (by == Stage::mask ? " × mask" : " × dropout mask"));
  d.line(LineForm::factor, a, b, a.value * b.value);
}

void RowSum::terms(const Cell& c, Derivation& d) const {
  d.begin(d.title(), "Σ of row " + to_string(c.i));
  const std::vector<Operand> row = c.operands(0);
  double sum = 0;
  for (std::size_t k = 0; k < row.size(); ++k) {
    sum += row[k].value;
    d.term(LineForm::single, row[k], {}, row[k].value, {Label::token, k});
  }
  d.sum(sum);
}

void DivideByRowSum::terms(const Cell& c, Derivation& d) const {
  const Operand a = c.operand(0), b = c.operand(1);
  d.begin("Renormalised", "weight ÷ row sum");
  d.line(LineForm::division, a, b, a.value / b.value);
}

bool ZeroEmptyRows::is_empty(const Cell& c) const {
  const std::vector<Operand> scores = c.operands(1),
                             mask = reads_mask() ? c.operands(2) : std::vector<Operand>();
  for (std::size_t k = 0; k < scores.size(); ++k)
    if (scores[k].value != -infinity && (mask.empty() || mask[k].value != 0)) return false;
  return true;
}

bool ZeroEmptyRows::uses(const Cell& c, std::size_t k) const {
  return is_empty(c) ? k + 1 == inputs.size() : k == 0;
}

void ZeroEmptyRows::terms(const Cell& c, Derivation& d) const {
  if (!is_empty(c)) return c.inner(0).derive(d);
  write_zero(d, "Empty row",
             fmt::format("query {}{}: zeros, as chosen", c.i,
                         arma::any(c.trace.at(attention::Stage::mask).row(c.i)) ? " has no score above −∞"
                                                                                : " has no unmasked key"));
}

// Dropout.

void SampleKeepMask::terms(const Cell&, Derivation& d) const {
  d.begin("Drawn", "");
}

void DropoutFactors::terms(const Cell& c, Derivation& d) const {
  if (!dropout.active()) {
    d.begin(d.title(), dropout.training ? "dropout is disabled" : "off in evaluation");
    return d.note("nothing is dropped", 1);
  }
  d.begin(d.title(), dropout.rescale ? "0 or 1/(1 − p)" : "0 or 1: not rescaled");
  const std::string how = dropout.given.empty() ? "by seed " + to_string(dropout.seed) : "by the given mask";
  const bool is_kept = c.trace.at(c.node.stage, c.head)(c.i, c.j) != 0;
  d.note((is_kept ? "kept " : "dropped ") + how, is_kept);
  if (is_kept && dropout.rescale)
    d.line(LineForm::division, {1, {}}, {1 - dropout.rate, {}}, 1 / (1 - dropout.rate));
}

}  // namespace core::graph
