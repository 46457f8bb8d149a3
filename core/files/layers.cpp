#include "core/files/layers.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/files/composed_weights.hpp"
#include "core/files/json.hpp"

namespace core::formats::checkpoints {
namespace {

/// Lower-case parts of tensor names that reveal a feature of the attention, separated by spaces.
struct FeatureMarker {
  const char* feature;
  const char* words;
};
constexpr std::array feature_markers{
    FeatureMarker{"rotary", " rotary inv_freq rope_freqs "},
    FeatureMarker{"relative",
                  " relative_attention_bias relative_position rel_pos rel_embeddings distance_embedding "
                  "pos_bias_u pos_proj pos_q_proj pos_key_proj pos_query_proj linear_pos "},
    FeatureMarker{"alibi", " alibi "},
    FeatureMarker{"window", " query_global "},
    FeatureMarker{"norm",
                  " q_norm k_norm norm_q norm_k q_layernorm k_layernorm query_norm key_norm query_layernorm "
                  "key_layernorm .q_ln. .k_ln. "},
    FeatureMarker{"sinks", ".sinks "},
    FeatureMarker{"extra_keys", ".bias_k .bias_v "},
};
constexpr const char* cross_attention_markers =
    " encoder_attn. crossattention. cross_attn cross_attention encdecattention. enc_attn. encoder_attention. "
    ".attn2. ";
constexpr const char* pre_norm_markers = " ln_1. ln1. norm1. norm_1. input_layernorm. attn_norm. ";
constexpr const char* bias_table_name = "relative_attention_bias.weight";
constexpr std::array mask_names{"mask", "bias", "tril", "causal_mask", "attn_mask"};

bool has(const std::string& name, std::string_view word) {
  return name.find(word) != name.npos;
}

/// Returns the part of a name before its first number: "encoder.block." of "encoder.block.3.layer.0.".
std::string stack_of(const std::string& name) {
  for (std::size_t k = 0; k < name.size(); ++k)
    if (text::is_digit(name[k]) && (k == 0 || name[k - 1] == '.')) return name.substr(0, k);
  return name;
}

/// Returns a name without its last n parts: "model." of "model.rotary_emb.inv_freq" for n = 2.
std::string drop_last_parts(std::string name, int n) {
  if (name.ends_with('.')) name.pop_back();
  for (; n > 0 && !name.empty(); --n) {
    const std::size_t point = name.rfind('.');
    name.resize(point == name.npos ? 0 : point);
  }
  return name.empty() ? name : name + ".";
}

HeadAxis head_axis_of(const TensorShape& shape, const Naming& naming) {
  if (shape.size() != 3) return HeadAxis::none;
  return naming.orientation == Orientation::head_first     ? HeadAxis::first
         : naming.orientation == Orientation::heads_inside ? HeadAxis::inside
                                                           : HeadAxis::none;
}

ProjectionSource source_of(const TensorFile& file, const std::string& prefix, const Naming& naming,
                           std::size_t which) {
  ProjectionSource source;
  const std::string weight = prefix + naming.weights[which];
  source.weights = {weight};
  const TensorShape& shape = file.find(weight)->shape;
  source.out_by_in = naming.orientation == Orientation::out_by_in ||
                     (naming.orientation == Orientation::inferred_from_shape && shape[0] > shape[1]);
  source.head_axis = head_axis_of(shape, naming);
  if (naming.is_fused()) source.part = which, source.n_parts = 3;
  if (!naming.biases[which].empty() && file.find(prefix + naming.biases[which])) {
    source.biases = {prefix + naming.biases[which]};
    if (naming.has_fused_bias) source.bias_part = which, source.n_bias_parts = 3;
  }
  return source;
}

std::optional<ProjectionSource> output_of(const TensorFile& file, const std::string& prefix,
                                          const Naming& naming, bool out_by_in) {
  const TensorInfo* weight = file.find(prefix + naming.output_weight);
  if (!weight) return std::nullopt;
  ProjectionSource source;
  source.head_axis = head_axis_of(weight->shape, naming);
  source.weights = {prefix + naming.output_weight};
  source.out_by_in = out_by_in;
  if (file.find(prefix + naming.output_bias)) source.biases = {prefix + naming.output_bias};
  return source;
}

/// Returns the layer whose query weight has this name, or nothing.
std::optional<Layer> match_layer(const TensorFile& file, const std::string& name, const Naming& naming) {
  if (!name.ends_with(naming.weights[0])) return std::nullopt;
  const std::string prefix = name.substr(0, name.size() - naming.weights[0].size());
  if (!prefix.empty() && prefix.back() != '.' && prefix.back() != '/') return std::nullopt;
  if (naming.is_fused() && file.find(prefix + "q_attn.weight"))
    return std::nullopt;  // GPT-2's cross-attention: c_attn holds only keys and values
  for (const std::string& weight : naming.weights) {
    const TensorInfo* info = file.find(prefix + weight);
    const bool has_heads = info && head_axis_of(info->shape, naming) != HeadAxis::none;
    if (!info || (info->shape.size() != 2 && !has_heads)) return std::nullopt;
  }
  Layer layer{prefix, &naming, {}, 0};
  if (const TensorShape& shape = file.find(name)->shape; shape.size() == 3)
    layer.n_heads = shape[naming.orientation == Orientation::heads_inside ? 1 : 0];
  layer.mapping.query = source_of(file, prefix, naming, 0);
  layer.mapping.key = source_of(file, prefix, naming, 1);
  layer.mapping.value = source_of(file, prefix, naming, 2);
  layer.mapping.output = output_of(file, prefix, naming, layer.mapping.query.out_by_in);
  return layer;
}

/// Splits "x.heads.3." into "x." and 3: one module for each head.
std::optional<std::pair<std::string, std::size_t>> parse_head_prefix(const std::string& prefix) {
  constexpr std::string_view word = "heads.";
  const std::size_t at = prefix.rfind(word);
  if (at == prefix.npos || (at > 0 && prefix[at - 1] != '.')) return std::nullopt;
  std::string_view rest = std::string_view(prefix).substr(at + word.size());
  const auto head = text::consume_unsigned(rest);
  if (!head || rest.size() != 1) return std::nullopt;  // the dot at the end
  return std::pair(prefix.substr(0, at), *head);
}

void append(ProjectionSource& source, const ProjectionSource& head) {
  source.weights.insert(source.weights.end(), head.weights.begin(), head.weights.end());
  source.biases.insert(source.biases.end(), head.biases.begin(), head.biases.end());
}

/// Joins layers that are heads of one attention, and keeps the others.
std::vector<Layer> join_heads(std::vector<Layer> layers, const TensorFile& file) {
  std::vector<Layer> joined;
  for (Layer& layer : layers) {
    const auto head = parse_head_prefix(layer.prefix);
    if (!head) {
      joined.push_back(std::move(layer));
    } else if (head->second == 0) {
      layer.prefix = head->first;
      layer.n_heads = 1;
      for (const char* output : {"out_proj", "proj"}) {
        const std::string name = head->first + output;
        if (!file.find(name + ".weight")) continue;
        layer.mapping.output = ProjectionSource{{name + ".weight"}, {}, true};
        if (file.find(name + ".bias")) layer.mapping.output->biases = {name + ".bias"};
      }
      joined.push_back(std::move(layer));
    } else if (!joined.empty() && joined.back().prefix == head->first &&
               joined.back().n_heads == head->second) {
      append(joined.back().mapping.query, layer.mapping.query);
      append(joined.back().mapping.key, layer.mapping.key);
      append(joined.back().mapping.value, layer.mapping.value);
      ++joined.back().n_heads;
    }
  }
  return joined;
}

/// Part of an encoder-decoder model, by a lower-case tensor name; image towers count as encoders.
enum class ModelSide { none, encoder, decoder };
ModelSide side_of(const std::string& name) {
  if (has(name, "decoder")) return ModelSide::decoder;
  return has(name, "encoder") || has(name, "vision") || has(name, "visual") ? ModelSide::encoder
                                                                            : ModelSide::none;
}

/// Returns whether a layer is cross-attention, with keys of another sequence.
bool is_cross(const TensorFile& file, const Layer& layer) {
  const std::string weight = text::lower(layer.mapping.query.weights.front());
  if (text::contains_any_word("." + weight, cross_attention_markers)) return true;
  // In torch.nn.TransformerDecoder it has a sibling self_attn.
  if (!layer.prefix.ends_with("multihead_attn.")) return false;
  return !file.with_prefix(drop_last_parts(layer.prefix, 1) + "self_attn.").empty();
}

/// Returns whether a norm comes before the attention in its block.
bool has_norm_before(const TensorFile& file, const Layer& layer) {
  const std::string block = drop_last_parts(layer.prefix, 1);
  return !block.empty() && std::ranges::any_of(file.with_prefix(block), [&](const TensorInfo* tensor) {
    return text::contains_any_word("." + tensor->name.substr(block.size()), pre_norm_markers);
  });
}

/// Returns a square tensor with the prefix of the projections and the name of a mask, or nullptr.
const TensorInfo* mask_next_to(const TensorFile& file, const Layer& layer) {
  for (const char* name : mask_names) {
    const TensorInfo* mask = file.find(layer.prefix + name);
    if (mask && mask->shape.size() >= 2 && mask->shape.back() == mask->shape.end()[-2]) return mask;
  }
  return nullptr;
}

/// Returns the first number in a layer's prefix: 3 of "h.3.attn."; 0 if there is none.
std::size_t layer_number(const Layer& layer) {
  std::string_view rest = std::string_view(layer.prefix).substr(stack_of(layer.prefix).size());
  return text::consume_unsigned(rest).value_or(0);
}

/// Returns "500000" and not "5e+05".
std::string base_text(double base) {
  constexpr double largest = 1e15;
  const bool is_whole = std::trunc(base) == base && base < largest;
  return is_whole ? std::to_string(static_cast<long long>(base)) : text::number_text(base);
}

std::string scaling_words(const positions::Scaling& scaling) {
  using enum positions::ScalingRule;
  const std::string by = " scaling by " + text::number_text(scaling.factor);
  const std::string above = " above " + text::number_text(scaling.original) + " tokens";
  switch (scaling.rule) {
    case linear:
      return ", linear" + by;
    case llama3:
      return ", Llama 3's" + by;
    case yarn:
      return ", YaRN" + by + ", attention factor " + text::number_text(scaling.attention);
    case dynamic:
      return ", dynamic NTK" + by + above;
    case longrope:
      return ", LongRoPE, other factors" + above + ", attention factor " +
             text::number_text(scaling.attention);
    case none:
      break;
  }
  return "";
}

std::string describe(const LayerRotary& layer) {
  const positions::Rotary& rotary = layer.rotary;
  std::string words = "rotary positions, base " + base_text(rotary.base) + ", pairs of " +
                      (rotary.pairs == positions::Pairs::halves ? "halves" : "neighbours");
  if (rotary.dimensions)
    words += fmt::format(", {} columns of a head", *rotary.dimensions);
  else if (layer.fraction != 1)
    words += ", " + text::number_text(layer.fraction) + " of the columns";
  const positions::Scaling& scaling = rotary.scaling;
  if (scaling.rule != positions::ScalingRule::none) words += scaling_words(scaling);
  return words;
}

std::string describe(const LayerBiasTable& bias) {
  return fmt::format("relative position biases of {}, distances up to {}{}", bias.table, bias.max_distance,
                     bias.bidirectional ? ", both ways" : ", of earlier keys");
}

}  // namespace

/// Tensors whose names reveal features of attention.
class FeatureMarks {
 public:
  explicit FeatureMarks(const TensorFile& file) {
    for (std::size_t k = 0; k < file.tensors().size(); ++k) {
      const TensorInfo& tensor = file.tensors()[k];
      const std::string name = "." + text::lower(tensor.name);
      for (const FeatureMarker& marker : feature_markers)
        if (text::contains_any_word(name, marker.words)) add(tensor.name, {k, marker.feature});
      if (tensor.shape.size() == 2 && tensor.name.ends_with(bias_table_name))
        bias_tables_.push_back(tensor.name);
    }
  }

