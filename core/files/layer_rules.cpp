#include "core/files/layer_rules.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace core::formats::checkpoints {
namespace {

/// "500000" and not "5e+05".
std::string base_text(double base) {
  constexpr double largest = 1e15;
  const bool is_whole = std::trunc(base) == base && base < largest;
  return is_whole ? std::to_string(static_cast<long long>(base)) : text::number_text(base);
}

std::string words_of(const LayerRotary& layer) {
  const positions::Rotary& rotary = layer.rotary;
  std::string words = "rotary positions, base " + base_text(rotary.base) + ", pairs of " +
                      (rotary.pairs == positions::Pairs::halves ? "halves" : "neighbours");
  if (rotary.dimensions)
    words += ", " + std::to_string(*rotary.dimensions) + " columns of a head";
  else if (layer.fraction != 1)
    words += ", " + text::number_text(layer.fraction) + " of the columns";
  const positions::Scaling& scaling = rotary.scaling;
  if (scaling.rule != positions::ScalingRule::none)
    words += std::string(scaling.rule == positions::ScalingRule::linear ? ", linear" : ", Llama 3's") +
             " scaling by " + text::number_text(scaling.factor);
  return words;
}

std::string words_of(const LayerBiasTable& bias) {
  return "relative position biases of " + bias.table + ", distances up to " +
         std::to_string(bias.max_distance) + (bias.bidirectional ? ", both ways" : ", of earlier keys");
}

/// Finds the rules one after the other, and says how each is known.
class RulesFinder {
 public:
  RulesFinder(LayerRules& rules, std::span<const TensorInfo> tensors, const Layer& layer, const Config& all,
              std::span<const std::string> ignored)
      : rules_(rules),
        tensors_(tensors),
        layer_(layer),
        config_(part_for(all, layer.prefix)),
        positions_(config_.positions),
        ignored_(ignored),
        type_(config_.model_type.empty() ? all.model_type : config_.model_type),
        weight_(text::lower(layer.mapping.query.weights.front())),
        side_(side_of(weight_)),
        index_(number_of(layer)) {
    rules_.family = config_.family ? config_.family : all.family;
    by_config_ = rules_.family != nullptr;
  }

  void find(const std::string& place) {
    const TensorInfo* weight = info(layer_.mapping.query.weights.front());
    const Shape shape = weight ? weight->shape : Shape();
    if (!by_config_) rules_.family = family_by_names(shape);
    if (!by_config_ && !type_.empty())
      rules_.assumed.push_back("that model_type \"" + type_ +
                               "\", which is not known, is as its names say (" + layer_.naming->name + ")");
    rules_.heads = config_.heads;
    const auto& of_side = side_ == Side::decoder ? config_.heads.of_decoder : config_.heads.of_encoder;
    if (side_ != Side::none && of_side) rules_.heads.n = of_side;
    find_mask();
    const auto features = features_by_tensors(tensors_, layer_, rules_.is_cross);
    if (!rules_.is_cross)  // whose keys have no places among the queries
      find_positions(std::ranges::find(features, std::string("rotary")) != features.end());
    if (positions_.softcap && wanted("cap")) {
      rules_.softcap = positions_.softcap;
      rules_.known.push_back("a cap on the scores");
    }
    find_head_norms();
    find_sink();
    if (positions_.clipped) lacks("clip");
    for (const char* name : features)
      if (!is_found(name)) lacks(name);
    cut_fused(shape, place);
    rules_.norm_before =
        rules_.family ? rules_.family->norm.place == NormPlace::before : has_norm_before(tensors_, layer_);
  }

 private:
  const TensorInfo* info(const std::string& name) const {
    const auto found = std::ranges::find(tensors_, name, &TensorInfo::name);
    return found != tensors_.end() ? &*found : nullptr;
  }
  const TensorInfo* info(const std::string& name, std::size_t n_dimensions) const {
    const TensorInfo* found = info(name);
    return found && found->shape.size() == n_dimensions ? found : nullptr;
  }

  const Family* family_by_names(const Shape& shape) const {
    const Family* family = family_by_weight(layer_.mapping.query.weights.front());
    if (!family && *layer_.naming->family) family = &family_named(layer_.naming->family);
    if (!family || layer_.mapping.query.n_parts == 1 || shape.size() != 2) return family;
    // Of fused weights, those that are no three squares have keys and values of fewer heads.
    const bool is_three_squares = std::max(shape[0], shape[1]) == 3 * std::min(shape[0], shape[1]);
    return !is_three_squares && *family->if_grouped ? &family_named(family->if_grouped) : family;
  }

