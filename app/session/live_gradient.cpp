#include "app/session/live_gradient.hpp"

#include <algorithm>

#include "app/session/command.hpp"
#include "app/session/navigation.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"

namespace app {

namespace {

/// Changes a model by a step times the gradients of some of its matrices.
void add_gradients(core::attention::Model& model, const core::graph::Gradients& all,
                   const std::vector<core::attention::MatrixRef>& places, double step) {
  for (const auto& place : places) {
    const arma::mat& gradient = all.of(place);
    if (gradient.empty()) continue;
    auto& numbers = *find_matrix(model, place);
    numbers = arma::mat(*numbers + step * gradient);
  }
}

}  // namespace

void LiveGradient::follow(const LiveTrace& live, const Look& look) {
  const std::optional<core::graph::Target>& of = look.gradient.of;
  if (!of) {
    key_.reset();
    value_after_step_.clear();
    return gradients_.clear();
  }
  key_ = Key{live.version(), of};
  const core::attention::Model& model = live.model();
  const bool is_quick = std::max(model.n_tokens(), model.n_keys()) <= max_immediate;
  const Schedule when = is_quick ? Schedule::immediate : Schedule::background;
  if (gradients_.needs(*key_, when)) begin(live, *of, when);
  if (const Key* newest = gradients_.key(); newest && seen_ != *newest) seen_ = *newest, ++version_;
  if (is_current()) follow_step(live, look, when);
}

void LiveGradient::follow_step(const LiveTrace& live, const Look& look, Schedule when) {
  step_ = StepKey{*key_, look.gradient.step, stepped_matrices(live.model(), look)};
  if (!value_after_step_.needs(*step_, when)) return;
  value_after_step_.begin(
      *step_, when,
      [model = live.model(), graph = live.graph(), sequence = live.sequence(), of = *look.gradient.of,
       all = *gradients_.value(), step = *step_](const core::StopToken&) {
        core::attention::Model after = model;
        add_gradients(after, all, step.changed, step.step);
        return core::graph::value_of(graph, after, sequence, of);
      });
}

std::optional<double> LiveGradient::value_after_step() const {
  if (!is_current() || !step_ || !value_after_step_.matches(*step_)) return std::nullopt;
  return *value_after_step_.value();
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
  if (look.gradient.along == StepAlong::matrices) return core::graph::learned_matrices(model);
  std::vector<core::attention::MatrixRef> inputs;
  for (const MatrixName name : {MatrixName::embeddings, MatrixName::key_embeddings})
    inputs.push_back({name, look.sequence});
  return inputs;
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
  // A column of the concatenated heads is of one of them, in whose stages its gradient is.
  if (command.of && command.of->stage == core::attention::Stage::concatenated && command.of->column) {
    const core::attention::Model& model = document_.model;
    const std::size_t width = shape_of(model, command.of->stage).n_cols / model.n_heads;
    view_.look.head = std::min(*command.of->column / std::max<std::size_t>(width, 1), model.n_heads - 1);
  }
  view_.look.gradient.of = command.of;
}

void Store::handle(const StepAlongGradient& command) {
  const Look& look = view_.look;
  if (!look.gradient.of) throw core::Error("A step needs the gradient of a number; none is shown.");
  if (!is_up_to_date() || !live_gradient_.is_current())
    throw core::Error("The gradients are still being computed.");
  const core::graph::Gradients& all = *live_gradient_.gradients();
  const auto places = stepped_matrices(document_.model, look);
  for (const auto& place : places)
    if (!all.of(place).is_finite())
      throw core::Error(std::string("The gradient of ") + symbol(place.name) + " is not a number.");
  core::attention::Model after = document_.model;
  add_gradients(after, all, places, command.against ? -look.gradient.step : look.gradient.step);
  const std::string words =
      command.against ? "a step against the gradient of " : "a step along the gradient of ";
  handle(ApplyEdit{core::editing::ReplaceModel{std::move(after), words + text_of(*look.gradient.of)}});
}

}  // namespace app
