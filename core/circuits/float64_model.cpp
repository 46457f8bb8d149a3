#include "core/circuits/float64_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace core::circuits {
namespace {

using arma::mat;
using arma::rowvec;
using formats::checkpoints::Activation;
using transformer::NormPlace;
using transformer::NormScope;

rowvec in_float64(const std::vector<float>& numbers) {
  return {std::vector<double>(numbers.begin(), numbers.end())};
}

mat in_float64(const transformer::RowBuffer& rows) {
  return arma::conv_to<mat>::from(rows.view().matrix());
}

/// Returns some outputs of a projection.
Affine64 outputs_of(const transformer::Affine& numbers, std::size_t first, std::size_t count,
                    ThreadPool& pool) {
  Affine64 affine;
  const std::size_t d_in = numbers.weight.d_in();
  affine.weight.set_size(d_in, count);
  pool.run(count, d_in * count, [&](std::size_t j) {
    std::vector<float> output(d_in);
    numbers.weight.read_output(first + j, output.data());
    std::copy(output.begin(), output.end(), affine.weight.colptr(j));
  });
  if (!numbers.bias.empty()) affine.bias = in_float64(numbers.bias).cols(first, first + count - 1);
  return affine;
}

Affine64 whole(const transformer::Affine& numbers, ThreadPool& pool) {
  return numbers.is_empty() ? Affine64() : outputs_of(numbers, 0, numbers.weight.d_out(), pool);
}

Mlp64 whole(const transformer::MlpWeights& numbers, ThreadPool& pool) {
  return {whole(numbers.up, pool), whole(numbers.down, pool), numbers.xielu};
}

double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::gelu_erf:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / arma::datum::pi) * (x + 0.044715 * x * x * x)));
    case Activation::quick_gelu:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::relu_squared:
      return x > 0 ? x * x : 0;
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::xielu:
      break;
  }
  return x;
}

double xielu(double x, const transformer::Xielu& of) {
  const double curved = x > 0 ? of.positive * x * x
                              : of.negative * (std::expm1(std::min(x, static_cast<double>(of.epsilon))) - x);
  return curved + of.beta * x;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Returns the weight of each expert for a token, 0 for those that its router does not choose.
rowvec expert_weights(const rowvec& scores, const rowvec& correction,
                      const formats::checkpoints::Experts& rules) {
  rowvec weights = scores;
  if (rules.routing == formats::checkpoints::Routing::softmax) {
    weights = arma::exp(scores - scores.max());
    weights /= arma::accu(weights);
  } else {
    weights.transform(sigmoid);
  }
  const rowvec preference = correction.empty() ? weights : rowvec(weights + correction);
  const arma::uvec order = arma::stable_sort_index(preference, "descend");
  for (std::size_t k = rules.n_used; k < order.n_elem; ++k) weights[order[k]] = 0;
  return weights * (rules.factor / (rules.normalized ? arma::accu(weights) : 1));
}

}  // namespace

arma::vec Norm64::divisors(const mat& x) const {
  const arma::vec mean = is_centered ? arma::vec(arma::mean(x, 1)) : arma::vec(x.n_rows, arma::fill::zeros);
  return arma::sqrt(arma::mean(arma::square(x.each_col() - mean), 1) + epsilon);
}

mat Norm64::apply_frozen(const mat& part, const arma::vec& divisors) const {
  if (is_empty()) return part;
  mat result = part;
  if (is_centered) result.each_col() -= arma::vec(arma::mean(part, 1));
  result.each_col() /= divisors;
  result.each_row() %= factors;
  return result;
}

mat Norm64::apply(const mat& x) const {
  if (is_empty()) return x;
  mat result = apply_frozen(x, divisors(x));
  if (!bias.empty()) result.each_row() += bias;
  return result;
}

Norm64 Norm64::columns(std::size_t first, std::size_t count) const {
  Norm64 part = *this;
  part.factors = factors.cols(first, first + count - 1);
  return part;
}

mat Affine64::apply(const mat& x) const {
  mat result = x * weight;
  if (!bias.empty()) result.each_row() += bias;
  return result;
}

Affine64 Affine64::columns(std::size_t first, std::size_t count) const {
  Affine64 part{weight.cols(first, first + count - 1), {}};
  if (!bias.empty()) part.bias = bias.cols(first, first + count - 1);
  return part;
}

