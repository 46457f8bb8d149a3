#include "core/editing/edit.hpp"

#include "core/base/error.hpp"
#include "core/editing/edit_cases.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/mistakes.hpp"

namespace core::editing {

attention::Model apply(const attention::Model& model, const Edit& edit) {
  attention::Model next = model;
  std::visit([&](const auto& e) { cases::change(next, e); }, edit);
  drop_lost_cells(next);
  attention::require_within_limits(next);
  return next;
}

namespace cases {

void change(Model& model, const SwitchMistake& edit) {
  const mistakes::Mistake* mistake = mistakes::find_mistake(edit.name);
  if (!mistake) refuse("mistake " + edit.name, "there is no such mistake");
  if (!edit.on && !mistake->mended) refuse("mistake " + edit.name, "it can only be undone");
  model = edit.on ? mistake->made(model) : mistake->mended(model);
}
void change(Model& model, const ReplaceModel& edit) {
  model = edit.model;
}

void refuse(const std::string& path, const std::string& message) {
  throw Error(path + ": " + message);
}

void require_index(const std::string& path, std::size_t index, std::size_t count, const char* things) {
  if (index >= count)
    refuse(path + "[" + std::to_string(index) + "]",
           "there are only " + std::to_string(count) + " " + things);
}

}  // namespace cases
}  // namespace core::editing
