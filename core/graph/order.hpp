#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/graph/model.hpp"
#include "core/graph/stage.hpp"

/// In which order stages follow one another where a model decides.
namespace core::attention {

/// Stages of which each is made of the one before.
class Chain {
 public:
  void add(Stage stage) { stages_[count_++] = stage; }
  const Stage* begin() const { return stages_.data(); }
  const Stage* end() const { return begin() + count_; }
  Stage last() const { return stages_[count_ - 1]; }
  bool contains(Stage stage) const;
  /// The stage that another one, not the first, is made of.
  Stage before(Stage stage) const;

 private:
  std::array<Stage, 4> stages_{};
  std::size_t count_ = 0;
};

/// From queries, or keys, to what scores are made of: normed and rotated, as far as the model does so.
Chain query_chain(const Model& model);
Chain key_chain(const Model& model);

/// From scores to what the mask is laid on: scaled, capped, biased.
Chain score_chain(const Model& model);

/// The rotation of a model that has one, and the position by which row 0 of queries or keys turns.
positions::Rotary rotation_of(const Model& model);
std::int64_t turned_from(const Model& model, Stage stage);

}  // namespace core::attention