Float64Model::Float64Model(const Transformer& model)
    : model_(model),
      rules_(model.architecture()),
      family_(formats::checkpoints::full_model_family_named(rules_.family)) {}

Norm64 Float64Model::norm_of(const transformer::NormWeights& numbers) const {
  return {in_float64(numbers.factors), in_float64(numbers.bias),
          rules_.norm.kind == transformer::NormKind::layer, rules_.norm.epsilon};
}

Layer64 Float64Model::read_attention(std::size_t index, const CallContext& context) const {
  const auto numbers = model_.weights().layer(index, context);
  const auto& sizes = rules_.sizes;
  const std::size_t d_queries = sizes.n_heads * sizes.d_head, d_keys = sizes.kv_heads * sizes.d_head;
  const auto projection = [&](std::size_t first, std::size_t count) {
    return outputs_of(numbers->queries_keys_values, first, count, context.pool);
  };
  Layer64 layer;
  layer.index = index;
  layer.attention_norm = norm_of(numbers->attention_norm);
  layer.query_norm = norm_of(numbers->query_norm);
  layer.key_norm = norm_of(numbers->key_norm);
  layer.attention_output_norm = norm_of(numbers->attention_output_norm);
  layer.queries = projection(0, d_queries);
  layer.keys = projection(d_queries, d_keys);
  layer.values = projection(d_queries + d_keys, d_keys);
  layer.output = whole(numbers->output, context.pool);
  return layer;
}

Layer64 Float64Model::read_layer(std::size_t index, const CallContext& context) const {
  const auto numbers = model_.weights().layer(index, context);
  Layer64 layer = read_attention(index, context);
  layer.mlp_norm = norm_of(numbers->mlp_norm);
  layer.mlp_output_norm = norm_of(numbers->mlp_output_norm);
  layer.mlp = whole(numbers->mlp, context.pool);
  layer.router = whole(numbers->router, context.pool);
  layer.router_correction = in_float64(numbers->router_correction);
  for (const auto& expert : numbers->experts) layer.experts.push_back(whole(expert, context.pool));
  layer.shared = whole(numbers->shared, context.pool);
  layer.shared_expert_gate = whole(numbers->shared_expert_gate, context.pool);
  return layer;
}

std::vector<StreamSummand> Float64Model::embed(const std::vector<std::size_t>& ids,
                                               const CallContext& context, const std::string& without) const {
  const auto rows = model_.weights().read_embeddings(ids, 0, context);
  const Affine64 projection = rows.projection ? whole(*rows.projection, context.pool) : Affine64();
  const bool projects_tokens = rows.projects_tokens_alone && !projection.is_empty();
  std::vector<StreamSummand> parts{{"token", in_float64(rows.tokens) * rules_.embedding_factor}};
  rowvec bias;  // of all rows, added to the parts
  if (projects_tokens) parts[0].rows = parts[0].rows * projection.weight, bias = projection.bias;
  if (rows.positions.n_rows() > 0) parts.push_back({"position", in_float64(rows.positions)});
  if (rows.segments.n_rows() > 0) parts.push_back({"segment", in_float64(rows.segments)});
  for (StreamSummand& part : parts)
    if (part.name == without) part.rows.zeros();
  if (const Norm64 norm = norm_of(*rows.norm); !norm.is_empty()) {
    mat sum = parts[0].rows;
    for (std::size_t k = 1; k < parts.size(); ++k) sum += parts[k].rows;
    const arma::vec divisors = norm.divisors(sum);
    for (StreamSummand& part : parts) part.rows = norm.apply_frozen(part.rows, divisors);
    bias = norm.bias;
  }
  if (!projection.is_empty() && !projects_tokens) {
    for (StreamSummand& part : parts) part.rows = part.rows * projection.weight;
    if (!bias.empty()) bias = bias * projection.weight;
    if (!projection.bias.empty()) bias = bias.empty() ? projection.bias : rowvec(bias + projection.bias);
  }
  if (!bias.empty()) parts.push_back({"embedding bias", arma::repmat(bias, ids.size(), 1)});
  return parts;
}

mat Float64Model::embedded(const std::vector<std::size_t>& ids, const CallContext& context) const {
  mat sum(ids.size(), rules_.sizes.d_model, arma::fill::zeros);
  for (const StreamSummand& part : embed(ids, context)) sum += part.rows;
  return sum;
}

