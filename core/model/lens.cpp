#include "core/model/lens.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/error.hpp"
#include "core/files/json.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/system/file.hpp"
#include "core/system/model_cache.hpp"

namespace core::transformer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_lens_config_bytes = std::size_t{1} << 20;

/// Throws core::Error unless a tensor has this shape, or is missing and need not be there.
void require_shape(const formats::TensorFile& file, const std::string& name,
                   const formats::TensorShape& shape, bool is_optional) {
  const formats::TensorInfo* info = file.find(name);
  if (!info && is_optional) return;
  if (!info || info->shape != shape)
    throw Error(fmt::format("{}{}: expected {}, got {}", file.place(), name, formats::shape_text(shape),
                            info ? formats::shape_text(info->shape) : "none"));
}

void require_tuned(const formats::TensorFile& file, const Sizes& sizes) {
  const fs::path path = file.path().parent_path() / "config.json";
  const formats::Json config =
      formats::parse_json(system::read_file(path, max_lens_config_bytes), path.string());
  const auto require_size = [&](const char* name, std::size_t expected) {
    const formats::Json number = config.required(name);
    if (number.whole(0) != expected)
      number.fail(std::to_string(expected) + ", as the model has", std::to_string(number.whole(0)));
  };
  require_size("d_model", sizes.d_model);
  require_size("num_hidden_layers", sizes.n_layers);
  if (const auto type = config.given("lens_type"); type && type->text() != "linear_tuned_lens")
    type->fail("linear_tuned_lens", type->text());
  for (std::size_t l = 1; l < sizes.n_layers; ++l) {
    require_shape(file, std::to_string(l) + ".weight", {sizes.d_model, sizes.d_model}, false);
    require_shape(file, std::to_string(l) + ".bias", {sizes.d_model}, true);
  }
}

void require_jacobian(const formats::TensorFile& file, const Sizes& sizes) {
  bool has_any = false;
  for (std::size_t l = 0; l < sizes.n_layers; ++l) {
    const std::string name = "J." + std::to_string(l);
    require_shape(file, name, {sizes.d_model, sizes.d_model}, true);
    has_any = has_any || file.find(name);
  }
  if (!has_any)
    throw Error(
        fmt::format("{}expected matrices J.0 … J.{} of layers, got none", file.place(), sizes.n_layers - 1));
}

/// Returns the stream after a layer in the basis of the last one, or NaN where the lens has no matrix.
arma::frowvec transported(const Lens& lens, arma::frowvec stream, std::size_t layer, std::size_t n_layers,
                          const StopToken& progress) {
  if (!lens.file || layer + 1 == n_layers) return stream;
  const auto matrix_of = [&](const std::string& name) {
    return arma::conv_to<arma::fmat>::from(formats::matrix(lens.file->read(name, {}, progress)));
  };
  if (lens.kind == LensKind::tuned) {  // the map of the stream that enters the next layer
    const std::string name = std::to_string(layer + 1);
    stream += stream * matrix_of(name + ".weight").t();
    return lens.file->find(name + ".bias") ? stream + matrix_of(name + ".bias") : stream;
  }
  const std::string name = "J." + std::to_string(layer);
  if (lens.file->find(name)) return stream * matrix_of(name).t();
  return stream.fill(arma::datum::nan);
}

/// Returns the logits of the rows that are numbers, NaN for the others.
arma::fmat unembed_known(const FullModel& model, const arma::fmat& rows, const CallContext& context) {
  const arma::uvec known = arma::find_finite(rows.col(0));
  arma::fmat logits(rows.n_rows, model.description().sizes.n_vocabulary, arma::fill::value(arma::datum::nan));
  if (!known.empty()) logits.rows(known) = model.unembed(rows.rows(known), context);
  return logits;
}

}  // namespace

std::optional<LensKind> find_lens_kind(std::string_view name) {
  const auto* found = std::ranges::find(lens_names, name, &LensName::name);
  return found == lens_names.end() ? std::nullopt
                                   : std::optional(static_cast<LensKind>(found - lens_names.begin()));
}

std::optional<fs::path> find_lens(const fs::path& model, LensKind kind) {
  const fs::path folder = (system::is_folder(model) ? model : model.parent_path()) / "lens";
  if (!system::is_folder(folder)) return std::nullopt;
  if (kind == LensKind::tuned) {
    const fs::path file = folder / "params.pt";
    return system::is_file(file) ? std::optional(file) : std::nullopt;
  }
  std::vector<fs::path> found;
  if (kind == LensKind::jacobian)
    for (const fs::path& path : system::list_folder(folder).paths) {
      const std::string name = path.filename().string();
      if (name.find("jacobian") != name.npos && (name.ends_with(".safetensors") || name.ends_with(".pt")))
        found.push_back(path);
    }
  return found.empty() ? std::nullopt : std::optional(*std::ranges::min_element(found));
}

Lens open_lens(const FullModel& model, LensKind kind, const StopToken& progress) {
  Lens lens{kind};
  if (kind == LensKind::logit_between && model.description().is_attached)
    throw Error(model.description().path.string() +
                ": an attached model does not tell its residual stream between attention and the MLP");
  if (kind == LensKind::logit || kind == LensKind::logit_between) return lens;
  const Description& of = model.description();
  const fs::path at = of.is_attached ? system::resolve_model_name(of.source) : of.path;
  const auto path = of.is_attached && !system::is_folder(at) ? std::nullopt : find_lens(at, kind);
  if (!path)
    throw Error((at.empty() ? of.path : at).string() + ": there is no " + name_of(kind).name +
                " lens next to it: expected " +
                (kind == LensKind::tuned ? "lens/params.pt with its config.json"
                                         : "lens/….safetensors or .pt with \"jacobian\" in its name"));
  lens.file = formats::open_tensors(*path, progress);
  if (kind == LensKind::tuned)
    require_tuned(*lens.file, of.sizes);
  else
    require_jacobian(*lens.file, of.sizes);
  return lens;
}

LensLogits lens_logits(const FullModel& model, const Pass& pass, std::size_t row, const Lens& lens,
                       const CallContext& context) {
  const arma::fmat points = model.residual_points(pass, row, context);
  const std::size_t n_layers = points.n_rows / 2;
  arma::fmat between(n_layers, points.n_cols), after = between;
  for (std::size_t l = 0; l < n_layers; ++l) {
    between.row(l) = points.row(2 * l);
    after.row(l) = transported(lens, points.row(2 * l + 1), l, n_layers, context.progress);
  }
  LensLogits logits{unembed_known(model, after, context), {}};
  if (lens.kind == LensKind::logit_between) logits.between = unembed_known(model, between, context);
  return logits;
}

}  // namespace core::transformer
