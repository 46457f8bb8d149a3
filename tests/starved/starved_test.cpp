// Every allocation of the main paths fails once, alone or with all that follow: it ends in one line, and what
// was there before is there afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <sstream>

#include "app/cli/arguments.hpp"
#include "app/cli/batch.hpp"
#include "core/base/error.hpp"
#include "core/editing/edit.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/attend.hpp"
#include "tests/starved/famine.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"

namespace starved {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

/// Up to so many allocations each fails; of more, as many spread over them. ATTNSCOPE_EVERY_ALLOCATION=1 in
/// the environment leaves none out.
std::size_t most_failures() {
  return std::getenv("ATTNSCOPE_EVERY_ALLOCATION") ? std::size_t(-1) : 100;
}

/// Calls trial(n, lack) for allocations 0, 1, … of an action that does so many.
void for_each_failure(std::size_t n_allocations,
                      const std::function<void(std::size_t number, Lack lack)>& trial) {
  const std::size_t step = 1 + n_allocations / most_failures();
  for (const Lack lack : {Lack::once, Lack::from_then_on})
    for (std::size_t number = 0; number < n_allocations; number += step) trial(number, lack);
}

/// What an action came to: "" when it was done, else the words of its error.
template <class Action>
std::string error_of(const Action& action, std::size_t number, Lack lack,
                     std::size_t* n_allocations = nullptr) {
  char words[512] = "";  // nothing may be allocated while memory is short
  {
    const Famine famine(number, lack);
    try {
      action();
    } catch (const std::bad_alloc&) {
      std::snprintf(words, sizeof words, "not enough memory");
    } catch (const core::Error& error) {
      std::snprintf(words, sizeof words, "%s", error.what());
    }
    if (n_allocations) *n_allocations = famine.n_allocations();
  }
  return words;
}

core::attention::Model any_model() {
  support::Random random(5);
  core::attention::Model model = support::model(random, 4, 4, 4, 2);
  model.dropout.rate = 0.25;
  return model;
}

TEST(Starved, AttentionEndsInAnErrorOrIsRight) {
  const auto model = any_model();
  const core::attention::Trace expected = core::attention::attend(model);
  std::optional<core::attention::Trace> trace;
  const auto action = [&] { trace = core::attention::attend(model); };
  std::size_t n_allocations = 0;
  ASSERT_EQ(error_of(action, std::size_t(-1), Lack::once, &n_allocations), "");
  ASSERT_GT(n_allocations, 20u);
  for_each_failure(n_allocations, [&](std::size_t number, Lack lack) {
    trace.reset();
    const std::string words = error_of(action, number, lack);
    if (words.empty()) {
      ASSERT_TRUE(arma::approx_equal(*trace->output, *expected.output, "absdiff", 0)) << number;
    }
  });
}

TEST(Starved, AnEngineIsRightWhenThereIsMemoryAgain) {
  namespace fast = core::attention::fast;
  const auto model = any_model();
  const auto edited = core::editing::apply(
      model, core::editing::SetCell{{core::editing::MatrixName::embeddings}, 1, 2, 0.75});
  const arma::mat expected = *core::attention::attend(edited).output;
  const auto action = [&](fast::Engine& engine) {
    engine.compute(model);
    engine.update(edited);
    engine.output();
  };
  fast::Engine counted(2);
  std::size_t n_allocations = 0;
  ASSERT_EQ(error_of([&] { action(counted); }, std::size_t(-1), Lack::once, &n_allocations), "");
  ASSERT_GT(n_allocations, 20u);
  for_each_failure(n_allocations, [&](std::size_t number, Lack lack) {
    fast::Engine engine(2);
    error_of([&] { action(engine); }, number, lack);
    engine.update(edited);
    ASSERT_TRUE(arma::approx_equal(engine.output(), expected, "absdiff", 1e-12)) << number;
  });
}

/// Takes some text without allocating.
class FixedStream : std::streambuf, public std::ostream {
 public:
  FixedStream() : std::ostream(this) { setp(text_.data(), text_.data() + text_.size()); }
  std::string text() const { return {pbase(), pptr()}; }

 private:
  std::array<char, 1 << 16> text_;
};

/// Commands of the program in a folder of their own.
struct StarvedCommand : testing::Test {
  using Files = std::map<std::string, std::string>;
  /// What a command came to.
  struct Outcome {
    int status;
    std::string out, err;
    std::size_t n_allocations;
  };
  support::TemporaryDirectory dir;

