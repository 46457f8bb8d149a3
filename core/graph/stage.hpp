#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace core::attention {

struct Model;

/// All stages, in the order of the computation. The table below describes them.
enum class Stage {
  embeddings,
  key_embeddings,
  queries,
  keys,
  values,
  normed_queries,
  normed_keys,
  rotated_queries,
  rotated_keys,
  scores,
  scaled_scores,
  capped_scores,
  position_bias,
  biased_scores,
  mask,
  masked_scores,
  unmasked_weights,
  zeroed_weights,
  row_sums,
  weights,
  dropout_mask,
  dropped_weights,
  contexts,
  concatenated,
  output
};

constexpr std::size_t n_stages = static_cast<std::size_t>(Stage::output) + 1;

/// Returns whether a stage is a projection, split into heads: queries, keys and values.
constexpr bool is_projected(Stage stage) {
  return stage == Stage::queries || stage == Stage::keys || stage == Stage::values;
}

/// Tokens of a stage's rows: those of queries, or of keys.
enum class RowTokens { queries, keys };

/// Columns of a stage; tokens are those of keys.
enum class Columns { tokens, features, single };

/// Coloring of a stage's numbers.
enum class Coloring {
  signed_values,  ///< symmetric around 0
  weights,        ///< from 0 to color_range_max()
  mask            ///< gray, from 0 to color_range_max()
};

/// Row of the table for heatmaps, export, explanations and comparison.
struct StageInfo {
  Stage stage;
  const char* name;   ///< in files and on the command line: "scaled_scores"
  const char* title;  ///< in the window: "Scaled"
  const char* one;    ///< name of one cell: "Scaled score"
  bool per_head;
  RowTokens rows;
  Columns columns;
  Coloring coloring;
  int line;  ///< 1 … 4: line of the strip that shows it

  /// Returns how many matrices of it a trace has with that many heads.
  constexpr std::size_t count(std::size_t n_heads) const { return per_head ? n_heads : 1; }

  /// Returns whether the model has this stage: see existing_stages().
  bool present(const Model& model) const;
};

inline constexpr std::array stage_table{
    StageInfo{Stage::embeddings, "embeddings", "Embeddings", "Embedding", false, RowTokens::queries,
              Columns::features, Coloring::signed_values, 1},
    StageInfo{Stage::key_embeddings, "key_embeddings", "Encoder states", "Encoder state", false,
              RowTokens::keys, Columns::features, Coloring::signed_values, 1},
    StageInfo{Stage::queries, "queries", "Queries", "Query", true, RowTokens::queries, Columns::features,
              Coloring::signed_values, 1},
    StageInfo{Stage::keys, "keys", "Keys", "Key", true, RowTokens::keys, Columns::features,
              Coloring::signed_values, 1},
    StageInfo{Stage::values, "values", "Values", "Value", true, RowTokens::keys, Columns::features,
              Coloring::signed_values, 1},
    StageInfo{Stage::normed_queries, "normed_queries", "Normalized queries", "Normalized query", true,
              RowTokens::queries, Columns::features, Coloring::signed_values, 1},
    StageInfo{Stage::normed_keys, "normed_keys", "Normalized keys", "Normalized key", true, RowTokens::keys,
              Columns::features, Coloring::signed_values, 1},
    StageInfo{Stage::rotated_queries, "rotated_queries", "Rotated queries", "Rotated query", true,
              RowTokens::queries, Columns::features, Coloring::signed_values, 1},
    StageInfo{Stage::rotated_keys, "rotated_keys", "Rotated keys", "Rotated key", true, RowTokens::keys,
              Columns::features, Coloring::signed_values, 1},
    StageInfo{Stage::scores, "scores", "Scores", "Score", true, RowTokens::queries, Columns::tokens,
              Coloring::signed_values, 2},
    StageInfo{Stage::scaled_scores, "scaled_scores", "Scaled", "Scaled score", true, RowTokens::queries,
              Columns::tokens, Coloring::signed_values, 2},
    StageInfo{Stage::capped_scores, "capped_scores", "Soft-capped", "Soft-capped score", true,
              RowTokens::queries, Columns::tokens, Coloring::signed_values, 2},
    StageInfo{Stage::position_bias, "position_bias", "Position bias", "Position bias", true,
              RowTokens::queries, Columns::tokens, Coloring::signed_values, 2},
    StageInfo{Stage::biased_scores, "biased_scores", "Biased", "Biased score", true, RowTokens::queries,
              Columns::tokens, Coloring::signed_values, 2},
    StageInfo{Stage::mask, "mask", "Mask", "Mask", false, RowTokens::queries, Columns::tokens, Coloring::mask,
              2},
    StageInfo{Stage::masked_scores, "masked_scores", "Masked", "Masked score", true, RowTokens::queries,
              Columns::tokens, Coloring::signed_values, 2},
    StageInfo{Stage::unmasked_weights, "unmasked_weights", "Unmasked weights", "Unmasked weight", true,
              RowTokens::queries, Columns::tokens, Coloring::weights, 3},
    StageInfo{Stage::zeroed_weights, "zeroed_weights", "Zeroed weights", "Zeroed weight", true,
              RowTokens::queries, Columns::tokens, Coloring::weights, 3},
    StageInfo{Stage::row_sums, "row_sums", "Row sums", "Row sum", true, RowTokens::queries, Columns::single,
              Coloring::weights, 3},
    StageInfo{Stage::weights, "weights", "Weights", "Weight", true, RowTokens::queries, Columns::tokens,
              Coloring::weights, 3},
    StageInfo{Stage::dropout_mask, "dropout_mask", "Dropout mask", "Dropout factor", true, RowTokens::queries,
              Columns::tokens, Coloring::mask, 3},
    StageInfo{Stage::dropped_weights, "dropped_weights", "Weights after dropout", "Weight after dropout",
              true, RowTokens::queries, Columns::tokens, Coloring::weights, 3},
    StageInfo{Stage::contexts, "contexts", "Context vectors", "Context vector", true, RowTokens::queries,
              Columns::features, Coloring::signed_values, 4},
    StageInfo{Stage::concatenated, "concatenated", "Concatenated", "Concatenated", false, RowTokens::queries,
              Columns::features, Coloring::signed_values, 4},
    StageInfo{Stage::output, "output", "Output", "Output", false, RowTokens::queries, Columns::features,
              Coloring::signed_values, 4},
};

/// Returns all stages, in the order of the computation.
constexpr std::span<const StageInfo> stages() {
  return stage_table;
}

/// Returns the row of one stage.
constexpr const StageInfo& info(Stage stage) {
  return stage_table[static_cast<std::size_t>(stage)];
}

}  // namespace core::attention
