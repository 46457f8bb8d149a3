#include "core/graph/words.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/base/text.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/stages.hpp"

namespace core::explain {

using std::to_string;

namespace {

constexpr int digits = 12;  // as plain_text() promises

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, digits);
  return {buffer.data(), end.ptr};
}

/// ASCII text for a sign.
struct Sign {
  const char *sign, *plain;
};

std::string ascii(std::string text) {
  constexpr std::array signs{Sign{"·", "."},   Sign{"×", "*"},       Sign{"÷", "/"},  Sign{"√", "sqrt "},
                             Sign{"−", "-"},   Sign{"∞", "inf"},     Sign{"≤", "<="}, Sign{"≠", "!="},
                             Sign{"Σ", "sum"}, Sign{"ε", "epsilon"}, Sign{"⁰", "^0"}, Sign{"¹", "^1"},
                             Sign{"²", "^2"},  Sign{"³", "^3"},      Sign{"⁴", "^4"}, Sign{"⁵", "^5"},
                             Sign{"⁶", "^6"},  Sign{"⁷", "^7"},      Sign{"⁸", "^8"}, Sign{"⁹", "^9"},
                             Sign{"_", ""}};
  for (const auto& [sign, plain] : signs)
    for (std::size_t at = text.find(sign); at != std::string::npos; at = text.find(sign, at))
      text.replace(at, std::string(sign).size(), plain);
  return text;
}

std::string operands_in_words(const StepLine& line) {
  const std::string a = number(line.a.value), b = number(line.b.value);
  switch (line.form) {
    case LineForm::words:
    case LineForm::single:
      return {};
    case LineForm::product:
    case LineForm::factor:
      return a + " * " + b;
    case LineForm::division:
      return a + " / " + b;
    case LineForm::addition:
      return a + " + " + b;
    case LineForm::exponential:
      return "exp(" + a + " - " + b + ")";
  }
  return {};
}

std::string text_of(const StepLine& line, const attention::Sequence& sequence) {
  std::string text = words(line.label, sequence);
  for (const std::string& more : {ascii(line.words), operands_in_words(line)})
    if (!more.empty()) text += (text.empty() ? "" : "  ") + more;
  return text + (text.empty() ? "= " : " = ") + number(line.value);
}

}  // namespace

std::string name(Source source) {
  if (const auto* input = std::get_if<MatrixName>(&source)) return symbol(*input);
  return attention::info(std::get<Stage>(source)).title;
}

std::string name(const SourceCell& place) {
  const std::string row = to_string(place.row), column = fmt::format("[{}]", place.column);
  if (const auto* input = std::get_if<MatrixName>(&place.source))
    return name(place.source) + (attention::has_one_row(*input) ? column : "[" + row + "]" + column);
  switch (std::get<Stage>(place.source)) {
    case Stage::embeddings:
      return "x_" + row + column;
    case Stage::key_embeddings:
      return "m_" + row + column;
    case Stage::queries:
      return "q_" + row + column;
    case Stage::keys:
      return "k_" + row + column;
    case Stage::values:
      return "v_" + row + column;
    default:
      return name(place.source) + "[" + row + "]" + column;
  }
}

std::string words(const Label& label, const attention::Sequence& sequence) {
  switch (label.kind) {
    case Label::token:
      return sequence.keys()[label.index];
    case Label::query:
      return sequence.tokens[label.index];
    case Label::head:
      return "head " + to_string(label.index);
    case Label::column:
      return "column " + to_string(label.index);
    case Label::sink:
      return "sink";
    case Label::none:
      break;
  }
  return {};
}

std::string plain_text(const Explanation& explanation, const attention::Sequence& sequence) {
  const auto& cell = explanation.cell;
  const auto& stage = attention::info(cell.stage);
  std::string text =
      std::string(stage.name) + (stage.per_head ? ", head " + to_string(cell.head) : "") + ", row " +
      to_string(cell.row) + " (" + attention::row_tokens(stage, sequence)[cell.row] + "), column " +
      to_string(cell.column) +
      (stage.columns == attention::Columns::tokens ? " (" + sequence.keys()[cell.column] + ")" : "") + " = " +
      number(explanation.result) + "\n";
  for (std::size_t s = 0; s < explanation.steps.size(); ++s) {
    const Step& step = explanation.steps[s];
    text += fmt::format("\n{}  {}{}\n", s + 1, step.title,
                        step.formula.empty() ? "" : "  " + ascii(step.formula));
    for (const StepLine& line : step.lines) text += "   " + text_of(line, sequence) + "\n";
  }
  return text;
}

