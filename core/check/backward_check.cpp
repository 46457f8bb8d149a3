#include "core/check/backward_check.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/check/noise.hpp"
#include "core/files/stage_names.hpp"
#include "core/graph/bugs_backward.hpp"
#include "core/graph/gradients.hpp"

namespace core::check {
namespace {

using attention::info;
using attention::MatrixName;
using formats::Dtype;

/// How far a number may be off in half precision, in units of the largest noise of its gradient.
constexpr double max_half_noise = 4;
/// How far gradients may be from those of a bug, in units of the noise of the right ones; other bugs are
/// further off by a factor of ten and more.
constexpr double max_noise_of_bug = 4;
/// Norm of a gradient, relative to the largest, that is 0 in theory, as of a bias of the keys.
constexpr double least_norm = 1e-12;
/// Numbers that show the type which they were rounded to.
constexpr std::size_t enough_numbers = 16;

// Names.

/// What a gradient is of.
using GradientOf = std::variant<Stage, MatrixName>;

std::string name_of(const GradientOf& of) {
  const auto* stage = std::get_if<Stage>(&of);
  return std::string("d_") + (stage ? info(*stage).name : graph::gradient_name(std::get<MatrixName>(of)));
}

/// Returns a name without what says that it is a gradient; nothing if it says no such thing.
std::optional<std::string> without_gradient(std::string name) {
  const std::string lower = text::lower(name);
  for (const std::string_view end : {".grad", "_grad", "_gradient"})
    if (lower.ends_with(end)) return name.substr(0, name.size() - end.size());
  const std::size_t own = lower.find_last_of("./") + 1;
  const std::string_view word = std::string_view(lower).substr(own);
  for (const std::string_view begin : {"d_", "grad_", "dl_d"})
    if (word.starts_with(begin)) return name.erase(own, begin.size());
  constexpr const char* short_names = "q k v o out x wq wk wv wo w_q w_k w_v w_o";
  if (word.starts_with('d') && text::has_word(short_names, word.substr(1))) return name.erase(own, 1);
  return std::nullopt;
}

/// Returns the learned matrix of a name: "query_weight", "w_q", "attention.W_query.weight", "q_proj.bias".
std::optional<MatrixName> learned_matrix(std::string_view name) {
  std::string base = text::lower(formats::split_name(name).base);
  for (std::size_t k = 0; k < attention::n_matrix_names; ++k)
    if (const char* own = graph::gradient_name(MatrixName(k)); own && base == own) return MatrixName(k);
  const auto strip = [&](std::string_view end) {
    const bool has_end = base.ends_with(end);
    if (has_end) base.erase(base.size() - end.size());
    return has_end;
  };
  const bool is_weight = strip(".weight") || strip("_weight"), is_bias = strip(".bias") || strip("_bias");
  base.erase(0, base.find_last_of("./") + 1);
  if (!is_weight && !is_bias && !base.starts_with('w')) return std::nullopt;
  constexpr std::array parts{"q wq w_q query w_query q_proj query_proj", "k wk w_k key w_key k_proj key_proj",
                             "v wv w_v value w_value v_proj value_proj",
                             "o wo w_o out w_out output w_output o_proj out_proj output_proj"};
  for (std::size_t part = 0; part < parts.size(); ++part)
    if (text::has_word(parts.at(part), base))
      return MatrixName(
          static_cast<std::size_t>(is_bias ? MatrixName::query_bias : MatrixName::query_weight) + part);
  return std::nullopt;
}

/// Returns a tensor's name with what it is the gradient of, as another name says; nothing if that says no
/// such thing.
std::optional<std::string> gradient_of(std::string name, const std::string& meant) {
  const std::string base = formats::split_name(name).base;
  const std::size_t at = name.find(base);
  const auto of = without_gradient(meant);
  if (!of || at == name.npos || (!learned_matrix(*of) && formats::parse_name(*of).meaning.stages.empty()))
    return std::nullopt;
  return name.replace(at, base.size(), *of);
}

formats::TensorEntry entry_of(const std::shared_ptr<const formats::TensorFile>& file,
                              formats::TensorInfo tensor, std::string name) {
  std::swap(tensor.name, name);
  return {tensor, [file, name](std::span<const std::size_t> leading, const core::StopToken& token) {
            return file->read(name, leading, token);
          }};
}

// Gradients.

using Matrices = DrawnNoise::Matrices;

/// One way to read a tensor: its matrices, and the sequence (of what sequences share, 0) and head of each.
struct GradientReading {
  struct Place {
    std::size_t sequence, head;
  };
  GradientOf of;
  std::string words;
  std::vector<Place> places = {};
  Matrices numbers = {};
};
struct GivenGradient {
  StageResult result;
  Dtype rounding = Dtype::f64;
  std::vector<GradientReading> readings = {};
  double noise = 0;  ///< norm of the noise of the right gradient
};
/// Gradients as they are computed, [given][reading][matrix].
using Computed = std::vector<std::vector<Matrices>>;

/// Returns the type that numbers were rounded to, also if they are stored in a finer one.
Dtype evident_rounding(const formats::Tensor& tensor) {
  const std::set<double> numbers(tensor.numbers.begin(), tensor.numbers.end());
  return numbers.size() < enough_numbers ? rounding_of(tensor) : coarsest_type(tensor.numbers);
}

/// Reads a tensor in one way; of heads that share a matrix, the first has it.
GradientReading gradient_reading(const Model& model, const ObservedTensor& observed, const Reading& reading) {
  const auto& layout = reading.layout;
  GradientReading all{reading.stage, layout.is_default ? "" : layout.words};
  MatchResult matched;
  matched.observed = {observed};
  Report report;
  report.readings = {&reading};
  for (std::size_t s = reading.first_sequence; s < reading.first_sequence + reading.n_sequences; ++s) {
    const attention::Trace trace = observed_trace(model, matched, report, s).trace;
    for (std::size_t h = 0; h < info(reading.stage).count(model.n_heads); ++h) {
      const std::size_t nth = matrix_of_head(model, reading.stage, h);
      const arma::mat& numbers = trace.at(reading.stage, h);
      if (h == head_of_matrix(model, reading.stage, nth) && !numbers.empty())
        all.places.push_back({s, h}), all.numbers.push_back(numbers);
    }
  }
  return all;
}

/// Returns the norm of the numbers that are finite.
double norm_of(const Matrices& matrices) {
  double squares = 0;
  for (const arma::mat& matrix : matrices)
    for (const double number : matrix)
      if (std::isfinite(number)) squares += number * number;
  return std::sqrt(squares);
}

/// Returns the norm of the differences; ∞ if one alone is NaN somewhere.
double distance(const Matrices& ones, const Matrices& others) {
  double squares = 0;
  for (std::size_t m = 0; m < ones.size(); ++m)
    for (std::size_t k = 0; k < ones[m].n_elem; ++k)
      squares += std::pow(abs_difference(ones[m][k], others[m][k]), 2);
  return std::sqrt(squares);
}

/// Returns the differences, 0 where one is NaN.
Matrices differences(Matrices ones, const Matrices& others) {
  for (std::size_t m = 0; m < ones.size(); ++m) {
    ones[m] -= others[m];
    ones[m].replace(arma::datum::nan, 0);
  }
  return ones;
}

/// Returns which of its readings is nearest to computed gradients.
std::size_t nearest(const GivenGradient& given, const std::vector<Matrices>& computed) {
  std::vector<double> relative;
  for (std::size_t r = 0; r < computed.size(); ++r)
    relative.push_back(distance(given.readings[r].numbers, computed[r]) /
                       std::max(norm_of(computed[r]), 1e-300));
  return static_cast<std::size_t>(std::ranges::min_element(relative) - relative.begin());
}

std::string sentence_of(const bugs::Bug& bug) {
  return fmt::format("{}: {} {}", bugs::cause_of(bug), bug.texts.about, text::trimmed(bug.texts.fix, "."));
}

/// Compares gradients with those of the right backward, and with those of backwards that have a bug.
class BackwardCheck {
 public:
  BackwardCheck(const Model& model, const Tolerance& tolerance)
      : model_(model), tolerance_(tolerance), graph_(graph::attention(model)), stages_(graph_, model) {}

