#include "core/model/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <system_error>

#include "core/base/error.hpp"
#include "core/files/gguf.hpp"
#include "core/files/json.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/model/architecture.hpp"
#include "core/system/file.hpp"

namespace core::transformer {
namespace {

namespace fs = std::filesystem;
using arma::fmat;

constexpr std::size_t max_config_bytes = std::size_t{1} << 24;

// Opening.

bool is_gguf(const fs::path& path) {
  return system::is_file(path) && formats::looks_like_gguf(system::read_begin(path, 4));
}

/// The file of tensors in a folder.
fs::path tensors_in(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"})
    if (system::is_file(folder / name)) return folder / name;
  std::vector<fs::path> others;
  for (const fs::path& path : system::list_folder(folder).paths)
    if (path.extension() == ".safetensors") others.push_back(path);
  if (others.size() == 1) return others.front();
  throw Error(folder.string() + ": expected the tensors of a model: model.safetensors, or its index");
}

Description described(const fs::path& path, const Architecture& architecture, const Weights& weights,
                      const tokenizers::Tokenizer& tokenizer) {
  Description of;
  of.path = path;
  of.file = weights.file().path();
  of.family = architecture.family;
  of.sizes = architecture.sizes;
  of.causal = architecture.causal;
  const char* dense =
      formats::checkpoints::whole_family_named(architecture.family).names.of(Role::head_dense);
  if (!weights.predicts())
    of.why_no_prediction =
        std::string("it has nothing that predicts tokens, which a checkpoint would have as ") + dense +
        ".weight";
  of.has_contributions = weights.predicts() && architecture.norm.place == NormPlace::before && !*dense;
  of.n_tokens = tokenizer.size();
  for (const char* piece : {"[MASK]", "<mask>"})
    if (!of.mask_token) of.mask_token = tokenizer.find(piece);
  for (const auto& tensor : weights.file().tensors())
    of.n_parameters += std::accumulate(tensor.shape.begin(), tensor.shape.end(), 1.0, std::multiplies<>());
  return of;
}

// The steps of a pass.

/// Normalized where a norm comes before, else unchanged.
fmat before_block(const fmat& x, const Affine& numbers, const Norm& norm) {
  return norm.place == NormPlace::before ? normed(x, numbers, norm.kind, norm.epsilon) : x;
}

fmat after_block(fmat x, const Affine& numbers, const Norm& norm) {
  return norm.place == NormPlace::after ? normed(x, numbers, norm.kind, norm.epsilon) : x;
}

void compute_heads(const Architecture& rules, const LayerWeights& weights, LayerRun& layer,
                   KeysAndValues before, ThreadPool& pool) {
  const std::size_t d = rules.sizes.d_head, d_queries = rules.sizes.n_heads * d,
                    d_keys = rules.sizes.kv_heads * d;
  const fmat all = projected(layer.attention_input, weights.queries_keys_values, pool);
  layer.queries = all.cols(0, d_queries - 1);
  fmat keys = all.cols(d_queries, d_queries + d_keys - 1);
  if (!weights.query_norm.is_empty()) norm_heads(layer.queries, d, weights.query_norm, rules.norm);
  if (!weights.key_norm.is_empty()) norm_heads(keys, d, weights.key_norm, rules.norm);
  if (rules.rotary) {
    rotate(layer.queries, d, *rules.rotary, before.n);
    rotate(keys, d, *rules.rotary, before.n);
  }
  layer.keys = std::move(before);
  layer.keys.append(keys, all.cols(d_queries + d_keys, all.n_cols - 1));
}

EditSet by_layer(const std::vector<Edit>& edits) {
  EditSet result;
  for (const Edit& edit : edits)
    if (const auto* off = std::get_if<HeadOff>(&edit))
      result.heads_off.insert({off->layer, off->head});
    else
      result.outputs[std::get<SetOutput>(edit).layer] = std::get<SetOutput>(edit).output;
  return result;
}

/// Whether a layer is edited alike.
bool are_same(const EditSet& a, const EditSet& b, std::size_t layer, std::size_t n_heads) {
  const auto output = [layer](const EditSet& edits) {
    const auto found = edits.outputs.find(layer);
    return found == edits.outputs.end() ? nullptr : found->second;
  };
  if (output(a) != output(b)) return false;
  for (std::size_t head = 0; head < n_heads; ++head)
    if (a.heads_off.contains({layer, head}) != b.heads_off.contains({layer, head})) return false;
  return true;
}

bool begins_with(const std::vector<std::size_t>& ids, const std::vector<std::size_t>& begin) {
  return begin.size() < ids.size() && std::equal(begin.begin(), begin.end(), ids.begin());
}

const OwnPass& own(const Pass& pass) {
  return static_cast<const OwnPass&>(pass);
}

/// Columns of a projection, and of its bias, in float64.
attention::Linear columns(const Affine& numbers, std::size_t from, std::size_t count) {
  const auto part = [&](const auto& all) {
    return arma::conv_to<arma::mat>::from(all.cols(from, from + count - 1));
  };
  attention::Linear linear{part(numbers.weight), std::nullopt};
  if (!numbers.bias.empty()) linear.bias = part(numbers.bias);
  return linear;
}

/// "TENSOR" or "TENSOR, row R", the first that is not finite, or "of finite weights".
std::string origin_among(const formats::TensorFile& file, const std::vector<std::string>& names,
                         const Token& progress) {
  constexpr std::size_t rows_at_once = 1024;
  for (const std::string& name : names) {
    const formats::Shape& shape = file.info(name).shape;
    const std::size_t n_rows = shape.size() < 2 ? 1 : shape[0];
    for (std::size_t first = 0; first < n_rows; first += rows_at_once) {
      const fmat rows =
          read_rows(file, name, first, std::min(rows_at_once, n_rows - first), progress);  // a row a column
      if (rows.is_finite()) continue;
      std::size_t row = 0;
      while (rows.col(row).is_finite()) ++row;
      return "in " + name + (n_rows == 1 ? "" : ", row " + std::to_string(first + row));
    }
  }
  return "of finite weights";
}

/// What of a layer's keys a block of queries attends to, in blocks; nullptr when nothing is masked.
std::shared_ptr<const arma::mat> visible_blocks(const Visibility& rule, std::size_t n_tokens,
                                                std::size_t block) {
  if (!rule.causal && rule.window == 0) return nullptr;
  const std::size_t n = (n_tokens + block - 1) / block;
  auto visible = std::make_shared<arma::mat>(n, n, arma::fill::zeros);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t last = std::min(n_tokens, (i + 1) * block) - 1;
    const std::size_t begin = visible_keys(rule, i * block, n_tokens).begin,
                      end = visible_keys(rule, last, n_tokens).end;
    visible->row(i).cols(begin / block, (end - 1) / block).ones();
  }
  return visible;
}

/// A logit as a row of the residual stream times a direction, plus a constant.
struct Direction {
  arma::vec of_residual;
  double constant = 0;
  double operator()(const arma::frowvec& part) const {
    return arma::dot(arma::conv_to<arma::rowvec>::from(part), of_residual);
  }
};

Direction direction_of(const Architecture& architecture, const Weights& weights, const arma::frowvec& last,
                       std::size_t token, const Means& means) {
  const auto head = weights.head(means.progress);
  arma::vec column;
  weights.for_each_prediction_part(
      [&](std::size_t first, const fmat& part) {
        if (token >= first && token < first + part.n_cols)
          column = arma::conv_to<arma::vec>::from(part.col(token - first));
      },
      means.progress);
  Direction direction{column, token < head->bias.n_elem ? head->bias[token] : 0.0};
  if (head->final_norm.is_empty()) return direction;
  const Norm& norm = architecture.norm;
  const arma::vec x = arma::conv_to<arma::vec>::from(last.t());
  const arma::vec weighed = arma::conv_to<arma::vec>::from(arma::vectorise(head->final_norm.weight)) % column;
  const auto n = static_cast<double>(x.n_elem);
  const bool is_centered = norm.kind == NormKind::layer;
  const double mean = is_centered ? arma::mean(x) : 0;
  const double size = std::sqrt(arma::accu(arma::square(x - mean)) / n + norm.epsilon);
  direction.of_residual = (is_centered ? arma::vec(weighed - arma::mean(weighed)) : weighed) / size;
  if (!head->final_norm.bias.empty())
    direction.constant += arma::dot(arma::conv_to<arma::vec>::from(head->final_norm.bias.t()), column);
  return direction;
}

}  // namespace

