#include "core/check/whole/dump.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/check/names.hpp"
#include "core/error.hpp"
#include "core/text/ascii.hpp"
#include "core/text/number.hpp"
#include "core/text/words.hpp"

namespace core::check {
namespace {

using formats::TensorInfo;

enum class Held { before, after, normed, logits };
struct HeldWord {
  const char* word;
  Held held;
};
/// What people call the hidden states of a layer, and what follows the last one.
constexpr std::array words{
    HeldWord{"hidden_states", Held::before},
    HeldWord{"hidden_state", Held::before},
    HeldWord{"hiddens", Held::before},
    HeldWord{"hidden", Held::before},
    HeldWord{"resid_pre", Held::before},
    HeldWord{"residual", Held::before},
    HeldWord{"layer_input", Held::before},
    HeldWord{"block_input", Held::before},
    HeldWord{"resid_post", Held::after},
    HeldWord{"layer_output", Held::after},
    HeldWord{"block_output", Held::after},
    HeldWord{"last_hidden_state", Held::normed},
    HeldWord{"ln_final.hook_normalized", Held::normed},
    HeldWord{"logits", Held::logits},
    HeldWord{"lm_logits", Held::logits},
};

bool is_word(std::string_view name, std::string_view word) {
  if (!name.ends_with(word)) return false;
  name.remove_suffix(word.size());
  return name.empty() || std::string_view("._/-").find(name.back()) != std::string_view::npos;
}

/// What a name without its number says, the longest word first.
std::optional<Held> held_by(std::string_view name) {
  const HeldWord* longest = nullptr;
  for (const HeldWord& each : words)
    for (const std::string& word : {std::string(each.word), "hook_" + std::string(each.word)})
      if (is_word(name, word) &&
          (!longest || std::string_view(each.word).size() > std::string_view(longest->word).size()))
        longest = &each;
  return longest ? std::optional(longest->held) : std::nullopt;
}

std::optional<std::size_t> last_number(const std::string& text) {
  const std::size_t from = text.find_last_not_of("0123456789") + 1;
  const auto number = text::parse_whole_number(std::string_view(text).substr(from));
  return number ? std::optional(static_cast<std::size_t>(*number)) : std::nullopt;
}

/// The number of a layer in a name that says no stage: 3 of "my.3.thing".
std::optional<std::size_t> first_number(const std::string& name) {
  const auto numbers = without_numbers(name);
  return numbers.empty() ? std::nullopt : last_number(numbers.front().number);
}

/// Sorts the tensors of a file by what they hold.
class Sorter {
 public:
  Sorter(const transformer::Sizes& sizes, const std::map<std::string, std::string>& by_hand)
      : sizes_(sizes), by_hand_(by_hand) {}

  void take(const TensorInfo& info) {
    if (info.dtype == formats::Dtype::text) return leave(info, "it holds text");
    const auto hand = by_hand_.find(info.name);
    if (hand != by_hand_.end() && hand->second.empty()) return leave(info, "left out by hand");
    if (hand != by_hand_.end()) return take_stage(info, first_number(info.name));
    if (take_hidden(info)) return;
    const Said said = said_by(info.name);
    if (said.meaning.stages.empty()) return nameless_.push_back(info.name);
    take_stage(info, last_number(said.layer));
  }

  Dump taken() {
    if (!nameless_.empty())
      dump_.left_out.push_back(text::joined(nameless_, ", ") + ": " +
                               (nameless_.size() == 1 ? "its name says" : "their names say") +
                               " nothing of a pass");
    return std::move(dump_);
  }

 private:
  void leave(const TensorInfo& info, const std::string& why) {
    dump_.left_out.push_back(info.name + ": " + why);
  }

  /// A tensor of attention, of a layer or of all of them.
  void take_stage(const TensorInfo& info, std::optional<std::size_t> layer) {
    if (layer && *layer < sizes_.n_layers)
      dump_.stages[*layer].insert(info.name);
    else if (layer)
      leave(info, "the model has " + text::counted(sizes_.n_layers, "layer"));
    else if (info.shape.size() > 3 && info.shape.front() == sizes_.n_layers)
      dump_.stacked.insert(info.name);
    else if (sizes_.n_layers == 1)
      dump_.stages[0].insert(info.name);
    else
      leave(info, "its name says no layer");
  }

  void put(std::size_t layer, DumpTensor tensor) {
    if (layer > sizes_.n_layers)
      dump_.left_out.push_back(tensor.name + ": the model has " + text::counted(sizes_.n_layers, "layer"));
    else if (!dump_.hidden.try_emplace(layer, tensor).second)
      dump_.left_out.push_back(tensor.name + ": " + dump_.hidden.at(layer).name + " is the same place");
  }

  /// Those of all layers in one tensor, with what leaves the last one or without.
  bool take_stack(const TensorInfo& info, Held held) {
    const std::size_t count = info.shape.empty() ? 0 : info.shape.front();
    const bool fits = info.shape.size() > 2 &&
                      (count == sizes_.n_layers || (held == Held::before && count == sizes_.n_layers + 1));
    for (std::size_t k = 0; fits && k < count; ++k) put(k + (held == Held::after ? 1 : 0), {info.name, k});
    if (!fits) leave(info, "its name says no layer, and its first axis counts none");
    return true;
  }

  bool take_hidden(const TensorInfo& info) {
    const std::string name = text::lower(info.name);
    if (const auto held = held_by(name)) {
      if (*held == Held::normed || *held == Held::logits)
        (*held == Held::normed ? dump_.normed : dump_.logits) = DumpTensor{info.name};
      else
        return take_stack(info, *held);
      return true;
    }
    for (const auto& [base, number, is_parted] : without_numbers(name)) {
      const auto held = held_by(base);
      const auto layer = last_number(number);
      if (!held || !layer || *held == Held::normed || *held == Held::logits) continue;
      put(*layer + (*held == Held::after ? 1 : 0), {info.name});
      return true;
    }
    return false;
  }

  const transformer::Sizes& sizes_;
  const std::map<std::string, std::string>& by_hand_;
  Dump dump_;
  std::vector<std::string> nameless_;
};

}  // namespace

Dump dump_in(const formats::TensorFile& file, const transformer::Sizes& sizes,
             const std::map<std::string, std::string>& by_hand) {
  for (const auto& [name, stage] : by_hand) file.info(name);  // throws when it is not there
  Sorter sorter(sizes, by_hand);
  for (const TensorInfo& info : file.tensors()) sorter.take(info);
  return sorter.taken();
}

arma::mat rows_of(const formats::TensorFile& file, const DumpTensor& tensor) {
  std::vector<std::size_t> leading;
  if (tensor.index) leading.push_back(*tensor.index);
  formats::Tensor read = file.read(tensor.name, leading);
  while (read.shape.size() > 2 && read.shape.front() == 1) read.shape.erase(read.shape.begin());
  if (read.shape.size() != 2)
    throw Error(file.place() + tensor.name + ": expected a matrix of tokens × numbers, got " +
                formats::shape_text(read.shape));
  return formats::matrix(read);
}

}  // namespace core::check
