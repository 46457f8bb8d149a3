#pragma once

#include <armadillo>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/files/tensor.hpp"
#include "core/model/full_model.hpp"

namespace core::transformer {

/// A rule that predicts tokens from the residual stream inside a model. logit reads it as if the model ended
/// there (nostalgebraist 2020), logit_between also between attention and the MLP; tuned first adds a learned
/// affine map of it (Belrose et al. 2023), jacobian multiplies it by the mean derivative of the last layer's
/// residual stream (Gurnee et al. 2026).
enum class LensKind { logit, logit_between, tuned, jacobian };

/// Names of lenses, in the order of LensKind: as options and files have them, and in words.
struct LensName {
  const char *name, *words;
};
constexpr std::array lens_names{LensName{"logit", "Logit lens"}, LensName{"between", "Logit lens"},
                                LensName{"tuned", "Tuned lens"}, LensName{"jacobian", "Jacobian lens"}};
constexpr const LensName& name_of(LensKind kind) {
  return lens_names[static_cast<std::size_t>(kind)];
}
/// Returns the lens of a name, or nothing.
std::optional<LensKind> find_lens_kind(std::string_view name);

/// Returns the file that a lens reads: in the folder `lens` next to the model's files, params.pt with its
/// config.json for tuned, else a .safetensors or .pt whose name has "jacobian"; nothing where there is none.
std::optional<std::filesystem::path> find_lens(const std::filesystem::path& model, LensKind kind);

/// A lens; its matrices stay in its file.
struct Lens {
  LensKind kind = LensKind::logit;
  std::optional<formats::TensorFile> file = {};  ///< of the tuned and the Jacobian lens
};

/// Opens a lens of a model.
///
/// The tuned lens: N.weight [d, d] and N.bias [d] for the residual stream that enters layer N, as the package
/// tuned-lens writes them. The Jacobian lens: J.N [d, d] for the one after layer N, which it multiplies as
/// J @ h; layers may be missing. Whether the model's unembedding is that of the tuned lens is not checked.
/// The files of an attached model are next to what its process opened. Throws core::Error, "FILE: TENSOR:
/// expected …, got …", when there is no such file, it is of a model of other sizes, or an attached model does
/// not tell what the lens reads.
Lens open_lens(const FullModel& model, LensKind kind, const StopToken& progress);

/// Logits at the points of a model: n_layers × n_vocabulary each, NaN where a lens has no matrix or a layer
/// no such point.
struct LensLogits {
  arma::fmat after;    ///< each layer
  arma::fmat between;  ///< attention and the MLP of each layer; empty unless the lens is logit_between
};

/// Computes a lens at a row of a pass. Throws core::Error.
LensLogits lens_logits(const FullModel& model, const Pass& pass, std::size_t row, const Lens& lens,
                       const CallContext& context);

}  // namespace core::transformer