bool is_transformer(const fs::path& path) {
  if (is_gguf(path)) return true;
  return system::is_file(path / "config.json") && tokenizers::has_tokenizer(path);
}

std::shared_ptr<const Transformer> open_transformer(const fs::path& path, std::uint64_t keep_at_most) {
  using tokenizers::Tokenizer;
  const auto made = [&](Architecture architecture, const auto& open_tensors, Tokenizer tokenizer) {
    if (tokenizer.size() > architecture.sizes.n_vocabulary)
      throw Error(path.string() + ": expected a tokenizer of at most the model's " +
                  std::to_string(architecture.sizes.n_vocabulary) + " tokens, got one of " +
                  std::to_string(tokenizer.size()));
    auto weights = std::make_shared<const Weights>(open_tensors(), architecture, keep_at_most);
    return std::make_shared<const Transformer>(path, std::move(architecture), std::move(weights),
                                               std::make_shared<const Tokenizer>(std::move(tokenizer)));
  };
  if (is_gguf(path)) {
    const formats::GgufMetadata metadata = formats::gguf_metadata(path);
    formats::TensorFile file = formats::open_tensors(path);
    Architecture architecture = architecture_of(metadata, file);
    return made(
        std::move(architecture), [&] { return std::move(file); },
        Tokenizer(tokenizers::recipe_of_gguf(metadata)));
  }
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    throw Error(path.string() +
                ": expected a .gguf file, or a folder with config.json, tensors and a tokenizer");
  const fs::path config = path / "config.json";
  Architecture architecture =
      architecture_of(formats::parse_json(system::read_file(config, max_config_bytes), config.string()));
  return made(
      std::move(architecture), [&] { return formats::open_tensors(tensors_in(path)); },
      tokenizers::open_tokenizer(path));
}