Norm64 Float64Model::input_norm(const Layer64& layer) const {
  return rules_.norm.place == NormPlace::before ? layer.attention_norm : Norm64();
}

mat Float64Model::normalized(const Layer64& layer, const mat& rows, bool is_query) const {
  const Norm64& norm = is_query ? layer.query_norm : layer.key_norm;
  if (norm.is_empty() || family_.norm_over == NormScope::all_heads) return norm.apply(rows);
  const std::size_t d = rules_.sizes.d_head;
  mat result(arma::size(rows));
  for (std::size_t first = 0; first < rows.n_cols; first += d)
    result.cols(first, first + d - 1) = norm.columns(family_.norm_over == NormScope::own_head ? first : 0, d)
                                            .apply(rows.cols(first, first + d - 1));
  return result;
}

mat Float64Model::rotated(const Layer64& layer, const mat& rows, std::size_t first,
                          std::size_t n_tokens) const {
  const auto& rotary = transformer::rotary_of(rules_, layer.index);
  if (!rotary) return rows;
  const auto now = positions::at_length(*rotary, rules_.sizes.d_head, static_cast<std::int64_t>(n_tokens));
  return positions::rotate(rows, static_cast<std::int64_t>(first), now);
}

Float64Model::HeadProjection Float64Model::head_projection(const Layer64& layer, bool is_query,
                                                           std::size_t head) const {
  const std::size_t d = rules_.sizes.d_head, first = head * d;
  const Affine64& affine = is_query ? layer.queries : layer.keys;
  const Norm64& norm = is_query ? layer.query_norm : layer.key_norm;
  if (norm.is_empty()) return {affine.columns(first, d), {}, 0};
  if (family_.norm_over == NormScope::all_heads) return {affine, norm, first};
  return {affine.columns(first, d), norm.columns(family_.norm_over == NormScope::own_head ? first : 0, d), 0};
}

mat Float64Model::head_rows(const Layer64& layer, const mat& input, bool is_query, std::size_t head) const {
  const HeadProjection to = head_projection(layer, is_query, head);
  const mat rows = to.norm.apply(to.affine.apply(input));
  return rotated(layer, rows.cols(to.first, to.first + rules_.sizes.d_head - 1), 0, input.n_rows);
}

LayerPass Float64Model::compute_heads(const Layer64& layer, const mat& residual) const {
  const std::size_t d = rules_.sizes.d_head, n = residual.n_rows;
  const mat input = input_norm(layer).apply(residual),
            queries = normalized(layer, layer.queries.apply(input), true),
            keys = normalized(layer, layer.keys.apply(input), false), values = layer.values.apply(input);
  LayerPass pass;
  pass.residual = residual;
  for (std::size_t first = 0; first < keys.n_cols; first += d) {
    pass.keys.push_back(rotated(layer, keys.cols(first, first + d - 1), 0, n));
    pass.values.push_back(values.cols(first, first + d - 1));
  }
  pass.contexts.set_size(n, queries.n_cols);
  for (std::size_t h = 0; h < rules_.sizes.n_heads; ++h) {
    pass.queries.push_back(rotated(layer, queries.cols(h * d, (h + 1) * d - 1), 0, n));
    pass.contexts.cols(h * d, (h + 1) * d - 1) =
        weights(layer, h, pass.queries[h], pass.keys[group_of(h)]) * pass.values[group_of(h)];
  }
  return pass;
}

mat Float64Model::run_mlp(const Mlp64& mlp, const mat& x) const {
  const Activation activation = rules_.mlp.activation;
  mat hidden = mlp.up.apply(x);
  if (mlp.xielu) hidden.transform([&](double number) { return xielu(number, *mlp.xielu); });
  if (!rules_.mlp.gated) {
    if (!mlp.xielu) hidden.transform([&](double number) { return activated(number, activation); });
    return mlp.down.apply(hidden);
  }
  const std::size_t d_hidden = hidden.n_cols / 2;
  mat gate = hidden.head_cols(d_hidden);
  gate.transform([&](double number) { return activated(number, activation); });
  return mlp.down.apply(gate % hidden.tail_cols(d_hidden));
}

