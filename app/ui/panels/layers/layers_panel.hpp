#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "core/model/full_model.hpp"

namespace app::panels {

/// Layout of the token labels along one side of a map: in alternating lanes, so that names of neighbors do
/// not overlap, or only every step-th of them.
struct TokenLabels {
  std::size_t lanes = 1;  ///< token i is in lane i mod lanes; lane 0 is next to the map
  std::size_t step = 1;   ///< 1: every token has a label
  float room = 0;         ///< from the map to the end of the last lane, in pixels; 0 for no labels
};

/// Sizes of the grid of maps, layers × heads, in pixels.
struct LayersTiling {
  float map = 64;             ///< a side of a map
  float gap = 8;              ///< between columns
  float labels = 76;          ///< of the layers, at the left
  TokenLabels rows, columns;  ///< of the first map of each layer, and of the maps of the first layer
  float header = 19;          ///< above a map: its name and role
  float bar_gap = 5, bar = 4, foot = 2;
  float top = 0;          ///< above the grid: the numbers of the heads, where maps are small
  bool is_small = false;  ///< roles are abbreviated, heads are numbered once at the top

  float column(std::size_t head) const { return labels + rows.room + static_cast<float>(head) * (map + gap); }
  float pitch() const { return header + map + bar_gap + bar + foot; }
  float first_row() const { return top + header + columns.room; }
  float width(std::size_t n_heads) const { return column(n_heads) - gap; }
  float height(std::size_t n_layers) const {
    return top + columns.room + static_cast<float>(n_layers) * pitch();
  }
};

/// Returns the tiling with the largest maps of n_tokens rows that fit a room: gaps shrink first, then maps.
/// Below a smallest size the grid scrolls.
LayersTiling tile_layers(const Metrics& metrics, ImVec2 room, std::size_t n_layers, std::size_t n_heads,
                         std::size_t n_tokens);

/// Draws the weights of one head with the names of its tokens, as large as that width allows; returns their
/// height in pixels.
float draw_named_head(const Frame& frame, std::size_t layer, std::size_t head, ImVec2 at, float width);

/// Draws every head of every layer of a whole model as a small map of its weights, and the logit lens of each
/// layer.
void draw_layers(const Frame& frame);

/// Text on which the role of a head was measured.
enum class RoleSource {
  texts,         ///< those of a scan
  model,         ///< random tokens that repeat
  before_edits,  ///< the same, before the head was edited
  prompt         ///< this prompt alone
};

/// Main role of a head.
struct HeadRole {
  std::string name;                  ///< "induction", "other" without a main role, "ablated"
  std::optional<double> share = {};  ///< of the weights
  RoleSource source = RoleSource::prompt;

  std::string words() const;  ///< "induction 0.91"
  std::string brief() const;  ///< "ind .91"
};

/// Returns the role over the texts of a scan, else that measured on random tokens where there is one, else
/// that on the prompt.
HeadRole role_of(const Frame& frame, std::size_t layer, std::size_t head);

/// Draws a role from a left end, or up to a right end: measured ones on a badge, those measured before an
/// edit in an outline. Shortens it to the room; returns its width.
float draw_role(const Frame& frame, const HeadRole& role, ImFont* font, float end, bool from_left,
                float middle, float room);

/// Draws the circuits of the selected head: what it reads from earlier heads, its pairs of tokens, and the
/// logit of the selected token by source token. Landmarks "circuits/…".
void draw_circuits(const Frame& frame, float width);

/// Returns the end of the scale of the maps of changes: the largest one of all heads of two prompts, else 1.
double largest_change(const Frame& frame);

/// Payload of a drag: layer and head, two numbers.
constexpr const char* dragged_head = "head";

/// Draws one head at the top left corner of its map: map, name, role, entropy and bar.
void draw_head_map(const Frame& frame, const LayersTiling& tiling, std::size_t layer, std::size_t head,
                   ImVec2 corner);

/// Draws the cells of one head alone, with the tooltip of the hovered one.
void draw_head_alone(const Frame& frame, const LayersTiling& tiling, std::size_t layer, std::size_t head,
                     ImVec2 corner);

/// Part of the logit of the chosen token, in the order of the residual stream.
struct StreamPart {
  std::string name;  ///< "heads 2"
  double value = 0;
  std::optional<StreamAddition> addition;  ///< nothing: of the embedding or the last norm
};

/// Returns the parts of the chosen token's logit, which is their sum; empty where it is no such sum.
std::vector<StreamPart> stream_parts(const Frame& frame);

/// Returns the end of the scale of the bars along the residual stream: a round number.
double stream_scale(std::span<const StreamPart> parts);

/// Returns whether an addition to the residual stream is worked out in the inspector.
bool is_selected(const Frame& frame, const StreamAddition& addition);

/// Adds commands that select it, or release it.
void select(const Frame& frame, const StreamAddition& addition);

/// Adds commands that pin a weight in Stages and show its sources.
void ask_sources(const Frame& frame, std::size_t layer, const CellRef& weight);

/// Draws the dots of a bar that is not computed, up to right.
void draw_dots(const Frame& frame, ImVec2 left_top, float right);

/// Whether there is a next token to show: a whole model that has read its prompt.
bool has_next_token(const Frame& frame);

/// Returns the height of the strip of the next token, in pixels; 0 without one.
float next_token_height(const Frame& frame);

/// Draws the next token, its probability now and before the edits: on top of the inspector of every view.
///
/// A click returns to the most probable token when another one is selected. Landmarks "next/token" and
/// "next/probability".
void draw_next_token(const Frame& frame);

/// Draws, for an audience, the lesson's step or the prompt, and the next token large.
void draw_presented_prediction(const Frame& frame);

/// Draws the most probable tokens as a table; a click selects one. Landmarks "next/<id>".
void draw_token_table(const Frame& frame, float width);

/// Wraps a text for a field that cannot wrap: a line that is too wide is broken at a space, which becomes
/// "\n"; line ends of the text become "\r\n". unwrap_lines() reverts it.
///
/// fits tells whether a line has room; a word without room is not broken.
std::string wrap_lines(const std::string& plain, const std::function<bool(const std::string& line)>& fits);

/// Returns the text of wrapped lines, or of a prefix of them.
std::string unwrap_lines(const std::string& lines);

/// Converts a position in the text to one in its wrapped lines, in bytes.
std::size_t wrapped_position(const std::string& lines, std::size_t text_position);

/// Draws the most probable tokens, the keys of the selected head, and its effect on the selected token.
void draw_selected_head(const Frame& frame);

/// Draws the left column of the Layers view: the model's sizes, prompt, selected layer and edits.
void draw_full_model(const Frame& frame);
/// Draws a line between two of its sections.
void draw_separator(const Frame& frame, float width);

/// Draws, in its place of sizes and prompt, two prompts, the watched answers, and what is patched. Landmarks
/// "prompts/…".
void draw_two_prompts(const Frame& frame, float width);
/// Draws the watched logit difference of two prompts, in place of the next token.
void draw_logit_difference(const Frame& frame);
/// Draws what each patch recovers, as maps. Landmarks "prompts/map/0/0", "prompts/mlp/…", "prompts/stream/…".
void draw_patch_maps(const Frame& frame, float width);

}  // namespace app::panels
