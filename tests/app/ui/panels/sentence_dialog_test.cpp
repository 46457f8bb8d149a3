#include <gtest/gtest.h>

#include "tests/support/program.hpp"

namespace {

using app::Dialog;
using app::Key;
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
  p.store.dispatch(
      app::ChangeView{[](app::View& v) { v.forms.sentence.text = std::string(1'000'000, 'a'); }});
  p.run(5);
  p.click("dialog/confirm");
  EXPECT_EQ(p.store.model(), before);
  EXPECT_EQ(p.store.view().forms.dialog, Dialog::sentence) << "the button is not to be pressed";
  EXPECT_FALSE(p.has("sentence/token/0"));
}

TEST_F(SentenceDialog, IsCancelledAndKeepsItsText) {
  const auto before = p.store.model();
  p.type("not yet");
  p.click("dialog/cancel");
  EXPECT_EQ(p.store.view().forms.dialog, Dialog::none);
  EXPECT_EQ(p.store.model(), before);
  EXPECT_EQ(p.store.view().forms.sentence.text, "not yet");
}

}  // namespace
