#include "app/ui/panels/model/model_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/panels/model/additions_popup.hpp"
#include "app/ui/panels/model/mask_popup.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/number.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {

namespace {

using namespace core::editing;
using core::attention::Model;

/// Presets of one notebook begin alike: "004", "chapter", "head".
std::string_view group_of(const Preset& preset) {
  const std::string_view name = preset.name;
  return name.substr(0, name.find('-'));
}

void preset_row(const Form& form) {
  const DocumentState& document = form.frame.document;
  const Preset* current = find_preset(document.preset);
  std::string shown = current ? current->title : document.title;
  if (current && !document.is_preset) shown += " · edited";
  std::vector<widgets::Option> options;
  std::size_t index = presets().size();
  std::string_view group = group_of(presets().front());
  for (const Preset& preset : presets()) {
    if (&preset == current) index = options.size();
    const bool first = std::exchange(group, group_of(preset)) != group_of(preset);
    options.push_back({preset.title, preset.about, first});
  }
  if (const auto chosen = widgets::combo(form.frame, "model/preset", form.width, shown, options, index))
    form.frame.commands.add(LoadPreset{presets()[*chosen].name});
  if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) form.frame.commands.add(KeepReference{});
}

/// The second of two fields in a row ends where the row ends.
void second_label(const Form& form, const char* words) {
  ImFont* font = form.frame.fonts.sans15;
  const float roomy = form.label_width() + form.field_width() + form.frame.metrics.px(16);
  const float latest =
      form.width - form.field_width() - form.frame.metrics.px(6) - widgets::text_width(font, words);
  const float x = form.at.x + std::min(roomy, latest);
  widgets::draw_text(font, {x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame)},
                     form.frame.palette.dim, words);
  explain_label(form.frame, {x, form.at.y}, words);
  form.place(form.width - form.field_width());
}

std::uint64_t step_by(std::uint64_t value, int direction, std::uint64_t step) {
  if (direction > 0) return value + step;
  return value > step ? value - step : value;
}

/// The next divisor of d_out, so that stepping never asks for heads that do not fit.
std::uint64_t step_heads(std::uint64_t heads, int direction, std::uint64_t d_out) {
  for (std::uint64_t next = direction > 0 ? heads + 1 : heads - 1; next > 0 && next <= d_out;
       next = direction > 0 ? next + 1 : next - 1)
    if (d_out % next == 0) return next;
  return heads;
}

/// Disables fields whose numbers are those of the whole model or its prompt.
struct OfWholeModel {
  const Frame& frame;
  const bool is_one = frame.pending.whole != nullptr;
  explicit OfWholeModel(const Frame& f) : frame(f) { ImGui::BeginDisabled(is_one); }
  OfWholeModel(const OfWholeModel&) = delete;
  OfWholeModel& operator=(const OfWholeModel&) = delete;
  ~OfWholeModel() { ImGui::EndDisabled(); }
  void tooltip(const char* words, const char* reason) const { widgets::tooltip(is_one ? reason : words); }
};

constexpr const char* fixed_by_model = "Fixed: the other layers of the whole model depend on it.";

void tokens_row(const Form& form) {
  const Model& model = form.frame.pending.model;
  const OfWholeModel fields(form.frame);
  form.label("tokens");
  const auto one = [](std::uint64_t v, int direction) { return step_by(v, direction, 1); };
  if (const auto n = widgets::count_field(form.frame, "model/tokens", "tokens", model.n_tokens(),
                                          form.field_width(), one))
    form.frame.commands.edit(SetTokenCount{*n});
  fields.tooltip("The number of tokens, the rows of X. Up and down change it by one.",
                 "The tokens of a whole model come from its prompt.");
  second_label(form, "heads");
  const auto divisor = [&](std::uint64_t v, int direction) {
    return step_heads(v, direction, model.d_out());
  };
  using Offer = std::pair<std::string, std::vector<Command>>;
  const auto wider = [&](const std::string& text) -> std::optional<Offer> {
    const auto heads = core::text::parse_whole_number(text);
    if (!heads || *heads == 0 || *heads > 4 * model.d_out() || model.d_out() % *heads == 0) return {};
    const std::size_t width = (model.d_out() / *heads + 1) * *heads;
    return Offer{"Set d_out to " + std::to_string(width),
                 {ApplyEdit{SetOutputWidth{width}}, ApplyEdit{SetHeadCount{*heads}}}};
  };
  if (const auto n = widgets::count_field(form.frame, "model/heads", "heads", model.n_heads,
                                          form.field_width(), divisor, wider))
    form.frame.commands.edit(SetHeadCount{*n});
  fields.tooltip("The number of heads, a divisor of d_out.", fixed_by_model);
}

