#include "core/check/bug_search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "core/check/observation.hpp"
#include "core/graph/injected_bugs.hpp"
#include "tests/support/random_model.hpp"

namespace core::check {
namespace {

using attention::ProjectionName;

/// Returns a causal model with RoPE and biases, of normally distributed numbers.
std::shared_ptr<const Model> rotary_model(std::size_t n_tokens, std::size_t n_heads, std::size_t d_head) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  const auto matrix = [&](std::size_t rows, std::size_t columns, double factor) {
    arma::mat numbers(rows, columns);
    numbers.imbue([&] { return factor * normal(random); });
    return numbers;
  };
  const std::size_t d = n_heads * d_head;
  const auto linear = [&] {
    return attention::Linear{matrix(d, d, 1 / std::sqrt(static_cast<double>(d))), matrix(1, d, 0.3)};
  };
  Model m;
  m.sequences.push_back({attention::numbered_tokens(n_tokens), matrix(n_tokens, d, 1)});
  m.n_heads = n_heads;
  m.projections = attention::Projections{linear(), linear(), linear(), linear()};
  m.additions.positions.rotary.emplace();
  return std::make_shared<const Model>(std::move(m));
}

/// Returns some stages of an edited graph, as they are observed.
std::vector<ObservedStage> observed(const Editing& edited, const std::vector<Stage>& stages) {
  LazyStages computed(edited.graph, edited.model());
  std::vector<ObservedStage> all;
  for (const Stage stage : stages) {
    all.push_back({stage, edited.model().sequences.size(), {}});
    for (std::size_t s = 0; s < edited.model().sequences.size(); ++s)
      for (std::size_t k = 0; k < computed.n_matrices(stage); ++k)
        all.back().matrices.push_back(computed.matrix(stage, s, k));
  }
  return all;
}

struct Injected {
  const char* name;
  void (*edit)(Editing&);
  std::vector<std::string> sentences;
};

void set_scale(Editing& e) {
  e.change<graph::ScaleScores>(Stage::scaled_scores, [](auto& scale) { scale.factor = 0.31; });
}
void add_window(Editing& e) {
  e.change_mask([](attention::Mask& mask) { mask.window.left = 4; });
}
void change_base(Editing& e) {
  for (const auto side : {ProjectionName::query, ProjectionName::key})
    e.change_rotation(side, [](graph::RotationVariant& r) {
      r.set_frequencies(50000, r.n_columns, static_cast<double>(r.n_columns), {});
    });
}
void double_value_bias(Editing& e) {
  e.set_bias(ProjectionName::value, 2 * e.bias(ProjectionName::value));
}
void scale_contexts_of_head(Editing& e) {
  e.wrap(Stage::contexts,
         [](const graph::OperationInputs& in) { return arma::mat(in[0] * (in.head == 1 ? 1.1 : 1)); });
}

const std::string window = "a sliding window of 4 to the left is applied, which the model does not have",
                  doubled = "the bias of the value projection is added twice";
const std::vector<Injected> all_injected{
    {"scale", set_scale, {"the scale is 0.31 instead of 0.25 = 1/√d_head: × 1.24"}},
    {"window", add_window, {window}},
    {"base", change_base, {"rotary positions: the rotary base is 50000 instead of 10000"}},
    {"bias", double_value_bias, {doubled}},
    {"head", scale_contexts_of_head, {"values of head 1 are multiplied by 1.1"}},
    {"pair", [](Editing& e) { add_window(e), double_value_bias(e); }, {doubled, window}}};

std::vector<std::string> sentences_of(const FoundBugs& found) {
  std::vector<std::string> all;
  for (const FoundBug& bug : found.bugs) all.push_back(bug.sentence);
  return all;
}

std::vector<std::string> sorted(std::vector<std::string> words) {
  std::ranges::sort(words);
  return words;
}

/// Expects every bug to be found from the output alone, within the budget of a check.
void expect_found(std::size_t n_tokens, std::size_t n_heads, std::size_t d_head, double max_cells) {
  const auto model = rotary_model(n_tokens, n_heads, d_head);
  for (const Injected& injected : all_injected) {
    SCOPED_TRACE(std::string(injected.name) + " at " + std::to_string(n_tokens) + " × " +
                 std::to_string(n_heads));
    Editing edited(model);
    injected.edit(edited);
    const BugSearchResult result = find_bugs(model, observed(edited, {Stage::output}), {}, max_cells);
    ASSERT_FALSE(result.found.empty());
    EXPECT_EQ(sorted(sentences_of(result.found.front())), sorted(injected.sentences));
    EXPECT_LE(result.work.cells, max_cells);
  }
}

/// Returns models that have every feature between them.
std::vector<Model> models() {
  const Model plain = *rotary_model(6, 2, 4);
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  const auto matrix = [&](std::size_t rows, std::size_t columns) {
    arma::mat numbers(rows, columns);
    numbers.imbue([&] { return normal(random); });
    return numbers;
  };
  std::vector<Model> all(8, plain);
  all[0].dropout.rate = 0.5;
  all[1].mask.causal = false;
  all[2].mask.window.left = 2;
  all[3].mask.documents = {0, 0, 0, 1, 1, 1};
  all[4].mask.hidden_keys = {{1}};
  Model& modern = all[5];
  modern.n_heads = 4, modern.n_kv_heads = 2;
  modern.projections->query = {matrix(8, 16), matrix(1, 16)};
  modern.projections->key = {matrix(8, 8), matrix(1, 8)};
  modern.projections->value = {matrix(8, 8), matrix(1, 8)};
  modern.projections->output = {matrix(16, 8), matrix(1, 8)};
  attention::Additions& added = modern.additions;
  added.normalize = {attention::NormRule::rms, matrix(1, 4), matrix(1, 4)};
  added.positions.rotary->base = 500;
  added.positions.rotary->scaling = {positions::ScalingRule::linear, 4};
  added.positions.alibi.emplace();
  added.score_bias = {matrix(6, 6)};
  added.softcap = 1;
  added.sink = matrix(1, 4);
  for (const std::size_t k : {6, 7}) {  // more keys than queries
    all[k].sequences[0].key_embeddings = matrix(9, 8);
    all[k].sequences[0].key_tokens = attention::numbered_tokens(9);
  }
  all[7].mask.align = attention::MaskAlignment::first;
  return all;
}

TEST(BugSearch, FindsABugFromTheOutputAlone) {
  expect_found(16, 8, 16, 3e8);
}

TEST(BugSearch, FindsABugInALongerText) {
  expect_found(24, 8, 16, 3e8);
  expect_found(64, 8, 16, 3e8);
}

TEST(BugSearch, KeepsTheHeadsOfObservedWeights) {
  const auto model = rotary_model(12, 4, 8);
  Editing edited(model);
  double_value_bias(edited);
  const BugSearchResult result = find_bugs(model, observed(edited, {Stage::weights, Stage::output}), {}, 1e8);
  ASSERT_FALSE(result.found.empty());
  EXPECT_EQ(sentences_of(result.found.front()), std::vector{doubled});
}

TEST(BugSearch, TriesEditsThatLeaveTheOutputFewerColumns) {
  support::Random random(3);
  Model narrow = support::model(random, 8, 64, 32, 2);  // without its projection the output has 32 columns
  narrow.projections->output = support::linear(random, 32, 64, true);
  const auto model = std::make_shared<const Model>(narrow);
  Editing edited(model);
  edited.map(Stage::output, [](double x) { return x + 0.01 * std::sin(37 * x); });  // nothing known
  EXPECT_TRUE(find_bugs(model, observed(edited, {Stage::output}), {}, 1e6).found.empty());
}

TEST(BugSearch, FindsOneHeadMaskedAlone) {
  const auto model = rotary_model(12, 4, 8);
  Editing edited(model);
  edited.wrap(Stage::mask, [](const graph::OperationInputs& in) {
    return in.head == 2 ? in[0] : arma::mat(arma::size(in[0]), arma::fill::ones);
  });
  edited.graph.find(Stage::mask)->heads = graph::NodeHeads::per_head;
  const BugSearchResult result = find_bugs(model, observed(edited, {Stage::output}), {}, 1e8);
  ASSERT_FALSE(result.found.empty());
  EXPECT_EQ(sentences_of(result.found.front()), std::vector<std::string>{"only head 2 is masked"});
}

/// Returns all stages of a model that are compared.
std::vector<ObservedStage> all_stages(const Model& model) {
  const Editing edited(std::make_shared<const Model>(model));
  const graph::NodeSet existing = existing_nodes(edited.graph, model);
  std::vector<Stage> stages;
  for (const Stage stage : compared_stages())
    if (existing[graph::index(stage)]) stages.push_back(stage);
  return observed(edited, stages);
}

TEST(BugSearch, NamesEveryBugThatCanBeInjected) {
  // Precisions are told by errors of the numbers, and a large negative
  // number is as good as −∞.
  const std::set<std::string> not_searched{
      "float32_precision",          "tf32_precision",     "half_precision",
      "half_precision_sums",        "bfloat16_precision", "softmax_half_precision",
      "softmax_bfloat16_precision", "mask_finite",        "mask_finite:1e4"};
  const std::vector<Model> all = models();
  for (const bugs::Bug* bug : bugs::offered_bugs()) {
    if (not_searched.contains(bug->name)) continue;
    SCOPED_TRACE(bug->name);
    const auto right = std::ranges::find_if(all, [&](const Model& m) { return has_effect(*bug, m); });
    ASSERT_NE(right, all.end());
    const BugSearchResult result =
        find_bugs(std::make_shared<const Model>(*right), all_stages(injected(*bug, *right)), {}, 3e8);
    EXPECT_TRUE(std::ranges::any_of(result.found,
                                    [&](const FoundBugs& found) {
                                      return found.bugs.size() == 1 &&
                                             found.bugs[0].names == std::vector{bug};
                                    }))
        << (result.found.empty() ? testing::PrintToString(result.described)
                                 : testing::PrintToString(sentences_of(result.found.front())));
  }
}

TEST(BugSearch, ComputesTheSameNumberOfCellsAgain) {
  const auto model = rotary_model(12, 2, 4);
  Editing edited(model);
  edited.map(Stage::contexts, [](double x) { return x + 0.01 * std::sin(37 * x); });  // nothing known
  constexpr double max_cells = 1e5;
  const auto search = [&] { return find_bugs(model, observed(edited, {Stage::output}), {}, max_cells); };
  const BugSearchResult first = search(), second = search();
  EXPECT_TRUE(first.found.empty());
  EXPECT_LT(first.work.cells, 2 * max_cells);
  EXPECT_EQ(first.work.cells, second.work.cells);
  EXPECT_EQ(first.described, second.described);
}

/// A bug that makes NaN of everything agrees with them, and says nothing.
TEST(BugSearch, TellsNothingFromNumbersThatAreAllNan) {
  const auto model = rotary_model(12, 2, 4);
  for (const Stage stage : {Stage::queries, Stage::weights, Stage::output}) {
    auto given = observed(Editing(model), {stage});
    for (SharedMatrix& numbers : given[0].matrices)
      numbers = arma::mat(arma::size(*numbers), arma::fill::value(arma::datum::nan));
    const BugSearchResult result = find_bugs(model, std::move(given), {}, 1e6);
    EXPECT_FALSE(result.agrees);
    EXPECT_TRUE(result.found.empty() && result.partly.empty()) << graph::words_of(stage);
    EXPECT_EQ(result.described.size(), 1u);
  }
}

TEST(BugSearch, FindsNothingWhereAllAgrees) {
  const auto model = rotary_model(12, 2, 4);
  const BugSearchResult result =
      find_bugs(model, observed(Editing(model), {Stage::weights, Stage::output}), {}, 1e6);
  EXPECT_TRUE(result.agrees);
  EXPECT_TRUE(result.found.empty());
}

}  // namespace
}  // namespace core::check
