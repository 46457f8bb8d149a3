#include "core/formats/checkpoints/config.hpp"

#include <system_error>

#include "core/formats/files/file.hpp"
#include "core/formats/files/json.hpp"

namespace core::formats::checkpoints {
namespace {

constexpr std::size_t largest_config = std::size_t{1} << 20;

std::optional<std::size_t> count(const Json& top, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto place = top.member(key); place && !place->is_null()) return place->whole(1);
  return std::nullopt;
}

}  // namespace

Config parse_config(std::string_view text, const std::string& file_name) {
  const Json top = parse_json(text, file_name);
  if (!top.is_object()) top.fail("an object");
  Config config;
  config.n_heads = count(top, {"n_head", "num_attention_heads", "num_heads", "n_heads"});
  if (const auto place = top.member("scale_attn_weights")) config.scaled = place->boolean();
  if (const auto place = top.member("scale_attn_by_inverse_layer_idx"))
    config.scaled_by_layer = place->boolean();
  if (const auto place = top.member("query_pre_attn_scalar"); place && !place->is_null())
    config.scalar = place->number();
  return config;
}

Config config_beside(const std::filesystem::path& checkpoint) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(checkpoint, ignored);
  const auto path = (is_folder ? checkpoint : checkpoint.parent_path()) / "config.json";
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  return parse_config(read_file(path, largest_config), path.string());
}

}  // namespace core::formats::checkpoints
