#include "core/graph/text.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace core::explain {
namespace {

using std::to_string;

constexpr int digits = 12;  // as many as an explanation promises

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, digits);
  return {buffer.data(), end.ptr};
}

/// What stands for a sign in ASCII.
struct Sign {
  const char *sign, *plain;
};

std::string ascii(std::string text) {
  constexpr std::array signs{Sign{"·", "."},   Sign{"×", "*"},       Sign{"÷", "/"},  Sign{"√", "sqrt "},
                             Sign{"−", "-"},   Sign{"∞", "inf"},     Sign{"≤", "<="}, Sign{"≠", "!="},
                             Sign{"Σ", "sum"}, Sign{"ε", "epsilon"}, Sign{"⁰", "^0"}, Sign{"¹", "^1"},
                             Sign{"²", "^2"},  Sign{"³", "^3"},      Sign{"⁴", "^4"}, Sign{"⁵", "^5"},
                             Sign{"⁶", "^6"},  Sign{"⁷", "^7"},      Sign{"⁸", "^8"}, Sign{"⁹", "^9"},
                             Sign{"_", ""}};
  for (const auto& [sign, plain] : signs)
    for (std::size_t at = text.find(sign); at != std::string::npos; at = text.find(sign, at))
      text.replace(at, std::string(sign).size(), plain);
  return text;
}

std::string operands_in_words(const Line& line) {
  const std::string a = number(line.a.value), b = number(line.b.value);
  switch (line.form) {
    case Form::words:
    case Form::single:
      return {};
    case Form::product:
    case Form::factor:
      return a + " * " + b;
    case Form::division:
      return a + " / " + b;
    case Form::addition:
      return a + " + " + b;
    case Form::exponential:
      return "exp(" + a + " - " + b + ")";
  }
  return {};
}

std::string text_of(const Line& line, const attention::Sequence& sequence) {
  std::string text = words(line.label, sequence);
  for (const std::string& more : {ascii(line.words), operands_in_words(line)})
    if (!more.empty()) text += (text.empty() ? "" : "  ") + more;
  return text + (text.empty() ? "= " : " = ") + number(line.value);
}

}  // namespace

std::string name(Source source) {
  if (const auto* input = std::get_if<Input>(&source)) return symbol(*input);
  return attention::info(std::get<Stage>(source)).title;
}

std::string name(const Place& place) {
  const std::string row = to_string(place.row), column = "[" + to_string(place.column) + "]";
  if (const auto* input = std::get_if<Input>(&place.source))
    return name(place.source) + (attention::has_one_row(*input) ? column : "[" + row + "]" + column);
  switch (std::get<Stage>(place.source)) {
    case Stage::embeddings:
      return "x_" + row + column;
    case Stage::key_embeddings:
      return "m_" + row + column;
    case Stage::queries:
      return "q_" + row + column;
    case Stage::keys:
      return "k_" + row + column;
    case Stage::values:
      return "v_" + row + column;
    default:
      return name(place.source) + "[" + row + "]" + column;
  }
}

std::string words(const Label& label, const attention::Sequence& sequence) {
  switch (label.kind) {
    case Label::token:
      return sequence.keys()[label.index];
    case Label::query:
      return sequence.tokens[label.index];
    case Label::head:
      return "head " + to_string(label.index);
    case Label::column:
      return "column " + to_string(label.index);
    case Label::sink:
      return "sink";
    case Label::none:
      break;
  }
  return {};
}

std::string plain_text(const Explanation& explanation, const attention::Sequence& sequence) {
  const auto& cell = explanation.cell;
  const auto& stage = attention::info(cell.stage);
  std::string text =
      std::string(stage.name) + (stage.per_head ? ", head " + to_string(cell.head) : "") + ", row " +
      to_string(cell.row) + " (" + attention::row_tokens(stage, sequence)[cell.row] + "), column " +
      to_string(cell.column) +
      (stage.columns == attention::Columns::tokens ? " (" + sequence.keys()[cell.column] + ")" : "") + " = " +
      number(explanation.result) + "\n";
  for (std::size_t s = 0; s < explanation.steps.size(); ++s) {
    const Step& step = explanation.steps[s];
    text += "\n" + to_string(s + 1) + "  " + step.title +
            (step.formula.empty() ? "" : "  " + ascii(step.formula)) + "\n";
    for (const Line& line : step.lines) text += "   " + text_of(line, sequence) + "\n";
  }
  return text;
}

}  // namespace core::explain
