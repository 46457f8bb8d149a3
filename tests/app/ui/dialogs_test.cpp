// Dialogs: opening, saving, exporting, filling, initializing from a seed, sentences, questions.
#include <gmock/gmock.h>

#include <fstream>

#include "app/session/exporting.hpp"
#include "app/session/opening.hpp"
#include "core/base/random.hpp"
#include "core/editing/presets.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using app::Dialog;
using app::Key;
using gui::Panels;
namespace fs = std::filesystem;

struct Dialogs : testing::Test {
  support::TemporaryDirectory directory;
  Panels ui{gui::draw_side_panels};

  void SetUp() override {
    fs::create_directories(directory.path() / "inner");
    std::ofstream(directory.path() / "one.json") << "{}";
    std::ofstream(directory.path() / "table.csv") << "1,2\n";
    std::ofstream(directory.path() / "picture.png") << "no numbers";
  }
  void show(Dialog dialog) {
    ui.look([&](auto& v) { v.forms.browser.name.clear(), v.forms.dialog = dialog; });
    ui.store.dispatch(app::BrowseTo{directory.path()});
    ui.run(4);
  }
  void type_name(const std::string& name) {
    ui.click("browser/name");
    ui.type(name);
  }
};

TEST_F(Dialogs, OpenListsWhatCanBeOpenedAndDirectoriesOnly) {
  show(Dialog::open);
  EXPECT_TRUE(ui.has("browser/entry/inner"));
  EXPECT_TRUE(ui.has("browser/entry/one.json"));
  EXPECT_TRUE(ui.has("browser/entry/table.csv"));
  EXPECT_FALSE(ui.has("browser/entry/picture.png"));
}

TEST_F(Dialogs, OpenTakesAChosenNameWithItsButtonAndADoubleClickedFile) {
  show(Dialog::open);
  ui.click("dialog/confirm");
  EXPECT_TRUE(ui.asked<app::OpenPath>().empty()) << "nothing is chosen yet";
  ui.click("browser/entry/one.json");
  ui.click("dialog/confirm");
  show(Dialog::open);
  ui.double_click("browser/entry/one.json");
  ASSERT_GE(ui.asked<app::OpenPath>().size(), 2u);
  for (const auto& asked : ui.asked<app::OpenPath>()) EXPECT_EQ(asked.path, directory.path() / "one.json");
}

TEST_F(Dialogs, WalkThroughDirectories) {
  show(Dialog::open);
  ui.double_click("browser/entry/inner");
  EXPECT_EQ(ui.view().forms.browser.directory, directory.path() / "inner");
  ui.click("browser/parent");
  EXPECT_EQ(ui.view().forms.browser.directory, directory.path());
}

TEST_F(Dialogs, GoOnTypingInAFolderWhoseNameWasTyped) {
  show(Dialog::open);
  type_name("inner");
  ui.key(Key::enter);
  ui.run(3);
  ASSERT_EQ(ui.view().forms.browser.directory, directory.path() / "inner");
  EXPECT_TRUE(ImGui::GetIO().WantTextInput);
  ui.type("n");
  EXPECT_EQ(ui.view().forms.typed->text, "n");
}

TEST_F(Dialogs, SaveAsTakesATypedNameWithEnter) {
  show(Dialog::save_as);
  type_name("new");
  ui.key(Key::enter);
  ASSERT_EQ(ui.asked<app::SaveFileAs>().size(), 1u);
  EXPECT_EQ(ui.asked<app::SaveFileAs>()[0].path, directory.path() / "new.json");
}

TEST_F(Dialogs, SaveAsAsksBeforeItReplacesAFile) {
  show(Dialog::save_as);
  type_name("one");
  ui.key(Key::enter);
  EXPECT_TRUE(ui.asked<app::SaveFileAs>().empty());
  ASSERT_TRUE(ui.has("dialog/replace"));
  ui.click("dialog/keep");
  EXPECT_FALSE(ui.has("dialog/replace"));
  ui.click("dialog/confirm");
  ui.click("dialog/replace");
  ASSERT_EQ(ui.asked<app::SaveFileAs>().size(), 1u);
  EXPECT_EQ(ui.asked<app::SaveFileAs>()[0].path, directory.path() / "one.json");
}

