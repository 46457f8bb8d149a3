#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"

namespace core::check {

using attention::Model;
using attention::Stage;

/// A way in which the features of heads stand in a tensor, by the names of its axes.
struct Layout {
  const char* name;     ///< "bthd"
  const char* letters;  ///< of its axes: s sequence, h head, r row, c column, j the columns of all heads
  const char* about;    ///< "heads after tokens"
};

/// Those that a person can ask for; queries, keys, values and contexts are then read in that one alone.
std::span<const Layout> layouts();

/// The layout of that name, or nullptr.
const Layout* find_layout(std::string_view name);

/// How the layout of a tensor is called.
struct ReadingWords {
  std::string words = {};  ///< "[T, H·d]", "[H/2, T, d], groups of 2 heads"
  bool is_plain = true;    ///< it is the layout in which attnscope itself writes, which goes without words
  bool is_mean = false;    ///< it is the mean over all heads, in one matrix
  bool is_masked = false;  ///< its scores were masked before they were scaled
};

/// One way to read a tensor: as which stage, and where its numbers stand.
struct Reading {
  Stage stage = Stage::weights;
  std::size_t first_sequence = 0, n_sequences = 1, first_head = 0, n_heads = 1, n_rows = 0, n_columns = 0;
  std::size_t per_sequence = 0, per_head = 0, per_row = 0, per_column = 0;  ///< strides, in numbers
  bool joined = false;     ///< the features of all heads in one matrix, as a projection gives them
  std::size_t group = 1;   ///< how many heads of the model each of the tensor's stands for
  bool of_groups = false;  ///< its heads are the groups of a model whose heads share keys and values
  ReadingWords layout = {};

  std::size_t at(std::size_t sequence, std::size_t head, std::size_t row, std::size_t column) const {
    return sequence * per_sequence + head / group * per_head + row * per_row + column * per_column;
  }
};

/// A tensor that belongs to a stage of the model.
struct Observed {
  std::string name;  ///< as in the file
  formats::Tensor tensor;
  formats::Dtype rounding =
      formats::Dtype::f64;        ///< what its numbers were rounded to, by its type or by themselves
  std::vector<Reading> readings;  ///< the likeliest first; none when its shape fits no stage that it can be
  std::string obstacle;           ///< why there is none: "expected [2, 6, 6], got [6, 5]"
  Stage stage = Stage::weights;   ///< the one that its name says first
};

/// The ways in which a tensor of that shape can be that stage of the model, the plainest first.
///
/// One sequence without a dimension of its own is the given one; ones in front of a shape count for nothing.
/// Keys and values of groups of heads are one for each group, or repeated for each head; of a model without
/// groups they may have fewer heads where its own repeat. A layout is the only one in which features of heads
/// are read. Weights that have no heads, and fit in no other way, are the mean over them.
std::vector<Reading> readings_of(const Model& model, Stage stage, const formats::Shape& shape,
                                 std::size_t sequence, std::optional<std::size_t> head,
                                 const Layout* layout = nullptr);

/// Reads scores of which some are −∞ as masked before the scale: that gives the same weights, and classes do
/// it that scale within the call of the softmax.
void mark_masked(Observed& observed);

/// The ways in which a tensor of that name and shape is a stage of a model that was not foreseen; stage is
/// the one that it is taken for.
std::vector<Reading> readings_in(const Model& other, std::string_view name, Stage stage,
                                 const formats::Shape& shape);

/// A tensor's name taken apart: "sequence1/weights.head0" is "weights", of sequence 1, head 0.
struct Name {
  std::string base;
  std::optional<std::size_t> sequence, head;
};
Name split_name(std::string_view name);

/// What a name can mean.
struct Meaning {
  std::vector<Stage> stages;  ///< the likeliest first; empty when the name says nothing
  bool certain = false;       ///< it is the name of a stage in attnscope itself
};

/// The stages that people call so, in any case of letters: "attn_weights", "Q", "layer.context_vec".
Meaning meaning_of(std::string_view base);

/// What of a pass through a whole model a name can mean besides: what enters a layer, what leaves it, what
/// leaves the last one after its norm, or the scores of tokens.
enum class Held { nothing, entering, leaving, normed, logits };
/// Of "hidden_states", "model.my_hidden_states", "hook_resid_post", "logits", in any case of letters.
Held held_by(std::string_view base);

/// A name without a number in it, as of a layer: "attn_weights.3", "layer3_attn", "attn_layer_3".
struct WithoutNumber {
  std::string base, number;
  bool is_parted = false;  ///< by a joint or a word, so that "x2" is not
  std::string behind;      ///< what follows the number: "attn" of "layer3_attn"
};
/// For each number in a name, from left to right.
std::vector<WithoutNumber> without_numbers(const std::string& name);

/// All that the name of a tensor says.
struct ParsedName {
  Name parts;
  Meaning meaning;    ///< without stages when it says none
  std::string layer;  ///< "model.layers.3", "3", or ""
  std::string own;    ///< what of it is not the layer's: "q"
};
ParsedName parse_name(std::string_view name);

/// How a person wants a file of tensors to be read.
struct MatchOptions {
  std::size_t sequence = 0;        ///< that tensors without a dimension for sequences are
  const Layout* layout = nullptr;  ///< of the features of heads, or nullptr for whichever fits
  std::string layer = {};          ///< by number from 0 or by name; empty is the first
};

/// Tensors that were not compared, and why.
struct LeftOut {
  std::string tensors, why;
  std::string words() const { return tensors + ": " + why; }
};

/// What of a file was taken for which stage.
struct Matched {
  std::vector<Observed>
      observed;  ///< without readings and numbers those whose name is a stage and whose shape is not
  std::vector<LeftOut> left_out;    ///< they say nothing, or are of another layer
  std::vector<std::string> layers;  ///< the names of those in the file, or as many ""; fewer than two: none
  std::size_t layer = 0;            ///< the one of them that was taken
  bool is_first_of_axis = false;    ///< of several that a first axis counts the first, as none was asked for
};

/// Matches tensors to stages of a model by their names and shapes.
///
/// by_hand gives the stage of a name; "" leaves the tensor out. Of several layers, told apart by names or as
/// a first axis, one is taken. Throws core::Error when no tensor has the name of a stage, by_hand names a
/// tensor that is not there, there is no such layer, or the file cannot be read; Stopped
/// when that was asked for.
Matched match(const Model& model, const formats::TensorFile& file,
              const std::map<std::string, std::string>& by_hand, const MatchOptions& options = {},
              const core::Token& progress = core::Token());

/// "layer 3 of 12": which of a file's layers was taken, or "" where there is but one.
std::string layer_words(const Matched& matched);

}  // namespace core::check
