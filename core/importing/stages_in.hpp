#pragma once

#include <string>
#include <vector>

#include "core/importing/import.hpp"

namespace core::importing {

/// What of one layer stands in a file, as far as the names of its tensors tell.
struct StageLayer {
  std::string name;  ///< what its tensors' names have in common: "model.layers.3.self_attn", "3", or ""
  std::vector<StageSource> stages;  ///< in the order of the computation, each once
};

/// The stages in a file, by the names that core::check knows; several layers when the names tell them apart.
///
/// A file of one tensor, or of several of one shape, whose names say nothing holds weights if its first
/// matrix does: numbers of 0 … 1 in rows that sum to 1. Throws core::Error as TensorFile::read() does.
std::vector<StageLayer> find_stages(const formats::TensorFile& file, const core::Token& progress);

/// Those that are given when nobody chooses: weights, or else the last scores, or else queries and keys; with
/// values where there are some. None when the file holds none of them.
std::vector<StageSource> usual_stages(const StageLayer& layer);

/// Whether a first axis of four counts the sequences of a batch and not layers: because that was said, or
/// because no layer was asked for and a mask beside the stages has as many sequences.
bool counts_sequences(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                      const std::string& layer, const Choices& choices);

/// How many layers the first axis of the tensors counts, [layers, heads, rows, columns] or
/// [layers, sequences, heads, rows, columns]; 0 when it counts none.
///
/// Throws core::Error when they have not as many as one another.
std::size_t layers_within(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                          bool first_axis_is_batch);

/// What would become of those stages of a layer, as far as the names in the file tell.
Account expected_of_stages(const formats::TensorFile& file, const std::vector<StageSource>& stages,
                           const std::string& layer);

/// A model in which stages of one layer are given and nothing before them is known. Throws core::Error.
Imported import_stages(const formats::TensorFile& file, const std::vector<StageLayer>& found,
                       const Choices& choices, const core::Token& progress);

}  // namespace core::importing
