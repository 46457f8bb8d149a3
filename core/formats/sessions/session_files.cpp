#include "core/formats/sessions/session_files.hpp"

#include "core/error.hpp"
#include "core/formats/readers/tensor_formats.hpp"
#include "core/formats/tensors/tensor_file.hpp"

namespace core::formats {
namespace {

TensorFile opened(const Json& place, const std::filesystem::path& folder) {
  return open_tensors(folder / place.required("file").text());
}

}  // namespace

bool is_in_file(const Json& place) {
  return place.member("file").has_value();
}

Tensor tensor_in_file(const Json& place, const std::filesystem::path& folder) {
  place.expect_keys({"file", "tensor", "at"});
  const TensorFile file = opened(place, folder);
  const auto name = place.member("tensor");
  if (!name && file.tensors().size() != 1)
    place.fail("the key \"tensor\", as there are " + std::to_string(file.tensors().size()) +
               " of them in the file");
  std::vector<std::size_t> leading;
  if (const auto at = place.member("at"))
    for (const Json& index : at->items("a list of indices")) leading.push_back(index.whole(0));
  return file.read(name ? name->text() : file.tensors().front().name, leading);
}

arma::mat matrix_in_file(const Json& place, const std::filesystem::path& folder) {
  return matrix(tensor_in_file(place, folder));
}

std::vector<std::string> texts_in_file(const Json& place, const std::filesystem::path& folder) {
  Tensor tensor = tensor_in_file(place, folder);
  if (tensor.dtype != Dtype::text || tensor.shape.size() != 1)
    place.fail("a list of texts in the file",
               std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape));
  return std::move(tensor.texts);
}

checkpoints::Attention attention_in_file(const Json& place, const std::filesystem::path& folder,
                                         std::optional<std::size_t> n_heads) {
  place.expect_keys({"file", "layer"});
  const TensorFile file = opened(place, folder);
  const auto layers = checkpoints::find_layers(file.tensors());
  const auto chosen = place.member("layer");
  const std::string name = !chosen             ? "0"
                           : chosen->is_text() ? chosen->text()
                                               : std::to_string(chosen->whole(0));
  const checkpoints::Layer& layer = checkpoints::choose_layer(layers, name, file.place());
  Token progress;
  return checkpoints::read_attention(
      file, layer.mapping,
      checkpoints::heads_of(file, layer, checkpoints::config_beside(file.path()), n_heads), progress);
}

}  // namespace core::formats
