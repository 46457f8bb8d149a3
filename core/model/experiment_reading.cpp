#include "core/model/experiment_reading.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/error.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/attend.hpp"
#include "core/model/finite.hpp"
#include "core/model/layer_model.hpp"
#include "core/model/lens.hpp"

namespace core::experiment {
namespace {

using transformer::Interventions;
using transformer::Means;
using transformer::Pass;
using transformer::Transformer;

constexpr std::size_t numbers_of_all_maps = std::size_t{1} << 23;  // 64 MiB
constexpr std::size_t widest_map = 192, narrowest_map = 48;

arma::fmat in_float32(const arma::mat& numbers) {
  return arma::conv_to<arma::fmat>::from(numbers);
}

/// What each head adds at a row, where the heads stand side by side before one projection.
arma::fmat added_in(const attention::Model& model, const attention::Trace& trace, std::size_t row) {
  const auto* output = model.projections && model.projections->output ? &*model.projections->output : nullptr;
  const bool is_sum = model.merge == attention::MergeRule::concatenate && output && model.given.empty() &&
                      model.departures == attention::Departures{};
  if (!is_sum || model.d_out() != model.n_heads * model.d_value()) return {};
  const arma::mat& weight = output->weight;
  const std::size_t d = model.d_value();
  arma::fmat added(model.n_heads, weight.n_cols, arma::fill::zeros);
  for (std::size_t h = 0; h < model.n_heads; ++h)
    if (!model.is_off(h))
      added.row(h) = in_float32(trace.heads[h].contexts.row(row) * weight.rows(h * d, h * d + d - 1));
  return added;
}

/// The layer of a model that has only what edits need to be put into: tokens and what enters.
attention::Model bare_layer(const std::vector<std::string>& names, const arma::fmat& input,
                            const Experiment& experiment, std::size_t layer) {
  attention::Model model;
  model.sequences = {{names, arma::conv_to<arma::mat>::from(input)}};
  model.heads_off =
      transformer::heads_off_in(experiment.heads_off, layer, experiment.layers.at(layer).model.n_heads);
  return model;
}

attention::Model edited_layer(const std::vector<std::string>& names, const arma::fmat& input,
                              const Experiment& experiment, std::size_t layer) {
  attention::Model model = edited(bare_layer(names, input, experiment, layer), experiment.layers.at(layer));
  attention::require(model, "Layer " + std::to_string(layer) + ": ");
  return model;
}

/// Edited attention of a layer, on all processors where it can be.
template <class Use>
void attend_to(const attention::Model& model, const Use& use) {
  if (!attention::fast::covers(model)) return use(attention::attend_checked(model, 0));
  attention::fast::Engine engine(1);
  engine.compute(model);
  use(engine.trace());
}

/// The largest number of each block.
arma::mat pooled(const arma::mat& numbers, std::size_t block) {
  if (block == 1) return numbers;
  const auto blocks = [block](std::size_t n) { return (n + block - 1) / block; };
  arma::mat result(blocks(numbers.n_rows), blocks(numbers.n_cols), arma::fill::zeros);
  for (std::size_t j = 0; j < numbers.n_cols; ++j)
    for (std::size_t i = 0; i < numbers.n_rows; ++i) {
      double& largest = result.at(i / block, j / block);
      if (const double number = numbers.at(i, j); !(number <= largest)) largest = number;  // NaN stays
    }
  return result;
}

std::size_t block_for(std::size_t n_tokens, std::size_t n_maps) {
  const auto fits = static_cast<std::size_t>(std::sqrt(
      static_cast<double>(numbers_of_all_maps) / static_cast<double>(std::max<std::size_t>(1, n_maps))));
  const std::size_t side = std::clamp(fits, narrowest_map, widest_map);
  return (n_tokens + side - 1) / side;
}

/// What a layer that is not edited lets its queries see, in blocks.
std::shared_ptr<const arma::mat> seen_by(const transformer::Sight& sight, std::size_t n_tokens,
                                         std::size_t block) {
  if (!sight.causal && sight.window == 0) return nullptr;
  arma::mat visible(n_tokens, n_tokens, arma::fill::zeros);
  for (std::size_t i = 0; i < n_tokens; ++i) {
    const auto [begin, end] = transformer::seen_from(sight, i, n_tokens);
    visible.row(i).cols(begin, end - 1).ones();
  }
  return std::make_shared<const arma::mat>(pooled(visible, block));
}

/// The first layer from which on two experiments differ, n_layers for none.
std::size_t first_difference(const Experiment& a, const Experiment& b, const transformer::Sizes& sizes) {
  const auto of = [&sizes](const Experiment& all, std::size_t layer) {
    const auto off = transformer::heads_off_in(all.heads_off, layer, n_heads_in(all, layer, sizes));
    const auto edit = all.layers.find(layer);
    return std::pair(off, edit == all.layers.end() ? nullptr : &edit->second);
  };
  for (std::size_t l = 0; l < sizes.n_layers; ++l) {
    const auto [off_a, edit_a] = of(a, l);
    const auto [off_b, edit_b] = of(b, l);
    const bool is_same = off_a == off_b && !edit_a == !edit_b && (!edit_a || *edit_a == *edit_b);
    if (!is_same) return l;
  }
  return sizes.n_layers;
}

bool begins_with(const std::vector<std::size_t>& ids, const std::vector<std::size_t>& begin) {
  return begin.size() < ids.size() && std::equal(begin.begin(), begin.end(), ids.begin());
}

Pass pass_of(const Transformer& model, const std::vector<std::size_t>& ids, const Experiment& experiment,
             const Reading* before, const Interventions& interventions, const Means& means) {
  if (before && before->pass.ids == ids)
    return transformer::run_from(model, before->pass,
                                 first_difference(before->experiment, experiment, model.architecture.sizes),
                                 interventions, means);
  const bool goes_on =
      before && model.architecture.causal && experiment.layers.empty() && before->experiment.layers.empty() &&
      before->experiment.heads_off == experiment.heads_off && begins_with(ids, before->pass.ids);
  if (!goes_on) return transformer::run(model, ids, interventions, means);
  const auto n_before = static_cast<std::ptrdiff_t>(before->pass.ids.size());
  return transformer::run_on(model, before->pass, {ids.begin() + n_before, ids.end()}, interventions, means);
}

/// What an edited layer that is computed shows of itself.
using Watch = std::function<void(std::size_t layer, const attention::Model&, const attention::Trace&)>;

/// What is done to a pass of these tokens; heads of edited layers are switched off in their edited models.
Interventions interventions_of(const Experiment& experiment, const std::vector<std::string>& names,
                               const Watch& watch) {
  Interventions result{experiment.heads_off, {}, {}};
  for (const auto& [layer, edit] : experiment.layers)
    result.attentions[layer] = [&experiment, &names, &watch, layer = layer](const arma::fmat& input) {
      const attention::Model model = edited_layer(names, input, experiment, layer);
      arma::fmat output;
      attend_to(model, [&](const attention::Trace& trace) {
        output = in_float32(*trace.output);
        if (watch) watch(layer, model, trace);
      });
      return output;
    };
  return result;
}

/// Says where a token is guessed, or why none is.
void find_place(const Transformer& model, Reading& reading, const std::vector<std::size_t>& ids) {
  if (!model.weights->predicts()) {
    reading.no_guess = "This model has nothing that predicts tokens.";
    return;
  }
  const transformer::Places places = transformer::find_places(model, ids);
  reading.no_guess = places.why_none;
  if (!places.all.empty()) reading.place = places.all.front();
}

/// What layers of a reading show, one after the other.
class Looking {
 public:
  Looking(const Transformer& model, const Reading& reading, const std::vector<std::size_t>& ids,
          const Means& means)
      : model_(model),
        reading_(reading),
        ids_(ids),
        row_(reading.place ? reading.place->row : ids.size() - 1),
        means_(means) {}

