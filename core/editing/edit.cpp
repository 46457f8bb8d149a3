#include "core/editing/edit.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::editing {
namespace {

// Each change() edits a copy of a valid model in place. It throws core::Error for errors that only it can
// detect, and before it allocates for a size beyond the limits; apply() checks the result with
// attention::check().

using attention::Additions;
using attention::Columns;
using attention::GivenCell;
using attention::Linear;
using attention::Mask;
using attention::MaskCell;
using attention::Model;
using attention::Projections;
using attention::RowTokens;
using attention::Sequence;
using attention::SharedMatrix;
using attention::Stage;
using std::to_string;

/// Throws core::Error with the path and the message.
[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw Error(path + ": " + message);
}

/// Throws core::Error unless index < count; things names the counted objects, in the plural.
void require_index(const std::string& path, std::size_t index, std::size_t count, const char* things) {
  if (index >= count)
    fail(fmt::format("{}[{}]", path, index), fmt::format("there are only {} {}", count, things));
}

/// Throws core::Error unless the resized model is within the limits, before anything is allocated.
template <class Resize>
void require_resizable(const Model& model, Resize resize) {
  attention::ModelSize size = model_size(model);
  resize(size);
  require_size(size);
}

/// Resizes a matrix: keeps its top left corner and fills new cells.
void resize(SharedMatrix& matrix, std::size_t n_rows, std::size_t n_columns, double fill = 0) {
  const arma::mat& old = matrix;
  if (old.n_rows == n_rows && old.n_cols == n_columns) return;
  arma::mat fitted(n_rows, n_columns, arma::fill::value(fill));
  const std::size_t rows = std::min<std::size_t>(n_rows, old.n_rows),
                    columns = std::min<std::size_t>(n_columns, old.n_cols);
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < rows; ++i) fitted(i, j) = old(i, j);
  matrix = std::move(fitted);
}

/// Returns columns of keys or values for other KV heads: the mean of those that their heads used before.
SharedMatrix averaged_kv_columns(const arma::mat& columns, const Model& before, const Model& after) {
  const std::size_t d_head = before.d_out() / before.n_heads;
  arma::mat result(columns.n_rows, after.kv_heads() * d_head, arma::fill::zeros);
  const double heads_per_kv_head = static_cast<double>(before.n_heads / after.kv_heads());
  for (std::size_t h = 0; h < before.n_heads; ++h)
    for (std::size_t k = 0; k < d_head; ++k)
      result.col(after.kv_head_of(h) * d_head + k) +=
          columns.col(before.kv_head_of(h) * d_head + k) / heads_per_kv_head;
  return result;
}

void fit_norm(Model& model) {
  auto& norm = model.additions.normalize;
  if (!norm) return;
  resize(norm->query, 1, norm->n_factors(model.n_heads, model.d_head()), 1);
  resize(norm->key, 1, norm->n_factors(model.kv_heads(), model.d_head()), 1);
}

void fit_positions(Model& model) {
  auto& [rotary, alibi, relative] = model.additions.positions;
  if (rotary) {
    if (rotary->dimensions && *rotary->dimensions > model.d_head()) rotary->dimensions.reset();
    if (rotary->inverse_frequencies)
      resize(*rotary->inverse_frequencies, 1, rotated_columns(*rotary, model.d_head()) / 2);
    if (auto& factors = rotary->scaling.factors)
      resize(*factors, 2, rotated_columns(*rotary, model.d_head()) / 2, 1);
  }
  if (alibi && alibi->slopes) resize(*alibi->slopes, 1, model.n_heads);
  if (relative) resize(relative->table, model.n_heads, relative->table.n_cols());
}

/// Fits the additions to the model's shape; new numbers have no effect (1 as a factor, else 0).
void fit_additions(Model& model) {
  Additions& a = model.additions;
  if (a == Additions()) return;
  fit_norm(model);
  fit_positions(model);
  if (a.sink) resize(*a.sink, 1, model.n_heads);
  if (a.score_bias.size() > 1) a.score_bias.resize(model.n_heads);
  for (SharedMatrix& bias : a.score_bias) resize(bias, model.n_tokens(), model.n_keys());
}

/// Removes mask cells that agree with the rules.
void remove_redundant_cells(Model& model) {
  if (model.mask.cells.empty()) return;
  std::vector<attention::SequenceMask> sequences;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) sequences.emplace_back(model, s);
  std::erase_if(model.mask.cells, [&](const MaskCell& c) {
    return std::ranges::all_of(sequences, [&](const attention::SequenceMask& sequence_mask) {
      return sequence_mask.by_rules(c.row, c.column).visible == c.visible;
    });
  });
}

// Numbers of a matrix.

