#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/head_facts.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace core::compare {

/// How one stage of A differs from the same stage of B.
struct StageDifference {
  attention::Stage stage = attention::Stage::embeddings;
  bool in_a = true, in_b = true;  ///< which of the two has this stage
  bool same_shape = true;  ///< of the matrices and in the number of heads; false when only one has the stage
  std::string obstacle;    ///< why the stage cannot be compared: "A is 6×3, B is 5×3"; or ""
  double largest = 0;  ///< ‖A − B‖∞ over all heads, as farthest() measures; 0 when it cannot be compared
  double allowed = 0;  ///< how large that may be for want of digits alone
  std::size_t head = 0, row = 0,
              column = 0;  ///< the first cell that is so far apart; head is 0 where the stage has none

  bool differs() const { return !same_shape || largest > allowed; }
};

/// One stage that both have.
///
/// What is allowed is rounding times the largest finite number of all heads of both; nothing where a stage is
/// never computed: embeddings and masks. Nothing is made that the traces do not keep.
StageDifference compare_stage(const attention::StageInfo& stage, const attention::Trace& a,
                              const attention::Trace& b, double rounding = 0);

/// Every stage that A or B has, in the order of the computation; the traces must be those of their models.
///
/// rounding is 0 for traces of attend(), and relative where one was computed in another order. A stage that
/// both models copy and do not compute is compared exactly. Once goes_on says no, the rest is missing.
std::vector<StageDifference> compare(const attention::Model& model_a, const attention::Trace& trace_a,
                                     const attention::Model& model_b, const attention::Trace& trace_b,
                                     double rounding = 0, const core::Token& token = {});

/// A switch of the model that people ask about: what would it be like the other way?
struct Switch {
  const char* name;   ///< in landmarks: "mask"
  const char* title;  ///< "Mask on vs. off"
  const char* about;  ///< one sentence on what the other state is
  /// The model with the switch the other way; every other number is the same.
  attention::Model (*flipped)(const attention::Model&);
  bool (*is_on)(const attention::Model&);
  const char *on, *off;  ///< the states in words: "mask on"

  std::string state(const attention::Model& model) const { return is_on(model) ? on : off; }
  std::string other(const attention::Model& model) const { return is_on(model) ? off : on; }
};

/// Mask, scale, dropout and the merging of heads.
std::span<const Switch> switches();

}  // namespace core::compare
