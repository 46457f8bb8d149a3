#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/statistics.hpp"
#include "core/graph/trace.hpp"

namespace core::compare {

/// Difference between one stage of A and the same stage of B.
struct StageDifference {
  attention::Stage stage = attention::Stage::embeddings;
  bool in_a = true, in_b = true;  ///< which models have this stage
  bool same_shape = true;         ///< same matrix shape and number of heads; false if only one has the stage
  std::string obstacle;           ///< why the stage cannot be compared: "A is 6×3, B is 5×3"; or ""
  double largest = 0;  ///< ‖A − B‖∞ over all heads, see max_difference(); 0 if they cannot be compared
  double allowed = 0;  ///< largest difference that rounding alone can cause
  std::size_t head = 0, row = 0,
              column = 0;  ///< the first cell with that difference; head is 0 if the stage has no heads

  bool differs() const { return !same_shape || largest > allowed; }
};

/// Compares one stage that both models have.
///
/// The tolerance is `rounding` times the largest finite number in any head of either; 0 for stages that are
/// never computed: embeddings and masks. Does not store stages that the traces compute on demand.
StageDifference compare_stage(const attention::StageInfo& stage, const attention::Trace& a,
                              const attention::Trace& b, double rounding = 0);

/// Compares every stage that A or B has, in order of computation; the traces must belong to the models.
///
/// `rounding` is 0 for traces of attend(), and relative if one was computed in another order. A stage that
/// both models copy is compared exactly. Once `token` is stopped, the remaining stages are missing.
std::vector<StageDifference> compare(const attention::Model& model_a, const attention::Trace& trace_a,
                                     const attention::Model& model_b, const attention::Trace& trace_b,
                                     double rounding = 0, const core::StopToken& token = {});

/// Option of a model that users compare on and off.
struct Switch {
  const char* name;   ///< as a landmark: "mask"
  const char* title;  ///< "Mask on vs. off"
  const char* about;  ///< one sentence about the other state
  /// Returns the model with the option flipped; every other number is the same.
  attention::Model (*flipped)(const attention::Model&);
  bool (*is_on)(const attention::Model&);
  const char *on, *off;  ///< names of the states: "mask on"

  std::string state(const attention::Model& model) const { return is_on(model) ? on : off; }
  std::string other(const attention::Model& model) const { return is_on(model) ? off : on; }
};

/// Returns the options: mask, scale, dropout and how heads are combined.
std::span<const Switch> switches();

}  // namespace core::compare