  /// Returns the features of a layer, also those that its stack of layers shares, in the order of the file.
  std::vector<const char*> of(const Layer& layer, bool is_cross) const {
    std::vector<Mark> marks;
    const auto add_all = [&](const std::vector<Mark>& more) {
      marks.insert(marks.end(), more.begin(), more.end());
    };
    for (auto own = by_tensor_.lower_bound(layer.prefix);
         !layer.prefix.empty() && own != by_tensor_.end() && own->first.starts_with(layer.prefix); ++own)
      add_all(own->second);
    for (const auto& [scope, shared] : by_scope_)
      if (layer.prefix.starts_with(scope)) add_all(shared);
    if (const auto shared = by_stack_.find(stack_of(layer.prefix)); shared != by_stack_.end())
      add_all(shared->second);
    std::ranges::sort(marks, {}, &Mark::order);
    std::vector<const char*> features;
    for (const Mark& mark : marks)
      if (!is_cross || !is_positional(mark.feature)) features.push_back(mark.feature);
    return features;
  }

  /// Returns whether a tensor reveals a feature.
  bool has(const std::string& tensor) const { return by_tensor_.contains(tensor); }

  /// Returns the first table of relative position biases that the stack of a layer shares, or "".
  std::string bias_table_of(const Layer& layer) const {
    const auto is_shared = [&](const std::string& tensor) {
      const std::string stack = stack_of(tensor);
      return stack == tensor ? layer.prefix.starts_with(scope_of(tensor)) : stack == stack_of(layer.prefix);
    };
    const auto found = std::ranges::find_if(bias_tables_, is_shared);
    return found == bias_tables_.end() ? "" : *found;
  }

