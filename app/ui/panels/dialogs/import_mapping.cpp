#include "app/ui/panels/dialogs/import_mapping.hpp"

#include <array>

#include "app/ui/panels/dialogs/tensor_options.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

using core::formats::checkpoints::Mapping;
using core::formats::checkpoints::Source;

constexpr std::array<const char*, 4> parts{"all of it", "first third", "second third", "last third"};

struct ProjectionRow {
  const char* name;
  Source& (*source)(Mapping&);
};
constexpr std::array projection_rows{ProjectionRow{"query", [](Mapping& m) -> Source& { return m.query; }},
                                     ProjectionRow{"key", [](Mapping& m) -> Source& { return m.key; }},
                                     ProjectionRow{"value", [](Mapping& m) -> Source& { return m.value; }},
                                     ProjectionRow{"output", [](Mapping& m) -> Source& {
                                                     if (!m.output) m.output.emplace();
                                                     return *m.output;
                                                   }}};

/// Changes one source of the form.
template <class Change>
void change_source(const Frame& frame, const ProjectionRow& row, Change with) {
  frame.commands.look([&row, with](View& view) {
    Source& source = row.source(view.forms.import.mapping);
    with(source);
    if (&row == &projection_rows.back()) view.forms.import.has_output = !source.weights.empty();
  });
}

void choose_tensor(std::vector<std::string>& tensors, const std::string& chosen) {
  tensors.clear();
  if (!chosen.empty()) tensors.push_back(chosen);
}

void draw_row(const Frame& frame, const ProjectionRow& row, const Source& source,
              const TensorOptions& weights, const TensorOptions& biases, float width) {
  const std::string landmark = std::string("import/") + row.name;
  const float label = frame.metrics.px(56), gap = ImGui::GetStyle().ItemSpacing.x;
  const float part = frame.metrics.px(120), turned = frame.metrics.px(110);
  const float room = (width - label - part - turned - 4 * gap) / 2;
  const float left = ImGui::GetCursorPosX();
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(row.name);
  ImGui::SameLine(left + label);
  const std::size_t weight = weights.index_of(source.weights), bias = biases.index_of(source.biases);
  if (const auto chosen = widgets::combo(frame, landmark + "/weight", room, weights.options[weight].words,
                                         weights.options, weight))
    change_source(frame, row,
                  [tensor = weights.names[*chosen]](Source& s) { choose_tensor(s.weights, tensor); });
  ImGui::SameLine();
  if (const auto on = widgets::checkbox(
          frame, landmark + "/turned", "out × in", source.out_by_in,
          "Rows are outputs, as torch.nn.Linear keeps its weight; otherwise it is used as x·W"))
    change_source(frame, row, [on](Source& s) { s.out_by_in = *on; });
  ImGui::SameLine(left + label + room + turned + 2 * gap);
  const std::size_t which = source.n_parts == 1 ? 0 : source.part + 1;
  std::vector<widgets::Option> options;
  for (const char* words : parts) options.push_back({words, "", false});
  if (const auto chosen = widgets::combo(frame, landmark + "/part", part, parts[which], options, which))
    change_source(frame, row, [k = *chosen](Source& s) {
      s.n_parts = s.n_bias_parts = k == 0 ? 1 : 3;
      s.part = s.bias_part = k == 0 ? 0 : k - 1;
    });
  ImGui::SameLine();
  const std::string shown = bias == 0 ? "no bias" : biases.options[bias].words;
  if (const auto chosen = widgets::combo(frame, landmark + "/bias", room, shown, biases.options, bias))
    change_source(frame, row,
                  [tensor = biases.names[*chosen]](Source& s) { choose_tensor(s.biases, tensor); });
}

}  // namespace

void draw_import_mapping(const Frame& frame, const OpenedTensors& tensors, float width) {
  const TensorOptions weights(tensors, 2, 2), biases(tensors, 1, 1);
  Mapping mapping = frame.forms.import.mapping;
  for (const ProjectionRow& row : projection_rows)
    draw_row(frame, row, row.source(mapping), weights, biases, width);
}

std::optional<Mapping> mapping_by_hand(const ImportForm& form) {
  Mapping mapping = form.mapping;
  if (!form.has_output) mapping.output.reset();
  if (mapping.query.weights.empty() || mapping.key.weights.empty() || mapping.value.weights.empty())
    return std::nullopt;
  return mapping;
}

}  // namespace app::panels
