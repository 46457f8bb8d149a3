#include "core/model/layer_model.hpp"

#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/model/blocks.hpp"

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

void require_layer(const Transformer& model, std::size_t layer) {
  if (layer >= model.architecture.sizes.n_layers)
    throw Error(model.path.string() + ": expected a layer below " +
                std::to_string(model.architecture.sizes.n_layers) + ", got " + std::to_string(layer));
}

attention::Model layer_without_text(const Transformer& model, std::size_t layer) {
  require_layer(model, layer);
  const Architecture& rules = model.architecture;
  const Sizes& sizes = rules.sizes;
  const std::size_t d = sizes.n_heads * sizes.d_head, d_keys = sizes.n_groups * sizes.d_head;
  const Token progress;
  const auto weights = model.weights->layer(layer, progress);
  attention::Model result;
  result.sequences.resize(1);
  const Affine& fused = weights->queries_keys_values;
  result.projections =
      attention::Projections{columns(fused, 0, d), columns(fused, d, d_keys),
                             columns(fused, d + d_keys, d_keys), columns(weights->output, 0, sizes.d_model)};
  result.n_heads = sizes.n_heads;
  if (sizes.n_groups != sizes.n_heads) result.n_kv_heads = sizes.n_groups;
  result.additions.positions.rotary = rules.rotary;
  if (!weights->query_norm.is_empty() && !weights->key_norm.is_empty())
    result.additions.normalise =
        attention::HeadNorm{attention::NormRule::rms, in_float64(weights->query_norm.weight),
                            in_float64(weights->key_norm.weight), rules.norm.epsilon};
  if (rules.scales_by_layer) {
    const double by = std::sqrt(static_cast<double>(rules.sizes.d_head)) * static_cast<double>(layer + 1);
    result.scale = {attention::ScaleRule::factor, 1 / by};
  }
  result.mask.causal = rules.causal;
  if (const std::size_t window = window_of(rules, layer)) result.mask.window.left = window - 1;
  return result;
}

attention::Model layer_model(const Transformer& model, const Pass& pass, std::size_t layer,
                             const std::vector<std::string>& tokens, const Interventions& interventions) {
  attention::Model result = layer_without_text(model, layer);
  result.sequences = {{tokens, in_float64(pass.layers[layer]->attention_input)}};
  result.heads_off = heads_off_in(interventions.heads_off, layer, result.n_heads);
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

std::string token_name(const tokenizers::Tokenizer& tokenizer, std::size_t id) {
  return token_names(tokenizer, {{id, "", false, false}}).front();
}

}  // namespace core::transformer
