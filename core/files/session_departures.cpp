#include "core/files/session_departures.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "core/base/number.hpp"
#include "core/files/session_parts.hpp"
#include "core/graph/mistakes.hpp"

namespace core::formats {
namespace {

using attention::Model;

/// Mistakes that files named by a key of their own, which is true or false.
struct OldKey {
  const char *key, *mistake;
};
constexpr std::array old_keys{
    OldKey{"scores_swapped", "query_key_swapped"},
    OldKey{"queries_viewed", "view_without_transpose:query"},
    OldKey{"keys_viewed", "view_without_transpose:key"},
    OldKey{"values_viewed", "view_without_transpose:value"},
    OldKey{"scores_prescaled", "scale_twice"},
    OldKey{"groups_tiled", "groups_tiled"},
    OldKey{"norm_after_rotation", "norm_after_rotation"},
    OldKey{"cap_before_scale", "cap_before_scale"},
    OldKey{"bias_before_scale", "bias_before_scale"},
    OldKey{"queries_turned_alone", "rotary_queries_only"},
    OldKey{"values_turned", "rotary_on_values"},
    OldKey{"turned_backwards", "rotary_backwards"},
};
/// The words of keys that name one of several, or none.
constexpr std::array softmax_words{Word{"keys", ""}, Word{"queries", "softmax_over_queries"}};
constexpr std::array split_words{Word{"bands", ""}, Word{"interleaved", "heads_interleaved"}};
constexpr std::array combine_words{Word{"bands", ""}, Word{"interleaved", "heads_interleaved:combined"}};
constexpr std::array block_words{Word{"whole", ""}, Word{"not_rescaled", "blocks_not_rescaled"},
                                 Word{"sum_not_rescaled", "blocks_not_rescaled:sum"},
                                 Word{"contexts_not_rescaled", "blocks_not_rescaled:contexts"},
                                 Word{"last_dropped", "last_block_dropped"}};

int read_offset(const Json& place) {
  const double number = place.number();
  if (std::trunc(number) != number || std::abs(number) > 1e6)
    place.fail("a whole number from -1000000 to 1000000");
  return static_cast<int>(number);
}

void add_mistake(Model& m, std::string_view name, std::int64_t size = 0) {
  if (!name.empty()) m = with_mistake(std::move(m), *mistakes::find_any_mistake(name), size);
}

void read_old_mistakes(const Json& place, Model& m) {
  for (const OldKey& old : old_keys)
    if (const auto is_made = place.member(old.key); is_made && is_made->boolean())
      add_mistake(m, old.mistake);
  if (const auto over = place.member("softmax_over")) add_mistake(m, over->word(softmax_words));
  if (const auto split = place.member("split_heads")) add_mistake(m, split->word(split_words));
  if (const auto merge = place.member("merge_heads")) add_mistake(m, merge->word(combine_words));
  if (const auto blocks = place.member("blocks")) {
    blocks->expect_keys({"rule", "size"});
    const auto size = static_cast<std::int64_t>(blocks->required("size").whole(1));
    add_mistake(m, blocks->required("rule").word(block_words), size);
  }
  if (const auto offset = place.member("query_offset"))
    m = mistakes::with_offset_of_queries(std::move(m), read_offset(*offset));
}

void read_mistake(const Json& place, Model& m) {
  const bool has_size = place.is_object();
  if (has_size) place.expect_keys({"name", "size"});
  const Json name = has_size ? place.required("name") : place;
  const mistakes::Mistake* mistake = mistakes::find_any_mistake(name.text());
  if (!mistake || mistake->in_model) name.fail("a mistake of those in the code, as \"scale_twice\"");
  const int size = has_size ? read_offset(place.required("size")) : 0;
  const bool is_offset = std::string_view(mistake->cause) == "rotary_off_by_one";
  if (size < 0 && !is_offset) place.required("size").fail("a whole number from 1 to 1000000");
  m = with_mistake(std::move(m), *mistake, size);
}

}  // namespace

void read_departures(const Json& place, Model& m) {
  place.expect_keys({"softmax_over",      "scores_swapped",       "mask_diagonal",       "mask_transposed",
                     "large_negative",    "dropout_place",        "split_heads",         "merge_heads",
                     "precision",         "product_inputs",       "sums_rounded",        "softmax_precision",
                     "queries_viewed",    "keys_viewed",          "values_viewed",       "blocks",
                     "scores_prescaled",  "groups_tiled",         "norm_after_rotation", "cap_before_scale",
                     "bias_before_scale", "queries_turned_alone", "values_turned",       "turned_backwards",
                     "query_offset"});
  attention::Arithmetic& a = m.arithmetic;
  if (const auto diagonal = place.member("mask_diagonal")) m.mask.edge.diagonal = read_offset(*diagonal);
  if (const auto is_so = place.member("mask_transposed")) m.mask.edge.transposed = is_so->boolean();
  if (const auto fill = place.member("large_negative")) m.mask.large_negative = fill->number();
  if (const auto where = place.member("dropout_place")) m.dropout.place = where->word(dropout_place_words);
  if (const auto precision = place.member("precision")) a.precision = precision->word(precision_words);
  if (const auto inputs = place.member("product_inputs")) a.product_inputs = inputs->word(precision_words);
  if (const auto sums = place.member("sums_rounded")) a.sums_rounded = sums->boolean();
  if (const auto in = place.member("softmax_precision")) a.softmax_precision = in->word(precision_words);
  read_old_mistakes(place, m);
}

std::string departures_text(const Model& m) {
  const attention::Mask mask;
  const attention::Arithmetic exact, &a = m.arithmetic;
  std::string text;
  const auto add = [&](bool is_set, const char* key, const std::string& value) {
    if (is_set) text += (text.empty() ? "{\"" : ", \"") + std::string(key) + "\": " + value;
  };
  add(m.mask.edge.diagonal != 0, "mask_diagonal", std::to_string(m.mask.edge.diagonal));
  add(m.mask.edge.transposed, "mask_transposed", "true");
  add(m.mask.large_negative != mask.large_negative, "large_negative",
      text::number_text(m.mask.large_negative));
  add(m.dropout.place != attention::DropoutPlace::weights, "dropout_place",
      quoted_word(dropout_place_words, m.dropout.place));
  add(a.precision != exact.precision, "precision", quoted_word(precision_words, a.precision));
  add(a.product_inputs != exact.product_inputs, "product_inputs",
      quoted_word(precision_words, a.product_inputs));
  add(a.sums_rounded, "sums_rounded", "true");
  add(a.softmax_precision != exact.softmax_precision, "softmax_precision",
      quoted_word(precision_words, a.softmax_precision));
  return text.empty() ? "" : text + "}";
}

void read_mistakes(const Json& place, Model& m) {
  for (const Json& item : place.items_if_any("a list of mistakes")) read_mistake(item, m);
}

std::string mistakes_text(const Model& m) {
  std::string text;
  for (const auto& [mistake, size] : m.mistakes) {
    const std::string name = "\"" + std::string(mistake->name) + "\"";
    text += (text.empty() ? "[" : ", ") +
            (size == 0 ? name : "{\"name\": " + name + ", \"size\": " + std::to_string(size) + "}");
  }
  return text + "]";
}

}  // namespace core::formats
