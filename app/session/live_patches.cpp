#include "app/session/live_patches.hpp"

#include <algorithm>

#include "app/session/full_model_reading.hpp"

namespace app {

namespace circuits = core::circuits;
namespace transformer = core::transformer;
using transformer::PatchedPart;

namespace {

std::size_t n_patches(const circuits::PatchPlan& plan, const transformer::Sizes& sizes,
                      std::size_t n_tokens) {
  const bool has_positions = plan.by_position || plan.part == PatchedPart::residual;
  return (plan.receiver ? plan.receiver->layer : sizes.n_layers) * transformer::n_parts(sizes, plan.part) *
         (has_positions ? n_tokens : 1);
}

}  // namespace

circuits::PatchPlan plan_of(const PatchesLook& look) {
  return {transformer::patched_parts()[look.part].part, look.by_position, look.receiver};
}

void LivePatches::clear() {
  for (Map& map : maps_) map.result.clear(), map.wanted.reset(), map.growing.reset();
  error_.clear();
}

void LivePatches::follow(Map& map, const core::experiment::Experiment& both, bool begins) {
  const Key key = *map.wanted;
  if (map.result.matches(key)) {
    map.growing.reset();
    map.known = map.result.value()->map;
    error_ = map.result.value()->error;
    return;
  }
  if (!begins) return map.result.cancel();
  if (map.result.needs(key)) {
    map.growing = std::make_shared<Growing>();
    map.result.begin(
        key, Schedule::background,
        [key, both, pool = pool_, growing = map.growing](const core::StopToken& token) {
          MapResult result;
          const auto on_more = [&](const circuits::PatchMap& known) {
            const std::scoped_lock lock(growing->mutex);
            growing->map = known;
          };
          try {
            result.map = circuits::patch(*key.model, both, key.prompts, key.plan, {*pool, token}, on_more);
          } catch (const core::Stopped&) {
            throw;
          } catch (const core::Error& error) {
            result.error = error.what();
          }
          return result;
        });
  }
  if (!map.growing) return;
  const std::scoped_lock lock(map.growing->mutex);
  if (map.growing->map.n_known != map.known.n_known) map.known = map.growing->map;
}

void LivePatches::follow(const FullModelState& full_model, const ReadingRef& now, const ReadingRef& before,
                         const core::experiment::WatchedDifference* watched, const PatchesLook& look) {
  constexpr double quick_cost = 3e10;  // parameters × tokens × patches
  const auto& of = full_model.model->description();
  const std::size_t n_tokens = now->pass->ids.size();
  if (!full_model.experiment.first || !watched) return clear();
  std::string reason = watched->error;
  if (reason.empty() && now->pass->ids == before->pass->ids) reason = "Type another prompt B.";
  error_.clear();
  if (!reason.empty()) {
    clear();
    error_ = reason;
    return;
  }
  if (!pool_) pool_ = std::make_shared<core::ThreadPool>();
  const circuits::PatchPlan plans[]{plan_of(look), {}, {PatchedPart::mlp}, {PatchedPart::residual}};
  bool begins = look.runs;
  for (std::size_t k = 0; k < maps_.size() && error_.empty(); ++k) {
    Map& map = maps_[k];
    const Key key{
        full_model.model,
        {before->pass->ids, now->pass->ids, watched->answer, watched->against, alignment_of({now, before})},
        plans[k]};
    const double cost =
        of.n_parameters * static_cast<double>(n_tokens * n_patches(plans[k], of.sizes, n_tokens));
    if (k > 0 && (plans[k] == plans[0] || cost > quick_cost || of.is_attached)) {
      map.result.cancel(), map.wanted.reset();
      continue;
    }
    if (map.wanted != key) {
      map.wanted = key, map.known = {};
      map.known.plan = plans[k];
    }
    follow(map, full_model.experiment, begins);
    begins = begins && map.result.matches(key);
  }
}

transformer::Patch selected_patch(const Pending& now) {
  const PatchesLook& look = now.layers->patches;
  const auto part = transformer::patched_parts()[look.part].part;
  const auto& sizes = now.full_model->model->description().sizes;
  const std::size_t n = transformer::n_parts(sizes, part);
  transformer::Patch patch{now.full_model->experiment.layer, part, 0, std::nullopt};
  if (n > 1) patch.index = std::min(now.look.head, sizes.n_heads - 1) / (sizes.n_heads / n);
  const BothReadings* both = now.reading->readings();
  if (both && (look.by_position || part == PatchedPart::residual))
    patch.position = marked_token(now.look, *both->now);
  return patch;
}

const circuits::PatchMap* LivePatches::of(const circuits::PatchPlan& plan) const {
  for (const Map& map : maps_)
    if (map.wanted && map.wanted->plan == plan && map.known.n_known > 0) return &map.known;
  return nullptr;
}

std::pair<std::size_t, std::size_t> LivePatches::progress() const {
  std::pair<std::size_t, std::size_t> n;
  for (const Map& map : maps_)
    if (map.wanted) {
      n.first += map.known.n_known;
      n.second += n_patches(map.wanted->plan, map.wanted->model->description().sizes,
                            map.wanted->prompts.corrupt.size());
    }
  return n;
}

bool LivePatches::is_busy() const {
  return std::ranges::any_of(maps_, [](const Map& map) { return map.result.is_busy(); });
}

core::formats::LabeledMatrix labeled(const circuits::PatchMap& map) {
  core::formats::LabeledMatrix matrix{map.recovered, {}, {}};
  for (std::size_t i = 0; i < map.recovered.n_rows; ++i) matrix.row_labels.push_back(map.row_name(i));
  for (std::size_t j = 0; j < map.recovered.n_cols; ++j) matrix.column_labels.push_back(std::to_string(j));
  return matrix;
}

}  // namespace app
