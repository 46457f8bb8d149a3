#include "core/check/dump.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/names.hpp"

namespace core::check {
namespace {

using formats::TensorInfo;

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
  void take_stack(const TensorInfo& info, Held held) {
    const std::size_t count = info.shape.empty() ? 0 : info.shape.front();
    const bool fits = info.shape.size() > 2 &&
                      (count == sizes_.n_layers || (held == Held::entering && count == sizes_.n_layers + 1));
    if (!fits) return leave(info, "its name says no layer, and its first axis counts none");
    for (std::size_t k = 0; k < count; ++k) put(k + (held == Held::leaving ? 1 : 0), {info.name, k});
  }

  /// What there is once, behind the last layer.
  void take_end(const TensorInfo& info, std::optional<DumpTensor>& end) {
    if (end) return leave(info, end->name + " is the same place");
    end = DumpTensor{info.name};
  }

  /// A name that says one layer; by a joint or a word, or, as "hidden3", by its last number.
  bool take_of_layer(const TensorInfo& info, bool parted) {
    for (const WithoutNumber& each : without_numbers(text::lower(info.name))) {
      const bool is_end = each.behind.empty();
      // "layers.1.mlp.hidden" is of something in the layer.
      if (each.is_parted != parted || (!is_end && each.behind.find_first_of("./") != std::string::npos))
        continue;
      const Held held = held_by(is_end ? each.base : each.behind);
      const auto layer = last_number(each.number);
      if (!layer || (held != Held::entering && held != Held::leaving)) continue;
      put(*layer + (held == Held::leaving ? 1 : 0), {info.name});
      return true;
    }
    return false;
  }

  bool take_hidden(const TensorInfo& info) {
    if (take_of_layer(info, true)) return true;
    const auto numbers = without_numbers(info.name);
    const bool is_of_layer = std::ranges::any_of(numbers, &WithoutNumber::is_parted);
    const Held held = is_of_layer ? Held::nothing : held_by(info.name);
    if (held == Held::nothing) return take_of_layer(info, false);
    if (held == Held::normed || held == Held::logits)
      take_end(info, held == Held::normed ? dump_.normed : dump_.logits);
    else
      take_stack(info, held);
    return true;
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
