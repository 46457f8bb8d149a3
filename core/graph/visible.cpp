#include "core/graph/visible.hpp"

#include "core/graph/injected_bugs.hpp"

namespace core::attention {
namespace {

bool within(const MaskWindow& window, std::int64_t query, std::int64_t key) {
  return !(window.left && query - key > static_cast<std::int64_t>(*window.left)) &&
         !(window.right && key - query > static_cast<std::int64_t>(*window.right));
}

}  // namespace

SequenceMask::SequenceMask(const Model& model, std::size_t sequence)
    : mask_(model.mask),
      changed_mask_(model.bugs.empty() ? std::nullopt : std::optional(bugs::effective_mask(model))) {
  prepare(model, sequence);
}

SequenceMask::SequenceMask(const Model& model, const Mask& mask, std::size_t sequence) : mask_(mask) {
  prepare(model, sequence);
}

void SequenceMask::prepare(const Model& model, std::size_t sequence) {
  first_ = aligned_query_position(model, mask().align, 0);
  if (sequence >= mask().hidden_keys.size()) return;
  padding_.resize(model.n_keys());
  for (const std::size_t key : mask().hidden_keys[sequence]) padding_[key] = true;
}

CellVisibility SequenceMask::by_rules(std::size_t query, std::size_t key) const {
  const std::int64_t i = first_ + static_cast<std::int64_t>(query), j = static_cast<std::int64_t>(key);
  const Mask& m = mask();
  const MaskEdge& edge = m.edge;
  const bool in_future = m.causal && (edge.transposed ? i - j : j - i) > edge.diagonal,
             is_far = !within(m.window, i, j);
  if (!padding_.empty() && padding_[key]) return {false, VisibilityReason::by_padding};
  if (!m.documents.empty() && m.documents[query] != m.documents[key])
    return {false, VisibilityReason::by_document};
  if (!in_future && !is_far) return {};
  if (key < m.prefix) return {true, VisibilityReason::by_prefix};
  return {false, in_future ? VisibilityReason::by_future : VisibilityReason::by_window};
}

std::int64_t aligned_query_position(const Model& model, std::size_t query) {
  return aligned_query_position(model, model.mask.align, query);
}

std::int64_t aligned_query_position(const Model& model, MaskAlignment align, std::size_t query) {
  const auto i = static_cast<std::int64_t>(query);
  if (align == MaskAlignment::first) return i;
  return i + static_cast<std::int64_t>(model.n_keys()) - static_cast<std::int64_t>(model.n_tokens());
}

CellVisibility visibility_by_rules(const Model& model, std::size_t sequence, std::size_t query,
                                   std::size_t key) {
  return SequenceMask(model, sequence).by_rules(query, key);
}

CellVisibility SequenceMask::at(std::size_t query, std::size_t key) const {
  if (const MaskCell* cell = mask().find(query, key)) return {cell->visible, VisibilityReason::by_hand};
  return by_rules(query, key);
}

CellVisibility visibility(const Model& model, std::size_t sequence, std::size_t query, std::size_t key) {
  return SequenceMask(model, sequence).at(query, key);
}

bool follows_rules(const Model& model, const MaskCell& cell) {
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    if (visibility_by_rules(model, s, cell.row, cell.column).visible != cell.visible) return false;
  return true;
}

arma::mat visibility_matrix(const Model& model, std::size_t sequence) {
  const SequenceMask sequence_mask(model, sequence);
  arma::mat visible(model.n_tokens(), model.n_keys());
  double* next = visible.memptr();  // column-major
  for (std::size_t key = 0; key < visible.n_cols; ++key)
    for (std::size_t query = 0; query < visible.n_rows; ++query)
      *next++ = sequence_mask.by_rules(query, key).visible;
  for (const MaskCell& cell : bugs::effective_mask(model).cells)
    visible(cell.row, cell.column) = cell.visible;
  return visible;
}

}  // namespace core::attention
