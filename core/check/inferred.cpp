#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/check.hpp"
#include "core/check/deviations.hpp"
#include "core/check/infer.hpp"
#include "core/check/scene.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::check {
namespace {

using inference::Block;
using inference::Run;

/// Approximate limits of a search in seconds, for few and for many numbers.
constexpr double few_seconds = 0.8, many_seconds = 4;
constexpr std::size_t many_numbers = 100000;

/// Collects a stage from the trace of each sequence; keys and values once per KV head if all heads that share
/// one agree.
Block block_of(const Model& model, const attention::StageInfo& stage,
               const std::vector<ObservedTrace>& observed) {
  const std::size_t n_heads = stage.count(model.n_heads);
  const auto matrix = [&](std::size_t s, std::size_t h) -> const arma::mat& {
    return observed[s].trace.at(stage.stage, h);
  };
  bool is_shared = stage.per_head && n_matrices(model, stage.stage) < n_heads;
  for (std::size_t s = 0; s < observed.size(); ++s)
    for (std::size_t h = 0; h < n_heads; ++h) {
      const std::size_t first = head_of_matrix(model, stage.stage, matrix_of_head(model, stage.stage, h));
      is_shared = is_shared && arma::approx_equal(matrix(s, h), matrix(s, first), "absdiff", 0);
    }
  const std::size_t n = is_shared ? n_matrices(model, stage.stage) : n_heads;
  return Block::of({observed.size(), n, matrix(0, 0).n_rows, matrix(0, 0).n_cols},
                   [&](auto s, auto h, auto i, auto j) {
                     return matrix(s, is_shared ? head_of_matrix(model, stage.stage, h) : h)(i, j);
                   });
}

/// Returns a tensor in its own shape, where that is not the model's.
Block raw_block(const ObservedTensor& observed, std::size_t n_sequences) {
  std::vector<std::size_t> shape = observed.tensor.shape;
  while (shape.size() > 4 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() == 3)
    shape.insert(shape[0] == n_sequences && n_sequences > 1 ? shape.begin() + 1 : shape.begin(), 1);
  while (shape.size() < 4) shape.insert(shape.begin(), 1);
  Block block;
  if (shape.size() == 4)
    block.n = {shape[0], shape[1], shape[2], shape[3]}, block.v = observed.tensor.numbers;
  return block;
}

inference::Given collect_given(const Model& model, const MatchResult& matched, const Report& report) {
  Report plain;
  inference::Given given;
  for (std::size_t k = 0; k < matched.observed.size(); ++k) {
    const ObservedTensor& observed = matched.observed[k];
    const Reading* reading = report.readings[k];
    plain.readings.push_back(reading && !reading->layout.is_masked ? reading : nullptr);
    const bool is_odd = reading ? reading->layout.is_mean : !observed.tensor.numbers.empty();
    if (is_odd)
      given.emplace_back(reading ? reading->stage : observed.stage,
                         raw_block(observed, model.sequences.size()));
  }
  std::vector<ObservedTrace> traces;
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    traces.push_back(observed_trace(model, matched, plain, s));
  for (const Stage stage : traces.front().stages)
    if (std::ranges::all_of(traces, [&](const ObservedTrace& t) {
          return std::ranges::find(t.stages, stage) != t.stages.end();
        }))
      given.emplace_back(stage, block_of(model, attention::info(stage), traces));
  std::erase_if(given, [](const auto& each) { return each.second.v.empty(); });
  return given;
}

/// Tokens that are enough for inference if no query attends to a later key.
constexpr std::size_t max_inference_tokens = 256;
/// Numbers of a stage above which the search would need too much memory.
constexpr std::size_t max_stage_numbers = std::size_t{1} << 24;

/// Returns the model of the first tokens alone, or nullopt if they depend on others.
std::optional<Model> truncate_model(const Model& model) {
  const std::size_t n = max_inference_tokens;
  if (2 * model.n_tokens() < 3 * n || model.n_tokens() != model.n_keys() || model.has_key_embeddings() ||
      !model.given.empty() || model.dropout.active() || model.mask.prefix > n)
    return std::nullopt;
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    if (arma::any(arma::vectorise(
                      attention::visibility_matrix(model, s).submat(0, n, n - 1, model.n_keys() - 1)) != 0))
      return std::nullopt;
  Model first = model;
  for (attention::Sequence& sequence : first.sequences) {
    sequence.tokens.resize(n);
    sequence.embeddings = arma::mat(sequence.embeddings->head_rows(n));
  }
  for (attention::SharedMatrix& bias : first.additions.score_bias)
    bias = arma::mat(bias->submat(0, 0, n - 1, n - 1));
  std::erase_if(first.mask.cells,
                [](const attention::MaskCell& cell) { return cell.row >= n || cell.column >= n; });
  if (!first.mask.documents.empty()) first.mask.documents.resize(n);
  for (auto& hidden : first.mask.hidden_keys) std::erase_if(hidden, [](std::size_t key) { return key >= n; });
  if (std::ranges::all_of(first.mask.hidden_keys, [](const auto& hidden) { return hidden.empty(); }))
    first.mask.hidden_keys.clear();
  return attention::check(first) ? std::nullopt : std::optional(std::move(first));
}

inference::Given truncate_given(inference::Given given) {
  for (auto& [stage, block] : given)
    for (const std::size_t axis : {2, 3})
      if ((axis == 2 || attention::info(stage).columns == attention::Columns::tokens) &&
          block.n[axis] > max_inference_tokens)
        block = index_select(block, axis, inference::index_range(max_inference_tokens));
  return given;
}

/// Returns whether the table of bugs is searched and not that of deviations, to compare both.
bool searches_bug_table() {
  return std::getenv("ATTNSCOPE_BUG_TABLE") != nullptr;
}

/// Limits of a search of the table of bugs, for few and for many numbers; see graph::Work.
constexpr double max_cells_of_few = 3e8, max_cells_of_many = 1e9;

std::vector<ObservedStage> observed_stages(const inference::Given& given) {
  std::vector<ObservedStage> stages;
  for (const auto& [stage, block] : given) {
    ObservedStage one{stage, block.n[0], {}};
    for (std::size_t s = 0; s < block.n[0]; ++s)
      for (std::size_t h = 0; h < block.n[1]; ++h) one.matrices.emplace_back(matrix_of(block, s, h));
    stages.push_back(std::move(one));
  }
  return stages;
}

/// Searches either table.
inference::Inference searched(const Model& model, const inference::Recipe& recipe,
                              const inference::Given& given, const core::StopToken& token, bool are_many) {
  if (!searches_bug_table())
    return inference::infer(recipe, given, token, are_many ? many_seconds : few_seconds);
  BugSearchResult result = find_bugs(std::make_shared<const Model>(model), observed_stages(given), token,
                                     are_many ? max_cells_of_many : max_cells_of_few);
  inference::Inference inferred{{},
                                std::move(result.partly),
                                std::move(result.described),
                                std::move(result.note),
                                std::move(result.agreeing_after),
                                result.is_harmless,
                                result.agrees,
                                result.precision};
  for (FoundBugs& found : result.found) {
    inference::Cause cause{{}, found.sentences, {}, found.rank, {}};
    for (const bugs::Bug* name : found.names) cause.names.emplace_back(cause_of(*name));
    cause.bugs = std::make_shared<const FoundBugs>(std::move(found));
    inferred.causes.push_back(std::move(cause));
  }
  return inferred;
}

/// Whether a model with mistakes matches a recipe in every stage that both have.
bool matches_recipe(const Model& model, const inference::Recipe& recipe) {
  if (attention::check(model) || model.n_heads != recipe.H) return false;
  const LazyTrace computed(model);
  Run run(recipe);
  for (const Stage stage : inference::run_stages()) {
    const arma::mat& first = computed.matrix(stage, 0, 0);
    if (first.is_empty() || !recipe.has(stage)) continue;
    const Block& other = run[stage];
    double size = 0, difference_size = 0;
    for (std::size_t h = 0; h < attention::info(stage).count(recipe.H); ++h) {
      const arma::mat& ours = computed.matrix(stage, 0, h);
      const std::size_t nth = other.n[1] == recipe.H ? h
                              : other.n[1] == 1      ? 0
                                                     : recipe.group[inference::K][h];
      if (ours.n_rows < other.n[2] || ours.n_cols < other.n[3]) continue;
      for (std::size_t i = 0; i < other.n[2]; ++i)
        for (std::size_t j = 0; j < other.n[3]; ++j) {
          const double a = ours(i, j), b = other(0, nth, i, j);
          if (is_score_step(stage) && (a < -5000 || b < -5000)) continue;
          size = std::max(size, std::abs(b)),
          difference_size = std::max(difference_size, abs_difference(a, b));
        }
    }
    if (difference_size > 1e-7 * size) return false;
  }
  return true;
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
  const std::size_t n_numbers = model.sequences.size() * model.n_heads * model.n_tokens() * model.n_keys();
  const bool are_many = n_numbers > many_numbers;
  std::optional<inference::Inference> inferred;
  std::string of_what;
  inference::Given given;
  if (const auto first = truncate_model(model)) {
    const auto recipe = inference::recipe_of(*first);
    given = collect_given(model, matched, report);
    if (recipe && !given.empty()) inferred = searched(*first, *recipe, truncate_given(given), token, true);
    of_what = " (inferred from the first " + std::to_string(max_inference_tokens) + " tokens)";
  }
  if (!inferred || inferred->agrees) {
    if (n_numbers > max_stage_numbers) return {};
    const auto recipe = inference::recipe_of(model);
    if (!recipe) return {};
    given = collect_given(model, matched, report), of_what.clear();
    if (given.empty()) return {};
    inferred = searched(model, *recipe, given, token, are_many);
  }
  const inference::Inference& found = *inferred;
  report.agreeing_after = found.agreeing_after;
  report.is_harmless = found.is_harmless;
  if (!found.note.empty()) report.notes.push_back("Inferred: " + found.note);
  report.partly = found.partly, report.described = found.described;
  const auto is_on_grid = [&](const ObservedTensor& observed) {
    return coarsest_type(observed.tensor.numbers) != formats::Dtype::f32 &&
           !is_exact(coarsest_type(observed.tensor.numbers));
  };
  bool are_on_grid = found.agrees && inference::is_coarse(found.precision);
  for (std::size_t k = 0; k < matched.observed.size(); ++k)
    are_on_grid = are_on_grid && (c.agreeing_reading[k] || is_on_grid(matched.observed[k]));
  if (are_on_grid) report.rounding = attention::name_of(found.precision);
  std::vector<Explanation> all;
  for (const inference::Cause& cause : found.causes) {
    all.push_back({{}, {}, model, {}, cause.sentences, std::make_shared<const inference::Cause>(cause)});
    if (!of_what.empty()) all.back().sentences.back() += of_what;
    for (const std::string& name : cause.names)
      if (std::ranges::find(all.back().causes, name) == all.back().causes.end())
        all.back().causes.push_back(name);
  }
  return all;
}

Model injected(const Explanation& explanation) {
  const bool is_inferred = explanation.inferred && explanation.mistakes.empty();
  if (!is_inferred) return explanation.model;
  const inference::Cause& cause = *explanation.inferred;
  return cause.bugs ? with_stages_of(*cause.bugs->edited, explanation.model)
                    : inference::override_stages(explanation.model, cause.recipe);
}

void add_inferred(std::vector<Explanation> inferred, Report& report) {
  std::vector<Explanation> all, old = std::move(report.explanations);
  std::size_t max_causes = old.size() + 9;
  if (!inferred.empty()) max_causes = inferred.front().inferred->names.size();
  if (std::ranges::any_of(old, is_rounding_cause)) {  // recognized by its errors, and a cause of its own
    for (Explanation& e : old)
      if (!inferred.empty() && e.causes.size() == max_causes + 1) e.sentences = inferred.front().sentences;
    const bool has_sentences =
        std::ranges::any_of(old, [](const Explanation& e) { return !e.sentences.empty(); });
    if (has_sentences) inferred.clear();
    max_causes = old.size() + 9;
  }
  for (Explanation& one : inferred) {
    const inference::Cause& cause = *one.inferred;
    const auto same = std::ranges::find_if(old, [&](const Explanation& e) {
      return cause.bugs ? has_numbers_of(e.model, *cause.bugs->edited)
                        : matches_recipe(e.model, cause.recipe);
    });
    const bool is_simpler = same != old.end() && cause.rank == 0 && same->causes.size() > cause.names.size();
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
