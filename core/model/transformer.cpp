#include "core/model/transformer.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "core/files/composed_weights.hpp"
#include "core/files/gguf.hpp"
#include "core/files/json.hpp"
#include "core/files/read_layer.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/model/architecture.hpp"
#include "core/model/tokenizer_files.hpp"
#include "core/system/fetching.hpp"
#include "core/system/file.hpp"

namespace core::transformer {
namespace {

namespace fs = std::filesystem;
using arma::fmat;

constexpr std::size_t max_config_bytes = std::size_t{1} << 24;

// Opening.

bool is_gguf(const fs::path& path) {
  return system::is_file(path) && formats::looks_like_gguf(system::read_prefix(path, 4));
}

/// Returns the file of tensors in a folder.
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
  const auto& family = formats::checkpoints::full_model_family_named(architecture.family);
  const bool has_norm = architecture.has_norms &&
                        (*family.names.of(TensorRole::attention_norm) || family.norms_without_parameters);
  of.layer_input = architecture.norm.place != NormPlace::before || !has_norm       ? "residual"
                   : architecture.norm.kind == formats::checkpoints::NormKind::rms ? "RMSNorm(residual)"
                                                                                   : "LayerNorm(residual)";
  const char* dense = family.names.of(TensorRole::head_dense);
  if (!weights.predicts())
    of.no_prediction_reason =
        std::string("it has nothing that predicts tokens, which a checkpoint would have as ") + dense +
        ".weight";
  of.has_logit_attributions = weights.predicts() && architecture.norm.place == NormPlace::before && !*dense &&
                              !*family.names.of(TensorRole::attention_output_norm) &&
                              !weights.has_embedding_projection() && architecture.residual_factor == 1 &&
                              !architecture.logit_softcap;
  of.n_tokens = tokenizer.size();
  for (const char* piece : {"[MASK]", "<mask>"})
    if (!of.mask_token) of.mask_token = tokenizer.find(piece);
  for (const auto& tensor : weights.file().tensors())
    of.n_parameters += std::accumulate(tensor.shape.begin(), tensor.shape.end(), 1.0, std::multiplies<>());
  return of;
}

// The steps of a pass.

/// Returns x after its norm, or unchanged unless the norm comes before the block.
RowBuffer pre_norm(const RowsView& x, const NormWeights& numbers, const ModelNorm& norm, ThreadPool& pool) {
  if (norm.place == NormPlace::before && !numbers.is_empty()) return apply_norm(x, numbers, norm, pool);
  return RowBuffer(x);
}

/// Returns a block's addition to the residual stream: x after its norm, if any, times residual_factor.
RowBuffer added(RowBuffer x, const NormWeights& numbers, const Architecture& rules, ThreadPool& pool) {
  if (!numbers.is_empty()) x = apply_norm(x, numbers, rules.norm, pool);
  if (const auto by = static_cast<float>(rules.residual_factor); by != 1)
    for (std::size_t i = 0; i < x.n_rows(); ++i)
      std::transform(x.row(i), x.row(i) + x.width(), x.row(i), [by](float number) { return number * by; });
  return x;
}

RowBuffer post_norm(RowBuffer x, const NormWeights& numbers, const ModelNorm& norm, ThreadPool& pool) {
  return norm.place == NormPlace::after ? apply_norm(x, numbers, norm, pool) : std::move(x);
}

/// Appends the columns of each head to the rows kept for it.
void append_heads(HeadRows& heads, const RowBuffer& all, std::size_t begin, std::size_t n_heads,
                  std::size_t d_head) {
  heads.resize(n_heads);
  for (std::size_t h = 0; h < n_heads; ++h)
    heads[h].append({all.row(0) + begin + h * d_head, all.stride(), all.n_rows(), d_head});
}

arma::frowvec row_vector(const RowsView& rows, std::size_t i) {
  return arma::frowvec(rows.row(i), rows.width);
}

EditSet by_layer(const std::vector<PassEdit>& edits) {
  EditSet result;
  for (const PassEdit& edit : edits)
    if (const auto* off = std::get_if<AblatedHead>(&edit))
      result.heads_off.insert({off->layer, off->head});
    else if (const auto* set = std::get_if<SetOutput>(&edit))
      result.outputs[set->layer] = set->output;
    else
      result.streams.push_back(std::get<SetStream>(edit));
  return result;
}

std::vector<SetStream> streams_of(const EditSet& edits, std::size_t layer, PatchedPart part) {
  std::vector<SetStream> found;
  std::ranges::copy_if(edits.streams, std::back_inserter(found), [&](const SetStream& set) {
    return set.patch.layer == layer && set.patch.part == part;
  });
  return found;
}

bool have_same_streams(const EditSet& a, const EditSet& b, std::size_t layer, PatchedPart part) {
  return std::ranges::equal(streams_of(a, layer, part), streams_of(b, layer, part),
                            [layer](const SetStream& one, const SetStream& other) {
                              return one.patch == other.patch && one.rows == other.rows &&
                                     one.source->computation_id(layer) == other.source->computation_id(layer);
                            });
}

/// Replaces aligned rows, or the one at a position; `first` is the position of the first one, `first_by` that
/// of the first one in the other text.
void replace_rows(RowBuffer& rows, const RowsView& by, const SetStream& set, std::size_t first,
                  std::size_t first_by) {
  for (std::size_t i = 0; i < rows.n_rows(); ++i)
    if (const auto source = set.rows[first + i];
        source && set.patch.position.value_or(first + i) == first + i)
      std::copy_n(by.row(*source - first_by), rows.width(), rows.row(i));
}

/// Returns whether both sets edit a layer, and the stream after it, in the same way.
bool are_same(const EditSet& a, const EditSet& b, std::size_t layer, std::size_t n_heads) {
  const auto output = [layer](const EditSet& edits) {
    const auto found = edits.outputs.find(layer);
    return found == edits.outputs.end() ? nullptr : found->second;
  };
  if (output(a) != output(b) || !have_same_streams(a, b, layer, PatchedPart::mlp) ||
      !have_same_streams(a, b, layer + 1, PatchedPart::residual))
    return false;
  for (std::size_t head = 0; head < n_heads; ++head)
    if (a.heads_off.contains({layer, head}) != b.heads_off.contains({layer, head})) return false;
  return true;
}

bool begins_with(const std::vector<std::size_t>& ids, const std::vector<std::size_t>& begin) {
  return begin.size() < ids.size() && std::equal(begin.begin(), begin.end(), ids.begin());
}

const LocalPass& own(const Pass& pass) {
  return static_cast<const LocalPass&>(pass);
}

/// Puts the patched rows of the residual stream before a layer in their places.
void put_streams(RowBuffer& residual, const EditSet& edits, std::size_t layer) {
  for (const SetStream& set : streams_of(edits, layer, PatchedPart::residual))
    replace_rows(residual, own(*set.source).layers[layer]->residual, set, 0, 0);
}

/// Returns columns of a projection, and of its bias, in float64.
attention::Linear columns(const Affine& numbers, std::size_t from, std::size_t count) {
  arma::mat weight(numbers.weight.d_in(), count), bias(1, count);
  std::vector<float> output(numbers.weight.d_in());
  for (std::size_t j = 0; j < count; ++j) {
    numbers.weight.read_output(from + j, output.data());
    std::copy(output.begin(), output.end(), weight.colptr(j));
    if (!numbers.bias.empty()) bias[j] = numbers.bias[from + j];
  }
  attention::Linear linear{std::move(weight), std::nullopt};
  if (!numbers.bias.empty()) linear.bias = std::move(bias);
  return linear;
}

/// Returns "in TENSOR" or "in TENSOR, row R", the first that is not finite, or "of finite weights".
std::string non_finite_origin(const formats::TensorFile& file, const std::vector<std::string>& names,
                              const StopToken& progress) {
  constexpr std::size_t rows_at_once = 1024;
  for (const std::string& name : names) {
    const formats::TensorShape& shape = file.info(name).shape;
    const std::size_t n_rows = shape.size() < 2 ? 1 : shape[0];
    for (std::size_t first = 0; first < n_rows; first += rows_at_once) {
      const RowBuffer rows = read_rows(file, name, first, std::min(rows_at_once, n_rows - first), progress);
      if (rows.view().is_finite()) continue;
      std::size_t row = 0;
      while (rows.view().rows(row, 1).is_finite()) ++row;
      return "in " + name + (n_rows == 1 ? "" : ", row " + std::to_string(first + row));
    }
  }
  return "of finite weights";
}

/// Returns the blocks of keys that each block of queries attends to, as 1; nullptr when nothing is masked.
std::shared_ptr<const arma::mat> visible_blocks(const ScoreRules& rule, std::size_t n_tokens,
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
                       std::size_t token, const CallContext& context) {
  const auto head = weights.head(context);
  arma::fvec numbers(architecture.sizes.d_model);
  weights.for_each_unembedding_part(
      [&](std::size_t first, const Matrix& part) {
        if (token >= first && token < first + part.d_out()) part.read_output(token - first, numbers.memptr());
      },
      context);
  const auto in_float64 = [](const std::vector<float>& of) {
    return arma::conv_to<arma::vec>::from(arma::fvec(of));
  };
  const arma::vec column = arma::conv_to<arma::vec>::from(numbers) * architecture.logit_factor;
  Direction direction{column,
                      token < head->bias.size() ? head->bias[token] * architecture.logit_factor : 0.0};
  if (head->final_norm.is_empty()) return direction;
  const ModelNorm& norm = architecture.norm;
  const arma::vec x = arma::conv_to<arma::vec>::from(last.t());
  const arma::vec weighed = in_float64(head->final_norm.factors) % column;
  const auto n = static_cast<double>(x.n_elem);
  const bool is_centered = norm.kind == NormKind::layer;
  const double mean = is_centered ? arma::mean(x) : 0;
  const double size = std::sqrt(arma::accu(arma::square(x - mean)) / n + norm.epsilon);
  direction.of_residual = (is_centered ? arma::vec(weighed - arma::mean(weighed)) : weighed) / size;
  if (!head->final_norm.bias.empty())
    direction.constant += arma::dot(in_float64(head->final_norm.bias), column);
  return direction;
}

/// Returns whether texts of both lengths have the same rotary embeddings.
bool has_same_rotary(const Architecture& architecture, std::size_t one, std::size_t other) {
  for (const auto& rotary : {architecture.rotary, architecture.windowed_rotary}) {
    const auto at = [&](std::size_t n) {
      return positions::at_length(*rotary, architecture.sizes.d_head, static_cast<std::int64_t>(n));
    };
    if (rotary && !(at(one) == at(other))) return false;
  }
  return true;
}

}  // namespace