  std::size_t row() const { return row_; }

  LayerSight edited(const attention::Model& model, const attention::Trace& trace) const {
    LayerSight sight;
    sight.is_edited = true;
    for (const auto& head : trace.heads) {
      const arma::mat& weights = head.dropped_weights;
      sight.heads.push_back(head_sight(in_float32(weights), weights));
    }
    sight.added = added_in(model, trace, row_);
    if (model.mask.hides())
      sight.visible = std::make_shared<const arma::mat>(pooled(*trace.mask, reading_.block));
    return sight;
  }

  LayerSight plain(std::size_t layer) const {
    LayerSight sight;
    sight.heads.resize(model_.architecture.sizes.n_heads);
    means_.pool.run(sight.heads.size(), [&](std::size_t h) {
      const arma::fmat weights = transformer::weights_in(model_, reading_.pass, layer, h);
      sight.heads[h] = head_sight(weights, arma::conv_to<arma::mat>::from(weights));
    });
    sight.visible = visible(layer);
    const Interventions off{reading_.experiment.heads_off, {}, {}};
    sight.added = transformer::added_by_heads(model_, reading_.pass, layer, row_, off, means_);
    return sight;
  }

 private:
  HeadSight head_sight(const arma::fmat& weights, const arma::mat& exact) const {
    return {pooled(exact, reading_.block), transformer::roles_of(weights, ids_)};
  }

