#include "app/ui/panels/model/model_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {

namespace {

using namespace core::attention;
using namespace core::editing;
using core::bugs::Bug;

/// Explanation of a label, in a sentence.
struct LabelMeaning {
  std::string_view label;
  const char* sentence;
};

constexpr std::array meanings{
    LabelMeaning{"layer", "The layer of the file that the model was made from."},
    LabelMeaning{"tokens", "The number of tokens of the sequence, the rows of X."},
    LabelMeaning{"heads", "The number of heads; each has its own columns. A divisor of d_out."},
    LabelMeaning{"d_in", "The size of an embedding, the columns of X."},
    LabelMeaning{"d_out", "The columns of queries, keys and values, over all heads."},
    LabelMeaning{"project", "Whether queries, keys and values are projections of X, or X itself."},
    LabelMeaning{"bias", "Whether the projections add a bias."},
    LabelMeaning{"mask", "Which keys a query may attend to."},
    LabelMeaning{"dropout", "The probability with which a weight is set to 0 in training mode."},
    LabelMeaning{"seed", "The seed of dropout; the same seed samples the same mask."},
    LabelMeaning{"generator",
                 "Which of PyTorch's two generators samples the dropout mask; they give different masks."},
    LabelMeaning{"drop mask", "The dropout mask came with the file and is not sampled."},
    LabelMeaning{"scale", "The factor of the scores before the mask."},
    LabelMeaning{"factor", "The factor of the scores."},
    LabelMeaning{"scores", "How scores are computed: dot products of queries and keys, or all 0."},
    LabelMeaning{"combine", "How the context vectors of the heads are combined."},
    LabelMeaning{"output", "Whether there is an output projection, and its bias."},
    LabelMeaning{"context", "The context length: the largest number of tokens."},
    LabelMeaning{"sequence", "The displayed sequence of the batch; sequences are independent."},
};

const char* meaning_of(std::string_view label) {
  if (label.starts_with("head "))
    return "Whether this head is enabled; an ablated head contributes zeros to the output.";
  const auto found = std::ranges::find(meanings, label, &LabelMeaning::label);
  return found == meanings.end() ? nullptr : found->sentence;
}

/// Explains a label at that position on hover; marked "model/label/<words>".
void explain_label(const Frame& frame, ImVec2 min, const char* words) {
  const ImVec2 max{min.x + text_width(frame.fonts.sans15, words), min.y + frame.metrics.frame};
  frame.landmarks.mark(std::string("model/label/") + words, min, max);
  const char* sentence = meaning_of(words);
  if (!sentence || !hovers(min, max)) return;
  ImGui::BeginTooltip();
  paragraph(frame.fonts.sans14, frame.palette.text, frame.metrics.px(300), sentence);
  ImGui::EndTooltip();
}

/// Layout of the rows of MODEL: a column of labels and one of controls.
struct ModelForm {
  const Frame& frame;
  float width;           ///< of a whole row
  ImVec2 at{};           ///< top left corner of the current row
  float labels_width{};  ///< 0: that of the panel

  float label_width() const { return labels_width > 0 ? labels_width : frame.metrics.px(80); }
  float field_width() const { return frame.metrics.px(44); }
  float control_width() const { return width - label_width(); }
  /// Draws the row's label and moves the cursor to the controls.
  void label(const char* words) const {
    draw_label(frame, frame.fonts.sans15, at, frame.palette.dim, words);
    explain_label(frame, at, words);
    place(label_width());
  }
  /// Moves the cursor to an offset from the row's left end.
  void place(float offset) const { platform::move_to({at.x + offset, at.y}); }
  /// Draws a line of text, marked, with all of it in a tooltip.
  void line(const char* name, const std::string& words, Rgb color, float room) const {
    ImFont* font = frame.fonts.sans14;
    const ImVec2 begin{at.x, centered_y(font, at.y, frame.metrics.frame)};
    draw_text_within(font, begin, room, color, words);
    frame.landmarks.mark(name, begin, {at.x + room, begin.y + frame.metrics.frame});
  }
};

/// Draws a line of text with a button at its right end; returns whether it was pressed.
bool text_with_button(const ModelForm& form, Rgb color, const std::string& words, const char* name,
                      const char* does, const char* help) {
  const float width = button_width(form.frame, does);
  ImFont* font = form.frame.fonts.sans14;
  draw_text_within(font, {form.at.x, centered_y(font, form.at.y, form.frame.metrics.frame)},
                   form.width - width - form.frame.metrics.px(6), color, words);
  form.place(form.width - width);
  return button(form.frame, name, does, help);
}

/// Draws a label and a list of choices; returns the chosen one.
std::optional<std::size_t> choose(const ModelForm& form, const char* label, const char* name,
                                  std::span<const Option> options, std::size_t current) {
  form.label(label);
  return combo(form.frame, name, form.control_width(), options, current);
}

/// Draws the preset as a button that opens the menu of new models.
void preset_row(const ModelForm& form) {
  constexpr const char *popup = "presets", *menu = "File/New";
  const Frame& frame = form.frame;
  const DocumentState& document = frame.document;
  const Preset* current = find_preset(document.preset);
  std::string shown = current ? current->title : document.title;
  if (current && !document.is_preset) shown += " · edited";
  if (menu_button(frame, "model/preset", shown, form.width)) ImGui::OpenPopup(popup);
  tooltip(current ? shown + "\n" + current->about : shown);
  ImGui::SetNextWindowPos({form.at.x, form.at.y + frame.metrics.frame + frame.metrics.px(4)});
  if (!ImGui::BeginPopup(popup)) return;
  platform::push_font(frame.fonts.sans15);
  const ActionContext context = situation_of(frame);
  draw_menu_items(frame, context, actions(context), menu);
  ImGui::PopFont();
  ImGui::EndPopup();
}

/// Draws the label of the second of two fields in a row, which ends where the row ends.
void second_label(const ModelForm& form, const char* words) {
  ImFont* font = form.frame.fonts.sans15;
  const float roomy = form.label_width() + form.field_width() + form.frame.metrics.px(16);
  const float latest = form.width - form.field_width() - form.frame.metrics.px(6) - text_width(font, words);
  const float x = form.at.x + std::min(roomy, latest);
  draw_label(form.frame, font, {x, form.at.y}, form.frame.palette.dim, words);
  explain_label(form.frame, {x, form.at.y}, words);
  form.place(form.width - form.field_width());
}

/// Returns a typed count as a size; one that is too large for it stays too large for every model.
std::size_t to_size(std::uint64_t count) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(count, std::numeric_limits<std::size_t>::max()));
}

