#include "core/graph/bugs.hpp"

#include <algorithm>
#include <cmath>

namespace core::bugs {
namespace {

ProjectionName part_of(char side) {
  return side == 'q'   ? ProjectionName::query
         : side == 'k' ? ProjectionName::key
         : side == 'v' ? ProjectionName::value
                       : ProjectionName::output;
}

}  // namespace

void BugCase::edit(Editing& editing) const {
  if (sides.empty()) return bug->edit(editing, *this, ProjectionName::query);
  for (const char side : sides) bug->edit(editing, *this, part_of(side));
}

std::string BugCase::words(const Editing& before) const {
  return bug->words(before, *this);
}

bool BugContext::reaches(Stage stage) const {
  if (now.has_reordered_scores()) return true;
  Editing changed = now;
  changed.scale(stage, 1);
  const graph::LazyStages after(changed.graph, changed.model(), stages);
  return after.find(target) && !after.is_unchanged(target);
}

std::span<const Bug* const> all_bugs() {
  static const std::vector<const Bug*> all = [] {
    std::vector<const Bug*> rows;
    for (const auto& family :
         {projection_bugs(), norm_bugs(), rotary_bugs(), position_bugs(), score_bugs(), bias_bugs(),
          mask_bugs(), masking_bugs(), softmax_bugs(), output_bugs(), report_bugs()})
      for (const Bug& bug : family) rows.push_back(&bug);
    std::ranges::stable_partition(rows, [](const Bug* bug) { return !bug->is_last; });
    return rows;
  }();
  return all;
}

const Bug* find_bug(std::string_view name) {
  const auto all = all_bugs();
  const auto found = std::ranges::find(all, name, [](const Bug* bug) { return std::string_view(bug->name); });
  return found == all.end() ? nullptr : *found;
}

std::string_view cause_of(const Bug& bug) {
  const std::string_view name = bug.name;
  return name.substr(0, name.find(':'));
}

Stage stage_named(std::string_view name) {
  return std::ranges::find(attention::stage_table, name,
                           [](const attention::StageInfo& row) { return std::string_view(row.name); })
      ->stage;
}

bool has_dropout(const Model& m) {
  return m.dropout.active() || m.given.find(Stage::dropout_mask);
}

bool are_all_equal(const Numbers& numbers) {
  const auto [least, greatest] = std::ranges::minmax(numbers);
  return greatest - least <= 1e-5 * std::max(std::abs(least), std::abs(greatest));
}

std::vector<BugCase> bug_cases(const BugContext& context) {
  std::vector<BugCase> all;
  for (const Bug* bug : all_bugs()) {
    BugCases cases(*bug);
    if (bug->cases)
      bug->cases(context, cases);
    else
      cases.add();
    std::ranges::move(cases.all, std::back_inserter(all));
  }
  return all;
}

}  // namespace core::bugs
