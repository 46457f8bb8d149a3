#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/files/config.hpp"
#include "core/files/given_tensors.hpp"
#include "core/files/layers.hpp"
#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"
#include "core/importing/account.hpp"

/// Models from files that are no sessions: checkpoints and tensors.
namespace core::importing {

/// A stage and the tensors that hold it: one, or one for each head.
struct StageSource {
  attention::Stage stage = attention::Stage::weights;
  std::vector<std::string> tensors;
  friend bool operator==(const StageSource&, const StageSource&) = default;
};

/// What a person says about a file that is to be opened; what is not said is found out.
struct Choices {
  std::string layer;                                     ///< by number from 0 or by name; empty is the first
  std::optional<formats::checkpoints::Mapping> mapping;  ///< by hand, instead of a layer of a known layout
  std::optional<std::size_t> n_heads;
  std::filesystem::path embeddings;         ///< a file of tensors beside the checkpoint, or empty
  std::vector<formats::GivenTensor> given;  ///< stages that files give, whatever the model comes from
  std::string embeddings_tensor;            ///< which tensor of that file, or of the file itself
  std::vector<StageSource> stages;  ///< of the file itself, by hand, instead of those that are found in it
  std::optional<bool> first_line_is_names;  ///< of a table, when it is 0, 1, 2 …; else it is of numbers
  bool first_axis_is_batch = false;         ///< of stages of four dimensions; else it counts layers
  /// What may be left out, by the names of absences or "all"; without a list anything may, as it is said.
  std::optional<std::vector<std::string>> ignored;
  Elsewhere elsewhere = Elsewhere::refused;  ///< where a session may name files
  bool says_something() const {
    return !layer.empty() || mapping || n_heads || !embeddings.empty() || !embeddings_tensor.empty() ||
           first_line_is_names;
  }
};

/// A model made of a file, and what a person must know about it, a sentence each.
struct Imported {
  attention::Model model;
  std::vector<std::string> notes;
  std::string view;  ///< of a session: what was looked at
  Account account = {};
};

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

}  // namespace core::importing
