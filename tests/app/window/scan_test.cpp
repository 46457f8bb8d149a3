// Heads over many texts in the window, on the tiny GPT.
#include <gmock/gmock.h>

#include "app/session/full_model_reading.hpp"
#include "app/session/remembered.hpp"
#include "core/system/file.hpp"
#include "tests/support/settled_window.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using app::Tab;
using testing::HasSubstr;

struct ScanWindow : support::SettledWindow {
  support::TemporaryDirectory dir;

  ScanWindow() : SettledWindow({1280, 1000}) {}
  void SetUp() override {
    core::system::write_atomically(dir / "texts.txt",
                                   "egg jam fig and egg jam f\nto be or not to be or not to be\n\xff\n"
                                   "Mrs. Norris was sorry; Mrs. Norris\n");
    ui.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam", 2);
    settle();
    support::look(ui.store, [this](app::View& v) {
      v.forms.dialog = app::Dialog::scan;
      v.forms.scan.texts = dir / "texts.txt";
      v.forms.scan.folder = dir / "heads";
    });
    settle();
  }
  const app::LiveScan& scan() const { return ui.store.pending().reading->scan(); }
  void scan_texts() {
    press("dialog/confirm");
    for (int k = 0; k < 200 && !scan().table(); ++k) settle();
    ASSERT_TRUE(scan().table()) << scan().error();
  }
};

TEST_F(ScanWindow, ShowsEveryHeadOverTheTextsAndTheirExamples) {
  scan_texts();
  EXPECT_THAT(
      words(),
      HasSubstr("16 heads of tiny_gpt over 3 texts. 1 line could not be read, as line 3: it is not UTF-8"));
  EXPECT_TRUE(ui.has("scan/point/2.0"));
  press("scan/sort/5");
  EXPECT_EQ(ui.store.view().forms.scan.sorted_by, 5u);
  press("scan/head/2.0");
  ASSERT_TRUE(scan().examples(ui.store.view().forms.scan));
  EXPECT_EQ(scan().examples(ui.store.view().forms.scan)->size(), 3u);
  EXPECT_THAT(words(), HasSubstr("Examples of head 2.0"));
  press("scan/example/1");
  const std::string text = (*scan().examples(ui.store.view().forms.scan))[1].of.sequence->text;
  press("scan/open");
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::none);
  EXPECT_EQ(ui.store.view().look.tab, Tab::layers);
  EXPECT_EQ(ui.store.pending().full_model->experiment.text, text);
  EXPECT_THAT(words(), HasSubstr("roles over 3 texts"));
  EXPECT_THAT(words(), HasSubstr("texts\n"));
}

TEST_F(ScanWindow, SaysWhyATextCannotBeScanned) {
  scan_texts();
  core::system::write_atomically(dir / "other.txt", "fig\n");
  support::look(ui.store, [this](app::View& v) { v.forms.scan.texts = dir / "other.txt"; });
  settle();  // the form runs, so the texts are scanned at once
  EXPECT_THAT(words(), HasSubstr("expected another folder"));
}

TEST_F(ScanWindow, RolesAreThoseOfTheFolderThatASessionNames) {
  scan_texts();
  support::carry_out(ui.store, app::SaveFileAs{dir / "session.json"});
  EXPECT_THAT(core::system::read_file(dir / "session.json", 1 << 20), HasSubstr("\"scan\": \"heads\""));
  ui.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam", 2);
  settle();
  EXPECT_FALSE(scan().table());
  const support::TemporaryDirectory other;  // the session moves with its scan
  std::filesystem::rename(dir / "heads", other / "heads");
  std::filesystem::rename(dir / "session.json", other / "session.json");
  const auto open = [&] {
    support::carry_out(ui.store, app::OpenPath{.path = other / "session.json",
                                               .untrusted_paths = core::UntrustedPaths::allowed});
    for (int k = 0; k < 200 && !scan().table(); ++k) settle();
  };
  open();
  EXPECT_TRUE(scan().roles(*ui.store.pending().full_model, 2, 0));
  std::filesystem::remove_all(other / "heads");
  open();
  EXPECT_THAT(ui.store.message().text,
              HasSubstr("the folder of its scan is missing: " + (other / "heads").string()));
}

TEST_F(ScanWindow, CancelingTheChoiceOfTextsLeadsBack) {
  press("scan/browse");
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::open_texts);
  press("dialog/cancel");
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::scan);
}

}  // namespace
