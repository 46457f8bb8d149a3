#include "core/check/ways_of_additions.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/base/number.hpp"

namespace core::check {
namespace {

/// Positions of queries and keys that are counted from another place.
Way counted_from(int queries, int keys, std::string detail) {
  const char* row = queries < keys ? "rotary_off_by_one:earlier" : "rotary_off_by_one";
  const auto made = [=](const Model& model) {
    Model next = model;
    if (!next.additions.positions.rotary) return next;
    next.additions.positions.rotary->first += keys;
    next.departures.misplaced.query_offset += queries - keys;
    return next;
  };
  return {{mistakes::find_mistake(row)}, made, Stage::rotated_queries, std::move(detail)};
}

/// "500000", which is shorter with an exponent.
std::string base_words(double base) {
  const bool is_whole = base == std::floor(base) && base < 1e15;
  return is_whole ? std::to_string(static_cast<std::int64_t>(base)) : text::number_text(base);
}

Way of_base(double base, const std::string& right) {
  const auto made = [base](const Model& model) {
    Model next = model;
    auto& rotary = next.additions.positions.rotary;
    const bool counts =
        rotary && !rotary->inverse_frequencies && positions::rotated_columns(*rotary, model.d_head()) > 2;
    if (counts) rotary->base = base;
    return next;
  };
  return {{mistakes::find_mistake("rotary_base")},
          made,
          Stage::rotated_queries,
          "base " + base_words(base) + " in place of " + right};
}

}  // namespace

std::vector<Way> ways_of_rotations(const Model& model) {
  const auto& rotary = model.additions.positions.rotary;
  if (!rotary) return {};
  std::vector<Way> all;
  for (const auto& [by, words] : {std::pair{1, "late"}, std::pair{-1, "early"}}) {
    const std::string end = std::string(" one position ") + words;
    all.push_back(counted_from(by, 0, "queries" + end));
    all.push_back(counted_from(0, by, "keys" + end));
    all.push_back(counted_from(by, by, "queries and keys" + end));
  }
  // Those of most models, of Llama 3, of Qwen and Mixtral, and of gpt-oss.
  constexpr std::array bases{10000.0, 500000.0, 1000000.0, 150000.0};
  for (const double base : bases) all.push_back(of_base(base, base_words(rotary->base)));
  return all;
}

}  // namespace core::check