 private:
  struct Mark {
    std::size_t order;  ///< of its tensor in the file
    const char* feature;
  };
  using MarksByName = std::map<std::string, std::vector<Mark>, std::less<>>;

  /// Returns the beginning of the names of layers that share a tensor without a number.
  static std::string scope_of(const std::string& tensor) { return drop_last_parts(tensor, 2); }
  /// Returns whether a feature says something of positions, which cross-attention does not have.
  static bool is_positional(std::string_view feature) {
    return feature == "relative" || feature == "rotary" || feature == "alibi";
  }

  void add(const std::string& tensor, const Mark& mark) {
    const auto add_first = [&](std::vector<Mark>& marks) {
      if (std::ranges::find(marks, mark.feature, &Mark::feature) == marks.end()) marks.push_back(mark);
    };
    add_first(by_tensor_[tensor]);
    const std::string stack = stack_of(tensor);
    if (stack == tensor)
      add_first(by_scope_[scope_of(tensor)]);
    else if (mark.feature == std::string_view("relative"))
      add_first(by_stack_[stack]);
  }

  MarksByName by_tensor_, by_scope_, by_stack_;
  std::vector<std::string> bias_tables_;  ///< in the order of the file
};

namespace {

/// Determines the rules of a layer and records how each is known.
class RulesFinder {
 public:
  RulesFinder(LayerRules& rules, const Checkpoint& checkpoint, const Layer& layer, const Config& all,
              std::span<const std::string> ignored)
      : rules_(rules),
        file_(*checkpoint.file),
        features_(*checkpoint.features),
        layer_(layer),
        config_(config_for_layer(all, layer.prefix)),
        positions_(config_.positions),
        ignored_(ignored),
        type_(config_.model_type.empty() ? all.model_type : config_.model_type),
        weight_(text::lower(layer.mapping.query.weights.front())),
        side_(side_of(weight_)),
        index_(layer_number(layer)) {
    rules_.family = config_.family ? config_.family : all.family;
    by_config_ = rules_.family != nullptr;
  }

