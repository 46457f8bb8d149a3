#include "core/model/weights.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/layers.hpp"

namespace core::transformer {
namespace {

// What is read in float64 before it becomes float32, so that a large tensor is never there twice.
constexpr std::uint64_t max_numbers_at_once = std::uint64_t{1} << 20;

void put_floats(const std::vector<double>& numbers, float* to) {
  std::ranges::transform(numbers, to, [](double number) { return static_cast<float>(number); });
}

constexpr std::size_t columns_at_once = 4096;  // of the matrix that predicts tokens, where it is not kept

std::uint64_t bytes_in(const Affine& affine) {
  return sizeof(float) * (affine.weight.n_elem + affine.bias.n_elem);
}

std::uint64_t bytes_in(const LayerWeights& layer) {
  return bytes_in(layer.attention_norm) + bytes_in(layer.queries_keys_values) + bytes_in(layer.output) +
         bytes_in(layer.mlp_norm) + bytes_in(layer.up) + bytes_in(layer.down);
}

/// Columns of heads whose pairs are neighbours, as llama.cpp writes them, put back into halves.
template <class Matrix>
Matrix in_halves(const Matrix& neighbours, std::size_t d_head) {
  Matrix result(arma::size(neighbours), arma::fill::none);
  for (std::size_t column = 0; column < neighbours.n_cols; ++column) {
    const std::size_t k = column % d_head, half = d_head / 2;
    result.col(column) = neighbours.col(column - k + (k < half ? 2 * k : 2 * (k - half) + 1));
  }
  return result;
}

/// A bias of zeros where there is none.
arma::frowvec bias_of(const Affine& affine) {
  return affine.bias.empty() ? arma::frowvec(affine.weight.n_cols, arma::fill::zeros) : affine.bias;
}

/// Columns behind those that are there, each with its own bias where one of both has some.
void append(Affine& all, const Affine& part) {
  if (all.is_empty()) {
    all = part;
    return;
  }
  if (!all.bias.empty() || !part.bias.empty()) all.bias = arma::join_rows(bias_of(all), bias_of(part));
  all.weight = arma::join_rows(all.weight, part.weight);
}

/// The rows of learned positions for tokens at positions from first on.
std::vector<std::size_t> position_rows(const Architecture& architecture, const std::vector<std::size_t>& ids,
                                       std::size_t first) {
  std::vector<std::size_t> rows;
  std::size_t next = architecture.first_position + first;
  for (const std::size_t id : ids) rows.push_back(id == architecture.padding_token ? id : next++);
  return rows;
}

bool is_of_head(Role role) {
  return role >= Role::head_dense;
}

/// What the shapes of a model's tensors should be.
class ShapeCheck {
 public:
  ShapeCheck(const formats::TensorFile& file, const TensorNames& names, bool in_by_out)
      : file_(file), names_(names), in_by_out_(in_by_out) {}

  void weight(Role role, std::size_t layer, std::size_t d_in, std::size_t d_out) const {
    const std::string name = names_.require(role, "weight", layer);
    expect(name, in_by_out_ ? formats::Shape{d_in, d_out} : formats::Shape{d_out, d_in});
    if (const auto bias = names_.find(role, "bias", layer)) expect(*bias, {d_out});
  }
  void norm(Role role, std::size_t layer, std::size_t width) const {
    expect(names_.require(role, "weight", layer), {width});
    if (const auto bias = names_.find(role, "bias", layer)) expect(*bias, {width});
  }
  void norm_if_any(Role role, std::size_t layer, std::size_t width) const {
    if (names_.find(role, "weight", layer)) norm(role, layer, width);
  }
  /// What looking at a layer can show as well: norms of both, with factors alone.
  void norms_of_heads(std::size_t layer, std::size_t width, NormKind kind) const {
    const auto query = names_.find(Role::query_norm, "weight", layer),
               key = names_.find(Role::key_norm, "weight", layer);
    if (!query && !key) return;
    norm(Role::query_norm, layer, width);
    norm(Role::key_norm, layer, width);
    if (kind != NormKind::rms)
      throw Error(file_.place() + *query + ": expected none, as only RMS norms of heads can be computed");
    for (const Role role : {Role::query_norm, Role::key_norm})
      if (const auto bias = names_.find(role, "bias", layer))
        throw Error(file_.place() + *bias + ": expected none, as norms of heads have factors alone");
  }
  /// One number for each token, at least.
  void bias_if_any(Role role, std::size_t least) const {
    const auto name = names_.find(role, "bias");
    if (!name) return;
    const formats::Shape& shape = file_.info(*name).shape;
    if (shape.size() != 1 || shape[0] < least) fail(*name, "at least " + std::to_string(least) + " numbers");
  }
  void rows(const std::string& name, std::size_t least, std::size_t width) const {
    const formats::Shape& shape = file_.info(name).shape;
    if (shape.size() != 2 || shape[0] < least || shape[1] != width)
      fail(name, "at least " + std::to_string(least) + " rows of " + std::to_string(width) + " numbers");
  }