std::uint64_t step_by(std::uint64_t value, int direction, std::uint64_t step) {
  if (direction > 0) return value + step;
  return value > step ? value - step : value;
}

/// Returns the next divisor of d_out, so that stepping never gives heads that do not fit.
std::uint64_t step_heads(std::uint64_t heads, int direction, std::uint64_t d_out) {
  for (std::uint64_t next = direction > 0 ? heads + 1 : heads - 1; next > 0 && next <= d_out;
       next = direction > 0 ? next + 1 : next - 1)
    if (d_out % next == 0) return next;
  return heads;
}

/// Disables fields that are fixed by a whole model or its prompt.
struct FullModelGuard {
  const Frame& frame;
  const bool is_full_model = frame.pending.full_model != nullptr;
  explicit FullModelGuard(const Frame& f) : frame(f) { ImGui::BeginDisabled(is_full_model); }
  FullModelGuard(const FullModelGuard&) = delete;
  FullModelGuard& operator=(const FullModelGuard&) = delete;
  ~FullModelGuard() { ImGui::EndDisabled(); }
  /// Explains the last field, unless the error at a field would be below the tooltip.
  void explain(const char* words, const char* reason) const {
    if (!shows_refusal(frame)) tooltip(is_full_model ? reason : words);
  }
};

constexpr const char* fixed_by_model = "Fixed: the other layers of the whole model depend on it.";

void tokens_row(const ModelForm& form) {
  const Model& model = form.frame.pending.model;
  const FullModelGuard fields(form.frame);
  form.label("tokens");
  const auto one = [](std::uint64_t v, int direction) { return step_by(v, direction, 1); };
  if (const auto n =
          count_field(form.frame, "model/tokens", "tokens", model.n_tokens(), form.field_width(), one))
    form.frame.commands.edit(SetTokenCount{to_size(*n)});
  fields.explain("The number of tokens, the rows of X. Up and down change it by one.",
                 "The tokens of a whole model come from its prompt.");
  second_label(form, "heads");
  const auto divisor = [&](std::uint64_t v, int direction) {
    return step_heads(v, direction, model.d_out());
  };
  using Offer = std::pair<std::string, std::vector<Command>>;
  const auto wider = [&](const std::string& text) -> std::optional<Offer> {
    const auto heads = core::text::parse_unsigned(text);
    if (!heads || *heads == 0 || *heads > 4 * model.d_out() || model.d_out() % *heads == 0) return {};
    const std::size_t width = (model.d_out() / *heads + 1) * *heads;
    return Offer{"Set d_out to " + std::to_string(width),
                 {ApplyEdit{SetOutputWidth{width}}, ApplyEdit{SetHeadCount{to_size(*heads)}}}};
  };
  if (const auto n =
          count_field(form.frame, "model/heads", "heads", model.n_heads, form.field_width(), divisor, wider))
    form.frame.commands.edit(SetHeadCount{to_size(*n)});
  fields.explain("The number of heads, a divisor of d_out.", fixed_by_model);
}

bool has_full_model(const Frame& frame) {
  return frame.pending.full_model != nullptr;
}