  void find() {
    const TensorInfo* weight = file_.find(layer_.mapping.query.weights.front());
    const TensorShape shape = weight ? weight->shape : TensorShape();
    if (!by_config_) rules_.family = family_by_names(shape);
    if (!by_config_ && !type_.empty()) {
      rules_.unknown_type = type_;
      rules_.assumed.push_back("that model_type \"" + type_ +
                               "\", which is not known, is as its names say (" + layer_.naming->name + ")");
    }
    if (!config_.type_override.empty())
      rules_.known.push_back("model_type \"" + type_ + "\" as " + config_.type_override + ", as said");
    for (const std::string& key : config_.unread_keys)
      rules_.not_used.push_back(key + " of config.json, which " +
                                (config_.type_override.empty() ? type_ : config_.type_override) +
                                " does not read");
    rules_.heads = config_.heads;
    const auto& side_heads =
        side_ == ModelSide::decoder ? config_.heads.decoder_heads : config_.heads.encoder_heads;
    if (side_ != ModelSide::none && side_heads) rules_.heads.n = side_heads;
    find_mask();
    const auto features = features_.of(layer_, rules_.is_cross);
    if (!rules_.is_cross)  // its keys have no positions among the queries
      find_positions(std::ranges::find(features, std::string("rotary")) != features.end());
    if (config_.softcap && is_enabled("cap")) {
      rules_.softcap = config_.softcap;
      rules_.known.push_back("a cap on the scores");
    }
    find_head_norms();
    find_sink();
    if (positions_.has_clipped_qkv) add_unsupported("clip");
    for (const char* name : features)
      if (!is_found(name)) add_unsupported(name);
    find_unknown_tensors();
    set_fused_layout(shape);
    const Family* family = rules_.family;
    rules_.norm_before = !family ? has_norm_before(file_, layer_)
                                 : family->norm.place == NormPlace::before && !config_.is_post_norm &&
                                       (!*family->full_model || family->norms_without_parameters ||
                                        *family->names.of(TensorRole::attention_norm));
  }

 private:
  const TensorInfo* info(const std::string& name, std::size_t n_dimensions) const {
    const TensorInfo* found = file_.find(name);
    return found && found->shape.size() == n_dimensions ? found : nullptr;
  }

  const Family* family_by_names(const TensorShape& shape) const {
    const Family* family = family_by_weight(layer_.mapping.query.weights.front());
    if (!family && *layer_.naming->family) family = &family_named(layer_.naming->family);
    if (!family || layer_.mapping.query.n_parts == 1 || shape.size() != 2) return family;
    // A fused weight that is not three squares has fewer KV heads.
    const bool is_three_squares = std::max(shape[0], shape[1]) == 3 * std::min(shape[0], shape[1]);
    return !is_three_squares && *family->grouped_family ? &family_named(family->grouped_family) : family;
  }

  void add_unsupported(const char* name) {
    const Feature* feature = &feature_named(name);
    if (std::ranges::find(rules_.not_supported, feature) == rules_.not_supported.end())
      rules_.not_supported.push_back(feature);
  }

  /// Returns whether to compute a feature; if the user ignores it, records that it is not computed.
  bool is_enabled(const char* name) {
    const bool is_ignored = std::ranges::find(ignored_, name) != ignored_.end();
    if (is_ignored) add_unsupported(name);
    return !is_ignored;
  }

  void record(const std::string& words) {
    if (by_config_)
      rules_.known.push_back(words);
    else
      rules_.assumed.push_back(
          words + (rules_.family ? std::string(", as ") + rules_.family->name + " has, by its names" : ""));
  }

