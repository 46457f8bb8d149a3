#include "core/check/bug_search.hpp"

#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/text.hpp"
#include "core/check/bug_choice.hpp"
#include "core/check/bug_pairs.hpp"
#include "core/check/bug_trials.hpp"
#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

using bugs::BugCase;
using graph::infinity;

BugHits with(BugHits all, BugHit hit) {
  all.push_back(std::move(hit));
  return all;
}

/// Stages that are taken as observed though nothing explains them.
using AcceptedStages = attention::StageSet;

class BugSearch {
 public:
  BugSearch(const Observation& of, SearchBudget budget, double max_cells)
      : o_(of), budget_(budget), max_cells_(max_cells) {}

  BugSearchResult find();
  /// Also describes what nothing explains.
  BugSearchResult find_or_describe();
  bool confirm(BugSearchResult& of_first_tokens);

 private:
  struct FirstDifference {
    std::optional<Stage> stage;
    std::vector<Stage> agreeing;  ///< after it
    double worst = 0;             ///< distance of a stage
  };
  FirstDifference first_difference(const Editing& now, const AcceptedStages& accepted = {});
  void list_agreeing(const FirstDifference& difference, BugSearchResult& result) const;
  std::optional<double> worst_if_all_agree(const Editing& now, const AcceptedStages& accepted = {});
  bool confirm(BugHit& hit, const AcceptedStages& accepted = {});
  std::vector<BugHits> explain(BugTrials& trials, double begin, BugSearchResult& result);
  std::vector<BugHits> search(BugTrials& trials, const BugHits& applied, const AcceptedStages& accepted,
                              int depth, double deadline);
  std::vector<BugHits> search(const std::shared_ptr<const Editing>& now, const BugHits& applied,
                              const AcceptedStages& accepted, int depth, double deadline);
  std::vector<BugHits> find_later_bugs(Stage target, const BugHits& open, const BugHits& applied,
                                       const AcceptedStages& accepted, int depth, double deadline);
  std::vector<BugHits> explain_coarser_inputs(Stage target, double deadline, std::string& note);
  void describe(double deadline, BugSearchResult& result);

  const Observation& o_;
  SearchBudget budget_;
  double max_cells_;
};

BugSearch::FirstDifference BugSearch::first_difference(const Editing& now, const AcceptedStages& accepted) {
  const auto both = o_.stages_of(now, accepted.none());
  both->exact.count_in(budget_.work);
  if (both->coarse) both->coarse->count_in(budget_.work);
  for (const Stage stage : o_.order())
    if (accepted[graph::index(stage)])
      o_.give(both->exact, stage, false), o_.give(both->rounded(), stage, true);
  FirstDifference result;
  for (const Stage stage : o_.order()) {
    if (accepted[graph::index(stage)]) continue;
    double least = infinity;
    for (const Stage seen : o_.candidates_for(now, stage)) {
      if (!o_.can_compute(now, seen) || !o_.has_as_many(both->exact, seen, stage)) continue;
      const AllowedDifference allowed = o_.allowed(stage, seen, both->exact, both->rounded());
      least = std::min(least, o_.distance(both->exact, seen, stage, allowed, 1));
    }
    result.worst = std::max(result.worst, least);
    if (least <= 1) {
      if (result.stage) result.agreeing.push_back(stage);
      continue;
    }
    if (!result.stage) result.stage = stage;
    if (o_.is_large() && &now != &o_.right()) break;
  }
  return result;
}

/// Returns the largest distance of an observed stage if all agree: computed from the start and, in low
/// precision, also each from the observed stages before it. Of exact numbers it is 0.
std::optional<double> BugSearch::worst_if_all_agree(const Editing& now, const AcceptedStages& accepted) {
  budget_.token.count(1);
  const FirstDifference whole = first_difference(now, accepted);
  if (whole.stage) return std::nullopt;
  if (o_.is_exact()) return 0;
  if (o_.order().size() == 1) return whole.worst;
  const auto both = o_.stages_of(now, false);
  both->exact.count_in(budget_.work), both->coarse->count_in(budget_.work);
  double worst = 0;
  for (const Stage stage : o_.order()) {
    if (!(now.has_reordered_scores() && is_score_step_stage(stage))) {
      const Stage seen = now.reported(stage);
      if (!o_.has_as_many(both->exact, seen, stage)) return std::nullopt;
      const AllowedDifference allowed = o_.allowed(stage, seen, both->exact, *both->coarse);
      worst = std::max(worst, o_.distance(both->exact, seen, stage, allowed, 1));
      if (worst > 1) return std::nullopt;
    }
    if (!o_.has_same_shape(o_.right_stages(), stage, stage) || now.reported(stage) != stage) continue;
    o_.give(both->exact, stage, false), o_.give(*both->coarse, stage, true);
  }
  return worst;
}

