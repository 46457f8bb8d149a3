#pragma once

#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/causes.hpp"
#include "core/check/match.hpp"

/// "Why is mine different?": somebody's tensors against a model, stage by stage, and the likely mistake.
namespace core::check {

/// One stage compared.
struct StageResult {
  Stage stage = Stage::weights;
  std::string tensor;    ///< its name; of a head's file that of the one farthest off
  std::string shape;     ///< "[2, 6, 6]"
  std::string type;      ///< "float32"
  std::string rounding;  ///< the type whose rounding was allowed for, or ""
  std::string obstacle;  ///< why it cannot be compared, or ""
  std::string
      reading;  ///< "[T, H·d]": the layout in which it was read where that is not the plain one, or ""
  Agreement agreement;  ///< within is false with an obstacle
};

struct Report {
  bool agrees = true;
  std::vector<StageResult> stages;  ///< in the order of the computation
  /// As what each of the tensors was read, nullptr for those without a reading; they point into the tensors.
  std::vector<const Reading*> readings;
  std::vector<std::string> left_out;      ///< with why
  std::vector<Explanation> explanations;  ///< several when the tensors cannot tell them apart
  bool was_stopped = false;               ///< not all that may explain them was tried
  std::size_t n_tensors = 0;              ///< that were compared
  std::vector<Stage> not_given;           ///< stages of the model that no tensor was compared with
  std::size_t n_along_first_axis = 0;  ///< of which the first alone was compared, though nobody asked for it
  std::vector<std::string> notes;      ///< how the tensors were read, a sentence each
  /// Where and in what the first stage that differs does so: "only keys from 512 on"; "" when that is nothing
  /// in particular.
  std::string pattern;

  /// The first stage that differs, or nullptr.
  const StageResult* first_difference() const;
  /// All causes of all explanations, each once.
  std::vector<std::string> causes() const;
  /// Whether a tensor has the name of a stage and another shape.
  bool has_unfit() const;
  /// Whether the numbers of a tensor that could be compared differ.
  bool has_wrong_numbers() const;
};

/// Compares every tensor with its stage and looks for the mistakes that explain all of them.
Report check(const Model& model, const Matched& matched, const Tolerance& tolerance,
             const core::Token& token = {});

}  // namespace core::check
