#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "core/editing/edit_cases.hpp"
#include "core/graph/stages.hpp"

namespace core::editing::cases {
namespace {

using attention::Columns;
using attention::MaskCell;
using attention::Rows;
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

/// Where each old token went; fresh when it is gone.
Order places(const Order& order, std::size_t n_tokens) {
  Order place(n_tokens, fresh);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != fresh) place[order[i]] = i;
  return place;
}

void rearrange_given(Model& model, std::size_t s, const Order& order, const Order& keys) {
  for (attention::GivenStage& given : model.given.stages) {
    const attention::StageInfo& stage = info(given.stage);
    const std::size_t n_heads = n_matrices(model, given.stage);
    const double fill = given.stage == attention::Stage::dropout_mask ? 1 : 0;
    for (SharedMatrix& m : std::span(given.matrices).subspan(s * n_heads, n_heads))
      m = taken(m, stage.rows == Rows::keys ? keys : order,
                stage.columns == Columns::tokens ? keys : unchanged(m->n_cols), fill);
  }
}

void rearrange_typed_cells(Model& model, std::size_t s, const Order& row_places, const Order& key_places) {
  auto& cells = model.given.cells;
  const auto moved = [&](attention::GivenPlace& p) {
    if (p.sequence != s) return true;
    const attention::StageInfo& stage = info(p.stage);
    p.row = (stage.rows == Rows::keys ? key_places : row_places)[p.row];
    if (stage.columns == Columns::tokens) p.column = key_places[p.column];
    return p.row != fresh && p.column != fresh;
  };
  std::erase_if(cells, [&](attention::GivenCell& c) { return !moved(c.place); });
  std::ranges::sort(cells, {}, &attention::GivenCell::place);
}

/// The order of the keys when the tokens are put into an order: the same, unless keys are other tokens.
Order order_of_keys(const Model& model, const Order& order) {
  return model.sequences.front().key_tokens.empty() ? order : unchanged(model.n_keys());
}

/// Padding follows its keys; a new key is none.
void rearrange_padding(Model& model, std::size_t s, const Order& key_places) {
  if (model.mask.hidden_keys.empty()) return;
  auto& keys = model.mask.hidden_keys[s];
  for (std::size_t& key : keys) key = key_places[key];
  std::erase(keys, fresh);
  std::ranges::sort(keys);
}

void rearrange_sequence(Model& model, std::size_t s, const Order& order, const std::string& name) {
  const Order keys = order_of_keys(model, order);
  const Order row_places = places(order, model.sequences[s].tokens.size());
  const Order& key_places = model.sequences[s].key_tokens.empty() ? row_places : keys;
  rearrange_typed_cells(model, s, row_places, key_places);
  rearrange_padding(model, s, key_places);
  rearrange_given(model, s, order, keys);
  Sequence& sequence = model.sequences[s];
  sequence.embeddings = taken(sequence.embeddings, order, unchanged(sequence.embeddings->n_cols), 0);
  sequence.tokens = taken(sequence.tokens, order, name);
  for (SharedMatrix& mask : given_masks(model, s)) mask = taken(mask, order, keys, 1);
}

/// A new token is of the document of the token before it.
void rearrange_documents(Model& model, const Order& order) {
  const std::vector<std::size_t> old = std::exchange(model.mask.documents, {});
  if (old.empty()) return;
  for (const std::size_t from : order) {
    auto& documents = model.mask.documents;
    documents.push_back(from != fresh ? old[from] : documents.empty() ? old.front() : documents.back());
  }
}

void rearrange_mask(Model& model, const Order& order, std::size_t n_tokens) {
  const Order row_places = places(order, n_tokens);
  const bool same = model.sequences.front().key_tokens.empty();
  rearrange_documents(model, order);
  auto& cells = model.mask.cells;
  for (MaskCell& cell : cells)
    cell = {row_places[cell.row], same ? row_places[cell.column] : cell.column, cell.visible};
  std::erase_if(cells, [](const MaskCell& c) { return c.row == fresh || c.column == fresh; });
  std::ranges::sort(cells);
  fit_mask(model);
  drop_cells_that_follow_the_rule(model);
}

void rearrange_all(Model& model, const Order& order, const std::string& name = {}) {
  attention::Size size = size_of(model);
  const std::size_t n_tokens = std::exchange(size.n_tokens, order.size());
  const std::uint64_t times = (order.size() + n_tokens - 1) / n_tokens;
  size.given_numbers *= times * times;  // at most so many
  require_size(size);
  const Order keys = order_of_keys(model, order);
  for (SharedMatrix& bias : model.additions.score_bias) bias = taken(bias, order, keys, 0);
  for (std::size_t s = 0; s < model.sequences.size(); ++s) rearrange_sequence(model, s, order, name);
  rearrange_mask(model, order, n_tokens);
}

/// A list of [sequence · n + k] matrices, n of them a sequence.
struct MatricesOfSequences {
  std::vector<SharedMatrix>* all;
  std::ptrdiff_t n;
};
std::vector<MatricesOfSequences> matrices_a_head(Model& model) {
  std::vector<MatricesOfSequences> lists;
  if (!model.dropout.given.empty())
    lists.push_back({&model.dropout.given, static_cast<std::ptrdiff_t>(model.n_heads)});
  for (attention::GivenStage& stage : model.given.stages)
    lists.push_back({&stage.matrices, static_cast<std::ptrdiff_t>(n_matrices(model, stage.stage))});
  return lists;
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
  if (model.sequences.size() > 1) return;
  const Order keys = order_of_keys(model, order);
  for (SharedMatrix& bias : model.additions.score_bias) bias = taken(bias, order, keys, 0);
  rearrange_mask(model, order, order.size());
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
  for (const auto& [matrices, n] : matrices_a_head(model)) {
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
  if (model.sequences.size() == 1) refuse("embeddings", "the last sequence cannot be removed");
  for (const auto& [matrices, n] : matrices_a_head(model)) {
    const auto first = matrices->begin() + static_cast<std::ptrdiff_t>(edit.sequence) * n;
    matrices->erase(first, first + n);
  }
  std::erase_if(model.given.cells, [&](const auto& cell) { return cell.place.sequence == edit.sequence; });
  for (attention::GivenCell& cell : model.given.cells)
    if (cell.place.sequence > edit.sequence) --cell.place.sequence;
  if (auto& keys = model.mask.hidden_keys; !keys.empty())
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(edit.sequence));
  model.sequences.erase(model.sequences.begin() + static_cast<std::ptrdiff_t>(edit.sequence));
  fit_mask(model);
}

}  // namespace core::editing::cases
