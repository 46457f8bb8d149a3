#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model/transformer.hpp"

namespace core::circuits::random_models {

/// Returns every model type whose whole models are supported.
std::vector<std::string> whole_model_types();

/// Returns a small random model of a type: 3 layers, 4 heads of 8 columns, 19 tokens.
std::shared_ptr<const core::transformer::Transformer> random_transformer(const std::string& type);

}  // namespace core::circuits::random_models
