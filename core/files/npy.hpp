#pragma once

#include "core/files/file.hpp"
#include "core/files/tensor_formats.hpp"

namespace core::formats::readers {

/// Whether bytes begin as a .npy file does.
bool looks_like_npy(std::string_view begin);

/// The tensor of a .npy file of n_bytes, whose bytes fetch gives; only its header is read.
///
/// Versions 1.0 to 3.0; f2 f4 f8, integers, bool and text (U), of both byte orders, in C and Fortran order.
/// Throws core::Error, "PLACEwhat is wrong", when the header is damaged, holds another type (pickled objects,
/// complex numbers, records) or claims other bytes than the file has. Source: NumPy, numpy.lib.format.
RawTensor npy_tensor(std::string name, std::string place, std::uint64_t n_bytes, const Fetch& fetch);

TensorFile open_npy(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