std::string path(const attention::Model& model, MatrixRef place) {
  const bool is_batch =
      place.name <= MatrixName::key_embeddings && (model.sequences.size() > 1 || place.nth > 0);
  const bool of_head = place.name == MatrixName::score_bias && model.additions.score_bias.size() > 1;
  return path_of(place.name) + (is_batch || of_head ? fmt::format("[{}]", place.nth) : "");
}

std::string cell_path(const std::string& matrix, std::size_t row, std::size_t column) {
  return fmt::format("{}[{}][{}]", matrix, row, column);
}

SharedMatrix& require_matrix(attention::Model& model, MatrixRef place) {
  SharedMatrix* found = find_matrix(model, place);
  if (!found) fail(path(model, place), "the model has no such matrix");
  return *found;
}

/// Throws unless a block of that many rows and columns fits at (row, column).
void require_fit(const std::string& matrix, const SharedMatrix& m, std::size_t row, std::size_t column,
                 std::size_t n_rows, std::size_t n_columns) {
  if (row <= m.n_rows() && n_rows <= m.n_rows() - row && column <= m.n_cols() &&
      n_columns <= m.n_cols() - column)
    return;
  fail(cell_path(matrix, row, column), text::shape_text(n_rows, n_columns) +
                                           " numbers do not fit there, the matrix is " +
                                           text::shape_text(m.n_rows(), m.n_cols()));
}

void require_finite(const std::string& matrix, std::size_t row, std::size_t column, double value) {
  if (!std::isfinite(value)) fail(cell_path(matrix, row, column), "expected a finite number");
}

void change(Model& model, const SetCell& edit) {
  SharedMatrix& m = require_matrix(model, edit.place);
  const std::string matrix = path(model, edit.place);
  require_fit(matrix, m, edit.row, edit.column, 1, 1);
  require_finite(matrix, edit.row, edit.column, edit.value);
  if (!attention::same_bits(m.at(edit.row, edit.column), edit.value))
    m.set(edit.row, edit.column, edit.value);
}

void change(Model& model, const SetBlock& edit) {
  SharedMatrix& m = require_matrix(model, edit.place);
  const std::string matrix = path(model, edit.place);
  const arma::mat& block = edit.values;
  require_fit(matrix, m, edit.row, edit.column, block.n_rows, block.n_cols);
  for (std::size_t i = 0; i < block.n_rows; ++i)
    for (std::size_t j = 0; j < block.n_cols; ++j)
      require_finite(matrix, edit.row + i, edit.column + j, block(i, j));
  if (!block.is_empty()) m.edit().submat(edit.row, edit.column, arma::size(block)) = block;
}

// Tokens and sequences: everything with a row or column per token follows its tokens.

/// Source of each new row: an old row, or fresh for a new token.
using RowOrder = std::vector<std::size_t>;
constexpr std::size_t new_row = std::numeric_limits<std::size_t>::max();

RowOrder identity_order(std::size_t n) {
  RowOrder order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

arma::mat reordered(const arma::mat& old, const RowOrder& rows, const RowOrder& columns, double fill) {
  arma::mat m(rows.size(), columns.size());
  for (std::size_t j = 0; j < columns.size(); ++j)
    for (std::size_t i = 0; i < rows.size(); ++i)
      m(i, j) = rows[i] == new_row || columns[j] == new_row ? fill : old(rows[i], columns[j]);
  return m;
}

std::vector<std::string> reordered(const std::vector<std::string>& old, const RowOrder& order,
                                   const std::string& name) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < order.size(); ++i)
    tokens.push_back(order[i] != new_row ? old[order[i]] : name.empty() ? std::to_string(i) : name);
  return tokens;
}

std::span<SharedMatrix> given_masks(Model& model, std::size_t sequence) {
  if (model.dropout.given.empty()) return {};
  return std::span(model.dropout.given).subspan(sequence * model.n_heads, model.n_heads);
}

/// Returns the new row of each old token; fresh if it is removed.
RowOrder new_positions(const RowOrder& order, std::size_t n_tokens) {
  RowOrder place(n_tokens, new_row);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != new_row) place[order[i]] = i;
  return place;
}

void rearrange_given(Model& model, std::size_t s, const RowOrder& order, const RowOrder& keys) {
  for (attention::GivenStage& given : model.given.stages) {
    const attention::StageInfo& stage = info(given.stage);
    const std::size_t n_heads = n_matrices(model, given.stage);
    const double fill = given.stage == attention::Stage::dropout_mask ? 1 : 0;
    for (SharedMatrix& m : std::span(given.matrices).subspan(s * n_heads, n_heads))
      m = reordered(m, stage.rows == RowTokens::keys ? keys : order,
                    stage.columns == Columns::tokens ? keys : identity_order(m->n_cols), fill);
  }
}

