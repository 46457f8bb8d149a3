#include "app/ui/panels/dialogs/dialogs.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/editor/matrix_editor.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/draw_op.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/editing/draw.hpp"
#include "core/files/given_tensors.hpp"

namespace app::panels {

namespace {

/// Text typed into draw_rng_prefix_row() with its error, and the ops that it names.
struct ParsedRngPrefix {
  RngPrefix shown;
  std::vector<core::random::RandomOp> ops;  ///< empty when there is an error
};

using namespace core::editing;

constexpr const char* hint =
    "What the same seed sampled before, as for attnscope draw: rand(6,3) Linear(3,2) randint(0,10,6) …";

ParsedRngPrefix parse_rng_prefix(const std::string& text) {
  try {
    return {{text, ""}, core::random::parse_random_ops(text, core::editing::max_numbers_before)};
  } catch (const core::Error& error) {
    return {{text, error.what()}, {}};
  }
}

/// Returns the width of the dialogs that initialize numbers, in pixels.
float initialize_dialog_width(const Frame& frame) {
  return dialog_width(frame, 580);
}

/// Draws the row "sampled before", a field of ops as on the command line, above their error or a hint.
/// Landmarks name and name + "/error". Returns a new text when one was submitted.
std::optional<ParsedRngPrefix> draw_rng_prefix_row(const FormRows& form, const std::string& name,
                                                   const RngPrefix& before) {
  const Frame& frame = form.frame;
  form.row("earlier samples");
  const float width = form.control_width();
  const FieldAnswer answer = text_field(
      frame, name, before.text, {.width = width, .font = frame.fonts.mono14, .alignment = Alignment::left});

  const bool bad = !before.error.empty();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  paragraph(frame.fonts.sans14, bad ? frame.palette.status.bad : frame.palette.faint, width,
            bad ? before.error : hint);
  if (bad) frame.landmarks.mark_item(name + "/error");
  const float two_lines = 2 * platform::font_size(frame.fonts.sans14) + frame.metrics.px(8);
  platform::move_to({at.x, std::max(ImGui::GetCursorScreenPos().y, at.y + two_lines)});

  return answer.text ? std::optional(parse_rng_prefix(*answer.text)) : std::nullopt;
}

/// Draws the buttons that close a dialog: "dialog/confirm", grayed unless enabled, and "dialog/cancel".
/// Returns true when it was confirmed, by Enter too.
bool draw_dialog_buttons(const Frame& frame, const char* words, bool enabled) {
  const bool confirmed =
      confirm_buttons(frame, initialize_dialog_width(frame), words, enabled) == "dialog/confirm";
  return enabled && (confirmed || enter_confirms());
}

template <auto member, class Value>
void change(const Frame& frame, Value value) {
  ModelInit draw = frame.forms.draw.draw;
  draw.*member = std::move(value);
  frame.commands.add(set<&DrawForm::draw>(std::move(draw)));
}

void draw_seed_row(const FormRows& form, const ModelInit& draw) {
  const Frame& frame = form.frame;
  form.row("seed");
  if (const auto seed = count_field(frame, "draw/seed", "seed", draw.seed, frame.metrics.px(96)))
    change<&ModelInit::seed>(frame, *seed);
}

void draw_embeddings_row(const FormRows& form, const ModelInit& draw) {
  const Frame& frame = form.frame;
  const std::array<std::string, 5> words{"keep", "rand first", "randn first", "rand last", "randn last"};
  form.row("embeddings");
  if (const auto chosen =
          segmented(frame, "draw/embeddings", words, static_cast<std::size_t>(draw.embeddings)))
    change<&ModelInit::embeddings>(frame, static_cast<EmbeddingsInit>(*chosen));
}

void draw_layers_row(const FormRows& form, const ModelInit& draw) {
  const Frame& frame = form.frame;
  const std::array<std::string, 2> words{"Q, K, V", "K, Q, V"};
  form.row("layers");
  if (const auto chosen = segmented(frame, "draw/order", words, static_cast<std::size_t>(draw.order)))
    change<&ModelInit::order>(frame, static_cast<LayerOrder>(*chosen));
  ImGui::SameLine(0, frame.metrics.px(16));
  if (const auto on = checkbox(frame, "draw/bias", "with biases", draw.bias))
    change<&ModelInit::bias>(frame, *on);
}

void draw_output_row(const FormRows& form, const ModelInit& draw) {
  const Frame& frame = form.frame;
  const std::array<std::string, 3> words{"none", "without bias", "with bias"};
  form.row("output layer");
  if (const auto chosen = segmented(frame, "draw/output", words, static_cast<std::size_t>(draw.output)))
    change<&ModelInit::output>(frame, static_cast<OutputLayer>(*chosen));
}

void draw_torch_box(const FormRows& form, const std::string& lines) {
  const Frame& frame = form.frame;
  form.row("in PyTorch");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = platform::font_size(frame.fonts.mono13) + frame.metrics.px(4);
  const ImVec2 size(form.control_width(), 11 * line + frame.metrics.px(16));
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(frame.palette.background.back));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.metrics.px(12), frame.metrics.px(8)});
  platform::begin_child("torch", size, false, platform::padded | ImGuiWindowFlags_HorizontalScrollbar);
  platform::push_font(frame.fonts.mono13);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, frame.metrics.px(4)});
  std::string_view rest = lines;
  for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    ImGui::TextUnformatted(rest.data(), rest.data() + end);
    rest.remove_prefix(end + 1);
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  frame.landmarks.mark("draw/torch", at, {at.x + size.x, at.y + size.y});
  ImGui::TableSetColumnIndex(0);  // below the label
  platform::move_to({ImGui::GetCursorScreenPos().x, at.y + frame.metrics.pitch});
  if (button(frame, "draw/copy", "Copy", "Copies these lines")) frame.commands.add(CopyText{lines});
}

}  // namespace