namespace {

using attention::Mask;
using attention::VisibilityReason;

std::string window_words(const attention::MaskWindow& window) {
  const auto side = [](const std::optional<std::size_t>& n, const char* name) {
    return n ? fmt::format("{} {}", *n, name) : std::string();
  };
  const std::string left = side(window.left, "left"), right = side(window.right, "right");
  return left + (left.empty() || right.empty() ? "" : ", ") + right;
}

/// Returns the reason where something other than the causal rule decides.
std::string reason_words(const Mask& mask, VisibilityReason reason, std::size_t query, std::size_t key) {
  const std::string k = "key " + to_string(key), q = "query " + to_string(query);
  switch (reason) {
    case VisibilityReason::by_window:
      return k + " is outside the window of " + q + " (" + window_words(mask.window) + ")";
    case VisibilityReason::by_prefix:
      return fmt::format("{} is one of the first {}, which every query attends to", k, mask.prefix);
    case VisibilityReason::by_document:
      return fmt::format("{} is of document {}, {} of document {}", k, mask.documents[key], q,
                         mask.documents[query]);
    case VisibilityReason::by_padding:
      return k + " is padding";
    default:
      return "";
  }
}

/// Returns the same as a formula; `place` is the query's position among the keys.
std::string rule_formula(const Mask& mask, VisibilityReason reason, std::size_t query, std::size_t key,
                         std::int64_t place) {
  const std::string k = "key " + to_string(key);
  switch (reason) {
    case VisibilityReason::by_window:
      if (static_cast<std::int64_t>(key) < place)
        return fmt::format("{} < {} − {}", k, place, *mask.window.left);
      return fmt::format("{} > {} + {}", k, place, *mask.window.right);
    case VisibilityReason::by_prefix:
      return fmt::format("{} < prefix {}", k, mask.prefix);
    case VisibilityReason::by_document:
      return fmt::format("document {} ≠ {}", mask.documents[key], mask.documents[query]);
    case VisibilityReason::by_padding:
      return k + " is padding";
    default:
      return "";
  }
}

bool is_causal(const Model& model) {
  return model.mask.causal && model.mask.edge == attention::MaskEdge();
}

/// Returns why the causal rule masks a key if its edge is shifted or transposed.
std::string shifted_mask_text(const Model& model, std::size_t query, std::size_t key) {
  const attention::MaskEdge& edge = model.mask.edge;
  const std::string q = "query " + to_string(query), k = "key " + to_string(key);
  const std::string by = edge.diagonal > 0   ? " + " + to_string(edge.diagonal)
                         : edge.diagonal < 0 ? " − " + to_string(-edge.diagonal)
                                             : "";
  if (edge.transposed)
    return k + " comes before " + q + (by.empty() ? "" : " by more than " + to_string(edge.diagonal)) +
           ", as the mask is transposed";
  return k + " comes after " + q + by + ", as the mask is shifted";
}

}  // namespace

std::string visibility_formula(const Model& model, std::size_t sequence, std::size_t query, std::size_t key) {
  const auto [visible, reason] = attention::visibility(model, sequence, query, key);
  if (reason == VisibilityReason::by_hand) return visible ? "unmasked by hand" : "masked by hand";
  if (std::string words = rule_formula(bugs::effective_mask(model), reason, query, key,
                                       attention::aligned_query_position(model, query));
      !words.empty())
    return words;
  if (!model.mask.causal)
    return model.mask.window == attention::MaskWindow()
               ? "no causal mask"
               : "within the window (" + window_words(model.mask.window) + ")";
  if (!is_causal(model)) return "by another rule than the causal one";
  const std::int64_t later = attention::aligned_query_position(model, 0);
  return fmt::format("key {}{}{}{}", key, visible ? " ≤ query " : " > query ", query,
                     later > 0   ? " + " + to_string(later)
                     : later < 0 ? " − " + to_string(-later)
                                 : "");
}

std::string describe_visibility(const Model& model, std::size_t sequence, std::size_t query,
                                std::size_t key) {
  const auto [visible, reason] = attention::visibility(model, sequence, query, key);
  if (reason == VisibilityReason::by_hand) return visible ? "unmasked by hand" : "masked by hand";
  if (std::string words = reason_words(bugs::effective_mask(model), reason, query, key); !words.empty())
    return (visible ? "unmasked: " : "masked: ") + words;
  if (visible) return "unmasked";
  if (!is_causal(model)) return "masked: " + shifted_mask_text(model, query, key);
  const std::int64_t place = attention::aligned_query_position(model, query);
  std::string words = fmt::format("masked: key {} comes after query {}", key, query);
  if (place == static_cast<std::int64_t>(query)) return words;
  return words + (place < 0 ? ", which comes before every key"
                            : ", which is the position of key " + to_string(place));
}