void rearrange_overrides(Model& model, std::size_t s, const RowOrder& row_positions,
                         const RowOrder& key_positions) {
  auto& cells = model.given.cells;
  const auto moved = [&](attention::GivenCellAddress& p) {
    if (p.sequence != s) return true;
    const attention::StageInfo& stage = info(p.stage);
    p.row = (stage.rows == RowTokens::keys ? key_positions : row_positions)[p.row];
    if (stage.columns == Columns::tokens) p.column = key_positions[p.column];
    return p.row != new_row && p.column != new_row;
  };
  std::erase_if(cells, [&](attention::GivenCell& c) { return !moved(c.place); });
  std::ranges::sort(cells, {}, &attention::GivenCell::place);
}

/// Returns the order of the keys for an order of the tokens: the same, except in cross-attention.
RowOrder key_order(const Model& model, const RowOrder& order) {
  return model.sequences.front().key_tokens.empty() ? order : identity_order(model.n_keys());
}

/// Moves the padding mask with its keys; a new key is not padding.
void rearrange_padding(Model& model, std::size_t s, const RowOrder& key_positions) {
  if (model.mask.hidden_keys.empty()) return;
  auto& keys = model.mask.hidden_keys[s];
  for (std::size_t& key : keys) key = key_positions[key];
  std::erase(keys, new_row);
  std::ranges::sort(keys);
}

void rearrange_sequence(Model& model, std::size_t s, const RowOrder& order, const std::string& name) {
  const RowOrder keys = key_order(model, order);
  const RowOrder row_positions = new_positions(order, model.sequences[s].tokens.size());
  const RowOrder& key_positions = model.sequences[s].key_tokens.empty() ? row_positions : keys;
  rearrange_overrides(model, s, row_positions, key_positions);
  rearrange_padding(model, s, key_positions);
  rearrange_given(model, s, order, keys);
  Sequence& sequence = model.sequences[s];
  sequence.embeddings = reordered(sequence.embeddings, order, identity_order(sequence.embeddings->n_cols), 0);
  sequence.tokens = reordered(sequence.tokens, order, name);
  for (SharedMatrix& mask : given_masks(model, s)) mask = reordered(mask, order, keys, 1);
}

/// Moves document IDs with their tokens; a new token gets that of the token before it.
void rearrange_documents(Model& model, const RowOrder& order) {
  const std::vector<std::size_t> old = std::exchange(model.mask.documents, {});
  if (old.empty()) return;
  for (const std::size_t from : order) {
    auto& documents = model.mask.documents;
    documents.push_back(from != new_row ? old[from] : documents.empty() ? old.front() : documents.back());
  }
}

void rearrange_mask(Model& model, const RowOrder& order, std::size_t n_tokens) {
  const RowOrder row_positions = new_positions(order, n_tokens);
  const bool same = model.sequences.front().key_tokens.empty();
  rearrange_documents(model, order);
  auto& cells = model.mask.cells;
  for (MaskCell& cell : cells)
    cell = {row_positions[cell.row], same ? row_positions[cell.column] : cell.column, cell.visible};
  std::erase_if(cells, [](const MaskCell& c) { return c.row == new_row || c.column == new_row; });
  std::ranges::sort(cells);
  trim_mask(model);
  remove_redundant_cells(model);
}

void rearrange_all(Model& model, const RowOrder& order, const std::string& name = {}) {
  const std::size_t n_tokens = model.n_tokens();
  require_resizable(model, [&](attention::ModelSize& size) {
    size.n_tokens = order.size();
    const std::uint64_t times = (order.size() + n_tokens - 1) / n_tokens;
    size.given_numbers *= times * times;  // an upper bound
  });
  const RowOrder keys = key_order(model, order);
  for (SharedMatrix& bias : model.additions.score_bias) bias = reordered(bias, order, keys, 0);
  for (std::size_t s = 0; s < model.sequences.size(); ++s) rearrange_sequence(model, s, order, name);
  rearrange_mask(model, order, n_tokens);
}

/// A list of [sequence · n + k] matrices, n per sequence.
struct SequenceMatrices {
  std::vector<SharedMatrix>* all;
  std::ptrdiff_t n;
};
std::vector<SequenceMatrices> per_head_matrices(Model& model) {
  std::vector<SequenceMatrices> lists;
  if (!model.dropout.given.empty())
    lists.push_back({&model.dropout.given, static_cast<std::ptrdiff_t>(model.n_heads)});
  for (attention::GivenStage& stage : model.given.stages)
    lists.push_back({&stage.matrices, static_cast<std::ptrdiff_t>(n_matrices(model, stage.stage))});
  return lists;
}

