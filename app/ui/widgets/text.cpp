#include "app/ui/widgets/text.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/lessons/lessons.hpp"

namespace app::widgets {

std::string visible_token(std::string_view token) {
  const std::string_view inner = core::text::trimmed(token, " ");
  const std::size_t leading =
      inner.empty() ? token.size() : static_cast<std::size_t>(inner.data() - token.data());
  std::string text;
  for (std::size_t k = 0; k < token.size(); ++k) {
    const bool is_outer = k < leading || k >= leading + inner.size();
    if (is_outer)
      text += "·";
    else if (token[k] == '\n')
      text += "⏎";
    else if (token[k] == '\t')
      text += "→";
    else
      text += token[k];
  }
  return text;
}

std::string quoted_token(std::string_view token) {
  return "‘" + visible_token(token) + "’";
}

std::string grouped(std::size_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t k = digits.size(); k > 3; k -= 3) digits.insert(k - 3, 1, ',');
  return digits;
}

std::string signed_text(double value, int decimals) {
  return (value > 0 ? "+" : "") + fixed(value, decimals);
}

float centred_y(ImFont* font, float top, float height) {
  return std::round(top + (height - platform::font_size(font)) / 2);
}

void draw_text(ImFont* font, ImVec2 pos, Rgb color, std::string_view text) {
  draw_text(font, pos, Align::left_top, packed(color), text);
}

void draw_text_right(ImFont* font, float right, float y, Rgb color, std::string_view text) {
  draw_text(font, {std::floor(right - text_width(font, text)), y}, color, text);
}

void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb color, const std::string& text) {
  const std::string shown = shortened(font, text, width);
  draw_text(font, pos, color, shown);
  const ImVec2 end(pos.x + width, pos.y + platform::font_size(font));
  if (shown != text && ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(pos, end))
    ImGui::SetTooltip("%s", text.c_str());
}

void draw_two_lines(ImFont* font, ImVec2 pos, float width, float pitch, Rgb color, const std::string& text) {
  std::string first = text, second;
  while (text_width(font, first) > width) {
    const std::size_t blank = first.rfind(' ');
    if (blank == std::string::npos) break;
    second = text.substr(blank + 1);
    first.resize(blank);
  }
  draw_text(font, pos, color, shortened(font, first, width));
  if (!second.empty()) draw_text(font, {pos.x, pos.y + pitch}, color, shortened(font, second, width));
}

namespace {

/// How much of a text stands in one line: whole words, or of a longer one what fits.
std::size_t line_length(ImFont* font, float width, std::string_view text) {
  const std::size_t stop = std::min(text.find('\n'), text.size());
  std::size_t fits = 0;
  for (std::size_t end = 0; end < stop;) {
    end = std::min(text.find(' ', end + 1), stop);
    if (text_width(font, text.substr(0, end)) > width) break;
    fits = end;
  }
  if (fits > 0 || stop == 0) return fits;
  std::size_t letters = 1;  // at least one
  for (std::size_t k = 1; k <= stop; ++k)
    if (k == stop || core::text::starts_character(text[k])) {
      if (text_width(font, text.substr(0, k)) > width && letters > 1) break;
      letters = k;
    }
  return letters;
}

}  // namespace

ImVec2 draw_prose(ImFont* font, ImVec2 pos, float width, Rgb color, std::string_view text) {
  constexpr float pitch_of_size = 1.3f;
  const float pitch = std::round(platform::font_size(font) * pitch_of_size);
  const ImU32 ink = packed(color, ImGui::GetStyle().Alpha);  // lowered inside BeginDisabled
  ImVec2 size{0, 0};
  do {
    const std::size_t length = line_length(font, width, text);
    const std::string_view line = text.substr(0, length);
    draw_text(font, {pos.x, pos.y + size.y + std::floor((pitch - platform::font_size(font)) / 2)},
              Align::left_top, ink, line);
    size = {std::max(size.x, text_width(font, line)), size.y + pitch};
    text.remove_prefix(length);
    if (text.starts_with(' ') || text.starts_with('\n')) text.remove_prefix(1);
  } while (!text.empty());
  return size;
}

void paragraph(ImFont* font, Rgb color, float width, std::string_view text) {
  ImGui::Dummy(draw_prose(font, ImGui::GetCursorScreenPos(), width, color, text));
}

void section_heading(const Frame& frame, float width, const char* name, const std::string& remark) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.px(20), line = frame.metrics.px(14);
  draw_text(frame.fonts.sans13, {at.x, centred_y(frame.fonts.sans13, at.y, line)}, frame.palette.dim, name);
  if (!remark.empty()) {
    const float y = centred_y(frame.fonts.mono13, at.y, line);
    draw_text_right(frame.fonts.mono13, at.x + width, y, frame.palette.faint, remark);
  }
  ImGui::Dummy({width, height});
}

void tooltip(const std::string& text) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(ImGui::GetFontSize() * 24);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

