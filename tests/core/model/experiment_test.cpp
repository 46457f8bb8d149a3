#include "core/model/text_reading.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/attend.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::experiment {
namespace {

using support::error_of;
using transformer::goldens::Golden;

constexpr std::size_t ig = 686;

/// The tiny GPT on a text whose numbers NumPy has computed (tests/fixtures/transformer/make_lens.py).
struct OnTinyGpt : testing::Test {
  Golden golden{transformer::goldens::folder + "tiny_gpt_lens.npz"};
  std::shared_ptr<const transformer::Transformer> model =
      transformer::goldens::opened(transformer::goldens::tiny_gpt);
  transformer::goldens::Tools tools;
  Experiment plain{.text = "egg jam fig and egg jam f"};

  TextReading read_all(const Experiment& experiment, const TextReading* before = nullptr) {
    return read(*model, experiment, before, tools.context);
  }
  double probability(const TextReading& reading) {
    return transformer::Probabilities(reading.logits.tail_rows(1)).of(ig);
  }
  /// Returns the experiment without a head's rows of the output projection, which equals ablating the head.
  Experiment without_rows(const TextReading& reading, std::size_t layer, std::size_t head) {
    const attention::Model unedited = unedited_layer(*model, reading, layer);
    attention::Model after = unedited;
    after.projections->output->weight.edit().rows(head * 32, head * 32 + 31).zeros();
    return with_layer(reading.experiment, layer, unedited, after, "W_o");
  }
};

TEST_F(OnTinyGpt, HeadsThatAreOffChangeWhatIsGuessed) {
  const TextReading before = read_all(plain);
  EXPECT_NEAR(probability(before), 0.92852160504514, 2e-5);
  Experiment experiment = plain;
  experiment.heads_off = {{2, 3}};
  const TextReading after = read_all(experiment, &before);
  EXPECT_NEAR(probability(after), golden.matrix("off_probability")(2, 3), 2e-5);
  EXPECT_EQ(after.layers[1], before.layers[1]);  // not computed again
  EXPECT_EQ(after.pass->computation_id(1), before.pass->computation_id(1));
  EXPECT_NE(after.pass->computation_id(2), before.pass->computation_id(2));
  experiment.heads_off.insert({2, 0});
  EXPECT_NEAR(probability(read_all(experiment, &after)), golden.matrix("both_off")[0], 2e-5);
}

TEST_F(OnTinyGpt, EditsOfALayerFlowToThePrediction) {
  const TextReading before = read_all(plain);
  const Experiment experiment = without_rows(before, 2, 3);
  EXPECT_EQ(experiment.layers.at(2).words, std::vector<std::string>{"W_o"});
  const TextReading after = read_all(experiment, &before);
  EXPECT_NEAR(probability(after), golden.matrix("off_probability")(2, 3), 2e-5);
  EXPECT_TRUE(after.layers[2]->is_edited);
  EXPECT_FALSE(after.layers[3]->is_edited);
  const Prediction next = predict_next(*model, after, before, ig, 1, tools.context);
  ASSERT_TRUE(next.attribution && next.attribution_before);
  EXPECT_NEAR(next.attribution->heads[2][3], 0, 1e-6);
  EXPECT_NEAR(next.attribution->sum(), after.logits(3, ig), 1e-4);
  // One more ablated head, in the edited layer and in an earlier one.
  EXPECT_NEAR(ablation_effect(*model, after, {2, 0}, ig, 1, tools.context).probability,
              golden.matrix("both_off")[0], 2e-5);
}

TEST_F(OnTinyGpt, ALayerThatIsAsItWasIsNotEdited) {
  const TextReading before = read_all(plain);
  const attention::Model unedited = unedited_layer(*model, before, 1);
  attention::Model after = unedited;
  after.sequences.front().embeddings.set(3, 7, 5);
  after.heads_off = {2};
  Experiment experiment = with_layer(plain, 1, unedited, after, "X");
  EXPECT_EQ(experiment.heads_off, (std::set<IndexPair>{{1, 2}}));
  EXPECT_EQ(experiment.layers.at(1).inputs, (std::map<IndexPair, double>{{{3, 7}, 5.0}}));
  attention::Model with_head_off = unedited;
  with_head_off.heads_off = {2};
  EXPECT_EQ(edited(with_head_off, experiment.layers.at(1)), after);
  experiment = with_layer(experiment, 1, unedited, unedited, "X");
  EXPECT_FALSE(experiment.is_edited());
}

TEST_F(OnTinyGpt, WhatLayersBehindCouldNotGoOnWithIsRefused) {
  const attention::Model unedited = unedited_layer(*model, read_all(plain), 0);
  attention::Model other = unedited;
  other.projections->output.reset();
  EXPECT_FALSE(with_layer(plain, 0, unedited, other, "").layers.empty());  // 128 columns as well
  other.projections->output = attention::Linear{arma::mat(128, 5), {}};
  EXPECT_EQ(error_of([&] { with_layer(plain, 0, unedited, other, ""); }),
            "Layer 0 must give 128 numbers for each token to the layers behind it, not 5.");
  other = unedited;
  other.sequences.front().tokens[0] = "x";
  EXPECT_EQ(error_of([&] { with_layer(plain, 0, unedited, other, ""); }),
            "A whole model makes what enters its layers, and their keys, of the text: change the text under "
            "PROMPT.");
}

TEST(SavedExperiment, IsToldByItsKeyNotByAToken) {
  EXPECT_TRUE(is_saved_experiment_text("{\n \"attnscope\": 1,\n \"whole_model\" : {"));
  EXPECT_FALSE(is_saved_experiment_text(R"({"attnscope": 1, "tokens": ["whole_model", "a"]})"));
  EXPECT_FALSE(is_saved_experiment_text(R"({"attnscope": 1, "tokens": ["\"whole_model\": {", "a"]})"));
}

