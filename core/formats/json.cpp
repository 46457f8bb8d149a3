#include "core/formats/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "core/formats/number.hpp"

namespace core::formats {
namespace {

constexpr std::size_t deepest = 64;

/// Whether a byte of UTF-8 is the first of a character.
bool starts_character(char byte) {
  return (byte & 0xC0) != 0x80;
}

/// Builds a Json from what the library's reader meets, without trusting lengths or depth.
class Builder {
 public:
  Builder(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

  Json take() { return std::move(result_); }

  bool null() { return add({nullptr}); }
  bool boolean(bool value) { return add({value}); }
  bool number_integer(std::int64_t value) {  // only numbers with a minus come here, so 0 is "-0"
    return add({Json::Number{value == 0 ? -0.0 : static_cast<double>(value), std::nullopt}});
  }
  bool number_unsigned(std::uint64_t value) { return add({Json::Number{static_cast<double>(value), value}}); }
  bool number_float(double value, const std::string&) { return add({Json::Number{value, std::nullopt}}); }
  bool string(std::string& value) { return add({std::move(value)}); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open({Json::Object()}); }
  bool start_array(std::size_t) { return open({Json::List()}); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = levels_.back();
    if (!level.keys.insert(name).second)
      throw Error(file_name_ + ": " + path() + ": expected the key " + quoted_briefly(name) +
                  " once, got it twice");
    level.key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception& error) {
    const std::size_t at = std::min(std::max<std::size_t>(position, 1) - 1, text_.size());
    const std::string_view before = text_.substr(0, at);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::string_view on_line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0: the first line
    const auto column = std::ranges::count_if(on_line, starts_character) + 1;
    throw Error(file_name_ + ": line " + std::to_string(line) + ", column " + std::to_string(column) + ": " +
                what_is_wrong(at, token, error));
  }

 private:
  struct Level {
    Json json;
    std::string key;             ///< of the value that comes next
    std::set<std::string> keys;  ///< all so far
  };

  std::string what_is_wrong(std::size_t at, const std::string& token,
                            const nlohmann::json::exception& error) const {
    if (error.id == 406) return "expected a number within float64, got " + quoted_briefly(token);
    if (at >= text_.size()) return "expected more JSON, got the end of the text";
    for (const char* word : {"NaN", "Infinity"})
      if (text_.substr(at).starts_with(word)) return "expected a finite number, got " + std::string(word);
    return "expected JSON, got " + quoted_briefly(text_.substr(at, 8));
  }

  std::string path() const {
    std::string path;
    for (std::size_t k = 0; k + 1 < levels_.size(); ++k) {
      if (const auto* list = levels_[k].json.as<Json::List>())
        path += "[" + std::to_string(list->size()) + "]";
      else
        path += (path.empty() ? "" : ".") + levels_[k].key;
    }
    return path.empty() ? "top level" : path;
  }

  bool open(Json json) {
    if (levels_.size() == deepest)
      throw Error(file_name_ + ": expected at most " + std::to_string(deepest) +
                  " levels of lists and objects, got more");
    levels_.push_back({std::move(json), {}, {}});
    return true;
  }

  bool close() {
    Json json = std::move(levels_.back().json);
    levels_.pop_back();
    return add(std::move(json));
  }

  bool add(Json json) {
    if (levels_.empty()) {
      result_ = std::move(json);
      return true;
    }
    Level& level = levels_.back();
    if (auto* list = std::get_if<Json::List>(&level.json.value))
      list->push_back(std::move(json));
    else
      std::get<Json::Object>(level.json.value).emplace_back(std::move(level.key), std::move(json));
    return true;
  }

  std::string_view text_;
  const std::string& file_name_;
  std::vector<Level> levels_;
  Json result_;
};

void append(std::string& text, const Json& json);

struct Writer {
  std::string& text;
  void operator()(std::nullptr_t) const { text += "null"; }
  void operator()(bool value) const { text += value ? "true" : "false"; }
  void operator()(const Json::Number& n) const {
    if (n.whole)
      text += std::to_string(*n.whole);
    else
      append_number(text, n.value);
  }
  void operator()(const std::string& value) const { text += json_quoted(value); }
  void operator()(const Json::List& list) const {
    text += '[';
    for (const Json& item : list) {
      if (&item != &list.front()) text += ", ";
      append(text, item);
    }
    text += ']';
  }
  void operator()(const Json::Object& object) const {
    text += '{';
    for (const auto& member : object) {
      if (&member != &object.front()) text += ", ";
      text += json_quoted(member.first) + ": ";
      append(text, member.second);
    }
    text += '}';
  }
};

void append(std::string& text, const Json& json) {
  std::visit(Writer{text}, json.value);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file_name) {
  Builder builder(text, file_name);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string json_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const Json& json) {
  std::string text;
  append(text, json);
  return text;
}

std::string quoted_briefly(std::string_view text) {
  constexpr std::size_t longest = 40;
  if (text.size() <= longest) return json_quoted(text);
  std::size_t end = longest;
  while (end > 0 && !starts_character(text[end])) --end;
  return json_quoted(std::string(text.substr(0, end)) + "…");
}

}  // namespace core::formats
