#include "app/session/live_gradient.hpp"

#include <algorithm>

#include "app/session/command.hpp"
#include "app/session/navigation.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"

namespace app {

void LiveGradient::follow(const LiveTrace& live, const std::optional<core::graph::Target>& of) {
  if (!of) {
    key_.reset();
    return gradients_.clear();
  }
  key_ = Key{live.version(), of};
  const core::attention::Model& model = live.model();
  const bool is_quick = std::max(model.n_tokens(), model.n_keys()) <= max_immediate;
  const Schedule when = is_quick ? Schedule::immediate : Schedule::background;
  if (gradients_.needs(*key_, when)) begin(live, *of, when);
  if (const Key* newest = gradients_.key(); newest && seen_ != *newest) seen_ = *newest, ++version_;
}

void LiveGradient::begin(const LiveTrace& live, const core::graph::Target& of, Schedule when) {
  gradients_.begin(*key_, when,
                   [model = live.model(), graph = live.graph(), sequence = live.sequence(),
                    of](const core::StopToken& token) {
                     return core::graph::gradients(graph, model, sequence, of, &token);
                   });
}

std::vector<core::attention::MatrixRef> stepped_matrices(const core::attention::Model& model,
                                                         const Look& look) {
  using core::attention::MatrixName;
  if (look.gradient.along == StepAlong::edited) return {edited_place(look, model)};
  std::vector<core::attention::MatrixRef> places;
  for (std::size_t k = 0; k < core::attention::n_matrix_names; ++k) {
    const auto name = static_cast<MatrixName>(k);
    const bool is_input = name == MatrixName::embeddings || name == MatrixName::key_embeddings;
    if (is_input != (look.gradient.along == StepAlong::embeddings)) continue;
    const bool has_several = name == MatrixName::score_bias;
    const std::size_t n = has_several ? model.additions.score_bias.size() : 1;
    for (std::size_t nth = 0; nth < n; ++nth) places.push_back({name, is_input ? look.sequence : nth});
  }
  return places;
}

double predicted_change(const core::graph::Gradients& all, const core::attention::Model& model,
                        const Look& look) {
  double sum = 0;
  for (const auto& place : stepped_matrices(model, look)) sum += arma::accu(arma::square(all.of(place)));
  return look.gradient.step * sum;
}

void Store::handle(const ShowGradient& command) {
  if (command.of == view_.look.gradient.of) return;
  if (command.of) {
    const core::attention::Model& model = document_.model;
    require_stage(core::graph::attention(model), model, *command.of);
    cells_of(*command.of, shape_of(model, command.of->stage));
  }
  record_step("", command.of ? "the gradient of " + text_of(*command.of) : "the end of the gradient");
  view_.look.gradient.of = command.of;
}

void Store::handle(const StepAlongGradient& command) {
  const Look& look = view_.look;
  if (!look.gradient.of) throw core::Error("A step needs the gradient of a number; none is shown.");
  if (!is_up_to_date() || !live_gradient_.is_current())
    throw core::Error("The gradients are still being computed.");
  const core::graph::Gradients& all = *live_gradient_.gradients();
  core::attention::Model after = document_.model;
  for (const auto& place : stepped_matrices(after, look)) {
    const arma::mat& gradient = all.of(place);
    if (gradient.empty()) continue;
    if (!gradient.is_finite())
      throw core::Error(std::string("The gradient of ") + symbol(place.name) + " is not a number.");
    auto& numbers = *find_matrix(after, place);
    numbers = arma::mat(*numbers + (command.against ? -look.gradient.step : look.gradient.step) * gradient);
  }
  const std::string words =
      command.against ? "a step against the gradient of " : "a step along the gradient of ";
  handle(ApplyEdit{core::editing::ReplaceModel{std::move(after), words + text_of(*look.gradient.of)}});
}

}  // namespace app
