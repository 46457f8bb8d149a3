#include "core/check/bug_scene.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/check.hpp"
#include "core/files/tensor.hpp"

namespace core::check {

using bugs::BugContext;
using graph::digits;
using graph::infinity;

BugScene::BugScene(const Observation& observation, std::shared_ptr<const Editing> edited, Stage first_wrong,
                   graph::Work& work)
    : of(observation), now(std::move(edited)), target(first_wrong) {
  rows = of.rows().empty() ? most_differing_rows() : of.rows();
  stages = std::make_unique<LazyStages>(now->graph, now->model(), rows);
  stages->count_in(work);
  const auto both = of.stages_of(*now, false);
  for (const Stage stage : of.order()) {
    if (stage == target) break;
    const bool has_other_model = &now->model() != &of.model();
    if (!of.has_same_shape(has_other_model ? *stages : of.right_stages(), stage, stage)) continue;
    of.give(*stages, stage, false);
    of.give(both->rounded(), stage, true);
  }
  const Stage seen = now->reported(target);
  const bool is_computed = stages->find(seen) && of.can_compute(*now, seen);
  fits = is_computed && of.has_same_shape(*stages, seen, target);
  allowed = is_computed || of.is_exact() ? of.allowed(target, seen, *stages, both->rounded())
                                         : AllowedDifference{1e-6, infinity};
  by_rows = fits && !rows.empty() && !has_key_rows(target);
  is_sampled = by_rows && !of.rows().empty();
  if (fits) choose_probe();
}

void BugScene::choose_probe() {
  const Stage seen = now->reported(target);
  double largest = -1;
  arma::mat difference;
  for (std::size_t s = 0; s < of.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < stages->n_matrices(seen); ++h) {
      arma::mat apart = with_masked_infinite(target, *stages->matrix(seen, s, h, by_rows));
      const arma::mat other = observed(s, h);
      for (std::size_t k = 0; k < std::min(apart.n_elem, other.n_elem); ++k) {
        const double d = abs_difference(apart[k], other[k]);
        apart[k] = std::isfinite(d) ? d : 1e3;
      }
      const double sum = arma::accu(apart);
      if (sum > largest) largest = sum, probe_sequence = s, probe_matrix = h, difference = std::move(apart);
    }
  constexpr std::size_t n_probed = 16;
  if (target == Stage::output && difference.n_cols >= 4 * n_probed) {  // otherwise all of it costs little
    const arma::uvec furthest_first = arma::sort_index(arma::sum(difference, 0).t(), "descend");
    columns = arma::sort(furthest_first.head(n_probed));
  }
  probe = probed(probe_sequence, probe_matrix);
}

std::vector<std::size_t> BugScene::most_differing_rows() const {
  constexpr std::size_t n_probed = 3;
  const std::size_t n_rows = of.model().n_tokens();
  if (n_rows < 2 * n_probed || has_key_rows(target) || !of.right().find(target) ||
      !of.has_same_shape(of.right_stages(), target, target))
    return {};
  std::vector<std::pair<double, std::size_t>> apart;
  for (std::size_t i = 0; i < n_rows; ++i) apart.emplace_back(0, i);
  for (std::size_t s = 0; s < of.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < of.right_stages().n_matrices(target); ++h) {
      const arma::mat &ours = of.right_stages().matrix(target, s, h), &other = of.matrix(target, s, h);
      if (ours.n_rows != n_rows) return {};
      for (std::size_t j = 0; j < ours.n_cols; ++j)
        for (std::size_t i = 0; i < n_rows; ++i)
          if (const double d = abs_difference(ours.at(i, j), other.at(i, j)); d > 0)
            apart[i].first -= std::isfinite(d) ? d : 1e3;
    }
  std::ranges::sort(apart);
  std::vector<std::size_t> best;
  for (std::size_t k = 0; k < n_probed; ++k) best.push_back(apart[k].second);
  std::ranges::sort(best);
  return best;
}

namespace {

/// Returns the indices for which numbers differ: index_of(sequence, row).
template <class IndexOf>
std::vector<std::size_t> differing(const BugScene& scene, IndexOf index_of) {
  std::set<std::size_t> found;
  const Stage seen = scene.now->reported(scene.target);
  for (std::size_t s = 0; scene.fits && s < scene.of.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < scene.stages->n_matrices(seen); ++h) {
      const arma::mat ours = with_masked_infinite(scene.target, *scene.stages->matrix(seen, s, h));
      const arma::mat& other = scene.of.matrix(scene.target, s, h);
      for (std::size_t j = 0; j < ours.n_cols; ++j)
        for (std::size_t i = 0; i < ours.n_rows; ++i)
          if (abs_difference(ours.at(i, j), other.at(i, j)) > scene.allowed.maximum)
            found.insert(index_of(s, i));
    }
  return {found.begin(), found.end()};
}

/// Returns the shape of a stage's matrices in all sequences.
std::string shape_text_of(std::size_t n_sequences, std::size_t n, const arma::mat& one) {
  return formats::shape_text({n_sequences, n, one.n_rows, one.n_cols});
}

}  // namespace

std::vector<std::size_t> BugScene::differing_rows() const {
  if (has_key_rows(target)) return {};
  return differing(*this, [](std::size_t, std::size_t row) { return row; });
}

std::vector<std::size_t> BugScene::differing_sequences() const {
  return differing(*this, [](std::size_t sequence, std::size_t) { return sequence; });
}

BugContext BugScene::context() const {
  BugContext context{*now,
                     *stages,
                     target,
                     {},
                     allowed.maximum,
                     of.is_exact()                          ? 1e-7
                     : of.precision() == Precision::float32 ? 1e-4
                     : of.precision() == Precision::float16 ? 1e-2
                                                            : 3e-2,
                     of.precision(),
                     of.is_large(),
                     differing_rows()};
  for (const Stage stage : of.order()) context.given[graph::index(stage)] = &of.matrices(stage);
  return context;
}

double BugScene::count_agreeing_rows(LazyStages& changed, Stage seen) const {
  if (!of.has_as_many(changed, seen, target)) return 0;
  double n = 0;
  for (std::size_t s = 0; s < of.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < changed.n_matrices(seen); ++h) {
      const arma::mat& x = changed.matrix(seen, s, h, is_sampled);
      const arma::mat y = is_sampled ? observed(s, h) : of.matrix(target, s, h);
      if (arma::size(x) != arma::size(y) || x.n_cols < 3) return 0;
      for (std::size_t i = 0; i < x.n_rows; ++i) {
        bool agree = true, same_zeros = true;
        for (std::size_t j = 0; j < x.n_cols; ++j) {
          const double a = x.at(i, j), b = y.at(i, j);
          agree = agree && (a == b || std::abs(a - b) <= allowed.maximum);
          same_zeros = same_zeros && (a == 0) == (b == 0);
        }
        n += agree + (target == Stage::weights && same_zeros ? 0.5 : 0);
      }
    }
  return n;
}

bugs::Numbers BugScene::numbers_of(LazyStages& changed, Stage seen) const {
  bugs::Numbers all;
  for (std::size_t s = 0; s < of.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < changed.n_matrices(seen); ++h) {
      const arma::mat& one = changed.matrix(seen, s, h, is_sampled);
      all.insert(all.end(), one.begin(), one.end());
    }
  return all;
}

std::string BugScene::difference_words() const {
  const Stage seen = now->reported(target);
  const std::string name = graph::words_of(target);
  const std::size_t n_sequences = of.model().sequences.size(), n = stages->n_matrices(seen);
  if (!fits) {
    const auto& observed = *std::ranges::find(of.stages(), target, &ObservedStage::stage);
    return name + " have the shape " +
           shape_text_of(observed.n_sequences, observed.matrices.size() / observed.n_sequences,
                         observed.matrices[0]) +
           ", ours " + shape_text_of(n_sequences, n, stages->matrix(seen, 0, 0));
  }
  std::size_t n_all = 0, n_differing = 0, n_more = 0, n_less = 0;
  double largest = 0, low = infinity, high = -infinity;
  std::vector<HeadDifference> heads;
  const std::vector<std::size_t> sequences = differing_sequences();
  for (std::size_t s = 0; s < n_sequences; ++s)
    for (std::size_t h = 0; h < n; ++h) {
      const arma::mat ours = with_masked_infinite(target, *stages->matrix(seen, s, h));
      const arma::mat& other = of.matrix(target, s, h);
      for (std::size_t k = 0; k < ours.n_elem; ++k) {
        const double x = ours[k], y = other[k], apart = abs_difference(x, y);
        ++n_all, n_more += std::isinf(y) && !std::isinf(x), n_less += std::isinf(x) && !std::isinf(y);
        if (apart <= allowed.maximum) continue;
        ++n_differing;
        if (std::isfinite(apart)) largest = std::max(largest, apart);
      }
      const arma::vec sums = arma::sum(other, 1);
      low = std::min(low, sums.min()), high = std::max(high, sums.max());
      if (std::ranges::binary_search(sequences, s)) heads.push_back({h, other, ours});
    }
  std::vector<std::string> words;
  if (sequences.size() < n_sequences)
    words.push_back("only sequences " + graph::list_of(sequences) + " of " + std::to_string(n_sequences));
  const bool are_keys = attention::info(target).columns == attention::Columns::tokens;
  if (!heads.empty())
    words.push_back(describe_pattern(heads, {n, are_keys, [&](double) { return allowed.maximum; }}));
  std::erase(words, "");
  if (n_more + n_less > 0)
    words.push_back(std::to_string(n_more) + " cells masked that are not in the model, " +
                    std::to_string(n_less) + " seen that we hide");
  const bool are_off =
      std::isfinite(low) && std::isfinite(high) && (std::abs(low - 1) > 1e-3 || std::abs(high - 1) > 1e-3);
  if (target == Stage::weights && are_off)
    words.push_back("rows sum to " + digits(low, 4) + " … " + digits(high, 4));
  if (words.empty())
    words.push_back(
        digits(std::round(100.0 * static_cast<double>(n_differing) / static_cast<double>(n_all))) +
        " % of the cells, the largest difference " + digits(largest, 4));
  return name + ": " + text::joined(words, "; ") + ", by nothing known here";
}

}  // namespace core::check