  bool is_found(std::string_view name) const {
    return (name == "rotary" && (rules_.rotary || !positions_.layers.is_rotated(index_))) ||
           (name == "relative" && rules_.bias_table) || (name == "alibi" && rules_.alibi) ||
           (name == "norm" && rules_.head_norms) || (name == "sinks" && !rules_.sink.empty());
  }

  /// Sets whether the future is masked; `by` is the reason.
  void set_causal(bool causal, bool is_known, const std::string& by) {
    rules_.causal = causal;
    std::string words = causal ? "causal" : "not causal";
    if (!by.empty()) words += ", " + by;
    (is_known ? rules_.known : rules_.assumed).push_back(std::move(words));
  }

  void find_mask_without_family() {
    if (side_ != ModelSide::none)
      return set_causal(side_ == ModelSide::decoder, false,
                        side_ == ModelSide::decoder ? "as decoders are" : "as encoders are");
    if (const TensorInfo* mask = mask_next_to(file_, layer_))
      return set_causal(true, false, "for which " + mask->name + " is taken");
    set_causal(layer_.naming->causal, false, "");
  }

  /// Returns whether this is an image tower; a model of one tower may reveal it only by its type.
  bool is_image_tower() const {
    if (type_.ends_with("_text_model")) return false;
    if (type_.ends_with("_vision_model")) return true;
    return side_ == ModelSide::encoder && weight_.find("text_model") == weight_.npos;
  }

  void find_mask() {
    rules_.is_cross = is_cross(file_, layer_);
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
    switch (rules_.family->mask_kind) {
      case MaskKind::past:
        return set_causal(true, by_config_, as);
      case MaskKind::all:
        if (config_.is_decoder == true) return set_causal(true, true, "as config.json says (is_decoder)");
        return set_causal(false, by_config_, as);
      case MaskKind::by_side:
        if (side_ == ModelSide::none) return set_causal(true, false, "as decoders of " + name);
        return set_causal(side_ == ModelSide::decoder, by_config_,
                          (side_ == ModelSide::decoder ? "as decoders of " : "as encoders of ") + name);
      case MaskKind::by_tower: {
        const bool image = is_image_tower();
        return set_causal(!image, by_config_,
                          (image ? "as the image tower of " : "as the text tower of ") + name);
      }
    }
  }

  /// Returns whether only common projection names suggest the family: no block of layers, no other tensor.
  bool has_only_common_names() const {
    const std::string& prefix = layer_.prefix;
    const bool is_of_a_block =
        prefix.find_first_of("0123456789") != prefix.npos || prefix.find("self_attn") != prefix.npos;
    return !by_config_ && rules_.family->has_common_names && !is_of_a_block &&
           !info(prefix + "q_norm.weight", 1);
  }

  void find_positions(bool has_frequencies) {
    const PositionKind family_positions = rules_.family ? rules_.family->positions : PositionKind::learned;
    const bool is_either =
        family_positions == PositionKind::rotary_or_alibi && !positions_.alibi && !positions_.rotary;
    const bool alibi =
        positions_.alibi.value_or(family_positions == PositionKind::alibi && !positions_.rotary);
    if (is_either)
      add_unsupported("alibi");
    else if (alibi)
      find_alibi();
    const bool is_rotary =
        family_positions == PositionKind::rotary || family_positions == PositionKind::rotary_or_alibi;
    if (!alibi && is_rotary && !positions_.rotary && !has_frequencies && has_only_common_names())
      rules_.assumed.push_back("no rotary positions, as nothing but the names of projections is that of " +
                               std::string(rules_.family->name));
    else if (!alibi && (positions_.rotary || is_rotary ||
                        (family_positions == PositionKind::rotary_by_tensors && has_frequencies)))
      find_rotary();
    if (positions_.relative || family_positions == PositionKind::relative) find_bias_table();
    find_window();
  }

  void find_alibi() {
    if (!is_enabled("alibi")) return;
    rules_.alibi =
        LayerAlibi{rules_.family ? rules_.family->slopes : AlibiSlopes::bloom, positions_.alibi_bias_max};
    record(std::string("ALiBi's biases by distance") +
           (rules_.alibi->slopes == AlibiSlopes::scaled ? ", scaled as the scores are" : ""));
  }

  void find_rotary() {
    RotaryRule rule = rules_.family ? rules_.family->rotary : RotaryRule();
    if (!rule.is_supported) return add_unsupported("rotary");
    if (!positions_.layers.is_rotated(index_)) {
      rules_.known.push_back("no positions, as config.json says of this layer");
      return;
    }
    if (!is_enabled("rotary")) return;
    if (std::string_view(layer_.naming->name) == "wq") rule.interleaved = true;  // Meta's own Llama
    const ConfigRotary& specified = positions_.rotary_of(index_);
    if (specified.failing_fraction != 1 || !specified.unsupported_scaling.empty()) add_unsupported("scaling");
    rules_.rotary = specified.rotary(rule);
    record(describe(*rules_.rotary));
    if (by_config_ && !specified.base && !rule.has_fixed_base)
      rules_.assumed.push_back("base 10000, as config.json tells none");
    rules_.assumed.push_back("that the first token is at position 0");
  }