void change(Model& model, const RenameToken& edit) {
  require_index("embeddings", edit.sequence, model.sequences.size(), "sequences");
  require_index("tokens", edit.row, model.n_tokens(), "tokens");
  model.sequences[edit.sequence].tokens[edit.row] = edit.name;
}

void change(Model& model, const InsertToken& edit) {
  require_index("tokens", edit.row, model.n_tokens() + 1, "places for a token");
  RowOrder order = identity_order(model.n_tokens());
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(edit.row), new_row);
  rearrange_all(model, order, edit.name);
}

void change(Model& model, const RemoveToken& edit) {
  require_index("tokens", edit.row, model.n_tokens(), "tokens");
  if (model.n_tokens() == 1) fail("tokens", "the last token cannot be removed");
  RowOrder order = identity_order(model.n_tokens());
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(edit.row));
  rearrange_all(model, order);
}

void change(Model& model, const MoveToken& edit) {
  require_index("embeddings", edit.sequence, model.sequences.size(), "sequences");
  require_index("tokens", edit.from, model.n_tokens(), "tokens");
  require_index("tokens", edit.to, model.n_tokens(), "tokens");
  if (edit.from == edit.to) return;
  RowOrder order = identity_order(model.n_tokens());
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(edit.from));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(edit.to), edit.from);
  rearrange_sequence(model, edit.sequence, order, {});
  if (model.sequences.size() > 1) return;
  const RowOrder keys = key_order(model, order);
  for (SharedMatrix& bias : model.additions.score_bias) bias = reordered(bias, order, keys, 0);
  rearrange_mask(model, order, order.size());
}

void change(Model& model, const SetTokenCount& edit) {
  const std::size_t n = model.n_tokens();
  if (edit.n_tokens == 0) fail("tokens", "expected at least one token");
  constexpr std::size_t most = attention::max_tokens, thousand = 1000;
  if (edit.n_tokens > most)
    throw Error(fmt::format("at most {},{:03} tokens", most / thousand, most % thousand));
  if (edit.n_tokens == n) return;
  require_resizable(model, [&](attention::ModelSize& size) { size.n_tokens = edit.n_tokens; });
  RowOrder order = identity_order(edit.n_tokens);
  if (edit.n_tokens > n) std::fill(order.begin() + static_cast<std::ptrdiff_t>(n), order.end(), new_row);
  rearrange_all(model, order);
}

void change(Model& model, const AddSequence& edit) {
  require_index("embeddings", edit.copy_of, model.sequences.size(), "sequences");
  require_resizable(model, [](attention::ModelSize& size) { ++size.n_sequences; });
  for (const auto& [matrices, n] : per_head_matrices(model)) {
    const auto first = matrices->begin() + static_cast<std::ptrdiff_t>(edit.copy_of) * n;
    const std::vector<SharedMatrix> copies(first, first + n);
    matrices->insert(matrices->end(), copies.begin(), copies.end());
  }
  std::vector<attention::GivenCell> cells;
  for (attention::GivenCell cell : model.given.cells)
    if (cell.place.sequence == edit.copy_of)
      cell.place.sequence = model.sequences.size(), cells.push_back(cell);
  model.given.cells.insert(model.given.cells.end(), cells.begin(), cells.end());
  std::ranges::sort(model.given.cells, {}, &attention::GivenCell::place);
  if (auto& keys = model.mask.hidden_keys; !keys.empty())
    keys.push_back(std::vector<std::size_t>(keys[edit.copy_of]));
  model.sequences.push_back(Sequence(model.sequences[edit.copy_of]));
}

void change(Model& model, const RemoveSequence& edit) {
  require_index("embeddings", edit.sequence, model.sequences.size(), "sequences");
  if (model.sequences.size() == 1) fail("embeddings", "the last sequence cannot be removed");
  for (const auto& [matrices, n] : per_head_matrices(model)) {
    const auto first = matrices->begin() + static_cast<std::ptrdiff_t>(edit.sequence) * n;
    matrices->erase(first, first + n);
  }
  std::erase_if(model.given.cells, [&](const auto& cell) { return cell.place.sequence == edit.sequence; });
  for (attention::GivenCell& cell : model.given.cells)
    if (cell.place.sequence > edit.sequence) --cell.place.sequence;
  if (auto& keys = model.mask.hidden_keys; !keys.empty())
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(edit.sequence));
  model.sequences.erase(model.sequences.begin() + static_cast<std::ptrdiff_t>(edit.sequence));
  trim_mask(model);
}

// Widths, heads and projections.

void resize_layer(Linear& linear, std::size_t d_in, std::size_t d_out) {
  resize(linear.weight, d_in, d_out);
  if (linear.bias) resize(*linear.bias, 1, d_out);
}

