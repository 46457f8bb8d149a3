#include "app/session/picture_source.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "app/session/live_trace.hpp"
#include "core/graph/visible.hpp"

namespace app {

ValueRange value_range(const arma::mat& numbers) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr arma::uword lanes = 8;  // independent and branch-free, so that the compiler can vectorize
  std::array<double, lanes> smallest, largest, least;
  smallest.fill(infinity), largest.fill(-infinity), least.fill(infinity);
  const auto add = [&](arma::uword k, double v) {
    const double size = std::abs(v);
    const double low = size < infinity ? v : infinity, high = size < infinity ? v : -infinity,
                 from_zero = size > 0 ? size : infinity;
    smallest[k] = low < smallest[k] ? low : smallest[k];
    largest[k] = high > largest[k] ? high : largest[k];
    least[k] = from_zero < least[k] ? from_zero : least[k];
  };
  const double* v = numbers.memptr();
  arma::uword i = 0;
  for (; i + lanes <= numbers.n_elem; i += lanes)
    for (arma::uword k = 0; k < lanes; ++k) add(k, v[i + k]);
  for (; i < numbers.n_elem; ++i) add(i % lanes, v[i]);
  ValueRange e{*std::min_element(smallest.begin(), smallest.end()),
               *std::max_element(largest.begin(), largest.end()),
               *std::min_element(least.begin(), least.end())};
  if (e.least == infinity) e.least = 0;
  return e.smallest <= e.largest ? e : ValueRange{};
}

ClippedCounts count_clipped(const arma::mat& numbers, const ColorLimits& range) {
  ClippedCounts b;
  for (const double v : numbers) {
    b.below += v < range.low && v != -std::numeric_limits<double>::infinity();  // −∞ has a mark of its own
    b.above += v > range.high;
    b.zero += v == 0;
    b.small += v != 0 && std::abs(v) < range.least;
  }
  return b;
}

void ValueRanges::set_version(std::uint64_t version) {
  if (version == version_) return;
  version_ = version;
  known_.merge(last_);  // known ranges win, missing ones come from earlier versions
  last_ = std::exchange(known_, {});
  counted_.clear();
}

const ClippedCounts& ValueRanges::clipped_counts(const core::attention::Trace& trace, std::uint64_t version,
                                                 core::attention::Stage stage, std::size_t head,
                                                 const ColorLimits& range) {
  set_version(version);
  const core::attention::StageInfo& row = core::attention::info(stage);
  const auto [it, is_new] = counted_.try_emplace({stage, row.per_head ? head : 0});
  Counted& c = it->second;
  if (is_new || c.range != range) c = {range, count_clipped(trace.at(row.stage, head), range)};
  return c.cells;
}

const ValueRange& ValueRanges::of(const core::attention::Trace& trace, std::uint64_t version,
                                  core::attention::Stage stage, std::size_t head) {
  set_version(version);
  const core::attention::StageInfo& row = core::attention::info(stage);
  const auto [it, is_new] = known_.try_emplace({stage, row.per_head ? head : 0});
  if (is_new) it->second = value_range(trace.at(row.stage, head));
  return it->second;
}

const ValueRange& ValueRanges::remember(std::uint64_t version, core::attention::Stage stage, std::size_t head,
                                        const ValueRange& number_range) {
  set_version(version);
  return known_[{stage, core::attention::info(stage).per_head ? head : 0}] = number_range;
}

const ValueRange& ValueRanges::last(core::attention::Stage stage, std::size_t head) const {
  const std::pair key{stage, core::attention::info(stage).per_head ? head : 0};
  for (const auto* extents : {&known_, &last_})
    if (const auto it = extents->find(key); it != extents->end()) return it->second;
  return nothing_;
}

