#include "core/model/text_reading.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/validation.hpp"
#include "core/model/matrix.hpp"

namespace core::experiment {
namespace {

using transformer::CallContext;
using transformer::FullModel;
using transformer::HeadRoles;
using transformer::LayerHeads;
using transformer::LogitAttributions;
using transformer::PassEdit;
using transformer::Probabilities;

constexpr std::size_t max_map_numbers = std::size_t{1} << 23;  // of all maps, 64 MiB
constexpr std::size_t max_map_side = 192, min_map_side = 48;

arma::fmat in_float32(const arma::mat& numbers) {
  return arma::conv_to<arma::fmat>::from(numbers);
}

std::size_t block_for(std::size_t n_tokens, std::size_t n_maps) {
  const auto fits = static_cast<std::size_t>(std::sqrt(
      static_cast<double>(max_map_numbers) / static_cast<double>(std::max<std::size_t>(1, n_maps))));
  const std::size_t side = std::clamp(fits, min_map_side, max_map_side);
  return (n_tokens + side - 1) / side;
}

/// Puts the patched parts of attention of a layer into it, as cells that are given; first: see TextReading.
void give_patches(const FullModel& model, const Experiment& experiment, const transformer::Pass& first,
                  const std::vector<std::size_t>& ids, std::size_t layer, attention::Model& into,
                  const StopToken& progress) {
  using attention::Stage;
  if (!experiment.has_patched_attention(layer)) return;
  const attention::Model source = transformer::layer_model(
      model, first, layer, attention::numbered_tokens(first.ids.size()), {}, progress);
  const attention::Trace trace = attention::attend_checked(source, 0);
  const bool normalizes = source.additions.normalize.has_value();
  const transformer::TokenAlignment rows = transformer::align(first.ids, ids, experiment.first->aligned);
  std::vector<attention::GivenCell>& cells = into.given.cells;
  const std::size_t in_group = source.n_heads / source.kv_heads();
  for (const transformer::Patch& patch : experiment.patches) {
    if (patch.layer != layer || !patch.is_of_attention()) continue;
    using transformer::PatchedPart;
    const Stage stage = patch.part == PatchedPart::head      ? Stage::contexts
                        : patch.part == PatchedPart::pattern ? Stage::weights
                        // before RoPE, which rotates them to where they are put
                        : patch.part == PatchedPart::queries
                            ? normalizes ? Stage::normed_queries : Stage::queries
                        : patch.part == PatchedPart::keys   ? normalizes ? Stage::normed_keys : Stage::keys
                        : patch.part == PatchedPart::values ? Stage::values
                                                            : Stage::output;
    const bool is_of_group = patch.part == PatchedPart::keys || patch.part == PatchedPart::values;
    const arma::mat& numbers = *trace.at(stage, is_of_group ? patch.index * in_group : patch.index);
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t j = 0; j < numbers.n_cols && rows[i] && patch.position.value_or(i) == i; ++j)
        if (patch.part != PatchedPart::pattern || (*trace.at(Stage::mask))(i, j) != 0)
          cells.push_back({{stage, 0, patch.index, i, j}, numbers(*rows[i], j)});
  }
  std::ranges::sort(cells, {}, &attention::GivenCell::place);
  const auto again = std::ranges::unique(cells, {}, &attention::GivenCell::place);
  cells.erase(again.begin(), again.end());
}

/// Returns the addition of each head at a row, if heads are concatenated before one projection.
arma::fmat added_in(const attention::Model& model, const attention::Trace& trace, std::size_t row) {
  const auto* output = model.projections && model.projections->output ? &*model.projections->output : nullptr;
  const auto is_beyond_heads = [](const attention::GivenCell& cell) {
    return cell.place.stage > attention::Stage::contexts;
  };
  const bool is_sum = model.merge == attention::CombineRule::concatenate && output &&
                      model.given.stages.empty() && !bugs::has_bugs(model) &&
                      std::ranges::none_of(model.given.cells, is_beyond_heads);
  if (!is_sum || model.d_out() != model.n_heads * model.d_value()) return {};
  const arma::mat& weight = output->weight;
  const std::size_t d = model.d_value();
  arma::fmat added(model.n_heads, weight.n_cols, arma::fill::zeros);
  for (std::size_t h = 0; h < model.n_heads; ++h)
    if (!model.is_ablated(h))
      added.row(h) =
          in_float32(trace.at(attention::Stage::contexts, h).row(row) * weight.rows(h * d, h * d + d - 1));
  return added;
}

/// Returns the heads of an edited layer from its trace.
LayerHeads heads_of(const attention::Model& model, const attention::Trace& trace, std::size_t block,
                    const std::vector<std::size_t>& ids, std::size_t row) {
  LayerHeads layer;
  layer.is_edited = true;
  for (std::size_t head = 0; head < trace.n_heads(); ++head) {
    const arma::mat& weights = trace.at(attention::Stage::dropped_weights, head);
    layer.heads.push_back({transformer::max_pool(weights, block),
                           transformer::roles_of(transformer::RowBuffer(in_float32(weights)), ids)});
  }
  layer.added = added_in(model, trace, row);
  if (model.mask.masks_keys())
    layer.visible =
        std::make_shared<const arma::mat>(transformer::max_pool(*trace.at(attention::Stage::mask), block));
  return layer;
}

/// Computes an edited layer, on all processors if the fast engine covers it.
template <class Use>
void with_trace(const attention::Model& model, const Use& use) {
  if (!attention::fast::supports(model)) return use(attention::attend_checked(model, 0));
  attention::fast::Engine engine(1);
  engine.compute(model);
  use(engine.trace());
}

/// Returns the first layer in which two experiments differ, n_layers for none.
std::size_t first_difference(const Experiment& a, const Experiment& b, const transformer::Sizes& sizes) {
  for (std::size_t l = 0; l < sizes.n_layers; ++l) {
    const auto edit_a = a.layers.find(l), edit_b = b.layers.find(l);
    const auto patches = [l](const Experiment& of) {
      std::vector<transformer::Patch> found;
      std::ranges::copy_if(of.patches, std::back_inserter(found),
                           [l](const transformer::Patch& patch) { return patch.layer == l; });
      return found;
    };
    if (const auto patched = patches(a); patched != patches(b) || (!patched.empty() && a.first != b.first))
      return l;
    const bool is_edited = edit_a != a.layers.end(), was_edited = edit_b != b.layers.end();
    if (is_edited != was_edited || (is_edited && edit_a->second != edit_b->second) ||
        a.heads_off_in(l, n_heads_in(a, l, sizes)) != b.heads_off_in(l, n_heads_in(b, l, sizes)))
      return l;
  }
  return sizes.n_layers;
}

using LayerCallback =
    std::function<void(std::size_t layer, const attention::Model&, const attention::Trace&)>;

/// Computes the edited and patched layers of an experiment on the tokens of a reading, in order, except those
/// with known outputs; calls on_layer() with each. Their heads are ablated in their edited models.
std::vector<PassEdit> edits_of(const FullModel& model, const Experiment& experiment,
                               const transformer::PassRef& first, const std::vector<std::size_t>& ids,
                               const std::vector<std::string>& names,
                               std::map<std::size_t, std::shared_ptr<const arma::fmat>>& outputs,
                               const LayerCallback& on_layer, const CallContext& context) {
  std::set<std::size_t> layers;  // computed here
  for (const auto& [layer, edit] : experiment.layers) layers.insert(layer);
  std::vector<PassEdit> edits;
  for (const transformer::Patch& patch : experiment.patches)
    if (patch.is_of_attention())
      layers.insert(patch.layer);
    else
      edits.push_back(transformer::SetStream{patch, first,
                                             transformer::align(first->ids, ids, experiment.first->aligned)});
  for (const auto& [layer, head] : experiment.heads_off)
    if (!layers.contains(layer)) edits.push_back(transformer::AblatedHead{layer, head});
  transformer::PassRef pass;
  for (const std::size_t layer : layers) {
    auto& output = outputs[layer];
    if (!output) {
      const auto edit = experiment.layers.find(layer);
      // An attached model tells the rules of a layer that it has computed.
      const bool asks_rules = model.description().is_attached && edit == experiment.layers.end();
      pass = model.run(ids, edits, context, asks_rules ? layer + 1 : layer);
      const auto off =
          experiment.heads_off_in(layer, n_heads_in(experiment, layer, model.description().sizes));
      attention::Model after;
      if (edit != experiment.layers.end()) {
        after.sequences = {
            {names, arma::conv_to<arma::mat>::from(model.input(*pass, layer, context.progress))}};
        after.heads_off = off;
        after = edited(after, edit->second);
      } else {
        after = transformer::layer_model(model, *pass, layer, names, off, context.progress);
        give_patches(model, experiment, *first, ids, layer, after, context.progress);
      }
      attention::require(after, fmt::format("Layer {}: ", layer));
      with_trace(after, [&](const attention::Trace& trace) {
        output = std::make_shared<const arma::fmat>(in_float32(*trace.at(attention::Stage::output)));
        if (on_layer) on_layer(layer, after, trace);
      });
    }
    edits.push_back(transformer::SetOutput{layer, output});
  }
  return edits;
}

double max_head_attribution(const std::optional<LogitAttributions>& parts) {
  double largest = 0;
  if (!parts) return largest;
  for (const auto& layer : parts->heads)
    for (const double head : layer) largest = std::max(largest, std::abs(head));
  return largest;
}

/// Returns the direct logit attribution; nothing where it is unknown.
std::optional<LogitAttributions> attribution_of_token(const FullModel& model, const TextReading& reading,
                                                      std::size_t token, const CallContext& context) {
  std::vector<arma::fmat> added;
  for (const auto& layer : reading.layers) added.push_back(layer->added);
  const auto is_of_residual = [](const transformer::Patch& patch) {
    return patch.part == transformer::PatchedPart::residual;
  };
  if (!reading.place || !model.description().has_logit_attributions ||
      std::ranges::any_of(reading.experiment.patches, is_of_residual) ||
      std::ranges::any_of(added, [](const arma::fmat& layer) { return layer.empty(); }))
    return std::nullopt;
  return model.logit_attributions(*reading.pass, reading.place->row, token, added, context);
}

void read_heads(const FullModel& model, TextReading& reading, std::size_t layer, const CallContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  reading.layers[layer] = std::make_shared<const LayerHeads>(
      model.maps(*reading.pass, layer, reading.block, reading.row(), context));
  reading.maps_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<LensToken> lens_tokens(const FullModel& model, const arma::fmat& logits, std::size_t chosen,
                                   double temperature) {
  std::vector<LensToken> tokens(logits.n_rows);
  for (std::size_t l = 0; l < logits.n_rows; ++l) {
    const arma::frowvec row = logits.row(l);
    if (std::isnan(row[0])) continue;
    const Probabilities there(row, temperature);
    const std::size_t best = transformer::top_tokens(row, 1, model.description().n_tokens).front().id;
    tokens[l] = {transformer::token_name(model, best), there.of(best), there.of(chosen)};
  }
  return tokens;
}

}  // namespace

bool TextReading::is_filled() const {
  return std::ranges::all_of(layers, [](const auto& layer) { return layer->is_known(); });
}

void fill(const FullModel& model, TextReading& reading, std::size_t layer, const CallContext& context) {
  const auto lacks = [&](std::size_t l) { return !reading.layers[l]->is_known(); };
  if (!lacks(layer)) layer = 0;
  while (layer < reading.layers.size() && !lacks(layer)) ++layer;
  if (layer < reading.layers.size()) read_heads(model, reading, layer, context);
}

TextReading read(const FullModel& model, const Experiment& experiment, const TextReading* before,
                 const CallContext& context, std::optional<std::size_t> only_layer) {
  const auto& sizes = model.description().sizes;
  TextReading reading;
  reading.experiment = experiment;
  reading.tokens = tokens_of(model, experiment);
  reading.names = transformer::token_names(model, reading.tokens);
  const std::vector<std::size_t> ids = ids_of(reading.tokens);
  if (!model.description().no_prediction_reason.empty()) {
    reading.no_prediction_reason = "This model has nothing that predicts tokens.";
  } else {
    const transformer::PredictedPositions places = transformer::find_predicted_positions(model, ids);
    reading.no_prediction_reason = places.no_prediction_reason;
    if (!places.all.empty()) reading.place = places.all.front();
  }
  const std::size_t row = reading.place ? reading.place->row : ids.size() - 1;
  reading.block = block_for(ids.size(), sizes.n_layers * sizes.n_heads);
  if (before && before->pass->ids != ids) before = nullptr;

  if (!experiment.patches.empty()) {
    require_patches(model, experiment);
    reading.first = model.run(ids_of(tokens_of(model, experiment.unedited())), {}, context);
  }
  if (before) reading.maps_ms = before->maps_ms;
  reading.layers.resize(sizes.n_layers);
  const std::size_t n_same = before ? first_difference(before->experiment, experiment, sizes) : 0;
  for (std::size_t l = 0; l < n_same; ++l)
    if (before->layers[l]->is_known()) reading.layers[l] = before->layers[l];
  if (before)
    for (const auto& [layer, output] : before->outputs)
      if (layer < n_same) reading.outputs[layer] = output;
  const LayerCallback on_layer = [&](std::size_t layer, const attention::Model& of,
                                     const attention::Trace& trace) {
    reading.layers[layer] = std::make_shared<const LayerHeads>(heads_of(of, trace, reading.block, ids, row));
  };
  reading.pass = model.run(
      ids, edits_of(model, experiment, reading.first, ids, reading.names, reading.outputs, on_layer, context),
      context);
  if (before && before->pass->state() != reading.pass->state())
    return read(model, experiment, nullptr, context, only_layer);  // other parameters: nothing can be reused
  if (reading.place) reading.logits = model.lens(*reading.pass, row, context);
  if (reading.place && experiment.first)
    reading.unedited_logits = !experiment.is_edited() ? reading.logits.tail_rows(1).as_row()
                              : before && !before->unedited_logits.empty()
                                  ? before->unedited_logits
                                  : model.next(*model.run(ids, {}, context), row, context);
  for (std::size_t l = 0; l < sizes.n_layers; ++l) {
    if (!context.progress.should_continue()) throw Stopped();
    if (reading.layers[l]) continue;
    if (only_layer.value_or(l) == l)
      read_heads(model, reading, l, context);
    else
      reading.layers[l] = std::make_shared<const LayerHeads>();
  }
  return reading;
}

attention::Model unedited_layer(const FullModel& model, const TextReading& reading, std::size_t layer,
                                const StopToken& progress) {
  attention::Model unedited = transformer::layer_model(
      model, *reading.pass, layer, reading.names,
      reading.experiment.heads_off_in(layer, model.description().sizes.n_heads), progress);
  if (reading.first)
    give_patches(model, reading.experiment, *reading.first, reading.pass->ids, layer, unedited, progress);
  return unedited;
}

arma::frowvec edited_logits(const FullModel& model, const TextReading& reading, const Experiment& edited,
                            const transformer::PassRef& first, const CallContext& context) {
  auto outputs = reading.outputs;
  const std::size_t n_same = first_difference(reading.experiment, edited, model.description().sizes);
  outputs.erase(outputs.lower_bound(n_same), outputs.end());
  const auto edits = edits_of(model, edited, first, reading.pass->ids, reading.names, outputs, {}, context);
  const transformer::PassRef pass = model.run(reading.pass->ids, edits, context);
  if (pass->state() != reading.pass->state())
    throw Error("The model's parameters have changed since this text was read.");
  return model.next(*pass, reading.place->row, context);
}

AblationEffect ablation_effect(const FullModel& model, const TextReading& reading, const IndexPair& head,
                               std::size_t token, double temperature, const CallContext& context) {
  Experiment without = reading.experiment;
  without.heads_off.insert(head);
  const arma::frowvec logits = edited_logits(model, reading, without, reading.first, context);
  return {logits[token] - reading.logits(reading.logits.n_rows - 1, token),
          Probabilities(logits, temperature).of(token)};
}

LensReading read_lens(const FullModel& model, const TextReading& reading, transformer::LensKind kind,
                      std::size_t chosen, double temperature, const CallContext& context) {
  LensReading result;
  try {
    const transformer::Lens lens = transformer::open_lens(model, kind, context.progress);
    const auto [after, between] =
        transformer::lens_logits(model, *reading.pass, reading.row(), lens, context);
    result.after = lens_tokens(model, after, chosen, temperature);
    result.between = lens_tokens(model, between, chosen, temperature);
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    result.error = error.what();
  }
  return result;
}

Prediction predict_next(const FullModel& model, const TextReading& now, const TextReading& before,
                        std::optional<std::size_t> token, double temperature, const CallContext& context) {
  Prediction result;
  if (now.logits.empty()) return result;
  const arma::frowvec logits = now.logits.tail_rows(1), logits_before = before.logits.tail_rows(1);
  const Probabilities probable(logits, temperature), was_probable(logits_before, temperature);
  const auto next = [&](std::size_t id) {
    return NextToken{id, transformer::token_name(model, id), probable.of(id), was_probable.of(id)};
  };
  const std::size_t n_tokens = std::min<std::size_t>(model.description().n_tokens, logits.n_elem);
  result.other_probability = 1;
  constexpr std::size_t n_listed = 10;
  for (const auto& best : transformer::top_tokens(logits, n_listed, n_tokens)) {
    result.candidates.push_back(next(best.id));
    result.other_probability -= result.candidates.back().now;
  }
  result.other_probability = std::max(0.0, result.other_probability);
  result.n_other_tokens = n_tokens - result.candidates.size();
  const bool is_chosen = token && *token < n_tokens;
  result.chosen = next(is_chosen ? *token : transformer::top_tokens(logits_before, 1, n_tokens).front().id);
  result.logit = logits[result.chosen.id];
  result.lens = lens_tokens(model, now.logits, result.chosen.id, temperature);
  result.attribution = attribution_of_token(model, now, result.chosen.id, context);
  result.attribution_before =
      &now == &before ? result.attribution : attribution_of_token(model, before, result.chosen.id, context);
  result.max_attribution =
      std::max(max_head_attribution(result.attribution), max_head_attribution(result.attribution_before));
  return result;
}

WatchedDifference watched_difference(const FullModel& model, const TextReading& now,
                                     const TextReading& before) {
  WatchedDifference result;
  for (const TextReading* reading : {&before, &now})
    if (!reading->no_prediction_reason.empty()) return result.error = reading->no_prediction_reason, result;
  const std::size_t n_tokens = model.description().n_tokens;
  const arma::frowvec first = before.logits.tail_rows(1), edited = now.logits.tail_rows(1);
  const auto top = [&](const arma::frowvec& logits) {
    return transformer::top_tokens(logits, 1, n_tokens).front();
  };
  const auto named = [&](const arma::frowvec& logits) {
    const transformer::TokenScore best = top(logits);
    return LensToken{transformer::token_name(model, best.id), Probabilities(logits).of(best.id), 0};
  };
  result.first_top = named(first), result.second_top = named(now.unedited_logits);
  result.now_top = named(edited);
  try {
    const FirstPrompt& wanted = *now.experiment.first;
    const auto token = [&](const std::string& text, const char* option, const arma::frowvec& logits) {
      return text.empty() ? top(logits).id : transformer::answer_token(model, text, option);
    };
    result.answer = token(wanted.answer, "answer", first);
    result.against = token(wanted.against, "against", now.unedited_logits);
  } catch (const Error& error) {
    result.error = error.what();
    return result;
  }
  result.answer_text = transformer::token_name(model, result.answer);
  result.against_text = transformer::token_name(model, result.against);
  if (result.answer == result.against)
    result.error = "Two tokens are watched, but " + result.answer_text + " is most probable after both.";
  const auto difference = [&](const auto& logits) {
    return static_cast<double>(logits[result.answer]) - static_cast<double>(logits[result.against]);
  };
  result.first = difference(first), result.second = difference(now.unedited_logits);
  result.now = difference(edited);
  for (std::size_t l = 0; l < now.logits.n_rows; ++l) {
    result.first_lens.push_back(difference(arma::frowvec(before.logits.row(l))));
    result.now_lens.push_back(difference(arma::frowvec(now.logits.row(l))));
  }
  return result;
}

std::vector<std::vector<HeadRoles>> roles_on_random_tokens(const FullModel& model,
                                                           const CallContext& context) {
  constexpr std::size_t n_rows = 4, max_row_length = 48, min_row_length = 8;
  constexpr std::uint64_t seed = 123;
  const transformer::Description& of = model.description();
  const auto& sizes = of.sizes;
  const std::size_t n = std::min(max_row_length, sizes.n_context / 2);
  if (!of.causal || n < min_row_length) return {};
  std::vector<std::vector<HeadRoles>> mean(sizes.n_layers, std::vector<HeadRoles>(sizes.n_heads));
  random::Generator generator(seed);
  for (std::size_t row = 0; row < n_rows; ++row) {
    std::vector<std::size_t> ids;
    for (int tries = 0; ids.size() < n && tries < 100'000; ++tries) {
      const auto n_tokens = static_cast<std::int64_t>(std::min(of.n_tokens, sizes.n_vocabulary));
      const auto id = static_cast<std::size_t>(generator.randint(1, 0, n_tokens).front());
      if (!model.token(id).is_special) ids.push_back(id);
    }
    if (ids.empty()) return {};
    ids.reserve(2 * ids.size());
    for (std::size_t k = 0, once = ids.size(); k < once; ++k) ids.push_back(ids[k]);
    const transformer::PassRef pass = model.run(ids, {}, context);
    for (std::size_t l = 0; l < sizes.n_layers; ++l) {
      const LayerHeads layer = model.maps(*pass, l, ids.size(), ids.size() - 1, context);
      for (std::size_t h = 0; h < sizes.n_heads; ++h) {
        const HeadRoles& roles = layer.heads[h].roles;
        HeadRoles& sum = mean[l][h];
        constexpr double share = 1.0 / n_rows;
        sum.previous += roles.previous * share;
        sum.first += roles.first * share;
        sum.itself += roles.itself * share;
        sum.same_token = sum.same_token.value_or(0) + roles.same_token.value_or(0) * share;
        sum.induction = sum.induction.value_or(0) + roles.induction.value_or(0) * share;
        sum.entropy_bits += roles.entropy_bits * share;
      }
    }
  }
  return mean;
}

}  // namespace core::experiment