std::string divisors(std::size_t number) {
  std::vector<std::size_t> found;
  for (std::size_t d = 1; d <= number; ++d)
    if (number % d == 0) found.push_back(d);
  return text::joined(
      found, ", ", [](std::size_t d) { return to_string(d); }, " or ");
}

/// Throws unless n_heads divides the columns; width is "d_out" or "d_in".
void require_width(const char* width, std::size_t columns, std::size_t n_heads) {
  if (columns == 0) fail(width, "expected at least one column");
  if (columns % n_heads == 0) return;
  const std::size_t below = columns / n_heads * n_heads, above = below + n_heads;
  throw Error(fmt::format("{} = {} is no multiple of {} heads (use {}{})", width, columns, n_heads,
                          below > 0 ? to_string(below) + " or " : "", above));
}

void require_heads(const char* width, std::size_t columns, std::size_t n_heads) {
  if (n_heads > 0 && columns % n_heads == 0) return;
  if (columns == 0) fail("n_heads", "expected at least one head");
  throw Error(fmt::format("{} do not divide {} = {} (use {})", text::counted(n_heads, "head"), width, columns,
                          divisors(columns)));
}

Linear identity(std::size_t width) {
  return {arma::mat(width, width, arma::fill::eye), std::nullopt};
}

Linear& require_linear(Model& model, ProjectionName part) {
  if (!model.projections) fail("projections", "the model has no projections");
  Linear* linear = find_linear(model, part);
  if (!linear) fail("projections.output", "the model has no output projection");
  return *linear;
}

/// Returns the columns of keys and values for d_head columns per head.
std::size_t key_columns(const Model& model, std::size_t d_head) {
  return model.kv_heads() * d_head;
}

void change(Model& model, const SetInputWidth& edit) {
  require_width("d_in", edit.d_in, model.projections ? 1 : model.n_heads);
  require_resizable(model, [&](attention::ModelSize& size) {
    size.d_model = edit.d_in;
    if (!model.projections) size.d_out = edit.d_in;
  });
  for (attention::Sequence& s : model.sequences) resize(s.embeddings, s.embeddings->n_rows, edit.d_in);
  if (!model.projections) return;
  Projections& p = *model.projections;
  resize_layer(p.query, edit.d_in, model.d_out());
  if (model.has_key_embeddings()) return;
  for (Linear* linear : {&p.key, &p.value}) resize_layer(*linear, edit.d_in, linear->weight.n_cols());
}

void change(Model& model, const SetOutputWidth& edit) {
  if (edit.d_out == model.d_out()) return;
  if (!model.projections) fail("d_out", "the model has no projections, so d_out follows d_in");
  require_width("d_out", edit.d_out, model.n_heads);
  require_resizable(model, [&](attention::ModelSize& size) { size.d_out = edit.d_out; });
  Projections& p = *model.projections;
  resize_layer(p.query, p.query.weight.n_rows(), edit.d_out);
  for (Linear* linear : {&p.key, &p.value})
    resize_layer(*linear, linear->weight.n_rows(), key_columns(model, edit.d_out / model.n_heads));
  fit_additions(model);
  if (!p.output) return;
  const bool is_square = p.output->weight.n_rows() == p.output->weight.n_cols();
  resize_layer(*p.output, edit.d_out, is_square ? edit.d_out : p.output->weight.n_cols());
}

void change(Model& model, const SetHeadCount& edit) {
  if (edit.n_heads == model.n_heads) return;
  require_heads("d_out", model.d_out(), edit.n_heads);
  require_resizable(model, [&](attention::ModelSize& size) { size.n_heads = edit.n_heads; });
  const std::size_t old = std::exchange(model.n_heads, edit.n_heads);
  if (model.n_kv_heads) {
    model.n_kv_heads = std::gcd(*model.n_kv_heads, edit.n_heads);
    Projections& p = *model.projections;
    for (Linear* linear : {&p.key, &p.value})
      resize_layer(*linear, linear->weight.n_rows(), key_columns(model, model.d_out() / edit.n_heads));
    if (model.n_kv_heads == edit.n_heads) model.n_kv_heads.reset();
  }
  fit_additions(model);
  std::erase_if(model.heads_off, [&](std::size_t head) { return head >= edit.n_heads; });
  if (model.dropout.given.empty()) return;
  const SharedMatrix all_kept = arma::mat(model.n_tokens(), model.n_keys(), arma::fill::ones);
  std::vector<SharedMatrix> given;
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    for (std::size_t h = 0; h < edit.n_heads; ++h)
      given.push_back(h < old ? model.dropout.given[s * old + h] : all_kept);
  model.dropout.given = std::move(given);
}

