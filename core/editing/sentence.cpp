#include "core/editing/sentence.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/editing/drawn.hpp"
#include "core/graph/limits.hpp"

namespace core::text {
namespace {

std::vector<CodePoint> checked_points(std::string_view text) {
  if (text.size() > max_sentence_bytes)
    throw Error("text: expected at most " + std::to_string(max_sentence_bytes) + " bytes, got " +
                std::to_string(text.size()));
  return code_points(text);
}

std::vector<std::string> checked_tokens(std::vector<std::string> tokens) {
  if (tokens.empty()) throw Error("text: expected at least one token");
  if (tokens.size() > max_sentence_tokens)
    throw Error("text: expected at most " + std::to_string(max_sentence_tokens) + " tokens, got " +
                std::to_string(tokens.size()));
  return tokens;
}

bool is_letter(char32_t c) {
  return !is_space(c) && !is_punctuation(c);
}

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}

/// Whether a mark between two letters belongs to their word.
bool joins(char32_t before, char32_t mark, char32_t after) {
  if (mark == '.' || mark == ',') return is_digit(before) && is_digit(after);
  const bool joiner = mark == '\'' || mark == U'’' || mark == '-' || mark == U'‐' || mark == U'‑';
  return joiner && is_letter(before) && is_letter(after);
}

std::string sign_of(const CodePoint& c, std::string_view text) {
  if (c.value == '\t') return "⇥";
  if ((c.value >= 0x0A && c.value <= 0x0D) || c.value == 0x85 || c.value == 0x2028 || c.value == 0x2029)
    return "↵";
  return is_space(c.value) ? "␣" : std::string(text.substr(c.at, c.size));
}

}  // namespace

std::vector<std::string> words(std::string_view text) {
  const std::vector<CodePoint> points = checked_points(text);
  std::vector<std::string> found;
  bool inside = false;  // of a word
  for (std::size_t k = 0; k < points.size(); ++k) {
    const char32_t c = points[k].value;
    const std::string_view bytes = text.substr(points[k].at, points[k].size);
    const bool part = is_letter(c) ||
                      (inside && k + 1 < points.size() && joins(points[k - 1].value, c, points[k + 1].value));
    if (part && inside)
      found.back() += bytes;
    else if (!is_space(c))
      found.emplace_back(bytes);
    inside = part;
  }
  return checked_tokens(std::move(found));
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> found;
  for (const CodePoint& c : checked_points(text)) found.push_back(sign_of(c, text));
  return checked_tokens(std::move(found));
}

std::vector<std::string> tokens(std::string_view text, TokenRule rule) {
  return rule == TokenRule::words ? words(text) : characters(text);
}

std::vector<std::string> vocabulary(const std::vector<std::string>& tokens) {
  std::vector<std::string> distinct;
  for (const std::string& token : tokens)
    if (std::find(distinct.begin(), distinct.end(), token) == distinct.end()) distinct.push_back(token);
  return distinct;
}

attention::Model with_sentence(const attention::Model& base, const std::vector<std::string>& tokens,
                               std::uint64_t seed) {
  const std::vector<std::string> distinct = vocabulary(tokens);
  const std::size_t n = tokens.size(), d_model = base.d_model();
  const arma::mat table =
      editing::filled(random::Generator(seed).normal(distinct.size() * d_model), distinct.size(), d_model);
  arma::mat embeddings(n, d_model);
  for (std::size_t i = 0; i < n; ++i)
    embeddings.row(i) = table.row(std::ranges::find(distinct, tokens[i]) - distinct.begin());
  attention::Model model = base;
  model.sequences = {{tokens, embeddings}};
  model.dropout.given.clear();
  attention::fit_mask(model);
  attention::require_within_limits(model);
  return model;
}

}  // namespace core::text