/// Draws where the tokens come from, with a link to it.
void prompt_row(const ModelForm& form) {
  const Frame& frame = form.frame;
  ImFont* font = frame.fonts.sans13;
  const float middle = form.at.y + frame.metrics.px(8);
  const std::string words = "Tokens come from the prompt. ";
  draw_text(font, {form.at.x, middle}, Align::left_middle, frame.palette.faint, words);
  if (link(frame, "model/prompt", font, {form.at.x + text_width(font, words), middle}, Align::left_middle,
           frame.palette.accent, "Edit it"))
    frame.commands.add(set<&Look::tab>(Tab::layers));
}

void widths_row(const ModelForm& form) {
  const Model& model = form.frame.pending.model;
  const bool projected = model.projections.has_value();
  const FullModelGuard fields(form.frame);
  form.label("d_in");
  const auto input = [&](std::uint64_t v, int direction) {
    return step_by(v, direction, projected ? 1 : model.n_heads);
  };
  if (const auto n =
          count_field(form.frame, "model/d_in", "d_in", model.d_model(), form.field_width(), input))
    form.frame.commands.edit(SetInputWidth{to_size(*n)});
  fields.explain("The size of an embedding, the columns of X.", fixed_by_model);
  second_label(form, "d_out");
  const auto output = [&](std::uint64_t v, int direction) { return step_by(v, direction, model.n_heads); };
  if (!projected) ImGui::BeginDisabled();
  if (const auto n =
          count_field(form.frame, "model/d_out", "d_out", model.d_out(), form.field_width(), output))
    form.frame.commands.edit(SetOutputWidth{to_size(*n)});
  if (projected) fields.explain("The columns of queries, keys and values, over all heads.", fixed_by_model);
  if (!projected) {
    ImGui::EndDisabled();
    tooltip("Without projections the values are the embeddings, so d_out equals d_in.");
  }
}

void projections_row(const ModelForm& form) {
  form.label("project");
  const char* help = "On: queries, keys and values are projections of X. Off: all three are X itself.";
  const bool on = form.frame.pending.model.projections.has_value();
  constexpr const char* words = "initialize…";
  const float width = button_width(form.frame, words);
  const float room = form.control_width() - width - form.frame.metrics.px(16 + 8 + 10);
  const char* all = "to Q, K, V";
  for (const char* shorter : {"Q, K, V", "QKV"})
    if (text_width(form.frame.fonts.sans15, all) > room) all = shorter;
  if (const auto next = checkbox(form.frame, "model/projections", all, on, help))
    form.frame.commands.edit(SetProjections{*next});
  form.place(form.width - width);
  if (button(form.frame, "model/draw", words, "Initializes all projections from a seed, as in PyTorch"))
    perform("edit/draw_model", situation_of(form.frame), form.frame.commands);
}

void bias_row(const ModelForm& form) {
  form.label("bias");
  const auto& p = *form.frame.pending.model.projections;
  struct BiasBox {
    const char *name, *words;
    ProjectionName part;
    bool on;
  };
  const std::array boxes{BiasBox{"model/bias_q", "q", ProjectionName::query, p.query.bias.has_value()},
                         BiasBox{"model/bias_k", "k", ProjectionName::key, p.key.bias.has_value()},
                         BiasBox{"model/bias_v", "v", ProjectionName::value, p.value.bias.has_value()}};
  float offset = form.label_width();
  for (const BiasBox& box : boxes) {
    form.place(offset);
    if (const auto on = checkbox(form.frame, box.name, box.words, box.on, "The bias of this projection"))
      form.frame.commands.edit(SetBias{box.part, *on});
    offset += std::min(form.frame.metrics.px(58), std::floor(form.control_width() / 3));
  }
}

void layer_row(const ModelForm& form) {
  const DocumentState& document = form.frame.document;
  std::vector<Option> options;
  for (std::size_t k = 0; k < document.layers.size(); ++k)
    options.push_back({std::to_string(k) + (document.layers[k].empty() ? "" : "  ") + document.layers[k]});
  if (const auto chosen = choose(form, "layer", "model/layer", options, document.layer))
    form.frame.commands.add(ImportLayer{*chosen});
}

bool has_evidence(const Frame& frame) {
  const Preset* preset = frame.document.is_preset ? find_preset(frame.document.preset) : nullptr;
  return preset && preset->evidence != Evidence::sampled;
}

void head_row(const ModelForm& form) {
  const std::size_t head = form.frame.pending.look.head;
  const std::string label = "head " + std::to_string(head);
  form.label(label.c_str());
  const char* help =
      "Enables or ablates the head (H). An ablated head contributes zeros to the output; its stages stay on the screen.";
  if (const auto on =
          checkbox(form.frame, "model/head_on", "enabled", !form.frame.pending.model.is_ablated(head), help))
    form.frame.commands.edit(core::editing::ToggleHead{head, *on});
}