Transformer::Transformer(fs::path path, Architecture architecture, std::shared_ptr<const Weights> weights,
                         std::shared_ptr<const tokenizers::Tokenizer> tokenizer)
    : architecture_(std::move(architecture)),
      weights_(std::move(weights)),
      tokenizer_(std::move(tokenizer)),
      description_(described(path, architecture_, *weights_, *tokenizer_)) {}

std::vector<tokenizers::TextToken> Transformer::tokenize(std::string_view text) const {
  return tokenizer_->encode(text);
}

VocabularyToken Transformer::token(std::size_t id) const {
  return {tokenizer_->piece(id), tokenizer_->bytes(id), tokenizer_->is_special(id)};
}

fmat Transformer::embedded(const std::vector<std::size_t>& ids, std::size_t first, const Means& means) const {
  fmat embeddings = weights_->embedded(ids, first, means.progress);
  const auto norm = weights_->embedding_norm(means.progress);
  if (norm->is_empty()) return embeddings;
  return normed(embeddings, *norm, architecture_.norm.kind, architecture_.norm.epsilon);
}

std::shared_ptr<LayerRun> Transformer::run_layer(std::size_t index, fmat residual, KeysAndValues before,
                                                 const EditSet& edits, const Means& means, fmat& next) const {
  const Architecture& rules = architecture_;
  const auto weights = weights_->layer(index, means.progress);
  auto layer = std::make_shared<LayerRun>();
  layer->residual = std::move(residual);
  layer->attention_input = before_block(layer->residual, weights->attention_norm, rules.norm);
  if (const auto given = edits.outputs.find(index); given != edits.outputs.end()) {
    layer->output = *given->second;
  } else {
    compute_heads(rules, *weights, *layer, std::move(before), means.pool);
    const std::size_t d = rules.sizes.d_head;
    fmat contexts =
        attended(layer->queries, layer->keys, rules.sizes, visibility_of(rules, index), means.pool);
    for (std::size_t head = 0; head < rules.sizes.n_heads; ++head)
      if (edits.heads_off.contains({index, head})) contexts.cols(head * d, head * d + d - 1).zeros();
    layer->output = projected(contexts, weights->output, means.pool);
  }
  next = layer->residual + layer->output;
  if (rules.mlp.parallel) {
    next +=
        mlp(before_block(layer->residual, weights->mlp_norm, rules.norm), *weights, rules.mlp, means.pool);
    return layer;
  }
  next = after_block(std::move(next), weights->attention_norm, rules.norm);
  next += mlp(before_block(next, weights->mlp_norm, rules.norm), *weights, rules.mlp, means.pool);
  next = after_block(std::move(next), weights->mlp_norm, rules.norm);
  return layer;
}