bool is_transformer(const fs::path& path) {
  if (is_gguf(path)) return true;
  return system::is_file(path / "config.json") && tokenizers::has_tokenizer(path);
}

std::shared_ptr<const Transformer> open_transformer(const fs::path& path, std::uint64_t max_cached_bytes) {
  using tokenizers::Tokenizer;
  system::require_here(path);
  const auto made = [&](Architecture architecture, const auto& open_tensors, Tokenizer tokenizer) {
    if (tokenizer.size() > architecture.sizes.n_vocabulary)
      throw Error(fmt::format("{}: expected a tokenizer of at most the model's {} tokens, got one of {}",
                              path.string(), architecture.sizes.n_vocabulary, tokenizer.size()));
    auto weights = std::make_shared<const Weights>(open_tensors(), architecture, max_cached_bytes);
    return std::make_shared<const Transformer>(path, std::move(architecture), std::move(weights),
                                               std::make_shared<const Tokenizer>(std::move(tokenizer)));
  };
  if (is_gguf(path)) {
    const formats::GgufMetadata metadata = formats::gguf_metadata(path);
    formats::TensorFile file = formats::open_tensors(path);
    Architecture architecture = architecture_of(metadata, file);
    return made(
        std::move(architecture), [&] { return std::move(file); },
        Tokenizer(tokenizers::definition_from_gguf(metadata)));
  }
  if (!system::is_folder(path))
    throw Error(path.string() +
                ": expected a .gguf file, or a folder with config.json, tensors and a tokenizer");
  const fs::path config_path = path / "config.json";
  const formats::Json config =
      formats::parse_json(system::read_file(config_path, max_config_bytes), config_path.string());
  const auto open_tensors = [&] {
    auto file = std::make_shared<const formats::TensorFile>(formats::open_tensors(tensors_in(path)));
    return *formats::checkpoints::compose_weights(std::move(file), config);
  };
  return made(architecture_of(config), open_tensors, tokenizers::open_tokenizer(path));
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

RowBuffer Transformer::embed(const std::vector<std::size_t>& ids, std::size_t first,
                             const CallContext& context) const {
  return weights_->embed(ids, first, context);
}

RowBuffer Transformer::attention_input(std::size_t layer, const RowsView& residual,
                                       const CallContext& context) const {
  return pre_norm(residual, weights_->layer(layer, context)->attention_norm, architecture_.norm,
                  context.pool);
}

std::shared_ptr<LayerActivations> Transformer::compute_heads(std::size_t index, const RowsView& residual,
                                                             const LayerActivations* before,
                                                             const EditSet& edits,
                                                             const LayerRotaryTables& all_rotations,
                                                             const CallContext& context) const {
  const RotaryTable& rotations = all_rotations.at(index);
  const Sizes& sizes = architecture_.sizes;
  const std::size_t d = sizes.d_head, d_queries = sizes.n_heads * d, d_keys = sizes.kv_heads * d;
  auto run = before ? std::make_shared<LayerActivations>(*before) : std::make_shared<LayerActivations>();
  if (!edits.outputs.contains(index)) {
    const auto weights = weights_->layer(index, context);
    RowBuffer all =
        project(attention_input(index, residual, context), weights->queries_keys_values, context.pool);
    const bool has_norms = !weights->query_norm.is_empty();
    const NormScope over = formats::checkpoints::full_model_family_named(architecture_.family).norm_over;
    for_parts_of_rows(all.n_rows(), all.width(), context.pool, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        float* const row = all.row(i);
        if (has_norms && over == NormScope::all_heads) {
          norm_row(row, d_queries, weights->query_norm, architecture_.norm, row);
          norm_row(row + d_queries, d_keys, weights->key_norm, architecture_.norm, row + d_queries);
        }
        for (std::size_t column = 0; column < d_queries + d_keys; column += d) {
          const bool is_query = column < d_queries;
          const std::size_t column_in_part = is_query ? column : column - d_queries;
          if (has_norms && over != NormScope::all_heads)
            norm_row(row + column, d, is_query ? weights->query_norm : weights->key_norm, architecture_.norm,
                     row + column, over == NormScope::own_head ? column_in_part : 0);
          rotations.apply(row + column, i);
        }
      }
    });
    append_heads(run->queries, all, 0, sizes.n_heads, d);
    append_heads(run->keys, all, d_queries, sizes.kv_heads, d);
    append_heads(run->values, all, d_queries + d_keys, sizes.kv_heads, d);
  }
  run->residual.append(residual);
  return run;
}