namespace {

using core::attention::Coloring;
using core::attention::Model;
using core::attention::Stage;
using core::attention::StageInfo;
using core::attention::StageSet;

/// Returns the value range of all numbers that set the color range of one matrix.
ValueRange range_in_force(ColorRangeRule rule, const Model& model, const StageSet& stages,
                          const ValueRangeFunction& number_range, const StageInfo& stage, std::size_t head) {
  ValueRange all;
  const auto add = [&](const ValueRange& e) {
    all.smallest = std::min(all.smallest, e.smallest);
    all.largest = std::max(all.largest, e.largest);
    if (e.least > 0) all.least = all.least > 0 ? std::min(all.least, e.least) : e.least;
  };
  for (const StageInfo& other : core::attention::stages()) {
    const bool counts =
        other.stage == stage.stage || (rule == ColorRangeRule::all_heads && other.coloring == stage.coloring);
    if (!counts || !contains(stages, other.stage)) continue;
    const bool one_head = !other.per_head || rule == ColorRangeRule::matrix || rule == ColorRangeRule::typed;
    const std::size_t first = one_head && other.per_head ? head : 0;
    for (std::size_t h = first; h < (one_head ? first + 1 : model.n_heads); ++h)
      add(number_range(other.stage, h));
  }
  return all;
}

/// Returns where a logarithmic range begins: a power of ten, for numbers of at most four decades.
double least_of(const ColorLimits& ends, double smallest) {
  constexpr double decades = 1e-4;
  if (ends.low > 0) return ends.low;
  if (ends.high < 0) return -ends.high;
  const double largest = std::max(-ends.low, ends.high);
  if (!(largest > 0)) return 0;
  const double least = std::max(smallest, largest * decades);
  return std::min(std::pow(10, std::floor(std::log10(least))), largest / 10);
}

/// Returns the ends as typed, or as they follow from the numbers.
ColorLimits unlocked_color_limits(const ColorChoice& chosen, const Model& model, const StageSet& stages,
                                  const ValueRangeFunction& number_range, Stage stage, std::size_t head) {
  const StageInfo& row = core::attention::info(stage);
  const double top = core::attention::color_range_max(model, stage);
  if (row.coloring == Coloring::mask) return {0, top};
  const bool is_signed = row.coloring == Coloring::signed_values;
  const bool typed = chosen.range == ColorRangeRule::typed;
  const bool is_logarithmic = chosen.is_logarithmic(row.coloring);
  if (!is_signed && !is_logarithmic) return typed ? chosen.typed_weights : ColorLimits{0, top};
  const ValueRange of = range_in_force(chosen.range, model, stages, number_range, row, head);
  const double most = std::max(-of.smallest, of.largest);
  ColorLimits ends = is_signed ? ColorLimits{-most, most} : ColorLimits{0, top};
  if (typed) ends = is_signed ? chosen.typed_values : chosen.typed_weights;
  if (is_logarithmic) ends.least = least_of(ends, of.least);
  return ends;
}

using core::attention::Stage;

constexpr std::uint64_t quick_picture_cells = 100'000;

/// Returns the key of a stage in the maps.
std::pair<Stage, std::size_t> place_of(Stage stage, std::size_t head) {
  return {stage, core::attention::info(stage).per_head ? head : 0};
}

}  // namespace

ColorLimits color_limits(const ColorChoice& chosen, const Model& model, const StageSet& stages,
                         const ValueRangeFunction& number_range, Stage stage, std::size_t head) {
  const std::size_t of = core::attention::info(stage).per_head ? head : 0;
  if (chosen.locked)
    if (const auto it = chosen.locked->find({stage, of}); it != chosen.locked->end()) return it->second;
  return unlocked_color_limits(chosen, model, stages, number_range, stage, head);
}

core::figures::DisplayList colored_figure(const Model& model, const core::attention::Trace& trace,
                                          core::figures::FigureOptions options, const ColorChoice& chosen) {
  const auto number_range = [&](Stage stage, std::size_t head) { return value_range(trace.at(stage, head)); };
  options.sequential = chosen.sequential, options.diverging = chosen.diverging;
  options.range = [&, stages = existing_stages(model)](Stage stage,
                                                       std::size_t head) -> core::figures::ColorRange {
    const ColorLimits ends = color_limits(chosen, model, stages, number_range, stage, head);
    return {ends.low, ends.high, ends.least};
  };
  return core::figures::figure(model, trace, options);
}

