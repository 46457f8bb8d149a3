#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/check/computed.hpp"
#include "core/graph/injected_bugs.hpp"

/// Coarse arithmetic: it differs between libraries, and is recognized by the errors that it leaves.
namespace core::check {

/// A bug of coarse arithmetic, in the libraries that round a model's inputs as well or not.
struct Rounding {
  const bugs::Bug* bug;
  attention::Precision inputs = attention::Precision::float64;
  Arithmetic arithmetic = Arithmetic::of_model;

  Model of(const Model& model) const;
};

/// Returns the roundings that change this model, the finest first.
std::vector<Rounding> roundings_of(const Model& model);

/// A model that may have been rounded to give the tensors, and the tensors as it reads them.
struct ExactModel {
  Model model;
  const std::vector<ObservedTensor>* observed;
};

/// A model with rounding, and the similarity of its errors to those of the tensors.
struct RoundedModel {
  std::size_t nth;  ///< of the exact models
  Rounding rounding;
  Model model;
  double similarity, error;
};

/// Returns the rounded models that may have produced the tensors: the likeliest and those about as likely.
std::vector<RoundedModel> find_roundings(const std::vector<ExactModel>& models, const Tolerance& tolerance,
                                         const core::StopToken& token);

/// Returns for each tensor the type whose rounding alone makes it differ from the right model, or "".
///
/// All are "" if the bugs that were found are one alone, or include no rounding.
std::vector<std::string> types_of_rounding(const Comparison& comparison,
                                           const std::vector<const bugs::Bug*>& found);

}  // namespace core::check