void draw_initialize_dialog(const Frame& frame) {
  const auto& [draw, before] = frame.forms.draw;
  const bool good = before.error.empty();
  {
    const FormRows form(frame, "draw", initialize_dialog_width(frame));
    draw_seed_row(form, draw);
    if (const auto typed = draw_rng_prefix_row(form, "draw/before", before)) {
      frame.commands.add(set<&DrawForm::before>(typed->shown));
      change<&ModelInit::before>(frame, typed->ops);
    }
    draw_embeddings_row(form, draw);
    draw_layers_row(form, draw);
    draw_output_row(form, draw);
    draw_torch_box(form, good ? torch_lines(frame.pending.model, draw) : "");
  }  // ends the table
  if (draw_dialog_buttons(frame, "Initialize", good)) {
    frame.commands.edit(ReplaceModel{initialized_model(frame.pending.model, draw)});
    close_dialog(frame);
  }
}

namespace {

constexpr std::size_t max_preview_rows = 4, max_preview_columns = 6;

/// Indexed by FillRule.
const std::array<std::string, 7> rule_words{"zeros", "ones",   "identity", "rand",
                                            "randn", "Linear", "Embedding"};

const char* help(FillRule rule, MatrixName matrix) {
  switch (rule) {
    case FillRule::zeros:
      return "0 everywhere.";
    case FillRule::ones:
      return "1 everywhere.";
    case FillRule::identity:
      return "1 on the diagonal, else 0.";
    case FillRule::rand:
      return "torch.rand: uniform from 0 to 1.";
    case FillRule::randn:
      return "torch.randn: standard normal.";
    case FillRule::embedding:
      return "The first values of nn.Embedding: standard normal.";
    case FillRule::linear:
      break;
  }
  return is_bias(matrix) ? "The first values of nn.Linear: its bias, sampled after its weight."
                         : "The first values of nn.Linear: its weight, transposed to in × out.";
}

/// Changes the form and recomputes its numbers.
void change_fill(const Frame& frame, const std::function<void(FillForm&)>& step) {
  FillForm form = frame.forms.fill;
  step(form);
  if (find_matrix(frame.pending.model, form.place))
    form.numbers = filled(frame.pending.model, form.place, form.fill);
  frame.commands.add(set<&Forms::fill>(std::move(form)));
}

void draw_matrix_row(const FormRows& rows, const FillForm& form, const arma::mat& old) {
  const Frame& frame = rows.frame;
  rows.row("matrix");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.sans15;
  const float y = centered_y(font, at.y, frame.metrics.frame);
  const float width = draw_formula(font, {at.x, y}, frame.palette.text, symbol(form.place.name));
  const std::string shape = core::text::shape_text(old.n_rows, old.n_cols);
  ImFont* mono = frame.fonts.mono13;
  draw_label(frame, mono, {at.x + width + frame.metrics.px(10), at.y}, frame.palette.faint, shape);
  ImGui::Dummy({width, frame.metrics.frame});
}

void draw_rule_row(const FormRows& rows, const FillForm& form) {
  const Frame& frame = rows.frame;
  rows.row("numbers");
  const auto current = static_cast<std::size_t>(form.fill.rule);
  if (const auto rule = segmented(frame, "fill/rule", rule_words, current))
    change_fill(frame, [rule = static_cast<FillRule>(*rule)](FillForm& f) { f.fill.rule = rule; });
  paragraph(frame.fonts.sans14, frame.palette.faint, rows.control_width(),
            help(form.fill.rule, form.place.name));
}

void draw_seed_row(const FormRows& rows, const FillForm& form) {
  const Frame& frame = rows.frame;
  rows.row("seed");
  if (const auto seed = count_field(frame, "fill/seed", "seed", form.fill.seed, frame.metrics.px(96)))
    change_fill(frame, [seed = *seed](FillForm& f) { f.fill.seed = seed; });
}

void preview(const FormRows& form, const arma::mat& numbers) {
  const Frame& frame = form.frame;
  form.row("first numbers");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.mono13;
  const float line = frame.metrics.px(18), column = frame.metrics.px(68), top = at.y + frame.metrics.px(4);
  const std::size_t rows = std::min<std::size_t>(numbers.n_rows, max_preview_rows);
  const std::size_t columns = std::min<std::size_t>(numbers.n_cols, max_preview_columns);
  const NumberFormat format = choose_format(numbers, {0, rows, 0, columns}, 7);
  for (std::size_t i = 0; i < rows; ++i) {
    const float y = top + line * static_cast<float>(i);
    for (std::size_t j = 0; j < columns; ++j)
      draw_text_right(font, at.x + column * static_cast<float>(j + 1) - frame.metrics.px(12), y,
                      frame.palette.text, cell_text(numbers(i, j), format, true));
    if (columns < numbers.n_cols)
      draw_text(font, {at.x + column * static_cast<float>(columns), y}, frame.palette.faint, "…");
  }
  if (rows < numbers.n_rows)
    draw_text(font, {at.x + frame.metrics.px(20), top + line * static_cast<float>(rows)}, frame.palette.faint,
              "…");
  ImGui::Dummy({form.control_width(), line * static_cast<float>(max_preview_rows + 1) + frame.metrics.px(8)});
  frame.landmarks.mark_item("fill/preview");
}

}  // namespace

