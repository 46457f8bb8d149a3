// Links: copied from the window, opened in another one.
#include <gtest/gtest.h>

#include "app/session/store.hpp"
#include "core/editing/presets.hpp"
#include "core/files/link.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::editing::MatrixName;
using core::editing::SetCell;

const std::string tiny_gpt = FIXTURES "/../../assets/examples/tiny_gpt";

std::string copied_link(Store& store) {
  store.dispatch(CopyLink{});
  store.update();
  return store.take_clipboard().value_or("");
}

TEST(Links, ToAnUneditedPresetNameItWithItsViewAndHead) {
  Store store;
  store.dispatch(LoadPreset{"multi-head"});
  store.dispatch(set<&Look::tab>(Tab::heads));
  store.dispatch(set<&Look::head>(std::size_t{1}));
  const std::string link = copied_link(store);
  EXPECT_EQ(link, "attnscope:#preset=multi-head&view=heads&head=1");
  Store other;
  support::carry_out(other, OpenPath{link});
  EXPECT_EQ(other.model(), store.model());
  EXPECT_EQ(other.view().look.tab, Tab::heads);
  EXPECT_EQ(other.view().look.head, 1u);
}

TEST(Links, ToEditedWorkCarryAllOfIt) {
  Store store;
  store.dispatch(LoadPreset{"multi-head"});
  store.dispatch(ApplyEdit{SetCell{{MatrixName::query_weight, 0}, 1, 2, 0.1 + 0.2}});
  store.dispatch(PinCell{{core::attention::Stage::weights, 1, 3, 2}});
  const std::string link = copied_link(store);
  EXPECT_TRUE(link.starts_with("attnscope:#s="));
  Store other;
  support::carry_out(other, OpenPath{link});
  EXPECT_EQ(other.model(), store.model());
  EXPECT_EQ(other.view().selection.pinned, store.view().selection.pinned);
  EXPECT_FALSE(other.document().path) << "it is saved nowhere yet";
  EXPECT_TRUE(other.persistent_state().recent.empty()) << "a link is no recent file";
}

TEST(Links, ToALessonOpenItsStep) {
  Store store;
  support::carry_out(store, OpenPath{"attnscope:#lesson=000.3"});
  ASSERT_TRUE(store.lesson());
  EXPECT_EQ(store.lesson()->lesson->name, "000");
  EXPECT_EQ(store.lesson()->step, 2u);
  EXPECT_EQ(copied_link(store), "attnscope:#lesson=000.3");
}

TEST(Links, OpenOnlyWhenUnsavedWorkMayGo) {
  Store store;
  store.dispatch(ApplyEdit{SetCell{{MatrixName::embeddings, 0}, 1, 2, 2.5}});
  support::carry_out(store, OpenPath{"attnscope:#preset=multi-head&head=1"});
  EXPECT_EQ(store.view().forms.dialog, Dialog::unsaved_work);
  store.dispatch(DiscardAndContinue{});
  EXPECT_EQ(store.model(), core::editing::find_preset("multi-head")->make());
  EXPECT_EQ(store.view().look.head, 1u);
}

TEST(Links, ThatAreWrongLeaveTheWorkAndGetOneLine) {
  Store store;
  const core::attention::Model before = store.model();
  for (const char* link : {"attnscope:#preset=nowhere", "attnscope:#lesson=nowhere",
                           "attnscope:#lesson=000.99", "attnscope:#preset=multi-head&view=nowhere",
                           "attnscope:#preset=multi-head&head=2", "attnscope:#s=abc", "attnscope:"}) {
    support::carry_out(store, OpenPath{link});
    EXPECT_TRUE(store.message().is_error) << link;
    EXPECT_EQ(store.message().text.find('\n'), std::string::npos);
    EXPECT_EQ(store.model(), before) << link;
  }
}

TEST(Links, CannotCarryAWholeModel) {
  Store store;
  support::carry_out(store, OpenPath{tiny_gpt});
  EXPECT_EQ(copied_link(store), "");
  EXPECT_TRUE(store.message().is_error);
}

}  // namespace
}  // namespace app