namespace {

using core::lessons::Term;

/// A word of the text with what hangs on to it, its place and the term that it begins or goes on with.
struct Piece {
  std::string_view word;
  float x = 0, width = 0;
  int line = 0;
  const Term* term = nullptr;
};

/// The word without marks around it.
std::string_view bare(std::string_view word) {
  for (bool again = true; again && !word.empty();) {
    again = false;
    for (const std::string_view mark : {".", ",", ":", ";", "?", "!", "(", ")", "“", "”"}) {
      if (word.starts_with(mark)) word.remove_prefix(mark.size()), again = true;
      if (word.ends_with(mark)) word.remove_suffix(mark.size()), again = true;
    }
  }
  return word;
}

/// The term of a word, in the plural too.
const Term* term_of(std::string word) {
  if (const Term* term = core::lessons::find_term(word)) return term;
  if (word.ends_with("ies")) return core::lessons::find_term(word.substr(0, word.size() - 3) + "y");
  if (word.ends_with("s")) return core::lessons::find_term(word.substr(0, word.size() - 1));
  return nullptr;
}

/// "W_q" and its like, which are drawn with a lowered letter; "d_head" is a name and stays as it is.
bool is_symbol(std::string_view word) {
  const std::string_view symbol = bare(word);
  return symbol.size() == 3 && symbol[1] == '_';
}

float piece_width(ImFont* font, std::string_view word) {
  return is_symbol(word) ? formula_width(font, word) : text_width(font, word);
}

std::vector<Piece> pieces_of(ImFont* font, float width, std::string_view text) {
  const float blank = text_width(font, " ");
  std::vector<Piece> pieces;
  float x = 0;
  int line = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const float w = piece_width(font, word);
    if (x > 0 && x + w > width) x = 0, ++line;
    pieces.push_back({word, x, w, line});
    x += w + blank;
  }
  return pieces;
}

/// Finds terms of one and of two words, each where it first stands.
void find_terms(std::vector<Piece>& pieces) {
  std::set<const Term*> known;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const std::string word(bare(pieces[k].word));
    const bool pair = k + 1 < pieces.size() && pieces[k + 1].line == pieces[k].line;
    const Term* two = pair ? term_of(word + " " + std::string(bare(pieces[k + 1].word))) : nullptr;
    const Term* term = two ? two : term_of(word);
    if (!term || !known.insert(term).second) continue;
    pieces[k].term = term;
    if (two) pieces[++k].term = term;
  }
}

float line_height(const Frame& frame, ImFont* font) {
  return platform::font_size(font) + frame.metrics.px(7);
}

/// A dotted line under a term, which is explained as long as the mouse is on it.
void gloss(const Frame& frame, const Term& term, ImVec2 min, ImVec2 max, float underline) {
  for (float x = min.x; x < max.x; x += frame.metrics.px(4))
    ImGui::GetWindowDrawList()->AddRectFilled({x, underline}, {x + frame.metrics.px(2), underline + 1},
                                              packed(frame.palette.faint));
  if (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(min, max)) explain_term(frame, term);
}

}  // namespace

void explain_term(const Frame& frame, const Term& term, const std::string& remark) {
  ImGui::BeginTooltip();
  const float width = frame.metrics.px(300);
  paragraph(frame.fonts.sans14, frame.palette.text, width, term.word);
  paragraph(frame.fonts.sans14, frame.palette.dim, width, term.meaning);
  if (!remark.empty()) paragraph(frame.fonts.sans14, frame.palette.faint, width, remark);
  ImGui::EndTooltip();
}

const Term* term_of(Stage stage) {
  constexpr std::array words{"embedding",
                             "embedding",
                             "query",
                             "key",
                             "value",
                             "QK norm",
                             "QK norm",
                             "rotary embedding",
                             "rotary embedding",
                             "score",
                             "scale",
                             "soft-capping",
                             "relative position bias",
                             "relative position bias",
                             "mask",
                             "−∞",
                             "softmax",
                             "mask",
                             "row",
                             "weight",
                             "dropout",
                             "kept weight",
                             "context vector",
                             "concatenate",
                             "output projection"};
  static_assert(words.size() == static_cast<std::size_t>(Stage::output) + 1);
  return core::lessons::find_term(words.at(static_cast<std::size_t>(stage)));
}

void glossed_line(const Frame& frame, ImFont* font, Rgb color, ImVec2 left_middle, const std::string& text) {
  draw_text(font, left_middle, Align::left_middle, packed(color), text);
  std::vector<Piece> pieces = pieces_of(font, FLT_MAX, text);
  find_terms(pieces);
  const float half = std::round(platform::font_size(font) * 0.56f);
  for (const Piece& piece : pieces) {
    if (!piece.term) continue;
    const std::string_view word = bare(piece.word);
    const float left = left_middle.x + piece.x, right = left + text_width(font, word);
    gloss(frame, *piece.term, {left, left_middle.y - half}, {right, left_middle.y + half},
          std::round(left_middle.y + half));
  }
}

void glossed_text(const Frame& frame, ImFont* font, Rgb color, float width, const std::string& text) {
  std::vector<Piece> pieces = pieces_of(font, width, text);
  find_terms(pieces);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = line_height(frame, font);
  for (const Piece& piece : pieces) {
    const ImVec2 pos(at.x + piece.x, at.y + static_cast<float>(piece.line) * height);
    if (is_symbol(piece.word))
      draw_formula(font, pos, packed(color), piece.word);
    else
      draw_text(font, pos, color, piece.word);
    if (!piece.term) continue;
    const ImVec2 end(pos.x + piece.width, pos.y + height);
    frame.landmarks.mark(std::string("word/") + piece.term->word, pos, end);
    gloss(frame, *piece.term, pos, end, pos.y + platform::font_size(font) + 1);
  }
  ImGui::Dummy({width, pieces.empty() ? 1 : static_cast<float>(pieces.back().line + 1) * height});
}

float glossed_height(const Frame& frame, ImFont* font, float width, const std::string& text) {
  const std::vector<Piece> pieces = pieces_of(font, width, text);
  return pieces.empty() ? 1 : static_cast<float>(pieces.back().line + 1) * line_height(frame, font);
}

}  // namespace app::widgets
