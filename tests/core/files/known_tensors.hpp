#pragma once

#include <map>
#include <string>

#include "core/files/tensor.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats::readers {

/// Of the files of tensors.
const std::string folder = FIXTURES "/formats/";

/// What a JSON file beside the files of tensors says is in them, exactly: name to tensor.
std::map<std::string, Tensor> known_tensors(const std::string& json_path);

/// Puts bytes into a new file of a directory and gives its path.
inline std::filesystem::path written(const support::TemporaryDirectory& directory, const std::string& name,
                                     const std::string& bytes) {
  support::put_bytes(directory / name, bytes);
  return directory / name;
}

/// Says where a tensor differs from another in name, type, shape or any bit of a number (all NaN are one), or
/// "".
std::string difference(const Tensor& tensor, const Tensor& known);

}  // namespace core::formats::readers
