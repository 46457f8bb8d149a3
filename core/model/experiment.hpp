#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/files/json.hpp"
#include "core/model/whole_model.hpp"

/// A whole model that reads a text while layers of it are edited.
namespace core::experiment {

/// A row and a column, or a layer and a head.
using Place = std::pair<std::size_t, std::size_t>;

/// What was edited in the attention of a layer, ablated heads not counted.
struct LayerEdit {
  attention::Model model;          ///< as edited, without tokens and inputs
  std::map<Place, double> inputs;  ///< overridden numbers of its inputs, by row and column
  std::vector<std::string> words;  ///< what was done, each kind once
  friend bool operator==(const LayerEdit&, const LayerEdit&) = default;
};

/// A text and what was edited in the model that reads it; a value that undo keeps.
struct Experiment {
  std::string text = {};
  std::vector<std::size_t> made = {};            ///< tokens that the model generated after the text
  std::size_t layer = 0;                         ///< displayed
  std::set<Place> heads_off = {};                ///< layer and head
  std::map<std::size_t, LayerEdit> layers = {};  ///< the edited ones

  bool is_edited() const { return !heads_off.empty() || !layers.empty(); }
  /// The ablated ones of a layer's n_heads heads, in order.
  std::vector<std::size_t> heads_off_in(std::size_t of_layer, std::size_t n_heads) const;
  friend bool operator==(const Experiment&, const Experiment&) = default;
};

/// The tokens that the model reads: of the text, and then the generated ones.
///
/// Throws core::Error when there are none, or more than the model takes, or the text is not UTF-8.
std::vector<tokenizers::TextToken> tokens_of(const transformer::WholeModel& model,
                                             const Experiment& experiment);

/// The text with what was generated after it.
std::string whole_text(const transformer::WholeModel& model, const Experiment& experiment);

/// A layer as it was edited, with the tokens and inputs of the pass.
attention::Model edited(const attention::Model& of_pass, const LayerEdit& edit);

/// The experiment after a layer became another: the edit is what differs from the layer as the pass gives it,
/// and where nothing does the layer is not edited.
///
/// words say what was done. Throws core::Error as require_goes_on() does.
Experiment with_layer(Experiment before, std::size_t layer, const attention::Model& of_pass,
                      const attention::Model& after, const std::string& words);

/// Makes sure that the layers after it can go on with what a layer became: of the same text, without keys of
/// another, with outputs of the same width. Throws core::Error, "PLACE…".
void require_goes_on(std::size_t layer, const attention::Model& of_pass, const attention::Model& after,
                     const std::string& place);

/// The heads that a layer has with its edits.
std::size_t n_heads_in(const Experiment& experiment, std::size_t layer, const transformer::Sizes& sizes);

/// Drops the edit of a layer that has n_heads without it; of its ablated heads these stay ablated.
void drop_edit(Experiment& experiment, std::size_t layer, std::size_t n_heads);

/// Drops those parts of edits that belong to tokens beyond the first n, or to a text of another length; says
/// in which layers, or "".
std::string fit_tokens(Experiment& experiment, std::size_t n_tokens);

/// The size of a model's file and a hash of its first MiB, where headers are.
struct FileMark {
  std::uint64_t bytes = 0;
  std::string begin;  ///< 16 digits, FNV-1a of 64 bits
  friend bool operator==(const FileMark&, const FileMark&) = default;
};

/// An experiment as a session file: JSON that names the model's folder or file and holds the text and the
/// edits, none of the model's own numbers.
///
/// view is a JSON object or "". Of the model only edited layers are read, nothing is computed. Throws
/// core::Error when the model's file cannot be read.
std::string experiment_text(const transformer::WholeModel& model, const Experiment& experiment,
                            const std::string& view, const std::filesystem::path& folder);

/// Writes that file atomically. Throws core::Error, which names it.
void save_experiment(const std::filesystem::path& path, const transformer::WholeModel& model,
                     const Experiment& experiment, const std::string& view);

/// A parsed session of a whole model; its edits are read when the model is open.
struct SavedExperiment {
  std::filesystem::path model;  ///< where the model is
  std::filesystem::path named;  ///< the same as the session names it
  FileMark mark;
  Experiment experiment;  ///< without its layers
  std::string view;
  std::vector<formats::Json> edits;
};

/// Whether a file is such a session, by its first bytes.
bool is_saved_experiment(const std::filesystem::path& path);
bool is_saved_experiment_text(std::string_view text);

/// Throws core::Error, "FILE: PATH: expected …, got …"; UntrustedPath when the model is not beside the
/// session and that is refused.
SavedExperiment parse_experiment(std::string_view text, const std::filesystem::path& file,
                                 UntrustedPaths elsewhere);

/// Makes sure that the model is the one that was saved. Throws core::Error, which says what has changed.
void require_mark(const SavedExperiment& saved, const transformer::WholeModel& model,
                  const std::filesystem::path& session);

/// The experiment with the saved edits of a model; nothing is computed. Throws core::Error as
/// parse_experiment() and tokens_of() do.
Experiment with_saved_edits(const SavedExperiment& saved, const transformer::WholeModel& model);

}  // namespace core::experiment
