#include "app/figure_arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/attention/stages.hpp"
#include "core/formats/export.hpp"
#include "core/formats/number.hpp"
#include "core/text/words.hpp"

namespace app {
namespace {

using core::colour::NamedMap;

std::optional<std::size_t> whole_number(const std::string& word) {
  std::size_t number = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::string expected_number(const char* option, const std::string& got) {
  return std::string(option) + ": expected a whole number, 0 for the first, got \"" + got + "\"";
}

/// Each of these fills in a part of the command; it gives what is wrong, or "".
std::string choose_what_is_drawn(const FigureWords& words, DrawFigure& command) {
  core::figures::FigureOptions& figure = command.options;
  if (words.strip == !words.stage.empty()) return "expected either --stage NAME or --strip";
  if (words.all_heads && (words.strip || !words.head.empty()))
    return "--all-heads: expected with a --stage, and without --head and --strip";
  figure.stage.reset();
  if (!words.strip) {
    const core::attention::StageInfo* stage = core::attention::find_stage(words.stage);
    if (!stage)
      return "--stage: expected one of " + core::formats::known_stage_names() + "; got \"" + words.stage +
             "\"";
    figure.stage = stage->stage;
  }
  if (words.all_heads) figure.head.reset();
  if (!words.head.empty() && !(figure.head = whole_number(words.head)))
    return expected_number("--head", words.head);
  if (words.sequence.empty()) return "";
  const auto sequence = whole_number(words.sequence);
  if (!sequence) return expected_number("--sequence", words.sequence);
  figure.sequence = *sequence;
  return "";
}

std::string names_of_maps() {
  return core::text::joined(core::colour::sequential_maps(), ", ", &NamedMap::name) + ", " +
         core::text::joined(core::colour::diverging_maps(), ", ", &NamedMap::name);
}

bool choose_map(const std::string& name, ColourChoice& colours) {
  const auto named = [&](const NamedMap& map) { return name == map.name; };
  const auto sequential = core::colour::sequential_maps(), diverging = core::colour::diverging_maps();
  const auto one = std::ranges::find_if(sequential, named), two = std::ranges::find_if(diverging, named);
  if (one != sequential.end()) colours.sequential = one->map;
  if (two != diverging.end()) colours.diverging = two->map;
  return one != sequential.end() || two != diverging.end();
}

std::string choose_range(const std::string& words, ColourChoice& colours) {
  constexpr std::pair<const char*, RangeRule> rules[]{
      {"matrix", RangeRule::matrix}, {"stage", RangeRule::stage}, {"all", RangeRule::all_heads}};
  for (const auto& [name, rule] : rules)
    if (words == name) {
      colours.range = rule;
      return "";
    }
  const std::size_t colon = words.find(':');
  const auto low = core::formats::parse_number(words.substr(0, colon)),
             high = colon == words.npos ? std::nullopt : core::formats::parse_number(words.substr(colon + 1));
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high) || !(*low < *high))
    return "--range: expected matrix, stage, all or LOW:HIGH, two numbers of which the second is larger, got \"" +
           words + "\"";
  colours.range = RangeRule::typed;
  colours.typed_values = colours.typed_weights = {*low, *high};
  return "";
}

std::string choose_colours(const FigureWords& words, DrawFigure& command) {
  command.options.dark = words.dark, command.options.numbers = !words.no_numbers;
  command.colours.logarithmic = words.logarithmic;
  for (std::size_t begin = 0; !words.colours.empty() && begin <= words.colours.size();) {
    const std::size_t end = std::min(words.colours.find(',', begin), words.colours.size());
    const std::string name = words.colours.substr(begin, end - begin);
    if (!choose_map(name, command.colours))
      return "--colours: expected one of " + names_of_maps() + ", got \"" + name + "\"";
    begin = end + 1;
  }
  return words.range.empty() ? "" : choose_range(words.range, command.colours);
}

std::string choose_file(const FigureWords& words, DrawFigure& command) {
  command.file = words.out;
  const std::string ending = command.file.extension().string();
  if (ending != ".svg" && ending != ".png")
    return "--out: expected a name that ends in .svg or .png, got \"" + words.out + "\"";
  if (ending == ".png") command.format = FigureFormat::png;
  if (words.scale.empty()) return "";
  const auto scale = core::formats::parse_number(words.scale);
  if (!scale || !(*scale >= 0.1 && *scale <= 16))
    return "--scale: expected a number from 0.1 to 16, got \"" + words.scale + "\"";
  command.scale = *scale;
  return "";
}

}  // namespace

Arguments figure_arguments(Source source, core::importing::Choices choices, const FigureWords& words) {
  DrawFigure command;
  command.source = std::move(source);
  command.choices = std::move(choices);
  for (const auto choose : {choose_what_is_drawn, choose_colours, choose_file})
    if (const std::string wrong = choose(words, command); !wrong.empty())
      return WrongUsage{"figure: " + wrong};
  return command;
}

}  // namespace app
