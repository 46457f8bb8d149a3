#include "app/screen/damage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace app::render {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool holds(const std::vector<Area>& parts, int row, int column) {
  for (const Area& p : parts)
    if (p.left <= column && column < p.right && p.top <= row && row < p.bottom) return true;
  return false;
}

TEST(Joined, MakesRowsAndColumnsOfTheGridOneAreaEach) {
  const std::vector<bool> grid{false, true, false, false,  //
                               true,  true, true,  true,   //
                               false, true, false, false,  //
                               false, true, false, true};
  EXPECT_THAT(joined(grid, 4, 9),
              ElementsAre(Area{1, 0, 2, 1}, Area{0, 1, 4, 2}, Area{1, 2, 2, 4}, Area{3, 3, 4, 4}));
  EXPECT_THAT(joined(std::vector<bool>(12), 4, 9), IsEmpty());
}

TEST(Joined, HoldsAllThatIsSetHoweverFewAreasThereMayBe) {
  std::mt19937 random(5);
  constexpr int rows = 13, columns = 21;
  for (const std::size_t most : {1u, 4u, 30u}) {
    std::vector<bool> grid(rows * columns);
    for (int k = 0; k < 40; ++k) grid[random() % grid.size()] = true;
    const std::vector<Area> parts = joined(grid, columns, most);
    EXPECT_LE(parts.size(), most);
    for (const Area& p : parts) EXPECT_TRUE(p.right <= columns && p.bottom <= rows);
    for (int i = 0; i < rows * columns; ++i)
      EXPECT_TRUE(!grid[static_cast<std::size_t>(i)] || holds(parts, i / columns, i % columns)) << i;
  }
}

}  // namespace
}  // namespace app::render
