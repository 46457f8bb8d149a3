// Every action by menu, by key and by palette; how actions are found; the menus, the keys and the palette
// themselves.
#include "app/ui/actions/actions.hpp"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "app/session/navigation.hpp"
#include "app/session/remembered.hpp"
#include "core/editing/presets.hpp"
#include "tests/support/field_words.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"

namespace {

using app::Action;
using app::Key;
using app::KeyPress;
using app::Tab;
using core::attention::Stage;
using testing::ElementsAre;
using testing::IsEmpty;

app::ActionContext situation_of(const app::Store& store, const app::DocumentState& document) {
  const app::View& view = store.view();
  return {{{store.live().graph(), store.model(), store.live().trace()},
           store.live().stages(),
           store.live().version(),
           view.look,
           view.selection},
          store.pending(),
          view.settings,
          view.forms,
          document,
          [] { return std::map<std::pair<Stage, std::size_t>, app::ColorLimits>(); }};
}

void look(gui::Program& program, std::function<void(app::View&)> change) {
  support::look(program.store, std::move(change));
  program.run();
}

/// Sets equal input and projection widths, every bias, dropout, a sliding window, two documents and padding.
void learn(gui::Program& p) {
  core::training::TrainingSetup setup;
  setup.batch = 1, setup.n_steps = 2;  // it does not pause later
  p.store.dispatch(app::SetLearning{"previous-token", "", setup});
  p.run();
  p.store.dispatch(app::StepLearning{2});
  p.run();
}

void add_biases_and_mask_rules(gui::Program& program) {
  using namespace core::editing;
  program.edit(SetInputWidth{4});
  for (const auto& [part, name] : {std::pair{ProjectionName::query, MatrixName::query_bias},
                                   std::pair{ProjectionName::key, MatrixName::key_bias},
                                   std::pair{ProjectionName::value, MatrixName::value_bias},
                                   std::pair{ProjectionName::output, MatrixName::output_bias}}) {
    program.edit(SetBias{part, true});
    program.edit(SetCell{{name, 0}, 0, 1, 0.3});
  }
  program.edit(SetDropoutRate{0.5});
  program.edit(SetSlidingWindow{{2, {}}});
  program.edit(SetDocumentIds{{0, 0, 0, 0, 1, 1}});
  program.edit(SetPaddingMask{{{2}}});
}

/// Overrides keys and values with two more keys than queries, aligned to the last or the first keys.
template <core::attention::MaskAlignment align>
void override_more_keys(gui::Program& program) {
  using namespace core::editing;
  const auto& model = program.store.model();
  core::attention::GivenStage keys{Stage::keys, {}};
  for (std::size_t h = 0; h < model.n_heads; ++h)
    keys.matrices.emplace_back(arma::mat(model.n_tokens() + 2, model.d_head(), arma::fill::ones));
  core::attention::GivenStage values{Stage::values, keys.matrices};
  program.edit(OverrideStage{keys});
  program.edit(OverrideStage{values});
  program.edit(SetMaskAlignment{align});
}

/// Programs in which, taken together, every action is possible.
using Start = void (*)(gui::Program&);
const Start starts[]{
    [](gui::Program& p) {
      p.store.apply_settings({{"/nowhere/attention.json"}, {}});
      p.edit(core::editing::SetCausal{false});
      p.edit(core::editing::SetTraining{false});
      p.store.dispatch(app::Undo{});
      look(p, [](app::View& view) {
        app::PinCell{{Stage::weights, 0, 2, 1}}.change(view);
        app::FollowCell{{Stage::scores, 0, 2, 1}}.change(view);
        app::Zoom{{6, 6}, 2, 1, 0.5}.change(view);
      });
    },
    [](gui::Program& p) { look(p, [](app::View& view) { view.look.head = 1; }); },
    [](gui::Program& p) {
      p.store.dispatch(app::LoadPreset{"modern-rotary"});
      p.run();
    },
    [](gui::Program& p) {
      look(p, [](app::View& view) {
        view.look.tab = Tab::tokens;
        view.look.tokens.pinned_query = 3;
      });
    },
    [](gui::Program& p) {
      look(p, [](app::View& view) {
        view.look.tab = Tab::tokens;
        view.look.head = 1;
        view.settings.dark = false;
      });
    },
    [](gui::Program& p) { look(p, [](app::View& view) { view.look.tab = Tab::laboratory; }); },
    learn,
    [](gui::Program& p) { learn(p), p.store.dispatch(app::set<&app::LearningLook::shown>(1)), p.run(); },
    [](gui::Program& p) { learn(p), p.store.dispatch(app::OpenLearned{}), p.run(); },
    [](gui::Program& p) { p.store.dispatch(app::StartLesson{"000"}), p.run(); },
    [](gui::Program& p) {
      p.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam", 1);
      p.store.dispatch(app::ToggleLayerHead{0, 2});
      p.run();
    },
    [](gui::Program& p) {
      p.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam", 1);
      p.store.dispatch(app::SetPrompts{core::experiment::FirstPrompt{"egg fig"}, "egg jam"});
      p.run();
    },
    [](gui::Program& p) {
      p.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg", 0);
      look(p, [](app::View& view) { view.look.tab = Tab::tokens; });
    },
    [](gui::Program& p) {
      look(p, [](app::View& view) {
        app::PinCell{{Stage::weights, 0, 2, 1}}.change(view);
        view.selection.presentation.on = true;
      });
    },
    [](gui::Program& p) {
      look(p, [](app::View& view) { app::PinCell{{Stage::weights, 0, 2, 1}}.change(view); });
      p.store.dispatch(app::ShowGradient{core::graph::Target{Stage::output, 0, 2, 1}});
      p.run();
    },
    add_biases_and_mask_rules,
    override_more_keys<core::attention::MaskAlignment::last>,
    override_more_keys<core::attention::MaskAlignment::first>,
    [](gui::Program& program) {
      program.store.dispatch(app::LoadPreset{"000-causal"});
      look(program, [](app::View& v) { v.look.positions.decoded = 1; });
    },
};

std::unique_ptr<gui::Program> begin(Start start) {
  auto program = std::make_unique<gui::Program>(ImVec2(1600, 1400));
  start(*program);
  return program;
}

/// Everything that an action can change, for comparing two programs.
struct Outcome {
  core::attention::Model model;
  std::string view, rest;
};

Outcome outcome(gui::Program& program) {
  program.run();
  const app::Store& store = program.store;
  const app::View& v = store.view();
  const app::DocumentState document = store.document();
  std::ostringstream rest;
  const auto& colors = v.look.colors;
  rest << int(v.forms.dialog) << (v.settings.dark ? " dark " : " light ") << v.settings.scale << " "
       << v.settings.text_size << " folded";
  for (const Stage stage : v.look.folded) rest << " " << int(stage);
  rest << " zoomed";
  for (const auto& [shape, part] : v.look.zoomed) rest << " " << part.left << " " << part.right;
  rest << " trail " << v.selection.trail.size() << " maps " << int(colors.sequential) << " "
       << int(colors.diverging) << (colors.locked ? " locked" : "") << " copy " << int(v.settings.copy.scope)
       << " " << v.settings.copy.form << " " << v.settings.copy_decimals << " typed "
       << (v.forms.typed ? v.forms.typed->field : "") << (v.selection.cursor ? " cursor" : "") << " given "
       << int(v.forms.overridden_stage) << " tab " << int(v.look.tab) << " lesson ";
  if (v.selection.lesson) rest << v.selection.lesson->name << " " << v.selection.lesson->step;
  rest << " kept " << store.references().size() << (store.wants_to_quit() ? " quits" : "") << " of "
       << document.preset << " " << document.title << " says " << store.message().text << " copied "
       << program.store.take_clipboard().value_or("nothing");
  return {store.model(), app::view_text(v), rest.str()};
}

void expect_same(const Outcome& a, const Outcome& b, const std::string& which) {
  EXPECT_TRUE(a.model == b.model) << which;
  EXPECT_EQ(a.view, b.view) << which;
  EXPECT_EQ(a.rest, b.rest) << which;
}

void by_menu(gui::Program& program, const Action& action) {
  for (std::size_t end = 0; end != action.menu.npos;) {
    end = action.menu.find('/', end + 1);
    program.click("menu/" + action.menu.substr(0, end));
  }
  program.click("menu/" + action.id);
}

void by_palette(gui::Program& program, const Action& action) {
  program.play(support::press({Key::p, true, true}));
  program.type(app::search_actions({&action, 1}, "")[0].name);
  program.click("palette/" + action.id);
}

/// Returns, per action of a menu, the first start that allows it, preferably also by its keys.
std::map<std::string, Start> starts_of(const std::string& menu) {
  std::map<std::string, Start> by_key, anywhere;
  for (const Start start : starts) {
    const auto program = begin(start);
    const app::DocumentState document = program->store.document();
    const app::ActionContext context = situation_of(program->store, document);
    for (const auto& top_level_menu : app::top_level_menus())
      for (const Action& action :
           top_level_menu.menu == menu ? top_level_menu.actions(context) : std::vector<Action>()) {
        if (!action.command) continue;
        anywhere.insert({action.id, nullptr});
        if (!disabled_reason(action, context).empty()) continue;
        if (!action.keys.empty() && action.keys_apply(context.pending)) by_key.insert({action.id, start});
        if (!anywhere[action.id]) anywhere[action.id] = start;
      }
  }
  by_key.merge(anywhere);
  return by_key;
}

struct EveryAction : testing::TestWithParam<const char*> {};

TEST_P(EveryAction, DoesTheSameByMenuKeyAndPalette) {
  const auto all_starts = starts_of(GetParam());
  ASSERT_FALSE(all_starts.empty());
  for (const auto& [id, start] : all_starts) {
    SCOPED_TRACE(id);
    if (id == "file/choose" || id == "lesson/new") continue;  // need a file: their tests have one
    EXPECT_TRUE(start) << "it can be done nowhere";
    if (!start) continue;
    auto program = begin(start);
    const app::DocumentState document = program->store.document();
    const auto all = app::actions(situation_of(program->store, document));
    const Action action = *app::find_action(all, id);
    by_palette(*program, action);
    const Outcome wanted = outcome(*program);
    program.reset();  // only one Dear ImGui context at a time
    if (!action.menu.empty()) {
      program = begin(start);
      by_menu(*program, action);
      expect_same(outcome(*program), wanted, "by menu");
      program.reset();
    }
    for (const KeyPress& key : action.keys) {
      program = begin(start);
      program->play(support::press(key));
      expect_same(outcome(*program), wanted, "by " + app::key_text(key));
      program.reset();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfMenu, EveryAction,
                         testing::Values("File", "Edit", "View", "Model", "Compare", "Lessons", "Help"),
                         [](const auto& menu) { return std::string(menu.param); });

struct Actions : testing::Test {
  gui::Program program;
  app::DocumentState document = program.store.document();
  std::vector<Action> all() const { return app::actions(situation_of(program.store, document)); }
};

TEST_F(Actions, HaveEachANameOfItsOwn) {
  std::set<std::string> seen;
  for (const Action& action : all()) EXPECT_TRUE(seen.insert(action.id).second) << action.id;
}

TEST_F(Actions, UseTheTermsOfTheField) {
  for (const Action& action : all())
    for (const std::string& text : {action.title, action.about, action.sheet_text})
      EXPECT_EQ(support::nonstandard_phrase(text), "") << action.id << ": " << text;
}

TEST_F(Actions, ShareNoKeyInTheSamePlace) {
  const auto tabs = {Tab::stages,     Tab::heads,  Tab::tokens, Tab::compare,
                     Tab::laboratory, Tab::layers, Tab::learn};
  const auto rows = all();
  for (const Tab tab : tabs)
    for (const bool in_lesson : {false, true})
      for (const bool in_editor : {false, true}) {
        app::View view;
        view.look.tab = tab;
        if (in_lesson) view.selection.lesson = app::LessonPlace{"000"};
        if (in_editor) view.selection.cursor = app::EditCursor{};
        const app::Pending newest{program.store.model(), view.look, view.selection};
        std::map<std::string, std::string> seen;
        for (const Action& action : rows)
          for (const KeyPress& key : action.keys_apply(newest) ? action.keys : std::vector<KeyPress>()) {
            const auto [other, is_new] = seen.insert({app::key_text(key), action.id});
            EXPECT_TRUE(is_new) << app::key_text(key) << " is " << other->second << " and " << action.id;
          }
      }
}

TEST_F(Actions, CanBeFoundBesideTheMenus) {
  program.click("menu/File");
  EXPECT_TRUE(program.has("menu/file/choose")) << "what cannot be done is greyed, not hidden";
  EXPECT_EQ(disabled_reason(*app::find_action(all(), "file/choose"), situation_of(program.store, document)),
            "the model was not made of a file of tensors");
}

TEST_F(Actions, FillTheKeySheet) {
  std::map<std::string, std::string> sheet_text;
  for (const auto& line : app::key_sheet(all())) sheet_text[line.words] = line.keys;
  EXPECT_EQ(sheet_text["Save"], "Ctrl+S");
  EXPECT_EQ(sheet_text["Redo"], "Ctrl+Y, Ctrl+Shift+Z");
  EXPECT_EQ(sheet_text["Select head 0 … 8"], "1 … 9");
  EXPECT_EQ(sheet_text["This list of keys"], "F1, ?");
  EXPECT_GT(sheet_text.size(), 40u);
}

TEST_F(Actions, ListTheKeysOfTheMatrixUnderTheirOwnHeading) {
  std::map<std::string, std::vector<std::string>> by_heading;
  for (const auto& line : app::key_sheet(all())) by_heading[line.menu].push_back(line.words);
  EXPECT_THAT(by_heading["In the matrix"], testing::Contains("Type a number"));
  EXPECT_EQ(by_heading["In the matrix"].size(), 5u);
  EXPECT_THAT(by_heading["View"], testing::Contains("Layers of a whole model"));
}

struct Match {
  const char *query, *text;
  std::optional<std::vector<std::size_t>>
      highlighted;  ///< indices of matching bytes, or nullopt without a match
};

TEST(FuzzyMatch, FindsLettersInTheirOrderAndSaysWhichTheyAre) {
  using Lit = std::vector<std::size_t>;
  for (const Match& m : {Match{"vs", "Save", {}},  // 's' comes before 'v'
                         {"saves", "Save", {}},
                         {"a", "", {}},
                         {"é", "e", {}},
                         {"150 scale", "Scale: 125 %", {}},
                         {"150 scale", "Scale: 150 %", Lit{0, 1, 2, 3, 4, 7, 8, 9}},  // words in any order
                         {"shst", "Shown stages", Lit{0, 1, 6, 7}},
                         {"in", "Zoom in", Lit{5, 6}},
                         {"op", "Zoom, one part", Lit{6, 10}},  // starts of two words
                         {"SAVE", "save", Lit{0, 1, 2, 3}},
                         {"√d", "1/√d", Lit{2, 3, 4, 5}},
                         {"  ", "Save", Lit{}}}) {
    const auto match = app::fuzzy_match(m.query, m.text);
    ASSERT_EQ(match.has_value(), m.highlighted.has_value()) << m.query << " in " << m.text;
    if (match) {
      EXPECT_TRUE(std::ranges::equal(match->highlighted, *m.highlighted)) << m.query << " in " << m.text;
    }
  }
}

TEST(FuzzyMatch, ScoresStartsOfWordsAndLettersSideBySideHigher) {
  struct Better {
    const char *query, *better, *worse;
  };
  for (const auto& [query, better, worse] :
       {Better{"co", "Compare", "Scores"}, Better{"s", "Row sums", "Tokens"},
        Better{"rs", "Row sums", "Large stage of heads, first"},
        Better{"st", "Stages", "Show a mistake: mask transposed"},
        Better{"out", "Zoom out", "Only unpinned tokens"}, Better{"ken", "Tokens", "Make open"}})
    EXPECT_GT(app::fuzzy_match(query, better)->score, app::fuzzy_match(query, worse)->score) << query;
}

std::vector<std::string> found(const std::string& query, const char* menu,
                               std::initializer_list<const char*> titles) {
  std::vector<Action> all;
  for (const char* title : titles) {
    Action action;
    action.id = action.title = title, action.menu = menu;
    action.command = [](const app::ActionContext&) { return std::vector<app::Command>(); };
    all.push_back(action);
  }
  all.push_back(all.back());
  all.back().command = {};  // not possible
  std::vector<std::string> names;
  for (const auto& row : app::search_actions(all, query)) names.push_back(row.name);
  return names;
}

TEST(FoundActions, HaveTheBestFirstAndElseTheOrderOfTheTable) {
  const auto titles = {"tops", "xst", "Step", "other", "Stop"};
  EXPECT_THAT(found("st", "View", titles), ElementsAre("Step", "Stop", "xst"));
  EXPECT_THAT(found("", "View", titles), ElementsAre("tops", "xst", "Step", "other", "Stop"));
  EXPECT_THAT(found("scale 150", "View/Scale", {"150 %"}), ElementsAre("Scale: 150 %")) << "by the menu too";
}

struct MenusAndKeys : testing::Test {
  gui::Panels ui{gui::draw_side_panels};
};

TEST_F(MenusAndKeys, ChangeTheModelAndTheView) {
  ui.key(Key::c);
  EXPECT_FALSE(ui.model().mask.causal);
  ui.key(Key::d);
  EXPECT_FALSE(ui.model().dropout.training);
  ui.key(Key::t);
  EXPECT_FALSE(ui.view().settings.dark);
}

TEST_F(MenusAndKeys, ChooseHeadsThatExist) {
  for (const auto& [key, head] : {std::pair{Key::digit_2, 1u},
                                  {Key::digit_3, 1u},
                                  {Key::bracket_right, 1u},
                                  {Key::bracket_left, 0u},
                                  {Key::bracket_left, 0u}}) {
    ui.key(key);
    EXPECT_EQ(ui.view().look.head, head) << "there are two heads";
  }
}

TEST_F(MenusAndKeys, AskForFilesAndSteps) {
  ui.key(Key::s, {.ctrl = true});
  EXPECT_EQ(ui.view().forms.dialog, app::Dialog::save_as) << "a preset has no file yet";
  ui.key(Key::escape);
  ui.key(Key::z, {.ctrl = true});
  EXPECT_TRUE(ui.asked<app::Undo>().empty()) << "there is nothing to undo";
  ui.key(Key::c);
  ui.key(Key::z, {.ctrl = true});
  EXPECT_TRUE(ui.model().mask.causal);
  ui.key(Key::z, {.ctrl = true, .shift = true});
  EXPECT_FALSE(ui.model().mask.causal);
  ui.key(Key::z, {.ctrl = true});
  ui.key(Key::y, {.ctrl = true});
  EXPECT_FALSE(ui.model().mask.causal);
  ui.key(Key::q, {.ctrl = true});
  EXPECT_EQ(ui.asked<app::Quit>().size(), 1u);
}

TEST_F(MenusAndKeys, LeaveKeysToWhoeverHasTheKeyboard) {
  ui.click("model/tokens");
  ui.key(Key::c);
  ui.key(Key::t);
  EXPECT_TRUE(ui.model().mask.causal);
  EXPECT_TRUE(ui.view().settings.dark);
  ui.click("edit/cell/0/0");
  ui.key(Key::digit_2);
  EXPECT_EQ(ui.view().look.head, 0u);
  ui.key(Key::escape);
  ui.click("edit/cell/0/0");
  ui.key(Key::minus);
  EXPECT_THAT(ui.view().look.zoomed, IsEmpty()) << "it begins a number";
}

TEST_F(MenusAndKeys, CopyTheCellUnderTheEditCursorElseThePinnedOne) {
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{Stage::embeddings, 0, 0, 0}; });
  ui.key(Key::c, {.ctrl = true});
  ui.show(core::editing::apply(ui.model(), core::editing::SetCell{{}, 2, 1, 0.1}));
  ui.click("edit/cell/2/1");
  ui.key(Key::c, {.ctrl = true});
  const auto copied = ui.asked<app::CopyText>();
  ASSERT_EQ(copied.size(), 2u);
  EXPECT_EQ(copied[0].text, "0.4300000071525574");
  EXPECT_EQ(copied[1].text, "0.1");
}

TEST_F(MenusAndKeys, CopyAMatrixInTheFormThatIsChosenAndRememberIt) {
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{Stage::mask, 0, 1, 0}; });
  ui.key(Key::c, {.ctrl = true, .shift = true});
  for (const char* name : {"menu/Edit", "menu/Edit/Copy as", "menu/Edit/Copy as/Row", "menu/copy/row/latex"})
    ui.click(name);
  ui.key(Key::c, {.ctrl = true, .shift = true});
  for (const char* name : {"menu/Edit", "menu/Edit/Copy as", "menu/copy/program"}) ui.click(name);
  const auto copied = ui.asked<app::CopyText>();
  ASSERT_EQ(copied.size(), 4u);
  EXPECT_TRUE(copied[0].text.starts_with("1\t0\t0\t0\t0\t0\n1\t1\t0"));
  EXPECT_EQ(copied[1].text,
            "\\begin{bmatrix}\n  1.000 & 1.000 & 0.000 & 0.000 & 0.000 & 0.000\n\\end{bmatrix}\n");
  EXPECT_EQ(copied[2].text, copied[1].text);
  EXPECT_NE(copied[3].text.find("import torch"), std::string::npos);
}

