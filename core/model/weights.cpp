#include "core/model/weights.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/words.hpp"
#include "core/files/composed_weights.hpp"
#include "core/files/read_layer.hpp"
#include "core/model/blocks.hpp"

namespace core::transformer {
namespace {

constexpr std::size_t outputs_at_once = 4096;  // of the unembedding, where it is not kept

std::uint64_t bytes_in(const Affine& affine) {
  return affine.weight.n_bytes() + sizeof(float) * affine.bias.size();
}

std::uint64_t bytes_in(const LayerWeights& layer) {
  std::uint64_t bytes = bytes_in(layer.queries_keys_values) + bytes_in(layer.output);
  const auto add = [&](const MlpWeights& mlp) { bytes += bytes_in(mlp.up) + bytes_in(mlp.down); };
  add(layer.mlp), add(layer.shared);
  std::ranges::for_each(layer.experts, add);
  return bytes;
}

/// Returns the kept value, or else keeps and returns that of read().
template <class T, class Read>
std::shared_ptr<const T> read_cached(std::shared_ptr<const T>& kept, std::mutex& mutex, Read read) {
  {
    const std::scoped_lock lock(mutex);
    if (kept) return kept;
  }
  auto made = std::make_shared<const T>(read());
  const std::scoped_lock lock(mutex);
  if (!kept) kept = std::move(made);
  return kept;
}

/// Rows of a tensor, in an encoding of the kernels: as stored in the file where that is one, else as float32.
class TensorRows {
 public:
  TensorRows(const formats::TensorFile& file, const std::string& name)
      : file_(&file), name_(name), stored_(file.stored(name)) {
    const formats::TensorShape& shape = file.info(name).shape;
    n_columns_ = shape.empty() ? 1 : shape.back();
    for (std::size_t k = 0; k + 1 < shape.size(); ++k) n_rows_ *= shape[k];
    n_axes_of_rows_ = shape.size() < 2 ? 0 : shape.size() == 3 ? 2 : 1;
    if (shape.size() == 3) n_inner_ = shape[1];
    if (!stored_) return;
    const bool is_plain = !stored_->decode;
    if (is_plain && stored_->dtype == formats::Dtype::f16) encoding_ = Encoding::f16;
    if (is_plain && stored_->dtype == formats::Dtype::bf16) encoding_ = Encoding::bf16;
    if (stored_->quantization == std::string_view("Q8_0")) encoding_ = Encoding::q8_0;
    const bool is_float32 = is_plain && stored_->dtype == formats::Dtype::f32;
    is_as_stored_ = encoding_ != Encoding::f32 || is_float32;
  }
  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_columns() const { return n_columns_; }
  Encoding encoding() const { return encoding_; }
  std::size_t bytes_of_row() const { return row_bytes(encoding_, n_columns_); }
  /// Makes read() convert rows to float32.
  void widen() {
    if (encoding_ != Encoding::f32) is_as_stored_ = false;
    encoding_ = Encoding::f32;
  }

  void read(std::size_t first, std::size_t count, unsigned char* to, const StopToken& progress) const {
    progress.add(0);
    if (is_as_stored_) {
      stored_->file->read(stored_->begin + first * bytes_of_row(), count * bytes_of_row(),
                          reinterpret_cast<char*>(to));
      return;
    }
    auto* numbers = reinterpret_cast<float*>(to);
    if (stored_ && stored_->decode) {
      const std::size_t n_blocks = n_columns_ / stored_->block * count,
                        begin = n_columns_ / stored_->block * first;
      const std::string packed =
          stored_->file->bytes(stored_->begin + begin * stored_->bytes, n_blocks * stored_->bytes);
      for (std::size_t k = 0; k < n_blocks; ++k)
        stored_->decode(packed.data() + k * stored_->bytes, numbers + k * stored_->block);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::array leading{(first + i) / n_inner_, (first + i) % n_inner_};
      const auto of_row = std::span<const std::size_t>(leading).first(n_axes_of_rows_);
      std::ranges::transform(file_->read(name_, of_row, progress).numbers, numbers + i * n_columns_,
                             [](double number) { return static_cast<float>(number); });
    }
  }

