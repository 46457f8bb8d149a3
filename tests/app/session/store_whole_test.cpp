// A whole model as a document: text, edits and ablations change the prediction, and undo restores it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "app/session/store.hpp"
#include "tests/support/attached_server.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

const std::string tiny_gpt = FIXTURES "/../../assets/examples/tiny_gpt";
const std::string text = "egg jam fig and egg jam f";

/// The tiny GPT; expected numbers are NumPy's (tests/fixtures/transformer/make_lens.py).
struct WholeModelStore : testing::Test {
  Store store;
  WholeModelStore() { store.open(tiny_gpt, text), settle(); }

  void settle() { support::settle(store); }
  void ask(const Command& command) {
    store.dispatch(command);
    store.dispatch(EndGesture{});
    settle();
  }
  const FullModelState* whole() const { return store.pending().full_model; }
  const Prediction& next() const { return *store.pending().reading->prediction(); }
  std::string read_text() const {
    const FullModelState& whole = *store.pending().full_model;
    return core::experiment::whole_text(*whole.model, whole.experiment);
  }
};

/// The same model attached through a server.
struct AttachedStore : testing::Test {
  support::AttachedServer server{tiny_gpt};
  Store store;
  support::TemporaryDirectory directory;

  void attach() { store.attach(server.address(), "right", text, 1), settle(); }
  void settle() { support::settle(store); }
  void ask(const Command& command) {
    store.dispatch(command);
    store.dispatch(EndGesture{});
    settle();
  }
  double probability() const { return store.pending().reading->prediction()->chosen.now; }
};

TEST_F(AttachedStore, IsEditedUndoneAndNeverSaved) {
  attach();
  EXPECT_EQ(store.document().title, "TinyModel");
  EXPECT_TRUE(store.document().recent.empty());
  ask(ApplyEdit{core::editing::SetCell{{core::editing::MatrixName::value_weight}, 3, 5, 9.0}});
  EXPECT_LT(probability(), 0.92);
  EXPECT_TRUE(store.document().modified);
  for (const Command& command : {Command(SaveFile{}), Command(SaveFileAs{directory / "a.json"}),
                                 Command(ShowDialog{Dialog::save_as})}) {
    ask(command);
    EXPECT_NE(store.message().text.find("cannot be saved"), std::string::npos) << store.message().text;
  }
  EXPECT_TRUE(directory.names().empty());
  ask(Undo{});
  EXPECT_NEAR(probability(), 0.92852, 1e-4);
  EXPECT_FALSE(store.document().modified);
}

TEST_F(AttachedStore, ReportsOnceThatItsProcessHasEnded) {
  attach();
  EXPECT_FALSE(store.report_lost_model());
  server.end();
  for (int tenths = 0; tenths < 20 && !store.report_lost_model(); ++tenths)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_NE(store.message().text.find("the connection to Python was lost"), std::string::npos)
      << store.message().text;
  EXPECT_TRUE(store.message().is_error);
  EXPECT_FALSE(store.report_lost_model());
  EXPECT_GT(probability(), 0.5);  // what is displayed stays
}

TEST_F(AttachedStore, AsksForTheDisplayedLayersHeadsFirstWhereMapsTakeTheirTime) {
  server.maps_ms = 50;
  store.attach(server.address(), "right", text, 1);
  const auto is_known = [&](std::size_t layer) {
    return store.pending().reading->readings()->now->layers[layer]->is_known();
  };
  EXPECT_TRUE(is_known(1));
  EXPECT_FALSE(is_known(0) || is_known(2));
  settle();
  EXPECT_TRUE(is_known(0) && is_known(2));
  store.dispatch(ToggleLayerHead{0, 3});
  while (store.pending().reading->readings()->now->experiment.heads_off.empty()) store.update();
  EXPECT_TRUE(is_known(1));
  EXPECT_FALSE(is_known(0) || is_known(2));
  settle();
  EXPECT_TRUE(is_known(0) && is_known(2));
  EXPECT_TRUE(store.pending().reading->readings()->before->is_filled());
  EXPECT_TRUE(store.pending().reading->effects().of({1, 0}));
}

