#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/files/tensor.hpp"

namespace core::check {

/// Which place in the model the numbers in a file's names, or the indices of its first axis, mean.
struct LayerNumbering {
  std::ptrdiff_t first = 0;  ///< number of the first place
  bool is_reversed = false;  ///< the last place comes first
  /// Returns the place of a number, of n places.
  std::optional<std::size_t> place(std::size_t number, std::size_t n) const;
  /// Returns the number of a place, which a file may lack.
  std::ptrdiff_t number(std::size_t place, std::size_t n) const;
  friend bool operator==(const LayerNumbering&, const LayerNumbering&) = default;
};

/// How a file's layers, tokens and sequences correspond to those of a pass.
struct Placement {
  LayerNumbering attention = {}, states = {};
  std::optional<std::size_t> sequence = {};  ///< of a batch
  std::vector<std::size_t> ids = {};         ///< tokens of the file
  std::string tokens = {};                   ///< how these differ from the text, or ""

  /// Returns what differs from the text and the usual names: "layers are counted from 1"; or "".
  std::string words() const;
};

/// Returns placements of layers in another order, of attention and of states if there are any.
std::vector<Placement> other_orders(const Placement& placement, bool has_attention, bool has_states);

/// Returns a file of one sequence of a batch: tensors whose first axis has the length of the batch, behind an
/// axis of n_layers or n_layers + 1 if they have one.
formats::TensorFile sequence_of(const formats::TensorFile& file, std::size_t n_sequences,
                                std::size_t sequence, std::size_t n_layers);

}  // namespace core::check
