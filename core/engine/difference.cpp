#include "core/engine/difference.hpp"

#include <algorithm>
#include <iterator>

namespace core::attention::fast {
namespace {

enum class Extent { same, number, row, more };

struct Place {
  Extent extent = Extent::same;
  std::size_t row = 0, column = 0;
};

/// Where two matrices of one shape differ.
Place compare(const SharedMatrix& a, const SharedMatrix& b) {
  if (a.shares_with(b)) return {};
  if (const auto cell = known_difference(a, b)) return {Extent::number, cell->row, cell->column};
  Place place;
  const arma::mat &before = *a, &after = *b;
  for (std::size_t c = 0; c < before.n_cols; ++c)
    for (std::size_t r = 0; r < before.n_rows; ++r) {
      if (before.at(r, c) == after.at(r, c)) continue;
      if (place.extent == Extent::same)
        place = {Extent::number, r, c};
      else if (r != place.row)
        return {Extent::more};
      else
        place.extent = Extent::row;
    }
  return place;
}

/// Puts one difference after another together.
class Collector {
 public:
  Difference result;

  void add(Redo redo) { result.redo = result.redo == Redo::nothing ? redo : Redo::everything; }

  void add_embeddings(const SharedMatrix& before, const SharedMatrix& after,
                      Redo one_row = Redo::embedding_row) {
    const Place place = compare(before, after);
    if (place.extent == Extent::same) return;
    add(place.extent == Extent::more ? Redo::everything : one_row);
    result.row = place.row;
    result.column = place.column;
    if (place.extent == Extent::number) result.increment = increment(before, after, place);
  }

  void add_projection(Projected what, const Linear& before, const Linear& after) {
    add_number(what, false, before.weight, after.weight);
    if (before.bias.has_value() != after.bias.has_value())
      add(Redo::everything);
    else if (before.bias)
      add_number(what, true, *before.bias, *after.bias);
  }

  void add_mask(const Mask& before, const Mask& after) {
    // Named one by one, so that a new rule does not compile until it is known what it has redone.
    const auto& [causal, method, empty_rows, cells, align, window, prefix, documents, hidden_keys] = before;
    const bool same_rules = causal == after.causal && method == after.method && align == after.align &&
                            window == after.window && prefix == after.prefix &&
                            documents == after.documents && hidden_keys == after.hidden_keys;
    if (!same_rules) return add(Redo::everything);
    if (empty_rows != after.empty_rows) add(Redo::scores);
    if (cells == after.cells) return;
    add(Redo::mask_rows);
    std::vector<MaskCell> others;  // sorted, as both lists are
    std::ranges::set_symmetric_difference(cells, after.cells, std::back_inserter(others));
    for (const MaskCell& cell : others)
      if (result.mask_rows.empty() || result.mask_rows.back() != cell.row)
        result.mask_rows.push_back(cell.row);
  }

  void add_additions(const Additions& before, const Additions& after) {
    // Named one by one, as the mask's rules are.
    const auto& [normalise, positions, score_cap, score_bias, sink] = before;
    if (!(normalise == after.normalise) || !(positions == after.positions) ||
        score_cap.has_value() != after.score_cap.has_value() ||
        score_bias.empty() != after.score_bias.empty())
      return add(Redo::everything);
    if (score_cap != after.score_cap || !(score_bias == after.score_bias) || !(sink == after.sink))
      add(Redo::scores);
  }

 private:
  static double increment(const SharedMatrix& before, const SharedMatrix& after, Place place) {
    return after.at(place.row, place.column) - before.at(place.row, place.column);
  }

  void add_number(Projected what, bool is_bias, const SharedMatrix& before, const SharedMatrix& after) {
    const Place place = compare(before, after);
    if (place.extent == Extent::same) return;
    add(place.extent == Extent::number ? Redo::projection_number : Redo::everything);
    result.projected = what;
    result.is_bias = is_bias;
    result.row = place.row;
    result.column = place.column;
    result.increment = increment(before, after, place);
  }
};

bool same_shapes(const Model& a, const Model& b) {
  const auto& p = a.projections;
  const auto& q = b.projections;
  return a.n_tokens() == b.n_tokens() && a.d_model() == b.d_model() && a.d_out() == b.d_out() &&
         a.d_output() == b.d_output() && a.n_heads == b.n_heads && p.has_value() == q.has_value() &&
         a.n_keys() == b.n_keys() && a.n_groups() == b.n_groups() && a.has_memory() == b.has_memory() &&
         a.d_memory() == b.d_memory();
}

bool same_dropout(const Dropout& a, const Dropout& b) {
  return a.active() ? a == b : !b.active();
}

}  // namespace

Difference difference(const Model& before, const Model& after, std::size_t sequence) {
  if (!same_shapes(before, after)) return {.redo = Redo::everything};
  Collector all;
  const Sequence &old = before.sequences[sequence], &now = after.sequences[sequence];
  all.add_embeddings(old.embeddings, now.embeddings);
  if (before.has_memory()) all.add_embeddings(old.key_embeddings, now.key_embeddings, Redo::memory_row);
  if (before.projections) {
    const Projections &p = *before.projections, &q = *after.projections;
    all.add_projection(Projected::queries, p.query, q.query);
    all.add_projection(Projected::keys, p.key, q.key);
    all.add_projection(Projected::values, p.value, q.value);
    if (!(p.output == q.output)) all.add(Redo::output);
  }
  all.add_mask(before.mask, after.mask);
  all.add_additions(before.additions, after.additions);
  if (before.scores != after.scores || scale_factor(before) != scale_factor(after)) all.add(Redo::scores);
  if (!same_dropout(before.dropout, after.dropout)) all.add(Redo::contexts);
  if (before.merge != after.merge) all.add(Redo::output);
  return all.result;
}

}  // namespace core::attention::fast
