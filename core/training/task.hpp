#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.hpp"
#include "core/training/setup.hpp"

namespace core::training {

/// Most patterns of attention that a task has a name for.
inline constexpr std::size_t max_patterns = 2;

/// Keys that a head of a pattern attends to, [query]; queries without keys are not counted.
using PatternKeys = std::vector<std::vector<std::size_t>>;

/// A sequence of a task.
struct Sample {
  std::vector<std::size_t> tokens;                  ///< [position]: IDs
  std::vector<std::optional<std::size_t>> targets;  ///< [position]: ID to be predicted there, if any
  std::array<PatternKeys, max_patterns> keys = {};  ///< of the task's patterns
};

/// A row of the table of tasks.
struct Task {
  const char* name;     ///< on the command line: "induction"
  const char* about;    ///< one sentence: what is to be predicted
  const char* look;     ///< one sentence: what to look at while it learns
  const char* letters;  ///< the vocabulary, a character for each token; that of the text if empty
  /// Names of patterns that heads form, in the order of the layers that they need; nullptr for none.
  std::array<const char*, max_patterns> patterns;
  /// Fills a sample whose tokens are zeros and which has no targets; nullptr for the task of a text.
  void (*fill)(Sample& sample, std::size_t n_vocabulary, random::Generator& generator);
  TrainingSetup setup;         ///< the default, which reaches the goal for any seed
  std::size_t n_training = 0;  ///< sequences that training repeats; 0: new ones in every step
  std::size_t n_tokens = 24;   ///< of a sequence; the most for a text

  std::size_t n_patterns() const { return patterns[1] ? 2 : patterns[0] ? 1 : 0; }
};

/// Returns the tasks with a name, in the order of the start page.
std::span<const Task> tasks();
/// Returns the task of learning a text, which has none of these names.
const Task& text_task();
/// Returns the task of that name, or nullptr.
const Task* find_task(std::string_view name);

/// A task with its vocabulary: samples to train on, and fresh ones.
class TaskData {
 public:
  explicit TaskData(const Task& task);
  /// Makes the task of predicting each next character of a text in UTF-8; every character that it has is a
  /// token. Fresh samples are from its last tenth, which is not trained on, if it is long enough.
  ///
  /// Throws core::Error, "PLACE: expected …", for invalid UTF-8, fewer than 3 characters, more than 2^20, or
  /// more than 256 different ones.
  TaskData(std::string_view text, const std::string& place);

  const Task& task() const { return *task_; }
  /// Returns [ID]: the character of each token, in UTF-8.
  const std::vector<std::string>& letters() const { return letters_; }
  /// Returns the tokens of a sequence.
  std::size_t n_tokens() const { return n_tokens_; }
  bool is_text() const { return !task_->fill; }
  /// Returns the text, or "" of another task.
  std::string text() const;
  /// Returns whether fresh samples are from a part of the text that is not trained on.
  bool has_fresh_text() const { return first_fresh_ < text_.size(); }

  /// Returns a new sample for training, or of those that are fresh in every run.
  Sample sample(random::Generator& generator, bool is_fresh) const;
  /// Returns a text with which the trained model can be tried.
  std::string example() const;

 private:
  const Task* task_;
  std::vector<std::string> letters_;
  std::size_t n_tokens_;
  std::vector<std::size_t> text_ = {};  ///< IDs
  std::size_t first_fresh_ = 0;
};

}  // namespace core::training
