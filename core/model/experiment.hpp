#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/files/json.hpp"
#include "core/model/full_model.hpp"

/// Experiments: a whole model that reads a text, with edits in its layers.
namespace core::experiment {

/// A row and a column, or a layer and a head.
using IndexPair = std::pair<std::size_t, std::size_t>;

/// The edit of a layer's attention, without ablated heads.
struct LayerEdit {
  attention::Model model;              ///< as edited, without tokens and inputs
  std::map<IndexPair, double> inputs;  ///< overridden numbers of its inputs, by row and column
  std::vector<std::string> words;      ///< descriptions of the changes, each once
  friend bool operator==(const LayerEdit&, const LayerEdit&) = default;
};

/// The first of two prompts, and two tokens whose logit difference is watched, as texts; "" for none.
struct FirstPrompt {
  std::string text = {}, answer = {}, against = {};
  std::vector<IndexPair> aligned =
      {};  ///< positions in it and in the second, by hand; see transformer::align()
  friend bool operator==(const FirstPrompt&, const FirstPrompt&) = default;
};

/// A text and the edits of the model that reads it; a value for undo.
struct Experiment {
  std::string text = {};
  std::vector<std::size_t> made = {};            ///< tokens that the model generated after the text
  std::size_t layer = 0;                         ///< displayed
  std::set<IndexPair> heads_off = {};            ///< layer and head
  std::map<std::size_t, LayerEdit> layers = {};  ///< the edited ones
  std::optional<FirstPrompt> first = {};         ///< then the text is the second of two prompts
  std::set<transformer::Patch> patches = {};     ///< from the first prompt

  bool is_edited() const { return !heads_off.empty() || !layers.empty() || !patches.empty(); }
  /// Returns whether a part of a layer's attention is patched.
  bool has_patched_attention(std::size_t of_layer) const;
  /// Returns what edits are compared with: the first prompt where there is one, without edits.
  Experiment unedited() const;
  /// Returns the ablated heads of a layer with n_heads heads, in order.
  std::vector<std::size_t> heads_off_in(std::size_t of_layer, std::size_t n_heads) const;
  friend bool operator==(const Experiment&, const Experiment&) = default;
};

/// Returns the tokens that the model reads: those of the text, then the generated ones.
///
/// Throws core::Error when there are none, or more than the model takes, or the text is not UTF-8.
std::vector<tokenizers::TextToken> tokens_of(const transformer::FullModel& model,
                                             const Experiment& experiment);

/// Returns how the second prompt is aligned with the first. Throws core::Error as transformer::align() does.
transformer::TokenAlignment alignment_of(const transformer::FullModel& model, const Experiment& experiment);

/// Throws core::Error, "first prompt: …" or "PATCH: …", unless there is a first prompt and the model has all
/// patched parts, at positions that are aligned.
void require_patches(const transformer::FullModel& model, const Experiment& experiment);

/// Returns the text followed by the generated text.
std::string whole_text(const transformer::FullModel& model, const Experiment& experiment);

/// Returns the numbers that differ between two matrices of one shape, as they are in the second.
std::map<IndexPair, double> changed_numbers(const arma::mat& before, const arma::mat& after);

/// Returns a layer as edited, with the tokens and inputs of the pass.
attention::Model edited(const attention::Model& unedited, const LayerEdit& edit);

/// Returns the experiment with a changed layer: its edit is the difference from the layer of the pass;
/// without a difference the layer is not edited.
///
/// words describe the change, and replace those with the same beginning up to ": ". Throws core::Error as
/// require_compatible_layer() does.
Experiment with_layer(Experiment before, std::size_t layer, const attention::Model& unedited,
                      const attention::Model& after, const std::string& words);

/// Throws core::Error, "PLACE…", unless later layers can continue from the edited layer: it must have the
/// same text, no keys of another, and outputs of the same width.
void require_compatible_layer(std::size_t layer, const attention::Model& unedited,
                              const attention::Model& after, const std::string& place);

/// Returns the number of heads of a layer with its edits.
std::size_t n_heads_in(const Experiment& experiment, std::size_t layer, const transformer::Sizes& sizes);

/// Drops the edit of a layer, and its ablated heads from n_heads on, the number of heads without it.
void drop_edit(Experiment& experiment, std::size_t layer, std::size_t n_heads);

/// Drops the parts of edits that belong to tokens beyond the first n_tokens, or to a text of another length;
/// returns a note that names the layers, or "".
std::string discard_stale_edits(Experiment& experiment, std::size_t n_tokens);

/// The size of a file and a hash of its content, or of the first MiB of a model's, where headers are.
struct FileFingerprint {
  std::uint64_t bytes = 0;
  std::string begin;  ///< 16 hexadecimal digits, FNV-1a of 64 bits
  friend bool operator==(const FileFingerprint&, const FileFingerprint&) = default;
};

/// Returns the fingerprint of a model's file. Throws core::Error when it cannot be read.
FileFingerprint fingerprint_of(const std::filesystem::path& file);
/// Returns FNV-1a of 64 bits, in hexadecimal digits.
std::string content_hash(std::string_view bytes);

/// Returns an experiment as a session file: JSON that names the model's folder or file and holds the text and
/// the edits, but none of the model's own numbers.
///
/// view is a JSON object or "". Reads only edited layers of the model and computes nothing. Throws
/// core::Error when the model's file cannot be read.
std::string experiment_text(const transformer::FullModel& model, const Experiment& experiment,
                            const std::string& view, const std::filesystem::path& folder);

/// Writes that file atomically. Throws core::Error, which names it.
void save_experiment(const std::filesystem::path& path, const transformer::FullModel& model,
                     const Experiment& experiment, const std::string& view);

/// A parsed session of a whole model; its edits are read once the model is open.
struct SavedExperiment {
  std::filesystem::path model;         ///< where the model is
  std::filesystem::path written_path;  ///< the same as written in the session
  FileFingerprint fingerprint;
  Experiment experiment;  ///< without its layers
  std::string view;
  std::vector<formats::Json> edits;
};

/// Returns whether a file is such a session, judging by its first bytes.
bool is_saved_experiment(const std::filesystem::path& path);
bool is_saved_experiment_text(std::string_view text);

/// Parses a session. Throws core::Error, "FILE: PATH: expected …, got …"; UntrustedPath when the model is
/// outside the session's folder and that is refused.
SavedExperiment parse_experiment(std::string_view text, const std::filesystem::path& file,
                                 UntrustedPaths untrusted_paths);

/// Reads and parses a session whose model is opened by another path. Throws core::Error.
SavedExperiment load_experiment(const std::filesystem::path& file);

/// Throws core::Error, which says what has changed, unless the model is the one that was saved.
void require_same_model(const SavedExperiment& saved, const transformer::FullModel& model,
                        const std::filesystem::path& session);

/// Returns the experiment with the saved edits of a model; nothing is computed. Throws core::Error as
/// parse_experiment() and tokens_of() do.
Experiment with_saved_edits(const SavedExperiment& saved, const transformer::FullModel& model);

}  // namespace core::experiment