bool is_of_whole_model(const Frame& frame) {
  return frame.pending.whole != nullptr;
}

bool is_of_one_layer(const Frame& frame) {
  return !is_of_whole_model(frame);
}

/// Where the tokens come from, with the way there.
void prompt_row(const Form& form) {
  const Frame& frame = form.frame;
  ImFont* font = frame.fonts.sans13;
  const float middle = form.at.y + frame.metrics.px(8);
  const std::string words = "Tokens come from the prompt. ";
  widgets::draw_text(font, {form.at.x, middle}, widgets::Align::left_middle, packed(frame.palette.faint),
                     words);
  if (widgets::link(frame, "model/prompt", font, {form.at.x + widgets::text_width(font, words), middle},
                    widgets::Align::left_middle, frame.palette.accent, "Edit it"))
    frame.commands.add(set<&Look::tab>(Tab::layers));
}

void widths_row(const Form& form) {
  const Model& model = form.frame.pending.model;
  const bool projected = model.projections.has_value();
  const OfWholeModel fields(form.frame);
  form.label("d_in");
  const auto input = [&](std::uint64_t v, int direction) {
    return step_by(v, direction, projected ? 1 : model.n_heads);
  };
  if (const auto n =
          widgets::count_field(form.frame, "model/d_in", "d_in", model.d_model(), form.field_width(), input))
    form.frame.commands.edit(SetInputWidth{*n});
  fields.tooltip("The size of an embedding, the columns of X.", fixed_by_model);
  second_label(form, "d_out");
  const auto output = [&](std::uint64_t v, int direction) { return step_by(v, direction, model.n_heads); };
  if (!projected) ImGui::BeginDisabled();
  if (const auto n =
          widgets::count_field(form.frame, "model/d_out", "d_out", model.d_out(), form.field_width(), output))
    form.frame.commands.edit(SetOutputWidth{*n});
  if (projected) fields.tooltip("The columns of queries, keys and values, over all heads.", fixed_by_model);
  if (!projected) {
    ImGui::EndDisabled();
    widgets::tooltip("Without projections the values are the embeddings, so d_out equals d_in.");
  }
}

void projections_row(const Form& form) {
  form.label("project");
  const char* help = "On: queries, keys and values are projections of X. Off: all three are X itself.";
  const bool on = form.frame.pending.model.projections.has_value();
  constexpr const char* words = "initialize…";
  const float width =
      widgets::text_width(form.frame.fonts.sans14, words) + 2 * ImGui::GetStyle().FramePadding.x;
  const float room = form.control_width() - width - form.frame.metrics.px(16 + 8 + 10);
  const char* all = "to Q, K, V";
  for (const char* shorter : {"Q, K, V", "QKV"})
    if (widgets::text_width(form.frame.fonts.sans15, all) > room) all = shorter;
  if (const auto next = widgets::checkbox(form.frame, "model/projections", all, on, help))
    form.frame.commands.edit(SetProjections{*next});
  form.place(form.width - width);
  if (widgets::button(form.frame, "model/draw", words,
                      "Initializes all projections from a seed, as in PyTorch"))
    perform("edit/draw_model", situation_of(form.frame), form.frame.commands);
}

