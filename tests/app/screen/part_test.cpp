#include "app/screen/part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace app::render {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool holds(const std::vector<Part>& parts, std::size_t row, std::size_t column) {
  for (const Part& p : parts)
    if (p.left <= column && column < p.right && p.top <= row && row < p.bottom) return true;
  return false;
}

TEST(Joined, MakesRowsAndColumnsOfTheGridOnePartEach) {
  const std::vector<bool> grid{false, true, false, false,  //
                               true,  true, true,  true,   //
                               false, true, false, false,  //
                               false, true, false, true};
  EXPECT_THAT(joined(grid, 4, 9),
              ElementsAre(Part{1, 0, 2, 1}, Part{0, 1, 4, 2}, Part{1, 2, 2, 4}, Part{3, 3, 4, 4}));
  EXPECT_THAT(joined(std::vector<bool>(12), 4, 9), IsEmpty());
}

TEST(Joined, HoldsAllThatIsSetHoweverFewPartsThereMayBe) {
  std::mt19937 random(5);
  constexpr std::size_t rows = 13, columns = 21;
  for (const std::size_t most : {1, 4, 30}) {
    std::vector<bool> grid(rows * columns);
    for (int k = 0; k < 40; ++k) grid[random() % grid.size()] = true;
    const std::vector<Part> parts = joined(grid, columns, most);
    EXPECT_LE(parts.size(), most);
    for (const Part& p : parts) EXPECT_TRUE(p.right <= columns && p.bottom <= rows);
    for (std::size_t i = 0; i < grid.size(); ++i)
      EXPECT_TRUE(!grid[i] || holds(parts, i / columns, i % columns)) << i;
  }
}

TEST(ChangedTiles, AreCutOffAtTheEdgesOfTheImage) {
  constexpr std::size_t tile = ChangedTiles::tile;
  ChangedTiles changed(2 * tile + 3, tile + 5);
  EXPECT_THAT(changed.parts(5), IsEmpty());
  changed.add(3, 2);
  changed.add(2 * tile + 1, tile + 4);
  EXPECT_THAT(changed.parts(5),
              ElementsAre(Part{0, 0, tile, tile}, Part{tile, 2 * tile, tile + 5, 2 * tile + 3}));
  EXPECT_THAT(changed.parts(1), ElementsAre(Part{0, 0, tile + 5, 2 * tile + 3}));
}

}  // namespace
}  // namespace app::render