TEST_F(Dialogs, ExportProposesANameOfDocumentStageHeadAndForm) {
  using enum app::ExportScope;
  using enum app::ExportFormat;
  app::ExportAs e;
  e.document = "004-causal", e.matrix = {core::attention::Stage::scores, 1, 0, 0};
  for (const auto& [form, what, name] :
       {std::tuple{csv, matrix, "004-causal.scores.head1.csv"},
        {csv, everything, "004-causal"},         // a folder of files
        {npz, matrix, "004-causal.scores.npz"},  // an archive holds whole stages
        {pdf, stage, "004-causal.scores.pdf"},
        {png, everything, "004-causal.png"},
        {session, matrix, "004-causal.json"},
        {program, matrix, "004-causal.py"}}) {
    e.form = form, e.what = what;
    EXPECT_EQ(app::proposed_name(e), name);
  }
  EXPECT_EQ(app::stem_of("my model: a/b *.safetensors"), "b");
  EXPECT_EQ(app::stem_of("Your journey, two heads"), "Your-journey-two-heads");
  EXPECT_EQ(app::stem_of("…"), "…");
  EXPECT_EQ(app::stem_of("??"), "attention");
}

TEST_F(Dialogs, ExportNeverWritesOneFormIntoAFileOfAnother) {
  app::ExportAs e;
  const auto planned = [&](app::ExportFormat form, const char* name) {
    e.form = form, e.path = directory.path() / name, e.document = "d";
    return app::output_paths(ui.model(), e).front().filename().string();
  };
  EXPECT_EQ(planned(app::ExportFormat::csv, "mine.json"), "mine.csv");
  EXPECT_EQ(planned(app::ExportFormat::png, "mine.svg"), "mine.png");
  EXPECT_EQ(planned(app::ExportFormat::png, "mine"), "mine.png");
  EXPECT_EQ(planned(app::ExportFormat::csv, "mine.txt"), "mine.txt") << "a wish of one's own";
  EXPECT_EQ(planned(app::ExportFormat::csv, "inner"), "d.weights.head0.csv") << "a folder that is there";
}

TEST_F(Dialogs, ExportWritesWhereItsDialogSays) {
  ui.look([&](auto& v) {
    v.look.head = 1;
    v.selection.pinned = app::CellRef{core::attention::Stage::scores, 1, 0, 0};
  });
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  const auto asked = ui.asked<app::ExportAs>();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].what, app::ExportScope::matrix);
  EXPECT_EQ(asked[0].matrix, *ui.view().selection.pinned);
  const auto files = app::output_paths(ui.model(), asked[0]);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(files[0].filename().string().ends_with(".scores.head1.csv")) << files[0];
  EXPECT_TRUE(fs::exists(files[0]));
  show(Dialog::export_files);
  ui.click("dialog/what/2");
  ui.click("dialog/confirm");
  ASSERT_EQ(ui.asked<app::ExportAs>().size(), 2u);
  EXPECT_TRUE(fs::exists(ui.asked<app::ExportAs>()[1].path / "weights.head1.csv"))
      << "in a folder of its own";
}

TEST_F(Dialogs, ExportAsksBeforeItWritesOverAFileAndASecondPressKeepsIt) {
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  ASSERT_EQ(ui.asked<app::ExportAs>().size(), 1u);
  show(Dialog::export_files);
  const ImVec2 place = ui.center("dialog/confirm");
  ui.click("dialog/confirm");
  ASSERT_TRUE(ui.has("dialog/replace"));
  const auto keep = ui.rect("dialog/keep");
  EXPECT_TRUE(place.x >= keep.min.x && place.x <= keep.max.x) << "Keep stands where Export stood";
  ui.click("dialog/keep");
  EXPECT_FALSE(ui.has("dialog/replace"));
  ui.click("dialog/confirm");
  ui.click("dialog/replace");
  EXPECT_EQ(ui.asked<app::ExportAs>().size(), 2u);
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  ui.click("dialog/form/1");
  EXPECT_FALSE(ui.has("dialog/replace")) << "another file";
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.asked<app::ExportAs>().back().form, app::ExportFormat::npy);
}

TEST_F(Dialogs, ExportOffersWhatEachFormCanHold) {
  show(Dialog::export_files);
  ui.click("dialog/form/2");  // npz: no single matrix
  EXPECT_TRUE(ui.has("dialog/what/1"));
  EXPECT_FALSE(ui.has("dialog/what/2"));
  ui.click("dialog/form/4");  // PNG
  EXPECT_TRUE(ui.has("dialog/scale/3"));
  ui.click("dialog/scale/3");
  EXPECT_EQ(ui.view().settings.export_scale, 4);
  ui.click("dialog/form/7");  // a program is always of the whole model
  EXPECT_FALSE(ui.has("dialog/what/0"));
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.asked<app::ExportAs>().back().form, app::ExportFormat::program);
}

