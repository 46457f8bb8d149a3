#include "app/screen/damage.hpp"

#include <gmock/gmock.h>

#include <random>

#include "app/theme/imgui_compat.hpp"

namespace app::render {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int width = 640, height = 384;  // ten tiles by six
const Damage::TextureVersion unchanged = [](std::uint64_t, const UvRect&) { return 1; };

class DamageOfFrames : public testing::Test {
 protected:
  DamageOfFrames() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {width, height};
    unsigned char* pixels = nullptr;
    int columns = 0, rows = 0;
    io.Fonts->GetTexDataAsRGBA32(&pixels, &columns, &rows);
  }
  ~DamageOfFrames() override { ImGui::DestroyContext(); }
  DamageOfFrames(const DamageOfFrames&) = delete;
  DamageOfFrames& operator=(const DamageOfFrames&) = delete;

  template <class Draw>
  std::vector<ScreenRect> frame(Draw draw, const Damage::TextureVersion& version = unchanged) {
    ImGui::NewFrame();
    draw(*ImGui::GetBackgroundDrawList());
    ImGui::Render();
    return damage.update(*ImGui::GetDrawData(), version);
  }

  Damage damage;
};

void nothing(ImDrawList&) {}
void red(ImDrawList& list) {
  list.AddRectFilled({70, 70}, {90, 90}, IM_COL32(255, 0, 0, 255));
}
void green(ImDrawList& list) {
  list.AddRectFilled({70, 70}, {90, 90}, IM_COL32(0, 255, 0, 255));
}
void wide(ImDrawList& list) {
  list.AddRectFilled({10, 130}, {200, 200}, IM_COL32(0, 0, 255, 255));
}

TEST_F(DamageOfFrames, IsEverythingAtFirstAndOnceItWasForgotten) {
  EXPECT_THAT(frame(red), ElementsAre(ScreenRect{0, 0, width, height}));
  EXPECT_THAT(frame(red), IsEmpty());
  damage.invalidate();
  EXPECT_THAT(frame(red), ElementsAre(ScreenRect{0, 0, width, height}));
}

TEST_F(DamageOfFrames, IsWhereSomethingWasAndWhereItIs) {
  frame(red);
  EXPECT_THAT(frame(green), ElementsAre(ScreenRect{64, 64, 128, 128}));
  EXPECT_THAT(frame(nothing), ElementsAre(ScreenRect{64, 64, 128, 128}));
  EXPECT_THAT(frame(wide), ElementsAre(ScreenRect{0, 128, 256, 256}));
  EXPECT_THAT(frame([](ImDrawList& list) { red(list), wide(list); }),
              ElementsAre(ScreenRect{64, 64, 128, 128}))
      << "what comes later in the list is left alone";
}

TEST_F(DamageOfFrames, SeesWhichOfTwoLiesAbove) {
  frame([](ImDrawList& list) { red(list), green(list); });
  EXPECT_THAT(frame([](ImDrawList& list) { green(list), red(list); }),
              ElementsAre(ScreenRect{64, 64, 128, 128}));
}

TEST_F(DamageOfFrames, EndsWhereTheListIsCutOff) {
  const auto cut = [](ImU32 color) {
    return [color](ImDrawList& list) {
      list.PushClipRect({300, 70}, {310, 80});
      list.AddRectFilled({0, 0}, {width, height}, color);
      list.PopClipRect();
    };
  };
  frame(cut(IM_COL32(1, 2, 3, 255)));
  EXPECT_THAT(frame(cut(IM_COL32(3, 2, 1, 255))), ElementsAre(ScreenRect{256, 64, 320, 128}));
}

TEST_F(DamageOfFrames, IsInTheRowsInWhichATextureHasOtherPixels) {
  const ImTextureID texture = platform::texture_id(7);
  const auto picture = [texture](ImDrawList& list) { list.AddImage(texture, {70, 40}, {90, 340}); };
  frame(picture);
  // The upper half ends at 190, in the third row of tiles, the lower one at 340, in the sixth.
  const auto upper = [](std::uint64_t, const UvRect& part) { return part.top < 0.5f ? 2 : 1; };
  EXPECT_THAT(frame(picture, upper), ElementsAre(ScreenRect{64, 0, 128, 192}));
  const auto last = [](std::uint64_t, const UvRect& part) {
    return part.bottom > 0.9f ? 3 : part.top < 0.5f ? 2 : 1;
  };
  EXPECT_THAT(frame(picture, last), ElementsAre(ScreenRect{64, 256, 128, 384}));
}

