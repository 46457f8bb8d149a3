#include "core/files/read_layer.hpp"

#include <fmt/core.h>
#include <bit>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"

namespace core::formats::checkpoints {
namespace {

using attention::Linear;

/// Returns the split of a fused weight with n_outputs, or nothing if heads of that width do not divide it.
std::optional<FusedSplit> fused_split_of_width(std::size_t n_outputs, std::size_t n_heads,
                                               std::size_t width) {
  if (width == 0 || n_outputs % width != 0 || n_outputs / width < n_heads + 2) return std::nullopt;
  const std::size_t both = n_outputs / width - n_heads;
  if (both % 2 != 0 || n_heads % (both / 2) != 0) return std::nullopt;
  return FusedSplit{width, both / 2};
}

std::optional<FusedSplit> fused_split(std::size_t n_outputs, std::size_t n_inputs, const HeadCount& heads) {
  if (heads.width)
    if (const auto split = fused_split_of_width(n_outputs, heads.n, *heads.width)) return split;
  if (heads.kv_heads && *heads.kv_heads <= n_outputs && n_outputs % (heads.n + 2 * *heads.kv_heads) == 0)
    return FusedSplit{n_outputs / (heads.n + 2 * *heads.kv_heads), *heads.kv_heads};
  const bool is_three = n_outputs % (3 * heads.n) == 0;
  const FusedSplit alike{n_outputs / (3 * heads.n), heads.n};
  if (is_three && n_outputs == 3 * n_inputs) return alike;
  if (n_inputs % heads.n == 0)
    if (const auto split = fused_split_of_width(n_outputs, heads.n, n_inputs / heads.n)) return split;
  return is_three ? std::optional(alike) : std::nullopt;
}

class ProjectionReader {
 public:
  ProjectionReader(const TensorFile& file, const HeadCount& heads, const StopToken& progress)
      : file_(file), heads_(heads), progress_(progress) {}

  Linear linear(const ProjectionSource& source, bool is_output = false) const {
    arma::mat weight, bias;
    std::optional<FusedSplit> split;
    for (std::size_t k = 0; k < source.weights.size(); ++k) {
      arma::mat piece = tensor(source.weights[k], source.head_axis, is_output);
      if (source.out_by_in) piece = piece.t();
      if (source.n_parts > 1) {
        split = require_split(piece, source.weights[k]);
        if (source.fused == FusedLayout::four_blocks && (heads_.n % 4 != 0 || split->kv_heads != heads_.n))
          fail(source.weights[k],
               fmt::format("queries, values and keys of {} heads in four blocks", heads_.n), piece);
        piece = piece.cols(fused_columns(source.part, *split, heads_.n, source.fused)).eval();
      }
      if (k > 0 && piece.n_rows != weight.n_rows)
        fail(source.weights[k], "as many inputs as " + source.weights[0], piece);
      weight = arma::join_rows(weight, piece);
    }
    for (const std::string& name : source.biases) {
      arma::mat all = tensor(name, HeadAxis::none, false);
      if (source.head_axis != HeadAxis::none && !is_output) all = all.as_row().eval();
      if (all.n_rows != 1) fail(name, "a bias of one dimension", all);
      bias = arma::join_rows(bias, bias_part(all, source, split, name));
    }
    if (source.biases.empty()) return {std::move(weight), std::nullopt};
    if (bias.n_cols != weight.n_cols)
      fail(source.biases[0], std::to_string(weight.n_cols) + " numbers", bias);
    return {std::move(weight), attention::SharedMatrix(std::move(bias))};
  }

  [[noreturn]] void fail(const std::string& name, const std::string& expected, const arma::mat& got) const {
    throw Error(
        fmt::format("{}{}: expected {}, got {} × {}", file_.place(), name, expected, got.n_rows, got.n_cols));
  }

 private:
  arma::mat tensor(const std::string& name, HeadAxis head_axis, bool is_output) const {
    Tensor found = file_.read(name, {}, progress_);
    if (head_axis == HeadAxis::inside && found.shape.size() == 3) {
      const std::size_t a = found.shape[0], b = found.shape[1], c = found.shape[2];
      found.shape = is_output ? TensorShape{a * b, c} : TensorShape{a, b * c};
    }
    if (head_axis == HeadAxis::first && found.shape.size() == 3) {
      arma::mat all;  // heads are bands of columns; in an output projection, of rows
      for (const arma::mat& head : matrices(found))
        all = is_output ? arma::mat(arma::join_cols(all, head)) : arma::mat(arma::join_rows(all, head));
      return all;
    }
    if (found.shape.empty() || found.shape.size() > 2)
      throw Error(file_.place() + name + ": expected one or two dimensions, got " + shape_text(found.shape));
    return matrix(found);
  }

