#pragma once

#include <vector>

#include "core/check/bug_trials.hpp"

namespace core::check {

/// Returns those of other bugs whose numbers are those of a hit in every stage that can be compared.
std::vector<bugs::BugCase> equivalent_bugs(const Observation& of, const BugHit& hit,
                                           const std::vector<const BugHit*>& others);

/// Returns the simplest explanations without equivalent ones, and in low precision only those that fit about
/// as well as the best. The words tell what the observed stages cannot judge.
std::vector<BugHits> choose_likeliest(const Observation& of, std::vector<BugHits> found);

}  // namespace core::check
