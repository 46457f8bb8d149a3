#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"

/// What goes wrong when people write attention themselves, each as a change of a model.
namespace core::mistakes {

using attention::Model;
using attention::Stage;

struct Mistake {
  const char* name;    ///< as on the command line: "no_scale"; no other has it
  const char* cause;   ///< as the check names it; several rows may share one
  const char* title;   ///< in a menu: "no scale"
  const char* about;   ///< one sentence: what is done
  const char* remedy;  ///< one sentence: what to do instead; see remedy_in()
  Stage first;         ///< no earlier stage can change
  /// The model with the mistake; where there is nothing to go wrong, the model as it is.
  Model (*made)(const Model&);
  /// Whether the model's options say that it is made.
  bool (*present)(const Model&);
  /// The model with it put right; nullptr where the numbers that would be needed are gone.
  Model (*mended)(const Model&);
  /// Whether the model has what this is a mistake in; nullptr where every model has.
  bool (*needs)(const Model&) = nullptr;
};

/// All of them, in the order of the stages that they change.
std::span<const Mistake> mistakes();

/// The mistake of that name, or nullptr.
const Mistake* find_mistake(std::string_view name);

/// What to do instead in a model: its diagonals, where queries are not as many as keys.
std::string remedy_in(const Mistake& mistake, const Model& model);

/// Whether a model has what it is a mistake in, or makes it.
bool concerns(const Mistake& mistake, const Model& model);

/// Whether making it would change the model.
bool applies(const Mistake& mistake, const Model& model);

}  // namespace core::mistakes