  std::string in(const char* name) const { return (dir / name).string(); }

  static Outcome run(const app::Arguments& arguments, std::size_t number, Lack lack) {
    const auto out = std::make_unique<FixedStream>(), err = std::make_unique<FixedStream>();
    int status = 0;
    std::size_t n_allocations = 0;
    {
      const Famine famine(number, lack);
      status = app::run_batch(arguments, *out, *err);
      n_allocations = famine.n_allocations();
    }
    return {status, out->text(), err->text(), n_allocations};
  }
  static Outcome run(const Strings& words) {
    return run(app::parse_arguments(words), std::size_t(-1), Lack::once);
  }

  /// The files of the folder with what is in them.
  Files files() const {
    Files files;
    for (const std::string& name : dir.names())
      files[name] = fs::is_directory(dir / name) ? "" : support::bytes_of(dir / name);
    return files;
  }

  /// Makes the folder what it was before there were new files.
  void put_back(const Files& old_files) const {
    for (const std::string& name : dir.names())
      if (!old_files.contains(name)) fs::remove_all(dir / name);
    for (const auto& [name, bytes] : old_files)
      if (fs::is_regular_file(dir / name)) support::put_bytes(dir / name, bytes);
  }

  /// Lets the allocations of a command fail, one after the other. Each time it does all that it does with
  /// enough memory, or says in a line that it failed and leaves the folder as it was.
  void starve(const Strings& words, int status = 0) {
    const Files old_files = files();
    const app::Arguments arguments = app::parse_arguments(words);
    const Outcome whole = run(arguments, std::size_t(-1), Lack::once);
    ASSERT_EQ(whole.status, status) << whole.err;
    const Files new_files = files();
    RecordProperty(words.front(), static_cast<int>(whole.n_allocations));
    for_each_failure(whole.n_allocations, [&](std::size_t number, Lack lack) {
      put_back(old_files);
      const Outcome outcome = run(arguments, number, lack);
      SCOPED_TRACE(testing::Message()
                   << "allocation " << number << " of " << whole.n_allocations << ": " << outcome.err);
      if (outcome.status == status && outcome.out == whole.out && files() == new_files) return;
      ASSERT_EQ(outcome.status, 1);
      ASSERT_TRUE(files() == old_files) << testing::PrintToString(dir.names());
      ASSERT_THAT(outcome.err, testing::StartsWith("attnscope: "));
      ASSERT_THAT(outcome.err, testing::EndsWith("\n"));
    });
    put_back(new_files);
  }
};

TEST_F(StarvedCommand, Export) {
  starve({"export", "--preset", "004-causal", "--out", in("new/folder")});
  starve({"export", "--preset", "004-causal", "--out", in("all.npz")});
}

TEST_F(StarvedCommand, SessionOverAnOldOne) {
  support::put_bytes(dir / "a.json", "old");
  starve({"session", "--preset", "multi-head", "--out", in("a.json")});
  starve({"export", in("a.json"), "--stages", "weights,output", "--format", "npy", "--out", in("stages")});
}

TEST_F(StarvedCommand, ModelsOfFiles) {
  starve({"session", FIXTURES "/checkpoints/gpt2.safetensors", "--heads", "2", "--out", in("b.json")});
  starve({"session", FIXTURES "/checkpoints/families/llama3", "--out", in("b.json")});
  starve({"export", "--given", "weights=" FIXTURES "/tiny_gpt/golden.npz:L0.attn", "--out", in("stages")});
}

TEST_F(StarvedCommand, Check) {
  ASSERT_EQ(
      run({"export", "--preset", "004-causal", "--mistake", "no_scale", "--out", in("theirs.npz")}).status,
      0);
  starve({"check", "--preset", "004-causal", "--against", in("theirs.npz")}, 1);
}

TEST_F(StarvedCommand, Figures) {
  starve({"figure", "--preset", "004-causal", "--stage", "weights", "--out", in("a.svg")});
  starve({"figure", "--preset", "004-causal", "--strip", "--out", in("a.png")});
}

TEST_F(StarvedCommand, ProgramOfPyTorch) {
  starve({"program", "--preset", "multi-head"});
}

TEST_F(StarvedCommand, WholeModel) {
  starve({"predict", FIXTURES "/transformer/llama", "--text", "a cat"});
}

}  // namespace
}  // namespace starved
