#include "core/model/tensor_names.hpp"

#include <string_view>

#include "core/base/error.hpp"
#include "core/model/weights.hpp"

namespace core::transformer {
namespace {

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

void Weights::check_shapes() const {
  const Sizes& s = architecture_.sizes;
  const ShapeCheck check(file_, names_, family_->in_by_out && !names_.is_gguf());
  const std::size_t d_queries = s.n_heads * s.d_head, d_keys = s.n_groups * s.d_head;
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
