#include "core/check/match.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/agreement.hpp"
#include "core/check/names.hpp"
#include "core/check/other_heads.hpp"
#include "core/check/unfit.hpp"
#include "core/graph/changes.hpp"

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
             std::size_t n_layers, std::size_t layer, const core::Token& progress) {
  progress.add(0);
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
    const auto is_read_in = [&](const Model& other) {
      return !readings_in(other, c.info->name, theirs.stage, c.info->shape).empty();
    };
    const auto is_read = [&](std::size_t n) { return is_read_in(mistakes::with_heads(model, n)); };
    const auto wider = with_wider_output(model);
    if (n_layers == 0 &&
        ((wider && is_read_in(*wider)) || std::ranges::any_of(other_head_numbers(model), is_read))) {
      theirs.tensor = file.read(c.info->name, {}, progress);
      theirs.rounding = rounding_of(theirs.tensor);
    }
    theirs.obstacle = unfit_words(model, c.stages, c.info->shape, c.said.parts, options.layout);
    return theirs;
  }
  theirs.tensor = file.read(c.info->name, leading, progress);
  theirs.rounding = rounding_of(theirs.tensor);
  mark_masked(theirs);
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
                                  std::vector<LeftOut>& left_out, const core::Token& progress) {
  std::vector<Candidate> all;
  std::vector<std::string> nameless;
  for (const TensorInfo& info : file.tensors()) {
    progress.add(0);
    Candidate c{&info, said_by(info.name)};
    const auto hand = by_hand.find(info.name);
    if (hand != by_hand.end()) {
      c.by_hand = true;
      c.said.meaning = {mapped_stages(info.name, hand->second), true};
      if (hand->second.empty()) {
        left_out.push_back({info.name, "left out by hand"});
        continue;
      }
    }
    for (const Stage stage : c.said.meaning.stages)
      if (c.by_hand || attention::info(stage).present(model)) c.stages.push_back(stage);
    if (info.dtype == formats::Dtype::text)
      left_out.push_back({info.name, "it holds text"});
    else if (c.said.meaning.stages.empty())
      nameless.push_back(info.name);
    else if (c.stages.empty())
      left_out.push_back({info.name, "the model does not have this stage"});
    else
      all.push_back(std::move(c));
  }
  if (nameless.size() == 1) left_out.push_back({nameless.front(), "its name says no stage"});
  if (nameless.size() > 1) left_out.push_back({text::joined(nameless, ", "), "their names say no stage"});
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
  const std::set<std::string_view> layers(matched.layers.begin(), matched.layers.end());
  std::erase_if(all, [&](const Candidate& c) {
    if (c.by_hand || c.said.layer == matched.layers[matched.layer]) return false;
    matched.left_out.push_back(
        {c.info->name, layers.contains(c.said.layer) ? "of another layer" : "its name says no layer"});
    return true;
  });
}

/// Lets what people call masked scores be scores that are not scaled yet, where weights are there that would
/// tell a scale that is missing.
void read_masked_before_scale(const std::vector<Candidate>& all, Matched& matched) {
  const auto are_weights = [](const Theirs& theirs) {
    return std::ranges::any_of(theirs.readings, [](const Reading& r) {
      return r.stage == Stage::weights || r.stage == Stage::dropped_weights;
    });
  };
  if (std::ranges::none_of(matched.theirs, are_weights)) return;
  for (std::size_t k = 0; k < all.size(); ++k) {
    std::vector<Reading>& readings = matched.theirs[k].readings;
    if (all[k].said.meaning.certain || readings.size() != 1 || readings.front().stage != Stage::masked_scores)
      continue;
    Reading reading = readings.front();
    reading.stage = Stage::scores;
    readings.push_back(std::move(reading));
    mark_masked(matched.theirs[k]);
    if (!readings.back().layout.is_masked) readings.pop_back();
  }
}

/// Whether numbers are plainly others than what enters attention.
bool is_far_from_embeddings(const Model& model, const Theirs& theirs) {
  constexpr double far_off = 1e-2;
  const Reading& r = theirs.readings.front();
  for (std::size_t s = 0; s < r.n_sequences; ++s) {
    const arma::mat& ours = model.sequences[r.first_sequence + s].embeddings;
    for (std::size_t i = 0; i < r.n_rows; ++i)
      for (std::size_t j = 0; j < r.n_columns; ++j) {
        const double our = ours.at(i, j);
        if (!(std::abs(theirs.tensor.numbers[r.at(s, 0, i, j)] - our) <= far_off * (1 + std::abs(our))))
          return true;
      }
  }
  return false;
}

/// Leaves hidden states of several layers out that are not what enters attention: those that a library gives
/// are before the norm of the layer, which is no stage of attention.
void leave_residuals_out(const Model& model, const std::vector<Candidate>& all, Matched& matched) {
  const auto is_residual = [&](std::size_t k) {
    const Candidate& c = all[k];
    const Theirs& theirs = matched.theirs[k];
    if (c.by_hand || held_by(c.said.own) != Held::entering) return false;
    const formats::Shape& shape = theirs.tensor.shape;
    // One more than layers: what leaves the last one.
    if (theirs.readings.empty()) return shape.size() > 2 && shape.front() == matched.layers.size() + 1;
    return is_far_from_embeddings(model, theirs);
  };
  std::vector<std::string> names;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (is_residual(k)) names.push_back(all[k].info->name);
  if (names.size() == all.size()) return;  // nothing else is there
  const std::set<std::string_view> gone(names.begin(), names.end());
  std::erase_if(matched.theirs, [&](const Theirs& theirs) { return gone.contains(theirs.name); });
  for (const std::string& name : names)
    matched.left_out.push_back({name, "not what enters attention, as hidden states before a norm; --map \"" +
                                          name + "=embeddings\" compares it"});
}

}  // namespace

Matched match(const Model& model, const TensorFile& file, const std::map<std::string, std::string>& by_hand,
              const MatchOptions& options, const core::Token& progress) {
  for (const auto& [tensor, stage] : by_hand) file.info(tensor);  // throws when it is not there
  Matched matched;
  std::vector<Candidate> all = candidates(model, file, by_hand, matched.left_out, progress);
  choose_by_name(file, options, all, matched);
  std::size_t n_layers = 0;  // that are a first axis
  if (matched.layers.empty()) {
    for (const Candidate& c : all)
      if (n_layers == 0) n_layers = layers_within(model, c, options, !options.layer.empty());
    matched.layers.assign(n_layers, "");
    matched.is_first_of_axis = n_layers > 0 && options.layer.empty();
    if (n_layers > 0) matched.layer = chosen_layer(file, options.layer, matched.layers);
  }
  for (const Candidate& c : all)
    matched.theirs.push_back(taken(model, file, c, options, n_layers, matched.layer, progress));
  read_masked_before_scale(all, matched);
  if (matched.layers.size() > 1) leave_residuals_out(model, all, matched);
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
