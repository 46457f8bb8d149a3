#include "core/transformer/layer_model.hpp"

#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/text/code_points.hpp"

namespace core::transformer {
namespace {

arma::mat in_float64(const arma::fmat& numbers) {
  return arma::conv_to<arma::mat>::from(numbers);
}

/// Columns of a projection, and of its bias.
attention::Linear columns(const Affine& numbers, std::size_t from, std::size_t count) {
  attention::Linear linear{in_float64(numbers.weight.cols(from, from + count - 1)), std::nullopt};
  if (!numbers.bias.empty()) linear.bias = in_float64(numbers.bias.cols(from, from + count - 1));
  return linear;
}

}  // namespace

void require_plain_layer(const Transformer& model, std::size_t layer) {
  const Architecture& rules = model.architecture;
  const auto refuse = [&](const std::string& what) {
    throw Error(model.path.string() + ": layer " + std::to_string(layer) + " " + what +
                ", which a layer that is looked at cannot do yet; predict, heads and generate can");
  };
  if (layer >= rules.sizes.n_layers)
    throw Error(model.path.string() + ": expected a layer below " + std::to_string(rules.sizes.n_layers) +
                ", got " + std::to_string(layer));
  if (rules.rotary) refuse("turns queries and keys by their positions (rotary)");
  if (rules.sizes.n_groups != rules.sizes.n_heads) refuse("has heads that share their keys and values");
}

attention::Model layer_model(const Transformer& model, const Pass& pass, std::size_t layer,
                             const std::vector<std::string>& tokens, const Interventions& interventions) {
  require_plain_layer(model, layer);
  const Architecture& rules = model.architecture;
  const std::size_t d = rules.sizes.n_heads * rules.sizes.d_head;
  const Token progress;
  const auto weights = model.weights->layer(layer, progress);
  attention::Model result;
  result.sequences = {{tokens, in_float64(pass.layers[layer]->attention_input)}};
  const Affine& fused = weights->queries_keys_values;
  result.projections =
      attention::Projections{columns(fused, 0, d), columns(fused, d, d), columns(fused, 2 * d, d),
                             columns(weights->output, 0, rules.sizes.d_model)};
  result.n_heads = rules.sizes.n_heads;
  if (rules.scales_by_layer) {
    const double by = std::sqrt(static_cast<double>(rules.sizes.d_head)) * static_cast<double>(layer + 1);
    result.scale = {attention::ScaleRule::factor, 1 / by};
  }
  result.mask.causal = rules.causal;
  if (const std::size_t window = window_of(rules, layer)) result.mask.window.left = window - 1;
  for (const auto& [of_layer, head] : interventions.heads_off)
    if (of_layer == layer) result.heads_off.push_back(head);
  attention::require(result, model.path.string() + ": ");
  return result;
}

std::vector<std::string> token_names(const tokenizers::Tokenizer& tokenizer,
                                     const std::vector<tokenizers::TextToken>& tokens) {
  std::vector<std::string> names;
  for (const tokenizers::TextToken& token : tokens) {
    std::string name = token.is_put_in ? tokenizer.piece(token.id) : tokenizer.bytes(token.id);
    if (!text::is_utf8(name)) {
      std::string hex;
      for (const char byte : name) {
        constexpr const char* digits = "0123456789ABCDEF";
        const auto value = static_cast<unsigned char>(byte);
        hex += std::string("<") + digits[value >> 4] + digits[value & 15] + ">";
      }
      name = hex;
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace core::transformer
