#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/kernels.hpp"
#include "core/graph/model.hpp"

namespace core::attention::fast {

/// Unmasked keys of each query, row by row: a range from a first key to before an end, except for single
/// masked keys.
class UnmaskedKeys {
 public:
  UnmaskedKeys() = default;
  UnmaskedKeys(const Model& model, std::size_t sequence);

  /// [row]: one past the last unmasked key, 0 if there is none.
  const std::vector<std::size_t>& ends() const { return ends_; }
  /// [row]: the first unmasked key, 0 if there is none.
  const std::vector<std::size_t>& first_keys() const { return first_keys_; }
  /// Returns the smallest first key of those rows first … end − 1 that have any, rounded down to whole units.
  std::size_t min_first_key(std::size_t first, std::size_t end, std::size_t unit) const;
  /// Returns the average number of keys from the first to the end of a row.
  std::size_t mean_width() const;
  /// Returns the masked keys between the first and the end of a row, ascending.
  const std::vector<std::uint32_t>& masked_keys(std::size_t row) const;
  bool is_unmasked(std::size_t row, std::size_t key) const;
  /// Returns the rows that attend to a key, ascending.
  std::vector<std::size_t> rows_attending_to(std::size_t key) const;
  friend bool operator==(const UnmaskedKeys&, const UnmaskedKeys&) = default;

 private:
  void set_range(const Model& model, std::size_t sequence, std::size_t row);
  void set_keys(std::size_t row, const std::vector<char>& visible);

  std::vector<std::size_t> first_keys_, ends_;
  std::vector<std::pair<std::size_t, std::vector<std::uint32_t>>>
      masked_keys_;  // rows that have any, ascending
};

/// Queries, keys and values: each is a projection of embeddings, or the embeddings themselves.
enum class Qkv { queries, keys, values };

/// Operations of a model on queries and keys before their product, row by row (QK norm, then RoPE), and on
/// scaled scores before the mask (softcap, then biases); none by default.
class Rules {
 public:
  Rules() = default;
  explicit Rules(const Model& model);
  /// Returns whether the sizes and rules are those of a model.
  bool matches(const Model& model) const;

  /// Returns whether queries and keys are normalized or rotated.
  bool has_norm_or_rope() const { return norm_ || rotary_; }
  /// Applies QK norm and RoPE to d_head numbers of token t, of one head or KV head, in place.
  void prepare(Qkv what, std::size_t t, double* row) const;
  /// Applies only the norm.
  void norm(Qkv what, double* row) const;

  /// Returns whether a change of one query or key entry changes scores by a product.
  bool is_bilinear() const { return !has_norm_or_rope() && !softcap_; }
  /// Returns whether scaled scores are changed before the mask.
  bool changes_scores() const { return softcap_ || !position_biases_.empty() || !attention_bias_.empty(); }
  /// Applies the softcap and the biases to scores first … end − 1 of a row, in place.
  template <class Number>
  void finish_scores(const AttentionKernels<Number>& kernels, std::size_t head, std::size_t row,
                     Number* scores, std::size_t first, std::size_t end) const;
  /// Returns one scaled score after the softcap; biased_score() adds all biases too.
  double softcapped(double scaled) const {
    return softcap_ ? attention::softcapped(scaled, *softcap_) : scaled;
  }
  double biased_score(std::size_t head, std::size_t row, std::size_t key, double scaled) const;
  /// Returns the relative position bias alone.
  double position_bias(std::size_t head, std::size_t row, std::size_t key) const;

 private:
  const double* position_bias_row(std::size_t head, std::size_t row) const;
  const double* attention_bias_row(std::size_t head, std::size_t row) const;

  std::size_t n_queries_ = 0, n_keys_ = 0, d_head_ = 0, n_heads_ = 0;
  std::optional<QueryKeyNorm> norm_;
  std::optional<positions::Rotary> rotary_;
  std::vector<positions::PairColumns> pairs_;
  std::vector<double> cosines_, sines_;  // [position, from the earliest on][pair]
  std::optional<double> softcap_;
  Positions positions_;
  std::vector<SharedMatrix> score_bias_;
  std::vector<std::vector<double>> position_biases_;  // [head][key − query, from the smallest on]
  std::vector<std::vector<double>> attention_bias_;   // one for all heads or one per head, row-major
};

}  // namespace core::attention::fast