void change(Model& model, const SetProjections& edit) {
  if (edit.on == model.projections.has_value()) return;
  if (!edit.on) {
    require_heads("d_in", model.d_model(), model.n_heads);
    model.projections.reset();
    model.n_kv_heads.reset();
    fit_additions(model);
    return;
  }
  require_resizable(model, [&](attention::ModelSize& size) { size.projections = true; });
  const Linear linear = identity(model.d_model());
  model.projections = Projections{linear, linear, linear, std::nullopt};
  fit_additions(model);
}

void change(Model& model, const SetOutputProjection& edit) {
  if (edit.on == (model.projections && model.projections->output)) return;
  if (!model.projections) fail("projections.output", "the model has no projections");
  require_resizable(model, [&](attention::ModelSize& size) { size.output_projection = edit.on; });
  if (edit.on)
    model.projections->output = identity(model.d_out());
  else
    model.projections->output.reset();
}

void change(Model& model, const SetBias& edit) {
  Linear& linear = require_linear(model, edit.part);
  if (edit.on == linear.bias.has_value()) return;
  if (edit.on)
    linear.bias = arma::mat(1, linear.weight.n_cols(), arma::fill::zeros);
  else
    linear.bias.reset();
}

void change(Model& model, const SetKvHeadCount& edit) {
  if (!model.projections) fail("n_kv_heads", "the model has no projections");
  if (edit.n_kv_heads == 0 || model.n_heads % edit.n_kv_heads != 0)
    fail("n_kv_heads",
         fmt::format("expected a number that divides n_heads = {}, got {}", model.n_heads, edit.n_kv_heads));
  if (edit.n_kv_heads == model.kv_heads()) return;
  const Model before = model;
  model.n_kv_heads.reset();
  if (edit.n_kv_heads != model.n_heads) model.n_kv_heads = edit.n_kv_heads;
  for (Linear* linear : {&model.projections->key, &model.projections->value}) {
    linear->weight = averaged_kv_columns(linear->weight, before, model);
    if (linear->bias) linear->bias = averaged_kv_columns(*linear->bias, before, model);
  }
  std::erase_if(model.given.stages, [&](const attention::GivenStage& stage) {
    return stage.stage == attention::Stage::keys || stage.stage == attention::Stage::values;
  });
}

void change(Model& model, const SetKeyEmbeddings& edit) {
  const bool none = edit.embeddings.empty();
  if (!none && edit.embeddings.size() != model.sequences.size())
    fail("key_embeddings", fmt::format("expected {} matrices, one for each sequence, got {}",
                                       model.sequences.size(), edit.embeddings.size()));
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    attention::Sequence& sequence = model.sequences[s];
    sequence.key_embeddings = none ? SharedMatrix() : edit.embeddings[s];
    sequence.key_tokens.clear();
    if (none) continue;
    const std::size_t n_keys = sequence.key_embeddings.n_rows();
    sequence.key_tokens = edit.tokens.size() == n_keys ? edit.tokens : attention::numbered_tokens(n_keys);
  }
  if (model.projections)
    for (Linear* linear : {&model.projections->key, &model.projections->value})
      resize(linear->weight, model.d_source(), linear->weight.n_cols());
  for (SharedMatrix& mask : model.dropout.given) resize(mask, model.n_tokens(), model.n_keys(), 1);
  trim_mask(model);
  fit_additions(model);
  remove_redundant_cells(model);
}

// The mask.

/// Whether a member of the mask determines which keys are masked, and not how.
template <auto rule>
constexpr bool is_rule = !std::is_same_v<Set<&Model::mask, rule>, SetMaskMethod> &&
                         !std::is_same_v<Set<&Model::mask, rule>, SetEmptyRows>;

/// Sets a rule of the mask; check() must accept it before the mask cells are compared with it.
template <auto rule>
requires is_rule<rule>
void change(Model& model, const Set<&Model::mask, rule>& edit) {
  model.mask.*rule = edit.value;
  if (const auto problem = attention::check(model)) fail(problem->path, problem->message);
  remove_redundant_cells(model);
}

void change(Model& model, const SetPaddingMask& edit) {
  SetPaddingMask sorted = edit;
  auto& keys = sorted.value;
  for (auto& list : keys) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  if (std::ranges::all_of(keys, [](const auto& list) { return list.empty(); })) keys.clear();
  change<&Mask::hidden_keys>(model, sorted);
}

void change(Model& model, const SwitchMaskCell& edit) {
  require_index("mask", edit.row, model.n_tokens(), "rows");
  require_index(fmt::format("mask[{}]", edit.row), edit.column, model.n_keys(), "columns");
  const MaskCell cell{edit.row, edit.column, edit.visible};
  auto& cells = model.mask.cells;
  auto place = std::ranges::lower_bound(cells, cell.place(), {}, &MaskCell::place);
  if (place != cells.end() && place->place() == cell.place()) place = cells.erase(place);
  if (!attention::follows_rules(model, cell)) cells.insert(place, cell);
}

