#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/check/observation.hpp"

namespace core::check {

/// A graph at the first stage that differs, with the stages observed before it.
///
/// Most hypotheses are refuted by the probe: the matrix that differs most, or a few rows and columns of it.
struct BugScene {
  BugScene(const Observation& observation, std::shared_ptr<const Editing> edited, Stage first_wrong,
           graph::Work& work);

  const Observation& of;
  std::shared_ptr<const Editing> now;
  Stage target;
  std::vector<std::size_t> rows;  ///< of the probe; none if it has all
  bool by_rows = false;           ///< the probe has some rows
  bool is_sampled = false;        ///< so has the judgment of all matrices
  bool fits = false;              ///< the target has the shape of what was observed
  std::unique_ptr<LazyStages> stages;
  AllowedDifference allowed;
  std::size_t probe_sequence = 0, probe_matrix = 0;
  arma::uvec columns;  ///< of the probe; none if it has all
  arma::mat probe;     ///< as observed

  arma::mat observed(std::size_t sequence, std::size_t nth) const {
    const arma::mat& all = of.matrix(target, sequence, nth);
    return by_rows ? rows_of(all, rows) : all;
  }
  /// Returns a matrix of the target as far as the probe has it, of edited stages or as observed.
  arma::mat probed(LazyStages& edited, Stage seen, std::size_t sequence, std::size_t nth) const {
    return columns.empty() ? *edited.matrix(seen, sequence, nth, by_rows)
                           : edited.columns(seen, sequence, nth, by_rows, columns);
  }
  arma::mat probed(std::size_t sequence, std::size_t nth) const {
    return columns.empty() ? observed(sequence, nth) : arma::mat(observed(sequence, nth).cols(columns));
  }
  bugs::BugContext context() const;
  /// Returns the rows, or sequences, of the target with numbers that differ.
  std::vector<std::size_t> differing_rows() const;
  std::vector<std::size_t> differing_sequences() const;
  /// Returns how many rows of the target agree, of those that are judged.
  double count_agreeing_rows(LazyStages& changed, Stage seen) const;
  /// Returns all numbers of the target that are judged.
  bugs::Numbers numbers_of(LazyStages& changed, Stage seen) const;
  /// Describes the pattern of a difference that nothing explains.
  std::string difference_words() const;

 private:
  std::vector<std::size_t> most_differing_rows() const;
  void choose_probe();
};

}  // namespace core::check