namespace {

constexpr std::size_t max_cells = 4096;  // scanned for a sentence
constexpr double masked_threshold = -1e8, sum_tolerance = 1e-6;

bool is_given(const Model& m, Stage stage) {
  return m.given.find(stage) != nullptr;
}

/// Returns "a", "a and b" or "a, b and c".
std::string listed(const std::vector<std::string>& all) {
  return core::text::joined(all, ", ", {}, " and ");
}

std::string capital(std::string words) {
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z')
    words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words;
}

std::string describe_projections(const graph::Graph& g, const Model& m) {
  const attention::StageSet stages = attention::existing_stages(g, m);
  struct ProjectionNames {
    Stage stage;
    const char *one, *many;
  };
  constexpr std::array all{ProjectionNames{Stage::queries, "a query", "queries"},
                           ProjectionNames{Stage::keys, "a key", "keys"},
                           ProjectionNames{Stage::values, "a value", "values"}};
  std::vector<std::string> from_token, from_source, given;
  for (const ProjectionNames& projection : all) {
    if (!contains(stages, projection.stage)) continue;
    if (is_given(m, projection.stage))
      given.emplace_back(projection.many);
    else
      (projection.stage != Stage::queries && m.has_key_embeddings() ? from_source : from_token)
          .emplace_back(projection.one);
  }
  std::string words;
  if (!from_token.empty() && m.projections) words = "Each token makes " + listed(from_token);
  if (!from_token.empty() && !m.projections) {
    for (std::string& one : from_token) one.erase(0, 2);  // "a query" is its own query
    words = "Each token is its own " + listed(from_token);
  }
  if (!from_source.empty())
    words += (words.empty() ? "Each other token makes " : "; other tokens make ") + listed(from_source);
  if (!given.empty()) words += (words.empty() ? capital(listed(given)) : "; " + listed(given)) + " are given";
  if (m.kv_heads() < m.n_heads && contains(stages, Stage::keys)) words += "; heads share keys and values";
  if (contains(stages, Stage::rotated_queries)) words += "; RoPE rotates them";
  return words;
}

/// Describes which of the masked scores are masked, by whatever rule.
std::string describe_masking(const Computation& of, std::size_t head) {
  const auto& [g, m, trace] = of;
  if (!contains(attention::existing_stages(g, m), Stage::masked_scores)) return "";
  const auto& masked = trace.at(attention::Stage::masked_scores, head);
  if (masked.n_rows() * masked.n_cols() > max_cells) {
    const bool before = m.mask.is_before_softmax();
    if (!m.mask.masks_keys() || !before || !m.given.empty()) return "";
    const auto* fill = g.get<graph::MaskedFill>(Stage::masked_scores);
    return fill && fill->is_only_causal ? "; the future is masked" : "; some keys are masked";
  }
  bool any = false, future = true, past = true, lowered = false;
  for (std::size_t i = 0; i < masked.n_rows(); ++i) {
    const std::int64_t place = attention::aligned_query_position(m, i);
    for (std::size_t j = 0; j < masked.n_cols(); ++j) {
      const bool is_masked = masked(i, j) < masked_threshold;
      const auto key = static_cast<std::int64_t>(j);
      any = any || is_masked;
      future = future && is_masked == (key > place);
      past = past && is_masked == (key < place);
      lowered = lowered || (!is_masked && trace.at(attention::Stage::mask)(i, j) == 0);
    }
  }
  const bool before = m.mask.is_before_softmax();
  if (!any) return before && lowered ? "; the mask lowers some scores" : "";
  return future ? "; the future is masked" : past ? "; the past is masked" : "; some keys are masked";
}

std::string describe_scores(const Computation& of, std::size_t head) {
  const auto& [g, m, trace] = of;
  const auto* products = g.get<graph::DotProducts>(Stage::scores);
  std::string words = !products              ? "No query prefers any key"
                      : products->is_swapped ? "Dot products of keys and queries"
                                             : "Dot products of queries and keys";
  for (const Stage stage : {Stage::scores, Stage::scaled_scores, Stage::masked_scores})
    if (is_given(m, stage))
      words = stage == Stage::scores          ? "Scores are given"
              : stage == Stage::scaled_scores ? "Scaled scores are given"
                                              : "Masked scores are given";
  return words + describe_masking(of, head);
}

std::string describe_dropout(const Computation& of, std::size_t head) {
  const auto& [g, m, trace] = of;
  if (is_given(m, Stage::dropout_mask)) return "; the dropout mask is given";
  if (!m.dropout.active()) return "";
  if (!g.get<graph::Multiply>(Stage::dropped_weights)) return "; dropout is applied to the scores";
  const auto &weights = trace.at(attention::Stage::weights, head),
             &dropped = trace.at(attention::Stage::dropped_weights, head);
  if (weights.n_rows() * weights.n_cols() > max_cells) return "; dropout removes some";
  bool removes = false, enlarges = false;
  for (std::size_t i = 0; i < weights.n_rows(); ++i)
    for (std::size_t j = 0; j < weights.n_cols(); ++j) {
      removes = removes || (weights(i, j) != 0 && dropped(i, j) == 0);
      enlarges = enlarges || std::abs(dropped(i, j)) > std::abs(weights(i, j)) * (1 + 1e-9);
    }
  return removes && enlarges ? "; dropout removes some and rescales the rest"
         : removes           ? "; dropout removes some"
         : enlarges          ? "; dropout removes none and rescales all"
                             : "";
}

std::string describe_weights(const Computation& of, std::size_t head) {
  const auto& [g, m, trace] = of;
  using attention::MaskMethod;
  std::string words = is_given(m, Stage::weights) ? "Weights are given" : "Scores become weights";
  if (!is_given(m, Stage::weights) && m.mask.masks_keys()) {
    if (m.mask.method == MaskMethod::renormalize) words += ", masked ones 0 and each row divided by its sum";
    if (m.mask.method == MaskMethod::zero_after_softmax) words += ", masked ones 0";
  }
  if (const std::string sums = describe_row_sums(trace, head); !sums.empty()) words += "; " + sums;
  return words + describe_dropout(of, head);
}

std::string describe_output(const graph::Graph& g, const Model& m) {
  std::string words = "Context vectors = weights · V";
  const graph::HeadLayout* layout = g.find(Stage::concatenated)->operation->inputs[0].layout;
  if (m.n_heads > 1)
    words += layout == &graph::untransposed  ? "; heads are combined without the transpose"
             : layout == &graph::interleaved ? "; heads are interleaved"
                                             : "; heads are concatenated";
  if (m.projections && m.projections->output) words += m.n_heads > 1 ? " and projected" : ", then projected";
  if (const std::size_t n = m.heads_off.size(); n > 0)
    words += fmt::format("; {}{}", n, n == 1 ? " head is ablated" : " heads are ablated");
  return words;
}

std::size_t count_overridden(const Model& m, const Trace& trace, std::size_t head, int line) {
  return static_cast<std::size_t>(std::ranges::count_if(m.given.cells, [&](const attention::GivenCell& cell) {
    const auto& p = cell.place;
    return p.sequence == trace.sequence && attention::info(p.stage).line == line &&
           p.head == matrix_of_head(m, p.stage, head);
  }));
}

}  // namespace

