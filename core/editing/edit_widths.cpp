#include <numeric>
#include <utility>

#include "core/base/text.hpp"
#include "core/editing/edit_cases.hpp"

namespace core::editing::cases {
namespace {

using attention::Linear;
using attention::Projections;
using attention::SharedMatrix;
using std::to_string;

void resize_layer(Linear& linear, std::size_t d_in, std::size_t d_out) {
  resize(linear.weight, d_in, d_out);
  if (linear.bias) resize(*linear.bias, 1, d_out);
}

std::string divisors(std::size_t number) {
  std::vector<std::size_t> found;
  for (std::size_t d = 1; d <= number; ++d)
    if (number % d == 0) found.push_back(d);
  return text::joined(
      found, ", ", [](std::size_t d) { return to_string(d); }, " or ");
}

/// Throws unless the heads share the columns evenly; width is "d_out" or "d_in".
void require_width(const char* width, std::size_t columns, std::size_t n_heads) {
  if (columns == 0) refuse(width, "expected at least one column");
  if (columns % n_heads == 0) return;
  const std::size_t below = columns / n_heads * n_heads, above = below + n_heads;
  refuse(width, "expected a multiple of n_heads = " + to_string(n_heads) +
                    " (nearest: " + (below > 0 ? to_string(below) + " and " : "") + to_string(above) +
                    "), got " + to_string(columns));
}

void require_heads(const char* width, std::size_t columns, std::size_t n_heads) {
  if (n_heads > 0 && columns % n_heads == 0) return;
  if (columns == 0) refuse("n_heads", "expected at least one head");
  refuse("n_heads", "expected a number of heads that divides " + std::string(width) + " = " +
                        to_string(columns) + " (" + divisors(columns) + "), got " + to_string(n_heads));
}

Linear identity(std::size_t width) {
  return {arma::mat(width, width, arma::fill::eye), std::nullopt};
}

Linear& linear_to_edit(Model& model, Part part) {
  if (!model.projections) refuse("projections", "the model has no projections");
  Linear* linear = find_linear(model, part);
  if (!linear) refuse("projections.output", "the model has no output projection");
  return *linear;
}

/// Columns of keys and values when each head has so many.
std::size_t key_columns(const Model& model, std::size_t d_head) {
  return model.n_groups() * d_head;
}

}  // namespace

void change(Model& model, const SetInputWidth& edit) {
  attention::Size size = size_of(model);
  size.d_model = edit.d_in;
  if (!model.projections) size.d_out = edit.d_in;
  require_width("d_in", edit.d_in, model.projections ? 1 : model.n_heads);
  require_size(size);
  for (attention::Sequence& s : model.sequences) resize(s.embeddings, s.embeddings->n_rows, edit.d_in);
  if (!model.projections) return;
  Projections& p = *model.projections;
  resize_layer(p.query, edit.d_in, model.d_out());
  if (model.has_memory()) return;
  for (Linear* linear : {&p.key, &p.value}) resize_layer(*linear, edit.d_in, linear->weight.n_cols());
}

void change(Model& model, const SetOutputWidth& edit) {
  if (edit.d_out == model.d_out()) return;
  if (!model.projections) refuse("d_out", "the model has no projections, so d_out follows d_in");
  require_width("d_out", edit.d_out, model.n_heads);
  attention::Size size = size_of(model);
  size.d_out = edit.d_out;
  require_size(size);
  Projections& p = *model.projections;
  resize_layer(p.query, p.query.weight.n_rows(), edit.d_out);
  for (Linear* linear : {&p.key, &p.value})
    resize_layer(*linear, linear->weight.n_rows(), key_columns(model, edit.d_out / model.n_heads));
  fit_additions(model);
  if (!p.output) return;
  const bool is_square = p.output->weight.n_rows() == p.output->weight.n_cols();
  resize_layer(*p.output, edit.d_out, is_square ? edit.d_out : p.output->weight.n_cols());
}

void change(Model& model, const SetHeadCount& edit) {
  if (edit.n_heads == model.n_heads) return;
  require_heads("d_out", model.d_out(), edit.n_heads);
  attention::Size size = size_of(model);
  size.n_heads = edit.n_heads;
  require_size(size);
  const std::size_t old = std::exchange(model.n_heads, edit.n_heads);
  if (model.n_kv_heads) {
    model.n_kv_heads = std::gcd(*model.n_kv_heads, edit.n_heads);
    Projections& p = *model.projections;
    for (Linear* linear : {&p.key, &p.value})
      resize_layer(*linear, linear->weight.n_rows(), key_columns(model, model.d_out() / edit.n_heads));
    if (model.n_kv_heads == edit.n_heads) model.n_kv_heads.reset();
  }
  fit_additions(model);
  std::erase_if(model.heads_off, [&](std::size_t head) { return head >= edit.n_heads; });
  if (model.dropout.given.empty()) return;
  const SharedMatrix all_kept = arma::mat(model.n_tokens(), model.n_keys(), arma::fill::ones);
  std::vector<SharedMatrix> given;
  for (std::size_t s = 0; s < model.sequences.size(); ++s)
    for (std::size_t h = 0; h < edit.n_heads; ++h)
      given.push_back(h < old ? model.dropout.given[s * old + h] : all_kept);
  model.dropout.given = std::move(given);
}

void change(Model& model, const SetProjections& edit) {
  if (edit.on == model.projections.has_value()) return;
  if (!edit.on) {
    require_heads("d_in", model.d_model(), model.n_heads);
    model.projections.reset();
    model.n_kv_heads.reset();
    fit_additions(model);
    return;
  }
  attention::Size size = size_of(model);
  size.projections = true;
  require_size(size);
  const Linear linear = identity(model.d_model());
  model.projections = Projections{linear, linear, linear, std::nullopt};
  fit_additions(model);
}

void change(Model& model, const SetOutputProjection& edit) {
  if (edit.on == (model.projections && model.projections->output)) return;
  if (!model.projections) refuse("projections.output", "the model has no projections");
  attention::Size size = size_of(model);
  size.output_projection = edit.on;
  require_size(size);
  if (edit.on)
    model.projections->output = identity(model.d_out());
  else
    model.projections->output.reset();
}

void change(Model& model, const SetBias& edit) {
  Linear& linear = linear_to_edit(model, edit.part);
  if (edit.on == linear.bias.has_value()) return;
  if (edit.on)
    linear.bias = arma::mat(1, linear.weight.n_cols(), arma::fill::zeros);
  else
    linear.bias.reset();
}

}  // namespace core::editing::cases