std::shared_ptr<OwnPass> Transformer::begun(const std::vector<std::size_t>& ids, const EditSet& edits,
                                            std::size_t n_layers, const Means& means) const {
  auto pass = std::make_shared<OwnPass>();
  pass->ids = ids;
  pass->edits = edits;
  std::shared_ptr<const OwnPass> nearest, begin;
  std::size_t n_same = 0;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(kept_, [](const auto& kept) { return kept.expired(); });
    for (const auto& each : kept_) {
      const auto kept = each.lock();
      if (!kept) continue;
      if (kept->ids == ids) {
        std::size_t n = 0;
        while (n < std::min(n_layers, kept->layers.size()) &&
               are_same(edits, kept->edits, n, architecture_.sizes.n_heads))
          ++n;
        if (!nearest || n > n_same) nearest = kept, n_same = n;
      } else if (architecture_.causal && kept->layers.size() == n_layers && edits.outputs.empty() &&
                 kept->edits.outputs.empty() && kept->edits.heads_off == edits.heads_off &&
                 begins_with(ids, kept->ids) && (!begin || kept->ids.size() > begin->ids.size())) {
        begin = kept;
      }
    }
  }
  if (begin && n_same == 0) {
    continue_text(*pass, *begin, means);
  } else if (nearest) {
    pass->layers.assign(nearest->layers.begin(),
                        nearest->layers.begin() + static_cast<std::ptrdiff_t>(n_same));
    pass->last = nearest->residual(n_same);
  } else {
    pass->last = embedded(ids, 0, means);
  }
  return pass;
}

/// Computes the rows of the tokens after those of a pass with the same edits.
void Transformer::continue_text(OwnPass& pass, const OwnPass& before, const Means& means) const {
  const std::vector<std::size_t> more(pass.ids.begin() + static_cast<std::ptrdiff_t>(before.ids.size()),
                                      pass.ids.end());
  fmat residual = embedded(more, before.ids.size(), means);
  for (std::size_t l = 0; l < before.layers.size(); ++l) {
    means.progress.add(1);
    const LayerRun& first = *before.layers[l];
    fmat next;
    const auto layer = run_layer(l, std::move(residual), first.keys, pass.edits, means, next);
    if (!next.is_finite()) refuse_layer(pass, l, layer->residual, means);
    layer->residual = arma::join_cols(first.residual, layer->residual);
    layer->attention_input = arma::join_cols(first.attention_input, layer->attention_input);
    layer->queries = arma::join_cols(first.queries, layer->queries);
    layer->output = arma::join_cols(first.output, layer->output);
    pass.layers.push_back(layer);
    residual = std::move(next);
  }
  pass.last = arma::join_cols(before.last, residual);
}