void overridden_stages_row(const ModelForm& form) {
  const auto& stages = form.frame.pending.model.given.stages;
  std::string words = "overridden: ";
  for (const auto& stage : stages)
    words += (&stage == &stages.front() ? "" : ", ") + std::string(core::attention::info(stage.stage).title);
  if (text_with_button(form, form.frame.palette.dim, words, "model/given", "change…",
                       "Overrides another stage, or computes it again (I)"))
    form.frame.commands.add(set<&Forms::overridden_stage>(stages.back().stage),
                            set<&Forms::dialog>(Dialog::override_stage));
}

void overrides_row(const ModelForm& form) {
  const std::size_t n = form.frame.pending.model.given.cells.size();
  const std::string words = core::text::counted(n, "cell") + " overridden";
  if (text_with_button(form, form.frame.palette.dim, words, "model/typed", "revert", "Computes them again"))
    form.frame.commands.edit(ClearOverrides{});
}

void scale_row(const ModelForm& form) {
  const Scale& scale = form.frame.pending.model.scale;
  const std::array options{Option{"1/√d_head", "As in the paper"}, Option{"none", "Scores are not scaled"},
                           Option{"1/√d_model", "Uses the width of the embeddings"},
                           Option{"a factor", "Any factor"}};
  const auto current = static_cast<std::size_t>(scale.rule);
  const bool typed = scale.rule == ScaleRule::factor;
  if (const auto chosen = choose(form, "scale", "model/scale", options, current)) {
    // The factor starts with that of the previous rule.
    const double factor = typed ? scale.factor : scale_factor(form.frame.pending.model);
    form.frame.commands.edit(SetScale{{static_cast<ScaleRule>(*chosen), factor}});
  }
}

void factor_row(const ModelForm& form) {
  form.label("factor");
  const double old = form.frame.pending.model.scale.factor;
  if (const auto factor = real_field(form.frame, "model/factor", "scale", old, form.control_width()))
    form.frame.commands.edit(SetScale{{ScaleRule::factor, *factor}});
  tooltip("The factor of the scores");
}

void scores_row(const ModelForm& form) {
  const std::array options{Option{"Q·Kᵀ", "Dot products of queries and keys"},
                           Option{"uniform", "All scores are 0: plain averaging of the unmasked values"}};
  const auto current = static_cast<std::size_t>(form.frame.pending.model.scores);
  if (const auto chosen = choose(form, "scores", "model/scores", options, current))
    form.frame.commands.edit(SetScoreRule{static_cast<ScoreRule>(*chosen)});
}

void combine_row(const ModelForm& form) {
  const std::array options{Option{"concatenate", "The heads are concatenated"},
                           Option{"reshape, no transpose",
                                  "A common bug: without the transpose, the reshape mixes tokens and heads"}};
  const auto current = static_cast<std::size_t>(form.frame.pending.model.merge);
  if (const auto chosen = choose(form, "combine", "model/merge", options, current))
    form.frame.commands.edit(SetCombineRule{static_cast<CombineRule>(*chosen)});
}

void output_row(const ModelForm& form) {
  form.label("output");
  const auto& output = form.frame.pending.model.projections->output;
  if (const auto on =
          checkbox(form.frame, "model/output", "W_o", output.has_value(), "The output projection"))
    form.frame.commands.edit(SetOutputProjection{*on});
  if (!output) return;
  form.place(form.label_width() + form.frame.metrics.px(64));
  if (const auto on = checkbox(form.frame, "model/bias_o", "bias", output->bias.has_value(),
                               "The bias of the output projection"))
    form.frame.commands.edit(SetBias{ProjectionName::output, *on});
}

void context_row(const ModelForm& form) {
  const auto& length = form.frame.pending.model.context_length;
  form.label("context");
  FieldStyle style;
  style.width = form.field_width(), style.font = form.frame.fonts.mono14;
  const auto answer = text_field(form.frame, "model/context", length ? std::to_string(*length) : "", style);
  tooltip("The largest number of tokens; empty: no limit.");
  ImFont* font = form.frame.fonts.sans14;
  const float x = form.at.x + form.label_width() + form.field_width() + form.frame.metrics.px(10);
  const char* remark = length ? "tokens at most" : "no limit";
  draw_label(form.frame, font, {x, form.at.y}, form.frame.palette.faint, remark);
  if (!answer.text) return;
  if (answer.text->find_first_not_of(' ') == std::string::npos) {
    form.frame.commands.edit(SetContextLength{});
  } else if (const auto n = core::text::parse_number(*answer.text);
             n && *n >= 0 && *n < 1e9 && *n == static_cast<double>(static_cast<std::size_t>(*n))) {
    form.frame.commands.edit(SetContextLength{static_cast<std::size_t>(*n)});
  } else {
    report_invalid(form.frame, "context", "a whole number or nothing", *answer.text);
  }
}

