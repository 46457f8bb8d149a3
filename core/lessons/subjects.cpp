// Names that expressions in lessons can use, for a model and for a whole model.
#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/dropout.hpp"
#include "core/lessons/exhibits.hpp"
#include "core/lessons/expression.hpp"
#include "core/lessons/lessons.hpp"

namespace core::lessons {
namespace {

using core::attention::Stage;

using attention::Model;
using experiment::IndexPair;
using experiment::TextReading;

double count(std::size_t n) {
  return static_cast<double>(n);
}

/// The value of a name, converted from any type of result.
struct Answer {
  Answer(bool holds) : value(holds ? 1.0 : 0.0) {}
  Answer(double number) : value(number) {}
  Answer(std::size_t n) : value(count(n)) {}
  Answer(const char* text) : value(std::string(text)) {}
  Answer(std::string text) : value(std::move(text)) {}
  LessonValue value;
};

constexpr const char* scale_names[] = {"inverse_sqrt_d_head", "none", "inverse_sqrt_d_model", "factor"};
constexpr const char* method_names[] = {"negative_infinity", "renormalise", "zero_after_softmax",
                                        "large_negative"};

template <std::size_t n, class Word>
std::string name_of(const char* const (&names)[n], Word word) {
  return names[static_cast<std::size_t>(word)];
}

std::string all_tokens(const Model& m) {
  std::string all;
  for (const std::string& token : m.sequences.front().tokens) all += token + '\n';
  return all;
}

/// Returns the number of rows before the last that move with the last token.
double leaking_rows(const Model& m) {
  const arma::vec moved = rows_moved_by_last_token(m);
  return count(arma::accu(moved.head(moved.n_elem - 1) > 1e-12));
}

double slowest_frequency(const Model& m) {
  const auto rotary = rotary_of(m);
  return rotary ? positions::frequencies(*rotary, m.d_head()).back() : arma::datum::nan;
}

/// Values of a model alone, by name.
using ModelValue = std::function<Answer(const Model&)>;
const std::map<std::string_view, ModelValue>& model_values() {
  static const std::map<std::string_view, ModelValue> table{
      {"n_tokens", [](const Model& m) { return m.n_tokens(); }},
      {"tokens", [](const Model& m) { return all_tokens(m); }},
      {"n_sequences", [](const Model& m) { return m.sequences.size(); }},
      {"n_heads", [](const Model& m) { return m.n_heads; }},
      {"n_kv_heads", [](const Model& m) { return m.kv_heads(); }},
      {"d_model", [](const Model& m) { return m.d_model(); }},
      {"d_out", [](const Model& m) { return m.d_out(); }},
      {"d_output", [](const Model& m) { return m.d_output(); }},
      {"d_head", [](const Model& m) { return m.d_head(); }},
      {"d_value", [](const Model& m) { return m.d_value(); }},
      {"has_projections", [](const Model& m) { return m.projections.has_value(); }},
      {"query_bias", [](const Model& m) { return m.projections && m.projections->query.bias.has_value(); }},
      {"has_output_projection",
       [](const Model& m) { return m.projections && m.projections->output.has_value(); }},
      {"output_bias",
       [](const Model& m) {
         return m.projections && m.projections->output && m.projections->output->bias.has_value();
       }},
      {"scores_from",
       [](const Model& m) { return m.scores == attention::ScoreRule::uniform ? "uniform" : "query_key"; }},
      {"scale", [](const Model& m) { return name_of(scale_names, m.scale.rule); }},
      {"scale_factor", [](const Model& m) { return attention::scale_factor(m); }},
      {"causal", [](const Model& m) { return m.mask.causal; }},
      {"mask_method", [](const Model& m) { return name_of(method_names, m.mask.method); }},
      {"mask_align",
       [](const Model& m) { return m.mask.align == attention::MaskAlignment::first ? "first" : "last"; }},
      {"n_mask_cells", [](const Model& m) { return m.mask.cells.size(); }},
      {"has_context_length", [](const Model& m) { return m.context_length.has_value(); }},
      {"context_length",
       [](const Model& m) { return m.context_length ? count(*m.context_length) : arma::datum::nan; }},
      {"training", [](const Model& m) { return m.dropout.training; }},
      {"dropout_active", [](const Model& m) { return m.dropout.active(); }},
      {"dropout_rate", [](const Model& m) { return m.dropout.rate; }},
      {"dropout_seed", [](const Model& m) { return static_cast<double>(m.dropout.seed); }},
      {"dropout_scale", [](const Model& m) { return attention::dropout_scale(m.dropout); }},
      {"dropout_stream",
       [](const Model& m) { return m.dropout.stream == attention::DropoutStream::mkl ? "mkl" : "mt19937"; }},
      {"merge_heads",
       [](const Model& m) {
         const bool concatenated = m.merge == attention::CombineRule::concatenate;
         return concatenated ? "concatenate" : "reshape_without_transpose";
       }},
      {"has_rope", [](const Model& m) { return m.additions.positions.rotary.has_value(); }},
      {"rope_base",
       [](const Model& m) {
         const auto& rotary = m.additions.positions.rotary;
         return rotary ? rotary->base : arma::datum::nan;
       }},
      {"rope_first",
       [](const Model& m) {
         const auto& rotary = m.additions.positions.rotary;
         return rotary ? static_cast<double>(rotary->first) : arma::datum::nan;
       }},
      {"rope_pairs",
       [](const Model& m) {
         const auto& rotary = m.additions.positions.rotary;
         return !rotary ? "" : rotary->pairs == positions::Pairs::halves ? "halves" : "neighbours";
       }},
      {"rope_slowest", [](const Model& m) { return slowest_frequency(m); }},
      {"n_leaking_rows", [](const Model& m) { return leaking_rows(m); }},
  };
  return table;
}

bool sequence_changed(const StepState& m, std::size_t s) {
  return s < std::min(m.start.sequences.size(), m.model.sequences.size()) &&
         !(m.start.sequences[s].embeddings == m.model.sequences[s].embeddings);
}

std::vector<std::size_t> changed_sequences(const StepState& m) {
  std::vector<std::size_t> changed;
  for (std::size_t s = 0; s < m.model.sequences.size(); ++s)
    if (sequence_changed(m, s)) changed.push_back(s);
  return changed;
}

bool only_last_token_changed(const StepState& m) {
  if (m.model.n_tokens() != m.start.n_tokens()) return false;
  const arma::vec rows =
      row_differences(m.before.at(attention::Stage::embeddings), m.trace.at(attention::Stage::embeddings));
  return rows.max() > 0 && arma::all(rows.head(rows.n_elem - 1) == 0);
}

/// Returns the number of unmasked weights that dropout set to zero, over all heads.
double dropped_weights(const StepState& m) {
  double dropped = 0;
  for (std::size_t h = 0; h < m.trace.n_heads(); ++h)
    dropped += arma::accu((*m.trace.at(Stage::dropout_mask, h) == 0) % (*m.trace.at(Stage::mask) == 1));
  return dropped;
}

std::string token(const Model& m, double index) {
  const auto& tokens = m.sequences.front().tokens;
  const std::size_t at = index_of(index < 0 ? count(tokens.size()) + index : index);
  return at < tokens.size() ? "“" + tokens[at] + "”" : "nothing";
}

/// Returns the value of a name in a moment: of its model, tokens, sequences, stages or their dropout.
std::optional<LessonValue> resolve_name(const StepState& m, const NameReference& query) {
  const auto number = [&](std::size_t k) { return std::get<double>(query.arguments.at(k)); };
  const auto name = [&](std::size_t k) { return std::get<std::string>(query.arguments.at(k)); };
  const Model& model = query.before ? m.start : m.model;
  const attention::Trace& trace = query.before ? m.before : m.trace;
  if (const auto found = model_values().find(query.name); found != model_values().end())
    return found->second(model).value;
  if (const attention::StageInfo* stage = attention::find_stage(query.name)) {
    const std::size_t head = query.head.value_or(0);
    if (stage->per_head && head >= trace.n_heads()) return arma::mat();
    return arma::mat(trace.at(stage->stage, head));
  }
  if (query.name == "token") return token(model, number(0));
  if (query.name == "has_bug" && name(0) == "groups_tiled")
    return Answer(model.has_bug("groups_tiled")).value;
  if (query.name == "only_last_token_changed") return Answer(only_last_token_changed(m)).value;
  if (query.name == "n_changed_sequences") return count(changed_sequences(m).size());
  if (query.name == "first_changed_sequence") {
    const auto changed = changed_sequences(m);
    return changed.empty() ? arma::datum::nan : count(changed.front());
  }
  if (query.name == "n_dropped") return dropped_weights(m);
  if (query.name == "dropout_distance") {
    attention::DropoutStudy study(m.model, 0, 0, m.trace.at(attention::Stage::weights, 0));
    constexpr std::size_t most = 10'000;
    study.advance(std::clamp<std::size_t>(index_of(number(0)), 1, most));
    return study.distances().back();
  }
  if (query.name == "preset_weights") {
    const editing::Preset* preset = editing::find_preset(name(0));
    if (!preset) throw Error("there is no preset " + name(0));
    return arma::mat(attention::attend(preset->make()).at(attention::Stage::weights, 0));
  }
  return std::nullopt;
}

/// Returns nullptr where the reading has no such head.
const transformer::HeadRoles* roles(const TextReading& reading, const IndexPair& head) {
  const auto& layers = reading.layers;
  if (head.first >= layers.size() || head.second >= layers[head.first]->heads.size()) return nullptr;
  return &layers[head.first]->heads[head.second].roles;
}

double induction(const TextReading& reading, const IndexPair& head) {
  const auto* head_roles = roles(reading, head);
  return head_roles ? head_roles->induction.value_or(0) : 0;
}
bool is_induction_head(const TextReading& reading, const IndexPair& head) {
  return induction(reading, head) > 0.3;
}
bool is_previous_token_head(const TextReading& reading, const IndexPair& head) {
  const auto* head_roles = roles(reading, head);
  return head_roles && head_roles->previous > 0.8;
}

/// Returns the ablated heads that were of a kind on the text of the step's start.
std::vector<IndexPair> ablated_heads(const WholeStepState& m,
                                     bool (*is_kind)(const TextReading&, const IndexPair&)) {
  std::vector<IndexPair> heads;
  for (const IndexPair& head : m.now.experiment.heads_off)
    if (is_kind(m.before, head)) heads.push_back(head);
  return heads;
}

/// Returns the head with the most induction on the text of the step's start.
IndexPair strongest_induction_head(const WholeStepState& m) {
  IndexPair best{0, 0};
  for (std::size_t l = 0; l < m.before.layers.size(); ++l)
    for (std::size_t h = 0; h < m.before.layers[l]->heads.size(); ++h)
      if (induction(m.before, {l, h}) > induction(m.before, best)) best = {l, h};
  return best;
}

std::string head_name(const IndexPair& head) {
  return fmt::format("{}.{}", head.first, head.second);
}
std::string first_head_name(const std::vector<IndexPair>& heads) {
  return heads.empty() ? "" : head_name(heads.front());
}

std::string quoted(const WholeStepState& m, std::size_t token) {
  return "“" + transformer::token_name(m.whole, token) + "”";
}

/// Returns the most probable token after a layer.
std::size_t guess_after(const WholeStepState& m, const TextReading& reading, std::size_t layer) {
  if (reading.logits.empty()) throw Error("The model guesses nothing: " + reading.no_prediction_reason);
  if (layer >= reading.logits.n_rows) throw Error("there is no such layer");
  return transformer::top_tokens(reading.logits.row(layer), 1, m.whole.description().n_tokens).front().id;
}
std::size_t final_top_token(const WholeStepState& m, const TextReading& reading) {
  return guess_after(m, reading, reading.layers.size() - 1);
}

double probability(const TextReading& reading, std::size_t token) {
  return transformer::Probabilities(reading.logits.tail_rows(1)).of(token);
}

/// Returns the first layer after which the top token stays the final one.
std::size_t settled_layer(const WholeStepState& m) {
  const std::size_t last = final_top_token(m, m.now);
  std::size_t layer = m.now.layers.size() - 1;
  while (layer > 0 && guess_after(m, m.now, layer - 1) == last) --layer;
  return layer;
}

/// Returns "“ig” has 0.376 instead of 0.9285", for the most probable token at the start of the step.
std::string followed(const WholeStepState& m) {
  const std::size_t token = final_top_token(m, m.before);
  return quoted(m, token) + " has " + number(probability(m.now, token)) + " instead of " +
         number(probability(m.before, token));
}

/// Values of a whole model's reading, by name; for `before.`, `now` is the reading at the start.
using ReadingValue = std::function<Answer(const WholeStepState&, const TextReading& now)>;
const std::map<std::string_view, ReadingValue>& reading_values() {
  using W = WholeStepState;
  using R = TextReading;
  static const std::map<std::string_view, ReadingValue> table{
      {"n_tokens", [](const W&, const R& r) { return r.tokens.size(); }},
      {"n_layers", [](const W&, const R& r) { return r.layers.size(); }},
      {"layer", [](const W& m, const R&) { return m.layer; }},
      {"head", [](const W& m, const R&) { return m.head; }},
      {"guess", [](const W& m, const R& r) { return quoted(m, final_top_token(m, r)); }},
      {"settled_layer", [](const W& m, const R&) { return settled_layer(m); }},
      {"followed", [](const W& m, const R&) { return followed(m); }},
      {"followed_probability",
       [](const W& m, const R& r) { return probability(r, final_top_token(m, m.before)); }},
      {"n_generated", [](const W&, const R& r) { return r.experiment.made.size(); }},
      {"last_generated",
       [](const W& m, const R& r) {
         return r.experiment.made.empty() ? "nothing" : quoted(m, r.experiment.made.back());
       }},
      {"n_heads_off", [](const W&, const R& r) { return r.experiment.heads_off.size(); }},
      {"n_layers_edited", [](const W&, const R& r) { return r.experiment.layers.size(); }},
      {"first_edited_layer",
       [](const W&, const R& r) {
         return r.experiment.layers.empty() ? arma::datum::nan : count(r.experiment.layers.begin()->first);
       }},
      {"n_patches", [](const W&, const R& r) { return r.experiment.patches.size(); }},
      {"patches",
       [](const W&, const R& r) {
         return text::joined(r.experiment.patches, ", ", transformer::patch_name, " and ");
       }},
      {"patched_layer",
       [](const W&, const R& r) {
         return r.experiment.patches.empty() ? arma::datum::nan : count(r.experiment.patches.begin()->layer);
       }},
      {"recovered",
       [](const W& m, const R& r) {
         return m.unedited && r.experiment.first
                    ? experiment::watched_difference(m.whole, r, *m.unedited).recovered()
                    : 0.0;
       }},
      {"pinned_row", [](const W& m, const R&) { return m.pinned ? static_cast<double>(m.pinned->row) : -1; }},
      {"pinned_column",
       [](const W& m, const R&) { return m.pinned ? static_cast<double>(m.pinned->column) : -1; }},
      {"source", [](const W& m, const R&) { return m.source; }},
      {"was_induction",
       [](const W& m, const R&) {
         return is_induction_head(m.before, {m.layer, m.head});
       }},
      {"induction",
       [](const W& m, const R& r) {
         return induction(r, {m.layer, m.head});
       }},
      {"n_induction_off", [](const W& m, const R&) { return ablated_heads(m, is_induction_head).size(); }},
      {"first_induction_off",
       [](const W& m, const R&) { return first_head_name(ablated_heads(m, is_induction_head)); }},
      {"induction_off",
       [](const W& m, const R&) {
         return text::joined(ablated_heads(m, is_induction_head), ", ", head_name, " and ");
       }},
      {"n_previous_off",
       [](const W& m, const R&) { return ablated_heads(m, is_previous_token_head).size(); }},
      {"first_previous_off",
       [](const W& m, const R&) { return first_head_name(ablated_heads(m, is_previous_token_head)); }},
      {"strongest_induction", [](const W& m, const R&) { return head_name(strongest_induction_head(m)); }},
      {"strongest_induction_share",
       [](const W& m, const R& r) { return induction(r, strongest_induction_head(m)); }},
  };
  return table;
}

/// Values of a run, at its last measurement, by name.
using RunValue = std::function<Answer(const training::TrainingRun&)>;
const std::map<std::string_view, RunValue>& run_values() {
  using R = training::TrainingRun;
  static const std::map<std::string_view, RunValue> table{
      {"step", [](const R& r) { return r.n_steps(); }},
      {"loss", [](const R& r) { return r.measurements().back().fresh_loss; }},
      {"accuracy", [](const R& r) { return r.measurements().back().accuracy; }},
      {"n_layers", [](const R& r) { return r.network().setup.n_layers; }},
      {"causal", [](const R& r) { return r.network().setup.causal; }},
      {"bug", [](const R& r) { return r.network().setup.mistake; }},
      {"n_heads_off",
       [](const R& r) {
         std::size_t n = 0;
         for (const auto& layer : r.network().layers) n += layer.attention.heads_off.size();
         return n;
       }},
      {"best_share",  // of the attention of a head, on the last pattern of the task
       [](const R& r) {
         double best = 0;
         for (const auto& layer : r.measurements().back().patterns.back())
           best = std::max(best, std::ranges::max(layer));
         return best;
       }},
      {"taken_over",
       [](const R& r) {
         return std::ranges::any_of(r.milestones(), [](const auto& m) { return !m.detail.empty(); });
       }},
      {"new_head",
       [](const R& r) {
         const auto& all = r.milestones();
         const auto found = std::ranges::find_if(all, [](const auto& m) { return !m.detail.empty(); });
         return found == all.end() ? std::string() : found->detail;
       }},
  };
  return table;
}

NameResolver make_resolver(const RunStepState& state) {
  return [&state](const NameReference& query) -> std::optional<LessonValue> {
    const auto found = run_values().find(query.name);
    if (found == run_values().end()) return std::nullopt;
    return found->second(query.before ? state.before : state.now).value;
  };
}

NameResolver make_resolver(const StepState& state) {
  return [&state](const NameReference& query) { return resolve_name(state, query); };
}

NameResolver make_resolver(const WholeStepState& state) {
  return [&m = state](const NameReference& query) -> std::optional<LessonValue> {
    const TextReading& reading = query.before ? m.before : m.now;
    if (const auto found = reading_values().find(query.name); found != reading_values().end())
      return found->second(m, reading).value;
    if (query.name != "guess_after") return std::nullopt;
    const double layer = std::get<double>(query.arguments.at(0));
    return quoted(m, guess_after(m, reading, index_of(layer)));
  };
}

}  // namespace

bool is_done(const LessonStep& step, const StepState& state) {
  return holds(step.done, make_resolver(state));
}
bool is_done(const LessonStep& step, const WholeStepState& state) {
  return holds(step.done, make_resolver(state));
}
bool is_done(const LessonStep& step, const RunStepState& state) {
  return !state.now.measurements().empty() && holds(step.done, make_resolver(state));
}
std::string seen(const LessonStep& step, const RunStepState& state) {
  return interpolate(step.seen, make_resolver(state));
}
std::string seen(const LessonStep& step, const StepState& state) {
  return interpolate(step.seen, make_resolver(state));
}
std::string seen(const LessonStep& step, const WholeStepState& state) {
  return interpolate(step.seen, make_resolver(state));
}

}  // namespace core::lessons