PassRef Transformer::run(const std::vector<std::size_t>& ids, const std::vector<Edit>& edits,
                         const Means& means, std::size_t n_layers) const {
  require_tokens(description_, ids);
  n_layers = std::min(n_layers, architecture_.sizes.n_layers);
  const auto pass = begun(ids, by_layer(edits), n_layers, means);
  for (std::size_t l = pass->layers.size(); l < n_layers; ++l) {
    means.progress.add(1);
    fmat next;
    pass->layers.push_back(run_layer(l, std::move(pass->last), {}, pass->edits, means, next));
    if (!next.is_finite()) refuse_layer(*pass, l, pass->layers.back()->residual, means);
    pass->last = std::move(next);
  }
  const std::scoped_lock lock(mutex_);
  kept_.push_back(pass);
  return pass;
}

void Transformer::refuse_numbers(const std::string& place, const std::vector<std::string>& tensors,
                                 const Means& means) const {
  const formats::TensorFile& file = weights_->file();
  throw Error(file.place() + "numbers that are not finite begin in " + place + ", " +
              origin_among(file, tensors, means.progress));
}

void Transformer::refuse_layer(const OwnPass& pass, std::size_t layer, const fmat& residual,
                               const Means& means) const {
  const std::string name = "layer " + std::to_string(layer);
  if (pass.edits.outputs.contains(layer))
    throw Error(description_.path.string() + ": numbers that are not finite begin in " + name +
                ", which was edited");
  if (!residual.is_finite()) refuse_numbers("the embeddings", weights_->tensors_of_embeddings(), means);
  refuse_numbers(name, weights_->tensors_of(layer), means);
}

fmat Transformer::before_prediction(const fmat& last, const Means& means) const {
  const auto head = weights_->head(means.progress);
  const Norm& norm = architecture_.norm;
  return head->final_norm.is_empty() ? last : normed(last, head->final_norm, norm.kind, norm.epsilon);
}

fmat Transformer::logits_of(const fmat& last, const Means& means) const {
  if (const std::string& why = description_.why_no_prediction; !why.empty())
    throw Error(description_.path.string() + ": " + why);
  const auto head = weights_->head(means.progress);
  const Norm& norm = architecture_.norm;
  fmat x = before_prediction(last, means);
  if (!head->dense.is_empty()) {
    x = projected(x, head->dense, means.pool);
    const auto& special = formats::checkpoints::whole_family_named(architecture_.family).head_activation;
    activate(x.memptr(), x.n_elem, special.value_or(architecture_.mlp.activation));
    x = normed(x, head->norm, norm.kind, norm.epsilon);
  }
  const std::size_t n_vocabulary = architecture_.sizes.n_vocabulary;
  fmat logits(x.n_rows, n_vocabulary, arma::fill::none);
  weights_->for_each_prediction_part(
      [&](std::size_t first, const fmat& part) {
        if (first >= n_vocabulary) return;
        const std::size_t count = std::min<std::size_t>(part.n_cols, n_vocabulary - first);
        const fmat made = product(x, part, means.pool);
        logits.cols(first, first + count - 1) = made.cols(0, count - 1);
      },
      means.progress);
  for (std::size_t k = 0; k < std::min<std::size_t>(head->bias.n_elem, n_vocabulary); ++k)
    logits.col(k) += head->bias[k];
  if (last.is_finite() && !logits.is_finite())
    refuse_numbers("what predicts tokens", weights_->tensors_of_prediction(), means);
  return logits;
}

arma::frowvec Transformer::next(const Pass& pass, std::size_t row, const Means& means) const {
  return logits_of(own(pass).last.row(row), means).as_row();
}

fmat Transformer::lens(const Pass& pass, std::size_t row, const Means& means) const {
  const std::size_t n_layers = own(pass).layers.size();
  fmat rows(n_layers, architecture_.sizes.d_model, arma::fill::none);
  for (std::size_t l = 0; l < n_layers; ++l) rows.row(l) = own(pass).residual(l + 1).row(row);
  return logits_of(rows, means);
}

fmat Transformer::input(const Pass& pass, std::size_t layer) const {
  if (layer < own(pass).layers.size()) return own(pass).layers[layer]->attention_input;
  const auto weights = weights_->layer(layer, Token{});
  return before_block(own(pass).last, weights->attention_norm, architecture_.norm);
}

