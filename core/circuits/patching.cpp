#include "core/circuits/patching.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/error.hpp"

namespace core::circuits {
namespace {

using arma::mat;

/// Returns the row whose next token, or whose masked token, the prompts predict.
std::size_t predicted_row(const Float64Model& model, const PromptPair& prompts) {
  const Transformer& of = model.model();
  std::size_t rows[2];
  for (std::size_t k = 0; k < 2; ++k) {
    const auto places = find_predicted_positions(of, k == 0 ? prompts.clean : prompts.corrupt);
    if (!places.no_prediction_reason.empty())
      throw Error(of.description().path.string() + ": " + places.no_prediction_reason);
    rows[k] = places.all.front().row;
  }
  if (rows[0] != rows[1])
    throw Error(
        fmt::format("corrupt prompt: expected the masked token at position {}, as in the clean one, got {}",
                    rows[0], rows[1]));
  return rows[0];
}

void require_prompts(const Float64Model& model, const PromptPair& prompts) {
  for (const auto* ids : {&prompts.clean, &prompts.corrupt})
    transformer::require_tokens(model.model().description(), *ids);
  if (prompts.clean.size() != prompts.corrupt.size())
    throw Error(fmt::format("corrupt prompt: expected as many tokens as the clean one, {}, got {}",
                            prompts.clean.size(), prompts.corrupt.size()));
  if (prompts.clean == prompts.corrupt)
    throw Error("corrupt prompt: expected other tokens than those of the clean one, got the same");
  if (prompts.answer == prompts.against)
    throw Error("against: expected another token than the answer, got the same");
}

void require_receiver(const Float64Model& model, const PatchPlan& plan) {
  if (!plan.receiver) return;
  const auto& sizes = model.rules().sizes;
  const Patch& to = *plan.receiver;
  if (to.part != PatchedPart::queries && to.part != PatchedPart::keys && to.part != PatchedPart::values)
    throw Error("receiver: expected queries, keys or values of a head");
  const std::size_t n_heads = transformer::n_parts(sizes, to.part);
  if (to.layer == 0 || to.layer >= sizes.n_layers || to.index >= n_heads)
    throw Error(fmt::format("receiver: expected a layer from 1 to {} and a head below {}, got {}.{}",
                            sizes.n_layers - 1, n_heads, to.layer, to.index));
}

}  // namespace

Patch PatchMap::patch_at(std::size_t row, std::size_t column) const {
  const bool has_positions = plan.by_position || plan.part == PatchedPart::residual;
  Patch patch{row / n_parts, plan.part, has_positions ? row % n_parts : column};
  if (has_positions) patch.position = column;
  return patch;
}

std::string PatchMap::row_name(std::size_t row) const {
  return n_parts == 1 ? fmt::format("layer {}", row) : fmt::format("{}.{}", row / n_parts, row % n_parts);
}

PatchMap patch(const Float64Model& model, const PromptPair& prompts, const PatchPlan& plan,
               const CallContext& context, const std::function<void(const PatchMap&)>& on_more) {
  constexpr std::size_t n_portions = 6;
  require_prompts(model, prompts);
  require_receiver(model, plan);
  const auto& sizes = model.rules().sizes;
  const std::size_t row = predicted_row(model, prompts), n_tokens = prompts.clean.size(),
                    n = transformer::n_parts(sizes, plan.part);
  const bool has_positions = plan.by_position || plan.part == PatchedPart::residual;
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
  const arma::vec both = differences({plain.source.row(row), plain.base.row(row)});
  PatchMap result{plan, both[0], both[1], {}, has_positions ? n : 1};
  if (result.clean == result.corrupt)
    throw Error(fmt::format(
        "corrupt prompt: expected another logit difference than that of the clean one, got the same, {}",
        result.clean));
  const std::size_t n_layers = plan.receiver ? plan.receiver->layer : sizes.n_layers;
  result.recovered.set_size(n_layers * result.n_parts, has_positions ? n_tokens : n);
  result.recovered.fill(arma::datum::nan);
  std::vector<std::pair<std::size_t, std::size_t>> cells;  // the last layers first, as they are quick
  for (std::size_t k = result.recovered.n_elem; k-- > 0;)
    cells.emplace_back(k / result.recovered.n_cols, k % result.recovered.n_cols);
  std::size_t n_steps = 0, n_done = 0;  // layers of forks
  for (const auto& cell : cells) n_steps += sizes.n_layers - cell.first / result.n_parts;
  const std::size_t at_once = forks_at_once(model.rules(), n_tokens);
  for (std::size_t first = 0; first < cells.size();) {
    std::vector<Fork> forks;
    std::size_t n_portion = 0;
    for (std::size_t k = first; k < cells.size() && forks.size() < at_once; ++k) {
      if (n_portion > n_steps / n_portions) break;
      forks.push_back({result.patch_at(cells[k].first, cells[k].second), {}, plan.receiver});
      n_portion += sizes.n_layers - forks.back().patch.layer;
    }
    const std::size_t lowest = forks.back().patch.layer;
    const ForkResult ends =
        run_forks(model, before[lowest], &clean_before[lowest], forks, lowest, sizes.n_layers, context, {},
                  [&](std::size_t n_forks) {
                    n_done += n_forks;
                    context.progress.report(static_cast<double>(n_done) / static_cast<double>(n_steps));
                  });
    std::vector<arma::rowvec> rows;
    for (const mat& fork : ends.forks) rows.emplace_back(fork.row(row));
    const arma::vec patched = differences(rows);
    for (std::size_t k = 0; k < forks.size(); ++k)
      result.recovered(cells[first + k].first, cells[first + k].second) =
          (patched[k] - result.corrupt) / (result.clean - result.corrupt);
    first += forks.size();
    result.n_known = first;
    if (on_more) on_more(result);
  }
  return result;
}

}  // namespace core::circuits