void bias_row(const Form& form) {
  form.label("bias");
  const auto& p = *form.frame.pending.model.projections;
  struct Box {
    const char *name, *words;
    Part part;
    bool on;
  };
  const std::array boxes{Box{"model/bias_q", "q", Part::query, p.query.bias.has_value()},
                         Box{"model/bias_k", "k", Part::key, p.key.bias.has_value()},
                         Box{"model/bias_v", "v", Part::value, p.value.bias.has_value()}};
  float offset = form.label_width();
  for (const Box& box : boxes) {
    form.place(offset);
    if (const auto on =
            widgets::checkbox(form.frame, box.name, box.words, box.on, "The bias of this projection"))
      form.frame.commands.edit(SetBias{box.part, *on});
    offset += std::min(form.frame.metrics.px(58), std::floor(form.control_width() / 3));
  }
}

bool has_layers(const Frame& frame) {
  return frame.document.layers.size() > 1;
}

void layer_row(const Form& form) {
  const DocumentState& document = form.frame.document;
  std::vector<widgets::Option> options;
  for (std::size_t k = 0; k < document.layers.size(); ++k)
    options.push_back(
        {std::to_string(k) + (document.layers[k].empty() ? "" : "  ") + document.layers[k], "", false});
  form.label("layer");
  if (const auto chosen = widgets::combo(form.frame, "model/layer", form.control_width(),
                                         options[document.layer].words, options, document.layer))
    form.frame.commands.add(ChooseLayer{*chosen});
}

bool has_evidence(const Frame& frame) {
  const Preset* preset = frame.document.is_preset ? find_preset(frame.document.preset) : nullptr;
  return preset && preset->evidence != Evidence::drawn;
}
constexpr std::array shape_table{
    ModelRow{always, preset_row, 2},      ModelRow{has_evidence, evidence_row, 0, 8},
    ModelRow{has_layers, layer_row, 2},   ModelRow{always, tokens_row, 2},
    ModelRow{always, widths_row, 0},      ModelRow{is_of_whole_model, prompt_row, 0},
    ModelRow{always, projections_row, 0}, ModelRow{has_projections, bias_row, 0}};

}  // namespace

std::span<const ModelRow> shape_rows() {
  return shape_table;
}

namespace {

using core::editing::ClearTypedCells;
using core::editing::ComputeStage;
using core::editing::SwitchHead;

void head_row(const Form& form) {
  const std::size_t head = form.frame.pending.look.head;
  const std::string label = "head " + std::to_string(head);
  form.label(label.c_str());
  const char* help =
      "Enables or ablates the head (H). An ablated head contributes zeros to the output; its stages stay on the screen.";
  if (const auto on = widgets::checkbox(form.frame, "model/head_on", "enabled",
                                        !form.frame.pending.model.is_off(head), help))
    form.frame.commands.edit(SwitchHead{head, *on});
}

/// Words with a button at the right end.
bool offer(const Form& form, const std::string& words, const char* name, const char* button,
           const char* help) {
  ImFont* font = form.frame.fonts.sans14;
  const float width = widgets::text_width(font, button) + 2 * form.frame.metrics.px(8);
  widgets::draw_text_within(font, {form.at.x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame)},
                            form.width - width - form.frame.metrics.px(6), form.frame.palette.dim, words);
  form.place(form.width - width);
  return widgets::button(form.frame, name, button, help);
}

void given_stages_row(const Form& form) {
  const auto& stages = form.frame.pending.model.given.stages;
  std::string words = "overridden: ";
  for (const auto& stage : stages)
    words += (&stage == &stages.front() ? "" : ", ") + std::string(core::attention::info(stage.stage).title);
  if (offer(form, words, "model/given", "change…", "Overrides another stage, or computes it again (I)"))
    form.frame.commands.add(set<&Forms::given_stage>(stages.back().stage), set<&Forms::dialog>(Dialog::give));
}

