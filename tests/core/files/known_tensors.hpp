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

/// What opening a file of tensors and reading all of them says.
std::string error_of_reading(const std::filesystem::path& path);

/// Says where a tensor differs from another in name, type, shape or any bit of a number (all NaN are one), or
/// "".
std::string difference(const Tensor& tensor, const Tensor& known);

/// The same of that many tensors of a file, of each as a whole and of its last part at any leading indices.
std::string difference(const TensorFile& file, const std::map<std::string, Tensor>& known,
                       std::size_t n_tensors);

}  // namespace core::formats::readers
