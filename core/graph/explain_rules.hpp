#pragma once

#include <array>
#include <span>
#include <string>

#include "core/graph/address.hpp"

/// How every cell is made, as one table; explanations, outlines and formulas are all read from it.
namespace core::explain {

/// What is done with the parts of a cell.
enum class Operation {
  given,           ///< typed in, read, drawn or ruled: no parts
  zero,            ///< 0 by a rule of the model
  copied,          ///< the one part
  dot_product,     ///< Σ first · second, and + third when it is there
  normed,          ///< the own number of the first part by what its row measures, times the second
  turned,          ///< first · cos − or + second · sin, by the angle of its position
  turned_product,  ///< the same of a dot product and that of the other column of its pair: a mistake
  scaled,          ///< the part by the scale
  capped,          ///< c·tanh(part ÷ c)
  sloped,          ///< −slope × distance; the part is the slope where the model has its own
  biased,          ///< first + second + third, as far as they are there
  masked,          ///< the first where the second is 1, else the fill of the mask's method
  masked_product,  ///< the same of the first times the third
  /// exp(own − max) / Σ exp(each − max) over the first part, or over it times the second; exp(sink − max)
  /// joins the sum when the third is there.
  softmax,
  product,  ///< first × second
  sum,      ///< Σ of the part
  quotient  ///< first ÷ second
};

/// Which cells of a source belong to cell (row, column) of a head; d_head columns of a projection are a
/// head's.
enum class Reach {
  nothing,
  same_cell,      ///< (row, column)
  row,            ///< the whole row of the query
  projected_row,  ///< the row of X that makes this row of this head
  key_row,        ///< the whole row of the key that the column stands for
  column,         ///< the whole column
  softmax_line,   ///< the whole row, or the whole column when the softmax runs over queries
  row_total,      ///< (row, 0)
  projection,     ///< the column of a learned matrix that makes this column of this head
  partner,        ///< (row, the other column of its pair)
  column_factor,  ///< (0, column)
  head_number,    ///< (0, head)
  bucket,         ///< (head, the bucket of the distance of query and key)
  banded_cell,    ///< the number of X that is split off to this place of this head
  merged_cell     ///< the cell of one head's contexts that the merge puts here
};

/// Which source a part means, as a model decides it.
enum class From {
  source,     ///< the one that is named
  chain_end,  ///< the last stage that its chain leads to: see last_stages()
  before,     ///< the stage of its chain that comes before the rule's
  memory      ///< the key embeddings where the model has them, else the one that is named
};

struct Part {
  Source source;
  Reach reach = Reach::nothing;
  From from = From::source;
};

/// What is worked out before a cell when it is explained.
enum class Before { nothing, first_part, largest_term };

/// One row of the table: a way in which cells of a stage are made.
struct Rule {
  Stage stage;
  Operation operation;
  /// Whether this cell is made this way; the first rule of its stage that applies is the one.
  bool (*applies)(const Model&, const Trace&, const CellAddress&);
  std::array<Part, 3> parts;
  Before before;
  const char* title;  ///< of its step: "Softmax"
  /// The formula of one cell in the field's notation; "_1" stands for a subscript 1.
  std::string (*formula)(const Model&, const Trace&, const CellAddress&);
};

/// The parts of a rule in a model, each from the source that it means there.
std::array<Part, 3> parts_of(const Model& model, const Rule& rule);

/// The whole table, in the order of the computation.
std::span<const Rule> rules();

/// How one cell is made; its stage must be present in the model.
const Rule& rule_for(const Model& model, const Trace& trace, const CellAddress& cell);

}  // namespace core::explain