TEST_F(Dialogs, AskAboutUnsavedWork) {
  show(Dialog::unsaved_work);
  ui.click("dialog/discard");
  EXPECT_EQ(ui.asked<app::DiscardAndContinue>().size(), 1u);
  show(Dialog::unsaved_work);
  ui.click("dialog/cancel");
  EXPECT_EQ(ui.asked<app::CancelQuestion>().size(), 1u);
  show(Dialog::unsaved_work);
  ui.key(Key::enter);
  EXPECT_EQ(ui.asked<app::SaveAndContinue>().size(), 1u);
  show(Dialog::unsaved_work);
  ui.key(Key::escape);
  EXPECT_EQ(ui.asked<app::CancelQuestion>().size(), 2u);
}

TEST_F(Dialogs, OfferWhatWasLeftAndSayWhatIsWrongWithIt) {
  const auto leave = [](app::View& v, const std::any&) {
    v.forms.leftovers = {"a.json, 14 edits, from 10:32 to 10:46", "b.json, 1 edit, at 9:00"};
  };
  ui.store.dispatch(app::SetField{leave, {}});
  show(Dialog::recovery);
  EXPECT_FALSE(ui.has("dialog/problem"));
  ui.click("dialog/look1");
  ASSERT_EQ(ui.asked<app::RestoreLeftover>().size(), 1u);
  EXPECT_EQ(ui.asked<app::RestoreLeftover>()[0].index, 1u);
  ui.click("dialog/drop0");
  ASSERT_EQ(ui.asked<app::DiscardLeftover>().size(), 1u);
  EXPECT_FALSE(ui.asked<app::DiscardLeftover>()[0].is_agreed);
  ui.key(Key::s, {.ctrl = true});
  EXPECT_TRUE(ui.asked<app::SaveFile>().empty());
  ui.key(Key::q, {.ctrl = true});
  EXPECT_EQ(ui.asked<app::Quit>().size(), 1u) << "the next window offers it again";
}

TEST_F(Dialogs, DoWithEnterWhatTheKeyboardStandsOn) {
  show(Dialog::unsaved_work);
  ui.key(Key::right);  // shows the keyboard focus
  ui.key(Key::left);
  ui.key(Key::enter);
  EXPECT_EQ(ui.asked<app::SaveAndContinue>().size(), 0u);
  EXPECT_EQ(ui.asked<app::DiscardAndContinue>().size() + ui.asked<app::CancelQuestion>().size(), 1u);
}

TEST_F(Dialogs, CloseWithEscapeAndLeaveTheWindowUsable) {
  show(Dialog::about);
  ui.key(Key::escape);
  EXPECT_EQ(ui.view().forms.dialog, Dialog::none);
  ui.run(3);
  ui.click("model/causal");
  EXPECT_FALSE(ui.model().mask.causal);
}

using namespace core::editing;
using testing::HasSubstr;

struct DrawDialogs : testing::Test {
  Panels ui{gui::draw_side_panels};

  const arma::mat& x() const { return ui.model().sequences[0].embeddings; }
};

struct FillDialog : DrawDialogs {
  void open() {
    ui.click("edit/fill");
    ui.click("edit/fill/dialog");
    ui.run(3);
  }
};

TEST_F(FillDialog, FillsAfterWhatWasDrawnBeforeInOneEdit) {
  open();
  ASSERT_EQ(ui.view().forms.dialog, Dialog::fill);
  ui.click("fill/rule/3");
  ui.fill_in("fill/seed", "7");
  ui.fill_in("fill/before", "randn(2,4) Linear(3,2,bias)");
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.view().forms.dialog, Dialog::none);
  ASSERT_EQ(ui.edits<SetBlock>().size(), 1u);
  core::random::Generator generator(7);
  generator.normal(8), generator.linear_weight(3, 2), generator.linear_bias(3, 2);
  const std::vector<float> numbers = generator.rand(18);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(x()(i / 3, i % 3), static_cast<double>(numbers[i]));
}

TEST_F(FillDialog, RefusesWhatIsNoOpUntilItIsMended) {
  open();
  ui.fill_in("fill/before", "rand(6,3) randm(2)");
  EXPECT_THAT(ui.view().forms.fill.before.error, HasSubstr("unknown op \"randm\""));
  ASSERT_TRUE(ui.has("fill/before/error"));
  ui.click("dialog/confirm");
  ui.key(Key::enter);
  EXPECT_EQ(ui.view().forms.dialog, Dialog::fill);
  EXPECT_TRUE(ui.edits<SetBlock>().empty());
  ui.click("fill/rule/1");
  ui.click("dialog/confirm");
  EXPECT_EQ(arma::accu(x()), 18) << "ones need no draws";
  open();
  ui.click("fill/rule/4");
  ui.fill_in("fill/before", "rand(6,3)");
  EXPECT_FALSE(ui.has("fill/before/error"));
  ui.forget();
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.edits<SetBlock>().size(), 1u);
}