  void read(const SplitTensors& tensors, const MatchOptions& options);
  Report report(const core::StopToken& token);

 private:
  struct BackwardCandidate {
    const bugs::Bug* bug;
    Computed gradients;
  };
  /// The nth draw of random roundings.
  struct RoundingDraw {
    Precision precision;
    std::uint64_t n;
  };

  void read_stages(const formats::TensorFile& file, const SplitTensors& tensors, const MatchOptions& options);
  void read_learned(const formats::TensorFile& file, const std::string& name, const std::string& tensor);
  void set_beginning(const SplitTensors& tensors);
  Computed computed(const graph::Graph& graph, const Model& model, LazyStages& stages,
                    const std::optional<RoundingDraw>& draw = {}) const;
  std::vector<BackwardCandidate> candidates(const core::StopToken& token);
  void judge(Precision precision);
  void compare(GivenGradient& given, const GradientReading& reading, const DrawnNoise& noise,
               Precision precision);
  bool explains(const Computed& gradients) const;
  void find_cause(Precision own, const core::StopToken& token);
  std::string pattern_of(const StageResult& result) const;

  const Model& model_;
  const Tolerance& tolerance_;
  graph::Graph graph_;
  LazyStages stages_;
  std::vector<GivenGradient> given_;
  Stage beginning_ = Stage::output;
  std::vector<Matrices> of_beginning_;  ///< [sequence][nth]
  Computed right_;
  double zero_ = 0;  ///< norm up to which a gradient is 0 in theory
  Report report_;
};

void BackwardCheck::read(const SplitTensors& tensors, const MatchOptions& options) {
  const auto file = std::make_shared<const formats::TensorFile>(tensors.gradients);
  std::vector<formats::TensorEntry> of_stages;
  for (const formats::TensorInfo& tensor : file->tensors())
    if (learned_matrix(tensor.name))
      read_learned(*file, tensor.name, tensors.names.at(tensor.name));
    else
      of_stages.push_back(entry_of(file, tensor, tensor.name));
  if (!of_stages.empty())
    read_stages({file->path(), file->format(), std::move(of_stages), file->notes()}, tensors, options);
  set_beginning(tensors);
  if (given_.empty())
    throw Error(file->place() + "expected gradients other than the one that a backward begins with");
}

void BackwardCheck::read_stages(const formats::TensorFile& file, const SplitTensors& tensors,
                                const MatchOptions& options) {
  const MatchResult matched = match(model_, file, {}, options);
  report_.notes = matched.notes;
  if (const std::string layer = layer_words(matched); !layer.empty())
    report_.notes.push_back("The tensors are those of " + layer);
  for (const auto& [names, why] : matched.left_out) {
    const auto own = tensors.names.find(names);
    report_.left_out.push_back((own == tensors.names.end() ? names : own->second) + ": " + why);
  }
  for (const ObservedTensor& observed : matched.observed) {
    const formats::Tensor& tensor = observed.tensor;
    GivenGradient given{{{.tensor = tensors.names.at(observed.name),
                          .shape = formats::shape_text(tensor.shape),
                          .type = formats::dtype_name(tensor.dtype),
                          .obstacle = observed.obstacle},
                         observed.stage,
                         name_of(observed.stage)},
                        evident_rounding(tensor)};
    // "queries" are not rotated, "contexts" may be those of all heads.
    const bool is_certain =
        formats::parse_name(observed.name).meaning.certain && observed.stage != Stage::contexts;
    for (const Reading& reading : observed.readings)
      if (!reading.layout.is_mean && (!is_certain || reading.stage == observed.stage))
        given.readings.push_back(gradient_reading(model_, observed, reading));
    if (given.readings.empty() && given.result.obstacle.empty())
      given.result.obstacle = "expected the gradients of every head";
    given_.push_back(std::move(given));
  }
}

/// Reads the gradient of a learned matrix as it is, and transposed, as nn.Linear has it.
void BackwardCheck::read_learned(const formats::TensorFile& file, const std::string& name,
                                 const std::string& tensor) {
  const MatrixName of = *learned_matrix(name);
  const std::size_t head = formats::split_name(name).head.value_or(0);
  const auto* ours = find_matrix(model_, {of, head});
  if (!ours) return report_.left_out.push_back(tensor + ": the model does not have this matrix");
  const formats::Tensor read = file.read(name);
  GivenGradient given{
      {{.tensor = tensor, .shape = formats::shape_text(read.shape), .type = formats::dtype_name(read.dtype)},
       Stage::output,
       name_of(of)},
      evident_rounding(read)};
  const arma::mat numbers = read.shape.size() > 2 ? arma::mat() : formats::matrix(read);
  if (arma::size(numbers) == arma::size(**ours)) given.readings.push_back({of, "", {{0, head}}, {numbers}});
  if (arma::size(numbers.t()) == arma::size(**ours) && numbers.n_rows > 1)
    given.readings.push_back({of, "transposed, as nn.Linear has it", {{0, head}}, {numbers.t()}});
  if (given.readings.empty())
    given.result.obstacle =
        "expected " + formats::shape_text({(*ours)->n_rows, (*ours)->n_cols}) + ", got " + given.result.shape;
  given_.push_back(std::move(given));
}

/// Takes out the gradient that the backward begins with.
void BackwardCheck::set_beginning(const SplitTensors& tensors) {
  const auto begin = [&](Stage stage, double number) {
    const auto [n_rows, n_cols] = attention::shape_of(model_, stage);
    arma::mat all(n_rows, n_cols);
    all.fill(number);
    beginning_ = stage;
    of_beginning_.assign(model_.sequences.size(), Matrices(n_matrices(model_, stage), all));
  };
  for (const Stage stage : {Stage::output, Stage::concatenated, Stage::contexts})
    for (auto given = given_.begin(); given != given_.end(); ++given) {
      if (given->result.gradient == name_of(stage) && given->readings.empty())
        throw Error(tensors.gradients.place() + given->result.tensor + ": " + given->result.obstacle);
      const auto reading = std::ranges::find(given->readings, GradientOf(stage), &GradientReading::of);
      if (reading == given->readings.end()) continue;
      begin(stage, 0);
      for (std::size_t m = 0; m < reading->places.size(); ++m) {
        const auto [sequence, head] = reading->places[m];
        of_beginning_[sequence][matrix_of_head(model_, stage, head)] = reading->numbers[m];
      }
      report_.notes.push_back("The backward begins with " + given->result.tensor +
                              " as given, the gradient of the " + info(stage).name);
      given_.erase(given);
      return;
    }
  begin(Stage::output, 1);
  report_.notes.emplace_back(
      "d_output is not given: the backward begins with ones, the gradient of the output's sum");
}

/// Computes the gradients that were given; those of what sequences share are summed.
Computed BackwardCheck::computed(const graph::Graph& graph, const Model& model, LazyStages& stages,
                                 const std::optional<RoundingDraw>& draw) const {
  const auto round = [&](arma::mat& numbers, std::size_t of, std::uint64_t nth) {
    if (draw) numbers = randomly_rounded(draw->precision, std::move(numbers), draw->n, of, nth);
  };
  Computed all(given_.size());
  for (std::size_t g = 0; g < given_.size(); ++g)
    for (const GradientReading& reading : given_[g].readings) {
      all[g].push_back(reading.numbers);
      for (arma::mat& matrix : all[g].back()) matrix.zeros();
    }
  const auto for_each_matrix = [&](const auto& visit) {
    for (std::size_t g = 0; g < given_.size(); ++g)
      for (std::size_t r = 0; r < given_[g].readings.size(); ++r)
        for (std::size_t m = 0; m < given_[g].readings[r].places.size(); ++m)
          visit(given_[g].readings[r].of, given_[g].readings[r].places[m], all[g][r][m]);
  };
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const auto visit = [&](Stage stage, std::size_t nth, arma::mat& gradient) {
      round(gradient, graph::max_stages + 2 + graph::index(stage), std::uint64_t{s} << 32 | nth);
    };
    const auto one = graph::gradients_from(graph, model, stages, s, beginning_, of_beginning_[s], visit);
    for_each_matrix([&](const GradientOf& of, const GradientReading::Place& place, arma::mat& sum) {
      if (const Stage* stage = std::get_if<Stage>(&of)) {
        if (place.sequence == s) sum = one.stages.at(*stage, place.head);
      } else if (const arma::mat& more = one.of({std::get<MatrixName>(of), place.head}); !more.empty()) {
        sum += more;
      }
    });
  }
  for_each_matrix([&](const GradientOf& of, const GradientReading::Place& place, arma::mat& sum) {
    if (const auto* name = std::get_if<MatrixName>(&of))
      round(sum, 2 * graph::max_stages + 2 + static_cast<std::size_t>(*name), place.head);
  });
  return all;
}

std::vector<BackwardCheck::BackwardCandidate> BackwardCheck::candidates(const core::StopToken& token) {
  std::vector<BackwardCandidate> all;
  for (const bugs::Bug& bug : bugs::backward_bugs()) {
    if (!token.should_continue()) break;
    Editing edited(std::make_shared<const Model>(model_));
    bugs::BugCase{&bug}.edit(edited);
    all.push_back({&bug, computed(edited.graph, model_, stages_)});  // the stages are right
  }
  return all;
}

/// Compares all gradients with the right ones, which may be rounded to a precision everywhere.
void BackwardCheck::judge(Precision precision) {
  std::vector<Computed> draws;
  for (std::uint64_t k = 0; precision != Precision::float64 && k < n_draws(model_); ++k) {
    const RandomlyRounded rounded(model_, precision, true, k);
    draws.push_back(computed(graph_, rounded.editing.model(), *rounded.stages, RoundingDraw{precision, k}));
  }
  report_.agrees = true, report_.described.clear();
  for (std::size_t g = 0; g < given_.size(); ++g) {
    GivenGradient& given = given_[g];
    if (given.readings.empty()) {
      given.result.agreement.within = report_.agrees = false;
      continue;
    }
    const std::size_t r = nearest(given, right_[g]);
    DrawnNoise noise{right_[g][r], {}, right_[g][r]};
    for (arma::mat& matrix : noise.of_sums) matrix.zeros();
    for (const Computed& draw : draws) noise.of_draws.push_back(differences(draw[g][r], noise.right));
    compare(given, given.readings[r], noise, precision);
  }
}

void BackwardCheck::compare(GivenGradient& given, const GradientReading& reading, const DrawnNoise& noise,
                            Precision precision) {
  double largest = 0, largest_noise = 0, squares = 0;
  for (const arma::mat& right : noise.right) largest = std::max(largest, max_abs_finite(right));
  for (const Matrices& draw : noise.of_draws) {
    for (const arma::mat& matrix : draw) largest_noise = std::max(largest_noise, max_abs_finite(matrix));
    squares += std::pow(norm_of(draw), 2) / static_cast<double>(noise.of_draws.size());
  }
  given.noise = std::sqrt(squares);
  Limits limits{tolerance_, given.rounding};
  limits.tolerance.absolute *= std::min(1.0, largest);
  limits.extra = (is_half(precision) ? max_half_noise : max_float32_roundings) * largest_noise + zero_;
  Agreement all;
  for (std::size_t m = 0; m < reading.numbers.size(); ++m) {
    Agreement one;
    for (std::size_t i = 0; i < noise.right[m].n_rows; ++i)
      for (std::size_t j = 0; j < noise.right[m].n_cols; ++j)
        one.add(reading.numbers[m](i, j), noise.right[m](i, j), limits, i, j);
    const bool is_within = all.within && one.within;
    one.sequence = reading.places[m].sequence, one.head = reading.places[m].head;
    if (m == 0 || one.largest > all.largest) all = one;
    all.within = is_within;
  }
  StageResult& result = given.result;
  result.agreement = all;
  result.gradient = name_of(reading.of), result.reading = reading.words;
  result.rounding = rounding_words(given.rounding);
  if (const auto* stage = std::get_if<Stage>(&reading.of)) result.stage = *stage;
  report_.agrees = report_.agrees && all.within;
  if (!is_half(precision) || !all.within) return;
  const auto judgment = noise.judge(differences(reading.numbers, noise.right));
  if (!judgment.is_exceeded) return;
  report_.agrees = false;
  report_.described.push_back(fmt::format("row {} of {} is further off than rounding to {} explains",
                                          judgment.found.worst.row, result.gradient,
                                          attention::name_of(precision)));
}

/// Whether all gradients are those of a bug, as far as the noise of the right ones tells, and some of them
/// could not be right.
bool BackwardCheck::explains(const Computed& gradients) const {
  bool is_told_apart = false;
  for (std::size_t g = 0; g < given_.size(); ++g) {
    const GivenGradient& given = given_[g];
    if (given.readings.empty()) continue;
    const std::size_t r = nearest(given, gradients[g]);
    const Matrices &ours = gradients[g][r], &right = right_[g][r];
    const double size = norm_of(ours), of_right = norm_of(right);
    const double growth = of_right > zero_ ? std::max(1.0, size / of_right) : 1;
    const double allowed = (tolerance_.relative + relative_rounding(precision_of(given.rounding))) * size +
                           zero_ + max_noise_of_bug * growth * given.noise;
    if (distance(given.readings[r].numbers, ours) > allowed) return false;
    is_told_apart = is_told_apart || distance(right, ours) > allowed;
  }
  return is_told_apart;
}

/// Adds the bugs that explain all gradients, in the precision that they show or else in a coarser one.
void BackwardCheck::find_cause(Precision own, const core::StopToken& token) {
  const std::vector<BackwardCandidate> all = candidates(token);
  for (const Precision precision : {own, Precision::float32, Precision::float16, Precision::bfloat16}) {
    if (precision != own && relative_rounding(precision) <= relative_rounding(own)) continue;
    if (precision != own) judge(precision);
    if (report_.agrees) {
      report_.rounding = attention::name_of(precision);
      report_.notes.push_back("The gradients differ only by the rounding errors of " + report_.rounding +
                              " arithmetic");
    }
    for (const auto& [bug, gradients] : all) {
      const std::vector<std::string> known = report_.causes(), causes{std::string(bugs::cause_of(*bug))};
      if (!report_.agrees && explains(gradients) && std::ranges::find(known, causes[0]) == known.end())
        report_.explanations.push_back({causes, {}, model_, {}, {sentence_of(*bug)}});
    }
    if (report_.agrees || !report_.explanations.empty()) return;
  }
  judge(own);
}

/// Returns the pattern of a gradient that differs, in the sequence with the largest difference.
std::string BackwardCheck::pattern_of(const StageResult& result) const {
  const auto given =
      std::ranges::find(given_, result.tensor, [](const GivenGradient& one) { return one.result.tensor; });
  const auto& right = right_[static_cast<std::size_t>(given - given_.begin())];
  const std::size_t r = nearest(*given, right);
  const double size = norm_of(right[r]) / std::sqrt(1.0 + static_cast<double>(model_.n_tokens()));
  PatternOptions options;
  options.n_heads = info(result.stage).count(model_.n_heads);
  options.columns_are_keys = info(result.stage).columns == attention::Columns::tokens;
  options.max_difference = [&](double ours) {
    return (tolerance_.absolute + 1e-4) * size + tolerance_.relative * std::abs(ours) +
           round_trip_error(given->rounding, ours);
  };
  std::vector<HeadDifference> heads;
  for (std::size_t m = 0; m < right[r].size(); ++m)
    if (const auto [sequence, head] = given->readings[r].places[m]; sequence == result.agreement.sequence)
      heads.push_back({head, given->readings[r].numbers[m], right[r][m]});
  return describe_pattern(heads, options);
}

Report BackwardCheck::report(const core::StopToken& token) {
  right_ = computed(graph_, model_, stages_);
  for (const std::vector<Matrices>& readings : right_)
    for (const Matrices& right : readings) zero_ = std::max(zero_, least_norm * norm_of(right));
  for (const Matrices& beginning : of_beginning_) zero_ = std::max(zero_, least_norm * norm_of(beginning));
  Precision own = Precision::float64;
  for (const GivenGradient& given : given_)
    if (const Precision of = precision_of(given.rounding); relative_rounding(of) > relative_rounding(own))
      own = of;
  judge(own);
  if (!report_.agrees) find_cause(own, token);
  report_.was_stopped = !token.should_continue();
  for (const GivenGradient& given : given_) {
    report_.stages.push_back(given.result);
    report_.n_tensors += !given.readings.empty();
  }
  std::ranges::stable_sort(report_.stages, {}, [](const StageResult& result) {  // that of a backward
    const auto* stage = attention::find_stage(result.gradient.substr(2));
    return stage ? -static_cast<int>(graph::index(stage->stage)) : 1;
  });
  if (const StageResult* first = report_.first_difference(); first && first->obstacle.empty())
    report_.pattern = pattern_of(*first);
  return std::move(report_);
}

}  // namespace

