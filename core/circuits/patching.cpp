#include "core/circuits/patching.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"

namespace core::circuits {
namespace {

using arma::mat;

mat embedded(const Float64Model& model, const std::vector<std::size_t>& ids, const CallContext& context) {
  mat sum(ids.size(), model.rules().sizes.d_model, arma::fill::zeros);
  for (const StreamSummand& part : model.embed(ids, context)) sum += part.rows;
  return sum;
}

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

}  // namespace

std::span<const NamedPart> parts() {
  static constexpr NamedPart all[] = {
      {"head", PatchedPart::head}, {"pattern", PatchedPart::pattern},  {"queries", PatchedPart::queries},
      {"keys", PatchedPart::keys}, {"values", PatchedPart::values},    {"attention", PatchedPart::attention},
      {"mlp", PatchedPart::mlp},   {"residual", PatchedPart::residual}};
  return all;
}

const NamedPart* find_part(std::string_view name) {
  const auto found = std::ranges::find(parts(), name, &NamedPart::name);
  return found == parts().end() ? nullptr : &*found;
}

std::size_t patches_in_layer(const Float64Model& model, PatchedPart part, std::size_t n_tokens) {
  switch (part) {
    case PatchedPart::head:
    case PatchedPart::pattern:
    case PatchedPart::queries:
      return model.rules().sizes.n_heads;
    case PatchedPart::keys:
    case PatchedPart::values:
      return model.rules().sizes.kv_heads;
    case PatchedPart::attention:
    case PatchedPart::mlp:
      return 1;
    case PatchedPart::residual:
      break;
  }
  return n_tokens;
}

PatchMap patch(const Float64Model& model, const PromptPair& prompts, PatchedPart part,
               const CallContext& context) {
  require_prompts(model, prompts);
  const std::size_t row = predicted_row(model, prompts), n_layers = model.rules().sizes.n_layers,
                    n_tokens = prompts.clean.size(), n = patches_in_layer(model, part, n_tokens),
                    at_once = forks_at_once(model.rules(), n_tokens);
  const mat clean = embedded(model, prompts.clean, context),
            corrupt = embedded(model, prompts.corrupt, context);
  PatchMap result;
  result.recovered.set_size(n_layers, n);
  for (std::size_t first = 0; first < n_layers * n; first += at_once) {
    std::vector<Fork> forks;
    for (std::size_t k = first; k < std::min(first + at_once, n_layers * n); ++k)
      forks.push_back({k / n, part, k % n});
    const ForkResult ends = run_forks(model, corrupt, &clean, forks, n_layers, context);
    mat rows(forks.size() + 2, model.rules().sizes.d_model);
    rows.row(0) = ends.source.row(row), rows.row(1) = ends.base.row(row);
    for (std::size_t k = 0; k < forks.size(); ++k) rows.row(k + 2) = ends.forks[k].row(row);
    const mat logits = model.logits(rows, {prompts.answer, prompts.against}, context);
    require_finite(logits, model.model());
    const arma::vec differences = logits.col(0) - logits.col(1);
    result.clean = differences[0], result.corrupt = differences[1];
    for (std::size_t k = 0; k < forks.size(); ++k)
      result.recovered(forks[k].layer, forks[k].index) =
          (differences[k + 2] - result.corrupt) / (result.clean - result.corrupt);
  }
  if (result.clean == result.corrupt)
    throw Error(fmt::format(
        "corrupt prompt: expected another logit difference than that of the clean one, got the same, {}",
        result.clean));
  return result;
}

std::size_t answer_token(const Transformer& model, const std::string& text, const std::string& option) {
  std::vector<std::size_t> ids;
  try {
    for (const tokenizers::TextToken& token : model.tokenize(text))
      if (!token.is_inserted) ids.push_back(token.id);
  } catch (const Error& error) {
    throw Error(option + ": " + error.what());
  }
  if (ids.size() == 1 && model.token(ids[0]).bytes == text) return ids[0];
  // A tokenizer that begins each text with a space has no other way to spell a token without one.
  for (std::size_t id = 0; id < model.description().n_tokens; ++id)
    if (const auto token = model.token(id); token.bytes == text && !token.is_special) return id;
  const std::string names = core::text::joined(
      ids, ", ", [&](std::size_t id) { return "'" + core::text::printable(model.token(id).bytes) + "'"; });
  throw Error(
      fmt::format("{}: expected one token, got {}{}", option, ids.size(), names.empty() ? "" : ": " + names));
}

}  // namespace core::circuits
