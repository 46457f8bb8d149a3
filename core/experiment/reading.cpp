#include "core/experiment/reading.hpp"

#include <algorithm>
#include <cmath>

#include "core/attention/attend.hpp"
#include "core/attention/fast/engine.hpp"
#include "core/error.hpp"
#include "core/transformer/layer_model.hpp"
#include "core/transformer/lens.hpp"

namespace core::experiment {
namespace {

using transformer::Interventions;
using transformer::LayerRun;
using transformer::Means;
using transformer::Pass;
using transformer::Transformer;

constexpr std::size_t numbers_of_all_maps = std::size_t{1} << 23;  // 64 MiB
constexpr std::size_t widest_map = 192, narrowest_map = 48;

/// What a layer that was edited gives: what it adds, and what is to be seen of it.
struct EditedLayer {
  arma::fmat output;
  std::vector<arma::mat> weights;  // [head]
  arma::fmat added;
};

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
    const std::size_t end = sight.causal ? i + 1 : n_tokens;
    const std::size_t begin = sight.window > 0 && i + 1 > sight.window ? i + 1 - sight.window : 0;
    visible.row(i).cols(begin, end - 1).ones();
  }
  return std::make_shared<const arma::mat>(pooled(visible, block));
}

HeadSight sight_of_weights(const arma::fmat& weights, const arma::mat& exact,
                           const std::vector<std::size_t>& ids, std::size_t block) {
  return {pooled(exact, block), transformer::roles_of(weights, ids)};
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

void find_place(const Transformer& model, Reading& reading, const Means& means) {
  if (!model.weights->predicts()) {
    reading.no_guess = "This model has nothing that predicts tokens.";
    return;
  }
  try {
    reading.place = transformer::places_to_guess(model, reading.pass.ids).front();
  } catch (const Error& error) {
    const std::string words = error.what(), path = model.path.string() + ": ";
    reading.no_guess = words.starts_with(path) ? words.substr(path.size()) : words;
    return;
  }
  reading.logits = transformer::logits_after_layers(model, reading.pass, reading.place->row, means);
}

}  // namespace

Interventions interventions_of(const Transformer&, const Experiment& experiment,
                               const std::vector<std::string>& names) {
  Interventions result{experiment.heads_off, {}, {}};
  for (const auto& [layer, edit] : experiment.layers)
    result.attentions[layer] = [&experiment, &names, layer = layer](const arma::fmat& input) {
      arma::fmat output;
      attend_to(edited_layer(names, input, experiment, layer),
                [&](const attention::Trace& trace) { output = in_float32(*trace.output); });
      return output;
    };
  return result;
}

Reading read(const Transformer& model, const Experiment& experiment, const Reading* before,
             const Means& means) {
  Reading reading;
  reading.experiment = experiment;
  reading.tokens = tokens_of(model, experiment);
  reading.names = transformer::token_names(*model.tokenizer, reading.tokens);
  std::vector<std::size_t> ids;
  for (const auto& token : reading.tokens) ids.push_back(token.id);
  reading.pass =
      pass_of(model, ids, experiment, before, interventions_of(model, experiment, reading.names), means);
  if (reading.pass.first_not_finite)
    throw Error(model.path.string() + ": numbers that are not finite begin in layer " +
                std::to_string(*reading.pass.first_not_finite));
  find_place(model, reading, means);
  const auto& sizes = model.architecture.sizes;
  reading.block = block_for(ids.size(), sizes.n_layers * sizes.n_heads);
  const std::size_t row = reading.place ? reading.place->row : ids.size() - 1;
  const bool is_same_place =
      before && before->block == reading.block && before->pass.ids.size() == ids.size() &&
      before->place.has_value() == reading.place.has_value() && (!reading.place || before->place->row == row);
  const Interventions off{experiment.heads_off, {}, {}};
  for (std::size_t l = 0; l < sizes.n_layers; ++l) {
    if (!means.progress.goes_on()) throw Stopped();
    const auto& run = reading.pass.layers[l];
    if (is_same_place && before->layers[l]->run == run) {
      reading.layers.push_back(before->layers[l]);
      continue;
    }
    auto sight = std::make_shared<LayerSight>();
    sight->run = run;
    if (experiment.layers.contains(l)) {
      sight->is_edited = true;
      const attention::Model edited_model = edited_layer(reading.names, run->attention_input, experiment, l);
      attend_to(edited_model, [&](const attention::Trace& trace) {
        for (const auto& head : trace.heads) {
          const arma::mat& weights = head.dropped_weights;
          sight->heads.push_back(sight_of_weights(in_float32(weights), weights, ids, reading.block));
        }
        sight->added = added_in(edited_model, trace, row);
        if (edited_model.mask.hides())
          sight->visible = std::make_shared<const arma::mat>(pooled(*trace.mask, reading.block));
      });
    } else {
      sight->heads.resize(sizes.n_heads);
      means.pool.run(sizes.n_heads, [&](std::size_t h) {
        const arma::fmat weights = transformer::weights_in(model, reading.pass, l, h);
        sight->heads[h] =
            sight_of_weights(weights, arma::conv_to<arma::mat>::from(weights), ids, reading.block);
      });
      const transformer::Sight rule = transformer::sight_of(model.architecture, l);
      const bool is_same_rule = !reading.layers.empty() && !reading.layers.back()->is_edited &&
                                transformer::window_of(model.architecture, l - 1) == rule.window;
      sight->visible =
          is_same_rule ? reading.layers.back()->visible : seen_by(rule, ids.size(), reading.block);
      sight->added = transformer::added_by_heads(model, reading.pass, l, row, off, means);
    }
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
  return transformer::logits_without(model, reading.pass, layer, head, reading.place->row,
                                     interventions_of(model, without, reading.names), means);
}

}  // namespace core::experiment
