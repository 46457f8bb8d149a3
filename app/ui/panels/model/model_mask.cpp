#include <algorithm>
#include <array>
#include <string>

#include "app/ui/panels/model/mask_popup.hpp"
#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using namespace core::attention;
using namespace core::editing;

constexpr const char* mask_popup = "mask rules";

void causal_row(const Form& form) {
  form.label("mask");
  const char* help = "A token sees itself and what came before it, never what comes after.";
  if (const auto on =
          widgets::checkbox(form.frame, "model/causal", "causal", form.frame.newest.model.mask.causal, help))
    form.frame.commands.edit(SetCausal{*on});
  const float width = widgets::text_width(form.frame.fonts.sans14, "more…") + 2 * form.frame.metrics.px(8);
  form.place(form.width - width);
  if (widgets::button(form.frame, "model/mask_more", "more…",
                      "Windows, a prefix, documents in a row, padding: what else hides keys"))
    ImGui::OpenPopup(mask_popup);
  draw_mask_popup(form.frame, mask_popup);
}

void method_row(const Form& form) {
  constexpr std::array methods{MaskMethod::negative_infinity, MaskMethod::renormalise,
                               MaskMethod::zero_after_softmax, MaskMethod::large_negative};
  const std::array options{
      widgets::Option{"−∞ before softmax",
                      "Hidden scores become −∞, so their weights are exactly 0 and rows sum to 1."},
      widgets::Option{"softmax, 0, renormalise",
                      "Hidden weights become 0 after the softmax and each row is divided by its sum."},
      widgets::Option{"softmax, then 0",
                      "Hidden weights become 0 after the softmax; rows then sum to less than 1."},
      widgets::Option{"−10⁹ before softmax", "Hidden scores become −10⁹, a finite stand-in for −∞."}};
  const auto now = std::find(methods.begin(), methods.end(), form.frame.newest.model.mask.method);
  const auto current = static_cast<std::size_t>(now - methods.begin());
  form.place(form.label_width());
  const auto chosen = widgets::combo(form.frame, "model/method", form.control_width(), options[current].words,
                                     options, current);
  if (chosen) form.frame.commands.edit(SetMaskMethod{methods[*chosen]});
}

/// A line of words with a button at its right end.
bool offer(const Form& form, Rgb color, const std::string& words, const char* name, const char* button,
           const char* help) {
  const float width = widgets::text_width(form.frame.fonts.sans14, button) + 2 * form.frame.metrics.px(8);
  ImFont* font = form.frame.fonts.sans14;
  const ImVec2 at(form.at.x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame));
  widgets::draw_text_within(font, at, form.width - width - form.frame.metrics.px(6), color, words);
  form.place(form.width - width);
  return widgets::button(form.frame, name, button, help);
}

void cells_row(const Form& form) {
  const std::size_t n = form.frame.newest.model.mask.cells.size();
  const std::string words = std::to_string(n) + (n == 1 ? " cell" : " cells") + " by hand";
  if (offer(form, form.frame.palette.dim, words, "model/clear_cells", "reset",
            "The rule alone decides again what is hidden"))
    form.frame.commands.edit(ClearMaskCells{});
}

void empty_rows_row(const Form& form) {
  const bool zeros = form.frame.newest.model.mask.empty_rows == EmptyRows::zeros;
  if (zeros ? offer(form, form.frame.palette.dim, "queries without keys: zeros", "model/empty_rows",
                    "use NaN", "As the formula says: 0/0 is not a number")
            : offer(form, form.frame.palette.status.warning, "a query sees no key: NaN", "model/empty_rows",
                    "use zeros", "Their rows of weights become 0, as some libraries do"))
    form.frame.commands.edit(SetEmptyRows{zeros ? EmptyRows::nan : EmptyRows::zeros});
}

void rules_row(const Form& form) {
  ImFont* font = form.frame.fonts.sans14;
  const ImVec2 at(form.at.x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame));
  const std::string words = mask_rules_words(form.frame.newest.model.mask, form.frame.newest.look.sequence);
  widgets::draw_text_within(font, at, form.width, form.frame.palette.text, words);
  form.frame.landmarks.mark("model/mask_rules", at, {at.x + form.width, at.y + form.frame.metrics.frame});
}

bool has_rules(const Frame& frame) {
  const Mask& mask = frame.newest.model.mask;
  return mask.says_more() && !mask_rules_words(mask, frame.newest.look.sequence).empty();
}

/// The line of what the model adds says them too.
bool says_rules(const Frame& frame) {
  return has_rules(frame) && !has_additions(frame);
}

bool has_cells(const Frame& frame) {
  return !frame.newest.model.mask.cells.empty();
}

/// What is added to the scores of the head that is looked at, or nullptr.
const arma::mat* score_bias(const Frame& frame) {
  const auto& biases = frame.shown.model.additions.score_bias;
  if (biases.empty()) return nullptr;
  return &*biases[biases.size() == 1 ? 0 : frame.shown.look.head];
}

/// By the causal rule alone every query sees itself, if there is a key for it; a bias may hide keys as well.
bool has_empty_rows(const Frame& frame) {
  const core::attention::StageMatrix& mask = frame.shown.trace.mask;
  const arma::mat* const bias = score_bias(frame);
  const auto is_hidden = [&](std::size_t row, std::size_t key) {
    return mask(row, key) == 0 || (bias && (*bias)(row, key) == -arma::datum::inf);
  };
  const auto sees_none = [&](std::size_t row) {
    if (row < mask.n_cols() && !is_hidden(row, row)) return false;  // as nearly always
    std::size_t key = 0;
    while (key < mask.n_cols() && is_hidden(row, key)) ++key;
    return key == mask.n_cols();
  };
  if (bias || has_rules(frame) || mask.n_rows() > mask.n_cols()) {
    std::size_t row = 0;
    while (row < mask.n_rows() && !sees_none(row)) ++row;
    return row < mask.n_rows();
  }
  const auto& cells = frame.newest.model.mask.cells;
  return std::ranges::any_of(cells, [&](const MaskCell& cell) {
    return !cell.visible && cell.row < mask.n_rows() && sees_none(cell.row);
  });
}

constexpr std::array mask_table{ModelRow{always, causal_row, 4}, ModelRow{says_rules, rules_row, 0},
                                ModelRow{always, method_row, 0}, ModelRow{has_cells, cells_row, 0},
                                ModelRow{has_empty_rows, empty_rows_row, 0}};

}  // namespace

std::span<const ModelRow> mask_rows() {
  return mask_table;
}

}  // namespace app::panels
