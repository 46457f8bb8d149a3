#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>

#include "core/graph/bugs.hpp"

/// Values that are given under the name of a stage, but not used in the computation.
namespace core::bugs {
namespace {

using graph::digits;
using graph::OperationInputs;
using graph::words_of;

std::string form_of(Stage stage, std::string_view what) {
  return std::string(attention::info(stage).name) + ":" + std::string(what);
}

/// What is given. Form "weights:averaged".
struct ReportedForm {
  const char* form;
  const char* words;  ///< {0}: the stage, {1}: the number
  graph::NodeHeads heads;
  arma::mat (*reported)(const OperationInputs&, double x);
};
template <class Choose>
arma::mat chosen_of_heads(const OperationInputs& in, Choose choose) {
  arma::mat best = in.of_head(0, 0);
  for (std::size_t h = 1; h < in.model.n_heads; ++h) best = choose(best, in.of_head(0, h));
  return best;
}
using enum graph::NodeHeads;
constexpr std::array reported_forms{
    ReportedForm{"averaged", "the {0} are given averaged over the heads", shared,
                 [](const OperationInputs& in, double) {
                   return arma::mat(sum_of_heads(in) / static_cast<double>(in.model.n_heads));
                 }},
    ReportedForm{"summed", "the {0} are given summed over the heads", shared,
                 [](const OperationInputs& in, double) { return sum_of_heads(in); }},
    ReportedForm{"largest", "of the {0} the largest of all heads is given", shared,
                 [](const OperationInputs& in, double) {
                   return chosen_of_heads(
                       in, [](const arma::mat& a, const arma::mat& b) { return arma::mat(arma::max(a, b)); });
                 }},
    ReportedForm{"smallest", "of the {0} the smallest of all heads is given", shared,
                 [](const OperationInputs& in, double) {
                   return chosen_of_heads(
                       in, [](const arma::mat& a, const arma::mat& b) { return arma::mat(arma::min(a, b)); });
                 }},
    ReportedForm{
        "head", "of the {0} head {1} alone is given", shared,
        [](const OperationInputs& in, double head) { return in.of_head(0, static_cast<std::size_t>(head)); }},
    ReportedForm{"sink_first", "the weights are given with the sink's column", per_head,
                 [](const OperationInputs& in, double) {
                   return arma::mat(arma::join_rows(1 - arma::sum(in[0], 1), in[0]));
                 }},
    ReportedForm{"sink_last", "the weights are given with the sink's column", per_head,
                 [](const OperationInputs& in, double) {
                   return arma::mat(arma::join_rows(in[0], 1 - arma::sum(in[0], 1)));
                 }},
    ReportedForm{"transposed", "the {0} are given transposed", per_head,
                 [](const OperationInputs& in, double) { return arma::mat(in[0].t()); }},
    ReportedForm{"without_last", "the {0} are given without their last {1} keys", per_head,
                 [](const OperationInputs& in, double n) {
                   return arma::mat(in[0].head_cols(in[0].n_cols - static_cast<std::size_t>(n)));
                 }},
    ReportedForm{"without_first", "the {0} are given without their first {1} keys", per_head,
                 [](const OperationInputs& in, double n) {
                   return arma::mat(in[0].tail_cols(in[0].n_cols - static_cast<std::size_t>(n)));
                 }},
};
void report_otherwise(Editing& e, const BugCase& c, ProjectionName) {
  const auto [stage, form] = stage_and_form(c);
  const ReportedForm& row = of_form(reported_forms, form);
  e.report(stage, row.heads, {{stage, "i:"}},
           [reported = row.reported, x = c.number()](const OperationInputs& in) { return reported(in, x); });
}
void try_reported(const BugContext& c, BugCases& to) {
  constexpr std::array with_forms{Stage::weights,       Stage::dropped_weights, Stage::scores,
                                  Stage::scaled_scores, Stage::masked_scores,   Stage::contexts};
  const auto* given = c.observed(c.target);
  const std::size_t n_sequences = c.model().sequences.size(), n_heads = c.model().n_heads;
  if (!given || std::ranges::find(with_forms, c.target) == with_forms.end() ||
      given->size() % n_sequences != 0)
    return;
  const auto add = [&](const char* form, Numbers x = {}) { to.add(std::move(x), form_of(c.target, form)); };
  const arma::SizeMat ours = arma::size(*c.stages.matrix(c.target, 0, 0)), theirs = arma::size(*(*given)[0]);
  const std::size_t n = given->size() / n_sequences;
  if (n == 1 && n_heads > 1 && theirs == ours) {
    for (const char* form : {"averaged", "summed", "largest", "smallest"}) add(form);
    for (std::size_t h = 0; h < n_heads; ++h) add("head", {static_cast<double>(h)});
  }
  if (n != n_heads) return;
  if (c.target == Stage::weights && theirs == arma::SizeMat(ours.n_rows, ours.n_cols + 1))
    add("sink_first"), add("sink_last");
  if (theirs != ours && theirs == arma::SizeMat(ours.n_cols, ours.n_rows)) add("transposed");
  if (theirs.n_rows == ours.n_rows && theirs.n_cols < ours.n_cols)
    for (const char* form : {"without_last", "without_first"})
      add(form, {static_cast<double>(ours.n_cols - theirs.n_cols)});
}

/// Form "keys:values": what is given as keys are the values.
void report_another(Editing& e, const BugCase& c, ProjectionName) {
  const auto [stage, name] = stage_and_form(c);
  const Stage other = stage_named(name);
  if (const graph::Node* node = e.find(other))
    e.report(stage, node->heads, {{other}}, [](const OperationInputs& in) { return in[0]; });
}
std::string another_words(const Editing&, const BugCase& c) {
  const auto [stage, name] = stage_and_form(c);
  return "what is given as " + words_of(stage) + " are the " + words_of(stage_named(name));
}
/// Whether the numbers given for the target are those of another stage.
bool is_another(const BugContext& c, Stage other) {
  const std::size_t n_sequences = c.model().sequences.size(), n = c.stages.n_matrices(other);
  const auto& given = *c.observed(c.target);
  if (given.size() != n_sequences * n) return false;
  for (std::size_t k = 0; k < given.size(); ++k) {
    const arma::mat &ours = c.stages.matrix(other, k / n, k % n), &theirs = given[k];
    if (arma::size(ours) != arma::size(theirs)) return false;
    for (std::size_t at = 0; at < ours.n_elem; ++at) {
      const double a = ours[at], b = theirs[at];
      const bool is_same = a == b || (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && b < -5000);
      if (!is_same && !(std::abs(a - b) <= c.tolerance)) return false;
    }
  }
  return true;
}
void try_others(const BugContext& c, BugCases& to) {
  using enum Stage;
  constexpr std::array never{embeddings,     key_embeddings, mask,        unmasked_weights,
                             zeroed_weights, row_sums,       dropout_mask};
  if (!c.observed(c.target) || c.is_large) return;
  const graph::NodeSet existing = existing_nodes(c.now.graph, c.model());
  for (const attention::StageInfo& row : attention::stages())
    if (row.stage != c.target && existing[graph::index(row.stage)] &&
        std::ranges::find(never, row.stage) == never.end() &&
        !(c.target == output && row.stage == concatenated) &&
        (row.stage != output || c.now.has_projection(ProjectionName::output)) && is_another(c, row.stage))
      to.add({}, form_of(c.target, row.name));
}

const std::array report_rows{
    Bug{.name = "reported",
        .edit = report_otherwise,
        .words =
            [](const Editing&, const BugCase& c) {
              const auto [stage, form] = stage_and_form(c);
              const double x = c.number();
              return fmt::format(fmt::runtime(of_form(reported_forms, form).words), words_of(stage),
                                 digits(x));
            },
        .cases = try_reported,
        .in_pairs = false},
    Bug{.name = "reported_as",
        .edit = report_another,
        .words = another_words,
        .cases = try_others,
        .rank = 1,
        .in_pairs = false},
    Bug{.name = "reported_after_dropout",
        .edit =
            [](Editing& e, const BugCase&, ProjectionName) {
              e.report(Stage::weights, per_head, {{Stage::dropped_weights}},
                       [](const OperationInputs& in) { return in[0]; });
            },
        .words = "the weights are given after dropout",
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (has_dropout(c.model()) && c.target == Stage::weights) to.add();
            },
        .in_pairs = false},
};

}  // namespace

std::span<const Bug> report_bugs() {
  return report_rows;
}

}  // namespace core::bugs