void typed_row(const Form& form) {
  const std::size_t n = form.frame.pending.model.given.cells.size();
  const std::string words = std::to_string(n) + (n == 1 ? " cell" : " cells") + " overridden";
  if (offer(form, words, "model/typed", "revert", "Computes them again"))
    form.frame.commands.edit(ClearTypedCells{});
}

bool has_heads(const Frame& frame) {
  return frame.pending.model.n_heads > 1;
}
bool has_given(const Frame& frame) {
  return !frame.pending.model.given.stages.empty();
}
bool has_typed(const Frame& frame) {
  return !frame.pending.model.given.cells.empty();
}

constexpr std::array head_table{ModelRow{has_heads, head_row, 0}, ModelRow{has_given, given_stages_row, 0},
                                ModelRow{has_typed, typed_row, 0}};

}  // namespace

std::span<const ModelRow> head_rows() {
  return head_table;
}

namespace {

using namespace core::attention;
using namespace core::editing;

void scale_row(const Form& form) {
  const Scale& scale = form.frame.pending.model.scale;
  const std::array options{widgets::Option{"1/√d_head", "As in the paper"},
                           widgets::Option{"none", "Scores are not scaled"},
                           widgets::Option{"1/√d_model", "Uses the width of the embeddings"},
                           widgets::Option{"a factor", "Any factor"}};
  const auto current = static_cast<std::size_t>(scale.rule);
  form.label("scale");
  const bool typed = scale.rule == ScaleRule::factor;
  if (const auto chosen = widgets::combo(form.frame, "model/scale", form.control_width(),
                                         options[current].words, options, current)) {
    // The factor starts where the rule before it left off.
    const double factor = typed ? scale.factor : scale_factor(form.frame.pending.model);
    form.frame.commands.edit(SetScale{{static_cast<ScaleRule>(*chosen), factor}});
  }
}

void factor_row(const Form& form) {
  form.label("factor");
  const double old = form.frame.pending.model.scale.factor;
  if (const auto factor = widgets::real_field(form.frame, "model/factor", "scale", old, form.control_width()))
    form.frame.commands.edit(SetScale{{ScaleRule::factor, *factor}});
  widgets::tooltip("The factor of the scores");
}

void scores_row(const Form& form) {
  const std::array options{
      widgets::Option{"Q·Kᵀ", "Dot products of queries and keys"},
      widgets::Option{"uniform", "All scores are 0: plain averaging of the unmasked values"}};
  const auto current = static_cast<std::size_t>(form.frame.pending.model.scores);
  form.label("scores");
  if (const auto chosen = widgets::combo(form.frame, "model/scores", form.control_width(),
                                         options[current].words, options, current))
    form.frame.commands.edit(SetScoreRule{static_cast<ScoreRule>(*chosen)});
}

void merge_row(const Form& form) {
  const std::array options{
      widgets::Option{"concatenate", "The heads are concatenated"},
      widgets::Option{"reshape, no transpose",
                      "A common bug: without the transpose, the reshape mixes tokens and heads"}};
  const auto current = static_cast<std::size_t>(form.frame.pending.model.merge);
  form.label("combine");
  if (const auto chosen = widgets::combo(form.frame, "model/merge", form.control_width(),
                                         options[current].words, options, current))
    form.frame.commands.edit(SetCombineRule{static_cast<CombineRule>(*chosen)});
}

void output_row(const Form& form) {
  form.label("output");
  const auto& output = form.frame.pending.model.projections->output;
  if (const auto on =
          widgets::checkbox(form.frame, "model/output", "W_o", output.has_value(), "The output projection"))
    form.frame.commands.edit(SetOutputProjection{*on});
  if (!output) return;
  form.place(form.label_width() + form.frame.metrics.px(64));
  if (const auto on = widgets::checkbox(form.frame, "model/bias_o", "bias", output->bias.has_value(),
                                        "The bias of the output projection"))
    form.frame.commands.edit(SetBias{Part::output, *on});
}

void context_row(const Form& form) {
  const auto& length = form.frame.pending.model.context_length;
  form.label("context");
  widgets::FieldStyle style;
  style.width = form.field_width(), style.font = form.frame.fonts.mono14;
  const auto answer =
      widgets::text_field(form.frame, "model/context", length ? std::to_string(*length) : "", style);
  widgets::tooltip("The largest number of tokens; empty: no limit.");
  ImFont* font = form.frame.fonts.sans14;
  const float x = form.at.x + form.label_width() + form.field_width() + form.frame.metrics.px(10);
  const char* remark = length ? "tokens at most" : "no limit";
  widgets::draw_text(font, {x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame)},
                     form.frame.palette.faint, remark);
  if (!answer.text) return;
  if (answer.text->find_first_not_of(' ') == std::string::npos) {
    form.frame.commands.edit(SetContextLength{});
  } else if (const auto n = core::text::parse_number(*answer.text);
             n && *n >= 0 && *n < 1e9 && *n == static_cast<double>(static_cast<std::size_t>(*n))) {
    form.frame.commands.edit(SetContextLength{static_cast<std::size_t>(*n)});
  } else {
    form.frame.commands.add(
        ShowMessage{"context: expected a whole number or nothing, found \"" + *answer.text + "\"", true});
  }
}