void open_fill_dialog(const Frame& frame, MatrixRef place) {
  change_fill(frame, [place](FillForm& f) { f.place = place; });
  frame.commands.add(ShowDialog{Dialog::fill});
}

void draw_fill_dialog(const Frame& frame) {
  const FillForm& form = frame.forms.fill;
  const core::attention::SharedMatrix* old = find_matrix(frame.pending.model, form.place);
  if (!old) return close_dialog(frame);
  const bool good = form.before.error.empty() || !form.fill.draws();
  {
    const FormRows rows(frame, "fill", initialize_dialog_width(frame));
    draw_matrix_row(rows, form, *old);
    draw_rule_row(rows, form);
    ImGui::BeginDisabled(!form.fill.draws());
    draw_seed_row(rows, form);
    if (const auto typed = draw_rng_prefix_row(rows, "fill/before", form.before))
      change_fill(frame, [typed = *typed](FillForm& f) {
        f.before = typed.shown;
        f.fill.before = typed.ops;
      });
    ImGui::EndDisabled();
    preview(rows, good ? *form.numbers : arma::mat());
  }  // ends the table
  if (draw_dialog_buttons(frame, "Fill", good)) {
    frame.commands.edit(SetBlock{form.place, 0, 0, form.numbers});
    close_dialog(frame);
  }
}

