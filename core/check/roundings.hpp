#pragma once

#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/causes.hpp"
#include "core/check/computed.hpp"

namespace core::check {

/// Looks for coarse arithmetic, alone or together with a mistake of another kind.
class RoundingSearch {
 public:
  /// What is looked for in the rounded tensors: a model, and the tensors as they are read in it.
  struct Exact {
    const Way* way;  ///< nullptr for the right model
    Model model;
    const std::vector<Theirs>* theirs;
  };
  struct Found {
    const Way* exact;  ///< nullptr for the rounding alone
    Way rounding;
    Model model;
    double likeness, error;
  };

  /// The sampler, if there is one, must outlive it.
  RoundingSearch(const Model& right, const Sampler* sampler, const Tolerance& tolerance,
                 const core::Token& token)
      : ways_(rounding_ways(right)), sampler_(sampler), tolerance_(tolerance), token_(token) {}

  /// The models of which the tensors are roundings, each with the arithmetic; only the likeliest and those
  /// that are about as likely.
  std::vector<Found> found(const std::vector<Exact>& models) const;

 private:
  std::vector<Way> ways_;
  const Sampler* sampler_;
  const Tolerance& tolerance_;
  const core::Token& token_;
};

/// The types to which tensors are rounded that differ from the right model in nothing else, "" for others.
///
/// Nothing is said where rounding is the only cause, or where the causes are known and none of them is
/// rounding.
std::vector<std::string> rounded_alone(const Computed& right, const std::vector<Theirs>& theirs,
                                       const std::vector<const Reading*>& agreeing,
                                       const std::vector<Explanation>& explanations,
                                       const Tolerance& tolerance, const core::Token& token);

}  // namespace core::check
