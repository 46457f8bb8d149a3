#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/graph/bugs.hpp"

/// Bugs of the positions by which queries and keys are rotated.
namespace core::bugs {
namespace {

using graph::digits;
using graph::RotationVariant;
using graph::shift_words;
using graph::stages_of_sides;

/// Row of queries or keys whose position is changed.
struct PlacedRow {
  const Editing& before;
  const std::vector<double>& places;  ///< of all rows
  std::size_t sequence, row;
  long key;  ///< index of the key at the same place
  double own() const { return places[row]; }
};

/// Change of positions, with its numbers; words is {} if the row of the table is only for other words.
struct PositionRule {
  const char* form;
  Words<const Editing&, const BugCase&> words;
  double (*place)(const PlacedRow&, const Numbers&);
};

/// Returns "all positions" for queries and keys, else "the positions of the queries".
std::string whose_positions(const BugCase& c) {
  return c.sides == "qk" ? "all positions" : "the positions of the " + stages_of_sides(c.sides);
}
long n_later_keys(const Editing& e) {
  return static_cast<long>(e.model().n_keys()) - static_cast<long>(e.model().n_tokens());
}
std::string last_keys(const Editing& e, double first) {
  return "the last " + digits(static_cast<double>(e.model().n_keys()) - first) + " keys ";
}

constexpr std::array position_rules{
    PositionRule{"shift",
                 [](const Editing&, const BugCase& c) {
                   return whose_positions(c) + " are " + shift_words(c.numbers[0]);
                 },
                 [](const PlacedRow& r, const Numbers& x) { return r.own() + x[0]; }},
    PositionRule{"at",
                 [](const Editing&, const BugCase& c) {
                   return std::string(c.sides == "qk"  ? "every query and key"
                                      : c.sides == "q" ? "every query"
                                                       : "every key") +
                          " is at position " + digits(c.numbers[0]);
                 },
                 [](const PlacedRow&, const Numbers& x) { return x[0]; }},
    PositionRule{"queries_from",
                 [](const Editing&, const BugCase& c) {
                   return "queries are counted from " + std::string(c.numbers[0] == 0 ? "position 0" : "1") +
                          ", not from the end of the earlier keys";
                 },
                 [](const PlacedRow& r, const Numbers& x) { return r.own() - r.places[0] + x[0]; }},
    PositionRule{"keys_from_first_query", "keys are counted from the position of the first query",
                 [](const PlacedRow& r, const Numbers&) {
                   return r.own() - r.places[0] + r.before.rotation(ProjectionName::query)->places[0][0];
                 }},
    PositionRule{
        "new_keys_alone", "the cached keys are not rotated, only the new ones are",
        [](const PlacedRow& r, const Numbers&) { return r.key < n_later_keys(r.before) ? 0 : r.own(); }},
    PositionRule{"new_keys_from_0", "the last keys are counted from 0 (cache and new keys apart)",
                 [](const PlacedRow& r, const Numbers&) {
                   const long n_before = n_later_keys(r.before);
                   return r.key >= n_before ? static_cast<double>(r.key - n_before) : r.own();
                 }},
    PositionRule{"backwards", "positions run backwards",
                 [](const PlacedRow& r, const Numbers&) { return r.places[r.places.size() - 1 - r.row]; }},
    PositionRule{"in_documents", "positions restart in each document",
                 [](const PlacedRow& r, const Numbers&) {
                   const auto& documents = r.before.model().mask.documents;
                   const auto first = std::ranges::find(documents, documents[r.row]);
                   return static_cast<double>(r.row) - static_cast<double>(first - documents.begin());
                 }},
    PositionRule{"along_padding",
                 [](const Editing&, const BugCase& c) {
                   return "positions are counted along the padding mask" +
                          std::string(c.numbers[0] != 0 ? ", padding at 1" : " (padding does not count)");
                 },
                 [](const PlacedRow& r, const Numbers& x) {
                   const auto& hidden = r.before.model().mask.hidden_keys;
                   const auto is_padded = [&](std::size_t key) {
                     return !hidden.empty() && std::ranges::binary_search(hidden[r.sequence], key);
                   };
                   if (x[0] != 0 && is_padded(r.row)) return 1.0;
                   double n_seen = 0;
                   for (std::size_t key = 0; key <= r.row; ++key) n_seen += !is_padded(key);
                   return std::max(n_seen - 1, 0.0);
                 }},
    PositionRule{"times",
                 [](const Editing&, const BugCase& c) {
                   return whose_positions(c) + " are multiplied by " + digits(c.numbers[0]);
                 },
                 [](const PlacedRow& r, const Numbers& x) { return r.own() * x[0]; }},
    PositionRule{
        "restart_every", "positions restart every {0}",
        [](const PlacedRow& r, const Numbers& x) { return r.own() - x[0] * std::floor(r.own() / x[0]); }},
    PositionRule{"grouped", "positions go up every {0} tokens (grouped)",
                 [](const PlacedRow& r, const Numbers& x) { return std::floor(r.own() / x[0]); }},
    PositionRule{"stop", "positions stop at {0}",
                 [](const PlacedRow& r, const Numbers& x) { return std::min(r.own(), x[0]); }},
    PositionRule{"last_at",
                 [](const Editing& e, const BugCase& c) {
                   return last_keys(e, c.numbers[0]) +
                          (c.sides == "k" ? "are at position " + digits(c.numbers[1])
                                          : "and every query there are at position " + digits(c.numbers[1]) +
                                                " (each generated token alone)");
                 },
                 [](const PlacedRow& r, const Numbers& x) {
                   return static_cast<double>(r.key) >= x[0] ? x[1] : r.own();
                 }},
    PositionRule{"restart_at", "positions restart at key {0}",
                 [](const PlacedRow& r, const Numbers& x) {
                   return static_cast<double>(r.key) >= x[0] ? static_cast<double>(r.key) - x[0] : r.own();
                 }},
    PositionRule{"shift_from",
                 [](const Editing&, const BugCase& c) {
                   return "positions are " + shift_words(c.numbers[1]) + " from key " + digits(c.numbers[0]) +
                          " on";
                 },
                 [](const PlacedRow& r, const Numbers& x) {
                   return static_cast<double>(r.key) >= x[0] ? r.own() + x[1] : r.own();
                 }},
};

/// Sets each position by a function of its row.
template <class Place>
void set_positions(Editing& e, ProjectionName part, bool by_sequence, Place place) {
  const Editing before = e;
  const long first_key = part == ProjectionName::query ? n_later_keys(e) : 0;
  e.change_rotation(part, [&](RotationVariant& r) {
    auto own = r.places;
    if (by_sequence && own.size() == 1) own.resize(e.model().sequences.size(), own[0]);
    r.places = own;
    for (std::size_t s = 0; s < own.size(); ++s)
      for (std::size_t row = 0; row < own[s].size(); ++row)
        r.places[s][row] = place(PlacedRow{before, own[s], s, row, static_cast<long>(row) + first_key});
  });
}

void edit_positions(Editing& e, const BugCase& c, ProjectionName part) {
  const PositionRule& rule = of_form(position_rules, c.form);
  set_positions(e, part, c.form == "along_padding",
                [&](const PlacedRow& row) { return rule.place(row, c.numbers); });
}

void try_shifts(const BugContext& c, BugCases& to, bool shows) {
  std::vector<double> sizes;
  for (int n = 1; n <= 40; ++n) sizes.push_back(n);
  sizes.insert(sizes.end(), {64, 128, 256, 512});
  for (const std::string sides : {"q", "k", "qk"})
    for (const double size : sizes)
      for (const double n : {-size, size})
        if (shows || sides == "q" || (sides == "k" && size <= 8)) to.add({n}, "shift", sides);
  const double n_keys = static_cast<double>(c.model().n_keys()),
               n_tokens = static_cast<double>(c.model().n_tokens());
  for (const double n :
       std::set<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, n_keys - 1, n_keys, n_tokens - 1, n_tokens}) {
    to.add({n}, "at", "q");
    if (n < 2 || shows) to.add({n}, "at", "k");
    if (n == 0 || shows) to.add({n}, "at", "qk");
  }
}

/// Tries positions that change from a key on.
void try_restarts(double n_keys, BugCases& to) {
  for (double key = 1; key < std::min(n_keys, 33.0); ++key) {
    for (const double place : {0.0, 1.0})
      if (n_keys - key <= 16) {
        to.add({key, place}, "last_at", "qk");
        to.add({key, place}, "last_at", "k");
      }
    to.add({key}, "restart_at", "qk");
    for (const double by : {1.0, -1.0}) to.add({key, by}, "shift_from", "qk");
  }
}

void try_positions(const BugContext& c, BugCases& to) {
  if (!rotates(c.now)) return;
  const Model& m = c.model();
  const double n_keys = static_cast<double>(m.n_keys());
  const bool is_square = m.n_tokens() == m.n_keys();
  // Elsewhere only distances matter.
  const bool shows = c.target == Stage::rotated_queries || c.target == Stage::rotated_keys;
  try_shifts(c, to, shows);
  if (!is_square) {
    for (const double first : {0, 1}) to.add({first}, "queries_from", "q");
    for (const char* form : {"keys_from_first_query", "new_keys_alone", "new_keys_from_0"})
      to.add({}, form, "k");
  }
  to.add({}, "backwards", is_square ? "qk" : "k");
  if (!m.mask.documents.empty() && is_square) to.add({}, "in_documents", "qk");
  const bool is_padded =
      std::ranges::any_of(m.mask.hidden_keys, [](const auto& keys) { return !keys.empty(); });
  if (is_square && is_padded)
    for (const double at : {0, 1}) to.add({at}, "along_padding", "qk");
  for (const double f : {0.5, 2.0, 0.25, 4.0, 0.125, 8.0})
    for (const char* sides : query_key_sides) to.add({f}, "times", sides);
  for (const double n : {2, 3, 4, 5, 6, 8})
    if (n < n_keys) {
      to.add({n}, "restart_every", "qk");
      to.add({n}, "grouped", "qk");
    }
  for (double n = 2; n < std::min(n_keys, 17.0); ++n) to.add({n - 1}, "stop", "qk");
  try_restarts(n_keys, to);
}

void scale_positions(Editing& e, const BugCase& c, ProjectionName part) {
  set_positions(e, part, false, [&](const PlacedRow& row) { return row.own() * c.numbers[0]; });
}
void shift_positions(Editing& e, const BugCase& c, ProjectionName part) {
  set_positions(e, part, false, [&](const PlacedRow& row) { return row.own() + c.numbers[0]; });
}

void rotate_twice(Editing& e, const BugCase&, ProjectionName part) {
  auto again = e.rotation(part);
  if (!again) return;
  const Stage stage = part == ProjectionName::query ? Stage::rotated_queries : Stage::rotated_keys;
  again->inputs[0].source = stage;
  e.graph.wrap(stage, *again);
}

/// Lists queries and keys, together and alone, where they are rotated.
void try_rotated_sides(const BugContext& c, BugCases& to) {
  if (!rotates(c.now)) return;
  for (const char* sides : query_key_sides) to.add({}, "", sides);
}

const std::array position_rows{
    Bug{.name = "positions",
        .edit = edit_positions,
        .words = form_words<position_rules>,
        .cases = try_positions},
    Bug{.name = "position_factor",
        .edit = scale_positions,
        .words = "the positions of the {stages} are multiplied by {number}",
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const char* sides : query_key_sides)
                for (int k = 0; rotates(c.now) && k < 40; ++k)
                  to.fit({std::exp(-3 + 6 * k / 39.0)}, "", sides);
            },
        .rank = 2},
    Bug{.name = "position_shift",
        .edit = shift_positions,
        .words =
            [](const Editing&, const BugCase& c) {
              return "the positions of the " + stages_of_sides(c.sides) + " are " +
                     shift_words(std::round(c.numbers[0] * 1e6) / 1e6);
            },
        .cases =
            [](const BugContext& c, BugCases& to) {
              for (const char* sides : {"q", "k"})
                for (int k = 0; rotates(c.now) && k < 35; ++k) to.fit({-8.25 + 0.5 * k}, "", sides);
            },
        .rank = 2},
    Bug{.name = "rotary_twice",
        .edit = rotate_twice,
        .words = "the {stages} are rotated twice",
        .cases = try_rotated_sides},
};

}  // namespace

std::span<const Bug> position_bugs() {
  return position_rows;
}

}  // namespace core::bugs