attention::Model Transformer::parameters(std::size_t layer) const {
  const Sizes& sizes = architecture_.sizes;
  const std::size_t d = sizes.n_heads * sizes.d_head, d_keys = sizes.kv_heads * sizes.d_head;
  const Token progress;
  const auto weights = weights_->layer(layer, progress);
  attention::Model result;
  result.sequences.resize(1);
  const Affine& fused = weights->queries_keys_values;
  result.projections =
      attention::Projections{columns(fused, 0, d), columns(fused, d, d_keys),
                             columns(fused, d + d_keys, d_keys), columns(weights->output, 0, sizes.d_model)};
  result.n_heads = sizes.n_heads;
  if (sizes.kv_heads != sizes.n_heads) result.n_kv_heads = sizes.kv_heads;
  result.additions.positions.rotary = architecture_.rotary;
  if (!weights->query_norm.is_empty() && !weights->key_norm.is_empty()) {
    const auto factors = [](const Affine& norm) { return arma::conv_to<arma::mat>::from(norm.weight); };
    result.additions.normalise = attention::HeadNorm{attention::NormRule::rms, factors(weights->query_norm),
                                                     factors(weights->key_norm), architecture_.norm.epsilon};
  }
  if (architecture_.scales_by_layer) {
    const double by = std::sqrt(static_cast<double>(sizes.d_head)) * static_cast<double>(layer + 1);
    result.scale = {attention::ScaleRule::factor, 1 / by};
  }
  result.mask.causal = architecture_.causal;
  if (const std::size_t window = window_of(architecture_, layer)) result.mask.window.left = window - 1;
  return result;
}

fmat Transformer::weights_of(const Pass& pass, std::size_t layer, std::size_t head) const {
  const LayerRun& of = *own(pass).layers[layer];
  return weights_of_head(of.queries, of.keys, architecture_.sizes, visibility_of(architecture_, layer), head)
      .t();
}

LayerHeads Transformer::maps(const Pass& pass, std::size_t layer, std::size_t block, std::size_t row,
                             const Means& means) const {
  LayerHeads result;
  result.heads.resize(architecture_.sizes.n_heads);
  means.pool.run(result.heads.size(), [&](std::size_t head) {
    const fmat weights = weights_of(pass, layer, head);
    result.heads[head] = {pooled(arma::conv_to<arma::mat>::from(weights), block),
                          roles_of(weights, pass.ids)};
  });
  result.added = added_by_heads(own(pass), layer, row, means);
  result.visible = visible_blocks(visibility_of(architecture_, layer), pass.ids.size(), block);
  return result;
}

fmat Transformer::added_by_heads(const OwnPass& pass, std::size_t layer, std::size_t row,
                                 const Means& means) const {
  const Sizes& sizes = architecture_.sizes;
  const LayerRun& of = *pass.layers[layer];
  const Visibility rule = visibility_of(architecture_, layer);
  KeysAndValues seen = of.keys;  // the row as the last query of the keys that it attends to
  if (rule.causal) seen.n = row + 1;
  const auto weights = weights_->layer(layer, means.progress);
  const arma::frowvec contexts = attended(of.queries.row(row), seen, sizes, rule, means.pool).as_row();
  fmat added(sizes.n_heads, sizes.d_model, arma::fill::zeros);
  const std::size_t d = sizes.d_head;
  for (std::size_t h = 0; h < sizes.n_heads; ++h)
    if (!pass.edits.heads_off.contains({layer, h}))
      added.row(h) = contexts.cols(h * d, h * d + d - 1) * weights->output.weight.rows(h * d, h * d + d - 1);
  return added;
}

