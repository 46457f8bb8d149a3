#include <algorithm>
#include <cmath>

#include "core/graph/gradients.hpp"
#include "core/graph/lazy_stages.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/visible.hpp"

/// The backward of each operation, which adds to the gradients of its inputs. Source: the chain rule; NaN and
/// ties as in PyTorch, tools/autograd/derivatives.yaml.
namespace core::graph {

using arma::rowvec;
using arma::vec;
using Gradient = OperationGradient;

// Any function, by central differences.

namespace {

/// Returns the step of a central difference at x: the cube root of the precision, but no step out of the
/// neighborhood of a masked score of −10⁹.
double step_at(double x) {
  return 6e-6 * std::clamp(std::abs(x), 1.0, 100.0);
}

/// Computes the result again with other numbers of one of its sources.
class Recomputation {
 public:
  Recomputation(const Gradient& g, const Source& source, std::size_t nth)
      : g_(g), source_(source), nth_(nth), model_(g.in.model), stages_(g.in.graph, model_, g.in.stages) {
    if (const auto* stage = std::get_if<Stage>(&source))
      for (std::size_t n = 0; n < g.in.stages.n_matrices(*stage); ++n)
        stages_.put(*stage, g.in.sequence, n, g.in.stages.matrix(*stage, g.in.sequence, n));
  }

  /// Returns dy · (result for x + steps − result for x − steps), by cell.
  mat change(const mat& x, const mat& steps) {
    const mat after = result(x + steps), before = result(x - steps);
    mat change = after - before;
    change.elem(arma::find(after == before)).zeros();  // −∞ that stays −∞
    return change % g_.dy;
  }

 private:
  mat result(const mat& numbers) {
    if (const auto* stage = std::get_if<Stage>(&source_))
      stages_.put(*stage, g_.in.sequence, nth_, numbers);
    else
      *find_matrix(model_, {std::get<MatrixName>(source_), nth_}) = numbers;
    return g_.in.node.operation->matrix(
        {g_.in.graph, g_.in.node, model_, stages_, g_.in.sequence, g_.in.head, g_.in.rows});
  }

  const Gradient& g_;
  Source source_;
  std::size_t nth_;
  Model model_;
  LazyStages stages_;
};

/// Adds the gradient of all matrices of input k, which any head may read.
void add_differences(const Gradient& g, std::size_t k, bool is_row_wise) {
  std::vector<const mat*> done;
  for (std::size_t h = 0; h < g.in.model.n_heads; ++h) {
    const Input& input = g.in.node.operation->inputs[k];
    const bool reads_kv_heads = g.in.node.heads == NodeHeads::per_kv_head && input.stage();
    if (reads_kv_heads && h >= g.in.model.kv_heads()) break;
    const mat x = g.in.of_head(k, h);
    mat& dx = g.of_head(k, h);
    if (std::ranges::find(done, &dx) != done.end()) continue;
    done.push_back(&dx);
    const std::size_t nth =
        input.stage() ? g.in.nth_of_head(k, h)
                      : matrix_ref(g.in.model, std::get<MatrixName>(input.source), g.in.sequence, h).nth;
    Recomputation recomputation(g, input.source, nth);
    for (std::size_t j = 0; j < x.n_cols; ++j)
      for (std::size_t i = 0; i < (is_row_wise ? 1 : x.n_rows); ++i) {
        mat steps(arma::size(x), arma::fill::zeros);
        for (std::size_t a = i; a < (is_row_wise ? x.n_rows : i + 1); ++a) steps(a, j) = step_at(x(a, j));
        const mat change = recomputation.change(x, steps);
        if (is_row_wise)
          dx.col(j) += vec(arma::sum(change, 1)) / (2 * steps.col(j));
        else
          dx(i, j) += arma::accu(change) / (2 * steps(i, j));
      }
  }
}

/// Visits each cell with the distance of its key from its query.
void for_each_distance(const Gradient& g, const auto& visit) {
  for (std::size_t j = 0; j < g.dy.n_cols; ++j)
    for (std::size_t i = 0; i < g.dy.n_rows; ++i)
      visit(position_of_key(g.in.model, j) - position_of_query(g.in.model, i), g.dy(i, j));
}

}  // namespace

void Operation::backward(const Gradient& g) const {
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const auto is_same = [&](const Input& other) { return other.source == inputs[k].source; };
    const auto end = inputs.begin() + static_cast<std::ptrdiff_t>(k);
    if (!inputs[k].is_read() || inputs[k].numbers || std::find_if(inputs.begin(), end, is_same) != end)
      continue;
    const bool is_row_wise = std::ranges::all_of(inputs, [&](const Input& other) {
      return !is_same(other) || (other.stage() && !other.layout && other.cells[0] == 'i');
    });
    add_differences(g, k, is_row_wise);
  }
}

