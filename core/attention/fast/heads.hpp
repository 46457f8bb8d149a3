#pragma once

#include <cstddef>
#include <vector>

#include "core/attention/fast/buffer.hpp"
#include "core/attention/fast/kernels.hpp"
#include "core/attention/fast/scratch.hpp"
#include "core/attention/fast/visibility.hpp"
#include "core/attention/model.hpp"
#include "core/random/bits.hpp"

namespace core::attention::fast {

/// What is kept of one head; a row of numbers lies in memory after the other.
struct Head {
  Buffer queries;                     ///< n_tokens × d_head
  Buffer key_panels;                  ///< panel after panel of keys, each d_head × panel_width
  Buffer values;                      ///< n_tokens × value_stride, zeros beyond d_head
  Buffer scores;                      ///< n_tokens × row_stride, masked and scaled: −inf where hidden
  std::vector<double> largest, sums;  ///< [row]; weights are exp(score − largest) / sum
  std::vector<float> losses;          ///< [row]: roundings since the row was worked out afresh
};

/// Which weights of a sequence dropout keeps.
struct Survivors {
  random::Bits bits;      ///< [sequence][head][row][column]; empty when dropout is not active
  std::size_t first = 0;  ///< where this sequence's begin
  double factor = 1;      ///< what dropout multiplies those by
};

/// All heads of one sequence, and what each block of their rows is computed from.
struct Heads {
  std::size_t n_tokens = 0, d_head = 0, d_out = 0, row_stride = 0, value_stride = 0;
  const Kernels* kernels = nullptr;
  bool uniform = false;  ///< scores are all zero
  double scale = 1;
  EmptyRows empty_rows = EmptyRows::nan;
  Visibility visibility;
  Survivors kept;
  std::vector<Head> heads;
  Buffer contexts;  ///< n_tokens × d_out, the heads side by side
  Buffer panels;    ///< of embeddings or contexts while they are multiplied
  Scratch rows;     ///< of weights while contexts are made of them: they are not kept, memory is slower

  bool same_shape(const Model& model) const;
  /// Memory for such a model, nothing visible yet.
  void allocate(const Model& model);

  double* query(std::size_t h, std::size_t i) { return heads[h].queries.data() + i * d_head; }
  double* value(std::size_t h, std::size_t j) { return heads[h].values.data() + j * value_stride; }
  double* scores(std::size_t h, std::size_t i) { return heads[h].scores.data() + i * row_stride; }
  double* context(std::size_t h, std::size_t i) { return contexts.data() + i * d_out + h * d_head; }
  /// Number c of key j, within its panel.
  double& key(std::size_t h, std::size_t j, std::size_t c) {
    const std::size_t width = kernels->panel_width;
    return heads[h].key_panels.data()[(j / width * d_head + c) * width + j % width];
  }
  /// The largest k·k of a head's keys.
  double longest_key_squared(std::size_t h) const;
  bool is_kept(std::size_t h, std::size_t i, std::size_t j) const {
    return kept.bits.empty() || kept.bits[kept.first + (h * n_tokens + i) * n_tokens + j];
  }
  /// What dropout multiplies a weight by.
  double kept_factor(std::size_t h, std::size_t i, std::size_t j) const {
    return kept.bits.empty() ? 1 : is_kept(h, i, j) ? kept.factor : 0;
  }
  /// What multiplies contexts, beside the weights of what dropout keeps.
  double context_factor() const { return kept.bits.empty() ? 1 : kept.factor; }
};

/// How much of a row is worked out anew.
enum class From { queries, scores, weights };

/// exp(score − largest) of n keys of a row.
void row_of_exponentials(Heads& all, std::size_t head, std::size_t row, std::size_t n, double* exponentials,
                         std::size_t first_key = 0);

/// Works out rows first … end − 1 of a head: scores, if asked, then largest and sums, if asked, then
/// contexts.
///
/// False when a row that sees a key has no finite largest score or sum: such numbers are for attend().
bool work_out(Heads& all, std::size_t head, std::size_t first, std::size_t end, From from);

/// Forgets a row of which other keys are visible now: nothing of it is visible.
void hide_row(Heads& all, std::size_t head, std::size_t row);

}  // namespace core::attention::fast
