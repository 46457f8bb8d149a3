#include "core/check/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace core::check {
namespace {

using std::to_string;

/// A pattern must not be there by chance: if numbers were off anywhere as often as they are inside of it,
/// none would be outside of it once in so many cases. Some ten shapes of patterns are looked for.
constexpr double by_chance = 1e-5;
/// What a factor or an offset leaves unexplained of the differences, in root mean squares.
constexpr double unexplained = 0.02;
/// And what rounding leaves, where the squares of the differences are so many times as large.
constexpr double beyond_rounding = 10;
/// Numbers that a factor or an offset must explain beyond those that fix it.
constexpr std::size_t enough_explained = 6;
/// Numbers that are off so many times as far as half of them stand out.
constexpr double stands_out = 8;
/// Of all squares, those of differences that stand out.
constexpr double most_of_it = 0.9;
/// Lines in which growth can be seen, how well their order must be kept (Spearman), and how much it must be
/// between the first and the last quarter.
constexpr std::size_t enough_lines = 8;
constexpr double in_order = 0.9, grown = 3;

/// Numbers that are off and that are looked at one by one, at most; of more, every so many-th.
constexpr std::size_t most_looked_at = std::size_t{1} << 20;

struct Number {
  std::size_t head, row, column;
  double theirs, ours;
  double difference() const { return theirs - ours; }
};

/// Calls visit(number, whether it is off) for all numbers but those that say nothing, as cells that are
/// hidden in both.
template <class Visit>
void for_each_number(const std::vector<HeadDifference>& heads, const PatternOf& stage, Visit visit) {
  for (const HeadDifference& h : heads)
    for (std::size_t j = 0; j < h.ours.n_cols; ++j)
      for (std::size_t i = 0; i < h.ours.n_rows; ++i) {
        const double theirs = h.theirs(i, j), ours = h.ours(i, j);
        const bool same = are_same(theirs, ours) || std::abs(theirs - ours) <= stage.allowed(ours);
        if (!same || (ours != 0 && std::isfinite(ours))) visit(Number{h.head, i, j, theirs, ours}, !same);
      }
}

/// How many numbers of each line, a head, a row or a column, tell something, and how many are off.
struct Line {
  std::size_t telling = 0, off = 0;
};
struct Lines {
  std::vector<Line> heads, rows, columns;
};

void count(std::vector<Line>& lines, std::size_t k, bool off) {
  if (k >= lines.size()) lines.resize(k + 1);
  ++lines[k].telling;
  lines[k].off += off;
}

/// Only differences beyond a limit count as off. Rows and columns are those of heads in which some are; where
/// none can be off in other rows of these columns, the rows say nothing, and the other way round.
Lines lines_of(const std::vector<HeadDifference>& heads, const PatternOf& stage, double limit) {
  const auto is_off = [&](const Number& n, bool off) { return off && !(std::abs(n.difference()) <= limit); };
  Lines all, crossing;
  for_each_number(heads, stage, [&](const Number& n, bool off) { count(all.heads, n.head, is_off(n, off)); });
  for_each_number(heads, stage, [&](const Number& n, bool off) {
    if (all.heads[n.head].off == 0) return;
    count(all.rows, n.row, is_off(n, off));
    count(all.columns, n.column, is_off(n, off));
  });
  for_each_number(heads, stage, [&](const Number& n, bool off) {
    if (all.heads[n.head].off == 0) return;
    if (all.columns[n.column].off > 0) count(crossing.rows, n.row, is_off(n, off));
    if (all.rows[n.row].off > 0) count(crossing.columns, n.column, is_off(n, off));
  });
  const auto some_are_right = [](const std::vector<Line>& lines) {
    return std::ranges::any_of(lines, [](const Line& line) { return line.telling > 0 && line.off == 0; });
  };
  const bool by_rows = some_are_right(crossing.rows), by_columns = some_are_right(crossing.columns);
  if (!by_rows && by_columns) all.rows.clear();
  if (!by_columns && by_rows) all.columns.clear();
  return all;
}

std::string ordinal(std::size_t n) {
  const bool teen = n % 100 / 10 == 1;
  const char* end = teen ? "th" : n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
  return to_string(n) + end;
}

/// Lines by their numbers, when these have a name: "the last row", "rows from 3 on", "every 4th row".
std::string words_of_set(const std::vector<std::size_t>& off, std::size_t n_lines, const std::string& line,
                         bool counted) {
  const std::size_t first = off.front(), last = off.back(), n = off.size();
  if (n == 1 && counted && last + 1 == n_lines) return "the last " + line;
  if (n == 1 && counted && first == 0) return "the first " + line;
  if (n == 1) return line + " " + to_string(first);
  const std::size_t step = off[1] - off[0];
  const bool even = std::adjacent_find(off.begin(), off.end(), [&](std::size_t a, std::size_t b) {
                      return b - a != step;
                    }) == off.end();
  if (even && step == 1 && counted) {
    if (last + 1 == n_lines) return line + "s from " + to_string(first) + " on";
    if (first == 0) return line + "s up to " + to_string(last);
    return line + "s " + to_string(first) + " to " + to_string(last);
  }
  if (even && step > 1 && n >= 3 && first < step && last + step >= n_lines)
    return "every " + ordinal(step) + " " + line +
           (first + 1 == step ? "" : " from " + to_string(first) + " on");
  if (n > 3) return "";
  std::vector<std::string> names;
  for (const std::size_t k : off) names.push_back(to_string(k));
  return line + "s " + text::joined(names, " and ");
}

/// The lines that hold all that is off, when others could have held some.
std::string words_of(const std::vector<Line>& lines, std::size_t n_lines, const std::string& line,
                     bool counted = true) {
  std::vector<std::size_t> off;
  double inside = 0, wrong = 0, outside = 0;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (lines[k].off > 0) {
      off.push_back(k);
      inside += static_cast<double>(lines[k].telling);
      wrong += static_cast<double>(lines[k].off);
    } else {
      outside += static_cast<double>(lines[k].telling);
    }
  }
  if (off.empty() || outside == 0) return "";
  if (outside * std::log1p(-wrong / (inside + 1)) > std::log(by_chance)) return "";
  return words_of_set(off, std::max(n_lines, lines.size()), line, counted);
}

