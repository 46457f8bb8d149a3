#include "core/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "core/engine/implementation.hpp"
#include "core/engine/products.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/dropout.hpp"
#include "core/graph/model.hpp"
#include "core/graph/validation.hpp"

namespace core::attention::fast {
namespace {

enum class Scope { same, number, row, more };

struct ChangedCells {
  Scope scope = Scope::same;
  std::size_t row = 0, column = 0;
};

/// Returns where two matrices of the same shape differ.
ChangedCells compare(const SharedMatrix& a, const SharedMatrix& b) {
  if (a.shares_with(b)) return {};
  if (const auto cell = known_difference(a, b)) return {Scope::number, cell->row, cell->column};
  ChangedCells place;
  const arma::mat &before = *a, &after = *b;
  for (std::size_t c = 0; c < before.n_cols; ++c)
    for (std::size_t r = 0; r < before.n_rows; ++r) {
      if (before.at(r, c) == after.at(r, c)) continue;
      if (place.scope == Scope::same)
        place = {Scope::number, r, c};
      else if (r != place.row)
        return {Scope::more};
      else
        place.scope = Scope::row;
    }
  return place;
}

/// Combines single differences into one.
class Collector {
 public:
  ModelDifference result;

  void add(RecomputeScope recompute) {
    result.recompute = result.recompute == RecomputeScope::nothing ? recompute : RecomputeScope::everything;
  }

  void add_embeddings(const SharedMatrix& before, const SharedMatrix& after,
                      RecomputeScope one_row = RecomputeScope::embedding_row) {
    const ChangedCells place = compare(before, after);
    if (place.scope == Scope::same) return;
    add(place.scope == Scope::more ? RecomputeScope::everything : one_row);
    result.row = place.row;
    result.column = place.column;
    if (place.scope == Scope::number) result.increment = increment(before, after, place);
  }

  void add_projection(Qkv what, const Linear& before, const Linear& after) {
    add_number(what, false, before.weight, after.weight);
    if (before.bias.has_value() != after.bias.has_value())
      add(RecomputeScope::everything);
    else if (before.bias)
      add_number(what, true, *before.bias, *after.bias);
  }

  void add_mask(const Mask& before, const Mask& after) {
    // A structured binding, so that a new rule does not compile until it is handled here.
    const auto& [causal, method, empty_rows, cells, align, edge, large_negative, window, prefix, documents,
                 hidden_keys] = before;  // edge and large_negative have no effect where supports() holds
    const bool same_rules = causal == after.causal && method == after.method && align == after.align &&
                            window == after.window && prefix == after.prefix &&
                            documents == after.documents && hidden_keys == after.hidden_keys;
    if (!same_rules) return add(RecomputeScope::everything);
    if (empty_rows != after.empty_rows) add(RecomputeScope::scores);
    if (cells == after.cells) return;
    add(RecomputeScope::mask_rows);
    std::vector<MaskCell> others;  // sorted, as both lists are
    std::ranges::set_symmetric_difference(cells, after.cells, std::back_inserter(others));
    for (const MaskCell& cell : others)
      if (result.mask_rows.empty() || result.mask_rows.back() != cell.row)
        result.mask_rows.push_back(cell.row);
  }

  void add_additions(const Additions& before, const Additions& after) {
    // A structured binding for the same reason.
    const auto& [normalize, positions, softcap, score_bias, sink] = before;
    if (!(normalize == after.normalize) || !(positions == after.positions) ||
        softcap.has_value() != after.softcap.has_value() || score_bias.empty() != after.score_bias.empty())
      return add(RecomputeScope::everything);
    if (softcap != after.softcap || !(score_bias == after.score_bias) || !(sink == after.sink))
      add(RecomputeScope::scores);
  }

 private:
  static double increment(const SharedMatrix& before, const SharedMatrix& after, ChangedCells place) {
    return after.at(place.row, place.column) - before.at(place.row, place.column);
  }

