// A sequence of verbs, recorded as lines of text, does the same when replayed.
#include <gtest/gtest.h>

#include <limits>

#include "app/session/recording.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/editing/presets.hpp"
#include "tests/support/look.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

namespace editing = core::editing;
using core::attention::MatrixName;

std::vector<Command> some_verbs() {
  core::attention::Model model = editing::default_preset().make();
  arma::mat block{{1, -0.0}, {0.1, 1e-300}};
  core::importing::Choices choices;
  choices.layer = "2", choices.n_heads = 3, choices.ignored = {"all"};
  return {
      ApplyEdit{editing::SetCell{{MatrixName::embeddings, 0}, 1, 2, 0.1 + 0.2}},
      ApplyEdit{editing::SetBlock{{MatrixName::embeddings, 0}, 0, 1, block}},
      ApplyEdit{editing::RenameToken{0, 1, "a \"quoted\\ name\nwith é"}},
      ApplyEdit{editing::SetScale{{core::attention::ScaleRule::factor, 0.3}}},
      ApplyEdit{editing::SetSlidingWindow{{{2}, {}}}},
      ApplyEdit{editing::SetDocumentIds{{0, 0, 1, 1, 1, 1}}},
      ApplyEdit{editing::SetSoftcap{30.5}},
      ApplyEdit{editing::SwitchMaskCell{4, 1, false}},
      ApplyEdit{editing::OverrideValue{{Stage::scores, 0, 0, 3, 1}, -2.5}},
      ApplyEdit{editing::OverrideValue{{Stage::scores, 0, 0, 3, 1}, {}}},
      EndGesture{},
      ApplyEdit{editing::OverrideStage{{Stage::weights, {arma::mat(6, 6, arma::fill::eye)}}}},
      ApplyEdit{editing::ReplaceModel{model, "the first again"}},
      Undo{},
      Undo{},
      Redo{},
      PinCell{{Stage::scores, 0, 3, 1}},
      FollowCell{{Stage::queries, 0, 3, 1}},
      Zoom{{6, 6}, 2, 3, 0.5},
      Pan{{6, 6}, 0.25, -0.5},
      FoldStage{Stage::values},
      PinQuery{4},
      MoveEditCursor{MatrixName::embeddings, 2, 1},
      set<&Look::tab>(Tab::heads),
      set<&Look::heads_order>(core::attention::HeadMetric{}),
      set<&TokensLook::silent_heads>({0}),
      set<&TokensLook::hide_below>(0.125),
      set<&ColorChoice::typed_values>({-3, 4.5, 0}),
      set<&ColorChoice::locked>({{{{Stage::scores, 0}, {-1, 1, 0}}}}),
      set<&Settings::scale>(1.5f),
      set<&Forms::typed>(TypedField{"edit/name", "half \"typed", true, false}),
      set<&DrawForm::draw>({.seed = 7, .before = {{.first = 0.5, .shape = {2, 3}}}, .bias = true}),
      set<&ImportForm::choices>(choices),
      set<&LayersLook::token>(12),
      SetLearning{"",
                  "a \"text\"",
                  {.positions = core::training::PositionChoice::alibi, .rate = 0.1 + 0.2, .mistake = ""}},
      StepLearning{3},
      ToggleLearnedHead{1, 0},
      LearnOnFrom{20},
      set<&LearningLook::shown>(2),
      set<&LearningLook::head>({1, 0}),
      AddReference{},
      RenameReference{"before"},
      LoadPreset{"journey_causal"},
      CancelQuestion{},
      OpenPath{.path = "a/no such file.json"},
      ShowMessage{"", true},
      ExportAs{.form = ExportFormat::png, .matrix = {Stage::values, 0, 1, 2}, .path = "f.png"},
  };
}

TEST(Verbs, AreReadAsTheyWereWritten) {
  for (const Command& verb : some_verbs()) {
    const std::string line = to_text(verb);
    const Command read = parse_command(line);
    EXPECT_EQ(to_text(read), line);
    EXPECT_EQ(line.find('\n'), line.npos) << line;
  }
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const double number : {-0.0, 5e-324, infinity, -infinity, nan, -nan}) {
    const std::string line = to_text(Zoom{{6, 6}, number, 3, 0.5});
    EXPECT_EQ(to_text(parse_command(line)), line);
  }
  EXPECT_EQ(to_text(PinCell{{Stage::scores, 0, 1, 2}}), "PinCell scores 0 1 2");
  EXPECT_EQ(to_text(ShowDialog{Dialog::palette}), "ShowDialog palette");
  EXPECT_EQ(to_text(set<&Look::head>(3)), "SetField Look::head 3");
  EXPECT_EQ(to_text(set<&Look::large>(Stage::weights)), "SetField Look::large 1 weights");
}

TEST(Verbs, ThatAreDamagedAreRefused) {
  for (const char* line :
       {"", "Fly", "PinCell", "PinCell weights 2 x 3", "PinCell nonsense 0 1 2", "PinCell 14 0 1 2",
        "ShowDialog", "SetField Look::head", "SetField Look::nose 1", "SetField Settings::scale 1e39",
        "SetField Settings::scale 1.5x", "CopyText \"no end", "GoBack 1",
        "ApplyEdit SetBlock 0 0 0 0 999999999 999999999", "ImportTensors \"\" 0 0 \"\" 123456789012"})
    EXPECT_THROW(parse_command(line), core::Error) << line;
}

TEST(Verbs, OfARunDoTheSameAgain) {
  const support::TemporaryDirectory directory;
  const std::filesystem::path recording = directory / "recording";
  Store first;
  record(first, recording);
  for (const Command& verb : some_verbs()) {
    if (verb.get_if<ExportAs>()) continue;
    first.dispatch(verb);
    first.update();
    support::finish_reading(first);
    support::finish_working(first);
  }
  Store second;
  replay(second, recording);
  EXPECT_EQ(second.model(), first.model());
  EXPECT_NE(second.model(), Store().model());
  EXPECT_EQ(support::text_of_fields(second), support::text_of_fields(first));
  EXPECT_EQ(second.message().text, first.message().text);
  const auto a = first.document(), b = second.document();
  EXPECT_EQ(a.steps.undo_words, b.steps.undo_words);
  EXPECT_EQ(a.steps.redo_words, b.steps.redo_words);
  ASSERT_EQ(second.references().size(), 1u);
  EXPECT_EQ(second.references()[0].title, "before");
  while (first.document().steps.can_undo) first.dispatch(Undo{}), second.dispatch(Undo{});
  EXPECT_EQ(second.model(), first.model());
}

}  // namespace
}  // namespace app
