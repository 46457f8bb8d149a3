// Tensor files, from dropping them to the model made of them.
#include <gmock/gmock.h>

#include <cmath>

#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using namespace app;
using gui::Program;
using testing::HasSubstr;

const std::string fixtures = FIXTURES;
const std::string tiny = fixtures + "/tiny_gpt/attention.safetensors";

std::string safetensors(const std::string& header, const std::string& numbers) {
  return std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + numbers;
}

/// Program that opens files.
struct FileOpened : testing::Test {
  support::TemporaryDirectory directory;
  Program program;

  void open(const std::filesystem::path& path) {
    program.store.dispatch(OpenPath{path});
    program.run(3);
  }
  std::filesystem::path put(const char* name, const std::string& bytes) {
    support::put_bytes(directory / name, bytes);
    return directory / name;
  }
  void confirm() {
    program.click("dialog/confirm");
    program.run(3);
  }
  /// Chooses a line of a list.
  void choose(const std::string& list, const std::string& line) {
    program.click(list);
    program.click(list + "/" + line);
  }
  Dialog dialog() const { return program.store.view().forms.dialog; }
  const std::string& said() const { return program.store.message().text; }
  const core::attention::Model& model() const { return program.store.model(); }
};
using ImportDialog = FileOpened;
using OpenedFile = FileOpened;
using OpenDialog = FileOpened;
using OpenedCheckpoint = FileOpened;
using OpenedDump = FileOpened;
using OpenedFiles = FileOpened;
using OpenedWeights = FileOpened;

TEST_F(ImportDialog, OpensTheLayerThatIsChosenWithItsEmbeddings) {
  open(tiny);
  ASSERT_EQ(dialog(), Dialog::import_tensors) << said();
  choose("import/layer", "2");
  EXPECT_EQ(program.store.view().forms.import.layer, 2u);
  program.store.dispatch(OpenPath{fixtures + "/tiny_gpt/golden.npz"});  // dropped on the dialog
  support::look(program.store, [](View& v) { v.forms.import.choices.embeddings_tensor = "L2.ln_1"; });
  program.run();
  program.click("dialog/confirm");
  EXPECT_EQ(dialog(), Dialog::none) << said();
  const auto golden = core::formats::open_tensors(fixtures + "/tiny_gpt/golden.npz");
  const arma::mat weights = core::formats::matrix(golden.read("L2.attn"), std::vector<std::size_t>{3});
  program.run();
  EXPECT_EQ(model().n_heads, 4u);
  const arma::mat computed = core::attention::attend(model()).at(core::attention::Stage::weights, 3);
  EXPECT_LT(arma::abs(computed - weights).max(), 1e-6);
  EXPECT_FALSE(program.store.document().modified);
  EXPECT_EQ(program.store.document().recent.front().filename(), "attention.safetensors");
}

TEST_F(ImportDialog, TakesWhatIsSaidOfAttention) {
  open(tiny);
  choose("import/causal", "1");
  for (const auto& [field, number] : {std::pair{"scale", "0.5"}, {"rope", "500000"}, {"window", "3"}}) {
    program.click(std::string("import/") + field);
    program.type(number);
  }
  program.click("import/kv_heads");  // a click elsewhere submits the number
  confirm();
  EXPECT_TRUE(model().mask.causal);
  EXPECT_EQ(model().scale.factor, 0.5);
  EXPECT_EQ(model().mask.window.left, 2u);
  ASSERT_TRUE(model().additions.positions.rotary);
  EXPECT_EQ(model().additions.positions.rotary->base, 500000);
}

TEST_F(ImportDialog, AsksWhetherAFirstLineOfNumbersNamesTheColumns) {
  const auto path = put("x.csv", "0,1,2\n0.5,0.25,3\n1,2,4\n");
  open(path);
  ASSERT_EQ(dialog(), Dialog::import_tensors);
  EXPECT_THAT(said(), HasSubstr("say whether it names the columns"));
  confirm();
  EXPECT_EQ(model().n_tokens(), 2u) << "as pandas writes them";
  open(path);
  choose("import/first_line", "1");
  confirm();
  EXPECT_EQ(model().n_tokens(), 3u);
  open(put("x.csv", "0.5,0.25,3\n1,2,4\n"));
  EXPECT_EQ(dialog(), Dialog::none) << "there is nothing to be asked";
}

