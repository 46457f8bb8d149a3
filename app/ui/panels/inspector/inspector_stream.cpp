#include "app/ui/panels/inspector/inspector_stream.hpp"

#include "app/session/whole_reading.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using core::transformer::StreamNumber;
using widgets::inspected;
using widgets::Pen;

/// Goes to a cell of another layer, which stays pinned there.
void go_to(const Frame& frame, std::size_t layer, const CellRef& cell) {
  frame.commands.add(LookAtLayer{layer});
  frame.commands.look([cell](View& view) {
    view.selection.trail.clear();
    view.selection.pinned = cell;
  });
}

std::string layer_words(const char* what, std::size_t layer) {
  return what + std::to_string(layer);
}

/// What entered the layer: out of the stream, through the norm.
void draw_entering(Pen& pen, const CellRef& cell, const StreamNumber& number) {
  const Frame& frame = pen.frame;
  const std::size_t layer = frame.newest.whole->layer;
  if (layer == 0)
    pen.pair("token and position", inspected(number.entering));
  else if (pen.linked_pair("inspector/stream/before", layer_words("out of layer ", layer - 1),
                           inspected(number.entering)))
    go_to(frame, layer - 1, {Stage::output, 0, cell.row, cell.column});
  if (const auto& norm = number.norm) {
    if (norm->mean != 0) pen.pair("− mean of its row", inspected(norm->mean));
    pen.pair(norm->mean != 0 ? "÷ deviation of its row" : "÷ root mean square", inspected(norm->divisor));
    pen.pair("× factor of the norm", inspected(norm->factor));
    if (norm->bias != 0) pen.pair("+ bias of the norm", inspected(norm->bias));
    pen.pair("= what enters", inspected(number.input));
  }
  if (widgets::cell_value(frame, cell) != number.input)
    pen.prose("Typed over: the model itself has " + inspected(number.input) + " here.", frame.palette.dim);
}

/// What leaves the layer: on to the next one.
void draw_leaving(Pen& pen, const CellRef& cell, const StreamNumber& number) {
  const Frame& frame = pen.frame;
  const std::size_t layer = frame.newest.whole->layer,
                    n_layers = frame.newest.whole->model->description().sizes.n_layers;
  if (number.is_sum) {
    pen.pair("in the stream before", inspected(number.entering));
    pen.pair("+ this", inspected(number.attention));
    pen.pair("+ MLP", inspected(number.mlp));
  } else {
    pen.prose("Norms stand behind attention and behind the MLP, so what leaves the layer is no plain sum.",
              frame.palette.dim);
  }
  const std::string sum = inspected(number.leaving);
  if (layer + 1 == n_layers) return pen.pair("leaves the last layer", sum);
  if (pen.linked_pair("inspector/stream/behind", layer_words("goes on to layer ", layer + 1), sum))
    go_to(frame, layer + 1, {Stage::embeddings, 0, cell.row, cell.column});
}

}  // namespace

void draw_stream(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  if (!frame.newest.whole || (cell.stage != Stage::embeddings && cell.stage != Stage::output)) return;
  const StreamNumber* number = frame.newest.reading->stream(*frame.newest.whole, cell);
  if (!number) return;
  pen.heading("Residual stream, layer " + std::to_string(frame.newest.whole->layer));
  frame.landmarks.mark("inspector/stream", {pen.left, pen.y}, {pen.right, pen.y + 1});
  if (cell.stage == Stage::embeddings)
    draw_entering(pen, cell, *number);
  else
    draw_leaving(pen, cell, *number);
}

}  // namespace app::panels
