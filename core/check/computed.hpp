#pragma once

#include <algorithm>
#include <armadillo>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/number.hpp"
#include "core/check/match.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace core::check {

using attention::Trace;

// What keeping numbers as a type of tensors does to them; integers and bools count as exact.

/// How far keeping a number as a type may take it, 0 for exact ones.
double round_trip_error(formats::Dtype dtype, double number);

/// The coarsest of bfloat16, float16, float32 and float64 that keeps all of the numbers as they are.
formats::Dtype coarsest_type(std::span<const double> numbers);

/// Whether numbers of float64 are kept as they are.
bool is_exact(formats::Dtype dtype);

/// "float16", "float8_e5m2": the type that takes digits away, or "".
std::string rounding_words(formats::Dtype dtype);

// How far somebody's numbers are from ours, and how far they may be.

/// How far numbers may be apart that are called equal: |observed − ours| ≤ absolute + relative · |ours|, and
/// what the rounding of their type adds.
struct Tolerance {
  double relative = 1e-5, absolute = 1e-6;
  double of_largest = 0;  ///< this times the largest |ours| of a matrix is allowed besides
};

/// Sums in float32 round more often than once a stage.
constexpr double float32_sums = 16;

/// Whether a number is another one, the same once it is rounded to its type, or the same.
enum class Near { none, rounded, plain };

/// What may lie between two numbers.
struct Limits {
  Tolerance tolerance;
  formats::Dtype dtype;  ///< that observed numbers were rounded to
  double more = 0;       ///< allowed besides
  double sums = 0;  ///< so many roundings in float32, and in their type, to what such a sum may have added
  double added = 0;

  Near near(double distance, double ours) const;
};

/// What numbers were found to be, compared with ours one after the other.
struct Agreement {
  bool within = true;
  bool is_plain = true;  ///< within also without what the rounding of their type adds
  double largest = 0;    ///< |observed − ours|, 0 … ∞; NaN equals NaN, an infinity equals itself
  bool of_nan = false;   ///< that is ∞ as one alone is NaN
  double magnitude = 0;  ///< the largest finite |ours|
  std::size_t sequence = 0, head = 0, row = 0,
              column = 0;  ///< the first place, row by row, that is so far apart
  std::size_t n_far = 0;   ///< numbers of the worst matrix that are further apart than they may be

  void add(double observed, double ours, const Limits& limits, std::size_t in_row, std::size_t in_column);
};

/// The largest |number| that is finite, 0 without any.
inline double largest_finite(const arma::mat& numbers) {
  double largest = 0;
  for (const double number : numbers)
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  return largest;
}

/// Rows of one sequence, of which a few are enough to tell that a model does not give somebody's tensors.
struct Sample {
  std::size_t sequence = 0;
  std::vector<std::size_t> rows;  ///< each once
};

/// Computes a few rows of models of one size, in a fraction of the time that all of them take.
///
/// Models that are tried one after the other have most of their projections in common; what these make of the
/// embeddings is kept.
class Sampler {
 public:
  explicit Sampler(Sample sample) : sample_(std::move(sample)) {}

  const Sample& sample() const { return sample_; }

  /// The trace of the sampled sequence as attend() gives it, but row a of each stage is row sample().rows[a];
  /// rows behind those of the sample count for nothing.
  ///
  /// Nothing may be given in the model, and keys must be those of the tokens. Throws core::Error as attend()
  /// does.
  Trace trace(const Model& model) const;

 private:
  /// Keys or values of all heads, and what they were projected from.
  struct Projected {
    attention::SharedMatrix embeddings;
    attention::Linear linear;
    attention::Precision precision, factors;
    std::optional<attention::Precision> sums;
    attention::SharedMatrix all = {};
    bool made_like(const Projected& other) const;
  };

  Sample sample_;
  mutable std::vector<Projected> projected_;  // kept because models that follow each other share them
  mutable std::optional<std::pair<attention::Dropout, attention::SharedMatrix>> kept_;  // likewise
};