TEST_F(OnTinyGpt, HeadsThatOnlyAnEditedLayerHasAreSavedAndGoWithTheEdit) {
  const TextReading reading = read_all(plain);
  const attention::Model unedited = unedited_layer(*model, reading, 1);
  attention::Model after = unedited;
  after.n_heads = 8;
  after.heads_off = {2, 6};
  after.sequences.front().embeddings.set(3, 7, 5);
  after.projections->query.weight.set(0, 1, 0.5);
  Experiment experiment = with_layer(plain, 1, unedited, after, "heads");
  const std::string text = experiment_text(*model, experiment, "", "/tmp");
  // As written next to the model; docs/session.schema.json is tested with this file.
  EXPECT_EQ(experiment_text(*model, experiment, "", model->description().path.parent_path()),
            support::bytes_of(FIXTURES "/transformer/whole_session.json"));
  const auto opened = [&](const std::string& of) {
    return with_saved_edits(parse_experiment(of, "/tmp/s.json", UntrustedPaths::allowed), *model);
  };
  EXPECT_EQ(opened(text), experiment);
  std::string other = text;
  other.replace(other.find("[1, 6]"), 6, "[1, 8]");
  EXPECT_EQ(error_of([&] { opened(other); }),
            "whole_model.heads_off: expected layers below 4 and heads that they have, got 1.8");
  drop_edit(experiment, 1, 4);
  EXPECT_EQ(experiment.heads_off, (std::set<IndexPair>{{1, 2}}));
  EXPECT_TRUE(experiment.layers.empty());
}

