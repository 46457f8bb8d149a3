#include <fmt/core.h>
#include <algorithm>
#include <optional>

#include "core/base/number.hpp"
#include "core/check/bug_search.hpp"
#include "core/check/check.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::check {
namespace {

/// Numbers of a stage that are many, and that need too much memory.
constexpr std::size_t many_numbers = 100000, max_stage_numbers = std::size_t{1} << 24;
/// Limits of a search for few and for many numbers; see graph::Work.
constexpr double max_cells_of_few = 3e8, max_cells_of_many = 1e9;
/// Tokens that are enough for inference if no query attends to a later key.
constexpr std::size_t max_inference_tokens = 256;

/// Collects a stage from the trace of each sequence; keys and values once per KV head if all heads that share
/// one agree.
ObservedStage stage_of(const Model& model, const attention::StageInfo& stage,
                       const std::vector<ObservedTrace>& observed) {
  const std::size_t n_heads = stage.count(model.n_heads);
  bool is_shared = stage.per_head && n_matrices(model, stage.stage) < n_heads;
  for (const ObservedTrace& one : observed)
    for (std::size_t h = 0; h < n_heads; ++h) {
      const std::size_t first = head_of_matrix(model, stage.stage, matrix_of_head(model, stage.stage, h));
      is_shared = is_shared && arma::approx_equal(*one.trace.at(stage.stage, h),
                                                  *one.trace.at(stage.stage, first), "absdiff", 0);
    }
  ObservedStage all{stage.stage, observed.size(), {}};
  for (const ObservedTrace& one : observed)
    for (std::size_t k = 0; k < (is_shared ? n_matrices(model, stage.stage) : n_heads); ++k)
      all.matrices.emplace_back(
          *one.trace.at(stage.stage, is_shared ? head_of_matrix(model, stage.stage, k) : k));
  return all;
}

/// Returns a tensor in its own shape, [sequence][matrix][row][column], where that is not the model's.
std::optional<ObservedStage> unread_stage(Stage stage, const formats::Tensor& tensor,
                                          std::size_t n_sequences) {
  std::vector<std::size_t> shape = tensor.shape;
  while (shape.size() > 4 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() > 4) return std::nullopt;
  if (shape.size() == 3 && shape[0] == n_sequences && n_sequences > 1) shape.insert(shape.begin() + 1, 1);
  while (shape.size() < 4) shape.insert(shape.begin(), 1);
  ObservedStage all{stage, shape[0], {}};
  const std::size_t size = shape[2] * shape[3];
  for (std::size_t k = 0; k < shape[0] * shape[1]; ++k)
    all.matrices.emplace_back(arma::mat(arma::mat(tensor.numbers.data() + k * size, shape[3], shape[2]).t()));
  return all;
}

std::vector<ObservedStage> observed_stages(const Model& model, const MatchResult& matched,
                                           const Report& report) {
  Report plain;
  std::vector<ObservedStage> all;
  for (std::size_t k = 0; k < matched.observed.size(); ++k) {
    const ObservedTensor& observed = matched.observed[k];
    const Reading* reading = report.readings[k];
    plain.readings.push_back(reading && !reading->layout.is_masked ? reading : nullptr);
    const bool is_odd = reading ? reading->layout.is_mean : !observed.tensor.numbers.empty();
    if (!is_odd) continue;
    if (auto stage =
            unread_stage(reading ? reading->stage : observed.stage, observed.tensor, model.sequences.size()))
      all.push_back(std::move(*stage));
  }
  std::vector<ObservedTrace> traces;
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    traces.push_back(observed_trace(model, matched, plain, s));
  for (const Stage stage : traces.front().stages)
    if (std::ranges::all_of(traces, [&](const ObservedTrace& t) {
          return std::ranges::find(t.stages, stage) != t.stages.end();
        }))
      all.push_back(stage_of(model, attention::info(stage), traces));
  std::erase_if(all, [](const ObservedStage& stage) {
    return std::ranges::all_of(stage.matrices, [](const SharedMatrix& m) { return m->is_empty(); });
  });
  return all;
}

/// Whether bugs can be searched for: the model has none itself.
bool can_infer(const Model& m) {
  return m.bugs.empty() && m.arithmetic == attention::Arithmetic() && m.given.cells.empty() &&
         m.mask.edge == attention::MaskEdge() && m.dropout.place == attention::DropoutPlace::weights &&
         m.d_head() > 0 && m.d_value() > 0;
}

bool is_rounding_cause(const Explanation& explanation) {
  return std::ranges::any_of(explanation.causes, [](const std::string& cause) {
    return cause.ends_with("_precision") || cause.ends_with("_sums");
  });
}

}  // namespace

