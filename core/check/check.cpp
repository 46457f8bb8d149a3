#include "core/check/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/rounding.hpp"
#include "core/files/json.hpp"
#include "core/files/stage_names.hpp"
#include "core/graph/number_words.hpp"

namespace core::check {
namespace {

using attention::info;
using attention::StageInfo;
using formats::json_boolean;
using formats::json_list;
using formats::json_object;
using formats::json_quoted;
using formats::quoted_or_null;
using std::to_string;

// Patterns of differences.

/// Largest probability that a pattern is chance: that none of the numbers outside it differs, given the rate
/// of differences inside. About ten shapes of patterns are tried.
constexpr double max_chance_probability = 1e-5;
/// Largest relative root mean square of the differences that a factor or offset may leave.
constexpr double max_unexplained = 0.02;
/// Rounding may be left as well if the squared differences are this many times as large.
constexpr double min_rounding_ratio = 10;
/// Numbers that a factor or offset must explain beyond those that determine it.
constexpr std::size_t enough_explained = 6;
/// Differences of more than this many times the median are outliers.
constexpr double outlier_ratio = 8;
/// Share of the squared differences that outliers must hold.
constexpr double min_outlier_share = 0.9;
/// Growth from line to line: minimum number of lines, rank correlation with their order (Spearman), and ratio
/// of the last quarter to the first.
constexpr std::size_t enough_lines = 8;
constexpr double min_rank_correlation = 0.9, min_growth = 3;

/// Largest number of differences examined one by one; of more, every n-th is.
constexpr std::size_t max_examined = std::size_t{1} << 20;

struct Number {
  std::size_t head, row, column;
  double observed, ours;
  double difference() const { return observed - ours; }
};

/// Calls visit(number, whether it differs) for all informative numbers, which excludes positions masked in
/// both.
template <class Visit>
void for_each_number(const std::vector<HeadDifference>& heads, const PatternOptions& stage, Visit visit) {
  for (const HeadDifference& h : heads)
    for (std::size_t j = 0; j < h.ours.n_cols; ++j)
      for (std::size_t i = 0; i < h.ours.n_rows; ++i) {
        const double observed = h.observed(i, j), ours = h.ours(i, j);
        const bool same = equal_or_both_nan(observed, ours) ||
                          (std::isfinite(ours) && std::abs(observed - ours) <= stage.max_difference(ours));
        if (!same || (ours != 0 && std::isfinite(ours))) visit(Number{h.head, i, j, observed, ours}, !same);
      }
}

/// Counts for one line (head, row or column): informative numbers, and those that differ.
struct Line {
  std::size_t informative = 0, differing = 0;
};
struct Lines {
  std::vector<Line> heads, rows, columns;
};

void count(std::vector<Line>& lines, std::size_t k, bool differing) {
  if (k >= lines.size()) lines.resize(k + 1);
  ++lines[k].informative;
  lines[k].differing += differing;
}

/// Counts differences beyond a limit, rows and columns only in heads that have some. Omits rows if no row is
/// free of differences in the affected columns though some column is in the affected rows; and vice versa.
Lines lines_of(const std::vector<HeadDifference>& heads, const PatternOptions& stage, double limit) {
  const auto is_differing = [&](const Number& n, bool differing) {
    return differing && !(std::abs(n.difference()) <= limit);
  };
  Lines all, crossing;
  for_each_number(heads, stage, [&](const Number& n, bool differing) {
    count(all.heads, n.head, is_differing(n, differing));
  });
  for_each_number(heads, stage, [&](const Number& n, bool differing) {
    if (all.heads[n.head].differing == 0) return;
    count(all.rows, n.row, is_differing(n, differing));
    count(all.columns, n.column, is_differing(n, differing));
  });
  for_each_number(heads, stage, [&](const Number& n, bool differing) {
    if (all.heads[n.head].differing == 0) return;
    if (all.columns[n.column].differing > 0) count(crossing.rows, n.row, is_differing(n, differing));
    if (all.rows[n.row].differing > 0) count(crossing.columns, n.column, is_differing(n, differing));
  });
  const auto some_are_right = [](const std::vector<Line>& lines) {
    return std::ranges::any_of(lines,
                               [](const Line& line) { return line.informative > 0 && line.differing == 0; });
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

/// Describes a set of lines: "the last row", "rows from 3 on", "every 4th row"; "" if there is no short name.
std::string words_of_set(const std::vector<std::size_t>& differing, std::size_t n_lines,
                         const std::string& line, bool counted) {
  const std::size_t first = differing.front(), last = differing.back(), n = differing.size();
  if (n == 1 && counted && last + 1 == n_lines) return "the last " + line;
  if (n == 1 && counted && first == 0) return "the first " + line;
  if (n == 1) return line + " " + to_string(first);
  const std::size_t step = differing[1] - differing[0];
  const bool even = std::adjacent_find(differing.begin(), differing.end(), [&](std::size_t a, std::size_t b) {
                      return b - a != step;
                    }) == differing.end();
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
  for (const std::size_t k : differing) names.push_back(to_string(k));
  return line + "s " + text::joined(names, " and ");
}

/// Describes the lines with all differences, if others could have had some; else returns "".
std::string words_of(const std::vector<Line>& lines, std::size_t n_lines, const std::string& line,
                     bool counted = true) {
  std::vector<std::size_t> differing;
  double inside = 0, wrong = 0, outside = 0;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (lines[k].differing > 0) {
      differing.push_back(k);
      inside += static_cast<double>(lines[k].informative);
      wrong += static_cast<double>(lines[k].differing);
    } else {
      outside += static_cast<double>(lines[k].informative);
    }
  }
  if (differing.empty() || outside == 0) return "";
  if (outside * std::log1p(-wrong / (inside + 1)) > std::log(max_chance_probability)) return "";
  return words_of_set(differing, std::max(n_lines, lines.size()), line, counted);
}

std::string number_words(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

/// Fit of the differences by one number per line: a factor of ours, or an offset.
struct Fit {
  bool explains = false;
  std::vector<double> numbers;  // of lines with differences
};
Fit fit_lines(const std::vector<Number>& differing, const PatternOptions& stage, std::size_t Number::*line,
              bool by_factor) {
  struct Sums {
    double xx = 0, xd = 0, n = 0;
  };
  std::vector<Sums> sums;
  const auto of = [&](const Number& n) { return line ? n.*line : std::size_t{0}; };
  const auto x = [&](const Number& n) { return by_factor ? n.ours : 1.0; };
  for (const Number& n : differing) {
    if (of(n) >= sums.size()) sums.resize(of(n) + 1);
    Sums& s = sums[of(n)];
    s.xx += x(n) * x(n), s.xd += x(n) * n.difference(), ++s.n;
  }
  Fit fit;
  double left = 0, all = 0, rounding = 0;
  const auto slope = [](const Sums& s) { return s.xx > 0 ? s.xd / s.xx : 0; };
  for (const Number& n : differing) {
    const double rest = n.difference() - slope(sums[of(n)]) * x(n);
    left += rest * rest, all += n.difference() * n.difference();
    rounding += stage.max_difference(n.ours) * stage.max_difference(n.ours);
  }
  if (all < min_rounding_ratio * rounding) rounding = 0;  // else rounding would explain anything
  for (const Sums& s : sums)
    if (s.n > 0) fit.numbers.push_back(slope(s));
  fit.explains = differing.size() >= fit.numbers.size() + enough_explained &&
                 differing.size() >= 2 * fit.numbers.size() &&
                 left <= max_unexplained * max_unexplained * all + rounding;
  return fit;
}

/// Returns the kind of the differences, wherever they are: "by a factor 1.02"; "" for none.
std::string kind_of(const std::vector<Number>& differing, const PatternOptions& stage, bool everywhere) {
  if (std::ranges::all_of(differing, [](const Number& n) { return !std::isfinite(n.observed); }))
    return everywhere ? "all are no finite numbers" : "no finite numbers there";
  if (std::ranges::any_of(differing, [](const Number& n) { return !std::isfinite(n.difference()); }))
    return "";
  const std::string all = everywhere ? "all rows " : "", each = everywhere ? "each " : "there each ";
  if (const Fit one = fit_lines(differing, stage, nullptr, true); one.explains)
    return all + "by a factor " + number_words(1 + one.numbers.front());
  if (const Fit one = fit_lines(differing, stage, nullptr, false); one.explains)
    return all + "by " + (one.numbers.front() > 0 ? "+" : "") + number_words(one.numbers.front());
  const std::string column = stage.columns_are_keys ? "key" : "column";
  for (const bool by_factor : {true, false}) {
    const std::string how = by_factor ? " by a factor of its own" : " by a number of its own";
    if (stage.n_heads > 1 && fit_lines(differing, stage, &Number::head, by_factor).explains)
      return each + "head" + how;
    if (fit_lines(differing, stage, &Number::row, by_factor).explains) return each + "row" + how;
    if (fit_lines(differing, stage, &Number::column, by_factor).explains) return each + column + how;
  }
  return "";
}

/// Whether differences grow from line to line, from almost nothing to much.
bool grows(const std::vector<Number>& differing, std::size_t Number::*line) {
  std::vector<double> squares, counts;
  for (const Number& n : differing) {
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
  double rank_distance = 0;
  for (std::size_t rank = 0; rank < n; ++rank) {
    const double d = static_cast<double>(rank) - static_cast<double>(order[rank]);
    rank_distance += d * d;
  }
  const double count = static_cast<double>(n);
  const auto quarter = static_cast<std::ptrdiff_t>(n / 4);
  const double early = std::accumulate(sizes.begin(), sizes.begin() + quarter, 0.0),
               late = std::accumulate(sizes.end() - quarter, sizes.end(), 0.0);
  return 1 - 6 * rank_distance / (count * (count * count - 1)) >= min_rank_correlation &&
         late >= min_growth * early;
}

/// Describes the lines with all differences, or (if not `only`) with most.
std::string place_of(const Lines& lines, const HeadDifference& shape, const PatternOptions& stage,
                     bool only) {
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

/// Returns the median absolute difference.
double median_difference(const std::vector<Number>& differing, std::size_t n_informative) {
  std::vector<double> sizes(n_informative);  // 0 for numbers that agree
  for (std::size_t k = 0; k < differing.size(); ++k) sizes[k] = std::abs(differing[k].difference());
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

double squares_beyond(const std::vector<Number>& differing, double limit) {
  double sum = 0;
  for (const Number& n : differing)
    if (std::abs(n.difference()) > limit) sum += n.difference() * n.difference();
  return sum;
}

}  // namespace

std::string describe_pattern(const std::vector<HeadDifference>& heads, const PatternOptions& stage) {
  std::size_t n_informative = 0, n_differing = 0;
  for_each_number(heads, stage,
                  [&](const Number&, bool differing) { ++n_informative, n_differing += differing; });
  if (n_differing == 0) return "";
  if (n_differing == 1 && n_informative > 1) return "only one number";
  const std::size_t step = n_differing / max_examined + 1;
  std::vector<Number> differing;
  std::size_t k = 0;
  for_each_number(heads, stage, [&](const Number& n, bool is_differing) {
    if (is_differing && k++ % step == 0) differing.push_back(n);
  });
  const std::string place = place_of(lines_of(heads, stage, 0), heads.front(), stage, true);
  const bool everywhere = place.empty() && 2 * n_differing > n_informative;
  const std::string kind = !place.empty() || everywhere ? kind_of(differing, stage, everywhere) : "";
  if (!place.empty()) return place + (kind.empty() ? "" : ", " + kind);
  if (!kind.empty()) return kind;
  if (std::ranges::any_of(differing, [](const Number& n) { return !std::isfinite(n.difference()); }))
    return "";
  if (grows(differing, &Number::row)) return "grows with the position";
  if (stage.columns_are_keys && grows(differing, &Number::column))
    return "grows with the position of the key";
  const double far =
      outlier_ratio * median_difference(differing, std::max(differing.size(), n_informative / step));
  const bool stand_out =
      far > 0 && squares_beyond(differing, far) > min_outlier_share * squares_beyond(differing, 0);
  return stand_out ? place_of(lines_of(heads, stage, far), heads.front(), stage, false) : "";
}

namespace {

double max_abs_difference(const arma::mat& observed, const arma::mat& ours) {
  double maximum = 0;
  for (arma::uword k = 0; k < ours.n_elem; ++k)
    maximum = std::max(maximum, abs_difference(observed[k], ours[k]));
  return maximum;
}

/// Returns the describe_pattern() a tensor that differs from its stage, in the sequence with the largest
/// difference.
std::string describe_tensor_pattern(const ObservedTensor& observed, const Reading& reading,
                                    const LazyTrace& reference, const Tolerance& tolerance) {
  const Model& model = reference.model();
  const StageInfo& stage = info(reading.stage);
  const std::size_t worst = agreement(observed, reading, reference, tolerance).sequence;
  const double more = is_exact(observed.rounding) ? 0 : reference.float32_error(reading);
  PatternOptions of;
  of.n_heads = reading.joined || reading.layout.is_mean ? 1
               : stage.per_head                         ? model.n_heads
                                                        : reading.n_heads;
  of.columns_are_keys = stage.columns == attention::Columns::tokens;
  of.max_difference = [&](double ours) {
    return tolerance.absolute + tolerance.relative * std::abs(ours) + max_float32_roundings * more +
           round_trip_error(observed.rounding, ours);
  };
  std::vector<HeadDifference> heads;
  for (const Part& part : parts_of(reading, reference)) {
    if (part.sequence != worst) continue;
    const arma::mat numbers = extract_matrix(observed, reading, part);
    const auto forms = reference.forms(reading, part.sequence, part.head);
    const arma::mat& nearest =
        std::ranges::min(forms, {}, [&](const arma::mat& form) { return max_abs_difference(numbers, form); });
    for (std::size_t head = 0; head < (reading.has_kv_heads ? model.n_heads : 1); ++head)
      if (!reading.has_kv_heads)
        heads.push_back({part.head, numbers, nearest});
      else if (matrix_of_head(model, reading.stage, head) == part.h)  // heads that share it
        heads.push_back({head, numbers, nearest});
  }
  return heads.empty() ? "" : describe_pattern(heads, of);
}

// Comparison of one stage, and notes on how tensors were read.

/// Compares a tensor; `rounded` is the type whose arithmetic explains all of the difference, or "".
StageResult result_of(const ObservedTensor& observed, const Reading* reading, const LazyTrace& reference,
                      const Tolerance& tolerance, const std::string& rounded) {
  StageResult result{{.tensor = observed.name,
                      .shape = formats::shape_text(observed.tensor.shape),
                      .type = formats::dtype_name(observed.tensor.dtype),
                      .rounding = rounding_words(observed.rounding),
                      .obstacle = observed.obstacle},
                     observed.stage};
  result.agreement.within = false;
  if (!reading) return result;
  if (!reading->layout.is_default) result.reading = reading->layout.words;
  result.stage = reading->stage;
  if (info(reading->stage).present(reference.model()))
    result.agreement = agreement(observed, *reading, reference, tolerance);
  else
    result.obstacle = "the model does not have this stage";
  if (!rounded.empty()) result.agreement.within = true, result.rounding = rounded;
  return result;
}

/// Adds a result; single-head tensors of one stage share one.
void add(StageResult result, std::vector<StageResult>& all) {
  const std::string base = formats::split_name(result.tensor).base;
  const auto same = std::find_if(all.begin(), all.end(), [&](const StageResult& r) {
    return r.stage == result.stage && formats::split_name(r.tensor).base == base && r.tensor != result.tensor;
  });
  if (same == all.end()) return all.push_back(std::move(result));
  const bool within = same->agreement.within && result.agreement.within;
  if (same->obstacle.empty() &&
      (!result.obstacle.empty() || result.agreement.largest > same->agreement.largest))
    *same = std::move(result);
  same->agreement.within = within;
}

std::string named(const Reading& reading) {
  return std::string(info(reading.stage).name) + " " + reading.layout.words;
}

/// Notes an output that is taken before the output projection, or queries and keys after norm or rotation.
void add_other_name(const Comparison& c, std::size_t k, std::vector<std::string>& notes) {
  const ObservedTensor& observed = c.observed[k];
  const Reading* agrees = c.agreeing_reading[k];
  const Stage stage = observed.stage;
  if (agrees && agrees->stage != stage && (stage == Stage::queries || stage == Stage::keys))
    notes.push_back(observed.name + " is the right " + info(agrees->stage).name +
                    ": that is another name and not a bug, but the " + info(stage).name +
                    " before that were not compared with it");
  if (stage != Stage::output || observed.readings.empty()) return;
  if (agrees && (agrees->stage == Stage::concatenated || agrees->stage == Stage::contexts)) {
    notes.push_back(observed.name + " is a right " + info(agrees->stage).name +
                    ": that is another name and not a bug, but the output was not compared with it");
  } else if (!agrees && info(Stage::concatenated).present(c.reference.model())) {
    Reading other = observed.readings.front();
    if (other.stage != Stage::output) return;
    other.stage = Stage::concatenated;
    if (agreement(observed, other, c.reference, c.tolerance).within)
      notes.push_back(observed.name + " is a right concatenated; if that is what it should be, --map \"" +
                      observed.name + "=concatenated\" says so");
  }
}

/// Returns "0, 2, 5"; only the first few of many.
std::string numbers(const std::set<std::size_t>& all) {
  constexpr std::size_t maximum = 8;
  std::vector<std::string> words;
  for (const std::size_t number : all) words.push_back(words.size() < maximum ? to_string(number) : "…");
  words.resize(std::min(words.size(), maximum + 1));
  return text::joined(words, ", ");
}

/// Notes which heads and sequences of a stage were compared, if not all.
void add_coverage(const Model& model, const std::vector<const Reading*>& readings,
                  std::vector<std::string>& notes) {
  std::map<Stage, std::set<std::pair<std::size_t, std::size_t>>> given;
  const auto n_heads_of = [&](const Reading& r) {
    return r.joined || r.has_kv_heads || r.layout.is_mean ? model.n_heads
           : info(r.stage).per_head                       ? r.n_heads
                                                          : 1;
  };
  for (const Reading* r : readings)
    for (std::size_t s = 0; r && s < r->n_sequences; ++s)
      for (std::size_t h = 0; h < n_heads_of(*r); ++h)
        given[r->stage].emplace(r->first_sequence + s, r->first_head + h);
  for (const auto& [stage, parts] : given) {
    const std::size_t n_heads = info(stage).count(model.n_heads);
    if (parts.size() == model.sequences.size() * n_heads) continue;
    std::set<std::size_t> sequences, heads;
    for (const auto& [sequence, head] : parts) sequences.insert(sequence), heads.insert(head);
    std::vector<std::string> words;
    if (sequences.size() < model.sequences.size())
      words.push_back("sequence " + numbers(sequences) + " of " + to_string(model.sequences.size()));
    if (heads.size() < n_heads) words.push_back("head " + numbers(heads) + " of " + to_string(n_heads));
    if (words.empty()) words.push_back("some heads of some sequences");
    notes.push_back("Of " + std::string(info(stage).name) + " only " + text::joined(words, ", ") +
                    " was given and compared");
  }
}

/// Whether a stage belongs to a dropout that drops nothing.
bool is_inactive_dropout(const Model& model, Stage stage) {
  const bool of_dropout = stage == Stage::dropout_mask || stage == Stage::dropped_weights;
  return of_dropout && !model.dropout.active() && !model.given.find(Stage::dropout_mask);
}

/// Notes the possible readings of a tensor that agrees with none, and the one that was used.
void add_ambiguity(const ObservedTensor& observed, std::vector<std::string>& notes) {
  const auto& all = observed.readings;
  if (all.size() < 2) return;
  notes.push_back(observed.name + " " + formats::shape_text(observed.tensor.shape) + " was taken for " +
                  named(all.front()) + "; it could also be " +
                  text::joined(std::vector(all.begin() + 1, all.end()), ", ", named, " or ") +
                  ", and agrees as none of them");
}

/// Notes the layer of the tensors, tensors that agree as a differently named stage, and stages with only some
/// heads or sequences given; lists the stages that were not given.
void add_notes(const Comparison& c, const MatchResult& matched, Report& report) {
  const Model& model = c.reference.model();
  report.notes.insert(report.notes.begin(), matched.notes.begin(), matched.notes.end());
  const std::string layer = layer_words(matched);
  if (!layer.empty()) report.notes.insert(report.notes.begin(), "The tensors are those of " + layer);
  for (std::size_t k = 0; k < c.observed.size(); ++k) add_other_name(c, k, report.notes);
  add_coverage(model, report.readings, report.notes);
  for (const StageInfo& stage : attention::stages()) {
    const bool was_given =
        std::ranges::any_of(report.readings, [&](const Reading* r) { return r && r->stage == stage.stage; });
    if (!was_given && stage.present(model) && !is_inactive_dropout(model, stage.stage))
      report.not_given.push_back(stage.stage);
  }
}

/// Returns the type (float16 or bfloat16) of all differing tensors, if its arithmetic alone explains them;
/// else f64. Such tensors differ only as their type implies, like those in float32.
formats::Dtype common_half_type(const Comparison& c, const std::vector<Explanation>& explanations) {
  using formats::Dtype;
  for (const Explanation& explanation : explanations) {
    const std::string cause = explanation.causes.size() == 1 ? explanation.causes.front() : "";
    // TF32 has as many digits as float16.
    const Dtype type = cause == "half_precision" || cause == "tf32_precision" ? Dtype::f16
                       : cause == "bfloat16_precision"                        ? Dtype::bf16
                                                                              : Dtype::f64;
    bool all = type != Dtype::f64;
    for (std::size_t k = 0; k < c.observed.size(); ++k)
      all = all && (c.agreeing_reading[k] ||
                    (c.observed[k].tensor.dtype == type && !c.observed[k].readings.empty()));
    if (all) return type;
  }
  return Dtype::f64;
}

/// Returns one head's numbers of a tensor; if heads are concatenated, its own columns.
arma::mat extract_matrix(const Model& model, const ObservedTensor& observed, const Reading& r, std::size_t s,
                         std::size_t head) {
  const std::size_t n_columns = attention::shape_of(model, r.stage).n_cols;
  arma::mat numbers(r.n_rows, n_columns);
  const std::size_t nth = r.joined         ? 0
                          : r.has_kv_heads ? matrix_of_head(model, r.stage, head)
                                           : head - r.first_head;
  for (std::size_t i = 0; i < r.n_rows; ++i)
    for (std::size_t j = 0; j < n_columns; ++j) {
      const std::size_t column =
          r.joined ? attention::column_of_head(model, r.stage, matrix_of_head(model, r.stage, head), j) : j;
      numbers(i, j) = observed.tensor.numbers[r.at(s, nth, i, column)];
    }
  return numbers;
}

}  // namespace

const StageResult* Report::first_difference() const {
  const auto first =
      std::find_if(stages.begin(), stages.end(), [](const StageResult& s) { return !s.agreement.within; });
  return first == stages.end() ? nullptr : &*first;
}

std::vector<std::string> Report::causes() const {
  std::vector<std::string> all;
  for (const Explanation& explanation : explanations)
    for (const std::string& cause : explanation.causes)
      if (std::find(all.begin(), all.end(), cause) == all.end()) all.push_back(cause);
  return all;
}

bool Report::has_shape_mismatch() const {
  return std::any_of(stages.begin(), stages.end(), [](const StageResult& s) { return !s.obstacle.empty(); });
}

bool Report::has_wrong_numbers() const {
  return std::any_of(stages.begin(), stages.end(),
                     [](const StageResult& s) { return s.obstacle.empty() && !s.agreement.within; });
}

Report check(const Model& model, const MatchResult& matched, const Tolerance& tolerance,
             const core::StopToken& token) {
  const LazyTrace reference(model);
  Comparison c{reference, matched.observed, {}, tolerance, token};
  const std::size_t n = matched.observed.size();
  Report report;
  const bool searches = token.should_continue();
  for (const IgnoredTensors& each : matched.left_out) report.left_out.push_back(each.words());
  if (matched.used_first_by_default) report.n_along_first_axis = matched.layers.size();
  for (const ObservedTensor& observed : matched.observed) {
    const Reading* read = agreeing_reading(observed, reference, tolerance);
    c.agreeing_reading.push_back(read && info(read->stage).present(model) ? read : nullptr);
    report.agrees = report.agrees && c.agreeing_reading.back();
    if (!observed.readings.empty()) ++report.n_tensors;
  }
  if (!report.agrees) {
    report.readings = c.agreeing_reading;
    for (std::size_t k = 0; k < n; ++k)
      if (!report.readings[k] && !matched.observed[k].readings.empty())
        report.readings[k] = &matched.observed[k].readings.front();
    find_causes(c, matched, report);
    report.was_stopped = !token.should_continue();
  }
  report.readings = c.agreeing_reading;
  if (report.agrees) judge_agreement_in_half(c, matched, report);
  std::optional<LazyTrace> explained;
  if (!report.explanations.empty()) explained.emplace(report.explanations.front().model);
  for (std::size_t k = 0; k < n; ++k) {
    const std::vector<Reading>& readings = matched.observed[k].readings;
    if (c.agreeing_reading[k] || readings.empty()) continue;
    // An ambiguous name is read as in the explanation.
    const bool ambiguous = explained && explained->model().n_heads == model.n_heads && readings.size() > 1;
    const Reading* read = ambiguous ? agreeing_reading(matched.observed[k], *explained, tolerance) : nullptr;
    report.readings[k] = read ? read : &readings.front();
    if (!read) add_ambiguity(matched.observed[k], report.notes);
  }
  std::vector<std::string> rounded(n);
  const formats::Dtype stored_type = common_half_type(c, report.explanations);
  const bool has_stored_type_errors = stored_type != formats::Dtype::f64;
  if (!report.agrees && searches && !has_stored_type_errors)
    rounded = types_of_rounding(
        c, report.explanations.empty() ? std::vector<const bugs::Bug*>() : report.explanations.front().bugs);
  // If every differing tensor looks rounded, but no one rounding explains all, none is called rounded.
  bool all_rounded = true;
  for (std::size_t k = 0; k < n; ++k)
    all_rounded = all_rounded && (c.agreeing_reading[k] || !rounded[k].empty());
  if (all_rounded) rounded.assign(n, "");
  const auto report_as_rounded = [&](const std::string& type, const std::string& note) {
    for (std::size_t k = 0; k < n; ++k)
      if (!c.agreeing_reading[k]) rounded[k] = type;
    report.notes.push_back(note);
    report.explanations.clear();
    report.rounding = type;
    report.agrees = true;
  };
  if (const std::string type = formats::dtype_name(stored_type); has_stored_type_errors)
    report_as_rounded(type, "The tensors are stored in " + type +
                                " and differ only by the rounding errors of " + type + " arithmetic");
  if (!report.agrees && !report.rounding.empty() &&
      report.explanations.empty())  // whatever type they are stored in
    report_as_rounded(report.rounding, "The tensors hold " + report.rounding +
                                           " numbers and differ only by its rounding errors");
  for (std::size_t k = 0; k < n; ++k)
    add(result_of(matched.observed[k], report.readings[k], reference, tolerance, rounded[k]), report.stages);
  add_notes(c, matched, report);
  for (const Reading* r : report.readings)
    if (r && r->layout.is_mean) report.averaged.push_back(r->stage);
  std::ranges::stable_sort(report.stages, {}, &StageResult::stage);
  const StageResult* first = report.first_difference();
  if (!first || !first->obstacle.empty()) return report;
  const auto tensor = std::ranges::find(matched.observed, first->tensor, &ObservedTensor::name);
  const Reading* reading = report.readings[static_cast<std::size_t>(tensor - matched.observed.begin())];
  if (reading) report.pattern = describe_tensor_pattern(*tensor, *reading, reference, tolerance);
  return report;
}

ObservedTrace observed_trace(const Model& model, const MatchResult& matched, const Report& report,
                             std::size_t sequence) {
  ObservedTrace result{attention::Trace(model.n_heads), {}};
  for (std::size_t k = 0; k < matched.observed.size(); ++k) {
    const Reading* r = report.readings[k];
    if (!r || r->layout.is_mean || sequence < r->first_sequence ||
        sequence >= r->first_sequence + r->n_sequences)
      continue;
    const attention::StageInfo& stage = info(r->stage);
    const std::size_t first = stage.per_head ? r->first_head : 0;
    const std::size_t count = !stage.per_head ? 1 : r->joined || r->has_kv_heads ? model.n_heads : r->n_heads;
    for (std::size_t h = first; h < first + count; ++h)
      result.trace.at(stage.stage, h) =
          extract_matrix(model, matched.observed[k], *r, sequence - r->first_sequence, h);
  }
  for (const attention::StageInfo& stage : attention::stages()) {
    bool whole = true;
    for (std::size_t h = 0; h < stage.count(model.n_heads); ++h)
      whole = whole && result.trace.at(stage.stage, h).n_rows() > 0;
    if (whole) result.stages.push_back(stage.stage);
  }
  return result;
}

namespace {

// Report as text and as JSON.

/// Returns the place of the largest difference: "head 1, row 2, column 0".
std::string line_and_column(const StageResult& r) {
  const Agreement& a = r.agreement;
  std::string words = a.sequence > 0 ? "sequence " + to_string(a.sequence) + ", " : "";
  if (info(r.stage).per_head || a.head > 0) words += "head " + to_string(a.head) + ", ";
  return words + "row " + to_string(a.row) + ", column " + to_string(a.column);
}

std::size_t n_stages_of(const Report& report) {
  std::set<std::string> compared;
  for (const StageResult& result : report.stages)
    if (result.obstacle.empty()) compared.insert(result.name());
  return compared.size();
}

std::string stage_json(const StageResult& r) {
  const Agreement& a = r.agreement;
  return json_object({{"stage", json_quoted(r.name())},
                      {"max_abs", r.max_abs()},
                      {"head", info(r.stage).per_head ? r.at(a.head) : "null"},
                      {"row", r.at(a.row)},
                      {"column", r.at(a.column)},
                      {"within", json_boolean(a.within)},
                      {"sequence", r.at(a.sequence)},
                      {"tensor", json_quoted(r.tensor)},
                      {"shape", json_quoted(r.shape)},
                      {"dtype", json_quoted(r.type)},
                      {"rounding", quoted_or_null(r.rounding)},
                      {"reading", r.reading.empty() ? "" : json_quoted(r.reading)},
                      {"obstacle", r.obstacle.empty() ? "" : json_quoted(r.obstacle)}});
}

/// Returns what may have been guessed from the names of weights when the model was opened, or "".
std::string assumed_words(const std::string& cause) {
  if (cause == "rotary_missing") return "that queries and keys are rotated";
  if (cause == "rotary_other_pairs") return "which pairs of columns are rotated";
  if (cause == "rotary_base") return "the base of its positions";
  if (cause == "causal_unwanted" || cause == "no_mask") return "whether it is causal";
  if (cause == "n_heads_other") return "the number of its heads";
  return "";
}

/// Warns that the model, not the tensors, may be at fault.
std::string assumption_words(const std::vector<std::string>& causes) {
  std::vector<std::string> all;
  for (const std::string& cause : causes)
    if (const std::string words = assumed_words(cause); !words.empty()) all.push_back(words);
  if (all.empty()) return "";
  return "If the model was opened from a file of weights, " + text::joined(all, ", ", {}, " and ") +
         " may have been assumed then: where that was wrong, it is the model that is to be put right.\n";
}

std::string described(const Explanation& explanation) {
  if (explanation.bugs.empty()) return "  " + text::joined(explanation.sentences, "; and ") + "\n";
  std::string text;
  for (const bugs::Bug* bug : explanation.bugs)
    text += "  " + std::string(cause_of(*bug)) + ": " + bug->texts.about + " " +
            bugs::fix_in(*bug, explanation.model) + "\n";
  if (!explanation.details.empty()) text += "  " + text::joined(explanation.details, "; or ") + "\n";
  if (!explanation.sentences.empty())
    text += "  In numbers: " + text::joined(explanation.sentences, "; and ") + ".\n";
  return text;
}

/// Whether the causes also explain the different shapes.
bool explains_shapes(const Report& report, const std::vector<std::string>& causes) {
  const auto has = [&](const char* cause) { return std::ranges::find(causes, cause) != causes.end(); };
  const auto fits = [](const StageResult& r) { return r.obstacle.empty() || r.stage == Stage::output; };
  return has("n_heads_other") ||
         (has("output_projection_missing") && std::ranges::all_of(report.stages, fits));
}

/// Returns the obstacle of most tensors, ": 12 tokens instead of 8", or "".
std::string obstacle_in_common(const Report& report) {
  std::map<std::string, std::size_t> counts;
  for (const StageResult& stage : report.stages)
    if (const std::size_t at = stage.obstacle.rfind(": "); at != std::string::npos)
      ++counts[stage.obstacle.substr(at)];
  const auto maximum = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
  return maximum == counts.end() || maximum->second * 2 <= report.stages.size() ? "" : maximum->first;
}

}  // namespace

std::vector<std::string> TensorResult::row(const std::string& place) const {
  std::vector<std::string> cells{tensor, shape, type, reading, "", "DIFFERS: " + obstacle};
  if (!obstacle.empty()) return cells;
  const Agreement& a = agreement;
  char difference[32];
  std::snprintf(difference, sizeof difference, "%.3g", a.largest);
  cells[4] = a.largest == 0 ? "0"
                            : (std::isfinite(a.largest) ? difference
                               : a.is_nan_mismatch      ? "not a number apart"
                                                        : "∞ apart") +
                                  (" at " + place);
  cells[5] = a.within ? "agrees" : "DIFFERS";
  if (a.within && !rounding.empty() && a.largest > 0) cells[5] += " as " + rounding;
  return cells;
}

std::string TensorResult::max_abs() const {
  return obstacle.empty() && std::isfinite(agreement.largest) ? text::number_text(agreement.largest) : "null";
}

std::string TensorResult::at(std::size_t place) const {
  return obstacle.empty() ? to_string(place) : "null";
}

std::vector<std::string> row_of(const StageResult& result) {
  std::vector<std::string> row = result.row(line_and_column(result));
  row.insert(row.begin(), result.name());
  return row;
}

std::string coverage_words(const Report& report) {
  const auto name = [](Stage stage) { return info(stage).name; };
  const std::string compared =
      text::counted(report.n_tensors, "tensor") + " of " +
      text::counted(n_stages_of(report), report.is_of_gradients() ? "gradient" : "stage") +
      (report.n_tensors == 1 ? " was" : " were") + " compared";
  if (report.is_of_gradients()) return compared;
  return compared + "; " +
         (report.not_given.empty()
              ? "the model has no other stages"
              : "not given, and not compared: " + text::joined(report.not_given, ", ", name)) +
         (report.n_along_first_axis > 1
              ? "; of the " + to_string(report.n_along_first_axis) +
                    " along the first axis, be they layers or sequences, only the first"
              : "");
}

std::string hidden_words(const Report& report) {
  if (!report.agrees || report.rounding.empty() || report.hidden_row == 0) return "";
  const auto percent = [](double part) { return graph::digits(100 * part, 2) + " %"; };
  return "Rounding to " + report.rounding + " could hide a row that is off by up to " +
         percent(report.hidden_row) +
         (report.hidden_head > 0 ? ", and a head by up to " + percent(report.hidden_head) : "");
}

std::string noise_words(const Report& report) {
  if (report.agrees || report.first_difference() || report.described.empty()) return "";
  return "Each number is within its tolerance, but together they are not: " + report.described.front();
}

std::string verdict_words(const Report& report) {
  const StageResult* first = report.first_difference();
  if (const std::string words = noise_words(report); !words.empty()) return words + ".\n";
  if (!first) {
    std::string text = "Everything agrees: " + coverage_words(report) + ".\n";
    if (const std::string hidden = hidden_words(report); !hidden.empty()) text += hidden + ".\n";
    for (const Stage stage : report.averaged)
      text += "The " + std::string(info(stage).name) +
              " are given averaged over the heads; that is harmless, as only the report averages them.\n";
    return text;
  }
  std::string text = std::string("First ") + (report.is_of_gradients() ? "gradient" : "stage") +
                     " that differs: " + first->name() + ".\n";
  const std::vector<std::string> causes = report.causes();
  const bool are_shapes_explained = explains_shapes(report, causes);
  const bool has_shape_mismatch =
      report.has_shape_mismatch() && !are_shapes_explained;  // shapes that no cause explains
  if (has_shape_mismatch && report.n_tensors == 0)
    text += "Nothing could be compared" + obstacle_in_common(report) + ".\n";
  else if (has_shape_mismatch)
    text += report.has_wrong_numbers()
                ? "Tensors of another shape were not looked at for causes.\n"
                : "Whatever could be compared agrees: " + coverage_words(report) + ".\n";
  if (has_shape_mismatch) text += "--map NAME= ignores a tensor that is no stage.\n";
  const auto& found = report.explanations;
  const bool is_inferred =
      std::ranges::any_of(found, [](const Explanation& e) { return !e.sentences.empty(); });
  if (!report.has_wrong_numbers() && !are_shapes_explained && !is_inferred && report.described.empty())
    return text;
  if (found.empty() && report.was_stopped)
    return text + "The search for the cause was stopped before one was found.\n";
  if (found.empty()) {
    text += "None of the known bugs, alone or in pairs, explains all of the tensors.\n";
    for (const std::string& words : report.partly) text += "Explains a part: " + words + ".\n";
    for (const std::string& words : report.described) text += "Differs: " + words + ".\n";
    return text + (report.pattern.empty() ? "" : "What differs: " + report.pattern + ".\n");
  }
  if (report.was_stopped) text += "The search was stopped; there may be other causes.\n";
  const std::string every = has_shape_mismatch ? "every tensor whose shape fits" : "every tensor";
  if (report.is_harmless && !report.agreeing_after.empty())
    text += "It is harmless for what comes after: " +
            text::joined(
                report.agreeing_after, ", ", [](Stage stage) { return info(stage).name; }, " and ") +
            (report.agreeing_after.size() > 1 ? " agree.\n" : " agrees.\n");
  if (found.size() == 1 && found.front().bugs.empty())
    return text + "Likely cause: " + text::joined(found.front().sentences, "; and ") + ". This explains " +
           every + ".\n";
  if (found.size() == 1)
    return text + "Likely cause: " + text::joined(found.front().causes, " and ") +
           (found.front().causes.size() > 1 ? ", which together explain " : ", which explains ") + every +
           ".\n" + described(found.front()) + assumption_words(causes);
  text += "These explain " + every + " equally well; the tensors cannot tell them apart:\n";
  for (const Explanation& explanation : found) text += described(explanation);
  return text + assumption_words(causes);
}

std::string report_text(const Report& report) {
  std::vector<std::vector<std::string>> rows{{report.is_of_gradients() ? "gradient" : "stage", "tensor",
                                              "shape", "type", "", "largest difference", ""}};
  for (const StageResult& result : report.stages) {
    rows.push_back(row_of(result));
    if (!result.reading.empty()) rows.front()[4] = "read as";
  }
  std::string text = text::aligned_table(rows);
  for (const std::string& name : report.left_out) text += "ignored: " + name + "\n";
  for (const std::string& note : report.notes) text += "note: " + note + ".\n";
  return text + "\n" + verdict_words(report);
}

std::string report_json(const Report& report) {
  const auto name_of = [](Stage stage) { return json_quoted(info(stage).name); };
  const StageResult* first = report.first_difference();
  const auto of_each = [&](std::vector<std::string> Explanation::*words) {
    return json_list(report.explanations,
                     [words](const Explanation& each) { return json_list(each.*words, json_quoted); });
  };
  return json_object({{"agrees", json_boolean(report.agrees)},
                      {"first_difference", first ? json_quoted(first->name()) : "null"},
                      {"causes", json_list(report.causes(), json_quoted)},
                      {"explanations", of_each(&Explanation::causes)},
                      {"stages", json_list(report.stages, stage_json)},
                      {"left_out", json_list(report.left_out, json_quoted)},
                      {"notes", json_list(report.notes, json_quoted)},
                      {"n_tensors", to_string(report.n_tensors)},
                      {"n_stages", to_string(n_stages_of(report))},
                      {"not_given", json_list(report.not_given, name_of)},
                      {"stopped", json_boolean(report.was_stopped)},
                      {"details", of_each(&Explanation::details)},
                      {"pattern", quoted_or_null(report.pattern)},
                      {"sentences", of_each(&Explanation::sentences)},
                      {"partly", json_list(report.partly, json_quoted)},
                      {"described", json_list(report.described, json_quoted)},
                      {"harmless", json_boolean(report.is_harmless)},
                      {"rounding", quoted_or_null(report.rounding)},
                      {"could_hide", report.agrees && report.hidden_row > 0
                                         ? json_object({{"row", text::number_text(report.hidden_row)},
                                                        {"head", report.hidden_head > 0
                                                                     ? text::number_text(report.hidden_head)
                                                                     : "null"}})
                                         : "null"}}) +
         "\n";
}

}  // namespace core::check