  void lacks(const char* name) {
    const Feature* feature = &feature_named(name);
    if (std::ranges::find(rules_.not_supported, feature) == rules_.not_supported.end())
      rules_.not_supported.push_back(feature);
  }

  /// Whether something is to be computed; what a person ignores is said.
  bool wanted(const char* name) {
    const bool is_ignored = std::ranges::find(ignored_, name) != ignored_.end();
    if (is_ignored) lacks(name);
    return !is_ignored;
  }

  void say(const std::string& words) {
    if (by_config_)
      rules_.known.push_back(words);
    else
      rules_.assumed.push_back(
          words + (rules_.family ? std::string(", as ") + rules_.family->name + " has, by its names" : ""));
  }

  bool is_found(std::string_view name) const {
    return (name == "rotary" && (rules_.rotary || !is_rotated())) ||
           (name == "relative" && rules_.bias_table) || (name == "alibi" && rules_.alibi) ||
           (name == "norm" && rules_.head_norms) || (name == "sinks" && !rules_.sink.empty());
  }

  /// Whether the future is masked; by is what tells it.
  void set_causal(bool causal, bool is_known, const std::string& by) {
    rules_.causal = causal;
    std::string words = causal ? "causal" : "not causal";
    if (!by.empty()) words += ", " + by;
    (is_known ? rules_.known : rules_.assumed).push_back(std::move(words));
  }

  void find_mask_without_family() {
    if (side_ != Side::none)
      return set_causal(side_ == Side::decoder, false,
                        side_ == Side::decoder ? "as decoders are" : "as encoders are");
    if (const TensorInfo* mask = mask_beside(tensors_, layer_))
      return set_causal(true, false, "for which " + mask->name + " is taken");
    set_causal(layer_.naming->causal, false, "");
  }

  /// Of a model of two towers, or of one alone, which its type tells and its names need not.
  bool is_image_tower() const {
    if (type_.ends_with("_text_model")) return false;
    if (type_.ends_with("_vision_model")) return true;
    return side_ == Side::encoder && weight_.find("text_model") == weight_.npos;
  }

  void find_mask() {
    rules_.is_cross = is_cross(tensors_, layer_);
    if (rules_.is_cross) {
      set_causal(false, true, "as it is cross-attention");
      rules_.assumed.push_back(
          "keys and values of the same tokens as the queries (the model takes them of another sequence)");
      return;
    }
    if (!rules_.family) return find_mask_without_family();
    const std::string name = rules_.family->name + std::string(by_config_ ? "" : ", by its names");
    const std::string as =
        std::string("as ") + rules_.family->name + " is" + (by_config_ ? "" : ", by its names");
    switch (rules_.family->visibility) {
      case Visibility::past:
        return set_causal(true, by_config_, as);
      case Visibility::all:
        if (config_.is_decoder == true) return set_causal(true, true, "as config.json says (is_decoder)");
        return set_causal(false, by_config_, as);
      case Visibility::by_side:
        if (side_ == Side::none) return set_causal(true, false, "as decoders of " + name);
        return set_causal(side_ == Side::decoder, by_config_,
                          (side_ == Side::decoder ? "as decoders of " : "as encoders of ") + name);
      case Visibility::by_tower: {
        const bool image = is_image_tower();
        return set_causal(!image, by_config_,
                          (image ? "as the image tower of " : "as the text tower of ") + name);
      }
    }
  }

  bool has_window() const { return index_ >= positions_.windowed.size() || positions_.windowed[index_]; }
  /// Some layers of a model may have no positions.
  bool is_rotated() const { return index_ >= positions_.rotated.size() || positions_.rotated[index_]; }

  /// Projections that anybody calls so, in no block of layers and without another tensor of such models.
  bool has_only_common_names() const {
    const std::string& prefix = layer_.prefix;
    const bool is_of_a_block =
        prefix.find_first_of("0123456789") != prefix.npos || prefix.find("self_attn") != prefix.npos;
    return !by_config_ && rules_.family->has_common_names && !is_of_a_block &&
           !info(prefix + "q_norm.weight", 1);
  }

