#include "app/cli/argument_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/draw_op.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/words.hpp"
#include "core/graph/stages.hpp"

namespace app {
namespace {

namespace formats = core::formats;
using core::attention::StageInfo;
using core::colour::NamedMap;

constexpr const char* archive_format = "npz";  // all matrices in one file; the others hold one matrix a file

[[noreturn]] void refuse(Text option, Text expected, Text got) {
  throw core::Error(option + ": expected " + expected + ", got \"" + got + "\"");
}

std::uint64_t whole_number(Text option, Text expected, Text text, std::uint64_t least = 0) {
  const auto number = core::text::parse_whole_number(text);
  if (!number || *number < least) refuse(option, expected, text);
  return *number;
}

double number_within(Text option, Text expected, Text text, double least, double most) {
  const auto number = core::text::parse_number(text);
  if (!number || !(*number >= least && *number <= most)) refuse(option, expected, text);
  return *number;
}

const StageInfo& named_stage(Text option, Text among, Text name) {
  if (const StageInfo* stage = core::attention::find_stage(name)) return *stage;
  throw core::Error(option + ": expected " + among + " " + formats::known_stage_names() + "; got \"" + name +
                    "\"");
}

/// "a,b" as a and b; a name may be empty.
std::vector<std::string> split_at_commas(Text text) {
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == ',')
      names.emplace_back();
    else
      names.back() += c;
  }
  return names;
}

bool choose_format(Text name, formats::ExportOptions& options) {
  options.archive = name == archive_format;
  const formats::MatrixFormat* found = formats::find_matrix_format(name);
  if (found) options.format = found;
  return found || options.archive;
}

bool choose_map(Text name, std::span<const NamedMap> maps, core::colour::ColourMap& chosen) {
  const auto map = std::ranges::find_if(maps, [&](const NamedMap& known) { return name == known.name; });
  if (map != maps.end()) chosen = map->map;
  return map != maps.end();
}

}  // namespace

void read_file(Text, Text text, Source& source) {
  source = std::filesystem::path(text);
}

void read_preset(Text option, Text name, Source& source) {
  const auto* preset = core::editing::find_preset(name);
  if (!preset)
    throw core::Error(option + ": there is no preset \"" + name + "\"; attnscope presets lists them");
  source = preset;
}

void read_text(Text, Text text, std::optional<std::string>& target) {
  target = text;
}

void read_given(Text option, Text stage_and_file, std::vector<formats::GivenTensor>& given) {
  const std::size_t sign = stage_and_file.find('=');
  const std::string stage = stage_and_file.substr(0, sign);
  const StageInfo* found = core::attention::find_stage(stage);
  const bool can = found && (found->stage == core::attention::Stage::embeddings ||
                             core::attention::can_be_given(found->stage));
  if (sign == stage_and_file.npos || sign + 1 == stage_and_file.size() || !can)
    refuse(
        option,
        "STAGE=FILE with embeddings, queries, keys, values, scores, scaled_scores, masked_scores, weights or "
        "dropout_mask",
        stage_and_file);
  given.push_back({stage, stage_and_file.substr(sign + 1)});
}

void read_layer_of_given(Text option, Text number, formats::GivenTensor& given) {
  given.layer = whole_number(option, "a whole number for given tensors", number);
}

void read_n_heads(Text option, Text number, std::optional<std::size_t>& n_heads) {
  n_heads = whole_number(option, "a whole number of at least 1", number, 1);
}

void read_ignored(Text option, Text names, std::optional<std::vector<std::string>>& ignored) {
  ignored = split_at_commas(names);
  for (Text name : *ignored)
    if (!core::importing::can_be_ignored(name))
      refuse(option, "all, or names among " + core::importing::names_to_ignore(), name);
}

void read_first_line(Text option, Text what, std::optional<bool>& is_names) {
  if (what != "names" && what != "numbers") refuse(option, "names or numbers", what);
  is_names = what == "names";
}

void read_mistake(Text option, Text name, std::vector<const core::mistakes::Mistake*>& mistakes) {
  mistakes.push_back(core::mistakes::find_mistake(name));
  if (!mistakes.back())
    throw core::Error(option + ": there is no mistake \"" + name + "\"; attnscope mistakes lists them");
}

void read_target(Text, Text path, Export& command) {
  command.out = path;
  const std::string ending = command.out.extension().string();
  choose_format(ending.substr(ending.starts_with('.')), command.options);
}

void read_stages(Text option, Text names, std::vector<std::string>& stages) {
  stages = split_at_commas(names);
  for (Text name : stages) named_stage(option, "names among", name);
}

void read_format(Text option, Text name, formats::ExportOptions& options) {
  if (!choose_format(name, options)) refuse(option, names_of_formats(), name);
}