void sequence_row(const ModelForm& form) {
  const std::size_t n = form.frame.pending.model.sequences.size(), shown = form.frame.pending.look.sequence;
  const Frame& frame = form.frame;
  form.label("sequence");
  const auto go = [&](std::size_t to) { frame.commands.add(set<&Look::sequence>(to)); };
  const bool several = n > 1;
  const float gap = frame.metrics.px(frame.metrics.compact ? 4 : 8);
  if (several && button(frame, "model/sequence_back", "‹", "Previous sequence"))
    go(shown > 0 ? shown - 1 : n - 1);
  if (several) ImGui::SameLine(0, gap);
  const std::string words = several ? fmt::format("{} of {}", shown, n) : "one";
  ImFont* font = frame.fonts.mono14;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_label(frame, font, {at.x, form.at.y}, frame.palette.text, words);
  platform::move_to({at.x + text_width(font, words) + gap, at.y});
  if (several) {
    if (button(frame, "model/sequence_on", "›", "Next sequence")) go((shown + 1) % n);
    ImGui::SameLine(0, gap);
    if (button(frame, "model/sequence_remove", "−", "Removes this sequence"))
      frame.commands.edit(RemoveSequence{shown});
    ImGui::SameLine(0, gap);
  }
  if (button(frame, "model/sequence_add", "+", "Adds a copy of this sequence to the batch"))
    frame.commands.edit(AddSequence{shown});
}

constexpr const char* mask_popup = "mask rules";

void causal_row(const ModelForm& form) {
  form.label("mask");
  const char* help = "A token attends to itself and to earlier tokens only.";
  if (const auto on =
          checkbox(form.frame, "model/causal", "causal", form.frame.pending.model.mask.causal, help))
    form.frame.commands.edit(SetCausal{*on});
  const float width = button_width(form.frame, "more…");
  form.place(form.width - width);
  if (button(form.frame, "model/mask_more", "more…",
             "Sliding window, prefix length, document IDs, padding mask"))
    ImGui::OpenPopup(mask_popup);
  draw_mask_popup(form.frame, mask_popup, {form.at.x + form.width + form.frame.metrics.px(20), form.at.y});
}

void method_row(const ModelForm& form) {
  constexpr std::array methods{MaskMethod::negative_infinity, MaskMethod::renormalize,
                               MaskMethod::zero_after_softmax, MaskMethod::large_negative};
  const std::array options{
      Option{"−∞ before softmax",
             "Masked scores become −∞, so their weights are exactly 0 and rows sum to 1."},
      Option{"softmax, 0, renormalize",
             "Masked weights become 0 after the softmax, then each row is divided by its sum."},
      Option{"softmax, then 0", "Masked weights become 0 after the softmax; rows sum to less than 1."},
      Option{"−10⁹ before softmax", "Masked scores become −10⁹ instead of −∞."}};
  const auto now = std::find(methods.begin(), methods.end(), form.frame.pending.model.mask.method);
  const auto current = static_cast<std::size_t>(now - methods.begin());
  form.place(form.label_width());
  const auto chosen = combo(form.frame, "model/method", form.control_width(), options, current);
  if (chosen) form.frame.commands.edit(SetMaskMethod{methods[*chosen]});
}

void cells_row(const ModelForm& form) {
  const std::size_t n = form.frame.pending.model.mask.cells.size();
  const std::string words = core::text::counted(n, "cell") + " by hand";
  if (text_with_button(form, form.frame.palette.dim, words, "model/clear_cells", "reset",
                       "Removes all positions masked or unmasked by hand"))
    form.frame.commands.edit(ClearMaskCells{});
}

void empty_rows_row(const ModelForm& form) {
  const bool zeros = form.frame.pending.model.mask.empty_rows == EmptyRows::zeros;
  if (zeros
          ? text_with_button(form, form.frame.palette.dim, "fully masked rows: zeros", "model/empty_rows",
                             "use NaN", "Follows the formula: 0/0 is NaN")
          : text_with_button(form, form.frame.palette.status.warning, "fully masked rows: NaN",
                             "model/empty_rows", "use zeros", "Their weights become 0, as in some libraries"))
    form.frame.commands.edit(SetEmptyRows{zeros ? EmptyRows::nan : EmptyRows::zeros});
}

void rules_row(const ModelForm& form) {
  const std::string words = mask_rules_words(form.frame.pending.model.mask, form.frame.pending.look.sequence);
  form.line("model/mask_rules", words, form.frame.palette.text, form.width);
}

bool has_rules(const Frame& frame) {
  const Mask& mask = frame.pending.model.mask;
  return mask.has_other_rules() && !mask_rules_words(mask, frame.pending.look.sequence).empty();
}

/// Returns whether the model has additions to the paper other than mask rules.
bool has_additions(const Frame& frame) {
  return !additions_words(frame.pending.model, frame.pending.look.sequence).empty();
}

void additions_row(const ModelForm& form) {
  const std::string words = additions_words(form.frame.pending.model, form.frame.pending.look.sequence);
  form.line("model/additions", words, form.frame.palette.text, form.width);
}

