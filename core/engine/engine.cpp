#include "core/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iterator>
#include <thread>
#include <type_traits>

#include "core/engine/parts.hpp"
#include "core/engine/products.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/dropout.hpp"
#include "core/graph/model.hpp"

namespace core::attention::fast {
namespace {

enum class Scope { same, number, row, more };

struct Place {
  Scope scope = Scope::same;
  std::size_t row = 0, column = 0;
};

/// Returns where two matrices of the same shape differ.
Place compare(const SharedMatrix& a, const SharedMatrix& b) {
  if (a.shares_with(b)) return {};
  if (const auto cell = known_difference(a, b)) return {Scope::number, cell->row, cell->column};
  Place place;
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
  Difference result;

  void add(Redo redo) { result.redo = result.redo == Redo::nothing ? redo : Redo::everything; }

  void add_embeddings(const SharedMatrix& before, const SharedMatrix& after,
                      Redo one_row = Redo::embedding_row) {
    const Place place = compare(before, after);
    if (place.scope == Scope::same) return;
    add(place.scope == Scope::more ? Redo::everything : one_row);
    result.row = place.row;
    result.column = place.column;
    if (place.scope == Scope::number) result.increment = increment(before, after, place);
  }

  void add_projection(Projected what, const Linear& before, const Linear& after) {
    add_number(what, false, before.weight, after.weight);
    if (before.bias.has_value() != after.bias.has_value())
      add(Redo::everything);
    else if (before.bias)
      add_number(what, true, *before.bias, *after.bias);
  }

  void add_mask(const Mask& before, const Mask& after) {
    // A structured binding, so that a new rule does not compile until it is handled here.
    const auto& [causal, method, empty_rows, cells, align, edge, large_negative, window, prefix, documents,
                 hidden_keys] = before;  // edge and large_negative have no effect where covers() holds
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
    // A structured binding for the same reason.
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
    if (place.scope == Scope::same) return;
    add(place.scope == Scope::number ? Redo::projection_number : Redo::everything);
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
    return std::array{x.normalise.has_value(), x.positions.rotary.has_value(), x.score_cap.has_value(),
                      x.positions.has_bias(), x.has_bias()};
  };
  return same_shapes(a, b) && added(a.additions) == added(b.additions);
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
  if (before.has_key_embeddings())
    all.add_embeddings(old.key_embeddings, now.key_embeddings, Redo::source_row);
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

namespace {

constexpr double draws_per_ms = 2e5;  // random numbers for dropout masks

}  // namespace

bool covers(const Model& model) {
  const bool moves_edge = model.mask.causal && model.mask.edge != MaskEdge();
  const Arithmetic &a = model.arithmetic, float32{.precision = Precision::float32};
  const auto& norm = model.additions.normalise;
  return model.mistakes.empty() && (!norm || norm->over == NormOver::head) &&
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

Engine::Parts::Parts(std::size_t n_threads, Precision its_format) : threads(n_threads), format(its_format) {}

template <class Number>
PartsIn<Number>::PartsIn(std::size_t n_threads)
    : Parts(n_threads, std::is_same_v<Number, float> ? Precision::float32 : Precision::float64) {
  all.kernels = &kernels_of_this_processor<Number>().front();
}

namespace {

std::unique_ptr<Engine::Parts> parts_in(Precision format, std::size_t n_threads) {
  if (format == Precision::float32) return std::make_unique<PartsIn<float>>(n_threads);
  return std::make_unique<PartsIn<double>>(n_threads);
}

}  // namespace

Engine::Engine(std::size_t n_threads) {
  keep_blas_to_one_thread();
  parts_ = parts_in(Precision::float64,
                    n_threads > 0 ? n_threads : std::max(1u, std::thread::hardware_concurrency()));
}

Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

bool Engine::compute(const Model& model, std::size_t sequence, const Token* progress) {
  require(model, sequence);
  return compute_in_format(model, sequence, progress);
}

bool Engine::compute_in_format(const Model& model, std::size_t sequence, const Token* progress) {
  if (!covers(model) || parts_->format == format_of(model)) return parts_->compute(model, sequence, progress);
  auto others = parts_in(format_of(model), parts_->threads.n_threads());
  if (!others->compute(model, sequence, progress)) return false;
  *parts_->trace = std::move(*others->trace);  // callers keep a reference to the trace
  others->trace = std::move(parts_->trace);
  parts_ = std::move(others);
  return true;
}

Change Engine::update(const Model& after, std::size_t sequence, const Token* progress) {
  require(after, sequence);
  return update(after, sequence, plan(after, sequence), progress);
}

Change Engine::update(const Model& after, std::size_t sequence, const Plan& plan, const Token* progress) {
  Parts& p = *parts_;
  if (plan.difference) {
    Change change{.everything = false};
    Model next = after;  // copied first, as it may throw: the trace and its model change together
    p.holds = false;
    if (p.update(after, *plan.difference, progress, change)) {
      if (!change.completed) return change;
      renew(*p.trace);
      p.held = std::move(next);
      p.holds = true;
      return change;
    }
  }
  return {.completed = compute_in_format(after, sequence, progress)};
}

Engine::Plan Engine::plan(const Model& after, std::size_t sequence) const {
  const Parts& p = *parts_;
  const double all = operations(after) / p.operations_per_ms;
  if (!covers(after)) return {10 * all, nullptr};  // measured, roughly
  if (!p.holds || p.by_reference || p.format != format_of(after) || sequence != p.sequence ||
      sequence >= p.held.sequences.size())
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
      return {p.is_far_off() ? all : squares / double(after.kv_heads()), d};
    case Redo::embedding_row:
    case Redo::source_row:
    case Redo::mask_rows:
      return {100 * std::max(n, n_keys) * d_out / p.operations_per_ms, d};
    case Redo::nothing:
    case Redo::output:
      break;
  }
  return {0, d};
}

const Trace& Engine::trace() const {
  parts_->restore();
  return *parts_->trace;
}

const Model& Engine::model() const {
  return parts_->held;
}

RowView Engine::rows(Stage stage, std::size_t head) const {
  const Parts& p = *parts_;
  return p.holds && !p.by_reference ? p.rows(stage, head) : RowView();
}

template <class Number>
RowView PartsIn<Number>::rows(Stage stage, std::size_t head) const {
  if (head >= all.heads.size()) return {};
  const Head<Number>& h = all.heads[head];
  const bool weights = stage == Stage::weights || (stage == Stage::dropped_weights && all.kept.bits.empty());
  if (stage != Stage::masked_scores && !weights) return {};
  RowView view{.stride = all.row_stride, .n_rows = all.n_queries, .n_cols = all.n_keys};
  if constexpr (std::is_same_v<Number, double>)
    view.numbers = h.scores.data();
  else
    view.float32_numbers = h.scores.data();
  if (weights) {
    view.largest = h.largest.data(), view.sums = h.sums.data();
    view.exponentials = kernels_of_this_processor<double>().front().exponentials;
  }
  return view;
}

const arma::mat& Engine::output() {
  Parts& p = *parts_;
  p.restore();
  return p.by_reference ? *p.trace->at(Stage::output) : p.bring_output_up_to_date();
}

template <class Number>
const arma::mat& PartsIn<Number>::bring_output_up_to_date() {
  return output.bring_up_to_date(all, held, threads);
}

namespace {

using std::size_t;

/// Returns how many rows of a head to compute at a time: more rows read keys and values less often.
template <class Number>
size_t block_rows(const Heads<Number>& all, size_t n_threads) {
  constexpr size_t tile = 24, max_tiles = 6, max_numbers = 393216;
  const size_t in_memory = max_numbers / all.n_keys;
  const size_t for_all = all.n_queries * all.heads.size() / (2 * n_threads);  // two blocks per thread
  // All rows of a block begin at its first key: with a sliding window, small blocks waste the least.
  const size_t in_window = all.visibility.mean_width() / 4;
  return std::clamp<size_t>(std::min({in_memory, for_all, in_window}) / tile, 1, max_tiles) * tile;
}

/// Stores which weights dropout keeps.
template <class Number>
void put_kept(Heads<Number>& all, const Model& model, size_t sequence) {
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
double keys_a_row(const Model& model) {
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
  return projected + n * keys_a_row(model) * (2 * d + 20 * double(model.n_heads));
}

bool Engine::Parts::compute(const Model& model, size_t s, const Token* progress) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  Model next = model;
  holds = false;
  if (!covers(model)) return compute_by_reference(std::move(next), s);
  const std::optional<bool> finite = work_out(model, s, progress);
  if (!finite) return false;
  if (!*finite) return compute_by_reference(std::move(next), s);
  if (by_reference || trace->n_heads() == 0 || !same_stages(held, model)) *trace = new_trace(model);
  renew(*trace);
  by_reference = false;
  hold(std::move(next), s);
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  operations_per_ms = operations(model) / std::max(ms, 1e-3);
  return true;
}

bool Engine::Parts::compute_by_reference(Model model, size_t s) {
  clear();  // there may not be room for both
  *trace = attend(model, s);
  by_reference = true;
  hold(std::move(model), s);
  return true;
}

void Engine::Parts::hold(Model model, size_t s) {
  held = std::move(model);
  sequence = trace->sequence = s;
  holds = true;
}

void Engine::Parts::restore() {
  if (holds || held.sequences.empty()) return;
  const std::lock_guard lock(restoring);
  if (!holds) compute(Model(held), sequence, nullptr);
}

template <class Number>
std::optional<bool> PartsIn<Number>::work_out(const Model& model, size_t s, const Token* progress) {
  prepare(model, s);
  if (!project_all(all, model, s, threads)) return false;
  const std::optional<bool> finite = work_out_all(From::queries, progress);
  if (!finite) return std::nullopt;
  drift.assign(std::max(all.n_queries, all.n_keys), 0);
  output.all_changed();
  return *finite && measure_lengths();
}

template <class Number>
Trace PartsIn<Number>::new_trace(const Model& model) {
  return trace_on_request(all, model, held, sequence,
                          [this]() -> const arma::mat& { return bring_output_up_to_date(); });
}

template <class Number>
void PartsIn<Number>::prepare(const Model& model, size_t s) {
  if (!all.same_shape(model)) {
    *trace = Trace{};  // the old one would read freed numbers
    all.allocate(model);
    hide_first = true;
  }
  Visibility visibility(model, s);
  if (!(visibility == all.visibility)) hide_first = true;
  all.visibility = std::move(visibility);
  all.uniform = model.scores == ScoreRule::uniform;
  all.scale = scale_factor(model);
  all.empty_rows = model.mask.empty_rows;
  if (!all.rules.fit(model)) all.rules = Rules(model);
  all.sinks.clear();
  if (const auto& sink = model.additions.sink) all.sinks.assign((*sink)->begin(), (*sink)->end());
  put_kept(all, model, s);
  all.kept.factor = dropout_scale(model.dropout);
}

template <class Number>
std::optional<bool> PartsIn<Number>::work_out_all(From from, const Token* progress) {
  const size_t rows = block_rows(all, threads.n_threads()), n_blocks = (all.n_queries + rows - 1) / rows;
  const size_t count = all.heads.size() * n_blocks;
  std::atomic<bool> finite{true};
  std::atomic<size_t> done{0};
  const auto block = [&](size_t task) {
    if (progress && !progress->goes_on()) return;
    const size_t h = task % all.heads.size(),
                 first = (n_blocks - 1 - task / all.heads.size()) * rows;  // long rows first
    const size_t end = std::min(first + rows, all.n_queries);
    if (hide_first)
      for (size_t i = first; i < end; ++i) all.hide_row(h, i);
    if (!all.work_out(h, first, end, from)) finite = false;
    if (progress) progress->report(double(++done) / double(count));
  };
  threads.run(count, 2 * all.n_queries * all.n_keys * all.d_out, block);
  if (progress && !progress->goes_on()) return std::nullopt;
  hide_first = false;
  return finite.load();
}

template <class Number>
bool PartsIn<Number>::measure_lengths() {
  std::vector<double> queries(all.heads.size()), keys(all.heads.size());
  threads.run(all.heads.size(), 2 * all.n_queries * all.d_out, [&](size_t h) {
    for (size_t i = 0; i < all.n_queries; ++i)
      queries[h] =
          std::max<double>(queries[h], all.kernels->dot(all.query(h, i), all.query(h, i), all.d_head));
    keys[h] = all.longest_key_squared(h);
  });
  longest_query = std::sqrt(*std::max_element(queries.begin(), queries.end()));
  longest_key = std::sqrt(*std::max_element(keys.begin(), keys.end()));
  return std::isfinite(static_cast<Number>(longest_query * longest_key * std::max(1.0, std::abs(all.scale))));
}

}  // namespace core::attention::fast
