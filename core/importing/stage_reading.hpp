#pragma once

#include <optional>

#include "core/importing/companions.hpp"
#include "core/importing/stages_in.hpp"

namespace core::importing {

/// Reads the stages of one layer of a file, each for as many heads as were said or as others of them have.
class StageReading {
 public:
  StageReading(const formats::TensorFile& file, const Choices& choices, const LayerOf& layer,
               const core::Token& progress, Account& account);

  /// Reads a stage; what of it is a matrix a head tells how many heads the others have. Throws core::Error.
  formats::TensorStage read(const StageSource& source);

  /// Reads stages, those first that tell of heads, of as many sequences each. Throws core::Error.
  std::vector<formats::TensorStage> read_all(std::vector<StageSource> stages);

 private:
  formats::Tensor numbers_of(const formats::TensorInfo& info) const;
  void repeat_groups(const StageSource& source, formats::TensorStage& stage);

  const formats::TensorFile& file_;
  LayerOf layer_;
  const core::Token& progress_;
  Account& account_;
  std::optional<bool> first_line_is_names_;
  std::optional<std::size_t> n_heads_;
};

}  // namespace core::importing
