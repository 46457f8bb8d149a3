#include "core/check/causes.hpp"

#include <algorithm>
#include <string_view>

#include "core/check/rounding_judge.hpp"

namespace core::check {
namespace {

constexpr Stage no_stage = static_cast<Stage>(static_cast<int>(Stage::output) + 1);

/// The latest stage that a tensor can be.
Stage latest(const Theirs& tensor) {
  Stage stage = Stage::embeddings;
  for (const Reading& reading : tensor.readings) stage = std::max(stage, reading.stage);
  return stage;
}

/// A way tried alone.
struct Single {
  const Way* way;
  Model model;
  Stage first_wrong;  ///< the first stage at which tensors are not explained by it
};

/// Two ways of one cause say nothing that one of them would not; only biases can be missing in several
/// places.
bool share_a_cause(const Way& a, const Way& b) {
  for (const mistakes::Mistake* one : a.mistakes)
    for (const mistakes::Mistake* other : b.mistakes) {
      const std::string_view cause = one->cause;
      if (cause == other->cause && (one == other || cause != "bias_missing")) return true;
    }
  return false;
}

class Search {
 public:
  Search(const Computed& right, const std::vector<Theirs>& theirs, const Tolerance& tolerance,
         const std::function<bool()>& goes_on)
      : right_(right), theirs_(theirs), tolerance_(tolerance), goes_on_(goes_on) {}

  std::vector<Explanation> run() {
    const std::vector<Way> ways = ways_for(right_.model(), theirs_);
    const Stage first_wrong = first_wrong_of(right_);
    std::vector<Single> singles;
    for (const Way& way : ways) {
      if (!goes_on_()) return found_;
      Single single{&way, way.made(right_.model()), no_stage};
      if (way.is_rounding) {
        if (is_rounding(theirs_, right_, Computed(single.model), tolerance_)) add({&way}, single.model);
        single.first_wrong = Stage::output;
      } else if (way.first > first_wrong) {
        single.first_wrong = first_wrong;  // it cannot change what is wrong
      } else {
        single.first_wrong = first_wrong_of(Computed(single.model));
        if (single.first_wrong == no_stage) add({&way}, single.model);
      }
      singles.push_back(std::move(single));
    }
    if (!found_.empty()) return found_;
    for (std::size_t a = 0; a < singles.size(); ++a)
      for (std::size_t b = a + 1; b < singles.size(); ++b) {
        if (!goes_on_()) return found_;
        if (could_explain(singles[a], singles[b], first_wrong)) try_pair(singles[a], singles[b]);
      }
    return found_;
  }

 private:
  /// The first stage at which a tensor is not what a model gives, or no_stage.
  Stage first_wrong_of(const Computed& ours) const {
    Stage first = no_stage;
    for (const Theirs& tensor : theirs_)
      if (latest(tensor) < first && !agreeing(tensor, ours, tolerance_)) first = latest(tensor);
    return first;
  }

  /// Stages before the later of two ways must be explained by the earlier one alone.
  static bool could_explain(const Single& a, const Single& b, Stage first_wrong) {
    if (a.way->is_rounding && b.way->is_rounding) return false;
    const bool in_order = a.way->first <= b.way->first;
    const Single &early = in_order ? a : b, &late = in_order ? b : a;
    if (early.way->first > first_wrong || late.way->first > early.first_wrong) return false;
    return !share_a_cause(*a.way, *b.way);
  }

  void try_pair(const Single& a, const Single& b) {
    Model both = b.way->made(a.model);
    if (both == a.model || both == b.model || attention::check(both)) return;
    const Single* coarse = a.way->is_rounding ? &a : b.way->is_rounding ? &b : nullptr;
    const Model& exact = coarse == &a ? b.model : a.model;
    const bool explained = coarse ? is_rounding(theirs_, Computed(exact), Computed(both), tolerance_)
                                  : first_wrong_of(Computed(both)) == no_stage;
    if (explained) add({a.way, b.way}, std::move(both));
  }

  void add(const std::vector<const Way*>& ways, Model model) {
    Explanation explanation{{}, {}, std::move(model)};
    for (const Way* way : ways)
      for (const mistakes::Mistake* mistake : way->mistakes) {
        explanation.mistakes.push_back(mistake);
        auto& causes = explanation.causes;
        if (std::find(causes.begin(), causes.end(), mistake->cause) == causes.end())
          causes.push_back(mistake->cause);
      }
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const Explanation& other) {
      return other.causes == explanation.causes;
    });
    if (!known) found_.push_back(std::move(explanation));
  }

  const Computed& right_;
  const std::vector<Theirs>& theirs_;
  const Tolerance& tolerance_;
  const std::function<bool()>& goes_on_;
  std::vector<Explanation> found_;
};

}  // namespace

std::vector<Explanation> find_causes(const Computed& right, const std::vector<Theirs>& theirs,
                                     const Tolerance& tolerance, const std::function<bool()>& goes_on) {
  return Search(right, theirs, tolerance, goes_on).run();
}

}  // namespace core::check
