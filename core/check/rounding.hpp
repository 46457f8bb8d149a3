#pragma once

#include <string>
#include <vector>

#include "core/check/causes.hpp"

/// Coarse arithmetic, which no library rounds as another does, told by the errors that it leaves.
namespace core::check {

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
