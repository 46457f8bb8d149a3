#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/check/layouts.hpp"
#include "core/check/reading.hpp"
#include "core/files/tensor.hpp"

namespace core::check {

/// How a person wants a file of tensors to be read.
struct MatchOptions {
  std::size_t sequence = 0;        ///< that tensors without a dimension for sequences are
  const Layout* layout = nullptr;  ///< of the features of heads, or nullptr for whichever fits
  std::string layer = {};          ///< by number from 0 or by name; empty is the first
};

/// Tensors that were not compared, and why.
struct LeftOut {
  std::string tensors, why;
  std::string words() const { return tensors + ": " + why; }
};

/// What of a file was taken for which stage.
struct Matched {
  std::vector<Theirs>
      theirs;  ///< without readings and numbers those whose name is a stage and whose shape is not
  std::vector<LeftOut> left_out;    ///< they say nothing, or are of another layer
  std::vector<std::string> layers;  ///< the names of those in the file, or as many ""; fewer than two: none
  std::size_t layer = 0;            ///< the one of them that was taken
  bool is_first_of_axis = false;    ///< of several that a first axis counts the first, as none was asked for
};

/// Matches tensors to stages of a model by their names and shapes.
///
/// by_hand gives the stage of a name; "" leaves the tensor out. Of several layers, told apart by names or as
/// a first axis, one is taken. Throws core::Error when no tensor has the name of a stage, by_hand names a
/// tensor that is not there, there is no such layer, or the file cannot be read; Stopped
/// when that was asked for.
Matched match(const Model& model, const formats::TensorFile& file,
              const std::map<std::string, std::string>& by_hand, const MatchOptions& options = {},
              const core::Token& progress = core::Token());

/// "layer 3 of 12": which of a file's layers was taken, or "" where there is but one.
std::string layer_words(const Matched& matched);

}  // namespace core::check
