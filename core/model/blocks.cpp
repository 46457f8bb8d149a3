#include "core/model/blocks.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

namespace core::transformer {

RowBuffer project(const RowsView& x, const Affine& numbers, ThreadPool& pool,
                  std::optional<Activation> activation) {
  RowBuffer result(x.n_rows, numbers.weight.d_out());
  multiply(x, numbers.weight, {numbers.bias.empty() ? nullptr : numbers.bias.data(), activation},
           result.row(0), result.stride(), pool);
  return result;
}

void norm_row(const float* x, std::size_t width, const NormWeights& numbers, const ModelNorm& norm, float* y,
              std::size_t first_factor) {
  kernels().norm(x, width,
                 {numbers.factors.data() + first_factor, numbers.bias.empty() ? nullptr : numbers.bias.data(),
                  norm.kind == NormKind::layer, static_cast<float>(norm.epsilon)},
                 y);
}

RowBuffer apply_norm(const RowsView& x, const NormWeights& numbers, const ModelNorm& norm, ThreadPool& pool) {
  RowBuffer result(x.n_rows, x.width);
  for_parts_of_rows(x.n_rows, x.width, pool, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i)
      norm_row(x.row(i), x.width, numbers, norm, result.row(i));
  });
  return result;
}

RowBuffer sum_of(const RowsView& a, const RowsView& b, ThreadPool& pool, bool& is_finite) {
  RowBuffer result(a.n_rows, a.width);
  std::atomic<bool> all_finite = true;
  for_parts_of_rows(a.n_rows, a.width, pool, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i)
      std::transform(a.row(i), a.row(i) + a.width, b.row(i), result.row(i), std::plus<>());
    if (!result.view().rows(first, count).is_finite()) all_finite = false;
  });
  is_finite = all_finite;
  return result;
}

RotaryTable::RotaryTable(const std::optional<positions::Rotary>& rotary, std::size_t d_head,
                         std::size_t first, std::size_t n_tokens) {
  if (!rotary) return;
  const auto end = static_cast<std::int64_t>(first + n_tokens);
  const positions::Rotary now = positions::at_length(*rotary, d_head, end);
  const std::vector<double> frequencies = positions::frequencies(now, d_head);
  for (std::size_t k = 0; k < frequencies.size(); ++k)
    columns_.push_back(positions::pair_columns(now, k, d_head));
  for (auto position = static_cast<std::int64_t>(first); position < end; ++position) {
    const positions::PairRotations at = positions::rotation_at(now, frequencies, position);
    cosines_.insert(cosines_.end(), at.cosines.begin(), at.cosines.end());
    sines_.insert(sines_.end(), at.sines.begin(), at.sines.end());
  }
}

void RotaryTable::apply(float* head, std::size_t token) const {
  const std::size_t at = token * columns_.size();
  for (std::size_t k = 0; k < columns_.size(); ++k)
    positions::rotate_pair(head[columns_[k].first], head[columns_[k].second], cosines_[at + k],
                           sines_[at + k]);
}

LayerRotaryTables::LayerRotaryTables(const Architecture& architecture, std::size_t first,
                                     std::size_t n_tokens)
    : architecture_(&architecture),
      none_(std::nullopt, architecture.sizes.d_head, first, n_tokens),
      global_(architecture.rotary, architecture.sizes.d_head, first, n_tokens),
      windowed_(architecture.windowed_rotary, architecture.sizes.d_head, first, n_tokens) {}

const RotaryTable& LayerRotaryTables::at(std::size_t layer) const {
  const auto& rotary = rotary_of(*architecture_, layer);
  return !rotary ? none_ : &rotary == &architecture_->windowed_rotary ? windowed_ : global_;
}

RowBuffer mlp(const RowsView& x, const MlpWeights& weights, const Mlp& rules, ThreadPool& pool) {
  const bool is_plain = !rules.gated && !weights.xielu;
  RowBuffer hidden =
      project(x, weights.up, pool, is_plain ? std::optional<Activation>(rules.activation) : std::nullopt);
  if (weights.xielu)
    for (std::size_t i = 0; i < hidden.n_rows(); ++i)
      for (std::size_t j = 0; j < hidden.width(); ++j) {
        float& number = hidden.row(i)[j];
        const auto& [positive, negative, beta, epsilon] = *weights.xielu;
        const float curved = number > 0 ? positive * number * number
                                        : negative * (std::expm1(std::min(number, epsilon)) - number);
        number = curved + beta * number;
      }
  if (!rules.gated) return project(hidden, weights.down, pool);
  const std::size_t d_hidden = hidden.width() / 2;
  RowBuffer gated(x.n_rows, d_hidden);
  for_parts_of_rows(x.n_rows, hidden.width(), pool, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      const float* row = hidden.row(i);
      std::copy_n(row, d_hidden, gated.row(i));
      kernels().activate(gated.row(i), row + d_hidden, d_hidden, rules.activation);
    }
  });
  return project(gated, weights.down, pool);
}