/// Returns what the MLP or the experts add.
mat Float64Model::mlp(const Layer64& layer, const LayerPass& pass) const {
  const Norm64& norm =
      rules_.mlp.parallel && layer.mlp_norm.is_empty() ? layer.attention_norm : layer.mlp_norm;
  const mat& before = rules_.mlp.parallel ? pass.residual : pass.middle;
  const mat x = rules_.norm.place == NormPlace::before ? norm.apply(before) : before;
  mat sum;
  if (layer.router.is_empty()) {
    sum = run_mlp(layer.mlp, x);
  } else {
    const mat scores = layer.router.apply(x);
    sum.zeros(x.n_rows, x.n_cols);
    for (std::size_t i = 0; i < x.n_rows; ++i) {
      const rowvec by = expert_weights(scores.row(i), layer.router_correction, rules_.experts);
      for (std::size_t k = 0; k < by.n_elem; ++k)
        if (by[k] != 0) sum.row(i) += by[k] * run_mlp(layer.experts[k], x.row(i));
    }
    if (rules_.experts.d_shared > 0) {
      mat shared = run_mlp(layer.shared, x);
      if (!layer.shared_expert_gate.is_empty()) {
        arma::vec gate = layer.shared_expert_gate.apply(x).eval().col(0);
        shared.each_col() %= gate.transform(sigmoid);
      }
      sum += shared;
    }
  }
  return layer.mlp_output_norm.apply(sum) * rules_.residual_factor;
}

void Float64Model::add_attention(const Layer64& layer, LayerPass& pass) const {
  pass.middle = pass.residual + pass.attention;
  if (rules_.norm.place == NormPlace::after) pass.middle = layer.attention_norm.apply(pass.middle);
}

void Float64Model::add_mlp(const Layer64& layer, LayerPass& pass) const {
  pass.next = pass.middle + pass.mlp;
  if (rules_.norm.place == NormPlace::after) pass.next = layer.mlp_norm.apply(pass.next);
}

void Float64Model::finish(const Layer64& layer, LayerPass& pass) const {
  pass.attention =
      layer.attention_output_norm.apply(layer.output.apply(pass.contexts)) * rules_.residual_factor;
  add_attention(layer, pass);
  pass.mlp = mlp(layer, pass);
  add_mlp(layer, pass);
}

LayerPass Float64Model::run_layer(const Layer64& layer, const mat& residual) const {
  LayerPass pass = compute_heads(layer, residual);
  finish(layer, pass);
  return pass;
}

LayerPass Float64Model::aligned(const Layer64& layer, const LayerPass& other, const LayerPass& own,
                                const transformer::TokenAlignment& rows) const {
  const auto taken = [&](mat mine, const mat& theirs) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i]) mine.row(i) = theirs.row(*rows[i]);
    return mine;
  };
  LayerPass pass = compute_heads(layer, taken(own.residual, other.residual));
  pass.contexts = taken(own.contexts, other.contexts);
  pass.attention = taken(own.attention, other.attention);
  pass.mlp = taken(own.mlp, other.mlp);
  return pass;
}

mat Float64Model::with_change(const Layer64& layer, const LayerPass& pass, const Patch& patch,
                              const LayerPass* source) const {
  const std::size_t d = rules_.sizes.d_head;
  const PatchedPart part = patch.part;
  const auto taken = [&](const mat& own, const mat& other) {  // all rows, or one
    if (!patch.position) return other;
    mat rows = own;
    rows.row(*patch.position) = other.row(*patch.position);
    return rows;
  };
  if (part == PatchedPart::residual) return run_layer(layer, taken(pass.residual, source->residual)).next;
  LayerPass changed;
  changed.residual = pass.residual;
  if (part == PatchedPart::attention || part == PatchedPart::mlp) {
    changed.attention =
        part == PatchedPart::attention ? taken(pass.attention, source->attention) : pass.attention;
    add_attention(layer, changed);
    if (part == PatchedPart::attention)
      changed.mlp = mlp(layer, changed);
    else
      changed.mlp = source ? taken(pass.mlp, source->mlp) : mat(arma::size(pass.mlp), arma::fill::zeros);
    add_mlp(layer, changed);
    return changed.next;
  }
  changed.contexts = pass.contexts;
  for (std::size_t h = 0; h < rules_.sizes.n_heads; ++h) {
    const std::size_t group = group_of(h);
    const bool is_of_group = part == PatchedPart::keys || part == PatchedPart::values;
    if ((is_of_group ? group : h) != patch.index) continue;
    auto contexts = changed.contexts.cols(h * d, (h + 1) * d - 1);
    const mat own = contexts;
    const auto other = [&](PatchedPart what, const mat& mine, const std::vector<mat>& theirs, std::size_t k) {
      return part == what ? taken(mine, theirs[k]) : mine;
    };
    if (part == PatchedPart::head)
      contexts = source ? taken(own, source->contexts.cols(h * d, (h + 1) * d - 1))
                        : mat(arma::size(own), arma::fill::zeros);
    else if (part == PatchedPart::pattern)
      contexts = taken(own, weights(layer, h, source->queries[h], source->keys[group]) * pass.values[group]);
    else
      contexts = weights(layer, h, other(PatchedPart::queries, pass.queries[h], source->queries, h),
                         other(PatchedPart::keys, pass.keys[group], source->keys, group)) *
                 other(PatchedPart::values, pass.values[group], source->values, group);
  }
  finish(layer, changed);
  return changed.next;
}