void change(Model& model, const ClearMaskCells&) {
  model.mask.cells.clear();
}

/// Sets one member of the model.
template <auto... path>
void change(Model& model, const Set<path...>& edit) {
  member<path...>(model) = edit.value;
}

// Given stages, overridden values, heads and injected bugs.

void change(Model& model, const OverrideStage& edit) {
  set_given_stage(model, edit.stage);
}

void change(Model& model, const ClearStageOverride& edit) {
  clear_given_stage(model, edit.stage);
}

void change(Model& model, const OverrideValue& edit) {
  auto& cells = model.given.cells;
  const auto place = std::ranges::lower_bound(cells, edit.place, {}, &GivenCell::place);
  const bool found = place != cells.end() && place->place == edit.place;
  if (!edit.value) {
    if (found) cells.erase(place);
    return;
  }
  // Rejected here; after other edits, overridden values that do not fit are simply dropped.
  const attention::StageInfo& stage = info(edit.place.stage);
  if (edit.place.stage == Stage::embeddings || edit.place.stage == Stage::key_embeddings ||
      edit.place.stage == Stage::mask || !stage.present(model))
    fail(stage.name, "no cell of it can be typed over");
  const attention::StageShape shape = shape_of(model, edit.place.stage);
  require_index("embeddings", edit.place.sequence, model.sequences.size(), "sequences");
  require_index(stage.name, edit.place.head, n_matrices(model, stage.stage), "heads");
  require_index(stage.name, edit.place.row, shape.n_rows, "rows");
  require_index(stage.name, edit.place.column, shape.n_cols, "columns");
  if (found)
    place->value = *edit.value;
  else
    cells.insert(place, {edit.place, *edit.value});
}

void change(Model& model, const ClearOverrides&) {
  model.given.cells.clear();
}

void change(Model& model, const ToggleHead& edit) {
  require_index("heads_off", edit.head, model.n_heads, "heads");
  auto& off = model.heads_off;
  std::erase(off, edit.head);
  if (!edit.on) off.insert(std::ranges::lower_bound(off, edit.head), edit.head);
}

void change(Model& model, const SwitchMistake& edit) {
  const bugs::Bug* mistake = bugs::find_bug(edit.name);
  if (!mistake) fail("mistake " + edit.name, "there is no such mistake");
  if (!edit.on && !bugs::is_fixable(*mistake)) fail("mistake " + edit.name, "it can only be undone");
  model = edit.on ? injected(*mistake, model) : without_bug(*mistake, model);
}
void change(Model& model, const ReplaceModel& edit) {
  model = edit.model;
}

// Descriptions of edits.

/// Key that joins edits into a gesture, empty if they never join, and description.
struct EditLabel {
  std::string target, description;
};

std::string matrix(MatrixRef place) {
  const bool of_sequence = place.name <= MatrixName::key_embeddings;
  const std::string name = of_sequence ? path_of(place.name) : symbol(place.name);
  return of_sequence || place.name == MatrixName::score_bias ? fmt::format("{}/{}", name, place.nth) : name;
}

std::string title_of(attention::Stage stage) {
  return info(stage).title;
}

std::string cell(const SetCell& e) {
  const std::string row = has_one_row(e.place.name) ? "" : to_string(e.row) + ",";
  return fmt::format("{}[{}{}]", symbol(e.place.name), row, e.column);
}

EditLabel label(const SetCell& e) {
  return {fmt::format("cell {} {} {}", matrix(e.place), e.row, e.column), "change of " + cell(e)};
}
EditLabel label(const SetBlock& e) {
  return {"", "change of " + std::string(symbol(e.place.name))};
}
EditLabel label(const RenameToken& e) {
  return {fmt::format("token {} {}", e.sequence, e.row), "new name of token " + to_string(e.row)};
}
EditLabel label(const SetBias& e) {
  const std::string text = std::string(name_of(e.part)) + " bias";
  return {text, text};
}
EditLabel label(const SwitchMaskCell&) {
  return {"mask cells", "cells of the mask by hand"};  // a stroke is one step
}
EditLabel label(const OverrideStage& e) {
  return {"", title_of(e.stage.stage) + " given"};
}
EditLabel label(const ClearStageOverride& e) {
  return {"", title_of(e.stage) + " computed again"};
}
EditLabel label(const OverrideValue& e) {
  const auto& p = e.place;
  const std::string place = fmt::format("{} {}", p.row, p.column);
  const std::string target = fmt::format("typed {} {} {} {}", info(p.stage).name, place, p.sequence, p.head);
  const std::string cell = fmt::format("{}, row {}, column {}", title_of(p.stage), p.row, p.column);
  return {e.value ? target : "", (e.value ? "number typed over " : "computed again: ") + cell};
}
EditLabel label(const ToggleHead& e) {
  return {"head " + to_string(e.head), "switch of head " + to_string(e.head)};
}
EditLabel label(const SwitchMistake& e) {
  const bugs::Bug* mistake = bugs::find_bug(e.name);
  return {"", (e.on ? "bug: " : "fixed bug: ") + (mistake ? title_of(*mistake) : e.name)};
}
EditLabel label(const ReplaceModel& e) {
  return {"", e.label};
}

