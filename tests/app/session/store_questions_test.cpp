// Background work that ends while a dialog or question is open, or after the document was replaced.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <type_traits>

#include "app/session/store.hpp"
#include "core/editing/presets.hpp"
#include "tests/support/look.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::editing::MatrixName;
using core::editing::MatrixRef;
using core::editing::SetCell;
using testing::HasSubstr;

const std::string tiny_gpt = FIXTURES "/../../assets/examples/tiny_gpt";

/// Store in which background reading is pending until finish().
struct ReadMeanwhile : testing::Test {
  support::TemporaryDirectory directory;
  Store store;

  std::filesystem::path put(const char* name, const std::string& text) {
    support::put_bytes(directory / name, text);
    return directory / name;
  }
  void edit(double value = 9) {
    store.dispatch(ApplyEdit{SetCell{{MatrixName::embeddings, 0}, 1, 2, value}});
  }
  Command fill(MatrixName name = MatrixName::query_weight) {
    const bool is_weight = name == MatrixName::query_weight;
    return FillFromFile{MatrixRef{name, 0},
                        put("w.csv", is_weight ? "1,2,3,4\n5,6,7,8\n9,10,11,12\n" : "1,2,3\n4,5,6\n")};
  }
  void choose_first_layer() {
    core::importing::Choices choices;
    choices.layer = "0";
    store.dispatch(ImportTensors{choices});
  }
  Dialog dialog() const { return store.view().forms.dialog; }
  void finish() { support::finish_reading(store), store.update(); }
};

TEST_F(ReadMeanwhile, NumbersForADocumentAreNotPutIntoTheNext) {
  const core::editing::Preset& preset = core::editing::default_preset();  // of the same shapes
  for (const MatrixName name : {MatrixName::query_weight, MatrixName::embeddings}) {
    store.dispatch(fill(name));
    store.dispatch(LoadPreset{preset.name});
    finish();
    EXPECT_EQ(store.model(), preset.make());
    EXPECT_TRUE(store.message().is_error);
    EXPECT_THAT(store.message().text, HasSubstr("w.csv: what it was read for is no longer there"));
  }
  store.dispatch(OverrideStageFromFile{Stage::weights, put("a.csv", "1,0\n0,1\n")});
  store.dispatch(StartLesson{"000"});
  finish();
  EXPECT_FALSE(store.document().steps.can_redo);
  store.dispatch(Undo{});
  EXPECT_EQ(store.lesson(), nullptr) << "there was nothing else to undo";
}

TEST_F(ReadMeanwhile, NumbersForADocumentAreTakenWhenItIsBackFromALesson) {
  store.dispatch(fill());
  store.dispatch(StartLesson{"000"});
  store.dispatch(LeaveLesson{});
  finish();
  EXPECT_EQ((*store.model().projections->query.weight)(2, 3), 12);
}

TEST_F(ReadMeanwhile, AnotherLayerOfAFileDoesNotReplaceWhatWasChosenSince) {
  store.dispatch(OpenPath{.path = tiny_gpt + "/model.fp16.safetensors", .as_tensors = true});
  finish();
  ASSERT_EQ(dialog(), Dialog::import_tensors);
  choose_first_layer();
  finish();
  ASSERT_TRUE(store.document().of_tensors) << store.message().text;
  store.dispatch(ImportLayer{2});
  store.dispatch(LoadPreset{"004-causal"});
  finish();
  EXPECT_EQ(store.document().preset, "004-causal");
}

TEST_F(ReadMeanwhile, NumbersForALayerAreNotPutIntoAnother) {
  store.open(tiny_gpt, "egg jam fig");
  support::finish_working(store);
  // Long numbers, so that reading them ends only after the layer is displayed.
  const std::string zero = "0." + std::string(400, '0');
  std::string text;
  for (int row = 0; row < 128; ++row)
    for (int column = 0; column < 128; ++column) text += zero + (column < 127 ? "," : "\n");
  store.dispatch(FillFromFile{{MatrixName::query_weight, 0}, put("w.csv", text)});
  store.dispatch(ShowLayer{2});
  while (store.pending().full_model->layer != 2) store.update(), std::this_thread::yield();
  finish();
  EXPECT_FALSE(store.pending().full_model->experiment.layers.contains(2));
}

TEST_F(ReadMeanwhile, TensorsLeaveAQuestionOpen) {
  edit();
  store.dispatch(ShowDialog{Dialog::open_tensors});
  store.dispatch(CheckTensors{put("weights.csv",
                                  "1,0,0,0,0,0\n1,0,0,0,0,0\n1,0,0,0,0,0\n"
                                  "1,0,0,0,0,0\n1,0,0,0,0,0\n1,0,0,0,0,0\n")});
  store.dispatch(Quit{});
  ASSERT_EQ(dialog(), Dialog::unsaved_work);
  finish();
  EXPECT_EQ(dialog(), Dialog::unsaved_work);
  EXPECT_TRUE(store.references().empty());
  store.dispatch(CancelQuestion{});
  store.update();
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_EQ(store.references().size(), 1u) << store.message().text;
  EXPECT_FALSE(store.wants_to_quit());
}

