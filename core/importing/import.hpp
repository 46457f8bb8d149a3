#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/files/given_tensors.hpp"
#include "core/files/layers.hpp"
#include "core/files/session.hpp"
#include "core/files/session_files.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"

/// Models made from files of tensors, and the facts that a user needs to trust them.
namespace core::importing {

/// A feature of a model that this program does not compute.
struct UnsupportedFeature {
  std::string name;   ///< as --ignore names it: "rotary"
  std::string words;  ///< "rotary positions"
  friend bool operator==(const UnsupportedFeature&, const UnsupportedFeature&) = default;
};

/// How a file was used: the parts used and not used, assumptions where nothing is said, and features that are
/// not computed. A few words each: "attn_mask [6, 6]", "causal".
struct ImportReport {
  std::vector<std::string> used, not_used, assumed;
  std::vector<UnsupportedFeature> not_supported;
  friend bool operator==(const ImportReport&, const ImportReport&) = default;
};

/// Returns "not computed: rotary positions; assumed: causal; not used: attn_mask [6, 6]", or "" when all of
/// these are empty.
std::string caveats_text(const ImportReport& import_report);

/// Returns the same after "used: …", on one line, with "nothing" where nothing was assumed or left unused.
std::string import_report_text(const ImportReport& import_report);

/// Returns the words of the features that are not supported.
std::vector<std::string> not_supported_words(const ImportReport& import_report);

/// Returns the names that may be ignored, "rotary, relative, …"; whether a name is one of them, or "all".
std::string ignorable_names();
bool can_be_ignored(const std::string& name);

/// Returns the account of a model that has only given stages, all from files.
ImportReport given_stages_report(const attention::Model& model, const std::vector<formats::StageFile>& given);

/// Returns a note if rows of given weights do not sum to 1, else "".
std::string row_sums_note(const attention::Model& model);

/// A stage and the tensors that hold it: one, or one per head.
struct StageSource {
  attention::Stage stage = attention::Stage::weights;
  std::vector<std::string> tensors;
  friend bool operator==(const StageSource&, const StageSource&) = default;
};

/// Settings of attention by the user, which override the file and its defaults.
struct AttentionSettings {
  std::optional<bool> causal;
  std::optional<double> scale;
  std::optional<positions::Rotary> rotary;
  std::optional<std::size_t> window;  ///< largest number of keys per query: its own and those before it
  std::optional<std::size_t> n_kv_heads;
  std::string type_override =
      {};  ///< model_type to assume for a checkpoint, instead of that of config.json, or ""
  friend bool operator==(const AttentionSettings&, const AttentionSettings&) = default;
};

/// The user's choices for opening a file; anything else is detected.
struct Choices {
  std::string layer = {};  ///< by number from 0 or by name; empty is the first
  std::optional<formats::checkpoints::ProjectionMapping> mapping =
      {};  ///< by hand, instead of a known layout
  std::optional<std::size_t> n_heads = {};
  std::filesystem::path embeddings = {};       ///< a file of tensors next to the checkpoint, or empty
  std::vector<formats::StageFile> given = {};  ///< stages given by other files, for a model of any kind
  std::string embeddings_tensor = {};          ///< the tensor of that file, or of the file itself
  std::vector<StageSource> stages = {};        ///< of the file itself, by hand, not detected
  formats::IndexChoice index = {};  ///< whether a table's first line and column 0, 1, 2 … are names
  formats::DecimalMark mark = formats::DecimalMark::point;  ///< of tables and texts
  bool first_axis_is_batch = false;  ///< of stages of four dimensions; if false it counts layers
  bool computes_stages = false;      ///< uses only queries, keys and values where the file has them
  AttentionSettings settings = {};
  /// Features that may be ignored, by name, or "all"; without a list all may, with a note.
  std::optional<std::vector<std::string>> ignored = {};
  UntrustedPaths untrusted_paths = UntrustedPaths::refused;  ///< whether a session may name files elsewhere
  bool has_choices() const {
    return !layer.empty() || mapping || n_heads || !embeddings.empty() || !embeddings_tensor.empty() ||
           index != formats::IndexChoice() || settings != AttentionSettings();
  }
};

/// A model made from a file, with notes for the user, a sentence each.
struct ImportResult {
  attention::Model model;
  std::vector<std::string> notes;
  std::string view;  ///< of a session: its saved view
  ImportReport import_report = {};
};

/// Applies settings to a model and its account. Throws core::Error, "PLACE…", where they do not fit.
void apply(const AttentionSettings& settings, ImportResult& imported, const std::string& place);

/// Returns whether the file begins like a session, or has a JSON extension, and so is read as one.
bool is_session(const std::filesystem::path& path);

/// Makes a model from an opened file: from a layer of a checkpoint with embeddings, from given stages of a
/// layer, or from one matrix of embeddings alone.
///
/// Missing embeddings become eight tokens of standard normal numbers, with a note. Throws core::Error, one
/// line that names the file and the missing choice.
ImportResult import_tensors(const formats::checkpoints::Checkpoint& checkpoint, const Choices& choices,
                            const core::StopToken& progress);

/// The expected result for a layer of a checkpoint, according to names and its configuration.
struct ExpectedLayer {
  ImportReport import_report;
  std::optional<std::size_t> n_heads;
};
/// Returns it. Throws core::Error.
ExpectedLayer expected_of_layer(const formats::checkpoints::Checkpoint& checkpoint,
                                const formats::checkpoints::Layer& layer);

/// Returns the layers for Choices::layer, by name or number; fewer than two leave no choice.
std::vector<std::string> layer_names(const formats::checkpoints::Checkpoint& checkpoint,
                                     const Choices& choices, const core::StopToken& progress);

/// Returns the model of a session, with what it lacks and what was assumed.
ImportResult import_session(formats::Session session);

/// Opens a file, a session or tensors, as a model. Throws core::Error.
ImportResult import_file(const std::filesystem::path& path, const Choices& choices,
                         const core::StopToken& progress);

/// Returns the tensor of a file whose name says that it is embeddings, or else the only one with two or three
/// axes; or nullptr.
const formats::TensorInfo* guess_embeddings(const formats::TensorFile& file);

/// The stages of one layer that a file has, by the names of its tensors.
struct StageLayer {
  std::string name;  ///< common part of its tensors' names: "model.layers.3.self_attn", "3", or ""
  std::vector<StageSource> stages;  ///< in the order of the computation, each once
};

/// Finds the stages in a file, by the names that formats::meaning_of() knows; several layers if names tell
/// them apart.
///
/// A file of one tensor, or of several of one shape, under meaningless names holds weights if its first
/// matrix does: numbers of 0 … 1 in rows that sum to 1. Throws core::Error as TensorFile::read() does.
std::vector<StageLayer> find_stages(const formats::TensorFile& file, const core::StopToken& progress);

/// Returns the stages that are given by default: weights, or else the last scores, or else queries and keys;
/// with values if there are some. None when the file holds none of them.
std::vector<StageSource> default_stages(const StageLayer& layer);

/// Returns the number of layers that the first axis counts, in [layers, heads, rows, columns] or [layers,
/// sequences, heads, rows, columns]; 0 when it counts none.
///
/// Throws core::Error when the tensors differ in it.
std::size_t count_layers(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                         bool first_axis_is_batch);

/// Returns the expected account for those stages of a layer, according to the names in the file.
ImportReport expected_of_stages(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                                const std::string& layer);

}  // namespace core::importing
