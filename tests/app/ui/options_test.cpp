// Every option of a model is shown: another value draws another popup, and a rule has other words in the
// summary.
#include <gtest/gtest.h>
#include <imgui.h>

#include <string>
#include <string_view>

#include "app/ui/panels/model/model_panel.hpp"
#include "core/editing/edit.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"

namespace {

using namespace core::attention;
using namespace core::positions;
using app::panels::additions_words;
using app::panels::mask_rules_words;

// Does not compile with another number of members: each needs a row in the tables below.
[[maybe_unused]] void unpack(const Additions& a, const Positions& p, const QueryKeyNorm& n, const Rotary& r,
                             const Scaling& s, const Relative& b, const Alibi& alibi_bias, const Mask& m) {
  [[maybe_unused]] const auto& [normalize, positions, softcap, score_bias, sink] = a;
  [[maybe_unused]] const auto& [rotary, alibi, relative] = p;
  [[maybe_unused]] const auto& [rule, query, key, epsilon, over] = n;
  [[maybe_unused]] const auto& [base, pairs, dimensions, first, scaling, inverse_frequencies] = r;
  [[maybe_unused]] const auto& [scaling_rule, factor, low, high, original, attention, truncate, factors] = s;
  [[maybe_unused]] const auto& [table, max_distance, bidirectional] = b;
  [[maybe_unused]] const auto& [slopes] = alibi_bias;
  [[maybe_unused]] const auto& [causal, method, empty_rows, cells, align, edge, large_negative, window,
                                prefix, documents, hidden_keys] = m;
}

/// Returns a random model of four heads of four columns, two KV heads, and every addition but one bias.
Model random_model(unsigned seed) {
  support::Random random(seed);
  Model m = core::editing::apply(support::model(random, 6, 8, 16, 4), core::editing::SetKvHeadCount{2});
  Additions& a = m.additions;
  a.normalize =
      QueryKeyNorm{NormRule::rms, support::matrix(random, 1, 4), support::matrix(random, 1, 4), 0.25};
  a.positions.rotary.emplace();
  a.positions.rotary->base = 2 + static_cast<double>(support::below(random, 50));
  a.positions.relative = support::relative(random, 4);
  a.softcap = 0.5 + static_cast<double>(support::below(random, 5));
  a.score_bias = {support::matrix(random, 6, 6)};
  a.sink = support::matrix(random, 1, 4);
  return m;
}

Model with_yarn(unsigned seed) {
  Model m = random_model(seed);
  m.additions.positions.rotary->scaling = {
      .rule = ScalingRule::yarn, .factor = 4, .low = 1, .high = 32, .original = 16, .attention = 1.25};
  return m;
}

/// Returns a model with ALiBi instead of T5's bias, and LongRoPE.
Model with_alibi_and_longrope(unsigned seed) {
  support::Random random(seed);
  Model m = random_model(seed);
  m.additions.positions.relative.reset();
  m.additions.positions.alibi.emplace();
  m.additions.positions.rotary->scaling = {.rule = ScalingRule::longrope, .original = 4, .attention = 1.5};
  m.additions.positions.rotary->scaling.factors = arma::mat(arma::abs(support::matrix(random, 2, 2)) + 0.5);
  return m;
}

struct Option {
  const char* name;
  bool in_summary;
  Model (*model)(unsigned seed);
  void (*change)(Model&);
};

Rotary& rotary(Model& m) {
  return *m.additions.positions.rotary;
}
Scaling& scaling(Model& m) {
  return rotary(m).scaling;
}

const std::vector<Option> additions{
    {"no KV heads", true, random_model,
     [](Model& m) { m = core::editing::apply(m, core::editing::SetKvHeadCount{4}); }},
    {"no norm", true, random_model, [](Model& m) { m.additions.normalize.reset(); }},
    {"norm rule", true, random_model, [](Model& m) { m.additions.normalize->rule = NormRule::layer; }},
    {"norm scope", true, random_model,
     [](Model& m) {
       auto& norm = *m.additions.normalize;
       norm.over = NormScope::all_heads, norm.query = arma::mat(1, 16, arma::fill::ones),
       norm.key = arma::mat(1, 8, arma::fill::ones);
     }},
    {"epsilon", false, random_model, [](Model& m) { m.additions.normalize->epsilon = 0.5; }},
    {"no rotary", true, random_model, [](Model& m) { m.additions.positions.rotary.reset(); }},
    {"base", false, random_model, [](Model& m) { rotary(m).base += 1; }},
    {"pairs", true, random_model, [](Model& m) { rotary(m).pairs = Pairs::neighbors; }},
    {"dimensions", false, random_model, [](Model& m) { rotary(m).dimensions = 2; }},
    {"first", false, random_model, [](Model& m) { rotary(m).first = -3; }},
    {"frequencies", false, random_model,
     [](Model& m) { rotary(m).inverse_frequencies = arma::mat(1, 2, arma::fill::ones); }},
    {"scaling rule", false, random_model, [](Model& m) { scaling(m).rule = ScalingRule::linear; }},
    {"factor", false, with_yarn, [](Model& m) { scaling(m).factor = 5; }},
    {"low", false, with_yarn, [](Model& m) { scaling(m).low = 2; }},
    {"high", false, with_yarn, [](Model& m) { scaling(m).high = 16; }},
    {"original", false, with_yarn, [](Model& m) { scaling(m).original = 64; }},
    {"attention", false, with_yarn, [](Model& m) { scaling(m).attention = 1.5; }},
    {"truncate", false, with_yarn, [](Model& m) { scaling(m).truncate = false; }},
    {"factors", false, with_alibi_and_longrope,
     [](Model& m) { scaling(m).factors = arma::mat(2, 2, arma::fill::ones); }},
    {"no relative bias", true, random_model, [](Model& m) { m.additions.positions.relative.reset(); }},
    {"buckets", true, random_model,
     [](Model& m) {
       m.additions.positions.relative->table = arma::mat(4, 12, arma::fill::zeros),
       m.additions.positions.relative->max_distance = 40;
     }},
    {"furthest", false, random_model, [](Model& m) { m.additions.positions.relative->max_distance += 1; }},
    {"directions", false, random_model,
     [](Model& m) { m.additions.positions.relative->bidirectional ^= true; }},
    {"no ALiBi", true, with_alibi_and_longrope, [](Model& m) { m.additions.positions.alibi.reset(); }},
    {"slopes", false, with_alibi_and_longrope,
     [](Model& m) { m.additions.positions.alibi->slopes = arma::mat(1, 4, arma::fill::ones); }},
    {"no softcap", true, random_model, [](Model& m) { m.additions.softcap.reset(); }},
    {"softcap", true, random_model, [](Model& m) { *m.additions.softcap += 1; }},
    {"no bias", true, random_model, [](Model& m) { m.additions.score_bias.clear(); }},
    {"bias per head", true, random_model,
     [](Model& m) { m.additions.score_bias.resize(4, m.additions.score_bias.front()); }},
    {"no sink", true, random_model, [](Model& m) { m.additions.sink.reset(); }},
};

const std::vector<Option> mask_rules{
    {"window", true, random_model,
     [](Model& m) {
       m.mask.window = {3, 0};
     }},
    {"prefix", true, random_model, [](Model& m) { m.mask.prefix = 2; }},
    {"documents", true, random_model, [](Model& m) { m.mask.documents = {0, 0, 0, 1, 1, 1}; }},
    {"padding", true, random_model, [](Model& m) { m.mask.hidden_keys = {{5}}; }},
    {"alignment", true, random_model, [](Model& m) { m.mask.align = MaskAlignment::first; }},
};

struct Options : testing::TestWithParam<unsigned> {
  gui::Panels ui{gui::draw_side_panels, {1600, 1400}};

