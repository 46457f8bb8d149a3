#include "core/formats/json_place.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/formats/number.hpp"
#include "core/text/words.hpp"

namespace core::formats {
namespace {

struct Description {
  std::string operator()(std::nullptr_t) const { return "null"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const Json::Number& n) const {
    return n.whole ? std::to_string(*n.whole) : number_text(n.value);
  }
  std::string operator()(const std::string& text) const { return quoted_briefly(text); }
  std::string operator()(const Json::List& list) const {
    return list.empty() ? "an empty list" : "a list of " + std::to_string(list.size());
  }
  std::string operator()(const Json::Object&) const { return "an object"; }
};

/// How many letters must be put in, taken out or changed to make one word the other (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal =
          std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}

std::string suggestion(std::string_view key, std::initializer_list<std::string_view> known) {
  if (key.size() > 40) return "";
  const auto nearest = *std::min_element(
      known.begin(), known.end(),
      [&](std::string_view a, std::string_view b) { return distance(key, a) < distance(key, b); });
  return distance(key, nearest) <= 2 ? "; did you mean \"" + std::string(nearest) + "\"?" : "";
}

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::string indexed(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

}  // namespace

void JsonPlace::fail(const std::string& expected, std::optional<std::string> got) const {
  throw Error(*file_name_ + ": " + (path_.empty() ? "" : path_ + ": ") + "expected " + expected + ", got " +
              (got ? *got : std::visit(Description(), json_->value)));
}

void JsonPlace::expect_keys(std::initializer_list<std::string_view> known) const {
  const auto* object = json_->as<Json::Object>();
  if (!object) fail("an object");
  for (const auto& [key, value] : *object)
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail("only the keys " + text::joined(known, ", "), quoted_briefly(key) + suggestion(key, known));
}

std::optional<JsonPlace> JsonPlace::member(std::string_view key) const {
  const auto& object = std::get<Json::Object>(json_->value);
  const auto found =
      std::find_if(object.begin(), object.end(), [&](const auto& m) { return m.first == key; });
  if (found == object.end()) return std::nullopt;
  return JsonPlace(found->second, *file_name_, joined(path_, key));
}

JsonPlace JsonPlace::required(std::string_view key) const {
  if (const auto found = member(key)) return *found;
  fail("the key \"" + std::string(key) + "\"", "none");
}

std::vector<JsonPlace> JsonPlace::items(const char* expected) const {
  const auto* list = json_->as<Json::List>();
  if (!list || list->empty()) fail(expected);
  std::vector<JsonPlace> places;
  for (const Json& item : *list) places.emplace_back(item, *file_name_, indexed(path_, places.size()));
  return places;
}

bool JsonPlace::boolean() const {
  if (const auto* value = json_->as<bool>()) return *value;
  fail("true or false");
}

double JsonPlace::number(Numbers which) const {
  if (const auto* n = json_->as<Json::Number>()) return n->value;
  if (which == Numbers::finite) fail("a number");
  const auto* text = json_->as<std::string>();
  if (text && *text == "inf") return arma::datum::inf;
  if (text && *text == "-inf") return -arma::datum::inf;
  if (text && *text == "nan") return arma::datum::nan;
  fail("a number, \"inf\", \"-inf\" or \"nan\"");
}

std::uint64_t JsonPlace::whole(std::uint64_t smallest) const {
  const auto* n = json_->as<Json::Number>();
  if (!n || !n->whole || *n->whole < smallest)
    fail("a whole number from " + std::to_string(smallest) + " to " + std::to_string(UINT64_MAX));
  return *n->whole;
}

const std::string& JsonPlace::text() const {
  if (const auto* value = json_->as<std::string>()) return *value;
  fail("a string");
}

void JsonPlace::fill_row(arma::mat& matrix, std::size_t i, Numbers which) const {
  const auto& list = std::get<Json::List>(json_->value);
  for (std::size_t j = 0; j < list.size(); ++j) {
    const auto* n = list[j].as<Json::Number>();
    matrix(i, j) = n ? n->value : JsonPlace(list[j], *file_name_, indexed(path_, j)).number(which);
  }
}

arma::mat JsonPlace::row() const {
  const auto* list = json_->as<Json::List>();
  if (!list) fail("a list of numbers");
  arma::mat matrix(1, list->size());
  fill_row(matrix, 0, Numbers::finite);
  return matrix;
}

arma::mat JsonPlace::matrix(Numbers which) const {
  const std::vector<JsonPlace> rows = items("a list of rows of numbers");
  std::size_t columns = 0;
  for (const JsonPlace& row : rows) {  // all lengths before the memory: they may not fit together
    const auto* list = row.json().as<Json::List>();
    if (!list || list->empty()) row.fail("a row of numbers");
    if (columns == 0) columns = list->size();
    if (list->size() != columns)
      row.fail(std::to_string(columns) + " numbers as in the first row", std::to_string(list->size()));
  }
  arma::mat matrix(rows.size(), columns);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].fill_row(matrix, i, which);
  return matrix;
}

}  // namespace core::formats
