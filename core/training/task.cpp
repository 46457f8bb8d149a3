#include "core/training/task.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/utf8.hpp"

namespace core::training {
namespace {

using random::Generator;

constexpr std::size_t min_characters = 3, max_characters = std::size_t{1} << 20, max_letters = 256;
constexpr std::uint64_t example_seed = 5;

std::size_t below(Generator& generator, std::size_t n) {
  return static_cast<std::size_t>(generator.next_u64() % n);
}

void fill_random(Sample& sample, std::size_t n_vocabulary, Generator& generator) {
  for (std::size_t& token : sample.tokens) token = below(generator, n_vocabulary);
}

/// Returns the first n of a random order of 0 … size − 1.
std::vector<std::size_t> choose(std::size_t n, std::size_t size, Generator& generator) {
  std::vector<std::size_t> all(size);
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (std::size_t k = 0; k < n; ++k) std::swap(all[k], all[k + below(generator, size - k)]);
  all.resize(n);
  return all;
}

void predict_next(Sample& s) {
  for (std::size_t i = 0; i + 1 < s.tokens.size(); ++i) s.targets[i] = s.tokens[i + 1];
}

PatternKeys previous_keys(std::size_t n_tokens) {
  PatternKeys keys(n_tokens);
  for (std::size_t i = 1; i < n_tokens; ++i) keys[i] = {i - 1};
  return keys;
}

/// Returns the keys after earlier occurrences of the token of a query that has a target.
PatternKeys induction_keys(const Sample& s) {
  PatternKeys keys(s.tokens.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = 1; s.targets[i] && j <= i; ++j)
      if (s.tokens[j - 1] == s.tokens[i]) keys[i].push_back(j);
  return keys;
}

// The tasks.

void fill_previous(Sample& s, std::size_t n_vocabulary, Generator& generator) {
  fill_random(s, n_vocabulary, generator);
  for (std::size_t i = 1; i < s.tokens.size(); ++i) s.targets[i] = s.tokens[i - 1];
  s.keys[0] = previous_keys(s.tokens.size());
}

void fill_next(Sample& s, std::size_t n_vocabulary, Generator& generator) {
  fill_random(s, n_vocabulary, generator);
  predict_next(s);
  s.keys[0].resize(s.tokens.size());
  for (std::size_t i = 0; i + 1 < s.tokens.size(); ++i) s.keys[0][i] = {i + 1};
}

/// A half of random tokens, a separator (token 0), and the half in reverse order.
void fill_reverse(Sample& s, std::size_t n_vocabulary, Generator& generator) {
  const std::size_t n = s.tokens.size(), half = n / 2;
  for (std::size_t i = 0; i < half; ++i) s.tokens[i] = 1 + below(generator, n_vocabulary - 1);
  for (std::size_t i = half + 1; i < n; ++i) s.tokens[i] = s.tokens[2 * half - i];
  s.keys[0].resize(n);
  for (std::size_t i = half; i < 2 * half; ++i) {
    const std::size_t from = 2 * half - 1 - i;
    s.targets[i] = s.tokens[from];
    s.keys[0][i] = {from};
  }
}

/// Key, value, key, value …: a key that comes again has the same value. Tokens of the first half of the
/// vocabulary are keys; few of them are used, so that they come again.
void fill_recall(Sample& s, std::size_t n_vocabulary, Generator& generator) {
  const std::size_t n_keys = n_vocabulary / 2, n = s.tokens.size();
  const auto used = choose(std::min(n_keys, std::max<std::size_t>(2, n / 4)), n_keys, generator);
  std::vector<std::size_t> values(n_keys);
  for (std::size_t& value : values) value = n_keys + below(generator, n_vocabulary - n_keys);
  std::vector<bool> seen(n_keys);
  s.keys[0].resize(n);
  for (std::size_t i = 0; i + 1 < n; i += 2) {
    const std::size_t key = used[below(generator, used.size())];
    s.tokens[i] = key, s.tokens[i + 1] = values[key];
    if (seen[key]) s.targets[i] = values[key];
    seen[key] = true;
    s.keys[0][i + 1] = {i};
  }
  s.keys[1] = induction_keys(s);
}

/// Distinct tokens that repeat with a random period: only their content tells where to look.
void fill_induction(Sample& s, std::size_t n_vocabulary, Generator& generator) {
  const std::size_t n = s.tokens.size(), period = n / 4 + below(generator, n / 2 - n / 4 + 1);
  const auto repeated = choose(std::min(period, n_vocabulary), n_vocabulary, generator);
  for (std::size_t i = 0; i < n; ++i) s.tokens[i] = repeated[i % repeated.size()];
  for (std::size_t i = repeated.size(); i + 1 < n; ++i) s.targets[i] = s.tokens[i + 1];
  s.keys = {previous_keys(n), induction_keys(s)};
}

constexpr const char* previous_token = "previous-token";
constexpr const char* induction = "induction";

TrainingSetup two_layers(std::size_t n_heads, std::size_t n_steps) {
  TrainingSetup setup;
  setup.n_layers = 2, setup.n_heads = n_heads, setup.positions = PositionChoice::rotary,
  setup.n_steps = n_steps;
  return setup;
}

TrainingSetup one_layer(std::size_t n_steps, PositionChoice positions = PositionChoice::learned) {
  TrainingSetup setup;
  setup.positions = positions, setup.n_steps = n_steps;
  return setup;
}

/// Two heads at width 48: at width 32 a seed in sixteen stays on the plateau.
TrainingSetup of_induction() {
  TrainingSetup setup = two_layers(2, 400);
  setup.d_model = 48;
  return setup;
}

/// Stops before the network without dropout finds the rule, too, as it does after some 1,000 steps.
TrainingSetup of_dropout() {
  TrainingSetup setup = two_layers(1, 300);
  setup.dropout = 0.3, setup.batch = 32;
  return setup;
}

TrainingSetup of_text() {
  TrainingSetup setup = two_layers(2, 600);
  setup.d_mlp = 128;
  return setup;
}

const std::array table{
    Task{previous_token,
         "Predict the previous token of random ones",
         "A diagonal appears below the main one: the head attends to the token before each query",
         "abcdefghijklmnop",
         {previous_token},
         fill_previous,
         one_layer(200, PositionChoice::rotary)},
    Task{
        "why-mask",
        "Predict the next of random tokens, which nobody can know",
        "With the causal mask the loss stays at ln 16; without it a diagonal above the main one copies the answer",
        "abcdefghijklmnop",
        {"next-token"},
        fill_next,
        one_layer(300)},
    Task{"reverse",
         "Repeat a row of tokens in reverse order",
         "An antidiagonal appears: positions alone say where to look",
         "|abcdefghijklmno",
         {"reverse"},
         fill_reverse,
         one_layer(400)},
    Task{
        "recall",
        "Predict the value that came after the same key before",
        "The first layer looks back one token, and the second then finds the key: both at once, as the loss falls",
        "abcdefghABCDEFGH",
        {previous_token, induction},
        fill_recall,
        two_layers(1, 400)},
    Task{
        "induction",
        "Continue a sequence that repeats with an unknown period",
        "After a plateau, a previous-token head and an induction head form together, and the loss falls at once",
        "abcdefghijklmnop",
        {previous_token, induction},
        fill_induction,
        of_induction()},
    Task{
        "dropout",
        "Recall, from 100 sequences that training repeats",
        "With dropout, fresh sequences are answered almost as well as those of training; without it they are not",
        "abcdefghABCDEFGH",
        {previous_token, induction},
        fill_recall,
        of_dropout(),
        100}};

}  // namespace

std::span<const Task> tasks() {
  return table;
}

const Task& text_task() {
  static const Task task{"text",
                         "Predict the next character of a text",
                         "Heads that look at the previous characters form first",
                         "",
                         {previous_token, induction},
                         nullptr,
                         of_text(),
                         0,
                         32};
  return task;
}

const Task* find_task(std::string_view name) {
  return find_by(table, name, &Task::name);
}

TaskData::TaskData(const Task& task) : task_(&task), n_tokens_(task.n_tokens) {
  for (const char* letter = task.letters; *letter; ++letter) letters_.emplace_back(1, *letter);
}

TaskData::TaskData(std::string_view text, const std::string& place) : task_(&text_task()), n_tokens_(0) {
  const auto fail = [&](const std::string& expected, const std::string& got) {
    throw Error(place + ": expected " + expected + ", got " + got);
  };
  if (!text::is_utf8(text)) fail("a task or a text in UTF-8", "other bytes");
  text = text::without_byte_order_mark(text);
  std::map<std::u32string::value_type, std::size_t> ids;
  const std::u32string characters = text::decode_utf8_lossy(text);
  if (characters.size() < min_characters || characters.size() > max_characters)
    fail(fmt::format("a text of {} to {} characters", min_characters, max_characters),
         std::to_string(characters.size()));
  for (const char32_t c : characters) ids.emplace(c, 0);
  if (ids.size() > max_letters)
    fail(fmt::format("at most {} different characters", max_letters), std::to_string(ids.size()));
  for (auto& [c, id] : ids) {
    id = letters_.size();
    text::append_character(letters_.emplace_back(), c);
  }
  for (const char32_t c : characters) text_.push_back(ids[c]);
  n_tokens_ = std::min(task_->n_tokens, text_.size() - 1);
  const std::size_t n_fresh = text_.size() / 10;
  first_fresh_ = n_fresh > n_tokens_ ? text_.size() - n_fresh : text_.size();
}

std::string TaskData::text() const {
  std::string all;
  for (const std::size_t id : text_) all += letters_[id];
  return all;
}

Sample TaskData::sample(Generator& generator, bool is_fresh) const {
  Sample s;
  s.tokens.resize(n_tokens_), s.targets.resize(n_tokens_);
  if (!is_text()) {
    task_->fill(s, letters_.size(), generator);
    return s;
  }
  const bool is_from_end = is_fresh && has_fresh_text();
  const std::size_t begin = is_from_end ? first_fresh_ : 0, end = is_from_end ? text_.size() : first_fresh_,
                    first = begin + below(generator, end - begin - n_tokens_);
  for (std::size_t i = 0; i < n_tokens_; ++i) {
    s.tokens[i] = text_[first + i];
    s.targets[i] = text_[first + i + 1];
  }
  s.keys = {previous_keys(n_tokens_), induction_keys(s)};
  return s;
}

std::string TaskData::example() const {
  Generator generator(example_seed);
  std::string text;
  const Sample s = sample(generator, true);
  std::size_t n = s.tokens.size();
  while (n > 1 && !s.targets[n - 1]) --n;  // nothing is learned about what comes after the rest
  for (std::size_t i = 0; i < n; ++i) text += letters_[s.tokens[i]];
  return text;
}

}  // namespace core::training
