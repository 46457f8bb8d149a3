#include "core/circuits/patching.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/error.hpp"

namespace core::circuits {
namespace {

using arma::mat;

/// Returns the row of each prompt whose next token, or whose masked token, is predicted.
std::pair<std::size_t, std::size_t> predicted_rows(const Float64Model& model, const PromptPair& prompts) {
  const Transformer& of = model.model();
  std::size_t rows[2];
  for (std::size_t k = 0; k < 2; ++k) {
    const auto places = find_predicted_positions(of, k == 0 ? prompts.clean : prompts.corrupt);
    if (!places.no_prediction_reason.empty())
      throw Error(of.description().path.string() + ": " + places.no_prediction_reason);
    rows[k] = places.all.front().row;
  }
  if (rows[0] != rows[1] && prompts.rows.empty())
    throw Error(
        fmt::format("corrupt prompt: expected the masked token at position {}, as in the clean one, got {}",
                    rows[0], rows[1]));
  return {rows[0], rows[1]};
}

void require_prompts(const transformer::Description& model, const PromptPair& prompts,
                     const PatchPlan& plan) {
  for (const auto* ids : {&prompts.clean, &prompts.corrupt}) transformer::require_tokens(model, *ids);
  if (prompts.rows.empty() && prompts.clean.size() != prompts.corrupt.size())
    throw Error(fmt::format("corrupt prompt: expected as many tokens as the clean one, {}, got {}",
                            prompts.clean.size(), prompts.corrupt.size()));
  if (prompts.clean == prompts.corrupt)
    throw Error("corrupt prompt: expected other tokens than those of the clean one, got the same");
  if (prompts.answer == prompts.against)
    throw Error("against: expected another token than the answer, got the same");
  if (plan.part == PatchedPart::pattern && !prompts.rows.empty() &&
      !transformer::is_one_by_one(prompts.rows, prompts.clean.size()))
    throw Error("pattern: expected prompts that are aligned one by one");
}

void require_receiver(const Float64Model& model, const PatchPlan& plan) {
  if (!plan.receiver) return;
  const auto& sizes = model.rules().sizes;
  const Patch& to = *plan.receiver;
  if (to.part != PatchedPart::queries && to.part != PatchedPart::keys && to.part != PatchedPart::values)
    throw Error("through: expected queries, keys or values of a head");
  const std::size_t n_heads = transformer::n_parts(sizes, to.part);
  if (to.layer == 0 || to.layer >= sizes.n_layers || to.index >= n_heads)
    throw Error(fmt::format("through: expected a layer from 1 to {} and a head below {}, got {}.{}",
                            sizes.n_layers - 1, n_heads, to.layer, to.index));
}

bool has_positions(const PatchPlan& plan) {
  return plan.by_position || plan.part == PatchedPart::residual;
}

using Cells = std::vector<std::pair<std::size_t, std::size_t>>;

/// Returns a map without numbers and its cells at aligned positions, the last layers first, as they are
/// quick.
std::pair<PatchMap, Cells> empty_map(const transformer::Sizes& sizes, const PromptPair& prompts,
                                     const PatchPlan& plan, double clean, double corrupt) {
  const std::size_t n = transformer::n_parts(sizes, plan.part);
  PatchMap map{plan, clean, corrupt, {}, has_positions(plan) ? n : 1};
  if (clean == corrupt)
    throw Error(fmt::format(
        "corrupt prompt: expected another logit difference than that of the clean one, got the same, {}",
        clean));
  const std::size_t n_layers = plan.receiver ? plan.receiver->layer : sizes.n_layers;
  map.recovered.set_size(n_layers * map.n_parts, has_positions(plan) ? prompts.corrupt.size() : n);
  map.recovered.fill(arma::datum::nan);
  Cells cells;
  for (std::size_t k = map.recovered.n_elem; k-- > 0;)
    if (const std::size_t column = k % map.recovered.n_cols;
        !has_positions(plan) || prompts.rows.empty() || prompts.rows[column])
      cells.emplace_back(k / map.recovered.n_cols, column);
  map.n_known = map.recovered.n_elem - cells.size();
  return {std::move(map), std::move(cells)};
}

}  // namespace

Patch PatchMap::patch_at(std::size_t row, std::size_t column) const {
  Patch patch{row / n_parts, plan.part, has_positions(plan) ? row % n_parts : column};
  if (has_positions(plan)) patch.position = column;
  return patch;
}

std::string PatchMap::row_name(std::size_t row) const {
  return n_parts == 1 ? fmt::format("layer {}", row) : fmt::format("{}.{}", row / n_parts, row % n_parts);
}

PatchMap patch(const Float64Model& model, const PromptPair& prompts, const PatchPlan& plan,
               const CallContext& context, const std::function<void(const PatchMap&)>& on_more) {
  constexpr std::size_t n_portions = 6;
  require_prompts(model.model().description(), prompts, plan);
  require_receiver(model, plan);
  const auto& sizes = model.rules().sizes;
  const auto [clean_row, row] = predicted_rows(model, prompts);
  const mat clean = model.embedded(prompts.clean, context),
            corrupt = model.embedded(prompts.corrupt, context);
  std::vector<mat> before, clean_before;  // residual streams before each layer
  const ForkResult plain = run_forks(model, corrupt, &clean, {}, 0, sizes.n_layers, context,
                                     [&](const Layer64&, const LayerPass& pass, const LayerPass* source) {
                                       before.push_back(pass.residual),
                                           clean_before.push_back(source->residual);
                                     });
  const auto differences = [&](const std::vector<arma::rowvec>& ends) {
    mat rows(ends.size(), sizes.d_model);
    for (std::size_t k = 0; k < ends.size(); ++k) rows.row(k) = ends[k];
    const mat logits = model.logits(rows, {prompts.answer, prompts.against}, context);
    require_finite(logits, model.model());
    return arma::vec(logits.col(0) - logits.col(1));
  };
  const arma::vec both = differences({plain.source.row(clean_row), plain.base.row(row)});
  auto [result, cells] = empty_map(sizes, prompts, plan, both[0], both[1]);
  const std::size_t n_skipped = result.n_known;
  std::size_t n_steps = 0, n_done = 0;  // layers of forks
  for (const auto& cell : cells) n_steps += sizes.n_layers - cell.first / result.n_parts;
  const std::size_t at_once = forks_at_once(model.rules(), prompts.corrupt.size());
  for (std::size_t first = 0; first < cells.size();) {
    std::vector<Fork> forks;
    std::size_t n_portion = 0;
    for (std::size_t k = first; k < cells.size() && forks.size() < at_once; ++k) {
      if (n_portion > n_steps / n_portions) break;
      forks.push_back({result.patch_at(cells[k].first, cells[k].second), {}, plan.receiver});
      n_portion += sizes.n_layers - forks.back().patch.layer;
    }
    const std::size_t lowest = forks.back().patch.layer;
    const ForkResult ends = run_forks(
        model, before[lowest], &clean_before[lowest], forks, lowest, sizes.n_layers, context, {},
        [&](std::size_t n_forks) {
          n_done += n_forks;
          context.progress.report(static_cast<double>(n_done) / static_cast<double>(n_steps));
        },
        prompts.rows);
    std::vector<arma::rowvec> rows;
    for (const mat& fork : ends.forks) rows.emplace_back(fork.row(row));
    const arma::vec patched = differences(rows);
    for (std::size_t k = 0; k < forks.size(); ++k)
      result.recovered(cells[first + k].first, cells[first + k].second) =
          (patched[k] - result.corrupt) / (result.clean - result.corrupt);
    first += forks.size();
    result.n_known = n_skipped + first;
    if (on_more) on_more(result);
  }
  return result;
}

PatchMap patch(const transformer::FullModel& model, const experiment::Experiment& both,
               const PromptPair& prompts, const PatchPlan& plan, const CallContext& context,
               const std::function<void(const PatchMap&)>& on_more) {
  if (const auto* own = dynamic_cast<const transformer::Transformer*>(&model))
    return patch(Float64Model(*own), prompts, plan, context, on_more);
  require_prompts(model.description(), prompts, plan);
  if (plan.receiver) throw Error("through: expected a model in a file or a folder, got an attached one");
  experiment::Experiment patched{.text = both.text, .made = both.made, .first = both.first};
  const auto clean = experiment::read(model, both.unedited(), nullptr, context, 0),
             corrupt = experiment::read(model, patched, &clean, context, 0);
  for (const experiment::TextReading* reading : {&clean, &corrupt})
    if (!reading->place)
      throw Error(model.description().path.string() + ": " + reading->no_prediction_reason);
  const auto difference = [&](const arma::frowvec& logits) {
    return static_cast<double>(logits[prompts.answer]) - static_cast<double>(logits[prompts.against]);
  };
  auto [map, cells] =
      empty_map(model.description().sizes, prompts, plan, difference(clean.logits.tail_rows(1).as_row()),
                difference(corrupt.logits.tail_rows(1).as_row()));
  for (std::size_t k = 0; k < cells.size(); ++k) {
    if (!context.progress.should_continue()) throw Stopped();
    patched.patches = {map.patch_at(cells[k].first, cells[k].second)};
    if (k == 0) experiment::require_patches(model, patched);  // the parts are alike
    const double now = difference(experiment::edited_logits(model, corrupt, patched, clean.pass, context));
    map.recovered(cells[k].first, cells[k].second) = (now - map.corrupt) / (map.clean - map.corrupt);
    ++map.n_known;
    context.progress.report(static_cast<double>(k + 1) / static_cast<double>(cells.size()));
    if (on_more) on_more(map);
  }
  return std::move(map);
}

}  // namespace core::circuits
