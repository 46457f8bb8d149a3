#pragma once

#include "core/editing/edit.hpp"
#include "tests/support/error_of.hpp"

namespace core::editing {

/// The line of the error that the edit is refused with, or "no error".
inline std::string refusal(const attention::Model& model, const Edit& edit) {
  return support::error_of(
      [&] { editing::apply(model, edit); });  // not std::apply, which a variant brings in
}

}  // namespace core::editing
