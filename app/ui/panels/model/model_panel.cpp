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
    Meaning{"layer", "Which layer of the file the model was made of."},
    Meaning{"tokens", "How many tokens the sequence has: each is a row of X."},
    Meaning{"heads", "How many heads look at the tokens, each with columns of its own; a divisor of d_out."},
    Meaning{"d_in", "How many numbers an embedding has: the columns of X."},
    Meaning{"d_out", "How many columns queries, keys and values have, over all heads."},
    Meaning{"project", "Whether queries, keys and values are X times a learned matrix each, or X itself."},
    Meaning{"bias", "Whether a row of numbers is added to all queries, keys or values."},
    Meaning{"mask", "Which keys a query may see."},
    Meaning{"dropout", "The share of the weights that is set to 0 in training, at random."},
    Meaning{"seed", "What the random numbers of dropout start from: the same seed, the same mask."},
    Meaning{"generator",
            "Which of PyTorch's two generators draws the dropout mask; they give other masks for a seed."},
    Meaning{"drop mask", "The dropout mask came with the file and is not drawn."},
    Meaning{"scale", "What the scores are multiplied by before the mask."},
    Meaning{"factor", "The number that the scores are multiplied by."},
    Meaning{"scores", "Where the scores come from: queries meet keys, or all scores are 0."},
    Meaning{"merge", "How the contexts of the heads become one matrix."},
    Meaning{"output", "Whether a last learned matrix mixes what the heads found, and adds a row of numbers."},
    Meaning{"context",
            "The most tokens that are allowed; more are an error, as in models with learned positions."},
    Meaning{"sequence", "Which sequence of the batch is shown; sequences do not see each other."},
};

const char* meaning_of(std::string_view label) {
  if (label.starts_with("head "))
    return "Whether this head counts: off, its contexts are zero when heads are merged.";
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
  const Model& model = frame.newest.model;
  return core::mistakes::deviates(model) || !model.dropout.rescale;
}

void mistake_row(const Form& form) {
  const Frame& frame = form.frame;
  const auto found = hidden_mistakes(frame.newest.model);
  const std::string names = core::text::joined(found, ", ", &Mistake::title);
  const char* mend = "mend";
  const float width = widgets::text_width(frame.fonts.sans14, mend) + 2 * frame.metrics.px(8);
  ImFont* font = frame.fonts.sans14;
  const ImVec2 at(form.at.x, widgets::centred_y(font, form.at.y, frame.metrics.frame));
  widgets::draw_text_within(font, at, form.width - width - frame.metrics.px(6), frame.palette.status.warning,
                            names);
  frame.landmarks.mark("model/mistakes", at,
                       {form.at.x + form.width - width, form.at.y + frame.metrics.frame});
  form.place(form.width - width);
  if (!widgets::button(frame, "model/mend", mend, "Do it as the paper does")) return;
  for (const Mistake* mistake : found) frame.commands.edit(SwitchMistake{mistake->name, false});
}

constexpr std::array mistake_table{ModelRow{has_hidden, mistake_row, 4}};

}  // namespace

std::span<const ModelRow> mistake_rows() {
  return mistake_table;
}

}  // namespace app::panels
