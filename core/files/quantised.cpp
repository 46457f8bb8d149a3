#include "core/files/quantised.hpp"

#include <optional>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace core::formats::checkpoints {
namespace {

/// A tensor's name without its last part, and that part: "h.0.q_proj." and "weight".
struct NameParts {
  std::string base, last;
};

NameParts name_parts(const std::string& name) {
  const std::size_t point = name.rfind('.');
  const std::size_t end = point == name.npos ? 0 : point + 1;
  return {name.substr(0, end), name.substr(end)};
}

bool is_whole_number(Dtype dtype) {
  return dtype == Dtype::i64 || dtype == Dtype::i32 || dtype == Dtype::i16 || dtype == Dtype::i8 ||
         dtype == Dtype::u64 || dtype == Dtype::u32 || dtype == Dtype::u16 || dtype == Dtype::u8;
}

/// Both pack several weights into one number, GPTQ along the inputs, AWQ along the outputs.
std::string packed_scheme(const TensorFile& file, const TensorInfo& tensor, const std::string& base) {
  const TensorInfo* scales = file.find(base + "scales");
  if (file.find(base + "g_idx")) return "GPTQ";
  if (!scales || scales->shape.empty() || tensor.shape.size() != 2) return "GPTQ or AWQ";
  return scales->shape.back() == tensor.shape[1] ? "GPTQ" : "AWQ";
}

/// The scheme by which a tensor is quantised, or nothing.
std::optional<std::string> scheme_of(const TensorFile& file, const TensorInfo& tensor) {
  const NameParts name = name_parts(tensor.name);
  const auto has = [&](const char* beside) { return file.find(name.base + beside) != nullptr; };
  if (name.last == "qweight") return packed_scheme(file, tensor, name.base);
  if (name.last == "weight_packed") return "compressed-tensors";
  if (!is_whole_number(tensor.dtype) || tensor.shape.size() < 2) return std::nullopt;
  const auto follows = [&](const char* end) { return file.find(tensor.name + end) != nullptr; };
  if (follows(".absmax") || follows(".quant_map") || (name.last == "weight" && has("SCB")))
    return "bitsandbytes";
  if (name.last == "weight")
    for (const char* scale : {"scale", "scales"})
      if (has(scale)) return "a scheme with " + name.base + scale;
  for (const char* scale : {"_scale", ".scale", "_scales", ".scales"})
    if (follows(scale)) return "a scheme with " + tensor.name + scale;
  return std::nullopt;
}

}  // namespace

void refuse_quantised(const TensorFile& file, const Config& config) {
  for (const TensorInfo& tensor : file.tensors()) {
    const auto scheme = scheme_of(file, tensor);
    if (!scheme) continue;
    std::string words = *scheme;
    if (!config.quantisation.empty() && text::lower(words) != text::lower(config.quantisation))
      words += " (config.json says " + config.quantisation + ")";
    throw Error(file.place() + tensor.name + ": expected weights as floating-point numbers, got " +
                dtype_name(tensor.dtype) + " quantised by " + words + ", which is not read");
  }
}

}  // namespace core::formats::checkpoints