  /// Returns the table of the layer itself, or that of the first layer of its stack, which is shared; or "".
  std::string bias_table() const {
    for (const char* part : {"SelfAttention.", ""})
      if (const TensorInfo* own = info(layer_.prefix + part + bias_table_name, 2)) return own->name;
    return features_.bias_table_of(layer_);
  }

  void find_bias_table() {
    const std::string found = rules_.family && rules_.family->has_bias_table ? bias_table() : "";
    if (found.empty()) return add_unsupported("relative");
    if (!is_enabled("relative")) return;
    LayerBiasTable bias{found};
    bias.max_distance = positions_.max_distance.value_or(bias.max_distance);
    bias.bidirectional = !rules_.causal;
    record(describe(bias));
    rules_.bias_table = bias;
  }

  /// Finds the sliding window; window sizes with another meaning, as in image models, are not supported.
  void find_window() {
    const std::size_t width = positions_.layers.window_of(index_);
    if (width == 0) return;
    if (!rules_.causal && !(rules_.family && rules_.family->window.is_two_sided))
      return add_unsupported("window");
    if (!is_enabled("window")) return;
    rules_.window = window_of(width, rules_.causal);
    rules_.known.push_back(fmt::format("a sliding window of {} keys", width));
  }

  /// Returns whether the block has the norm before the MLP that Gemma adds.
  bool has_norm_before_the_mlp() const {
    const std::string block = layer_.prefix.substr(0, layer_.prefix.rfind("self_attn."));
    return info(block + "pre_feedforward_layernorm.weight", 1) != nullptr;
  }

  /// Returns the tensors of the query or key norms with factors for all heads: one, or one for each head.
  std::vector<std::string> qk_norm_tensors(const std::string& side) const {
    for (const char* dimensions : {"1", "2"})
      if (info(layer_.prefix + side + "_norm.weight", dimensions[0] - '0'))
        return {layer_.prefix + side + "_norm.weight"};
    std::vector<std::string> all;
    for (;;) {
      const std::string name = fmt::format("{}{}_layernorm.norms.{}.", layer_.prefix, side, all.size());
      if (!info(name + "weight", 1) || info(name + "bias", 1)) return all;
      all.push_back(name + "weight");
    }
  }

  /// Finds norms over all heads, or with separate factors for each head: OLMo 2, Cohere, StableLM.
  void find_qk_norms() {
    LayerHeadNorms norms{qk_norm_tensors("q"), qk_norm_tensors("k")};
    if (norms.query.empty() || norms.key.empty()) {
      const bool has_any = rules_.family->norm_over == NormScope::all_heads || positions_.has_qk_norm ||
                           !norms.query.empty() || !norms.key.empty();
      if (has_any) add_unsupported("norm");
      return;
    }
    if (!is_enabled("norm")) return;
    norms.over = rules_.family->norm_over;
    if (rules_.family->norm.kind == NormKind::layer) norms.rule = attention::NormRule::layer;
    norms.epsilon = config_.epsilon.value_or(rules_.family->norm.epsilon);
    record(std::string("norms of queries and keys ") +
           (norms.over == NormScope::all_heads ? "over all heads" : "of each head with weights of its own") +
           (norms.rule == attention::NormRule::rms ? " (root of the mean square)" : " (standard deviation)"));
    if (!config_.epsilon)
      rules_.assumed.push_back(text::number_text(norms.epsilon) + " in the roots of these norms");
    rules_.head_norms = std::move(norms);
  }

  /// Finds norms of width d_head without biases, as in Qwen 3 and Gemma 3; other norms only by the family.
  void find_head_norms() {
    if (by_config_ && rules_.family->norm_over != NormScope::head) return find_qk_norms();
    const std::string query = layer_.prefix + "q_norm.weight", key = layer_.prefix + "k_norm.weight";
    const TensorInfo *q = info(query, 1), *k = info(key, 1);
    const TensorInfo* weight = info(layer_.mapping.query.weights.front(), 2);
    const bool has_bias = info(layer_.prefix + "q_norm.bias", 1) || info(layer_.prefix + "k_norm.bias", 1);
    const bool fits = q && k && weight && q->shape == k->shape && !has_bias && rules_.family &&
                      rules_.family->has_head_norms;
    const bool is_of_a_head =
        fits && (rules_.heads.n == 1u || q->shape[0] < weight->shape[layer_.mapping.query.out_by_in ? 0 : 1]);
    if (!is_of_a_head) {
      if (positions_.has_qk_norm) add_unsupported("norm");
      return;
    }
    if (!is_enabled("norm")) return;
    LayerHeadNorms norms{{query}, {key}};
    norms.plus_one = by_config_ ? rules_.family->norms_plus_one : has_norm_before_the_mlp();
    norms.epsilon = config_.epsilon.value_or(norms.epsilon);
    record(std::string("norms of each head's queries and keys (root of the mean square") +
           (norms.plus_one ? ", factors 1 + w)" : ")"));
    if (!config_.epsilon) rules_.assumed.push_back("1e-6 in the roots of these norms");
    rules_.head_norms = std::move(norms);
  }