/// Returns whether mask rules have a row of their own; with additions, their row includes the rules.
bool shows_rules(const Frame& frame) {
  return has_rules(frame) && !has_additions(frame);
}

/// Returns the attention bias of the displayed head, or nullptr.
const arma::mat* score_bias(const Frame& frame) {
  const auto& biases = frame.displayed.model.additions.score_bias;
  if (biases.empty()) return nullptr;
  return &*biases[biases.size() == 1 ? 0 : frame.displayed.look.head];
}

/// Returns whether a query has no unmasked key. A causal mask leaves it its own, if any; a bias may mask it.
bool has_empty_rows(const Frame& frame) {
  const core::attention::StageMatrix& mask = frame.displayed.trace.at(core::attention::Stage::mask);
  const arma::mat* const bias = score_bias(frame);
  const auto is_masked = [&](std::size_t row, std::size_t key) {
    return mask(row, key) == 0 || (bias && (*bias)(row, key) == -arma::datum::inf);
  };
  const auto is_fully_masked = [&](std::size_t row) {
    if (row < mask.n_cols() && !is_masked(row, row)) return false;  // the usual case
    std::size_t key = 0;
    while (key < mask.n_cols() && is_masked(row, key)) ++key;
    return key == mask.n_cols();
  };
  if (bias || has_rules(frame) || mask.n_rows() > mask.n_cols()) {
    std::size_t row = 0;
    while (row < mask.n_rows() && !is_fully_masked(row)) ++row;
    return row < mask.n_rows();
  }
  const auto& cells = frame.pending.model.mask.cells;
  return std::ranges::any_of(cells, [&](const MaskCell& cell) {
    return !cell.visible && cell.row < mask.n_rows() && is_fully_masked(cell.row);
  });
}

std::string rate_text(double rate) {
  const double hundredths = std::round(rate * 100);
  if (std::fabs(hundredths / 100 - rate) > 1e-12) return core::text::number_text(rate);
  const auto n = static_cast<int>(hundredths);
  return fmt::format("{}.{}{}", n / 100, n / 10 % 10, n % 10);
}

void rate_row(const ModelForm& form) {
  form.label("dropout");
  const Frame& frame = form.frame;
  const double now = frame.pending.model.dropout.rate;
  auto rate = slider(frame, "model/dropout", form.control_width(), now, rate_text(now));
  tooltip(
      "The probability with which a weight is dropped; kept weights are scaled by 1/(1 − rate). Ctrl+click to type.");
  if (!rate) return;
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left))
    rate = std::round(*rate * 100) / 100;  // typed rates are not rounded
  if (*rate != now) frame.commands.edit(SetDropoutRate{*rate});
}

void seed_row(const ModelForm& form) {
  const Frame& frame = form.frame;
  form.label("seed");
  const float width = frame.metrics.px(frame.metrics.compact ? 44 : 56);
  if (const auto seed = count_field(frame, "model/seed", "seed", frame.pending.model.dropout.seed, width))
    frame.commands.edit(SetDropoutSeed{*seed});
  if (!shows_refusal(frame)) tooltip("The same seed samples the same masks, as in PyTorch");
  form.place(form.label_width() + width + frame.metrics.px(frame.metrics.compact ? 8 : 14));
  const char* help = "Off: evaluation mode, nothing is dropped.";
  if (const auto on =
          checkbox(frame, "model/training", "training", frame.pending.model.dropout.training, help))
    frame.commands.edit(SetTraining{*on});
}

void stream_row(const ModelForm& form) {
  const Frame& frame = form.frame;
  const std::array options{Option{"mt19937", "Everywhere since PyTorch 2.7"},
                           Option{"mkl", "On Linux on x86 before PyTorch 2.7"}};
  const std::size_t current = frame.pending.model.dropout.stream == DropoutStream::mkl ? 1 : 0;
  form.label("generator");
  const char* again = "↻";
  const float again_width = button_width(frame, again);
  const float width = form.control_width() - again_width - frame.metrics.px(8);
  if (const auto chosen = combo(frame, "model/stream", width, options, current))
    frame.commands.edit(SetDropoutStream{*chosen == 1 ? DropoutStream::mkl : DropoutStream::mt19937});
  form.place(form.width - again_width);
  if (button(frame, "model/draw_again", again, "Resamples the mask with the next seed"))
    frame.commands.edit(SetDropoutSeed{frame.pending.model.dropout.seed + 1});
}

void given_mask_row(const ModelForm& form) {
  form.label("drop mask");
  if (button(form.frame, "model/draw_instead", "given · sample instead",
             "The mask came with the file; samples it from the seed instead"))
    form.frame.commands.edit(SetDropoutMask{});
}

bool has_given_mask(const Frame& frame) {
  return !frame.pending.model.dropout.given.empty();
}