 private:
  const formats::TensorFile* file_;
  std::string name_;
  const formats::StoredNumbers* stored_;
  std::size_t n_rows_ = 1, n_columns_, n_inner_ = 1, n_axes_of_rows_;
  bool is_as_stored_ = false;
  Encoding encoding_ = Encoding::f32;
};

std::vector<float> read_vector(const formats::TensorFile& file, const std::string& name,
                               const StopToken& progress) {
  const RowBuffer row = read_rows(file, name, 0, 1, progress);
  return {row.row(0), row.row(0) + row.width()};
}

/// An output of a matrix: a row of one of its source tensors.
struct OutputRow {
  std::size_t tensor, row;
};

/// Returns rows of a single tensor.
std::vector<OutputRow> rows_from(std::size_t first, std::size_t count) {
  std::vector<OutputRow> rows(count);
  for (std::size_t k = 0; k < count; ++k) rows[k] = {0, first + k};
  return rows;
}

/// Builds a matrix whose outputs are rows of tensors.
Matrix matrix_of_rows(const std::vector<TensorRows>& tensors, const std::vector<OutputRow>& outputs,
                      const CallContext& context) {
  Matrix matrix(tensors.front().encoding(), tensors.front().n_columns(), outputs.size());
  const std::size_t bytes = tensors.front().bytes_of_row();
  context.pool.run(matrix.n_panels(), [&](std::size_t k) {
    const std::size_t begin = k * panel_width, end = std::min(begin + panel_width, outputs.size());
    const AlignedBuffer rows(panel_width * bytes);
    for (std::size_t i = begin, next = begin; i < end; i = next) {  // adjacent rows are read at once
      while (next < end && outputs[next].tensor == outputs[i].tensor &&
             outputs[next].row == outputs[i].row + (next - i))
        ++next;
      tensors[outputs[i].tensor].read(outputs[i].row, next - i, rows.data() + (i - begin) * bytes,
                                      context.progress);
    }
    matrix.set_outputs(k, rows.data(), end - begin);
  });
  return matrix;
}

/// Builds a matrix whose inputs are rows of a tensor.
Matrix matrix_of_columns(const TensorRows& tensor, const CallContext& context) {
  Matrix matrix(tensor.encoding(), tensor.n_rows(), tensor.n_columns());
  constexpr std::size_t rows_at_once = 32;
  const std::size_t bytes = tensor.bytes_of_row(), of_panel = row_bytes(tensor.encoding(), panel_width);
  std::memset(matrix.panel(matrix.n_panels() - 1), 0, panel_bytes(tensor.encoding(), matrix.d_in()));
  context.pool.run((tensor.n_rows() + rows_at_once - 1) / rows_at_once, [&](std::size_t part) {
    const std::size_t first = part * rows_at_once, count = std::min(rows_at_once, tensor.n_rows() - first);
    const AlignedBuffer rows(count * bytes);
    tensor.read(first, count, rows.data(), context.progress);
    for (std::size_t k = 0; k < matrix.n_panels(); ++k)
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(matrix.panel(k) + (first + i) * of_panel, rows.data() + i * bytes + k * of_panel,
                    std::min(of_panel, bytes - k * of_panel));
  });
  return matrix;
}

/// Returns the order that turns rotary pairs of adjacent columns, as llama.cpp writes them, into halves;
/// columns from n_rotated on, the values, stay in place.
std::vector<std::size_t> deinterleaved_order(std::size_t n_rotated, std::size_t n, std::size_t d_head) {
  std::vector<std::size_t> order(n);
  for (std::size_t column = 0; column < n; ++column) {
    const std::size_t k = column % d_head, half = d_head / 2;
    order[column] = column >= n_rotated ? column : column - k + (k < half ? 2 * k : 2 * (k - half) + 1);
  }
  return order;
}

/// Returns the rows of learned positions for tokens at positions from `first` on.
std::vector<std::size_t> position_rows(const Architecture& architecture, const std::vector<std::size_t>& ids,
                                       std::size_t first) {
  std::vector<std::size_t> rows;
  std::size_t next = architecture.first_position + first;
  for (const std::size_t id : ids) rows.push_back(id == architecture.padding_token ? id : next++);
  return rows;
}

bool is_of_head(TensorRole role) {
  return role >= TensorRole::head_dense;
}

/// Checks of the shapes of a model's tensors.
class ShapeCheck {
 public:
  ShapeCheck(const formats::TensorFile& file, const TensorNames& names, bool in_by_out)
      : file_(file), names_(names), in_by_out_(in_by_out) {}