  void find_sink() {
    const std::string name = layer_.prefix + "sinks";
    if (!info(name, 1) || !is_enabled("sinks")) return;
    rules_.sink = name;
    rules_.known.push_back("learned attention sinks");
  }

  /// Finds tensors that belong to the attention and are neither used nor known as features: those of its
  /// weights, norms and tables, those of its module, and gates and sinks next to projections of any module.
  void find_unknown_tensors() {
    const std::vector<std::string> projections = projection_tensors(layer_.mapping), more = rules_.tensors();
    std::set<std::string> used(projections.begin(), projections.end()), unknown;
    used.insert(more.begin(), more.end());
    const auto add = [&](const std::string& name) {
      if (!used.contains(name)) unknown.insert(name);
    };
    std::ranges::for_each(unused_tensors_of_weights(file_, more), add);
    const auto add_unless_feature = [&](const std::string& name) {
      if (!features_.has(name)) add(name);
    };
    std::ranges::for_each(unused_tensors_of_weights(file_, projections), add_unless_feature);
    const std::string module = attention_module();
    for (const TensorInfo* tensor : file_.with_prefix(module))
      if (may_change_attention(module, *tensor)) add_unless_feature(tensor->name);
    rules_.unknown_tensors.assign(unknown.begin(), unknown.end());
    if (!unknown.empty()) add_unsupported("tensors");
  }

  /// Returns the beginning of the names that queries, keys and values share: "layers.0.self_attn.".
  std::string attention_module() const {
    const std::string& query = layer_.mapping.query.weights.front();
    if (query.find('/') != query.npos) return layer_.prefix;  // of Keras
    const bool is_module = query.ends_with(".weight") || query.ends_with(".kernel");
    return drop_last_parts(query, is_module ? 2 : 1);
  }

  /// Returns whether a tensor in a module with projections may change the attention.
  bool may_change_attention(const std::string& module, const TensorInfo& tensor) const {
    constexpr const char* attention_names = " attn. attention. selfattention. encdecattention. mha. ";
    constexpr const char* changes = " g_proj gate_proj sink sinks null_kv null_k null_v mem_k mem_v mem_kv ";
    const std::string_view name = std::string_view(tensor.name).substr(module.size());
    if (name.starts_with(':')) return false;  // no name of a module: of a recorded stage
    const std::string part = text::lower(name.substr(0, name.find_first_of("./")));
    if (text::any_word(attention_names, [&](auto end) { return text::lower(module).ends_with(end); }))
      return !is_buffer(tensor) && part != "layernorm";  // of ALBERT, after the residual addition
    const bool is_gate_of_mlp = file_.find(module + "up_proj.weight") || file_.find(module + "w3.weight");
    return text::has_word(changes, part) && !(part == "gate_proj" && is_gate_of_mlp);
  }

  /// Sets and records the layout of a fused weight.
  void set_fused_layout(const TensorShape& shape) {
    if (rules_.mapping.query.n_parts == 1) return;
    const FusedLayout fused = rules_.family ? rules_.family->fused : FusedLayout::concatenated;
    const std::string& weight = layer_.mapping.query.weights.front();
    if (fused == FusedLayout::four_blocks && (shape.empty() || shape.front() % 12 != 0))
      throw Error(file_.place() + weight + ": expected four blocks of queries, values and keys, as " +
                  rules_.family->name + " has, got " + shape_text(shape));
    for (ProjectionSource* source : {&rules_.mapping.query, &rules_.mapping.key, &rules_.mapping.value})
      source->fused = fused;
    rules_.known.push_back(weight + (fused == FusedLayout::by_head ? " cut by head"
                                     : fused == FusedLayout::four_blocks
                                         ? " cut into four blocks of queries, values and keys"
                                         : " cut into bands"));
  }