bool samples_dropout_mask(const Frame& frame) {
  return frame.pending.model.dropout.rate > 0 && !has_given_mask(frame);
}

constexpr const char* additions_popup = "additions";

/// Draws the button next to the heading that opens the popup with the additions to the paper.
void draw_additions_button(const ModelForm& form) {
  const Frame& frame = form.frame;
  const float width = button_width(frame, "more…");
  platform::move_to({form.at.x + form.width - width, form.at.y - frame.metrics.px(5)});
  if (button(frame, "model/more", "more…",
             "KV heads, QK norm, RoPE, ALiBi, soft-capping, attention bias, sinks, cross-attention; in small "
             "windows also scores, context length and sequences"))
    ImGui::OpenPopup(additions_popup);
  draw_additions_popup(frame, additions_popup, {form.at.x + form.width + frame.metrics.px(20), form.at.y});
}

/// Returns whether the numbers are in print, where anyone can compare them.
bool is_printed(const Preset& preset) {
  return preset.evidence == Evidence::printed || preset.evidence == Evidence::published;
}

std::string words(const Preset& preset) {
  const std::string source = preset.source;
  switch (preset.evidence) {
    case Evidence::printed:
    case Evidence::published:
      return "as printed in " + source;
    case Evidence::reference:
      return "not printed; equals a " + source;
    case Evidence::unseeded_notebook:
      return "unseeded in the notebook; equals a " + source.substr(0, source.find(';'));
    case Evidence::outdated_print:
      return "the notebook's printout is outdated; equals a " + source.substr(0, source.find(';'));
    case Evidence::by_construction:
      return "weights follow from " + source;
    case Evidence::sampled:
      break;
  }
  return "an example of our own, " + source;
}

std::string remark(const Preset& preset) {
  switch (preset.evidence) {
    case Evidence::printed:
    case Evidence::published:
      return "These numbers round to the printed ones.";
    case Evidence::reference:
      return "These numbers equal those of the notebook's code in PyTorch.";
    case Evidence::unseeded_notebook:
      return "The notebook prints numbers without a seed, which cannot be reproduced.";
    case Evidence::outdated_print:
      return "The notebook's code no longer gives the numbers that it prints; these are the numbers that it gives.";
    case Evidence::by_construction:
      return "The weights can be computed by hand.";
    case Evidence::sampled:
      break;
  }
  return "This model is not from a notebook.";
}

/// Draws the source of the numbers of an unchanged preset, in at most two lines; marked "model/evidence".
void evidence_row(const ModelForm& form) {
  const Preset* preset = core::editing::find_preset(form.frame.document.preset);
  if (!preset) return;
  const Frame& frame = form.frame;
  ImFont* font = frame.fonts.sans13;
  const float pitch = frame.metrics.px(16);
  const bool ticked = is_printed(*preset);
  const float indent = ticked ? frame.metrics.px(18) : 0;
  if (ticked) draw_text(font, form.at, frame.palette.status.good, "✓");
  const ImVec2 at(form.at.x + indent, form.at.y);
  draw_lines(font, at, form.width - indent, pitch, ticked ? frame.palette.dim : frame.palette.faint,
             words(*preset));
  ImGui::Dummy({form.width, 2 * pitch});
  frame.landmarks.mark_item("model/evidence");
  tooltip(words(*preset) + ". " + remark(*preset));
}

/// Returns the options that no other row of the panel shows.
auto unlisted_options(const Model& m) {
  return std::tuple(m.arithmetic, m.mask.edge, m.mask.large_negative, m.dropout.place, m.dropout.rescale);
}

/// Returns the bugs in the code of a model, and those in options that no other row shows.
std::vector<const Bug*> unlisted_bugs(const Model& model) {
  std::vector<const Bug*> found;
  for (const auto& made : model.bugs) found.push_back(made.bug);
  for (const Bug* bug : core::bugs::offered_bugs())
    if (bug->is_option() && is_injected(*bug, model) &&
        unlisted_options(without_bug(*bug, model)) != unlisted_options(model))
      found.push_back(bug);
  return found;
}

bool has_unlisted_bugs(const Frame& frame) {
  const Model& model = frame.pending.model;
  return core::bugs::has_bugs(model) || !model.dropout.rescale;
}

void bug_row(const ModelForm& form) {
  const Frame& frame = form.frame;
  const auto found = unlisted_bugs(frame.pending.model);
  const std::string names =
      core::text::joined(found, ", ", [](const Bug* bug) { return std::string(title_of(*bug)); });
  const char* fix_label = "fix";
  const float width = button_width(frame, fix_label);
  form.line("model/mistakes", names, frame.palette.status.warning, form.width - width - frame.metrics.px(6));
  form.place(form.width - width);
  if (!button(frame, "model/mend", fix_label, "Fixes the bug")) return;
  for (const Bug* bug : found) frame.commands.edit(SwitchMistake{bug->name, false});
}