void sequence_row(const Form& form) {
  const std::size_t n = form.frame.pending.model.sequences.size(), shown = form.frame.pending.look.sequence;
  const Frame& frame = form.frame;
  form.label("sequence");
  const auto go = [&](std::size_t to) { frame.commands.add(set<&Look::sequence>(to)); };
  const bool several = n > 1;
  const float gap = frame.metrics.px(frame.metrics.compact ? 4 : 8);
  if (several && widgets::button(frame, "model/sequence_back", "‹", "Previous sequence"))
    go(shown > 0 ? shown - 1 : n - 1);
  if (several) ImGui::SameLine(0, gap);
  const std::string words = several ? std::to_string(shown) + " of " + std::to_string(n) : "one";
  ImFont* font = frame.fonts.mono14;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::draw_text(font, {at.x, widgets::centred_y(font, form.at.y, frame.metrics.frame)},
                     frame.palette.text, words);
  platform::move_to({at.x + widgets::text_width(font, words) + gap, at.y});
  if (several) {
    if (widgets::button(frame, "model/sequence_on", "›", "Next sequence")) go((shown + 1) % n);
    ImGui::SameLine(0, gap);
    if (widgets::button(frame, "model/sequence_remove", "−", "Removes this sequence"))
      frame.commands.edit(RemoveSequence{shown});
    ImGui::SameLine(0, gap);
  }
  if (widgets::button(frame, "model/sequence_add", "+", "Adds a copy of this sequence to the batch"))
    frame.commands.edit(AddSequence{shown});
}

bool has_factor(const Frame& frame) {
  return frame.pending.model.scale.rule == ScaleRule::factor;
}
constexpr std::array rule_table{ModelRow{always, scale_row, 4},
                                ModelRow{has_factor, factor_row, 0},
                                ModelRow{always, scores_row, 0},
                                ModelRow{always, merge_row, 0},
                                ModelRow{has_projections, output_row, 0},
                                ModelRow{is_of_one_layer, context_row, 0},
                                ModelRow{is_of_one_layer, sequence_row, 0}};

}  // namespace

std::span<const ModelRow> rule_rows() {
  return rule_table;
}

