#include "tests/core/engine/agreement.hpp"

#include <cmath>

#include "core/base/number.hpp"

namespace core::attention::fast {
namespace {

bool same_special(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

}  // namespace

testing::AssertionResult agree(const Model& model, const Trace& found, const Trace& reference,
                               double tolerance, double least) {
  for (const StageInfo& stage : stages()) {
    if (!stage.present(model)) continue;
    for (std::size_t h = 0; h < stage.count(model.n_heads); ++h) {
      const arma::mat &a = found.at(stage.stage, h), &b = reference.at(stage.stage, h);
      if (arma::size(a) != arma::size(b))
        return testing::AssertionFailure() << stage.name << " has another shape";
      const bool weights = stage.stage == Stage::weights;
      const double most = max_abs_finite(b);
      for (std::size_t i = 0; i < b.n_rows; ++i) {
        const double allowed = tolerance * std::max(least, weights ? max_abs_finite(b.row(i)) : most);
        for (std::size_t j = 0; j < b.n_cols; ++j)
          if (!same_special(a(i, j), b(i, j)) && !(std::abs(a(i, j) - b(i, j)) <= allowed))
            return testing::AssertionFailure()
                   << stage.name << " of head " << h << " (" << i << ", " << j << "): " << a(i, j)
                   << ", expected " << b(i, j) << " within " << allowed;
      }
    }
  }
  return testing::AssertionSuccess();
}

Model calm_model(support::Random& random, std::size_t n_tokens, std::size_t d_in, std::size_t d_out,
                 std::size_t n_heads) {
  Model m = support::model(random, n_tokens, d_in, d_out, n_heads);
  Projections& p = *m.projections;
  for (Linear* l : {&p.query, &p.key, &p.value, &p.output.value()})
    l->weight.edit() /= std::sqrt(static_cast<double>(l->weight->n_rows));
  return m;
}

}  // namespace core::attention::fast
