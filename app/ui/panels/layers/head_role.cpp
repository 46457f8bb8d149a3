#include "app/ui/panels/layers/head_role.hpp"

#include <algorithm>

#include "app/session/whole_reading.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using core::transformer::HeadRoles;

constexpr double least_role = 0.3, measured_from = 0.4;  // shares that make a role

}  // namespace

std::string role_words(const HeadRoles& roles) {
  std::pair<double, const char*> best{least_role, "broad"};
  for (const auto& [share, name] :
       {std::pair(roles.previous, "previous"), std::pair(roles.first, "first token"),
        std::pair(roles.itself, "itself"), std::pair(roles.same_token.value_or(0), "same token"),
        std::pair(roles.induction.value_or(0), "induction")})
    if (share > best.first) best = {share, name};
  return best.first > least_role ? std::string(best.second) + " " + widgets::fixed(best.first, 2) : "broad";
}

HeadRole role_of(const Frame& frame, std::size_t layer, std::size_t head) {
  if (frame.newest.whole->experiment.heads_off.contains({layer, head})) return {"off"};
  const auto& sight = *frame.newest.reading->readings()->now->layers[layer];
  const auto* usual = frame.newest.reading->random_roles();
  if (usual && layer < usual->size() && head < (*usual)[layer].size() && !sight.is_edited) {
    const HeadRoles& roles = (*usual)[layer][head];
    if (std::max({roles.previous, roles.induction.value_or(0), roles.same_token.value_or(0)}) > measured_from)
      return {role_words(roles), true};
  }
  return {role_words(sight.heads[head].roles)};
}

float draw_role(const Frame& frame, const HeadRole& role, ImFont* font, float end, bool from_left,
                float middle, float room) {
  const float inset = role.is_measured ? frame.metrics.px(6) : 0;
  std::string words = role.words;
  if (widgets::text_width(font, words) + 2 * inset > room) words = words.substr(0, words.find(' '));
  const float width = widgets::text_width(font, words) + 2 * inset;
  if (width > room) return 0;
  const float left = from_left ? end : end - width, half = frame.metrics.px(8);
  if (role.is_measured)
    ImGui::GetWindowDrawList()->AddRectFilled({left, middle - half}, {left + width, middle + half},
                                              packed(frame.palette.control.active), frame.metrics.px(3));
  widgets::draw_text(font, {left + inset, middle}, widgets::Align::left_middle,
                     packed(role.is_measured ? frame.palette.text : frame.palette.dim), words);
  return width;
}

}  // namespace app::panels