LayerOutput Transformer::finish_layer(std::size_t index, const LayerActivations& run, std::size_t first,
                                      std::size_t count, const EditSet& edits,
                                      const CallContext& context) const {
  const Architecture& rules = architecture_;
  const auto weights = weights_->layer(index, context);
  LayerOutput end;
  if (const auto given = edits.outputs.find(index); given != edits.outputs.end()) {
    end.output = RowBuffer(fmat(given->second->rows(first, first + count - 1)));
  } else {
    const bool is_known = run.contexts.n_rows() >= first + count;
    if (!is_known)
      end.contexts = compute_contexts(run.queries, run.keys, run.values, first, count,
                                      score_rules_of(rules, index), context.pool);
    RowsView contexts = is_known ? run.contexts.view().rows(first, count) : end.contexts.view();
    const std::size_t d = rules.sizes.d_head;
    RowBuffer kept;
    for (std::size_t h = 0; h < rules.sizes.n_heads; ++h) {
      if (!edits.heads_off.contains({index, h})) continue;
      if (kept.n_rows() == 0) contexts = kept = RowBuffer(contexts);
      for (std::size_t i = 0; i < count; ++i) std::fill_n(kept.row(i) + h * d, d, 0.0f);
    }
    end.output = project(contexts, weights->output, context.pool);
  }
  const RowsView residual = run.residual.view().rows(first, count);
  bool ignored = true;
  const bool is_plain = weights->attention_output_norm.is_empty() && rules.residual_factor == 1;
  RowBuffer middle =
      is_plain
          ? sum_of(residual, end.output, context.pool, ignored)
          : sum_of(residual,
                   added(RowBuffer(end.output.view()), weights->attention_output_norm, rules, context.pool),
                   context.pool, ignored);
  const auto run_mlp = [&](const RowBuffer& input) {
    RowBuffer made = !weights->router.is_empty() ? mixture_of_experts(input, *weights, rules, context.pool)
                                                 : mlp(input, weights->mlp, rules.mlp, context.pool);
    end.mlp = added(std::move(made), weights->mlp_output_norm, rules, context.pool);
    for (const SetStream& set : streams_of(edits, index, PatchedPart::mlp)) {
      std::vector<std::size_t> taken;
      for (std::size_t i = first; i < first + count; ++i)
        if (set.rows[i]) taken.push_back(*set.rows[i]);
      if (taken.empty()) continue;
      const LocalPass& source = own(*set.source);
      replace_rows(end.mlp,
                   finish_layer(index, *source.layers[index], taken.front(), taken.back() - taken.front() + 1,
                                source.edits, context)
                       .mlp,
                   set, first, taken.front());
    }
    return end.mlp.view();
  };
  if (rules.mlp.parallel) {
    const NormWeights& norm = weights->mlp_norm.is_empty() ? weights->attention_norm : weights->mlp_norm;
    const RowBuffer input = pre_norm(residual, norm, rules.norm, context.pool);
    end.next = sum_of(middle, run_mlp(input), context.pool, end.is_finite);
    return end;
  }
  middle = post_norm(std::move(middle), weights->attention_norm, rules.norm, context.pool);
  const RowBuffer input = pre_norm(middle, weights->mlp_norm, rules.norm, context.pool);
  end.next = sum_of(middle, run_mlp(input), context.pool, end.is_finite);
  if (rules.norm.place != NormPlace::after) return end;
  end.next = apply_norm(end.next, weights->mlp_norm, rules.norm, context.pool);
  end.is_finite = end.next.view().is_finite();
  return end;
}

