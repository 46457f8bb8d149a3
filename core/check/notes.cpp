#include "core/check/notes.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/text.hpp"
#include "core/check/computed.hpp"

namespace core::check {
namespace {

using attention::info;
using attention::StageInfo;

std::string named(const Reading& reading) {
  return std::string(info(reading.stage).name) + " " + reading.layout.words;
}

/// An output that is what comes before the output projection.
void add_other_name(const Computed& right, const Theirs& theirs, const Reading* agrees,
                    const Tolerance& tolerance, std::vector<std::string>& notes) {
  const auto before_projection = [](Stage stage) {
    return stage == Stage::concatenated || stage == Stage::contexts;
  };
  if (agrees && agrees->stage != theirs.stage &&
      (theirs.stage == Stage::queries || theirs.stage == Stage::keys))
    notes.push_back(theirs.name + " is the right " + info(agrees->stage).name +
                    ": that is another name and no mistake, but the " + info(theirs.stage).name +
                    " before that were not compared with it");
  if (theirs.stage != Stage::output || theirs.readings.empty()) return;
  if (agrees && before_projection(agrees->stage)) {
    notes.push_back(theirs.name + " is a right " + info(agrees->stage).name +
                    ": that is another name and no mistake, but the output was not compared with it");
  } else if (!agrees && info(Stage::concatenated).present(right.model())) {
    Reading other = theirs.readings.front();
    if (other.stage != Stage::output) return;
    other.stage = Stage::concatenated;
    if (agreement(theirs, other, right, tolerance).within)
      notes.push_back(theirs.name + " is a right concatenated; if that is what it should be, --map \"" +
                      theirs.name + "=concatenated\" says so");
  }
}

/// "0, 2 and 5"; of many the first few.
std::string numbers(const std::set<std::size_t>& all) {
  constexpr std::size_t most = 8;
  std::vector<std::string> words;
  for (const std::size_t number : all) {
    if (words.size() == most) {
      words.push_back("…");
      break;
    }
    words.push_back(std::to_string(number));
  }
  return text::joined(words, ", ");
}

/// Which heads and sequences of a stage were compared, where those are not all.
void add_coverage(const Model& model, const std::vector<const Reading*>& readings,
                  std::vector<std::string>& notes) {
  std::map<Stage, std::set<std::pair<std::size_t, std::size_t>>> given;
  const auto n_heads_of = [&](const Reading& r) {
    return r.joined || r.of_groups || r.layout.is_mean ? model.n_heads
           : info(r.stage).per_head                    ? r.n_heads
                                                       : 1;
  };
  for (const Reading* r : readings)
    for (std::size_t s = 0; r && s < r->n_sequences; ++s)
      for (std::size_t h = 0; h < n_heads_of(*r); ++h)
        given[r->stage].emplace(r->first_sequence + s, r->first_head + h);
  for (const auto& [stage, parts] : given) {
    const std::size_t n_heads = info(stage).per_head ? model.n_heads : 1;
    if (parts.size() == model.sequences.size() * n_heads) continue;
    std::set<std::size_t> sequences, heads;
    for (const auto& [sequence, head] : parts) sequences.insert(sequence), heads.insert(head);
    std::vector<std::string> words;
    if (sequences.size() < model.sequences.size())
      words.push_back("sequence " + numbers(sequences) + " of " + std::to_string(model.sequences.size()));
    if (heads.size() < n_heads) words.push_back("head " + numbers(heads) + " of " + std::to_string(n_heads));
    if (words.empty()) words.push_back("some heads of some sequences");
    notes.push_back("Of " + std::string(info(stage).name) + " only " + text::joined(words, ", ") +
                    " was given and compared");
  }
}

/// A dropout that drops nothing.
bool says_nothing(const Model& model, Stage stage) {
  const bool of_dropout = stage == Stage::dropout_mask || stage == Stage::dropped_weights;
  return of_dropout && !model.dropout.active() && !model.given.find(Stage::dropout_mask);
}

}  // namespace

void add_ambiguity(const Theirs& theirs, std::vector<std::string>& notes) {
  const auto& all = theirs.readings;
  if (all.size() < 2) return;
  notes.push_back(theirs.name + " " + formats::shape_text(theirs.tensor.shape) + " was taken for " +
                  named(all.front()) + "; it could also be " +
                  text::joined(std::vector(all.begin() + 1, all.end()), ", ", named, " or ") +
                  ", and agrees as none of them");
}

void add_notes(const Computed& right, const Matched& matched, const std::vector<const Reading*>& agreeing,
               const Tolerance& tolerance, Report& report) {
  const Model& model = right.model();
  const std::string layer = layer_words(matched);
  if (!layer.empty()) report.notes.insert(report.notes.begin(), "The tensors are those of " + layer);
  for (std::size_t k = 0; k < agreeing.size(); ++k)
    add_other_name(right, matched.theirs[k], agreeing[k], tolerance, report.notes);
  add_coverage(model, report.readings, report.notes);
  for (const StageInfo& stage : attention::stages()) {
    const bool was_given =
        std::ranges::any_of(report.readings, [&](const Reading* r) { return r && r->stage == stage.stage; });
    if (!was_given && stage.present(model) && !says_nothing(model, stage.stage))
      report.not_given.push_back(stage.stage);
  }
}

}  // namespace core::check
