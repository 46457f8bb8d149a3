#include "core/check/match.hpp"

#include <algorithm>

#include "core/check/agreement.hpp"
#include "core/check/names.hpp"
#include "core/check/other_heads.hpp"
#include "core/check/unfit.hpp"
#include "core/error.hpp"
#include "core/mistakes/changes.hpp"
#include "core/text/number.hpp"
#include "core/text/words.hpp"

namespace core::check {
namespace {

using formats::Shape;
using formats::TensorFile;
using formats::TensorInfo;

/// A tensor of a file and what it can be.
struct Candidate {
  const TensorInfo* info;
  Said said;
  std::vector<Stage> stages = {};  ///< that the model has
  bool by_hand = false;

  std::optional<std::size_t> head() const { return said.parts.head; }
};

std::vector<Reading> readings_as(const Model& model, const Candidate& c, const Shape& shape,
                                 const MatchOptions& options) {
  std::vector<Reading> all;
  for (const Stage stage : c.stages)
    for (Reading& reading : readings_of(model, stage, shape, c.said.parts.sequence.value_or(options.sequence),
                                        c.head(), options.layout))
      all.push_back(std::move(reading));
  return all;
}

/// A number from 0, or the beginning of a name.
std::size_t chosen_layer(const TensorFile& file, const std::string& chosen,
                         const std::vector<std::string>& layers) {
  if (chosen.empty()) return 0;
  const auto number_of = [](const std::string& name) {
    return text::parse_whole_number(std::string_view(name).substr(name.find_last_not_of("0123456789") + 1));
  };
  const bool numbered =
      std::ranges::all_of(layers, [&](const auto& name) { return number_of(name).has_value(); });
  const auto number = text::parse_whole_number(chosen);
  for (std::size_t k = 0; k < layers.size(); ++k)
    if (number ? (numbered ? number_of(layers[k]) == number : k == *number) : layers[k].starts_with(chosen))
      return k;
  throw Error(
      file.place() + "expected a layer of " +
      (layers.front().empty() ? "0 … " + std::to_string(layers.size() - 1) : text::joined(layers, ", ")) +
      ", got \"" + chosen + "\"");
}

/// How many layers the first axis of a tensor counts whose shape fits nothing as a whole, or 0.
///
/// As when such a file is opened, four dimensions are enough where a stage is one of heads.
std::size_t layers_within(const Model& model, const Candidate& c, const MatchOptions& options, bool is_sure) {
  const Shape& shape = c.info->shape;
  const bool of_heads =
      std::ranges::any_of(c.stages, [](Stage stage) { return attention::info(stage).per_head; });
  const std::size_t fewest = is_sure ? 2 : of_heads ? 4 : 5;
  if (shape.size() < fewest || shape.front() < 2 || !readings_as(model, c, shape, options).empty()) return 0;
  return readings_as(model, c, Shape(shape.begin() + 1, shape.end()), options).empty() ? 0 : shape.front();
}

/// One of the file's tensors as the check compares it; of a first axis of layers that layer alone.
Theirs taken(const Model& model, const TensorFile& file, const Candidate& c, const MatchOptions& options,
             std::size_t n_layers, std::size_t layer) {
  Theirs theirs;
  theirs.name = c.info->name;
  theirs.stage = c.stages.front();
  std::vector<std::size_t> leading;
  Shape shape = c.info->shape;
  theirs.readings = readings_as(model, c, shape, options);
  if (theirs.readings.empty() && n_layers > 0 && shape.size() > 1 && shape.front() == n_layers) {
    shape.erase(shape.begin());
    theirs.readings = readings_as(model, c, shape, options);
    leading = {layer};
  }
  if (theirs.readings.empty()) {
    theirs.tensor.dtype = c.info->dtype;
    theirs.tensor.shape = c.info->shape;
    const auto is_read = [&](std::size_t n) {
      const Model other = mistakes::with_heads(model, n);
      return !readings_in(other, c.info->name, theirs.stage, c.info->shape).empty();
    };
    if (n_layers == 0 && std::ranges::any_of(other_head_numbers(model), is_read)) {
      theirs.tensor = file.read(c.info->name);
      theirs.rounding = rounding_of(theirs.tensor);
    }
    theirs.obstacle = unfit_words(model, c.stages, c.info->shape, c.said.parts, options.layout);
    return theirs;
  }
  theirs.tensor = file.read(c.info->name, leading);
  theirs.rounding = rounding_of(theirs.tensor);
  return theirs;
}

std::vector<Stage> mapped_stages(const std::string& tensor, const std::string& stage) {
  if (stage.empty()) return {};
  const auto* row = attention::find_stage(stage);
  if (!row) throw Error(tensor + ": there is no stage \"" + stage + "\"");
  return {row->stage};
}

/// Those tensors that are stages of the model; why the others are not goes to left_out.
std::vector<Candidate> candidates(const Model& model, const TensorFile& file,
                                  const std::map<std::string, std::string>& by_hand,
                                  std::vector<std::string>& left_out) {
  std::vector<Candidate> all;
  std::vector<std::string> nameless;
  for (const TensorInfo& info : file.tensors()) {
    Candidate c{&info, said_by(info.name)};
    const auto hand = by_hand.find(info.name);
    if (hand != by_hand.end()) {
      c.by_hand = true;
      c.said.meaning = {mapped_stages(info.name, hand->second), true};
      if (hand->second.empty()) {
        left_out.push_back(info.name + ": left out by hand");
        continue;
      }
    }
    for (const Stage stage : c.said.meaning.stages)
      if (c.by_hand || attention::info(stage).present(model)) c.stages.push_back(stage);
    if (info.dtype == formats::Dtype::text)
      left_out.push_back(info.name + ": it holds text");
    else if (c.said.meaning.stages.empty())
      nameless.push_back(info.name);
    else if (c.stages.empty())
      left_out.push_back(info.name + ": the model does not have this stage");
    else
      all.push_back(std::move(c));
  }
  if (nameless.size() == 1) left_out.push_back(nameless.front() + ": its name says no stage");
  if (nameless.size() > 1) left_out.push_back(text::joined(nameless, ", ") + ": their names say no stage");
  return all;
}

/// Keeps those of one layer, where names tell layers apart.
void choose_by_name(const TensorFile& file, const MatchOptions& options, std::vector<Candidate>& all,
                    Matched& matched) {
  std::vector<Said> names;
  for (const Candidate& c : all) names.push_back(c.said);
  matched.layers = layers_of(names);
  if (matched.layers.empty()) return;
  matched.layer = chosen_layer(file, options.layer, matched.layers);
  std::erase_if(all, [&](const Candidate& c) {
    if (c.by_hand || c.said.layer == matched.layers[matched.layer]) return false;
    const bool of_a_layer = std::ranges::find(matched.layers, c.said.layer) != matched.layers.end();
    matched.left_out.push_back(c.info->name +
                               (of_a_layer ? ": of another layer" : ": its name says no layer"));
    return true;
  });
}

}  // namespace

Matched match(const Model& model, const TensorFile& file, const std::map<std::string, std::string>& by_hand,
              const MatchOptions& options) {
  for (const auto& [tensor, stage] : by_hand) file.info(tensor);  // throws when it is not there
  Matched matched;
  std::vector<Candidate> all = candidates(model, file, by_hand, matched.left_out);
  choose_by_name(file, options, all, matched);
  std::size_t n_layers = 0;  // that are a first axis
  if (matched.layers.empty()) {
    for (const Candidate& c : all)
      if (n_layers == 0) n_layers = layers_within(model, c, options, !options.layer.empty());
    matched.layers.assign(n_layers, "");
    if (n_layers > 0) matched.layer = chosen_layer(file, options.layer, matched.layers);
  }
  for (const Candidate& c : all)
    matched.theirs.push_back(taken(model, file, c, options, n_layers, matched.layer));
  if (matched.theirs.empty())
    throw Error(
        file.place() +
        "expected tensors named as stages (weights, queries, attn_scores, …), got none; --map NAME=STAGE says which is which");
  return matched;
}

std::string layer_words(const Matched& matched) {
  if (matched.layers.size() < 2) return "";
  const std::string& name = matched.layers[matched.layer];
  return "layer " + (name.empty() ? std::to_string(matched.layer) : "\"" + name + "\"") + " of " +
         std::to_string(matched.layers.size());
}

}  // namespace core::check
