#include "core/lessons/guesses.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/apart.hpp"
#include "core/lessons/measures.hpp"

namespace core::lessons {
namespace {

constexpr double rounding = 1e-12;

std::string place(const Moved& cell) {
  return "row " + std::to_string(cell.row) + ", column " + std::to_string(cell.column);
}

std::string amount(double by) {
  return std::isfinite(by) ? "by " + number(by) : "from or to −∞";
}

}  // namespace

std::vector<Moved> moved_cells(const Moment& moment, attention::Stage stage, std::size_t head) {
  const attention::StageInfo& info = attention::info(stage);
  if (!info.present(moment.start) || !info.present(moment.model)) return {};
  if (info.per_head && (head >= moment.before.heads.size() || head >= moment.trace.heads.size())) return {};
  const arma::mat &before = info.matrix(moment.before, head), &now = info.matrix(moment.trace, head);
  std::vector<Moved> moved;
  if (arma::size(before) != arma::size(now)) return moved;
  for (std::size_t i = 0; i < now.n_rows; ++i)
    for (std::size_t j = 0; j < now.n_cols; ++j)
      if (const double by = apart(before(i, j), now(i, j)); by > rounding) moved.push_back({i, j, by});
  std::ranges::stable_sort(moved, std::greater(), &Moved::by);
  return moved;
}

std::string question(const Step& step) {
  return std::string("Which cell of ") + attention::info(*step.asks).title +
         " will change most? Click it; then: " + step.try_it;
}

std::string verdict(const std::vector<Moved>& moved, std::size_t row, std::size_t column) {
  if (moved.empty()) return "";
  const auto mine = std::ranges::find_if(
      moved, [&](const Moved& cell) { return cell.row == row && cell.column == column; });
  if (mine == moved.end())
    return "Your cell did not change; " + place(moved.front()) + " changed most, " +
           amount(moved.front().by) + ".";
  const bool most =
      !std::isfinite(moved.front().by) ? !std::isfinite(mine->by) : mine->by >= moved.front().by * (1 - 1e-9);
  if (most) return "You guessed it: no cell changed more than yours, " + amount(mine->by) + ".";
  return "Your cell changed " + amount(mine->by) + "; " + place(moved.front()) + " changed most, " +
         amount(moved.front().by) + ".";
}

}  // namespace core::lessons