RowBuffer Transformer::run_layer(std::size_t layer, const RowsView& residual,
                                 const CallContext& context) const {
  const std::size_t n = residual.n_rows;
  const LayerRotaryTables rotations(architecture_, 0, n);
  return finish_layer(layer, *compute_heads(layer, residual, nullptr, {}, rotations, context), 0, n, {},
                      context)
      .next;
}

std::shared_ptr<LocalPass> Transformer::build_pass(const std::vector<std::size_t>& ids, const EditSet& edits,
                                                   std::size_t n_layers, const CallContext& context) const {
  auto pass = std::make_shared<LocalPass>();
  pass->ids = ids;
  pass->edits = edits;
  std::shared_ptr<const LocalPass> nearest, begin;
  std::size_t n_same = 0;
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(live_passes_, [](const auto& kept) { return kept.expired(); });
    for (const auto& each : live_passes_) {
      const auto kept = each.lock();
      if (!kept) continue;
      if (kept->ids == ids && have_same_streams(edits, kept->edits, 0, PatchedPart::residual)) {
        std::size_t n = 0;
        while (n < std::min(n_layers, kept->layers.size()) &&
               are_same(edits, kept->edits, n, architecture_.sizes.n_heads))
          ++n;
        if (!nearest || n > n_same) nearest = kept, n_same = n;
      } else if (architecture_.causal && kept->layers.size() == n_layers && edits.outputs.empty() &&
                 kept->edits.outputs.empty() && edits.streams.empty() && kept->edits.streams.empty() &&
                 kept->edits.heads_off == edits.heads_off && begins_with(ids, kept->ids) &&
                 has_same_rotary(architecture_, ids.size(), kept->ids.size()) &&
                 (!begin || kept->ids.size() > begin->ids.size())) {
        begin = kept;
      }
    }
  }
  if (begin && n_same == 0) {
    compute_missing_layers(*pass, begin.get(), n_layers, context);
    return pass;
  }
  if (nearest) {
    pass->layers.assign(nearest->layers.begin(),
                        nearest->layers.begin() + static_cast<std::ptrdiff_t>(n_same));
    if (n_same < nearest->layers.size())
      pass->last = nearest->layers[n_same]->residual;
    else
      pass->last = nearest->last, pass->final_rows = nearest->final_rows;
  }
  if (n_same < n_layers && nearest && n_same < nearest->layers.size() && !edits.outputs.contains(n_same) &&
      !nearest->edits.outputs.contains(n_same)) {  // only ablations differ, so the heads are the same
    auto run = std::make_shared<LayerActivations>(*nearest->layers[n_same]);
    run->output = {};
    context.progress.add(1);
    const RowBuffer next = add_layer(*pass, std::move(run), ids.size(), context);
    pass->last = {};
    if (next.n_rows() > 0) pass->last.append(next);
  }
  if (pass->layers.size() < n_layers || (n_layers == 0 && !nearest))
    compute_missing_layers(*pass, nullptr, n_layers, context);
  return pass;
}