std::string number_words(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// How well one number for each line explains the differences: a factor of ours, or an offset.
struct Fit {
  bool explains = false;
  std::vector<double> numbers;  // of lines that have any
};
Fit fitted(const std::vector<Number>& off, const PatternOf& stage, std::size_t Number::*line,
           bool by_factor) {
  struct Sums {
    double xx = 0, xd = 0, n = 0;
  };
  std::vector<Sums> sums;
  const auto of = [&](const Number& n) { return line ? n.*line : std::size_t{0}; };
  const auto x = [&](const Number& n) { return by_factor ? n.ours : 1.0; };
  for (const Number& n : off) {
    if (of(n) >= sums.size()) sums.resize(of(n) + 1);
    Sums& s = sums[of(n)];
    s.xx += x(n) * x(n), s.xd += x(n) * n.difference(), ++s.n;
  }
  Fit fit;
  double left = 0, all = 0, rounding = 0;
  const auto slope = [](const Sums& s) { return s.xx > 0 ? s.xd / s.xx : 0; };
  for (const Number& n : off) {
    const double rest = n.difference() - slope(sums[of(n)]) * x(n);
    left += rest * rest, all += n.difference() * n.difference();
    rounding += stage.allowed(n.ours) * stage.allowed(n.ours);
  }
  if (all < beyond_rounding * rounding) rounding = 0;  // which could be anything
  for (const Sums& s : sums)
    if (s.n > 0) fit.numbers.push_back(slope(s));
  fit.explains = off.size() >= fit.numbers.size() + enough_explained &&
                 off.size() >= 2 * fit.numbers.size() && left <= unexplained * unexplained * all + rounding;
  return fit;
}

/// Of what kind the differences are, wherever they are: "by a factor 1.02".
std::string kind_of(const std::vector<Number>& off, const PatternOf& stage, bool everywhere) {
  if (std::ranges::all_of(off, [](const Number& n) { return !std::isfinite(n.theirs); }))
    return everywhere ? "all are no finite numbers" : "no finite numbers there";
  if (std::ranges::any_of(off, [](const Number& n) { return !std::isfinite(n.difference()); })) return "";
  const std::string all = everywhere ? "all rows " : "", each = everywhere ? "each " : "there each ";
  if (const Fit one = fitted(off, stage, nullptr, true); one.explains)
    return all + "by a factor " + number_words(1 + one.numbers.front());
  if (const Fit one = fitted(off, stage, nullptr, false); one.explains)
    return all + "by " + (one.numbers.front() > 0 ? "+" : "") + number_words(one.numbers.front());
  const std::string column = stage.columns_are_keys ? "key" : "column";
  for (const bool by_factor : {true, false}) {
    const std::string how = by_factor ? " by a factor of its own" : " by a number of its own";
    if (stage.n_heads > 1 && fitted(off, stage, &Number::head, by_factor).explains)
      return each + "head" + how;
    if (fitted(off, stage, &Number::row, by_factor).explains) return each + "row" + how;
    if (fitted(off, stage, &Number::column, by_factor).explains) return each + column + how;
  }
  return "";
}

/// Whether differences grow from line to line, from almost nothing to much.
bool grows(const std::vector<Number>& off, std::size_t Number::*line) {
  std::vector<double> squares, counts;
  for (const Number& n : off) {
    if (!std::isfinite(n.difference())) return false;
    if (n.*line >= squares.size()) squares.resize(n.*line + 1), counts.resize(n.*line + 1);
    squares[n.*line] += n.difference() * n.difference();
    ++counts[n.*line];
  }
  std::vector<double> sizes;
  for (std::size_t k = 0; k < squares.size(); ++k)
    if (counts[k] > 0) sizes.push_back(std::sqrt(squares[k] / counts[k]));
  const std::size_t n = sizes.size();
  if (n < enough_lines) return false;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return sizes[k]; });
  double apart = 0;
  for (std::size_t rank = 0; rank < n; ++rank) {
    const double d = static_cast<double>(rank) - static_cast<double>(order[rank]);
    apart += d * d;
  }
  const double count = static_cast<double>(n);
  const auto quarter = static_cast<std::ptrdiff_t>(n / 4);
  const double early = std::accumulate(sizes.begin(), sizes.begin() + quarter, 0.0),
               late = std::accumulate(sizes.end() - quarter, sizes.end(), 0.0);
  return 1 - 6 * apart / (count * (count * count - 1)) >= in_order && late >= grown * early;
}