TEST_F(OnTinyGpt, TwoPromptsAndTheirPatchesAreSaved) {
  using transformer::Patch, transformer::PatchedPart;
  Experiment both{.text = "egg jam food and egg jam f", .layer = 2};
  both.first = FirstPrompt{plain.text, "ig", "ood"};
  both.patches = {{2, PatchedPart::head, 3}, {1, PatchedPart::residual, 0, 6}};
  const auto opened = [&](const std::string& of) {
    return with_saved_edits(parse_experiment(of, "/tmp/s.json", UntrustedPaths::allowed), *model);
  };
  const auto with = [&](const Patch& patch) {
    Experiment other = both;
    other.patches = {patch};
    return error_of([&] { opened(experiment_text(*model, other, "", "/tmp")); });
  };
  EXPECT_EQ(opened(experiment_text(*model, both, "", "/tmp")), both);
  EXPECT_EQ(both.unedited().text, plain.text);
  EXPECT_EQ(with({4, PatchedPart::mlp}),
            "whole_model.patches: MLP 4: expected a layer below 4, a head below 1 and a position below 14");
  EXPECT_EQ(with({1, PatchedPart::keys, 2, 14}),
            "whole_model.patches: keys 1.2, position 14: expected a layer below 4, a head below 4 and a "
            "position below 14");
  std::string other = experiment_text(*model, both, "", "/tmp");
  other.replace(other.find("\"residual\""), 10, "\"stream\"");
  EXPECT_EQ(error_of([&] { opened(other); }),
            "/tmp/s.json: whole_model.patches[0].part: expected a part of a layer, got \"stream\"");
  both.first->text = "egg";
  EXPECT_EQ(with({2, PatchedPart::head, 3}), "no error") << "what is not aligned stays";
  EXPECT_EQ(with({2, PatchedPart::pattern, 3}),
            "whole_model.patches: pattern 2.3: expected prompts that are aligned one by one");
}

TEST_F(OnTinyGpt, TokensBehindATextAreReadOn) {
  const TextReading before = read_all(plain);
  Experiment more = plain;
  more.made = {ig};
  const TextReading on = read_all(more, &before), anew = read_all(more);
  EXPECT_EQ(on.names.back(), "ig");
  EXPECT_EQ(whole_text(*model, more), "egg jam fig and egg jam fig");
  EXPECT_TRUE(arma::approx_equal(on.logits, anew.logits, "absdiff", 1e-3));
  EXPECT_TRUE(arma::approx_equal(on.layers[2]->heads[0].map, anew.layers[2]->heads[0].map, "absdiff", 1e-5));
}

TEST_F(OnTinyGpt, TextsThatCannotBeReadAreRefused) {
  EXPECT_EQ(error_of([&] { read_all({.text = ""}); }), "the text has no tokens to run the model on");
  std::string text;
  for (int k = 0; k < 300; ++k) text += " and";
  EXPECT_EQ(error_of([&] { read_all({.text = text}); }),
            "expected at most 256 tokens, as many as the model takes at once, got 300");
}

constexpr const char* let_go = "Edits of tokens of the previous text were discarded in layer 1.";

/// Columns of an output are not tokens, columns of scores are.
TEST_F(OnTinyGpt, TypedCellsStayAsLongAsTheirTokens) {
  using attention::Stage;
  const attention::Model unedited = unedited_layer(*model, read_all(plain), 1);
  attention::Model after = unedited;
  after.given.cells = {{{Stage::queries, 0, 0, 1, 31}, 1},
                       {{Stage::scores, 0, 0, 5, 4}, 2},
                       {{Stage::contexts, 0, 0, 1, 30}, 3},
                       {{Stage::concatenated, 0, 0, 1, 127}, 4},
                       {{Stage::output, 0, 0, 1, 120}, 5}};
  Experiment experiment = with_layer(plain, 1, unedited, after, "cells");
  after.mask.cells = {{2, 1, false}, {13, 2, false}};
  experiment = with_layer(experiment, 1, unedited, after, "mask");
  EXPECT_EQ(discard_stale_edits(experiment, 20), "");
  EXPECT_EQ(discard_stale_edits(experiment, 10), let_go);
  EXPECT_EQ(experiment.layers.at(1).model.mask.cells.size(), 1u);
  EXPECT_EQ(discard_stale_edits(experiment, 6), "");
  EXPECT_EQ(experiment.layers.at(1).model.given.cells.size(), 5u);
  EXPECT_EQ(discard_stale_edits(experiment, 5), let_go);  // the scores of the sixth token
  EXPECT_EQ(experiment.layers.at(1).model.given.cells.size(), 4u);
  EXPECT_EQ(discard_stale_edits(experiment, 1), let_go);
  EXPECT_TRUE(experiment.layers.at(1).model.given.cells.empty());
}