  void add_number(Qkv what, bool is_bias, const SharedMatrix& before, const SharedMatrix& after) {
    const ChangedCells place = compare(before, after);
    if (place.scope == Scope::same) return;
    add(place.scope == Scope::number ? RecomputeScope::projection_number : RecomputeScope::everything);
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
         a.n_keys() == b.n_keys() && a.kv_heads() == b.kv_heads() &&
         a.has_key_embeddings() == b.has_key_embeddings() && a.d_source() == b.d_source();
}

/// Returns whether traces of both have the same stages with the same sizes.
bool same_stages(const Model& a, const Model& b) {
  const auto added = [](const Additions& x) {
    return std::array{x.normalize.has_value(), x.positions.rotary.has_value(), x.softcap.has_value(),
                      x.positions.has_bias(), x.has_bias()};
  };
  return same_shapes(a, b) && added(a.additions) == added(b.additions);
}

bool same_dropout(const Dropout& a, const Dropout& b) {
  return a.active() ? a == b : !b.active();
}

}  // namespace

ModelDifference difference(const Model& before, const Model& after, std::size_t sequence) {
  if (!same_shapes(before, after)) return {.recompute = RecomputeScope::everything};
  Collector all;
  const Sequence &old = before.sequences[sequence], &now = after.sequences[sequence];
  all.add_embeddings(old.embeddings, now.embeddings);
  if (before.has_key_embeddings())
    all.add_embeddings(old.key_embeddings, now.key_embeddings, RecomputeScope::source_row);
  if (before.projections) {
    const Projections &p = *before.projections, &q = *after.projections;
    all.add_projection(Qkv::queries, p.query, q.query);
    all.add_projection(Qkv::keys, p.key, q.key);
    all.add_projection(Qkv::values, p.value, q.value);
    if (!(p.output == q.output)) all.add(RecomputeScope::output);
  }
  all.add_mask(before.mask, after.mask);
  all.add_additions(before.additions, after.additions);
  if (before.scores != after.scores || scale_factor(before) != scale_factor(after))
    all.add(RecomputeScope::scores);
  if (!same_dropout(before.dropout, after.dropout)) all.add(RecomputeScope::contexts);
  if (before.merge != after.merge) all.add(RecomputeScope::output);
  return all.result;
}

namespace {

constexpr double samples_per_ms = 2e5;  // random numbers for dropout masks

}  // namespace

bool supports(const Model& model) {
  const bool moves_edge = model.mask.causal && model.mask.edge != MaskEdge();
  const Arithmetic &a = model.arithmetic, float32{.precision = Precision::float32};
  const auto& norm = model.additions.normalize;
  return model.bugs.empty() && (!norm || norm->over == NormScope::head) &&
         (a == Arithmetic() || a == float32) && !moves_edge && model.dropout.place == DropoutPlace::weights &&
         model.given.empty() && model.heads_off.empty() && model.mask.method == MaskMethod::negative_infinity;
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

Engine::Impl::Impl(std::size_t n_threads, Precision number_format)
    : threads(n_threads), format(number_format) {}

template <class Number>
TypedImpl<Number>::TypedImpl(std::size_t n_threads)
    : Impl(n_threads, std::is_same_v<Number, float> ? Precision::float32 : Precision::float64) {
  all.kernels = &supported_kernels<Number>().front();
}

namespace {

std::unique_ptr<Engine::Impl> make_impl(Precision format, std::size_t n_threads) {
  if (format == Precision::float32) return std::make_unique<TypedImpl<float>>(n_threads);
  return std::make_unique<TypedImpl<double>>(n_threads);
}

}  // namespace

Engine::Engine(std::size_t n_threads) {
  keep_blas_to_one_thread();
  impl_ = make_impl(Precision::float64, n_threads > 0 ? n_threads : n_processors());
}

Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

bool Engine::compute(const Model& model, std::size_t sequence, const StopToken* progress) {
  require(model, sequence);
  return compute_in_format(model, sequence, progress);
}

bool Engine::compute_in_format(const Model& model, std::size_t sequence, const StopToken* progress) {
  if (!supports(model) || impl_->format == format_of(model)) return impl_->compute(model, sequence, progress);
  auto others = make_impl(format_of(model), impl_->threads.n_threads());
  if (!others->compute(model, sequence, progress)) return false;
  *impl_->trace = std::move(*others->trace);  // callers keep a reference to the trace
  others->trace = std::move(impl_->trace);
  impl_ = std::move(others);
  return true;
}

UpdateResult Engine::update(const Model& after, std::size_t sequence, const StopToken* progress) {
  require(after, sequence);
  return update(after, sequence, plan(after, sequence), progress);
}

UpdateResult Engine::update(const Model& after, std::size_t sequence, const Plan& plan,
                            const StopToken* progress) {
  Impl& p = *impl_;
  if (plan.difference) {
    UpdateResult change{.everything = false};
    Model next = after;  // copied first, as it may throw: the trace and its model change together
    p.is_valid = false;
    if (p.update(after, *plan.difference, progress, change)) {
      if (!change.completed) return change;
      invalidate(*p.trace);
      p.traced_model = std::move(next);
      p.is_valid = true;
      return change;
    }
  }
  return {.completed = compute_in_format(after, sequence, progress)};
}

Engine::Plan Engine::plan(const Model& after, std::size_t sequence) const {
  const Impl& p = *impl_;
  const double all = operations(after) / p.operations_per_ms;
  if (!supports(after)) return {10 * all, nullptr};  // measured, roughly
  if (!p.is_valid || p.uses_attend || p.format != format_of(after) || sequence != p.sequence ||
      sequence >= p.traced_model.sequences.size())
    return {all, nullptr};
  const auto d = std::make_shared<const ModelDifference>(difference(p.traced_model, after, sequence));
  const double n = double(after.n_tokens()), d_out = double(after.d_out());
  const double n_keys = double(after.n_keys());
  const double squares = n * n_keys * (2 * d_out + 20 * double(after.n_heads)) / p.operations_per_ms;
  switch (d->recompute) {
    case RecomputeScope::everything:
      return {all, d};
    case RecomputeScope::scores:
      return {squares, d};
    case RecomputeScope::contexts: {
      const bool resamples = after.dropout.active() && !(after.dropout == p.traced_model.dropout);
      const double sampling_ms =
          resamples ? n * n_keys * double(after.n_heads * after.sequences.size()) / samples_per_ms : 0;
      return {squares + sampling_ms, d};
    }
    case RecomputeScope::projection_number:
      return {p.is_near_drift_limit() ? all : squares / double(after.kv_heads()), d};
    case RecomputeScope::embedding_row:
    case RecomputeScope::source_row:
    case RecomputeScope::mask_rows:
      return {100 * std::max(n, n_keys) * d_out / p.operations_per_ms, d};
    case RecomputeScope::nothing:
    case RecomputeScope::output:
      break;
  }
  return {0, d};
}

const Trace& Engine::trace() const {
  impl_->restore();
  return *impl_->trace;
}

const Model& Engine::model() const {
  return impl_->traced_model;
}

RowView Engine::rows(Stage stage, std::size_t head) const {
  const Impl& p = *impl_;
  return p.is_valid && !p.uses_attend ? p.rows(stage, head) : RowView();
}

template <class Number>
RowView TypedImpl<Number>::rows(Stage stage, std::size_t head) const {
  if (head >= all.heads.size()) return {};
  const HeadData<Number>& h = all.heads[head];
  const bool weights = stage == Stage::weights || (stage == Stage::dropped_weights && all.kept.bits.empty());
  if (stage != Stage::masked_scores && !weights) return {};
  RowView view{.stride = all.row_stride, .n_rows = all.n_queries, .n_cols = all.n_keys};
  if constexpr (std::is_same_v<Number, double>)
    view.numbers = h.scores.data();
  else
    view.float32_numbers = h.scores.data();
  if (weights) {
    view.largest = h.largest.data(), view.sums = h.sums.data();
    view.exponentials = supported_kernels<double>().front().exponentials;
  }
  return view;
}

const arma::mat& Engine::output() {
  Impl& p = *impl_;
  p.restore();
  return p.uses_attend ? *p.trace->at(Stage::output) : p.updated_output();
}

template <class Number>
const arma::mat& TypedImpl<Number>::updated_output() {
  return output.refresh(all, traced_model, threads);
}

namespace {

using std::size_t;

/// Returns how many rows of a head to compute at a time: more rows read keys and values less often.
template <class Number>
size_t block_rows(const AllHeads<Number>& all, size_t n_threads) {
  constexpr size_t tile = 24, max_tiles = 6, max_numbers = 393216;
  const size_t in_memory = max_numbers / all.n_keys;
  const size_t for_all = all.n_queries * all.heads.size() / (2 * n_threads);  // two blocks per thread
  // All rows of a block begin at its first key: with a sliding window, small blocks waste the least.
  const size_t in_window = all.visibility.mean_width() / 4;
  return std::clamp<size_t>(std::min({in_memory, for_all, in_window}) / tile, 1, max_tiles) * tile;
}

/// Stores which weights dropout keeps.
template <class Number>
void set_kept_weights(AllHeads<Number>& all, const Model& model, size_t sequence) {
  all.kept = {};
  if (!model.dropout.active()) return;
  const size_t n = model.n_tokens(), n_keys = model.n_keys(), per_sequence = model.n_heads * n * n_keys;
  if (model.dropout.given.empty()) {
    random::Generator generator(model.dropout.seed);
    all.kept.bits = kept(generator, model.dropout, (sequence + 1) * per_sequence);
    all.kept.first = sequence * per_sequence;
    return;
  }
  all.kept.bits = random::Bits(per_sequence);
  for (size_t h = 0; h < model.n_heads; ++h)
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n_keys; ++j)
        all.kept.bits.add((h * n + i) * n_keys + j,
                          model.dropout.given[sequence * model.n_heads + h]->at(i, j) != 0);
}

/// Estimates the average number of unmasked keys of a query.
double mean_keys_per_row(const Model& model) {
  const double n_keys = double(model.n_keys());
  const auto& [left, right] = model.mask.window;
  const double before = left ? double(*left) + 1 : n_keys, after = model.mask.causal ? 0
                                                                   : right           ? double(*right)
                                                                                     : n_keys;
  return std::min(model.mask.causal ? n_keys / 2 : n_keys, before + after);
}

}  // namespace

double operations(const Model& model) {
  const double n = double(model.n_tokens()), n_keys = double(model.n_keys()), d = double(model.d_out());
  const double of_keys = d * double(model.kv_heads()) / double(model.n_heads);
  const double projected = model.projections ? n * double(model.d_model()) * d + n * d * d +
                                                   2 * n_keys * double(model.d_source()) * of_keys
                                             : 0;
  return projected + n * mean_keys_per_row(model) * (2 * d + 20 * double(model.n_heads));
}

bool Engine::Impl::compute(const Model& model, size_t s, const StopToken* progress) {
  const auto start = std::chrono::steady_clock::now();
  Model next = model;
  is_valid = false;
  if (!supports(model)) return compute_with_attend(std::move(next), s);
  const std::optional<bool> is_finite = compute_stages(model, s, progress);
  if (!is_finite) return false;
  if (!*is_finite) return compute_with_attend(std::move(next), s);
  if (uses_attend || trace->n_heads() == 0 || !same_stages(traced_model, model)) *trace = new_trace(model);
  invalidate(*trace);
  uses_attend = false;
  set_traced_model(std::move(next), s);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  operations_per_ms = operations(model) / std::max(ms, 1e-3);
  return true;
}

bool Engine::Impl::compute_with_attend(Model model, size_t s) {
  clear();  // there may not be room for both
  *trace = attend(model, s);
  uses_attend = true;
  set_traced_model(std::move(model), s);
  return true;
}

void Engine::Impl::set_traced_model(Model model, size_t s) {
  traced_model = std::move(model);
  sequence = trace->sequence = s;
  is_valid = true;
}

void Engine::Impl::restore() {
  if (is_valid || traced_model.sequences.empty()) return;
  const std::lock_guard lock(restore_mutex);
  if (!is_valid) compute(Model(traced_model), sequence, nullptr);
}

template <class Number>
std::optional<bool> TypedImpl<Number>::compute_stages(const Model& model, size_t s,
                                                      const StopToken* progress) {
  prepare(model, s);
  if (!project_all(all, model, s, threads)) return false;
  const std::optional<bool> is_finite = compute_all_heads(StartStage::queries, progress);
  if (!is_finite) return std::nullopt;
  drift.assign(std::max(all.n_queries, all.n_keys), 0);
  output.mark_all_changed();
  return *is_finite && measure_norms();
}

template <class Number>
Trace TypedImpl<Number>::new_trace(const Model& model) {
  return lazy_trace(all, model, traced_model, sequence,
                    [this]() -> const arma::mat& { return updated_output(); });
}

template <class Number>
void TypedImpl<Number>::prepare(const Model& model, size_t s) {
  if (!all.same_shape(model)) {
    *trace = Trace{};  // the old one would read freed numbers
    all.allocate(model);
    must_clear_rows = true;
  }
  UnmaskedKeys visibility(model, s);
  if (!(visibility == all.visibility)) must_clear_rows = true;
  all.visibility = std::move(visibility);
  all.uniform = model.scores == ScoreRule::uniform;
  all.scale = scale_factor(model);
  all.empty_rows = model.mask.empty_rows;
  if (!all.rules.matches(model)) all.rules = Rules(model);
  all.sinks.clear();
  if (const auto& sink = model.additions.sink) all.sinks.assign((*sink)->begin(), (*sink)->end());
  set_kept_weights(all, model, s);
  all.kept.factor = dropout_scale(model.dropout);
}

template <class Number>
std::optional<bool> TypedImpl<Number>::compute_all_heads(StartStage from, const StopToken* progress) {
  const size_t rows = block_rows(all, threads.n_threads()), n_blocks = (all.n_queries + rows - 1) / rows;
  const size_t count = all.heads.size() * n_blocks;
  std::atomic<bool> is_finite{true};
  std::atomic<size_t> done{0};
  const auto block = [&](size_t task) {
    if (progress && !progress->should_continue()) return;
    const size_t h = task % all.heads.size(),
                 first = (n_blocks - 1 - task / all.heads.size()) * rows;  // long rows first
    const size_t end = std::min(first + rows, all.n_queries);
    if (must_clear_rows)
      for (size_t i = first; i < end; ++i) all.mask_row(h, i);
    if (!all.compute_stages(h, first, end, from)) is_finite = false;
    if (progress) progress->report(double(++done) / double(count));
  };
  threads.run(count, 2 * all.n_queries * all.n_keys * all.d_out, block);
  if (progress && !progress->should_continue()) return std::nullopt;
  must_clear_rows = false;
  return is_finite.load();
}

template <class Number>
bool TypedImpl<Number>::measure_norms() {
  std::vector<double> queries(all.heads.size()), keys(all.heads.size());
  threads.run(all.heads.size(), 2 * all.n_queries * all.d_out, [&](size_t h) {
    for (size_t i = 0; i < all.n_queries; ++i)
      queries[h] =
          std::max<double>(queries[h], all.kernels->dot(all.query(h, i), all.query(h, i), all.d_head));
    keys[h] = all.max_squared_key_norm(h);
  });
  max_query_norm = std::sqrt(*std::max_element(queries.begin(), queries.end()));
  max_key_norm = std::sqrt(*std::max_element(keys.begin(), keys.end()));
  return std::isfinite(
      static_cast<Number>(max_query_norm * max_key_norm * std::max(1.0, std::abs(all.scale))));
}

}  // namespace core::attention::fast
