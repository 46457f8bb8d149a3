#include "app/disposal.hpp"

#include <gtest/gtest.h>

namespace app {
namespace {

/// Says in which thread it ended.
struct Ending {
  explicit Ending(std::thread::id& thread) : where(&thread) {}
  ~Ending() { *where = std::this_thread::get_id(); }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  std::thread::id* where;
};

const std::thread::id nowhere;

TEST(Disposal, EndsWhatItTakesBesideTheCaller) {
  std::thread::id where;
  Disposal disposal;
  disposal.take(std::make_unique<Ending>(where));
  disposal.wait();
  EXPECT_NE(where, nowhere);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Disposal, EndsWhatWasLeftToItAfterItsLastOwner) {
  std::thread::id where;
  Disposal disposal;
  std::shared_ptr<Ending> first = disposal.leave(std::make_unique<Ending>(where)), second = first;
  first.reset();
  disposal.wait();
  EXPECT_EQ(where, nowhere);
  second.reset();
  disposal.wait();
  EXPECT_NE(where, nowhere);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Disposal, HasEndedEverythingWhenItEnds) {
  std::thread::id where;
  { Disposal().take(std::make_unique<Ending>(where)); }
  EXPECT_NE(where, nowhere);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Disposal, LeavesToTheLastOwnerWhatOutlivesIt) {
  std::thread::id where;
  std::shared_ptr<Ending> ending = Disposal().leave(std::make_unique<Ending>(where));
  EXPECT_EQ(where, nowhere);
  ending.reset();
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Disposal, TakesWhatItLetsGoOfItself) {
  std::thread::id where;
  Disposal disposal;
  disposal.take(disposal.leave(std::make_unique<Ending>(where)));
  disposal.wait();
  EXPECT_NE(where, nowhere);
  EXPECT_NE(where, std::this_thread::get_id());
}

}  // namespace
}  // namespace app
