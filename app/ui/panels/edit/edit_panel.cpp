#include "app/ui/panels/edit/edit_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "app/ui/panels/dialogs/dialogs.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/editor/matrix_editor.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/text.hpp"
#include "core/editing/draw.hpp"

namespace app::panels {

namespace {

using namespace core::editing;

/// Meaning of a matrix's numbers, by MatrixName.
constexpr std::array meanings{
    "The embeddings, a row for each token",
    "The encoder states that keys and values are projected from, a row for each key",
    "The query projection: X·W_q",
    "The key projection: X·W_k",
    "The value projection: X·W_v",
    "The output projection of the concatenated heads",
    "Added to every query",
    "Added to every key",
    "Added to every value",
    "Added to every row of the output",
    "The weight of the query norm, one for each column",
    "The weight of the key norm, one for each column",
    "The rotation per position of each pair, in radians",
    "The ALiBi slope of each head",
    "The T5 bias: a row for each head, a column for each bucket of distances",
    "The attention bias, added to every score before the mask",
    "The attention sink: a logit for each head, added to the softmax sum of each row"};
static_assert(meanings.size() == core::attention::n_matrix_names);

MatrixRef chosen_place(const Frame& frame, MatrixName name) {
  const Pending& newest = frame.pending;
  return matrix_ref(newest.model, name, newest.look.sequence, newest.look.head);
}

void draw_tabs(const Frame& frame, MatrixRef shown, float width) {
  std::vector<TabItem> words;
  std::vector<MatrixName> names;
  std::size_t current = 0;
  for (const MatrixName matrix : rows::editable_matrices) {
    if (!find_matrix(frame.pending.model, chosen_place(frame, matrix))) continue;
    if (matrix == shown.name) current = words.size();
    words.push_back({std::string("edit/tab/") + symbol(matrix), symbol(matrix)});
    names.push_back(matrix);
  }
  const auto chosen = tabs(frame, width, words, current);
  for (std::size_t k = 0; k < words.size(); ++k)
    if (const auto rect = frame.landmarks.find(words[k].name); rect && hovers(rect->min, rect->max))
      ImGui::SetTooltip("%s", meanings.at(static_cast<std::size_t>(names[k])));
  if (chosen)
    frame.commands.add(set<&Look::edited>({names[*chosen], frame.pending.look.edited.nth}),
                       set<&Selection::cursor>(std::nullopt), set<&Forms::typed>(std::nullopt));
}

/// Returns the rows of the tokens that the pinned cell was computed from.
std::vector<std::size_t> marked_rows(const Pending& view, MatrixRef place) {
  if (!view.selection.pinned || place.name > MatrixName::key_embeddings) return {};
  const auto& stage = core::attention::info(view.selection.pinned->stage);
  const auto& [pinned_stage, head, row, column] = *view.selection.pinned;
  const bool other_keys = view.model.has_key_embeddings(), of_keys = place.name == MatrixName::key_embeddings;
  std::vector<std::size_t> rows;
  if (!other_keys || (stage.rows == core::attention::RowTokens::keys) == of_keys) rows.push_back(row);
  if (stage.columns == core::attention::Columns::tokens && other_keys == of_keys) rows.push_back(column);
  return rows;
}

HeadParts head_parts(const Pending& view, MatrixName name, const core::attention::SharedMatrix& numbers) {
  using core::attention::Stage;
  const auto stage = [&]() -> std::optional<Stage> {
    switch (name) {
      case MatrixName::query_weight:
      case MatrixName::query_bias:
        return Stage::queries;
      case MatrixName::key_weight:
      case MatrixName::key_bias:
        return Stage::keys;
      case MatrixName::value_weight:
      case MatrixName::value_bias:
        return Stage::values;
      case MatrixName::output_weight:
        return Stage::contexts;
      default:
        return std::nullopt;
    }
  }();
  const std::size_t n = stage ? core::attention::n_matrices(view.model, *stage) : 1;
  const bool of_rows = name == MatrixName::output_weight;
  if (n < 2) return {};
  return {(of_rows ? numbers.n_rows() : numbers.n_cols()) / n,
          core::attention::matrix_of_head(view.model, *stage, view.look.head), of_rows};
}

struct Filling {
  const char *key, *words, *help;
  FillRule rule;
};

constexpr std::array fillings{
    Filling{"zeros", "zeros", "0 everywhere", FillRule::zeros},
    Filling{"ones", "ones", "1 everywhere", FillRule::ones},
    Filling{"identity", "identity", "1 on the diagonal, else 0", FillRule::identity},
    Filling{"rand", "rand", "torch.rand: uniform from 0 to 1", FillRule::rand},
    Filling{"randn", "randn", "torch.randn: standard normal", FillRule::randn},
    Filling{"linear", "Linear", "The first values of nn.Linear of this shape", FillRule::linear},
    Filling{"embedding", "Embedding", "The first values of nn.Embedding", FillRule::embedding}};

void fill(const Frame& frame, MatrixRef place, FillRule rule) {
  frame.commands.edit(
      SetBlock{place, 0, 0, filled(frame.pending.model, place, {rule, frame.forms.fill.fill.seed, {}})});
}

void fill_popup(const Frame& frame, MatrixRef place) {
  const std::string at_seed = "; seed " + std::to_string(frame.forms.fill.fill.seed);
  for (const Filling& filling : fillings) {
    if (filling.rule == FillRule::rand) ImGui::Separator();
    if (ImGui::Selectable(filling.words)) fill(frame, place, filling.rule);
    frame.landmarks.mark_item(std::string("edit/fill/") + filling.key);
    tooltip(filling.help + (filling.rule >= FillRule::rand ? at_seed : ""));
  }
  ImGui::Separator();
  if (ImGui::Selectable("seed and position…")) open_fill_dialog(frame, place);
  frame.landmarks.mark_item("edit/fill/dialog");
  tooltip("With another seed, or later in a sequence of samples");
}

/// Draws the buttons "Random" and "Fill…" with its menu, which write a whole matrix.
void draw_fill_buttons(const Frame& frame, MatrixRef place) {
  const std::string help =
      fmt::format("torch.randn at seed {}; each click uses the next seed", frame.forms.fill.fill.seed);
  if (button(frame, "edit/random", "Random", help.c_str())) {
    fill(frame, place, FillRule::randn);
    FillForm form = frame.forms.fill;
    ++form.fill.seed;
    frame.commands.add(set<&Forms::fill>(std::move(form)));
  }
  ImGui::SameLine();
  if (button(frame, "edit/fill", "Fill…", "Zeros, ones, identity, or random numbers as PyTorch samples them"))
    ImGui::OpenPopup("fill");
  if (ImGui::BeginPopup("fill")) {
    fill_popup(frame, place);
    ImGui::EndPopup();
  }
}

void draw_buttons(const Frame& frame, MatrixRef place, const core::attention::SharedMatrix& numbers) {
  if (place.name == MatrixName::embeddings) {
    const std::size_t n = numbers.n_rows();
    if (button(frame, "edit/add_token", "+ token", "Adds a token of zeros at the end"))
      frame.commands.edit(InsertToken{n, std::to_string(n)});
    ImGui::SameLine();
  }
  draw_fill_buttons(frame, place);
}

/// Returns the rows of zeros, which new tokens have; none of a matrix that is all zeros or very large.
std::vector<std::size_t> rows_of_zeros(const core::attention::SharedMatrix& numbers) {
  constexpr std::size_t max_cells = 1u << 14;
  std::vector<std::size_t> rows;
  if (numbers.n_rows() * numbers.n_cols() > max_cells) return rows;
  for (std::size_t i = 0; i < numbers.n_rows(); ++i)
    if (!arma::any((*numbers).row(i))) rows.push_back(i);
  return rows.size() < numbers.n_rows() ? rows : std::vector<std::size_t>();
}

/// Returns the heads whose queries are 0, as those of a new head; none in a very large model.
std::vector<std::size_t> heads_of_zeros(const Frame& frame) {
  constexpr std::size_t max_cells = 1u << 14;
  std::vector<std::size_t> heads;
  const auto* weight = find_matrix(frame.pending.model, chosen_place(frame, MatrixName::query_weight));
  const std::size_t n = frame.pending.model.n_heads;
  if (!weight || frame.pending.full_model || weight->n_rows() * weight->n_cols() > max_cells) return heads;
  for (std::size_t h = 0, size = weight->n_cols() / n; h < n; ++h)
    if (!arma::any(arma::vectorise((*weight)->cols(h * size, (h + 1) * size - 1)))) heads.push_back(h);
  return heads.size() < n ? heads : std::vector<std::size_t>();
}

/// New tokens or, if all have numbers, new heads that are all zeros; words are empty if there are none.
struct ZerosOffer {
  std::string words;
  std::vector<std::size_t> rows;  ///< of X
};

ZerosOffer offer_for_zeros(const Frame& frame, MatrixRef place,
                           const core::attention::SharedMatrix& numbers) {
  const auto words = [](const char* one, const char* several, const std::vector<std::size_t>& all) {
    return all.empty()       ? std::string()
           : all.size() == 1 ? fmt::format("{} {} is all zeros. ", one, all.front())
                             : fmt::format("{} {} are all zeros. ", all.size(), several);
  };
  if (place.name == MatrixName::embeddings)
    if (auto rows = rows_of_zeros(numbers); !rows.empty())
      return {words("Row", "rows", rows), std::move(rows)};
  return {words("Head", "heads", heads_of_zeros(frame)), {}};
}

/// Samples new rows of X.
void initialize_tokens(const Frame& frame, MatrixRef place, const std::vector<std::size_t>& rows) {
  const core::attention::Model& model = frame.pending.model;
  arma::mat now = **find_matrix(model, place);
  const arma::mat sampled = filled(model, place, {FillRule::randn, frame.forms.fill.fill.seed, {}});
  for (const std::size_t row : rows) now.row(row) = sampled.row(row);
  frame.commands.edit(SetBlock{place, 0, 0, std::move(now)});
}

/// Samples the columns of zeros of the projections, and the rows of zeros of W_o.
void initialize_heads(const Frame& frame) {
  core::attention::Model model = frame.pending.model;
  for (const MatrixName name : {MatrixName::query_weight, MatrixName::key_weight, MatrixName::value_weight,
                                MatrixName::output_weight}) {
    const MatrixRef place = chosen_place(frame, name);
    const auto* numbers = find_matrix(model, place);
    if (!numbers) continue;
    const bool of_rows = name == MatrixName::output_weight;
    arma::mat now = of_rows ? arma::mat((**numbers).t()) : **numbers,
              sampled = filled(model, place, {FillRule::linear, frame.forms.fill.fill.seed, {}});
    if (of_rows) arma::inplace_trans(sampled);
    for (std::size_t k = 0; k < now.n_cols; ++k)
      if (!arma::any(now.col(k))) now.col(k) = sampled.col(k);
    if (of_rows) arma::inplace_trans(now);
    model = core::editing::apply(model, SetBlock{place, 0, 0, std::move(now)});
  }
  frame.commands.edit(ReplaceModel{std::move(model), "initialize head"});
}

/// Draws an offer to initialize what is new and all zeros.
void draw_offer(const Frame& frame, MatrixRef place, const ZerosOffer& offer, ImVec2 at) {
  ImFont* font = frame.fonts.sans14;
  const float middle = at.y + frame.metrics.px(9);
  draw_text(font, {at.x, middle}, Align::left_middle, frame.palette.faint, offer.words);
  if (!link(frame, "edit/initialize", font, {at.x + text_width(font, offer.words), middle},
            Align::left_middle, frame.palette.accent, "Initialize"))
    return;
  offer.rows.empty() ? initialize_heads(frame) : initialize_tokens(frame, place, offer.rows);
}

}  // namespace

void draw_edit(const Frame& frame) {
  const Metrics& m = frame.metrics;
  const ImVec2 start = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float width = room.x, x = start.x;
  const MatrixRef place = edited_place(frame.pending.look, frame.pending.model);
  const core::attention::SharedMatrix& numbers = *find_matrix(frame.pending.model, place);

  section_heading(frame, width, "EDIT", core::text::tuple_text({numbers.n_rows(), numbers.n_cols()}));
  draw_tabs(frame, place, width);

  if (numbers.n_rows() * numbers.n_cols() == 0) {
    platform::move_to({x, ImGui::GetCursorScreenPos().y + m.px(10)});
    paragraph(
        frame.fonts.sans14, frame.palette.dim, width,
        "The embeddings are not known: the model starts from given stages. Setting d_in creates them as zeros.");
    return;
  }
  EditedMatrix matrix{place, numbers, nullptr, marked_rows(frame.pending, place)};
  if (place.name == MatrixName::embeddings)
    matrix.tokens = &frame.pending.model.sequences.at(place.nth).tokens;
  if (place.name == MatrixName::key_embeddings)
    matrix.names = &frame.pending.model.sequences.at(place.nth).keys();
  else if (place.name == MatrixName::score_bias)
    matrix.names = &frame.pending.model.sequences.at(frame.pending.look.sequence).tokens;
  matrix.heads = head_parts(frame.pending, place.name, numbers);
  if (frame.gradient && frame.gradient->is_current())
    if (const arma::mat& gradient = frame.gradient->gradients()->of(place); !gradient.empty())
      matrix.gradient = &gradient, matrix.largest_gradient = std::max(arma::abs(gradient).max(), 1e-12);
  const float top = ImGui::GetCursorScreenPos().y;
  const ZerosOffer offer = offer_for_zeros(frame, place, numbers);
  const bool has_offer = !offer.words.empty();
  const float buttons = m.px(10) + m.frame, hint = m.px(10) + (has_offer ? 1 : 2) * m.px(18);
  const float min_height = m.px(20 + 26 + 8), wanted = matrix_editor_height(frame, matrix, width);
  const float room_for_all = start.y + room.y - top, left = room_for_all - m.px(8) - buttons;
  // The numbers come first in a low window.
  const bool has_hint = left - hint >= std::min(wanted, has_offer ? min_height : m.px(300));
  // A window too low for a row and the buttons shows rows alone.
  const float max_height = has_hint ? left - hint : left >= min_height ? left : std::max(left, room_for_all);
  const float height = matrix_editor_height(frame, matrix, ImVec2(width, max_height));
  platform::move_to({x, top});
  matrix_editor(frame, matrix, {width, height});
  frame.landmarks.mark("edit/numbers", {x, top}, {x + width, top + height});

  platform::move_to({x, top + height + m.px(10)});
  draw_buttons(frame, place, numbers);
  platform::move_to({x, top + height + m.px(10) + m.frame + m.px(10)});
  if (!has_hint) return;
  if (has_offer) return draw_offer(frame, place, offer, ImGui::GetCursorScreenPos());
  paragraph(frame.fonts.sans14, frame.palette.faint, width,
            "Drag to change, double-click to type. Shift: coarse, Alt: fine.");
}

}  // namespace app::panels
