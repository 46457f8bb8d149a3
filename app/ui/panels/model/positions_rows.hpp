#pragma once

#include <string>
#include <vector>

#include "app/ui/panels/model/popup_fields.hpp"

namespace app::panels {

/// How positions enter, each way in words: "rotary halves", "ALiBi", "8 buckets".
std::vector<std::string> positions_words(const core::attention::Positions& positions);

/// The rows of a popup in which that is switched and set.
void positions_rows(PopupFields& fields, const core::attention::Model& model);

}  // namespace app::panels
