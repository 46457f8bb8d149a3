#include "app/ui/panels/dialogs/sentence_dialog.hpp"

#include <algorithm>
#include <array>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/file_dialogs.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/error.hpp"
#include "core/editing/draw.hpp"

namespace app::panels {
namespace {

using core::text::TokenRule;

/// Lets ImGui write into a string of any length. Enter confirms the dialog; with Shift it is a line end.
int grow(ImGuiInputTextCallbackData* data) {
  if (data->EventFlag == ImGuiInputTextFlags_CallbackCharFilter)
    return data->EventChar == '\n' && !ImGui::GetIO().KeyShift ? 1 : 0;
  if (data->EventFlag != ImGuiInputTextFlags_CallbackResize) return 0;
  auto& text = *static_cast<std::string*>(data->UserData);
  text.resize(static_cast<std::size_t>(data->BufTextLen));
  data->Buf = text.data();
  return 0;
}

void draw_text_box(const Frame& frame, float width) {
  std::string text = frame.forms.sentence.text;
  platform::push_font(frame.fonts.sans15);
  if (ImGui::IsWindowAppearing()) platform::focus_next_item();
  ImGui::InputTextMultiline("##sentence", text.data(), text.capacity() + 1, {width, frame.metrics.px(96)},
                            ImGuiInputTextFlags_CallbackResize | ImGuiInputTextFlags_CallbackCharFilter |
                                ImGuiInputTextFlags_AutoSelectAll,
                            grow, &text);
  ImGui::PopFont();
  frame.landmarks.mark_item("sentence/text");
  if (text != frame.forms.sentence.text) frame.commands.add(set<&SentenceDraft::text>(text));
}

void draw_rule_and_seed(const Frame& frame) {
  const std::array<std::string, 2> rules{"words", "characters"};
  const SentenceDraft& draft = frame.forms.sentence;
  if (const auto chosen =
          widgets::segmented(frame, "sentence/rule", rules, draft.rule == TokenRule::words ? 0 : 1))
    frame.commands.add(set<&SentenceDraft::rule>(*chosen == 0 ? TokenRule::words : TokenRule::characters));
  ImGui::SameLine(0, frame.metrics.px(24));
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted("seed");
  widgets::tooltip(
      "Equal tokens share a row of nn.Embedding, initialized as in PyTorch after manual_seed(seed)");
  ImGui::SameLine();
  const auto step = [](std::uint64_t seed, int by) { return by > 0 ? seed + 1 : seed > 0 ? seed - 1 : 0; };
  if (const auto seed =
          widgets::count_field(frame, "sentence/seed", "seed", draft.seed, frame.metrics.px(90), step))
    frame.commands.add(set<&SentenceDraft::seed>(*seed));
}

/// The tokens as chips, as many as fit into three lines.
void draw_chips(const Frame& frame, const std::vector<std::string>& tokens, float width) {
  ImFont* font = frame.fonts.sans14;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.px(22), pitch = frame.metrics.px(26), pad = frame.metrics.px(6);
  const float widest = width - frame.metrics.px(40);
  float x = 0;
  int line = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string shown = widgets::shortened(font, tokens[i], widest);
    const float w = widgets::text_width(font, shown) + 2 * pad;
    if (x > 0 && x + w > width) x = 0, ++line;
    const bool last_place = line == 2 && x + w > widest && i + 1 < tokens.size();
    const ImVec2 a(at.x + x, at.y + static_cast<float>(line) * pitch);
    if (line > 2 || last_place) {
      widgets::draw_text(font, {at.x + x, widgets::centred_y(font, at.y + 2 * pitch, height)},
                         frame.palette.dim, "…");
      break;
    }
    ImGui::GetWindowDrawList()->AddRectFilled(a, {a.x + w, a.y + height}, packed(frame.palette.control.rest),
                                              frame.metrics.px(3));
    widgets::draw_text(font, {a.x + pad, widgets::centred_y(font, a.y, height)}, frame.palette.text, shown);
    frame.landmarks.mark("sentence/token/" + std::to_string(i), a, {a.x + w, a.y + height});
    x += w + frame.metrics.px(4);
  }
  ImGui::Dummy({width, 3 * pitch});
}

/// What the typed text is taken apart into, or what is wrong with it.
struct Taken {
  std::vector<std::string> tokens;
  std::string problem;
};

Taken taken_apart(const SentenceDraft& draft) {
  if (draft.text.empty()) return {};
  try {
    return {core::text::tokens(draft.text, draft.rule), ""};
  } catch (const core::Error& error) {
    return {{}, error.what()};
  }
}

std::string counted(std::size_t n, const char* thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

/// The edit that puts the sentence in, or an error message.
void put_in(const Frame& frame, const std::vector<std::string>& tokens) {
  try {
    auto model = core::text::with_sentence(frame.pending.model, tokens, frame.forms.sentence.seed);
    frame.commands.edit(core::editing::ReplaceModel{std::move(model)});
    frame.commands.add(ShowMessage{counted(tokens.size(), "token") + ", " +
                                   std::to_string(core::text::vocabulary(tokens).size()) +
                                   " of them distinct"});
    close_dialog(frame);
  } catch (const core::Error& error) {
    frame.commands.add(ShowMessage{error.what(), true});
  }
}

}  // namespace

void draw_sentence_dialog(const Frame& frame) {
  const float width = std::min(frame.metrics.px(560), ImGui::GetIO().DisplaySize.x - frame.metrics.px(80));
  draw_text_box(frame, width);
  draw_rule_and_seed(frame);
  ImGui::Dummy({width, frame.metrics.px(2)});
  const Taken taken = taken_apart(frame.forms.sentence);
  const auto limit = frame.pending.model.context_length;
  const bool too_long = limit && taken.tokens.size() > *limit;
  std::string words = taken.problem;
  if (too_long)
    words = counted(taken.tokens.size(), "token") + ", but the model takes at most " +
            std::to_string(*limit) + " (its context)";
  else if (words.empty())
    words = taken.tokens.empty()
                ? "1 to 512 tokens"
                : counted(taken.tokens.size(), "token") + ", " +
                      std::to_string(core::text::vocabulary(taken.tokens).size()) + " distinct";
  const bool bad = too_long || !taken.problem.empty();
  widgets::paragraph(frame.fonts.sans14, bad ? frame.palette.status.bad : frame.palette.dim, width, words);
  frame.landmarks.mark_item("sentence/count");
  draw_chips(frame, taken.tokens, width);
  const bool ready = !taken.tokens.empty() && !bad;
  const bool confirmed = confirm_buttons(frame, width, "Apply", ready) == "dialog/confirm";
  const bool enter = platform::key_pressed(ImGuiKey_Enter, false) && !ImGui::GetIO().KeyShift;
  if (ready && (confirmed || enter)) put_in(frame, taken.tokens);
}

}  // namespace app::panels
