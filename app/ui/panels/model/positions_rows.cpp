#include "app/ui/panels/model/positions_rows.hpp"

#include <algorithm>
#include <array>

#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using core::attention::Model;
using core::attention::Positions;
using core::editing::SetPositions;
using namespace core::positions;

constexpr std::size_t t5_buckets = 32;

const std::array<std::string, 2> pair_rules{"halves", "neighbours"};
const std::array<std::string, 3> scaling_rules{"none", "linear", "llama3"};
const std::array bias_rules{
    widgets::Option{"none", ""},
    widgets::Option{"ALiBi", "Scores fall with distance, each head at its slope"},
    widgets::Option{"T5's buckets", "A number for each bucket of distances and each head"}};

/// Asks for other positions: what a function changes in those of now.
template <class Change>
void change_positions(const PopupFields& fields, Change change) {
  Positions next = fields.frame.newest.model.additions.positions;
  change(next);
  fields.frame.commands.edit(SetPositions{std::move(next)});
}
template <class Change>
void change_rotary(const PopupFields& fields, Change change) {
  change_positions(fields, [&](Positions& p) { change(*p.rotary); });
}

void columns_row(PopupFields& fields, const Rotary& rotary) {
  const auto typed =
      fields.field("columns", "more/columns", rotary.dimensions ? std::to_string(*rotary.dimensions) : "",
                   "How many columns of a head turn, the first ones, an even number. Empty: all.");
  if (!typed) return;
  const auto counts = counts_in(*typed);
  if (!counts || counts->size() > 1) return fields.refuse("columns", "a whole number or nothing", *typed);
  change_rotary(fields, [&](Rotary& r) {
    r.dimensions.reset();
    if (!counts->empty()) r.dimensions = counts->front();
    r.inverse_frequencies.reset();  // there are as many as pairs
  });
}

void scaling_number(PopupFields& fields, const char* words, const char* name, double Scaling::*number,
                    const char* help) {
  if (const auto value = fields.real(
          words, name, fields.frame.newest.model.additions.positions.rotary->scaling.*number, help))
    change_rotary(fields, [&](Rotary& r) { r.scaling.*number = *value; });
}

void scaling_rows(PopupFields& fields, const Rotary& rotary) {
  fields.row("scaling");
  const auto now = static_cast<std::size_t>(rotary.scaling.rule);
  if (const auto chosen = widgets::segmented(fields.frame, "more/scaling", scaling_rules, now))
    change_rotary(fields, [&](Rotary& r) { r.scaling.rule = static_cast<ScalingRule>(*chosen); });
  widgets::tooltip(
      "How turns are stretched for longer texts: all alike, or long waves alone as in Llama 3.1");
  if (rotary.scaling.rule == ScalingRule::none) return;
  scaling_number(fields, "factor", "more/factor", &Scaling::factor, "By how much turns are slowed down");
  if (rotary.scaling.rule != ScalingRule::llama3) return;
  scaling_number(fields, "low", "more/low", &Scaling::low,
                 "Waves longer than original/low are stretched in full");
  scaling_number(fields, "high", "more/high", &Scaling::high,
                 "Waves shorter than original/high are not stretched");
  scaling_number(fields, "original", "more/original", &Scaling::original, "Tokens of the training");
}

void frequencies_row(PopupFields& fields, const Model& model, const Rotary& rotary) {
  fields.row("turns");
  const auto own = widgets::checkbox(
      fields.frame, "more/frequencies", "own frequencies", rotary.inverse_frequencies.has_value(),
      "Radians by which each pair turns from one position to the next, typed in EDIT; they begin as those of the base");
  if (!own) return;
  change_rotary(fields, [&](Rotary& r) {
    r.inverse_frequencies.reset();
    if (*own) r.inverse_frequencies = arma::mat(arma::rowvec(frequencies(rotary, model.d_head())));
  });
}

