#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/files/layers.hpp"

namespace support {

/// Returns what a file holds.
inline core::formats::checkpoints::Checkpoint read_checkpoint(core::formats::TensorFile file) {
  return core::formats::checkpoints::read_checkpoint(
      std::make_shared<const core::formats::TensorFile>(std::move(file)));
}

/// Returns a checkpoint of tensors with these names and shapes and no numbers, without a configuration.
inline core::formats::checkpoints::Checkpoint checkpoint_of(
    const std::vector<core::formats::TensorInfo>& tensors) {
  std::vector<core::formats::TensorEntry> entries;
  for (const core::formats::TensorInfo& info : tensors) entries.push_back({info, nullptr, {}});
  return read_checkpoint({"/nowhere/model.safetensors", "safetensors", std::move(entries)});
}

}  // namespace support
