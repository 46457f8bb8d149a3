#include "core/graph/operations.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "core/base/number.hpp"
#include "core/graph/dropout.hpp"
#include "core/graph/python.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/visible.hpp"

namespace core::graph {

using formats::python::number;
using std::to_string;

namespace {

/// Replaces N and D in a line of PyTorch by numbers.
std::string with_sizes(std::string text, std::size_t n, std::size_t d) {
  for (auto at = text.find_first_of("ND"); at != text.npos; at = text.find_first_of("ND", at))
    text.replace(at, 1, to_string(text[at] == 'N' ? n : d));
  return text;
}

std::string list(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (const std::size_t n : numbers) text += (text.empty() ? "" : ", ") + to_string(n);
  return "[" + text + "]";
}

/// Returns a matrix of numbers by distance, key − query.
mat by_distance(const OperationInputs& in, const auto& of_distance) {
  mat bias(in.n_rows(), in.model.n_keys());
  for (std::size_t j = 0; j < bias.n_cols; ++j)
    for (std::size_t a = 0; a < bias.n_rows; ++a)
      bias(a, j) = of_distance(position_of_key(in.model, j) - position_of_query(in.model, in.row(a)));
  return bias;
}

const std::vector<std::string> positions_in_torch{
    "key = torch.arange(n_keys)", "query = torch.arange(n_tokens)[:, None] + n_keys - n_tokens"};

mat softmax_of_rows(mat e) {
  e.each_col() -= arma::vec(arma::max(e, 1));
  e = arma::exp(e);
  e.each_col() /= arma::vec(arma::sum(e, 1));
  return e;
}

}  // namespace

// Products.

std::string Product::precision_text(bool brief) const {
  if (brief) return "";
  return (factors == Precision::float64 ? "" : std::string(", factors in ") + name_of(factors)) +
         (sums ? std::string(", sums in ") + name_of(*sums) : "");
}

mat Product::rounded_factor(mat factor) const {
  if (truncates) factor.transform(attention::truncate_to_tf32);
  return attention::rounded(factors, std::move(factor));
}

Project::Project(Stage x, std::string symbol_of_x, MatrixName weight, MatrixName bias, const Model& m)
    : Product({{x, "i:"}, {weight, ":j"}}), x_symbol(std::move(symbol_of_x)) {
  if (attention::find_matrix(m, {bias})) inputs.push_back({bias, "0j"});
}

mat Project::matrix(const OperationInputs& in) const {
  const mat transposed = is_transposed() ? mat(in[1].t()) : mat();
  const mat& weight = is_transposed() ? transposed : in[1];
  mat y = has_reduced_precision() ? reduced_product(in[0], weight) : mat(in[0] * weight);
  if (has_bias()) y.each_row() += arma::rowvec(in[2]);
  return y;
}

mat Project::columns(const OperationInputs& in, const arma::uvec& which) const {
  const mat weight = is_transposed() ? mat(in[1].rows(which).t()) : mat(in[1].cols(which));
  mat y = has_reduced_precision() ? reduced_product(in[0], weight) : mat(in[0] * weight);
  if (has_bias()) y.each_row() += arma::rowvec(in[2].cols(which));
  return y;
}

std::string Project::formula(bool brief, const std::string&) const {
  return x_symbol + "·" + inputs[1].symbol() + (is_transposed() ? "ᵀ" : "") +
         (has_bias() ? " + " + inputs[2].symbol() : "") + precision_text(brief);
}

mat DotProducts::matrix(const OperationInputs& in) const {
  mat products = has_reduced_precision() ? reduced_product(in[0], in[1].t()) : mat(in[0] * in[1].t());
  if (pre_scale) products *= *pre_scale;
  return products;
}

std::string DotProducts::formula(bool brief, const std::string&) const {
  return (is_swapped ? "KQᵀ" : "QKᵀ") + precision_text(brief) + (pre_scale ? ", already scaled" : "");
}

// Heads.

const HeadLayout contiguous{[](HeadCell c, HeadSizes s) {
                              return CombinedCell{c.row, c.head * s.width + c.column};
                            },
                            [](CombinedCell c, HeadSizes s) {
                              return HeadCell{c.column / s.width, c.row, c.column % s.width};
                            }};
const HeadLayout interleaved{[](HeadCell c, HeadSizes s) {
                               return CombinedCell{c.row, c.column * s.n_heads + c.head};
                             },
                             [](CombinedCell c, HeadSizes s) {
                               return HeadCell{c.column % s.n_heads, c.row, c.column / s.n_heads};
                             }};
const HeadLayout untransposed{
    [](HeadCell c, HeadSizes s) {
      const std::size_t nth = (c.head * s.n_rows + c.row) * s.width + c.column, all = s.n_heads * s.width;
      return CombinedCell{nth / all, nth % all};
    },
    [](CombinedCell c, HeadSizes s) {
      const std::size_t nth = c.row * s.n_heads * s.width + c.column, each = s.n_rows * s.width;
      return HeadCell{nth / each, nth % each / s.width, nth % s.width};
    }};

HeadSizes split_sizes(const Model& m, Stage stage) {
  const std::size_t d_head = m.d_out() / m.n_heads;
  if (stage == Stage::queries) return {m.n_heads, m.n_tokens(), d_head};
  return {m.kv_heads(), m.n_keys(), d_head};
}

HeadSizes combined_sizes(const Model& m) {
  return {m.n_heads, m.n_tokens(), m.d_value()};
}

mat SplitHeads::matrix(const OperationInputs& in) const {
  const mat& x = in[0];
  const HeadLayout* layout = inputs[0].layout;
  const HeadSizes sizes{n_heads, x.n_rows, x.n_cols / n_heads};
  if (layout == &contiguous) return x.cols(in.head * sizes.width, (in.head + 1) * sizes.width - 1);
  mat own(in.n_rows(), sizes.width);
  for (std::size_t a = 0; a < own.n_rows; ++a)
    for (std::size_t k = 0; k < own.n_cols; ++k) {
      const CombinedCell from = layout->combine({in.head, in.row(a), k}, sizes);
      own(a, k) = x(layout == &untransposed ? from.row : a, from.column);
    }
  return own;
}

std::string SplitHeads::formula(bool brief, const std::string& hidden) const {
  const HeadLayout* layout = inputs[0].layout;
  const std::string from = hidden.empty() ? "X" : hidden;
  if (layout == &untransposed) return from + (brief ? ", viewed" : ", viewed without the transpose");
  return from + (layout == &interleaved && !brief ? fmt::format(", columns h, h + {}, …", n_heads) : "");
}

TorchCode SplitHeads::torch_code(const InputNames& in) const {
  if (n_heads == 1) return {in[0]};
  const HeadLayout* layout = inputs[0].layout;
  const char* how = layout == &contiguous    ? ".unflatten(-1, (N, D)).transpose(-3, -2)"
                    : layout == &interleaved ? ".unflatten(-1, (D, N)).movedim(-1, -3)"
                                             : ".unflatten(-1, (N, D)).reshape(*x.shape[:-2], N, -1, D)";
  return {in[0] + with_sizes(how, n_heads, d_head)};
}

mat CombineHeads::matrix(const OperationInputs& in) const {
  const HeadLayout* layout = inputs[0].layout;
  std::vector<const mat*> heads;
  for (std::size_t h = 0; h < n_heads; ++h) heads.push_back(&in.of_head(0, h));
  const HeadSizes sizes{n_heads, in.model.n_tokens(), heads[0]->n_cols};
  mat all(in.n_rows(), n_heads * sizes.width, arma::fill::zeros);
  if (layout == &contiguous) {
    for (std::size_t h = 0; h < n_heads; ++h)
      if (!in.model.is_ablated(h)) all.cols(h * sizes.width, (h + 1) * sizes.width - 1) = *heads[h];
    return all;
  }
  for (std::size_t a = 0; a < all.n_rows; ++a)
    for (std::size_t j = 0; j < all.n_cols; ++j) {
      const HeadCell from = layout->split({in.row(a), j}, sizes);
      if (!in.model.is_ablated(from.head))
        all(a, j) = (*heads[from.head])(layout == &untransposed ? from.row : a, from.column);
    }
  return all;
}

std::string CombineHeads::formula(bool brief, const std::string&) const {
  if (inputs[0].layout == &untransposed) return brief ? "no transpose" : "reshaped without the transpose";
  if (inputs[0].layout == &interleaved) return "interleaved";
  if (n_enabled < n_heads)
    return to_string(n_enabled) + (brief ? " on" : n_enabled == 1 ? " head on" : " heads on");
  if (n_heads == 1) return "one head";
  return brief ? "" : n_heads == 2 ? "heads 0, 1" : "heads 0 … " + to_string(n_heads - 1);
}

TorchCode CombineHeads::torch_code(const InputNames& in) const {
  if (inputs[0].layout == &untransposed)
    return {in[0] + ".reshape(*x.shape[:-1], -1)  # the bug: no transpose(-3, -2) before it"};
  if (n_heads == 1) return {in[0]};
  return {in[0] + (inputs[0].layout == &contiguous ? ".transpose(-3, -2).flatten(-2)"
                                                   : ".movedim(-3, -1).flatten(-2)")};
}

// Queries and keys.

mat Normalize::matrix(const OperationInputs& in) const {
  mat y = in[0];
  const bool over_all = is_over_all_heads();
  const auto mean_over = [&](const auto& of_row) {  // of each row
    if (!over_all) return arma::vec(of_row(in[0]));
    arma::vec sum(y.n_rows, arma::fill::zeros);
    for (std::size_t h = 0; h < n_heads; ++h) sum += of_row(in.of_head(0, h));
    return arma::vec(sum / static_cast<double>(n_heads));
  };
  arma::vec means(y.n_rows, arma::fill::zeros);
  if (is_centered) means = mean_over([](const mat& x) { return arma::vec(arma::mean(x, 1)); });
  if (is_centered) y.each_col() -= means;
  y.each_col() /= arma::vec(arma::sqrt(mean_over([&](mat x) {
                                         if (is_centered) x.each_col() -= means;
                                         return arma::vec(arma::mean(arma::square(x), 1));
                                       }) +
                                       epsilon));
  const arma::rowvec factors = in[1];
  const std::size_t first = over == attention::NormScope::head ? 0 : in.head * d_head;
  y.each_row() %= arma::rowvec(factors.cols(first, first + d_head - 1));
  return y;
}

std::string Normalize::formula(bool brief, const std::string&) const {
  const std::string after = !is_after_rotation ? "" : brief ? ", rotated" : ", after the rotation";
  if (brief) return (is_over_all_heads() ? "norm of all heads" : "norm") + after;
  return std::string("each row ÷ its ") + (is_centered ? "standard deviation" : "root mean square") +
         (is_over_all_heads() ? " over all heads" : "") + " × w" + after;
}

TorchCode Normalize::torch_code(const InputNames& in) const {
  const std::string mean =
                        std::string(".mean(") + (is_over_all_heads() ? "(-3, -1)" : "-1") + ", keepdim=True)",
                    rows = is_centered ? "(" + in[0] + " - " + in[0] + mean + ")" : in[0];
  const bool has_own = over != attention::NormScope::head && n_heads > 1;
  const std::string factors =
      has_own ? in[1] + with_sizes(".unflatten(-1, (N, D)).unsqueeze(-2)", n_heads, d_head) : in[1];
  return {rows + " / (" + rows + ".square()" + mean + " + " + number(epsilon) + ").sqrt() * " + factors};
}

mat Rotate::matrix(const OperationInputs& in) const {
  if (!in.rows) return positions::rotate(in[0], first + offset, rotary);
  mat y(arma::size(in[0]));
  for (std::size_t a = 0; a < y.n_rows; ++a)
    y.row(a) = positions::rotate(in[0].row(a), first + offset + static_cast<std::int64_t>(in.row(a)), rotary);
  return y;
}

std::string Rotate::formula(bool brief, const std::string& hidden) const {
  if (!hidden.empty()) return hidden + ", rotated";
  const std::string pairs = rotary.pairs == positions::Pairs::halves ? "halves" : "neighbours",
                    back = is_backwards ? " backwards" : "",
                    by = offset == 0 ? "" : (offset < 0 ? " − " : " + ") + to_string(std::abs(offset));
  const double attention_factor = positions::attention_factor(rotary);
  const std::string times = attention_factor == 1 ? "" : " × " + text::number_text(attention_factor);
  return (brief ? "rotated" + back : "pairs of " + pairs + " rotated" + back + " by position") + by + times;
}

TorchCode Rotate::torch_code(const InputNames& in) const {
  const bool divides = rotary.scaling.rule == positions::ScalingRule::linear;
  const std::string factor = number(rotary.scaling.factor);
  TorchCode code;
  code.before = {"positions = torch.arange(n_keys, dtype=torch.float64)" +
                 (rotary.first != 0 ? " + " + number(static_cast<double>(rotary.first)) : std::string()) +
                 (divides ? "  # of keys, before they are scaled" : "")};
  if (divides) code.before.push_back("positions = positions / " + factor);
  if (more_keys == 0) return {"apply_rope(" + in[0] + ", positions)", code.before};
  code.before.push_back(
      more_keys > 0 ? "query_positions = positions[n_keys - n_tokens:]  # the last query is at the last key"
                    : "query_positions = positions[-1] + torch.arange(1 - n_tokens, 1, dtype=torch.float64)" +
                          (divides ? " / " + factor : std::string()));
  return {"apply_rope(" + in[0] + ", query_positions)", code.before};
}

// Scores.

ScaleScores::ScaleScores(Stage x, const Model& m)
    : Operation({{x}}),
      rule(m.scale.rule),
      factor(scale_factor(m)),
      width(rule == attention::ScaleRule::inverse_sqrt_d_model ? m.d_model() : m.d_head()) {}

std::string ScaleScores::formula(bool, const std::string&) const {
  using attention::ScaleRule;
  return rule == ScaleRule::none     ? "not scaled"
         : rule == ScaleRule::factor ? "× factor"
                                     : "÷ √" + to_string(width);
}

TorchCode ScaleScores::torch_code(const InputNames& in) const {
  using attention::ScaleRule;
  switch (rule) {
    case ScaleRule::inverse_sqrt_d_head:
      return {in[0] + " / keys.shape[-1] ** 0.5"};
    case ScaleRule::inverse_sqrt_d_model:
      return {in[0] + " / x.shape[-1] ** 0.5"};
    case ScaleRule::factor:
      return {in[0] + " * " + number(factor)};
    case ScaleRule::none:
      break;
  }
  return {in[0]};
}

TorchCode Softcap::torch_code(const InputNames& in) const {
  return {number(cap) + " * torch.tanh(" + in[0] + " / " + number(cap) + ")"};
}

AlibiBias::AlibiBias(const Model& m) {
  const positions::Alibi& alibi = *m.additions.positions.alibi;
  for (std::size_t h = 0; h < m.n_heads; ++h) slopes.push_back(positions::alibi_slope(alibi, h, m.n_heads));
  if (alibi.slopes) inputs = {{MatrixName::slopes, "0h"}};
}

mat AlibiBias::matrix(const OperationInputs& in) const {
  return by_distance(in, [slope = slopes[in.head]](std::int64_t distance) {
    return -slope * static_cast<double>(std::abs(distance));
  });
}

TorchCode AlibiBias::torch_code(const InputNames&) const {
  return {std::string("(-slopes") + (slopes.size() > 1 ? "[:, None, None]" : "") +
              " * (key - query).abs()).expand(scores.shape)",
          positions_in_torch};
}

mat RelativeBias::matrix(const OperationInputs& in) const {
  return by_distance(in, [&](std::int64_t distance) {
    return in[0](in.head, positions::relative_position_bucket(distance, relative));
  });
}

TorchCode RelativeBias::torch_code(const InputNames&) const {
  const std::size_t n = relative.table.n_cols() / (relative.bidirectional ? 2 : 1);
  const std::string few = to_string(n / 2);
  TorchCode code{
      std::string("bias_table") + (n_heads > 1 ? "[:, bucket]" : "[0, bucket]") + ".expand(scores.shape)",
      positions_in_torch};
  for (const std::string& line :
       {std::string(relative.bidirectional ? "distance = (key - query).abs()"
                                           : "distance = (query - key).clamp(min=0)"),
        "far = (distance.clamp(min=" + few + ").double() / " + few + ").log() / torch.tensor(" +
            number(static_cast<double>(relative.max_distance)) + " / " + few + ", dtype=torch.float64).log()",
        fmt::format("far = ({} + (far * {}).long()).clamp(max={})", few, n - n / 2, n - 1),
        "bucket = torch.where(distance < " + few + ", distance, far)"})
    code.before.push_back(line);
  if (relative.bidirectional) code.before.push_back(fmt::format("bucket = bucket + {} * (key > query)", n));
  return code;
}

AddBiases::AddBiases(Stage x, std::optional<Stage> position_bias, const Model& m) : Operation({{x}}) {
  if (position_bias) inputs.push_back({*position_bias});
  if (!m.additions.score_bias.empty()) inputs.push_back({MatrixName::score_bias});
}

// The mask.

AttentionMask::AttentionMask(const Model& m, attention::Mask rules)
    : mask(std::move(rules)),
      names_keys(m.has_key_embeddings() || m.additions.positions.rotary || m.additions.positions.has_bias()),
      is_shifted(m.n_keys() != m.n_tokens() && mask.align == attention::MaskAlignment::last),
      has_own(m.sequences.size() > 1 && !mask.hidden_keys.empty()) {}

mat AttentionMask::matrix(const OperationInputs& in) const {
  const attention::SequenceMask sequence_mask(in.model, mask, in.sequence);
  mat visible(in.n_rows(), in.model.n_keys());
  for (std::size_t j = 0; j < visible.n_cols; ++j)
    for (std::size_t a = 0; a < visible.n_rows; ++a)
      visible(a, j) = sequence_mask.by_rules(in.row(a), j).visible;
  for (const auto& cell : mask.cells)
    if (!in.rows)
      visible(cell.row, cell.column) = cell.visible;
    else
      for (std::size_t a = 0; a < visible.n_rows; ++a)
        if (in.row(a) == cell.row) visible(a, cell.column) = cell.visible;
  return visible;
}

TorchCode AttentionMask::torch_code(const InputNames&) const {
  const std::string keys = names_keys ? "n_keys" : "n_tokens", shift = is_shifted ? "n_keys - n_tokens" : "",
                    remark = "  # 1: the query attends to the key";
  TorchCode code;
  const auto add = [&](const std::string& line) { code.after.push_back(line); };
  if (!mask.has_other_rules() || !mask.masks_keys_by_rule()) {
    code.expression =
        "torch.ones(n_tokens, " + keys + ")" + (mask.causal ? ".tril(" + shift + ")" : "") + remark;
  } else {
    code.before = {"query, key = torch.arange(n_tokens)[:, None]" + (is_shifted ? " + " + shift : "") +
                   ", torch.arange(" + keys + ")"};
    code.expression = mask.causal ? "key <= query" : "torch.ones(n_tokens, " + keys + ", dtype=bool)";
    if (const auto left = mask.window.left) add("mask &= key >= query - " + to_string(*left));
    if (const auto right = mask.window.right; right && !mask.causal)
      add("mask &= key <= query + " + to_string(*right));
    if (mask.prefix > 0) add(fmt::format("mask |= key < {}  # the prefix", mask.prefix));
    if (!mask.documents.empty()) {
      add("documents = torch.tensor(" + list(mask.documents) + ")");
      add("mask &= documents[:, None] == documents");
    }
    if (has_own) add("mask = mask.repeat(len(x), 1, 1)");
    for (std::size_t s = 0; s < mask.hidden_keys.size(); ++s)
      if (!mask.hidden_keys[s].empty())
        add("mask[" + (has_own ? to_string(s) + ", " : std::string()) + ":, " + list(mask.hidden_keys[s]) +
            "] = False  # padding");
    add("mask = mask.double()" + remark);
  }
  for (const auto& [row, column, visible] : mask.cells)
    add(fmt::format("mask[{}{}, {}] = {}", std::string(has_own ? "..., " : ""), row, column,
                    visible ? "1" : "0"));
  return code;
}

MaskedFill::MaskedFill(Stage x, Stage mask, double number, const attention::Mask& rules)
    : Operation({{x}, {mask}}),
      fill(number),
      masks_keys(rules.masks_keys()),
      is_only_causal(rules.is_only_causal()) {}

mat MaskedFill::matrix(const OperationInputs& in) const {
  mat y = in[0];
  y.elem(arma::find(in[1] == 0)).fill(fill);
  return y;
}

std::string MaskedFill::formula(bool brief, const std::string& hidden) const {
  if (!masks_keys) return hidden + (brief ? "nothing masked" : "no key is masked");
  const std::string words = hidden + attention::fill_text(fill);
  if (is_only_causal) return words + " where key > query";
  return words + (brief ? " if masked" : " where masked");
}

TorchCode MaskedFill::torch_code(const InputNames& in) const {
  const std::string value =
      std::isinf(fill) ? "-torch.inf" : "-1e" + to_string(std::lround(std::log10(-fill)));
  return {in[0] + ".masked_fill(" + in[1] + " == 0, " + value + ")"};
}

// The softmax.

Softmax::Softmax(Stage x, const Model& m)
    : Operation({{x, "i:"}}), precision(m.arithmetic.softmax_precision), n_heads(m.n_heads) {
  if (m.additions.sink) inputs.push_back({MatrixName::sink, "0h"});
}

mat Softmax::matrix(const OperationInputs& in) const {
  return attention::rounded(precision, weights(attention::rounded(precision, in[0]), in));
}

mat Softmax::weights(mat scores, const OperationInputs& in) const {
  if (!has_sink()) return softmax_of_rows(std::move(scores));
  const arma::vec sink(scores.n_rows, arma::fill::value(in[1](0, in.head)));
  return softmax_of_rows(arma::join_rows(scores, sink)).head_cols(scores.n_cols);
}

std::string Softmax::words(bool brief) const {
  return std::string(brief ? "softmax" : "softmax of each row") + (has_sink() ? " and sink" : "");
}

std::string Softmax::formula(bool brief, const std::string& hidden) const {
  std::string text = words(brief);
  if (precision != Precision::float64) text += (brief ? ", " : " in ") + std::string(name_of(precision));
  return text + hidden;
}

TorchCode Softmax::torch_code(const InputNames& in) const {
  if (!has_sink()) return {"torch.softmax(" + in[0] + ", dim=-1)"};
  return {"torch.softmax(torch.cat([" + in[0] + ", " + in[1] + (n_heads > 1 ? "[:, None, None]" : "") +
          ".expand(*" + in[0] + ".shape[:-1], 1)], dim=-1), dim=-1)[..., :-1]"};
}

mat SoftmaxOverQueries::weights(mat scores, const OperationInputs& in) const {
  const mat all = softmax_of_rows(scores.t()).t();
  return in.rows ? mat(all.rows(arma::conv_to<arma::uvec>::from(*in.rows))) : all;
}

BlockMaxima block_maxima(const arma::rowvec& scores, const attention::Blocks& blocks) {
  using attention::BlockRule;
  const std::size_t n = scores.n_elem;
  const std::size_t kept =
      blocks.rule == BlockRule::last_dropped && n > 0 ? (n - 1) / blocks.size * blocks.size : n;
  arma::rowvec so_far(n);
  double largest = -infinity;
  for (std::size_t first = 0; first < kept; first += blocks.size) {
    const std::size_t end = std::min(first + blocks.size, kept);
    for (std::size_t j = first; j < end; ++j) largest = std::max(largest, scores[j]);
    for (std::size_t j = first; j < end; ++j) so_far[j] = largest;
  }
  arma::rowvec whole(n, arma::fill::value(largest));
  for (std::size_t j = kept; j < n; ++j) so_far[j] = whole[j] = infinity;
  const bool own = blocks.rule == BlockRule::not_rescaled || blocks.rule == BlockRule::contexts_not_rescaled;
  const bool summed = blocks.rule == BlockRule::not_rescaled || blocks.rule == BlockRule::sum_not_rescaled;
  return {own ? so_far : whole, summed ? so_far : whole, largest};
}

mat SoftmaxInBlocks::weights(mat scores, const OperationInputs& in) const {
  mat weights(arma::size(scores));
  for (std::size_t i = 0; i < scores.n_rows; ++i) {
    const arma::rowvec row = scores.row(i);
    const auto [own, summed, last] = block_maxima(row, blocks);
    const auto term = [&](std::size_t j, const arma::rowvec& largest) {
      return row[j] == -infinity ? 0 : std::exp(row[j] - largest[j]);
    };
    double sum = 0;
    for (std::size_t j = 0; j < row.n_elem; ++j) sum += term(j, summed);
    if (has_sink()) sum += std::exp(in[1](0, in.head) - last);
    for (std::size_t j = 0; j < row.n_elem; ++j) weights(i, j) = term(j, own) / sum;
  }
  return weights;
}

std::string SoftmaxInBlocks::words(bool brief) const {
  using attention::BlockRule;
  const std::string of = "blocks of " + to_string(blocks.size);
  if (brief) return of + (has_sink() ? " and sink" : "");
  const char* what = blocks.rule == BlockRule::last_dropped            ? "the last one skipped"
                     : blocks.rule == BlockRule::sum_not_rescaled      ? "sum not rescaled"
                     : blocks.rule == BlockRule::contexts_not_rescaled ? "context vectors not rescaled"
                                                                       : "not rescaled";
  return Softmax::words(false) + " in " + of + ", " + what;
}

mat DivideByRowSum::matrix(const OperationInputs& in) const {
  mat y = in[0];
  y.each_col() /= in[1].col(0);
  return y;
}

ZeroEmptyRows::ZeroEmptyRows(Stage weights, Stage scores, std::optional<Stage> mask)
    : Operation({{weights}, {scores, "i:"}}) {
  if (mask) inputs.push_back({*mask, "i:"});
}

bool ZeroEmptyRows::is_empty(const OperationInputs& in, std::size_t row) const {
  const auto scores = in[1].row(row);
  return reads_mask() ? arma::all(in[2].row(row) == 0 || scores == -infinity)
                      : arma::all(scores == -infinity);
}

mat ZeroEmptyRows::matrix(const OperationInputs& in) const {
  mat y = in[0];
  for (std::size_t i = 0; i < y.n_rows; ++i)
    if (is_empty(in, i)) y.row(i).zeros();
  return y;
}

TorchCode ZeroEmptyRows::torch_code(const InputNames& in) const {
  const std::string hidden = "(" + in[1] + " == -torch.inf)",
                    nothing = reads_mask() ? "((" + in[2] + " == 0) | " + hidden + ")" : hidden;
  return {in[0],
          {},
          {"nothing = " + nothing + ".all(dim=-1, keepdim=True)",
           "weights = weights.masked_fill(nothing, 0)  # queries without an unmasked key"}};
}

// Dropout.

mat SampleKeepMask::matrix(const OperationInputs& in) const {
  const std::size_t n = in.model.n_heads * in.model.n_tokens(), n_keys = in.model.n_keys(),
                    first = in.sequence * n * n_keys;
  random::Generator generator(dropout.seed);
  const random::Bits bits =
      attention::kept(generator, dropout, first + n * n_keys);  // earlier sequences come first
  mat ones(n, n_keys);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n_keys; ++j) ones(i, j) = bits[first + i * n_keys + j];
  return ones;
}