void Parameter::backward(const Gradient& g) const {
  g.of(0) += g.dy;
}

void Copy::backward(const Gradient& g) const {
  g.of(0) += g.dy;
}

// Products.

void Project::backward(const Gradient& g) const {
  const mat x = rounded_factor(g[0]), weight = rounded_factor(g[1]);
  g.of(0) += is_transposed() ? mat(g.dy * weight) : mat(g.dy * weight.t());
  g.of(1) += is_transposed() ? mat(g.dy.t() * x) : mat(x.t() * g.dy);
  if (has_bias()) g.of(2) += arma::sum(g.dy, 0);
}

void DotProducts::backward(const Gradient& g) const {
  const mat dy = g.dy * pre_scale.value_or(1);
  g.of(0) += dy * rounded_factor(g[1]);
  g.of(1) += dy.t() * rounded_factor(g[0]);
}

void WeightedSum::backward(const Gradient& g) const {
  g.of(0) += g.dy * rounded_factor(g[1]).t();
  g.of(1) += rounded_factor(g[0]).t() * g.dy;
}

// Heads.

void SplitHeads::backward(const Gradient& g) const {
  const HeadLayout* layout = inputs[0].layout;
  const HeadSizes sizes{n_heads, g[0].n_rows, g[0].n_cols / n_heads};
  mat& dx = g.of(0);
  for (std::size_t k = 0; k < g.dy.n_cols; ++k)
    for (std::size_t i = 0; i < g.dy.n_rows; ++i) {
      const CombinedCell from = layout->combine({g.in.head, i, k}, sizes);
      dx(from.row, from.column) += g.dy(i, k);
    }
}

void CombineHeads::backward(const Gradient& g) const {
  const HeadSizes sizes{n_heads, g.in.model.n_tokens(), g[0].n_cols};
  for (std::size_t j = 0; j < g.dy.n_cols; ++j)
    for (std::size_t i = 0; i < g.dy.n_rows; ++i) {
      const HeadCell from = inputs[0].layout->split({i, j}, sizes);
      if (!g.in.model.is_ablated(from.head)) g.of_head(0, from.head)(from.row, from.column) += g.dy(i, j);
    }
}

// Queries and keys.

void Normalize::backward(const Gradient& g) const {
  const std::size_t first = is_over_all_heads() ? 0 : g.in.head,
                    end = is_over_all_heads() ? n_heads : g.in.head + 1,
                    column = over == attention::NormScope::head ? 0 : g.in.head * d_head;
  const double n = static_cast<double>((end - first) * d_head);
  vec means(g.dy.n_rows, arma::fill::zeros), squares = means;
  for (std::size_t h = first; is_centered && h < end; ++h) means += arma::sum(g.in.of_head(0, h), 1) / n;
  const auto centered = [&](std::size_t head) {
    mat x = g.in.of_head(0, head);
    x.each_col() -= means;
    return x;
  };
  for (std::size_t h = first; h < end; ++h) squares += arma::sum(arma::square(centered(h)), 1);
  const vec roots = arma::sqrt(squares / n + epsilon);
  const auto divided = [&](mat x) {
    x.each_col() /= roots;
    return x;
  };
  const mat x = divided(centered(g.in.head));
  g.of(1).cols(column, column + d_head - 1) += arma::sum(g.dy % x, 0);
  mat dx = g.dy;
  dx.each_row() %= rowvec(rowvec(g[1]).cols(column, column + d_head - 1));
  const vec along = arma::sum(dx % x, 1) / n,
            shift = is_centered ? vec(arma::sum(dx, 1) / n) : vec(dx.n_rows, arma::fill::zeros);
  g.of(0) += divided(std::move(dx));
  for (std::size_t h = first; h < end; ++h) {
    mat through_root = divided(centered(h));
    through_root.each_col() %= along;
    through_root.each_col() += shift;
    g.of_head(0, h) -= divided(std::move(through_root));
  }
}

void Rotate::backward(const Gradient& g) const {
  g.of(0) += positions::rotate_back(g.dy, first + offset, rotary);
}

// Scores.

void ScaleScores::backward(const Gradient& g) const {
  g.of(0) += g.dy * factor;
}