std::string describe_row_sums(const Trace& trace, std::size_t head) {
  const auto& weights = trace.at(attention::Stage::weights, head);
  if (weights.n_rows() * weights.n_cols() > max_cells || weights.n_rows() == 0) return "";
  const arma::mat& numbers = weights;
  if (numbers.has_nan()) return "some weights are not numbers";
  const auto sums_to_one = [](const arma::vec& sums) {
    return std::ranges::all_of(sums, [](double sum) { return std::abs(sum - 1) <= sum_tolerance; });
  };
  if (sums_to_one(arma::sum(numbers, 1))) return "a row sums to 1";
  if (sums_to_one(arma::sum(numbers, 0).t())) return "a column sums to 1, not a row";
  return "rows do not all sum to 1";
}

std::string describe_line(const Computation& of, std::size_t head, int line) {
  std::string words = line == 1   ? describe_projections(of.graph, of.model)
                      : line == 2 ? describe_scores(of, head)
                      : line == 3 ? describe_weights(of, head)
                                  : describe_output(of.graph, of.model);
  if (const std::size_t n = count_overridden(of.model, of.trace, head, line); n > 0)
    words += fmt::format("; {}{} overridden", n, n == 1 ? " number is" : " numbers are");
  return words;
}

}  // namespace core::explain