void rotary_rows(PopupFields& fields, const Model& model) {
  const auto& now = model.additions.positions.rotary;
  fields.row("positions");
  if (const auto on = widgets::checkbox(fields.frame, "more/rotary", "rotary", now.has_value(),
                                        "Queries and keys turn with their position, in pairs of columns"))
    change_positions(fields, [&](Positions& p) {
      p.rotary.reset();
      if (!*on) return;
      p.rotary.emplace();
      if (model.d_head() % 2 != 0) p.rotary->dimensions = model.d_head() - 1;  // the last one has no partner
    });
  if (!now) return;
  if (const auto base =
          fields.real("base", "more/base", now->base, "Pair p turns by base^(−2p/d) a position"))
    change_rotary(fields, [&](Rotary& r) { r.base = *base; });
  fields.row("pairs");
  const auto pairs = static_cast<std::size_t>(now->pairs);
  if (const auto chosen = widgets::segmented(fields.frame, "more/pairs", pair_rules, pairs))
    change_rotary(fields, [&](Rotary& r) { r.pairs = static_cast<Pairs>(*chosen); });
  widgets::tooltip(
      "Which columns turn together: p and p + d/2, as in Hugging Face's Llama, or 2p and 2p + 1");
  columns_row(fields, *now);
  if (const auto first = fields.whole("first", "more/first", now->first, "The position of the first key"))
    change_rotary(fields, [&](Rotary& r) { r.first = *first; });
  scaling_rows(fields, *now);
  frequencies_row(fields, model, *now);
}

void relative_rows(PopupFields& fields, const Relative& now) {
  const auto change = [&](auto with) { change_positions(fields, [&](Positions& p) { with(*p.relative); }); };
  constexpr std::int64_t most_buckets = 4096;
  if (const auto n = fields.whole("buckets", "more/buckets", static_cast<std::int64_t>(now.table.n_cols()),
                                  "Of distances; new ones begin as zeros")) {
    if (*n < 2 || *n > most_buckets) return fields.refuse("buckets", "2 to 4096", std::to_string(*n));
    change([&](Relative& r) {
      arma::mat table = r.table;
      table.resize(table.n_rows, static_cast<arma::uword>(*n));
      r.table = std::move(table);
    });
  }
  if (const auto n =
          fields.whole("furthest", "more/max_distance", static_cast<std::int64_t>(now.max_distance),
                       "max_distance: from there on distances share the last bucket")) {
    if (*n < 1) return fields.refuse("furthest", "a whole number above 0", std::to_string(*n));
    change([&](Relative& r) { r.max_distance = static_cast<std::size_t>(*n); });
  }
  fields.row("");
  if (const auto both = widgets::checkbox(fields.frame, "more/both", "both directions", now.bidirectional,
                                          "Keys after the query have buckets of their own"))
    change([&](Relative& r) { r.bidirectional = *both; });
}

void distance_rows(PopupFields& fields, const Model& model) {
  const auto& [rotary, alibi, relative] = model.additions.positions;
  const std::size_t now = alibi ? 1 : relative ? 2 : 0;
  fields.row("by distance");
  const float width = fields.frame.metrics.px(popup_controls);
  const auto chosen =
      widgets::combo(fields.frame, "more/distance", width, bias_rules[now].words, bias_rules, now);
  widgets::tooltip("A bias of the scores that the distance of query and key decides");
  if (chosen && *chosen != now)
    change_positions(fields, [&](Positions& p) {
      p.alibi.reset(), p.relative.reset();
      if (*chosen == 1) p.alibi.emplace();
      if (*chosen == 2) p.relative = Relative{arma::mat(model.n_heads, t5_buckets, arma::fill::zeros)};
    });
  if (alibi) {
    fields.row("");
    const auto own = widgets::checkbox(fields.frame, "more/slopes", "own slopes", alibi->slopes.has_value(),
                                       "A number for each head, typed in EDIT; they begin as the usual ones");
    if (own)
      change_positions(fields, [&](Positions& p) {
        p.alibi->slopes.reset();
        if (*own) p.alibi->slopes = arma::mat(arma::rowvec(default_slopes(model.n_heads)));
      });
  }
  if (relative) relative_rows(fields, *relative);
}

}  // namespace

std::vector<std::string> positions_words(const Positions& positions) {
  std::vector<std::string> words;
  if (positions.rotary)
    words.push_back("rotary " + pair_rules.at(static_cast<std::size_t>(positions.rotary->pairs)));
  if (positions.alibi) words.push_back("ALiBi");
  if (positions.relative) words.push_back(std::to_string(positions.relative->table.n_cols()) + " buckets");
  return words;
}

void positions_rows(PopupFields& fields, const Model& model) {
  rotary_rows(fields, model);
  distance_rows(fields, model);
}

}  // namespace app::panels