/// The lines that hold all that is off, or most of it.
std::string place_of(const Lines& lines, const HeadDifference& shape, const PatternOf& stage, bool only) {
  const std::string head = words_of(lines.heads, stage.n_heads, "head", false),
                    row = words_of(lines.rows, shape.ours.n_rows, "row"),
                    column =
                        words_of(lines.columns, shape.ours.n_cols, stage.columns_are_keys ? "key" : "column");
  const bool head_alone = row.empty() && column.empty() && !head.empty() && only;
  if (head_alone) return head + " alone";
  std::vector<std::string> parts{head, row, column};
  std::erase(parts, "");
  if (parts.empty()) return "";
  const std::string all = text::joined(parts, ", ");
  return !only ? "mostly " + all : all.starts_with("every ") ? all : "only " + all;
}

/// The size that half of the differences do not reach.
double middle_of(const std::vector<Number>& off, std::size_t n_telling) {
  std::vector<double> sizes(n_telling);  // 0 for those that are not off
  for (std::size_t k = 0; k < off.size(); ++k) sizes[k] = std::abs(off[k].difference());
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

double squares_beyond(const std::vector<Number>& off, double limit) {
  double sum = 0;
  for (const Number& n : off)
    if (std::abs(n.difference()) > limit) sum += n.difference() * n.difference();
  return sum;
}

}  // namespace

std::string pattern_of(const std::vector<HeadDifference>& heads, const PatternOf& stage) {
  std::size_t n_telling = 0, n_off = 0;
  for_each_number(heads, stage, [&](const Number&, bool off) { ++n_telling, n_off += off; });
  if (n_off == 0) return "";
  if (n_off == 1 && n_telling > 1) return "only one number";
  const std::size_t step = n_off / most_looked_at + 1;
  std::vector<Number> off;
  std::size_t k = 0;
  for_each_number(heads, stage, [&](const Number& n, bool is_off) {
    if (is_off && k++ % step == 0) off.push_back(n);
  });
  const std::string place = place_of(lines_of(heads, stage, 0), heads.front(), stage, true);
  const bool everywhere = place.empty() && 2 * n_off > n_telling;
  const std::string kind = !place.empty() || everywhere ? kind_of(off, stage, everywhere) : "";
  if (!place.empty()) return place + (kind.empty() ? "" : ", " + kind);
  if (!kind.empty()) return kind;
  if (std::ranges::any_of(off, [](const Number& n) { return !std::isfinite(n.difference()); })) return "";
  if (grows(off, &Number::row)) return "grows with the position";
  if (stage.columns_are_keys && grows(off, &Number::column)) return "grows with the position of the key";
  const double far = stands_out * middle_of(off, std::max(off.size(), n_telling / step));
  const bool stand_out = far > 0 && squares_beyond(off, far) > most_of_it * squares_beyond(off, 0);
  return stand_out ? place_of(lines_of(heads, stage, far), heads.front(), stage, false) : "";
}

}  // namespace core::check
