#include "core/files/session_additions.hpp"

#include <cmath>

#include "core/base/number.hpp"
#include "core/files/session_lists.hpp"
#include "core/files/session_words.hpp"

namespace core::formats {
namespace {

using attention::Additions;
using attention::HeadNorm;
using positions::Rotary;
using text::number_text;

std::optional<Json> said(const Json& place, const char* key) {
  auto member = place.member(key);
  return member && !member->is_null() ? member : std::nullopt;
}

HeadNorm read_norm(const Json& place) {
  place.expect_keys({"rule", "query", "key", "epsilon"});
  HeadNorm norm{place.required("rule").word(norm_words), place.required("query").row(),
                place.required("key").row()};
  if (const auto epsilon = said(place, "epsilon")) norm.epsilon = epsilon->number();
  return norm;
}

positions::Scaling read_scaling(const Json& place) {
  place.expect_keys({"rule", "factor", "low", "high", "original"});
  positions::Scaling scaling{place.required("rule").word(scaling_words)};
  scaling.factor = place.required("factor").number();
  if (scaling.rule == positions::ScalingRule::linear) {
    place.expect_keys({"rule", "factor"});
    return scaling;
  }
  scaling.low = place.required("low").number();
  scaling.high = place.required("high").number();
  scaling.original = place.required("original").number();
  return scaling;
}

std::int64_t read_position(const Json& place) {
  constexpr double furthest = 0x1p40;
  const double number = place.number();
  if (std::trunc(number) != number || std::abs(number) > furthest)
    place.fail("a whole number between -2^40 and 2^40");
  return static_cast<std::int64_t>(number);
}

Rotary read_rotary(const Json& place) {
  place.expect_keys({"base", "pairs", "dimensions", "first", "scaling", "inverse_frequencies"});
  Rotary rotary;
  if (const auto base = said(place, "base")) rotary.base = base->number();
  if (const auto pairs = said(place, "pairs")) rotary.pairs = pairs->word(pair_words);
  if (const auto dimensions = said(place, "dimensions")) rotary.dimensions = dimensions->whole(2);
  if (const auto first = said(place, "first")) rotary.first = read_position(*first);
  if (const auto scaling = said(place, "scaling")) rotary.scaling = read_scaling(*scaling);
  if (const auto all = said(place, "inverse_frequencies")) rotary.inverse_frequencies = all->row();
  return rotary;
}

positions::Alibi read_alibi(const Json& place) {
  place.expect_keys({"slopes"});
  positions::Alibi alibi;
  if (const auto slopes = said(place, "slopes")) alibi.slopes = slopes->row();
  return alibi;
}

positions::Relative read_relative(const Json& place) {
  place.expect_keys({"table", "max_distance", "bidirectional"});
  positions::Relative relative{place.required("table").matrix()};
  if (const auto far = said(place, "max_distance")) relative.max_distance = far->whole(1);
  if (const auto both = said(place, "bidirectional")) relative.bidirectional = both->boolean();
  return relative;
}

attention::Positions read_positions(const Json& place) {
  place.expect_keys({"rotary", "alibi", "relative"});
  attention::Positions positions;
  if (const auto rotary = said(place, "rotary")) positions.rotary = read_rotary(*rotary);
  if (const auto alibi = said(place, "alibi")) positions.alibi = read_alibi(*alibi);
  if (const auto relative = said(place, "relative")) positions.relative = read_relative(*relative);
  return positions;
}

/// One matrix for all heads, or a list of them.
std::vector<attention::SharedMatrix> read_bias(const Json& place) {
  const auto row = place.first();
  const auto cell = row ? row->first() : std::nullopt;
  if (!cell || !cell->is_list()) return {place.matrix(Numbers::any)};
  std::vector<attention::SharedMatrix> all;
  for (const Json& head : place.items("a list of matrices, one for each head"))
    all.emplace_back(head.matrix(Numbers::any));
  return all;
}

/// {"key": value, …} of those that are added.
class Object {
 public:
  void add(const char* key, const std::string& value) {
    text_ += (text_.empty() ? "{\"" : ", \"") + std::string(key) + "\": " + value;
  }
  std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

std::string norm_text(const HeadNorm& norm) {
  Object object;
  object.add("rule", quoted_word(norm_words, norm.rule));
  object.add("query", row_text(norm.query, 0));
  object.add("key", row_text(norm.key, 0));
  object.add("epsilon", number_text(norm.epsilon));
  return object.text();
}

std::string scaling_text(const positions::Scaling& scaling) {
  Object object;
  object.add("rule", quoted_word(scaling_words, scaling.rule));
  object.add("factor", number_text(scaling.factor));
  if (scaling.rule == positions::ScalingRule::llama3) {
    object.add("low", number_text(scaling.low));
    object.add("high", number_text(scaling.high));
    object.add("original", number_text(scaling.original));
  }
  return object.text();
}

std::string rotary_text(const Rotary& rotary) {
  Object object;
  object.add("base", number_text(rotary.base));
  object.add("pairs", quoted_word(pair_words, rotary.pairs));
  if (rotary.dimensions) object.add("dimensions", std::to_string(*rotary.dimensions));
  if (rotary.first != 0) object.add("first", std::to_string(rotary.first));
  if (rotary.scaling.rule != positions::ScalingRule::none)
    object.add("scaling", scaling_text(rotary.scaling));
  if (rotary.inverse_frequencies) object.add("inverse_frequencies", row_text(*rotary.inverse_frequencies, 0));
  return object.text();
}

std::string positions_text(const attention::Positions& positions) {
  Object object;
  if (positions.rotary) object.add("rotary", rotary_text(*positions.rotary));
  if (const auto& alibi = positions.alibi)
    object.add("alibi", alibi->slopes ? "{\"slopes\": " + row_text(*alibi->slopes, 0) + "}" : "{}");
  if (const auto& relative = positions.relative) {
    Object inner;
    inner.add("table", matrix_text(relative->table, "  "));
    inner.add("max_distance", std::to_string(relative->max_distance));
    inner.add("bidirectional", relative->bidirectional ? "true" : "false");
    object.add("relative", inner.text());
  }
  return object.text();
}

std::string bias_text(const std::vector<attention::SharedMatrix>& bias) {
  return bias.size() == 1 ? matrix_text(bias.front(), "  ") : heads_text(bias, bias.size(), 1);
}

}  // namespace

Additions read_additions(const Json& top, Additions without) {
  Additions a = std::move(without);
  if (const auto norm = top.member("normalise"))
    a.normalise = norm->is_null() ? std::nullopt : std::optional(read_norm(*norm));
  if (const auto where = top.member("positions"))
    a.positions = where->is_null() ? attention::Positions() : read_positions(*where);
  if (const auto cap = top.member("score_cap"))
    a.score_cap = cap->is_null() ? std::nullopt : std::optional(cap->number());
  if (const auto bias = top.member("score_bias"))
    a.score_bias = bias->is_null() ? std::vector<attention::SharedMatrix>() : read_bias(*bias);
  if (const auto sink = top.member("sink"))
    a.sink = sink->is_null() ? std::nullopt : std::optional(attention::SharedMatrix(sink->row()));
  return a;
}

std::vector<std::pair<const char*, std::string>> additions_text(const Additions& a) {
  std::vector<std::pair<const char*, std::string>> keys;
  if (a.normalise) keys.emplace_back("normalise", norm_text(*a.normalise));
  if (!(a.positions == attention::Positions())) keys.emplace_back("positions", positions_text(a.positions));
  if (a.score_cap) keys.emplace_back("score_cap", number_text(*a.score_cap));
  if (!a.score_bias.empty()) keys.emplace_back("score_bias", bias_text(a.score_bias));
  if (a.sink) keys.emplace_back("sink", row_text(*a.sink, 0));
  return keys;
}

}  // namespace core::formats