TEST_F(ImportDialog, AsksWhetherAFirstColumnOfNumbersNamesTheRows) {
  const auto path = put("x.csv", "0,0.5,0.25\n1,1,2\n2,3,4\n");
  open(path);
  ASSERT_EQ(dialog(), Dialog::import_tensors);
  EXPECT_THAT(said(), HasSubstr("say whether it names the rows"));
  confirm();
  EXPECT_EQ(model().d_model(), 2u);
  open(path);
  choose("import/first_column", "1");
  confirm();
  EXPECT_EQ(model().d_model(), 3u);
}

TEST_F(ImportDialog, SaysWhatAChoiceAssumesAndLeavesOut) {
  open(fixtures + "/checkpoints/families/bart/model.safetensors");
  ASSERT_EQ(dialog(), Dialog::import_tensors) << said();
  const auto& expected = program.store.opening().tensors->expected;
  ASSERT_EQ(expected.size(), 3u);  // sorted by name, cross-attention last
  EXPECT_EQ(expected[0].n_heads, 4u);
  EXPECT_EQ(
      caveats_text(expected[2].import_report),
      "assumed: keys and values of the same tokens as the queries (the model takes them of another sequence)");
  EXPECT_FALSE(program.has("import/reservations"));
  support::look(program.store, [](View& view) { view.forms.import.layer = 2; });
  program.run(3);
  EXPECT_TRUE(program.has("import/reservations"));
}

TEST_F(OpenedCheckpoint, SaysInABannerWhatIsLeftOutAsLongAsItIsOpen) {
  open(fixtures + "/checkpoints/families/deberta_v2/model.safetensors");
  ASSERT_EQ(dialog(), Dialog::none) << said();
  EXPECT_TRUE(program.has("banner/left_out"));
  EXPECT_TRUE(program.has("banner/reservations"));
  ASSERT_EQ(program.store.document().import_report.not_supported.size(), 1u);
  EXPECT_EQ(program.store.document().import_report.not_supported[0].words, "relative position biases");
  program.edit(core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 0, 0, 7});
  program.store.dispatch(ShowMessage{""});
  program.run();
  EXPECT_TRUE(program.has("banner/left_out")) << "edits do not take it away";
  support::look(program.store, [](View& v) { v.look.tab = Tab::heads; });
  program.run();
  EXPECT_TRUE(program.has("banner/left_out")) << "nor another view";
  program.store.dispatch(SaveFileAs{directory / "s.json"});
  program.run(3);
  program.store.dispatch(LoadPreset{"multi-head"});
  open(directory / "s.json");
  EXPECT_TRUE(program.has("banner/left_out")) << "the session has it too";
  program.store.dispatch(LoadPreset{"multi-head"});
  program.run();
  EXPECT_FALSE(program.has("banner/left_out"));
  EXPECT_FALSE(program.has("banner/reservations"));
}

TEST_F(OpenedDump, NamesWhatIsNotUsedInTheBanner) {
  support::put_bytes(directory / "weights.head0.csv", "1,0\n0.5,0.5\n");
  support::put_bytes(directory / "attn_mask.csv", "1,0\n1,1\n");
  open(directory.path());
  if (dialog() == Dialog::import_tensors) program.click("dialog/confirm");
  program.run(3);
  ASSERT_EQ(dialog(), Dialog::none) << said();
  EXPECT_EQ(caveats_text(program.store.document().import_report), "not used: attn_mask [2, 2]");
  EXPECT_TRUE(program.has("banner/reservations"));
  EXPECT_FALSE(program.has("banner/left_out"));
}

TEST_F(OpenedFile, ThatIsQuantizedOrHasMoreThanTensorsIsRefusedInWords) {
  const std::string header =
      R"({"h.0.attn.qweight":{"dtype":"I32","shape":[1,1],"data_offsets":[0,4]},"h.0.attn.scales":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]}})";
  const auto before = model();
  for (const auto& [path, words] :
       {std::pair(put("m.safetensors", safetensors(header, std::string(8, '\0'))), "quantised by GPTQ"),
        {fixtures + "/formats/pytorch/refused/module.pt", "save model.state_dict()"}}) {
    open(path);
    EXPECT_TRUE(program.store.message().is_error);
    EXPECT_THAT(said(), HasSubstr(words));
    EXPECT_EQ(model(), before);
  }
}

