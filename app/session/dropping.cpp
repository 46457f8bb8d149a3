#include "app/session/dropping.hpp"

#include "app/session/navigation.hpp"
#include "core/files/tensor_formats.hpp"

namespace app {

Command dropped(const std::filesystem::path& path, const View& view, const core::attention::Model& model,
                bool over_editor) {
  if (view.forms.dialog == Dialog::give || view.forms.dialog == Dialog::open_given)
    return GiveFile{view.forms.given_stage, path};
  if (view.forms.dialog == Dialog::open_reference) return LoadReference{path};
  if (view.forms.dialog == Dialog::open_tensors) return CheckTensors{path};
  std::error_code ignored;
  const bool tensors = core::formats::has_tensor_ending(path) || std::filesystem::is_directory(path, ignored);
  if (over_editor && tensors && view.forms.dialog == Dialog::none)
    return FillFromFile{edited_place(view.look, model), path};
  if (view.look.tab == Tab::compare && tensors) return CheckTensors{path};
  return OpenFile{path};
}

}  // namespace app