  FusedSplit require_split(const arma::mat& all, const std::string& name) const {
    if (const auto split = fused_split(all.n_cols, all.n_rows, heads_)) return *split;
    fail(name, fmt::format("outputs that queries, keys and values of {} heads share", heads_.n), all);
  }

  arma::mat bias_part(const arma::mat& all, const ProjectionSource& source,
                      const std::optional<FusedSplit>& split, const std::string& name) const {
    if (source.n_bias_parts == 1) return all;
    if (split) {
      if (all.n_cols != (heads_.n + 2 * split->kv_heads) * split->d_head)
        fail(name, "as many numbers as its weight has outputs", all);
      return all.cols(fused_columns(source.bias_part, *split, heads_.n, source.fused));
    }
    const std::size_t width = all.n_cols / source.n_bias_parts;  // for separate weights
    if (all.n_cols % source.n_bias_parts != 0 || width == 0)
      fail(name, fmt::format("a number of outputs that {} divides", source.n_bias_parts), all);
    return all.cols(source.bias_part * width, (source.bias_part + 1) * width - 1);
  }

  const TensorFile& file_;
  const HeadCount& heads_;
  const StopToken& progress_;
};

arma::mat row_of(const TensorFile& file, const std::string& name, std::size_t n, const char* meaning,
                 const StopToken& progress) {
  const Tensor tensor = file.read(name, {}, progress);
  if (tensor.shape != TensorShape{n})
    throw Error(fmt::format("{}{}: expected {} numbers, one for each {}, got {}", file.place(), name, n,
                            meaning, shape_text(tensor.shape)));
  return arma::mat(tensor.numbers.data(), 1, n);
}

attention::QueryKeyNorm read_norm(const TensorFile& file, const LayerHeadNorms& norms, std::size_t n_heads,
                                  std::size_t kv_heads, std::size_t d_head, const StopToken& progress) {
  attention::QueryKeyNorm norm{norms.rule, {}, {}, norms.epsilon, norms.over};
  const double more = norms.plus_one ? 1 : 0;
  const auto factors = [&](const std::vector<std::string>& names, std::size_t n) {
    if (norm.over == attention::NormScope::head)
      return arma::mat(row_of(file, names.front(), d_head, "column of a head", progress) + more);
    const std::size_t expected = norm.n_factors(n, d_head);
    std::vector<double> all;
    for (const std::string& name : names) {
      const std::vector<double> numbers = file.read(name, {}, progress).numbers;
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    if (all.size() != expected)
      throw Error(fmt::format("{}{}: expected {} numbers, one for each column of all heads, got {}",
                              file.place(), names.front(), expected, all.size()));
    return arma::mat(arma::rowvec(all) + more);
  };
  norm.query = factors(norms.query, n_heads), norm.key = factors(norms.key, kv_heads);
  return norm;
}

/// Returns MPT's slopes: those for the next power of two heads, with every other one first.
arma::mat slopes_of_mpt(std::size_t n_heads, double largest) {
  const std::size_t power = std::bit_ceil(n_heads);
  const auto slope = [&](std::size_t k) { return std::exp2(-largest * double(k + 1) / double(power)); };
  arma::mat slopes(1, n_heads);
  for (std::size_t h = 0; h < n_heads; ++h)
    slopes[h] = power == n_heads ? slope(h) : slope(h < power / 2 ? 2 * h + 1 : 2 * (h - power / 2));
  return slopes;
}

positions::Relative read_relative(const TensorFile& file, const LayerBiasTable& bias, std::size_t n_heads,
                                  const StopToken& progress) {
  const arma::mat table = matrix(file.read(bias.table, {}, progress));
  if (table.n_cols != n_heads)
    throw Error(fmt::format("{}{}: expected a column for each of {} heads, got {} × {}", file.place(),
                            bias.table, n_heads, table.n_rows, table.n_cols));
  return {arma::mat(table.t()), bias.max_distance, bias.bidirectional};
}

}  // namespace

positions::Alibi make_alibi(const LayerAlibi& alibi, std::size_t n_heads, std::size_t d_head) {
  if (alibi.slopes == AlibiSlopes::bloom) return {};
  if (alibi.slopes == AlibiSlopes::mpt) return {slopes_of_mpt(n_heads, alibi.largest)};
  const std::vector<double> slopes = positions::default_slopes(n_heads);
  return {arma::mat(arma::rowvec(slopes) / std::sqrt(static_cast<double>(d_head)))};
}

arma::uvec fused_columns(std::size_t part, const FusedSplit& split, std::size_t n_heads, FusedLayout fused) {
  const std::size_t n_outputs = (n_heads + 2 * split.kv_heads) * split.d_head;
  const std::size_t n_blocks = fused == FusedLayout::by_head       ? split.kv_heads
                               : fused == FusedLayout::four_blocks ? 4
                                                                   : 1;
  if (fused == FusedLayout::four_blocks && part > 0) part = 3 - part;  // values come before keys
  const std::size_t block = n_outputs / n_blocks, queries = n_heads / n_blocks * split.d_head,
                    others = split.kv_heads / n_blocks * split.d_head;
  const std::size_t begin = part == 0 ? 0 : queries + (part - 1) * others, n = part == 0 ? queries : others;
  arma::uvec columns(n_blocks * n);
  for (std::size_t k = 0; k < columns.n_elem; ++k) columns[k] = k / n * block + begin + k % n;
  return columns;
}

Attention read_attention(const TensorFile& file, const ProjectionMapping& mapping, const HeadCount& heads,
                         const StopToken& progress) {
  const std::size_t n_heads = heads.n;
  if (n_heads == 0 || n_heads > max_count)
    throw Error(fmt::format("{}{}: expected from 1 to {} heads, got {}", file.place(),
                            mapping.query.weights[0], max_count, n_heads));
  const ProjectionReader reader(file, heads, progress);
  Attention result{
      {reader.linear(mapping.query), reader.linear(mapping.key), reader.linear(mapping.value), {}},
      n_heads,
      {},
      {}};
  attention::Projections& p = result.projections;
  const std::size_t d_out = p.query.weight->n_cols, d_in = p.query.weight->n_rows;
  if (d_out % n_heads != 0)
    reader.fail(mapping.query.weights[0], fmt::format("a number of outputs that {} heads share", n_heads),
                p.query.weight);
  const std::size_t d_head = d_out / n_heads;
  for (auto [linear, source] : {std::pair(&p.key, &mapping.key), std::pair(&p.value, &mapping.value)}) {
    const std::size_t width = linear->weight->n_cols;
    if (linear->weight->n_rows != d_in)
      reader.fail(source->weights[0], std::to_string(d_in) + " inputs as the queries have", linear->weight);
    if (width == d_out) continue;
    if (width % d_head != 0 || n_heads % (width / d_head) != 0)
      reader.fail(
          source->weights[0],
          fmt::format("{} outputs, or heads of {} that divide the {} of the queries", d_out, d_head, n_heads),
          linear->weight);
    if (linear == &p.key) result.n_kv_heads = width / d_head;
  }
  if (p.value.weight->n_cols != p.key.weight->n_cols)
    reader.fail(mapping.value.weights[0], std::to_string(p.key.weight->n_cols) + " outputs as the keys have",
                p.value.weight);
  if (mapping.output) {
    Linear output = reader.linear(*mapping.output, true);
    if (output.weight->n_rows == d_out)
      p.output = std::move(output);
    else
      result.notes.push_back(fmt::format("The output projection has {} inputs and not {}: it is left out.",
                                         output.weight->n_rows, d_out));
  }
  return result;
}

HeadCount resolve_head_count(const TensorFile& file, const Layer& layer, const LayerRules& rules,
                             std::optional<std::size_t> specified) {
  const ConfigHeads& config = rules.heads;
  const std::string place = file.place() + (layer.prefix.empty() ? "" : layer.prefix + ": ");
  if (specified && layer.n_heads > 0 && *specified != layer.n_heads)
    throw Error(
        fmt::format("{}expected {} heads as said, got {} by its tensors", place, *specified, layer.n_heads));
  const bool is_as_configured = !specified || specified == config.n;
  const auto n = specified ? specified : layer.n_heads > 0 ? std::optional(layer.n_heads) : config.n;
  if (!n)
    throw Error(place +
                "the number of heads must be said (on the command line by --heads): there is no config.json "
                "beside the file that tells it");
  return {*n, is_as_configured ? config.kv_heads : std::nullopt,
          is_as_configured ? config.width : std::nullopt};
}

attention::Additions read_additions(const TensorFile& file, const LayerRules& rules, std::size_t n_heads,
                                    std::size_t kv_heads, std::size_t d_head, const StopToken& progress) {
  attention::Additions additions;
  if (rules.head_norms)
    additions.normalize = read_norm(file, *rules.head_norms, n_heads, kv_heads, d_head, progress);
  if (rules.rotary) additions.positions.rotary = rules.rotary->of_width(d_head, file.place());
  if (rules.alibi) additions.positions.alibi = make_alibi(*rules.alibi, n_heads, d_head);
  if (rules.bias_table)
    additions.positions.relative = read_relative(file, *rules.bias_table, n_heads, progress);
  additions.softcap = rules.softcap;
  if (!rules.sink.empty()) additions.sink = row_of(file, rules.sink, n_heads, "head", progress);
  return additions;
}

}  // namespace core::formats::checkpoints