TEST_F(DamageOfFrames, IsInTheTilesInWhichATextureHasOtherPixels) {
  const ImTextureID texture = platform::texture_id(7);
  const auto picture = [texture](ImDrawList& list) { list.AddImage(texture, {0, 0}, {320, 320}); };
  frame(picture);
  // A row of pixels and a column of pixels, as after the edit of a token.
  const auto cross = [](std::uint64_t, const UvRect& part) {
    const bool row = part.top <= 0.5f && 0.5f < part.bottom, column = part.left <= 0.1f && 0.1f < part.right;
    return row || column ? 2 : 1;
  };
  EXPECT_THAT(frame(picture, cross), ElementsAre(ScreenRect{0, 0, 64, 128}, ScreenRect{0, 128, 320, 192},
                                                 ScreenRect{0, 192, 64, 320}));
}

TEST_F(DamageOfFrames, IsAllOfATextureThatDoesNotStandUpright) {
  const ImTextureID texture = platform::texture_id(7);
  const auto picture = [texture](ImDrawList& list) {
    list.AddImageQuad(texture, {70, 40}, {90, 40}, {90, 340}, {70, 340}, {0, 0}, {0, 1}, {1, 1}, {1, 0});
  };
  frame(picture);
  EXPECT_THAT(frame(picture, [](std::uint64_t, const UvRect& part) { return part.bottom > 0.9f ? 2 : 1; }),
              ElementsAre(ScreenRect{64, 0, 128, 384}));
}

TEST_F(DamageOfFrames, IsEverythingWhenMostOfItDiffers) {
  frame(nothing);
  EXPECT_THAT(frame([](ImDrawList& list) {
                list.AddRectFilled({0, 0}, {width, 300}, IM_COL32(9, 9, 9, 255));
              }),
              ElementsAre(ScreenRect{0, 0, width, height}));
}

TEST_F(DamageOfFrames, EndsAtTheEdgeOfAWindowThatIsNoWholeNumberOfTiles) {
  ImGui::GetIO().DisplaySize = {100, 50};
  EXPECT_THAT(frame(nothing), ElementsAre(ScreenRect{0, 0, 100, 50}));
}

TEST_F(DamageOfFrames, KeepsOfTheListsWhatTouchesTheAreas) {
  frame([](ImDrawList& list) { red(list), wide(list); });
  ImDrawData& data = *ImGui::GetDrawData();
  clip_to_areas(data, {{0, 128, 128, 192}});
  int triangles = 0;
  for (int l = 0; l < data.CmdListsCount; ++l)
    for (const ImDrawCmd& command : data.CmdLists[l]->CmdBuffer) {
      triangles += static_cast<int>(command.ElemCount) / 3;
      EXPECT_GE(command.ClipRect.x, 0);
      EXPECT_GE(command.ClipRect.y, 128);
      EXPECT_LE(command.ClipRect.z, 128);
      EXPECT_LE(command.ClipRect.w, 192);
    }
  EXPECT_EQ(triangles, 2);  // only of the wide rectangle
}

bool holds(const std::vector<ScreenRect>& parts, int row, int column) {
  for (const ScreenRect& p : parts)
    if (p.left <= column && column < p.right && p.top <= row && row < p.bottom) return true;
  return false;
}

TEST(Joined, MakesRowsAndColumnsOfTheGridOneAreaEach) {
  const std::vector<bool> grid{false, true, false, false,  //
                               true,  true, true,  true,   //
                               false, true, false, false,  //
                               false, true, false, true};
  EXPECT_THAT(covering_areas(grid, 4, 9), ElementsAre(ScreenRect{1, 0, 2, 1}, ScreenRect{0, 1, 4, 2},
                                                      ScreenRect{1, 2, 2, 4}, ScreenRect{3, 3, 4, 4}));
  EXPECT_THAT(covering_areas(std::vector<bool>(12), 4, 9), IsEmpty());
}

TEST(Joined, HoldsAllThatIsSetHoweverFewAreasThereMayBe) {
  std::mt19937 random(5);
  constexpr int rows = 13, columns = 21;
  for (const std::size_t most : {1u, 4u, 30u}) {
    std::vector<bool> grid(rows * columns);
    for (int k = 0; k < 40; ++k) grid[random() % grid.size()] = true;
    const std::vector<ScreenRect> parts = covering_areas(grid, columns, most);
    EXPECT_LE(parts.size(), most);
    for (const ScreenRect& p : parts) EXPECT_TRUE(p.right <= columns && p.bottom <= rows);
    for (int i = 0; i < rows * columns; ++i)
      EXPECT_TRUE(!grid[static_cast<std::size_t>(i)] || holds(parts, i / columns, i % columns)) << i;
  }
}

}  // namespace
}  // namespace app::render
