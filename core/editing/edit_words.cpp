#include <tuple>

#include "core/editing/edit.hpp"
#include "core/graph/mistakes.hpp"
#include "core/graph/stages.hpp"

namespace core::editing {
namespace {

using std::to_string;

/// An edit as a key that joins a gesture, empty when it never joins, and in words.
struct Words {
  std::string target, description;
};

std::string matrix(MatrixPlace place) {
  const bool of_sequence = place.name <= MatrixName::key_embeddings;
  const std::string name = of_sequence ? path_of(place.name) : symbol(place.name);
  return of_sequence || place.name == MatrixName::score_bias ? name + "/" + to_string(place.nth) : name;
}

std::string title_of(attention::Stage stage) {
  return info(stage).title;
}

std::string cell(const SetCell& e) {
  const std::string row = has_one_row(e.place.name) ? "" : to_string(e.row) + ",";
  return std::string(symbol(e.place.name)) + "[" + row + to_string(e.column) + "]";
}

Words words(const SetCell& e) {
  return {"cell " + matrix(e.place) + " " + to_string(e.row) + " " + to_string(e.column),
          "change of " + cell(e)};
}
Words words(const SetBlock& e) {
  return {"", "change of " + std::string(symbol(e.place.name))};
}
Words words(const RenameToken& e) {
  return {"token " + to_string(e.sequence) + " " + to_string(e.row), "new name of token " + to_string(e.row)};
}
Words words(const SetBias& e) {
  const std::string text = std::string(name_of(e.part)) + " bias";
  return {text, text};
}
Words words(const SwitchMaskCell&) {
  return {"mask cells", "cells of the mask by hand"};  // a stroke is one step
}
Words words(const GiveStage& e) {
  return {"", title_of(e.stage.stage) + " given"};
}
Words words(const ComputeStage& e) {
  return {"", title_of(e.stage) + " computed again"};
}
Words words(const TypeOver& e) {
  const auto& p = e.place;
  const std::string place = to_string(p.row) + " " + to_string(p.column);
  const std::string target = std::string("typed ") + info(p.stage).name + " " + place + " " +
                             to_string(p.sequence) + " " + to_string(p.head);
  const std::string cell =
      title_of(p.stage) + ", row " + to_string(p.row) + ", column " + to_string(p.column);
  return {e.value ? target : "", (e.value ? "number typed over " : "computed again: ") + cell};
}
Words words(const SwitchHead& e) {
  return {"head " + to_string(e.head), "switch of head " + to_string(e.head)};
}
Words words(const SwitchMistake& e) {
  const mistakes::Mistake* mistake = mistakes::find_mistake(e.name);
  return {"", (e.on ? "mistake: " : "mended mistake: ") + (mistake ? mistake->title : e.name)};
}
Words words(const ReplaceModel& e) {
  return {"", e.words};
}

/// Of an edit that is described alike, whatever it holds.
template <class Edit>
struct Always {
  const char *target, *description;
};
constexpr std::tuple always{Always<InsertToken>{"", "new token"},
                            Always<RemoveToken>{"", "removal of a token"},
                            Always<MoveToken>{"", "move of a token"},
                            Always<SetTokenCount>{"n_tokens", "number of tokens"},
                            Always<SetInputWidth>{"d_in", "width of the embeddings"},
                            Always<SetOutputWidth>{"d_out", "width of the projections"},
                            Always<SetHeadCount>{"n_heads", "number of heads"},
                            Always<SetProjections>{"projections", "projections"},
                            Always<SetOutputProjection>{"output projection", "output projection"},
                            Always<SetScoreRule>{"score rule", "source of the scores"},
                            Always<SetScale>{"scale", "scale"},
                            Always<SetCausal>{"causal mask", "causal mask"},
                            Always<SetMaskMethod>{"mask method", "method of the mask"},
                            Always<SetEmptyRows>{"empty rows", "rows without visible keys"},
                            Always<SetMaskAlignment>{"mask alignment", "place of the queries"},
                            Always<SetMaskWindow>{"mask window", "window of the mask"},
                            Always<SetMaskPrefix>{"mask prefix", "prefix of the mask"},
                            Always<SetDocuments>{"documents", "documents of the tokens"},
                            Always<SetHiddenKeys>{"hidden keys", "padding"},
                            Always<ClearMaskCells>{"", "reset of the mask"},
                            Always<SetDropoutRate>{"dropout rate", "dropout rate"},
                            Always<SetTraining>{"training", "training or evaluation"},
                            Always<SetDropoutSeed>{"dropout seed", "dropout seed"},
                            Always<SetDropoutStream>{"dropout stream", "dropout stream"},
                            Always<SetDropoutMask>{"", "dropout mask"},
                            Always<SetGroupCount>{"n_kv_heads", "number of keys and values"},
                            Always<SetHeadNorm>{"head norm", "norm of queries and keys"},
                            Always<SetPositions>{"positions", "positions"},
                            Always<SetScoreCap>{"score cap", "cap of the scores"},
                            Always<SetScoreBias>{"score bias", "bias of the scores"},
                            Always<SetSink>{"sink", "sink of the softmax"},
                            Always<SetKeyEmbeddings>{"key embeddings", "embeddings of the keys"},
                            Always<SetMergeRule>{"merge rule", "merging of the heads"},
                            Always<SetContextLength>{"context length", "context length"},
                            Always<AddSequence>{"", "new sequence"},
                            Always<RemoveSequence>{"", "removal of a sequence"},
                            Always<ClearTypedCells>{"", "computing of typed cells"}};

template <class Edit>
Words words(const Edit&) {
  const auto [target, description] = std::get<Always<Edit>>(always);
  return {target, description};
}

Words words_of(const Edit& edit) {
  return std::visit([](const auto& e) { return words(e); }, edit);
}

}  // namespace

std::string target(const Edit& edit) {
  return words_of(edit).target;
}

std::string describe(const Edit& edit) {
  return words_of(edit).description;
}

}  // namespace core::editing
