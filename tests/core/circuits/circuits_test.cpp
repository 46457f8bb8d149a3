#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/circuits/composition.hpp"
#include "core/circuits/patching.hpp"
#include "core/circuits/sources.hpp"
#include "core/model/text_reading.hpp"
#include "tests/core/circuits/random_transformer.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"

namespace core::circuits {
namespace {

using support::error_of;
using transformer::goldens::Tools;

const std::vector<std::size_t> ids{3, 14, 8, 3, 11, 14, 2, 8};
const std::vector<std::size_t> other_ids{3, 14, 9, 3, 11, 14, 2, 8};

class CircuitsOf : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const Transformer> model = random_models::random_transformer(GetParam());
  Float64Model exact{*model};
  Tools tools;

  std::shared_ptr<const transformer::LocalPass> run(const std::vector<std::size_t>& tokens,
                                                    const std::vector<transformer::PassEdit>& edits = {}) {
    return transformer::goldens::run(*model, tokens, tools, edits);
  }
  /// Returns the scores that the window shows, less their mean over the keys that the query attends to.
  arma::rowvec displayed_scores(const transformer::LocalPass& pass, const ScoreCell& cell) {
    const auto& layer = *pass.layers[cell.layer];
    const std::size_t group = exact.group_of(cell.head);
    const auto rules = transformer::score_rules_of(model->architecture(), cell.layer);
    arma::frowvec scores =
        layer.queries[cell.head].matrix().row(cell.query) * layer.keys[group].matrix().t() * rules.scale;
    for (std::size_t j = 0; j < scores.n_elem && !rules.slopes.empty(); ++j)
      scores[j] -= rules.slopes[cell.head] * std::abs(float(j) - float(cell.query));
    return arma::conv_to<arma::rowvec>::from(scores);
  }
  double above_mean(const transformer::LocalPass& pass, const ScoreCell& cell) {
    const arma::rowvec scores = displayed_scores(pass, cell);
    const auto rules = transformer::score_rules_of(model->architecture(), cell.layer);
    const auto [begin, end] = transformer::visible_keys(rules, cell.query, scores.n_elem);
    return scores[cell.key] - arma::mean(scores.cols(begin, end - 1));
  }
};

/// In float64 the pairs close to 1e-12 of the sum of their magnitudes, and the score is that of the window.
TEST_P(CircuitsOf, SourcesSumToTheScore) {
  const auto pass = run(ids);
  for (std::size_t l = 0; l < 3; ++l) {
    const ScoreCell cell{l, 1, 6, 4};
    const ScoreSources of = sources_of(exact, ids, cell, tools.context);
    EXPECT_NEAR(arma::accu(of.pairs) + of.alibi, of.score, 1e-12 * arma::accu(arma::abs(of.pairs))) << l;
    EXPECT_NEAR(arma::accu(of.pairs_above_row_mean) + of.alibi_above_row_mean, of.above_row_mean,
                1e-12 * arma::accu(arma::abs(of.pairs)))
        << l;
    EXPECT_NEAR(of.score, displayed_scores(*pass, cell)[cell.key], 1e-4 * std::max(1.0, std::abs(of.score)))
        << l;
    EXPECT_NEAR(of.above_row_mean, above_mean(*pass, cell), 1e-4) << l;
    EXPECT_NEAR(of.weight, model->attention_weights(*pass, l, 1).at(6, 4), 1e-5) << l;
  }
}

/// Totals are differences to passes of the other engine with the head ablated.
TEST_P(CircuitsOf, TotalsAreWhatAblationChanges) {
  const ScoreCell cell{2, 3, 7, 5};
  const ScoreSources of = sources_of(exact, ids, cell, tools.context);
  const auto pass = run(ids);
  std::size_t n_heads = 0;
  for (const ScoreSource& source : of.sources) {
    if (!source.head) continue;
    ++n_heads;
    const auto [layer, head] = *source.head;
    const auto without = run(ids, {transformer::AblatedHead{layer, head}});
    EXPECT_NEAR(source.total, above_mean(*pass, cell) - above_mean(*without, cell), 2e-5) << source.name;
    EXPECT_NEAR(source.weight_without, model->attention_weights(*without, 2, 3).at(7, 5), 1e-5)
        << source.name;
    const arma::frowvec read = model->attention_weights(*pass, layer, head).row(5);
    EXPECT_NEAR(source.read->weight, read.max(), 1e-5) << source.name;
  }
  EXPECT_EQ(n_heads, 8u);
}

/// Sums of context vectors, of the residual stream and of a logit close, and are those of the window.
TEST_P(CircuitsOf, SumsCloseToWhatIsDisplayed) {
  const auto pass = run(ids);
  const auto expect_sum = [](const WrittenSum& of, double displayed, const char* what) {
    EXPECT_NEAR(arma::accu(of.parts), of.value, 1e-12 * std::max(1.0, arma::accu(arma::abs(of.parts))))
        << what;
    EXPECT_NEAR(of.value, displayed, 1e-4 * std::max(1.0, std::abs(displayed))) << what;
  };
  const std::size_t d = model->architecture().sizes.d_head;
  expect_sum(context_sources(exact, ids, {1, 2, 5, 0}, 3, tools.context),
             pass->layers[1]->contexts.matrix().at(5, 2 * d + 3), "contexts");
  for (const std::size_t layer : {0, 2})
    expect_sum(stream_sources(exact, ids, layer, 6, 7, tools.context),
               pass->layers[layer]->residual.matrix().at(6, 7), "residual");
  const arma::frowvec row = pass->layers[2]->residual.matrix().row(6);
  expect_sum(stream_sources(exact, ids, 2, 6, {}, tools.context), arma::norm(row), "its length");
  if (!model->description().has_logit_attributions || !model->description().causal) return;
  const WrittenSum of = logit_sources(exact, ids, 5, tools.context);
  expect_sum(of, model->next(*pass, ids.size() - 1, tools.context)[5], "logit");
  for (std::size_t k = 0; k < of.by_token.n_rows; ++k) {
    const std::string name = "head " + std::to_string(k / 4) + "." + std::to_string(k % 4);
    const auto found = std::ranges::find(of.names, name);
    ASSERT_NE(found, of.names.end()) << name;
    EXPECT_NEAR(arma::accu(of.by_token.row(k)), of.parts[found - of.names.begin()], 1e-10) << name;
  }
}

/// A patched head is attention output with the head's addition exchanged, in the other engine.
TEST_P(CircuitsOf, PatchesAreOutputsOfTheOtherPrompt) {
  if (!model->description().no_prediction_reason.empty() || !model->description().causal)
    GTEST_SKIP() << "it predicts nothing after a text";
  const PatchMap map = patch(exact, {ids, other_ids, 4, 5}, {}, tools.context);
  const auto clean = run(ids), corrupt = run(other_ids);
  const auto difference = [&](const transformer::LocalPass& pass) {
    const arma::frowvec logits = model->next(pass, ids.size() - 1, tools.context);
    return double(logits[4]) - double(logits[5]);
  };
  EXPECT_NEAR(map.clean, difference(*clean), 1e-5);
  EXPECT_NEAR(map.corrupt, difference(*corrupt), 1e-5);
  for (std::size_t l = 0; l < 2; ++l) {
    const arma::mat output = model->parameters(l, nullptr).projections->output->weight;
    for (std::size_t h = 0; h < 4; ++h) {
      const auto contexts = [&](const transformer::LocalPass& pass) {
        return arma::conv_to<arma::mat>::from(pass.layers[l]->contexts.matrix())
            .cols(h * 8, h * 8 + 7)
            .eval();
      };
      const arma::mat more = (contexts(*clean) - contexts(*corrupt)) * output.rows(h * 8, h * 8 + 7);
      const auto patched = std::make_shared<const arma::fmat>(corrupt->layers[l]->output.matrix() +
                                                              arma::conv_to<arma::fmat>::from(more));
      const double recovered = map.recovered(l, h) * (map.clean - map.corrupt);
      EXPECT_NEAR(recovered, difference(*run(other_ids, {transformer::SetOutput{l, patched}})) - map.corrupt,
                  2e-5)
          << l << "." << h;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Circuits, CircuitsOf, testing::ValuesIn(random_models::whole_model_types()),
                         [](const auto& type) {
                           std::string name = type.param;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

/// Patching everything of a layer, or the stream at every position, gives the clean prompt's prediction.
TEST(Patching, RecoversAllWhereNothingOfTheCorruptPromptIsLeft) {
  const auto model = random_models::random_transformer("gpt2");
  const Float64Model exact(*model);
  Tools tools;
  const PromptPair prompts{{1, 2, 3, 4}, {1, 2, 3, 7}, 4, 5};  // only the last row differs
  const PatchMap stream = patch(exact, prompts, {PatchedPart::residual}, tools.context);
  for (std::size_t l = 0; l < 3; ++l) {
    EXPECT_NEAR(stream.recovered(l, 3), 1, 1e-12);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(stream.recovered(l, i), 0, 1e-12);
  }
  for (const auto& part : transformer::patched_parts()) {
    const PatchMap map = patch(exact, prompts, {part.part}, tools.context);
    const std::size_t n = transformer::n_parts(model->architecture().sizes, part.part);
    EXPECT_EQ(map.recovered.n_cols, part.part == PatchedPart::residual ? 4 : n) << part.name;
    EXPECT_TRUE(map.recovered.is_finite()) << part.name;
  }
}

/// Patches of the displayed pass, in float32 and by stages that are given, recover what the map says; of
/// prompts of other lengths between aligned positions.
TEST(Patching, IsTheSameInTheDisplayedPass) {
  struct Case {
    std::string model, first, second, answer, against;
  };
  const std::string tiny_gpt = transformer::goldens::tiny_gpt, llama = FIXTURES "/transformer/llama",
                    fig = "egg jam fig and egg jam f", ferry = "the ferry and the captain";
  for (const Case& of : {Case{tiny_gpt, fig, "egg jam food and egg jam f", "ig", "ood"},
                         {tiny_gpt, fig, "egg jam food and and egg jam f", "ig", "ood"},
                         {llama, ferry, "the ferry the and and the captain", "f", "a"}}) {
    SCOPED_TRACE(of.second);
    const auto model = transformer::goldens::opened(of.model);
    const Float64Model exact(*model);
    Tools tools;
    experiment::Experiment both{.text = of.second};
    both.first = experiment::FirstPrompt{of.first, of.answer, of.against};
    const auto ids_of = [&](const experiment::Experiment& text) {
      return tokenizers::ids_of(experiment::tokens_of(*model, text));
    };
    const PromptPair prompts{
        ids_of(both.unedited()), ids_of(both), transformer::answer_token(*model, of.answer, ""),
        transformer::answer_token(*model, of.against, ""), experiment::alignment_of(*model, both)};
    const bool is_one_by_one = prompts.clean.size() == prompts.corrupt.size();
    experiment::TextReading last = experiment::read(*model, both, nullptr, tools.context);
    const auto difference = [&] {
      const arma::frowvec logits = last.logits.tail_rows(1);
      return double(logits[prompts.answer]) - double(logits[prompts.against]);
    };
    for (const auto& part : transformer::patched_parts())
      for (const bool by_position : {false, true}) {
        if (part.part == PatchedPart::pattern && !is_one_by_one) continue;
        const PatchMap map = patch(exact, prompts, {part.part, by_position}, tools.context);
        EXPECT_EQ(map.n_known, map.recovered.n_elem);
        for (const auto& [row, column] : std::vector<std::pair<std::size_t, std::size_t>>{
                 {1, 0}, {map.recovered.n_rows - 1, map.recovered.n_cols - 1}}) {
          experiment::Experiment patched = both;
          patched.patches = {map.patch_at(row, column)};
          last = experiment::read(*model, patched, &last, tools.context);
          EXPECT_NEAR((difference() - map.corrupt) / (map.clean - map.corrupt), map.recovered(row, column),
                      2e-5 * std::max(1.0, 1 / std::abs(map.clean - map.corrupt)))
              << transformer::patch_name(*patched.patches.begin());
        }
      }
    last = experiment::read(*model, both, &last, tools.context);
    const PatchMap any = patch(exact, prompts, {}, tools.context);
    EXPECT_NEAR(difference(), any.corrupt, 1e-3);  // nothing is left of a patch
  }
}

/// Words that only one prompt has are in no pair; a pair by hand removes those that it excludes.
TEST(Alignment, IsByPairsElseWhereTextsBeginAndEndAlike) {
  using transformer::align;
  EXPECT_EQ(align({1, 2, 3, 4}, {1, 9, 8, 3, 4}), (transformer::TokenAlignment{0, {}, {}, 2, 3}));
  EXPECT_EQ(align({1, 2}, {3, 4}), (transformer::TokenAlignment{0, 1}));
  EXPECT_EQ(align({1, 1}, {1, 1, 1}), (transformer::TokenAlignment{0, 1, {}}));
  const auto rows = align({1, 2, 3, 4}, {1, 9, 8, 3, 4}, {{0, 0}, {1, 2}});
  EXPECT_EQ(rows, (transformer::TokenAlignment{0, {}, 1, {}, {}}));
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(transformer::toggle_pair(rows, 3, 3), (Pairs{{0, 0}, {1, 2}, {3, 3}}));
  EXPECT_EQ(transformer::toggle_pair(rows, 2, 1), (Pairs{{0, 0}, {2, 1}}));  // crosses (1, 2)
  EXPECT_EQ(transformer::toggle_pair(rows, 1, 2), (Pairs{{0, 0}}));
  EXPECT_EQ(error_of([] {
              align({1, 2}, {1, 2}, {{1, 0}, {0, 1}});
            }),
            "align: expected positions in order, below 2 and 2, got 0:1");
}

/// A patched stream reaches what else is patched in its layer, also where nothing of the text is known yet.
TEST(Patching, OfTheStreamReachesTheAttentionThatIsPatchedToo) {
  Tools tools;
  experiment::Experiment both{.text = "egg jam food and egg jam f"};
  both.first = experiment::FirstPrompt{"egg jam fig and egg jam f", "ig", "ood"};
  both.patches = {{0, PatchedPart::residual, 0, 6}, {0, PatchedPart::queries, 1}};  // all that differs
  const auto read = [&](const experiment::Experiment& of) {
    const auto model = transformer::goldens::opened(transformer::goldens::tiny_gpt);
    return arma::fmat(experiment::read(*model, of, nullptr, tools.context).logits.tail_rows(1));
  };
  EXPECT_LT(arma::abs(read(both) - read(both.unedited())).max(), 1e-4);
}

/// The map grows from the last layer on; path patching through a receiver stops before it.
TEST(Patching, ReportsWhatIsKnown) {
  const auto model = random_models::random_transformer("gpt2");
  const Float64Model exact(*model);
  Tools tools;
  std::vector<std::size_t> known;
  const PatchMap map = patch(exact, {ids, other_ids, 4, 5}, {PatchedPart::head, true}, tools.context,
                             [&](const PatchMap& part) {
                               known.push_back(part.n_known);
                               EXPECT_TRUE(std::isfinite(part.recovered(11, 7)));
                               EXPECT_EQ(std::isnan(part.recovered(0, 0)), part.n_known < 12 * 8);
                             });
  EXPECT_GT(known.size(), 2u);
  EXPECT_EQ(known.back(), 12 * 8u);
  EXPECT_EQ(map.row_name(5), "1.1");
  EXPECT_EQ(map.patch_at(5, 3), (Patch{1, PatchedPart::head, 1, 3}));
  const PatchMap path = patch(exact, {ids, other_ids, 4, 5},
                              {PatchedPart::head, false, Patch{2, PatchedPart::keys, 1}}, tools.context);
  EXPECT_EQ(arma::size(path.recovered), arma::size(2, 4));
  EXPECT_EQ(
      error_of([&] {
        patch(exact, {ids, other_ids, 4, 5}, {{}, false, Patch{0, PatchedPart::keys, 1}}, tools.context);
      }),
      "through: expected a layer from 1 to 2 and a head below 4, got 0.1");
}

/// Composition of explicit products of whole matrices.
TEST(Compositions, AreRatiosOfNorms) {
  const auto model = random_models::random_transformer("qwen3");
  const Float64Model exact(*model);
  Tools tools;
  const Composition of = composition(exact, tools.context);
  const Layer64 first = exact.read_layer(0, tools.context), second = exact.read_layer(2, tools.context);
  const auto read = [](const Layer64& layer, const Affine64& affine, std::size_t column) {
    arma::mat weight = affine.weight.cols(column, column + 7);
    weight.each_col() %= layer.attention_norm.factors.t();
    return weight;
  };
  const arma::mat ov = read(first, first.values, 0) * first.output.weight.rows(8, 15);  // head 1, KV head 0
  const arma::mat queries = read(second, second.queries, 24), keys = read(second, second.keys, 8),
                  values = read(second, second.values, 8);
  const auto share = [&](const arma::mat& reading) {
    return arma::norm(ov * reading, "fro") / arma::norm(ov, "fro") / arma::norm(reading, "fro");
  };
  EXPECT_NEAR(of.queries(1, 11), share(queries * keys.t()), 1e-12);
  EXPECT_NEAR(of.keys(1, 11), share(keys * queries.t()), 1e-12);
  EXPECT_NEAR(of.values(1, 11), share(values * second.output.weight.rows(24, 31)), 1e-12);
  EXPECT_TRUE(std::isnan(of.queries(1, 2)));
  EXPECT_TRUE(std::isnan(of.values(8, 1)));
}

/// Pairs of tokens by products over the whole vocabulary.
TEST(Compositions, HaveTheLargestPairsOfTokens) {
  const auto model = random_models::random_transformer("gpt2");
  const Float64Model exact(*model);
  Tools tools;
  const HeadCircuits of = head_circuits(exact, 1, 2, 3, tools.context);
  const Layer64 layer = exact.read_layer(1, tools.context);
  const std::size_t n = std::min(model->description().n_tokens, model->architecture().sizes.n_vocabulary);
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  arma::mat rows(n, 32);
  for (std::size_t id = 0; id < n; ++id) rows.row(id) = exact.embed({id}, tools.context)[0].rows;
  const arma::vec size = layer.attention_norm.divisors(rows);
  const arma::mat x = layer.attention_norm.apply_frozen(rows, size);
  const auto columns = [&](const arma::mat& weight) { return arma::mat(x * weight.cols(16, 23)); };
  arma::mat qk = columns(layer.queries.weight) * columns(layer.keys.weight).t() / std::sqrt(8.0);
  const Norm64 last = exact.norm_of(model->weights().head(tools.context)->final_norm);
  arma::mat output = layer.output.weight.rows(16, 23);
  output.each_col() -= arma::vec(arma::mean(output, 1));  // as LayerNorm does
  output.each_row() %= last.factors;
  arma::mat ov = columns(layer.values.weight) * output * exact.unembeddings(all, tools.context);
  for (const auto& [pairs, cells] : {std::pair(of.qk, &qk), std::pair(of.ov, &ov)})
    for (const TokenPair& pair : pairs) {
      EXPECT_NEAR(pair.value, cells->max(), 1e-12);
      EXPECT_NEAR(pair.value, cells->at(pair.from, pair.to), 1e-12);
      cells->at(pair.from, pair.to) = -arma::datum::inf;
    }
}

TEST(Sources, RefuseCellsThatDoNotExist) {
  const auto model = random_models::random_transformer("mistral");  // its window is 4
  const Float64Model exact(*model);
  Tools tools;
  const auto error = [&](const ScoreCell& cell) {
    return error_of([&] { sources_of(exact, ids, cell, tools.context); });
  };
  EXPECT_EQ(error({3, 0, 0, 0}), "layer: expected a layer below 3, got 3");
  EXPECT_EQ(error({0, 4, 0, 0}), "head: expected a head below 4, got 4");
  EXPECT_EQ(error({0, 0, 8, 0}), "query: expected a position below 8, got 8");
  EXPECT_EQ(error({0, 0, 1, 9}), "key: expected a position below 8, got 9");
  EXPECT_EQ(error({0, 0, 6, 2}), "key: expected one that query 6 attends to, from 3 to 6, got 2");
}

TEST(Patching, RefusesPromptsThatCannotBeCompared) {
  const auto model = random_models::random_transformer("gpt2");
  const Float64Model exact(*model);
  Tools tools;
  const auto error = [&](const PromptPair& prompts) {
    return error_of([&] { patch(exact, prompts, {}, tools.context); });
  };
  EXPECT_EQ(error({{1, 2}, {1, 2}, 3, 4}),
            "corrupt prompt: expected other tokens than those of the clean one, got the same");
  EXPECT_EQ(error({{1, 2}, {1, 2, 3}, 3, 4}),
            "corrupt prompt: expected as many tokens as the clean one, 2, got 3");
  EXPECT_EQ(error({{1, 2}, {1, 3}, 3, 3}), "against: expected another token than the answer, got the same");
}

}  // namespace
}  // namespace core::circuits