/// Words of an edit that do not depend on its members.
template <class Edit>
struct FixedLabel {
  const char *target, *description;
};
constexpr std::tuple fixed_labels{FixedLabel<InsertToken>{"", "new token"},
                                  FixedLabel<RemoveToken>{"", "removal of a token"},
                                  FixedLabel<MoveToken>{"", "move of a token"},
                                  FixedLabel<SetTokenCount>{"n_tokens", "number of tokens"},
                                  FixedLabel<SetInputWidth>{"d_in", "width of the embeddings"},
                                  FixedLabel<SetOutputWidth>{"d_out", "width of the projections"},
                                  FixedLabel<SetHeadCount>{"n_heads", "number of heads"},
                                  FixedLabel<SetProjections>{"projections", "projections"},
                                  FixedLabel<SetOutputProjection>{"output projection", "output projection"},
                                  FixedLabel<SetScoreRule>{"score rule", "source of the scores"},
                                  FixedLabel<SetScale>{"scale", "scale"},
                                  FixedLabel<SetCausal>{"causal mask", "causal mask"},
                                  FixedLabel<SetMaskMethod>{"mask method", "method of the mask"},
                                  FixedLabel<SetEmptyRows>{"empty rows", "fully masked rows"},
                                  FixedLabel<SetMaskAlignment>{"mask alignment", "place of the queries"},
                                  FixedLabel<SetSlidingWindow>{"mask window", "window of the mask"},
                                  FixedLabel<SetPrefixLength>{"mask prefix", "prefix of the mask"},
                                  FixedLabel<SetDocumentIds>{"documents", "documents of the tokens"},
                                  FixedLabel<SetPaddingMask>{"padding mask", "padding"},
                                  FixedLabel<ClearMaskCells>{"", "reset of the mask"},
                                  FixedLabel<SetDropoutRate>{"dropout rate", "dropout rate"},
                                  FixedLabel<SetTraining>{"training", "training or evaluation"},
                                  FixedLabel<SetDropoutSeed>{"dropout seed", "dropout seed"},
                                  FixedLabel<SetDropoutStream>{"dropout stream", "dropout stream"},
                                  FixedLabel<SetDropoutMask>{"", "dropout mask"},
                                  FixedLabel<SetKvHeadCount>{"n_kv_heads", "number of keys and values"},
                                  FixedLabel<SetHeadNorm>{"head norm", "norm of queries and keys"},
                                  FixedLabel<SetPositions>{"positions", "positions"},
                                  FixedLabel<SetSoftcap>{"score cap", "cap of the scores"},
                                  FixedLabel<SetAttentionBias>{"score bias", "bias of the scores"},
                                  FixedLabel<SetSink>{"sink", "sink of the softmax"},
                                  FixedLabel<SetKeyEmbeddings>{"key embeddings", "embeddings of the keys"},
                                  FixedLabel<SetCombineRule>{"merge rule", "merging of the heads"},
                                  FixedLabel<SetContextLength>{"context length", "context length"},
                                  FixedLabel<AddSequence>{"", "new sequence"},
                                  FixedLabel<RemoveSequence>{"", "removal of a sequence"},
                                  FixedLabel<ClearOverrides>{"", "computing of typed cells"}};

template <class Edit>
EditLabel label(const Edit&) {
  const auto [target, description] = std::get<FixedLabel<Edit>>(fixed_labels);
  return {target, description};
}

EditLabel label_of(const Edit& edit) {
  return std::visit([](const auto& e) { return label(e); }, edit);
}

}  // namespace

attention::Model apply(const attention::Model& model, const Edit& edit) {
  attention::Model next = model;
  std::visit([&](const auto& e) { change(next, e); }, edit);
  remove_invalid_overrides(next);
  attention::require_within_limits(next);
  return next;
}

std::string target(const Edit& edit) {
  return label_of(edit).target;
}

std::string describe(const Edit& edit) {
  return label_of(edit).description;
}

}  // namespace core::editing