void PictureSource::follow(const LiveTrace& live) {
  live_ = &live;
  const bool is_other = std::exchange(version_, live.version()) != live.version();
  if (is_other) {
    stop();
    extents_.clear();
    failed_.clear();
    changes_.clear();
    if (!live.change().everything) changes_ = live.change().heads;
    const core::attention::Model& model = live.model();
    const MaskKey mask{model.mask, live.trace().sequence, model.n_tokens(), model.n_keys(),
                       contains(live.stages(), Stage::mask)};
    if (std::exchange(mask_, mask) != mask) ++mask_version_;
  } else {
    take_result();
    if (request_) begin_request(*request_);
    request_.reset();
  }
  follow_mask();
}

core::attention::fast::RowView PictureSource::rows(core::attention::Stage stage, std::size_t head) const {
  if (!live_ || head >= live_->trace().n_heads()) return {};
  return live_->rows(stage, head);
}

void PictureSource::follow_mask() {
  const Schedule when =
      mask_->n_tokens * mask_->n_keys <= quick_picture_cells ? Schedule::immediate : Schedule::background;
  if (!visible_.needs(*mask_, when)) return;
  visible_.begin(*mask_, when,
                 [model = live_->model(), is_known = mask_->is_known,
                  sequence = mask_->sequence](const core::StopToken&) -> arma::mat {
                   return is_known ? core::attention::visibility_matrix(model, sequence)
                                   : arma::mat(model.n_tokens(), model.n_keys(), arma::fill::ones);
                 });
}

bool PictureSource::is_small(Stage stage, std::size_t head) const {
  if (!live_) return true;
  const core::attention::StageMatrix& numbers = live_->trace().at(stage, head);
  return numbers.n_rows() * numbers.n_cols() <= quick_picture_cells;
}

bool PictureSource::is_ready(Stage stage, std::size_t head) const {
  if (is_small(stage, head) || extents_.contains(place_of(stage, head))) return true;
  const StageRequest request{place_of(stage, head), {}};
  if ((!request_ || request_->clip_range) && !has_failed(request)) request_ = request;
  return false;
}

bool PictureSource::has_failed(const StageRequest& request) const {
  return std::ranges::find(failed_, request) != failed_.end();
}

const ValueRange* PictureSource::number_range(Stage stage, std::size_t head) const {
  const auto found = extents_.find(place_of(stage, head));
  return found == extents_.end() ? nullptr : &found->second;
}

const ClippedCounts* PictureSource::clipped_counts(Stage stage, std::size_t head,
                                                   const ColorLimits& range) const {
  const StageKey place = place_of(stage, head);
  const auto found = counted_.find(place);
  const bool is_known = found != counted_.end() && found->second.range == range;
  const StageRequest request{place, range};
  if ((!is_known || found->second.version != version_) && !request_ && !has_failed(request))
    request_ = request;
  return is_known ? &found->second.cells : nullptr;
}

void PictureSource::stop() {
  request_.reset();
  results_.clear();
}

void PictureSource::take_result() {
  if (!results_.value()) return;
  const StageRequest request = results_.key()->request;
  const Result answer = *results_.take();
  if (const auto* cells = std::get_if<ClippedCounts>(&answer))
    counted_[request.what] = {*request.clip_range, version_, *cells};
  else
    extents_[request.what] = std::get<ValueRange>(answer);
}

void PictureSource::begin_request(const StageRequest& request) {
  const RequestKey request_key{version_, request};
  if (!results_.needs(request_key)) {
    if (results_.has_failed(request_key)) failed_.push_back(request);
    return;
  }
  const ReadLock lock = live_->read_lock();
  results_.begin(
      request_key, Schedule::background,
      [trace = lock.trace, request](const core::StopToken&) -> Result {
        const arma::mat& numbers = *trace->at(request.what.first, request.what.second);
        if (request.clip_range) return count_clipped(numbers, *request.clip_range);
        return value_range(numbers);
      },
      lock.preempted);
}

const core::attention::fast::HeadChange* PictureSource::change(std::size_t head) const {
  return head < changes_.size() ? &changes_[head] : nullptr;
}

}  // namespace app