namespace {

/// Adds rows times factors to some rows of a sum.
void add_rows(const RowBuffer& rows, const std::vector<std::size_t>& places,
              const std::vector<float>& factors, RowBuffer& sum) {
  for (std::size_t k = 0; k < places.size(); ++k)
    for (std::size_t j = 0; j < sum.width(); ++j) sum.row(places[k])[j] += factors[k] * rows.row(k)[j];
}

/// Returns the experts of a token and their weights; the correction affects the choice, not the weights.
std::vector<std::pair<std::size_t, float>> select_experts(const float* scores,
                                                          const std::vector<float>& correction,
                                                          const formats::checkpoints::Experts& rules) {
  std::vector<std::pair<std::size_t, float>> all;
  const bool is_softmax = rules.routing == formats::checkpoints::Routing::softmax;
  const float top = *std::max_element(scores, scores + rules.n);
  float sum = 0;
  for (std::size_t k = 0; k < rules.n; ++k) {
    all.emplace_back(k, is_softmax ? std::exp(scores[k] - top) : 1 / (1 + std::exp(-scores[k])));
    sum += all.back().second;
  }
  if (is_softmax)
    for (auto& [expert, weight] : all) weight /= sum;
  const auto preferred = [&](const std::pair<std::size_t, float>& one) {
    return one.second + (correction.empty() ? 0 : correction[one.first]);
  };
  std::ranges::stable_sort(all, std::greater<>(), preferred);
  all.resize(rules.n_used);
  sum = 1;
  if (rules.normalized) {
    sum = 0;
    for (const auto& [expert, weight] : all) sum += weight;
  }
  for (auto& [expert, weight] : all) weight *= static_cast<float>(rules.factor) / sum;
  return all;
}

}  // namespace

RowBuffer mixture_of_experts(const RowsView& x, const LayerWeights& weights, const Architecture& architecture,
                             ThreadPool& pool) {
  const formats::checkpoints::Experts& rules = architecture.experts;
  const RowBuffer scores = project(x, weights.router, pool);
  std::vector<std::vector<std::size_t>> places(rules.n);
  std::vector<std::vector<float>> factors(rules.n);
  for (std::size_t i = 0; i < x.n_rows; ++i)
    for (const auto& [expert, weight] : select_experts(scores.row(i), weights.router_correction, rules)) {
      places[expert].push_back(i);
      factors[expert].push_back(weight);
    }
  RowBuffer sum(x.n_rows, x.width);
  for (std::size_t i = 0; i < x.n_rows; ++i) std::fill_n(sum.row(i), x.width, 0.0f);
  for (std::size_t expert = 0; expert < rules.n; ++expert) {
    if (places[expert].empty()) continue;
    RowBuffer own(places[expert].size(), x.width);
    for (std::size_t k = 0; k < own.n_rows(); ++k) std::copy_n(x.row(places[expert][k]), x.width, own.row(k));
    add_rows(mlp(own, weights.experts[expert], architecture.mlp, pool), places[expert], factors[expert], sum);
  }
  if (rules.d_shared == 0) return sum;
  std::vector<std::size_t> all(x.n_rows);
  std::vector<float> by(x.n_rows, 1);
  std::iota(all.begin(), all.end(), 0);
  if (!weights.shared_expert_gate.is_empty()) {
    const RowBuffer switches = project(x, weights.shared_expert_gate, pool);
    for (std::size_t i = 0; i < x.n_rows; ++i) by[i] = 1 / (1 + std::exp(-switches.row(i)[0]));
  }
  add_rows(mlp(x, weights.shared, architecture.mlp, pool), all, by, sum);
  return sum;
}

ScoreRules score_rules_of(const Architecture& architecture, std::size_t layer) {
  const Sizes& sizes = architecture.sizes;
  const attention::Scale rule = scale_of(architecture, layer);
  const double scale = rule.rule == attention::ScaleRule::inverse_sqrt_d_head
                           ? 1 / std::sqrt(static_cast<double>(sizes.d_head))
                           : rule.factor;
  ScoreRules rules{architecture.causal,
                   architecture.layers.window_of(layer),
                   static_cast<float>(scale),
                   static_cast<float>(architecture.softcap.value_or(0)),
                   {}};
  if (architecture.alibi)
    for (std::size_t head = 0; head < sizes.n_heads; ++head)
      rules.slopes.push_back(
          static_cast<float>(positions::alibi_slope(*architecture.alibi, head, sizes.n_heads)));
  return rules;
}

VisibleKeys visible_keys(const ScoreRules& rules, std::size_t position, std::size_t n_keys) {
  const std::size_t end = rules.causal ? position + 1 : n_keys;
  if (rules.window == 0) return {0, end};
  const std::size_t half = rules.window / 2, before = rules.causal ? rules.window - 1 : half;
  return {position > before ? position - before : 0, rules.causal ? end : std::min(end, position + half + 1)};
}

