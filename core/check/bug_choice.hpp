#pragma once

#include <vector>

#include "core/check/bug_trials.hpp"

namespace core::check {

/// Returns the sum of the ranks of bugs.
int rank_of(const BugHits& hits);

/// Whether two graphs have the same numbers in every stage that can be compared.
bool have_same_numbers(const Observation& of, const Editing& first, const Editing& second);

/// Returns the simplest explanations without equivalent ones, and in low precision only those that fit about
/// as well as the best. The words tell what the observed stages cannot judge.
std::vector<BugHits> choose_likeliest(const Observation& of, std::vector<BugHits> found);

}  // namespace core::check