TEST_F(AttachedStore, ReadsItsTextAgainOnceTheParametersHaveChanged) {
  attach();
  ask(ToggleLayerHead{2, 3});
  server.take_operations();
  const auto before = store.pending().reading->readings()->before;
  ASSERT_TRUE(store.pending().reading->random_roles());
  server.change_parameters();
  for (int k = 0; k < 200 && store.pending().reading->readings()->before == before; ++k) settle();
  EXPECT_NE(store.pending().reading->readings()->before, before);
  EXPECT_GE(std::ranges::count(server.take_operations(), "run"), 2);
  for (int k = 0; k < 200 && !store.pending().reading->random_roles(); ++k) settle();
  EXPECT_TRUE(store.pending().reading->random_roles());  // measured again
  EXPECT_NEAR(probability(), 0.37603, 1e-4);
}

TEST_F(AttachedStore, ShowsALayerThatCannotBeRebuiltAndRefusesItsEdits) {
  server.not_rebuilt = "its values are normalized";
  attach();
  EXPECT_NEAR(probability(), 0.92852, 1e-4);
  EXPECT_FALSE(store.model().projections);
  store.dispatch(ApplyEdit{core::editing::SetCausal{false}});
  EXPECT_EQ(store.message().text, "Layer 1 cannot be edited: its values are normalized.");
  EXPECT_FALSE(store.document().modified);
  ask(ToggleLayerHead{1, 2});
  EXPECT_EQ(store.model().heads_off, std::vector<std::size_t>{2});
  EXPECT_NE(probability(), 0.92852);
}

TEST_F(AttachedStore, IsRefusedInALineWhereItCannotBeAttached) {
  EXPECT_EQ(support::error_of([&] { store.attach(server.address(), "wrong"); }),
            server.address() + ": cannot be attached: that is not the right token");
  EXPECT_EQ(support::error_of([&] { store.attach(server.address(), "right", text, 4); }),
            "TinyModel: expected a layer below 4, got 4");
  EXPECT_FALSE(store.pending().full_model);
}

TEST_F(WholeModelStore, OpensWithItsLayersAndWhatComesNext) {
  ASSERT_TRUE(whole());
  EXPECT_EQ(store.view().look.tab, Tab::layers);
  EXPECT_EQ(store.model().n_heads, 4u);
  EXPECT_EQ(store.model().n_tokens(), 14u);
  EXPECT_EQ(next().chosen.text, "ig");
  EXPECT_NEAR(next().chosen.now, 0.92852, 1e-4);
  EXPECT_FALSE(store.document().modified);
}

TEST_F(WholeModelStore, AHeadOfAnyLayerIsSwitchedOffAsOneStepOfUndo) {
  ask(ToggleLayerHead{2, 3});
  EXPECT_NEAR(next().chosen.now, 0.37603, 1e-4);
  EXPECT_NEAR(next().chosen.before, 0.92852, 1e-4);
  EXPECT_TRUE(store.document().modified);
  EXPECT_EQ(store.document().steps.undo_words, "head 2.3 off");
  ask(ToggleLayerHead{2, 0});
  ask(Undo{});
  ask(Undo{});
  EXPECT_FALSE(store.document().modified);
  EXPECT_NEAR(next().chosen.now, 0.92852, 1e-4);
  ask(Redo{});
  EXPECT_NEAR(next().chosen.now, 0.37603, 1e-4);
  ask(DiscardEdits{});
  EXPECT_FALSE(store.document().modified);
}

