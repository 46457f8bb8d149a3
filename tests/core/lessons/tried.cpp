#include "tests/core/lessons/tried.hpp"

#include "core/editing/draw.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/gradients.hpp"
#include "core/graph/injected_bugs.hpp"

namespace tests {
namespace {

using namespace core::editing;
using namespace core::attention;

constexpr MatrixRef x{MatrixName::embeddings, 0}, w_q{MatrixName::query_weight, 0},
    w_k{MatrixName::key_weight, 0}, w_v{MatrixName::value_weight, 0};

SetScale scale(ScaleRule rule, double factor = 1) {
  return {{rule, factor}};
}

/// Returns rotary positions with base 10000 and pairs of halves, then modified by the change.
template <class Change>
SetPositions turned(const Change& change) {
  Positions positions;
  change(positions.rotary.emplace());
  return {positions};
}

Edit tiled() {
  const Model model = core::editing::find_preset("modern-grouped")->make();
  return ReplaceModel{injected(*core::bugs::find_offered_bug("groups_tiled"), model)};
}

Edit typed_sentence() {
  return ReplaceModel{core::text::with_sentence(
      core::lessons::model_at_start(core::lessons::find_lesson("001-heads")->steps.front()),
      core::text::words("Now I typed my own words."), 7)};
}

/// Returns a step along the gradients of a number, or against them: of the learned matrices, or of X.
Edit stepped(const core::graph::Target& of, double step, bool of_embeddings) {
  Model model = core::editing::find_preset("multi-head")->make();
  const auto all = core::graph::gradients(core::graph::attention(model), model, 0, of);
  for (std::size_t name = 0; name < n_matrix_names; ++name) {
    const MatrixRef place{MatrixName(name), 0};
    auto* numbers = find_matrix(model, place);
    if (numbers && (place.name == MatrixName::embeddings) == of_embeddings && !all.of(place).empty())
      *numbers = arma::mat(**numbers + step * all.of(place));
  }
  return ReplaceModel{model};
}

}  // namespace

std::map<std::string, std::vector<std::vector<Edit>>> tried() {
  const arma::mat loud(1, 3, arma::fill::value(1.5));
  return {
      {"000",
       {{SetCell{x, 2, 1, 0.9}},
        {SetCell{w_q, 0, 0, 1}},
        {SetCell{w_k, 1, 1, 1}},
        {scale(ScaleRule::none)},
        {InsertToken{6, "6"}},
        {SetCausal{false}},
        {scale(ScaleRule::factor, 0.577), scale(ScaleRule::factor, 20)},
        {SetBlock{x, 0, 0, loud}},
        {SetCell{w_v, 0, 0, 1}},
        {SetCell{x, 5, 0, -1}},
        {SetHeadCount{3}}}},
      {"001",
       {{SetCell{x, 4, 0, 3}},
        {SetCell{x, 0, 0, 0.7}},
        {SetCausal{true}},
        {scale(ScaleRule::factor, 0)},
        {SetBias{ProjectionName::query, false}},
        {SetCell{{MatrixName::embeddings, 3}, 0, 0, 5}}}},
      {"001-heads",
       {{typed_sentence()},
        {SetCausal{false}},
        {SetBlock{w_k, 0, 0, arma::mat(3, 3, arma::fill::zeros)}},
        {SetContextLength{4}},
        {SetHeadCount{16}},
        {SetCombineRule{CombineRule::concatenate}},
        {SetBias{ProjectionName::output, false}},
        {SetDropoutRate{0.1}}}},
      {"002",
       {{ClearMaskCells{}},
        {SetCell{w_q, 5, 2, 0}},
        {AddSequence{0}},
        {SetCausal{true}},
        {SetMaskMethod{MaskMethod::negative_infinity}},
        {SetScoreRule{ScoreRule::query_key}},
        {SetScoreRule{ScoreRule::uniform}},
        {scale(ScaleRule::none)},
        {scale(ScaleRule::inverse_sqrt_d_head)}}},
      {"003",
       {{RenameToken{0, 2, "word"}},
        {SetCell{{MatrixName::embeddings, 1}, 0, 0, 5}},
        {SetOutputWidth{4}},
        {SetCell{w_q, 0, 4, 100}},
        {SetMaskMethod{MaskMethod::zero_after_softmax}},
        {SetDropoutSeed{124}}}},
      {"004",
       {{SetCausal{true}},
        {SetMaskMethod{MaskMethod::renormalize}},
        {SetMaskMethod{MaskMethod::negative_infinity}},
        {SetCell{x, 5, 2, 3}},
        {SetMaskMethod{MaskMethod::negative_infinity}},
        {SetCell{w_q, 0, 1, 746}}}},
      {"dropout",
       {{SetDropoutRate{0.5}},
        {SetDropoutRate{0.2}},
        {SetDropoutSeed{124}},
        {SetDropoutSeed{124}, SetDropoutSeed{125}, SetDropoutSeed{126}},
        {SetTraining{false}},
        {SetDropoutStream{DropoutStream::mkl}},
        {SetDropoutRate{0.1}}}},
      {"scaling",
       {{scale(ScaleRule::inverse_sqrt_d_head)},
        {scale(ScaleRule::none)},
        {scale(ScaleRule::factor, 0)},
        {scale(ScaleRule::inverse_sqrt_d_head)},
        {scale(ScaleRule::factor, 5)}}},
      {"heads",
       {{SetCell{w_q, 11, 0, 20}},
        {SetCausal{false}},
        {SetCell{x, 4, 0, 1}, SetCell{x, 4, 1, 0}},
        {SetCell{w_q, 11, 0, 5}, SetCell{w_k, 6, 0, 1}},
        {SetCell{x, 1, 7, 0}},
        {SetHeadCount{4}}}},
      {"positions",
       {{turned([](auto& r) { r.base = 100; })},
        {turned([](auto& r) { r.base = 100, r.first = 100; })},
        {turned([](auto&) {})},
        {turned([](auto& r) { r.base = 500000, r.pairs = core::positions::Pairs::neighbors; })}}},
      {"groups", {{SetCell{w_k, 2, 1, 3}}, {SetKvHeadCount{1}}, {tiled()}}},
      {"window",
       {{SetSlidingWindow{{3, 0}}}, {SetSlidingWindow{{2, 0}}}, {SetCell{{MatrixName::sink, 0}, 0, 1, 4}}}},
      {"decode",
       {{SetCell{x, 0, 2, 3}},
        {SetCell{{MatrixName::key_embeddings, 0}, 2, 2, 3}},
        {SetMaskAlignment{core::attention::MaskAlignment::first}}}},
      {"gradient",
       {{stepped({Stage::weights, 0, 3, 1}, 0.1, false)},
        {stepped({Stage::weights, 0, 3, 1}, 0.1, true)},
        {stepped({Stage::output, 0, 5, 1}, -0.1, false)}}},
  };
}

std::vector<core::lessons::Lesson> model_lessons() {
  std::vector<core::lessons::Lesson> all;
  for (const auto& lesson : core::lessons::lessons())
    if (lesson.model.empty() && !lesson.trains()) all.push_back(lesson);
  return all;
}

}  // namespace tests