TEST_F(ImportDialog, ShowsTheRangeOfATensorThatIsClicked) {
  open(tiny);
  program.click("import/tensor/0");
  program.run();
  const Opening opening = program.store.opening();
  const std::string name = opening.tensors->file->tensors()[0].name;
  ASSERT_TRUE(opening.tensors->ranges.contains(name));
  const arma::mat numbers = core::formats::matrix(opening.tensors->file->read(name));
  EXPECT_EQ(opening.tensors->ranges.at(name).least, numbers.min());
  EXPECT_EQ(opening.tensors->ranges.at(name).greatest, numbers.max());
}

TEST_F(ImportDialog, NamesWhatIsMissingAndKeepsTheModel) {
  const auto before = model();
  program.store.open(fixtures + "/checkpoints/llama.safetensors");  // as the window does at its start
  program.run();
  ASSERT_EQ(dialog(), Dialog::import_tensors) << said();
  EXPECT_THAT(said(), HasSubstr("the number of heads must be said"));
  support::look(program.store, [](View& v) { v.forms.import.choices.n_heads = 3; });
  program.run();
  program.click("dialog/confirm");
  EXPECT_THAT(said(), HasSubstr("that 3 heads share"));
  EXPECT_EQ(model(), before);
  EXPECT_EQ(dialog(), Dialog::import_tensors);
}

