#include "core/check/causes.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/text.hpp"
#include "core/check/check.hpp"
#include "core/check/noise.hpp"
#include "core/check/rounding.hpp"
#include "core/graph/model_changes.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"

namespace core::check {
namespace {

/// Numbers of a stage that are many, and that need too much memory.
constexpr std::size_t many_numbers = 100000, max_stage_numbers = std::size_t{1} << 24;
/// Limits of a search for few and for many numbers; see graph::Work.
constexpr double max_cells_of_few = 3e8, max_cells_of_many = 1e9;
/// Limit of a search that allows for a coarse arithmetic.
constexpr double max_cells_of_rounded = 1e8;
/// Tokens that are enough for inference if no query attends to a later key.
constexpr std::size_t max_inference_tokens = 256;

/// Collects a stage from the trace of each sequence; keys and values once per KV head if all heads that share
/// one agree.
ObservedStage stage_of(const Model& model, const attention::StageInfo& stage,
                       const std::vector<ObservedTrace>& observed) {
  const std::size_t n_heads = stage.count(model.n_heads);
  bool is_shared = stage.per_head && n_matrices(model, stage.stage) < n_heads;
  for (const ObservedTrace& one : observed)
    for (std::size_t h = 0; h < n_heads; ++h) {
      const std::size_t first = head_of_matrix(model, stage.stage, matrix_of_head(model, stage.stage, h));
      is_shared = is_shared && arma::approx_equal(*one.trace.at(stage.stage, h),
                                                  *one.trace.at(stage.stage, first), "absdiff", 0);
    }
  ObservedStage all{stage.stage, observed.size(), {}};
  for (const ObservedTrace& one : observed)
    for (std::size_t k = 0; k < (is_shared ? n_matrices(model, stage.stage) : n_heads); ++k)
      all.matrices.emplace_back(
          *one.trace.at(stage.stage, is_shared ? head_of_matrix(model, stage.stage, k) : k));
  return all;
}

/// Returns a tensor in its own shape, [sequence][matrix][row][column], where that is not the model's.
std::optional<ObservedStage> unread_stage(Stage stage, const formats::Tensor& tensor,
                                          std::size_t n_sequences) {
  std::vector<std::size_t> shape = tensor.shape;
  while (shape.size() > 4 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() > 4) return std::nullopt;
  if (shape.size() == 3 && shape[0] == n_sequences && n_sequences > 1) shape.insert(shape.begin() + 1, 1);
  while (shape.size() < 4) shape.insert(shape.begin(), 1);
  ObservedStage all{stage, shape[0], {}};
  const std::size_t size = shape[2] * shape[3];
  for (std::size_t k = 0; k < shape[0] * shape[1]; ++k)
    all.matrices.emplace_back(arma::mat(arma::mat(tensor.numbers.data() + k * size, shape[3], shape[2]).t()));
  return all;
}

/// Returns the tensors as stages, as the report reads them, without those that have a reading to leave out.
std::vector<ObservedStage> observed_stages(const Model& model, const MatchResult& matched,
                                           const Report& report,
                                           const std::vector<const Reading*>& left_out) {
  Report plain;
  std::vector<ObservedStage> all;
  for (std::size_t k = 0; k < matched.observed.size(); ++k) {
    const ObservedTensor& observed = matched.observed[k];
    const Reading* reading = report.readings[k];
    plain.readings.push_back(reading && !reading->layout.is_masked && !left_out[k] ? reading : nullptr);
    const bool is_odd = left_out[k] ? false
                        : reading   ? reading->layout.is_mean
                                    : !observed.tensor.numbers.empty();
    if (!is_odd) continue;
    if (auto stage =
            unread_stage(reading ? reading->stage : observed.stage, observed.tensor, model.sequences.size()))
      all.push_back(std::move(*stage));
  }
  std::vector<ObservedTrace> traces;
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    traces.push_back(observed_trace(model, matched, plain, s));
  for (const Stage stage : traces.front().stages)
    if (std::ranges::all_of(traces, [&](const ObservedTrace& t) {
          return std::ranges::find(t.stages, stage) != t.stages.end();
        }))
      all.push_back(stage_of(model, attention::info(stage), traces));
  std::erase_if(all, [](const ObservedStage& stage) {
    return std::ranges::all_of(stage.matrices, [](const SharedMatrix& m) { return m->is_empty(); });
  });
  for (ObservedStage& stage : all)
    for (std::size_t k = 0; k < matched.observed.size(); ++k) {
      const formats::Dtype type = matched.observed[k].rounding;
      if (report.readings[k] && report.readings[k]->stage == stage.stage &&
          round_trip_error(type, 1) > relative_rounding(Precision::bfloat16))
        stage.stored_relative = round_trip_error(type, 1), stage.stored_absolute = round_trip_error(type, 0);
    }
  return all;
}

/// Whether bugs can be searched for: the model has none itself.
bool can_infer(const Model& m) {
  return m.bugs.empty() && m.arithmetic == attention::Arithmetic() && m.given.cells.empty() &&
         m.mask.edge == attention::MaskEdge() && m.dropout.place == attention::DropoutPlace::weights &&
         m.d_head() > 0 && m.d_value() > 0;
}

/// Returns the large negative number that a mask sets, if observed masked scores have one at the first masked
/// position.
std::optional<double> mask_fill(const Model& model, const std::vector<ObservedTensor>& observed) {
  if (!model.mask.masks_keys()) return std::nullopt;
  for (const ObservedTensor& tensor : observed)
    for (const Reading& reading : tensor.readings) {
      if (reading.stage != Stage::masked_scores) continue;
      const arma::mat visible = attention::visibility_matrix(model, reading.first_sequence);
      const arma::uvec hidden = arma::find(visible == 0, 1);
      if (hidden.is_empty()) continue;
      const std::size_t row = hidden[0] % visible.n_rows, column = hidden[0] / visible.n_rows;
      const double fill = tensor.tensor.numbers[reading.at(0, 0, row, column)];
      if (std::isfinite(fill) && fill <= -100) return fill;
    }
  return std::nullopt;
}

/// Rereads the tensors for a model of other shapes; empty if one of them has no reading or was not loaded.
std::vector<ObservedTensor> reread_tensors(const Model& other, std::vector<ObservedTensor> observed) {
  for (ObservedTensor& tensor : observed) {
    tensor.readings = readings_by_name(other, tensor.name, tensor.stage, tensor.tensor.shape);
    if (tensor.readings.empty() || tensor.tensor.numbers.empty()) return {};
    mark_masked(tensor);
  }
  return observed;
}

/// Returns the model with found bugs that have titles in its options and its list.
Model with_listed(Model model, const FoundBugs& found) {
  for (const FoundBug& one : found.bugs)
    for (const bugs::Bug* name : one.names)
      model = bugs::injected(
          name == one.made.bug
              ? one.made
              : bugs::BugCase{name, {}, {}, name->has_size ? one.made.numbers : bugs::Numbers{}},
          model);
  return model;
}

/// Returns an explanation by bugs that a model lists with a coarse arithmetic beside them.
Explanation with(Explanation one, const bugs::Bug& arithmetic, Model model) {
  one.causes.emplace_back(cause_of(arithmetic));
  one.bugs.push_back(&arithmetic);
  one.model = std::move(model);
  return one;
}

/// Returns the coarsest precision in which tensors are stored, nothing unless all are in half precision.
std::optional<Precision> half_precision_of(const std::vector<ObservedTensor>& tensors) {
  const auto is_stored_in = [](formats::Dtype type) {
    return [type](const ObservedTensor& tensor) { return tensor.tensor.dtype == type; };
  };
  const auto is_bfloat16 = is_stored_in(formats::Dtype::bf16), is_float16 = is_stored_in(formats::Dtype::f16);
  if (!std::ranges::all_of(tensors, [&](const ObservedTensor& t) { return is_bfloat16(t) || is_float16(t); }))
    return std::nullopt;
  return std::ranges::any_of(tensors, is_bfloat16) ? Precision::bfloat16 : Precision::float16;
}

/// Searches for bugs, for a coarse arithmetic, and for both.
class CauseSearch {
 public:
  CauseSearch(const Comparison& c, const MatchResult& matched, Report& report)
      : c_(c), matched_(matched), report_(report) {
    std::vector<ObservedTensor> readable;
    for (std::size_t k = 0; k < c.observed.size(); ++k) {
      if (c.observed[k].readings.empty()) continue;
      readable.push_back(c.observed[k]);
      differs_ = differs_ || !c.agreeing_reading[k];
      is_exact_ = is_exact_ && check::is_exact(c.observed[k].rounding);
    }
    stored_in_half_ = half_precision_of(readable);
    readable_ = std::make_shared<const Tensors>(std::move(readable));
  }

