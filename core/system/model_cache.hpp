#pragma once

#include <filesystem>

namespace core::system {

/// Returns the folder in Hugging Face's cache of a model that is called by its name, such as
/// openai-community/gpt2; every other path, and the name of an existing file or folder, as it is.
///
/// The cache is $HF_HUB_CACHE, $HF_HOME/hub, or ~/.cache/huggingface/hub. Throws core::Error, which says how
/// to download the model, if neither the file nor the model is there.
std::filesystem::path resolve_model_name(const std::filesystem::path& path);

}  // namespace core::system
