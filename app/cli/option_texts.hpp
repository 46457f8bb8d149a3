#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/session/view.hpp"
#include "core/base/positions.hpp"
#include "core/files/given_tensors.hpp"
#include "core/graph/stages.hpp"

namespace app {

using StringRef = const std::string&;

/// Throws core::Error, "OPTION: expected …, got …".
[[noreturn]] void refuse(StringRef option, StringRef expected, StringRef got);

// Read the text of an option, or what it names. Each throws core::Error as refuse() does.

/// Returns a stage; `among` is what errors call the names: "one of".
const core::attention::StageInfo& named_stage(StringRef option, StringRef among, StringRef name);
/// Sets one map of colors, or one for numbers and one for differences.
void read_maps(StringRef option, const std::vector<std::string>& names, ColorChoice& colors);
/// Sets the range of colors: "matrix", "stage", "all" or "LOW:HIGH".
void read_range(StringRef option, StringRef range, ColorChoice& colors);
/// Returns a stage and the file that it is given in: "STAGE=FILE".
core::formats::StageFile read_given(StringRef option, StringRef stage_and_file);
/// Adds the stage that a tensor is: "NAME=STAGE", or "NAME=" for none.
void read_stage_of_tensor(StringRef option, StringRef tensor_and_stage,
                          std::map<std::string, std::string>& by_hand);
/// Returns two whole numbers with a character between them; expected: what they are called.
std::pair<std::size_t, std::size_t> read_pair(StringRef option, StringRef pair, char between,
                                              const char* expected);
/// Returns a layer and a head: "5.1".
std::pair<std::size_t, std::size_t> read_head(StringRef option, StringRef layer_and_head);
/// Returns rotary positions: "500000,halves,64".
core::positions::Rotary read_rope(StringRef option, StringRef words);

}  // namespace app
