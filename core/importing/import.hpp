#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/files/given_tensors.hpp"
#include "core/files/layers.hpp"
#include "core/files/session_files.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"

/// Models made of files of tensors, and what a person must know to trust them.
namespace core::importing {

/// Something that a model does and this program does not compute.
struct NotSupported {
  std::string name;   ///< as it is asked to be ignored: "rotary"
  std::string words;  ///< "rotary positions"
  friend bool operator==(const NotSupported&, const NotSupported&) = default;
};

/// What became of a file: what of it was used, what was not, what was assumed because nothing tells it, and
/// what the model does that is not computed. A few words each: "attn_mask [6, 6]", "causal".
struct Account {
  std::vector<std::string> used, not_used, assumed;
  std::vector<NotSupported> not_supported;
  friend bool operator==(const Account&, const Account&) = default;
};

/// "not computed: rotary positions; assumed: causal; not used: attn_mask [6, 6]", or "" when there is nothing
/// of that.
std::string reservations_text(const Account& account);

/// The same after "used: …": all of it on one line; what nothing is assumed of is said as well.
std::string account_text(const Account& account);

/// The words of what is not supported.
std::vector<std::string> not_supported_words(const Account& account);

/// What may be ignored, by name: "rotary, relative, …"; whether that is one of them, or "all".
std::string names_to_ignore();
bool can_be_ignored(const std::string& name);

/// What is said of a model that knows nothing but what is given by files, as many as said.
Account account_of_given(const attention::Model& model, const std::vector<formats::GivenTensor>& given);

/// Says of given weights whose rows do not sum to 1 that they do not, or "" when they do.
std::string row_sums_note(const attention::Model& model);

/// A stage and the tensors that hold it: one, or one for each head.
struct StageSource {
  attention::Stage stage = attention::Stage::weights;
  std::vector<std::string> tensors;
  friend bool operator==(const StageSource&, const StageSource&) = default;
};

/// What a person says of attention itself; it goes before what a file says or leaves open.
struct Settings {
  std::optional<bool> causal;
  std::optional<double> scale;
  std::optional<positions::Rotary> rotary;
  std::optional<std::size_t> window;  ///< keys that a query attends to at most: its own and those before it
  std::optional<std::size_t> n_kv_heads;
  std::string as_type =
      {};  ///< model_type whose attention a checkpoint's is, whatever config.json says, or ""
  friend bool operator==(const Settings&, const Settings&) = default;
};

/// What a person says about a file that is to be opened; what is not said is found out.
struct Choices {
  std::string layer = {};  ///< by number from 0 or by name; empty is the first
  std::optional<formats::checkpoints::Mapping> mapping = {};  ///< by hand, not of a known layout
  std::optional<std::size_t> n_heads = {};
  std::filesystem::path embeddings = {};         ///< a file of tensors beside the checkpoint, or empty
  std::vector<formats::GivenTensor> given = {};  ///< stages that files give, whatever the model comes from
  std::string embeddings_tensor = {};            ///< which tensor of that file, or of the file itself
  std::vector<StageSource> stages = {};          ///< of the file itself, by hand, not as they are found in it
  std::optional<bool> has_header_line = {};  ///< of a table, when it is 0, 1, 2 …; else it is of numbers
  bool first_axis_is_batch = false;          ///< of stages of four dimensions; else it counts layers
  bool computes_stages = false;  ///< of stages only queries, keys and values are taken where they are there
  Settings settings = {};
  /// Features that may be ignored, by name, or "all"; without a list anything may, as it is said.
  std::optional<std::vector<std::string>> ignored = {};
  UntrustedPaths elsewhere = UntrustedPaths::refused;  ///< where a session may name files
  bool says_something() const {
    return !layer.empty() || mapping || n_heads || !embeddings.empty() || !embeddings_tensor.empty() ||
           has_header_line || settings != Settings();
  }
};

/// A model made of a file, and what a person must know about it, a sentence each.
struct Imported {
  attention::Model model;
  std::vector<std::string> notes;
  std::string view;  ///< of a session: what was looked at
  Account account = {};
};

/// Puts settings into a model and its account. Throws core::Error, "PLACE…", where they do not fit.
void apply(const Settings& settings, Imported& imported, const std::string& place);

/// Whether the file begins as a session does, or is called JSON, so that it is to be read as one.
bool is_session(const std::filesystem::path& path);

/// Makes a model of an opened file: of a layer of a checkpoint with embeddings, of stages of a layer that are
/// given, or of one matrix of embeddings alone.
///
/// Embeddings that nothing gives are eight tokens of standard normal numbers, which is noted. Throws
/// core::Error, one line that names the file and what must be said.
Imported import_tensors(const formats::TensorFile& file, const Choices& choices, const core::Token& progress);

/// What would become of a layer of a checkpoint, as far as names and its configuration tell.
struct ExpectedLayer {
  Account account;
  std::optional<std::size_t> n_heads;
};
/// Throws core::Error.
ExpectedLayer expected_of_layer(const formats::TensorFile& file, const formats::checkpoints::Layer& layer,
                                const formats::checkpoints::Config& config);

/// The layers among which Choices::layer chooses, by name or number; fewer than two leave no choice.
std::vector<std::string> layers_in(const formats::TensorFile& file, const Choices& choices,
                                   const core::Token& progress);

/// Opens a file, a session or tensors, as a model. Throws core::Error.
Imported import_file(const std::filesystem::path& path, const Choices& choices, const core::Token& progress);

/// The tensor of a file whose name says that it is embeddings, or else the only one of two or three axes; or
/// nullptr.
const formats::TensorInfo* usual_embeddings(const formats::TensorFile& file);

/// The stages of one layer that a file has, by the names of its tensors.
struct StageLayer {
  std::string name;  ///< what its tensors' names have in common: "model.layers.3.self_attn", "3", or ""
  std::vector<StageSource> stages;  ///< in the order of the computation, each once
};

/// The stages in a file, by the names that core::check knows; several layers when the names tell them apart.
///
/// A file of one tensor, or of several of one shape, whose names say nothing holds weights if its first
/// matrix does: numbers of 0 … 1 in rows that sum to 1. Throws core::Error as TensorFile::read() does.
std::vector<StageLayer> find_stages(const formats::TensorFile& file, const core::Token& progress);

/// The stages that are given unless some are chosen: weights, or else the last scores, or else queries and
/// keys; with values where there are some. None when the file holds none of them.
std::vector<StageSource> usual_stages(const StageLayer& layer);

/// How many layers the first axis of the tensors counts, [layers, heads, rows, columns] or
/// [layers, sequences, heads, rows, columns]; 0 when it counts none.
///
/// Throws core::Error when they have not as many as one another.
std::size_t layers_within(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                          bool first_axis_is_batch);

/// What would become of those stages of a layer, as far as the names in the file tell.
Account expected_of_stages(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                           const std::string& layer);

}  // namespace core::importing
