#include "core/text/next_token.hpp"

#include <gtest/gtest.h>

#include "core/editing/sentence.hpp"
#include "tests/support/json_fixture.hpp"

namespace core::text {
namespace {

TEST(NextTokenPairs, OfTheNotebooksSentenceAreItsPairs) {
  const support::TextDemo demo = support::read_text_demo("s001_next_token");
  const auto tokens = words("I'm going to school tomorrow");
  EXPECT_EQ(tokens, demo.tokens);
  const auto pairs = next_token_pairs(tokens);
  ASSERT_EQ(pairs.size(), demo.pairs.size());
  for (std::size_t k = 0; k < pairs.size(); ++k)
    EXPECT_EQ(pairs[k], (NextToken{demo.pairs[k].context, demo.pairs[k].target})) << k;
}

TEST(NextTokenPairs, OfASingleTokenAreNone) {
  EXPECT_TRUE(next_token_pairs({"alone"}).empty());
  EXPECT_TRUE(next_token_pairs({}).empty());
}

}  // namespace
}  // namespace core::text
