#include "core/graph/line_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/base/text.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/visible.hpp"

namespace core::explain {
namespace {

using attention::Model;
using attention::Stage;
using attention::Trace;

constexpr std::size_t most_cells = 4096;  // that are looked through for a sentence
constexpr double as_good_as_hidden = -1e8, sum_tolerance = 1e-6;

bool present(const Model& m, Stage stage) {
  return attention::info(stage).present(m);
}
bool is_given(const Model& m, Stage stage) {
  return m.given.find(stage) != nullptr;
}

/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& all) {
  return core::text::joined(all, ", ", {}, " and ");
}

std::string capital(std::string words) {
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z')
    words[0] = static_cast<char>(words[0] - 'a' + 'A');
  return words;
}

std::string making(const Model& m) {
  struct Made {
    Stage stage;
    const char *one, *many;
  };
  constexpr std::array all{Made{Stage::queries, "a query", "queries"}, Made{Stage::keys, "a key", "keys"},
                           Made{Stage::values, "a value", "values"}};
  std::vector<std::string> asking, asked, given;
  for (const Made& made : all) {
    if (!present(m, made.stage)) continue;
    if (is_given(m, made.stage))
      given.emplace_back(made.many);
    else
      (made.stage != Stage::queries && m.has_memory() ? asked : asking).emplace_back(made.one);
  }
  std::string words;
  if (!asking.empty() && m.projections) words = "Each token makes " + listed(asking);
  if (!asking.empty() && !m.projections) {
    for (std::string& one : asking) one.erase(0, 2);  // "a query" is its own query
    words = "Each token is its own " + listed(asking);
  }
  if (!asked.empty())
    words += (words.empty() ? "Each other token makes " : "; other tokens make ") + listed(asked);
  if (!given.empty()) words += (words.empty() ? capital(listed(given)) : "; " + listed(given)) + " are given";
  if (m.n_groups() < m.n_heads && present(m, Stage::keys)) words += "; heads share keys and values";
  if (present(m, Stage::rotated_queries)) words += "; their positions turn them";
  return words;
}

/// What is hidden in the masked scores, whatever rule did it.
std::string hidden_words(const Model& m, const Trace& trace, std::size_t head) {
  if (!present(m, Stage::masked_scores)) return "";
  const auto& masked = trace.heads[head].masked_scores;
  if (masked.n_rows() * masked.n_cols() > most_cells) {
    const bool before = m.mask.is_before_softmax();
    if (!m.mask.hides() || !before || !m.given.empty()) return "";
    const bool plain = m.mask.is_plainly_causal() && m.departures.mask_edge == attention::MaskEdge();
    return plain ? "; the future is hidden" : "; some keys are hidden";
  }
  bool any = false, future = true, past = true, lowered = false;
  for (std::size_t i = 0; i < masked.n_rows(); ++i) {
    const std::int64_t place = attention::place_of_query(m, i);
    for (std::size_t j = 0; j < masked.n_cols(); ++j) {
      const bool hidden = masked(i, j) < as_good_as_hidden;
      const auto key = static_cast<std::int64_t>(j);
      any = any || hidden;
      future = future && hidden == (key > place);
      past = past && hidden == (key < place);
      lowered = lowered || (!hidden && trace.mask(i, j) == 0);
    }
  }
  const bool before = m.mask.is_before_softmax();
  if (!any) return before && lowered ? "; the mask lowers some scores" : "";
  return future ? "; the future is hidden" : past ? "; the past is hidden" : "; some keys are hidden";
}

std::string meeting(const Model& m, const Trace& trace, std::size_t head) {
  std::string words = m.departures.scores_swapped ? "Each key meets each query" : "Each query meets each key";
  if (m.scores == attention::ScoreRule::uniform) words = "No query prefers any key";
  for (const Stage stage : {Stage::scores, Stage::scaled_scores, Stage::masked_scores})
    if (is_given(m, stage))
      words = stage == Stage::scores          ? "Scores are given"
              : stage == Stage::scaled_scores ? "Scaled scores are given"
                                              : "Masked scores are given";
  return words + hidden_words(m, trace, head);
}

std::string dropping(const Model& m, const Trace& trace, std::size_t head) {
  if (is_given(m, Stage::dropout_mask)) return "; the dropout mask is given";
  if (!m.dropout.active()) return "";
  if (m.departures.dropout_place != attention::DropoutPlace::weights) return "; dropout fell on the scores";
  const auto &weights = trace.heads[head].weights, &dropped = trace.heads[head].dropped_weights;
  if (weights.n_rows() * weights.n_cols() > most_cells) return "; dropout removes some";
  bool removes = false, enlarges = false;
  for (std::size_t i = 0; i < weights.n_rows(); ++i)
    for (std::size_t j = 0; j < weights.n_cols(); ++j) {
      removes = removes || (weights(i, j) != 0 && dropped(i, j) == 0);
      enlarges = enlarges || std::abs(dropped(i, j)) > std::abs(weights(i, j)) * (1 + 1e-9);
    }
  return removes && enlarges ? "; dropout removes some and enlarges the rest"
         : removes           ? "; dropout removes some"
         : enlarges          ? "; dropout removes none and enlarges all"
                             : "";
}

std::string weighing(const Model& m, const Trace& trace, std::size_t head) {
  using attention::MaskMethod;
  std::string words = is_given(m, Stage::weights) ? "Weights are given" : "Scores become weights";
  if (!is_given(m, Stage::weights) && m.mask.hides()) {
    if (m.mask.method == MaskMethod::renormalise) words += ", hidden ones 0 and each row divided by its sum";
    if (m.mask.method == MaskMethod::zero_after_softmax) words += ", hidden ones 0";
  }
  if (const std::string sums = sum_words(trace, head); !sums.empty()) words += "; " + sums;
  return words + dropping(m, trace, head);
}

std::string mixing(const Model& m) {
  std::string words = "Weights mix the values";
  if (m.n_heads > 1)
    words += m.merge == attention::MergeRule::reshape_without_transpose
                 ? "; heads are merged without the transpose"
             : m.departures.merge == attention::HeadColumns::interleaved ? "; heads are interleaved"
                                                                         : "; heads stand side by side";
  if (m.projections && m.projections->output) words += " and are projected";
  if (const std::size_t n = m.heads_off.size(); n > 0)
    words += "; " + std::to_string(n) + (n == 1 ? " head is off" : " heads are off");
  return words;
}

std::size_t typed_in(const Model& m, const Trace& trace, std::size_t head, int line) {
  return static_cast<std::size_t>(std::ranges::count_if(m.given.cells, [&](const attention::GivenCell& cell) {
    const auto& p = cell.place;
    return p.sequence == trace.sequence && attention::info(p.stage).line == line &&
           p.head == matrix_of_head(m, p.stage, head);
  }));
}

}  // namespace

std::string sum_words(const Trace& trace, std::size_t head) {
  const auto& weights = trace.heads[head].weights;
  if (weights.n_rows() * weights.n_cols() > most_cells || weights.n_rows() == 0) return "";
  const arma::mat& numbers = weights;
  if (numbers.has_nan()) return "some weights are not numbers";
  const auto sums_to_one = [](const arma::vec& sums) {
    return std::ranges::all_of(sums, [](double sum) { return std::abs(sum - 1) <= sum_tolerance; });
  };
  if (sums_to_one(arma::sum(numbers, 1))) return "a row sums to 1";
  if (sums_to_one(arma::sum(numbers, 0).t())) return "a column sums to 1, not a row";
  return "rows do not all sum to 1";
}

std::string line_words(const Model& model, const Trace& trace, std::size_t head, int line) {
  std::string words = line == 1   ? making(model)
                      : line == 2 ? meeting(model, trace, head)
                      : line == 3 ? weighing(model, trace, head)
                                  : mixing(model);
  if (const std::size_t n = typed_in(model, trace, head, line); n > 0)
    words += "; " + std::to_string(n) + (n == 1 ? " number is" : " numbers are") + " typed over";
  return words;
}

}  // namespace core::explain
