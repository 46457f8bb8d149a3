#pragma once

#include <array>
#include <cmath>

#include "core/editing/edit.hpp"
#include "core/graph/mistakes.hpp"
#include "tests/support/additions.hpp"
#include "tests/support/random_model.hpp"

namespace core::editing {

using support::below;
using support::coin;
using support::number;
using support::Random;

inline MatrixPlace random_place(Random& r, const attention::Model& m) {
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
  support::add_memory(r, other);
  SetKeyEmbeddings edit;
  for (const attention::Sequence& s : other.sequences) edit.embeddings.push_back(s.key_embeddings);
  if (below(r, 6) == 0) edit.embeddings.pop_back();
  if (coin(r)) edit.tokens = {"a", "b"};
  return edit;
}

/// An edit of the kind that stands at that place of the variant; about one in five does not fit the model.
inline Edit random_edit(Random& r, const attention::Model& m, std::size_t kind) {
  const std::size_t n = m.n_tokens();
  using Make = Edit (*)(Random&, const attention::Model&, std::size_t n);
  static constexpr std::array<Make, std::variant_size_v<Edit>> makers{
      [](Random& g, const attention::Model& w, std::size_t rows) -> Edit {
        return SetCell{random_place(g, w), below(g, rows + 1), below(g, 4),
                       below(g, 9) == 0 ? NAN : number(g)};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetBlock{random_place(g, w), below(g, 2), below(g, 2),
                        support::matrix(g, below(g, 3), below(g, 3))};
      },
      [](Random& g, const attention::Model& w, std::size_t rows) -> Edit {
        return RenameToken{below(g, w.sequences.size()), below(g, rows + 1),
                           "name " + std::to_string(below(g, 9))};
      },
      [](Random& g, const attention::Model&, std::size_t rows) -> Edit {
        return InsertToken{below(g, rows + 2), coin(g) ? "new" : ""};
      },
      [](Random& g, const attention::Model&, std::size_t rows) -> Edit {
        return RemoveToken{below(g, rows + 1)};
      },
      [](Random& g, const attention::Model& w, std::size_t rows) -> Edit {
        return MoveToken{below(g, w.sequences.size()), below(g, rows + 1), below(g, rows)};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetTokenCount{below(g, 7)}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetInputWidth{below(g, 7)}; },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetOutputWidth{below(g, 5) == 0 ? below(g, 7) : w.n_heads * (1 + below(g, 3))};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetHeadCount{below(g, 4)}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetProjections{below(g, 3) > 0}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetOutputProjection{coin(g)}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetBias{static_cast<Part>(below(g, 4)), coin(g)};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetScoreRule{static_cast<attention::ScoreRule>(below(g, 2))};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetScale{
            {static_cast<attention::ScaleRule>(below(g, 4)), below(g, 9) == 0 ? INFINITY : number(g)}};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetCausal{coin(g)}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetMaskMethod{static_cast<attention::MaskMethod>(below(g, 4))};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetEmptyRows{static_cast<attention::EmptyRows>(below(g, 2))};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetMaskAlignment{static_cast<attention::MaskAlignment>(below(g, 2))};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetMaskWindow{support::mask_window(g)};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetMaskPrefix{below(g, w.n_keys() + 2)};
      },
      [](Random& g, const attention::Model&, std::size_t rows) -> Edit {
        return SetDocuments{coin(g) ? support::documents(g, rows) : std::vector<std::size_t>{0}};
      },
      [](Random& g, const attention::Model& w, std::size_t rows) -> Edit {
        return SetHiddenKeys{support::hidden_keys(g, w.sequences.size(), rows)};
      },
      [](Random& g, const attention::Model&, std::size_t rows) -> Edit {
        return SwitchMaskCell{below(g, rows), below(g, rows + 1), coin(g)};
      },
      [](Random&, const attention::Model&, std::size_t) -> Edit { return ClearMaskCells{}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetDropoutRate{number(g)}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetTraining{coin(g)}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit { return SetDropoutSeed{g()}; },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetDropoutStream{static_cast<attention::DropoutStream>(below(g, 2))};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetDropoutMask{random_masks(g, w)};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetMergeRule{static_cast<attention::MergeRule>(below(g, 2))};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetContextLength{coin(g) ? std::optional(below(g, 9)) : std::nullopt};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetGroupCount{below(g, w.n_heads + 2)};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit { return random_memory(g, w); },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetHeadNorm{random_additions(g, w).normalise};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetPositions{random_additions(g, w).positions};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return SetScoreCap{coin(g) ? std::optional(number(g) + 1) : std::nullopt};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetScoreBias{random_additions(g, w).score_bias};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SetSink{random_additions(g, w).sink};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return AddSequence{below(g, w.sequences.size()) + (w.sequences.size() > 3 ? 9 : 0)};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return RemoveSequence{below(g, w.sequences.size() + 1)};
      },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        using enum attention::Stage;
        const auto stage = std::array{weights, scores, keys, values, dropout_mask, mask}[below(g, 6)];
        return GiveStage{support::given_stage(g, w, stage)};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return ComputeStage{static_cast<attention::Stage>(below(g, attention::n_stages))};
      },
      [](Random& g, const attention::Model& w, std::size_t rows) -> Edit {
        const attention::GivenPlace place{static_cast<attention::Stage>(below(g, attention::n_stages)),
                                          below(g, w.sequences.size()), below(g, w.n_heads), below(g, rows),
                                          below(g, 4)};
        return TypeOver{place, coin(g) ? std::optional(number(g)) : std::nullopt};
      },
      [](Random&, const attention::Model&, std::size_t) -> Edit { return ClearTypedCells{}; },
      [](Random& g, const attention::Model& w, std::size_t) -> Edit {
        return SwitchHead{below(g, w.n_heads + 1), coin(g)};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        const auto all = mistakes::mistakes();
        return SwitchMistake{all[below(g, all.size())].name, below(g, 3) > 0};
      },
      [](Random& g, const attention::Model&, std::size_t) -> Edit {
        return ReplaceModel{random_replacement(g)};
      },
  };
  return makers[kind](r, m, n);
}

}  // namespace core::editing
