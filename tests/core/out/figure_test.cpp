#include "core/out/figure.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/base/color.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/error_of.hpp"

using namespace core::figures;
using core::attention::Model;
using core::attention::Stage;
using core::editing::find_preset;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

namespace {

Model preset(const char* name) {
  return find_preset(name)->make();
}

DisplayList drawn(const Model& model, const FigureOptions& options = {}) {
  return figure(model, core::attention::attend(model), options);
}

template <class Kind>
std::vector<Kind> all(const DisplayList& list) {
  std::vector<Kind> found;
  for (const Item& item : list.items)
    if (const auto* kind = std::get_if<Kind>(&item)) found.push_back(*kind);
  return found;
}

std::vector<std::string> words(const DisplayList& list) {
  std::vector<std::string> found;
  for (const TextLine& text : all<TextLine>(list)) {
    std::string line;
    for (const FontRun& run : text.runs) line += run.text;
    found.push_back(line);
  }
  return found;
}

std::size_t boxes_of(const DisplayList& list, core::color::Rgb color) {
  return static_cast<std::size_t>(
      std::ranges::count_if(all<FilledRect>(list), [&](const FilledRect& box) { return box.fill == color; }));
}

TEST(Figure, ShowsTokensNumbersFormulaAndShape) {
  const auto found = words(drawn(preset("chapter-dropped-weights")));
  EXPECT_THAT(found, Contains("Weightssoftmax of each row6×6"));
  EXPECT_THAT(found, Contains("journey").Times(2));  // its row and its column
  EXPECT_THAT(found, Contains("1"));                 // the first token attends only to itself
  EXPECT_THAT(found, Contains("0.5517"));            // printed in the chapter, second row
  EXPECT_THAT(found, Contains("masked"));
  EXPECT_THAT(words(drawn(preset("chapter-dropped-weights"), {.numbers = false})), Not(Contains("0.5517")));
}

TEST(Figure, HatchesExactlyTheHiddenCells) {
  const DisplayList list = drawn(preset("004-causal"));
  const auto hatches = all<HatchedRects>(list);
  ASSERT_EQ(hatches.size(), 2u);  // of the cells, and the sample below
  EXPECT_EQ(hatches[0].areas.size(), 15u);
}

TEST(Figure, ColorsACellByItsNumber) {
  const DisplayList list = drawn(preset("004-causal"));
  EXPECT_EQ(boxes_of(list, core::color::color_at(core::color::ColorMap::weights, false, 1)), 1u);
}

TEST(Figure, FollowsTheMapsAndTheRangeThatWereChosen) {
  const Model model = preset("004-causal");
  FigureOptions options;
  options.sequential = core::color::ColorMap::magma;
  const auto one = core::color::color_at(core::color::ColorMap::magma, false, 1);
  EXPECT_EQ(boxes_of(drawn(model, options), one), 1u);
  options.range = [](Stage, std::size_t) { return ColorRange{0, 0.25}; };
  const arma::mat weights = core::attention::attend(model).at(Stage::weights, 0);
  EXPECT_EQ(boxes_of(drawn(model, options), one), arma::accu(weights >= 0.25));
  EXPECT_THAT(words(drawn(model, options)), Contains("above the range"));
  EXPECT_THAT(words(drawn(model, options)), Contains("0.25"));
  options.stage = Stage::scores, options.diverging = core::color::ColorMap::red_blue;
  options.range = [](Stage, std::size_t) { return ColorRange{-100, 100, 0.001}; };
  EXPECT_THAT(words(drawn(model, options)), Contains("100"));
  EXPECT_THAT(words(drawn(model, options)), Contains("colors follow the logarithm"));
  EXPECT_EQ(
      boxes_of(drawn(model, options), core::color::color_at(core::color::ColorMap::red_blue, false, 0.5)), 0u)
      << "a logarithm lifts small numbers";
}

TEST(Figure, MarksDroppedWeightsOtherwiseThanZeros) {
  const Model model = preset("004-causal-dropout");
  const auto trace = core::attention::attend(model);
  FigureOptions options;
  options.stage = Stage::dropped_weights;
  const DisplayList list = figure(model, trace, options);
  const arma::mat dropped = trace.at(Stage::dropout_mask, 0), visible = trace.at(Stage::mask);
  const auto visible_and_dropped = arma::accu((dropped == 0) % (visible == 1));
  ASSERT_GT(visible_and_dropped, 0u);
  EXPECT_EQ(all<LineSegments>(list).front().ends.size(), 2 * visible_and_dropped);
  EXPECT_THAT(words(list), Contains("dropped"));
}

TEST(Figure, CrossesWhatIsNotANumber) {
  Model model = preset("004-causal");
  for (std::size_t j = 0; j < 6; ++j) model.mask.cells.push_back({0, j, false});
  const DisplayList list = drawn(model);
  EXPECT_THAT(words(list), Contains("NaN").Times(6));
  EXPECT_EQ(all<LineSegments>(list).front().ends.size(), 12u);
  EXPECT_THAT(words(list), Contains("switched by hand"));
}

TEST(Figure, OfAllHeadsGivesThemOneRange) {
  FigureOptions options;
  options.stage = Stage::scores, options.head.reset();
  const auto found = words(drawn(preset("multi-head"), options));
  EXPECT_THAT(found, Contains("head 0"));
  EXPECT_THAT(found, Contains("head 1"));
}

TEST(Figure, OfTheStripHasEveryStage) {
  FigureOptions options;
  options.stage.reset();
  const Model model = preset("004-renormalise");
  std::string everything;
  for (const std::string& line : words(drawn(model, options))) everything += line + "\n";
  for (const auto& stage : core::attention::stages())
    if (stage.present(model)) {
      EXPECT_THAT(everything, HasSubstr(stage.title));
    }
}

TEST(Figure, OfManyTokensIsOnePictureThatSaysWhatAPixelIs) {
  Model model;
  arma::mat x(1024, 2, arma::fill::zeros);
  x(0, 0) = 1;
  model.sequences = {{core::attention::numbered_tokens(1024), x}};
  const DisplayList list = drawn(model);
  ASSERT_EQ(all<PixelGrid>(list).size(), 2u);  // the cells, and the color bar
  EXPECT_EQ(all<PixelGrid>(list)[0].pixels.size(), 512u * 512u);
  EXPECT_THAT(words(list), Contains("1 pixel shows the largest of 2 × 2 cells"));
  EXPECT_LT(list.width, 900);
  model.dropout.rate = 0.5;
  model.dropout.training = true;
  EXPECT_THAT(words(drawn(model, {.stage = core::attention::Stage::dropout_mask})),
              Contains("1 pixel shows the mean of 2 × 2 cells"));
}

TEST(Figure, OfAHeadOrStageThatIsNotThereIsRefused) {
  FigureOptions options;
  options.head = 2;
  EXPECT_THAT(support::error_of([&] { drawn(preset("multi-head"), options); }),
              HasSubstr("head 2: the model has 2"));
  options.head = 0, options.stage = Stage::row_sums;
  EXPECT_THAT(support::error_of([&] { drawn(preset("multi-head"), options); }),
              HasSubstr("stage \"row_sums\""));
}

}  // namespace