TEST_F(ImportDialog, TakesProjectionsThatAreNamedByHand) {
  const std::string header =
      R"({"wa":{"dtype":"U8","shape":[2,4],"data_offsets":[0,8]},"wb":{"dtype":"U8","shape":[4,2],"data_offsets":[8,16]}})";
  std::string numbers;
  for (char k = 0; k < 16; ++k) numbers += k;
  open(put("m.safetensors", safetensors(header, numbers)));
  ASSERT_EQ(dialog(), Dialog::import_tensors) << said();
  ASSERT_EQ(program.store.view().forms.import.as, ImportAs::by_hand);
  for (const char* row : {"query", "key", "value"}) {
    const std::string name = std::string("import/") + row + "/weight";
    program.click(name);
    program.click(name + "/" + (row[0] == 'v' ? "2" : "1"));
  }
  program.click("import/value/turned");
  program.click("dialog/confirm");
  program.run();
  ASSERT_EQ(dialog(), Dialog::none) << said();
  const auto& p = *model().projections;
  EXPECT_TRUE(arma::approx_equal(*p.query.weight, arma::mat{{0, 1, 2, 3}, {4, 5, 6, 7}}, "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(*p.value.weight, arma::mat{{8, 10, 12, 14}, {9, 11, 13, 15}}, "absdiff", 0));
}

TEST_F(OpenedFiles, WithoutAChoiceBecomeTheModelAtOnce) {
  open(put("x.csv", ",a,b\nThe,1,2\ndog,3,4\n"));
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_EQ(model().sequences[0].tokens[1], "dog");
  EXPECT_THAT(said(), HasSubstr("queries, keys and values are the embeddings"));
}

TEST_F(OpenedFiles, AskAboutUnsavedWorkFirst) {
  support::put_bytes(directory / "x.csv", "1,2\n3,4\n");
  program.edit(core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 0, 0, 7});
  open(directory / "x.csv");
  ASSERT_EQ(dialog(), Dialog::unsaved_work);
  program.click("dialog/discard");
  EXPECT_EQ(model().n_tokens(), 2u);
}

TEST_F(OpenedFiles, ThatAreDamagedLeaveTheModel) {
  const auto before = model();
  for (const auto& entry : std::filesystem::directory_iterator(fixtures + "/formats/damaged")) {
    if (entry.path().filename() == "large_integer.npy") continue;  // invalid only as embeddings
    open(entry.path());
    if (const auto opening = program.store.opening(); opening.tensors)  // damaged only in its numbers
      program.store.dispatch(MeasureTensor{opening.tensors->file->tensors().front().name});
    program.run(3);
    EXPECT_EQ(model(), before) << entry.path();
    EXPECT_TRUE(program.store.message().is_error) << entry.path();
    program.store.dispatch(ShowDialog{Dialog::none});
    program.store.dispatch(ShowMessage{""});
  }
}

/// Returns a .npy file of [layers, 2 heads, 2, 2]: all weights are 1/2, but the first of layer k is 1/2^k.
std::string npy_of_layers(int n_layers) {
  std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(n_layers) + ", 2, 2, 2), }";
  header.resize(128 - 10, ' ');
  header.back() = '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header;
  for (int k = 0; k < n_layers; ++k)
    for (int n = 0; n < 8; ++n) {
      const double number = n == 0 ? std::ldexp(1, -k) : n == 1 ? 1 - std::ldexp(1, -k) : 0.5;
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
  return bytes;
}

double first_weight(const Program& program) {
  return program.store.live().trace().at(core::attention::Stage::weights, 0)(0, 0);
}

TEST_F(OpenedWeights, AreShownAtOnceAndAnotherLayerIsAClickAway) {
  open(put("w.npy", npy_of_layers(3)));
  ASSERT_EQ(dialog(), Dialog::none) << said();
  EXPECT_THAT(said(), HasSubstr("layer 0 of 3"));
  EXPECT_EQ(first_weight(program), 1);
  choose("model/layer", "2");
  program.run(3);
  EXPECT_EQ(first_weight(program), 0.25);
  EXPECT_EQ(program.store.document().layer, 2u);
  EXPECT_FALSE(program.store.document().modified);
}

TEST_F(OpenedWeights, CanBeChosenFromOnceMore) {
  open(put("w.npy", npy_of_layers(3)));
  program.click("menu/File");
  program.click("menu/file/choose");
  program.run();
  ASSERT_EQ(dialog(), Dialog::import_tensors);
  program.click("import/batch");
  confirm();
  EXPECT_EQ(model().sequences.size(), 3u);
  EXPECT_FALSE(program.has("model/layer"));
}

TEST_F(ImportDialog, GivesTheStagesThatAreNamed) {
  open(fixtures + "/tiny_gpt/golden.npz");
  ASSERT_EQ(program.store.view().forms.import.as, ImportAs::stages) << said();
  choose("import/stage_layer", "2");
  confirm();
  ASSERT_EQ(dialog(), Dialog::none) << said();
  const auto golden = core::formats::open_tensors(fixtures + "/tiny_gpt/golden.npz");
  const arma::mat weights = core::formats::matrix(golden.read("L2.attn"), std::vector<std::size_t>{3});
  EXPECT_EQ(
      arma::abs(arma::mat(program.store.live().trace().at(core::attention::Stage::weights, 3)) - weights)
          .max(),
      0);
}

TEST_F(OpenDialog, SaysWhatIsInTheFileThatIsChosen) {
  support::put_bytes(directory / "x.csv", "1,-2\n3,4\n");
  program.store.dispatch(ShowDialog{Dialog::open});
  program.store.dispatch(BrowseTo{directory.path()});
  program.run();
  program.click("browser/entry/x.csv");
  program.run(3);
  EXPECT_EQ(program.store.opening().preview, "table of 1 tensor: x float64 [2, 2], -2 … 4");
}

TEST_F(OpenDialog, ReadsDecimalCommasIfItsBoxIsTicked) {
  support::put_bytes(directory / "x.csv", "0,5;-2\n3;4\n");
  program.store.dispatch(ShowDialog{Dialog::open});
  program.store.dispatch(BrowseTo{directory.path()});
  program.run();
  program.click("browser/entry/x.csv");
  program.run(3);
  EXPECT_THAT(program.store.opening().preview,
              HasSubstr("for decimal commas give --decimal-comma, or choose them in the dialog"));
  program.click("browser/decimal_comma");
  program.run(3);
  EXPECT_EQ(program.store.opening().preview, "table of 1 tensor: x float64 [2, 2], -2 … 4");
  confirm();
  EXPECT_EQ(model().sequences.front().embeddings->at(0, 0), 0.5);
  program.store.dispatch(ShowDialog{Dialog::open});
  EXPECT_FALSE(program.store.view().forms.browser.decimal_comma) << "for this file alone";
}

TEST_F(OpenedFile, OfPytorchSaysBeforeAndAfterWhatIsLeftOut) {
  const auto path = directory / "run.pt";
  std::filesystem::copy_file(fixtures + "/formats/pytorch/nested.pt", path);
  program.store.dispatch(PreviewFile{path});
  program.run();
  EXPECT_THAT(program.store.opening().preview, testing::StartsWith("pytorch of 16 tensors"));
  EXPECT_THAT(program.store.opening().preview,
              HasSubstr("Left out as no tensors: optimizer.param_groups.0.lr"));
}

}  // namespace