TEST_F(WholeModelStore, AnEditOfALayerFlowsToLaterLayersAndIsUndone) {
  ask(ShowLayer{2});
  EXPECT_EQ(whole()->layer, 2u);
  const auto before = store.model();
  // Zeros in the rows of W_o for head 3: the same as the head ablated.
  ask(ApplyEdit{core::editing::SetBlock{
      {core::editing::MatrixName::output_weight, 0}, 96, 0, arma::mat(32, 128, arma::fill::zeros)}});
  EXPECT_NEAR(next().chosen.now, 0.37603, 1e-4);
  ASSERT_EQ(whole()->experiment.layers.size(), 1u);
  ask(ShowLayer{3});
  EXPECT_EQ(whole()->layer, 3u);
  EXPECT_NE(store.model(), before);
  ask(Undo{});
  EXPECT_EQ(store.model(), before) << "and the layer that was edited is looked at again";
  EXPECT_NEAR(next().chosen.now, 0.92852, 1e-4);
}

TEST_F(WholeModelStore, WatchesTheTokenThatLedBeforeTheEdits) {
  ask(ToggleLayerHead{2, 3});
  ask(ToggleLayerHead{2, 0});
  EXPECT_EQ(next().chosen.text, "ig");
  EXPECT_NEAR(next().chosen.now, 0.01349, 1e-4);
  EXPECT_NE(next().candidates.front().text, "ig") << "another one leads now";
  ask(ReadText{"egg jam"});
  EXPECT_NE(next().chosen.text, "ig") << "of another text";
}

TEST(WholeModelLesson, WatchesItsTokenAndKeepsTheSelectedHead) {
  Store store;
  store.apply_settings({.recent = {}, .progress = {}, .models = {tiny_gpt}});
  store.dispatch(StartLesson{"induction"});
  support::settle(store);
  store.dispatch(ReadText{"egg jam ham and egg jam f"});
  support::settle(store);
  const Prediction* next = store.pending().reading->prediction();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->chosen.text, "ig");
  EXPECT_NE(next->candidates.front().text, "ig");
  store.dispatch(StepLesson{1});
  support::settle(store);
  EXPECT_TRUE(store.lesson()->seen.empty());
  store.dispatch(ShowLayer{2});
  store.dispatch(set<&Look::head>(3));
  store.dispatch(StepLesson{1});
  support::settle(store);
  EXPECT_EQ(store.pending().full_model->layer, 2u);
  EXPECT_EQ(store.view().look.head, 3u);
}

TEST(WholeModelLesson, OfOnesOwnBeginsWithTheEditsOfItsSession) {
  const support::TemporaryDirectory directory;
  std::filesystem::copy(tiny_gpt, directory / "model");
  Store store;
  store.open(directory / "model", "egg jam ham and egg jam h");
  support::settle(store);
  store.dispatch(ApplyEdit{core::editing::SwitchMaskCell{3, 1, false}});
  store.dispatch(EndGesture{});
  support::settle(store);
  store.dispatch(ToggleLayerHead{2, 3});
  support::settle(store);
  store.dispatch(
      SetPrompts{core::experiment::FirstPrompt{"egg jam fig and egg jam f"}, "egg jam ham and egg jam h"});
  support::settle(store);
  support::carry_out(store, SaveFileAs{directory / "day.json"});
  const core::experiment::Experiment own = store.pending().full_model->experiment;
  const auto model = store.model();
  support::carry_out(store, NewLesson{});
  support::settle(store);
  ASSERT_TRUE(store.lesson()) << store.message().text;
  EXPECT_EQ(store.pending().full_model->experiment, own);
  EXPECT_EQ(store.model(), model);
  EXPECT_TRUE(store.lesson()->seen.empty());
  store.dispatch(ToggleLayerHead{1, 0});
  support::settle(store);
  EXPECT_FALSE(store.lesson()->seen.empty());
  support::put_bytes(directory / "model/model.fp16.safetensors", "another");
  support::carry_out(store, OpenPath{directory / "day-lesson.json"});
  EXPECT_TRUE(store.message().is_error);
}