  void run() {
    if (try_fill()) return;
    std::vector<ReadExplanation> right;
    if (differs_) right.push_back({{{}, {}, model(), {}}, readable_});
    if (!is_exact_ && add_rounded(right)) return;  // recognized by its errors
    const std::vector<ReadExplanation> others = try_other_shapes();
    if (!report_.explanations.empty() || infer()) return;
    if (has_unread() && infer_without_unread()) return;
    reads_as_named_ = false;
    for (std::size_t nth = 1; read_otherwise(nth); ++nth)
      if (infer()) return;
    read_otherwise(0);
    leaves_out_agreeing_ = true;
    if (agree_some() && infer()) return;
    leaves_out_agreeing_ = false;
    if (is_exact_ && add_rounded(right)) return;
    if (!add_rounded_bugs() && !add_rounded(others) && !too_noisy_.empty())
      report_.described.insert(report_.described.begin(), too_noisy_);
  }

 private:
  using Tensors = std::vector<ObservedTensor>;
  /// Bugs that a model lists, and the tensors as this model reads them.
  struct ReadExplanation {
    Explanation bugs;
    std::shared_ptr<const Tensors> observed;
  };

  const Model& model() const { return c_.reference.model(); }
  bool agree(const Tensors& observed, const Model& other) const {
    const LazyTrace ours(other);
    return std::ranges::all_of(
        observed, [&](const ObservedTensor& tensor) { return agreeing_reading(tensor, ours, c_.tolerance); });
  }
  void add(Explanation one) {
    const auto same = std::ranges::find_if(report_.explanations, [&](const Explanation& other) {
      return other.causes == one.causes && other.sentences == one.sentences;
    });
    if (same == report_.explanations.end()) return report_.explanations.push_back(std::move(one));
    for (std::string& detail : one.details)
      if (std::ranges::find(same->details, detail) == same->details.end())
        same->details.push_back(std::move(detail));
  }

