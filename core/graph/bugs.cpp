#include "core/graph/bugs.hpp"

#include <fmt/core.h>
#include <cmath>

namespace core::bugs {
namespace {

std::string digits_of(const Numbers& numbers, std::size_t k) {
  return k < numbers.size() ? graph::digits(numbers[k]) : "";
}

}  // namespace

std::string filled(const char* text, const Numbers& x) {
  return fmt::format(fmt::runtime(text), digits_of(x, 0), digits_of(x, 1));
}

std::string filled(const char* text, const Editing& before, const BugCase& of) {
  const Numbers& x = of.numbers;
  return fmt::format(fmt::runtime(text), digits_of(x, 0), digits_of(x, 1),
                     fmt::arg("number", before.words.number(of.number())),
                     fmt::arg("list", before.words.list(x)),
                     fmt::arg("stages", graph::stages_of_sides(of.sides)), fmt::arg("form", of.form));
}

void BugCase::edit(Editing& editing) const {
  const std::string_view own = sides.empty() ? std::string_view(bug->default_sides) : sides;
  if (!bug->edit) return;
  if (own.empty()) return bug->edit(editing, *this, ProjectionName::query);
  for (const char side : own) bug->edit(editing, *this, part_of(side));
}

std::string BugCase::words(const Editing& before) const {
  return bug->words(before, *this);
}

bool FoundCase::is(const BugCase& found, const Editing& before) const {
  return bug && std::string_view(bug) == found.bug->name && form == found.form && sides == found.sides &&
         (!fits || fits(before, found.numbers));
}

std::span<const Bug* const> offered_bugs() {
  static const std::vector<const Bug*> all = [] {
    std::vector<const Bug*> rows;
    for (const auto& family : {offered_projection_bugs(), offered_score_bugs()})
      for (const Bug& bug : family)
        if (!bug.is_form) rows.push_back(&bug);
    return rows;
  }();
  return all;
}

bool BugContext::reaches(Stage stage) const {
  if (now.has_reordered_scores()) return true;
  Editing changed = now;
  changed.scale(stage, 1);
  const graph::LazyStages after(changed.graph, changed.model(), stages);
  return after.find(target) && !after.is_unchanged(target);
}

arma::mat sum_of_heads(const graph::OperationInputs& in, std::size_t k) {
  arma::mat sum = in.of_head(k, 0);
  for (std::size_t h = 1; h < in.model.n_heads; ++h) sum += in.of_head(k, h);
  return sum;
}

arma::mat normalized(arma::mat weights) {
  weights.each_col() /= arma::vec(arma::sum(weights, 1));
  return weights;
}

std::span<const Bug* const> all_bugs() {
  static const std::vector<const Bug*> all = [] {
    std::vector<const Bug*> rows(offered_bugs().begin(), offered_bugs().end());
    for (const auto& family :
         {offered_projection_bugs(), offered_score_bugs(), projection_bugs(), norm_bugs(), rotary_bugs(),
          position_bugs(), score_bugs(), bias_bugs(), mask_bugs(), masking_bugs(), softmax_bugs(),
          dropout_bugs(), output_bugs(), cache_bugs(), report_bugs()})
      for (const Bug& bug : family)
        if (!bug.is_offered()) rows.push_back(&bug);
    std::ranges::stable_partition(rows, [](const Bug* bug) { return !bug->is_last; });
    return rows;
  }();
  return all;
}

const Bug* find_offered_bug(std::string_view name) {
  const Bug* bug = find_bug(name);
  return bug && bug->is_offered() ? bug : nullptr;
}

const Bug* find_bug(std::string_view name) {
  const auto all = all_bugs();
  const auto found = std::ranges::find(all, name, [](const Bug* bug) { return std::string_view(bug->name); });
  return found == all.end() ? nullptr : *found;
}

std::size_t order_of(const Bug& bug) {
  return static_cast<std::size_t>(std::ranges::find(all_bugs(), &bug) - all_bugs().begin());
}

std::string_view cause_of(const Bug& bug) {
  const std::string_view name = bug.name;
  return bug.cause ? bug.cause : name.substr(0, name.find(':'));
}

std::vector<const Bug*> titles_of(const BugCase& found, const Editing& before) {
  std::vector<const Bug*> titles;
  for (const Bug* bug : all_bugs())
    if (std::ranges::any_of(bug->is_also, [&](const FoundCase& c) { return c.is(found, before); }))
      titles.push_back(bug);
  if (titles.empty() && found.bug->texts.title) titles.push_back(found.bug);
  return titles;
}

std::vector<const Bug*> names_of(const BugCase& found, const Editing& before) {
  const auto name_of = [&](const BugCase& one) -> const Bug* {
    const std::vector<const Bug*> titles = titles_of(one, before);
    return titles.empty() ? nullptr : titles.front();
  };
  if (const Bug* name = name_of(found)) return {name};
  std::vector<const Bug*> names;
  for (const char side : found.sides) {
    BugCase one = found;
    one.sides = side;
    names.push_back(name_of(one));
  }
  const bool is_named = !names.empty() && std::ranges::find(names, nullptr) == names.end();
  return is_named ? names : std::vector{found.bug};
}

ProjectionName part_of(char side) {
  return static_cast<ProjectionName>(std::string_view("qkvo").find(side));
}

Stage stage_named(std::string_view name) {
  return std::ranges::find(attention::stage_table, name,
                           [](const attention::StageInfo& row) { return std::string_view(row.name); })
      ->stage;
}

std::pair<Stage, std::string> stage_and_form(const BugCase& c) {
  const std::size_t colon = c.form.find(':');
  return {stage_named(c.form.substr(0, colon)), c.form.substr(colon + 1)};
}

bool rotates(const Editing& e) {
  return e.find(Stage::rotated_queries) && e.find(Stage::rotated_keys);
}
bool has_several_heads(const Editing& e) {
  return e.model().n_heads > 1;
}
bool are_scores_square(const Editing& e) {
  return e.model().n_tokens() == e.model().n_keys();
}
bool have_one_width(const Editing& e) {
  return e.model().d_value() == e.model().d_head();
}
const attention::Mask& mask_of(const Editing& e) {
  return e.get<graph::AttentionMask>(Stage::mask)->mask;
}
double width_or_none(const std::optional<std::size_t>& side) {
  return side ? static_cast<double>(*side) : -1;
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
    else if (bug->fits ? bug->fits(context.now) : static_cast<bool>(bug->words))
      cases.add();
    std::ranges::move(cases.all, std::back_inserter(all));
  }
  return all;
}

}  // namespace core::bugs
