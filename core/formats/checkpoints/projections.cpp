#include "core/formats/checkpoints/projections.hpp"

#include <cmath>

#include "core/error.hpp"

namespace core::formats::checkpoints {
namespace {

using attention::Linear;

class Reader {
 public:
  Reader(const TensorFile& file, const Token& progress) : file_(file), progress_(progress) {}

  Linear linear(const Source& source) const {
    arma::mat weight, bias;
    for (std::size_t k = 0; k < source.weights.size(); ++k) {
      arma::mat piece = tensor(source.weights[k]);
      if (source.out_by_in) piece = piece.t();
      piece = band(piece, source.part, source.n_parts, source.weights[k]);
      if (k > 0 && piece.n_rows != weight.n_rows)
        fail(source.weights[k], "as many inputs as " + source.weights[0], piece);
      weight = arma::join_rows(weight, piece);
    }
    for (const std::string& name : source.biases) {
      const arma::mat all = tensor(name);
      if (all.n_rows != 1) fail(name, "a bias of one dimension", all);
      bias = arma::join_rows(bias, band(all, source.bias_part, source.n_bias_parts, name));
    }
    if (source.biases.empty()) return {std::move(weight), std::nullopt};
    if (bias.n_cols != weight.n_cols)
      fail(source.biases[0], std::to_string(weight.n_cols) + " numbers", bias);
    return {std::move(weight), attention::SharedMatrix(std::move(bias))};
  }

  [[noreturn]] void fail(const std::string& name, const std::string& expected, const arma::mat& got) const {
    throw Error(file_.place() + name + ": expected " + expected + ", got " + std::to_string(got.n_rows) +
                " × " + std::to_string(got.n_cols));
  }

 private:
  arma::mat tensor(const std::string& name) const {
    const Tensor found = file_.read(name, {}, progress_);
    if (found.shape.empty() || found.shape.size() > 2)
      throw Error(file_.place() + name + ": expected one or two dimensions, got " + shape_text(found.shape));
    return matrix(found);
  }

  arma::mat band(const arma::mat& all, std::size_t part, std::size_t n_parts, const std::string& name) const {
    if (all.n_cols % n_parts != 0)
      fail(name, "a number of outputs that " + std::to_string(n_parts) + " divides", all);
    const std::size_t width = all.n_cols / n_parts;
    if (width == 0) fail(name, "at least one output", all);
    return all.cols(part * width, (part + 1) * width - 1);
  }

  const TensorFile& file_;
  const Token& progress_;
};

/// Gives every query's head the band of its group.
arma::mat repeated(const arma::mat& bands, std::size_t d_head, std::size_t times) {
  arma::mat result(bands.n_rows, bands.n_cols * times);
  for (std::size_t column = 0; column < result.n_cols; ++column)
    result.col(column) = bands.col(column / (d_head * times) * d_head + column % d_head);
  return result;
}

}  // namespace

Attention read_attention(const TensorFile& file, const Mapping& mapping, std::size_t n_heads,
                         const Token& progress) {
  const Reader reader(file, progress);
  Attention result{
      {reader.linear(mapping.query), reader.linear(mapping.key), reader.linear(mapping.value), {}},
      n_heads,
      {}};
  attention::Projections& p = result.projections;
  const std::size_t d_out = p.query.weight->n_cols, d_in = p.query.weight->n_rows;
  if (n_heads == 0 || d_out % n_heads != 0)
    reader.fail(mapping.query.weights[0],
                "a number of outputs that " + std::to_string(n_heads) + " heads share", p.query.weight);
  const std::size_t d_head = d_out / n_heads;
  for (auto [linear, source] : {std::pair(&p.key, &mapping.key), std::pair(&p.value, &mapping.value)}) {
    const std::size_t width = linear->weight->n_cols;
    if (linear->weight->n_rows != d_in)
      reader.fail(source->weights[0], std::to_string(d_in) + " inputs as the queries have", linear->weight);
    if (width == d_out) continue;
    if (width % d_head != 0 || n_heads % (width / d_head) != 0)
      reader.fail(source->weights[0],
                  std::to_string(d_out) + " outputs, or heads of " + std::to_string(d_head) +
                      " that divide the " + std::to_string(n_heads) + " of the queries",
                  linear->weight);
    const std::size_t n_groups = width / d_head;
    linear->weight = repeated(linear->weight, d_head, n_heads / n_groups);
    if (linear->bias) linear->bias = repeated(*linear->bias, d_head, n_heads / n_groups);
    if (linear == &p.key)
      result.notes.push_back("Grouped queries: each of the " + std::to_string(n_groups) +
                             " heads of keys and values is repeated for " +
                             std::to_string(n_heads / n_groups) + " heads of queries.");
  }
  if (mapping.output) {
    Linear output = reader.linear(*mapping.output);
    if (output.weight->n_rows == d_out && output.weight->n_cols == d_out)
      p.output = std::move(output);
    else
      result.notes.push_back("The output projection is " + std::to_string(output.weight->n_rows) + " × " +
                             std::to_string(output.weight->n_cols) + " and not " + std::to_string(d_out) +
                             " × " + std::to_string(d_out) + ": it is left out.");
  }
  return result;
}

std::size_t heads_of(const TensorFile& file, const Layer& layer, const Config& config,
                     std::optional<std::size_t> said) {
  if (said) return *said;
  if (layer.n_heads > 0) return layer.n_heads;
  if (config.n_heads) return *config.n_heads;
  throw Error(file.place() + layer.prefix +
              ": the number of heads must be said, there is no config.json beside the file that tells it");
}

attention::Scale scale_of(const Config& config, std::size_t index, std::size_t d_head) {
  using attention::ScaleRule;
  if (config.scaled && !config.scaled_by_layer && !config.scalar) return {};
  if (!config.scaled && !config.scaled_by_layer) return {ScaleRule::none, 1};
  double factor = config.scaled ? 1 / std::sqrt(config.scalar.value_or(static_cast<double>(d_head))) : 1;
  if (config.scaled_by_layer) factor /= static_cast<double>(index + 1);
  return {ScaleRule::factor, factor};
}

}  // namespace core::formats::checkpoints
