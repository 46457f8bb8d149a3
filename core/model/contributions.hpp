#pragma once

#include <armadillo>
#include <cstddef>
#include <vector>

#include "core/model/run.hpp"

namespace core::transformer {

/// What each head of a layer adds to one row of what leaves the layer, the bias of the output not counted:
/// n_heads × d_model. A head that is off adds nothing.
arma::fmat added_by_heads(const Transformer& model, const Pass& pass, std::size_t layer, std::size_t row,
                          const Interventions& interventions, const Means& means);

/// One logit as a sum: what each part of a model adds to it directly, past the parts that come later.
///
/// The last norm divides all parts by what it divides their sum by.
struct Contributions {
  std::vector<std::vector<double>> heads;  ///< [layer][head]
  std::vector<double> besides;             ///< [layer]: of attention what no head adds: the output's bias
  std::vector<double> mlps;                ///< [layer]
  double embedding = 0;                    ///< of the token and its position
  double constant = 0;                     ///< of biases behind the last layer
  double sum() const;
};

/// Whether logits are such sums: not where norms stand behind each block or more than a norm before the
/// prediction.
bool has_contributions(const Transformer& model);

/// The logit of a token at one row of a pass; added[layer] is what added_by_heads() gives of it, or what an
/// edited layer adds instead.
///
/// Throws core::Error where has_contributions() is false or the model predicts nothing. Source: Elhage et al.
/// 2021, the direct path.
Contributions contributions_to(const Transformer& model, const Pass& pass, std::size_t row, std::size_t token,
                               const std::vector<arma::fmat>& added, const Means& means);

}  // namespace core::transformer
