#include "app/ui/panels/model/model_panel.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"
#include "core/graph/mistakes.hpp"

namespace app::panels {

namespace {

using Rows = std::span<const ModelRow>;

constexpr float heading_height = 24;  // at scale 1

/// Calls each(row) for the rows that the model has, in the order of the panel.
template <class Each>
void for_each_row(const Frame& frame, Each each) {
  for (const Rows rows :
       {shape_rows(), addition_rows(), head_rows(), mask_rows(), dropout_rows(), rule_rows(), mistake_rows()})
    for (const ModelRow& row : rows)
      if (row.present(frame)) each(row);
}

/// What a label means, in a sentence.
struct Meaning {
  std::string_view label;
  const char* sentence;
};
constexpr std::array meanings{
    Meaning{"layer", "The layer of the file that the model was made from."},
    Meaning{"tokens", "The number of tokens of the sequence, the rows of X."},
    Meaning{"heads", "The number of heads; each has its own columns. A divisor of d_out."},
    Meaning{"d_in", "The size of an embedding, the columns of X."},
    Meaning{"d_out", "The columns of queries, keys and values, over all heads."},
    Meaning{"project", "Whether queries, keys and values are projections of X, or X itself."},
    Meaning{"bias", "Whether the projections add a bias."},
    Meaning{"mask", "Which keys a query may attend to."},
    Meaning{"dropout", "The probability with which a weight is set to 0 in training mode."},
    Meaning{"seed", "The seed of dropout; the same seed samples the same mask."},
    Meaning{"generator",
            "Which of PyTorch's two generators samples the dropout mask; they give different masks."},
    Meaning{"drop mask", "The dropout mask came with the file and is not sampled."},
    Meaning{"scale", "The factor of the scores before the mask."},
    Meaning{"factor", "The factor of the scores."},
    Meaning{"scores", "How scores are computed: dot products of queries and keys, or all 0."},
    Meaning{"combine", "How the context vectors of the heads are combined."},
    Meaning{"output", "Whether there is an output projection, and its bias."},
    Meaning{"context", "The context length: the largest number of tokens."},
    Meaning{"sequence", "The displayed sequence of the batch; sequences are independent."},
};

const char* meaning_of(std::string_view label) {
  if (label.starts_with("head "))
    return "Whether this head is enabled; an ablated head contributes zeros to the output.";
  const auto found = std::ranges::find(meanings, label, &Meaning::label);
  return found == meanings.end() ? nullptr : found->sentence;
}

}  // namespace

void explain_label(const Frame& frame, ImVec2 min, const char* words) {
  const ImVec2 max{min.x + widgets::text_width(frame.fonts.sans15, words), min.y + frame.metrics.frame};
  frame.landmarks.mark(std::string("model/label/") + words, min, max);
  const char* sentence = meaning_of(words);
  if (!sentence || !ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(min, max)) return;
  ImGui::BeginTooltip();
  widgets::paragraph(frame.fonts.sans14, frame.palette.text, frame.metrics.px(300), sentence);
  ImGui::EndTooltip();
}

void Form::label(const char* words) const {
  ImFont* font = frame.fonts.sans15;
  widgets::draw_text(font, {at.x, widgets::centred_y(font, at.y, frame.metrics.frame)}, frame.palette.dim,
                     words);
  explain_label(frame, at, words);
  place(label_width());
}

void Form::place(float offset) const {
  platform::move_to({at.x + offset, at.y});
}

float model_panel_height(const Frame& frame) {
  float height = 2 * frame.metrics.px(10) + frame.metrics.px(heading_height);
  for_each_row(frame, [&](const ModelRow& row) {
    height += frame.metrics.pitch + frame.metrics.px(row.gap) + frame.metrics.px(row.more);
  });
  return height;
}

void draw_model(const Frame& frame) {
  const ImVec2 start = ImGui::GetCursorScreenPos();
  Form form{frame, ImGui::GetContentRegionAvail().x, start};
  widgets::section_heading(frame, form.width, "MODEL");
  draw_additions_button(form);
  form.at.y += frame.metrics.px(heading_height);
  for_each_row(frame, [&](const ModelRow& row) {
    form.at.y += frame.metrics.px(row.gap);
    form.place(0);
    row.draw(form);
    form.at.y += frame.metrics.pitch + frame.metrics.px(row.more);
  });
  platform::move_to(start);
  ImGui::Dummy({form.width, form.at.y - start.y});
}

namespace {

using core::attention::Model;
using core::editing::SwitchMistake;
using core::mistakes::Mistake;

/// Options that no other row of the panel shows.
auto hidden_options(const Model& m) {
  return std::tuple(m.arithmetic, m.mask.edge, m.mask.large_negative, m.dropout.place, m.dropout.rescale);
}

/// The mistakes in the code of a model, and those in options that no other row shows.
std::vector<const Mistake*> hidden_mistakes(const Model& model) {
  std::vector<const Mistake*> found;
  for (const auto& made : model.mistakes) found.push_back(made.mistake);
  for (const Mistake& mistake : core::mistakes::mistakes())
    if (mistake.in_model && is_made(mistake, model) &&
        hidden_options(mended(mistake, model)) != hidden_options(model))
      found.push_back(&mistake);
  return found;
}

bool has_hidden(const Frame& frame) {
  const Model& model = frame.pending.model;
  return core::mistakes::deviates(model) || !model.dropout.rescale;
}

void mistake_row(const Form& form) {
  const Frame& frame = form.frame;
  const auto found = hidden_mistakes(frame.pending.model);
  const std::string names = core::text::joined(found, ", ", &Mistake::title);
  const char* mend = "fix";
  const float width = widgets::text_width(frame.fonts.sans14, mend) + 2 * frame.metrics.px(8);
  ImFont* font = frame.fonts.sans14;
  const ImVec2 at(form.at.x, widgets::centred_y(font, form.at.y, frame.metrics.frame));
  widgets::draw_text_within(font, at, form.width - width - frame.metrics.px(6), frame.palette.status.warning,
                            names);
  frame.landmarks.mark("model/mistakes", at,
                       {form.at.x + form.width - width, form.at.y + frame.metrics.frame});
  form.place(form.width - width);
  if (!widgets::button(frame, "model/mend", mend, "Fixes the bug")) return;
  for (const Mistake* mistake : found) frame.commands.edit(SwitchMistake{mistake->name, false});
}

constexpr std::array mistake_table{ModelRow{has_hidden, mistake_row, 4}};

}  // namespace

std::span<const ModelRow> mistake_rows() {
  return mistake_table;
}

}  // namespace app::panels
