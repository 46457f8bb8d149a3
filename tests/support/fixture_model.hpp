#pragma once

#include "core/attention/model.hpp"
#include "tests/support/json_fixture.hpp"

namespace support {

/// The model that a fixture of schema attention-fixture-1 was made from; its dropout mask is given.
core::attention::Model model_of(const Fixture& fixture);

}  // namespace support
