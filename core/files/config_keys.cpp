#include "core/files/config_keys.hpp"

namespace core::formats::checkpoints {

std::optional<Json> any_member(const Json& top, Keys keys) {
  for (const char* key : keys)
    if (auto place = top.member(key); place && !place->is_null()) return place;
  return std::nullopt;
}

std::optional<std::size_t> count(const Json& top, Keys keys) {
  const auto place = any_member(top, keys);
  if (!place || place->is_list()) return std::nullopt;  // a number for each stage of a picture's model
  const std::uint64_t number = place->whole(1);
  if (number > most_counted)
    place->fail("a whole number from 1 to " + std::to_string(most_counted), std::to_string(number));
  return number;
}

bool is_on(const Json& top, Keys keys) {
  const auto place = any_member(top, keys);
  return place && place->is_boolean() && place->boolean();
}

std::string text_of(const Json& top, const char* key) {
  const auto place = top.member(key);
  return place && place->is_text() ? place->text() : "";
}

std::optional<double> number(const Json& top, Keys keys) {
  const auto place = any_member(top, keys);
  return place && place->is_number() ? std::optional(place->number()) : std::nullopt;
}

}  // namespace core::formats::checkpoints
