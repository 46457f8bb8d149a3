#pragma once

#include <armadillo>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"

namespace core::formats {

/// Returns a matrix as a .npy file, version 1.0: little-endian float64, shape (n_rows, n_cols), of a vector
/// (n_cols), C order.
///
/// Source: NumPy, numpy.lib.format.
std::string npy_bytes(const arma::mat& matrix, bool is_vector = false);

/// Returns the header of a .npy file of this shape; append_rows() adds the numbers. type is a NumPy dtype.
std::string npy_header(const std::vector<std::size_t>& shape, const std::string& type = "<f8");

/// Appends a matrix row by row, as little-endian float64.
void append_rows(std::string& bytes, const arma::mat& matrix);

/// Returns UTF-8 strings as a .npy file of this shape, in NumPy's text format: UTF-32, padded to the longest.
/// Invalid UTF-8 becomes U+FFFD.
std::string npy_strings(const std::vector<std::string>& words, const std::vector<std::size_t>& shape);

/// A file for an archive; its content is created when it is written, and freed after that.
struct ZipEntry {
  std::string name;
  std::function<std::string()> make;
};

/// Returns a zip archive of these files, each deflated.
///
/// The same files give the same bytes: timestamps are the earliest of the format, as in NumPy. Rethrows
/// exceptions of make; throws core::Error when two files have the same name.
std::string zip_bytes(const std::vector<ZipEntry>& files);

/// Returns a stage as a .npy file: [rows, columns], or [heads, rows, columns] if it is per head, where heads
/// that share keys and values count once, with a leading axis for several sequences.
std::string npy_stage(const attention::StageInfo& stage, std::span<const attention::Trace> traces,
                      const attention::Model& model);

/// Returns a model and its stages as a .npz file: little-endian float64 arrays with the names of the stages.
///
/// A stage has the shape [rows, columns], or [heads, rows, columns] if it is per head, with a leading axis
/// for several sequences. "tokens" is text, [tokens] or [sequences, tokens]; so is "key_tokens", in
/// cross-attention. Without stage names the file has all stages of the model and the learned matrices:
/// "projections.query.weight" [d_in, d_out], "projections.query.bias" [d_out], and so on. Throws core::Error
/// when the model cannot be computed, a stage name is unknown, or the model lacks the stage; Stopped once
/// progress is canceled. Source: NumPy, numpy.savez_compressed.
std::string npz_bytes(const attention::Model& model, const std::vector<std::string>& stages = {},
                      const StopToken* progress = nullptr);

}  // namespace core::formats