/// Computes the missing layers of a pass, for all tokens or those after a pass with the same edits.
void Transformer::compute_missing_layers(LocalPass& pass, const LocalPass* before, std::size_t n_layers,
                                         const CallContext& context) const {
  const std::size_t n_before = before ? before->ids.size() : 0, n = pass.ids.size() - n_before;
  const LayerRotaryTables rotations(architecture_, n_before, n);
  RowBuffer residual;
  if (pass.last.n_rows() > 0) {
    residual = RowBuffer(pass.last.view());
    pass.last = {};
  } else {
    residual =
        embed({pass.ids.begin() + static_cast<std::ptrdiff_t>(n_before), pass.ids.end()}, n_before, context);
  }
  for (std::size_t l = pass.layers.size(); l < n_layers; ++l) {
    context.progress.add(1);
    put_streams(residual, pass.edits, l);
    const auto run = compute_heads(l, residual, before ? before->layers[l].get() : nullptr, pass.edits,
                                   rotations, context);
    residual = add_layer(pass, run, n, context);
  }
  if (is_complete(pass)) return;
  if (before) pass.last = before->last;
  pass.last.append(residual);
}

RowBuffer Transformer::add_layer(LocalPass& pass, std::shared_ptr<LayerActivations> run, std::size_t n_rows,
                                 const CallContext& context) const {
  const std::size_t index = pass.layers.size(), first = pass.ids.size() - n_rows;
  pass.layers.push_back(run);
  if (is_complete(pass)) return {};
  LayerOutput end = finish_layer(index, *run, first, n_rows, pass.edits, context);
  if (!end.is_finite) throw_non_finite_layer(pass, index, run->residual, context);
  if (end.contexts.n_rows() > 0) run->contexts.append(end.contexts);
  run->output.append(end.output);
  return std::move(end.next);
}

std::shared_ptr<const LayerOutput> Transformer::last_row(const LocalPass& pass, std::size_t row,
                                                         const CallContext& context) const {
  {
    const std::scoped_lock lock(pass.final_rows->mutex);
    if (const auto found = pass.final_rows->rows.find(row); found != pass.final_rows->rows.end())
      return found->second;
  }
  const std::size_t layer = pass.layers.size() - 1;
  const LayerActivations& run = *pass.layers[layer];
  auto end = std::make_shared<const LayerOutput>(finish_layer(layer, run, row, 1, pass.edits, context));
  if (!end->is_finite) throw_non_finite_layer(pass, layer, run.residual, context);
  const std::scoped_lock lock(pass.final_rows->mutex);
  return pass.final_rows->rows.emplace(row, std::move(end)).first->second;
}

arma::frowvec Transformer::residual_row(const LocalPass& pass, std::size_t n_layers, std::size_t row,
                                        const CallContext& context) const {
  if (n_layers < pass.layers.size()) return row_vector(pass.layers[n_layers]->residual, row);
  return is_complete(pass) ? row_vector(last_row(pass, row, context)->next, 0) : row_vector(pass.last, row);
}

/// Returns the output of attention of a layer at a row.
arma::frowvec Transformer::output_row(const LocalPass& pass, std::size_t layer, std::size_t row,
                                      const CallContext& context) const {
  if (layer + 1 == architecture_.sizes.n_layers) return row_vector(last_row(pass, row, context)->output, 0);
  return row_vector(pass.layers[layer]->output, row);
}

fmat Transformer::residual(const Pass& pass, std::size_t n_layers, const CallContext& context) const {
  const LocalPass& of = own(pass);
  if (n_layers < of.layers.size()) return of.layers[n_layers]->residual.matrix();
  if (!is_complete(of)) return of.last.matrix();
  const std::size_t layer = n_layers - 1;
  const LayerOutput end = finish_layer(layer, *of.layers[layer], 0, of.ids.size(), of.edits, context);
  if (!end.is_finite) throw_non_finite_layer(of, layer, of.layers[layer]->residual, context);
  return end.next.view().matrix();
}

PassRef Transformer::run(const std::vector<std::size_t>& ids, const std::vector<PassEdit>& edits,
                         const CallContext& context, std::size_t n_layers) const {
  require_tokens(description_, ids);
  n_layers = std::min(n_layers, architecture_.sizes.n_layers);
  const auto pass = build_pass(ids, by_layer(edits), n_layers, context);
  const std::scoped_lock lock(mutex_);
  live_passes_.push_back(pass);
  return pass;
}

void Transformer::throw_non_finite(const std::string& place, const std::vector<std::string>& tensors,
                                   const CallContext& context) const {
  const formats::TensorFile& file = weights_->file();
  throw Error(file.place() + "numbers that are not finite begin in " + place + ", " +
              non_finite_origin(file, tensors, context.progress));
}

void Transformer::throw_non_finite_layer(const LocalPass& pass, std::size_t layer, const RowsView& residual,
                                         const CallContext& context) const {
  const std::string name = "layer " + std::to_string(layer);
  if (pass.edits.outputs.contains(layer))
    throw Error(description_.path.string() + ": numbers that are not finite begin in " + name +
                ", which was edited");
  if (!residual.is_finite()) throw_non_finite("the embeddings", weights_->tensors_of_embeddings(), context);
  throw_non_finite(name, weights_->tensors_of(layer), context);
}

fmat Transformer::apply_final_norm(const fmat& last, const CallContext& context) const {
  const auto head = weights_->head(context);
  if (head->final_norm.is_empty()) return last;
  return apply_norm(RowBuffer(last), head->final_norm, architecture_.norm, context.pool).view().matrix();
}

