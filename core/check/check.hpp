#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/check/causes.hpp"
#include "core/formats/tensors/tensor_file.hpp"
#include "core/token.hpp"

/// "Why is mine different?": somebody's tensors against a model, stage by stage, and the likely mistake.
namespace core::check {

/// What of a file was taken for which stage.
struct Matched {
  std::vector<Theirs> theirs;
  std::vector<std::string>
      left_out;  ///< names that say nothing, or whose shape fits nothing that they can mean
};

/// Matches tensors to stages of a model by their names and shapes.
///
/// by_hand gives the stage of a name; "" leaves the tensor out. A tensor with the name of a stage, or mapped
/// by hand, that has another shape is taken and can only differ; others are left out. Throws core::Error when
/// no tensor is matched, by_hand names a tensor that is not there, or the file cannot be read.
Matched match(const Model& model, const formats::TensorFile& file,
              const std::map<std::string, std::string>& by_hand, std::size_t sequence = 0);

/// One stage compared.
struct StageResult {
  Stage stage = Stage::weights;
  std::string tensor;    ///< its name; of a head's file that of the one farthest off
  std::string shape;     ///< "[2, 6, 6]"
  std::string type;      ///< "float32"
  std::string rounding;  ///< the type whose rounding was allowed for, or ""
  std::string obstacle;  ///< why it cannot be compared, or ""
  Agreement agreement;   ///< within is false with an obstacle
};

struct Report {
  bool agrees = true;
  std::vector<StageResult> stages;  ///< in the order of the computation
  /// As what each of the tensors was read, nullptr for those without a reading; they point into the tensors.
  std::vector<const Reading*> readings;
  std::vector<std::string> left_out;
  std::vector<Explanation> explanations;  ///< several when the tensors cannot tell them apart

  /// The first stage that differs, or nullptr.
  const StageResult* first_difference() const;
  /// All causes of all explanations, each once.
  std::vector<std::string> causes() const;
};

/// Compares every tensor with its stage and looks for the mistakes that explain all of them.
Report check(const Model& model, const Matched& matched, const Tolerance& tolerance,
             const core::Token& token = {});

}  // namespace core::check
