#include "app/session/live_circuits.hpp"

namespace app {

namespace circuits = core::circuits;

void LiveCircuits::follow(const FullModelState& full_model, const ReadingRef& reading,
                          const std::optional<std::size_t>& token, std::size_t head, bool is_shown,
                          const std::shared_ptr<core::ThreadPool>& pool) {
  constexpr std::size_t n_pairs = 8;
  const core::transformer::ModelRef& model = full_model.model;
  const auto* own = dynamic_cast<const core::transformer::Transformer*>(model.get());
  if (!own || !is_shown) return composition_.cancel(), pairs_.cancel(), logit_.cancel();
  const auto& sizes = model->description().sizes;
  const auto run = [&](auto& value, const auto& key, const auto& compute) {
    if (value.needs(key))
      value.begin(key, Schedule::background, [key, model, own, pool, compute](const core::StopToken& stop) {
        return compute(circuits::Float64Model(*own), key, core::transformer::CallContext{*pool, stop});
      });
  };
  if (!(composition_.key() && *composition_.key() == model)) composition_.clear();
  if (sizes.n_layers > 1)
    run(composition_, model, [](const auto& exact, const auto&, const auto& context) {
      return circuits::composition(exact, context);
    });
  const HeadKey of{model, full_model.experiment.layer, std::min(head, sizes.n_heads - 1)};
  if (!pairs_.matches(of)) pairs_.clear();
  if (model->description().no_prediction_reason.empty())
    run(pairs_, of, [](const auto& exact, const HeadKey& key, const auto& context) {
      return circuits::head_circuits(exact, key.layer, key.head, n_pairs, context);
    });
  const LogitKey logit{reading->pass, token.value_or(0)};
  if (!logit_.matches(logit)) logit_.clear();
  if (token && model->description().has_logit_attributions && reading->place &&
      !reading->experiment.is_edited())
    run(logit_, logit, [](const auto& exact, const LogitKey& key, const auto& context) {
      return circuits::logit_sources(exact, key.pass->ids, key.token, context);
    });
}

}  // namespace app
