#pragma once

#include "core/circuits/float64_model.hpp"

namespace core::circuits {

/// The score of a query and a key.
struct ScoreCell {
  std::size_t layer = 0, head = 0, query = 0, key = 0;
  friend bool operator==(const ScoreCell&, const ScoreCell&) = default;
};

/// A key and its weight.
struct KeyReading {
  std::size_t key = 0;
  double weight = 0;
};

/// What a score loses when a part of the model before it writes nothing and the rest is recomputed.
struct ScoreSource {
  std::string name;                                           ///< "token", "position", "head 0.2", "MLP 0"
  std::optional<std::pair<std::size_t, std::size_t>> head{};  ///< layer and head
  double total = 0;                  ///< the score above its row's mean, less the same without the source
  double weight_without = 0;         ///< of the cell
  std::optional<KeyReading> read{};  ///< where the head reads most at the position of the key
};

/// A score as a sum over pairs: a part of the query times a part of the key.
///
/// Parts are what the token embedding, the position, each earlier head and each MLP have written, and biases,
/// with the scales of all norms between held fixed. Where norms follow the blocks (BERT), parts are those
/// since the last norm but one, and what is before is one: "layer below". Source: Elhage et al. 2021.
struct ScoreSources {
  double score = 0;           ///< scaled, with ALiBi, before soft-capping: the sum of pairs and ALiBi
  double above_row_mean = 0;  ///< score minus the mean of all keys that the query attends to
  double weight = 0;
  std::vector<std::string> parts;
  arma::mat pairs;                 ///< part of the query × part of the key
  arma::mat pairs_above_row_mean;  ///< each minus its own mean over these keys
  bool has_alibi = false;
  double alibi = 0, alibi_above_row_mean = 0;
  std::optional<double> softcap = {};  ///< applied to the sum
  std::vector<ScoreSource> sources;
  bool has_totals = true;  ///< else the sources have only names
};

/// Whether the passes without each source are computed, which takes longer than the direct sum.
enum class Totals { all, none };

/// Computes the sources of a score in float64.
///
/// Throws core::Error, "query: …" or another name of its indices, when the cell does not exist or is masked,
/// and "MODEL: …" when numbers are not finite. Progress counts layers of recomputed passes.
ScoreSources sources_of(const Float64Model& model, const std::vector<std::size_t>& ids, const ScoreCell& cell,
                        const CallContext& context, Totals totals = Totals::all);

/// A number as the sum of what parts of the model have written: of a row, one column, or its length, to
/// which each part adds its share along the row.
struct WrittenSum {
  double value = 0;
  std::vector<std::string> names = {};  ///< as in ScoreSources; of context vectors the source positions
  arma::vec parts = {};
  arma::mat by_token =
      {};  ///< of a logit, what heads write by source token: [layer · n_heads + head][position]
};

/// Return the sources of a row of context vectors, of the residual stream before a layer (n_layers: after the
/// last), and of a logit after a text, with the scale of the last norm held fixed. cell.key is not used.
///
/// Throw core::Error as sources_of() does, "column: …", and "MODEL: …" when logits are not such sums.
WrittenSum context_sources(const Float64Model& model, const std::vector<std::size_t>& ids,
                           const ScoreCell& cell, const std::optional<std::size_t>& column,
                           const CallContext& context);
WrittenSum stream_sources(const Float64Model& model, const std::vector<std::size_t>& ids, std::size_t layer,
                          std::size_t position, const std::optional<std::size_t>& column,
                          const CallContext& context);
WrittenSum logit_sources(const Float64Model& model, const std::vector<std::size_t>& ids, std::size_t token,
                         const CallContext& context);

}  // namespace core::circuits
