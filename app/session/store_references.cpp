// The part of the store that keeps states of attention and compares one of them with the live one.
#include <algorithm>
#include <utility>

#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/check/check.hpp"
#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/compare_switches.hpp"

namespace app {

void Store::keep(core::attention::Model model, std::string title) {
  const std::uint64_t id = ++last_reference_;
  references_.push_back({"A" + std::to_string(id), std::move(title), std::move(model), id});
  view_.look.compared.reference = references_.size() - 1;
}

void Store::carry_out(const KeepReference&) {
  keep(document_.model, document().title);
  say("Kept as " + references_.back().name +
      ". Change something: the Compare tab shows what follows from it.");
}

void Store::carry_out(const KeepSwitched& command) {
  const core::compare::Switch& way = core::compare::switches()[command.index];
  core::attention::Model other = way.flipped(document_.model);
  core::attention::require(other);
  const std::string state = way.state(other);
  keep(std::move(other), state + " · " + document().title);
  view_.look.tab = Tab::compare;
  say(references_.back().name + " is the model with " + state + "; B is the live one, with " +
      way.state(document_.model) + ".");
}

void Store::carry_out(const DropReference&) {
  if (references_.empty()) return;
  say("Dropped " + references_[view_.look.compared.reference].name);
  references_.erase(references_.begin() + static_cast<std::ptrdiff_t>(view_.look.compared.reference));
  keep_view_within_model();
}

void Store::carry_out(const RenameReference& command) {
  if (references_.empty() || command.title.empty()) return;
  references_[view_.look.compared.reference].title = command.title;
}

void Store::carry_out(const ShowReference& command) {
  view_.selection.shows_a = false;
  if (!command.on || references_.empty()) return;
  const Reference& a = references_[view_.look.compared.reference];
  if (a.tensors && view_.look.tab != Tab::compare)
    return say(a.name + " are tensors: the Compare tab shows them in place of A", true);
  if (const std::string obstacle = why_not_in_place_of(a.model, document_.model); !obstacle.empty())
    return say(a.name + " cannot stand in place of B: " + obstacle, true);
  view_.selection.shows_a = true;
}

void Store::carry_out(const LoadReference& command) {
  read_beside(command.path, [this, path = command.path](const core::Token& progress) -> Jobs::Delivery {
    auto found = std::make_shared<FoundInFile>(find_in_file(path, progress));
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
              (obstacle.empty() ? "" : "; " + obstacle) + (reservations.empty() ? "" : "; " + reservations),
          !obstacle.empty());
    };
  });
}

void Store::carry_out(const CheckTensors& command) {
  read_beside(command.path,
              [this, path = command.path, model = document_.model,
               sequence = view_.look.sequence](const core::Token& progress) -> Jobs::Delivery {
                auto file = std::make_shared<const core::formats::TensorFile>(
                    core::formats::open_tensors(path, progress));
                // When nothing fits, it says so and nothing is kept.
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

void Store::carry_out(const MapTensor& command) {
  if (references_.empty() || !references_[view_.look.compared.reference].tensors) return;
  Reference& reference = references_[view_.look.compared.reference];
  if (command.stage)
    reference.by_hand[command.tensor] = *command.stage;
  else
    reference.by_hand.erase(command.tensor);
  ++reference.mapped;
  comparing_.search();
}

void Store::carry_out(const ReadTensorsAs& command) {
  if (references_.empty() || !references_[view_.look.compared.reference].tensors) return;
  Reference& reference = references_[view_.look.compared.reference];
  reference.layout = command.layout, reference.layer = command.layer;
  ++reference.mapped;
  comparing_.search();
}

void Store::carry_out(const SearchCauses&) {
  comparing_.search();
}

void Store::carry_out(const StopSearch&) {
  comparing_.stop_search();
}

void Store::run_comparison() {
  if ((view_.look.tab != Tab::compare && !view_.selection.shows_a) || references_.empty()) {
    view_.selection.shows_a = false;
    return comparing_.stop();
  }
  const std::size_t head = std::min(view_.look.head, live_.model().n_heads - 1);
  comparing_.follow(references_[view_.look.compared.reference], live_, head, view_.look.compared.difference,
                    view_.look.tab == Tab::compare);
}

}  // namespace app