namespace {

using namespace core::attention;
using namespace core::editing;

constexpr const char* mask_popup = "mask rules";

void causal_row(const Form& form) {
  form.label("mask");
  const char* help = "A token attends to itself and to earlier tokens only.";
  if (const auto on =
          widgets::checkbox(form.frame, "model/causal", "causal", form.frame.pending.model.mask.causal, help))
    form.frame.commands.edit(SetCausal{*on});
  const float width = widgets::text_width(form.frame.fonts.sans14, "more…") + 2 * form.frame.metrics.px(8);
  form.place(form.width - width);
  if (widgets::button(form.frame, "model/mask_more", "more…",
                      "Sliding window, prefix length, document IDs, padding mask"))
    ImGui::OpenPopup(mask_popup);
  draw_mask_popup(form.frame, mask_popup);
}

void method_row(const Form& form) {
  constexpr std::array methods{MaskMethod::negative_infinity, MaskMethod::renormalise,
                               MaskMethod::zero_after_softmax, MaskMethod::large_negative};
  const std::array options{
      widgets::Option{"−∞ before softmax",
                      "Masked scores become −∞, so their weights are exactly 0 and rows sum to 1."},
      widgets::Option{"softmax, 0, renormalize",
                      "Masked weights become 0 after the softmax, then each row is divided by its sum."},
      widgets::Option{"softmax, then 0",
                      "Masked weights become 0 after the softmax; rows sum to less than 1."},
      widgets::Option{"−10⁹ before softmax", "Masked scores become −10⁹ instead of −∞."}};
  const auto now = std::find(methods.begin(), methods.end(), form.frame.pending.model.mask.method);
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
  const std::size_t n = form.frame.pending.model.mask.cells.size();
  const std::string words = std::to_string(n) + (n == 1 ? " cell" : " cells") + " by hand";
  if (offer(form, form.frame.palette.dim, words, "model/clear_cells", "reset",
            "Removes all positions masked or unmasked by hand"))
    form.frame.commands.edit(ClearMaskCells{});
}

void empty_rows_row(const Form& form) {
  const bool zeros = form.frame.pending.model.mask.empty_rows == EmptyRows::zeros;
  if (zeros ? offer(form, form.frame.palette.dim, "fully masked rows: zeros", "model/empty_rows", "use NaN",
                    "Follows the formula: 0/0 is NaN")
            : offer(form, form.frame.palette.status.warning, "fully masked rows: NaN", "model/empty_rows",
                    "use zeros", "Their weights become 0, as in some libraries"))
    form.frame.commands.edit(SetEmptyRows{zeros ? EmptyRows::nan : EmptyRows::zeros});
}

void rules_row(const Form& form) {
  ImFont* font = form.frame.fonts.sans14;
  const ImVec2 at(form.at.x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame));
  const std::string words = mask_rules_words(form.frame.pending.model.mask, form.frame.pending.look.sequence);
  widgets::draw_text_within(font, at, form.width, form.frame.palette.text, words);
  form.frame.landmarks.mark("model/mask_rules", at, {at.x + form.width, at.y + form.frame.metrics.frame});
}

bool has_rules(const Frame& frame) {
  const Mask& mask = frame.pending.model.mask;
  return mask.says_more() && !mask_rules_words(mask, frame.pending.look.sequence).empty();
}

/// The line of what the model adds says them too.
bool says_rules(const Frame& frame) {
  return has_rules(frame) && !has_additions(frame);
}

bool has_cells(const Frame& frame) {
  return !frame.pending.model.mask.cells.empty();
}

/// What is added to the scores of the head that is looked at, or nullptr.
const arma::mat* score_bias(const Frame& frame) {
  const auto& biases = frame.displayed.model.additions.score_bias;
  if (biases.empty()) return nullptr;
  return &*biases[biases.size() == 1 ? 0 : frame.displayed.look.head];
}

