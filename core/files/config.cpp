#include "core/files/config.hpp"

#include <algorithm>
#include <system_error>

#include "core/base/text.hpp"
#include "core/files/config_keys.hpp"
#include "core/files/file.hpp"

namespace core::formats::checkpoints {
namespace {

constexpr std::size_t largest_config = std::size_t{1} << 20;

std::string type_of(const Json& top) {
  if (const std::string type = text_of(top, "model_type"); !type.empty()) return type;
  const auto architectures = top.member("architectures");
  const auto first = architectures ? architectures->first() : std::nullopt;
  return first && first->is_text() ? text::lower(first->text()) : "";
}

ConfigHeads heads_in(const Json& top) {
  ConfigHeads heads;
  heads.n = count(top, {"n_head", "num_attention_heads", "num_heads", "n_heads"});
  heads.of_encoder = count(top, {"encoder_attention_heads"});
  heads.of_decoder = count(top, {"decoder_attention_heads"});
  heads.n_groups = count(top, {"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"});
  if (const auto many = top.member("multi_query");
      many && many->is_boolean() && !is_on(top, {"new_decoder_architecture"}))
    heads.n_groups = many->boolean() ? std::optional<std::size_t>(1) : heads.n;
  heads.width = count(top, {"head_dim", "d_kv", "d_head"});
  if (const auto attention = top.member("attn_config"))
    if (const auto n = count(*attention, {"kv_n_heads"})) heads.n_groups = n;
  return heads;
}

ConfigScale scale_in(const Json& top) {
  ConfigScale scale;
  if (const auto place = top.member("scale_attn_weights")) scale.scaled = place->boolean();
  if (const auto place = top.member("scale_attn_by_inverse_layer_idx")) scale.by_layer = place->boolean();
  if (const auto place = any_member(top, {"query_pre_attn_scalar"})) scale.scalar = place->number();
  if (const auto place = any_member(top, {"attention_multiplier"})) scale.factor = place->number();
  if (const auto attention = top.member("attn_config"))
    if (const auto place = any_member(*attention, {"softmax_scale"})) scale.factor = place->number();
  if (const auto terms = any_member(top, {"pos_att_type"}); terms && is_on(top, {"relative_attention"})) {
    const std::string words = terms->is_text() ? terms->text() : json_text(*terms);
    scale.relative_terms = (words.find("c2p") != words.npos) + (words.find("p2c") != words.npos);
  }
  return scale;
}

Config config_in(const Json& top, const char* part) {
  Config config;
  config.part = part;
  config.model_type = type_of(top);
  if (const auto quantised = top.member("quantization_config"))
    config.quantisation = text_of(*quantised, "quant_method");
  if (const auto decoder = top.member("is_decoder"); decoder && decoder->is_boolean())
    config.is_decoder = decoder->boolean();
  config.heads = heads_in(top);
  config.scale = scale_in(top);
  config.positions = positions_in(top);
  if (*part) return config;  // parts have no parts that matter
  for (const char* key : {"text_config", "vision_config", "audio_config", "encoder", "decoder"})
    if (const auto place = top.member(key); place && place->is_object())
      config.parts.push_back(config_in(*place, key));
  return config;
}

bool speaks_of(const Config& part, const std::string& prefix) {
  const auto has = [&](std::string_view word) { return prefix.find(word) != prefix.npos; };
  if (part.part == "vision_config") return has("vision") || has("visual");
  if (part.part == "text_config") return has("text_model") || has("language_model");
  if (part.part == "audio_config") return has("audio");
  return has(part.part);
}

}  // namespace

Config parse_config(std::string_view text, const std::string& file_name) {
  const Json top = parse_json(text, file_name);
  if (!top.is_object()) top.fail("an object");
  return config_in(top, "");
}

Config config_beside(const std::filesystem::path& checkpoint) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(checkpoint, ignored);
  const auto path = (is_folder ? checkpoint : checkpoint.parent_path()) / "config.json";
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  return parse_config(read_file(path, largest_config), path.string());
}

const Config& part_for(const Config& config, const std::string& prefix) {
  const auto part =
      std::ranges::find_if(config.parts, [&](const Config& each) { return speaks_of(each, prefix); });
  if (part != config.parts.end()) return *part;
  const auto text = std::ranges::find(config.parts, std::string("text_config"), &Config::part);
  return !config.heads.n && text != config.parts.end() ? *text : config;
}

}  // namespace core::formats::checkpoints
