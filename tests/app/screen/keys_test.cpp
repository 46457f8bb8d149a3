#include "app/screen/keys.hpp"

#include <gtest/gtest.h>

namespace {

using app::Key;
using app::platform::key_of_character;

TEST(Keys, AreLettersInEitherCase) {
  EXPECT_EQ(key_of_character('a'), Key::a);
  EXPECT_EQ(key_of_character('Z'), Key::z);
  EXPECT_EQ(key_of_character('s'), Key::s);
}

TEST(Keys, AreDigitsAndTheSignsOfCommands) {
  EXPECT_EQ(key_of_character('0'), Key::digit_0);
  EXPECT_EQ(key_of_character('9'), Key::digit_9);
  EXPECT_EQ(key_of_character('['), Key::bracket_left);
  EXPECT_EQ(key_of_character('?'), Key::question);
}

TEST(Keys, AreNotMadeOfOtherCharacters) {
  EXPECT_EQ(key_of_character(0), std::nullopt);
  EXPECT_EQ(key_of_character(0x20ac), std::nullopt);
  EXPECT_EQ(key_of_character('@'), std::nullopt);
}

}  // namespace
