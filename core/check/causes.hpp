#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/check/computed.hpp"
#include "core/graph/mistakes.hpp"

namespace core::check {

/// One way in which mistakes of one kind are made; the table of mistakes has the plainest, people find
/// others.
struct Hypothesis {
  std::vector<const mistakes::Mistake*> mistakes;  ///< what is done wrong, one or a few alike
  std::function<Model(const Model&)> made;
  Stage first;              ///< no earlier stage can change
  std::string detail = {};  ///< "blocks of 4 keys": what the table of mistakes leaves open
  bool alone = false;       ///< it is one of many alike, and not tried in pairs
  Arithmetic arithmetic = Arithmetic::of_model;
};

/// All that change this model and do not only round, in the order of the stages that they change; what the
/// tensors tell of a mask's large negative number is used.
std::vector<Hypothesis> hypotheses_for(const Model& model, const std::vector<Observed>& observed);

/// Those that give tensors other shapes: every other number of heads that the model's columns can be split
/// into, and an output projection that is left out where the output is of another width then.
std::vector<Hypothesis> shape_hypotheses(const Model& model);

/// Those that make numbers coarser, the finest first; whether tensors are rounded so is judged otherwise.
std::vector<Hypothesis> rounding_hypotheses(const Model& model);

namespace inference {
struct Cause;
}

/// Mistakes that, made together, give every tensor within the tolerance.
struct Explanation {
  std::vector<std::string> causes;                 ///< as the table of mistakes names them, each once
  std::vector<const mistakes::Mistake*> mistakes;  ///< what they are in particular
  Model model;                       ///< the model with them; of what was inferred the right one, see made()
  std::vector<std::string> details;  ///< "blocks of 4 keys": sizes, of which each explains the tensors
  /// "the positions of the queries are 4 behind": what was inferred from the numbers, of each cause.
  std::vector<std::string> sentences = {};
  std::shared_ptr<const inference::Cause> inferred = nullptr;
};

/// All single causes that explain every tensor; when there is none, all pairs that do, a rounding among them.
///
/// Not all of the tensors may agree. Where one lacks a reading only what gives other shapes is tried. Calls
/// goes_on() now and then, and gives up, with what it has found, when that is false. Only single causes where
/// others are known.
std::vector<Explanation> find_causes(const Comparison& comparison, bool only_singles = false);

// Coarse arithmetic, which no library rounds as another does, told by the errors that it leaves.

/// The squares of the errors of a tensor, added up, and of how many numbers.
struct ErrorSum {
  double squares = 0;
  std::size_t n = 0;
};

/// That of each tensor, in that of its readings that is nearest; infinite where one number is finite alone.
std::vector<ErrorSum> error_sums(const std::vector<Observed>& observed, const Computed& exact);

/// Whether the first errors are smaller than the second by more than chance makes them, and in no tensor
/// larger.
bool errs_less(const std::vector<ErrorSum>& first, const std::vector<ErrorSum>& second);

/// A model whose numbers tensors may be roundings of, and the tensors as they are read in it.
struct ExactModel {
  const Hypothesis* hypothesis;  ///< nullptr for the right model
  Model model;
  const std::vector<Observed>* observed;
};

/// A model that rounds, and how similar its errors are to those of the tensors.
struct RoundedModel {
  const Hypothesis* exact;  ///< nullptr for the rounding alone
  Hypothesis rounding;
  Model model;
  double similarity, error;
};

/// Rows in which the tensors are far from the right model, and some others; nothing where all are quick, or
/// where a few rows cannot be computed alone.
std::optional<Sample> sample_of(const Comparison& comparison);

/// The models of which the tensors are roundings, each with the arithmetic; only the likeliest and those that
/// are about as likely. The sampler may be nullptr.
std::vector<RoundedModel> find_roundings(const std::vector<ExactModel>& models,
                                         const std::vector<Hypothesis>& roundings, const Sampler* sampler,
                                         const Tolerance& tolerance, const core::Token& token);

/// The types to which tensors are rounded that differ from the right model in nothing else, "" for others.
///
/// Nothing is said where rounding is the only cause, or where the causes are known and none of them is
/// rounding.
std::vector<std::string> rounded_alone(const Comparison& comparison,
                                       const std::vector<Explanation>& explanations);

}  // namespace core::check
