#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "core/editing/edit_cases.hpp"

namespace core::editing::cases {
namespace {

using attention::MaskCell;
using attention::Sequence;
using attention::SharedMatrix;

/// Where each new row comes from: an old row, or fresh for a new token.
using Order = std::vector<std::size_t>;
constexpr std::size_t fresh = std::numeric_limits<std::size_t>::max();

Order unchanged(std::size_t n) {
  Order order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

arma::mat taken(const arma::mat& old, const Order& rows, const Order& columns, double fill) {
  arma::mat m(rows.size(), columns.size());
  for (std::size_t j = 0; j < columns.size(); ++j)
    for (std::size_t i = 0; i < rows.size(); ++i)
      m(i, j) = rows[i] == fresh || columns[j] == fresh ? fill : old(rows[i], columns[j]);
  return m;
}

std::vector<std::string> taken(const std::vector<std::string>& old, const Order& order,
                               const std::string& name) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < order.size(); ++i)
    tokens.push_back(order[i] != fresh ? old[order[i]] : name.empty() ? std::to_string(i) : name);
  return tokens;
}

std::span<SharedMatrix> given_masks(Model& model, std::size_t sequence) {
  if (model.dropout.given.empty()) return {};
  return std::span(model.dropout.given).subspan(sequence * model.n_heads, model.n_heads);
}

void rearrange_sequence(Model& model, std::size_t s, const Order& order, const std::string& name) {
  Sequence& sequence = model.sequences[s];
  sequence.embeddings = taken(sequence.embeddings, order, unchanged(sequence.embeddings->n_cols), 0);
  sequence.tokens = taken(sequence.tokens, order, name);
  for (SharedMatrix& mask : given_masks(model, s)) mask = taken(mask, order, order, 1);
}

void rearrange_mask(Model& model, std::size_t n_tokens, const Order& order) {
  attention::Mask& mask = model.mask;
  Order place(n_tokens, fresh);  // of each old token; fresh when it is gone
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != fresh) place[order[i]] = i;
  for (MaskCell& cell : mask.cells) cell = {place[cell.row], place[cell.column], cell.visible};
  std::erase_if(mask.cells, [](const MaskCell& c) { return c.row == fresh || c.column == fresh; });
  std::sort(mask.cells.begin(), mask.cells.end(), [](const MaskCell& a, const MaskCell& b) {
    return std::pair(a.row, a.column) < std::pair(b.row, b.column);
  });
  drop_cells_that_follow_the_rule(model);
}

void rearrange_all(Model& model, const Order& order, const std::string& name = {}) {
  attention::Size size = size_of(model);
  const std::size_t n_tokens = std::exchange(size.n_tokens, order.size());
  require_size(size);
  for (std::size_t s = 0; s < model.sequences.size(); ++s) rearrange_sequence(model, s, order, name);
  rearrange_mask(model, n_tokens, order);
}

}  // namespace

void change(Model& model, const RenameToken& edit) {
  require_index("embeddings", edit.sequence, model.sequences.size(), "sequences");
  require_index("tokens", edit.row, model.n_tokens(), "tokens");
  model.sequences[edit.sequence].tokens[edit.row] = edit.name;
}

void change(Model& model, const InsertToken& edit) {
  require_index("tokens", edit.row, model.n_tokens() + 1, "places for a token");
  Order order = unchanged(model.n_tokens());
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(edit.row), fresh);
  rearrange_all(model, order, edit.name);
}

void change(Model& model, const RemoveToken& edit) {
  require_index("tokens", edit.row, model.n_tokens(), "tokens");
  if (model.n_tokens() == 1) refuse("tokens", "the last token cannot be removed");
  Order order = unchanged(model.n_tokens());
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(edit.row));
  rearrange_all(model, order);
}

void change(Model& model, const MoveToken& edit) {
  require_index("embeddings", edit.sequence, model.sequences.size(), "sequences");
  require_index("tokens", edit.from, model.n_tokens(), "tokens");
  require_index("tokens", edit.to, model.n_tokens(), "tokens");
  if (edit.from == edit.to) return;
  Order order = unchanged(model.n_tokens());
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(edit.from));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(edit.to), edit.from);
  rearrange_sequence(model, edit.sequence, order, {});
  if (model.sequences.size() == 1) rearrange_mask(model, model.n_tokens(), order);
}

void change(Model& model, const SetTokenCount& edit) {
  const std::size_t n = model.n_tokens();
  if (edit.n_tokens == 0) refuse("tokens", "expected at least one token");
  if (edit.n_tokens == n) return;
  attention::Size size = size_of(model);
  size.n_tokens = edit.n_tokens;
  require_size(size);  // before the order itself is made
  Order order = unchanged(edit.n_tokens);
  if (edit.n_tokens > n) std::fill(order.begin() + static_cast<std::ptrdiff_t>(n), order.end(), fresh);
  rearrange_all(model, order);
}

void change(Model& model, const AddSequence& edit) {
  require_index("embeddings", edit.copy_of, model.sequences.size(), "sequences");
  attention::Size size = size_of(model);
  ++size.n_sequences;
  require_size(size);
  const auto masks = given_masks(model, edit.copy_of);
  const std::vector<SharedMatrix> copies(masks.begin(), masks.end());
  model.dropout.given.insert(model.dropout.given.end(), copies.begin(), copies.end());
  model.sequences.push_back(Sequence(model.sequences[edit.copy_of]));
}

void change(Model& model, const RemoveSequence& edit) {
  require_index("embeddings", edit.sequence, model.sequences.size(), "sequences");
  if (model.sequences.size() == 1) refuse("embeddings", "the last sequence cannot be removed");
  if (!model.dropout.given.empty()) {
    const auto first =
        model.dropout.given.begin() + static_cast<std::ptrdiff_t>(edit.sequence * model.n_heads);
    model.dropout.given.erase(first, first + static_cast<std::ptrdiff_t>(model.n_heads));
  }
  model.sequences.erase(model.sequences.begin() + static_cast<std::ptrdiff_t>(edit.sequence));
}

}  // namespace core::editing::cases
