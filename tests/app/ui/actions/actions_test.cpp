// Every action, by menu, by key and by palette.
#include "app/ui/actions/actions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "app/session/navigation.hpp"
#include "app/session/remembered.hpp"
#include "app/ui/actions/finding.hpp"
#include "app/ui/actions/keys.hpp"
#include "core/editing/presets.hpp"
#include "tests/support/program.hpp"

namespace {

using app::Action;
using app::Key;
using app::KeyPress;
using app::Tab;
using core::attention::Stage;
using testing::IsEmpty;

app::Situation situation_of(const app::Store& store, const app::DocumentState& document) {
  const app::View& view = store.view();
  return {{store.model(), store.live().trace(), store.live().version(), view.look, view.selection},
          store.newest(),
          view.settings,
          view.forms,
          document,
          [] { return std::map<std::pair<Stage, std::size_t>, app::Ends>(); }};
}

void look(gui::Program& program, std::function<void(app::View&)> change) {
  program.store.dispatch(app::ChangeView{std::move(change)});
  program.run();
}

/// As wide within as without, with every bias, with dropout, a window and two documents.
void give_everything_that_can_go_wrong(gui::Program& program) {
  using namespace core::editing;
  program.edit(SetInputWidth{4});
  for (const auto& [part, name] :
       {std::pair{Part::query, MatrixName::query_bias}, std::pair{Part::key, MatrixName::key_bias},
        std::pair{Part::value, MatrixName::value_bias}, std::pair{Part::output, MatrixName::output_bias}}) {
    program.edit(SetBias{part, true});
    program.edit(SetCell{{name, 0}, 0, 1, 0.3});
  }
  program.edit(SetDropoutRate{0.5});
  program.edit(SetMaskWindow{{2, {}}});
  program.edit(SetDocuments{{0, 0, 0, 0, 1, 1}});
  program.edit(SetHiddenKeys{{{2}}});
}

/// Other keys than queries, the queries being the last of them or the first.
template <core::attention::MaskAlignment align>
void give_more_keys(gui::Program& program) {
  using namespace core::editing;
  const auto& model = program.store.model();
  core::attention::GivenStage keys{Stage::keys, {}};
  for (std::size_t h = 0; h < model.n_heads; ++h)
    keys.matrices.emplace_back(arma::mat(model.n_tokens() + 2, model.d_head(), arma::fill::ones));
  core::attention::GivenStage values{Stage::values, keys.matrices};
  program.edit(GiveStage{keys});
  program.edit(GiveStage{values});
  program.edit(SetMaskAlignment{align});
}

/// A program in which much can be done, and others in which the rest can.
using Start = void (*)(gui::Program&);
const Start starts[]{
    [](gui::Program& p) {
      p.store.recall({{"/nowhere/attention.json"}, {}});
      p.edit(core::editing::SetCausal{false});
      p.edit(core::editing::SetTraining{false});
      p.store.dispatch(app::Undo{});
      look(p, [](app::View& view) {
        app::pin(view, {Stage::weights, 0, 2, 1});
        app::follow(view, {Stage::scores, 0, 2, 1});
        app::zoom(view, {6, 6}, 2, 1, 0.5);
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
    [](gui::Program& p) { p.store.dispatch(app::StartLesson{"000"}), p.run(); },
    [](gui::Program& p) {
      p.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam", 1);
      p.store.dispatch(app::SwitchHead{0, 2});
      p.run();
    },
    [](gui::Program& p) {
      p.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg", 0);
      look(p, [](app::View& view) { view.look.tab = Tab::tokens; });
    },
    [](gui::Program& p) {
      look(p, [](app::View& view) {
        app::pin(view, {Stage::weights, 0, 2, 1});
        view.selection.presenting.on = true;
      });
    },
    give_everything_that_can_go_wrong,
    give_more_keys<core::attention::MaskAlignment::last>,
    give_more_keys<core::attention::MaskAlignment::first>,
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

/// All that an action can change, so that two programs can be compared.
struct Outcome {
  core::attention::Model model;
  std::string view, rest;
};

Outcome outcome(gui::Program& program) {
  program.run();
  const app::Store& store = program.store;
  const app::View& v = store.view();
  const app::DocumentState document = store.document();
  const auto list = [](const auto& all) {
    std::string words;
    for (const auto& one : all) words += std::to_string(static_cast<int>(one)) + " ";
    return words;
  };
  std::string rest = std::to_string(static_cast<int>(v.forms.dialog)) +
                     (v.settings.dark ? " dark " : " light ") + std::to_string(v.settings.scale) + " " +
                     std::to_string(v.settings.text_size) + " folded " + list(v.look.folded) + "zoomed " +
                     std::to_string(v.look.zoomed.size()) + " trail " +
                     std::to_string(v.selection.trail.size());
  for (const auto& [shape, part] : v.look.zoomed)
    rest += " " + std::to_string(part.left) + " " + std::to_string(part.right);
  rest += " maps " + std::to_string(static_cast<int>(v.look.colors.sequential)) + " " +
          std::to_string(static_cast<int>(v.look.colors.diverging)) + (v.look.colors.locked ? " locked" : "");
  rest += " copy " + std::to_string(static_cast<int>(v.settings.copy.extent)) + " " +
          std::to_string(v.settings.copy.form) + " " + std::to_string(v.settings.copy_decimals) + " typed " +
          (v.forms.typed ? v.forms.typed->field : "") + (v.selection.cursor ? " cursor" : "") + " given " +
          std::to_string(static_cast<int>(v.forms.given_stage)) + " tab " +
          std::to_string(static_cast<int>(v.look.tab));
  rest +=
      " lesson " +
      (v.selection.lesson ? v.selection.lesson->name + " " + std::to_string(v.selection.lesson->step) : "") +
      " kept " + std::to_string(store.references().size()) + (store.wants_to_quit() ? " quits" : "") +
      " of " + document.preset + " " + document.title + " says " + store.message().text;
  rest += " copied " + program.store.take_clipboard().value_or("nothing");
  return {store.model(), app::view_text(v), rest};
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
  program.type(app::found_actions({&action, 1}, "")[0].name);
  program.click("palette/" + action.id);
}

/// For each action of a menu the first start in which it can be done, where its keys mean it if possible.
std::map<std::string, Start> starts_of(const std::string& menu) {
  std::map<std::string, Start> by_key, anywhere;
  for (const Start start : starts) {
    const auto program = begin(start);
    const app::DocumentState document = program->store.document();
    const app::Situation situation = situation_of(program->store, document);
    for (const auto& subject : app::subjects())
      for (const Action& action : subject.menu == menu ? subject.actions(situation) : std::vector<Action>()) {
        if (!action.command) continue;
        anywhere.insert({action.id, nullptr});
        if (!why_not(action, situation).empty()) continue;
        if (!action.keys.empty() && action.here(situation.newest)) by_key.insert({action.id, start});
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
    if (id == "file/choose") continue;  // needs a file of tensors: the tests of importing have one
    EXPECT_TRUE(start) << "it can be done nowhere";
    if (!start) continue;
    auto program = begin(start);
    const app::DocumentState document = program->store.document();
    const auto all = app::actions(situation_of(program->store, document));
    const Action action = *app::find_action(all, id);
    by_palette(*program, action);
    const Outcome wanted = outcome(*program);
    program.reset();  // there is one Dear ImGui at a time
    if (!action.menu.empty()) {
      program = begin(start);
      by_menu(*program, action);
      expect_same(outcome(*program), wanted, "by menu");
      program.reset();
    }
    for (const KeyPress& key : action.keys) {
      program = begin(start);
      program->play(support::press(key));
      expect_same(outcome(*program), wanted, "by " + app::written(key));
      program.reset();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfMenu, EveryAction, testing::Values("File", "Edit", "View", "Lessons", "Help"),
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

TEST_F(Actions, ShareNoKeyInTheSamePlace) {
  const auto tabs = {Tab::stages, Tab::heads, Tab::tokens, Tab::compare, Tab::laboratory, Tab::layers};
  const auto rows = all();
  for (const Tab tab : tabs)
    for (const bool in_lesson : {false, true})
      for (const bool in_editor : {false, true}) {
        app::View view;
        view.look.tab = tab;
        if (in_lesson) view.selection.lesson = app::LessonPlace{"000"};
        if (in_editor) view.selection.cursor = app::EditCursor{};
        const app::Newest newest{program.store.model(), view.look, view.selection};
        std::map<std::string, std::string> seen;
        for (const Action& action : rows)
          for (const KeyPress& key : action.here(newest) ? action.keys : std::vector<KeyPress>()) {
            const auto [other, is_new] = seen.insert({app::written(key), action.id});
            EXPECT_TRUE(is_new) << app::written(key) << " is " << other->second << " and " << action.id;
          }
      }
}

TEST_F(Actions, CanBeFoundBesideTheMenus) {
  program.click("menu/File");
  EXPECT_TRUE(program.has("menu/file/choose")) << "what cannot be done is greyed, not hidden";
  EXPECT_EQ(why_not(*app::find_action(all(), "file/choose"), situation_of(program.store, document)),
            "the model was not made of a file of tensors");
}

TEST_F(Actions, FillTheKeySheet) {
  std::map<std::string, std::string> sheet;
  for (const auto& line : app::key_sheet(all())) sheet[line.words] = line.keys;
  EXPECT_EQ(sheet["Save"], "Ctrl+S");
  EXPECT_EQ(sheet["Redo"], "Ctrl+Y, Ctrl+Shift+Z");
  EXPECT_EQ(sheet["Show the first … ninth head"], "1 … 9");
  EXPECT_EQ(sheet["Pin a cell and walk over its neighbours"], "Shift+↑ ↓ ← →");
  EXPECT_EQ(sheet["Stages, Heads, Tokens, Compare, laboratory"], "Ctrl+1 … 5");
  EXPECT_EQ(sheet["Zoom in, out; or Ctrl and the wheel over a picture"], "+ −");
  EXPECT_EQ(sheet["Find any action, preset, stage, lesson or setting"], "Ctrl+Shift+P");
  EXPECT_EQ(sheet["This sheet"], "F1, ?");
  EXPECT_EQ(sheet["In the matrix: the next number"], "Tab");
}

TEST_F(Actions, LeaveMinusToTheMatrixEditor) {
  program.click("edit/cell/0/0");
  program.key(Key::minus);
  EXPECT_THAT(program.store.view().look.zoomed, IsEmpty()) << "it begins a number";
}

}  // namespace