  void find_positions(bool has_frequencies) {
    const Positions usual = rules_.family ? rules_.family->positions : Positions::learned;
    const bool is_either = usual == Positions::rotary_or_alibi && !positions_.alibi && !positions_.rotary;
    const bool alibi = positions_.alibi.value_or(usual == Positions::alibi && !positions_.rotary);
    if (is_either)
      lacks("alibi");
    else if (alibi)
      find_alibi();
    const bool is_rotary = usual == Positions::rotary || usual == Positions::rotary_or_alibi;
    if (!alibi && is_rotary && !positions_.rotary && !has_frequencies && has_only_common_names())
      rules_.assumed.push_back("no rotary positions, as nothing but the names of projections is that of " +
                               std::string(rules_.family->name));
    else if (!alibi &&
             (positions_.rotary || is_rotary || (usual == Positions::rotary_by_tensors && has_frequencies)))
      find_rotary();
    if (positions_.relative || usual == Positions::relative) find_bias_table();
    find_window();
  }

  void find_alibi() {
    if (!wanted("alibi")) return;
    rules_.alibi = LayerAlibi{rules_.family ? rules_.family->slopes : Slopes::bloom};
    rules_.alibi->largest = positions_.alibi_max.value_or(rules_.alibi->largest);
    say(std::string("ALiBi's biases by distance") +
        (rules_.alibi->slopes == Slopes::scaled ? ", scaled as the scores are" : ""));
  }

  void find_rotary() {
    const RotaryRule rule = rules_.family ? rules_.family->rotary : RotaryRule();
    if (!rule.is_supported) return lacks("rotary");
    if (!is_rotated()) {
      rules_.known.push_back("no positions, as config.json says of this layer");
      return;
    }
    if (!wanted("rotary")) return;
    const bool in_window = positions_.rotation_in_window && !positions_.windowed.empty() && has_window();
    const ConfigRotary& said = in_window ? *positions_.rotation_in_window : positions_.rotation;
    LayerRotary found;
    const bool is_metas = std::string_view(layer_.naming->name) == "wq";  // whose pairs are of neighbors
    found.rotary.pairs = said.interleaved.value_or(rule.interleaved || is_metas)
                             ? positions::Pairs::neighbours
                             : positions::Pairs::halves;
    found.rotary.base = said.base.value_or(found.rotary.base);
    found.rotary.dimensions = said.dimensions;
    found.rotary.scaling = said.scaling;
    found.fraction = said.fraction.value_or(rule.fraction);
    if (!said.other_scaling.empty()) lacks("scaling");
    rules_.rotary = found;
    say(words_of(found));
    if (by_config_ && !said.base && !rule.has_fixed_base)
      rules_.assumed.push_back("base 10000, as config.json tells none");
    rules_.assumed.push_back("that the first token stands at position 0");
  }

  /// The table of the layer itself, or that of the first layer of its stack, which shares it.
  const TensorInfo* bias_table() const {
    const std::string end = "relative_attention_bias.weight";
    for (const char* part : {"SelfAttention.", ""})
      if (const TensorInfo* own = info(layer_.prefix + part + end, 2)) return own;
    for (const TensorInfo& tensor : tensors_)
      if (tensor.shape.size() == 2 && tensor.name.ends_with(end) && shares_stack(tensor.name, layer_))
        return &tensor;
    return nullptr;
  }

  void find_bias_table() {
    const TensorInfo* found = rules_.family && rules_.family->has_bias_table ? bias_table() : nullptr;
    if (!found) return lacks("relative");
    if (!wanted("relative")) return;
    LayerBiasTable bias{found->name};
    bias.max_distance = positions_.max_distance.value_or(bias.max_distance);
    bias.bidirectional = !rules_.causal;
    say(words_of(bias));
    rules_.bias_table = bias;
  }

  /// A window of W keys is the query's own and W − 1 before it; without a causal mask, W/2 on both sides.
  /// Whole numbers that mean something else, as of windows of a picture, are not supported.
  void find_window() {
    if (!positions_.window || *positions_.window == 0 || !has_window()) return;
    const std::size_t width = *positions_.window;
    if (!rules_.causal && !(rules_.family && rules_.family->window.is_two_sided)) return lacks("window");
    if (!wanted("window")) return;
    if (rules_.causal)
      rules_.window.left = width - 1;
    else
      rules_.window.left = rules_.window.right = width / 2;
    rules_.known.push_back("a sliding window of " + std::to_string(width) + " keys");
  }

  /// Gemma's blocks have four norms of their own names.
  bool has_norm_before_the_mlp() const {
    const std::string block = layer_.prefix.substr(0, layer_.prefix.rfind("self_attn."));
    return info(block + "pre_feedforward_layernorm.weight", 1) != nullptr;
  }

