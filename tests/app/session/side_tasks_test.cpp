// Lists of files, previews and ranges of tensors hold up neither the opening of a file nor each other.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "app/session/store.hpp"
#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
#include "core/files/tensor.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

const std::string tensor_file = FIXTURES "/../../assets/examples/tiny_gpt/model.fp16.safetensors";

/// A store with the dialog that opens files, and a session for it.
struct FileToOpen : testing::Test {
  FileToOpen() {
    core::formats::save_session(session, {core::editing::find_preset("004-causal")->make(), "", {}, {}});
  }
  /// Updates the store until something is true, for at most a minute.
  template <class Condition>
  static bool comes_true(Store& of, Condition condition) {
    const auto end = Clock::now() + std::chrono::minutes(1);
    for (of.update(); !condition() && Clock::now() < end; of.update()) std::this_thread::yield();
    return condition();
  }

  support::TemporaryDirectory directory;
  std::filesystem::path session = directory / "session.json";
};

/// The same with a folder that takes as long to list as the test wants.
struct EndlessFolder : FileToOpen {
  EndlessFolder() { store.dispatch(ShowDialog{Dialog::open}); }
  ~EndlessFolder() override {
    if (!is_listed) end();
  }
  void end() { is_listed = true, may_end.set_value(); }

  bool is_listed = false;
  std::promise<void> may_end;
  Store store{
      core::system::available_memory,
      LiveTrace::frame_ms,
      {},
      [ended = may_end.get_future().share()](const std::filesystem::path& folder, const core::StopToken&) {
        ended.wait();
        Browser listed;
        listed.directory = folder;
        listed.entries = {{"last.json"}};
        return listed;
      }};
};

TEST_F(EndlessFolder, IsNotWaitedForWhenAFileIsOpened) {
  store.dispatch(OpenPath{session});
  EXPECT_TRUE(comes_true(store, [&] { return !store.opening().is_reading; }));
  EXPECT_EQ(store.document().title, "session.json");
  EXPECT_EQ(store.model(), core::editing::find_preset("004-causal")->make());
}

TEST_F(EndlessFolder, IsNotWaitedForByPreviewsAndIsListedAtLast) {
  store.dispatch(PreviewFile{tensor_file});
  EXPECT_TRUE(comes_true(store, [&] { return !store.opening().preview.empty(); }));
  EXPECT_TRUE(store.view().forms.browser.is_listing);
  EXPECT_TRUE(store.view().forms.browser.entries.empty());
  end();
  support::finish_reading(store);
  EXPECT_FALSE(store.view().forms.browser.is_listing);
  ASSERT_EQ(store.view().forms.browser.entries.size(), 1u);
  EXPECT_EQ(store.view().forms.browser.entries[0].name, "last.json");
}

TEST_F(EndlessFolder, IsNotWaitedForByTheRangeOfATensor) {
  store.dispatch(OpenPath{.path = tensor_file, .as_tensors = true});
  ASSERT_TRUE(comes_true(store, [&] { return store.opening().tensors != nullptr; }));
  const OpenedTensors& chosen = *store.opening().tensors;
  const std::string name = chosen.file->tensors().front().name;
  store.dispatch(MeasureTensor{name});
  EXPECT_TRUE(comes_true(store, [&] { return chosen.ranges.contains(name); }));
}

TEST_F(EndlessFolder, CanBeLeftForAnother) {
  store.dispatch(BrowseTo{directory.path()});
  end();
  support::finish_reading(store);
  EXPECT_EQ(store.view().forms.browser.directory, directory.path());
}

TEST_F(FileToOpen, ShowsNoStopBesideWhatItDoesNotStop) {
  Store store;
  store.dispatch(ShowDialog{Dialog::open});
  store.dispatch(PreviewFile{tensor_file});
  EXPECT_TRUE(store.is_reading());
  EXPECT_TRUE(store.opening().is_previewing);
  EXPECT_FALSE(store.opening().is_reading) << "of which the window shows the progress and Stop";
  store.dispatch(CancelReading{});
  EXPECT_EQ(store.message().text, "");
  support::finish_reading(store);
  EXPECT_NE(store.opening().preview, "");

  store.dispatch(OpenPath{session});
  EXPECT_TRUE(store.opening().is_reading);
  store.dispatch(CancelReading{});
  EXPECT_FALSE(store.opening().is_reading);
  EXPECT_EQ(store.message().text, "Stopped reading " + session.string());
  support::finish_reading(store);
  EXPECT_NE(store.document().title, "session.json");
}

TEST_F(FileToOpen, ShowsNoPreviewOfAFileThatIsBeingOpened) {
  Store store;
  store.dispatch(PreviewFile{tensor_file});
  store.dispatch(OpenPath{session});
  EXPECT_FALSE(store.opening().is_previewing);
  store.dispatch(PreviewFile{tensor_file});
  EXPECT_FALSE(store.opening().is_previewing) << "a file is read once at a time";
  support::finish_reading(store);
  EXPECT_EQ(store.opening().preview, "");
  EXPECT_EQ(store.opening().previewed, "") << "so that it is asked for again";
  store.dispatch(PreviewFile{tensor_file});
  support::finish_reading(store);
  EXPECT_EQ(store.opening().previewed, tensor_file);
  EXPECT_NE(store.opening().preview, "");
}

}  // namespace
}  // namespace app