std::string names_of_formats() {
  return core::text::joined(formats::matrix_formats(), ", ", &formats::MatrixFormat::name) + " or " +
         archive_format;
}

void read_tolerance(Text option, Text number, double& tolerance) {
  tolerance = number_within(option, "a number from 0", number, 0, std::numeric_limits<double>::max());
}

void read_stage_of_tensor(Text option, Text tensor_and_stage, std::map<std::string, std::string>& by_hand) {
  const std::size_t sign = tensor_and_stage.rfind('=');  // the name of a tensor may have one
  if (sign == tensor_and_stage.npos || sign == 0) refuse(option, "NAME=STAGE", tensor_and_stage);
  const std::string stage = tensor_and_stage.substr(sign + 1);
  if (!stage.empty()) named_stage(option, "a stage among", stage);
  by_hand[tensor_and_stage.substr(0, sign)] = stage;
}

void read_layout(Text option, Text name, const core::check::Layout*& layout) {
  layout = core::check::find_layout(name);
  if (!layout) refuse(option, "one of " + names_of_layouts(), name);
}

std::string names_of_layouts() {
  return core::text::joined(core::check::layouts(), ", ", &core::check::Layout::name);
}

void read_stage(Text option, Text name, std::optional<core::attention::Stage>& stage) {
  stage = named_stage(option, "one of", name).stage;
}

void read_index(Text option, Text number, std::optional<std::size_t>& index) {
  read_sequence(option, number, index.emplace());
}

void read_sequence(Text option, Text number, std::size_t& sequence) {
  sequence = whole_number(option, "a whole number, 0 for the first", number);
}

void read_figure_file(Text option, Text path, DrawFigure& command) {
  command.file = path;
  const std::string ending = command.file.extension().string();
  if (ending != ".svg" && ending != ".png" && ending != ".pdf")
    refuse(option, "a name that ends in .svg, .pdf or .png", path);
  command.format = ending == ".svg"   ? FigureFormat::svg
                   : ending == ".pdf" ? FigureFormat::pdf
                                      : FigureFormat::png;
}

void read_scale(Text option, Text number, double& scale) {
  scale = number_within(option, "a number from 0.1 to 16", number, 0.1, 16);
}

void read_maps(Text option, Text names, ColourChoice& colours) {
  const auto sequential = core::colour::sequential_maps(), diverging = core::colour::diverging_maps();
  for (Text name : split_at_commas(names))
    if (!choose_map(name, sequential, colours.sequential) && !choose_map(name, diverging, colours.diverging))
      refuse(option,
             "one of " + core::text::joined(sequential, ", ", &NamedMap::name) + ", " +
                 core::text::joined(diverging, ", ", &NamedMap::name),
             name);
}

void read_range(Text option, Text range, ColourChoice& colours) {
  constexpr std::pair<const char*, RangeRule> rules[]{
      {"matrix", RangeRule::matrix}, {"stage", RangeRule::stage}, {"all", RangeRule::all_heads}};
  for (const auto& [name, rule] : rules)
    if (range == name) {
      colours.range = rule;
      return;
    }
  const std::size_t colon = range.find(':');
  const auto low = core::text::parse_number(range.substr(0, colon)),
             high = colon == range.npos ? std::nullopt : core::text::parse_number(range.substr(colon + 1));
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high) || !(*low < *high))
    refuse(option, "matrix, stage, all or LOW:HIGH, two numbers of which the second is larger", range);
  colours.range = RangeRule::typed;
  colours.typed_values = colours.typed_weights = {*low, *high};
}

void read_seed(Text option, Text number, std::uint64_t& seed) {
  seed = whole_number(option, "a whole number from 0 to 18446744073709551615", number);
}

void read_heads_off(Text option, Text heads, std::set<std::pair<std::size_t, std::size_t>>& heads_off) {
  for (Text name : split_at_commas(heads)) {
    const std::size_t point = name.find('.');
    const auto layer = core::text::parse_whole_number(name.substr(0, point)),
               head =
                   point == name.npos ? std::nullopt : core::text::parse_whole_number(name.substr(point + 1));
    if (!layer || !head) refuse(option, "LAYER.HEAD, with commas between several", name);
    heads_off.emplace(*layer, *head);
  }
}

void read_count(Text option, Text number, std::size_t& count) {
  count = whole_number(option, "a whole number of at least 1", number, 1);
}

void read_temperature(Text option, Text number, double& temperature) {
  temperature = number_within(option, "a number from 0 to 100", number, 0, 100);
}

void read_op(Text, Text op, std::vector<std::string>& ops) {
  core::random::parse_draw_op(op);
  ops.push_back(op);
}

}  // namespace app
