#include "core/graph/bugs.hpp"

/// Bugs of rotary positions.
namespace core::bugs {
namespace {

constexpr std::array query_key_sides{"qk", "q", "k"};

/// Lists queries and keys, together and alone, where they are rotated.
void try_rotated_sides(const BugContext& c, BugCases& to) {
  if (!c.now.find(Stage::rotated_queries)) return;
  for (const char* sides : query_key_sides) to.add({}, "", sides);
}

constexpr std::array rows{
    Bug{.name = "rotary_missing",
        .edit =
            [](Editing& e, const BugCase&, ProjectionName part) {
              e.leave_out(part == ProjectionName::query ? Stage::rotated_queries : Stage::rotated_keys);
            },
        .words =
            [](const Editing&, const BugCase& c) {
              return "the " + graph::stages_of_sides(c.sides) + " are not rotated";
            },
        .cases = try_rotated_sides},
};

}  // namespace

std::span<const Bug> rotary_bugs() {
  return rows;
}

}  // namespace core::bugs
