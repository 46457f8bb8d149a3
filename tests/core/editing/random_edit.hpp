#pragma once

#include <array>
#include <cmath>
#include <functional>

#include "core/editing/edit.hpp"
#include "core/graph/injected_bugs.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"

namespace core::editing {

/// Returns the error line with which the edit is refused, or "no error".
inline std::string refusal(const attention::Model& model, const Edit& edit) {
  return support::error_of(
      [&] { editing::apply(model, edit); });  // not std::apply, which ADL finds through the variant
}

using support::below;
using support::coin;
using support::number;
using support::Random;

inline MatrixRef random_place(Random& r, const attention::Model& m) {
  const std::size_t learned = static_cast<std::size_t>(MatrixName::output_bias) + 1;
  const std::size_t name = below(r, coin(r) ? learned : attention::n_matrix_names);
  return {static_cast<MatrixName>(name), below(r, m.sequences.size())};
}

inline attention::Model random_replacement(Random& r) {
  const std::size_t n_heads = 1 + below(r, 3);
  return support::model(r, 1 + below(r, 5), 1 + below(r, 4), n_heads * (1 + below(r, 3)), n_heads,
                        1 + below(r, 2));
}

inline std::vector<attention::SharedMatrix> random_masks(Random& r, const attention::Model& m) {
  std::vector<attention::SharedMatrix> masks;
  if (below(r, 4) == 0) return masks;
  const std::size_t count = m.sequences.size() * m.n_heads + (below(r, 5) == 0 ? 1 : 0);
  for (std::size_t k = 0; k < count; ++k)
    masks.emplace_back(support::zeros_and_ones(r, m.n_tokens(), m.n_keys()));
  return masks;
}

inline attention::Additions random_additions(Random& r, const attention::Model& m) {
  attention::Model other = below(r, 5) == 0 ? random_replacement(r) : m;
  other.additions = {};
  support::add_additions(r, other);
  return other.additions;
}

inline SetKeyEmbeddings random_memory(Random& r, const attention::Model& m) {
  if (below(r, 3) == 0) return {};
  attention::Model other = m;
  support::add_cross_attention_source(r, other);
  SetKeyEmbeddings edit;
  for (const attention::Sequence& s : other.sequences) edit.embeddings.push_back(s.key_embeddings);
  if (below(r, 6) == 0) edit.embeddings.pop_back();
  if (coin(r)) edit.tokens = {"a", "b"};
  return edit;
}

/// Returns a random edit of the variant's alternative `kind`; about one in five does not fit the model.
inline Edit random_edit(Random& g, const attention::Model& w, std::size_t kind) {
  const std::size_t rows = w.n_tokens();
  const std::function<Edit()> makers[std::variant_size_v<Edit>] = {
      [&]() -> Edit {
        return SetCell{random_place(g, w), below(g, rows + 1), below(g, 4),
                       below(g, 9) == 0 ? NAN : number(g)};
      },
      [&]() -> Edit {
        return SetBlock{random_place(g, w), below(g, 2), below(g, 2),
                        support::matrix(g, below(g, 3), below(g, 3))};
      },
      [&]() -> Edit {
        return RenameToken{below(g, w.sequences.size()), below(g, rows + 1),
                           "name " + std::to_string(below(g, 9))};
      },
      [&]() -> Edit {
        return InsertToken{below(g, rows + 2), coin(g) ? "new" : ""};
      },
      [&]() -> Edit { return RemoveToken{below(g, rows + 1)}; },
      [&]() -> Edit {
        return MoveToken{below(g, w.sequences.size()), below(g, rows + 1), below(g, rows)};
      },
      [&]() -> Edit { return SetTokenCount{below(g, 7)}; },
      [&]() -> Edit { return SetInputWidth{below(g, 7)}; },
      [&]() -> Edit {
        return SetOutputWidth{below(g, 5) == 0 ? below(g, 7) : w.n_heads * (1 + below(g, 3))};
      },
      [&]() -> Edit { return SetHeadCount{below(g, 4)}; },
      [&]() -> Edit { return SetProjections{below(g, 3) > 0}; },
      [&]() -> Edit { return SetOutputProjection{coin(g)}; },
      [&]() -> Edit {
        return SetBias{static_cast<ProjectionName>(below(g, 4)), coin(g)};
      },
      [&]() -> Edit { return SetScoreRule{static_cast<attention::ScoreRule>(below(g, 2))}; },
      [&]() -> Edit {
        return SetScale{
            {static_cast<attention::ScaleRule>(below(g, 4)), below(g, 9) == 0 ? INFINITY : number(g)}};
      },
      [&]() -> Edit { return SetCausal{coin(g)}; },
      [&]() -> Edit { return SetMaskMethod{static_cast<attention::MaskMethod>(below(g, 4))}; },
      [&]() -> Edit { return SetEmptyRows{static_cast<attention::EmptyRows>(below(g, 2))}; },
      [&]() -> Edit { return SetMaskAlignment{static_cast<attention::MaskAlignment>(below(g, 2))}; },
      [&]() -> Edit { return SetSlidingWindow{support::mask_window(g)}; },
      [&]() -> Edit { return SetPrefixLength{below(g, w.n_keys() + 2)}; },
      [&]() -> Edit {
        return SetDocumentIds{coin(g) ? support::documents(g, rows) : std::vector<std::size_t>{0}};
      },
      [&]() -> Edit { return SetPaddingMask{support::hidden_keys(g, w.sequences.size(), rows)}; },
      [&]() -> Edit {
        return SwitchMaskCell{below(g, rows), below(g, rows + 1), coin(g)};
      },
      [&]() -> Edit { return ClearMaskCells{}; },
      [&]() -> Edit { return SetDropoutRate{number(g)}; },
      [&]() -> Edit { return SetTraining{coin(g)}; },
      [&]() -> Edit { return SetDropoutSeed{g()}; },
      [&]() -> Edit { return SetDropoutStream{static_cast<attention::DropoutStream>(below(g, 2))}; },
      [&]() -> Edit { return SetDropoutMask{random_masks(g, w)}; },
      [&]() -> Edit { return SetCombineRule{static_cast<attention::CombineRule>(below(g, 2))}; },
      [&]() -> Edit { return SetContextLength{coin(g) ? std::optional(below(g, 9)) : std::nullopt}; },
      [&]() -> Edit { return SetKvHeadCount{below(g, w.n_heads + 2)}; },
      [&]() -> Edit { return random_memory(g, w); },
      [&]() -> Edit { return SetHeadNorm{random_additions(g, w).normalize}; },
      [&]() -> Edit { return SetPositions{random_additions(g, w).positions}; },
      [&]() -> Edit { return SetSoftcap{coin(g) ? std::optional(number(g) + 1) : std::nullopt}; },
      [&]() -> Edit { return SetAttentionBias{random_additions(g, w).score_bias}; },
      [&]() -> Edit { return SetSink{random_additions(g, w).sink}; },
      [&]() -> Edit { return AddSequence{below(g, w.sequences.size()) + (w.sequences.size() > 3 ? 9 : 0)}; },
      [&]() -> Edit { return RemoveSequence{below(g, w.sequences.size() + 1)}; },
      [&]() -> Edit {
        using enum attention::Stage;
        const auto stage = std::array{weights, scores, keys, values, dropout_mask, mask}[below(g, 6)];
        return OverrideStage{support::given_stage(g, w, stage)};
      },
      [&]() -> Edit {
        return ClearStageOverride{static_cast<attention::Stage>(below(g, attention::n_stages))};
      },
      [&]() -> Edit {
        const attention::GivenCellAddress place{static_cast<attention::Stage>(below(g, attention::n_stages)),
                                                below(g, w.sequences.size()), below(g, w.n_heads),
                                                below(g, rows), below(g, 4)};
        return OverrideValue{place, coin(g) ? std::optional(number(g)) : std::nullopt};
      },
      [&]() -> Edit { return ClearOverrides{}; },
      [&]() -> Edit {
        return ToggleHead{below(g, w.n_heads + 1), coin(g)};
      },
      [&]() -> Edit {
        const auto all = bugs::offered_bugs();
        return SwitchMistake{all[below(g, all.size())]->name, below(g, 3) > 0};
      },
      [&]() -> Edit { return ReplaceModel{random_replacement(g)}; },
  };
  return makers[kind]();
}

}  // namespace core::editing