TEST_F(ReadMeanwhile, AReferenceLeavesANameThatIsBeingTyped) {
  store.dispatch(SaveFileAs{directory / "a.json"});
  finish();
  store.dispatch(LoadReference{directory / "a.json"});
  store.dispatch(ShowDialog{Dialog::save_as});
  finish();
  EXPECT_EQ(dialog(), Dialog::save_as);
  EXPECT_EQ(store.references().size(), 1u);
}

TEST_F(ReadMeanwhile, AFileIsOpenedAfterTheAnswerToAQuestion) {
  store.dispatch(SaveFileAs{directory / "a.json"});
  finish();
  edit();
  store.dispatch(OpenPath{directory / "a.json"});
  store.dispatch(LoadPreset{"004-causal"});
  finish();
  ASSERT_EQ(dialog(), Dialog::unsaved_work);
  EXPECT_NE(store.document().preset, "004-causal");
  store.dispatch(DiscardAndContinue{});
  EXPECT_EQ(store.document().preset, "004-causal");
  store.update();
  EXPECT_EQ(store.document().title, "a.json");
}

TEST_F(ReadMeanwhile, AQuestionThatIsNoLongerOpenHasNoAnswer) {
  edit();
  store.dispatch(Quit{});
  support::look(store, [](View& v) { v.forms.dialog = Dialog::none; });
  store.dispatch(SaveFileAs{directory / "a.json"});
  finish();
  EXPECT_FALSE(store.wants_to_quit());
  edit(10);
  store.dispatch(LoadPreset{"004-causal"});
  ASSERT_EQ(dialog(), Dialog::unsaved_work);
  store.dispatch(ShowDialog{Dialog::keys});
  store.dispatch(DiscardAndContinue{});
  EXPECT_NE(store.document().preset, "004-causal");
}

/// Saving a session lasts until its pipe is read.
TEST_F(ReadMeanwhile, AQuestionIsNotAnsweredByTheEndOfASave) {
  std::filesystem::create_directory(directory / "in");
  put("x.csv", "1,2\n3,4\n");
  put("in/s.json", R"({"attnscope": 1, "embeddings": {"file": "../x.csv"}})");
  const std::filesystem::path pipe = directory / "pipe.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  edit();
  store.dispatch(SaveFileAs{pipe});
  store.dispatch(LoadPreset{"004-causal"});
  store.dispatch(OpenPath{directory / "in/s.json"});
  while (store.is_reading()) store.update(), std::this_thread::yield();
  std::ifstream reader(pipe);
  const std::string saved{std::istreambuf_iterator<char>(reader), {}};
  finish();
  EXPECT_THAT(saved, HasSubstr("\"attnscope\": 1"));
  EXPECT_NE(store.document().title, "s.json");
  EXPECT_EQ(dialog(), Dialog::question);
  store.dispatch(ConfirmQuestion{});
  finish();
  EXPECT_EQ(store.document().title, "s.json");
}

TEST_F(ReadMeanwhile, WhatIsNotWantedIsLetGoOf) {
  store.dispatch(OpenPath{.path = tiny_gpt + "/model.fp16.safetensors", .as_tensors = true});
  finish();
  ASSERT_EQ(dialog(), Dialog::import_tensors);
  store.dispatch(ShowDialog{Dialog::none});
  EXPECT_EQ(store.opening().tensors, nullptr);

  store.dispatch(LoadPreset{"004-causal"});
  edit();
  store.dispatch(OpenPath{.path = tiny_gpt + "/model.fp16.safetensors", .as_tensors = true});
  finish();
  ASSERT_EQ(dialog(), Dialog::import_tensors);
  const std::weak_ptr<const core::formats::TensorFile> file = store.opening().tensors->file;
  choose_first_layer();
  finish();
  ASSERT_EQ(dialog(), Dialog::unsaved_work);
  store.dispatch(CancelQuestion{});
  // The file is closed in the background, after a frame.
  for (int k = 0; k < 10'000 && !file.expired(); ++k) {
    store.update();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(file.expired());
}

TEST_F(ReadMeanwhile, TheNamesOfAFolderStayNoLongerThanItsDialog) {
  static_assert(!std::is_base_of_v<View, decltype(std::declval<const Store&>().shown_view())>,
                "what is copied in every frame has no forms");
  put("a.json", "{}");
  store.dispatch(ShowDialog{Dialog::open});
  store.dispatch(BrowseTo{directory.path()});
  store.update();
  finish();
  ASSERT_EQ(store.view().forms.browser.entries.size(), 1u);
  store.dispatch(ShowDialog{Dialog::none});
  EXPECT_TRUE(store.view().forms.browser.entries.empty());
}

}  // namespace
}  // namespace app
