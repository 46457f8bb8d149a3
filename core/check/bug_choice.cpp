#include "core/check/bug_choice.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/base/text.hpp"

namespace core::check {

using bugs::Numbers;

namespace {

int rank_of(const BugHits& hits) {
  return std::accumulate(hits.begin(), hits.end(), 0,
                         [](int sum, const BugHit& hit) { return sum + hit.rank; });
}

double worst_of(const BugHits& hits) {
  return std::ranges::max(hits, {}, &BugHit::worst).worst;
}

/// Returns numbers of every stage of a graph, to recognize equivalent bugs.
Numbers signature(const Observation& of, const Editing& now) {
  constexpr std::size_t max_of_stage = 4000;
  LazyStages stages(now.graph, now.model(), of.right_stages());
  Numbers all;
  for (const Stage stage : compared_stages()) {
    const Stage seen = stages.find(now.reported(stage)) ? now.reported(stage) : stage;
    if (!stages.find(seen) || !of.can_compute(now, seen)) continue;
    Numbers own;
    double size = 0;
    for (std::size_t s = 0; s < now.model().sequences.size(); ++s)
      for (std::size_t h = 0; h < stages.n_matrices(seen) && own.size() < max_of_stage; ++h)
        for (const double x : *stages.matrix(seen, s, h, of.is_large() && !has_key_rows(seen))) {
          own.push_back(std::isfinite(x) ? x : 0);
          size = std::max(size, std::abs(own.back()));
        }
    for (const double x : own) all.push_back(size > 0 ? x / size : 0);
  }
  return all;
}

bool are_same(const Numbers& first, const Numbers& second) {
  return std::ranges::equal(first, second, [](double a, double b) { return std::abs(a - b) <= 3e-7; });
}

/// Returns the place of the only hit that others lack; nothing if they lack none or several.
std::optional<std::size_t> only_other(const BugHits& hits, const BugHits& others) {
  std::optional<std::size_t> only;
  for (std::size_t k = 0; k < hits.size(); ++k) {
    if (std::ranges::find(others, hits[k].words, &BugHit::words) != others.end()) continue;
    if (only) return std::nullopt;
    only = k;
  }
  return only;
}

/// Returns explanations without equivalent ones, the simplest first.
std::vector<BugHits> distinct(const Observation& of, std::vector<BugHits> all) {
  std::ranges::stable_sort(all, [](const BugHits& a, const BugHits& b) {
    return std::pair{a.size(), rank_of(a)} < std::pair{b.size(), rank_of(b)};
  });
  std::vector<std::pair<Numbers, BugHits>> kept;
  for (BugHits& e : all) {
    Numbers own = signature(of, *e.back().edited);
    const auto known = std::ranges::find_if(kept, [&](const auto& other) {
      if (std::ranges::equal(other.second, e, {}, &BugHit::words, &BugHit::words)) return true;
      return are_same(own, other.first);
    });
    if (known == kept.end()) {
      kept.emplace_back(std::move(own), std::move(e));
      continue;
    }
    const auto own_only = only_other(e, known->second), its_only = only_other(known->second, e);
    if (own_only && its_only) known->second[*its_only].equivalent.push_back(e[*own_only].bug);
  }
  std::vector<BugHits> result;
  for (auto& [own, e] : kept) result.push_back(std::move(e));
  return result;
}

/// Returns the projections that a hit names, but no observed stage depends on.
std::vector<std::string> blind_sides(const Observation& of, const BugHit& hit) {
  using enum Stage;
  const auto stages_after = [](char side) -> std::vector<Stage> {
    std::vector<Stage> after{scores,        scaled_scores, capped_scores, position_bias,
                             biased_scores, masked_scores, weights,       dropped_weights};
    if (side == 'q') after.insert(after.end(), {queries, normed_queries, rotated_queries});
    if (side == 'k') after.insert(after.end(), {keys, normed_keys, rotated_keys});
    if (side == 'v') after = {values};
    if (side == 'o') return {output};
    after.insert(after.end(), {contexts, concatenated, output});
    return after;
  };
  std::vector<std::string> blind;
  for (const char side : hit.bug.sides)
    if (std::ranges::none_of(stages_after(side), [&](Stage stage) { return of.is_observed(stage); }))
      blind.push_back(graph::stages_of_sides(std::string(1, side)));
  return blind;
}

}  // namespace

std::vector<bugs::BugCase> equivalent_bugs(const Observation& of, const BugHit& hit,
                                           const std::vector<const BugHit*>& others) {
  const Numbers own = signature(of, *hit.edited);
  std::vector<bugs::BugCase> all;
  for (const BugHit* other : others)
    if (other != &hit && are_same(own, signature(of, *other->edited))) all.push_back(other->bug);
  return all;
}

std::vector<BugHits> choose_likeliest(const Observation& of, std::vector<BugHits> found) {
  constexpr std::size_t max_listed = 5;
  if (found.empty()) return found;
  if (!of.is_exact()) {
    const double best = worst_of(std::ranges::min(found, {}, worst_of));
    std::erase_if(found, [&](const BugHits& e) { return worst_of(e) > std::max(1.5 * best, 0.1); });
  }
  const std::size_t shortest = std::ranges::min(found, {}, &BugHits::size).size();
  std::erase_if(found, [&](const BugHits& e) { return e.size() != shortest; });
  found = distinct(of, std::move(found));
  const int lowest = rank_of(std::ranges::min(found, {}, rank_of));
  std::vector<BugHits> out;
  std::map<std::string, int> already_listed;
  for (BugHits& e : found) {
    std::string family, key;
    bool has_sides = true;
    for (const BugHit& hit : e) {
      const std::string cause(cause_of(*hit.bug.bug));
      family += cause + ";";
      // One change on several sides counts once, but positions of queries and of keys are distinct.
      std::string words = hit.words;
      has_sides = has_sides && !hit.bug.sides.empty() && cause != "positions";
      for (const std::string& part : {graph::stages_of_sides(hit.bug.sides), std::string(" (keys only)"),
                                      std::string(" (values only)")})
        if (const std::size_t at = words.find(part); has_sides && at != words.npos)
          words.erase(at, part.size());
      key += words + ";";
    }
    if (rank_of(e) > lowest || (has_sides && already_listed[key] > 0) || already_listed[family] >= 2)
      continue;
    ++already_listed[key], ++already_listed[family];
    std::set<std::string> listed;
    std::vector<std::string> blind;
    for (const BugHit& hit : e)
      for (const std::string& name : blind_sides(of, hit))
        if (listed.insert(name).second) blind.push_back(name);
    if (!blind.empty())
      e.back().words +=
          " (" + text::joined(blind, ", ", {}, " and ") + " cannot be judged from what is given)";
    out.push_back(std::move(e));
    if (out.size() == max_listed) break;
  }
  return out;
}

}  // namespace core::check