/// By the causal rule alone every query sees itself, if there is a key for it; a bias may hide keys as well.
bool has_empty_rows(const Frame& frame) {
  const core::attention::StageMatrix& mask = frame.displayed.trace.at(Stage::mask);
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
  const auto& cells = frame.pending.model.mask.cells;
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

namespace {

using namespace core::attention;
using namespace core::editing;

std::string rate_text(double rate) {
  const double hundredths = std::round(rate * 100);
  if (std::fabs(hundredths / 100 - rate) > 1e-12) return core::text::number_text(rate);
  const auto n = static_cast<int>(hundredths);
  return std::to_string(n / 100) + "." + std::to_string(n / 10 % 10) + std::to_string(n % 10);
}

void rate_row(const Form& form) {
  form.label("dropout");
  const Frame& frame = form.frame;
  double rate = frame.pending.model.dropout.rate;
  constexpr double low = 0, high = 1;
  platform::push_font(frame.fonts.mono14);
  ImGui::SetNextItemWidth(form.control_width());
  // Without a format the slider writes nothing over its grab; the number stands at the right, as in every
  // field.
  const bool moved = ImGui::SliderScalar("##rate", ImGuiDataType_Double, &rate, &low, &high, "",
                                         ImGuiSliderFlags_AlwaysClamp);
  ImGui::PopFont();
  frame.landmarks.mark_item("model/dropout");
  widgets::tooltip(
      "The probability with which a weight is dropped; kept weights are scaled by 1/(1 − rate). Ctrl+click to type.");
  const ImVec2 max = ImGui::GetItemRectMax();
  if (!(ImGui::IsItemActive() && ImGui::GetIO().WantTextInput)) {
    ImFont* font = frame.fonts.mono14;
    const float y = widgets::centred_y(font, form.at.y, frame.metrics.frame);
    widgets::draw_text_right(font, max.x - frame.metrics.px(8), y, frame.palette.text,
                             rate_text(frame.pending.model.dropout.rate));
  }
  if (!moved) return;
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left))
    rate = std::round(rate * 100) / 100;  // typed rates stay as they are
  if (rate != frame.pending.model.dropout.rate) frame.commands.edit(SetDropoutRate{rate});
}

void seed_row(const Form& form) {
  const Frame& frame = form.frame;
  form.label("seed");
  const auto step = [](std::uint64_t seed, int direction) {
    return direction > 0 ? seed + 1 : seed > 0 ? seed - 1 : 0;
  };
  const float width = frame.metrics.px(frame.metrics.compact ? 44 : 56);
  if (const auto seed =
          widgets::count_field(frame, "model/seed", "seed", frame.pending.model.dropout.seed, width, step))
    frame.commands.edit(SetDropoutSeed{*seed});
  widgets::tooltip("The same seed samples the same masks, as in PyTorch");
  form.place(form.label_width() + width + frame.metrics.px(frame.metrics.compact ? 8 : 14));
  const char* help = "Off: evaluation mode, nothing is dropped.";
  if (const auto on =
          widgets::checkbox(frame, "model/training", "training", frame.pending.model.dropout.training, help))
    frame.commands.edit(SetTraining{*on});
}

void stream_row(const Form& form) {
  const Frame& frame = form.frame;
  const std::array options{widgets::Option{"mt19937", "Everywhere since PyTorch 2.7"},
                           widgets::Option{"mkl", "On Linux on x86 before PyTorch 2.7"}};
  const std::size_t current = frame.pending.model.dropout.stream == DropoutStream::mkl ? 1 : 0;
  form.label("generator");
  const char* again = "↻";
  const float button = widgets::text_width(frame.fonts.sans14, again) + 2 * frame.metrics.px(8);
  const float width = form.control_width() - button - frame.metrics.px(8);
  if (const auto chosen =
          widgets::combo(frame, "model/stream", width, options[current].words, options, current))
    frame.commands.edit(SetDropoutStream{*chosen == 1 ? DropoutStream::mkl : DropoutStream::mt19937});
  form.place(form.width - button);
  if (widgets::button(frame, "model/draw_again", again, "Resamples the mask with the next seed"))
    frame.commands.edit(SetDropoutSeed{frame.pending.model.dropout.seed + 1});
}

void given_mask_row(const Form& form) {
  form.label("drop mask");
  if (widgets::button(form.frame, "model/draw_instead", "given · sample instead",
                      "The mask came with the file; samples it from the seed instead"))
    form.frame.commands.edit(SetDropoutMask{});
}

