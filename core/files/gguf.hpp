#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/tensor.hpp"
#include "core/system/file.hpp"

namespace core::formats {

/// A number format of GGUF: blocks of a fixed count and a fixed size in bytes.
struct GgufType {
  std::uint32_t number;  ///< its code in a file
  const char* name;
  std::size_t block, bytes;
  Dtype dtype;  ///< of a plain number in the file
  /// Decodes one block to float32; nullptr for plain numbers. Source: github.com/ggml-org/ggml,
  /// ggml-quants.c.
  void (*decode)(const char* bytes, float* numbers);
};

/// Returns the dtype of a type's decoded numbers: float64 stays as it is, all others become float32.
Dtype decoded_dtype(const GgufType& type);

/// Returns the type with a code, or nullptr if it is not supported.
const GgufType* gguf_type(std::uint32_t number);

/// A value of a GGUF file's metadata: a number, a flag (0 or 1), a text, or a list of one of these.
struct GgufValue {
  bool is_list = false;
  std::vector<double> numbers;     ///< a single one, or those of a list
  std::vector<std::string> texts;  ///< the same
};

/// The metadata of a GGUF file, by key.
class GgufMetadata {
 public:
  GgufMetadata(std::string place, std::map<std::string, GgufValue> values)
      : place_(std::move(place)), values_(std::move(values)) {}

  /// Returns "FILE: ".
  const std::string& place() const { return place_; }
  /// Returns the single value of a key, or nothing; whole() requires a whole number. Each throws core::Error,
  /// "FILE: KEY: expected …", when the value is of another type.
  std::optional<double> number(const std::string& key) const;
  std::optional<std::size_t> whole(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;
  /// Returns a list, empty if there is none.
  const std::vector<std::string>& texts(const std::string& key) const;
  const std::vector<double>& numbers(const std::string& key) const;
  /// Returns the single value of a key that must be present.
  std::size_t required_whole(const std::string& key) const;
  std::string required_text(const std::string& key) const;

 private:
  const GgufValue* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const;

  std::string place_;
  std::map<std::string, GgufValue> values_;
};

/// Returns whether bytes begin like a GGUF file.
bool looks_like_gguf(std::string_view begin);

/// Reads only the metadata. Throws core::Error as open_gguf() does.
GgufMetadata gguf_metadata(const std::filesystem::path& path);

/// Opens a GGUF file of llama.cpp, version 2 or 3, by reading only its header.
///
/// Reads F32 F16 BF16, Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K as float32, and F64 as it is. Shapes have the
/// innermost length last. Throws core::Error when a count, length or offset in the header does not fit the
/// file size, a key or tensor occurs twice, or a tensor has another type. Source: github.com/ggml-org/ggml,
/// docs/gguf.md there.
TensorFile open_gguf(const std::filesystem::path& path, const StopToken& progress);

/// A tensor as the header of a GGUF file describes it.
struct GgufTensor {
  std::string name;
  TensorShape shape;  ///< the innermost length last
  const GgufType* type;
  std::uint64_t offset;  ///< in bytes, from data_at
};

struct GgufHeader {
  std::map<std::string, GgufValue> metadata;
  std::vector<GgufTensor> tensors;
  std::uint64_t data_at = 0;  ///< bytes of the file before the data
};

/// Reads the header. Throws core::Error as open_gguf() does.
GgufHeader read_gguf_header(const system::OpenFile& file);

}  // namespace core::formats