TEST_F(MenusAndKeys, ReleaseWithEscapeTheCursorFirstThenThePinnedCell) {
  ui.click("edit/cell/2/1");
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{}; });
  ui.key(Key::escape);
  EXPECT_FALSE(ui.view().selection.cursor.has_value());
  EXPECT_TRUE(ui.view().selection.pinned.has_value());
  ui.key(Key::escape);
  EXPECT_FALSE(ui.view().selection.pinned.has_value());
}

TEST_F(MenusAndKeys, BringTheKeyboardIntoTheMatrix) {
  ui.key(Key::e);
  ui.key(Key::right);
  ui.key(Key::delete_);
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{0, 1}));
  EXPECT_EQ((*ui.model().sequences[0].embeddings)(0, 1), 0);
}

TEST_F(MenusAndKeys, OpenAndCloseTheSheetThatListsThemAll) {
  ui.key(Key::slash, {.shift = true});
  EXPECT_EQ(ui.view().forms.dialog, app::Dialog::keys);
  ui.run();
  EXPECT_TRUE(ui.has("dialog/keys/0"));
  EXPECT_TRUE(ui.has("dialog/keys/40"));
  ui.key(Key::c);
  EXPECT_TRUE(ui.model().mask.causal) << "keys rest behind a dialog";
  ui.type("undo");
  EXPECT_TRUE(ui.has("dialog/keys/0"));
  EXPECT_FALSE(ui.has("dialog/keys/3")) << "it can be searched";
  ui.key(Key::escape);
  EXPECT_EQ(ui.view().forms.dialog, app::Dialog::none);
}