  /// Whether roundings of the right model, and of its partial sums if these are, do not explain the tensors.
  bool are_more_than_noise(Precision precision, bool with_sums = false);
  bool try_fill();
  bool add_rounded(const std::vector<ReadExplanation>& candidates);
  std::vector<ReadExplanation> try_other_shapes();
  void add_found(const std::vector<FoundBugs>& all);
  std::vector<Explanation> explanations_by(FoundBugs found) const;
  std::vector<ObservedStage> stages() const {
    auto all =
        observed_stages(model(), matched_, report_, leaves_out_agreeing_ ? c_.agreeing_reading : none_);
    if (leaves_out_unread_)
      std::erase_if(all, [&](const ObservedStage& stage) {
        return std::ranges::any_of(c_.observed, [&](const ObservedTensor& tensor) {
          return tensor.readings.empty() && tensor.stage == stage.stage;
        });
      });
    return all;
  }
  /// Whether some tensors, but not all, have no shape of the model.
  bool has_unread() const {
    const auto is_unread = [](const ObservedTensor& tensor) { return tensor.readings.empty(); };
    return differs_ && std::ranges::any_of(c_.observed, is_unread);
  }
  bool infer();
  /// Infers without tensors of other shapes; if that fails, the report stays as it is.
  bool infer_without_unread() {
    auto partly = report_.partly, described = report_.described;
    leaves_out_unread_ = true;
    const bool is_inferred = infer();
    leaves_out_unread_ = false;
    if (!is_inferred) report_.partly = std::move(partly), report_.described = std::move(described);
    return is_inferred;
  }
  bool read_otherwise(std::size_t nth);
  bool agree_some() const {
    return std::ranges::any_of(c_.agreeing_reading, [](const Reading* reading) { return reading; });
  }
  bool leaves_unused(const Model& other) const;
  bool add_rounded_bugs();