/// Both models read the same text, with different tokens.
TEST(WholeModelLesson, LeavesWhatOnesOwnModelHasRead) {
  Store store;
  store.apply_settings({.recent = {}, .progress = {}, .models = {tiny_gpt}});
  store.open(FIXTURES "/transformer/gpt2", text);
  support::settle(store);
  ASSERT_TRUE(store.pending().full_model);
  const std::shared_ptr<const core::experiment::TextReading> own = store.pending().reading->readings()->now;
  ASSERT_EQ(own->layers.size(), 2u);
  store.dispatch(StartLesson{"induction"});
  support::settle(store);
  ASSERT_TRUE(store.lesson()) << store.message().text;
  EXPECT_EQ(store.pending().reading->readings()->now->layers.size(), 4u);
  store.dispatch(LeaveLesson{});
  EXPECT_EQ(store.pending().reading->readings()->now, own) << "at once";
  support::settle(store);
  EXPECT_EQ(store.pending().reading->readings()->now, own);
  EXPECT_EQ(store.pending().reading->readings()->before, own);
}

TEST_F(WholeModelStore, TheTextIsTypedLiveAndWhatCannotBeReadIsSaid) {
  ask(ReadText{"egg jam"});
  EXPECT_EQ(store.model().n_tokens(), 5u);
  ask(ReadText{""});
  ASSERT_TRUE(store.view().layers.refused);
  EXPECT_EQ(store.view().layers.refused->why, "the text has no tokens to run the model on");
  EXPECT_EQ(store.model().n_tokens(), 5u);
  EXPECT_EQ(store.view().layers.refused->text, "");
  ask(Undo{});
  EXPECT_FALSE(store.view().layers.refused);
  EXPECT_EQ(read_text(), text);
  EXPECT_EQ(store.model().n_tokens(), 14u);
}

TEST_F(WholeModelStore, AnEditWaitsForTheLayerOfATextThatIsBeingRead) {
  store.dispatch(ReadText{"egg jam"});  // the text is pending until settle()
  const auto experiment = whole()->experiment;
  store.dispatch(ApplyEdit{core::editing::SwitchMaskCell{13, 2, false}});
  EXPECT_EQ(store.message().text, "The text is still being read.");
  EXPECT_EQ(whole()->experiment, experiment);
  settle();
  ask(ApplyEdit{core::editing::SwitchMaskCell{4, 2, false}});
  EXPECT_TRUE(whole()->experiment.layers.contains(0)) << store.message().text;
  store.dispatch(Undo{});
  store.dispatch(Undo{});  // to the previous text, with a known layer
  store.dispatch(ApplyEdit{core::editing::SwitchMaskCell{13, 2, false}});
  EXPECT_TRUE(whole()->experiment.layers.contains(0)) << store.message().text;
}

TEST_F(WholeModelStore, UndoHoldsTheProjectionsOfALayerOnce) {
  const auto shares = [&](const core::attention::Model& a) {
    const auto &one = *a.projections, &other = *store.model().projections;
    return one.query.weight.shares_with(other.query.weight) &&
           one.value.bias->shares_with(*other.value.bias) &&
           one.output->weight.shares_with(other.output->weight);
  };
  const core::attention::Model first = store.model();
  for (int k = 0; k < 3; ++k) ask(StepGeneration{});
  EXPECT_EQ(store.model().n_tokens(), 17u);
  EXPECT_TRUE(shares(first));
  ask(ShowLayer{2});
  EXPECT_FALSE(shares(first));
  const core::attention::Model later = store.model();
  ask(ToggleLayerHead{1, 1});
  EXPECT_NE(store.model(), later) << "other numbers enter the layer";
  EXPECT_TRUE(shares(later));
  ask(ShowLayer{0});
  EXPECT_TRUE(shares(first)) << "undo holds it";
}

