#include "core/files/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tests/support/additions.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

using namespace attention;

/// Models in which every option takes every value, small and with all kinds of finite numbers.
class RandomModels {
 public:
  explicit RandomModels(unsigned seed) : random_(seed) {}

  Model next() {
    Model m;
    const std::size_t n = upto(4) + 1, d_model = upto(3) + 1, d_head = upto(2) + 1;
    m.n_heads = upto(2) + 1;
    support::Random any(static_cast<unsigned>(random_()));
    const bool projected = flip() || d_model % m.n_heads != 0;
    const std::size_t d_out = m.n_heads * d_head;
    const bool same_tokens = flip();
    for (std::size_t s = 0, count = upto(2) + 1; s < count; ++s)
      m.sequences.push_back(
          {same_tokens && s > 0 ? m.sequences.front().tokens : tokens(n), matrix(n, d_model)});
    if (projected) {
      m.projections = Projections{linear(d_model, d_out), linear(d_model, d_out), linear(d_model, d_out), {}};
      if (flip()) m.projections->output = linear(d_out, flip() ? d_out : upto(4) + 1);
    }
    if (flip()) support::add_memory(any, m);
    if (flip()) support::add_groups(any, m);
    if (flip()) support::add_additions(any, m);
    const std::size_t n_keys = m.n_keys();
    m.scores = static_cast<ScoreRule>(upto(1));
    m.scale.rule = static_cast<ScaleRule>(upto(3));
    if (m.scale.rule == ScaleRule::factor) m.scale.factor = number();
    m.mask.causal = flip();
    m.mask.method = static_cast<MaskMethod>(upto(3));
    m.mask.empty_rows = static_cast<EmptyRows>(upto(1));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n_keys; ++j)
        if (upto(3) == 0) m.mask.cells.push_back({i, j, flip()});
    if (flip()) support::add_mask_rules(any, m);
    m.dropout = {
        static_cast<double>(upto(10)) / 10, flip(), random_(), static_cast<DropoutStream>(upto(1)), {}};
    if (flip())
      for (std::size_t k = 0; k < m.sequences.size() * m.n_heads; ++k)
        m.dropout.given.emplace_back(
            arma::mat(n, n_keys).transform([&](double) { return flip() ? 1.0 : 0.0; }));
    m.merge = static_cast<MergeRule>(upto(1));
    if (flip()) m.context_length = n + upto(5);
    m.dropout.rescale = flip();
    if (flip())
      m.departures = {
          static_cast<SoftmaxOver>(upto(1)),
          flip() && n_keys == n,
          {static_cast<int>(upto(4)) - 2, flip()},
          number(),
          static_cast<DropoutPlace>(upto(2)),
          static_cast<HeadColumns>(upto(1)),
          static_cast<HeadColumns>(upto(1)),
          static_cast<Precision>(upto(4)),
          static_cast<Precision>(upto(4)),
          flip(),
          static_cast<Precision>(upto(4)),
          {flip(), flip(), flip()},
          {static_cast<BlockRule>(upto(4)), 1 + upto(5)},
          flip(),
          {flip(), flip(), flip(), flip(), flip(), flip(), flip(), static_cast<int>(upto(4)) - 2}};
    return m;
  }

 private:
  std::size_t upto(std::size_t last) { return random_() % (last + 1); }
  bool flip() { return upto(1) == 1; }
  double number() {
    const double any = std::bit_cast<double>(random_());
    const double some[] = {0.0, -0.0, 1, 5e-324, -1.7976931348623157e308, 0.1f, std::isfinite(any) ? any : 2};
    return some[upto(6)];
  }
  arma::mat matrix(std::size_t rows, std::size_t columns) {
    return arma::mat(rows, columns).transform([&](double) { return number(); });
  }
  Linear linear(std::size_t d_in, std::size_t d_out) {
    Linear l{matrix(d_in, d_out), {}};
    if (flip()) l.bias = matrix(1, d_out);
    return l;
  }
  std::vector<std::string> tokens(std::size_t n) {
    const char* words[] = {"", "a", "\"q\"", "\\", "two\nlines", "é漢🙂", "\x01"};
    std::vector<std::string> list;
    for (std::size_t i = 0; i < n; ++i) list.push_back(words[upto(6)]);
    return list;
  }

  std::mt19937_64 random_;
};

TEST(Session, ReadsBackEveryOptionAndEveryBit) {
  RandomModels models(7);
  for (int k = 0; k < 500; ++k) {
    Session session{models.next(), k % 2 == 0 ? "" : R"({"head": 1, "zoom": [0.5, -0]})"};
    if (k % 3 == 0) session.left_out = {"rotary positions", "\"a cap\""};
    const std::string text = session_text(session);
    const Session back = parse_session(text, "f.json");
    EXPECT_EQ(back.left_out, session.left_out);
    ASSERT_TRUE(back.model == session.model) << text;
    ASSERT_EQ(back.view, session.view);
    ASSERT_EQ(session_text(back), text);
  }
}