namespace {

using core::attention::GivenStage;
using core::attention::StageInfo;

/// Whether the numbers of a stage are computed for the newest model, which may not be displayed yet.
bool is_computed(const Frame& frame, const StageInfo& stage) {
  return stage.present(frame.pending.model) && frame.is_up_to_date();
}

/// Returns the present numbers of a known stage, in every head.
GivenStage current_numbers(const Frame& frame, const StageInfo& stage) {
  GivenStage given{stage.stage, {}};
  for (std::size_t h = 0; h < frame.pending.model.n_heads; ++h)
    given.matrices.emplace_back(frame.displayed.trace.at(stage.stage, h));
  return given;
}

/// Reads a stage from the clipboard: all heads, or the selected one, keeping the others. Throws core::Error.
GivenStage read_clipboard_stage(const Frame& frame, const StageInfo& stage) {
  const char* clipboard = ImGui::GetClipboardText();
  const core::formats::Tensor tensor = parse_pasted_tensor(clipboard ? clipboard : "");
  GivenStage given = core::formats::stage_from_tensor(tensor, stage.stage, 1, "pasted text: ").given;
  if (given.matrices.size() != 1 || frame.pending.model.n_heads == 1) return given;
  if (!is_computed(frame, stage))
    throw core::Error(fmt::format("pasted text: expected all {} heads, as the others are not known, got one",
                                  frame.pending.model.n_heads));
  GivenStage all = current_numbers(frame, stage);
  all.matrices[frame.pending.look.head] = given.matrices.front();
  return all;
}

void paste_stage(const Frame& frame, const StageInfo& stage) {
  try {
    frame.commands.edit(core::editing::OverrideStage{read_clipboard_stage(frame, stage)});
    close_dialog(frame);
  } catch (const core::Error& error) {
    frame.commands.add(ShowMessage{error.what(), true});
  }
}

std::string override_state_text(const Frame& frame, const StageInfo& stage) {
  const std::string name = stage.title;
  if (frame.pending.model.given.find(stage.stage))
    return name + ": overridden. What follows is computed from these numbers.";
  if (!stage.present(frame.pending.model)) return name + ": not known, because a later stage is overridden.";
  return name + ": computed. Your numbers replace them; earlier stages that nothing else needs are hidden.";
}

bool enabled_button(const Frame& frame, const char* name, const char* words, bool enabled, const char* help) {
  if (!enabled) ImGui::BeginDisabled();
  const bool pressed = button(frame, name, words, help);
  if (!enabled) ImGui::EndDisabled();
  return pressed;
}

}  // namespace