TEST_F(WholeModelStore, WritesOneTokenMoreAndTakesItBack) {
  ask(StepGeneration{});
  EXPECT_EQ(read_text(), text + "ig");
  EXPECT_EQ(store.model().n_tokens(), 15u);
  ask(StepGeneration{true});
  ask(StepGeneration{true});
  EXPECT_EQ(read_text(), "egg jam fig and egg jam");
  EXPECT_EQ(store.model().n_tokens(), 13u);
}

TEST_F(WholeModelStore, WhatTheLayersBehindCannotGoOnWithIsRefused) {
  const auto before = store.model();
  ask(ApplyEdit{core::editing::RenameToken{0, 0, "x"}});
  EXPECT_TRUE(store.message().is_error);
  EXPECT_EQ(store.model(), before);
  ask(ShowLayer{4});
  EXPECT_EQ(store.message().text, tiny_gpt + ": expected a layer below 4, got 4");
}

TEST_F(WholeModelStore, AHeadThatOnlyAnEditedLayerHasGoesWithTheEdit) {
  ask(ApplyEdit{core::editing::SetHeadCount{8}});
  ask(ToggleLayerHead{0, 6});
  EXPECT_EQ(store.model().heads_off, std::vector<std::size_t>{6});
  ask(DiscardEdits{0});
  EXPECT_EQ(store.model().n_heads, 4u);
  EXPECT_FALSE(whole()->experiment.is_edited());
  EXPECT_NEAR(next().chosen.now, 0.92852, 1e-4);
  ask(Undo{});
  EXPECT_EQ(store.model().heads_off, std::vector<std::size_t>{6});
}

TEST_F(WholeModelStore, EachHeadIsSwitchedOffInTurn) {
  ask(SweepHeads{});
  EXPECT_EQ(store.pending().reading->effects().n_known(), 16u);
  const auto effect = store.pending().reading->effects().of({2, 3});
  ASSERT_TRUE(effect);
  EXPECT_NEAR(effect->probability, 0.37603, 1e-4);
}

TEST_F(WholeModelStore, ALayerIsComparedWithWhatItWasBeforeAllEdits) {
  const auto before = [&] {
    ask(ShowLayer{3});
    return store.model();
  }();
  ask(ToggleLayerHead{1, 1});
  EXPECT_NE(store.model(), before) << "other numbers enter the layer";
  ask(CompareEdits{});
  EXPECT_EQ(store.view().look.tab, Tab::compare);
  ASSERT_EQ(store.references().size(), 1u);
  EXPECT_EQ(store.references()[0].model, before);
}

