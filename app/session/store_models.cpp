#include <fmt/core.h>
#include <algorithm>
#include <utility>

#include "app/session/model_title.hpp"
#include "app/session/recovery.hpp"
#include "app/session/remembered.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/check/check.hpp"
#include "core/files/session_files.hpp"
#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/compare.hpp"
#include "core/graph/model.hpp"
#include "core/graph/validation.hpp"
#include "core/model/transformer.hpp"
#include "core/scan/tree.hpp"

namespace app {

namespace {

namespace experiment = core::experiment;

constexpr std::size_t max_text_bytes = 1 << 16;  // bytes that are tokenized at once

/// Returns the ablated heads of the displayed layer, of those that it has with its edits.
std::vector<std::size_t> heads_off_of(const FullModelState& full_model) {
  return full_model.experiment.heads_off_in(
      full_model.layer,
      experiment::n_heads_in(full_model.experiment, full_model.layer, full_model.model->description().sizes));
}

/// Returns the layer with the edits of an experiment, which passes check(), or without them if they do not
/// fit; words then say so.
core::attention::Model layer_with(const core::attention::Model& unedited, experiment::Experiment& of,
                                  std::size_t layer, std::string& words) {
  const auto edit = of.layers.find(layer);
  if (edit == of.layers.end()) return unedited;
  core::attention::Model model = experiment::edited(unedited, edit->second);
  const auto problem = core::attention::check(model);
  if (!problem) return model;
  words = fmt::format("What was edited in layer {} does not fit this text and was discarded: {}", layer,
                      problem->message);
  experiment::drop_edit(of, layer, unedited.n_heads);
  core::attention::Model plain = unedited;
  std::erase_if(plain.heads_off, [&](std::size_t head) { return head >= plain.n_heads; });
  return plain;
}

}  // namespace

void Store::start_full_model(const Opened& ready) {
  const OpenedModel& opened = *ready.full_model;
  Origin origin{model_title(opened.model->description().path)};
  if (!opened.stamp.empty())
    origin = {ready.path.filename().string(), "", absolute_path(ready.path), opened.stamp};
  origin.is_learned = ready.is_learned;
  replace_document(document_of(opened, std::move(origin)));
  model_reading_.set_readings(*document_.full_model, {opened.reading, opened.before});
  show_layers_view(view_);
  restore_view(opened.view, view_, ready.path.parent_path());
  const core::transformer::Description& of = opened.model->description();
  const std::string layers = core::text::counted(of.sizes.n_layers, "layer") + " of " +
                             core::text::counted(of.sizes.n_heads, "head");
  if (of.is_attached) return say("Attached to " + of.path.string() + " at " + of.address + ": " + layers);
  if (!ready.is_learned) remember(ready.path);
  const std::string& scan = view_.forms.scan.folder;
  if (!scan.empty() && !core::scan::has_scan(scan))
    return say("Opened " + ready.path.string() + "; the folder of its scan is missing: " + scan, true);
  say("Opened " + ready.path.string() + " as a whole model: " + layers);
}

void Store::start_lesson_with_model(const core::lessons::Lesson& lesson, const LessonWork& lesson_work) {
  const auto& models = view_.forms.models;
  const auto found =
      std::ranges::find(models, lesson.model, [](const auto& p) { return p.filename().string(); });
  std::filesystem::path path = found == models.end() ? std::filesystem::path() : *found;
  if (path.empty() && !lesson.folder.empty()) {  // one next to the file of the lesson
    if (!core::formats::is_within(lesson.model, lesson.folder))
      throw core::Error(lesson.name + ": the model " + core::formats::quoted_briefly(lesson.model) +
                        " does not lie beside the lesson");
    path = lesson.folder / lesson.model;
  }
  if (path.empty())
    throw core::Error(std::string("The lesson needs the model ") + lesson.model +
                      ", which comes with the program, but was not found.");
  read_in_background(
      path,
      [this, &lesson, lesson_work, path, free = free_memory_()](const core::StopToken&) -> Jobs::Delivery {
        const auto model = core::transformer::open_transformer(path, free / 2);
        return [this, &lesson, lesson_work, model] { start(lesson, model, lesson_work); };
      });
}

UndoEntry Store::work() const {
  return {document_.model, without_pass(document_.full_model)};
}

void Store::restore_state(UndoEntry work) {
  document_.model = std::move(work.model);
  document_.full_model = std::move(work.full_model);
  view_.layers.refused.reset();
}

void Store::set_experiment(experiment::Experiment next, const std::string& target, const std::string& words) {
  const FullModelState& now = *document_.full_model;
  if (next == now.experiment) return;
  const std::size_t n_tokens = experiment::tokens_of(*now.model, next).size();  // throws for invalid texts
  std::string discarded_edits;
  if (n_tokens != document_.model.n_tokens())
    discarded_edits = experiment::discard_stale_edits(next, n_tokens);
  try {
    experiment::require_patches(*now.model, next);
  } catch (const core::Error& error) {
    next.patches.clear();
    discarded_edits = std::string("The patches were discarded: ") + error.what();
  }
  auto full_model = std::make_shared<FullModelState>(now);
  full_model->experiment = std::move(next);
  message_ = {};
  if (!words.empty()) record_step(target, words);
  if (n_tokens == document_.model.n_tokens())
    adopt(std::move(full_model));
  else
    document_.full_model = std::move(full_model);  // its layer follows once the text was read
  if (!discarded_edits.empty()) say(discarded_edits);
}

void Store::adopt(std::shared_ptr<FullModelState> full_model) {
  full_model->unedited.heads_off = heads_off_of(*full_model);
  std::string dropped;
  core::attention::Model model =
      layer_with(full_model->unedited, full_model->experiment, full_model->layer, dropped);
  std::erase_if(model.heads_off, [&](std::size_t head) { return head >= model.n_heads; });
  document_.model = std::move(model);
  document_.full_model = std::move(full_model);
  clamp_view_to_model();
  if (!dropped.empty()) say(dropped, true);
}

const BothReadings& Store::readings() const {
  const BothReadings* both = model_reading_.readings();
  if (both && model_reading_.matches(*document_.full_model)) return *both;
  throw_text_not_read();
}

void Store::throw_text_not_read() const {
  throw core::Error(model_reading_.has_failed(*document_.full_model) ? "This text could not be read."
                                                                     : "The text is still being read.");
}

void Store::require_layer_of_text() const {
  const FullModelState& full_model = *document_.full_model;
  const BothReadings* both = model_reading_.readings();
  const bool was_read = both && both->now->experiment.text == full_model.experiment.text &&
                        both->now->experiment.made == full_model.experiment.made;
  const auto names =
      was_read ? both->now->names
               : core::transformer::token_names(
                     *full_model.model, experiment::tokens_of(*full_model.model, full_model.experiment));
  if (names != document_.model.sequences.front().tokens) throw_text_not_read();
}

void Store::handle(const ReadText& command) {
  if (!document_.full_model) return;
  view_.layers.refused.reset();
  experiment::Experiment next = document_.full_model->experiment;
  next.text = command.text;
  next.made.clear();
  if (next.first) next.first->aligned.clear();
  try {
    if (command.text.size() > max_text_bytes)
      throw core::Error(
          fmt::format("expected a text of at most {} bytes, got {}", max_text_bytes, command.text.size()));
    if (command.text !=
        experiment::whole_text(*document_.full_model->model, document_.full_model->experiment))
      set_experiment(std::move(next), "text", "text");
  } catch (const core::Error& error) {
    view_.layers.refused = RefusedText{command.text, error.what()};
  }
}

void Store::handle(const SetPrompts& command) {
  if (!document_.full_model) return;
  experiment::Experiment next = document_.full_model->experiment;
  const core::transformer::FullModel& model = *document_.full_model->model;
  if (command.first && !next.first) view_.look.tab = Tab::layers;
  if (!command.first || !next.first) view_.layers.maps = LayerMaps::weights, view_.layers.patches = {};
  next.first = command.first;
  if (!next.first) next.patches.clear();
  if (command.second != experiment::whole_text(model, next)) next.text = command.second, next.made.clear();
  if (next.first) experiment::alignment_of(model, next);  // throws for invalid texts
  experiment::tokens_of(model, next.unedited());
  set_experiment(std::move(next), "prompts", command.first ? "two prompts" : "one prompt");
}

void Store::handle(const TogglePatch& command) {
  if (!document_.full_model) return;
  experiment::Experiment next = document_.full_model->experiment;
  const bool was_patched = next.patches.erase(command.patch) > 0;
  if (!was_patched) next.patches.insert(command.patch);
  experiment::require_patches(*document_.full_model->model, next);
  set_experiment(std::move(next), "",
                 core::transformer::patch_name(command.patch) + (was_patched ? " unpatched" : " patched"));
}

void Store::handle(const ShowLayer& command) {
  if (!document_.full_model) return;
  core::transformer::require_layer(*document_.full_model->model, command.layer);
  auto full_model = std::make_shared<FullModelState>(*document_.full_model);
  full_model->experiment.layer = command.layer;
  refused_layer_.reset();
  document_.full_model = std::move(full_model);
}

void Store::handle(const ToggleLayerHead& command) {
  if (!document_.full_model) return;
  experiment::Experiment next = document_.full_model->experiment;
  const auto& sizes = document_.full_model->model->description().sizes;
  std::vector<experiment::IndexPair> heads;  // switched together
  for (std::size_t h = 0; h < experiment::n_heads_in(next, command.layer, sizes); ++h)
    if (!command.head || *command.head == h) heads.emplace_back(command.layer, h);
  const bool were_off = std::ranges::all_of(heads, [&](const auto& h) { return next.heads_off.contains(h); });
  for (const auto& head : heads)
    if (were_off)
      next.heads_off.erase(head);
    else
      next.heads_off.insert(head);
  const std::string name = command.head ? fmt::format("head {}.{}", command.layer, *command.head)
                                        : fmt::format("heads of layer {}", command.layer);
  set_experiment(std::move(next), "", name + (were_off ? " on" : " off"));
}

void Store::handle(const DiscardEdits& command) {
  if (!document_.full_model) return;
  experiment::Experiment next = document_.full_model->experiment;
  if (command.layer) {
    experiment::drop_edit(next, *command.layer, document_.full_model->model->description().sizes.n_heads);
    return set_experiment(std::move(next), "", fmt::format("edits of layer {} undone", *command.layer));
  }
  next.layers.clear();
  next.heads_off.clear();
  next.patches.clear();
  set_experiment(std::move(next), "", "all edits undone");
}

void Store::handle(const StepGeneration& command) {
  if (!document_.full_model) return;
  const FullModelState& full_model = *document_.full_model;
  experiment::Experiment next = full_model.experiment;
  if (next.first) next.first->aligned.clear();
  if (command.back) {
    if (!next.made.empty()) {
      next.made.pop_back();
    } else {
      auto tokens = experiment::tokens_of(*full_model.model, next);
      while (!tokens.empty() && tokens.back().is_inserted) tokens.pop_back();
      if (!tokens.empty()) next.text.resize(next.text.size() - tokens.back().text.size());
    }
    set_experiment(std::move(next), "", "remove last token");
  } else {
    const experiment::TextReading& now = *readings().now;
    if (now.logits.empty()) throw core::Error(now.no_prediction_reason);
    if (!full_model.model->description().causal)
      throw core::Error("This model is bidirectional, so it cannot continue a text.");
    const LayersLook& look = view_.layers;
    core::random::Generator generator(look.seed + next.made.size());  // the same token at the same position
    next.made.push_back(core::transformer::sample_token(now.logits.tail_rows(1).as_row(),
                                                        full_model.model->description().n_tokens,
                                                        {look.temperature, look.top}, generator));
    set_experiment(std::move(next), "", "generate token");
  }
  view_.layers.refused.reset();
}

void Store::handle(const CompareEdits&) {
  if (!document_.full_model) return;
  const core::transformer::ModelRef model = document_.full_model->model;
  read_for_document(model->description().path,
                    [this, model, before = readings().before,
                     layer = document_.full_model->layer](const core::StopToken&) -> Jobs::Delivery {
                      const auto made = std::make_shared<core::attention::Model>(
                          experiment::unedited_layer(*model, *before, layer));
                      return [this, made, layer] {
                        add_reference(std::move(*made), fmt::format("layer {} before the edits", layer));
                        view_.look.tab = Tab::compare;
                      };
                    });
}

void Store::handle(const SweepHeads& command) {
  if (!document_.full_model) return;
  if (!command.on) return model_reading_.stop_sweep();
  if (const std::string& why = readings().now->no_prediction_reason; !why.empty()) throw core::Error(why);
  view_.layers.shows_effects = true;
  model_reading_.sweep();
}

const FullModelState* Store::known_layer(const FullModelState& full_model) const {
  const auto is_same = [&](const std::shared_ptr<const FullModelState>& other) {
    return other && other->layer == full_model.layer && other->model == full_model.model;
  };
  if (is_same(document_.full_model)) return document_.full_model.get();
  const UndoEntry* step = document_.history.find([&](const UndoEntry& of) { return is_same(of.full_model); });
  return step ? step->full_model.get() : nullptr;
}

void Store::follow_full_model() {
  if (!document_.full_model) return;
  model_reading_.follow(*document_.full_model, view_.layers, view_.look.head, view_.selection.pinned,
                        document_.history.is_in_gesture());
  model_reading_.follow_scan(*document_.full_model, view_.forms.scan);
  const ComputedLayer* made = model_reading_.layer();
  const bool is_wanted = made && model_reading_.matches(*document_.full_model) &&
                         made->layer == document_.full_model->experiment.layer &&
                         (made->layer != document_.full_model->layer ||
                          made->computation_id != document_.full_model->computation_id);
  if (!is_wanted || made->computation_id == refused_layer_) return;
  auto full_model = std::make_shared<FullModelState>(*document_.full_model);
  full_model->layer = made->layer;
  full_model->computation_id = made->computation_id;
  if (!made->model) {
    document_.full_model = std::move(full_model);
    return;
  }
  if (deferred_.next) return;             // one question at a time
  refused_layer_ = made->computation_id;  // reported or asked once
  if (!may_use_memory(*made->model, ShowLayer{made->layer})) return;
  refused_layer_.reset();
  full_model->unedited = *made->model;
  // Shared, so that undo holds one copy; those of an attached model may have changed, and are shared already
  // if not.
  if (const FullModelState* known = document_.is_attached() ? nullptr : known_layer(*full_model)) {
    full_model->unedited.projections = known->unedited.projections;
    full_model->unedited.additions.normalize = known->unedited.additions.normalize;
  }
  adopt(std::move(full_model));
}

void Store::add_reference(core::attention::Model model, std::string title) {
  const std::uint64_t id = ++last_reference_;
  references_.push_back(
      {.name = "A" + std::to_string(id), .title = std::move(title), .model = std::move(model), .id = id});
  view_.look.compared.reference = references_.size() - 1;
}

void Store::handle(const AddReference&) {
  add_reference(document_.model, document().title);
  say("Snapshot " + references_.back().name +
      ". Change something: the Compare tab shows what follows from it.");
}

void Store::handle(const AddFlippedReference& command) {
  if (command.index >= core::compare::switches().size()) return;
  const core::compare::Switch& way = core::compare::switches()[command.index];
  core::attention::Model other = way.flipped(document_.model);
  core::attention::require(other);
  const std::string state = way.state(other);
  add_reference(std::move(other), state + " · " + document().title);
  references_.back().experiment = command.index;
  view_.look.tab = Tab::compare;
  say(references_.back().name + " is the model with " + state + "; B is the live one, with " +
      way.state(document_.model) + ".");
}

Reference* Store::chosen_reference() {
  return references_.empty() ? nullptr : &references_[view_.look.compared.reference];
}

void Store::handle(const RemoveReference&) {
  const Reference* chosen = chosen_reference();
  if (!chosen) return;
  say("Dropped " + chosen->name);
  references_.erase(references_.begin() + (chosen - references_.data()));
}

void Store::handle(const RenameReference& command) {
  if (Reference* chosen = chosen_reference(); chosen && !command.title.empty()) chosen->title = command.title;
}

void Store::handle(const ShowReference& command) {
  view_.selection.shows_reference = false;
  const Reference* a = chosen_reference();
  if (!command.on || !a) return;
  if (a->tensors && view_.look.tab != Tab::compare)
    return say(a->name + " are tensors: the Compare tab shows them in place of A", true);
  if (const std::string obstacle = replacement_problem(a->model, document_.model); !obstacle.empty())
    return say(a->name + " cannot replace B: " + obstacle, true);
  view_.selection.shows_reference = true;
}

void Store::handle(const LoadReference& command) {
  read_in_background(
      command.path,
      [this, path = command.path,
       mark = view_.forms.browser.mark()](const core::StopToken& progress) -> Jobs::Delivery {
        auto found = std::make_shared<Opened>(open_file(path, progress, core::UntrustedPaths::refused, mark));
        if (!found->imported)
          throw core::Error(path.string() +
                            ": expected a session, or tensors of which but one model can be made");
        return [this, found, path] {
          add_reference(std::move(found->imported->model), path.filename().string());
          close(Dialog::open_reference);
          view_.look.tab = Tab::compare;
          const std::string obstacle = replacement_problem(references_.back().model, document_.model);
          const std::string reservations = core::importing::caveats_text(found->imported->import_report);
          say("Opened " + path.string() + " as " + references_.back().name +
                  (obstacle.empty() ? "" : "; " + obstacle) +
                  (reservations.empty() ? "" : "; " + reservations),
              !obstacle.empty());
        };
      });
}

void Store::handle(const CheckTensors& command) {
  read_in_background(command.path,
                     [this, path = command.path, model = document_.model, mark = view_.forms.browser.mark(),
                      sequence = view_.look.sequence](const core::StopToken& progress) -> Jobs::Delivery {
                       auto file = std::make_shared<const core::formats::TensorFile>(
                           core::formats::open_tensors(path, progress, mark));
                       // Throws when nothing fits; then nothing is kept.
                       core::check::match(model, *file, {}, {.sequence = sequence}, progress);
                       return [this, path, file] {
                         add_reference(document_.model, path.filename().string());
                         references_.back().name = "T" + std::to_string(references_.back().id);
                         references_.back().tensors = file;
                         close(Dialog::open_tensors);
                         view_.look.tab = Tab::compare;
                         live_comparison_.search();
                         std::string words = "B: tensors from " + path.string();
                         for (const std::string& note : file->notes())
                           words += (words.ends_with('.') ? " " : ". ") + note;
                         say(words);
                       };
                     });
}

Reference* Store::recheck_tensors() {
  Reference* chosen = chosen_reference();
  if (!chosen || !chosen->tensors) return nullptr;
  ++chosen->mapping_version;
  live_comparison_.search();
  return chosen;
}

void Store::handle(const MapTensor& command) {
  Reference* chosen = recheck_tensors();
  if (!chosen) return;
  if (command.stage)
    chosen->by_hand[command.tensor] = *command.stage;
  else
    chosen->by_hand.erase(command.tensor);
}

void Store::handle(const SetTensorLayout& command) {
  if (Reference* chosen = recheck_tensors()) chosen->layout = command.layout, chosen->layer = command.layer;
}

void Store::handle(const SearchCauses&) {
  live_comparison_.search();
}

void Store::handle(const StopSearch&) {
  live_comparison_.stop_search();
}

void Store::run_comparison() {
  const Reference* chosen = chosen_reference();
  if ((view_.look.tab != Tab::compare && !view_.selection.shows_reference) || !chosen) {
    view_.selection.shows_reference = false;
    return live_comparison_.stop();
  }
  const std::size_t head = std::min(view_.look.head, live_.model().n_heads - 1);
  live_comparison_.follow(*chosen, live_, head, view_.look.compared.difference,
                          view_.look.tab == Tab::compare);
}

}  // namespace app
