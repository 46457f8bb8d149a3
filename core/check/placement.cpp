#include "core/check/placement.hpp"

#include <fmt/core.h>
#include <utility>

#include "core/base/text.hpp"

namespace core::check {
namespace {

/// Orders of layers, and of the states before and after them, that programs have; the usual ones first.
constexpr LayerNumbering attention_orders[]{{0, false}, {1, false}, {0, true}, {1, true}};
constexpr LayerNumbering state_orders[]{{0, false}, {-1, false}, {1, false}, {0, true}, {-1, true}};

std::string words_of(const char* what, const LayerNumbering& order) {
  return fmt::format("{} are {}", what, order.is_reversed ? "in reverse order" : "counted from 1");
}

}  // namespace

std::optional<std::size_t> LayerNumbering::place(std::size_t number, std::size_t n) const {
  const std::ptrdiff_t after_first = static_cast<std::ptrdiff_t>(number) - first,
                       count = static_cast<std::ptrdiff_t>(n),
                       found = is_reversed ? count - 1 - after_first : after_first;
  return found >= 0 && found < count ? std::optional(static_cast<std::size_t>(found)) : std::nullopt;
}

std::ptrdiff_t LayerNumbering::number(std::size_t place, std::size_t n) const {
  return first + static_cast<std::ptrdiff_t>(is_reversed ? n - 1 - place : place);
}

std::string Placement::words() const {
  std::vector<std::string> all;
  if (!tokens.empty()) all.push_back(tokens);
  if (sequence) all.push_back(fmt::format("the text is sequence {} of the batch", *sequence));
  if (attention != LayerNumbering() && attention == states) {
    all.push_back(words_of("layers", attention));
  } else {
    if (attention != LayerNumbering()) all.push_back(words_of("layers of attention", attention));
    if (states.first < 0)
      all.emplace_back("hidden states begin behind the first layer, without what enters it");
    if (states.is_reversed || states.first > 0) all.push_back(words_of("hidden states", states));
  }
  return text::joined(all, "; ");
}

std::vector<Placement> other_orders(const Placement& placement, bool has_attention, bool has_states) {
  std::vector<Placement> all;
  for (const LayerNumbering& states : state_orders)
    for (const LayerNumbering& attention : attention_orders) {
      const bool moves_attention = attention != placement.attention,
                 moves_states = states != placement.states;
      if (!moves_attention && !moves_states) continue;
      if ((moves_attention && !has_attention) || (moves_states && !has_states)) continue;
      all.push_back(placement);
      all.back().attention = attention, all.back().states = states;
    }
  return all;
}

formats::TensorFile sequence_of(const formats::TensorFile& file, std::size_t n_sequences,
                                std::size_t sequence, std::size_t n_layers) {
  std::vector<formats::TensorEntry> entries;
  for (const formats::TensorInfo& info : file.tensors()) {
    formats::TensorEntry entry{info, {}, {}};
    formats::TensorShape& shape = entry.info.shape;
    const bool is_stack =
        shape.size() > 3 && (shape[0] == n_layers || shape[0] == n_layers + 1) && shape[1] == n_sequences;
    const std::size_t axis = is_stack ? 1 : 0;
    const bool has_batch = shape.size() > axis + 1 && shape[axis] == n_sequences;
    if (has_batch) shape[axis] = 1;
    entry.read = [=, &file](std::span<const std::size_t> leading, const StopToken& progress) {
      if (!has_batch) return file.read(info.name, leading, progress);
      std::vector<std::size_t> indices(leading.begin(), leading.end());
      if (indices.size() > axis) {
        indices[axis] = sequence;
        return file.read(info.name, indices, progress);
      }
      if (indices.size() == axis) {
        indices.push_back(sequence);
        formats::Tensor part = file.read(info.name, indices, progress);
        part.shape.insert(part.shape.begin(), 1);
        return part;
      }
      formats::Tensor all;  // of a stack, which is usually read layer by layer
      static_cast<formats::TensorInfo&>(all) = info, all.shape[axis] = 1;
      for (std::size_t k = 0; k < info.shape[0]; ++k) {
        const formats::Tensor part = file.read(info.name, std::vector{k, sequence}, progress);
        all.numbers.insert(all.numbers.end(), part.numbers.begin(), part.numbers.end());
      }
      return all;
    };
    entries.push_back(std::move(entry));
  }
  return {file.path(), file.format(), std::move(entries)};
}

}  // namespace core::check