TEST_F(WholeModelStore, IsSavedWithoutTheModelsNumbersAndOpensAsItWas) {
  const support::TemporaryDirectory directory;
  std::filesystem::copy(tiny_gpt, directory / "tiny");
  store.open((directory / "tiny").string(), text), settle();
  ask(ShowLayer{2});
  ask(ApplyEdit{core::editing::SetBlock{
      {core::editing::MatrixName::output_weight, 0}, 96, 0, arma::mat(32, 128, arma::fill::zeros)}});
  ask(ApplyEdit{core::editing::SetCell{{core::editing::MatrixName::query_weight, 0}, 3, 4, 0.5}});
  ask(ApplyEdit{core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 13, 5, 2.5}});
  ask(ApplyEdit{core::editing::SwitchMaskCell{13, 2}});
  ask(ToggleLayerHead{1, 0});
  ask(StepGeneration{});
  const auto experiment = whole()->experiment;
  const double probability = next().chosen.now;
  const auto file = directory.path() / "work.json";
  support::carry_out(store, SaveFileAs{file});
  EXPECT_FALSE(store.document().modified) << store.message().text;
  EXPECT_LT(std::filesystem::file_size(file), 120'000u);  // a projection is 16384 numbers

  Store other;
  other.open(file);
  ASSERT_TRUE(other.pending().full_model);
  EXPECT_EQ(other.pending().full_model->experiment, experiment);
  EXPECT_EQ(other.model().projections, store.model().projections);
  EXPECT_EQ(other.model().mask, store.model().mask);
  const arma::mat &input = other.model().sequences.front().embeddings,
                  &then = store.model().sequences.front().embeddings;
  EXPECT_TRUE(arma::approx_equal(input, then, "absdiff", 1e-5))
      << "tokens behind the text are read on by rounding";
  EXPECT_FALSE(other.document().modified);
  for (int k = 0; k < 500 && !other.pending().reading->prediction(); ++k) {
    other.update();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_NEAR(other.pending().reading->prediction()->chosen.now, probability, 1e-6);

  std::ofstream(directory / "tiny" / "model.fp16.safetensors", std::ios::app) << "x";
  const std::string error = support::error_of([&] { Store().open(file); });
  EXPECT_NE(error.find("model.fp16.safetensors"), std::string::npos) << error;
  std::filesystem::remove_all(directory / "tiny");
  EXPECT_NE(support::error_of([&] { Store().open(file); }).find((directory / "tiny").string()),
            std::string::npos);
  std::filesystem::copy(tiny_gpt, directory / "other");
  Store asks;
  std::string untrusted_paths = support::bytes_of(file);
  untrusted_paths.replace(untrusted_paths.find("\"tiny\""), 6, "\"/nowhere\"");
  support::put_bytes(file, untrusted_paths);
  support::carry_out(asks, OpenPath{file});
  EXPECT_EQ(asks.view().forms.dialog, Dialog::question);

  const auto secret = directory / "secret";
  std::filesystem::create_directory(secret);
  support::put_bytes(secret / "config.json", "{\"password\": \"x1y2\"");
  untrusted_paths.replace(untrusted_paths.find("/nowhere"), 8, secret.string());
  support::put_bytes(file, untrusted_paths);
  support::carry_out(asks, OpenPath{.path = file, .untrusted_paths = core::UntrustedPaths::allowed});
  EXPECT_EQ(
      asks.message().text,
      file.string() + ": whole_model.model: the model \"" + secret.string() +
          "\" cannot be used as the session wants it; it does not lie beside the session, so nothing of "
          "what it holds is quoted: open it by itself to see why");
}

TEST_F(WholeModelStore, AnotherDocumentLeavesNothingOfIt) {
  ask(LoadPreset{"004-causal"});
  EXPECT_FALSE(whole());
  EXPECT_EQ(store.view().look.tab, Tab::stages);
}

TEST(WholeModelFiles, OfFamiliesThatAreNotKnownOpenAsTheirLayersAndSayWhy) {
  const support::TemporaryDirectory directory;
  for (const auto& entry : std::filesystem::directory_iterator(FIXTURES "/transformer/gpt2"))
    std::filesystem::copy(entry.path(), directory.path());
  std::string config = support::bytes_of(directory / "config.json");
  config.replace(config.find("\"model_type\": \"gpt2\""), 20, "\"model_type\": \"rwkv\"");
  support::put_bytes(directory / "config.json", config);
  Store store;
  support::carry_out(store, OpenPath{directory / "model.safetensors"});
  EXPECT_FALSE(store.pending().full_model);
  EXPECT_EQ(store.view().forms.dialog, Dialog::import_tensors);
  EXPECT_TRUE(store.message().text.starts_with("Not as a whole model: ")) << store.message().text;
}

TEST(WholeModelFiles, ThatCannotBeReadAreOneLine) {
  Store store;
  EXPECT_THROW(store.open(FIXTURES "/tiny_gpt", "a text"), core::Error);
  support::carry_out(store, OpenPath{.path = tiny_gpt, .layer = 9});
  EXPECT_EQ(store.message().text, tiny_gpt + ": expected a layer below 4, got 9");
  EXPECT_FALSE(store.pending().full_model);
}

}  // namespace
}  // namespace app
