#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/check/observation.hpp"

namespace core::check {

/// A bug that was found, and what it is called.
struct FoundBug {
  bugs::BugCase made;
  std::vector<const bugs::Bug*> names;     ///< that it is known by, see names_of()
  std::vector<const bugs::Bug*> synonyms;  ///< other bugs that have the same effect here
  std::string sentence;                    ///< "the positions of the queries are 4 behind"

  /// Whether it can be injected.
  bool has_titles() const {
    return std::ranges::all_of(names, [](const bugs::Bug* name) { return name->texts.title; });
  }
};

/// Bugs that together explain every observed stage.
struct FoundBugs {
  std::vector<FoundBug> bugs;
  std::shared_ptr<const Editing> edited = {};  ///< the model's graph with them
};

/// Why observed stages differ from those of a model.
struct BugSearchResult {
  std::vector<FoundBugs> found;              ///< several if the stages cannot tell them apart
  std::vector<std::string> partly;           ///< explanations of some of the stages
  std::vector<std::string> described;        ///< differences that nothing explains
  std::string note;                          ///< how the numbers were computed, or ""
  std::vector<Stage> agreeing_after;         ///< stages after the first difference that agree
  bool is_harmless = false;                  ///< these include the last stage given
  bool agrees = false;                       ///< apart from the rounding in the note
  Precision precision = Precision::float64;  ///< as shown by the numbers
  graph::Work work;                          ///< of the search
};

/// Searches for bugs that explain the stages. The result depends on them and on the budget alone: about
/// max_cells numbers are computed, see graph::Work, when nothing explains them. When the token stops, returns
/// what was found so far. If a coarse precision is assumed, allows for its errors everywhere, and describes
/// nothing that remains.
BugSearchResult find_bugs(std::shared_ptr<const Model> model, std::vector<ObservedStage> stages,
                          const core::StopToken& token, double max_cells,
                          std::optional<Precision> assumed = {});

}  // namespace core::check