  void weight(TensorRole role, std::size_t layer, std::size_t d_in, std::size_t d_out, std::size_t expert = 0,
              std::size_t n_experts = 1) const {
    const std::string name = names_.require(role, "weight", layer, expert);
    if (file_.info(name).shape.size() == 3) return expect(name, {n_experts, d_out, d_in});
    expect(name, in_by_out_ ? formats::TensorShape{d_in, d_out} : formats::TensorShape{d_out, d_in});
    if (const auto bias = names_.find(role, "bias", layer, expert)) expect(*bias, {d_out});
  }
  void norm(TensorRole role, std::size_t layer, std::size_t width) const {
    expect(names_.require(role, "weight", layer), {width});
    if (const auto bias = names_.find(role, "bias", layer)) expect(*bias, {width});
  }
  void norm_if_any(TensorRole role, std::size_t layer, std::size_t width) const {
    if (names_.find(role, "weight", layer)) norm(role, layer, width);
  }
  /// Norms of queries and keys, on both or neither; without bias, as a layer can display only factors.
  void qk_norms(std::size_t layer, const Sizes& sizes, const Family& family, NormKind kind) const {
    const auto query = names_.find(TensorRole::query_norm, "weight", layer),
               key = names_.find(TensorRole::key_norm, "weight", layer);
    if (!query && !key) return;
    if (kind != NormKind::rms && family.norm_over == NormScope::head)
      throw Error(file_.place() + *(query ? query : key) +
                  ": expected none, as only RMS norms of heads can be computed");
    for (const auto& [role, n_heads] :
         {std::pair{TensorRole::query_norm, sizes.n_heads}, {TensorRole::key_norm, sizes.kv_heads}}) {
      const bool is_per_head = names_.has_tensor_per_index(role);
      for (std::size_t head = 0; head < (is_per_head ? n_heads : 1); ++head) {
        const std::string name = names_.require(role, "weight", layer, head);
        expect(name, is_per_head || family.norm_over == NormScope::head ? formats::TensorShape{sizes.d_head}
                     : family.norm_over == NormScope::all_heads
                         ? formats::TensorShape{n_heads * sizes.d_head}
                         : formats::TensorShape{n_heads, sizes.d_head});
        if (const auto bias = names_.find(role, "bias", layer, head))
          throw Error(file_.place() + *bias + ": expected none, as norms of heads have factors alone");
      }
    }
  }
  /// One number for each token, at least.
  void bias_if_any(TensorRole role, std::size_t min_size) const {
    const auto name = names_.find(role, "bias");
    if (!name) return;
    const formats::TensorShape& shape = file_.info(*name).shape;
    if (shape.size() != 1 || shape[0] < min_size) fail(*name, fmt::format("at least {} numbers", min_size));
  }
  void rows(const std::string& name, std::size_t min_size, std::size_t width) const {
    const formats::TensorShape& shape = file_.info(name).shape;
    if (shape.size() != 2 || shape[0] < min_size || shape[1] != width)
      fail(name, fmt::format("at least {} rows of {} numbers", min_size, width));
  }

 private:
  void expect(const std::string& name, const formats::TensorShape& shape) const {
    if (file_.info(name).shape != shape)
      fail(name, formats::shape_text(shape) + " by the sizes of the model");
  }
  [[noreturn]] void fail(const std::string& name, const std::string& expected) const {
    throw Error(file_.place() + name + ": expected " + expected + ", got " +
                formats::shape_text(file_.info(name).shape));
  }

