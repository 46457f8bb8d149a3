#include "core/check/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/graph/attend.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/matrices.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/visible.hpp"

namespace core::check::inference {
namespace {

using enum Stage;

/// Returns a matrix of a block without copying, transposed because blocks are stored row by row.
arma::mat view(const Block& a, std::size_t b, std::size_t h) {
  return {const_cast<double*>(a.row(b, h, 0)), a.n[3], a.n[2], false, true};
}

SharedBlock shared(const arma::mat& numbers) {
  return share(Block::of({1, 1, numbers.n_rows, numbers.n_cols},
                         [&](auto, auto, auto i, auto j) { return numbers(i, j); }));
}

std::vector<double> listed(const arma::mat& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// Splits projected rows into heads.
Block split_heads(const Block& y, std::size_t n, std::string_view how) {
  const std::size_t width = y.n[3] / n;
  const Shape shape{y.n[0], n, y.n[2], width};
  if (how == "view") return reshaped(y, shape);
  return Block::of(shape, [&](auto b, auto h, auto t, auto c) {
    return y.v[y.at(b, 0, t, how == "interleaved" ? c * n + h : h * width + c)];
  });
}

}  // namespace

Block index_select(const Block& a, std::size_t axis, const std::vector<std::size_t>& order) {
  Shape shape = a.n;
  shape[axis] = order.size();
  return Block::of(shape, [&](auto b, auto h, auto i, auto j) {
    std::array at{b, h, i, j};
    at[axis] = order[at[axis]];
    return a.v[a.at(at[0], at[1], at[2], at[3])];
  });
}

Block rolled(const Block& a, std::size_t axis, long by) {
  std::vector<std::size_t> order(a.n[axis]);
  const long n = static_cast<long>(order.size());
  for (long k = 0; k < n; ++k)
    order[static_cast<std::size_t>(k)] = static_cast<std::size_t>(((k - by) % n + n) % n);
  return index_select(a, axis, order);
}

Block reversed(const Block& a, std::size_t axis) {
  std::vector<std::size_t> order = index_range(a.n[axis]);
  std::ranges::reverse(order);
  return index_select(a, axis, order);
}

Block repeat_index(const Block& a, std::size_t axis, std::size_t place) {
  return index_select(a, axis, std::vector<std::size_t>(a.n[axis], place));
}

Block scaled(Block a, double factor) {
  return mapped(std::move(a), [&](double x) { return x * factor; });
}

Block reshaped(Block a, Shape shape) {
  a.n = shape;
  return a;
}

Block rounded(Block a, Precision precision) {
  if (precision != Precision::float64)
    for (double& x : a.v) x = attention::rounded(precision, x);
  return a;
}

Block transposed(const Block& a) {
  return Block::of({a.n[0], a.n[1], a.n[3], a.n[2]},
                   [&](auto b, auto h, auto i, auto j) { return a.v[a.at(b, h, j, i)]; });
}

Block mean_of_heads(const Block& a) {
  Block mean({a.n[0], 1, a.n[2], a.n[3]});
  for (std::size_t b = 0; b < a.n[0]; ++b)
    for (std::size_t h = 0; h < a.n[1]; ++h)
      for (std::size_t k = 0; k < a.n[2] * a.n[3]; ++k)
        mean.row(b, 0, 0)[k] += a.row(b, h, 0)[k] / static_cast<double>(a.n[1]);
  return mean;
}

arma::mat matrix_of(const Block& a, std::size_t sequence, std::size_t head) {
  return view(a, sequence, head).t();
}

Block normalized(const Block& a) {
  const Block sums = by_row(a, [](const double* x, std::size_t n) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += x[j];
    return sum;
  });
  return zipped(a, sums, std::divides<>());
}

std::vector<double> frequencies_of(double base, std::size_t dims, double over) {
  std::vector<double> inverse_frequencies(dims / 2);
  for (std::size_t p = 0; p < inverse_frequencies.size(); ++p)
    inverse_frequencies[p] = std::pow(base, -2.0 * static_cast<double>(p) / over);
  return inverse_frequencies;
}

bool Recipe::has(Stage stage) const {
  switch (stage) {
    case normed_queries:
    case normed_keys:
      return norm[Q] || norm[K];
    case rotated_queries:
    case rotated_keys:
      return rope[Q] || rope[K];
    case position_bias:
      return bias[0] || bias[1];
    case output:
      return W[O] != nullptr;
    default:
      return !is_score_step(stage) || has_step(step_of(stage));
  }
}

Block mask_from_rules(const Recipe& m) {
  const long first = m.aligns_last ? m.offset() : 0;
  const auto document = [&](long place) {
    return m.documents[static_cast<std::size_t>(
        std::clamp(place, 0L, static_cast<long>(m.documents.size()) - 1))];
  };
  Block seen({m.B, 1, m.T, m.S});
  for (std::size_t t = 0; t < m.T; ++t)
    for (std::size_t s = 0; s < m.S; ++s) {
      const long i = static_cast<long>(t) + first, j = static_cast<long>(s);
      bool is = !m.causal || j <= i + m.shift;
      if (m.window) {
        if (m.window->first >= 0) is = is && j >= i - m.window->first;
        if (m.window->second >= 0) is = is && j <= i + m.window->second;
      }
      is = is || s < m.prefix;
      if (!m.documents.empty()) is = is && document(i) == document(j);
      for (std::size_t b = 0; b < m.B; ++b) seen.v[seen.at(b, 0, t, s)] = is && (*m.masked)(b, 0, 0, s) == 0;
    }
  for (const attention::MaskCell& cell : m.cells)
    for (std::size_t b = 0; b < m.B; ++b) seen.v[seen.at(b, 0, cell.row, cell.column)] = cell.visible;
  if (m.masked_queries)
    for (std::size_t b = 0; b < m.B; ++b)
      for (std::size_t t = 0; t < m.T; ++t)
        if ((*m.masked_queries)(b, 0, 0, t) != 0) std::fill_n(seen.row(b, 0, t), m.S, 0.0);
  return seen;
}

SharedBlock positions_from(double first, std::size_t n) {
  return share(
      Block::of({1, 1, 1, n}, [&](auto, auto, auto, auto j) { return first + static_cast<double>(j); }));
}

Block alibi_bias(const Recipe& m, const std::vector<double>& slopes, std::string_view distance, long shift) {
  return Block::of({1, m.H, m.T, m.S}, [&](auto, auto h, auto t, auto s) {
    const double i = static_cast<double>(static_cast<long>(t) + m.offset()), j = static_cast<double>(s),
                 apart = std::abs(i + static_cast<double>(shift) - j);
    return slopes[h] * (distance == "signed"     ? j - i - static_cast<double>(shift)
                        : distance == "key"      ? j
                        : distance == "first"    ? -std::abs(static_cast<double>(t) - j)
                        : distance == "sum"      ? -(i + j)
                        : distance == "clipped"  ? std::min(j - i, 0.0)
                        : distance == "square"   ? -(i - j) * (i - j)
                        : distance == "log"      ? -std::log1p(std::abs(i - j))
                        : distance == "reversed" ? j - static_cast<double>(m.S - 1)
                                                 : -apart);
  });
}

Block relative_bias(const Recipe& m, const RelativeBuckets& r) {
  const Block& table = *r.table;
  const long all = static_cast<long>(r.buckets ? r.buckets : table.n[3]),
             n = r.is_bidirectional ? all / 2 : all, exact = std::max(n / 2, 1L);
  return Block::of({1, m.H, m.T, m.S}, [&](auto, auto h, auto t, auto s) {
    long delta = r.sign * (static_cast<long>(s) - static_cast<long>(t) - m.offset()) + r.shift, at = 0;
    if (r.is_bidirectional)
      at = delta > 0 ? n : 0, delta = std::abs(delta);
    else
      delta = std::max(-delta, 0L);
    if (delta < exact) {
      at += delta;
    } else if (r.max_distance > static_cast<double>(exact)) {
      const double e = static_cast<double>(exact);
      const double steps =
          std::log(static_cast<double>(std::max(delta, 1L)) / e) / std::log(r.max_distance / e);
      at += std::min(exact + static_cast<long>(steps * static_cast<double>(n - exact)), n - 1);
    } else {
      at += std::min(exact, n - 1);
    }
    return table.v[table.at(0, 0, h,
                            static_cast<std::size_t>(std::clamp(at, 0L, static_cast<long>(table.n[3]) - 1)))];
  });
}

Block apply_rope(const Block& x, const Rope& rope, const Block& positions) {
  const std::size_t n = rope.dims / 2, first = rope.first_column, half = x.n[3] / 2;
  const auto coarse = [&](std::string_view what, double number) {
    return rope.coarse && rope.coarse->first == what ? attention::rounded(rope.coarse->second, number)
                                                     : number;
  };
  if (first + rope.dims > x.n[3] || (rope.pairs == "halves of the head" && n > half)) return x;
  Block out = x;
  std::vector<double> cosines(n), sines(n);
  for (std::size_t b = 0; b < x.n[0]; ++b)
    for (std::size_t h = 0; h < x.n[1]; ++h)
      for (std::size_t t = 0; t < x.n[2]; ++t) {
        const double place = rope.form == "heads" ? static_cast<double>(h) : positions(b, 0, 0, t);
        for (std::size_t p = 0; p < n; ++p) {
          const double angle = coarse(
              "angles", coarse("positions", place) * coarse("frequencies", rope.inverse_frequencies[p]));
          cosines[p] = coarse("cosines and sines", std::cos(angle) * rope.attention_factor);
          sines[p] = coarse("cosines and sines", std::sin(angle) * rope.attention_factor * rope.sign);
          if (rope.form == "exchanged") std::swap(cosines[p], sines[p]);
        }
        const double* in = x.row(b, h, t);
        double* to = out.row(b, h, t);
        for (std::size_t p = 0; p < n; ++p) {
          const std::size_t one = rope.pairs == "halves"               ? first + p
                                  : rope.pairs == "halves of the head" ? p
                                                                       : first + 2 * p,
                            two = rope.pairs == "halves"               ? first + p + n
                                  : rope.pairs == "halves of the head" ? p + half
                                                                       : first + 2 * p + 1;
          const auto of = [&](std::size_t column) {  // pair that gives the angle of a column
            if (rope.form != "other table") return p;
            return rope.pairs == "halves" ? (column - first) / 2 : (column - first) % n;
          };
          const std::size_t a = of(one), c = of(two);
          to[one] = in[one] * cosines[a] - in[two] * (rope.form == "no minus" ? -sines[a] : sines[a]);
          to[two] = in[two] * cosines[c] + (rope.form == "in place" ? to[one] : in[one]) * sines[c];
        }
      }
  return out;
}

Block apply_norm(const Block& in, const NormSpec& norm) {
  Block x = in;
  const std::size_t columns = x.n[3];
  const bool has_own = norm.w.size() == columns * x.n[1];  // separate weights for each head
  if (norm.w.size() != columns && !has_own) return x;      // incompatible shapes: not pursued
  const auto group_of = [&](std::size_t b, std::size_t h, std::size_t t, std::size_t c) {
    return norm.over == "all heads" ? b * x.n[2] + t
           : norm.over == "tokens"  ? (b * x.n[1] + h) * columns + c
                                    : (b * x.n[1] + h) * x.n[2] + t;
  };
  std::vector<double> means(x.v.size()), squares(x.v.size());
  const double count = static_cast<double>(norm.over == "all heads" ? columns * x.n[1]
                                           : norm.over == "tokens"  ? x.n[2]
                                                                    : columns);
  const auto visit = [&](auto f) {
    std::size_t k = 0;
    each_cell(x.n, [&](auto b, auto h, auto t, auto c) {
      f(x.v[k++], group_of(b, h, t, c), norm.w[has_own ? h * columns + c : c]);
    });
  };
  if (norm.form == "before") visit([](double& number, std::size_t, double w) { number *= w; });
  visit([&](double& number, std::size_t g, double) { means[g] += number / count; });
  if (norm.rule.starts_with("layer"))
    visit([&](double& number, std::size_t g, double) { number -= means[g]; });
  visit([&](double& number, std::size_t g, double) {
    const double from = norm.rule == "variance" ? number - means[g] : number;
    squares[g] += from * from;
  });
  const double divisor = norm.rule == "l2"             ? 1
                         : norm.rule == "layer, n - 1" ? std::max(count - 1, 1.0)
                                                       : count;
  const double epsilon = norm.epsilon_place == "none" ? 0 : norm.epsilon;
  for (double& square : squares) {
    const double power = square / divisor;
    square = norm.epsilon_place == "outside"    ? std::sqrt(power) + epsilon
             : norm.epsilon_place == "at least" ? std::max(std::sqrt(power), epsilon)
                                                : std::sqrt(power + epsilon);
  }
  visit([&](double& number, std::size_t g, double w) {
    number = number / squares[g] *
             (norm.form == "w"       ? w
              : norm.form == "1 + w" ? 1 + w
              : norm.form == "w - 1" ? w - 1
                                     : 1);
  });
  return x;
}

// Conversion of a model to a recipe.

namespace {

void add_positions(Recipe& m, const attention::Model& model) {
  const attention::Additions& added = model.additions;
  if (added.normalize)
    for (const Side side : {Q, K}) {
      const attention::SharedMatrix& w = side == Q ? added.normalize->query : added.normalize->key;
      const bool is_over_all = added.normalize->over == attention::NormScope::all_heads;
      m.norm[side] = NormSpec{.rule = added.normalize->rule == attention::NormRule::rms ? "rms" : "layer",
                              .over = is_over_all ? "all heads" : "head",
                              .w = w.n_cols() ? listed(w) : std::vector<double>(m.d, 1.0),
                              .epsilon = added.normalize->epsilon};
    }
  double first = 0;
  if (const auto rotary = rotary_of(model)) {
    Rope rope;
    rope.dims = positions::rotated_columns(*rotary, m.d);
    rope.pairs = rotary->pairs == positions::Pairs::halves ? "halves" : "neighbors";
    rope.base = rotary->base;
    rope.is_listed = rotary->inverse_frequencies.has_value();
    rope.inverse_frequencies = positions::frequencies(*rotary, m.d);
    if (rotary->scaling.rule == positions::ScalingRule::linear)
      for (double& f : rope.inverse_frequencies) f = positions::angle_at(*rotary, 1, f);
    rope.attention_factor = positions::attention_factor(*rotary);
    m.rope = {rope, rope};
    m.scaling = rotary->scaling;
    first = static_cast<double>(rotary->first);
  }
  m.pos = {positions_from(first + static_cast<double>(m.offset()), m.T), positions_from(first, m.S)};
  if (added.positions.alibi) {
    for (std::size_t h = 0; h < m.H; ++h) m.slopes.push_back(alibi_slope(*added.positions.alibi, h, m.H));
    m.bias[0] = share(alibi_bias(m, m.slopes));
  }
  if (const auto& relative = added.positions.relative) {
    m.relative = RelativeBuckets{shared(relative->table), static_cast<double>(relative->max_distance),
                                 relative->bidirectional};
    m.bias[1] = share(relative_bias(m, *m.relative));
  }
  if (!added.score_bias.empty())
    m.bias[2] = share(Block::of({1, m.H, m.T, m.S}, [&](auto, auto h, auto i, auto j) {
      return added.score_bias[added.score_bias.size() == 1 ? 0 : h].at(i, j);
    }));
  if (added.softcap) m.cap = *added.softcap;
  if (added.sink) m.sink = listed(*added.sink);
}

void add_mask(Recipe& m, const attention::Model& model) {
  const attention::Mask& mask = model.mask;
  m.masked = share(Block::of({m.B, 1, 1, m.S}, [&](auto b, auto, auto, auto j) {
    return !mask.hidden_keys.empty() && std::ranges::binary_search(mask.hidden_keys[b], j) ? 1.0 : 0.0;
  }));
  m.causal = mask.causal, m.aligns_last = mask.align == attention::MaskAlignment::last;
  if (mask.window.left || mask.window.right)
    m.window = {mask.window.left ? static_cast<long>(*mask.window.left) : -1,
                mask.window.right ? static_cast<long>(*mask.window.right) : -1};
  m.prefix = mask.prefix, m.documents = mask.documents, m.cells = mask.cells;
  using enum attention::MaskMethod;
  m.method = mask.method == renormalize          ? "renormalize"
             : mask.method == zero_after_softmax ? "zero"
             : mask.method == large_negative     ? "value"
                                                 : "-inf";
  m.mask_value = mask.method == large_negative ? mask.large_negative : -infinity;
  m.empty = mask.empty_rows == attention::EmptyRows::zeros ? "zeros" : "nan";
  m.visible = share(Block::of({m.B, 1, m.T, m.S}, [](auto...) { return 1.0; }));
  Block seen({m.B, 1, m.T, m.S});
  for (std::size_t b = 0; b < m.B; ++b) {
    const arma::mat cells = attention::visibility_matrix(model, b);
    for (std::size_t i = 0; i < m.T; ++i)
      for (std::size_t j = 0; j < m.S; ++j) seen.v[seen.at(b, 0, i, j)] = cells(i, j);
  }
  m.visible = share(std::move(seen));
}

}  // namespace

std::optional<Recipe> recipe_of(const attention::Model& model) {
  const bool is_plain_arithmetic = model.arithmetic == attention::Arithmetic();
  if (!model.bugs.empty() || !is_plain_arithmetic || !model.given.cells.empty() ||
      model.mask.edge != attention::MaskEdge() || model.dropout.place != attention::DropoutPlace::weights)
    return std::nullopt;
  Recipe m;
  m.B = model.sequences.size(), m.T = model.n_tokens(), m.S = model.n_keys(), m.D = model.d_model();
  m.H = model.n_heads, m.G = model.kv_heads(), m.d = model.d_head(), m.dv = model.d_value();
  if (m.d == 0 || m.dv == 0) return std::nullopt;
  m.cross = model.has_key_embeddings();
  m.uniform = model.scores == attention::ScoreRule::uniform;
  const auto inputs = [&](bool of_keys) {
    const auto matrix = [&](std::size_t b) -> const arma::mat& {
      return of_keys ? model.sequences[b].key_embeddings : model.sequences[b].embeddings;
    };
    return share(Block::of({m.B, 1, matrix(0).n_rows, matrix(0).n_cols},
                           [&](auto b, auto, auto i, auto j) { return matrix(b)(i, j); }));
  };
  m.x[Q] = inputs(false);
  m.x[K] = m.x[V] = m.cross ? inputs(true) : m.x[Q];
  for (const attention::ProjectionName part : attention::all_parts)
    if (const attention::Linear* linear = find_linear(model, part)) {
      const auto side = static_cast<std::size_t>(part);
      m.W[side] = shared(linear->weight);
      if (linear->bias) m.b[side] = shared(*linear->bias);
    }
  m.set_scale(attention::scale_factor(model));
  for (std::size_t h = 0; h < m.H; ++h) m.group[K].push_back(model.kv_head_of(h));
  m.group[V] = m.group[K];
  add_positions(m, model);
  add_mask(m, model);
  if (model.dropout.active() || model.given.find(dropout_mask)) {
    m.rate = model.dropout.active() ? model.dropout.rate : 0;
    Block kept({m.B, m.H, m.T, m.S});
    for (std::size_t b = 0; b < m.B; ++b) {
      const attention::Trace trace = attention::attend_checked(model, b);
      for (std::size_t h = 0; h < m.H; ++h) {
        const arma::mat& factors = trace.at(Stage::dropout_mask, h);
        if (factors.n_rows != m.T) return std::nullopt;
        for (std::size_t i = 0; i < m.T; ++i)
          for (std::size_t j = 0; j < m.S; ++j) kept.v[kept.at(b, h, i, j)] = factors(i, j) != 0;
      }
    }
    m.drop = share(std::move(kept));
    if (!model.dropout.rescale) m.drop_form = "not rescaled";
  }
  if (model.merge != attention::CombineRule::concatenate) m.merge = "reshape";
  m.heads_off = model.heads_off;
  for (const attention::GivenStage& given : model.given.stages) {
    if (std::ranges::find(run_stages(), given.stage) == run_stages().end()) continue;
    const std::size_t n = given.matrices.size() / m.B;
    m.overrides.emplace_back(
        given.stage,
        share(Block::of({m.B, n, given.matrices[0].n_rows(), given.matrices[0].n_cols()},
                        [&](auto b, auto h, auto i, auto j) { return given.matrices[b * n + h].at(i, j); })));
  }
  return m;
}

// Evaluation.

StageSet set_of(std::initializer_list<Stage> stages) {
  StageSet all;
  for (const Stage stage : stages) all.set(index(stage));
  return all;
}

std::span<const Stage> run_stages() {
  static const auto all = [] {
    const StageSet others = set_of(
        {embeddings, key_embeddings, Stage::mask, unmasked_weights, zeroed_weights, row_sums, dropout_mask});
    std::vector<Stage> stages;
    for (const attention::StageInfo& row : attention::stages())
      if (!others[index(row.stage)]) stages.push_back(row.stage);
    return stages;
  }();
  return all;
}

StageSet inputs_of(Stage stage) {
  StageSet steps;
  for (const ScoreStepInfo& step : score_steps) steps.set(index(step.stage));
  switch (stage) {
    case normed_queries:
      return set_of({queries, rotated_queries});
    case normed_keys:
      return set_of({keys, rotated_keys});
    case rotated_queries:
      return set_of({queries, normed_queries});
    case rotated_keys:
      return set_of({keys, normed_keys});
    case scores:
      return set_of({rotated_queries, rotated_keys});
    case weights:
      return steps;
    case dropped_weights:
      return set_of({weights});
    case contexts:
      return set_of({dropped_weights, values});
    case concatenated:
      return set_of({contexts});
    case output:
      return set_of({concatenated});
    default:
      return is_score_step(stage) ? steps | set_of({scores, position_bias}) : StageSet();
  }
}

const StageSet& downstream(Stage stage) {
  static const auto all = [] {
    std::array<StageSet, attention::n_stages> sets;
    for (const Stage from : run_stages()) {
      StageSet& set = sets[index(from)];
      set.set(index(from));
      for (StageSet before; before != set;) {
        before = set;
        for (const Stage to : run_stages())
          if ((inputs_of(to) & set).any()) set.set(index(to));
      }
    }
    return sets;
  }();
  return all[index(stage)];
}

StageSet downstream(StageSet stages) {
  StageSet all;
  for (const Stage s : run_stages())
    if (stages[index(s)]) all |= downstream(s);
  return all;
}

SharedBlock Run::shared(Stage stage) {
  SharedBlock& known = made[index(stage)];
  if (known) return known;
  const auto overrides = std::ranges::find(m.overrides, stage, &std::pair<Stage, SharedBlock>::first);
  Block value = overrides != m.overrides.end() ? *overrides->second : node(stage);
  for (const auto& [at, change] : m.transforms)
    if (at == stage) value = change(value, *this);
  return made[index(stage)] = share(rounded(std::move(value), m.precision[index(stage)]));
}

SharedBlock Run::seen(Stage stage) {
  const SharedBlock value = shared(stage);
  for (const auto& [at, change] : m.reported)
    if (at == stage) return share(change(*value, *this));
  return value;
}

const Block& Run::score_input(Side side) {
  return (*this)[m.norms_last ? normed_stage[side] : rotated_stage[side]];
}

Block Run::node(Stage stage) {
  switch (stage) {
    case queries:
      return projected(Q);
    case keys:
      return projected(K);
    case values:
      return projected(V);
    case normed_queries:
      return norm_or_rotate(true, Q);
    case normed_keys:
      return norm_or_rotate(true, K);
    case rotated_queries:
      return norm_or_rotate(false, Q);
    case rotated_keys:
      return norm_or_rotate(false, K);
    case scores: {
      if (m.uniform) return Block({m.B, m.H, m.T, m.S});
      return dot_products(score_input(Q), score_input(K));
    }
    case position_bias: {
      Block sum({m.B, m.H, 1, 1});
      for (const std::size_t which : {0, 1})
        if (m.bias[which])
          sum = zipped(sum, *m.bias[which],
                       [&](double a, double bias) { return a + m.bias_count[which] * bias; });
      return sum;
    }
    case weights:
      return softmax();
    case dropped_weights: {
      const Block& w = (*this)[Stage::weights];
      if (!m.drop || m.drop_form == "missing") return w;
      Block kept = zipped(w, *m.drop, std::multiplies<>());
      if (m.drop_form == "renormalized") return normalized(kept);
      const double p = m.rate, factor = m.drop_form == "not rescaled" ? 1
                                        : m.drop_form == "by p"       ? 1 / p
                                        : m.drop_form == "shrunk"     ? 1 - p
                                        : m.drop_form == "twice"      ? 1 / (1 - p) / (1 - p)
                                                                      : 1 / (1 - p);
      return mapped(std::move(kept), [&](double x) { return x * factor; });
    }
    case contexts:
      return sums((*this)[dropped_weights], (*this)[values]);
    case concatenated:
      return combine_heads();
    case output: {
      const Block& c = (*this)[concatenated];
      if (!m.W[O]) return c;
      Block y({c.n[0], 1, c.n[2], m.W[O]->n[3]});
      const Block W = rounded(*m.W[O], m.precision[index(output)]);
      if (c.n[3] != W.n[2]) return y;
      for (std::size_t b = 0; b < c.n[0]; ++b) view(y, b, 0) = view(W, 0, 0) * view(c, b, 0);
      return m.b[O] ? zipped(y, rounded(*m.b[O], m.precision[index(output)]), std::plus<>()) : y;
    }
    default:
      return step(step_of(stage));
  }
}

Block Run::projected(Side side) {
  const Precision grain = m.precision[index(side_stage[side])];
  Block x = rounded(*m.x[side], grain);
  if (m.W[side]) {
    const Block W = rounded(*m.W[side], grain);
    Block y({x.n[0], 1, x.n[2], W.n[3]});
    for (std::size_t b = 0; b < x.n[0]; ++b) view(y, b, 0) = view(W, 0, 0) * view(x, b, 0);
    x = std::move(y);
  }
  if (m.b[side]) x = zipped(x, rounded(*m.b[side], grain), std::plus<>());
  return split_heads(x, side == Q ? m.H : m.G, m.split[side]);
}

Block Run::norm_or_rotate(bool norms, Side side) {
  const Stage other = norms ? rotated_stage[side] : normed_stage[side];
  const Block& from = (*this)[norms == m.norms_last ? other : side_stage[side]];
  if (norms) return m.norm[side] && !m.omits_norm[side] ? apply_norm(from, *m.norm[side]) : from;
  return m.rope[side] && !m.omits_rotation[side] ? apply_rope(from, *m.rope[side], *m.pos[side]) : from;
}

namespace {

/// Whether each head has a matching head in the other block; stages of another model's shape are not pursued.
bool fits(const Block& heads, const std::vector<std::size_t>& of, const Block& other) {
  return of.size() >= heads.n[1] &&
         std::all_of(of.begin(), of.end(), [&](std::size_t g) { return g < other.n[1]; }) &&
         (other.n[0] == 1 || other.n[0] >= heads.n[0]);
}

}  // namespace

Block Run::dot_products(const Block& queries, const Block& keys, bool are_grouped) const {
  Block s({queries.n[0], queries.n[1], queries.n[2], keys.n[2]});
  const std::vector<std::size_t> of = are_grouped ? m.group[K] : index_range(keys.n[1]);
  if (queries.n[3] != keys.n[3] || !fits(s, of, keys)) return s;
  for (std::size_t b = 0; b < s.n[0]; ++b)
    for (std::size_t h = 0; h < s.n[1]; ++h) view(s, b, h) = view(keys, b, of[h]).t() * view(queries, b, h);
  return s;
}

Block Run::sums(const Block& weights, const Block& values) const {
  Block c({weights.n[0], m.H, weights.n[2], values.n[3]});
  if (weights.n[3] != values.n[2] || (weights.n[1] != 1 && weights.n[1] < m.H) ||
      !fits(c, m.group[V], values))
    return c;
  for (std::size_t b = 0; b < c.n[0]; ++b)
    for (std::size_t h = 0; h < m.H; ++h)
      view(c, b, h) = view(values, b, m.group[V][h]) * view(weights, b, weights.n[1] == 1 ? 0 : h);
  return c;
}

Block Run::step(ScoreStep step) {
  const auto at = std::ranges::find(m.step_order, step) - m.step_order.begin();
  const Block& s = (*this)[at > 0 ? stage_of(m.step_order[static_cast<std::size_t>(at - 1)]) : scores];
  if (!m.has_step(step)) return s;
  if (step == ScoreStep::scale) return zipped(s, *m.scale, std::multiplies<>());
  if (step == ScoreStep::softcap) {
    const double c = m.cap;
    const std::string_view form = m.cap_form;
    return mapped(s, [&](double x) {
      return form == "not multiplied" ? std::tanh(x / c)
             : form == "not divided"  ? c * std::tanh(x)
             : form == "clipped"      ? std::clamp(x, -std::abs(c), std::abs(c))
             : form == "twice"        ? c * std::tanh(std::tanh(x / c))
             : form == "inverse"      ? std::tanh(x * c) / c
                                      : c * std::tanh(x / c);
    });
  }
  if (step == ScoreStep::bias) {
    if (m.omits_bias) return s;
    Block sum = m.bias[0] || m.bias[1] ? zipped(s, (*this)[position_bias], std::plus<>()) : s;
    if (m.bias[2])
      sum = zipped(sum, *m.bias[2], [&](double a, double bias) { return a + m.bias_count[2] * bias; });
    return sum;
  }
  if (m.method == "renormalize" || m.method == "zero") return s;
  const double fill = m.method == "-inf" ? -infinity : m.mask_value;
  if (m.method == "times") return zipped(s, *m.visible, std::multiplies<>());
  if (m.method == "plus") return zipped(s, *m.visible, std::plus<>());
  if (m.method == "plus value")
    return zipped(s, *m.visible, [&](double x, double seen) { return seen != 0 ? x : x + fill; });
  return zipped(s, *m.visible, [&](double x, double seen) { return seen != 0 ? x : fill; });
}

Block Run::softmax() {
  const Block& s = softmax_input();
  const std::size_t n_groups = s.v.size() / s.n[m.axis];
  std::vector<double> tops(n_groups, -infinity), totals(n_groups);
  const auto visit = [&](auto f) {
    std::size_t at = 0;
    each_cell(s.n, [&](auto b, auto h, auto i, auto j) {
      f(at++,
        m.axis == 3   ? (b * s.n[1] + h) * s.n[2] + i
        : m.axis == 2 ? (b * s.n[1] + h) * s.n[3] + j
                      : (b * s.n[2] + i) * s.n[3] + j,
        h);
    });
  };
  Block w = s;
  visit([&](std::size_t at, std::size_t g, std::size_t) { tops[g] = std::max(tops[g], s.v[at]); });
  for (double& top : tops) top = std::isfinite(top) ? top : 0;
  visit([&](std::size_t at, std::size_t g, std::size_t) {
    totals[g] += w.v[at] = std::exp(s.v[at] - tops[g]);
  });
  const bool has_sink = m.sink && m.sink_form != "missing";
  const auto extra_of = [&](std::size_t h, double top) {
    double sum =
        (m.denominator_bias != 0 ? m.denominator_bias * std::exp(-top) : 0) + m.unscaled_denominator_bias;
    if (!has_sink) return sum;
    const double sink = (*m.sink)[h];
    const std::string_view form = m.sink_form;
    return sum + (form == "base 2"                 ? std::exp2(sink - top)
                  : form == "not rescaled"         ? std::exp(sink)
                  : form == "linear"               ? sink
                  : form == "linear, rescaled"     ? sink * std::exp(-top)
                  : form == "scaled"               ? std::exp(sink * m.plain_scale() - top)
                  : form == "negated"              ? std::exp(-sink - top)
                  : form == "base 2, not rescaled" ? std::exp2(sink)
                                                   : std::exp(sink - top));
  };
  double extra = 0;
  std::size_t last_group = n_groups, last_head = 0;
  visit([&](std::size_t at, std::size_t g, std::size_t h) {
    if (g != last_group || h != last_head) extra = extra_of(h, tops[g]), last_group = g, last_head = h;
    w.v[at] /= totals[g] + extra;
  });
  if (m.method == "renormalize" || m.method == "zero") w = zipped(w, *m.visible, std::multiplies<>());
  if (m.method == "renormalize") w = normalized(w);
  if (m.twice)
    w = normalized(zipped(w, *m.visible, [](double x, double seen) { return seen != 0 ? std::exp(x) : 0; }));
  if (m.empty != "nan") {
    const double uniform = 1 / static_cast<double>(m.S);
    for (std::size_t row = 0; row < w.v.size() / w.n[3]; ++row) {
      const auto own = s.v.begin() + static_cast<std::ptrdiff_t>(row * w.n[3]);
      if (std::any_of(own, own + static_cast<std::ptrdiff_t>(w.n[3]), [](double x) { return std::isnan(x); }))
        continue;
      for (std::size_t j = 0; j < w.n[3]; ++j)
        if (double& x = w.v[row * w.n[3] + j]; std::isnan(x)) x = m.empty == "zeros" ? 0 : uniform;
    }
  }
  return w;
}

Block Run::combine_heads() {
  Block c = (*this)[contexts];
  for (const std::size_t h : m.heads_off)
    for (std::size_t b = 0; b < c.n[0]; ++b) std::fill_n(c.row(b, h, 0), c.n[2] * c.n[3], 0.0);
  const std::size_t H = c.n[1], d = c.n[3];
  const Shape shape{c.n[0], 1, c.n[2], H * d};
  if (m.merge == "reshape") return reshaped(std::move(c), shape);
  return Block::of(shape, [&](auto b, auto, auto t, auto column) {
    return m.merge == "interleaved" ? c.v[c.at(b, column % H, t, column / H)]
                                    : c.v[c.at(b, column / d, t, column % d)];
  });
}

}  // namespace core::check::inference
