#include "core/files/pickle.hpp"

#include <gtest/gtest.h>

namespace core::formats::readers {
namespace {

char byte_at(std::uint64_t at) {
  return static_cast<char>(at * 7 / 3);
}

TEST(PickleBytes, AreFetchedOnceAndForward) {
  constexpr std::uint64_t n_bytes = 1'000'000, begin = 3;
  std::uint64_t end = begin;
  const Fetch fetch = [&](std::uint64_t from, std::uint64_t count, std::string& buffer, const core::Token&) {
    EXPECT_EQ(from, end);
    end = from + count;
    buffer.clear();
    for (std::uint64_t k = from; k < end; ++k) buffer += byte_at(k);
    return std::string_view(buffer);
  };
  core::Token progress;
  PickleBytes bytes(fetch, begin, n_bytes, "a: ", progress);
  std::uint64_t at = begin;
  for (const std::uint64_t count : {1, 40'000, 40'000, 1, 65'536, 200'000, 3, 70'000}) {
    const std::string_view taken = bytes.take(count);
    ASSERT_EQ(taken.size(), count);
    for (std::uint64_t k = 0; k < count; ++k) ASSERT_EQ(taken[k], byte_at(at + k)) << at + k;
    at += count;
    ASSERT_EQ(bytes.at(), at);
  }
  bytes.go_to(at + 5);
  EXPECT_EQ(bytes.take(1)[0], byte_at(at + 5));
  bytes.take(n_bytes - bytes.at());
  EXPECT_EQ(end, n_bytes);
}

TEST(PickleBytes, StopWhenThatIsAskedFor) {
  const Fetch fetch = [](std::uint64_t, std::uint64_t count, std::string& buffer, const core::Token&) {
    buffer.assign(count, 'a');
    return std::string_view(buffer);
  };
  core::Token progress;
  PickleBytes bytes(fetch, 0, 1'000'000, "a: ", progress);
  bytes.take(1);
  progress.stop();
  EXPECT_THROW(bytes.take(100'000), core::Stopped);
}

}  // namespace
}  // namespace core::formats::readers
