#pragma once

#include <functional>
#include <vector>

#include "core/check/bug_trials.hpp"

namespace core::check {

/// Finds two bugs when too little is given to judge either alone. `confirm` tells whether all observed stages
/// agree with the last bug of a pair.
///
/// The effect of every single case on the target is known: pairs are tried in the order of how close the sum
/// of their effects comes to the difference, then the likeliest cases with fitted ones, then fitted ones.
std::vector<BugHits> find_bug_pairs(BugTrials& trials, const Observation& of, SearchBudget budget,
                                    double deadline, const std::function<bool(BugHit&)>& confirm);

}  // namespace core::check
