#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {

/// A stage's title as an item of that name: explained on hover, a press shows the stage alone, or the strip
/// again.
void draw_stage_title(const Frame& frame, const std::string& name, Stage stage, ImFont* font,
                      ImVec2 left_top);

/// What can be done with the stage whose heatmap was drawn last: a double click shows it alone, or the strip
/// again.
void handle_stage(const Frame& frame, Stage stage);

/// One stage of the strip with its place relative to the strip's corner.
struct StripMap {
  widgets::Heatmap map;
  ImVec2 title, labels;  ///< top left of the title's text and of the labels above the picture
  float width = 0;       ///< with labels and bar
};

/// A row of maps; a line of the strip may need several.
struct StripRow {
  int line = 1;       ///< 1 … 4
  bool first = true;  ///< whether the line's heading stands above it
  float heading = 0;  ///< y of the heading, or of the return arrow
  float top = 0, bottom = 0;
  std::vector<StripMap> maps;
};

/// The way from the dropout mask's title to many masks.
constexpr const char* laboratory_link = "laboratory";

/// Whose numbers a stage shows when heads share them: "group 0 (heads 0, 1)"; else "".
std::string group_words(const Frame& frame, Stage stage);

/// Places all visible stages into the given width; cells grow until the strip fills width and height.
std::vector<StripRow> lay_out_strip(const Frame& frame, float width, float height);

/// A stage of the strip before it has a place: what it needs around its cells, and how wide they must be.
struct StripBlock {
  const core::attention::StageInfo* stage = nullptr;
  std::size_t rows = 0, columns = 0;
  bool square = false;               ///< a column a token
  bool picture = false;              ///< has more cells than can hold numbers
  std::array<float, 5> narrowest{};  ///< width of a cell that shows up to 0 … 4 decimals
  float names = 0, indices = 0;      ///< room for the rows' names with indices, and for indices alone
  float indices_alone = 0;           ///< likewise, of the first map of a row
  bool own_names = false;            ///< its rows are other tokens than those of the map before
  float around = 0;                  ///< a bar and gutters beside the cells
  float title = 0;                   ///< width of the words above
  float largest = 0;                 ///< side of a picture
  bool starts_row = false;           ///< even where there is room in the row before
};

/// How the cells of one line of the strip are made.
struct LineCells {
  int decimals = 2;    ///< at most
  bool named = false;  ///< tokens stand beside every map, not only beside the first of a row
  float width = 0;     ///< of cells, more where numbers need it
};

/// The stages that are present and not folded away, by line.
std::array<std::vector<StripBlock>, 4> strip_blocks(const Frame& frame, float width);

/// The width of a cell of a block in its line.
float cell_width(const StripBlock& block, const LineCells& cells);
/// The width of a picture in pixels, and of the block with all that stands beside it.
int picture_width(const Frame& frame, const StripBlock& block, const LineCells& cells, float room);
float row_label_room(const StripBlock& block, const LineCells& cells, bool first_of_row, float picture,
                     float room);
float block_width(const Frame& frame, const StripBlock& block, const LineCells& cells, bool first_of_row,
                  float room);

/// The height of its cells together, each of that height, or of a picture of more of them.
int picture_height(const Frame& frame, const StripBlock& block, float cell);
/// Whether the color bar stands beside the cells and not below them.
bool has_bar_beside(const StripBlock& block);

/// The least room between two maps of a line.
float gap_in_line(const Frame& frame, int line, bool after_embeddings);

/// The first block of every row of a line in that width.
std::vector<std::size_t> row_starts(const Frame& frame, const std::vector<StripBlock>& line,
                                    const LineCells& cells, float width);

/// The cells of every line in that width: first two decimals at least, then names, then width.
///
/// A wider strip never has fewer decimals: they are those with which the maps that make a row, up to 24
/// columns of tokens or 12 of features, stand beside each other.
std::array<LineCells, 4> choose_cells(const Frame& frame, const std::array<std::vector<StripBlock>, 4>& lines,
                                      float width);

/// The strip: every stage of the chosen head in four lines that read like text.
void draw_stages(const Frame& frame);

}  // namespace app::panels