TEST_F(MenusAndKeys, OpenARecentFile) {
  ui.store.apply_settings({.recent = {"/somewhere/first.json", "/elsewhere/second.json"}, .progress = {}});
  for (const char* name : {"menu/File", "menu/File/Open recent", "menu/recent/1"}) ui.click(name);
  ASSERT_EQ(ui.asked<app::OpenPath>().size(), 1u);
  EXPECT_EQ(ui.asked<app::OpenPath>()[0].path, "/elsewhere/second.json");
}

struct ActionPalette : testing::Test {
  gui::Program program;
  ActionPalette() { open(); }
  void open() { program.play(support::press({Key::p, true, true})); }
  const app::View& view() const { return program.store.view(); }
  /// Types into the field of the palette, and presses Enter.
  void ask(const std::string& text) {
    program.type(text);
    program.key(Key::enter);
    program.run(4);
  }
};

TEST_F(ActionPalette, DoesTheChosenLineOnEnter) {
  ask("zoom");
  EXPECT_EQ(view().forms.dialog, app::Dialog::none);
  EXPECT_EQ(view().look.zoomed.size(), 1u);
  program.key(Key::t);
  EXPECT_FALSE(view().settings.dark) << "closed, it leaves keys to the window";
}

TEST_F(ActionPalette, GoesThroughItsLinesByKeys) {
  const auto expect_after = [&](std::initializer_list<Key> keys, std::size_t line) {
    for (const Key key : keys) program.key(key);
    EXPECT_EQ(view().forms.search.line, line);
  };
  program.type("e");  // without a text only a few likely actions are listed
  expect_after({Key::down, Key::down, Key::up}, 1);
  expect_after({Key::up, Key::up}, 0);
  expect_after({Key::page_down}, 13);
  expect_after({Key::page_down}, 26);
  EXPECT_TRUE(program.has("palette/line/26")) << "the list follows";
  EXPECT_FALSE(program.has("palette/line/1"));
  program.type("f");
  EXPECT_EQ(view().forms.search.line, 0u) << "another text, another list";
}