  /// Returns the triangles of the open popup, relative to its corner.
  static std::string popup() {
    const ImDrawData& data = *ImGui::GetDrawData();
    for (int k = 0; k < data.CmdListsCount; ++k) {
      const ImDrawList& list = *data.CmdLists[k];
      if (!std::string_view(list._OwnerName).starts_with("##Popup") || list.VtxBuffer.empty()) continue;
      std::string drawn;
      const ImVec2 corner = list.VtxBuffer[0].pos;
      for (ImDrawVert v : list.VtxBuffer) {
        v.pos.x -= corner.x, v.pos.y -= corner.y;
        drawn.append(reinterpret_cast<const char*>(&v), sizeof v);
      }
      return drawn;
    }
    return "";
  }

  template <class Words>
  void expect_shown(const std::vector<Option>& options, const char* button, Words words) {
    for (const Option& option : options) {
      SCOPED_TRACE(option.name);
      Model model = option.model(GetParam());
      ui.show(model);
      if (popup().empty()) ui.click(button);
      ui.run(3);
      ASSERT_EQ(ui.model(), model);
      const std::string before = popup(), words_before = words(model);
      ASSERT_FALSE(before.empty());
      option.change(model);
      ui.show(model);
      ui.run(3);
      ASSERT_EQ(ui.model(), model);
      EXPECT_NE(popup(), before);
      EXPECT_EQ(words(model) != words_before, option.in_summary) << words(model);
    }
  }
};

TEST_P(Options, OfAdditionsAreShownInTheirPopupAndSummary) {
  expect_shown(additions, "model/more", [](const Model& m) { return additions_words(m, 0); });
}

TEST_P(Options, OfTheMaskAreShownInTheirPopupAndSummary) {
  expect_shown(mask_rules, "model/mask_more", [](const Model& m) { return mask_rules_words(m.mask, 0); });
}

INSTANTIATE_TEST_SUITE_P(RandomModels, Options, testing::Values(1u, 2u));

}  // namespace
