#pragma once

#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/recipe.hpp"

namespace core::check::inference {

/// Deviations that, together, give every stage that was given.
struct Cause {
  std::vector<std::string> names, sentences;  ///< "positions", "the positions of the queries are 4 behind"
  Recipe recipe;                              ///< with them
  int rank = 0;                               ///< 0: rules with a name alone
};

/// Why numbers differ from those of a model.
struct Inference {
  std::vector<Cause> causes;                 ///< several where the stages given cannot tell them apart
  std::vector<std::string> partly;           ///< what explains a part of what was given
  std::vector<std::string> described;        ///< what is there that nothing explains
  std::string note;                          ///< how the tensors were computed, or ""
  std::vector<Stage> agreeing_after;         ///< stages behind the first difference that agree all the same
  bool is_harmless = false;                  ///< the last stage given is one of them
  bool agrees = false;                       ///< but for the rounding of a note
  Precision precision = Precision::float64;  ///< that was read off the numbers
};

/// A stage as somebody's program has it; of another shape than the model's where it was reported otherwise.
using Given = std::vector<std::pair<Stage, Block>>;

/// Looks for deviations that explain the given stages. Seconds is about how long that may take where nothing
/// explains them; stops with what was found when the token says so.
Inference infer(const Recipe& model, const Given& given, const core::Token& token, double seconds);

/// The model with the stages that a recipe changes given as the recipe has them, so that it has its numbers.
attention::Model model_like(attention::Model model, const Recipe& recipe);

}  // namespace core::check::inference
