#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/check/computed.hpp"
#include "core/graph/injected_bugs.hpp"

namespace core::check {

/// One way to make a bug; the table of bugs has only the simplest way.
struct Hypothesis {
  std::vector<const bugs::Bug*> mistakes;  ///< one mistake, or a few similar ones
  std::function<Model(const Model&)> injected;
  Stage first;               ///< no earlier stage can change
  std::string detail = {};   ///< "blocks of 4 keys": unspecified in the table of bugs
  bool skips_pairs = false;  ///< one of many similar hypotheses, not tried in pairs
  Arithmetic arithmetic = Arithmetic::of_model;
};

/// Returns all hypotheses that change this model, except coarse arithmetic, ordered by the first stage that
/// they change; reads a mask's large negative number off the tensors.
std::vector<Hypothesis> hypotheses_for(const Model& model, const std::vector<ObservedTensor>& observed);

/// Returns hypotheses that change tensor shapes: every other number of heads that divides the model's
/// columns, and an omitted output projection where that changes the output width.
std::vector<Hypothesis> shape_hypotheses(const Model& model);

/// Returns hypotheses of coarse arithmetic, the finest first; find_roundings() judges these.
std::vector<Hypothesis> rounding_hypotheses(const Model& model);

struct FoundBugs;

/// Mistakes that together reproduce every tensor within the tolerance.
struct Explanation {
  std::vector<std::string> causes;         ///< as named in the table of bugs, each once
  std::vector<const bugs::Bug*> mistakes;  ///< the specific bugs
  Model model;                       ///< with the mistakes; if inferred, the right model: see injected()
  std::vector<std::string> details;  ///< "blocks of 4 keys": sizes that each explain the tensors
  /// "the positions of the queries are 4 behind": inferred from the numbers, one per cause.
  std::vector<std::string> sentences = {};
  std::shared_ptr<const FoundBugs> inferred = nullptr;
};

/// Returns all single causes that explain every tensor or, if there are none, all pairs that do, which may
/// include a rounding.
///
/// Some tensor must differ. If one lacks a reading, only changes of shape are tried. When comparison.token
/// stops, returns the causes found so far. only_singles tries no coarse arithmetic and no pairs.
std::vector<Explanation> find_causes(const Comparison& comparison, bool only_singles = false);

// Coarse arithmetic differs between libraries; it is recognized by the errors that it leaves.

/// Sum of squared errors of a tensor, and the count of its numbers.
struct ErrorSum {
  double squares = 0;
  std::size_t n = 0;
};

/// Returns each tensor's error sum in its closest reading; infinite if just one of two numbers is finite.
std::vector<ErrorSum> error_sums(const std::vector<ObservedTensor>& observed, const LazyTrace& exact);

/// Whether the first errors are smaller than the second beyond chance, and larger in no tensor.
bool has_smaller_errors(const std::vector<ErrorSum>& first, const std::vector<ErrorSum>& second);

/// A model that may have been rounded to give the tensors, and the tensors as it reads them.
struct ExactModel {
  const Hypothesis* hypothesis;  ///< nullptr for the right model
  Model model;
  const std::vector<ObservedTensor>* observed;
};

/// A model with rounding, and the similarity of its errors to those of the tensors.
struct RoundedModel {
  const Hypothesis* exact;  ///< nullptr if rounding is the only cause
  Hypothesis rounding;
  Model model;
  double similarity, error;
};

/// Returns rows where the tensors are far from the right model, and some others; nullopt if all rows are
/// cheap or a few cannot be computed alone.
std::optional<Sample> sample_of(const Comparison& comparison);

/// Returns the rounded models that may have produced the tensors: the likeliest and those about as likely.
/// The sampler may be nullptr.
std::vector<RoundedModel> find_roundings(const std::vector<ExactModel>& models,
                                         const std::vector<Hypothesis>& roundings, const Sampler* sampler,
                                         const Tolerance& tolerance, const core::StopToken& token);

/// Returns for each tensor the type whose rounding alone makes it differ from the right model, or "".
///
/// All are "" if rounding is the only cause, or if the known causes include no rounding.
std::vector<std::string> types_of_rounding(const Comparison& comparison,
                                           const std::vector<Explanation>& explanations);

}  // namespace core::check