bool is_given(const Frame& frame) {
  return !frame.pending.model.dropout.given.empty();
}
bool is_initialized(const Frame& frame) {
  return frame.pending.model.dropout.rate > 0 && !is_given(frame);
}

constexpr std::array dropout_table{ModelRow{always, rate_row, 4}, ModelRow{always, seed_row, 0},
                                   ModelRow{is_initialized, stream_row, 0},
                                   ModelRow{is_given, given_mask_row, 0}};

}  // namespace

std::span<const ModelRow> dropout_rows() {
  return dropout_table;
}

namespace {

constexpr const char* additions_popup = "additions";

void additions_row(const Form& form) {
  const Frame& frame = form.frame;
  ImFont* font = frame.fonts.sans14;
  const ImVec2 at(form.at.x, widgets::centred_y(font, form.at.y, frame.metrics.frame));
  widgets::draw_text_within(font, at, form.width, frame.palette.text,
                            additions_words(frame.pending.model, frame.pending.look.sequence));
  frame.landmarks.mark("model/additions", at, {at.x + form.width, at.y + frame.metrics.frame});
}

constexpr std::array additions_table{ModelRow{has_additions, additions_row, 0}};

}  // namespace

bool has_additions(const Frame& frame) {
  return !additions_words(frame.pending.model, frame.pending.look.sequence).empty();
}

std::span<const ModelRow> addition_rows() {
  return additions_table;
}

void draw_additions_button(const Form& form) {
  const Frame& frame = form.frame;
  const float width = widgets::text_width(frame.fonts.sans14, "more…") + 2 * frame.metrics.px(8);
  platform::move_to({form.at.x + form.width - width, form.at.y - frame.metrics.px(5)});
  if (widgets::button(frame, "model/more", "more…",
                      "KV heads, QK norm, RoPE, ALiBi, soft-capping, attention bias, sinks, cross-attention"))
    ImGui::OpenPopup(additions_popup);
  draw_additions_popup(frame, additions_popup, {form.at.x + form.width + frame.metrics.px(20), form.at.y});
}

namespace {

using core::editing::Evidence;
using core::editing::Preset;

/// The numbers stand in print, where anyone can compare them.
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
    case Evidence::never_seeded:
      return "unseeded in the notebook; equals a " + source.substr(0, source.find(';'));
    case Evidence::stale_print:
      return "the notebook's printout is outdated; equals a " + source.substr(0, source.find(';'));
    case Evidence::by_construction:
      return "weights follow from " + source;
    case Evidence::drawn:
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
    case Evidence::never_seeded:
      return "The notebook prints numbers without a seed, which cannot be reproduced.";
    case Evidence::stale_print:
      return "The notebook's code no longer gives the numbers that it prints; these are the numbers that it gives.";
    case Evidence::by_construction:
      return "The weights can be computed by hand.";
    case Evidence::drawn:
      break;
  }
  return "This model is not from a notebook.";
}

}  // namespace

void evidence_row(const Form& form) {
  const Preset* preset = core::editing::find_preset(form.frame.document.preset);
  if (!preset) return;
  const Frame& frame = form.frame;
  ImFont* font = frame.fonts.sans13;
  const float pitch = frame.metrics.px(16);
  const bool ticked = is_printed(*preset);
  const float indent = ticked ? frame.metrics.px(18) : 0;
  if (ticked) widgets::draw_text(font, form.at, frame.palette.status.good, "✓");
  const ImVec2 at(form.at.x + indent, form.at.y);
  widgets::draw_two_lines(font, at, form.width - indent, pitch,
                          ticked ? frame.palette.dim : frame.palette.faint, words(*preset));
  ImGui::Dummy({form.width, 2 * pitch});
  frame.landmarks.mark_item("model/evidence");
  widgets::tooltip(words(*preset) + ". " + remark(*preset));
}

}  // namespace app::panels