 private:
  void expect(const std::string& name, const formats::Shape& shape) const {
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

arma::fmat read_rows(const formats::TensorFile& file, const std::string& name, std::size_t first,
                     std::size_t count, const Token& progress) {
  const formats::Shape shape = file.info(name).shape;
  const std::size_t n_columns = shape.empty() ? 1 : shape.back();
  arma::fmat floats(n_columns, count, arma::fill::none);
  const bool at_once =
      shape.size() < 2 || (first == 0 && count == shape[0] && n_columns * count <= max_numbers_at_once);
  if (at_once) {
    put_floats(file.read(name, {}, progress).numbers, floats.memptr());
    return floats;
  }
  for (std::size_t row = 0; row < count; ++row) {
    const std::array leading{first + row};
    put_floats(file.read(name, leading, progress).numbers, floats.colptr(row));
  }
  return floats;
}

arma::fmat read_floats(const formats::TensorFile& file, const std::string& name, const Token& progress) {
  const formats::Shape& shape = file.info(name).shape;
  return read_rows(file, name, 0, shape.size() < 2 ? 1 : shape[0], progress);
}

TensorNames::TensorNames(const formats::TensorFile& file, const Family& family)
    : file_(&file), names_(&family.names), is_gguf_(file.format() == std::string_view("gguf")) {
  if (is_gguf_) names_ = &family.gguf_names;
  for (const std::string& prefix : {std::string(), std::string(family.prefixes)}) {
    prefix_ = prefix;
    if (find(Role::token_embedding, "weight")) return;
  }
  throw Error(file.place() + "expected a tensor " + names_->of(Role::token_embedding) +
              ".weight, as models of the family " + family.whole + " have it");
}

std::string TensorNames::name(Role role, std::size_t layer) const {
  std::string name = (is_of_head(role) ? "" : prefix_) + std::string(names_->of(role));
  if (const std::size_t at = name.find('#'); at != name.npos) name.replace(at, 1, std::to_string(layer));
  return name;
}

std::optional<std::string> TensorNames::find(Role role, const char* ending, std::size_t layer) const {
  if (!*names_->of(role)) return std::nullopt;
  const std::string begin = name(role, layer) + ".";
  if (file_->find(begin + ending)) return begin + ending;
  // The first checkpoints of BERT call a norm's numbers as its paper does.
  const std::string older = begin + (ending == std::string_view("weight") ? "gamma" : "beta");
  return file_->find(older) ? std::optional(older) : std::nullopt;
}

std::string TensorNames::require(Role role, const char* ending, std::size_t layer) const {
  if (const auto found = find(role, ending, layer)) return *found;
  throw Error(file_->place() + "expected a tensor " + name(role, layer) + "." + ending + ", there is none");
}

Weights::Weights(formats::TensorFile file, Architecture architecture, std::uint64_t keep_at_most)
    : file_(std::move(file)),
      architecture_(std::move(architecture)),
      family_(&formats::checkpoints::whole_family_named(architecture_.family)),
      names_(file_, *family_) {
  kept_.most = keep_at_most;
  const bool has_dense = names_.find(Role::head_dense, "weight").has_value();
  predicts_ = *family_->names.of(Role::head_dense) ? has_dense : true;
  check_shapes();
}

std::shared_ptr<const LayerWeights> Weights::layer(std::size_t index, const Token& progress) const {
  {
    const std::scoped_lock lock(kept_.mutex);
    if (const auto found = kept_.layers.find(index); found != kept_.layers.end()) return found->second;
  }
  auto read = std::make_shared<const LayerWeights>(read_layer(index, progress));
  const std::scoped_lock lock(kept_.mutex);
  if (const std::uint64_t bytes = bytes_in(*read); may_keep(bytes)) {
    kept_.bytes += bytes;
    kept_.layers.emplace(index, read);
  }
  return read;
}

bool Weights::may_keep(std::uint64_t bytes) const {
  return bytes <= kept_.most - std::min(kept_.most, kept_.bytes);
}

arma::fmat Weights::embedded(const std::vector<std::size_t>& ids, std::size_t first,
                             const Token& progress) const {
  arma::fmat columns(architecture_.sizes.d_model, ids.size());
  const auto add = [&](Role role, auto row_of) {
    const auto name = names_.find(role, "weight");
    if (!name) return;
    for (std::size_t i = 0; i < ids.size(); ++i)
      columns.col(i) += read_rows(file_, *name, row_of(i), 1, progress);
  };
  const std::string tokens = names_.require(Role::token_embedding, "weight");
  std::shared_ptr<const arma::fmat> kept;
  {
    const std::scoped_lock lock(kept_.mutex);
    if (const auto found = kept_.matrices.find(tokens); found != kept_.matrices.end()) kept = found->second;
  }
  if (kept)
    for (std::size_t i = 0; i < ids.size(); ++i) columns.col(i) = kept->col(ids[i]);
  else
    add(Role::token_embedding, [&](std::size_t i) { return ids[i]; });
  add(Role::segment_embedding, [](std::size_t) { return std::size_t{0}; });
  const auto rows = position_rows(architecture_, ids, first);
  add(Role::position_embedding, [&](std::size_t i) { return rows[i]; });
  return columns.t();
}

std::shared_ptr<const Affine> Weights::embedding_norm(const Token& progress) const {
  const std::scoped_lock lock(kept_.mutex);
  if (!kept_.embedding_norm)
    kept_.embedding_norm =
        std::make_shared<const Affine>(read_affine(Role::embedding_norm, 0, progress, true));
  return kept_.embedding_norm;
}

std::shared_ptr<const Head> Weights::head(const Token& progress) const {
  const std::scoped_lock lock(kept_.mutex);
  if (kept_.head) return kept_.head;
  Head head;
  head.final_norm = read_affine(Role::final_norm, 0, progress, true);
  head.dense = read_affine(Role::head_dense, 0, progress);
  head.norm = read_affine(Role::head_norm, 0, progress, true);
  if (const auto name = prediction_bias()) head.bias = read_floats(file_, *name, progress).t();
  kept_.head = std::make_shared<const Head>(std::move(head));
  return kept_.head;
}

std::string Weights::prediction_tensor() const {
  if (!architecture_.tied)
    if (const auto name = names_.find(Role::head, "weight")) return *name;
  return names_.require(Role::token_embedding, "weight");
}

std::optional<std::string> Weights::prediction_bias() const {
  // Where the weight is shared the bias is as well, with that of its own name.
  const bool is_own = !architecture_.tied && names_.find(Role::head, "weight");
  const auto first = names_.find(is_own ? Role::head : Role::head_bias, "bias");
  return first ? first : names_.find(is_own ? Role::head_bias : Role::head, "bias");
}

void Weights::for_each_prediction_part(
    const std::function<void(std::size_t first, const arma::fmat& part)>& use, const Token& progress) const {
  const std::string name = prediction_tensor();
  const std::size_t n_tokens = file_.info(name).shape[0];
  if (const auto kept = kept_matrix(name, progress)) return use(0, *kept);
  for (std::size_t first = 0; first < n_tokens; first += columns_at_once)
    use(first, read_rows(file_, name, first, std::min(columns_at_once, n_tokens - first), progress));
}

std::shared_ptr<const arma::fmat> Weights::kept_matrix(const std::string& name, const Token& progress) const {
  const std::scoped_lock lock(kept_.mutex);
  if (const auto found = kept_.matrices.find(name); found != kept_.matrices.end()) return found->second;
  const std::uint64_t bytes = sizeof(float) * formats::count_of(file_.info(name).shape).value_or(0);
  if (!may_keep(bytes)) return nullptr;
  kept_.bytes += bytes;
  return kept_.matrices.emplace(name, std::make_shared<const arma::fmat>(read_floats(file_, name, progress)))
      .first->second;
}

arma::fmat Weights::read_weight(const std::string& name, const Token& progress) const {
  arma::fmat read = read_floats(file_, name, progress);
  if (family_->in_by_out && !names_.is_gguf()) arma::inplace_trans(read);
  return read;
}

Affine Weights::read_affine(Role role, std::size_t layer, const Token& progress, bool is_norm) const {
  Affine affine;
  if (const auto name = names_.find(role, "weight", layer))
    affine.weight =
        is_norm ? arma::fmat(read_floats(file_, *name, progress).t()) : read_weight(*name, progress);
  if (const auto name = names_.find(role, "bias", layer))
    affine.bias = read_floats(file_, *name, progress).t();
  return affine;
}

Affine Weights::read_projections(std::size_t layer, const Token& progress) const {
  using namespace formats::checkpoints;
  const Sizes& sizes = architecture_.sizes;
  if (names_.find(Role::fused, "weight", layer)) {
    Affine fused = read_affine(Role::fused, layer, progress);
    if (family_->fused == Fused::side_by_side || names_.is_gguf()) return fused;
    const Share share{sizes.d_head, sizes.kv_heads};
    arma::uvec order;
    for (std::size_t part = 0; part < 3; ++part)
      order = arma::join_cols(order, fused_columns(part, share, sizes.n_heads, family_->fused));
    fused.weight = fused.weight.cols(order).eval();
    if (!fused.bias.empty()) fused.bias = fused.bias.cols(order).eval();
    return fused;
  }
  Affine all;
  for (const Role role : {Role::query, Role::key, Role::value}) {
    Affine part = read_affine(role, layer, progress);
    if (names_.is_gguf() && architecture_.has_neighbours && role != Role::value) {
      part.weight = in_halves(part.weight, sizes.d_head);
      if (!part.bias.empty()) part.bias = in_halves(part.bias, sizes.d_head);
    }
    append(all, part);
  }
  return all;
}

LayerWeights Weights::read_layer(std::size_t index, const Token& progress) const {
  LayerWeights layer;
  layer.attention_norm = read_affine(Role::attention_norm, index, progress, true);
  layer.queries_keys_values = read_projections(index, progress);
  layer.query_norm = read_affine(Role::query_norm, index, progress, true);
  layer.key_norm = read_affine(Role::key_norm, index, progress, true);
  layer.output = read_affine(Role::output, index, progress);
  layer.mlp_norm = read_affine(Role::mlp_norm, index, progress, true);
  layer.up = read_affine(Role::up, index, progress);
  if (architecture_.mlp.gated) {
    Affine both = read_affine(Role::gate, index, progress);
    append(both, layer.up);
    layer.up = std::move(both);
  }
  layer.down = read_affine(Role::down, index, progress);
  return layer;
}

void Weights::check_shapes() const {
  const Sizes& s = architecture_.sizes;
  const ShapeCheck check(file_, names_, family_->in_by_out && !names_.is_gguf());
  const std::size_t d_queries = s.n_heads * s.d_head, d_keys = s.kv_heads * s.d_head;
  check.rows(names_.require(Role::token_embedding, "weight"), s.n_vocabulary, s.d_model);
  if (!architecture_.rotary)
    check.rows(names_.require(Role::position_embedding, "weight"), architecture_.first_position + s.n_context,
               s.d_model);
  if (const auto segments = names_.find(Role::segment_embedding, "weight"))
    check.rows(*segments, 1, s.d_model);
  check.norm_if_any(Role::embedding_norm, 0, s.d_model);
  for (std::size_t l = 0; l < s.n_layers; ++l) {
    check.norm(Role::attention_norm, l, s.d_model);
    if (names_.find(Role::fused, "weight", l)) {
      check.weight(Role::fused, l, s.d_model, d_queries + 2 * d_keys);
    } else {
      check.weight(Role::query, l, s.d_model, d_queries);
      check.weight(Role::key, l, s.d_model, d_keys);
      check.weight(Role::value, l, s.d_model, d_keys);
    }
    check.norms_of_heads(l, s.d_head, architecture_.norm.kind);
    check.weight(Role::output, l, d_queries, s.d_model);
    check.norm(Role::mlp_norm, l, s.d_model);
    if (architecture_.mlp.gated) check.weight(Role::gate, l, s.d_model, s.d_hidden);
    check.weight(Role::up, l, s.d_model, s.d_hidden);
    check.weight(Role::down, l, s.d_hidden, s.d_model);
  }
  if (*family_->names.of(Role::final_norm)) check.norm(Role::final_norm, 0, s.d_model);
  if (!predicts_) return;
  if (*family_->names.of(Role::head_dense)) {
    check.weight(Role::head_dense, 0, s.d_model, s.d_model);
    check.norm(Role::head_norm, 0, s.d_model);
  }
  check.rows(prediction_tensor(), s.n_vocabulary, s.d_model);
  for (const Role role : {Role::head_bias, Role::head}) check.bias_if_any(role, s.n_vocabulary);
}

std::vector<std::string> Weights::tensors_between(Role first, Role last, std::size_t layer) const {
  std::vector<std::string> names;
  for (std::size_t role = 0; role < formats::checkpoints::n_roles; ++role)
    for (const char* ending : {"weight", "bias"})
      if (static_cast<Role>(role) >= first && static_cast<Role>(role) <= last)
        if (const auto name = names_.find(static_cast<Role>(role), ending, layer)) names.push_back(*name);
  return names;
}

std::vector<std::string> Weights::tensors_of(std::size_t layer) const {
  return tensors_between(Role::attention_norm, Role::down, layer);
}

std::vector<std::string> Weights::tensors_of_embeddings() const {
  return tensors_between(Role::token_embedding, Role::embedding_norm, 0);
}

std::vector<std::string> Weights::tensors_of_prediction() const {
  std::vector<std::string> names = tensors_between(Role::final_norm, Role::head_norm, 0);
  names.push_back(prediction_tensor());
  if (const auto bias = prediction_bias()) names.push_back(*bias);
  return names;
}

}  // namespace core::transformer