std::vector<Explanation> infer_causes(const Comparison& c, const MatchResult& matched, Report& report) {
  const Model& model = c.reference.model();
  const core::StopToken& token = c.token;
  const auto is_rounding = [](const Explanation& e) { return e.causes.size() == 1 && is_rounding_cause(e); };
  if (!token.should_continue() || std::ranges::any_of(report.explanations, is_rounding)) return {};
  if (!can_infer(model)) return {};
  const std::size_t n_numbers = model.sequences.size() * model.n_heads * model.n_tokens() * model.n_keys();
  const std::vector<ObservedStage> stages = observed_stages(model, matched, report);
  if (stages.empty()) return {};
  std::optional<BugSearchResult> searched;
  std::string of_what;
  if (const auto first = first_tokens(model, max_inference_tokens)) {
    searched = find_bugs(first, first_rows(stages, max_inference_tokens), token, max_cells_of_many);
    of_what = fmt::format(" (inferred from the first {} tokens)", max_inference_tokens);
  }
  if (!searched || searched->agrees) {
    if (n_numbers > max_stage_numbers) return {};
    of_what.clear();
    searched = find_bugs(std::make_shared<const Model>(model), stages, token,
                         n_numbers > many_numbers ? max_cells_of_many : max_cells_of_few);
  }
  BugSearchResult& found = *searched;
  report.agreeing_after = found.agreeing_after;
  report.is_harmless = found.is_harmless;
  if (!found.note.empty()) report.notes.push_back("Inferred: " + found.note);
  report.partly = found.partly, report.described = found.described;
  const auto is_on_grid = [&](const ObservedTensor& observed) {
    return coarsest_type(observed.tensor.numbers) != formats::Dtype::f32 &&
           !is_exact(coarsest_type(observed.tensor.numbers));
  };
  bool are_on_grid = found.agrees && is_half(found.precision);
  for (std::size_t k = 0; k < matched.observed.size(); ++k)
    are_on_grid = are_on_grid && (c.agreeing_reading[k] || is_on_grid(matched.observed[k]));
  if (are_on_grid) report.rounding = attention::name_of(found.precision);
  std::vector<Explanation> all;
  for (FoundBugs& each : found.found) {
    Explanation one{{}, {}, model, {}, each.sentences};
    if (!of_what.empty()) one.sentences.back() += of_what;
    for (const bugs::Bug* bug : each.names) {
      const std::string name(cause_of(*bug));
      if (std::ranges::find(one.causes, name) == one.causes.end()) one.causes.push_back(name);
    }
    one.inferred = std::make_shared<const FoundBugs>(std::move(each));
    all.push_back(std::move(one));
  }
  return all;
}

Model injected(const Explanation& explanation) {
  const bool is_inferred = explanation.inferred && explanation.mistakes.empty();
  if (!is_inferred) return explanation.model;
  return with_stages_of(*explanation.inferred->edited, explanation.model);
}

void add_inferred(std::vector<Explanation> inferred, Report& report) {
  std::vector<Explanation> all, old = std::move(report.explanations);
  std::size_t max_causes = old.size() + 9;
  if (!inferred.empty()) max_causes = inferred.front().inferred->bugs.size();
  if (std::ranges::any_of(old, is_rounding_cause)) {  // recognized by its errors, and a cause of its own
    for (Explanation& e : old)
      if (!inferred.empty() && e.causes.size() == max_causes + 1) e.sentences = inferred.front().sentences;
    const bool has_sentences =
        std::ranges::any_of(old, [](const Explanation& e) { return !e.sentences.empty(); });
    if (has_sentences) inferred.clear();
    max_causes = old.size() + 9;
  }
  for (Explanation& one : inferred) {
    const FoundBugs& its = *one.inferred;
    const auto same = std::ranges::find_if(old, [&](const Explanation& e) {
      return e.causes == one.causes || has_numbers_of(e.model, *its.edited);
    });
    const bool is_simpler = same != old.end() && its.rank == 0 && same->causes.size() > its.bugs.size();
    if (same != old.end() && !is_simpler)
      same->sentences = one.sentences, all.push_back(*same);
    else
      all.push_back(one);
    if (same != old.end()) old.erase(same);
  }
  for (Explanation& e : old)  // not inferred; pairs are dropped if one cause is enough
    if (e.causes.size() <= max_causes) all.push_back(std::move(e));
  report.explanations = std::move(all);
  if (!report.explanations.empty()) report.partly.clear(), report.described.clear();
}

}  // namespace core::check