TEST_F(ActionPalette, StaysWhereWhatIsChosenCannotBeDoneOrNothingIsFound) {
  ask("redo");
  EXPECT_EQ(view().forms.dialog, app::Dialog::palette);
  program.type("x");
  EXPECT_EQ(view().forms.search.text, "redox") << "the field has the keyboard again, its caret at the end";
  ask("qqq");
  EXPECT_FALSE(program.has("palette/line/0"));
  EXPECT_EQ(view().forms.dialog, app::Dialog::palette);
}

TEST_F(ActionPalette, ClosesOnEscapeOrAClickElsewhereAndDoesNothing) {
  program.type("light");
  program.key(Key::escape);
  EXPECT_EQ(view().forms.dialog, app::Dialog::none);
  EXPECT_TRUE(view().settings.dark);
  open();
  EXPECT_EQ(view().forms.search.text, "");
  program.click("model/causal");
  EXPECT_EQ(view().forms.dialog, app::Dialog::none);
  EXPECT_TRUE(program.store.model().mask.causal);
}

TEST_F(ActionPalette, ReachesPresetsLessonsStagesAndSettings) {
  using Sought = std::pair<const char*, const char*>;
  for (const auto& [text, id] :
       {Sought{"scale 150", "palette/scale/150"}, Sought{"maximize weights", "palette/large/weights"},
        Sought{"glossary", "palette/help/glossary"}, Sought{"eleven", "palette/lessons/000"},
        Sought{"new step by", "palette/new/000-causal"}}) {
    program.key(Key::escape);
    open();
    program.type(text);
    EXPECT_TRUE(program.has(id)) << text;
  }
}

TEST_F(ActionPalette, PutsWhatIsPossibleBeforeWhatIsNotOfTheSameName) {
  ask("rotary");  // a view for models with RoPE, and a lesson
  ASSERT_NE(program.store.lesson(), nullptr);
  EXPECT_EQ(program.store.lesson()->lesson->name, "positions");
}

}  // namespace
