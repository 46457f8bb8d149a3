#include "core/graph/variants.hpp"

#include <algorithm>
#include <cmath>

#include "core/graph/lazy_stages.hpp"
#include "core/graph/visible.hpp"

namespace core::graph {
namespace {

/// Computes a cell of a node from the model.
double value_of(const Cell& c) {
  LazyStages stages(c.graph, c.model, std::vector{c.i});
  return stages.matrix(c.node.stage, c.trace.sequence, nth_matrix(c.graph, c.node, c.head), true).at(0, c.j);
}

double finite_or_zero(double x) {
  return std::isfinite(x) ? x : 0;
}

}  // namespace

template <class Right>
void Variant<Right>::terms(const Cell& cell, Derivation& steps) const {
  steps.begin(steps.title(), words);
  steps.note("with the bug", value_of(cell));
}
template struct Variant<Operation>;
template struct Variant<Normalize>;
template struct Variant<Rotate>;
template struct Variant<Softmax>;
template struct Variant<AttentionMask>;

// Norms.

NormVariant::NormVariant(Stage x, Divisor by, double eps, std::size_t n, std::size_t d)
    : Variant(x, MatrixName::query_norm, attention::QueryKeyNorm{}, n, d), divisor(by), scope(Over::head) {
  inputs.resize(1), epsilon = eps;
}

NormVariant::NormVariant(const Normalize& right, arma::rowvec factors_of_it)
    : Variant(right),
      divisor(right.is_centered ? Divisor::deviation : Divisor::root_mean_square),
      scope(right.is_over_all_heads() ? Over::all_heads : Over::head),
      w(std::move(factors_of_it)) {
  inputs.resize(1);
}

void NormVariant::run_over(Over what) {
  scope = what;
  inputs[0].cells = what == Over::tokens ? "::" : "i:";
}

arma::rowvec NormVariant::factors_of(std::size_t head, std::size_t n_columns) const {
  if (w.n_elem == 0) return arma::rowvec(n_columns, arma::fill::ones);
  return w.n_elem == n_columns ? w : arma::rowvec(w.cols(head * n_columns, (head + 1) * n_columns - 1));
}

mat NormVariant::input_of(const OperationInputs& in, std::size_t head) const {
  mat x = in.of_head(0, head);
  if (factors == Factors::before) x.each_row() %= factors_of(head, x.n_cols);
  return x;
}

mat NormVariant::matrix(const OperationInputs& in) const {
  mat x = input_of(in, in.head);
  const bool over_tokens = scope == Over::tokens, over_all = scope == Over::all_heads && n_heads > 1;
  const double count = static_cast<double>(over_tokens ? x.n_rows : over_all ? x.n_cols * n_heads : x.n_cols);
  const auto sum_of = [&](const auto& of) {  // by row, or by column over tokens
    if (over_tokens) return arma::vec(arma::sum(of(x), 0).t());
    if (!over_all) return arma::vec(arma::sum(of(x), 1));
    arma::vec sums(x.n_rows, arma::fill::zeros);
    for (std::size_t h = 0; h < n_heads; ++h) sums += arma::sum(of(input_of(in, h)), 1);
    return sums;
  };
  const auto centered = [&](mat y, const arma::vec& means) {
    if (over_tokens)
      y.each_row() -= arma::rowvec(means.t());
    else
      y.each_col() -= means;
    return y;
  };
  const bool centers = divisor == Divisor::deviation || divisor == Divisor::sample_deviation;
  arma::vec means;
  if (centers || divisor == Divisor::deviation_uncentered)
    means = sum_of([](const mat& y) { return y; }) / count;
  arma::vec power =
      sum_of([&](const mat& y) { return mat(arma::square(means.empty() ? y : centered(y, means))); });
  power /= divisor == Divisor::length             ? 1
           : divisor == Divisor::sample_deviation ? std::max(count - 1, 1.0)
                                                  : count;
  power.transform([&](double p) {
    switch (epsilon_place) {
      case EpsilonPlace::outside_root:
        return std::sqrt(p) + epsilon;
      case EpsilonPlace::at_least:
        return std::max(std::sqrt(p), epsilon);
      case EpsilonPlace::none:
        return std::sqrt(p);
      case EpsilonPlace::inside_root:
        break;
    }
    return std::sqrt(p + epsilon);
  });
  if (centers) x = centered(std::move(x), means);
  if (over_tokens)
    x.each_row() /= arma::rowvec(power.t());
  else
    x.each_col() /= power;
  arma::rowvec by = factors_of(in.head, x.n_cols);
  if (factors == Factors::one_plus_w) by += 1;
  if (factors == Factors::w_minus_one) by -= 1;
  if (factors != Factors::none && factors != Factors::before) x.each_row() %= by;
  return over_tokens ? in.selected(std::move(x)) : x;
}

// Rotations.

RotationVariant::RotationVariant(const Rotate& right, std::size_t d_head, std::size_t n_rows)
    : Variant(right),
      pair_rule(right.rotary.pairs == positions::Pairs::halves ? PairRule::halves : PairRule::neighbors),
      n_columns(positions::rotated_columns(right.rotary, d_head)),
      frequencies(positions::frequencies(right.rotary, d_head)),
      base(right.rotary.base),
      attention_factor(positions::attention_factor(right.rotary)) {
  inputs.resize(1);
  for (double& f : frequencies) f = positions::angle_at(rotary, 1, f);  // linear scaling divides positions
  places.emplace_back();
  for (std::size_t i = 0; i < n_rows; ++i)
    places[0].push_back(static_cast<double>(first + offset) + static_cast<double>(i));
}

void RotationVariant::set_frequencies(double of_base, std::size_t n, double over,
                                      const positions::Scaling& scaling) {
  positions::Rotary r;
  base = of_base, n_columns = n;
  r.base = std::pow(of_base, static_cast<double>(n) / over), r.dimensions = n, r.scaling = scaling;
  frequencies = positions::frequencies(r, n);
  for (double& f : frequencies) f = positions::angle_at(r, 1, f);
}

const RotationVariant::Table& RotationVariant::table_of(const OperationInputs& in) const {
  const std::size_t key = form == Form::over_heads ? in.head : places.size() == 1 ? 0 : in.sequence;
  auto& kept = table_.kept;
  if (!kept || kept->key != key || kept->rows != in.rows) kept = make_table(in, key);
  return *kept;
}

RotationVariant::Table RotationVariant::make_table(const OperationInputs& in, std::size_t key) const {
  const auto coarsened = [&](Coarse what, double x) {
    return coarse[what] ? attention::rounded(coarse_precision, x) : x;
  };
  const std::vector<double>& at = places[places.size() == 1 ? 0 : in.sequence];
  const std::size_t n_rows = in.n_rows();
  Table table{key, in.rows, mat(n_rows, n_columns / 2), mat(n_rows, n_columns / 2)};
  for (std::size_t p = 0; p < n_columns / 2; ++p)
    for (std::size_t a = 0; a < n_rows; ++a) {
      const double place = form == Form::over_heads ? static_cast<double>(in.head) : at[in.row(a)];
      const double angle =
          coarsened(of_angles, coarsened(of_positions, place) * coarsened(of_frequencies, frequencies[p]));
      double& cosine = table.cosines.at(a, p);
      double& sine = table.sines.at(a, p);
      cosine = coarsened(of_cosines, std::cos(angle) * attention_factor);
      sine = coarsened(of_cosines, std::sin(angle) * attention_factor * sign);
      if (form == Form::exchanged) std::swap(cosine, sine);
    }
  return table;
}

mat RotationVariant::matrix(const OperationInputs& in) const {
  const mat& x = in[0];
  const std::size_t n = n_columns / 2, half = x.n_cols / 2;
  if (first_column + n_columns > x.n_cols || (pair_rule == PairRule::halves_of_head && n > half)) return x;
  const Table& table = table_of(in);
  mat y = x;
  for (std::size_t p = 0; p < n; ++p) {
    const bool are_halves = pair_rule == PairRule::halves, are_neighbors = pair_rule == PairRule::neighbors;
    const std::size_t one = are_neighbors ? first_column + 2 * p
                            : are_halves  ? first_column + p
                                          : p,
                      two = are_neighbors ? one + 1 : one + (are_halves ? n : half);
    const auto pair_of = [&](std::size_t column) {  // that gives the angle of a column
      if (form != Form::other_table) return p;
      return are_halves ? (column - first_column) / 2 : (column - first_column) % n;
    };
    const std::size_t a = pair_of(one), c = pair_of(two);
    const double minus = form == Form::no_minus ? -1 : 1;
    for (std::size_t i = 0; i < x.n_rows; ++i) {
      y.at(i, one) = x.at(i, one) * table.cosines.at(i, a) - minus * x.at(i, two) * table.sines.at(i, a);
      y.at(i, two) = x.at(i, two) * table.cosines.at(i, c) +
                     (form == Form::in_place ? y.at(i, one) : x.at(i, one)) * table.sines.at(i, c);
    }
  }
  return y;
}

// Softmax.

SoftmaxVariant::SoftmaxVariant(const Softmax& right) : Variant(right) {
  inputs[0].cells = "i:";
}

void SoftmaxVariant::run_over(Axis which) {
  axis = which;
  inputs[0].cells = which == Axis::queries ? ":j" : "i:";
}

mat SoftmaxVariant::weights(mat s, const OperationInputs& in) const {
  mat w(arma::size(s), arma::fill::none);
  const auto further = [&](double largest) {
    return (has_sink() ? std::exp(in[1](0, in.head) - largest) : 0) + (extra ? extra(in.head, largest) : 0);
  };
  if (axis == Axis::heads) {
    mat largest(arma::size(s)), sums(arma::size(s), arma::fill::zeros);
    largest.fill(-infinity);
    for (std::size_t h = 0; h < n_heads; ++h) largest = arma::max(largest, in.of_head(0, h));
    largest.transform(finite_or_zero);
    for (std::size_t h = 0; h < n_heads; ++h) sums += arma::exp(in.of_head(0, h) - largest);
    s = arma::exp(s - largest);
    largest.transform(further);
    return s / (sums + largest);
  }
  const bool over_keys = axis == Axis::keys;
  const std::size_t n = over_keys ? s.n_rows : s.n_cols, length = over_keys ? s.n_cols : s.n_rows;
  const auto at = [&](mat& of, std::size_t a, std::size_t b) -> double& {
    return over_keys ? of.at(a, b) : of.at(b, a);
  };
  for (std::size_t a = 0; a < n; ++a) {
    double largest = -infinity, sum = 0;
    for (std::size_t b = 0; b < length; ++b) largest = std::max(largest, at(s, a, b));
    largest = finite_or_zero(largest);
    for (std::size_t b = 0; b < length; ++b) sum += at(w, a, b) = std::exp(at(s, a, b) - largest);
    sum += further(largest);
    for (std::size_t b = 0; b < length; ++b) at(w, a, b) /= sum;
  }
  return over_keys ? w : in.selected(std::move(w));
}

// Masks.

mat MaskVariant::matrix(const OperationInputs& in) const {
  mat visible = AttentionMask::matrix(in);
  if (also) {
    const std::int64_t first = aligned_query_position(in.model, mask.align, 0);
    for (std::size_t j = 0; j < visible.n_cols; ++j)
      for (std::size_t a = 0; a < visible.n_rows; ++a)
        if (!also(static_cast<std::int64_t>(in.row(a)) + first, static_cast<std::int64_t>(j), first))
          visible(a, j) = 0;
  }
  return visible;
}

}  // namespace core::graph
