#include "core/system/model_cache.hpp"

#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::system {
namespace {

namespace fs = std::filesystem;

class ModelCache : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"})
      ::unsetenv(name);
    ::setenv("HF_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("HF_HOME");
    ::unsetenv("HF_HUB_CACHE");
  }

  /// Adds a model as huggingface_hub does; "" adds no reference to a revision.
  fs::path add(const fs::path& cache, const std::string& model, const std::string& main) {
    const fs::path root = cache / ("models--" + model), snapshot = root / "snapshots" / "607a30d7";
    fs::create_directories(snapshot);
    fs::create_directories(root / "refs");
    if (!main.empty()) std::ofstream(root / "refs" / "main") << main;
    return snapshot;
  }

  const support::TemporaryDirectory directory_;
  const fs::path folder_ = directory_.path();
};

TEST_F(ModelCache, NamesLeadToTheRevisionThatWasDownloaded) {
  const fs::path snapshot = add(folder_ / "hub", "openai-community--gpt2", "607a30d7\n");
  fs::create_directories(snapshot.parent_path() / "aaaaaaaa");
  EXPECT_EQ(resolve_model_name("openai-community/gpt2"), snapshot);
  EXPECT_EQ(resolve_model_name(add(folder_ / "hub", "gpt2", "")),
            folder_ / "hub/models--gpt2/snapshots/607a30d7");
  EXPECT_EQ(resolve_model_name("gpt2"), folder_ / "hub/models--gpt2/snapshots/607a30d7");
}

TEST_F(ModelCache, AnotherCacheIsNamedByTheEnvironment) {
  const fs::path snapshot = add(folder_ / "other", "Qwen--Qwen3-0.6B", "607a30d7");
  EXPECT_THROW(resolve_model_name("Qwen/Qwen3-0.6B"), Error);
  ::setenv("HF_HUB_CACHE", (folder_ / "other").c_str(), 1);
  EXPECT_EQ(resolve_model_name("Qwen/Qwen3-0.6B"), snapshot);
}

TEST_F(ModelCache, AMissingModelIsReportedWithTheCommandThatDownloadsIt) {
  try {
    resolve_model_name("openai-community/gpt2");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), "openai-community/gpt2: there is no such file, and no model of this name in " +
                                (folder_ / "hub").string() +
                                "; hf download openai-community/gpt2 fetches it");
  }
}

TEST_F(ModelCache, FilesAndOtherPathsStayAsTheyAre) {
  add(folder_ / "hub", "openai-community--gpt2", "607a30d7");
  const fs::path before = fs::current_path();
  fs::create_directories(folder_ / "openai-community" / "gpt2");
  fs::current_path(folder_);
  EXPECT_EQ(resolve_model_name("openai-community/gpt2"), "openai-community/gpt2");
  EXPECT_EQ(resolve_model_name("openai-community/other"), "openai-community/other");
  fs::current_path(before);
  for (const char* path :
       {"run.safetensors", "sessions/missing.json", "/tmp/a/b", "../a", "a/b/c", "127.0.0.1:5005", "gpt3"})
    EXPECT_EQ(resolve_model_name(path), path);
}

}  // namespace
}  // namespace core::system