mat Float64Model::with_frozen_attention(const Layer64& layer, const LayerPass& pass,
                                        const mat& residual) const {
  LayerPass changed;
  changed.residual = residual, changed.attention = pass.attention;
  add_attention(layer, changed);
  changed.mlp = mlp(layer, changed);
  add_mlp(layer, changed);
  return changed.next;
}

mat Float64Model::head_addition(const Layer64& layer, const LayerPass& pass, std::size_t head) const {
  const std::size_t d = rules_.sizes.d_head, first = head * d;
  const mat part = pass.contexts.cols(first, first + d - 1) * layer.output.weight.rows(first, first + d - 1);
  const Norm64& norm = layer.attention_output_norm;
  if (norm.is_empty()) return part * rules_.residual_factor;
  return norm.apply_frozen(part, norm.divisors(layer.output.apply(pass.contexts))) * rules_.residual_factor;
}

mat Float64Model::attention_bias(const Layer64& layer, const LayerPass& pass) const {
  const Norm64& norm = layer.attention_output_norm;
  if (layer.output.bias.empty() && norm.bias.empty()) return {};
  mat rows(arma::size(pass.residual), arma::fill::zeros);
  if (!layer.output.bias.empty()) rows.each_row() += layer.output.bias;
  if (!norm.is_empty()) rows = norm.apply_frozen(rows, norm.divisors(layer.output.apply(pass.contexts)));
  if (!norm.bias.empty()) rows.each_row() += norm.bias;
  return rows * rules_.residual_factor;
}

double Float64Model::scale(const Layer64& layer) const {
  const attention::Scale scale = transformer::scale_of(rules_, layer.index);
  return scale.rule == attention::ScaleRule::inverse_sqrt_d_head
             ? 1 / std::sqrt(static_cast<double>(rules_.sizes.d_head))
             : scale.factor;
}

double Float64Model::alibi_bias(std::size_t head, std::size_t query, std::size_t key) const {
  if (!rules_.alibi) return 0;
  const std::size_t distance = key > query ? key - query : query - key;
  return -positions::alibi_slope(*rules_.alibi, head, rules_.sizes.n_heads) * static_cast<double>(distance);
}

transformer::VisibleKeys Float64Model::visible_keys(const Layer64& layer, std::size_t query,
                                                    std::size_t n_keys) const {
  return transformer::visible_keys(transformer::score_rules_of(rules_, layer.index), query, n_keys);
}

rowvec Float64Model::softmax(const Layer64& layer, std::size_t head, std::size_t query,
                             const rowvec& scaled_scores) const {
  const auto [begin, end] = visible_keys(layer, query, scaled_scores.n_elem);
  rowvec scores = scaled_scores.cols(begin, end - 1);
  if (rules_.softcap) scores = attention::softcapped(mat(scores), *rules_.softcap);
  if (rules_.alibi)
    for (std::size_t j = begin; j < end; ++j) scores[j - begin] += alibi_bias(head, query, j);
  scores = arma::exp(scores - scores.max());
  rowvec weights(scaled_scores.n_elem, arma::fill::zeros);
  weights.cols(begin, end - 1) = scores / arma::accu(scores);
  return weights;
}

mat Float64Model::weights(const Layer64& layer, std::size_t head, const mat& queries, const mat& keys) const {
  mat rows = queries * keys.t() * scale(layer);
  for (std::size_t i = 0; i < rows.n_rows; ++i) rows.row(i) = softmax(layer, head, i, rows.row(i));
  return rows;
}

