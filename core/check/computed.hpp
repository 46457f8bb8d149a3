#pragma once

#include <armadillo>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/check/reading.hpp"
#include "core/check/sampler.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace core::check {

/// A model with its traces, in full or a sample of their rows, each computed when it is first asked for.
class Computed {
 public:
  /// Throws core::Error as attend() does, but when a trace is asked for. The sampler must outlive it.
  ///
  /// Products may be those of trace_with_cut_products(), of which no sample is known.
  explicit Computed(Model model, const Sampler* sampler = nullptr, bool cuts_products = false)
      : model_(std::move(model)), sampler_(sampler), cuts_products_(cuts_products) {}

  const Model& model() const { return model_; }
  /// The sample that it is computed for, or nullptr when all rows are.
  const Sample* sample() const { return sampler_ ? &sampler_->sample() : nullptr; }
  bool cuts_products() const { return cuts_products_; }
  const attention::Trace& trace(std::size_t sequence) const;

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
  bool cuts_products_;
  mutable std::map<std::size_t, attention::Trace>
      traces_;  // kept because each may be asked for again and again
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

}  // namespace core::check
