#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "app/session/color_choice.hpp"
#include "app/session/positions_look.hpp"
#include "core/editing/edit.hpp"
#include "core/graph/difference.hpp"
#include "core/graph/head_facts.hpp"
#include "core/graph/stages.hpp"

namespace app {

using core::attention::Stage;

enum class Tab { stages, heads, tokens, compare, laboratory, layers };

/// What the token view shows.
struct TokensLook {
  std::optional<std::size_t> hovered_query, pinned_query;
  std::optional<std::size_t> hovered_key;
  std::set<std::size_t> silent_heads;  ///< heads without lines
  double hide_below = 0.01;            ///< weights below it have no lines, 0 … 1
  bool comes_into_view = false;        ///< the view is to scroll to the pinned query

  std::optional<std::size_t> query() const { return hovered_query ? hovered_query : pinned_query; }
  friend bool operator==(const TokensLook&, const TokensLook&) = default;
};

/// A part of a matrix in cells, which need not be whole ones.
struct CellWindow {
  double left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const CellWindow&, const CellWindow&) = default;
};

/// What is compared, and how.
struct ComparedLook {
  std::size_t reference = 0;  ///< which of the kept states is A
  core::compare::DifferenceKind difference = core::compare::DifferenceKind::a_minus_b;
};

/// What is looked at and how, as a session keeps it; nothing of it changes a number.
struct Look {
  Tab tab = Tab::stages;
  std::size_t sequence = 0, head = 0;
  Stage heads_stage = Stage::weights;
  ColorChoice colors;
  bool gutters = false;        ///< row sums and entropy stand beside token × token stages
  std::optional<Stage> large;  ///< the stage that fills the Stages view alone
  std::set<Stage> folded{Stage::mask, Stage::row_sums};  ///< stages that the strip leaves out
  /// What is shown of matrices of so many rows and columns; of others everything.
  std::map<std::pair<std::size_t, std::size_t>, CellWindow> zoomed;
  std::optional<core::attention::HeadFigure>
      heads_order;  ///< what heads are sorted by; nothing: by their number
  TokensLook tokens;
  core::editing::MatrixPlace edited;  ///< the matrix in the editor
  ComparedLook compared;
  PositionsLook positions;
  std::size_t laboratory_masks = 64;  ///< over how many masks the dropout laboratory takes the mean
};

}  // namespace app