mat Float64Model::unembeddings(const std::vector<std::size_t>& tokens, const CallContext& context) const {
  mat columns;
  std::vector<float> output;
  model_.weights().for_each_unembedding_part(
      [&](std::size_t first, const transformer::Matrix& part) {
        if (columns.empty()) columns.set_size(part.d_in(), tokens.size()), output.resize(part.d_in());
        for (std::size_t k = 0; k < tokens.size(); ++k)
          if (tokens[k] >= first && tokens[k] < first + part.d_out()) {
            part.read_output(tokens[k] - first, output.data());
            std::copy(output.begin(), output.end(), columns.colptr(k));
          }
      },
      context);
  return columns;
}

mat Float64Model::logits(const mat& last, const std::vector<std::size_t>& tokens,
                         const CallContext& context) const {
  if (const std::string& why = model_.description().no_prediction_reason; !why.empty())
    throw Error(model_.description().path.string() + ": " + why);
  const auto head = model_.weights().head(context);
  mat x = norm_of(head->final_norm).apply(last);
  if (!head->projection.is_empty()) x = whole(head->projection, context.pool).apply(x);
  if (!head->dense.is_empty()) {
    x = whole(head->dense, context.pool).apply(x);
    const Activation activation = family_.head_activation.value_or(rules_.mlp.activation);
    x.transform([&](double number) { return activated(number, activation); });
    x = norm_of(head->norm).apply(x);
  }
  mat logits = x * unembeddings(tokens, context);
  for (std::size_t k = 0; k < tokens.size(); ++k)
    if (tokens[k] < head->bias.size()) logits.col(k) += head->bias[tokens[k]];
  logits *= rules_.logit_factor;
  return rules_.logit_softcap ? attention::softcapped(logits, *rules_.logit_softcap) : logits;
}

std::size_t forks_at_once(const Architecture& rules, std::size_t n_tokens) {
  constexpr std::size_t max_numbers = std::size_t{1} << 25;  // 256 MiB
  return std::max<std::size_t>(1, max_numbers / (n_tokens * rules.sizes.d_model));
}

void require_finite(const mat& numbers, const Transformer& model) {
  if (!numbers.is_finite())
    throw Error(model.description().path.string() + ": its numbers on this text are not finite");
}

ForkResult run_forks(const Float64Model& model, mat base, const mat* source, const std::vector<Fork>& forks,
                     std::size_t first, std::size_t n_layers, const CallContext& context,
                     const VisitLayer& visit, const std::function<void(std::size_t)>& on_step,
                     const transformer::TokenAlignment& rows) {
  ForkResult result{std::move(base), source ? *source : mat(), std::vector<mat>(forks.size())};
  for (std::size_t k = 0; k < forks.size(); ++k) result.forks[k] = forks[k].start;
  for (std::size_t l = first; l < n_layers; ++l) {
    context.progress.add(0);  // without forks nothing else asks whether to stop
    const Layer64 layer = model.read_layer(l, context);
    LayerPass passes[2];
    context.pool.run(source ? 2 : 1, [&](std::size_t k) {
      passes[k] = model.run_layer(layer, k == 0 ? result.base : result.source);
    });
    const LayerPass* const other = source ? &passes[1] : nullptr;
    if (visit) visit(layer, passes[0], other);
    mat next = std::move(passes[1].next);
    if (other && !rows.empty()) passes[1] = model.aligned(layer, passes[1], passes[0], rows);
    context.pool.run(forks.size(), [&](std::size_t k) {
      const Fork& fork = forks[k];
      if (fork.patch.layer > l) return;
      context.progress.add(1);
      mat& residual = result.forks[k];
      if (fork.patch.layer == l && fork.start.empty()) {
        residual = model.with_change(layer, passes[0], fork.patch, other);
      } else if (fork.receiver && l < fork.receiver->layer) {
        residual = model.with_frozen_attention(layer, passes[0], residual);
      } else if (fork.receiver && l == fork.receiver->layer) {
        const LayerPass reached = model.compute_heads(layer, residual);
        residual = model.with_change(layer, passes[0], *fork.receiver, &reached);
      } else {
        residual = model.run_layer(layer, residual).next;
      }
    });
    if (on_step)
      on_step(static_cast<std::size_t>(
          std::ranges::count_if(forks, [l](const Fork& fork) { return fork.patch.layer <= l; })));
    result.base = std::move(passes[0].next);
    if (source) result.source = std::move(next);
  }
  return result;
}

}  // namespace core::circuits
