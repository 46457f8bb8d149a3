#include "core/files/behaviour.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/planning.hpp"
#include "core/files/signs.hpp"

namespace core::formats::checkpoints {
namespace {

const Kind* kind_by_names(const Layer& layer, const Shape& shape) {
  const std::string& weight = layer.mapping.query.weights.front();
  const Kind* kind = kind_by_sign(weight);
  if (!kind && *layer.layout->kind) kind = &kind_named(layer.layout->kind);
  if (!kind || layer.mapping.query.n_parts == 1 || shape.size() != 2) return kind;
  // Of fused weights, those that are no three squares have keys and values of fewer heads.
  const bool is_three_squares = std::max(shape[0], shape[1]) == 3 * std::min(shape[0], shape[1]);
  const std::string_view name = kind->name;
  if (!is_three_squares && name == "Bloom") return &kind_named("Falcon");
  if (!is_three_squares && name == "GPT-2") return &kind_named("StarCoder");
  return kind;
}

const TensorInfo* info_of(std::span<const TensorInfo> tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
  return found == tensors.end() ? nullptr : &*found;
}

/// Whether the past alone is seen; by is what tells it.
void set_causal(Behaviour& b, bool causal, bool is_known, const std::string& by) {
  b.causal = causal;
  std::string words = causal ? "causal" : "not causal";
  if (!by.empty()) words += ", " + by;
  (is_known ? b.known : b.assumed).push_back(std::move(words));
}

void find_sight_without_kind(Behaviour& b, std::span<const TensorInfo> tensors, const Layer& layer,
                             Side side) {
  if (side != Side::none)
    return set_causal(b, side == Side::decoder, false,
                      side == Side::decoder ? "as decoders are" : "as encoders are");
  if (const TensorInfo* mask = mask_beside(tensors, layer))
    return set_causal(b, true, false, "for which " + mask->name + " is taken");
  set_causal(b, layer.layout->causal, false, "");
}

/// Of a model of two towers, or of one alone, which its type tells and its names need not.
bool is_image_tower(const std::string& weight, Side side, const std::string& type) {
  if (type.ends_with("_text_model")) return false;
  if (type.ends_with("_vision_model")) return true;
  return side == Side::encoder && weight.find("text_model") == weight.npos;
}

void find_sight(Behaviour& b, std::span<const TensorInfo> tensors, const Layer& layer, const Config& config,
                bool by_config, const std::string& type) {
  const std::string weight = text::lower(layer.mapping.query.weights.front());
  b.is_cross = is_cross(tensors, layer);
  if (b.is_cross) {
    set_causal(b, false, true, "as it is cross-attention");
    b.assumed.push_back(
        "keys and values of the same tokens as the queries (the model takes them of another sequence)");
    return;
  }
  const Side side = side_of(weight);
  if (!b.kind) return find_sight_without_kind(b, tensors, layer, side);
  const std::string as = std::string("as ") + b.kind->name + " is" + (by_config ? "" : ", by its names");
  const std::string part = std::string(" of ") + b.kind->name + (by_config ? "" : ", by its names");
  switch (b.kind->sight) {
    case Sight::past:
      return set_causal(b, true, by_config, as);
    case Sight::all:
      if (config.is_decoder == true) return set_causal(b, true, true, "as config.json says (is_decoder)");
      return set_causal(b, false, by_config, as);
    case Sight::by_side:
      if (side == Side::none) return set_causal(b, true, false, "as decoders" + part);
      return set_causal(b, side == Side::decoder, by_config,
                        (side == Side::decoder ? "as decoders" : "as encoders") + part);
    case Sight::by_tower: {
      const bool image = is_image_tower(weight, side, type);
      return set_causal(b, !image, by_config, (image ? "as the image tower" : "as the text tower") + part);
    }
  }
}

/// Says which way a fused weight is cut.
void cut_fused(Behaviour& b, const Layer& layer, const Shape& shape, const std::string& place) {
  if (b.mapping.query.n_parts == 1) return;
  const Fused fused = b.kind ? b.kind->fused : Fused::side_by_side;
  const std::string& weight = layer.mapping.query.weights.front();
  if (fused == Fused::in_fours && (shape.empty() || shape.front() % 12 != 0))
    throw Error(place + weight + ": expected four blocks of queries, values and keys, as " + b.kind->name +
                " has, got " + shape_text(shape));
  for (Source* source : {&b.mapping.query, &b.mapping.key, &b.mapping.value}) source->fused = fused;
  b.known.push_back(weight + (fused == Fused::by_head    ? " cut by head"
                              : fused == Fused::in_fours ? " cut into four blocks of queries, values and keys"
                                                         : " cut into bands"));
}

}  // namespace

Behaviour behaviour_of(std::span<const TensorInfo> tensors, const Layer& layer, const Config& all,
                       const std::string& place, std::span<const std::string> left_out) {
  Behaviour b;
  b.mapping = layer.mapping;
  const Config& config = part_for(all, layer.prefix);
  const std::string& type = config.model_type.empty() ? all.model_type : config.model_type;
  b.kind = kind_of_type(type);
  if (!b.kind) b.kind = kind_of_type(all.model_type);
  const bool by_config = b.kind != nullptr;
  const TensorInfo* weight = info_of(tensors, layer.mapping.query.weights.front());
  if (!b.kind) b.kind = kind_by_names(layer, weight ? weight->shape : Shape());
  if (!by_config && !type.empty())
    b.assumed.push_back("that model_type \"" + type + "\", which is not known, is as its names say (" +
                        layer.layout->name + ")");
  b.heads = config.heads;
  const Side side = side_of(text::lower(layer.mapping.query.weights.front()));
  const auto& of_side = side == Side::decoder ? config.heads.of_decoder : config.heads.of_encoder;
  if (side != Side::none && of_side) b.heads.n = of_side;
  find_sight(b, tensors, layer, config, by_config, type);
  plan_additions(b, tensors, layer, {config.positions, type, by_config, left_out});
  cut_fused(b, layer, weight ? weight->shape : Shape(), place);
  b.norm_before = b.kind ? b.kind->norm_before : has_norm_before(tensors, layer);
  return b;
}

attention::Scale scale_of(const Behaviour& behaviour, const Config& all, const Layer& layer,
                          std::size_t d_head) {
  using attention::ScaleRule;
  const ConfigScale& said = part_for(all, layer.prefix).scale;
  if (said.factor) return {ScaleRule::factor, *said.factor};
  const bool scaled = said.scaled && (!behaviour.kind || behaviour.kind->is_scaled);
  if (scaled && !said.by_layer && !said.scalar && said.relative_terms == 0) return {};
  if (!scaled && !said.by_layer) return {ScaleRule::none, 1};
  const double width = said.scalar.value_or(static_cast<double>(d_head * (1 + said.relative_terms)));
  double factor = scaled ? 1 / std::sqrt(width) : 1;
  if (said.by_layer) factor /= static_cast<double>(number_of(layer)) + 1;
  return {ScaleRule::factor, factor};
}

}  // namespace core::formats::checkpoints
