#pragma once

#include "core/base/number.hpp"

namespace app::widgets {

using core::text::cell_text;
using core::text::CellRange;
using core::text::choose_format;
using core::text::fixed;
using core::text::number_text;
using core::text::NumberFormat;
using core::text::scientific;
using core::text::share_text;
using core::text::told_number;
using core::text::unit_for;
using core::text::unit_words;

}  // namespace app::widgets
