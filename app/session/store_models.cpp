#include <algorithm>
#include <utility>

#include "app/session/recovery.hpp"
#include "app/session/remembered.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/check/check.hpp"
#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/compare.hpp"
#include "core/graph/model.hpp"
#include "core/model/transformer.hpp"

namespace app {

namespace {

namespace experiment = core::experiment;

constexpr std::size_t longest_text = 1 << 16;  // bytes that are tokenized at once

/// Returns the ablated heads of the displayed layer, of those that it has with its edits.
std::vector<std::size_t> heads_off_of(const WholeModel& whole) {
  return whole.experiment.heads_off_in(
      whole.layer, experiment::n_heads_in(whole.experiment, whole.layer, whole.model->description().sizes));
}

/// Returns the layer with the edits of an experiment, which passes check(), or without them if they do not
/// fit; words then say so.
core::attention::Model layer_with(const core::attention::Model& of_pass, experiment::Experiment& of,
                                  std::size_t layer, std::string& words) {
  const auto edit = of.layers.find(layer);
  if (edit == of.layers.end()) return of_pass;
  core::attention::Model model = experiment::edited(of_pass, edit->second);
  const auto problem = core::attention::check(model);
  if (!problem) return model;
  words = "What was edited in layer " + std::to_string(layer) +
          " does not fit this text and was discarded: " + problem->message;
  experiment::drop_edit(of, layer, of_pass.n_heads);
  core::attention::Model plain = of_pass;
  std::erase_if(plain.heads_off, [&](std::size_t head) { return head >= plain.n_heads; });
  return plain;
}

}  // namespace

void Store::start_with_whole(const Opened& ready) {
  const OpenedWhole& opened = *ready.whole;
  Origin origin{opened.model->description().path.filename().string()};
  if (!opened.stamp.empty())
    origin = {ready.path.filename().string(), "", lasting_path(ready.path), opened.stamp};
  start_with(document_of(opened, std::move(origin)));
  whole_.begin_with(*document_.whole, {opened.reading, opened.before});
  look_at_layers(view_);
  recall_view(opened.view, view_);
  const core::transformer::Description& of = opened.model->description();
  const std::string layers = core::text::counted(of.sizes.n_layers, "layer") + " of " +
                             core::text::counted(of.sizes.n_heads, "head");
  if (of.is_attached) return say("Attached to " + of.path.string() + " at " + of.address + ": " + layers);
  remember(ready.path);
  say("Opened " + ready.path.string() + " as a whole model: " + layers);
}

void Store::start_with_model_of(const core::lessons::Lesson& lesson, const Tried& tried) {
  const auto& models = view_.forms.models;
  const auto found =
      std::ranges::find(models, lesson.model, [](const auto& p) { return p.filename().string(); });
  if (found == models.end())
    throw core::Error(std::string("The lesson needs the model ") + lesson.model +
                      ", which comes with the program, but was not found.");
  read_in_background(
      *found,
      [this, &lesson, tried, path = *found, free = free_memory_()](const core::Token&) -> Jobs::Delivery {
        const auto model = core::transformer::open_transformer(path, free / 2);
        return [this, &lesson, tried, model] { start(lesson, model, tried); };
      });
}

Undoable Store::work() const {
  return {document_.model, without_pass(document_.whole)};
}

void Store::take_back(Undoable work) {
  document_.model = std::move(work.model);
  document_.whole = std::move(work.whole);
  view_.layers.refused.reset();
}

void Store::experiment_with(experiment::Experiment next, const std::string& target,
                            const std::string& words) {
  const WholeModel& now = *document_.whole;
  if (next == now.experiment) return;
  const std::size_t n_tokens = experiment::tokens_of(*now.model, next).size();  // throws for invalid texts
  std::string let_go_of;
  if (n_tokens != document_.model.n_tokens()) let_go_of = experiment::fit_tokens(next, n_tokens);
  auto whole = std::make_shared<WholeModel>(now);
  whole->experiment = std::move(next);
  message_ = {};
  if (!words.empty()) record_step(target, words);
  if (n_tokens == document_.model.n_tokens())
    adopt(std::move(whole));
  else
    document_.whole = std::move(whole);  // its layer follows once the text was read
  if (!let_go_of.empty()) say(let_go_of);
}

void Store::adopt(std::shared_ptr<WholeModel> whole) {
  whole->of_pass.heads_off = heads_off_of(*whole);
  std::string dropped;
  core::attention::Model model = layer_with(whole->of_pass, whole->experiment, whole->layer, dropped);
  std::erase_if(model.heads_off, [&](std::size_t head) { return head >= model.n_heads; });
  document_.model = std::move(model);
  document_.whole = std::move(whole);
  keep_view_within_model();
  if (!dropped.empty()) say(dropped, true);
}

const BothReadings& Store::readings() const {
  const BothReadings* both = whole_.readings();
  if (both && whole_.is_of(*document_.whole)) return *both;
  refuse_text();
}

void Store::refuse_text() const {
  throw core::Error(whole_.has_failed(*document_.whole) ? "This text could not be read."
                                                        : "The text is still being read.");
}

void Store::require_layer_of_text() const {
  const WholeModel& whole = *document_.whole;
  const BothReadings* both = whole_.readings();
  const bool was_read = both && both->now->experiment.text == whole.experiment.text &&
                        both->now->experiment.made == whole.experiment.made;
  const auto names = was_read ? both->now->names
                              : core::transformer::token_names(
                                    *whole.model, experiment::tokens_of(*whole.model, whole.experiment));
  if (names != document_.model.sequences.front().tokens) refuse_text();
}

void Store::handle(const ReadText& command) {
  if (!document_.whole) return;
  view_.layers.refused.reset();
  experiment::Experiment next = document_.whole->experiment;
  next.text = command.text;
  next.made.clear();
  try {
    if (command.text.size() > longest_text)
      throw core::Error("expected a text of at most " + std::to_string(longest_text) + " bytes, got " +
                        std::to_string(command.text.size()));
    if (command.text != experiment::whole_text(*document_.whole->model, document_.whole->experiment))
      experiment_with(std::move(next), "text", "text");
  } catch (const core::Error& error) {
    view_.layers.refused = RefusedText{command.text, error.what()};
  }
}

void Store::handle(const LookAtLayer& command) {
  if (!document_.whole) return;
  core::transformer::require_layer(*document_.whole->model, command.layer);
  auto whole = std::make_shared<WholeModel>(*document_.whole);
  whole->experiment.layer = command.layer;
  refused_layer_.reset();
  document_.whole = std::move(whole);
}

void Store::handle(const SwitchHead& command) {
  if (!document_.whole) return;
  experiment::Experiment next = document_.whole->experiment;
  const experiment::Place head{command.layer, command.head};
  const bool was_off = next.heads_off.erase(head) > 0;
  if (!was_off) next.heads_off.insert(head);
  experiment_with(std::move(next), "",
                  "head " + std::to_string(command.layer) + "." + std::to_string(command.head) +
                      (was_off ? " on" : " off"));
}

void Store::handle(const DropEdits& command) {
  if (!document_.whole) return;
  experiment::Experiment next = document_.whole->experiment;
  if (command.layer) {
    experiment::drop_edit(next, *command.layer, document_.whole->model->description().sizes.n_heads);
    return experiment_with(std::move(next), "",
                           "edits of layer " + std::to_string(*command.layer) + " undone");
  }
  next.layers.clear();
  next.heads_off.clear();
  experiment_with(std::move(next), "", "all edits undone");
}

void Store::handle(const WriteToken& command) {
  if (!document_.whole) return;
  const WholeModel& whole = *document_.whole;
  experiment::Experiment next = whole.experiment;
  if (command.back) {
    if (!next.made.empty()) {
      next.made.pop_back();
    } else {
      auto tokens = experiment::tokens_of(*whole.model, next);
      while (!tokens.empty() && tokens.back().is_put_in) tokens.pop_back();
      if (!tokens.empty()) next.text.resize(next.text.size() - tokens.back().text.size());
    }
    experiment_with(std::move(next), "", "remove last token");
  } else {
    const experiment::Reading& now = *readings().now;
    if (now.logits.empty()) throw core::Error(now.why_no_prediction);
    if (!whole.model->description().causal)
      throw core::Error("This model is bidirectional, so it cannot continue a text.");
    const LayersLook& look = view_.layers;
    core::random::Generator generator(look.seed + next.made.size());  // the same token at the same position
    next.made.push_back(core::transformer::sampled(now.logits.tail_rows(1).as_row(),
                                                   whole.model->description().n_tokens,
                                                   {look.temperature, look.top}, generator));
    experiment_with(std::move(next), "", "generate token");
  }
  view_.layers.refused.reset();
}

void Store::handle(const CompareEdits&) {
  if (!document_.whole) return;
  const core::transformer::ModelRef model = document_.whole->model;
  read_for_document(model->description().path,
                    [this, model, before = readings().before,
                     layer = document_.whole->layer](const core::Token&) -> Jobs::Delivery {
                      const auto made = std::make_shared<core::attention::Model>(
                          experiment::layer_of(*model, *before, layer));
                      return [this, made, layer] {
                        keep(std::move(*made), "layer " + std::to_string(layer) + " before the edits");
                        view_.look.tab = Tab::compare;
                      };
                    });
}

void Store::handle(const SweepHeads& command) {
  if (!document_.whole) return;
  if (!command.on) return whole_.stop_sweep();
  if (const std::string& why = readings().now->why_no_prediction; !why.empty()) throw core::Error(why);
  view_.layers.shows_effects = true;
  whole_.sweep();
}

const WholeModel* Store::known_layer(const WholeModel& whole) const {
  const auto is_same = [&](const std::shared_ptr<const WholeModel>& other) {
    return other && other->layer == whole.layer && other->model == whole.model;
  };
  if (is_same(document_.whole)) return document_.whole.get();
  const Undoable* step = document_.history.find([&](const Undoable& of) { return is_same(of.whole); });
  return step ? step->whole.get() : nullptr;
}

void Store::follow_whole() {
  if (!document_.whole) return;
  whole_.follow(*document_.whole, view_.layers, view_.look.head, view_.selection.pinned);
  const LayerMade* made = whole_.layer();
  const bool is_wanted =
      made && whole_.is_of(*document_.whole) && made->layer == document_.whole->experiment.layer &&
      (made->layer != document_.whole->layer || made->computed != document_.whole->computed);
  if (!is_wanted || made->computed == refused_layer_) return;
  auto whole = std::make_shared<WholeModel>(*document_.whole);
  whole->layer = made->layer;
  whole->computed = made->computed;
  if (!made->model) {
    document_.whole = std::move(whole);
    return;
  }
  if (waiting_.next) return;        // one question at a time
  refused_layer_ = made->computed;  // reported or asked once
  if (!may_take_memory(*made->model, LookAtLayer{made->layer})) return;
  refused_layer_.reset();
  whole->of_pass = *made->model;
  // Shared, so that undo holds one copy; those of an attached model may have changed, and are shared already
  // if not.
  if (const WholeModel* known = document_.is_attached() ? nullptr : known_layer(*whole)) {
    whole->of_pass.projections = known->of_pass.projections;
    whole->of_pass.additions.normalise = known->of_pass.additions.normalise;
  }
  adopt(std::move(whole));
}

void Store::keep(core::attention::Model model, std::string title) {
  const std::uint64_t id = ++last_reference_;
  references_.push_back(
      {.name = "A" + std::to_string(id), .title = std::move(title), .model = std::move(model), .id = id});
  view_.look.compared.reference = references_.size() - 1;
}

void Store::handle(const KeepReference&) {
  keep(document_.model, document().title);
  say("Kept as " + references_.back().name +
      ". Change something: the Compare tab shows what follows from it.");
}

void Store::handle(const KeepSwitched& command) {
  const core::compare::Switch& way = core::compare::switches()[command.index];
  core::attention::Model other = way.flipped(document_.model);
  core::attention::require(other);
  const std::string state = way.state(other);
  keep(std::move(other), state + " · " + document().title);
  references_.back().experiment = command.index;
  view_.look.tab = Tab::compare;
  say(references_.back().name + " is the model with " + state + "; B is the live one, with " +
      way.state(document_.model) + ".");
}

Reference* Store::chosen_reference() {
  return references_.empty() ? nullptr : &references_[view_.look.compared.reference];
}

void Store::handle(const DropReference&) {
  const Reference* chosen = chosen_reference();
  if (!chosen) return;
  say("Dropped " + chosen->name);
  references_.erase(references_.begin() + (chosen - references_.data()));
}

void Store::handle(const RenameReference& command) {
  if (Reference* chosen = chosen_reference(); chosen && !command.title.empty()) chosen->title = command.title;
}

void Store::handle(const ShowReference& command) {
  view_.selection.shows_a = false;
  const Reference* a = chosen_reference();
  if (!command.on || !a) return;
  if (a->tensors && view_.look.tab != Tab::compare)
    return say(a->name + " are tensors: the Compare tab shows them in place of A", true);
  if (const std::string obstacle = why_not_in_place_of(a->model, document_.model); !obstacle.empty())
    return say(a->name + " cannot replace B: " + obstacle, true);
  view_.selection.shows_a = true;
}

void Store::handle(const LoadReference& command) {
  read_in_background(
      command.path, [this, path = command.path](const core::Token& progress) -> Jobs::Delivery {
        auto found = std::make_shared<Opened>(open_file(path, progress));
        if (!found->imported)
          throw core::Error(path.string() +
                            ": expected a session, or tensors of which but one model can be made");
        return [this, found, path] {
          keep(std::move(found->imported->model), path.filename().string());
          close(Dialog::open_reference);
          view_.look.tab = Tab::compare;
          const std::string obstacle = why_not_in_place_of(references_.back().model, document_.model);
          const std::string reservations = core::importing::reservations_text(found->imported->account);
          say("Opened " + path.string() + " as " + references_.back().name +
                  (obstacle.empty() ? "" : "; " + obstacle) +
                  (reservations.empty() ? "" : "; " + reservations),
              !obstacle.empty());
        };
      });
}

void Store::handle(const CheckTensors& command) {
  read_in_background(command.path,
                     [this, path = command.path, model = document_.model,
                      sequence = view_.look.sequence](const core::Token& progress) -> Jobs::Delivery {
                       auto file = std::make_shared<const core::formats::TensorFile>(
                           core::formats::open_tensors(path, progress));
                       // Throws when nothing fits; then nothing is kept.
                       core::check::match(model, *file, {}, {.sequence = sequence}, progress);
                       return [this, path, file] {
                         keep(document_.model, path.filename().string());
                         references_.back().name = "T" + std::to_string(references_.back().id);
                         references_.back().tensors = file;
                         close(Dialog::open_tensors);
                         view_.look.tab = Tab::compare;
                         comparing_.search();
                         std::string words = "B are the tensors of " + path.string();
                         for (const std::string& note : file->notes())
                           words += (words.ends_with('.') ? " " : ". ") + note;
                         say(words);
                       };
                     });
}

Reference* Store::tensors_to_read_again() {
  Reference* chosen = chosen_reference();
  if (!chosen || !chosen->tensors) return nullptr;
  ++chosen->mapped;
  comparing_.search();
  return chosen;
}

void Store::handle(const MapTensor& command) {
  Reference* chosen = tensors_to_read_again();
  if (!chosen) return;
  if (command.stage)
    chosen->by_hand[command.tensor] = *command.stage;
  else
    chosen->by_hand.erase(command.tensor);
}

void Store::handle(const ReadTensorsAs& command) {
  if (Reference* chosen = tensors_to_read_again())
    chosen->layout = command.layout, chosen->layer = command.layer;
}

void Store::handle(const SearchCauses&) {
  comparing_.search();
}

void Store::handle(const StopSearch&) {
  comparing_.stop_search();
}

void Store::run_comparison() {
  const Reference* chosen = chosen_reference();
  if ((view_.look.tab != Tab::compare && !view_.selection.shows_a) || !chosen) {
    view_.selection.shows_a = false;
    return comparing_.stop();
  }
  const std::size_t head = std::min(view_.look.head, live_.model().n_heads - 1);
  comparing_.follow(*chosen, live_, head, view_.look.compared.difference, view_.look.tab == Tab::compare);
}

}  // namespace app
