#include "core/check/causes.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/check/computed.hpp"
#include "core/check/rounding_judge.hpp"

namespace core::check {
namespace {

constexpr Stage no_stage = static_cast<Stage>(static_cast<int>(Stage::output) + 1);

/// Rows that a sample has at most, and of how many it is worth taking one.
constexpr std::size_t most_sampled = 5, worth_sampling = 24;

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
  Stage first_wrong;  ///< no stage before it is known to be left unexplained
};

bool is_coarse(const Way& way) {
  return way.first == Stage::embeddings;
}

/// Two ways of one cause say nothing that one of them would not; only biases can be missing in several
/// places.
bool share_a_cause(const Way& a, const Way& b) {
  if (is_coarse(a) && is_coarse(b)) return true;
  for (const mistakes::Mistake* one : a.mistakes)
    for (const mistakes::Mistake* other : b.mistakes) {
      const std::string_view cause = one->cause;
      if (cause == other->cause && (one == other || cause != "bias_missing")) return true;
    }
  return false;
}

/// Rows in which the tensors are far from the right model, and some others.
std::optional<Sample> sample_of(const Computed& right, const std::vector<Theirs>& theirs,
                                const std::vector<const Reading*>& agreeing, const Tolerance& tolerance) {
  const Model& model = right.model();
  const std::size_t n = model.n_tokens();
  if (n < worth_sampling || !model.given.empty()) return std::nullopt;
  std::optional<Sample> sample;
  const auto add = [&](std::size_t row) {
    auto& rows = sample->rows;
    if (rows.size() < most_sampled && std::find(rows.begin(), rows.end(), row) == rows.end())
      rows.push_back(row);
  };
  for (std::size_t k = 0; k < theirs.size(); ++k) {
    if (agreeing[k] || !attention::info(theirs[k].readings.front().stage).present(model)) continue;
    const Agreement worst = agreement(theirs[k], theirs[k].readings.front(), right, tolerance);
    if (!sample) sample = Sample{worst.sequence, {}};
    if (worst.sequence == sample->sequence && sample->rows.size() < most_sampled / 2) add(worst.row);
  }
  if (!sample) sample = Sample{};
  for (const std::size_t row : {n - 1, n / 2, std::size_t{1}, n / 4, n - 2, n / 3}) add(row);
  return sample;
}

class Search {
 public:
  Search(const Computed& right, const std::vector<Theirs>& theirs,
         const std::vector<const Reading*>& agreeing, const Tolerance& tolerance, const core::Token& token)
      : right_(right), theirs_(theirs), tolerance_(tolerance), token_(token) {
    if (auto sample = sample_of(right, theirs, agreeing, tolerance)) sampler_.emplace(std::move(*sample));
    for (std::size_t k = 0; k < theirs.size(); ++k) {
      if (agreeing[k])
        explained_.push_back(&theirs[k]);
      else
        first_wrong_ = std::min(first_wrong_, latest(theirs[k]));
    }
  }

  std::vector<Explanation> run() {
    const std::vector<Way> ways = ways_for(right_.model(), theirs_);
    std::vector<Single> singles;
    for (const Way& way : ways) {
      if (!token_.goes_on()) return found_;
      token_.count(1);
      if (auto single = tried(way)) singles.push_back(std::move(*single));
    }
    if (!found_.empty()) return found_;
    for (std::size_t a = 0; a < singles.size(); ++a)
      for (std::size_t b = a + 1; b < singles.size(); ++b) {
        if (!token_.goes_on()) return found_;
        token_.count(1);
        if (could_explain(singles[a], singles[b])) try_pair(singles[a], singles[b]);
      }
    return found_;
  }

 private:
  /// A way alone; nothing when no pair with it can explain the tensors.
  std::optional<Single> tried(const Way& way) {
    Single single{&way, way.made(right_.model()), first_wrong_};
    if (way.is_rounding) {
      if (gives_rounding(right_.model(), single.model)) add({&way}, single.model);
      single.first_wrong = Stage::output;
    } else if (way.first <= first_wrong_) {  // else it cannot change what is wrong
      const auto wrong = first_wrong_of(single.model, true);
      if (!wrong) return std::nullopt;
      if (*wrong == no_stage) add({&way}, single.model);
      single.first_wrong = *wrong;
    }
    return single;
  }

  /// The first stage at which a tensor is not what a model gives, or no_stage. A few rows are looked at
  /// first.
  ///
  /// Nothing where a tensor is wrong that was right, if that matters: no second mistake takes back what
  /// another does.
  std::optional<Stage> first_wrong_of(const Model& model, bool keeps_right) const {
    if (sampler_) {
      const auto wrong = first_wrong_of(Computed(model, &*sampler_), keeps_right);
      if (wrong != no_stage) return wrong;
    }
    if (attention::check(model)) return Stage::embeddings;
    return first_wrong_of(Computed(model), keeps_right);
  }
  std::optional<Stage> first_wrong_of(const Computed& ours, bool keeps_right) const {
    const auto is_wrong = [&](const Theirs* tensor) { return !agreeing(*tensor, ours, tolerance_); };
    if (keeps_right && std::any_of(explained_.begin(), explained_.end(), is_wrong)) return std::nullopt;
    Stage first = no_stage;
    for (const Theirs& tensor : theirs_)
      if (latest(tensor) < first && is_wrong(&tensor)) first = latest(tensor);
    return first;
  }

  /// Whether the tensors are the rounding of an exact model by a coarse one.
  bool gives_rounding(const Model& exact, const Model& coarse) const {
    if (sampler_ &&
        !is_rounding(theirs_, Computed(exact, &*sampler_), Computed(coarse, &*sampler_), tolerance_))
      return false;
    return !attention::check(coarse) && is_rounding(theirs_, Computed(exact), Computed(coarse), tolerance_);
  }

  /// Stages before the later of two ways must be explained by the earlier one alone.
  bool could_explain(const Single& a, const Single& b) const {
    const bool in_order = a.way->first <= b.way->first;
    const Single &early = in_order ? a : b, &late = in_order ? b : a;
    if (early.way->first > first_wrong_ || late.way->first > early.first_wrong) return false;
    return !share_a_cause(*a.way, *b.way);
  }

  void try_pair(const Single& a, const Single& b) {
    Model both = b.way->made(a.model);
    if (both == a.model || both == b.model) return;
    const bool explained = a.way->is_rounding ? gives_rounding(b.model, both)  // no way behind it rounds
                                              : first_wrong_of(both, false) == no_stage;
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
  const core::Token& token_;
  std::optional<Sampler> sampler_;
  std::vector<const Theirs*> explained_;  // by the right model
  Stage first_wrong_ = no_stage;          // by the right model
  std::vector<Explanation> found_;
};

}  // namespace

std::vector<Explanation> find_causes(const Computed& right, const std::vector<Theirs>& theirs,
                                     const std::vector<const Reading*>& agreeing, const Tolerance& tolerance,
                                     const core::Token& token) {
  return Search(right, theirs, agreeing, tolerance, token).run();
}

}  // namespace core::check