bool BugSearch::confirm(BugHit& hit, const AcceptedStages& accepted) {
  const auto worst = worst_if_all_agree(*hit.edited, accepted);
  hit.worst = worst.value_or(infinity);
  return worst.has_value();
}

/// Returns explanations: lists of hits with which all observed stages agree.
std::vector<BugHits> BugSearch::search(const std::shared_ptr<const Editing>& now, const BugHits& applied,
                                       const AcceptedStages& accepted, int depth, double deadline) {
  const auto target = first_difference(*now, accepted).stage;
  if (!target) return std::vector<BugHits>(applied.empty() ? 0 : 1, applied);
  BugTrials trials(o_, now, *target, budget_);
  return search(trials, applied, accepted, depth, deadline);
}

std::vector<BugHits> BugSearch::search(BugTrials& trials, const BugHits& applied,
                                       const AcceptedStages& accepted, int depth, double deadline) {
  BugHits found = trials.hits(trials.cases(deadline), deadline, o_.is_exact() ? 1 : 3);
  if (found.empty() && depth > 0 && !o_.is_large()) {  // a second bug at the same stage
    const double until = budget_.part_of(0.5, deadline);
    for (const BugHit& hit : trials.partial_hits(until)) {
      if (!budget_.should_continue(until)) break;
      auto explained = search(hit.edited, with(applied, hit), accepted, depth < 2 ? depth - 1 : 1, deadline);
      if (!explained.empty()) return explained;
    }
  }
  std::vector<BugHits> done;
  BugHits open;
  int best = 9;
  std::set<std::string> already_listed;
  for (BugHit& hit : found) {
    if (!already_listed.insert(hit.words).second) continue;
    if (o_.is_large() && done.size() >= 2) break;
    if (hit.rank > best && o_.is_exact()) break;  // a simpler bug explains everything
    if (confirm(hit, accepted))
      best = std::min(best, hit.rank), done.push_back(with(applied, hit));
    else
      open.push_back(std::move(hit));
  }
  return !done.empty() || depth == 0
             ? done
             : find_later_bugs(trials.scene.target, open, applied, accepted, depth, deadline);
}

