#include "app/ui/panels/dialogs/tensor_options.hpp"

namespace app::panels {

TensorOptions::TensorOptions(const OpenedTensors& tensors, std::size_t least, std::size_t most) {
  for (const core::formats::TensorInfo& info : tensors.file->tensors()) {
    if (info.shape.size() < least || info.shape.size() > most || info.dtype == core::formats::Dtype::text)
      continue;
    names.push_back(info.name);
    options.push_back({info.name + " " + core::formats::shape_text(info.shape), "", false});
  }
}

std::size_t TensorOptions::index_of(const std::vector<std::string>& chosen) const {
  for (std::size_t k = 1; k < names.size(); ++k)
    if (!chosen.empty() && names[k] == chosen.front()) return k;
  return 0;
}

}  // namespace app::panels
