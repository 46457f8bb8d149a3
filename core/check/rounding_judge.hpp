#pragma once

#include <optional>
#include <vector>

#include "core/check/agreement.hpp"

namespace core::check {

/// How much one tensor is like what coarse arithmetic makes of an exact model.
struct Likeness {
  bool tells = false;       ///< it is not the exact stage
  bool on_grid = false;     ///< all of its numbers that are not exact are numbers of the coarse type
  bool grid_tells = false;  ///< which numbers of its own type seldom are
  double value = 0;         ///< the correlation of its errors with those of our coarse stage, −1 … 1
  double error = 0;         ///< the sum of the squares of its errors
};

/// Whether a tensor of that likeness shows by itself that it is of that arithmetic.
bool shows(const Likeness& likeness, const Model& coarse);

/// The likeness of one tensor, or nothing when its errors are not those of the arithmetic.
///
/// No library rounds in the same places as another, so bits are not compared. Errors must be about as large
/// as those of our own coarse stage, in all and in each head, row and column; the largest must not stand out,
/// and they must not follow the numbers themselves. Of models that are computed for a sample only the size in
/// all is asked, and less strictly.
std::optional<Likeness> likeness_of(const Theirs& theirs, const Computed& exact, const Computed& coarse,
                                    const Tolerance& tolerance);

/// The mean likeness of all tensors, and the sum of their errors, or nothing when not every one is what
/// coarse arithmetic makes of the exact model, or nothing shows that it is this arithmetic. Of a sample 0,
/// when it may be so.
std::optional<Likeness> likeness_of(const std::vector<Theirs>& theirs, const Computed& exact,
                                    const Computed& coarse, const Tolerance& tolerance);

}  // namespace core::check
