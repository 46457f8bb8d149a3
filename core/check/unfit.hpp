#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/check/names.hpp"
#include "core/check/reading.hpp"

namespace core::check {

/// "[2, 6, 6]": the shape in which attnscope itself would give a stage of the model.
std::string expected_shape(const Model& model, Stage stage, bool one_head);

/// "expected [2, 6, 4], got [6, 2, 4]: heads after tokens? …": both shapes of a tensor that can be none of
/// the stages of its name, the likeliest first, and what it may be instead where that can be guessed; or that
/// there is no such head or sequence.
std::string unfit_words(const Model& model, const std::vector<Stage>& stages, const formats::Shape& shape,
                        const Name& name, const Layout* layout);

}  // namespace core::check
