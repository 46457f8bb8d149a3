#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/model/reading.hpp"

/// Guided paths. Their text and conditions are data, assets/lessons; see expression.hpp for the conditions.
namespace core::lessons {

/// What a step shows in addition to the stages.
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

/// The model at the beginning of a step and the model now, each with its trace of the displayed sequence.
struct Moment {
  const attention::Model& start;
  const attention::Trace& before;
  const attention::Model& model;
  const attention::Trace& trace;
};

/// What a whole model read at the beginning of a step and reads now, and the selected head.
struct WholeMoment {
  const transformer::WholeModel& whole;
  const experiment::Reading& before;
  const experiment::Reading& now;
  std::size_t layer = 0, head = 0;
};

/// What a step begins with: a preset with the changes of a JSON merge patch (RFC 7386) on its session file,
/// or with a sentence; or a session of its own; or a text for a whole model.
struct Start {
  std::string preset, change, sentence, session, text;
  std::uint64_t seed = 0;  ///< of the sentence's embeddings
  std::size_t layer = 0;   ///< that a whole model shows
};

/// One step: a thought, something to change, and what should be seen then.
struct Step {
  std::string title;
  std::string text;                ///< one to three sentences
  std::vector<std::string> focus;  ///< landmarks of the parts of the window that it speaks of
  std::vector<std::string> words;  ///< terms of the glossary
  std::string try_it;
  Start start;
  std::string done;  ///< an expression: false at the start, true once it was tried
  std::string seen;  ///< what happened then, with {expressions}
  Exhibit exhibit = Exhibit::none;
  std::optional<attention::Stage> predict;  ///< the stage whose cell that changes most is to be predicted
};

/// A guided path.
struct Lesson {
  std::string name;   ///< "000", "dropout"
  std::string title;  ///< "Causal attention in eleven steps"
  std::string about;  ///< one line
  std::vector<Step> steps;
  std::string model;  ///< the folder of the whole model that it is about, or ""
};

/// Returns all lessons: one for each notebook, then the others.
const std::vector<Lesson>& lessons();

/// Returns the lesson of that name, or nullptr.
const Lesson* find_lesson(std::string_view name);

/// Returns what a step begins with. Throws core::Error where it is of the other kind.
attention::Model model_at_start(const Step& step);
experiment::Experiment experiment_at_start(const Step& step);

/// Returns whether a step was tried, and what happened, in words with real numbers.
bool is_done(const Step& step, const Moment& moment);
bool is_done(const Step& step, const WholeMoment& moment);
std::string seen(const Step& step, const Moment& moment);
std::string seen(const Step& step, const WholeMoment& moment);

/// A cell that changed, and by how much.
struct Moved {
  std::size_t row = 0, column = 0;
  double by = 0;  ///< absolute; infinite where one of both numbers is not finite
};

/// Returns the cells of a stage of one head that differ from the start of a step, the largest change first;
/// none where the stage has another shape than before.
std::vector<Moved> moved_cells(const Moment& moment, attention::Stage stage, std::size_t head);

/// Returns "Which cell of Weights will change most? Click it.", for a step with a prediction.
std::string question(const Step& step);

/// Returns what became of a prediction: right when no cell changed more, up to rounding; "" where nothing
/// changed.
std::string verdict(const std::vector<Moved>& moved, std::size_t row, std::size_t column);

/// A term of the field and what it means, in one or two sentences.
struct Term {
  std::string word, meaning;
};

/// Returns all terms, in the order in which a reader meets them.
const std::vector<Term>& glossary();

/// Returns the term of that word, or nullptr; ASCII letters match in either case.
const Term* find_term(std::string_view word);

}  // namespace core::lessons
