#include "core/check/causes.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/text.hpp"
#include "core/check/computed.hpp"
#include "core/check/nearness.hpp"
#include "core/check/other_heads.hpp"
#include "core/check/roundings.hpp"
#include "core/graph/rounding.hpp"

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

/// Pairs are looked for under rounding to so many roundings of the largest number of a stage.
constexpr double loose_roundings = 16;

/// A way tried alone.
struct Single {
  const Way* way;
  Model model;
  Stage first_wrong;  ///< no stage before it is known to be left unexplained
};

/// Whether it is about numbers and not about what is done with them.
bool rounds_inputs(const Way& way) {
  return way.first == Stage::embeddings;
}

/// Two ways of one cause say nothing that one of them would not; only biases can be missing in several
/// places, and only some of the matrices be viewed.
bool share_a_cause(const Way& a, const Way& b) {
  if (rounds_inputs(a) && rounds_inputs(b)) return true;
  for (const mistakes::Mistake* one : a.mistakes)
    for (const mistakes::Mistake* other : b.mistakes) {
      const std::string_view cause = one->cause;
      const bool in_places = cause == "bias_missing" || cause == "view_without_transpose";
      if (cause == other->cause && (one == other || !in_places)) return true;
    }
  return false;
}

/// Rows in which the tensors are far from the right model, and some others.
std::optional<Sample> sample_of(const Computed& right, const std::vector<Theirs>& theirs,
                                const std::vector<const Reading*>& agreeing, const Tolerance& tolerance) {
  const Model& model = right.model();
  const std::size_t n = model.n_tokens();
  if (n < worth_sampling || !model.given.empty() || model.has_memory()) return std::nullopt;
  std::optional<Sample> sample;
  const auto add = [&](std::size_t row) {
    auto& rows = sample->rows;
    if (rows.size() < most_sampled && std::find(rows.begin(), rows.end(), row) == rows.end())
      rows.push_back(row);
  };
  for (std::size_t k = 0; k < theirs.size(); ++k) {
    if (agreeing[k] || theirs[k].readings.empty()) continue;
    const Reading& reading = theirs[k].readings.front();
    if (!attention::info(reading.stage).present(model)) continue;
    const Agreement worst = agreement(theirs[k], reading, right, tolerance);
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
      right_as_.push_back(agreeing[k]);
      if (agreeing[k])
        explained_.push_back(&theirs[k]);
      else
        first_wrong_ = std::min(first_wrong_, latest(theirs[k]));
    }
  }

  std::vector<Explanation> run() {
    const bool readable =
        std::ranges::none_of(theirs_, [](const Theirs& tensor) { return tensor.readings.empty(); });
    const std::vector<Way> ways = readable ? ways_for(right_.model(), theirs_) : std::vector<Way>();
    std::vector<Single> singles;
    for (const Way& way : ways) {
      if (!counted()) return found_;
      if (auto single = tried(way)) singles.push_back(std::move(*single));
    }
    const std::vector<OtherShapes> shapes = tried_shapes();
    if (!found_.empty()) return found_;
    RoundingSearch rounding(right_.model(), sampler_ ? &*sampler_ : nullptr, tolerance_, token_);
    if (readable) {
      auto rounded = rounding.found({{nullptr, right_.model(), &theirs_}});
      if (!rounded.empty())  // a mistake that is nearer to them may be rounded as well
        for (auto& other : rounding.found(nearer(singles))) rounded.push_back(std::move(other));
      if (add_all(rounded)) return found_;
    }
    try_pairs(singles);
    if (!found_.empty()) return found_;
    std::vector<RoundingSearch::Exact> exact;
    for (const Single& single : singles)
      if (!rounds_inputs(*single.way)) exact.push_back({single.way, single.model, &theirs_});
    for (const OtherShapes& other : shapes) exact.push_back({&other.way, other.model, &other.theirs});
    if (add_all(rounding.found(exact)) || !readable) return found_;
    for (const Explanation& pair : loose_pairs()) {
      const Way both{pair.mistakes, [&](const Model&) { return pair.model; }, Stage::queries,
                     text::joined(pair.details, "; or ")};
      add_all(rounding.found({{&both, pair.model, &theirs_}}));
    }
    return found_;
  }

  /// Pairs of mistakes that explain the tensors, when no mistake alone does.
  std::vector<Explanation> pairs() {
    const std::vector<Way> ways = ways_for(right_.model(), theirs_);
    std::vector<Single> singles;
    for (const Way& way : ways) {
      if (!counted()) return {};
      if (auto single = tried(way)) singles.push_back(std::move(*single));
    }
    if (!found_.empty()) return {};
    try_pairs(singles);
    return found_;
  }

 private:
  /// Tensors as a model of another number of heads, or of a wider output, has them.
  struct OtherShapes {
    Way way;
    Model model;
    std::vector<Theirs> theirs;
  };

  bool counted() const {
    if (!token_.goes_on()) return false;
    token_.count(1);
    return true;
  }

  /// A way alone; nothing when no pair with it can explain the tensors.
  std::optional<Single> tried(const Way& way) {
    Single single{&way, way.made(right_.model()), first_wrong_};
    if (way.first <= first_wrong_) {  // else it cannot change what is wrong
      const auto wrong = first_wrong_of(single.model, true);
      if (!wrong) return std::nullopt;
      if (*wrong == no_stage) add({&way}, single.model);
      single.first_wrong = *wrong;
    }
    return single;
  }

  std::vector<OtherShapes> tried_shapes() {
    std::vector<OtherShapes> all;
    std::vector<Way> ways;
    for (const std::size_t n : other_head_numbers(right_.model()))
      ways.push_back(other_heads(right_.model(), n));
    if (auto way = output_left_out(right_.model())) ways.push_back(*std::move(way));
    for (Way& way : ways) {
      if (!counted()) return all;
      Model model = way.made(right_.model());
      if (attention::check(model)) continue;
      std::vector<Theirs> again = read_again(model, theirs_);
      if (again.empty()) continue;
      const auto agree_with = [&](const Computed& ours) {
        return std::ranges::all_of(again,
                                   [&](const Theirs& tensor) { return agreeing(tensor, ours, tolerance_); });
      };
      if ((!sampler_ || agree_with(Computed(model, &*sampler_))) && agree_with(Computed(model)))
        add({&way}, model);
      all.push_back({std::move(way), std::move(model), std::move(again)});
    }
    return all;
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
    const auto is_wrong = [&](const Theirs* tensor) {
      return !agreeing(*tensor, ours, tolerance_) && !is_unused(*tensor, ours.model());
    };
    if (keeps_right && std::any_of(explained_.begin(), explained_.end(), is_wrong)) return std::nullopt;
    Stage first = no_stage;
    for (const Theirs& tensor : theirs_)
      if (latest(tensor) < first && is_wrong(&tensor)) first = latest(tensor);
    return first;
  }

  /// Whether a tensor is a right stage that a model leaves out: it was computed, and nothing made of it.
  bool is_unused(const Theirs& tensor, const Model& model) const {
    const Reading* right = right_as_[static_cast<std::size_t>(&tensor - theirs_.data())];
    return right && !attention::info(right->stage).present(model);
  }

  /// Stages before the later of two ways must be explained by the earlier one alone.
  bool could_explain(const Single& a, const Single& b) const {
    const bool in_order = a.way->first <= b.way->first;
    const Single &early = in_order ? a : b, &late = in_order ? b : a;
    if (early.way->first > first_wrong_ || late.way->first > early.first_wrong) return false;
    return !a.way->alone && !b.way->alone && !share_a_cause(*a.way, *b.way);
  }

  /// Mistakes whose exact numbers are plainly nearer to theirs than the right ones.
  std::vector<RoundingSearch::Exact> nearer(const std::vector<Single>& singles) const {
    const auto errors = [&](const Model& model) {
      return error_sums(theirs_, Computed(model, sampler_ ? &*sampler_ : nullptr));
    };
    const std::vector<ErrorSum> of_right = errors(right_.model());
    std::vector<RoundingSearch::Exact> exact;
    for (const Single& single : singles) {
      if (!counted()) break;
      if (rounds_inputs(*single.way) || attention::check(single.model)) continue;
      if (is_nearer(errors(single.model), of_right)) exact.push_back({single.way, single.model, &theirs_});
    }
    return exact;
  }

  /// Pairs of mistakes of which the tensors are no further than a coarse type may take them, to be judged.
  std::vector<Explanation> loose_pairs() const {
    using attention::Precision;
    std::vector<Explanation> found;
    for (const Precision type : {Precision::float16, Precision::bfloat16}) {
      Tolerance loose = tolerance_;
      loose.of_largest = loose_roundings * attention::rounding_error(type, 1);
      const double stored = theirs_.empty() ? 0 : storing_error(theirs_.front().rounding, 1);
      if (stored > attention::rounding_error(type, 1)) continue;  // a type that is coarser anyway
      std::vector<const Reading*> agree;
      for (const Theirs& tensor : theirs_) agree.push_back(agreeing(tensor, right_, loose));
      if (std::ranges::none_of(agree, [](const Reading* reading) { return reading == nullptr; })) continue;
      Search search(right_, theirs_, agree, loose, token_);
      for (Explanation& pair : search.pairs()) found.push_back(std::move(pair));
      if (!found.empty()) break;
    }
    return found;
  }

  void try_pairs(const std::vector<Single>& singles) {
    for (std::size_t a = 0; a < singles.size(); ++a)
      for (std::size_t b = a + 1; b < singles.size(); ++b) {
        if (!counted()) return;
        if (could_explain(singles[a], singles[b])) try_pair(singles[a], singles[b]);
      }
  }

  void try_pair(const Single& a, const Single& b) {
    Model both = b.way->made(a.model);
    if (both == a.model || both == b.model) return;
    if (first_wrong_of(both, false) == no_stage) add({a.way, b.way}, std::move(both));
  }

  bool add_all(const std::vector<RoundingSearch::Found>& all) {
    for (const RoundingSearch::Found& one : all) {
      std::vector<const Way*> ways{&one.rounding};
      if (one.exact) ways.insert(ways.begin(), one.exact);
      add(ways, one.model);
    }
    return !found_.empty();
  }

  void add(const std::vector<const Way*>& ways, Model model) {
    Explanation explanation{{}, {}, std::move(model), {}};
    for (const Way* way : ways) {
      for (const mistakes::Mistake* mistake : way->mistakes) {
        explanation.mistakes.push_back(mistake);
        auto& causes = explanation.causes;
        if (std::find(causes.begin(), causes.end(), mistake->cause) == causes.end())
          causes.push_back(mistake->cause);
      }
      if (!way->detail.empty()) explanation.details.push_back(way->detail);
    }
    const auto known = std::ranges::find(found_, explanation.causes, &Explanation::causes);
    if (known == found_.end()) return found_.push_back(std::move(explanation));
    for (const std::string& detail : explanation.details)
      if (std::ranges::find(known->details, detail) == known->details.end()) known->details.push_back(detail);
  }

  const Computed& right_;
  const std::vector<Theirs>& theirs_;
  const Tolerance& tolerance_;
  const core::Token& token_;
  std::optional<Sampler> sampler_;
  std::vector<const Theirs*> explained_;  // by the right model
  std::vector<const Reading*> right_as_;  // [tensor]: the reading that agrees with the right model
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