void draw_override_dialog(const Frame& frame) {
  const float width = frame.metrics.px(460);
  const std::vector<const StageInfo*> list = core::attention::givable_stages();
  std::vector<Option> options;
  for (const StageInfo* stage : list) options.push_back({stage->title});
  const auto place = std::ranges::find(list, frame.forms.overridden_stage, &StageInfo::stage);
  const auto current = place == list.end() ? 0 : static_cast<std::size_t>(place - list.begin());
  const StageInfo& stage = *list[current];
  if (const auto chosen = combo(frame, "give/stage", width, options, current, stage.title))
    frame.commands.add(set<&Forms::overridden_stage>(list[*chosen]->stage));
  paragraph(frame.fonts.sans15, frame.palette.dim, width, override_state_text(frame, stage));
  ImGui::Dummy({width, frame.metrics.px(8)});
  const bool given = frame.pending.model.given.find(stage.stage);
  const bool can_keep = !given && is_computed(frame, stage) && frame.pending.model.sequences.size() == 1;
  if (enabled_button(frame, "give/keep", "Keep these numbers", can_keep,
                     "Keeps the numbers as they are, whatever changes before them")) {
    frame.commands.edit(core::editing::OverrideStage{current_numbers(frame, stage)});
    close_dialog(frame);
  }
  ImGui::SameLine();
  if (button(frame, "give/paste", "Paste", "A printed tensor or a table: all heads, or the selected one"))
    paste_stage(frame, stage);
  ImGui::SameLine();
  if (button(frame, "give/file", "From a file…",
             "Reads the tensor with the stage's name, or the only one: [heads, rows, columns]"))
    frame.commands.add(ShowDialog{Dialog::open_override});
  ImGui::SameLine();
  if (enabled_button(frame, "give/compute", "Compute again", given, "Removes the override")) {
    frame.commands.edit(core::editing::ClearStageOverride{stage.stage});
    close_dialog(frame);
  }
  ImGui::SameLine();
  if (button(frame, "dialog/cancel", "Cancel")) close_dialog(frame);
}

namespace {

using core::text::TokenRule;

struct SentenceInput {
  std::string text;
  bool selects = false;  ///< all of the text, which typing then replaces
};

/// Lets ImGui write into a string of any length. Drops Enter, which confirms; Shift+Enter ends a line.
int on_sentence_event(ImGuiInputTextCallbackData* data) {
  auto& input = *static_cast<SentenceInput*>(data->UserData);
  if (data->EventFlag == ImGuiInputTextFlags_CallbackCharFilter)
    return data->EventChar == '\n' && !ImGui::GetIO().KeyShift ? 1 : 0;
  if (data->EventFlag == ImGuiInputTextFlags_CallbackAlways && input.selects) data->SelectAll();
  if (data->EventFlag != ImGuiInputTextFlags_CallbackResize) return 0;
  input.text.resize(static_cast<std::size_t>(data->BufTextLen));
  data->Buf = input.text.data();
  return 0;
}

void draw_text_box(const Frame& frame, float width) {
  bool& was_active = *ImGui::GetStateStorage()->GetBoolRef(ImGui::GetID("active"), false);
  SentenceInput input{frame.forms.sentence.text, !was_active};
  std::string& text = input.text;
  platform::push_font(frame.fonts.sans15);
  if (ImGui::IsWindowAppearing()) platform::focus_next_item();
  ImGui::InputTextMultiline("##sentence", text.data(), text.capacity() + 1, {width, frame.metrics.px(96)},
                            ImGuiInputTextFlags_CallbackResize | ImGuiInputTextFlags_CallbackCharFilter |
                                ImGuiInputTextFlags_CallbackAlways,
                            on_sentence_event, &input);
  was_active = ImGui::IsItemActive();
  ImGui::PopFont();
  frame.landmarks.mark_item("sentence/text");
  if (text != frame.forms.sentence.text) frame.commands.add(set<&SentenceDraft::text>(text));
}

void draw_rule_and_seed(const Frame& frame) {
  const std::array<std::string, 2> rules{"words", "characters"};
  const SentenceDraft& draft = frame.forms.sentence;
  if (const auto chosen = segmented(frame, "sentence/rule", rules, draft.rule == TokenRule::words ? 0 : 1))
    frame.commands.add(set<&SentenceDraft::rule>(*chosen == 0 ? TokenRule::words : TokenRule::characters));
  ImGui::SameLine(0, frame.metrics.px(24));
  inline_label(frame, "seed");
  tooltip("Equal tokens share a row of nn.Embedding, initialized as in PyTorch after manual_seed(seed)");
  if (const auto seed = count_field(frame, "sentence/seed", "seed", draft.seed, frame.metrics.px(90)))
    frame.commands.add(set<&SentenceDraft::seed>(*seed));
}

/// Draws the tokens as chips, as many as fit into three lines.
void draw_chips(const Frame& frame, const std::vector<std::string>& tokens, float width) {
  ImFont* font = frame.fonts.sans14;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.px(22), pitch = frame.metrics.px(26), pad = frame.metrics.px(6);
  const float widest = width - frame.metrics.px(40);
  float x = 0;
  int line = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string shown = shortened(font, tokens[i], widest);
    const float w = text_width(font, shown) + 2 * pad;
    if (x > 0 && x + w > width) x = 0, ++line;
    const bool last_place = line == 2 && x + w > widest && i + 1 < tokens.size();
    const ImVec2 a(at.x + x, at.y + static_cast<float>(line) * pitch);
    if (line > 2 || last_place) {
      draw_text(font, {at.x + x, centered_y(font, at.y + 2 * pitch, height)}, frame.palette.dim, "…");
      break;
    }
    draw_rect(a, {a.x + w, a.y + height}, frame.palette.control.rest, frame.metrics.px(3));
    draw_text(font, {a.x + pad, centered_y(font, a.y, height)}, frame.palette.text, shown);
    frame.landmarks.mark("sentence/token/" + std::to_string(i), a, {a.x + w, a.y + height});
    x += w + frame.metrics.px(4);
  }
  ImGui::Dummy({width, 3 * pitch});
}