/// Returns explanations by bugs that make a stage agree, each with another one that must follow later.
std::vector<BugHits> BugSearch::find_later_bugs(Stage target, const BugHits& open, const BugHits& applied,
                                                const AcceptedStages& accepted, int depth, double deadline) {
  constexpr std::size_t max_tried = 12;
  const auto place = [&](Stage stage) { return std::ranges::find(o_.order(), stage) - o_.order().begin(); };
  std::vector<std::tuple<std::ptrdiff_t, int, const BugHit*>> furthest_first;
  for (const BugHit& hit : open) {
    const auto next = hit.score <= 1 ? first_difference(*hit.edited, accepted).stage : std::nullopt;
    if (next && place(*next) > place(target)) furthest_first.emplace_back(-place(*next), hit.rank, &hit);
  }
  std::ranges::stable_sort(furthest_first, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  if (furthest_first.size() > max_tried) furthest_first.resize(max_tried);
  std::vector<const BugHit*> tried;
  for (const auto& [ahead, rank, hit] : furthest_first) tried.push_back(hit);
  std::vector<BugHits> done;
  for (const BugHit* hit : tried) {
    if (!budget_.should_continue(deadline)) break;
    auto explained = search(hit->edited, with(applied, *hit), accepted, depth - 1, deadline);
    if (explained.empty()) continue;
    const std::vector<BugCase> equivalent = equivalent_bugs(o_, *hit, tried);
    for (BugHits& one : explained) {
      std::ranges::copy(equivalent, std::back_inserter(one[applied.size()].equivalent));
      done.push_back(std::move(one));
    }
    const bool are_rules = std::ranges::any_of(done, [&](const BugHits& e) {
      return e.size() == applied.size() + 2 &&
             std::ranges::all_of(e, [](const BugHit& h) { return h.rank == 0; });
    });
    if (are_rules) break;
  }
  return done;
}

// Description.

/// Explains stages given in a finer precision than the computation before them used: the difference must
/// correlate with that of rounding, not only be as large.
std::vector<BugHits> BugSearch::explain_coarser_inputs(Stage target, double deadline, std::string& note) {
  for (const Precision coarse : {Precision::bfloat16, Precision::float16}) {
    bool is_coarser = false;
    for (const Stage stage : compared_stages()) {
      if (stage == target) break;
      is_coarser = is_coarser || (!o_.is_observed(stage) &&
                                  relative_rounding(coarse) > relative_rounding(o_.precision(stage)));
    }
    if (!is_coarser) continue;
    const Observation rounded(std::make_shared<const Model>(o_.model()), o_.stages(),
                              AssumedPrecision{coarse, target});
    const auto has_same_rounding = [&](const Editing& now) {
      const auto both = rounded.stages_of(now);
      if (!rounded.has_same_shape(both->exact, target, target)) return false;
      double xy = 0, xx = 0, yy = 0;
      for (std::size_t s = 0; s < o_.model().sequences.size(); ++s)
        for (std::size_t h = 0; h < both->exact.n_matrices(target); ++h) {
          const arma::mat &exact = both->exact.matrix(target, s, h),
                          &ours = both->rounded().matrix(target, s, h), &other = o_.matrix(target, s, h);
          for (std::size_t k = 0; k < exact.n_elem; ++k) {
            const double x = other[k] - exact[k], y = ours[k] - exact[k];
            if (std::isfinite(x) && std::isfinite(y)) xy += x * y, xx += x * x, yy += y * y;
          }
        }
      return xy > 0.7 * std::sqrt(xx * yy) && xy > 0;
    };
    const std::string words = "what comes before the " + graph::words_of(target) + " was computed in " +
                              attention::name_of(coarse) + ", though they are given in " +
                              attention::name_of(o_.precision());
    BugSearch again(rounded, budget_, max_cells_);
    if (!again.first_difference(rounded.right()).stage && has_same_rounding(rounded.right())) {
      note = words;
      return {};
    }
    auto found = again.search(std::make_shared<const Editing>(rounded.right()), {}, {}, 1, deadline);
    std::erase_if(found, [&](const BugHits& e) { return !has_same_rounding(*e.back().edited); });
    if (found.empty()) continue;
    note = words;
    return choose_likeliest(rounded, std::move(found));
  }
  return {};
}

/// Describes a difference that nothing explains, accepts it as observed and examines later stages.
void BugSearch::describe(double deadline, BugSearchResult& result) {
  const auto place = [&](Stage stage) { return std::ranges::find(o_.order(), stage); };
  AcceptedStages accepted;
  auto current = std::make_shared<const Editing>(o_.right());
  const auto first = first_difference(*current).stage;
  while (const auto target = first_difference(*current, accepted).stage) {
    if (target != first || !result.partly.empty()) {
      auto rest = budget_.should_continue(deadline) ? search(current, {}, accepted, 1, deadline)
                                                    : std::vector<BugHits>();
      if (rest = choose_likeliest(o_, std::move(rest)); !rest.empty()) {
        for (const BugHit& hit : rest[0]) result.partly.push_back(hit.words);
        return;
      }
    }
    BugTrials trials(o_, current, *target, budget_);
    const BugHits hits =
        budget_.should_continue(deadline) ? trials.hits(trials.cases(deadline), deadline, 1) : BugHits();
    const auto best = std::ranges::find_if(hits, [](const BugHit& hit) { return hit.rank <= 2; });
    if (best != hits.end())
      if (const auto next = first_difference(*best->edited, accepted).stage;
          next && place(*next) > place(*target)) {
        result.partly.push_back(best->words);
        current = best->edited;
        continue;
      }
    result.described.push_back(trials.scene.difference_words());
    if (!trials.scene.fits) return;
    accepted.set(graph::index(*target));
  }
}

/// Returns explanations: of one bug after the other, of coarser inputs, then of pairs that too little is
/// given to judge one by one. Otherwise the result may get what is partly known.
std::vector<BugHits> BugSearch::explain(BugTrials& trials, double begin, BugSearchResult& result) {
  const double all = max_cells_ - begin;
  auto found = search(trials, {}, {}, 2, begin + 0.45 * all);
  if (found.empty()) {
    found = explain_coarser_inputs(trials.scene.target, budget_.spent() + 0.15 * all, result.note);
    if (!found.empty() || !result.note.empty()) return found;
  }
  const auto is_table = [](const BugHits& e) {
    return std::ranges::any_of(e, [](const BugHit& h) { return h.rank >= 4; });
  };
  if (!std::ranges::all_of(found, is_table)) return choose_likeliest(o_, std::move(found));
  const auto confirm_pair = [&](BugHit& hit) { return confirm(hit); };
  auto pairs = choose_likeliest(
      o_, find_bug_pairs(trials, o_, budget_, std::max(begin + 0.85 * all, budget_.spent() + 0.3 * all),
                         confirm_pair));
  if (!pairs.empty() && o_.is_coarse() && o_.order().size() == 1) {  // rounding makes such pairs uncertain
    result.partly = {"perhaps " + text::joined(pairs.front(), "; and ", &BugHit::words) +
                     " (bfloat16 or float16 leave room for others)"};
    return {};
  }
  if (pairs.empty() && !found.empty())  // true, but no rule: reported as a description
    for (const BugHit& hit : found[0])
      hit.rank < 4 ? result.partly.push_back(hit.words)
                   : result.described.push_back(hit.words + " (with just that everything given agrees)");
  return pairs;
}

void BugSearch::list_agreeing(const FirstDifference& difference, BugSearchResult& result) const {
  result.agreeing_after = difference.agreeing;
  result.is_harmless = !difference.agreeing.empty() && difference.agreeing.back() == o_.order().back();
}

/// Names a hit, and lists its other titles and those of cases that cannot be told from it.
FoundBug named(const BugHit& hit, const Editing& before) {
  FoundBug found{hit.bug, names_of(hit.bug, before), titles_of(hit.bug, before), hit.words};
  for (const BugCase& other : hit.equivalent)
    for (const bugs::Bug* title : titles_of(other, before))
      if (std::ranges::find(found.synonyms, title) == found.synonyms.end()) found.synonyms.push_back(title);
  std::erase(found.synonyms, found.names.front());
  return found;
}

/// Searches for bugs, and for what agrees in spite of them.
BugSearchResult BugSearch::find() {
  BugSearchResult result;
  result.precision = o_.precision();
  const FirstDifference difference = first_difference(o_.right());
  if (!difference.stage) {
    result.agrees = true;
    return result;
  }
  list_agreeing(difference, result);
  const auto has_finite_number = [](const SharedMatrix& m) {
    return std::ranges::any_of(*m, [](double x) { return std::isfinite(x); });
  };
  if (std::ranges::none_of(o_.matrices(*difference.stage), has_finite_number)) {
    result.described = {"no number of the " + graph::words_of(*difference.stage) +
                        " is finite, so nothing can be told from them: NaN or ∞ begin there or earlier"};
    return result;
  }
  const double begin = budget_.spent();
  BugTrials trials(o_, std::make_shared<const Editing>(o_.right()), *difference.stage, budget_);
  for (const BugHits& e : explain(trials, begin, result)) {
    FoundBugs one{{}, e.back().edited};
    const Editing* before = &o_.right();
    for (const BugHit& hit : e) {
      one.bugs.push_back(named(hit, *before));
      before = hit.edited.get();
    }
    result.found.push_back(std::move(one));
  }
  result.agrees = result.found.empty() && !result.note.empty();
  return result;
}

BugSearchResult BugSearch::find_or_describe() {
  const double begin = budget_.spent();
  BugSearchResult result = find();
  if (!result.agrees && result.found.empty() && result.partly.empty() && result.described.empty())
    describe(std::max(max_cells_, budget_.spent() + 0.1 * (max_cells_ - begin)), result);
  return result;
}

/// Leaves those of the bugs found in the first tokens that explain all of them; false if there are none.
bool BugSearch::confirm(BugSearchResult& of_first_tokens) {
  const auto has_observed_numbers = [](const FoundBug& bug) { return bug.made.observed != nullptr; };
  std::erase_if(of_first_tokens.found, [&](FoundBugs& one) {
    if (std::ranges::any_of(one.bugs, has_observed_numbers)) return true;  // there are none for later tokens
    Editing now = o_.right();
    for (const FoundBug& bug : one.bugs) bug.made.edit(now);
    one.edited = std::make_shared<const Editing>(std::move(now));
    return !worst_if_all_agree(*one.edited);
  });
  list_agreeing(first_difference(o_.right()), of_first_tokens);
  return !of_first_tokens.found.empty();
}

/// Returns how many of the first tokens are searched before all: few, and fewer before them if each
/// projection takes long.
std::vector<std::size_t> counts_of_first_tokens(const Model& model) {
  constexpr std::size_t wide = 100000;
  if (model.d_model() * model.d_out() > wide) return {8, 20};
  return {20};
}

}  // namespace

BugSearchResult find_bugs(std::shared_ptr<const Model> model, std::vector<ObservedStage> stages,
                          const core::StopToken& token, double max_cells, std::optional<Precision> assumed) {
  graph::Work work;
  const SearchBudget budget{token, work};
  const auto coarse = assumed ? std::optional(AssumedPrecision{*assumed}) : std::nullopt;
  const Observation whole(model, stages, coarse);
  BugSearch search(whole, budget, max_cells);
  BugSearchResult result;
  bool is_found = false;
  for (const std::size_t n : counts_of_first_tokens(*model)) {
    const auto first = is_found ? nullptr : first_tokens(*model, n);
    if (!first) continue;
    const Observation few(first, first_rows(stages, n), coarse);
    result = BugSearch(few, budget, budget.part_of(0.5, max_cells)).find();
    is_found = search.confirm(result);
  }
  if (!is_found) result = assumed ? search.find() : search.find_or_describe();
  result.work = work;
  return result;
}

}  // namespace core::check
