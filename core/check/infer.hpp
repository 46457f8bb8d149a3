#pragma once

#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/bug_search.hpp"
#include "core/check/recipe.hpp"

namespace core::check::inference {

/// Deviations that together explain every given stage.
struct Cause {
  std::vector<std::string> names, sentences;   ///< "positions", "the positions of the queries are 4 behind"
  Recipe recipe;                               ///< with the deviations
  int rank = 0;                                ///< 0: only rules with a name
  std::shared_ptr<const FoundBugs> bugs = {};  ///< instead of the recipe, if the table of bugs was searched
};

/// Why numbers differ from those of a model.
struct Inference {
  std::vector<Cause> causes;                 ///< several if the given stages cannot tell them apart
  std::vector<std::string> partly;           ///< explanations of some of the given stages
  std::vector<std::string> described;        ///< differences that nothing explains
  std::string note;                          ///< how the tensors were computed, or ""
  std::vector<Stage> agreeing_after;         ///< stages after the first difference that agree
  bool is_harmless = false;                  ///< these include the last stage given
  bool agrees = false;                       ///< apart from the rounding in the note
  Precision precision = Precision::float64;  ///< as shown by the numbers
};

/// Observed stages; their shape differs from the model's if they are reported differently.
using Given = std::vector<std::pair<Stage, Block>>;

/// Searches for deviations that explain the given stages. `seconds` is roughly the limit when nothing
/// explains them; when the token stops, returns the causes found so far.
Inference infer(const Recipe& model, const Given& given, const core::StopToken& token, double seconds);

/// Returns the model with overrides for the stages that a recipe changes, so that it has its numbers.
attention::Model override_stages(attention::Model model, const Recipe& recipe);

}  // namespace core::check::inference
