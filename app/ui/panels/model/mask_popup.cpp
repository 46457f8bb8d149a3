#include "app/ui/panels/model/mask_popup.hpp"

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/model/mask_picture.hpp"
#include "app/ui/panels/model/popup_fields.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"

namespace app::panels {
namespace {

using core::attention::Mask;
using core::attention::MaskAlignment;
using core::attention::MaskWindow;
using namespace core::editing;
using Counts = std::vector<std::size_t>;

const std::array<std::string, 2> alignments{"the last keys", "the first keys"};

std::string listed(const Counts& counts, const char* between = " ") {
  return core::text::joined(counts, between, [](std::size_t n) { return std::to_string(n); });
}

std::string side_text(const std::optional<std::size_t>& side) {
  return side ? std::to_string(*side) : "-1";
}

/// "2, 0"; "-1" is no limit, and nothing at all is no window.
std::optional<MaskWindow> window_in(const std::string& text) {
  if (text.find_first_not_of(' ') == text.npos) return MaskWindow();
  const std::size_t comma = text.find_first_of(",; ", text.find_first_not_of(' '));
  if (comma == text.npos) return std::nullopt;
  const auto side = [](const std::string& part, std::optional<std::size_t>& into) {
    const std::string number = part.substr(std::min(part.find_first_not_of(", ;"), part.size()));
    if (number == "-1" || number == "−1") return true;
    const auto counts = counts_in(number);
    if (!counts || counts->size() != 1) return false;
    into = counts->front();
    return true;
  };
  MaskWindow window;
  if (!side(text.substr(0, comma), window.left) || !side(text.substr(comma), window.right))
    return std::nullopt;
  return window;
}

void window_row(PopupFields& fields, const Mask& mask) {
  const bool is_set = mask.window != MaskWindow();
  const std::string shown =
      is_set ? side_text(mask.window.left) + ", " + side_text(mask.window.right) : std::string();
  const auto typed =
      fields.field("window", "mask/window", shown,
                   "Keys that a query sees to the left and to the right of its own place, as 3, 0; "
                   "−1 is no limit. FlashAttention calls it window_size.");
  if (!typed) return;
  if (const auto window = window_in(*typed))
    fields.frame.commands.edit(SetMaskWindow{*window});
  else
    fields.refuse("window", "two whole numbers, as 3, 0 (−1 for no limit)", *typed);
}

void prefix_row(PopupFields& fields, const Mask& mask) {
  const auto typed =
      fields.field("prefix", "mask/prefix", mask.prefix > 0 ? std::to_string(mask.prefix) : "",
                   "The first keys that every query sees, also those after it, as many as you type.");
  if (!typed) return;
  const auto counts = counts_in(*typed);
  if (counts && counts->size() <= 1)
    fields.frame.commands.edit(SetMaskPrefix{counts->empty() ? 0 : counts->front()});
  else
    fields.refuse("prefix", "a whole number or nothing", *typed);
}

void documents_row(PopupFields& fields, const Mask& mask) {
  const auto typed = fields.field(
      "documents", "mask/documents", listed(mask.documents),
      "The document of each token, as 0 0 0 1 1 2: a query sees keys of its own document alone.");
  if (!typed) return;
  if (const auto documents = counts_in(*typed))
    fields.frame.commands.edit(SetDocuments{*documents});
  else
    fields.refuse("documents", "whole numbers, one for each token", *typed);
}

void padding_row(PopupFields& fields, const Mask& mask, std::size_t sequence, std::size_t n_sequences) {
  const std::string shown = sequence < mask.hidden_keys.size() ? listed(mask.hidden_keys[sequence]) : "";
  const auto typed = fields.field("padding", "mask/padding", shown,
                                  n_sequences > 1 ? "Keys of this sequence that no query sees, as 6 7."
                                                  : "Keys that no query sees, as 6 7.");
  if (!typed) return;
  const auto keys = counts_in(*typed);
  if (!keys) return fields.refuse("padding", "whole numbers of keys", *typed);
  auto all = mask.hidden_keys;
  all.resize(n_sequences);
  all[sequence] = *keys;
  fields.frame.commands.edit(SetHiddenKeys{std::move(all)});
}

void alignment_row(PopupFields& fields, const Mask& mask) {
  fields.row("queries are");
  const auto now = static_cast<std::size_t>(mask.align);
  if (const auto chosen = widgets::segmented(fields.frame, "mask/align", alignments, now))
    fields.frame.commands.edit(SetMaskAlignment{static_cast<MaskAlignment>(*chosen)});
  widgets::tooltip(
      "Where the causal rule and the window put fewer queries than keys: as the last of them, as with a cache "
      "of keys, or from the first on, as PyTorch's is_causal=True does.");
}

}  // namespace

std::string mask_rules_words(const Mask& mask, std::size_t sequence) {
  std::vector<std::string> rules;
  if (mask.window != MaskWindow())
    rules.push_back("window " + side_text(mask.window.left) + ", " + side_text(mask.window.right));
  if (mask.prefix > 0) rules.push_back("prefix " + std::to_string(mask.prefix));
  if (!mask.documents.empty()) rules.push_back("documents");
  if (sequence < mask.hidden_keys.size() && !mask.hidden_keys[sequence].empty())
    rules.push_back("padding " + listed(mask.hidden_keys[sequence]));
  if (mask.align == MaskAlignment::first) rules.push_back("first keys");
  return core::text::joined(rules, " · ");
}

void draw_mask_popup(const Frame& frame, const char* name) {
  if (!ImGui::BeginPopup(name)) return;
  const auto& model = frame.newest.model;
  const ImVec2 start = ImGui::GetCursorScreenPos();
  PopupFields fields{{frame, start, popup_labels}};
  window_row(fields, model.mask);
  prefix_row(fields, model.mask);
  documents_row(fields, model.mask);
  padding_row(fields, model.mask, std::min(frame.newest.look.sequence, model.sequences.size() - 1),
              model.sequences.size());
  if (model.n_keys() != model.n_tokens() || model.mask.align != MaskAlignment::last)
    alignment_row(fields, model.mask);
  platform::move_to({start.x, fields.at.y + frame.metrics.px(6)});
  draw_mask_picture(frame, frame.metrics.px(popup_labels + popup_controls));
  const float height = ImGui::GetCursorScreenPos().y - start.y;
  platform::move_to(start);
  ImGui::Dummy({frame.metrics.px(popup_labels + popup_controls), height});
  ImGui::EndPopup();
}

}  // namespace app::panels
