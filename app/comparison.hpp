#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/extents.hpp"
#include "core/attention/model.hpp"
#include "core/attention/trace.hpp"
#include "core/compare/compare.hpp"
#include "core/compare/difference.hpp"

namespace core::formats {
class TensorFile;
}

namespace app {

struct TensorCheck;  // in tensor_check.hpp, with what few look at

/// A state of attention that was kept to be compared with the live one.
struct Reference {
  std::string name;   ///< "A2"
  std::string title;  ///< what it is: "mask off · Your journey"
  core::attention::Model model;
  std::uint64_t id = 0;  ///< no other has it
  /// Somebody's tensors, which are B while the live model is A; else nullptr.
  std::shared_ptr<const core::formats::TensorFile> tensors = nullptr;
  std::map<std::string, std::string> by_hand = {};  ///< the stages of tensors as a person said
};

/// One stage of A against the same stage of B.
struct ComparedStage {
  core::compare::StageDifference all;  ///< over all heads
  core::compare::Farthest shown;       ///< in the shown head
  arma::mat difference;  ///< in the shown head, of the chosen kind; empty when there is an obstacle
  bool within = false;   ///< of tensors: the stage agrees within the tolerance
  Extent a, b, apart;    ///< of the numbers in the shown head and of their difference
};

/// What a comparison was worked out for.
struct ComparisonKey {
  std::uint64_t reference = 0, version = 0;  ///< of A, and of the live trace
  std::size_t sequence = 0, head = 0;
  core::compare::DifferenceKind kind{};
  std::size_t mapped = 0;  ///< how often tensors were given stages by hand
  friend bool operator==(const ComparisonKey&, const ComparisonKey&) = default;
};

/// The chosen reference A against the live model B, for the shown sequence; tensors are B and the live model
/// is A.
struct Comparison {
  ComparisonKey key;
  core::attention::Model model;  ///< of A; shares its numbers with the reference
  std::size_t sequence = 0;      ///< of A: the shown one, or its last when it has fewer
  core::attention::Trace trace;  ///< of A
  std::uint64_t trace_revision = 0,
                revision = 0;  ///< of A's numbers and of the differences: another number, other numbers
  std::unique_ptr<TensorCheck>
      tensors;           ///< when the reference is of tensors; its trace has only their stages
  bool is_exact = true;  ///< equal means equal to the bit; else to rounding
  std::vector<ComparedStage> stages;
  const ComparedStage* first = nullptr;  ///< the first of them that differs
  arma::mat
      visible;  ///< n_tokens × n_tokens: 0 where A and B both hide the cell; empty when the shapes differ

  Comparison();
  ~Comparison();
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;
};

/// Why A's numbers cannot be shown where B's are, "A is 4×3 with 1 head, B 6×3 with 2", or "" when they can.
std::string why_not_in_place_of(const core::attention::Model& a, const core::attention::Model& b);

/// Computes A's trace for a sequence. Throws core::Error as attend() does.
void trace_reference(Comparison& comparison, const core::attention::Model& a, std::size_t sequence);

/// Reads a reference's tensors as stages of the live model and checks them, with or without a search for what
/// explains them, which ends after a few seconds. A's trace has then only their stages.
void check_tensors(Comparison& comparison, const Reference& reference, const core::attention::Model& live,
                   bool searches);

/// Compares the live trace, A, with the tensors that were checked, B.
void work_out_tensors(Comparison& comparison, const core::attention::Trace& live);

/// Compares A's trace with the live one, to rounding where that is not attend()'s.
void work_out(Comparison& comparison, const core::attention::Model& b, const core::attention::Trace& trace_b,
              bool b_is_exact);

}  // namespace app
