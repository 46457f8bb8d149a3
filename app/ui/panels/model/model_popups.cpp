#include "app/ui/panels/model/model_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/visible.hpp"
#include "core/graph/words.hpp"

namespace app::panels {

namespace {

using namespace core::attention;
using namespace core::editing;
using namespace core::positions;

constexpr float popup_controls = 200;  // width, at scale 1

/// Rows of a popup of MODEL, with the controls that several of them use.
struct PopupFields : FormRows {
  using FormRows::FormRows;
  /// Draws a field as wide as the controls, with a hint while it is empty; returns the submitted text.
  std::optional<std::string> field(const char* words, const char* name, const std::string& shown,
                                   const std::string& help, const char* hint = "");
  /// Draw such a field for a whole number, which may be negative, or a finite one; refuse other text.
  std::optional<std::int64_t> whole(const char* words, const char* name, std::int64_t value,
                                    const std::string& help);
  std::optional<double> real(const char* words, const char* name, double value, const std::string& help);
  /// Draws a list of choices; returns the chosen one.
  std::optional<std::size_t> choice(const char* words, const char* name, std::span<const Option> options,
                                    std::size_t now, const char* help);
  void report_invalid(const char* words, const char* expected, const std::string& found) const {
    widgets::report_invalid(frame, words, expected, found);
  }
  /// Explains the last control right of the popup, where the tooltip covers no other one.
  void explain(const std::string& help) const {
    if (shows_refusal(frame) || !ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
    ImGui::SetNextWindowPos({window_rect().max.x + frame.metrics.px(4), ImGui::GetItemRectMin().y});
    tooltip(help);
  }
};

std::optional<std::string> PopupFields::field(const char* words, const char* name, const std::string& shown,
                                              const std::string& help, const char* hint) {
  row(words);
  FieldStyle style;
  style.width = frame.metrics.px(popup_controls), style.font = frame.fonts.mono14;
  style.alignment = Alignment::left, style.hint = hint;
  const auto answer = text_field(frame, name, shown, style);
  explain(help);
  return answer.text;
}

std::optional<std::int64_t> PopupFields::whole(const char* words, const char* name, std::int64_t value,
                                               const std::string& help) {
  const auto typed = field(words, name, std::to_string(value), help);
  if (!typed) return std::nullopt;
  const auto number = read_number(*typed);
  constexpr double most = 1e15;  // whole numbers up to there are exact
  if (number && std::fabs(*number) <= most && std::floor(*number) == *number)
    return static_cast<std::int64_t>(*number);
  report_invalid(words, "a whole number", *typed);
  return std::nullopt;
}

std::optional<double> PopupFields::real(const char* words, const char* name, double value,
                                        const std::string& help) {
  const auto typed = field(words, name, core::text::number_text(value), help);
  if (!typed) return std::nullopt;
  const auto number = read_number(*typed);
  if (!number) report_invalid(words, "a finite number", *typed);
  return number;
}

std::optional<std::size_t> PopupFields::choice(const char* words, const char* name,
                                               std::span<const Option> options, std::size_t now,
                                               const char* help) {
  row(words);
  const auto chosen = combo(frame, name, frame.metrics.px(popup_controls), options, now);
  explain(help);
  return chosen;
}

/// Returns the whole numbers separated by spaces, commas or semicolons, or nothing on any other text.
std::optional<std::vector<std::size_t>> parse_counts(std::string text) {
  for (char& c : text)
    if (c == ',' || c == ';' || c == '[' || c == ']') c = ' ';
  std::vector<std::size_t> counts;
  for (const std::string_view word : core::text::split_words(text)) {
    const auto number = core::text::parse_unsigned(word);
    if (!number) return std::nullopt;
    counts.push_back(*number);
  }
  return counts;
}

constexpr std::size_t t5_buckets = 32;

const std::array<std::string, 2> pair_rules{"halves", "adjacent"};

const std::array scaling_rules{
    Option{"none"},
    Option{"linear", "linear: all frequencies are divided by the factor"},
    Option{"llama3", "Llama 3.1: long wavelengths are divided by the factor"},
    Option{"YaRN", "YaRN: pairs of few rotations are divided by the factor, and scores are sharpened"},
    Option{"dynamic NTK", "dynamic NTK: texts above the original length have a larger base"},
    Option{"LongRoPE", "LongRoPE: a factor for each frequency, others above the original length"}};

const std::array bias_rules{Option{"none"},
                            Option{"ALiBi", "ALiBi: scores fall with distance, each head with its slope"},
                            Option{"T5 buckets", "T5: a number for each bucket of distances and each head"}};

/// Edits the positions of the model by a function.
template <class Change>
void change_positions(const PopupFields& fields, Change change) {
  Positions next = fields.frame.pending.model.additions.positions;
  change(next);
  fields.frame.commands.edit(SetPositions{std::move(next)});
}

template <class Change>
void change_rotary(const PopupFields& fields, Change change) {
  change_positions(fields, [&](Positions& p) { change(*p.rotary); });
}

/// Returns a rule with its default numbers; keeps the factor and the original length.
Scaling scaling_by(ScalingRule rule, const Rotary& rotary, std::size_t d_head) {
  Scaling next;
  next.rule = rule, next.factor = rotary.scaling.factor, next.original = rotary.scaling.original;
  if (rule == ScalingRule::yarn)
    next.high = yarn_beta_fast, next.attention = yarn_attention_factor(next.factor);
  if (rule == ScalingRule::dynamic) next.factor = std::max(next.factor, 1.0);
  if (rule == ScalingRule::longrope)
    next.factors = arma::mat(2, rotated_columns(rotary, d_head) / 2, arma::fill::ones);
  return next;
}

void columns_row(PopupFields& fields, const Rotary& rotary) {
  const auto typed =
      fields.field("rotary dims", "more/columns", rotary.dimensions ? std::to_string(*rotary.dimensions) : "",
                   "How many columns of a head are rotated, an even number. Empty: all.", "all");
  if (!typed) return;
  const auto counts = parse_counts(*typed);
  if (!counts || counts->size() > 1)
    return fields.report_invalid("rotary dims", "a whole number or nothing", *typed);
  change_rotary(fields, [&](Rotary& r) {
    r.dimensions.reset();
    if (!counts->empty()) r.dimensions = counts->front();
    r.inverse_frequencies.reset();  // their number is that of the pairs
    if (r.scaling.factors) r.scaling = scaling_by(r.scaling.rule, r, fields.frame.pending.model.d_head());
  });
}

void scaling_number(PopupFields& fields, const char* words, const char* name, double Scaling::*number,
                    const char* help) {
  if (const auto value = fields.real(
          words, name, fields.frame.pending.model.additions.positions.rotary->scaling.*number, help))
    change_rotary(fields, [&](Rotary& r) { r.scaling.*number = *value; });
}

/// Draws the factors of LongRoPE, one for each pair, for short texts (0) or long ones (1).
void factors_row(PopupFields& fields, const Rotary& rotary, std::size_t row, const char* words,
                 const char* name, const char* help) {
  const SharedMatrix& factors = *rotary.scaling.factors;
  std::vector<std::string> shown;
  for (std::size_t p = 0; p < factors.n_cols(); ++p)
    shown.push_back(core::text::number_text(factors.at(row, p)));
  const auto typed = fields.field(words, name, core::text::joined(shown, " "), help);
  if (!typed) return;
  std::string text = *typed;
  std::ranges::replace(text, ',', ' ');
  std::istringstream numbers(text);
  arma::mat next = factors;
  std::size_t n = 0;
  for (std::string word; numbers >> word; ++n) {
    const auto number = read_number(word);
    if (!number || n == next.n_cols) return fields.report_invalid(words, "a factor for each pair", *typed);
    next(row, n) = *number;
  }
  if (n != next.n_cols) return fields.report_invalid(words, "a factor for each pair", *typed);
  change_rotary(fields, [&](Rotary& r) { r.scaling.factors = next; });
}

void scaling_rows(PopupFields& fields, const Model& model, const Rotary& rotary) {
  const Scaling& scaling = rotary.scaling;
  const auto now = static_cast<std::size_t>(scaling.rule);
  const auto chosen =
      fields.choice("scaling", "more/scaling", scaling_rules, now,
                    "How the rotation is scaled for texts that are longer than those of the training");
  if (chosen && *chosen != now)
    change_rotary(fields, [&](Rotary& r) {
      r.scaling = scaling_by(static_cast<ScalingRule>(*chosen), r, model.d_head());
    });
  if (scaling.rule == ScalingRule::none) return;
  const bool is_long = scaling.rule == ScalingRule::longrope, is_yarn = scaling.rule == ScalingRule::yarn;
  if (!is_long)
    scaling_number(fields, "factor", "more/factor", &Scaling::factor,
                   scaling.rule == ScalingRule::dynamic
                       ? "The base grows by it with the length above the original one"
                       : "Frequencies are divided by this factor");
  if (scaling.rule == ScalingRule::linear) return;
  if (scaling.rule == ScalingRule::llama3) {
    scaling_number(fields, "low", "more/low", &Scaling::low,
                   "Wavelengths above original/low are scaled in full");
    scaling_number(fields, "high", "more/high", &Scaling::high,
                   "Wavelengths below original/high are not scaled");
  }
  if (is_yarn) {
    scaling_number(fields, "beta_slow", "more/low", &Scaling::low,
                   "Pairs of fewer rotations in the original length are scaled in full");
    scaling_number(fields, "beta_fast", "more/high", &Scaling::high,
                   "Pairs of more rotations in the original length are not scaled");
  }
  scaling_number(fields, "original", "more/original", &Scaling::original, "The context length in training");
  if (is_long && scaling.factors) {
    factors_row(
        fields, rotary, 0, "short", "more/short",
        "short_factor: frequencies are divided by these up to the original length, one for each pair");
    factors_row(fields, rotary, 1, "long", "more/long",
                "long_factor: the same for texts above the original length");
  }
  if (is_long || is_yarn)
    scaling_number(fields, "attention", "more/attention", &Scaling::attention,
                   "attention_factor: cosines and sines are multiplied by it, so scores by its square");
  if (!is_yarn) return;
  fields.row("");
  if (const auto on =
          checkbox(fields.frame, "more/truncate", "truncate", scaling.truncate,
                   "The first and the last pair that are scaled in part are rounded to whole pairs"))
    change_rotary(fields, [&](Rotary& r) { r.scaling.truncate = *on; });
}

void frequencies_row(PopupFields& fields, const Model& model, const Rotary& rotary) {
  fields.row("frequencies");
  const auto own = checkbox(
      fields.frame, "more/frequencies", "custom frequencies", rotary.inverse_frequencies.has_value(),
      "The rotation per position of each pair in radians, editable under EDIT; initially those of the base");
  if (!own) return;
  change_rotary(fields, [&](Rotary& r) {
    r.inverse_frequencies.reset();
    if (*own) r.inverse_frequencies = arma::mat(arma::rowvec(frequencies(*rotary_of(model), model.d_head())));
  });
}

void rotary_rows(PopupFields& fields, const Model& model) {
  const auto& now = model.additions.positions.rotary;
  fields.row("positions");
  if (const auto on = checkbox(fields.frame, "more/rotary", "rotary", now.has_value(),
                               "RoPE: queries and keys are rotated by their position, in pairs of columns"))
    change_positions(fields, [&](Positions& p) {
      p.rotary.reset();
      if (!*on) return;
      p.rotary.emplace();
      if (model.d_head() % 2 != 0) p.rotary->dimensions = model.d_head() - 1;  // the last one has no partner
    });
  if (!now) return;
  if (const auto base =
          fields.real("base", "more/base", now->base, "Pair p is rotated by base^(−2p/d) per position"))
    change_rotary(fields, [&](Rotary& r) { r.base = *base; });
  fields.row("pairs");
  const auto pairs = static_cast<std::size_t>(now->pairs);
  if (const auto chosen = segmented(fields.frame, "more/pairs", pair_rules, pairs))
    change_rotary(fields, [&](Rotary& r) { r.pairs = static_cast<Pairs>(*chosen); });
  tooltip("Which columns form a pair: p and p + d/2, as in Hugging Face's Llama, or 2p and 2p + 1");
  columns_row(fields, *now);
  if (const auto first =
          fields.whole("first position", "more/first", now->first, "The position of the first key"))
    change_rotary(fields, [&](Rotary& r) { r.first = *first; });
  scaling_rows(fields, model, *now);
  frequencies_row(fields, model, *now);
}

void relative_rows(PopupFields& fields, const Relative& now) {
  const auto change = [&](auto with) { change_positions(fields, [&](Positions& p) { with(*p.relative); }); };
  constexpr std::int64_t most_buckets = 4096;
  if (const auto n = fields.whole("buckets", "more/buckets", static_cast<std::int64_t>(now.table.n_cols()),
                                  "Number of buckets of distances; new ones are zeros")) {
    if (*n < 2 || *n > most_buckets) return fields.report_invalid("buckets", "2 to 4096", std::to_string(*n));
    change([&](Relative& r) {
      arma::mat table = r.table;
      table.resize(table.n_rows, static_cast<arma::uword>(*n));
      r.table = std::move(table);
    });
  }
  if (const auto n =
          fields.whole("furthest", "more/max_distance", static_cast<std::int64_t>(now.max_distance),
                       "max_distance: larger distances share the last bucket")) {
    if (*n < 1) return fields.report_invalid("furthest", "a whole number above 0", std::to_string(*n));
    change([&](Relative& r) { r.max_distance = static_cast<std::size_t>(*n); });
  }
  fields.row("");
  if (const auto both = checkbox(fields.frame, "more/both", "both directions", now.bidirectional,
                                 "Keys after the query have their own buckets"))
    change([&](Relative& r) { r.bidirectional = *both; });
}

void distance_rows(PopupFields& fields, const Model& model) {
  const auto& [rotary, alibi, relative] = model.additions.positions;
  const std::size_t now = alibi ? 1 : relative ? 2 : 0;
  const auto chosen = fields.choice("relative bias", "more/distance", bias_rules, now,
                                    "A bias of the scores that depends on the distance of query and key");
  if (chosen && *chosen != now)
    change_positions(fields, [&](Positions& p) {
      p.alibi.reset(), p.relative.reset();
      if (*chosen == 1) p.alibi.emplace();
      if (*chosen == 2) p.relative = Relative{arma::mat(model.n_heads, t5_buckets, arma::fill::zeros)};
    });
  if (alibi) {
    fields.row("");
    const auto own = checkbox(fields.frame, "more/slopes", "custom slopes", alibi->slopes.has_value(),
                              "A number for each head, editable under EDIT; initially the standard ones");
    if (own)
      change_positions(fields, [&](Positions& p) {
        p.alibi->slopes.reset();
        if (*own) p.alibi->slopes = arma::mat(arma::rowvec(default_slopes(model.n_heads)));
      });
  }
  if (relative) relative_rows(fields, *relative);
}

/// Returns the position encodings in words: "rotary halves", "ALiBi", "8 buckets".
std::vector<std::string> positions_words(const Positions& positions) {
  std::vector<std::string> words;
  if (positions.rotary)
    words.push_back("rotary " + pair_rules.at(static_cast<std::size_t>(positions.rotary->pairs)));
  if (positions.alibi) words.push_back("ALiBi");
  if (positions.relative) words.push_back(std::to_string(positions.relative->table.n_cols()) + " buckets");
  return words;
}

constexpr std::size_t max_encoder_states = 1e6;  // a typing mistake must not use all memory

const std::array<std::string, 3> norms{"none", "RMSNorm", "LayerNorm"};

void kv_heads_row(PopupFields& fields, const Model& model) {
  if (!model.projections) return;
  std::vector<Option> options;
  std::vector<std::size_t> counts;
  std::size_t now = 0;
  for (std::size_t n = model.n_heads; n > 0; --n) {
    if (model.n_heads % n != 0) continue;
    if (n == model.kv_heads()) now = counts.size();
    const char* remark = n == model.n_heads ? ", one per head" : n == 1 ? ", shared (MQA)" : "";
    options.push_back({std::to_string(n) + remark});
    counts.push_back(n);
  }
  if (const auto chosen = fields.choice(
          "KV heads", "more/groups", options, now,
          "The number of KV heads (GQA, MQA); a new one is the mean of those of its query heads"))
    fields.frame.commands.edit(SetKvHeadCount{counts[*chosen]});
}

/// Returns an edit with n_keys encoder states for every sequence: the present rows, then zeros.
SetKeyEmbeddings resized_encoder_states(const Model& model, std::size_t n_keys) {
  SetKeyEmbeddings edit;
  for (const auto& sequence : model.sequences) {
    arma::mat rows(n_keys, model.d_source(), arma::fill::zeros);
    const arma::mat& old = sequence.key_embeddings;
    if (const arma::uword kept = std::min<arma::uword>(n_keys, old.n_rows))
      rows.head_rows(kept) = old.head_rows(kept);
    edit.embeddings.emplace_back(std::move(rows));
  }
  if (model.has_key_embeddings()) edit.tokens = model.sequences.front().keys();
  for (std::size_t j = edit.tokens.size(); j < n_keys; ++j) edit.tokens.push_back(std::to_string(j));
  edit.tokens.resize(n_keys);
  return edit;
}

void keys_rows(PopupFields& fields, const Model& model) {
  if (!model.has_embeddings()) return;
  const std::array options{Option{"same sequence", "Self-attention: keys and values are projected from X"},
                           Option{"copy of the sequence", "Encoder states, initially a copy of X"},
                           Option{"encoder states, zeros", "Cross-attention, or a KV cache"}};
  const auto chosen =
      fields.choice("keys/values from", "more/keys", options, model.has_key_embeddings() ? 2 : 0,
                    "What keys and values are projected from (key_embeddings)");
  if (chosen == 0u && model.has_key_embeddings()) fields.frame.commands.edit(SetKeyEmbeddings{});
  if (chosen == 1u) {
    SetKeyEmbeddings edit;
    for (const auto& sequence : model.sequences) edit.embeddings.push_back(sequence.embeddings);
    edit.tokens = model.sequences.front().tokens;
    fields.frame.commands.edit(std::move(edit));
  }
  if (chosen == 2u) {
    SetKeyEmbeddings edit;
    const arma::mat zeros(model.n_keys(), model.d_source(), arma::fill::zeros);
    edit.embeddings.assign(model.sequences.size(), SharedMatrix(zeros));
    fields.frame.commands.edit(std::move(edit));
  }
  const auto typed = fields.field("number of keys", "more/n_keys",
                                  model.has_key_embeddings() ? std::to_string(model.n_keys()) : "",
                                  "The number of encoder states; new ones are zeros. Empty: none.", "none");
  if (!typed) return;
  const auto counts = parse_counts(*typed);
  if (counts && counts->empty())
    fields.frame.commands.edit(SetKeyEmbeddings{});
  else if (counts && counts->size() == 1 && counts->front() > 0 && counts->front() <= max_encoder_states)
    fields.frame.commands.edit(resized_encoder_states(model, counts->front()));
  else
    fields.report_invalid("encoder states", "a whole number from 1 to 1000000, or nothing", *typed);
}

/// Returns QK norm weights for another scope: those of the first head, shared or repeated for each head.
SharedMatrix factors_over(NormScope over, const arma::mat& factors, std::size_t n_heads, std::size_t d_head) {
  const arma::mat of_head = factors.head_cols(d_head);
  if (over == NormScope::head) return of_head;
  return factors.n_cols == n_heads * d_head ? factors : arma::mat(arma::repmat(of_head, 1, n_heads));
}

void norm_rows(PopupFields& fields, const Model& model) {
  const auto& norm = model.additions.normalize;
  fields.row("QK norm");
  const std::size_t now = norm ? 1 + static_cast<std::size_t>(norm->rule) : 0;
  if (const auto chosen = segmented(fields.frame, "more/norm", norms, now)) {
    std::optional<QueryKeyNorm> next;
    if (*chosen > 0) {
      const arma::mat ones(1, model.d_head(), arma::fill::ones);
      next = norm.value_or(QueryKeyNorm{NormRule::rms, ones, ones});
      next->rule = static_cast<NormRule>(*chosen - 1);
    }
    fields.frame.commands.edit(SetHeadNorm{next});
  }
  tooltip(
      "QK norm: RMSNorm or LayerNorm of every query and key. The weights q_norm and k_norm are initially ones.");
  if (!norm) return;
  const std::array over_options{
      Option{"each head", "A norm of each head, with the same weights in all of them"},
      Option{"each head, own weights", "A norm of each head with weights of its own, as in Command R+"},
      Option{"all heads", "One norm of all columns before heads are split, as in OLMo 2"}};
  const auto over_now = static_cast<std::size_t>(norm->over);
  const auto over = fields.choice("norm over", "more/norm_over", over_options, over_now,
                                  "Which columns of a query or a key are normalized together");
  if (over && *over != over_now) {
    QueryKeyNorm next = *norm;
    next.over = static_cast<NormScope>(*over);
    next.query = factors_over(next.over, norm->query, model.n_heads, model.d_head());
    next.key = factors_over(next.over, norm->key, model.kv_heads(), model.d_head());
    fields.frame.commands.edit(SetHeadNorm{next});
  }
  if (const auto epsilon =
          fields.real("ε", "more/epsilon", norm->epsilon, "Added to the mean square under the root")) {
    QueryKeyNorm next = *norm;
    next.epsilon = *epsilon;
    fields.frame.commands.edit(SetHeadNorm{next});
  }
}

void softcap_row(PopupFields& fields, const Model& model) {
  const auto& cap = model.additions.softcap;
  const auto typed = fields.field(
      "softcap", "more/cap", cap ? core::text::number_text(*cap) : "",
      "Logit soft-capping: scaled scores s become c·tanh(s/c), as in Gemma 2. Empty: none.", "none, or 50");
  if (!typed) return;
  if (typed->find_first_not_of(' ') == typed->npos) return fields.frame.commands.edit(SetSoftcap{});
  const auto number = read_number(*typed);
  if (number && *number > 0)
    fields.frame.commands.edit(SetSoftcap{number});
  else
    fields.report_invalid("softcap", "a number above 0, or nothing", *typed);
}

void score_bias_row(PopupFields& fields, const Model& model) {
  const std::array options{Option{"none"}, Option{"for all heads"}, Option{"per head"}};
  const auto& biases = model.additions.score_bias;
  const std::size_t now = biases.empty() ? 0 : biases.size() == 1 ? 1 : 2;
  const auto chosen = fields.choice(
      "attention bias", "more/bias", options, now,
      "Added to the scores before the mask, like a float attn_mask; initially zeros, or the previous bias (of the first head)");
  if (!chosen || *chosen == now) return;
  SetAttentionBias edit;
  const arma::mat zeros(model.n_tokens(), model.n_keys(), arma::fill::zeros);
  if (*chosen > 0)
    edit.value.assign(*chosen == 1 ? 1 : model.n_heads,
                      biases.empty() ? SharedMatrix(zeros) : biases.front());
  fields.frame.commands.edit(std::move(edit));
}

void sink_row(PopupFields& fields, const Model& model) {
  fields.row("sink");
  const auto on = checkbox(
      fields.frame, "more/sink", "one logit per head", model.additions.sink.has_value(),
      "Attention sink: exp(sink) is added to the softmax sum of each row, so that its weights sum to less than 1; initially zeros");
  if (!on) return;
  SetSink edit;
  if (*on) edit.value = arma::mat(1, model.n_heads, arma::fill::zeros);
  fields.frame.commands.edit(std::move(edit));
}

}  // namespace

std::string additions_words(const Model& model, std::size_t sequence) {
  std::vector<std::string> parts;
  const auto& a = model.additions;
  if (model.kv_heads() != model.n_heads)
    parts.push_back(fmt::format("KV heads {} → {}", model.n_heads, model.kv_heads()));
  if (model.has_key_embeddings())
    parts.push_back(
        core::text::counted(model.n_keys(), model.mask.causal ? "cached token" : "encoder state"));
  if (a.normalize)
    parts.push_back("QK " + norms.at(1 + static_cast<std::size_t>(a.normalize->rule)) +
                    (a.normalize->over == NormScope::all_heads ? " over all heads" : ""));
  for (const std::string& words : positions_words(a.positions)) parts.push_back(words);
  if (a.softcap) parts.push_back("softcap " + core::text::number_text(*a.softcap));
  if (!a.score_bias.empty()) parts.push_back(a.score_bias.size() == 1 ? "bias" : "bias per head");
  const bool adds = !parts.empty() || a.sink;
  if (!adds) return "";
  if (const std::string rules = mask_rules_words(model.mask, sequence); !rules.empty())
    parts.push_back(rules);
  if (a.sink) parts.push_back("sink");
  return core::text::joined(parts, " · ");
}

void draw_additions_popup(const Frame& frame, const char* name, ImVec2 top_left) {
  ImGui::SetNextWindowPos(top_left, ImGuiCond_Always);
  if (!ImGui::BeginPopup(name)) return;
  const Model& model = frame.pending.model;
  {
    PopupFields fields(frame, "additions");
    kv_heads_row(fields, model);
    keys_rows(fields, model);
    norm_rows(fields, model);
    rotary_rows(fields, model);
    distance_rows(fields, model);
    softcap_row(fields, model);
    score_bias_row(fields, model);
    sink_row(fields, model);
  }  // ends the table
  const float width = ImGui::GetItemRectSize().x;
  draw_rows_under_more(frame, width, width - frame.metrics.px(popup_controls));
  ImGui::EndPopup();
}

namespace {

constexpr float max_picture_height = 240;  // at scale 1
constexpr float smallest_cell = 3;         // in pixels; smaller cells are hard to point at
constexpr std::size_t n_kinds = 8;

/// Name and color of a kind of cells.
struct CellKind {
  CellVisibility visibility;
  const char* words;
  Rgb color;
  float strength;  ///< of the color over the popup
};

std::array<CellKind, n_kinds> cell_kinds(const core::color::Palette& p) {
  return {{{{true, VisibilityReason::by_nothing}, "unmasked", p.accent, 0.9f},
           {{true, VisibilityReason::by_prefix}, "unmasked: prefix", p.head(2), 0.9f},
           {{false, VisibilityReason::by_future}, "masked: future position", p.faint, 0.25f},
           {{false, VisibilityReason::by_window}, "outside the window", p.head(1), 0.3f},
           {{false, VisibilityReason::by_document}, "other document", p.head(4), 0.3f},
           {{false, VisibilityReason::by_padding}, "padding", p.head(5), 0.3f},
           {{true, VisibilityReason::by_hand}, "unmasked by hand", p.selection, 0.9f},
           {{false, VisibilityReason::by_hand}, "masked by hand", p.selection, 0.35f}}};
}

/// The mask of one sequence, cell by cell.
class MaskCells {
 public:
  MaskCells(const Model& model, std::size_t sequence) : model_(model), sequence_mask_(model, sequence) {}

