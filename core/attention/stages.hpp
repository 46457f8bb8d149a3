#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/attention/model.hpp"
#include "core/attention/trace.hpp"

namespace core::attention {

/// Every stage, in the order of the computation.
enum class Stage {
  embeddings,
  queries,
  keys,
  values,
  scores,
  scaled_scores,
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

/// What a column of a stage stands for; rows are always tokens that ask.
enum class Columns { tokens, features, single };

/// How numbers of a stage are to be coloured.
enum class Colouring {
  signed_values,  ///< symmetric around 0
  weights,        ///< from 0 to top(model)
  mask            ///< grey, from 0 to top(model)
};

/// One row of the table that heatmaps, export, explanations and comparison walk.
struct StageInfo {
  Stage stage;
  const char* name;   ///< as in files and on the command line: "scaled_scores"
  const char* title;  ///< as in the window: "Scaled"
  const char* one;    ///< one cell of it in words: "Scaled score"
  bool per_head;
  Columns columns;
  Colouring colouring;
  int line;  ///< 1 … 4: the line of the strip on which it stands
  /// The formula in the field's notation; "_q" stands for a subscript q. The brief one fits a narrow window.
  std::string (*formula)(const Model&, bool brief);
  /// Whether the model has this stage at all.
  bool (*present)(const Model&);
  /// The numbers; head counts only when per_head.
  const StageMatrix& (*matrix)(const Trace&, std::size_t head);
};

/// All stages, in the order of the computation.
std::span<const StageInfo> stages();

/// The row of one stage.
const StageInfo& info(Stage stage);

/// The stage of that name, or nullptr.
const StageInfo* find_stage(std::string_view name);

/// The upper end of the range of a stage that is coloured from 0: 1, or 1/(1 − rate) after dropout.
double top_of_range(const Model& model, Stage stage);

}  // namespace core::attention
