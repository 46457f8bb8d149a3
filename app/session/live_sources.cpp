#include "app/session/live_sources.hpp"

#include <algorithm>

#include "app/session/full_model_reading.hpp"

namespace app {

namespace circuits = core::circuits;
using core::attention::Stage;

bool is_score(const core::explain::CellAddress& cell) {
  for (const Stage stage : {Stage::scores, Stage::scaled_scores, Stage::capped_scores, Stage::biased_scores,
                            Stage::masked_scores, Stage::weights})
    if (cell.stage == stage) return true;
  return false;
}

bool is_written_sum(const core::explain::CellAddress& cell) {
  return cell.stage == Stage::contexts || cell.stage == Stage::embeddings;
}

std::size_t marked_token(const Look& look, const core::experiment::TextReading& now) {
  const auto& pinned = look.tokens.pinned_query;
  return pinned && *pinned < now.names.size() ? *pinned : now.row();
}

std::optional<CellRef> largest_weight(const Pending& now) {
  const BothReadings* both = now.reading ? now.reading->readings() : nullptr;
  if (!both || both->now->block != 1 || !now.full_model) return std::nullopt;
  const auto& heads = both->now->layers.at(now.full_model->experiment.layer)->heads;
  if (now.look.head >= heads.size()) return std::nullopt;
  const std::size_t row = marked_token(now.look, *both->now);
  return CellRef{Stage::weights, now.look.head, row, heads[now.look.head].map.row(row).index_max()};
}

std::string no_sources_reason(const FullModelState& full_model) {
  if (full_model.model->description().is_attached)
    return "Sources need the numbers of every layer, which an attached model does not send; open its files.";
  if (full_model.experiment.is_edited())
    return "Sources are of the model without edits. Discard the edits to see them.";
  return "";
}

std::optional<LiveSources::Key> LiveSources::key_of(const FullModelState& full_model,
                                                    const ReadingRef& reading,
                                                    const core::explain::CellAddress& cell) {
  const std::size_t n = reading->pass->ids.size();
  if (!is_score(cell) || !no_sources_reason(full_model).empty() || cell.row >= n || cell.column >= n ||
      reading->pass->computation_id(full_model.layer) != full_model.computation_id)
    return std::nullopt;
  const auto* own = dynamic_cast<const core::transformer::Transformer*>(full_model.model.get());
  if (!own) return std::nullopt;
  const auto [begin, end] = core::transformer::visible_keys(
      core::transformer::score_rules_of(own->architecture(), full_model.layer), cell.row, n);
  if (cell.column < begin || cell.column >= end) return std::nullopt;  // masked
  return Key{reading->pass, {full_model.layer, cell.head, cell.row, cell.column}};
}

std::optional<LiveSources::SumKey> LiveSources::sum_key(const FullModelState& full_model,
                                                        const ReadingRef& reading,
                                                        const core::explain::CellAddress& cell) {
  if (!is_written_sum(cell) || !no_sources_reason(full_model).empty() ||
      cell.row >= reading->pass->ids.size() ||
      reading->pass->computation_id(full_model.layer) != full_model.computation_id)
    return std::nullopt;
  return SumKey{reading->pass, full_model.layer, cell};
}

void LiveSources::follow(const FullModelState& full_model, const ReadingRef& reading,
                         const std::optional<core::explain::CellAddress>& cell,
                         const std::shared_ptr<core::ThreadPool>& pool) {
  const auto key = cell ? key_of(full_model, reading, *cell) : std::nullopt;
  const auto* own = dynamic_cast<const core::transformer::Transformer*>(full_model.model.get());
  if (const auto sum = cell && own ? sum_key(full_model, reading, *cell) : std::nullopt;
      sum && sum_.needs(*sum))
    sum_.begin(*sum, Schedule::background,
               [sum = *sum, model = full_model.model, own, pool](const core::StopToken& token) {
                 const circuits::Float64Model exact(*own);
                 const auto& [pass, layer, of] = sum;
                 return of.stage == Stage::contexts
                            ? circuits::context_sources(exact, pass->ids, {layer, of.head, of.row, 0},
                                                        of.column, {*pool, token})
                            : circuits::stream_sources(exact, pass->ids, layer, of.row, of.column,
                                                       {*pool, token});
               });
  if (!key || !own) return direct_.cancel(), complete_.cancel();
  const auto compute = [key = *key, model = full_model.model, own, pool](circuits::Totals totals) {
    return [key, model, own, pool, totals](const core::StopToken& token) {
      return circuits::sources_of(circuits::Float64Model(*own), key.pass->ids, key.cell, {*pool, token},
                                  totals);
    };
  };
  if (complete_.matches(*key)) return;
  if (direct_.needs(*key)) direct_.begin(*key, Schedule::background, compute(circuits::Totals::none));
  if (direct_.matches(*key) && complete_.needs(*key))
    complete_.begin(*key, Schedule::background, compute(circuits::Totals::all));
}

const circuits::WrittenSum* LiveSources::sum_of(const FullModelState& full_model, const ReadingRef& reading,
                                                const core::explain::CellAddress& cell) const {
  const auto key = sum_key(full_model, reading, cell);
  return key && sum_.matches(*key) ? sum_.value() : nullptr;
}

const circuits::ScoreSources* LiveSources::of(const FullModelState& full_model, const ReadingRef& reading,
                                              const core::explain::CellAddress& cell) const {
  const auto key = key_of(full_model, reading, cell);
  if (!key) return nullptr;
  return complete_.matches(*key) ? complete_.value() : direct_.matches(*key) ? direct_.value() : nullptr;
}

}  // namespace app