  LayerRules& rules_;
  const TensorFile& file_;
  const FeatureMarks& features_;
  const Layer& layer_;
  const Config& config_;
  const ConfigPositions& positions_;
  std::span<const std::string> ignored_;
  std::string type_;    ///< model_type, or ""
  std::string weight_;  ///< of the query, in lower case
  ModelSide side_;
  std::size_t index_;
  bool by_config_ = false;  ///< whether the configuration gives the family
};

}  // namespace

std::vector<Layer> find_layers(const TensorFile& file) {
  const auto may_be_of_queries = [](const TensorInfo& info) {
    return std::ranges::any_of(namings(), [&](const Naming& n) { return info.name.ends_with(n.weights[0]); });
  };
  std::vector<std::string> weights;
  for (const TensorInfo& info : file.tensors())
    if (may_be_of_queries(info)) weights.push_back(info.name);
  std::vector<Layer> layers;
  std::set<std::string> found;  // query weights of layers: the first naming that fits applies
  const auto has_output = [](const Layer& l) { return l.mapping.output.has_value(); };
  for (const bool with_output : {true, false})  // the output's name tells Llama's q_proj from OPT's
    for (const Naming& naming : namings())
      for (const std::string& weight : weights) {
        auto layer = match_layer(file, weight, naming);
        if (layer && has_output(*layer) == with_output && found.insert(weight).second)
          layers.push_back(std::move(*layer));
      }
  std::ranges::sort(layers, text::natural_less, &Layer::prefix);
  std::stable_partition(layers.begin(), layers.end(),
                        [&](const Layer& layer) { return !is_cross(file, layer); });
  return join_heads(std::move(layers), file);
}

const Layer& choose_layer(std::span<const Layer> layers, const std::string& chosen,
                          const std::string& place) {
  if (layers.empty())
    throw Error(place + "expected a checkpoint of a known layout, found no attention in it");
  for (const Layer& layer : layers)
    if (layer.prefix == chosen || layer.prefix == chosen + ".") return layer;
  const auto index = text::parse_unsigned(chosen);
  if (!index || *index >= layers.size())
    throw Error(fmt::format("{}expected a layer from 0 ({}) to {} ({}), got {}", place, layers.front().prefix,
                            layers.size() - 1, layers.back().prefix, quoted_briefly(chosen)));
  return layers[*index];
}

Config Checkpoint::config_as(const std::string& type_override) const {
  return config_json && !type_override.empty() ? parse_config(*config_json, type_override) : config;
}

Checkpoint read_checkpoint(std::shared_ptr<const TensorFile> file) {
  Checkpoint checkpoint;
  checkpoint.config_json = sibling_config(file->path());
  if (checkpoint.config_json) checkpoint.config = parse_config(*checkpoint.config_json);
  checkpoint.file = compose_weights(std::move(file), checkpoint.config_json);
  checkpoint.layers = find_layers(*checkpoint.file);
  checkpoint.features = std::make_shared<const FeatureMarks>(*checkpoint.file);
  return checkpoint;
}

std::vector<std::string> LayerRules::tensors() const {
  std::vector<std::string> names;
  if (bias_table) names.push_back(bias_table->table);
  if (head_norms)
    for (const auto& all : {head_norms->query, head_norms->key})
      names.insert(names.end(), all.begin(), all.end());
  if (!sink.empty()) names.push_back(sink);
  return names;
}

std::string LayerRules::words_of(const Feature& feature) const {
  constexpr std::size_t max_listed = 3;
  if (feature.name != std::string_view("tensors")) return feature.words;
  const std::span<const std::string> first(unknown_tensors.begin(),
                                           std::min(unknown_tensors.size(), max_listed));
  const std::size_t more = unknown_tensors.size() - first.size();
  return text::joined(first, ", ") + (more > 0 ? fmt::format(" and {} more tensors", more) : "");
}

std::vector<std::string> projection_tensors(const ProjectionMapping& mapping, bool has_output) {
  std::vector<std::string> names;
  const auto add = [&](const ProjectionSource& source) {
    for (const auto& each : {source.weights, source.biases})
      for (const std::string& name : each)
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const auto* source : {&mapping.query, &mapping.key, &mapping.value}) add(*source);
  if (has_output && mapping.output) add(*mapping.output);
  return names;
}

LayerRules infer_layer_rules(const Checkpoint& checkpoint, const Layer& layer, const Config& config,
                             std::span<const std::string> ignored) {
  LayerRules rules;
  rules.mapping = layer.mapping;
  RulesFinder(rules, checkpoint, layer, config, ignored).find();
  return rules;
}

attention::Scale layer_scale(const LayerRules& rules, const Config& all, const Layer& layer,
                             std::size_t d_head) {
  const ConfigScale& specified = config_for_layer(all, layer.prefix).scale;
  const bool scaled = specified.scaled && (!rules.family || rules.family->is_scaled);
  return scale_from_config(specified, scaled, layer_number(layer), d_head);
}

attention::Scale scale_from_config(const ConfigScale& specified, bool scaled, std::size_t layer,
                                   std::size_t d_head) {
  using attention::ScaleRule;
  if (specified.factor) return {ScaleRule::factor, *specified.factor};
  if (scaled && !specified.by_layer && !specified.scalar && specified.relative_terms == 0) return {};
  if (!scaled && !specified.by_layer) return {ScaleRule::none, 1};
  const double width =
      specified.scalar.value_or(static_cast<double>(d_head * (1 + specified.relative_terms)));
  double factor = scaled ? 1 / std::sqrt(width) : 1;
  if (specified.by_layer) factor /= static_cast<double>(layer) + 1;
  return {ScaleRule::factor, factor};
}

}  // namespace core::formats::checkpoints
