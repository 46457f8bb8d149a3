// Public models, fetched by scripts/test --models, against transformers and tokenizers
// (tests/fixtures/real/make_real.py).
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/circuits/patching.hpp"
#include "core/circuits/sources.hpp"
#include "core/files/json.hpp"
#include "core/model/full_model.hpp"
#include "core/model/tokenizer_files.hpp"
#include "core/system/file.hpp"
#include "tests/core/model/goldens.hpp"

namespace core::transformer {
namespace {

using goldens::Golden;

/// Returns the folder that the models were fetched into.
std::string models() {
  const char* folder = std::getenv("ATTNSCOPE_MODELS");
  if (!folder) throw std::runtime_error("ATTNSCOPE_MODELS is not set; run scripts/test --models");
  return std::string(folder) + "/";
}

TEST(RealModel, MiniLmIsComputedAsTheLibraryDoes) {
  const auto model = goldens::opened(models() + "minilm");
  const Golden golden(FIXTURES "/real/minilm.npz");
  const auto ids =
      goldens::ids_of(*model, "The ferry's captain waited – 42 minutes – for Zoë, who never came.");
  ASSERT_EQ(ids, golden.ids());
  goldens::Tools tools;
  const auto pass = goldens::run(*model, ids, tools);
  EXPECT_LT(
      goldens::relative_difference(
          model->apply_final_norm(model->residual(*pass, model->architecture().sizes.n_layers, tools.context),
                                  tools.context),
          golden.matrix("last")),
      1e-5);
  for (std::size_t h = 0; h < model->architecture().sizes.n_heads; ++h)
    EXPECT_LT(
        goldens::relative_difference(model->attention_weights(*pass, 3, h), golden.matrix("attention", {h})),
        1e-4);
}

TEST(RealModel, SmolLm2PredictsFromItsQuantizedFileAsTheLibraryDoes) {
  const auto model = goldens::opened(models() + "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  const Golden golden(FIXTURES "/real/smollm2.npz");
  const auto ids = goldens::ids_of(*model, "The capital of France is");
  ASSERT_EQ(ids, golden.ids());
  goldens::Tools tools;
  const auto pass = goldens::run(*model, ids, tools);
  const arma::fmat logits = model->compute_logits(
      model->residual(*pass, model->architecture().sizes.n_layers, tools.context), tools.context);
  const arma::mat top_ids = golden.matrix("top_ids"), top_logits = golden.matrix("top_logits");
  for (std::size_t place = 0; place < ids.size(); ++place) {
    const auto best = top_tokens(logits.row(place), top_ids.n_cols, model->tokenizer().size());
    for (std::size_t k = 0; k < best.size(); ++k)
      EXPECT_NEAR(best[k].logit, top_logits(place, k), 1e-4 * std::abs(top_logits(place, 0))) << place;
    for (std::size_t k = 0; k < 5; ++k)
      EXPECT_EQ(static_cast<double>(best[k].id), top_ids(place, k)) << place;
  }
  for (std::size_t h = 0; h < model->architecture().sizes.n_heads; ++h)
    EXPECT_LT(
        goldens::relative_difference(model->attention_weights(*pass, 17, h), golden.matrix("attention", {h})),
        1e-4);
}

/// Expected values: hooks of transformers on the same weights, dequantized to float32: one head of the clean
/// prompt in the corrupt one at a time; then the score by which head 18.6 finds the earlier answer, without
/// each earlier head and MLP. See make_real.py.
TEST(RealModel, SmolLm2HasAnInductionCircuit) {
  const auto model = goldens::opened(models() + "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  const circuits::Float64Model exact(*model);
  const Golden golden(FIXTURES "/real/smollm2_circuit.npz");
  const auto corrupt = goldens::ids_of(*model, "Tom Baker met Anna Miller. Later Tom Baker saw Anna");
  ASSERT_EQ(goldens::ids_of(*model, "Tom Baker met Anna Fisher. Later Tom Baker saw Anna"), golden.ids());
  goldens::Tools tools;
  const circuits::PatchMap map = circuits::patch(
      exact,
      {golden.ids(), corrupt, answer_token(*model, " Fisher", ""), answer_token(*model, " Miller", "")}, {},
      tools.context);
  const arma::vec differences = arma::vectorise(golden.matrix("differences"));
  EXPECT_NEAR(map.clean, differences[0], 1e-3);
  EXPECT_NEAR(map.corrupt, differences[1], 1e-3);
  EXPECT_LT(arma::abs(map.recovered - golden.matrix("recovered")).max(), 1e-3);

  // Layer, head and key of induction; the head that tells the key which token came before, and where it
  // reads.
  const arma::uvec found = arma::conv_to<arma::uvec>::from(arma::vectorise(golden.matrix("found")));
  ASSERT_TRUE(arma::all(found == arma::uvec{18, 6, 4, 16, 0, 3}));
  const auto cell = circuits::sources_of(
      exact, golden.ids(), {found[0], found[1], golden.ids().size() - 1, found[2]}, tools.context);
  const arma::vec score = arma::vectorise(golden.matrix("score"));
  EXPECT_NEAR(cell.above_row_mean, score[0], 1e-3);
  EXPECT_NEAR(cell.weight, score[1], 1e-4);
  const arma::mat heads = golden.matrix("heads"), mlps = golden.matrix("mlps");
  const circuits::ScoreSource* largest = nullptr;
  std::size_t n_mlps = 0;
  for (const circuits::ScoreSource& source : cell.sources) {
    if (source.head) {
      EXPECT_NEAR(source.total, heads(source.head->first, source.head->second), 1e-3) << source.name;
      if (!largest || source.total > largest->total) largest = &source;
    } else if (source.name.starts_with("MLP")) {
      EXPECT_NEAR(source.total, mlps[n_mlps++], 1e-3) << source.name;
    }
  }
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->name, "head 16.0");
  EXPECT_EQ(largest->read->key, found[5]);
  EXPECT_EQ(n_mlps, 18u);
}

TEST(RealModel, Gpt2sVocabularyCutsHardStringsAsTheLibraryDoes) {
  const auto tokenizer = tokenizers::open_tokenizer(models() + "gpt2");
  const std::string path = FIXTURES "/real/gpt2.json";
  const auto cases = formats::parse_json(core::system::read_file(path, 1 << 20), path);
  std::size_t n_cases = 0;
  for (const auto& each : cases.items("cases")) {
    std::vector<std::size_t> expected, got;
    for (const auto& id : each.required("ids").items_or_empty("ids")) expected.push_back(id.whole(0));
    for (const auto& token : tokenizer.encode(each.required("text").text())) got.push_back(token.id);
    EXPECT_EQ(got, expected) << each.required("text").text();
    ++n_cases;
  }
  EXPECT_EQ(n_cases, 39u);
}

}  // namespace
}  // namespace core::transformer
