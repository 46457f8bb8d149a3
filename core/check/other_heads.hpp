#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/check/reading.hpp"

/// Tensors of as many heads as the model does not have, or of a width that its output has not.
namespace core::check {

/// Every other number of heads that the model's columns can be split into.
std::vector<std::size_t> other_head_numbers(const Model& model);

/// The model without its output projection, where the output is of another width then.
std::optional<Model> with_wider_output(const Model& model);

/// The ways in which a tensor of that name and shape is a stage of a model that was not foreseen; stage is
/// the one that it is taken for.
std::vector<Reading> readings_in(const Model& other, std::string_view name, Stage stage,
                                 const formats::Shape& shape);

/// The same tensors as a model of other shapes reads them; none when one of them has no reading,
/// or was not read from its file.
std::vector<Theirs> read_again(const Model& other, const std::vector<Theirs>& theirs);

}  // namespace core::check