  const formats::TensorFile& file_;
  const TensorNames& names_;
  bool in_by_out_;
};

}  // namespace

RowBuffer read_rows(const formats::TensorFile& file, const std::string& name, std::size_t first,
                    std::size_t count, const StopToken& progress) {
  TensorRows tensor(file, name);
  tensor.widen();
  RowBuffer rows(count, tensor.n_columns());
  for (std::size_t i = 0; i < count; ++i)
    tensor.read(first + i, 1, reinterpret_cast<unsigned char*>(rows.row(i)), progress);
  return rows;
}

TensorNames::TensorNames(const formats::TensorFile& file, const Family& family)
    : file_(&file), names_(&family.names), is_gguf_(file.format() == std::string_view("gguf")) {
  if (is_gguf_) names_ = &family.gguf_names;
  if (find(TensorRole::token_embedding, "weight")) return;
  for (const std::string_view prefix : text::split_words(family.prefixes)) {
    prefix_ = prefix;
    if (find(TensorRole::token_embedding, "weight")) return;
  }
  throw Error(file.place() + "expected a tensor " + names_->of(TensorRole::token_embedding) +
              ".weight, as models of the family " + family.full_model + " have it");
}

std::vector<std::string> TensorNames::names(TensorRole role, std::size_t layer, std::size_t expert) const {
  std::vector<std::string> all;
  for (const std::string_view word : text::split_words(names_->of(role))) {
    std::string name = (is_of_head(role) ? "" : prefix_) + std::string(word) + ".";
    for (const auto& [sign, number] : {std::pair{'#', layer}, {'@', expert}})
      if (const std::size_t at = name.find(sign); at != name.npos)
        name.replace(at, 1, std::to_string(number));
    all.push_back(std::move(name));
  }
  return all;
}

std::optional<std::string> TensorNames::find(TensorRole role, const char* ending, std::size_t layer,
                                             std::size_t expert) const {
  for (const std::string& begin : names(role, layer, expert)) {
    if (file_->find(begin + ending)) return begin + ending;
    // The first BERT checkpoints call the weight and bias of a norm gamma and beta, as its paper does.
    const std::string older = begin + (ending == std::string_view("weight") ? "gamma" : "beta");
    if (file_->find(older)) return older;
  }
  return std::nullopt;
}

std::string TensorNames::require(TensorRole role, const char* ending, std::size_t layer,
                                 std::size_t expert) const {
  if (const auto found = find(role, ending, layer, expert)) return *found;
  const auto all = names(role, layer, expert);
  throw Error(file_->place() + "expected a tensor " + (all.empty() ? "" : all.front()) + ending +
              ", there is none");
}

std::set<std::string> TensorNames::layer_prefixes(std::size_t layer) const {
  std::set<std::string> prefixes;
  for (std::size_t k = 0; k < formats::checkpoints::n_roles; ++k)
    for (const std::string_view word : text::split_words(of(static_cast<TensorRole>(k))))
      if (const std::size_t at = word.find('#'); at != word.npos)
        prefixes.insert(prefix_ + std::string(word.substr(0, at)) + std::to_string(layer) + ".");
      else if (const std::size_t shared = word.rfind(".0."); shared != word.npos)  // by all layers: ALBERT
        prefixes.insert(prefix_ + std::string(word.substr(0, shared + 3)));
  return prefixes;
}

Weights::Weights(formats::TensorFile file, Architecture architecture, std::uint64_t max_cached_bytes)
    : file_(std::move(file)),
      architecture_(std::move(architecture)),
      family_(&formats::checkpoints::full_model_family_named(architecture_.family)),
      names_(file_, *family_) {
  cache_.max_bytes = max_cached_bytes;
  const bool has_dense = names_.find(TensorRole::head_dense, "weight").has_value();
  predicts_ = *family_->names.of(TensorRole::head_dense) ? has_dense : true;
  check_shapes();
  refuse_unknown_tensors();
}

std::shared_ptr<const LayerWeights> Weights::layer(std::size_t index, const CallContext& context) const {
  {
    const std::scoped_lock lock(cache_.mutex);
    if (const auto found = cache_.layers.find(index); found != cache_.layers.end()) return found->second;
    if (auto held = cache_.held[index].lock()) return held;
  }
  auto read = std::make_shared<const LayerWeights>(read_layer(index, context));
  const std::scoped_lock lock(cache_.mutex);
  if (const std::uint64_t bytes = bytes_in(*read); fits_cache(bytes) && !cache_.layers.contains(index)) {
    cache_.bytes += bytes;
    cache_.layers.emplace(index, read);
  } else {
    cache_.held[index] = read;
  }
  return read;
}

bool Weights::fits_cache(std::uint64_t bytes) const {
  return bytes <= cache_.max_bytes - std::min(cache_.max_bytes, cache_.bytes);
}

std::size_t Weights::d_embedding() const {
  const Sizes& sizes = architecture_.sizes;
  return sizes.d_embedding > 0 ? sizes.d_embedding : sizes.d_model;
}

/// Returns whether positions are as wide as the residual stream (OPT), not as the embeddings (BERT).
bool Weights::has_wide_positions() const {
  return *names_.of(TensorRole::output_projection);
}

bool Weights::has_embedding_projection() const {
  return names_.find(TensorRole::embedding_projection, "weight").has_value();
}

EmbeddingRows Weights::read_embeddings(const std::vector<std::size_t>& ids, std::size_t first,
                                       const CallContext& context) const {
  const StopToken& progress = context.progress;
  EmbeddingRows rows;
  const std::string tokens = names_.require(TensorRole::token_embedding, "weight");
  std::shared_ptr<const Matrix> kept;
  if (predicts_ && tokens == unembedding_tensor()) {
    const std::scoped_lock lock(cache_.mutex);
    kept = cache_.unembedding;
  }
  const auto read = [&](const std::string& name, std::size_t width, auto row_of) {
    RowBuffer all(ids.size(), width);
    for (std::size_t i = 0; i < ids.size(); ++i)
      std::copy_n(read_rows(file_, name, row_of(i), 1, progress).row(0), width, all.row(i));
    return all;
  };
  if (kept) {
    rows.tokens = RowBuffer(ids.size(), d_embedding());
    for (std::size_t i = 0; i < ids.size(); ++i) kept->read_output(ids[i], rows.tokens.row(i));
  } else {
    rows.tokens = read(tokens, d_embedding(), [&](std::size_t i) { return ids[i]; });
  }
  rows.projects_tokens_alone = has_wide_positions();
  const std::size_t width = has_wide_positions() ? architecture_.sizes.d_model : d_embedding();
  if (const auto name = names_.find(TensorRole::segment_embedding, "weight"))
    rows.segments = read(*name, width, [](std::size_t) { return std::size_t{0}; });
  const auto places = position_rows(architecture_, ids, first);
  if (const auto name = names_.find(TensorRole::position_embedding, "weight"))
    rows.positions = read(*name, width, [&](std::size_t i) { return places[i]; });
  rows.norm = read_cached(cache_.embedding_norm, cache_.mutex,
                          [&] { return read_norm(TensorRole::embedding_norm, 0, progress); });
  if (has_embedding_projection())
    rows.projection = read_cached(cache_.embedding_projection, cache_.mutex, [&] {
      return read_affine({TensorRole::embedding_projection}, 0, context);
    });
  return rows;
}

RowBuffer Weights::embed(const std::vector<std::size_t>& ids, std::size_t first,
                         const CallContext& context) const {
  EmbeddingRows rows = read_embeddings(ids, first, context);
  RowBuffer result = std::move(rows.tokens);
  if (const auto by = static_cast<float>(architecture_.embedding_factor); by != 1)
    for (std::size_t i = 0; i < ids.size(); ++i)
      std::transform(result.row(i), result.row(i) + result.width(), result.row(i),
                     [by](float x) { return x * by; });
  if (rows.projection && rows.projects_tokens_alone) result = project(result, *rows.projection, context.pool);
  for (const RowBuffer* more : {&rows.segments, &rows.positions})
    for (std::size_t i = 0; i < more->n_rows(); ++i)
      for (std::size_t j = 0; j < result.width(); ++j) result.row(i)[j] += more->row(i)[j];
  if (!rows.norm->is_empty()) result = apply_norm(result, *rows.norm, architecture_.norm, context.pool);
  if (rows.projection && !rows.projects_tokens_alone)
    result = project(result, *rows.projection, context.pool);
  return result;
}

std::shared_ptr<const PredictionHead> Weights::head(const CallContext& context) const {
  return read_cached(cache_.head, cache_.mutex, [&] {
    PredictionHead head;
    head.final_norm = read_norm(TensorRole::final_norm, 0, context.progress);
    head.projection = read_affine({TensorRole::output_projection}, 0, context);
    head.dense = read_affine({TensorRole::head_dense}, 0, context);
    head.norm = read_norm(TensorRole::head_norm, 0, context.progress);
    if (const auto name = unembedding_bias()) head.bias = read_vector(file_, *name, context.progress);
    return head;
  });
}

std::string Weights::unembedding_tensor() const {
  if (!architecture_.has_tied_embeddings)
    if (const auto name = names_.find(TensorRole::head, "weight")) return *name;
  return names_.require(TensorRole::token_embedding, "weight");
}

std::optional<std::string> Weights::unembedding_bias() const {
  // Prefers the bias of the unembedding if it has its own tensor, else that of the prediction head.
  const bool is_own = !architecture_.has_tied_embeddings && names_.find(TensorRole::head, "weight");
  const auto first = names_.find(is_own ? TensorRole::head : TensorRole::head_bias, "bias");
  return first ? first : names_.find(is_own ? TensorRole::head_bias : TensorRole::head, "bias");
}

void Weights::for_each_unembedding_part(const std::function<void(std::size_t first, const Matrix& part)>& use,
                                        const CallContext& context) const {
  if (const auto kept = cached_unembedding(context)) return use(0, *kept);
  const TensorRows tensor(file_, unembedding_tensor());
  for (std::size_t first = 0; first < tensor.n_rows(); first += outputs_at_once) {
    const std::size_t count = std::min(outputs_at_once, tensor.n_rows() - first);
    use(first, matrix_of_rows({tensor}, rows_from(first, count), context));
  }
}

std::shared_ptr<const Matrix> Weights::cached_unembedding(const CallContext& context) const {
  const TensorRows tensor(file_, unembedding_tensor());
  const std::uint64_t bytes = tensor.n_rows() * tensor.bytes_of_row();
  {
    const std::scoped_lock lock(cache_.mutex);
    if (cache_.unembedding || !fits_cache(bytes)) return cache_.unembedding;
  }
  auto read =
      std::make_shared<const Matrix>(matrix_of_rows({tensor}, rows_from(0, tensor.n_rows()), context));
  const std::scoped_lock lock(cache_.mutex);
  if (cache_.unembedding) return cache_.unembedding;
  cache_.bytes += bytes;
  return cache_.unembedding = read;
}

/// Returns whether a norm has neither weight nor bias.
bool Weights::has_parameterless_norm(TensorRole role) const {
  return family_->norms_without_parameters &&
         (role == TensorRole::attention_norm || role == TensorRole::mlp_norm ||
          role == TensorRole::final_norm);
}

/// Returns the number of tensors of a role in a layer: one, or one for each head or expert.
std::size_t Weights::n_tensors(TensorRole role) const {
  if (!names_.has_tensor_per_index(role)) return 1;
  if (role == TensorRole::query_norm) return architecture_.sizes.n_heads;
  return role == TensorRole::key_norm ? architecture_.sizes.kv_heads
                                      : std::max<std::size_t>(1, architecture_.experts.n);
}

NormWeights Weights::read_norm(TensorRole role, std::size_t layer, const StopToken& progress) const {
  NormWeights norm;
  if (has_parameterless_norm(role)) norm.factors.assign(architecture_.sizes.d_model, 1);
  for (std::size_t head = 0; head < n_tensors(role); ++head)
    if (const auto name = names_.find(role, "weight", layer, head)) {
      const std::size_t n_rows = TensorRows(file_, *name).n_rows();
      const RowBuffer factors = read_rows(file_, *name, 0, n_rows, progress);
      for (std::size_t row = 0; row < n_rows; ++row)
        norm.factors.insert(norm.factors.end(), factors.row(row), factors.row(row) + factors.width());
    }
  if (family_->norms_plus_one)
    for (float& factor : norm.factors) ++factor;
  if (const auto name = names_.find(role, "bias", layer)) norm.bias = read_vector(file_, *name, progress);
  return norm;
}

/// Reads the weights of roles as one matrix, its outputs in the order of the roles or in another; a missing
/// bias becomes zeros where another role has one.
Affine Weights::read_affine(const std::vector<TensorRole>& roles, std::size_t layer,
                            const CallContext& context, const std::vector<std::size_t>& order,
                            std::size_t expert) const {
  const bool in_by_out = family_->in_by_out && !names_.is_gguf();
  Affine affine;
  std::vector<TensorRows> tensors;
  std::vector<OutputRow> outputs;
  std::vector<float> bias;
  bool has_bias = false;
  for (const TensorRole role : roles) {
    const auto name = names_.find(role, "weight", layer, expert),
               of_bias = names_.find(role, "bias", layer, expert);
    if (!name) continue;
    tensors.emplace_back(file_, *name);
    const formats::TensorShape& shape = file_.info(*name).shape;
    const bool has_all_experts = shape.size() == 3;
    const std::size_t n = has_all_experts ? shape[1]
                          : in_by_out     ? tensors.back().n_columns()
                                          : tensors.back().n_rows(),
                      begin = has_all_experts ? expert * n : 0;
    for (std::size_t row = begin; row < begin + n; ++row) outputs.push_back({tensors.size() - 1, row});
    const std::vector<float> part =
        of_bias ? read_vector(file_, *of_bias, context.progress) : std::vector<float>(n);
    bias.insert(bias.end(), part.begin(), part.end());
    has_bias = has_bias || of_bias;
  }
  if (tensors.empty()) return affine;
  const auto is_other = [&](const TensorRows& t) { return t.encoding() != tensors.front().encoding(); };
  if (std::ranges::any_of(tensors, is_other))
    for (TensorRows& tensor : tensors) tensor.widen();
  if (!order.empty()) {
    const std::vector<OutputRow> rows = outputs;
    const std::vector<float> numbers = bias;
    for (std::size_t k = 0; k < order.size(); ++k) outputs[k] = rows[order[k]], bias[k] = numbers[order[k]];
  }
  affine.weight =
      in_by_out ? matrix_of_columns(tensors.front(), context) : matrix_of_rows(tensors, outputs, context);
  if (has_bias) affine.bias = std::move(bias), affine.bias.resize(affine.weight.n_panels() * panel_width);
  return affine;
}

Affine Weights::read_projections(std::size_t layer, const CallContext& context) const {
  using namespace formats::checkpoints;
  const Sizes& sizes = architecture_.sizes;
  const std::size_t d_queries = sizes.n_heads * sizes.d_head, d_keys = sizes.kv_heads * sizes.d_head;
  std::vector<std::size_t> order;
  if (names_.find(TensorRole::fused, "weight", layer)) {
    if (family_->fused != FusedLayout::concatenated && !names_.is_gguf())
      for (std::size_t part = 0; part < 3; ++part)
        for (const auto column :
             fused_columns(part, {sizes.d_head, sizes.kv_heads}, sizes.n_heads, family_->fused))
          order.push_back(column);
    return read_affine({TensorRole::fused}, layer, context, order);
  }
  if (names_.is_gguf() && architecture_.has_adjacent_pairs)
    order = deinterleaved_order(d_queries + d_keys, d_queries + 2 * d_keys, sizes.d_head);
  return read_affine({TensorRole::query, TensorRole::key, TensorRole::value}, layer, context, order);
}

LayerWeights Weights::read_layer(std::size_t index, const CallContext& context) const {
  LayerWeights layer;
  layer.attention_norm = read_norm(TensorRole::attention_norm, index, context.progress);
  layer.queries_keys_values = read_projections(index, context);
  layer.query_norm = read_norm(TensorRole::query_norm, index, context.progress);
  layer.key_norm = read_norm(TensorRole::key_norm, index, context.progress);
  layer.output = read_affine({TensorRole::output}, index, context);
  layer.attention_output_norm = read_norm(TensorRole::attention_output_norm, index, context.progress);
  layer.mlp_norm = read_norm(TensorRole::mlp_norm, index, context.progress);
  layer.mlp.up = architecture_.mlp.gated ? read_affine({TensorRole::gate, TensorRole::up}, index, context)
                                         : read_affine({TensorRole::up}, index, context);
  layer.mlp_output_norm = read_norm(TensorRole::mlp_output_norm, index, context.progress);
  layer.mlp.down = read_affine({TensorRole::down}, index, context);
  if (const auto name = names_.find(TensorRole::activation_parameters, "alpha_p", index)) {
    const auto number = [&](const char* ending) {
      return read_vector(file_, names_.require(TensorRole::activation_parameters, ending, index),
                         context.progress)[0];
    };
    const auto softplus = [](float x) { return std::log1p(std::exp(x)); };
    const float beta = number("beta");
    layer.mlp.xielu =
        Xielu{softplus(number("alpha_p")), beta + softplus(number("alpha_n")), beta, number("eps")};
  }
  if (architecture_.experts.n == 0 || index < architecture_.experts.first_layer) return layer;
  if (const auto name = names_.find(TensorRole::router_correction, "e_score_correction_bias", index))
    layer.router_correction = read_vector(file_, *name, context.progress);
  layer.router = read_affine({TensorRole::router}, index, context);
  for (std::size_t expert = 0; expert < architecture_.experts.n; ++expert)
    layer.experts.push_back(
        {read_affine({TensorRole::expert_gate, TensorRole::expert_up}, index, context, {}, expert),
         read_affine({TensorRole::expert_down}, index, context, {}, expert)});
  layer.shared = {read_affine({TensorRole::shared_gate, TensorRole::shared_up}, index, context),
                  read_affine({TensorRole::shared_down}, index, context)};
  layer.shared_expert_gate = read_affine({TensorRole::shared_expert_gate}, index, context);
  return layer;
}

void Weights::check_shapes() const {
  const Sizes& s = architecture_.sizes;
  const ShapeCheck check(file_, names_, family_->in_by_out && !names_.is_gguf());
  const std::size_t d_queries = s.n_heads * s.d_head, d_keys = s.kv_heads * s.d_head;
  check.rows(names_.require(TensorRole::token_embedding, "weight"), s.n_vocabulary, d_embedding());
  if (!architecture_.rotary && !architecture_.alibi)
    check.rows(names_.require(TensorRole::position_embedding, "weight"),
               architecture_.first_position + s.n_context, has_wide_positions() ? s.d_model : d_embedding());
  if (const auto segments = names_.find(TensorRole::segment_embedding, "weight"))
    check.rows(*segments, 1, d_embedding());
  check.norm_if_any(TensorRole::embedding_norm, 0, d_embedding());
  if (d_embedding() != s.d_model || has_embedding_projection())
    check.weight(TensorRole::embedding_projection, 0, d_embedding(), s.d_model);
  if (*names_.of(TensorRole::output_projection) && d_embedding() != s.d_model)
    check.weight(TensorRole::output_projection, 0, s.d_model, d_embedding());
  const auto check_experts = [&](const ShapeCheck& shapes, std::size_t l) {
    const formats::checkpoints::Experts& experts = architecture_.experts;
    shapes.weight(TensorRole::router, l, s.d_model, experts.n);
    for (std::size_t expert = 0; expert < experts.n; ++expert) {
      const bool has_gate = *names_.of(TensorRole::expert_gate);
      if (has_gate) shapes.weight(TensorRole::expert_gate, l, s.d_model, experts.d_hidden, expert, experts.n);
      shapes.weight(TensorRole::expert_up, l, s.d_model, (has_gate ? 1 : 2) * experts.d_hidden, expert,
                    experts.n);
      shapes.weight(TensorRole::expert_down, l, experts.d_hidden, s.d_model, expert, experts.n);
    }
    if (experts.d_shared == 0) return;
    for (const TensorRole role : {TensorRole::shared_gate, TensorRole::shared_up})
      shapes.weight(role, l, s.d_model, experts.d_shared);
    shapes.weight(TensorRole::shared_down, l, experts.d_shared, s.d_model);
    if (*names_.of(TensorRole::shared_expert_gate))
      shapes.weight(TensorRole::shared_expert_gate, l, s.d_model, 1);
  };
  const auto check_numbers = [&](TensorRole role, const char* ending, std::size_t l, std::size_t n) {
    const auto name = names_.find(role, ending, l);
    if (!name) return;
    std::size_t got = 1;
    for (const std::size_t size : file_.info(*name).shape) got *= size;
    if (got != n) throw Error(fmt::format("{}{}: expected {} numbers, got {}", file_.place(), *name, n, got));
  };
  const auto norm_of_layer = [&](TensorRole role, std::size_t l) {
    if (!architecture_.has_norms) return;
    // ModernBERT normalizes its embeddings in place of the input of its first layer.
    const bool is_first = role == TensorRole::attention_norm && l == 0 && !architecture_.causal &&
                          architecture_.norm.place == formats::checkpoints::NormPlace::before &&
                          !names_.find(role, "weight", l);
    if (*names_.of(role) && !is_first) check.norm(role, l, s.d_model);
  };
  for (std::size_t l = 0; l < s.n_layers; ++l) {
    norm_of_layer(TensorRole::attention_norm, l);
    for (const TensorRole role : {TensorRole::attention_output_norm, TensorRole::mlp_output_norm})
      norm_of_layer(role, l);
    if (names_.find(TensorRole::fused, "weight", l)) {
      check.weight(TensorRole::fused, l, s.d_model, d_queries + 2 * d_keys);
    } else {
      check.weight(TensorRole::query, l, s.d_model, d_queries);
      check.weight(TensorRole::key, l, s.d_model, d_keys);
      check.weight(TensorRole::value, l, s.d_model, d_keys);
    }
    check.qk_norms(l, s, *family_, architecture_.norm.kind);
    check.weight(TensorRole::output, l, d_queries, s.d_model);
    if (!architecture_.mlp.parallel || names_.find(TensorRole::mlp_norm, "weight", l))
      norm_of_layer(TensorRole::mlp_norm, l);
    if (architecture_.experts.n > 0 && l >= architecture_.experts.first_layer) {
      check_experts(check, l);
      check_numbers(TensorRole::router_correction, "e_score_correction_bias", l, architecture_.experts.n);
      continue;
    }
    const bool has_gate = architecture_.mlp.gated && *names_.of(TensorRole::gate);
    if (has_gate) check.weight(TensorRole::gate, l, s.d_model, s.d_hidden);
    check.weight(TensorRole::up, l, s.d_model,
                 architecture_.mlp.gated && !has_gate ? 2 * s.d_hidden : s.d_hidden);
    check.weight(TensorRole::down, l, s.d_hidden, s.d_model);
    if (architecture_.mlp.activation == formats::checkpoints::Activation::xielu)
      for (const char* ending : {"alpha_p", "alpha_n", "beta", "eps"}) {
        names_.require(TensorRole::activation_parameters, ending, l);
        check_numbers(TensorRole::activation_parameters, ending, l, 1);
      }
  }
  const bool is_post_norm = architecture_.norm.place == formats::checkpoints::NormPlace::after;
  if (architecture_.has_norms && *names_.of(TensorRole::final_norm) && !is_post_norm)
    check.norm(TensorRole::final_norm, 0, s.d_model);
  if (!predicts_) return;
  if (*family_->names.of(TensorRole::head_dense)) {
    check.weight(TensorRole::head_dense, 0, s.d_model, d_embedding());
    check.norm(TensorRole::head_norm, 0, d_embedding());
  }
  check.rows(unembedding_tensor(), s.n_vocabulary, d_embedding());
  for (const TensorRole role : {TensorRole::head_bias, TensorRole::head})
    check.bias_if_any(role, s.n_vocabulary);
}

void Weights::refuse_unknown_tensors() const {
  std::vector<std::string> used = tensors_of_embeddings();
  const auto add = [&](const std::vector<std::string>& names) {
    used.insert(used.end(), names.begin(), names.end());
  };
  if (predicts_) add(tensors_of_prediction());
  for (std::size_t l = 0; l < architecture_.sizes.n_layers; ++l) {
    add(tensors_of(l));
    if (const auto name = names_.find(TensorRole::router_correction, "e_score_correction_bias", l))
      used.push_back(*name);
    for (const char* ending : {"alpha_p", "alpha_n", "beta", "eps"})
      if (const auto name = names_.find(TensorRole::activation_parameters, ending, l)) used.push_back(*name);
  }
  // With tied embeddings a file may hold the unembedding and its bias twice.
  for (const char* ending : {"weight", "bias"})
    for (const TensorRole role : {TensorRole::head, TensorRole::head_bias})
      if (const auto name = names_.find(role, ending)) used.push_back(*name);
  const std::set<std::string_view> known(used.begin(), used.end());
  const auto refuse = [&](const std::string& tensor) {
    throw Error(file_.place() + tensor + ": expected a model of the family " + family_->full_model +
                " without this tensor, whose use is not known");
  };
  for (const std::string& name : formats::checkpoints::unused_tensors_of_weights(file_, used)) refuse(name);
  for (std::size_t l = 0; l < architecture_.sizes.n_layers; ++l)
    for (const std::string& prefix : names_.layer_prefixes(l))
      for (const formats::TensorInfo* tensor : file_.with_prefix(prefix))
        if (!known.contains(tensor->name) && !formats::checkpoints::is_buffer(*tensor)) refuse(tensor->name);
}

std::vector<std::string> Weights::tensors_between(TensorRole first, TensorRole last,
                                                  std::size_t layer) const {
  std::vector<std::string> names;
  for (std::size_t role = 0; role < formats::checkpoints::n_roles; ++role)
    for (const char* ending : {"weight", "bias"})
      if (static_cast<TensorRole>(role) >= first && static_cast<TensorRole>(role) <= last)
        for (std::size_t index = 0; index < n_tensors(static_cast<TensorRole>(role)); ++index)
          if (const auto name = names_.find(static_cast<TensorRole>(role), ending, layer, index);
              name && (names.empty() || names.back() != *name))
            names.push_back(*name);
  return names;
}

std::vector<std::string> Weights::tensors_of(std::size_t layer) const {
  return tensors_between(TensorRole::attention_norm, TensorRole::activation_parameters, layer);
}

std::vector<std::string> Weights::tensors_of_embeddings() const {
  return tensors_between(TensorRole::token_embedding, TensorRole::embedding_projection, 0);
}

std::vector<std::string> Weights::tensors_of_prediction() const {
  std::vector<std::string> names = tensors_between(TensorRole::final_norm, TensorRole::head_norm, 0);
  names.push_back(unembedding_tensor());
  if (const auto bias = unembedding_bias()) names.push_back(*bias);
  return names;
}

}  // namespace core::transformer
