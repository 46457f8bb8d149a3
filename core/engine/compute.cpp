#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>

#include "core/engine/parts.hpp"
#include "core/engine/projecting.hpp"
#include "core/engine/requests.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/dropout.hpp"

namespace core::attention::fast {
namespace {

using std::size_t;

/// How many rows of a head are worked out at a time: the more, the less often keys and values are read again.
size_t block_rows(const Heads& all, size_t n_threads) {
  constexpr size_t tile = 24, most_tiles = 6, most_numbers = 393216;
  const size_t in_memory = most_numbers / all.n_keys;
  const size_t for_all = all.n_queries * all.heads.size() / (2 * n_threads);  // two blocks for each thread
  // All rows of a block begin at its first key: in a window, a few rows waste the least.
  const size_t in_window = all.visibility.mean_width() / 4;
  return std::clamp<size_t>(std::min({in_memory, for_all, in_window}) / tile, 1, most_tiles) * tile;
}

/// Takes down what dropout keeps.
void put_kept(Heads& all, const Model& model, size_t sequence) {
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

/// Keys that a query sees, on average and roughly.
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
  const double of_keys = d * double(model.n_groups()) / double(model.n_heads);
  const double projected = model.projections ? n * double(model.d_model()) * d + n * d * d +
                                                   2 * n_keys * double(model.d_memory()) * of_keys
                                             : 0;
  return projected + n * keys_a_row(model) * (2 * d + 20 * double(model.n_heads));
}

bool Engine::Parts::compute(const Model& model, size_t s, const Token* progress) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  holds = false;
  if (!covers(model)) return compute_by_reference(model, s);
  prepare(model, s);
  if (!project_all(all, model, s, threads)) return compute_by_reference(model, s);
  const std::optional<bool> finite = work_out_all(From::queries, progress);
  if (!finite) return false;
  if (!*finite) return compute_by_reference(model, s);
  drift.assign(std::max(all.n_queries, all.n_keys), 0);
  if (!measure_lengths()) return compute_by_reference(model, s);
  output.all_changed();
  held = model;
  sequence = s;
  if (by_reference || trace.heads.empty() || !(kind == kind_of(model)))
    trace = trace_on_request(all, held, sequence, [this]() -> const arma::mat& {
      return output.bring_up_to_date(all, held, threads);
    });
  kind = kind_of(model);
  trace.sequence = s;
  by_reference = false;
  holds = true;
  renew(trace);
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  operations_per_ms = operations(model) / std::max(ms, 1e-3);
  return true;
}

bool Engine::Parts::compute_by_reference(const Model& model, size_t s) {
  all.heads.clear();
  trace = attend(model, s);
  by_reference = true;
  held = model;
  sequence = s;
  holds = true;
  return true;
}

void Engine::Parts::prepare(const Model& model, size_t s) {
  if (!all.same_shape(model)) {
    trace = Trace{};  // the old one asks for what will be no more
    all.allocate(model);
    hide_first = true;
  }
  Visibility visibility(model, s);
  if (!(visibility == all.visibility)) hide_first = true;
  all.visibility = std::move(visibility);
  all.uniform = model.scores == ScoreRule::uniform;
  all.scale = scale_factor(model);
  all.empty_rows = model.mask.empty_rows;
  if (!all.preparing.fits(model)) all.preparing = Preparing(model);
  if (!all.adjusting.fits(model)) all.adjusting = Adjusting(model);
  all.sinks.clear();
  if (const auto& sink = model.additions.sink) all.sinks.assign((*sink)->begin(), (*sink)->end());
  put_kept(all, model, s);
  all.kept.factor = survivor_factor(model.dropout);
}

std::optional<bool> Engine::Parts::work_out_all(From from, const Token* progress) {
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
      for (size_t i = first; i < end; ++i) hide_row(all, h, i);
    if (!work_out(all, h, first, end, from)) finite = false;
    if (progress) progress->report(double(++done) / double(count));
  };
  threads.run(count, 2 * all.n_queries * all.n_keys * all.d_out, block);
  if (progress && !progress->goes_on()) return std::nullopt;
  hide_first = false;
  return finite.load();
}

bool Engine::Parts::measure_lengths() {
  std::vector<double> queries(all.heads.size()), keys(all.heads.size());
  threads.run(all.heads.size(), 2 * all.n_queries * all.d_out, [&](size_t h) {
    for (size_t i = 0; i < all.n_queries; ++i)
      queries[h] = std::max(queries[h], all.kernels->dot(all.query(h, i), all.query(h, i), all.d_head));
    keys[h] = all.longest_key_squared(h);
  });
  longest_query = std::sqrt(*std::max_element(queries.begin(), queries.end()));
  longest_key = std::sqrt(*std::max_element(keys.begin(), keys.end()));
  return std::isfinite(longest_query * longest_key * std::max(1.0, std::abs(all.scale)));
}

}  // namespace core::attention::fast