fmat Transformer::compute_logits(const RowsView& last, const CallContext& context) const {
  if (const std::string& why = description_.no_prediction_reason; !why.empty())
    throw Error(description_.path.string() + ": " + why);
  const auto head = weights_->head(context);
  const ModelNorm& norm = architecture_.norm;
  const auto& family = formats::checkpoints::full_model_family_named(architecture_.family);
  RowBuffer own;  // owns the rows of x
  RowsView x = last;
  if (!head->final_norm.is_empty()) x = own = apply_norm(x, head->final_norm, norm, context.pool);
  if (!head->projection.is_empty()) x = own = project(x, head->projection, context.pool);
  if (!head->dense.is_empty()) {
    own =
        project(x, head->dense, context.pool, family.head_activation.value_or(architecture_.mlp.activation));
    x = own = apply_norm(own, head->norm, norm, context.pool);
  }
  const std::size_t n_vocabulary = architecture_.sizes.n_vocabulary;
  fmat logits(x.n_rows, n_vocabulary, arma::fill::none);
  weights_->for_each_unembedding_part(
      [&](std::size_t first, const Matrix& part) {
        if (first >= n_vocabulary) return;
        RowBuffer made(x.n_rows, part.d_out());
        multiply(x, part, {}, made.row(0), made.stride(), context.pool);
        const std::size_t count = std::min(part.d_out(), n_vocabulary - first);
        for (std::size_t k = first; k < first + count; ++k)
          for (std::size_t i = 0; i < x.n_rows; ++i) logits.at(i, k) = made.row(i)[k - first];
      },
      context);
  for (std::size_t k = 0; k < std::min(head->bias.size(), n_vocabulary); ++k) logits.col(k) += head->bias[k];
  if (architecture_.logit_factor != 1) logits *= static_cast<float>(architecture_.logit_factor);
  if (const auto cap = static_cast<float>(architecture_.logit_softcap.value_or(0)); cap > 0)
    logits = attention::softcapped(logits, cap);
  if (last.is_finite() && !logits.is_finite())
    throw_non_finite("what predicts tokens", weights_->tensors_of_prediction(), context);
  return logits;
}

arma::frowvec Transformer::next(const Pass& pass, std::size_t row, const CallContext& context) const {
  return compute_logits(residual_row(own(pass), own(pass).layers.size(), row, context), context).as_row();
}

fmat Transformer::lens(const Pass& pass, std::size_t row, const CallContext& context) const {
  const std::size_t n_layers = own(pass).layers.size();
  fmat rows(n_layers, architecture_.sizes.d_model, arma::fill::none);
  for (std::size_t l = 0; l < n_layers; ++l) rows.row(l) = residual_row(own(pass), l + 1, row, context);
  return compute_logits(rows, context);
}

fmat Transformer::residual_points(const Pass& pass, std::size_t row, const CallContext& context) const {
  const LocalPass& of = own(pass);
  fmat rows(2 * of.layers.size(), architecture_.sizes.d_model, arma::fill::value(arma::datum::nan));
  for (std::size_t l = 0; l < of.layers.size(); ++l) {
    rows.row(2 * l + 1) = residual_row(of, l + 1, row, context);
    if (architecture_.mlp.parallel) continue;
    const auto weights = weights_->layer(l, context);
    const RowBuffer output = added(RowBuffer(fmat(output_row(of, l, row, context))),
                                   weights->attention_output_norm, architecture_, context.pool);
    bool ignored = true;
    const RowBuffer sum = sum_of(of.layers[l]->residual.view().rows(row, 1), output, context.pool, ignored);
    rows.row(2 * l) = row_vector(
        post_norm(RowBuffer(sum.view()), weights->attention_norm, architecture_.norm, context.pool), 0);
  }
  return rows;
}

namespace {

/// Returns the module that contains two others: "h.0" of "h.0.attn.c_attn" and "h.0.mlp.c_proj", or "".
std::string common_module(const std::string& one, const std::string& other) {
  std::size_t end = 0;
  for (std::size_t k = 0; k < std::min(one.size(), other.size()) && one[k] == other[k]; ++k)
    if (one[k] == '.') end = k;
  return one.substr(0, end);
}

}  // namespace

