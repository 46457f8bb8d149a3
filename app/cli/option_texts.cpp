#include "app/cli/option_texts.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/check/backward_check.hpp"
#include "core/out/export.hpp"

namespace app {

namespace formats = core::formats;
using core::attention::StageInfo;
using core::color::NamedMap;

void refuse(StringRef option, StringRef expected, StringRef got) {
  throw core::Error(option + ": expected " + expected + ", got \"" + got + "\"");
}

const StageInfo& named_stage(StringRef option, StringRef among, StringRef name) {
  if (const StageInfo* stage = core::attention::find_stage(name)) return *stage;
  throw core::Error(option + ": expected " + among + " " + formats::known_stage_names() + "; got \"" + name +
                    "\"");
}

void read_maps(StringRef option, const std::vector<std::string>& names, ColorChoice& colors) {
  const auto sequential = core::color::sequential_maps(), diverging = core::color::diverging_maps();
  for (StringRef name : names) {
    const auto is_named = [&](const NamedMap& map) { return name == map.name; };
    const auto one = std::ranges::find_if(sequential, is_named),
               other = std::ranges::find_if(diverging, is_named);
    if (one != sequential.end())
      colors.sequential = one->map;
    else if (other != diverging.end())
      colors.diverging = other->map;
    else
      refuse(option,
             "one of " + core::text::joined(sequential, ", ", &NamedMap::name) + ", " +
                 core::text::joined(diverging, ", ", &NamedMap::name),
             name);
  }
}

void read_range(StringRef option, StringRef range, ColorChoice& colors) {
  constexpr std::pair<const char*, ColorRangeRule> rules[]{{"matrix", ColorRangeRule::matrix},
                                                           {"stage", ColorRangeRule::stage},
                                                           {"all", ColorRangeRule::all_heads}};
  for (const auto& [name, rule] : rules)
    if (range == name) {
      colors.range = rule;
      return;
    }
  const std::size_t colon = std::min(range.find(':'), range.size() - 1);
  const auto low = core::text::parse_number(range.substr(0, colon)),
             high = core::text::parse_number(range.substr(colon + 1));
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high) || !(*low < *high))
    refuse(option, "matrix, stage, all or LOW:HIGH, two numbers of which the second is larger", range);
  colors.range = ColorRangeRule::typed;
  colors.typed_values = colors.typed_weights = {*low, *high};
}

formats::StageFile read_given(StringRef option, StringRef stage_and_file) {
  const std::size_t sign = stage_and_file.find('=');
  const std::string stage = stage_and_file.substr(0, sign);
  const StageInfo* found = core::attention::find_stage(stage);
  const bool can = found && (found->stage == core::attention::Stage::embeddings ||
                             core::attention::can_be_given(found->stage));
  if (sign == stage_and_file.npos || sign + 1 == stage_and_file.size() || !can)
    refuse(
        option,
        "STAGE=FILE with embeddings, queries, keys, values, scores, scaled_scores, masked_scores, weights or "
        "dropout_mask",
        stage_and_file);
  return {stage, stage_and_file.substr(sign + 1)};
}

void read_stage_of_tensor(StringRef option, StringRef tensor_and_stage,
                          std::map<std::string, std::string>& by_hand) {
  const std::size_t sign = tensor_and_stage.rfind('=');  // the name of a tensor may contain one
  if (sign == tensor_and_stage.npos || sign == 0) refuse(option, "NAME=STAGE", tensor_and_stage);
  const std::string stage = tensor_and_stage.substr(sign + 1);
  if (!stage.empty() && !core::check::is_gradient(stage)) named_stage(option, "a stage among", stage);
  by_hand[tensor_and_stage.substr(0, sign)] = stage;
}

std::pair<std::size_t, std::size_t> read_pair(StringRef option, StringRef pair, char between,
                                              const char* expected) {
  const std::size_t middle = std::min(pair.find(between), pair.size() - 1);
  const auto first = core::text::parse_unsigned(pair.substr(0, middle)),
             second = core::text::parse_unsigned(pair.substr(middle + 1));
  if (!first || !second) refuse(option, expected, pair);
  return {*first, *second};
}

std::pair<std::size_t, std::size_t> read_head(StringRef option, StringRef layer_and_head) {
  return read_pair(option, layer_and_head, '.', "LAYER.HEAD, with commas between several");
}

core::positions::Rotary read_rope(StringRef option, StringRef words) {
  core::positions::Rotary rotary;
  const auto require = [&](bool is_right) {
    if (!is_right) refuse(option, "BASE[,halves or neighbors][,COLUMNS], as 500000,halves,64", words);
  };
  const std::vector<std::string> parts = core::text::split(words, ',');
  const auto base = core::text::parse_number(parts.front());
  require(base && std::isfinite(*base) && *base > 0);
  rotary.base = *base;
  for (std::size_t k = 1; k < parts.size(); ++k) {
    const std::string& part = parts[k];
    if (part == "halves") {
      rotary.pairs = core::positions::Pairs::halves;
    } else if (part == "neighbors" || part == "neighbours") {  // the latter as in sessions
      rotary.pairs = core::positions::Pairs::neighbors;
    } else {
      const auto columns = core::text::parse_unsigned(part);
      require(columns && *columns > 0 && *columns % 2 == 0);
      rotary.dimensions = *columns;
    }
  }
  return rotary;
}

}  // namespace app