/// One row of MODEL, an entry of model_rows.
struct ModelRow {
  bool (*present)(const Frame&);
  void (*draw)(const ModelForm&);
  float gap = 0;           ///< above it, at scale 1
  float extra_height = 0;  ///< height beyond that of other rows, at scale 1
  /// What its landmarks begin with, if small windows have it under "more…" while it is as in the paper.
  const char* place = nullptr;
  bool (*as_in_paper)(const Model&) = nullptr;
};

/// Returns whether a row is under "more…"; where a lesson speaks of it, it is not.
bool is_under_more(const Frame& frame, const ModelRow& row) {
  if (!row.place || !frame.metrics.compact || !row.as_in_paper(frame.pending.model)) return false;
  return !frame.lesson || std::ranges::none_of(frame.lesson->shown().focus, [&](const std::string& name) {
    return name.starts_with(row.place);
  });
}

bool always(const Frame&) {
  return true;
}

constexpr ModelRow model_rows[]{
    {always, preset_row, 2},
    {has_evidence, evidence_row, 0, 8},
    {[](const Frame& f) { return f.document.layers.size() > 1; }, layer_row, 2},
    {always, tokens_row, 2},
    {always, widths_row},
    {has_full_model, prompt_row},
    {always, projections_row},
    {[](const Frame& f) { return f.pending.model.projections.has_value(); }, bias_row},
    {has_additions, additions_row},
    {[](const Frame& f) { return f.pending.model.n_heads > 1; }, head_row},
    {[](const Frame& f) { return !f.pending.model.given.stages.empty(); }, overridden_stages_row},
    {[](const Frame& f) { return !f.pending.model.given.cells.empty(); }, overrides_row},
    {always, causal_row, 4},
    {shows_rules, rules_row},
    {always, method_row},
    {[](const Frame& f) { return !f.pending.model.mask.cells.empty(); }, cells_row},
    {has_empty_rows, empty_rows_row},
    {always, rate_row, 4},
    {always, seed_row},
    {samples_dropout_mask, stream_row},
    {has_given_mask, given_mask_row},
    {always, scale_row, 4},
    {[](const Frame& f) { return f.pending.model.scale.rule == ScaleRule::factor; }, factor_row},
    {always, scores_row, 0, 0, "model/scores",
     [](const Model& m) { return m.scores == ScoreRule::query_key; }},
    {always, combine_row, 0, 0, "model/merge",
     [](const Model& m) { return m.merge == CombineRule::concatenate; }},
    {[](const Frame& f) { return f.pending.model.projections.has_value(); }, output_row},
    {[](const Frame& f) { return !has_full_model(f); }, context_row, 0, 0, "model/context",
     [](const Model& m) { return !m.context_length; }},
    {[](const Frame& f) { return !has_full_model(f); }, sequence_row, 0, 0, "model/sequence",
     [](const Model& m) { return m.sequences.size() == 1; }},
    {has_unlisted_bugs, bug_row, 4}};

constexpr float heading_height = 24;  // at scale 1

/// Calls each(row) for the rows that the model has, in the order of the panel, or for those under "more…".
template <class Each>
void for_each_row(const Frame& frame, bool under_more, Each each) {
  for (const ModelRow& row : model_rows)
    if (row.present(frame) && is_under_more(frame, row) == under_more) each(row);
}

}  // namespace

void draw_rows_under_more(const Frame& frame, float width, float labels_width) {
  ModelForm form{frame, width, ImGui::GetCursorScreenPos(), labels_width};
  const ImVec2 start = form.at;
  for_each_row(frame, true, [&](const ModelRow& row) {
    form.place(0);
    row.draw(form);
    form.at.y += frame.metrics.pitch;
  });
  if (form.at.y > start.y) reserve_room(start, {width, form.at.y - start.y});
}

float model_panel_height(const Frame& frame) {
  float height = 2 * frame.metrics.px(10) + frame.metrics.px(heading_height);
  for_each_row(frame, false, [&](const ModelRow& row) {
    height += frame.metrics.pitch + frame.metrics.px(row.gap) + frame.metrics.px(row.extra_height);
  });
  return height;
}

void draw_model(const Frame& frame) {
  const ImVec2 start = ImGui::GetCursorScreenPos();
  // As wide with a scrollbar as without.
  const float edge = ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - ImGui::GetStyle().WindowPadding.x;
  ModelForm form{frame, edge - ImGui::GetStyle().ScrollbarSize - start.x, start};
  section_heading(frame, form.width, "MODEL");
  draw_additions_button(form);
  form.at.y += frame.metrics.px(heading_height);
  for_each_row(frame, false, [&](const ModelRow& row) {
    form.at.y += frame.metrics.px(row.gap);
    form.place(0);
    row.draw(form);
    form.at.y += frame.metrics.pitch + frame.metrics.px(row.extra_height);
  });
  reserve_room(start, {form.width, form.at.y - start.y});
}

}  // namespace app::panels
