#include "app/session/changes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"

namespace app {

using core::attention::StageMatrix;

void Changes::edit(const core::attention::Model& model, std::size_t sequence) {
  last_ = Clock::now();
  edits_ = true;
  if (is_under_way()) return;
  before_.reset();
  is_under_way_ = true;
  if (model.n_heads * model.n_tokens() * model.n_keys() > most_cells) return;
  try {
    before_ = core::attention::attend(model, sequence);
  } catch (const core::Error&) {  // what cannot be computed is not compared
    before_.reset();
  }
}

void Changes::follow(const core::attention::Model& model) {
  if (!before_) return;
  if (std::exchange(edits_, false)) {
    after_ = model;
  } else if (!after_ || !(*after_ == model)) {
    before_.reset();
    after_.reset();
    is_under_way_ = false;
  }
}

double Changes::seconds() const {
  if (!before_) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(Clock::now() - last_).count();
}

const StageMatrix* Changes::before(core::attention::Stage stage, std::size_t head,
                                   const StageMatrix& now) const {
  const auto& info = core::attention::info(stage);
  if (!before_ || (info.per_head && head >= before_->heads.size())) return nullptr;
  const StageMatrix& numbers = info.matrix(*before_, head);
  return numbers.n_rows() == now.n_rows() && numbers.n_cols() == now.n_cols() ? &numbers : nullptr;
}

bool differs(double before, double now) {
  if (std::isnan(before) || std::isnan(now)) return std::isnan(before) != std::isnan(now);
  if (before == now) return false;
  if (std::isinf(before) || std::isinf(now)) return true;
  constexpr double rounding = 1e-12;
  return !(std::abs(now - before) <= rounding * std::max(1.0, std::abs(before)));
}

}  // namespace app
