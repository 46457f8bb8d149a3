#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/tensor.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"

namespace core::check {

using attention::Model;
using attention::Stage;

/// Order of the axes of a tensor with features of heads.
struct TensorLayout {
  const char* name;   ///< "bthd"
  const char* axes;   ///< one per axis: s sequence, h head, r row, c column, j columns of all heads
  const char* about;  ///< "heads after tokens"
};

/// Returns the layouts a user can choose; queries, keys, values and contexts are then read in that one only.
std::span<const TensorLayout> layouts();

/// Returns the layout of that name, or nullptr.
const TensorLayout* find_layout(std::string_view name);

/// Description of a tensor's layout.
struct LayoutDescription {
  std::string words = {};  ///< "[T, H·d]", "[H/2, T, d], groups of 2 heads"
  bool is_default = true;  ///< attnscope's own layout, which needs no description
  bool is_mean = false;    ///< one matrix, the mean over all heads
  bool is_masked = false;  ///< its scores were masked before scaling
};

/// One interpretation of a tensor: its stage, and where its numbers are stored.
struct Reading {
  Stage stage = Stage::weights;
  std::size_t first_sequence = 0, n_sequences = 1, first_head = 0, n_heads = 1, n_rows = 0, n_columns = 0;
  std::size_t per_sequence = 0, per_head = 0, per_row = 0, per_column = 0;  ///< strides, in numbers
  bool joined = false;         ///< the features of all heads in one matrix, as a projection outputs them
  std::size_t group_size = 1;  ///< heads of the model per head of the tensor
  bool has_kv_heads = false;   ///< its heads are the KV heads of a model with grouped queries
  LayoutDescription layout = {};

  std::size_t at(std::size_t sequence, std::size_t head, std::size_t row, std::size_t column) const {
    return sequence * per_sequence + head / group_size * per_head + row * per_row + column * per_column;
  }
};

/// A tensor that belongs to a stage of the model.
struct ObservedTensor {
  std::string name;  ///< as in the file
  formats::Tensor tensor;
  formats::Dtype rounding = formats::Dtype::f64;  ///< precision of its numbers, by its type or their values
  std::vector<Reading> readings;  ///< the likeliest first; none if its shape fits no possible stage
  std::string obstacle;           ///< why there are no readings: "expected [2, 6, 6], got [6, 5]"
  Stage stage = Stage::weights;   ///< the first stage that its name suggests
};

/// Returns the possible readings of a tensor of that shape as a stage, the simplest first.
///
/// A tensor without a sequence axis is the given sequence; leading axes of length 1 are ignored. Keys and
/// values of KV heads have one matrix per KV head or per head; in a model without KV heads they may have
/// fewer heads if its own repeat. `layout` restricts features of heads. Weights without heads that fit in no
/// other way are read as the mean over heads.
std::vector<Reading> possible_readings(const Model& model, Stage stage, const formats::TensorShape& shape,
                                       std::size_t sequence, std::optional<std::size_t> head,
                                       const TensorLayout* layout = nullptr);

/// Reads scores that contain −∞ as masked before scaling, which gives the same weights; classes that scale
/// inside the softmax call do so.
void mark_masked(ObservedTensor& observed);

/// Returns the possible readings of a tensor as a stage of another model, by name and shape; `stage` is the
/// stage assigned to it.
std::vector<Reading> readings_by_name(const Model& other, std::string_view name, Stage stage,
                                      const formats::TensorShape& shape);

/// Options for reading a file of tensors.
struct MatchOptions {
  std::size_t sequence = 0;              ///< sequence of tensors without a sequence axis
  const TensorLayout* layout = nullptr;  ///< of the features of heads; nullptr for any that fits
  std::string layer = {};                ///< by number from 0 or by name; empty is the first
};

/// Tensors that were not compared, and why.
struct IgnoredTensors {
  std::string tensors, why;
  std::string words() const { return tensors + ": " + why; }
};

/// Tensors of a file assigned to stages.
struct MatchResult {
  std::vector<ObservedTensor>
      observed;  ///< no readings, and numbers only for inference, if the shape does not fit
  std::vector<IgnoredTensors> left_out;  ///< unknown names, or of another layer
  std::vector<std::string> notes;        ///< on what the file holds beside these, a sentence each
  std::vector<std::string> layers;  ///< names of the file's layers, or as many ""; empty for fewer than two
  std::size_t layer = 0;            ///< index of the layer used
  bool used_first_by_default = false;  ///< the layers are a first axis, and the first was used by default
};

/// Matches tensors to stages of a model by their names and shapes.
///
/// by_hand gives the stage of a name; "" ignores the tensor. Of several layers, distinguished by name or as a
/// first axis, one is used. Throws core::Error when no tensor has the name of a stage, by_hand names a tensor
/// that does not exist, there is no such layer, or the file cannot be read; Stopped when requested.
MatchResult match(const Model& model, const formats::TensorFile& file,
                  const std::map<std::string, std::string>& by_hand, const MatchOptions& options = {},
                  const core::StopToken& progress = core::StopToken());

/// Returns which of a file's layers was used, "layer 3 of 12", or "" if there is only one.
std::string layer_words(const MatchResult& matched);

}  // namespace core::check