/// Tokens of the typed text, or why it cannot be tokenized.
struct TokenizedDraft {
  std::vector<std::string> tokens;
  std::string problem;
};

TokenizedDraft tokenize_draft(const SentenceDraft& draft) {
  if (draft.text.empty()) return {};
  try {
    return {core::text::tokens(draft.text, draft.rule), ""};
  } catch (const core::Error& error) {
    return {{}, error.what()};
  }
}

/// Replaces the tokens of the model by the sentence, or shows an error message.
void apply_sentence(const Frame& frame, const std::vector<std::string>& tokens) {
  try {
    auto model = core::text::with_sentence(frame.pending.model, tokens, frame.forms.sentence.seed);
    frame.commands.edit(core::editing::ReplaceModel{std::move(model)});
    frame.commands.add(
        ShowMessage{fmt::format("{}, {} of them distinct", core::text::counted(tokens.size(), "token"),
                                core::text::vocabulary(tokens).size())});
    close_dialog(frame);
  } catch (const core::Error& error) {
    frame.commands.add(ShowMessage{error.what(), true});
  }
}

}  // namespace

void draw_sentence_dialog(const Frame& frame) {
  const float width = dialog_width(frame, 560);
  draw_text_box(frame, width);
  draw_rule_and_seed(frame);
  ImGui::Dummy({width, frame.metrics.px(2)});
  const TokenizedDraft tokenized = tokenize_draft(frame.forms.sentence);
  const auto limit = frame.pending.model.context_length;
  const bool too_long = limit && tokenized.tokens.size() > *limit;
  std::string words = tokenized.problem;
  if (too_long)
    words = fmt::format("{}, but the model takes at most {} (its context)",
                        core::text::counted(tokenized.tokens.size(), "token"), *limit);
  else if (words.empty())
    words = tokenized.tokens.empty()
                ? "1 to 512 tokens"
                : fmt::format("{}, {} distinct", core::text::counted(tokenized.tokens.size(), "token"),
                              core::text::vocabulary(tokenized.tokens).size());
  const bool bad = too_long || !tokenized.problem.empty();
  paragraph(frame.fonts.sans14, bad ? frame.palette.status.bad : frame.palette.dim, width, words);
  frame.landmarks.mark_item("sentence/count");
  draw_chips(frame, tokenized.tokens, width);
  const bool ready = !tokenized.tokens.empty() && !bad;
  const bool confirmed = confirm_buttons(frame, width, "Apply", ready) == "dialog/confirm";
  const bool enter = platform::key_pressed(ImGuiKey_Enter, false) && !ImGui::GetIO().KeyShift;
  if (ready && (confirmed || enter)) apply_sentence(frame, tokenized.tokens);
}

}  // namespace app::panels