/// Expected values: PyTorch on 24 rows of random tokens when the model was trained (its model card).
TEST_F(OnTinyGpt, InductionHeadsShowOnRandomTokensThatComeAgain) {
  const auto usual = roles_on_random_tokens(*model, tools.context);
  ASSERT_EQ(usual.size(), 4u);
  const double expected[]{0.91, 0.51, 0.85, 0.91};
  for (std::size_t h = 0; h < 4; ++h) EXPECT_NEAR(usual[2][h].induction.value(), expected[h], 0.06) << h;
  EXPECT_LT(usual[0][2].induction.value(), 0.05);
  EXPECT_GT(usual[0][2].previous, 0.9);
}

TEST_F(OnTinyGpt, NumbersOfTheStreamGoFromLayerToLayer) {
  const TextReading reading = read_all(plain);
  for (std::size_t layer = 0; layer < 4; ++layer)
    for (const auto& [row, column] : {IndexPair{0, 0}, IndexPair{13, 127}, IndexPair{7, 64}}) {
      const transformer::ResidualElement here =
          model->stream(*reading.pass, layer, row, column, tools.context);
      ASSERT_TRUE(here.norm && here.no_sum_reason.empty());
      const transformer::ElementNorm& norm = *here.norm;
      EXPECT_NEAR((here.entering - norm.mean) / norm.divisor * norm.factor + norm.bias, here.input, 1e-5);
      EXPECT_NEAR(here.entering + here.attention + here.mlp, here.leaving, 1e-12);
      const attention::Model unedited = unedited_layer(*model, reading, layer);
      EXPECT_EQ(here.input, (*unedited.sequences.front().embeddings)(row, column));
      EXPECT_NEAR(here.attention, attention::attend(unedited).at(attention::Stage::output)(row, column),
                  1e-4);
      if (layer == 3) continue;
      EXPECT_EQ(here.leaving, model->stream(*reading.pass, layer + 1, row, column, tools.context).entering);
    }
}

TEST_F(OnTinyGpt, OfAnotherModelElsewhereTheSizeIsNotTold) {
  const std::filesystem::path folder = model->description().path;
  const auto words = [&](const std::filesystem::path& session) {
    const std::string text = experiment_text(*model, plain, "", session.parent_path());
    SavedExperiment saved = parse_experiment(text, session, UntrustedPaths::allowed);
    saved.fingerprint.bytes = 1;
    return error_of([&] { require_same_model(saved, *model, session); });
  };
  const std::string beside = words(folder.parent_path() / "s.json");
  EXPECT_NE(beside.find(" of 1 bytes as it was when this was saved, got one of "), std::string::npos)
      << beside;
  EXPECT_EQ(words("/nowhere/s.json"),
            "/nowhere/s.json: whole_model.model: expected the model " +
                formats::quoted_briefly(std::filesystem::absolute(folder).lexically_normal().string()) +
                " as it was when this was saved, got another");
}

TEST_F(OnTinyGpt, KeysOfAnotherTextAreRefused) {
  const TextReading reading = read_all(plain);
  const attention::Model unedited = unedited_layer(*model, reading, 0);
  attention::Model other = unedited;
  other.sequences.front().key_embeddings = arma::mat(3, 128, arma::fill::ones);
  other.sequences.front().key_tokens = {"a", "b", "c"};
  const std::string words =
      "A whole model makes what enters its layers, and their keys, of the text: change the text under PROMPT.";
  EXPECT_EQ(error_of([&] { with_layer(plain, 0, unedited, other, ""); }), words);

  attention::Model bare = unedited;
  bare.projections.reset();
  Experiment saved = with_layer(plain, 0, unedited, bare, "");
  saved.layers.at(0).model.sequences.front().key_embeddings = arma::mat(3, 128, arma::fill::ones);
  saved.layers.at(0).model.sequences.front().key_tokens = {"a", "b", "c"};
  const std::string text = experiment_text(*model, saved, "", "/tmp");
  EXPECT_EQ(error_of([&] {
              with_saved_edits(parse_experiment(text, "/tmp/s.json", UntrustedPaths::allowed), *model);
            }),
            "/tmp/s.json: whole_model.edits[0]: " + words);
}

}  // namespace

}  // namespace core::experiment