TEST_F(DrawDialogs, GiveThePresetBackInOneEdit) {
  const auto preset = ui.model();
  ui.change([&](auto& m) { m.projections->query.weight.edit().zeros(); });
  ui.change([&](auto& m) { m.projections->output->bias->edit().ones(); });
  ui.click("menu/Model");
  ui.click("menu/edit/draw_model");
  ui.run(3);
  ui.key(Key::enter);
  EXPECT_EQ(ui.edits<ReplaceModel>().size(), 1u);
  EXPECT_EQ(ui.view().forms.dialog, Dialog::none);
  EXPECT_TRUE(ui.model() == preset);
}

TEST_F(DrawDialogs, DrawAsTheirFieldsSay) {
  const auto before = ui.model();
  ui.click("model/draw");
  ui.run(3);
  ui.fill_in("draw/seed", "1337");
  ui.fill_in("draw/before", "rand(5)");
  ui.click("draw/embeddings/2");
  ui.click("draw/order/1");
  ui.click("draw/bias");
  ui.click("draw/output/0");
  ui.click("dialog/confirm");
  const ModelInit expected{1337,
                           core::random::parse_random_ops("rand(5)"),
                           EmbeddingsInit::randn_first,
                           LayerOrder::key_query_value,
                           true,
                           OutputLayer::none};
  EXPECT_TRUE(ui.model() == initialized_model(before, expected));
}

TEST_F(DrawDialogs, RefuseWhatIsNoOp) {
  ui.click("model/draw");
  ui.run(3);
  ui.fill_in("draw/before", "rand(0)");
  ASSERT_TRUE(ui.has("draw/before/error"));
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.view().forms.dialog, Dialog::draw_model);
  EXPECT_TRUE(ui.edits<ReplaceModel>().empty());
}

TEST_F(DrawDialogs, StayWithinASmallWindow) {
  ImGui::GetIO().DisplaySize = {1280, 800};
  for (const Dialog dialog : {Dialog::fill, Dialog::draw_model}) {
    ui.look([&](auto& v) { v.forms.dialog = dialog; });
    ui.run(4);
    for (const auto& [name, rect] : ui.landmarks().all())
      if (name.starts_with("fill/") || name.starts_with("draw/") || name.starts_with("dialog/")) {
        EXPECT_GE(rect.min.x, 0) << name;
        EXPECT_GE(rect.min.y, 0) << name;
        EXPECT_LE(rect.max.x, 1280) << name;
        EXPECT_LE(rect.max.y, 800) << name;
      }
    EXPECT_TRUE(ui.has("dialog/confirm"));
  }
}

using gui::Program;

struct SentenceDialog : testing::Test {
  Program p;
  void SetUp() override {
    p.click("menu/Edit");
    p.click("menu/edit/sentence");
    ASSERT_EQ(p.store.view().forms.dialog, Dialog::sentence);
    p.run(3);
  }
};

TEST_F(SentenceDialog, PutsTheTypedWordsInAsOneStepOfUndo) {
  const auto before = p.store.model();
  p.type("the cat saw the cat");
  EXPECT_TRUE(p.has("sentence/token/4"));
  p.click("dialog/confirm");
  EXPECT_EQ(p.store.view().forms.dialog, Dialog::none);
  const auto& sequence = p.store.model().sequences.front();
  EXPECT_EQ(sequence.tokens, (std::vector<std::string>{"the", "cat", "saw", "the", "cat"}));
  EXPECT_TRUE(arma::approx_equal((*sequence.embeddings).row(1), (*sequence.embeddings).row(4), "absdiff", 0));
  p.ctrl(Key::z);
  EXPECT_EQ(p.store.model(), before);
}

TEST_F(SentenceDialog, TakesCharactersAndASeed) {
  p.type("ab a");
  p.click("sentence/rule/1");
  p.click("sentence/seed");
  p.ctrl(Key::a);
  p.type("7");
  p.key(Key::tab);
  EXPECT_EQ(p.store.view().forms.sentence.seed, 7u);
  p.click("dialog/confirm");
  EXPECT_EQ(p.store.model().sequences.front().tokens, (std::vector<std::string>{"a", "b", "␣", "a"}));
}

TEST_F(SentenceDialog, RefusesTooMuchTextWithoutAHang) {
  const auto before = p.store.model();
  p.store.dispatch(app::ShowDialog{Dialog::none});
  p.run(3);
  support::look(p.store, [](app::View& v) { v.forms.sentence.text = std::string(1'000'000, 'a'); });
  p.store.dispatch(app::ShowDialog{Dialog::sentence});
  p.run(5);
  p.click("dialog/confirm");
  EXPECT_EQ(p.store.model(), before);
  EXPECT_EQ(p.store.view().forms.dialog, Dialog::sentence) << "the button is not to be pressed";
  EXPECT_FALSE(p.has("sentence/token/0"));
}

}  // namespace
