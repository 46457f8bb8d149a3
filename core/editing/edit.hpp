#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/matrices.hpp"

namespace core::editing {

using attention::find_matrix;
using attention::MatrixName;
using attention::MatrixRef;
using attention::ProjectionName;

// Each edit is a small struct; apply() has a case for each, and a forgotten case does not compile.
struct SetCell {
  MatrixRef place;
  std::size_t row = 0, column = 0;
  double value = 0;
};
/// Writes a block of numbers with its top left corner at (row, column); it must fit.
struct SetBlock {
  MatrixRef place;
  std::size_t row = 0, column = 0;
  arma::mat values;
};
struct RenameToken {
  std::size_t sequence = 0, row = 0;
  std::string name;
};
/// Inserts a token of zeros before row, in every sequence; row may be n_tokens. By default it is named by its
/// index.
///
/// In all edits of tokens, mask cells set by hand, a given dropout mask, given stages and overridden values
/// follow their tokens; new cells of a dropout mask are 1, of other given stages 0. The keys of
/// cross-attention do not change.
struct InsertToken {
  std::size_t row = 0;
  std::string name;
};
struct RemoveToken {
  std::size_t row = 0;
};
/// Moves a token of one sequence, with its embedding and its given dropout mask, to row `to`.
///
/// All sequences share the mask: mask cells set by hand move along only if there is a single sequence, and
/// are removed if they agree with the mask rules at the new position.
struct MoveToken {
  std::size_t sequence = 0, from = 0, to = 0;
};
struct SetTokenCount {
  std::size_t n_tokens = 1;
};  ///< new tokens are zeros at the end; the rest is kept
struct SetInputWidth {
  std::size_t d_in = 1;
};  ///< new columns and rows are zeros; the rest is kept
struct SetOutputWidth {
  std::size_t d_out = 1;
};  ///< the same for the projections' columns; a square output projection stays square
/// Splits the columns among this many heads; heads that a given dropout mask lacks keep all weights.
struct SetHeadCount {
  std::size_t n_heads = 1;
};
/// Sets the number of KV heads. The columns of a new KV head are the mean of those that its heads used before
/// (Ainslie et al. 2023).
struct SetKvHeadCount {
  std::size_t n_kv_heads = 1;
};
/// Sets the cross-attention source, one matrix per sequence, and the names of its rows, by default "0", "1",
/// …; an empty list restores self-attention.
struct SetKeyEmbeddings {
  std::vector<attention::SharedMatrix> embeddings;
  std::vector<std::string> tokens = {};
};
struct SetProjections {
  bool on = true;
};  ///< new ones are identities
struct SetOutputProjection {
  bool on = true;
};  ///< a new one is the identity
struct SetBias {
  ProjectionName part = ProjectionName::query;
  bool on = true;
};  ///< a new one is zeros
/// Unmasks or masks one cell by hand; a cell that agrees with the mask rules is not stored.
struct SwitchMaskCell {
  std::size_t row = 0, column = 0;
  bool visible = true;
};
struct ClearMaskCells {};
struct AddSequence {
  std::size_t copy_of = 0;
};  ///< at the end of the batch
struct RemoveSequence {
  std::size_t sequence = 0;
};
/// Gives a stage instead of computing it, one matrix per head and sequence; see core::attention::give().
struct OverrideStage {
  attention::GivenStage stage;
};
/// Computes a given stage again.
struct ClearStageOverride {
  attention::Stage stage = attention::Stage::weights;
};
/// Overrides one value of a stage, or removes the override if there is no value.
struct OverrideValue {
  attention::GivenCellAddress place;
  std::optional<double> value;
};
struct ClearOverrides {};  ///< removes all overridden values
struct ToggleHead {
  std::size_t head = 0;
  bool on = true;
};
/// Injects one of the bugs of core/graph/mistakes.hpp, or fixes it.
struct SwitchMistake {
  std::string name;
  bool on = true;
};
struct ReplaceModel {
  attention::Model model;
  std::string label = "new model";
};

/// Returns the member of a model at the end of a path of members.
template <auto... path>
auto& member(attention::Model& model) {
  return (model.*....*path);
}

/// Sets one member of the model and nothing else.
template <auto... path>
struct Set {
  std::remove_reference_t<decltype(member<path...>(std::declval<attention::Model&>()))> value{};
};
using SetScoreRule = Set<&attention::Model::scores>;
using SetScale = Set<&attention::Model::scale>;
using SetMaskMethod = Set<&attention::Model::mask, &attention::Mask::method>;
using SetEmptyRows = Set<&attention::Model::mask, &attention::Mask::empty_rows>;
// Mask cells set by hand stay as long as they differ from the rules.
using SetCausal = Set<&attention::Model::mask, &attention::Mask::causal>;
using SetMaskAlignment = Set<&attention::Model::mask, &attention::Mask::align>;
using SetSlidingWindow = Set<&attention::Model::mask, &attention::Mask::window>;
using SetPrefixLength = Set<&attention::Model::mask, &attention::Mask::prefix>;
using SetDocumentIds = Set<&attention::Model::mask, &attention::Mask::documents>;
/// [sequence]: padding keys in any order; empty for none.
using SetPaddingMask = Set<&attention::Model::mask, &attention::Mask::hidden_keys>;
using SetDropoutRate = Set<&attention::Model::dropout, &attention::Dropout::rate>;
using SetTraining = Set<&attention::Model::dropout, &attention::Dropout::training>;
using SetDropoutSeed = Set<&attention::Model::dropout, &attention::Dropout::seed>;
using SetDropoutStream = Set<&attention::Model::dropout, &attention::Dropout::stream>;
/// A given dropout mask, [sequence · n_heads + head]; if empty, the mask is sampled.
using SetDropoutMask = Set<&attention::Model::dropout, &attention::Dropout::given>;
using SetHeadNorm = Set<&attention::Model::additions, &attention::Additions::normalize>;
using SetPositions = Set<&attention::Model::additions, &attention::Additions::positions>;
using SetSoftcap = Set<&attention::Model::additions, &attention::Additions::softcap>;
using SetAttentionBias = Set<&attention::Model::additions, &attention::Additions::score_bias>;
using SetSink = Set<&attention::Model::additions, &attention::Additions::sink>;
using SetCombineRule = Set<&attention::Model::merge>;
using SetContextLength = Set<&attention::Model::context_length>;

using Edit = std::variant<SetCell, SetBlock, RenameToken, InsertToken, RemoveToken, MoveToken, SetTokenCount,
                          SetInputWidth, SetOutputWidth, SetHeadCount, SetProjections, SetOutputProjection,
                          SetBias, SetScoreRule, SetScale, SetCausal, SetMaskMethod, SetEmptyRows,
                          SetMaskAlignment, SetSlidingWindow, SetPrefixLength, SetDocumentIds, SetPaddingMask,
                          SwitchMaskCell, ClearMaskCells, SetDropoutRate, SetTraining, SetDropoutSeed,
                          SetDropoutStream, SetDropoutMask, SetCombineRule, SetContextLength, SetKvHeadCount,
                          SetKeyEmbeddings, SetHeadNorm, SetPositions, SetSoftcap, SetAttentionBias, SetSink,
                          AddSequence, RemoveSequence, OverrideStage, ClearStageOverride, OverrideValue,
                          ClearOverrides, ToggleHead, SwitchMistake, ReplaceModel>;

/// Returns the model after one edit; matrices that the edit does not change stay shared.
///
/// The model must pass attention::check(). Throws core::Error, in one line, when the edit does not fit or the
/// result could not be computed or would exceed a limit of core/graph/validation.hpp. Qualify the call: with
/// a std::variant argument an unqualified apply() also finds std::apply.
attention::Model apply(const attention::Model& model, const Edit& edit);

/// Returns a key for the target of an edit: consecutive edits with the same key are one gesture; empty for
/// edits that never join.
std::string target(const Edit& edit);

/// Returns the edit in words for the Edit menu: "change of W_q[0,1]", "causal mask", "removal of a token".
std::string describe(const Edit& edit);

}  // namespace core::editing
