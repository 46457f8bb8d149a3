#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/lessons/lesson.hpp"

/// What changed in a whole model since a step began: the questions that its checks ask.
namespace core::lessons {

/// "“ig”", a token of the vocabulary as prose has it.
std::string quoted(const WholeMoment& m, std::size_t token);

/// The most probable token behind a layer; throws core::Error when the model guesses nothing.
std::size_t guess_behind(const WholeMoment& m, const experiment::Reading& reading, std::size_t layer);
/// The same behind the last layer.
std::size_t last_guess(const WholeMoment& m, const experiment::Reading& reading);

/// The token that was the most probable one when the step began, and how probable it was and is.
struct Followed {
  std::size_t token = 0;
  double before = 0, now = 0;
};
Followed followed(const WholeMoment& m);
/// "“ig” has 0.376 instead of 0.9285".
std::string followed_words(const WholeMoment& m);

/// The first layer from which on the guess stays the last one.
std::size_t settled_from(const WholeMoment& m);

/// Whether a head gave on the text that the step began with more than 0.3 of its weights to what followed
/// earlier places of its tokens; or, in the last kind, more than 0.8 to the tokens just before.
bool was_induction(const WholeMoment& m, const experiment::Place& head);
bool was_previous(const WholeMoment& m, const experiment::Place& head);
/// The heads that are off and did that.
std::vector<experiment::Place> off(const WholeMoment& m,
                                   bool (*did)(const WholeMoment&, const experiment::Place&));

/// "2.3": a head's layer and its number, as whole models call them.
std::string head_name(const experiment::Place& head);

}  // namespace core::lessons
