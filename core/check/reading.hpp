#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/check/layouts.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"

namespace core::check {

using attention::Model;
using attention::Stage;

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

/// Whether two readings take the same numbers for the same stage.
bool same_numbers(const Reading& a, const Reading& b);

/// A tensor that belongs to a stage of the model.
struct Theirs {
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
void mark_masked(Theirs& theirs);

/// The lengths that a stage of a model has; heads are groups where these have a matrix each.
struct Lengths {
  std::size_t sequences, heads, rows, columns;
};
Lengths lengths_of(const Model& model, Stage stage);

/// Whether heads share the matrices of a stage, so that a tensor may have one for each group or each head.
bool is_of_groups(const Model& model, Stage stage);

/// The letters of the layouts in which a stage of so many heads is looked for, as those of Layout; 1 is a one
/// and q heads of all sequences in a row.
std::vector<std::string_view> letters_of(const Model& model, Stage stage, std::size_t n_heads, bool one_head);

/// Whether each head of a model without groups has the same keys, or values, as the first of its group.
bool heads_repeat(const Model& model, Stage stage, std::size_t group);

}  // namespace core::check