TorchNames Transformer::torch_names() const {
  const fs::path& file = description_.file;
  const std::string name = file.filename().string();
  const TensorNames names(weights_->file(),
                          formats::checkpoints::full_model_family_named(architecture_.family));
  if (names.is_gguf())
    throw Error(file.string() + ": expected a folder that transformers opens, got a GGUF file");
  if (!system::is_folder(description_.path))
    throw Error(description_.path.string() + ": expected a model in a folder; export this one first");
  TorchNames torch{.source = fs::absolute(description_.path).string()};
  constexpr std::string_view begin = "model.", end = ".safetensors";
  if (name != "model.safetensors" && name.starts_with(begin) && name.ends_with(end))
    torch.variant = name.substr(begin.size(), name.size() - begin.size() - end.size());

  const Sizes& s = architecture_.sizes;
  const auto& family = formats::checkpoints::full_model_family_named(architecture_.family);
  const auto heads = [&](std::size_t n, std::size_t first, const auto& column) {
    std::vector<std::size_t> all;
    for (std::size_t h = 0; h < n; ++h) all.push_back(column(first + h * s.d_head));
    return all;
  };
  for (std::size_t l = 0; l < s.n_layers; ++l) {
    TorchLayer layer;
    const auto module_of = [&](TensorRole role) {
      const std::string tensor = names.find(role, "weight", l).value_or("");
      return tensor.substr(0, tensor.rfind('.'));
    };
    constexpr std::array roles{TensorRole::query, TensorRole::key, TensorRole::value, TensorRole::output};
    const auto fused = names.find(TensorRole::fused, "weight", l);
    for (std::size_t k = 0; k < roles.size(); ++k) {
      const bool is_fused = fused && roles[k] != TensorRole::output;
      std::string module = is_fused ? *fused : names.require(roles[k], "weight", l);
      module.resize(module.size() - std::string_view(".weight").size());
      const std::size_t n = k == 1 || k == 2 ? s.kv_heads : s.n_heads;
      const auto columns =
          is_fused ? formats::checkpoints::fused_columns(k, {s.d_head, s.kv_heads}, s.n_heads, family.fused)
                   : arma::uvec();
      layer.projections[k] = {
          module, heads(n, 0, [&](std::size_t c) { return columns.empty() ? c : std::size_t{columns[c]}; }),
          s.d_head};
    }
    layer.mlp = module_of(TensorRole::down);
    if (const std::string router = module_of(TensorRole::router); !router.empty()) {
      const std::string expert = module_of(TensorRole::expert_down);
      layer.mlp = common_module(router, expert.empty() ? router : expert);
    }
    layer.block = common_module(layer.projections[0].module, layer.mlp);
    if (!layer.block.ends_with('.' + std::to_string(l)) && layer.block != std::to_string(l))
      layer.block.clear();
    if (family.norm_over == attention::NormScope::all_heads)
      layer.query_norm = module_of(TensorRole::query_norm), layer.key_norm = module_of(TensorRole::key_norm);
    torch.layers.push_back(std::move(layer));
  }
  return torch;
}

fmat Transformer::input(const Pass& pass, std::size_t layer, const StopToken& progress) const {
  ThreadPool pool(1);
  const LocalPass& of = own(pass);
  if (layer < of.layers.size())
    return attention_input(layer, of.layers[layer]->residual, {pool, progress}).view().matrix();
  RowBuffer residual(of.last.view());
  put_streams(residual, of.edits, layer);
  return attention_input(layer, residual, {pool, progress}).view().matrix();
}

attention::Model Transformer::parameters(std::size_t layer, const Pass*, const StopToken& progress) const {
  const Sizes& sizes = architecture_.sizes;
  const std::size_t d = sizes.n_heads * sizes.d_head, d_keys = sizes.kv_heads * sizes.d_head;
  ThreadPool pool(1);
  const auto weights = weights_->layer(layer, {pool, progress});
  attention::Model result;
  result.sequences.resize(1);
  const Affine& fused = weights->queries_keys_values;
  result.projections =
      attention::Projections{columns(fused, 0, d), columns(fused, d, d_keys),
                             columns(fused, d + d_keys, d_keys), columns(weights->output, 0, sizes.d_model)};
  result.n_heads = sizes.n_heads;
  if (sizes.kv_heads != sizes.n_heads) result.n_kv_heads = sizes.kv_heads;
  result.additions.positions.rotary = rotary_of(architecture_, layer);
  result.additions.positions.alibi = architecture_.alibi;
  result.additions.softcap = architecture_.softcap;
  if (!weights->query_norm.is_empty() && !weights->key_norm.is_empty()) {
    const auto factors = [](const NormWeights& norm) {
      return arma::conv_to<arma::mat>::from(arma::frowvec(norm.factors));
    };
    const auto rule =
        architecture_.norm.kind == NormKind::rms ? attention::NormRule::rms : attention::NormRule::layer;
    result.additions.normalize = attention::QueryKeyNorm{
        rule, factors(weights->query_norm), factors(weights->key_norm), architecture_.norm.epsilon,
        formats::checkpoints::full_model_family_named(architecture_.family).norm_over};
  }
  result.scale = scale_of(architecture_, layer);
  result.mask.causal = architecture_.causal;
  if (const std::size_t window = architecture_.layers.window_of(layer))
    result.mask.window = formats::checkpoints::window_of(window, architecture_.causal);
  return result;
}

RowBuffer Transformer::pattern(const LayerActivations& of, std::size_t layer, std::size_t head) const {
  const std::size_t group = head / (of.queries.size() / of.keys.size());
  return compute_attention_weights(of.queries[head], of.keys[group], score_rules_of(architecture_, layer),
                                   head);
}

fmat Transformer::attention_weights(const Pass& pass, std::size_t layer, std::size_t head) const {
  return pattern(*own(pass).layers[layer], layer, head).view().matrix();
}

/// Computes no values after the heads of the last layer.
void Transformer::for_each_pattern(const std::vector<std::vector<std::size_t>>& texts, const UsePattern& use,
                                   const CallContext& context) const {
  ThreadPool one(1);  // each thread has a text of its own, where there are enough
  const CallContext within{texts.size() < context.pool.n_threads() ? context.pool : one, context.progress};
  std::vector<LayerRotaryTables> rotations;
  std::vector<RowBuffer> residuals;
  for (const std::vector<std::size_t>& ids : texts) {
    require_tokens(description_, ids);
    rotations.emplace_back(architecture_, 0, ids.size());
    residuals.push_back(embed(ids, 0, context));
  }
  const std::size_t n_layers = architecture_.sizes.n_layers;
  for (std::size_t l = 0; l < n_layers; ++l) {
    const auto held = weights_->layer(l, context);
    context.pool.run(texts.size(), [&](std::size_t k) {
      within.progress.add(1);
      const auto run = compute_heads(l, residuals[k], nullptr, {}, rotations[k], within);
      within.pool.run(architecture_.sizes.n_heads, [&](std::size_t h) { use(k, l, h, pattern(*run, l, h)); });
      if (l + 1 == n_layers) return;
      LayerOutput end = finish_layer(l, *run, 0, texts[k].size(), {}, within);
      if (!end.is_finite) throw_non_finite_layer(LocalPass(), l, run->residual, within);
      residuals[k] = std::move(end.next);
    });
  }
}

