#include "core/files/json.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/utf8.hpp"

namespace core::formats {
namespace {

using List = JsonValue::array_t;
using Object = JsonValue::object_t;

constexpr std::size_t max_depth = 64;
constexpr auto npos_of_object = static_cast<std::size_t>(-1);  // in place of an index in a list

std::string key_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::string index_path(const std::string& path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

/// Builder of a value with limited depth. The library's own gives no lines in errors, keeps the last of two
/// members with one name, and searches all members for each new one.
class Builder {
 public:
  Builder(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

  JsonValue take() { return std::move(result_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) {  // only negative numbers get here, so 0 is "-0"
    return add(value == 0 ? -0.0 : static_cast<double>(value));
  }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(JsonValue::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }

  bool end_array() { return close(std::move(levels_.back().list)); }

  bool end_object() {
    JsonMembers& members = levels_.back().members;
    check_unique_keys(members);
    Object object;
    object.reserve(members.size());  // growing would copy the contents of members
    for (auto& [key, value] : members) object.emplace_back(std::move(key), std::move(value));
    return close(std::move(object));
  }

  bool key(std::string& name) {
    levels_.back().members.emplace_back(std::move(name), nullptr);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception& error) {
    const std::size_t at = std::min(std::max<std::size_t>(position, 1) - 1, text_.size());
    throw Error(file_name_ + ": " + text::line_and_column(text_, at) + ": " +
                parse_error_text(at, token, error));
  }

 private:
  using JsonMembers = std::vector<std::pair<std::string, JsonValue>>;
  struct Level {
    bool is_object;
    List list;
    JsonMembers members;  ///< the last one has no value until it is read
  };

  std::string parse_error_text(std::size_t at, const std::string& token,
                               const nlohmann::json::exception& error) const {
    if (error.id == 406) return "expected a number within float64, got " + quoted_briefly(token);
    if (at >= text_.size()) return "expected more JSON, got the end of the text";
    for (const char* word : {"NaN", "Infinity"})
      if (text_.substr(at).starts_with(word)) return "expected a finite number, got " + std::string(word);
    return "expected JSON, got " + quoted_briefly(text_.substr(at, 8));
  }

  /// Returns the path of the innermost list or object.
  std::string path() const {
    std::string path;
    for (std::size_t k = 0; k + 1 < levels_.size(); ++k)
      path = levels_[k].is_object ? key_path(path, levels_[k].members.back().first)
                                  : index_path(path, levels_[k].list.size());
    return path.empty() ? "top level" : path;
  }

  void check_unique_keys(const JsonMembers& members) const {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : members) keys.push_back(key);
    std::ranges::sort(keys);
    if (const auto duplicate = std::ranges::adjacent_find(keys); duplicate != keys.end())
      throw Error(file_name_ + ": " + path() + ": expected the key " + quoted_briefly(*duplicate) +
                  " once, got it twice");
  }

  bool open(bool is_object) {
    if (levels_.size() == max_depth)
      throw Error(fmt::format("{}: expected at most {} levels of lists and objects, got more", file_name_,
                              max_depth));
    levels_.push_back({is_object, {}, {}});
    return true;
  }

  bool close(JsonValue value) {
    levels_.pop_back();
    return add(std::move(value));
  }

  bool add(JsonValue value) {
    if (levels_.empty())
      result_ = std::move(value);
    else if (Level& level = levels_.back(); level.is_object)
      level.members.back().second = std::move(value);
    else
      level.list.push_back(std::move(value));
    return true;
  }

  std::string_view text_;
  const std::string& file_name_;
  std::vector<Level> levels_;
  JsonValue result_;
};

/// Appends JSON in the style of our files; the library formats numbers and spaces differently.
void append(std::string& text, const JsonValue& value) {
  const char* between = "";
  if (value.is_number_float()) {
    text::append_number(text, value.get<double>());
  } else if (value.is_array()) {
    text += '[';
    for (const JsonValue& item : value) append(text += std::exchange(between, ", "), item);
    text += ']';
  } else if (value.is_object()) {
    text += '{';
    for (const auto& [key, member] : value.get_ref<const Object&>())
      append(text += std::exchange(between, ", ") + json_quoted(key) + ": ", member);
    text += '}';
  } else {
    text += value.dump();
  }
}

/// Returns the path of wanted inside value, whose own path is given; nothing if it is not inside.
std::optional<std::string> path_to(const JsonValue* wanted, const JsonValue& value, const std::string& path) {
  if (wanted == &value) return path;
  if (value.is_object())
    for (const auto& [key, member] : value.get_ref<const Object&>())
      if (auto found = path_to(wanted, member, key_path(path, key))) return found;
  if (value.is_array())
    for (std::size_t k = 0; k < value.size(); ++k)
      if (auto found = path_to(wanted, value[k], index_path(path, k))) return found;
  return std::nullopt;
}

std::string description(const JsonValue& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.empty() ? "an empty list" : "a list of " + std::to_string(value.size());
  if (value.is_string()) return quoted_briefly(value.get_ref<const std::string&>());
  return value.is_number_float() ? text::number_text(value.get<double>()) : value.dump();
}

}  // namespace

struct Json::Document {
  std::string name;
  JsonValue value;
};

Json::Json(std::shared_ptr<const Document> document, const JsonValue& value)
    : document_(std::move(document)), value_(&value) {}

void Json::fail(const std::string& expected, std::optional<std::string> got) const {
  throw Error(place() + "expected " + expected + ", got " + (got ? *got : description(*value_)));
}

std::string Json::place() const {
  const std::string path = path_to(value_, document_->value, "").value_or("");
  return document_->name + ": " + (path.empty() ? "" : path + ": ");
}

bool Json::is_null() const {
  return value_->is_null();
}
bool Json::is_list() const {
  return value_->is_array();
}
bool Json::is_text() const {
  return value_->is_string();
}
bool Json::is_boolean() const {
  return value_->is_boolean();
}
bool Json::is_object() const {
  return value_->is_object();
}
bool Json::is_number() const {
  return value_->is_number();
}
bool Json::is_whole() const {
  return value_->is_number_unsigned();
}

void Json::expect_keys(std::initializer_list<std::string_view> known) const {
  if (!is_object()) fail("an object");
  for (const auto& [key, value] : value_->get_ref<const Object&>())
    if (std::ranges::find(known, key) == known.end())
      fail("only the keys " + text::joined(known, ", "), quoted_briefly(key) + text::suggestion(key, known));
}

std::optional<Json> Json::member(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  const auto& object = value_->get_ref<const Object&>();
  const auto found = std::ranges::find(object, key, &Object::value_type::first);
  if (found == object.end()) return std::nullopt;
  return Json(document_, found->second);
}

std::optional<Json> Json::given(std::string_view key) const {
  auto found = member(key);
  return found && !found->is_null() ? found : std::nullopt;
}

Json Json::required(std::string_view key) const {
  if (const auto found = member(key)) return *found;
  fail("the key \"" + std::string(key) + "\"", "none");
}

std::vector<std::pair<std::string, Json>> Json::members() const {
  if (!is_object()) fail("an object");
  std::vector<std::pair<std::string, Json>> all;
  for (const auto& [key, value] : value_->get_ref<const Object&>())
    all.emplace_back(key, Json(document_, value));
  return all;
}

std::vector<Json> Json::items_or_empty(const char* expected) const {
  if (!is_list()) fail(expected);
  std::vector<Json> all;
  all.reserve(value_->size());
  for (const JsonValue& item : *value_) all.push_back(Json(document_, item));
  return all;
}

std::vector<Json> Json::items(const char* expected) const {
  if (is_list() && value_->empty()) fail(expected);
  return items_or_empty(expected);
}

std::vector<Json> Json::items(const char* expected, std::size_t count) const {
  if (!is_list() || value_->size() != count) fail(expected);
  return items_or_empty(expected);
}

std::vector<std::uint64_t> Json::whole_numbers(const char* expected) const {
  std::vector<std::uint64_t> numbers;
  for (const Json& item : items_or_empty(expected)) numbers.push_back(item.whole(0));
  return numbers;
}

std::vector<std::string> Json::texts(const char* expected) const {
  std::vector<std::string> all;
  for (const Json& item : items_or_empty(expected)) all.push_back(item.text());
  return all;
}

std::optional<Json> Json::first() const {
  return is_list() && !value_->empty() ? std::optional(Json(document_, value_->front())) : std::nullopt;
}

bool Json::boolean() const {
  if (!is_boolean()) fail("true or false");
  return value_->get<bool>();
}

double Json::number(AllowedNumbers which) const {
  if (is_number()) return value_->get<double>();
  if (which == AllowedNumbers::finite) fail("a number");
  const auto* word = value_->get_ptr<const std::string*>();
  if (word && *word == "inf") return arma::datum::inf;
  if (word && *word == "-inf") return -arma::datum::inf;
  if (word && *word == "nan") return arma::datum::nan;
  fail("a number, \"inf\", \"-inf\" or \"nan\"");
}

std::size_t Json::whole(std::uint64_t min_value) const {
  return static_cast<std::size_t>(whole(min_value, SIZE_MAX));
}

std::uint64_t Json::whole(std::uint64_t min_value, std::uint64_t max_value) const {
  const std::uint64_t number = is_whole() ? value_->get<std::uint64_t>() : 0;
  if (!is_whole() || number < min_value || number > max_value)
    fail(fmt::format("a whole number from {} to {}", min_value, max_value));
  return number;
}

const std::string& Json::text() const {
  if (!is_text()) fail("a string");
  return value_->get_ref<const std::string&>();
}

void Json::fill_row(arma::mat& matrix, std::size_t i, AllowedNumbers which) const {
  const auto& list = value_->get_ref<const List&>();
  for (std::size_t j = 0; j < list.size(); ++j)
    matrix(i, j) = list[j].is_number() ? list[j].get<double>() : Json(document_, list[j]).number(which);
}

arma::mat Json::row() const {
  if (!is_list()) fail("a list of numbers");
  arma::mat matrix(1, value_->size());
  fill_row(matrix, 0, AllowedNumbers::finite);
  return matrix;
}

arma::mat Json::matrix(AllowedNumbers which) const {
  if (!is_list() || value_->empty()) fail("a list of rows of numbers");
  const auto& rows = value_->get_ref<const List&>();
  const std::size_t columns = rows.front().is_array() ? rows.front().size() : 0;
  for (const JsonValue& row : rows) {  // checks all lengths before allocating
    if (!row.is_array() || row.empty()) Json(document_, row).fail("a row of numbers");
    if (row.size() != columns)
      Json(document_, row)
          .fail(std::to_string(columns) + " numbers as in the first row", std::to_string(row.size()));
  }
  arma::mat matrix(rows.size(), columns);
  for (std::size_t i = 0; i < rows.size(); ++i) Json(document_, rows[i]).fill_row(matrix, i, which);
  return matrix;
}

Json parse_json(std::string_view text, const std::string& file_name) {
  Builder builder(text, file_name);
  JsonValue::sax_parse(text.begin(), text.end(), &builder);
  const auto document = std::make_shared<const Json::Document>(Json::Document{file_name, builder.take()});
  return Json(document, document->value);
}

std::size_t line_of_path(std::string_view text, std::string_view path) {
  std::vector<std::string>
      open;  // paths of the objects and lists around a position, with the index of a list
  std::vector<std::size_t> counts;
  std::string here, name;
  std::size_t line = 1, found = 1, longest = 0;
  const auto value_begins = [&] {
    std::string at = here;
    if (!open.empty())
      at = counts.back() == npos_of_object ? key_path(here, name) : index_path(here, counts.back());
    const bool is_around = path.starts_with(at) && (path.size() == at.size() || at.empty() ||
                                                    path[at.size()] == '.' || path[at.size()] == '[');
    if (is_around && at.size() >= longest) longest = at.size(), found = line;
    return at;
  };
  bool expects_key = false;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (c == '\n') ++line;
    if (c == '{' || c == '[') {
      open.push_back(std::exchange(here, value_begins()));
      counts.push_back(c == '{' ? npos_of_object : 0);
      expects_key = c == '{';
    } else if (c == '}' || c == ']') {
      if (open.empty()) break;
      here = std::move(open.back());
      open.pop_back(), counts.pop_back();
    } else if (c == ',') {
      if (!counts.empty() && counts.back() != npos_of_object) ++counts.back();
      expects_key = !counts.empty() && counts.back() == npos_of_object;
    } else if (c == '"') {
      const std::size_t begin = k + 1;
      for (++k; k < text.size() && text[k] != '"'; ++k) k += text[k] == '\\';
      if (!std::exchange(expects_key, false)) {
        value_begins();
        continue;
      }
      name = text.substr(begin, std::min(k, text.size()) - begin);
    } else if (c != ':' && c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      value_begins();
    }
  }
  return found;
}

std::string json_object(std::initializer_list<std::pair<const char*, std::string>> members) {
  std::string object;
  for (const auto& [name, value] : members)
    if (!value.empty()) object += (object.empty() ? "{\"" : ", \"") + std::string(name) + "\": " + value;
  return object + "}";
}

std::string quoted_or_null(const std::string& text) {
  return text.empty() ? "null" : json_quoted(text);
}

std::string json_quoted(std::string_view text) {
  const std::string quoted = JsonValue(text).dump(-1, ' ', false, JsonValue::error_handler_t::replace);
  if (std::ranges::all_of(quoted, [](char c) { return c > 0 && c < 0x7f; })) return quoted;
  // JSON does not escape U+007F to U+009F and marks that change the text direction, which terminals obey.
  std::string safe;
  for (const auto& [c, at, size] : text::code_points(quoted))
    if (text::is_control(c))
      safe += "\\u" + text::hexadecimal(c, 4);
    else
      safe.append(quoted, at, size);
  return safe;
}

std::string apply_merge_patch(std::string_view text, std::string_view patch) {
  nlohmann::ordered_json merged = nlohmann::ordered_json::parse(text);
  merged.merge_patch(nlohmann::ordered_json::parse(patch));
  return merged.dump();
}

std::string json_text(const Json& json) {
  std::string text;
  append(text, *json.value_);
  return text;
}

std::string quoted_briefly(std::string_view text) {
  constexpr std::size_t longest = 40;
  if (text.size() <= longest) return json_quoted(text);
  std::size_t end = longest;
  while (end > 0 && !text::is_character_start(text[end])) --end;
  return json_quoted(std::string(text.substr(0, end)) + "…");
}

}  // namespace core::formats