bool is_gradient(std::string_view name) {
  return gradient_of("tensor", std::string(name)).has_value();
}

bool SplitTensors::has_gradients() const {
  const auto is_beginning = [](const std::string& name) {
    const std::vector<Stage> stages = formats::parse_name(name).meaning.stages;
    return !learned_matrix(name) && !stages.empty() && stages.front() >= Stage::contexts;
  };
  return names.size() > 1 || (names.size() == 1 && !is_beginning(names.begin()->first));
}

bool SplitTensors::has_stages() const {
  return std::ranges::any_of(others.tensors(), [&](const formats::TensorInfo& tensor) {
    const auto hand = by_hand.find(tensor.name);
    return hand != by_hand.end() ? !hand->second.empty()
                                 : !formats::parse_name(tensor.name).meaning.stages.empty();
  });
}

SplitTensors split_gradients(const formats::TensorFile& file,
                             const std::map<std::string, std::string>& by_hand) {
  for (const auto& [tensor, meant] : by_hand) file.info(tensor);  // throws if it does not exist
  const auto all = std::make_shared<const formats::TensorFile>(file);
  std::vector<formats::TensorEntry> gradients, others;
  std::map<std::string, std::string> names, rest = by_hand;
  for (const formats::TensorInfo& tensor : file.tensors()) {
    const auto hand = by_hand.find(tensor.name);
    const auto of = gradient_of(tensor.name,
                                hand == by_hand.end() ? formats::split_name(tensor.name).base : hand->second);
    const bool is_matrix = tensor.shape.size() > 1 || (of && !tensor.shape.empty() && learned_matrix(*of));
    if (!of || !is_matrix || tensor.dtype == Dtype::text) {
      others.push_back(entry_of(all, tensor, tensor.name));
      continue;
    }
    gradients.push_back(entry_of(all, tensor, *of));
    names.emplace(*of, tensor.name), rest.erase(tensor.name);
  }
  if (names.empty()) others.clear();
  return {
      {file.path(), file.format(), std::move(gradients), file.notes()},
      names.empty() ? file : formats::TensorFile(file.path(), file.format(), std::move(others), file.notes()),
      names,
      rest};
}

Report check_backward(const Model& model, const SplitTensors& tensors, const MatchOptions& options,
                      const Tolerance& tolerance, const core::StopToken& token) {
  BackwardCheck check(model, tolerance);
  check.read(tensors, options);
  return check.report(token);
}

}  // namespace core::check