TEST(Session, IsWrittenForPeopleToRead) {
  Model m;
  m.sequences = {{{"Your", "journey"}, arma::mat{{0.5, -1}, {2, 0.25}}}};
  Projections p;
  p.query.weight = p.key.weight = p.value.weight = arma::vec{1, 0};
  p.key.bias = arma::vec{3};
  m.projections = p;
  m.mask.cells = {{0, 1, true}, {1, 0, false}};
  EXPECT_EQ(session_text({m, ""}), R"({
  "attnscope": 1,
  "tokens": ["Your", "journey"],
  "embeddings": [
    [0.5, -1],
    [2, 0.25]
  ],
  "projections": {
    "query": {
      "weight": [
        [1],
        [0]
      ],
      "bias": null
    },
    "key": {
      "weight": [
        [1],
        [0]
      ],
      "bias": [3]
    },
    "value": {
      "weight": [
        [1],
        [0]
      ],
      "bias": null
    },
    "output": null
  },
  "n_heads": 1,
  "scores": "query_key",
  "scale": "inverse_sqrt_d_head",
  "mask": {"causal": true, "method": "negative_infinity", "empty_rows": "nan", "cells": [[0, 1, true], [1, 0, false]]},
  "dropout": {"rate": 0, "training": true, "seed": 123, "stream": "mt19937"},
  "merge_heads": "concatenate",
  "context_length": null
}
)");
}

TEST(Session, HasTheDefaultsOfTheModelForAbsentKeys) {
  Model expected;
  expected.sequences = {{{"0", "1"}, arma::mat{{1, 2}, {3, 4}}}};
  EXPECT_TRUE(parse_session(R"({"attnscope": 1, "embeddings": [[1, 2], [3, 4]]})", "f").model == expected);
  EXPECT_TRUE(
      parse_session(R"({"attnscope": 1, "embeddings": [[1, 2], [3, 4]], "mask": {}, "dropout": {}})", "f")
          .model == expected);
}

TEST(Session, SortsTheCellsOfTheMask) {
  const Session s = parse_session(
      R"({"attnscope": 1, "embeddings": [[1], [2]], "mask": {"cells": [[1, 1, true], [1, 0, false], [0, 1, true]]}})",
      "f");
  EXPECT_EQ(s.model.mask.cells, (std::vector<MaskCell>{{0, 1, true}, {1, 0, false}, {1, 1, true}}));
}

TEST(Session, OfAModelThatCannotBeComputedIsNotWritten) {
  Model m;
  m.sequences = {{{"a"}, arma::vec{NAN}}};
  EXPECT_EQ(support::error_of([&] { session_text({m, ""}); }), "embeddings[0][0]: expected a finite number");
}

TEST(Session, IsSavedAndLoaded) {
  const support::TemporaryDirectory dir;
  Model m;
  m.sequences = {{{"a"}, arma::mat{{-0.0, 0.1}}}};
  save_session(dir / "s.json", {m, ""});
  EXPECT_TRUE(load_session(dir / "s.json").model == m);
  EXPECT_EQ(dir.names(), (std::set<std::string>{"s.json"}));
}

// A session that is cut or has one bit wrong is read or refused; nothing else may happen.
TEST(Session, SurvivesDamage) {
  RandomModels models(3);
  for (int k = 0; k < 5; ++k) {
    const std::string text = session_text({models.next(), R"({"a": [1]})"});
    const std::size_t end = text.rfind('}');
    for (std::size_t length = 0; length <= end; ++length)
      ASSERT_NE(support::error_of([&] { parse_session(text.substr(0, length), "f"); }), "no error") << length;
    for (std::size_t at = 0; at < text.size(); ++at)
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = text;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
        const std::string error = support::error_of([&] { parse_session(damaged, "f"); });
        ASSERT_EQ(error.find('\n'), error.npos) << error;
      }
  }
}

TEST(Session, IsNeverWrittenLongerThanItIsRead) {
  const char* text = "";
  EXPECT_EQ(support::error_of([&] { require_readable_session({text, 0}); }), "no error");
  EXPECT_EQ(support::error_of([&] { require_readable_session({text, largest_session}); }), "no error");
  EXPECT_EQ(
      support::error_of([&] {
        require_readable_session({text, largest_session + 1});
      }),
      "a session of more than 512 MiB, which could not be read again; numbers of that size can be exported "
      "as .npy or .npz");
}

}  // namespace
}  // namespace core::formats
