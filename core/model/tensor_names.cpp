#include "core/model/tensor_names.hpp"

#include <string_view>

#include "core/base/error.hpp"

namespace core::transformer {
namespace {

bool is_of_head(Role role) {
  return role >= Role::head_dense;
}

}  // namespace

TensorNames::TensorNames(const formats::TensorFile& file, const Family& family)
    : file_(&file), names_(&family.names), is_gguf_(file.format() == std::string_view("gguf")) {
  if (is_gguf_) names_ = &family.gguf_names;
  for (const std::string& prefix : {std::string(), std::string(family.prefixes)}) {
    prefix_ = prefix;
    if (find(Role::token_embedding, "weight")) return;
  }
  throw Error(file.place() + "expected a tensor " + names_->of(Role::token_embedding) +
              ".weight, as models of the family " + family.name + " have it");
}

std::string TensorNames::name(Role role, std::size_t layer) const {
  std::string name = (is_of_head(role) ? "" : prefix_) + std::string(names_->of(role));
  if (const std::size_t at = name.find('#'); at != name.npos) name.replace(at, 1, std::to_string(layer));
  return name;
}

std::optional<std::string> TensorNames::find(Role role, const char* ending, std::size_t layer) const {
  if (!*names_->of(role)) return std::nullopt;
  const std::string begin = name(role, layer) + ".";
  if (file_->find(begin + ending)) return begin + ending;
  // The first checkpoints of BERT call a norm's numbers as its paper does.
  const std::string older = begin + (ending == std::string_view("weight") ? "gamma" : "beta");
  return file_->find(older) ? std::optional(older) : std::nullopt;
}

std::string TensorNames::require(Role role, const char* ending, std::size_t layer) const {
  if (const auto found = find(role, ending, layer)) return *found;
  throw Error(file_->place() + "expected a tensor " + name(role, layer) + "." + ending + ", there is none");
}

}  // namespace core::transformer
