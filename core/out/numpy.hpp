#pragma once

#include <armadillo>
#include <functional>
#include <string>
#include <vector>

#include "core/base/token.hpp"
#include "core/graph/model.hpp"

namespace core::formats {

/// A matrix as a .npy file of version 1.0: little-endian float64, shape (n_rows, n_cols), row after row.
///
/// Source: NumPy, numpy.lib.format.
std::string npy_bytes(const arma::mat& matrix);

/// The header of a .npy file of that shape; append_rows() adds the numbers. type is NumPy's word
/// for what they are.
std::string npy_header(const std::vector<std::size_t>& shape, const std::string& type = "<f8");

/// Appends a matrix row after row, as little-endian float64.
void append_rows(std::string& bytes, const arma::mat& matrix);

/// Words in UTF-8 as a .npy file of that shape, as NumPy keeps text: UTF-32, all of the longest one's length.
/// Bytes that are not UTF-8 become U+FFFD.
std::string npy_words(const std::vector<std::string>& words, const std::vector<std::size_t>& shape);

/// A file to be put into an archive; its content is made when it is written, and freed after that.
struct ZipContent {
  std::string name;
  std::function<std::string()> make;
};

/// A zip archive of these files, each deflated.
///
/// The same files give the same bytes: times are the earliest that the format knows, as NumPy writes them.
/// Throws what make throws, and core::Error when two files have one name.
std::string zip_bytes(const std::vector<ZipContent>& files);

/// A model and its stages as a .npz file: little-endian float64 arrays under the names of the stages.
///
/// A stage has the shape [rows, columns], [heads, rows, columns] when each head has one, and a first axis
/// more when the model has several sequences. "tokens" are text, [tokens] or [sequences, tokens];
/// "key_tokens" likewise, where other tokens are asked. stages are names of the table of stages; none means
/// all that the model has, and beside them the learned matrices: "projections.query.weight" [d_in, d_out],
/// "projections.query.bias" [d_out], and so on. Throws core::Error when the model cannot be computed, a name
/// is not that of a stage, or the model lacks the stage. Source: NumPy, numpy.savez_compressed. Once the
/// progress is cancelled it throws Stopped.
std::string npz_bytes(const attention::Model& model, const std::vector<std::string>& stages = {},
                      const Token* progress = nullptr);

}  // namespace core::formats