  /// Norms of one head's width without biases, as Qwen 3 and Gemma 3 have; those of all heads at once, and
  /// layer norms, are not supported.
  void find_head_norms() {
    const std::string query = layer_.prefix + "q_norm.weight", key = layer_.prefix + "k_norm.weight";
    const TensorInfo *q = info(query, 1), *k = info(key, 1);
    const TensorInfo* weight = info(layer_.mapping.query.weights.front(), 2);
    const bool has_bias = info(layer_.prefix + "q_norm.bias", 1) || info(layer_.prefix + "k_norm.bias", 1);
    const bool fits = q && k && weight && q->shape == k->shape && !has_bias && rules_.family &&
                      rules_.family->has_head_norms;
    const bool is_of_a_head =
        fits && (rules_.heads.n == 1u || q->shape[0] < weight->shape[layer_.mapping.query.out_by_in ? 0 : 1]);
    if (!is_of_a_head) {
      if (positions_.normed) lacks("norm");
      return;
    }
    if (!wanted("norm")) return;
    LayerHeadNorms norms{query, key};
    norms.plus_one = by_config_ ? rules_.family->norms_plus_one : has_norm_before_the_mlp();
    norms.epsilon = config_.epsilon.value_or(norms.epsilon);
    say(std::string("norms of each head's queries and keys (root of the mean square") +
        (norms.plus_one ? ", factors 1 + w)" : ")"));
    if (!config_.epsilon) rules_.assumed.push_back("1e-6 in the roots of these norms");
    rules_.head_norms = std::move(norms);
  }

  void find_sink() {
    const std::string name = layer_.prefix + "sinks";
    if (!info(name, 1) || !wanted("sinks")) return;
    rules_.sink = name;
    rules_.known.push_back("learned attention sinks");
  }

  /// Says which way a fused weight is cut.
  void cut_fused(const Shape& shape, const std::string& place) {
    if (rules_.mapping.query.n_parts == 1) return;
    const Fused fused = rules_.family ? rules_.family->fused : Fused::side_by_side;
    const std::string& weight = layer_.mapping.query.weights.front();
    if (fused == Fused::in_fours && (shape.empty() || shape.front() % 12 != 0))
      throw Error(place + weight + ": expected four blocks of queries, values and keys, as " +
                  rules_.family->name + " has, got " + shape_text(shape));
    for (Source* source : {&rules_.mapping.query, &rules_.mapping.key, &rules_.mapping.value})
      source->fused = fused;
    rules_.known.push_back(weight + (fused == Fused::by_head ? " cut by head"
                                     : fused == Fused::in_fours
                                         ? " cut into four blocks of queries, values and keys"
                                         : " cut into bands"));
  }

  LayerRules& rules_;
  std::span<const TensorInfo> tensors_;
  const Layer& layer_;
  const Config& config_;
  const ConfigPositions& positions_;
  std::span<const std::string> ignored_;
  std::string type_;    ///< model_type, or ""
  std::string weight_;  ///< of the query, in small letters
  Side side_;
  std::size_t index_;
  bool by_config_ = false;  ///< whether the configuration tells the family
};

}  // namespace

std::vector<std::string> LayerRules::tensors() const {
  std::vector<std::string> names;
  if (bias_table) names.push_back(bias_table->table);
  if (head_norms) names.insert(names.end(), {head_norms->query, head_norms->key});
  if (!sink.empty()) names.push_back(sink);
  return names;
}

LayerRules rules_of(std::span<const TensorInfo> tensors, const Layer& layer, const Config& config,
                    const std::string& place, std::span<const std::string> ignored) {
  LayerRules rules;
  rules.mapping = layer.mapping;
  RulesFinder(rules, tensors, layer, config, ignored).find(place);
  return rules;
}

attention::Scale scale_of(const LayerRules& rules, const Config& all, const Layer& layer,
                          std::size_t d_head) {
  using attention::ScaleRule;
  const ConfigScale& said = part_for(all, layer.prefix).scale;
  if (said.factor) return {ScaleRule::factor, *said.factor};
  const bool scaled = said.scaled && (!rules.family || rules.family->is_scaled);
  if (scaled && !said.by_layer && !said.scalar && said.relative_terms == 0) return {};
  if (!scaled && !said.by_layer) return {ScaleRule::none, 1};
  const double width = said.scalar.value_or(static_cast<double>(d_head * (1 + said.relative_terms)));
  double factor = scaled ? 1 / std::sqrt(width) : 1;
  if (said.by_layer) factor /= static_cast<double>(number_of(layer)) + 1;
  return {ScaleRule::factor, factor};
}

}  // namespace core::formats::checkpoints