LayerHeads Transformer::maps(const Pass& pass, std::size_t layer, std::size_t block, std::size_t row,
                             const CallContext& context) const {
  LayerHeads result;
  result.heads.resize(architecture_.sizes.n_heads);
  context.pool.run(result.heads.size(), [&](std::size_t head) {
    const RowBuffer weights = pattern(*own(pass).layers[layer], layer, head);
    result.heads[head] = {max_pool(arma::conv_to<arma::mat>::from(weights.view().matrix()), block),
                          roles_of(weights, pass.ids)};
  });
  result.added = head_additions(own(pass), layer, row, context);
  result.visible = visible_blocks(score_rules_of(architecture_, layer), pass.ids.size(), block);
  return result;
}

fmat Transformer::head_additions(const LocalPass& pass, std::size_t layer, std::size_t row,
                                 const CallContext& context) const {
  const Sizes& sizes = architecture_.sizes;
  const bool is_last = layer + 1 == sizes.n_layers;
  const auto last = is_last ? last_row(pass, row, context) : nullptr;
  const float* contexts = is_last ? last->contexts.row(0) : pass.layers[layer]->contexts.row(row);
  const std::size_t d = sizes.d_head;
  RowBuffer isolated_contexts(sizes.n_heads,
                              sizes.n_heads * d);  // for each head its context vector, and zeros elsewhere
  for (std::size_t h = 0; h < sizes.n_heads; ++h) {
    std::fill_n(isolated_contexts.row(h), isolated_contexts.width(), 0.0f);
    if (!pass.edits.heads_off.contains({layer, h}))
      std::copy_n(contexts + h * d, d, isolated_contexts.row(h) + h * d);
  }
  const Matrix& weight = weights_->layer(layer, context)->output.weight;
  RowBuffer added(sizes.n_heads, sizes.d_model);
  multiply(isolated_contexts, weight, {}, added.row(0), added.stride(), context.pool);
  return added.view().matrix();
}

LogitAttributions Transformer::logit_attributions(const Pass& pass, std::size_t row, std::size_t token,
                                                  const std::vector<fmat>& added,
                                                  const CallContext& context) const {
  if (!description_.has_logit_attributions)
    throw Error(description_.path.string() +
                ": its logits are not sums over heads, as norms come after attention");
  const LocalPass& of = own(pass);
  const auto stream_after = [&](std::size_t n_layers) { return residual_row(of, n_layers, row, context); };
  const Direction direction =
      direction_of(architecture_, *weights_, stream_after(of.layers.size()), token, context);
  LogitAttributions result;
  result.constant = direction.constant;
  result.embedding = direction(stream_after(0));
  for (std::size_t l = 0; l < of.layers.size(); ++l) {
    std::vector<double> heads;
    for (std::size_t h = 0; h < added[l].n_rows; ++h) heads.push_back(direction(added[l].row(h)));
    const arma::frowvec output = output_row(of, l, row, context);
    result.mlps.push_back(direction(stream_after(l + 1) - stream_after(l) - output));
    result.output_biases.push_back(direction(output) - std::accumulate(heads.begin(), heads.end(), 0.0));
    result.heads.push_back(std::move(heads));
  }
  return result;
}

ResidualElement Transformer::stream(const Pass& pass, std::size_t layer, std::size_t row, std::size_t column,
                                    const CallContext& context) const {
  const LayerActivations& run = *own(pass).layers[layer];
  const ModelNorm& rule = architecture_.norm;
  ResidualElement number;
  const RowsView entering = run.residual.view().rows(row, 1);
  number.entering = entering.row(0)[column];
  number.input = attention_input(layer, entering, context).row(0)[column];
  number.attention = output_row(own(pass), layer, row, context)[column] * architecture_.residual_factor;
  number.leaving = residual_row(own(pass), layer + 1, row, context)[column];
  number.mlp = number.leaving - number.entering - number.attention;
  const auto weights = weights_->layer(layer, context);
  if (!streams_of(own(pass).edits, layer + 1, PatchedPart::residual).empty()) {
    number.no_sum_reason = "The residual stream after this layer is patched.";
    return number;
  }
  if (rule.place != NormPlace::before || !weights->attention_output_norm.is_empty()) {
    number.no_sum_reason =
        "This model normalizes after attention and after the MLP, so the output of the layer is not a plain sum.";
    return number;
  }
  const NormWeights& numbers = weights->attention_norm;
  if (numbers.is_empty()) return number;
  const arma::rowvec x = arma::conv_to<arma::rowvec>::from(row_vector(entering, 0));
  ElementNorm norm;
  if (rule.kind == NormKind::layer) norm.mean = arma::mean(x);
  norm.divisor = std::sqrt(arma::mean(arma::square(x - norm.mean)) + rule.epsilon);
  norm.factor = numbers.factors[column];
  if (column < numbers.bias.size()) norm.bias = numbers.bias[column];
  number.norm = norm;
  return number;
}

}  // namespace core::transformer
