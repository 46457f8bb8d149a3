#include "core/engine/engine.hpp"

#include <algorithm>
#include <thread>

#include "core/engine/parts.hpp"
#include "core/engine/projecting.hpp"
#include "core/engine/requests.hpp"
#include "core/graph/intended.hpp"
#include "core/graph/mistaken.hpp"

namespace core::attention::fast {
namespace {

constexpr double draws_per_ms = 2e5;  // of numbers for dropout's masks

}  // namespace

bool covers(const Model& model) {
  // Named one by one, so that a new step does not compile until it is known whether the engine takes it.
  const auto& [project, split, added, score, scale, see, mask, softmax, unmasked, weigh, survive, drop, mix,
               merge, precision] = rules_of(model);
  const auto& [query, key, value, output] = project;
  const auto& [split_query, split_key, split_value] = split;
  const auto& [softmax_first, zero, sum] = unmasked;
  const auto& [norm, turn_queries, turn_keys, turn_values, cap, position_bias, add_biases] = added;
  // Norms, caps and biases have no mistaken kind of their own but for their order.
  const bool as_meant =
      !norm == !model.additions.normalise && !cap == !model.additions.score_cap &&
      !position_bias == !model.additions.positions.has_bias() && !add_biases == !model.additions.has_bias() &&
      !turn_values && (!turn_queries || turn_queries == &intended::turned_queries) &&
      (!turn_keys || turn_keys == &intended::turned_keys) && model.departures.misplaced == Misplaced();
  const bool any_of_its_kind = query && key && value && output && scale && weigh && survive;
  // Projections are coarse where this is.
  return any_of_its_kind && as_meant && mix == &intended::weighted_values && model.given.empty() &&
         model.heads_off.empty() && split_query == &intended::in_bands && split_key == &intended::in_bands &&
         split_value == &intended::in_bands &&
         (score == &intended::query_by_key || score == &intended::uniform) &&
         (see == &intended::causal || see == &intended::everything) && mask == &intended::minus_infinity &&
         softmax == &intended::over_keys && !softmax_first && !zero && !sum &&
         drop == &intended::of_weights &&
         (merge == &intended::side_by_side || merge == &mistaken::without_transpose) &&
         precision == Precision::float64;
}

std::uint64_t engine_bytes(std::size_t n_tokens, std::size_t d_out, std::size_t n_heads, std::size_t n_keys) {
  if (n_keys == 0) n_keys = n_tokens;
  const std::uint64_t rows = n_tokens, n = std::max(n_tokens, n_keys), row = (n_keys + 7) / 8 * 8;
  const std::uint64_t squares = n_heads * rows * row;  // masked scores
  const std::uint64_t wide =
      9 * n *
      (d_out + 8 * n_heads);  // Q, K (as projected and prepared), V, contexts, output, its source, panels
  return sizeof(double) * (squares + wide);
}

Engine::Parts::Parts(std::size_t n_threads) : threads(n_threads) {
  all.kernels = &kernels_of_this_processor().front();
}

Engine::Engine(std::size_t n_threads) {
  keep_blas_to_one_thread();
  parts_ =
      std::make_unique<Parts>(n_threads > 0 ? n_threads : std::max(1u, std::thread::hardware_concurrency()));
}

Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

bool Engine::compute(const Model& model, std::size_t sequence, const Token* progress) {
  require(model, sequence);
  return parts_->compute(model, sequence, progress);
}

Change Engine::update(const Model& after, std::size_t sequence, const Token* progress) {
  require(after, sequence);
  return update(after, sequence, plan(after, sequence), progress);
}

Change Engine::update(const Model& after, std::size_t sequence, const Plan& plan, const Token* progress) {
  Parts& p = *parts_;
  if (!plan.difference) return {.completed = p.compute(after, sequence, progress)};
  const Difference& d = *plan.difference;
  Change change{.everything = false};
  const auto changed = [&] {
    switch (d.redo) {
      case Redo::nothing:
        return change.heads.assign(p.held.n_heads, {.all = false, .first_sum = p.held.n_tokens()}), true;
      case Redo::everything:
        return false;
      case Redo::scores:
        return p.update_all(after, From::queries, progress, change);
      case Redo::contexts:
        return p.update_all(after, From::weights, progress, change);
      case Redo::embedding_row:
        return p.update_embedding(after, d, change);
      case Redo::memory_row:
        return p.update_memory(after, d, change);
      case Redo::projection_number:
        return p.update_projection(after, d, change);
      case Redo::mask_rows:
        return p.update_mask(after, d, change);
      case Redo::output:
        change.heads.assign(p.held.n_heads, {.all = false, .first_sum = p.held.n_tokens()});
        return p.output.all_changed(), true;
    }
    return false;
  };
  p.holds = false;
  if (!changed()) return {.completed = p.compute(after, sequence, progress)};
  if (!change.completed) return change;
  p.held = after;
  p.holds = true;
  renew(p.trace);
  return change;
}

Engine::Plan Engine::plan(const Model& after, std::size_t sequence) const {
  const Parts& p = *parts_;
  const double all = operations(after) / p.operations_per_ms;
  if (!covers(after)) return {10 * all, nullptr};  // as measured, about
  if (!p.holds || p.by_reference || sequence != p.sequence || sequence >= p.held.sequences.size())
    return {all, nullptr};
  const auto d = std::make_shared<const Difference>(difference(p.held, after, sequence));
  const double n = double(after.n_tokens()), d_out = double(after.d_out());
  const double n_keys = double(after.n_keys());
  const double squares = n * n_keys * (2 * d_out + 20 * double(after.n_heads)) / p.operations_per_ms;
  switch (d->redo) {
    case Redo::everything:
      return {all, d};
    case Redo::scores:
      return {squares, d};
    case Redo::contexts: {
      const bool draws = after.dropout.active() && !(after.dropout == p.held.dropout);
      const double drawn =
          draws ? n * n_keys * double(after.n_heads * after.sequences.size()) / draws_per_ms : 0;
      return {squares + drawn, d};
    }
    case Redo::projection_number:
      return {p.is_far_off() ? all : squares / double(after.n_groups()), d};
    case Redo::embedding_row:
    case Redo::memory_row:
    case Redo::mask_rows:
      return {100 * std::max(n, n_keys) * d_out / p.operations_per_ms, d};
    case Redo::nothing:
    case Redo::output:
      break;
  }
  return {0, d};
}

const Trace& Engine::trace() const {
  return parts_->trace;
}

RowView Engine::rows(Stage stage, std::size_t head) const {
  const Parts& p = *parts_;
  if (!p.holds || p.by_reference || head >= p.all.heads.size()) return {};
  const Head& h = p.all.heads[head];
  const bool weights =
      stage == Stage::weights || (stage == Stage::dropped_weights && p.all.kept.bits.empty());
  if (stage != Stage::masked_scores && !weights) return {};
  RowView view{h.scores.data(), p.all.row_stride, p.all.n_queries, p.all.n_keys};
  if (weights)
    view.largest = h.largest.data(), view.sums = h.sums.data(),
    view.exponentials = p.all.kernels->exponentials;
  return view;
}

const arma::mat& Engine::output() {
  Parts& p = *parts_;
  return p.by_reference ? *p.trace.output : p.output.bring_up_to_date(p.all, p.held, p.threads);
}

}  // namespace core::attention::fast