void Softcap::backward(const Gradient& g) const {
  g.of(0) += g.dy % (1 - arma::square(g.y / cap));
}

void AlibiBias::backward(const Gradient& g) const {
  if (inputs.empty()) return;
  double& slope = g.of(0)(0, g.in.head);
  for_each_distance(
      g, [&](std::int64_t distance, double dy) { slope -= static_cast<double>(std::abs(distance)) * dy; });
}

void RelativeBias::backward(const Gradient& g) const {
  mat& table = g.of(0);
  for_each_distance(g, [&](std::int64_t distance, double dy) {
    table(g.in.head, positions::relative_position_bucket(distance, relative)) += dy;
  });
}

void AddBiases::backward(const Gradient& g) const {
  for (std::size_t k = 0; k < inputs.size(); ++k) g.of(k) += g.dy;
}

void MaskedFill::backward(const Gradient& g) const {
  mat dx = g.dy;
  dx.elem(arma::find(g[1] == 0)).zeros();
  g.of(0) += dx;
}

// The softmax.

void Softmax::backward(const Gradient& g) const {
  const vec along = arma::sum(g.dy % g.y, 1);
  mat dx = g.dy;
  dx.each_col() -= along;
  g.of(0) += dx % g.y;
  if (!has_sink()) return;
  // The weight of the sink itself, and not 1 − Σ weights, which would lose its digits.
  const double sink = g[1](0, g.in.head);
  mat scores = attention::rounded(precision, g[0]);
  const vec largest = arma::max(vec(arma::max(scores, 1)), vec(scores.n_rows, arma::fill::value(sink)));
  scores.each_col() -= largest;
  const vec own = arma::exp(sink - largest), sums = arma::sum(arma::exp(scores), 1) + own;
  g.of(1)(0, g.in.head) -= arma::accu(own / sums % along);
}

void SoftmaxOverQueries::backward(const Gradient& g) const {
  mat dx = g.dy;
  dx.each_row() -= rowvec(arma::sum(g.dy % g.y, 0));
  g.of(0) += dx % g.y;
}

void SoftmaxInBlocks::backward(const Gradient& g) const {
  const mat scores = attention::rounded(precision, g[0]);
  for (std::size_t i = 0; i < g.dy.n_rows; ++i) {
    const rowvec row = scores.row(i);
    const auto [own, summed, last] = block_maxima(row, blocks);
    rowvec ds(row.n_elem, arma::fill::zeros);
    // A block that is not rescaled depends on its maximum, which is a score, too: the first of equal ones.
    const auto add_to_maximum = [&](double largest, double d) {
      const auto at = std::find(row.begin(), row.end(), largest);
      if (at != row.end()) ds[static_cast<std::size_t>(at - row.begin())] += d;
    };
    const auto term = [&](std::size_t j) { return row[j] == -infinity ? 0 : std::exp(row[j] - summed[j]); };
    const double sink = has_sink() ? std::exp(g[1](0, g.in.head) - last) : 0;
    double sum = sink;
    for (std::size_t j = 0; j < row.n_elem; ++j) sum += term(j);
    const double d_sum = -arma::dot(g.dy.row(i), g.y.row(i)) / sum;
    for (std::size_t j = 0; j < row.n_elem; ++j) {
      const double direct = g.dy(i, j) * g.y(i, j), through_sum = d_sum * term(j);
      ds[j] += direct + through_sum;
      add_to_maximum(own[j], -direct);
      add_to_maximum(summed[j], -through_sum);
    }
    if (has_sink()) {
      add_to_maximum(last, -d_sum * sink);
      g.of(1)(0, g.in.head) += d_sum * sink;
    }
    g.of(0).row(i) += ds;
  }
}

void Multiply::backward(const Gradient& g) const {
  g.of(0) += g.dy % g[1];
  g.of(1) += g.dy % g[0];
}

void RowSum::backward(const Gradient& g) const {
  g.of(0).each_col() += vec(g.dy.col(0));
}

void DivideByRowSum::backward(const Gradient& g) const {
  mat dx = g.dy;
  dx.each_col() /= g[1].col(0);
  g.of(0) += dx;
  g.of(1) -= arma::sum(dx % g.y, 1);
}

void ZeroEmptyRows::backward(const Gradient& g) const {
  mat dx = g.dy;
  for (std::size_t i = 0; i < dx.n_rows; ++i)
    if (is_empty(g.in, i)) dx.row(i).zeros();
  g.of(0) += dx;
}

}  // namespace core::graph
