#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "app/session/extents.hpp"
#include "app/session/jobs.hpp"
#include "core/graph/dropout_study.hpp"

namespace app {

class LiveTrace;

/// What the dropout laboratory shows: a study of the shown head as far as it has been drawn.
struct Laboratory {
  /// The curve of the mean's distance ends after so many masks.
  static constexpr std::size_t most_masks = 1024;

  std::size_t n_masks = 64;         ///< over how many the mean is taken
  std::vector<double> distances;    ///< as of DropoutStudy
  std::vector<arma::vec> row_sums;  ///< likewise
  arma::mat mean,
      difference;  ///< of the first n_masks, or of as many as were drawn; the mean less the weights
  Extent mean_extent, difference_extent;
  arma::vec sums_before, sums_after;  ///< of the trace's weights, and of what its one mask leaves
  arma::rowvec ones;                  ///< ten ones under the same dropout
  std::uint64_t revision = 0;         ///< another number, other numbers
  std::uint64_t version = 0;          ///< of the trace
  std::size_t head = 0, sequence = 0;

  std::size_t count() const { return distances.size(); }
  std::size_t n_rows() const { return mean.n_rows; }
  bool is_complete() const { return count() >= most_masks; }
};

/// Draws the laboratory's masks beside the window, a portion at a time.
class MaskDrawing {
 public:
  explicit MaskDrawing(Jobs& jobs) : lane_(jobs) {}

  /// Before every frame in which the laboratory is shown. The study of an older trace stays until the newest
  /// has its first masks.
  void follow(const LiveTrace& live, std::size_t head, std::size_t n_masks);
  /// Lets go of everything.
  void stop();
  const Laboratory* laboratory() const { return shown_.get(); }
  bool is_busy() const { return lane_.is_busy(); }

 private:
  struct Of {
    std::uint64_t version = 0;
    std::size_t head = 0, n_masks = 0;
    friend bool operator==(const Of&, const Of&) = default;
  };
  struct Portion;

  void begin(const LiveTrace& live);
  void take(Portion portion);
  void give_up(const Failure& failure);

  std::optional<Of> of_;
  std::shared_ptr<Laboratory> shown_;
  std::shared_ptr<core::attention::DropoutStudy> study_;  // only the worker reads and advances it
  std::uint64_t revision_ = 0;
  Lane lane_;
};

}  // namespace app
