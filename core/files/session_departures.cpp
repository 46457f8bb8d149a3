#include "core/files/session_departures.hpp"

#include <array>
#include <cmath>

#include "core/base/number.hpp"
#include "core/files/session_parts.hpp"

namespace core::formats {
namespace {

/// What is so or not, by its key.
struct Misplacement {
  const char* key;
  bool attention::Misplaced::*member;
};
constexpr std::array misplacements{
    Misplacement{"groups_tiled", &attention::Misplaced::groups_tiled},
    Misplacement{"norm_after_rotation", &attention::Misplaced::norm_after_rotation},
    Misplacement{"cap_before_scale", &attention::Misplaced::cap_before_scale},
    Misplacement{"bias_before_scale", &attention::Misplaced::bias_before_scale},
    Misplacement{"queries_turned_alone", &attention::Misplaced::queries_turned_alone},
    Misplacement{"values_turned", &attention::Misplaced::values_turned},
    Misplacement{"turned_backwards", &attention::Misplaced::turned_backwards},
};

int read_offset(const Json& place) {
  const double number = place.number();
  if (std::trunc(number) != number || std::abs(number) > 1e6)
    place.fail("a whole number from -1000000 to 1000000");
  return static_cast<int>(number);
}

attention::Blocks read_blocks(const Json& place) {
  place.expect_keys({"rule", "size"});
  return {place.required("rule").word(block_rule_words), place.required("size").whole(1)};
}

}  // namespace

attention::Departures read_departures(const Json& place) {
  place.expect_keys({"softmax_over",      "scores_swapped",       "mask_diagonal",       "mask_transposed",
                     "large_negative",    "dropout_place",        "split_heads",         "merge_heads",
                     "precision",         "product_inputs",       "sums_rounded",        "softmax_precision",
                     "queries_viewed",    "keys_viewed",          "values_viewed",       "blocks",
                     "scores_prescaled",  "groups_tiled",         "norm_after_rotation", "cap_before_scale",
                     "bias_before_scale", "queries_turned_alone", "values_turned",       "turned_backwards",
                     "query_offset"});
  attention::Departures d;
  if (const auto over = place.member("softmax_over")) d.softmax_over = over->word(softmax_words);
  if (const auto swapped = place.member("scores_swapped")) d.scores_swapped = swapped->boolean();
  if (const auto diagonal = place.member("mask_diagonal")) d.mask_edge.diagonal = read_offset(*diagonal);
  if (const auto transposed = place.member("mask_transposed")) d.mask_edge.transposed = transposed->boolean();
  if (const auto fill = place.member("large_negative")) d.large_negative = fill->number();
  if (const auto where = place.member("dropout_place")) d.dropout_place = where->word(dropout_place_words);
  if (const auto split = place.member("split_heads")) d.split = split->word(head_column_words);
  if (const auto merge = place.member("merge_heads")) d.merge = merge->word(head_column_words);
  if (const auto precision = place.member("precision")) d.precision = precision->word(precision_words);
  if (const auto inputs = place.member("product_inputs")) d.product_inputs = inputs->word(precision_words);
  if (const auto sums = place.member("sums_rounded")) d.sums_rounded = sums->boolean();
  if (const auto in = place.member("softmax_precision")) d.softmax_precision = in->word(precision_words);
  if (const auto viewed = place.member("queries_viewed")) d.viewed.queries = viewed->boolean();
  if (const auto viewed = place.member("keys_viewed")) d.viewed.keys = viewed->boolean();
  if (const auto viewed = place.member("values_viewed")) d.viewed.values = viewed->boolean();
  if (const auto blocks = place.member("blocks")) d.blocks = read_blocks(*blocks);
  if (const auto prescaled = place.member("scores_prescaled")) d.scores_prescaled = prescaled->boolean();
  for (const Misplacement& m : misplacements)
    if (const auto is_so = place.member(m.key)) d.misplaced.*m.member = is_so->boolean();
  if (const auto offset = place.member("query_offset")) d.misplaced.query_offset = read_offset(*offset);
  return d;
}

std::string departures_text(const attention::Departures& d) {
  const attention::Departures none;
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += (text.empty() ? "{\"" : ", \"") + std::string(key) + "\": " + value;
  };
  if (d.softmax_over != none.softmax_over) add("softmax_over", quoted_word(softmax_words, d.softmax_over));
  if (d.scores_swapped) add("scores_swapped", "true");
  if (d.mask_edge.diagonal != 0) add("mask_diagonal", std::to_string(d.mask_edge.diagonal));
  if (d.mask_edge.transposed) add("mask_transposed", "true");
  if (d.large_negative != none.large_negative) add("large_negative", text::number_text(d.large_negative));
  if (d.dropout_place != none.dropout_place)
    add("dropout_place", quoted_word(dropout_place_words, d.dropout_place));
  if (d.split != none.split) add("split_heads", quoted_word(head_column_words, d.split));
  if (d.merge != none.merge) add("merge_heads", quoted_word(head_column_words, d.merge));
  if (d.precision != none.precision) add("precision", quoted_word(precision_words, d.precision));
  if (d.product_inputs != none.product_inputs)
    add("product_inputs", quoted_word(precision_words, d.product_inputs));
  if (d.sums_rounded) add("sums_rounded", "true");
  if (d.softmax_precision != none.softmax_precision)
    add("softmax_precision", quoted_word(precision_words, d.softmax_precision));
  if (d.viewed.queries) add("queries_viewed", "true");
  if (d.viewed.keys) add("keys_viewed", "true");
  if (d.viewed.values) add("values_viewed", "true");
  if (!(d.blocks == none.blocks))
    add("blocks", "{\"rule\": " + quoted_word(block_rule_words, d.blocks.rule) +
                      ", \"size\": " + std::to_string(d.blocks.size) + "}");
  if (d.scores_prescaled) add("scores_prescaled", "true");
  for (const Misplacement& m : misplacements)
    if (d.misplaced.*m.member) add(m.key, "true");
  if (d.misplaced.query_offset != 0) add("query_offset", std::to_string(d.misplaced.query_offset));
  return text.empty() ? "{}" : text + "}";
}

}  // namespace core::formats
