#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/model/experiment_reading.hpp"

namespace core::lessons {

/// What a step shows beside the stages, or nothing.
enum class Exhibit {
  none,
  library,
  single_query,
  double_loop,
  next_token,
  moved_rows,
  versions,
  mask_methods,
  entropy
};

/// How a step stands: the model that it began with and the model as it is now, each with its trace of the
/// shown sequence.
struct Moment {
  const attention::Model& start;
  const attention::Trace& before;
  const attention::Model& model;
  const attention::Trace& trace;
};

/// How a step about a whole model stands: what the model read when it began and reads now, and the head that
/// is looked at.
struct WholeMoment {
  const transformer::Transformer& transformer;
  const experiment::Reading& before;
  const experiment::Reading& now;
  std::size_t layer = 0, head = 0;
};

/// What a person is to do in a step.
template <class Start, class At>
struct Task {
  Start (*start)();                ///< what the step begins with
  bool (*done)(const At&);         ///< false at the start, true once it was tried
  std::string (*seen)(const At&);  ///< what happened, with its real numbers; to be asked when it is done
};
using ModelTask = Task<attention::Model, Moment>;
using WholeTask = Task<experiment::Experiment, WholeMoment>;

/// One step: a thought, something to change, and what should be seen then.
struct Step {
  const char* title;
  const char* text;                          ///< one to three sentences
  std::initializer_list<const char*> focus;  ///< landmarks of the parts of the window that it speaks of
  std::initializer_list<const char*> words;  ///< terms of the glossary
  const char* try_it;
  std::variant<ModelTask, WholeTask> task;
  Exhibit exhibit = Exhibit::none;
  /// A stage of whose cells one is to be guessed before it is tried: the one that will change most.
  std::optional<attention::Stage> asks = {};
};

/// A guided path.
struct Lesson {
  const char* name;   ///< "000", "dropout"
  const char* title;  ///< "Causal attention in eleven steps"
  const char* about;  ///< one line
  std::span<const Step> (*steps)();
  const char* model = nullptr;  ///< the folder of the whole model that it is about, or nullptr
};

/// All lessons: one for each notebook, then the others.
std::span<const Lesson> lessons();

/// The lesson of that name, or nullptr.
const Lesson* find_lesson(std::string_view name);

}  // namespace core::lessons