/// A model with its traces, in full or a sample of their rows, each computed when it is first asked for.
class Computed {
 public:
  /// Throws core::Error as attend() does, but when a trace is asked for. The sampler must outlive it.
  ///
  /// With in_tf32 the factors of every matrix product are cut to TF32 and added up in float32, as graphics
  /// cards do that are not told to round first; of that no sample is known, and the model's own precision
  /// counts for nothing.
  explicit Computed(Model model, const Sampler* sampler = nullptr, bool in_tf32 = false)
      : model_(std::move(model)), sampler_(sampler), in_tf32_(in_tf32) {}

  const Model& model() const { return model_; }
  /// The sample that it is computed for, or nullptr when all rows are.
  const Sample* sample() const { return sampler_ ? &sampler_->sample() : nullptr; }
  bool in_tf32() const { return in_tf32_; }
  const Trace& trace(std::size_t sequence) const;

  /// The same model with float32 in every stage: what its rounding alone does is read from it.
  const Computed& in_float32() const;

  /// The matrices that a reading's part can be: that of the stage, or of its heads side by side or on
  /// average. Row a of them is row a of the sample, if there is one.
  ///
  /// Those behind the first are other customs of writing the same down: a mask that is 1 where it hides, a
  /// mask that is added (of −∞, for which any large negative number stands), a large negative number that is
  /// added, scores before or after a dropout that falls on them.
  std::vector<arma::mat> forms(const Reading& reading, std::size_t sequence, std::size_t head) const;
  /// The first of them alone.
  arma::mat form(const Reading& reading, std::size_t sequence, std::size_t head) const;

  /// How far float32 takes the numbers of a stage from those of float64, at most, over all heads.
  double float32_error(const Reading& reading) const;

 private:
  Model model_;
  const Sampler* sampler_;
  bool in_tf32_;
  mutable std::map<std::size_t, Trace> traces_;  // kept because each may be asked for again and again
  mutable std::shared_ptr<Computed> float32_;
};

/// The stage of a model that numbers of another one of it are compared with: that stage, or where the model
/// leaves it out, as by a mistake, what it would have been made of; nothing where there is none.
std::optional<Stage> stage_for(const Model& model, Stage stage);

/// The head of which the h-th of a reading's heads is the matrix: the first one of a group.
std::size_t head_of(const Reading& reading, const Model& model, std::size_t h);

/// Calls visit(s, h) for each matrix that a computed model has of a reading: the h-th of its heads in the
/// s-th of its sequences.
template <class Visit>
void for_each_part(const Reading& reading, const Computed& computed, Visit visit) {
  const Sample* sample = computed.sample();
  for (std::size_t s = 0; s < reading.n_sequences; ++s)
    if (!sample || reading.first_sequence + s == sample->sequence)
      for (std::size_t h = 0; h < reading.n_heads; ++h) visit(s, h);
}

/// How many rows of a reading are computed, and which row of it the a-th of them is.
inline std::size_t n_rows_of(const Reading& reading, const Computed& computed) {
  return computed.sample() ? computed.sample()->rows.size() : reading.n_rows;
}
inline std::size_t row_of(const Computed& computed, std::size_t a) {
  return computed.sample() ? computed.sample()->rows[a] : a;
}

/// The finest type that a tensor shows to have been rounded to: its own, or float32 when all numbers of a
/// float64 tensor are numbers of float32.
formats::Dtype rounding_of(const formats::Tensor& tensor);

/// Compares a tensor, read in one way, with a computed model.
Agreement agreement(const Observed& observed, const Reading& reading, const Computed& ours,
                    const Tolerance& tolerance);

/// The first of its readings that agrees, or nullptr.
const Reading* agreeing(const Observed& observed, const Computed& ours, const Tolerance& tolerance);

/// Tensors against the right model.
struct Comparison {
  const Computed& right;
  const std::vector<Observed>& observed;
  std::vector<const Reading*>
      agreeing;  ///< [tensor]: the reading that agrees with the right model, or nullptr
  const Tolerance& tolerance;
  const core::Token& token;  ///< of a search for causes
};

}  // namespace core::check