Contributions Transformer::contributions(const Pass& pass, std::size_t row, std::size_t token,
                                         const std::vector<fmat>& added, const Means& means) const {
  if (!description_.has_contributions)
    throw Error(description_.path.string() +
                ": its logits are no sums of what heads add, as norms stand behind them");
  const OwnPass& of = own(pass);
  const Direction direction = direction_of(architecture_, *weights_, of.last.row(row), token, means);
  Contributions result;
  result.constant = direction.constant;
  result.embedding = direction(of.residual(0).row(row));
  for (std::size_t l = 0; l < of.layers.size(); ++l) {
    std::vector<double> heads;
    for (std::size_t h = 0; h < added[l].n_rows; ++h) heads.push_back(direction(added[l].row(h)));
    const arma::frowvec output = of.layers[l]->output.row(row), next = of.residual(l + 1).row(row);
    result.mlps.push_back(direction(next - of.residual(l).row(row) - output));
    result.besides.push_back(direction(output) - std::accumulate(heads.begin(), heads.end(), 0.0));
    result.heads.push_back(std::move(heads));
  }
  return result;
}

StreamNumber Transformer::stream(const Pass& pass, std::size_t layer, std::size_t row, std::size_t column,
                                 const Means& means) const {
  const LayerRun& run = *own(pass).layers[layer];
  const Norm& rule = architecture_.norm;
  StreamNumber number;
  number.entering = run.residual(row, column);
  number.input = run.attention_input(row, column);
  number.attention = run.output(row, column);
  number.leaving = own(pass).residual(layer + 1)(row, column);
  number.mlp = number.leaving - number.entering - number.attention;
  number.is_sum = rule.place == NormPlace::before;
  if (!number.is_sum) return number;
  const auto weights = weights_->layer(layer, means.progress);
  const Affine& numbers = weights->attention_norm;
  if (numbers.is_empty()) return number;
  const arma::rowvec x = arma::conv_to<arma::rowvec>::from(run.residual.row(row));
  NormOfNumber norm;
  if (rule.kind == NormKind::layer) norm.mean = arma::mean(x);
  norm.divisor = std::sqrt(arma::mean(arma::square(x - norm.mean)) + rule.epsilon);
  norm.factor = numbers.weight[column];
  if (column < numbers.bias.n_elem) norm.bias = numbers.bias[column];
  number.norm = norm;
  return number;
}

std::vector<std::size_t> Transformer::generate(const std::vector<std::size_t>& ids,
                                               const std::vector<Edit>& edits, std::size_t n_more,
                                               const Sampling& sampling, random::Generator& generator,
                                               const Means& means) const {
  const std::string place = description_.path.string() + ": ";
  const std::size_t n_context = architecture_.sizes.n_context;
  if (ids.size() + n_more > n_context)
    throw Error(place + "expected at most " + std::to_string(n_context) +
                " tokens, as many as the model takes at once, got " + std::to_string(ids.size()) + " and " +
                std::to_string(n_more) + " more");
  if (!architecture_.causal)
    throw Error(place + "tokens of this model see both sides, so it cannot go on with a text");
  const EditSet by = by_layer(edits);
  std::vector<KeysAndValues> cache(architecture_.sizes.n_layers);
  std::vector<std::size_t> read = ids, made;  // read: tokens whose keys and values are not in the cache yet
  for (std::size_t n_read = 0; made.size() < n_more; n_read += read.size(), read = {made.back()}) {
    require_tokens(description_, read, n_read);
    fmat residual = embedded(read, n_read, means);
    for (std::size_t l = 0; l < cache.size(); ++l) {
      means.progress.add(1);
      fmat next;
      const auto layer = run_layer(l, std::move(residual), std::move(cache[l]), by, means, next);
      cache[l] = std::move(layer->keys);
      residual = std::move(next);
    }
    const arma::frowvec logits = logits_of(residual.tail_rows(1), means).as_row();
    if (!logits.is_finite()) {
      std::vector<std::size_t> all = ids;
      all.insert(all.end(), made.begin(), made.end());
      run(all, edits, means);  // says where that begins
      refuse_numbers("what predicts tokens", weights_->tensors_of_prediction(), means);
    }
    made.push_back(sampled(logits, tokenizer_->size(), sampling, generator));
  }
  return made;
}

}  // namespace core::transformer
