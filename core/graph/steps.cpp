#include "core/graph/steps.hpp"

#include <algorithm>
#include <cmath>

#include "core/graph/added_steps.hpp"
#include "core/graph/explain_rules.hpp"
#include "core/graph/formulas.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/reach.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/visible.hpp"
#include "core/graph/work.hpp"

namespace core::explain {
namespace {

bool is_over_keys(const Model& m) {
  return m.departures.softmax_over == attention::SoftmaxOver::keys;
}
bool is_in_blocks(const Model& m) {
  return is_over_keys(m) && m.departures.blocks.rule != attention::BlockRule::whole;
}

void write_given(const Work& w, Step& step) {
  const auto& c = w.cell;
  switch (c.stage) {
    case Stage::embeddings: {
      const arma::mat& x = w.model.sequences[w.trace.sequence].embeddings;
      return add_line(step, note("given", x(c.row, c.column)));
    }
    case Stage::key_embeddings: {
      const arma::mat& x = w.model.sequences[w.trace.sequence].key_embeddings;
      return add_line(step, note("given", x(c.row, c.column)));
    }
    case Stage::mask: {
      const bool visible = attention::sight(w.model, w.trace.sequence, c.row, c.column).visible;
      return add_line(step, note(visible ? "visible" : "hidden", visible));
    }
    default:
      break;
  }
  const auto* stage = w.model.given.find(c.stage);
  if (const auto* typed = w.model.given.find(given_place(w.model, w.trace.sequence, c)))
    return add_line(step, note("typed over", typed->value));
  if (stage)
    return add_line(step, note("given", attention::info(c.stage).matrix(w.trace, c.head)(c.row, c.column)));
  const auto& dropout = w.model.dropout;
  if (!dropout.active()) return add_line(step, note("nothing is dropped", 1));
  const std::string how =
      dropout.given.empty() ? "by seed " + std::to_string(dropout.seed) : "by the given mask";
  if (w.trace.heads[c.head].dropout_mask(c.row, c.column) == 0)
    return add_line(step, note("dropped " + how, 0));
  if (!dropout.rescale) return add_line(step, note("kept " + how, 1));
  step.lines.push_back(note("kept " + how, 1));
  add_line(step, line(Form::division, {1, {}}, {1 - dropout.rate, {}}, 1 / (1 - dropout.rate)));
}

void write_scaled(const Work& w, Step& step) {
  const Operand score = w.first();
  const attention::ScaleRule rule = w.model.scale.rule;
  const bool by_head = rule == attention::ScaleRule::inverse_sqrt_d_head;
  if (by_head || rule == attention::ScaleRule::inverse_sqrt_d_model) {
    const double root = std::sqrt(static_cast<double>(by_head ? w.model.d_head() : w.model.d_model()));
    return add_line(step, line(Form::division, score, {root, {}}, score.value / root));
  }
  const double factor = scale_factor(w.model);
  if (rule == attention::ScaleRule::factor)
    return add_line(step, line(Form::factor, score, {factor, {}}, score.value * factor));
  add_line(step, line(Form::single, score, {}, score.value * factor));
}

void write_masked(const Work& w, Step& step) {
  Operand score = w.first();
  if (w.rule.operation == Operation::masked_product) {
    const Operand kept = w.operand(*w.cells(2), 0);
    add_line(step, line(Form::factor, score, kept, score.value * kept.value, "score × dropout mask"));
    score = {step.result, {}};
  }
  if (w.second().value != 0)
    return add_line(step, line(Form::words, score, {}, score.value, "visible, so unchanged"));
  const bool is_finite = w.model.mask.method == attention::MaskMethod::large_negative;
  const double fill = is_finite ? w.model.departures.large_negative : -arma::datum::inf;
  add_line(step, note("hidden, so " + attention::fill_words(fill), fill));
}

/// A number as what it is rounded to before it is used.
Operand taken_as(attention::Precision precision, Operand operand) {
  operand.value = attention::rounded(precision, operand.value);
  return operand;
}

/// The scores that a softmax runs over; with a dropout mask before it, a line for each product as well.
std::vector<Operand> softmax_scores(const Work& w, Step& step) {
  const Cells scores = *w.cells(0);
  const auto mask = w.cells(1);
  std::vector<Operand> all;
  for (std::size_t k = 0; k < scores.count(); ++k) {
    Operand score = w.operand(scores, k);
    if (mask) {
      const Operand kept = w.operand(*mask, k);
      const double product = score.value * kept.value;
      step.lines.push_back(line(Form::factor, score, kept, product));
      score = {product, {}};
    }
    all.push_back(score);
  }
  return all;
}

/// The sink that joins the sum, if there is one.
std::optional<Operand> sink_of(const Work& w) {
  const auto cells = is_over_keys(w.model) ? w.cells(2) : std::nullopt;
  return cells ? std::optional(w.operand(*cells, 0)) : std::nullopt;
}

/// What is subtracted from each score before exp(), for the sum and for its own weight.
attention::BlockMaxima subtracted(const Work& w, const std::vector<Operand>& scores,
                                  const std::optional<Operand>& sink) {
  const bool in_blocks = is_in_blocks(w.model);
  arma::rowvec row(scores.size());
  for (std::size_t k = 0; k < scores.size(); ++k) row[k] = scores[k].value;
  if (sink && !in_blocks) row.insert_cols(row.n_cols, arma::rowvec{sink->value});
  return attention::block_maxima(row, in_blocks ? w.model.departures.blocks : attention::Blocks());
}

void write_softmax(const Work& w, Step& step) {
  const attention::Precision precision = w.model.departures.softmax_precision;
  std::vector<Operand> scores = softmax_scores(w, step);
  for (Operand& score : scores) score = taken_as(precision, score);
  const bool over_keys = is_over_keys(w.model);
  const std::size_t self = over_keys ? w.cell.column : w.cell.row;
  const auto sink = sink_of(w);
  const auto [own_largest, largest, last] = subtracted(w, scores, sink);
  const bool empty =
      std::ranges::all_of(scores, [](const Operand& score) { return score.value == -arma::datum::inf; });
  const bool adds_nothing = !empty || is_in_blocks(w.model) || sink;  // of −∞; else it is NaN
  double sum = 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    if (scores[k].value == -arma::datum::inf && adds_nothing) continue;
    const double term = std::exp(scores[k].value - largest[k]);
    sum += term;
    if (largest[k] < arma::datum::inf)  // else the key is not visited
      add_term(step, line(Form::exponential, scores[k], {largest[k], {}}, term),
               {over_keys ? Label::token : Label::query, k});
  }
  if (sink) {
    const double term = std::exp(sink->value - last);
    sum += term;
    add_term(step, line(Form::exponential, *sink, {last, {}}, term), {Label::sink});
  }
  add_total(step, sum);
  const double score = scores[self].value;
  const double own = score == -arma::datum::inf && adds_nothing ? 0 : std::exp(score - own_largest[self]);
  add_line(step, line(Form::division, {own, {}}, {sum, {}}, own / sum));
  const double nearest = attention::rounded(precision, step.result);
  if (nearest != step.result && !std::isnan(nearest))
    add_line(step, note(std::string("rounded to ") + attention::name_of(precision), nearest));
}

Label term_label(const Work& w, std::size_t k) {
  switch (w.cell.stage) {
    case Stage::contexts:
      return {Label::token, k};
    case Stage::output:
      return &graph::combine_layout(w.model) == &graph::bands ? Label{Label::head, k / w.model.d_value()}
                                                              : Label{Label::column, k};
    case Stage::scores:
      return {};
    default:
      return {Label::column, k};
  }
}

void write_dot_product(const Work& w, Step& step) {
  const Cells first = *w.cells(0), second = *w.cells(1);
  const attention::Departures& d = w.model.departures;
  const auto in_sums = d.sums_rounded ? d.precision : attention::Precision::float64;
  double sum = 0;
  for (std::size_t k = 0; k < first.count(); ++k) {
    const Operand a = taken_as(d.product_inputs, w.operand(first, k)),
                  b = taken_as(d.product_inputs, w.operand(second, k));
    const double product = attention::rounded(in_sums, a.value * b.value);
    sum = attention::rounded(in_sums, sum + product);
    add_term(step, line(Form::product, a, b, product), term_label(w, k));
  }
  add_total(step, sum);
  if (w.cell.stage != Stage::scores || !d.scores_prescaled) return;
  const double factor = attention::scale_factor(w.model);
  add_line(step, line(Form::factor, {sum, {}}, {factor, {}}, sum * factor, "of scaled queries"));
}

void write_sum(const Work& w, Step& step) {
  const Cells row = *w.cells(0);
  double sum = 0;
  for (std::size_t k = 0; k < row.count(); ++k) {
    const Operand a = w.operand(row, k);
    sum += a.value;
    add_term(step, line(Form::single, a, {}, a.value), {Label::token, k});
  }
  add_total(step, sum);
}

void write_copied(const Work& w, Step& step) {
  const Operand a = w.first();
  Line copy = line(Form::single, a, {}, a.value);
  if (w.cell.stage == Stage::concatenated) copy.label = {Label::head, a.place->head};
  add_line(step, std::move(copy));
}

void write(const Work& w, Step& step) {
  switch (w.rule.operation) {
    case Operation::given:
      return write_given(w, step);
    case Operation::zero:
      return add_line(step, note("zero", 0));
    case Operation::copied:
      return write_copied(w, step);
    case Operation::dot_product:
      return write_dot_product(w, step);
    case Operation::normed:
      return write_normed(w, step);
    case Operation::turned:
      return write_turned(w, step);
    case Operation::turned_product:
      return write_turned_product(w, step);
    case Operation::capped:
      return write_capped(w, step);
    case Operation::sloped:
      return write_sloped(w, step);
    case Operation::biased:
      return write_biased(w, step);
    case Operation::scaled:
      return write_scaled(w, step);
    case Operation::masked:
    case Operation::masked_product:
      return write_masked(w, step);
    case Operation::softmax:
      return write_softmax(w, step);
    case Operation::product:
      return add_line(step, line(Form::factor, w.first(), w.second(), w.first().value * w.second().value));
    case Operation::sum:
      return write_sum(w, step);
    case Operation::quotient:
      return add_line(step, line(Form::division, w.first(), w.second(), w.first().value / w.second().value));
  }
}

std::string bias_formula(const Cells& bias) {
  return std::string(symbol(std::get<Input>(bias.source))) + ", column " + std::to_string(bias.column0);
}

void add_bias(const Work& w, const Cells& bias, std::vector<Step>& steps) {
  Step added{w.cell, "Bias", bias_formula(bias), {}, 0};
  const Operand sum{steps[0].result, {}}, b = w.operand(bias, 0);
  add_line(added, line(Form::addition, sum, b, sum.value + b.value));
  steps.push_back(std::move(added));
}

/// Says what the precision of the model makes of the number, when it makes anything of it.
void round(const Work& w, Step& step) {
  const auto precision = w.model.departures.precision;
  const double nearest = attention::rounded(precision, step.result);
  // Heads are put side by side as they are, typed over or not.
  const bool is_merged = w.rule.operation == Operation::copied && !attention::info(w.cell.stage).per_head;
  if (is_merged || w.rule.operation == Operation::given || nearest == step.result || std::isnan(nearest))
    return;
  add_line(step, note(std::string("rounded to ") + attention::name_of(precision), nearest));
}

}  // namespace

std::vector<Step> steps_of(const Model& model, const Trace& trace, const CellAddress& cell) {
  const Work w{model, trace, cell, rule_for(model, trace, cell)};
  std::vector<Step> steps{{cell, w.rule.title, w.rule.formula(model, trace, cell), {}, 0}};
  write(w, steps[0]);
  const bool biased = w.rule.operation == Operation::dot_product;
  if (const auto bias = biased ? w.cells(2) : std::nullopt) add_bias(w, *bias, steps);
  round(w, steps.back());
  return steps;
}

}  // namespace core::explain