namespace {

constexpr std::size_t queries_at_once = 64;

/// Scales, caps and biases the scores of the query at a position, for keys from `first` on.
void finish_scores(float* scores, std::size_t n, std::size_t first, std::size_t position,
                   const ScoreRules& rules, float slope) {
  const float cap = rules.softcap;
  for (std::size_t j = 0; j < n; ++j) {
    scores[j] *= rules.scale;
    if (cap > 0) scores[j] = attention::softcapped(scores[j], cap);
    const std::size_t key = first + j;
    scores[j] -= slope * static_cast<float>(key > position ? key - position : position - key);
  }
}

/// The weights of some queries of a head for those keys that any of them attends to, whole panels of keys.
struct QueryBlockWeights {
  std::size_t begin = 0, end = 0;  ///< of the keys
  RowBuffer weights;               ///< n_queries × (end − begin)
};

QueryBlockWeights query_block_weights(const RowsView& queries, const RowsView& keys, std::size_t position,
                                      const ScoreRules& rules, std::size_t head) {
  QueryBlockWeights result;
  const float slope = rules.slopes.empty() ? 0 : rules.slopes[head];
  const bool is_plain = rules.softcap == 0 && slope == 0;
  result.begin = visible_keys(rules, position, keys.n_rows).begin / panel_width * panel_width;
  result.end = visible_keys(rules, position + queries.n_rows - 1, keys.n_rows).end;
  const std::size_t n = result.end - result.begin, d_head = queries.width;
  result.weights = RowBuffer(queries.n_rows, n);
  RowBuffer panel(d_head, panel_width);
  for (std::size_t j = 0; j < n; j += panel_width) {
    kernels().pack_panel(keys.row(result.begin + j), keys.stride, std::min(panel_width, n - j), d_head,
                         panel.row(0));
    kernels().float_panel(queries.numbers, queries.stride, queries.n_rows, panel.row(0), panel_width, d_head,
                          result.weights.row(0) + j, result.weights.stride());
  }
  for (std::size_t i = 0; i < queries.n_rows; ++i) {
    const auto [begin, end] = visible_keys(rules, position + i, keys.n_rows);
    if (!is_plain) finish_scores(result.weights.row(i), n, result.begin, position + i, rules, slope);
    kernels().softmax(result.weights.row(i), begin - result.begin, end - result.begin, n,
                      is_plain ? rules.scale : 1);
  }
  return result;
}

}  // namespace

RowBuffer compute_attention_weights(const RowsView& queries, const RowsView& keys, const ScoreRules& rules,
                                    std::size_t head) {
  RowBuffer result(queries.n_rows, keys.n_rows);
  for (std::size_t from = 0; from < queries.n_rows; from += queries_at_once) {
    const std::size_t n_rows = std::min(queries_at_once, queries.n_rows - from);
    const QueryBlockWeights part = query_block_weights(queries.rows(from, n_rows), keys,
                                                       keys.n_rows - queries.n_rows + from, rules, head);
    for (std::size_t i = 0; i < n_rows; ++i) {
      std::fill_n(result.row(from + i), keys.n_rows, 0.0f);
      std::copy_n(part.weights.row(i), part.end - part.begin, result.row(from + i) + part.begin);
    }
  }
  return result;
}

RowBuffer compute_contexts(const HeadRows& queries, const HeadRows& keys, const HeadRows& values,
                           std::size_t first, std::size_t count, const ScoreRules& rules, ThreadPool& pool) {
  const std::size_t n_heads = queries.size(), d_head = queries.front().view().width,
                    n_parts = (count + queries_at_once - 1) / queries_at_once, n_keys = keys.front().n_rows();
  RowBuffer contexts(count, n_heads * d_head);
  pool.run(n_heads * n_parts, 2 * n_heads * d_head * count * n_keys, [&](std::size_t task) {
    const std::size_t head = task % n_heads, group = head / (n_heads / keys.size()),
                      from = (n_parts - 1 - task / n_heads) * queries_at_once,  // those with most keys first
        n_rows = std::min(queries_at_once, count - from);
    const RowsView these = queries[head].view().rows(first + from, n_rows), of = values[group];
    const QueryBlockWeights part = query_block_weights(these, keys[group], first + from, rules, head);
    RowBuffer result(n_rows, d_head);
    for (std::size_t column = 0; column < d_head; column += panel_width)
      kernels().float_panel(part.weights.row(0), part.weights.stride(), n_rows, of.row(part.begin) + column,
                            of.stride, part.end - part.begin, result.row(0) + column, result.stride());
    for (std::size_t i = 0; i < n_rows; ++i)
      std::copy_n(result.row(i), d_head, contexts.row(from + i) + head * d_head);
  });
  return contexts;
}

}  // namespace core::transformer