  std::size_t n_rows() const { return model_.n_tokens(); }
  std::size_t n_columns() const { return model_.n_keys(); }
  /// Returns the visibility of a cell by the rules, or as it was switched by hand.
  CellVisibility at(std::size_t row, std::size_t column) const {
    const auto* by_hand = model_.mask.find(row, column);
    return by_hand ? CellVisibility{by_hand->visible, VisibilityReason::by_hand}
                   : sequence_mask_.by_rules(row, column);
  }

 private:
  const Model& model_;
  core::attention::SequenceMask sequence_mask_;
};

/// Screen layout of the cells.
struct MaskGrid {
  ImVec2 corner, size;
  std::size_t n_rows, n_columns;

  float cell_width() const { return size.x / static_cast<float>(n_columns); }
  float cell_height() const { return size.y / static_cast<float>(n_rows); }
  float x(std::size_t column) const {
    return std::round(corner.x + cell_width() * static_cast<float>(column));
  }
  float y(std::size_t row) const { return std::round(corner.y + cell_height() * static_cast<float>(row)); }
  bool can_be_painted() const { return std::min(cell_width(), cell_height()) >= smallest_cell; }
  /// Returns row and column of the cell at a point, or of the nearest one if it is outside.
  std::pair<std::size_t, std::size_t> cell_at(ImVec2 point) const {
    const auto index = [](float along, float length, std::size_t count) {
      const float part = std::clamp(along / length, 0.0f, 0.999999f);
      return std::min(count - 1, static_cast<std::size_t>(part * static_cast<float>(count)));
    };
    return {index(point.y - corner.y, size.y, n_rows), index(point.x - corner.x, size.x, n_columns)};
  }
};

MaskGrid grid_in(const Frame& frame, const MaskCells& cells, float width) {
  const float most = frame.metrics.px(max_picture_height);
  const auto rows = static_cast<float>(cells.n_rows()), columns = static_cast<float>(cells.n_columns());
  const float cell = std::min(width / columns, most / rows);
  return {ImGui::GetCursorScreenPos(),
          {std::max(std::round(cell * columns), 1.0f), std::max(std::round(cell * rows), 1.0f)},
          cells.n_rows(),
          cells.n_columns()};
}

std::size_t kind_of(const std::array<CellKind, n_kinds>& kinds, CellVisibility visibility) {
  const auto same = std::ranges::find_if(kinds, [&](const CellKind& k) {
    return k.visibility.visible == visibility.visible && k.visibility.reason == visibility.reason;
  });
  return same == kinds.end() ? (visibility.visible ? 0 : 2) : static_cast<std::size_t>(same - kinds.begin());
}

ImU32 color_of(const Frame& frame, const CellKind& kind) {
  return packed(mix(kind.color, frame.palette.background.raised, kind.strength));
}

/// Draws runs of one kind in a row as one rectangle; cells smaller than a pixel are sampled. Returns the
/// kinds that occur.
std::set<std::size_t> draw_cells(const Frame& frame, const MaskCells& cells, const MaskGrid& grid,
                                 const std::array<CellKind, n_kinds>& kinds) {
  const auto step = [](float cell) { return std::max<std::size_t>(1, static_cast<std::size_t>(1 / cell)); };
  const std::size_t row_step = step(grid.cell_height()), column_step = step(grid.cell_width());
  const float gap = grid.cell_width() >= 8 ? 1.0f : 0.0f;
  std::set<std::size_t> found;
  for (std::size_t row = 0; row < grid.n_rows; row += row_step) {
    std::size_t from = 0, kind = kind_of(kinds, cells.at(row, 0));
    const auto end_run = [&](std::size_t end) {
      draw_rect({grid.x(from), grid.y(row)},
                {grid.x(end) - gap, grid.y(std::min(row + row_step, grid.n_rows)) - gap},
                color_of(frame, kinds[kind]));
      found.insert(kind);
    };
    for (std::size_t column = column_step; column < grid.n_columns; column += column_step) {
      const std::size_t next = kind_of(kinds, cells.at(row, column));
      if (next == kind && gap == 0) continue;
      end_run(column);
      from = column, kind = next;
    }
    end_run(grid.n_columns);
  }
  return found;
}

/// Sets all cells that the mouse has crossed since the last frame to the state of the stroke's first cell.
void paint(const Frame& frame, const MaskCells& cells, const MaskGrid& grid, bool begins) {
  const auto start = grid.cell_at(ImGui::GetIO().MouseClickedPos[0]);
  const bool visible = cells.at(start.first, start.second).visible;
  const auto change = [&](std::pair<std::size_t, std::size_t> cell, bool to) {
    if (cells.at(cell.first, cell.second).visible != to)
      frame.commands.edit(core::editing::SwitchMaskCell{cell.first, cell.second, to});
  };
  if (begins) return change(start, !visible);
  const ImVec2 now = ImGui::GetIO().MousePos, delta = ImGui::GetIO().MouseDelta;
  const float distance = std::max(std::fabs(delta.x), std::fabs(delta.y));
  const int n_steps = 1 + static_cast<int>(distance / std::min(grid.cell_width(), grid.cell_height()));
  std::set<std::pair<std::size_t, std::size_t>> crossed;
  for (int k = 0; k <= n_steps; ++k) {
    const float part = static_cast<float>(k) / static_cast<float>(n_steps);
    crossed.insert(grid.cell_at({now.x - delta.x * part, now.y - delta.y * part}));
  }
  for (const auto& cell : crossed)
    if (cell != start) change(cell, visible);
}

void explain_cell(const Frame& frame, const MaskGrid& grid, std::size_t sequence) {
  const auto [row, column] = grid.cell_at(ImGui::GetIO().MousePos);
  std::string words = core::explain::describe_visibility(frame.pending.model, sequence, row, column);
  if (grid.can_be_painted())
    words += "\nDrag over positions to mask or unmask them.";
  else
    words += "\nToo many tokens to point at single positions here: zoom into a map of the mask and press M.";
  ImGui::SetTooltip("%s", words.c_str());
}

/// Draws a legend of these kinds, a square and a label each, in as many rows as they need.
void draw_legend(const Frame& frame, const std::array<CellKind, n_kinds>& kinds,
                 const std::set<std::size_t>& found, ImVec2 at, float width) {
  const auto& m = frame.metrics;
  ImFont* font = frame.fonts.sans13;
  Flow flow{at, width, m.px(14), m.px(18)};
  for (const std::size_t k : found) {
    const ImVec2 place = flow.place(m.px(14) + text_width(font, kinds[k].words));
    draw_rect({place.x, place.y + m.px(4)}, {place.x + m.px(9), place.y + m.px(13)},
              color_of(frame, kinds[k]));
    draw_text(font, {place.x + m.px(14), place.y}, frame.palette.dim, kinds[k].words);
  }
  reserve_room(at, {width, flow.next.y + flow.pitch - at.y});
}

/// Draws the mask of the displayed sequence as a picture, queries × keys, colored by the rule that decides
/// each cell, with a legend below; a stroke masks or unmasks cells, as its first cell.
///
/// Draws at the cursor, at most as wide as given.
void draw_mask_picture(const Frame& frame, float width) {
  const Model& model = frame.pending.model;
  if (model.sequences.empty() || model.n_tokens() == 0 || model.n_keys() == 0) return;
  const std::size_t sequence = std::min(frame.pending.look.sequence, model.sequences.size() - 1);
  const MaskCells cells(model, sequence);
  const MaskGrid grid = grid_in(frame, cells, width);
  const auto kinds = cell_kinds(frame.palette);
  const auto found = draw_cells(frame, cells, grid, kinds);
  hit_area("mask picture", grid.size);
  frame.landmarks.mark("model/mask_picture", grid.corner,
                       {grid.corner.x + grid.size.x, grid.corner.y + grid.size.y});
  if (ImGui::IsItemActive() && grid.can_be_painted()) paint(frame, cells, grid, ImGui::IsItemActivated());
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive()) explain_cell(frame, grid, sequence);
  draw_legend(frame, kinds, found, {grid.corner.x, grid.corner.y + grid.size.y + frame.metrics.px(6)}, width);
}

const std::array<std::string, 2> alignments{"the last keys", "the first keys"};

std::string counts_text(std::span<const std::size_t> counts, const char* between = " ") {
  return core::text::joined(counts, between, [](std::size_t n) { return std::to_string(n); });
}

std::string side_text(const std::optional<std::size_t>& side) {
  return side ? std::to_string(*side) : "-1";
}

/// Reads a sliding window such as "2, 0"; "-1" is no limit, and an empty text no window.
std::optional<MaskWindow> parse_window(const std::string& text) {
  if (text.find_first_not_of(' ') == text.npos) return MaskWindow();
  const std::size_t comma = text.find_first_of(",; ", text.find_first_not_of(' '));
  if (comma == text.npos) return std::nullopt;
  const auto side = [](const std::string& part, std::optional<std::size_t>& into) {
    const std::string number = part.substr(std::min(part.find_first_not_of(", ;"), part.size()));
    if (number == "-1" || number == "−1") return true;
    const auto counts = parse_counts(number);
    if (!counts || counts->size() != 1) return false;
    into = counts->front();
    return true;
  };
  MaskWindow window;
  if (!side(text.substr(0, comma), window.left) || !side(text.substr(comma), window.right))
    return std::nullopt;
  return window;
}

void window_row(PopupFields& fields, const Mask& mask) {
  const bool is_set = mask.window != MaskWindow();
  const std::string shown =
      is_set ? side_text(mask.window.left) + ", " + side_text(mask.window.right) : std::string();
  const auto typed = fields.field(
      "sliding window", "mask/window", shown,
      "Sliding window: how many keys left and right of its own position a query attends to, such as 3, 0; −1 for no limit (window_size of FlashAttention).",
      "none, or 3, 0");
  if (!typed) return;
  if (const auto window = parse_window(*typed))
    fields.frame.commands.edit(SetSlidingWindow{*window});
  else
    fields.report_invalid("sliding window", "two whole numbers, such as 3, 0 (−1 for no limit)", *typed);
}

void prefix_row(PopupFields& fields, const Mask& mask) {
  const auto typed = fields.field(
      "prefix length", "mask/prefix", mask.prefix > 0 ? std::to_string(mask.prefix) : "",
      "Prefix length: the number of first keys that every query attends to, even later ones.", "none, or 2");
  if (!typed) return;
  const auto counts = parse_counts(*typed);
  if (counts && counts->size() <= 1)
    fields.frame.commands.edit(SetPrefixLength{counts->empty() ? 0 : counts->front()});
  else
    fields.report_invalid("prefix length", "a whole number or nothing", *typed);
}

void documents_row(PopupFields& fields, const Mask& mask) {
  const auto typed = fields.field(
      "document IDs", "mask/documents", counts_text(mask.documents),
      "Document IDs of packed sequences, such as 0 0 0 1 1 2: a query attends to keys of its own document only.",
      "one, or 0 0 0 1 1 2");
  if (!typed) return;
  if (const auto documents = parse_counts(*typed))
    fields.frame.commands.edit(SetDocumentIds{*documents});
  else
    fields.report_invalid("document IDs", "whole numbers, one for each token", *typed);
}

void padding_row(PopupFields& fields, const Mask& mask, std::size_t sequence, std::size_t n_sequences) {
  const std::string shown = sequence < mask.hidden_keys.size() ? counts_text(mask.hidden_keys[sequence]) : "";
  const auto typed = fields.field(
      "padding mask", "mask/padding", shown,
      n_sequences > 1 ? "Padding mask: keys of this sequence that no query attends to, such as 6 7."
                      : "Padding mask: keys that no query attends to, such as 6 7.",
      "none, or 6 7");
  if (!typed) return;
  const auto keys = parse_counts(*typed);
  if (!keys) return fields.report_invalid("padding mask", "whole numbers of keys", *typed);
  auto all = mask.hidden_keys;
  all.resize(n_sequences);
  all[sequence] = *keys;
  fields.frame.commands.edit(SetPaddingMask{std::move(all)});
}

void alignment_row(PopupFields& fields, const Mask& mask) {
  fields.row("queries are");
  const auto now = static_cast<std::size_t>(mask.align);
  if (const auto chosen = segmented(fields.frame, "mask/align", alignments, now))
    fields.frame.commands.edit(SetMaskAlignment{static_cast<MaskAlignment>(*chosen)});
  tooltip(
      "Where fewer queries than keys are placed: at the last keys, as with a KV cache, or from the first on, like PyTorch's is_causal=True.");
}

}  // namespace

std::string mask_rules_words(const Mask& mask, std::size_t sequence) {
  std::vector<std::string> rules;
  if (mask.window != MaskWindow())
    rules.push_back("window " + side_text(mask.window.left) + ", " + side_text(mask.window.right));
  if (mask.prefix > 0) rules.push_back("prefix " + std::to_string(mask.prefix));
  if (!mask.documents.empty()) rules.push_back("documents");
  if (sequence < mask.hidden_keys.size() && !mask.hidden_keys[sequence].empty())
    rules.push_back("padding " + counts_text(mask.hidden_keys[sequence]));
  if (mask.align == MaskAlignment::first) rules.push_back("first keys");
  return core::text::joined(rules, " · ");
}

void draw_mask_popup(const Frame& frame, const char* name, ImVec2 top_left) {
  ImGui::SetNextWindowPos(top_left, ImGuiCond_Always);
  if (!ImGui::BeginPopup(name)) return;
  const auto& model = frame.pending.model;
  {
    PopupFields fields(frame, "rules");
    window_row(fields, model.mask);
    prefix_row(fields, model.mask);
    documents_row(fields, model.mask);
    padding_row(fields, model.mask, std::min(frame.pending.look.sequence, model.sequences.size() - 1),
                model.sequences.size());
    if (model.n_keys() != model.n_tokens() || model.mask.align != MaskAlignment::last)
      alignment_row(fields, model.mask);
  }  // ends the table
  draw_mask_picture(frame, ImGui::GetItemRectSize().x);
  ImGui::EndPopup();
}

}  // namespace app::panels
