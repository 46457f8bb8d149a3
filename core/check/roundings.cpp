#include "core/check/roundings.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/check/nearness.hpp"
#include "core/check/rounding_judge.hpp"
#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

/// Likenesses that differ by less tell nothing.
constexpr double about = 0.1;
/// Models whose tensors are as far from theirs, to so much of it, are one as far as these can tell.
constexpr double same = 1e-6;
/// So likely, and by so much likelier, must a special kind of float16 be than the usual one, which few
/// numbers do not tell from it.
constexpr double evident = 0.85, plainly = 0.3;

std::string_view cause_of(const RoundingSearch::Found& found) {
  return found.rounding.mistakes.front()->cause;
}

bool is_special(const RoundingSearch::Found& found) {
  return cause_of(found) == "half_precision_sums" || cause_of(found) == "softmax_half_precision";
}

/// Those that are about as likely as the likeliest; of one cause the likeliest alone.
std::vector<RoundingSearch::Found> likeliest(std::vector<RoundingSearch::Found> all) {
  using Found = RoundingSearch::Found;
  const auto is_plainer = [&](const Found& found) {
    return std::ranges::any_of(all, [&](const Found& other) {
      return other.exact == found.exact && cause_of(other) == "half_precision" &&
             (found.likeness < evident || other.likeness > found.likeness - plainly);
    });
  };
  std::vector<Found> kept;
  for (const Found& found : all)
    if (!is_special(found) || !is_plainer(found)) kept.push_back(found);
  all = std::move(kept);
  if (all.empty()) return all;
  std::erase_if(all, [&, before = all](const Found& found) {  // products are cut or rounded, not both
    return std::ranges::any_of(before, [&](const Found& other) {
      return other.exact == found.exact && cause_of(other) == cause_of(found) &&
             other.rounding.cuts_products != found.rounding.cuts_products && other.likeness > found.likeness;
    });
  });
  const double best = std::ranges::max_element(all, {}, &Found::likeness)->likeness;
  const std::vector<Found> before = all;
  std::erase_if(all, [&](const Found& found) {
    return std::ranges::none_of(before, [&](const Found& likely) {
      const bool is_likely = likely.likeness >= best - about, is_itself = found.likeness >= best - about;
      const bool is_alike =
          cause_of(likely) == cause_of(found) && std::abs(likely.error - found.error) <= same * likely.error;
      return is_itself || (is_likely && is_alike);
    });
  });
  return all;
}

/// The name of the type that a model is computed in.
std::string type_words(const Model& model) {
  const attention::Departures& d = model.departures;
  const bool products = d.product_inputs != attention::Precision::float64,
             softmax = d.softmax_precision != attention::Precision::float64;
  return attention::name_of(softmax ? d.softmax_precision : products ? d.product_inputs : d.precision);
}

struct Alone {
  std::vector<std::string> types;
  std::size_t n = 0;
  double likeness = 0;
};

/// Which tensors a way alone explains.
Alone explained_alone(const Way& way, const Computed& right, const std::vector<Theirs>& theirs,
                      const std::vector<const Reading*>& agreeing, const Tolerance& tolerance) {
  const Computed coarse(way.made(right.model()), nullptr, way.cuts_products);
  Alone alone;
  for (std::size_t k = 0; k < theirs.size(); ++k) {
    const auto likeness = agreeing[k] ? std::nullopt : likeness_of(theirs[k], right, coarse, tolerance);
    const bool is_rounding = likeness && shows(*likeness, coarse.model());
    alone.types.push_back(is_rounding ? type_words(coarse.model()) : "");
    if (!is_rounding) continue;
    ++alone.n;
    alone.likeness += likeness->value;
  }
  return alone;
}

}  // namespace

std::vector<RoundingSearch::Found> RoundingSearch::found(const std::vector<Exact>& models) const {
  std::vector<Found> all;
  for (const Exact& model : models) {
    std::optional<Computed> few;
    if (sampler_) few.emplace(model.model, sampler_);
    const Computed exact(model.model);
    for (const Way& way : ways_) {
      if (!token_.goes_on()) return likeliest(std::move(all));
      token_.count(1);
      Model coarse = way.made(model.model);
      if (coarse == model.model || attention::check(coarse)) continue;
      if (few && !likeness_of(*model.theirs, *few, Computed(coarse, sampler_), tolerance_)) continue;
      const Computed ours(coarse, nullptr, way.cuts_products);
      const auto likeness = likeness_of(*model.theirs, exact, ours, tolerance_);
      if (likeness && !are_of_another_scale(*model.theirs, exact, ours))
        all.push_back({model.way, way, std::move(coarse), likeness->value, likeness->error});
    }
  }
  return likeliest(std::move(all));
}

std::vector<std::string> rounded_alone(const Computed& right, const std::vector<Theirs>& theirs,
                                       const std::vector<const Reading*>& agreeing,
                                       const std::vector<Explanation>& explanations,
                                       const Tolerance& tolerance, const core::Token& token) {
  const std::vector<Way> ways = rounding_ways(right.model());
  Alone best{std::vector<std::string>(theirs.size()), 0, 0};
  for (const Way& way : ways) {
    if (!token.goes_on()) break;
    const mistakes::Mistake* rounding = way.mistakes.front();
    const auto is_of_it = [&](const Explanation& e) {
      return e.mistakes.size() > 1 && std::ranges::find(e.mistakes, rounding) != e.mistakes.end();
    };
    if (!explanations.empty() && !is_of_it(explanations.front())) continue;
    Alone alone = explained_alone(way, right, theirs, agreeing, tolerance);
    const auto better = [](const Alone& a, const Alone& b) {
      return a.n != b.n ? a.n > b.n : a.likeness > b.likeness;
    };
    if (better(alone, best)) best = std::move(alone);
  }
  return best.types;
}

}  // namespace core::check