TorchCode SampleKeepMask::torch_code(const InputNames&) const {
  if (dropout.stream == attention::DropoutStream::mkl) return {"kept"};  // current PyTorch samples others
  // nn.Dropout samples exactly these numbers, except in builds with MKL before PyTorch 2.7.
  return {"kept",
          {fmt::format("torch.manual_seed({})", dropout.seed),
           "kept = torch.rand(weights.shape, dtype=torch.float64) < 1 - " + number(dropout.rate) +
               "  # as nn.Dropout draws"}};
}

DropoutFactors::DropoutFactors(Stage kept, const Model& m) : dropout(m.dropout) {
  if (SampleKeepMask::is_needed(dropout)) inputs = {{kept, "::"}};
  rounded = false;
}

mat DropoutFactors::matrix(const OperationInputs& in) const {
  mat factors(in.n_rows(), in.model.n_keys(), arma::fill::ones);
  if (!dropout.active()) return factors;
  const bool given = !dropout.given.empty();
  if (!given && dropout.rate == 1) return factors.zeros();
  const mat& ones = given ? *dropout.given[in.sequence * in.model.n_heads + in.head] : in[0];
  const std::size_t first = given ? 0 : in.head * in.model.n_tokens();
  const double factor = dropout_scale(dropout);
  for (std::size_t j = 0; j < factors.n_cols; ++j)
    for (std::size_t a = 0; a < factors.n_rows; ++a) factors(a, j) = ones(first + in.row(a), j) * factor;
  return factors;
}

std::string DropoutFactors::formula(bool brief, const std::string&) const {
  if (!dropout.training) return brief ? "off" : "off in evaluation";
  return dropout.rate == 0 ? "off" : dropout.rescale ? "0 or 1/(1−p)" : "0 or 1";
}

TorchCode DropoutFactors::torch_code(const InputNames& in) const {
  if (!dropout.active())
    return {std::string("torch.ones_like(weights)") + (dropout.training ? "" : "  # evaluation")};
  if (dropout.rate == 1) return {"torch.zeros_like(weights)  # a rate of 1 drops everything"};
  return {(in.empty() ? "kept" : in[0]) + ".double()" +
          (dropout.rescale ? " / (1 - " + number(dropout.rate) + ")" : "")};
}

}  // namespace core::graph
