#include "core/attention/stages.hpp"
#include "core/editing/edit.hpp"

namespace core::editing {
namespace {

using std::to_string;

/// An edit as a key that joins a gesture, empty when it never joins, and in words.
struct Words {
  std::string target, description;
};

std::string matrix(MatrixPlace place) {
  return place.name == MatrixName::embeddings ? "embeddings/" + to_string(place.sequence)
                                              : symbol(place.name);
}

std::string cell(const SetCell& e) {
  const std::string row = is_bias(e.place.name) ? "" : to_string(e.row) + ",";
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
Words words(const InsertToken&) {
  return {"", "new token"};
}
Words words(const RemoveToken&) {
  return {"", "removal of a token"};
}
Words words(const MoveToken&) {
  return {"", "move of a token"};
}
Words words(const SetTokenCount&) {
  return {"n_tokens", "number of tokens"};
}
Words words(const SetInputWidth&) {
  return {"d_in", "width of the embeddings"};
}
Words words(const SetOutputWidth&) {
  return {"d_out", "width of the projections"};
}
Words words(const SetHeadCount&) {
  return {"n_heads", "number of heads"};
}
Words words(const SetProjections&) {
  return {"projections", "projections"};
}
Words words(const SetOutputProjection&) {
  return {"output projection", "output projection"};
}
Words words(const SetBias& e) {
  const std::string text = std::string(name_of(e.part)) + " bias";
  return {text, text};
}
Words words(const SetCausal&) {
  return {"causal mask", "causal mask"};
}
Words words(const SwitchMaskCell& e) {
  const std::string row = to_string(e.row), column = to_string(e.column);
  return {"mask cell " + row + " " + column, "switch of mask[" + row + "," + column + "]"};
}
Words words(const ClearMaskCells&) {
  return {"", "reset of the mask"};
}
Words words(const AddSequence&) {
  return {"", "new sequence"};
}
Words words(const RemoveSequence&) {
  return {"", "removal of a sequence"};
}
Words words(const GiveStage& e) {
  return {"", "giving of " + std::string(info(e.stage.stage).name)};
}
Words words(const ComputeStage& e) {
  return {"", "computing of " + std::string(info(e.stage).name)};
}
Words words(const TypeOver& e) {
  const auto& p = e.place;
  const std::string cell =
      std::string(info(p.stage).name) + "[" + to_string(p.row) + "," + to_string(p.column) + "]";
  const std::string target = "typed " + cell + " " + to_string(p.sequence) + " " + to_string(p.head);
  return {e.value ? target : "", (e.value ? "typing over of " : "computing of ") + cell};
}
Words words(const ClearTypedCells&) {
  return {"", "computing of typed cells"};
}
Words words(const SwitchHead& e) {
  return {"head " + to_string(e.head), "switch of head " + to_string(e.head)};
}
Words words(const SwitchMistake& e) {
  return {"", (e.on ? "mistake: " : "mended mistake: ") + e.name};
}
Words words(const ReplaceModel& e) {
  return {"", e.words};
}

struct MemberWords {
  const char *target, *description;
};
/// Of an edit that sets a member: the same whatever the value.
template <class Edit>
constexpr MemberWords member_words = {};
template <>
constexpr MemberWords member_words<SetScoreRule> = {"score rule", "source of the scores"};
template <>
constexpr MemberWords member_words<SetScale> = {"scale", "scale"};
template <>
constexpr MemberWords member_words<SetMaskMethod> = {"mask method", "method of the mask"};
template <>
constexpr MemberWords member_words<SetEmptyRows> = {"empty rows", "rows without visible keys"};
template <>
constexpr MemberWords member_words<SetDropoutRate> = {"dropout rate", "dropout rate"};
template <>
constexpr MemberWords member_words<SetTraining> = {"training", "training or evaluation"};
template <>
constexpr MemberWords member_words<SetDropoutSeed> = {"dropout seed", "dropout seed"};
template <>
constexpr MemberWords member_words<SetDropoutStream> = {"dropout stream", "dropout stream"};
template <>
constexpr MemberWords member_words<SetDropoutMask> = {"", "dropout mask"};
template <>
constexpr MemberWords member_words<SetMergeRule> = {"merge rule", "merging of the heads"};
template <>
constexpr MemberWords member_words<SetContextLength> = {"context length", "context length"};

template <auto... path>
Words words(const Set<path...>&) {
  constexpr MemberWords found = member_words<Set<path...>>;
  static_assert(found.description, "an edit that sets a member needs its words above");
  return {found.target, found.description};
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
