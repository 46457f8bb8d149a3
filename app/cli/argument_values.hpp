#pragma once

#include <string>

#include "app/cli/arguments.hpp"

/// What the texts behind options mean. Each puts it into the last of its arguments, and throws core::Error,
/// one line that names the option and what was expected.
namespace app {

using Text = const std::string&;

void read_file(Text option, Text text, Source& source);
void read_preset(Text option, Text name, Source& source);
void read_text(Text option, Text text, std::optional<std::string>& target);
void read_given(Text option, Text stage_and_file, std::vector<core::formats::GivenTensor>& given);
void read_layer_of_given(Text option, Text number, core::formats::GivenTensor& given);
void read_n_heads(Text option, Text number, std::optional<std::size_t>& n_heads);
/// Names with commas between them.
void read_ignored(Text option, Text names, std::optional<std::vector<std::string>>& ignored);
/// "names" or "numbers".
void read_first_line(Text option, Text what, std::optional<bool>& is_names);
void read_mistake(Text option, Text name, std::vector<const core::mistakes::Mistake*>& mistakes);

/// Where to export to; the format is what the name ends in.
void read_target(Text option, Text path, Export& command);
void read_stages(Text option, Text names, std::vector<std::string>& stages);
void read_format(Text option, Text name, core::formats::ExportOptions& options);
/// "csv, npy or npz"
std::string names_of_formats();

void read_tolerance(Text option, Text number, double& tolerance);
void read_stage_of_tensor(Text option, Text tensor_and_stage, std::map<std::string, std::string>& by_hand);

void read_layout(Text option, Text name, const core::check::Layout*& layout);
/// "bhtd, bthd, …"
std::string names_of_layouts();

void read_stage(Text option, Text name, std::optional<core::attention::Stage>& stage);
void read_index(Text option, Text number, std::optional<std::size_t>& index);
void read_sequence(Text option, Text number, std::size_t& sequence);
void read_figure_file(Text option, Text path, DrawFigure& command);
void read_scale(Text option, Text number, double& scale);
void read_maps(Text option, Text names, ColourChoice& colours);
void read_range(Text option, Text range, ColourChoice& colours);

void read_seed(Text option, Text number, std::uint64_t& seed);
/// "5.1,3.0": layers and heads.
void read_heads_off(Text option, Text heads, std::set<std::pair<std::size_t, std::size_t>>& heads_off);
void read_count(Text option, Text number, std::size_t& count);
void read_temperature(Text option, Text number, double& temperature);

void read_op(Text option, Text op, std::vector<std::string>& ops);

}  // namespace app
