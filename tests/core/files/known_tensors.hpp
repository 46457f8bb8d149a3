#pragma once

#include <map>
#include <string>

#include "core/files/tensor.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats::readers {

/// Folder of the tensor files.
const std::string folder = FIXTURES "/formats/";

/// Reads the exact contents of the tensor files, by tensor name, from the JSON file next to them.
std::map<std::string, Tensor> known_tensors(const std::string& json_path);

/// Writes bytes to a new file of a directory and returns its path.
inline std::filesystem::path written(const support::TemporaryDirectory& directory, const std::string& name,
                                     const std::string& bytes) {
  support::put_bytes(directory / name, bytes);
  return directory / name;
}

/// Returns the error of opening a tensor file and reading all of its tensors.
std::string reading_error(const std::filesystem::path& path);

/// Returns where two tensors differ in name, type, shape or any bit of a number (all NaN are equal), or "".
std::string difference(const Tensor& tensor, const Tensor& known);

/// Does the same for n_tensors tensors of a file, each read whole and its last part at any leading indices.
std::string difference(const TensorFile& file, const std::map<std::string, Tensor>& known,
                       std::size_t n_tensors);

}  // namespace core::formats::readers