  const Comparison& c_;
  const MatchResult& matched_;
  Report& report_;
  std::shared_ptr<const Tensors> readable_;
  const std::vector<const Reading*> none_ = std::vector<const Reading*>(c_.observed.size());
  bool differs_ = false, is_exact_ = true;  ///< of these tensors
  /// Type of the tensors, else these are emulations, which round sums and within a softmax, too.
  std::optional<Precision> stored_in_half_;
  std::string too_noisy_;  ///< what stands out from the noise of half precision
  std::map<std::tuple<Precision, bool, std::vector<const Reading*>>, NoiseVerdict> noise_;  ///< as judged
  bool reads_as_named_ = true;        ///< tensors by the likeliest reading
  bool leaves_out_unread_ = false;    ///< tensors of other shapes, which may follow from a cause
  bool leaves_out_agreeing_ = false;  ///< tensors that agree may be of stages that are not used
};

bool CauseSearch::are_more_than_noise(Precision precision, bool with_sums) {
  const OtherRoundings others{with_sums || !stored_in_half_, !stored_in_half_};
  const auto [judged, is_new] = noise_.try_emplace({precision, others.in_sums, report_.readings});
  NoiseVerdict& noise = judged->second;
  if (is_new)
    noise = judge_noise(model(), observed_stages(model(), matched_, report_, none_), precision, others);
  report_.hidden_row = noise.row, report_.hidden_head = noise.head;
  if (noise.stage && too_noisy_.empty()) too_noisy_ = noise.words;
  return noise.stage.has_value();
}

/// Tries a mask of large negative numbers, which show in the masked scores alone.
bool CauseSearch::try_fill() {
  const auto fill = mask_fill(model(), *readable_);
  if (!fill) return false;
  const bugs::Bug* bug = bugs::find_offered_bug("mask_finite");
  Model filled = bugs::injected(*bug, model());
  if (filled.mask.method == attention::MaskMethod::large_negative) filled.mask.large_negative = *fill;
  if (attention::check(filled) || !agree(*readable_, filled)) return false;
  const std::string number = fmt::format("{:.{}g}", std::abs(*fill), std::abs(*fill) < 1e6 ? 6 : 2);
  add({{std::string(cause_of(*bug))}, {bug}, std::move(filled), {"they are −" + number}});
  return true;
}

/// Adds those of the candidates that explain the tensors when their models are rounded: their inputs alone,
/// or in a coarse arithmetic that leaves such errors.
bool CauseSearch::add_rounded(const std::vector<ReadExplanation>& candidates) {
  std::vector<ExactModel> exact;
  for (const auto& [bugs, observed] : candidates) {
    for (const auto& [type, name] : {std::pair{Precision::float16, "half_precision"},
                                     std::pair{Precision::bfloat16, "bfloat16_precision"}}) {
      if (!c_.token.should_continue()) return false;
      const Model rounded = attention::with_rounded_inputs(bugs.model, type);
      if (!(rounded == bugs.model) && agree(*observed, rounded))
        add(with(bugs, *bugs::find_offered_bug(name), rounded));
    }
    exact.push_back({bugs.model, observed.get()});
  }
  if (!report_.explanations.empty()) return true;
  for (const RoundedModel& found : find_roundings(exact, c_.tolerance, c_.token)) {
    const Explanation& bugs = candidates[found.nth].bugs;
    Precision coarse = precisions_of(found.model).coarsest();
    if (stored_in_half_ && relative_rounding(*stored_in_half_) >= relative_rounding(coarse))
      coarse = *stored_in_half_;
    if (bugs.causes.empty() && is_half(coarse) &&
        are_more_than_noise(coarse, found.model.arithmetic.sums_rounded))
      continue;
    Explanation one = with(bugs, *found.rounding.bug, found.model);
    if (found.rounding.arithmetic == Arithmetic::truncate_to_tf32)
      one.details.emplace_back(
          "their last digits are cut off and not rounded, so that products come out too small");
    add(std::move(one));
  }
  return !report_.explanations.empty();
}

/// Adds bugs that change shapes and explain the tensors; returns all that may be rounded as well.
std::vector<CauseSearch::ReadExplanation> CauseSearch::try_other_shapes() {
  std::vector<ReadExplanation> all;
  for (Explanation& other : other_shapes(model())) {
    if (!c_.token.should_continue()) break;
    c_.token.count(1);
    auto observed = std::make_shared<const Tensors>(reread_tensors(other.model, c_.observed));
    if (observed->empty()) continue;
    if (agree(*observed, other.model)) add(other);
    all.push_back({std::move(other), std::move(observed)});
  }
  return all;
}

/// Adds bugs that were found. If a coarse arithmetic explains what those that a model lists leave, these are
/// the likeliest.
void CauseSearch::add_found(const std::vector<FoundBugs>& all) {
  std::vector<ReadExplanation> listed;
  std::vector<Explanation> others;
  bool agrees = true;
  for (const FoundBugs& found : all)
    for (Explanation& one : explanations_by(found)) {
      if (leaves_out_agreeing_ && (one.overriding || !leaves_unused(one.model))) continue;
      if (one.overriding) {
        others.push_back(std::move(one));
      } else {
        agrees = agrees && agree(*readable_, one.model);
        listed.push_back({std::move(one), readable_});
      }
    }
  if (!agrees && differs_ && add_rounded(listed)) return;
  for (ReadExplanation& one : listed) add(std::move(one.bugs));
  for (Explanation& one : others) add(std::move(one));
}

/// Returns explanations by found bugs, and by others that cannot be told from them.
std::vector<Explanation> CauseSearch::explanations_by(FoundBugs found) const {
  const auto is_mean = [](const FoundBug& bug) {
    return bug.made.bug->name == std::string_view("reported") && bug.made.form.ends_with(":averaged");
  };
  if (found.bugs.size() > 1 && std::erase_if(found.bugs, is_mean) > 0) {  // it is read as a mean anyway
    Editing now(std::make_shared<const Model>(found.edited->model()));
    for (const FoundBug& bug : found.bugs) bug.made.edit(now);
    found.edited = std::make_shared<const Editing>(std::move(now));
  }
  std::vector<FoundBugs> all{found};
  for (std::size_t k = 0; k < found.bugs.size(); ++k)
    for (const bugs::Bug* synonym : found.bugs[k].synonyms) {
      all.push_back(found);
      all.back().bugs[k].names = {synonym};
      for (FoundBug& bug : all.back().bugs) bug.sentence.clear();
    }
  std::vector<Explanation> explanations;
  for (const FoundBugs& each : all) {
    Explanation one{{}, {}, model(), {}};
    for (const FoundBug& bug : each.bugs) {
      if (!bug.sentence.empty()) one.sentences.push_back(bug.sentence);
      for (const bugs::Bug* name : bug.names) {
        one.bugs.push_back(name);
        const std::string cause(cause_of(*name));
        if (std::ranges::find(one.causes, cause) == one.causes.end()) one.causes.push_back(cause);
      }
    }
    const bool have_titles = std::ranges::all_of(each.bugs, &FoundBug::has_titles);
    Model listed = have_titles ? with_listed(model(), each) : model();
    if (have_titles && has_numbers_of(listed, *each.edited))
      one.model = std::move(listed);
    else
      one.overriding = each.edited;
    if (!have_titles) one.bugs.clear();
    explanations.push_back(std::move(one));
  }
  return explanations;
}

/// Infers from the numbers which bugs explain the tensors, or adds what is partly known.
bool CauseSearch::infer() {
  if (!can_infer(model())) return false;
  const std::vector<ObservedStage> given = stages();
  if (given.empty()) return false;
  const std::size_t n_numbers =
      model().sequences.size() * model().n_heads * model().n_tokens() * model().n_keys();
  std::optional<BugSearchResult> searched;
  std::string of_what;
  if (const auto first = first_tokens(model(), max_inference_tokens)) {
    searched = find_bugs(first, first_rows(given, max_inference_tokens), c_.token, max_cells_of_many);
    of_what = fmt::format(" (inferred from the first {} tokens)", max_inference_tokens);
  }
  if (!searched || searched->agrees) {
    if (n_numbers > max_stage_numbers) return false;
    of_what.clear();
    searched = find_bugs(std::make_shared<const Model>(model()), given, c_.token,
                         n_numbers > many_numbers ? max_cells_of_many : max_cells_of_few);
  }
  BugSearchResult& found = *searched;
  const auto is_on_grid = [&](const ObservedTensor& observed) {
    return coarsest_type(observed.tensor.numbers) != formats::Dtype::f32 &&
           !is_exact(coarsest_type(observed.tensor.numbers));
  };
  bool are_on_grid = found.agrees && is_half(found.precision);
  for (std::size_t k = 0; k < matched_.observed.size(); ++k)
    are_on_grid = are_on_grid && (c_.agreeing_reading[k] || is_on_grid(matched_.observed[k]));
  are_on_grid = are_on_grid && !are_more_than_noise(found.precision);
  if (are_on_grid) report_.rounding = attention::name_of(found.precision);
  for (FoundBugs& each : found.found)
    if (!of_what.empty()) each.bugs.back().sentence += of_what;
  add_found(found.found);
  if (reads_as_named_ || !report_.explanations.empty()) {
    report_.agreeing_after = found.agreeing_after;
    report_.is_harmless = found.is_harmless;
    if (!found.note.empty()) report_.notes.push_back("Inferred: " + found.note);
    report_.partly = found.partly, report_.described = found.described;
  }
  return !report_.explanations.empty() || are_on_grid;
}

/// Reads tensors that differ in the nth way, or the last; returns whether one of them has so many.
bool CauseSearch::read_otherwise(std::size_t nth) {
  bool has_nth = false;
  for (std::size_t k = 0; k < c_.observed.size(); ++k) {
    const std::vector<Reading>& all = c_.observed[k].readings;
    if (c_.agreeing_reading[k] || all.empty()) continue;
    has_nth = has_nth || nth < all.size();
    report_.readings[k] = &all[std::min(nth, all.size() - 1)];
  }
  return has_nth;
}

/// Whether tensors that agree with the right model also agree with another one, or are of stages that it does
/// not have: these were computed and not used.
bool CauseSearch::leaves_unused(const Model& other) const {
  const LazyTrace ours(other);
  for (std::size_t k = 0; k < c_.observed.size(); ++k)
    if (const Reading* reading = c_.agreeing_reading[k];
        reading && attention::info(reading->stage).present(other) &&
        !agreeing_reading(c_.observed[k], ours, c_.tolerance))
      return false;
  return true;
}

/// Adds bugs that a model lists and that explain the tensors within a coarse arithmetic, if their errors are
/// those that it leaves.
bool CauseSearch::add_rounded_bugs() {
  if (!differs_ || !can_infer(model())) return false;
  const std::vector<ObservedStage> given = stages();
  const auto right = std::make_shared<const Model>(model());
  std::map<std::size_t, std::vector<ReadExplanation>> by_count;  // few bugs are likelier than many
  for (const Precision coarse : {Precision::float32, Precision::float16, Precision::bfloat16}) {
    if (!c_.token.should_continue()) return false;
    for (const FoundBugs& found : find_bugs(right, given, c_.token, max_cells_of_rounded, coarse).found)
      for (Explanation& one : explanations_by(found))
        if (!one.overriding) by_count[found.bugs.size()].push_back({std::move(one), readable_});
  }
  return std::ranges::any_of(by_count, [&](const auto& of_count) { return add_rounded(of_count.second); });
}

}  // namespace

std::vector<Explanation> other_shapes(const Model& model) {
  std::vector<Explanation> all;
  const auto add = [&](const char* name, Model other, std::string sentence) {
    const bugs::Bug* bug = bugs::find_offered_bug(name);
    if (!attention::check(other))
      all.push_back({{std::string(cause_of(*bug))}, {bug}, std::move(other), {}, {std::move(sentence)}});
  };
  for (std::size_t n = 1; n <= model.d_out(); ++n) {
    if (model.d_out() % n != 0) continue;
    Model other = attention::with_heads(model, n);
    if (n != model.n_heads && other.n_heads == n)
      add("n_heads_other", std::move(other),
          fmt::format("there {} {} instead of {}", n == 1 ? "is" : "are", text::counted(n, "head"),
                      model.n_heads));
  }
  if (model.projections && model.projections->output && model.d_output() != model.d_out())
    add("output_projection_missing",
        bugs::injected(*bugs::find_offered_bug("output_projection_missing"), model),
        "the output projection is missing");
  return all;
}

void find_causes(const Comparison& comparison, const MatchResult& matched, Report& report) {
  CauseSearch(comparison, matched, report).run();
  if (!report.explanations.empty()) report.partly.clear(), report.described.clear();
}

void judge_agreement_in_half(const Comparison& comparison, const MatchResult& matched, Report& report) {
  std::optional<Precision> coarsest;
  for (const ObservedTensor& tensor : comparison.observed) {
    if (tensor.rounding == formats::Dtype::bf16) coarsest = Precision::bfloat16;
    if (tensor.rounding == formats::Dtype::f16 && !coarsest) coarsest = Precision::float16;
  }
  if (!coarsest) return;
  const Model& model = comparison.reference.model();
  const std::vector<const Reading*> none(comparison.observed.size());
  const NoiseVerdict noise = judge_noise(model, observed_stages(model, matched, report, none), *coarsest);
  if (noise.stage) {
    report.agrees = false, report.described.push_back(noise.words);
    return;
  }
  report.rounding = attention::name_of(*coarsest);
  report.hidden_row = noise.row, report.hidden_head = noise.head;
}

Model injected(const Explanation& explanation) {
  return explanation.overriding ? with_stages_of(*explanation.overriding, explanation.model)
                                : explanation.model;
}

}  // namespace core::check
