#include "core/model/transformer.hpp"

#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/files/gguf.hpp"
#include "core/files/json.hpp"
#include "core/files/list_folder.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/model/config.hpp"
#include "core/model/gguf_config.hpp"
#include "core/model/gguf_tokenizer.hpp"
#include "core/model/open_tokenizer.hpp"

namespace core::transformer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_config_file = std::size_t{1} << 24;

bool has_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// The file of tensors in a folder, or the folder itself where it is called otherwise.
fs::path tensors_in(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"})
    if (has_file(folder / name)) return folder / name;
  std::vector<fs::path> others;
  for (const fs::path& path : formats::list_folder(folder).paths)
    if (path.extension() == ".safetensors") others.push_back(path);
  if (others.size() == 1) return others.front();
  throw Error(folder.string() + ": expected the tensors of a model: model.safetensors, or its index");
}

/// Whoever has tokens that the model has no embedding of belongs to another model.
void require_fit(const tokenizers::Tokenizer& tokenizer, const Architecture& architecture,
                 const fs::path& path) {
  if (tokenizer.size() > architecture.sizes.n_vocabulary)
    throw Error(path.string() + ": expected a tokenizer of at most the model's " +
                std::to_string(architecture.sizes.n_vocabulary) + " tokens, got one of " +
                std::to_string(tokenizer.size()));
}

bool is_gguf(const fs::path& path) {
  return has_file(path) && formats::looks_like_gguf(formats::read_begin(path, 4));
}

Transformer open_gguf_model(const fs::path& path, std::uint64_t keep_at_most) {
  const formats::GgufMetadata metadata = formats::gguf_metadata(path);
  formats::TensorFile file = formats::open_tensors(path);
  Transformer model;
  model.path = path;
  model.architecture = architecture_of(metadata, file);
  model.tokenizer = std::make_shared<const tokenizers::Tokenizer>(tokenizers::recipe_of_gguf(metadata));
  require_fit(*model.tokenizer, model.architecture, path);
  model.weights = std::make_shared<const Weights>(std::move(file), model.architecture, keep_at_most);
  return model;
}

}  // namespace

bool is_transformer(const fs::path& path) {
  if (is_gguf(path)) return true;
  return has_file(path / "config.json") && tokenizers::has_tokenizer(path);
}

Transformer open_transformer(const fs::path& path, std::uint64_t keep_at_most) {
  if (is_gguf(path)) return open_gguf_model(path, keep_at_most);
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    throw Error(path.string() +
                ": expected a .gguf file, or a folder with config.json, tensors and a tokenizer");
  const fs::path config = path / "config.json";
  Transformer model;
  model.path = path;
  model.architecture =
      architecture_of(formats::parse_json(formats::read_file(config, largest_config_file), config.string()));
  model.tokenizer = std::make_shared<const tokenizers::Tokenizer>(tokenizers::open_tokenizer(path));
  require_fit(*model.tokenizer, model.architecture, path);
  model.weights = std::make_shared<const Weights>(formats::open_tensors(tensors_in(path)), model.architecture,
                                                  keep_at_most);
  return model;
}

}  // namespace core::transformer
