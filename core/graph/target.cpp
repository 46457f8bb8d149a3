#include "core/graph/target.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/number.hpp"
#include "core/graph/stages.hpp"

namespace core::graph {

using attention::find_stage;
using attention::info;
using attention::StageInfo;

std::string text_of(const Target& target) {
  const auto part = [](const auto& of) { return of ? std::to_string(*of) : ":"; };
  return fmt::format("{}[{},{}]", info(target.stage).name, part(target.row), part(target.column));
}

std::optional<Target> parse_target(std::string_view text) {
  const std::size_t bracket = std::min(text.find('['), text.size());
  const StageInfo* stage = find_stage(text.substr(0, bracket));
  if (!stage) return std::nullopt;
  Target target{stage->stage, 0, std::nullopt, std::nullopt};
  if (bracket == text.size()) return target;
  const std::size_t comma = text.find(',', bracket);
  if (comma == text.npos || !text.ends_with(']')) return std::nullopt;
  const auto read = [&](std::string_view part, std::optional<std::size_t>& of) {
    if (part.starts_with(' ')) part.remove_prefix(1);
    if (part != ":") of = text::parse_unsigned(part);
    return of || part == ":";
  };
  const bool is_right = read(text.substr(bracket + 1, comma - bracket - 1), target.row) &&
                        read(text.substr(comma + 1, text.size() - comma - 2), target.column);
  return is_right ? std::optional(target) : std::nullopt;
}

}  // namespace core::graph