  /// That of the layer before, where it sees alike.
  std::shared_ptr<const arma::mat> visible(std::size_t layer) const {
    const transformer::Sight rule = transformer::sight_of(model_.architecture, layer);
    const auto& before = reading_.layers;
    const bool is_same = !before.empty() && !before.back()->is_edited &&
                         transformer::window_of(model_.architecture, layer - 1) == rule.window;
    return is_same ? before.back()->visible : seen_by(rule, ids_.size(), reading_.block);
  }

  const Transformer& model_;
  const Reading& reading_;
  const std::vector<std::size_t>& ids_;
  std::size_t row_;
  const Means& means_;
};

}  // namespace

Reading read(const Transformer& model, const Experiment& experiment, const Reading* before,
             const Means& means) {
  Reading reading;
  reading.experiment = experiment;
  reading.tokens = tokens_of(model, experiment);
  reading.names = transformer::token_names(*model.tokenizer, reading.tokens);
  std::vector<std::size_t> ids;
  for (const auto& token : reading.tokens) ids.push_back(token.id);
  find_place(model, reading, ids);
  const auto& sizes = model.architecture.sizes;
  reading.block = block_for(ids.size(), sizes.n_layers * sizes.n_heads);
  const Looking look(model, reading, ids, means);

  std::map<std::size_t, LayerSight> edited;
  const Watch watch = [&](std::size_t layer, const attention::Model& of_layer,
                          const attention::Trace& trace) { edited[layer] = look.edited(of_layer, trace); };
  reading.pass =
      pass_of(model, ids, experiment, before, interventions_of(experiment, reading.names, watch), means);
  if (const auto layer = reading.pass.first_not_finite; layer && experiment.layers.contains(*layer))
    throw Error(model.path.string() + ": numbers that are not finite begin in layer " +
                std::to_string(*layer) + ", which was edited");
  transformer::require_finite(model, reading.pass, means.progress);
  if (reading.place)
    reading.logits = transformer::logits_after_layers(model, reading.pass, look.row(), means);

  const bool is_same_place = before && before->pass.ids.size() == ids.size() &&
                             before->place.has_value() == reading.place.has_value() &&
                             (!reading.place || before->place->row == look.row());
  for (std::size_t l = 0; l < sizes.n_layers; ++l) {
    if (!means.progress.goes_on()) throw Stopped();
    const auto& run = reading.pass.layers[l];
    if (is_same_place && before->layers[l]->run == run) {
      reading.layers.push_back(before->layers[l]);
      continue;
    }
    const auto known = edited.find(l);
    auto sight =
        std::make_shared<LayerSight>(known == edited.end() ? look.plain(l) : std::move(known->second));
    sight->run = run;
    reading.layers.push_back(std::move(sight));
  }
  return reading;
}

attention::Model layer_of(const Transformer& model, const Reading& reading, std::size_t layer) {
  return transformer::layer_model(model, reading.pass, layer, reading.names,
                                  {reading.experiment.heads_off, {}, {}});
}

std::vector<transformer::Guess> guesses_after(const Transformer& model, const Reading& reading,
                                              std::size_t layer, std::size_t n_guesses) {
  if (reading.logits.empty()) return {};
  return transformer::best_guesses(reading.logits.row(layer), n_guesses, model.tokenizer->size());
}

std::optional<transformer::Contributions> contributions_in(const Transformer& model, const Reading& reading,
                                                           std::size_t token, const Means& means) {
  const bool is_known =
      reading.place && transformer::has_contributions(model) &&
      std::ranges::none_of(reading.layers, [](const auto& layer) { return layer->added.empty(); });
  if (!is_known) return std::nullopt;
  std::vector<arma::fmat> added;
  for (const auto& layer : reading.layers) added.push_back(layer->added);
  return transformer::contributions_to(model, reading.pass, reading.place->row, token, added, means);
}

arma::frowvec logits_without(const Transformer& model, const Reading& reading, std::size_t layer,
                             std::size_t head, const Means& means) {
  Experiment without = reading.experiment;
  without.heads_off.insert({layer, head});
  const Pass pass =
      transformer::run_from(model, reading.pass, layer, interventions_of(without, reading.names, {}), means);
  return transformer::logits_of(model, pass.last.row(reading.place->row), means).as_row();
}

}  // namespace core::experiment
