// Layout of the window and of its popups: every preset, five sizes and three scales, read back from the
// triangles.
#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <functional>
#include <optional>
#include <regex>
#include <set>
#include <thread>
#include <utility>

#include "app/session/full_model_reading.hpp"
#include "core/base/number.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/stages.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/support/drawn_texts.hpp"
#include "tests/support/field_words.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace {

using core::attention::Stage;
using core::attention::StageInfo;
using support::DrawnText;

const std::array<ImVec2, 5> sizes{ImVec2{1024, 700}, {1280, 800}, {1600, 1000}, {1920, 1080}, {2560, 1440}};
constexpr std::array scales{1.0f, 1.5f, 2.0f};

bool lies_in(const DrawnText& t, const app::Rect& r) {
  const ImVec2 middle{(t.min.x + t.max.x) / 2, (t.min.y + t.max.y) / 2};
  return middle.x > r.min.x && middle.x < r.max.x && middle.y > r.min.y && middle.y < r.max.y;
}

/// Returns whether the visible parts of two texts overlap by more than a pixel.
bool overlap(const DrawnText& a, const DrawnText& b) {
  const auto low = [](float x, float y, float s, float t) { return std::max({x, y, s, t}); };
  const auto high = [](float x, float y, float s, float t) { return std::min({x, y, s, t}); };
  const float width = high(a.max.x, b.max.x, a.clip.z, b.clip.z) - low(a.min.x, b.min.x, a.clip.x, b.clip.x);
  const float height = high(a.max.y, b.max.y, a.clip.w, b.clip.w) - low(a.min.y, b.min.y, a.clip.y, b.clip.y);
  return width > 1 && height > 1;
}

std::string words_of(const DrawnText& t) {
  return "\"" + t.text + "\" at " + std::to_string(std::lround(t.min.x)) + "," +
         std::to_string(std::lround(t.min.y));
}

/// Returns the number of decimals of a number with a decimal point, or −1 for any other text.
int decimals_of(const std::string& text) {
  static const std::regex number("(−)?[0-9]*\\.([0-9]+)");
  std::smatch found;
  return std::regex_match(text, found, number) ? static_cast<int>(found[2].length()) : -1;
}

/// Returns how many decimals the numbers of a matrix have, up to 4.
int decimals_in(const arma::mat& numbers) {
  const arma::vec finite = numbers.elem(arma::find_finite(numbers));
  const double unit = core::text::unit_for(finite.is_empty() ? 0 : arma::abs(finite).max());
  std::size_t most = 0;
  for (const double v : finite) {
    char digits[64];
    const std::string_view text(
        digits, static_cast<std::size_t>(std::snprintf(digits, sizeof digits, "%.4f", v / unit)));
    most = std::max(most, text.find_last_not_of('0') - text.find('.'));
  }
  return static_cast<int>(most);
}

bool overlap(const DrawnText& t, const app::Rect& r) {
  return t.max.x > r.min.x + 1 && t.min.x < r.max.x - 1 && t.max.y > r.min.y + 1 && t.min.y < r.max.y - 1;
}

struct Window : testing::Test {
  gui::Program ui{sizes[0]};
  std::optional<support::TextReader> reader;
  float scale = 0;
  std::size_t pages = 0, maps_with_numbers = 0, texts_of_edit = 0, bars = 0,
              controls = 0;  ///< checked so far
  std::string where;         ///< preset, size and scale, for messages

  void SetUp() override { ui.screen.has_fonts = true; }

  void show(const std::string& name, ImVec2 size, float at_scale) {
    where = name + " " + std::to_string(std::lround(size.x)) + "×" + std::to_string(std::lround(size.y)) +
            " at " + std::to_string(at_scale).substr(0, 3);
    ImGui::GetIO().DisplaySize = size;
    support::look(ui.store, [at_scale](app::View& v) { v.settings.scale = at_scale; });
    ui.run(4);
    if (std::exchange(scale, at_scale) != at_scale) reader.emplace();
  }

  void expect_no_overlaps(const std::vector<DrawnText>& texts) const {
    std::vector<const DrawnText*> sorted;
    for (const DrawnText& t : texts) sorted.push_back(&t);
    std::ranges::sort(sorted, {}, [](const DrawnText* t) { return t->min.y; });
    for (std::size_t a = 0; a < sorted.size(); ++a)
      for (std::size_t b = a + 1; b < sorted.size() && sorted[b]->min.y < sorted[a]->max.y; ++b)
        if (overlap(*sorted[a], *sorted[b]))
          ADD_FAILURE() << where << ": " << words_of(*sorted[a]) << " covers " << words_of(*sorted[b]);
  }

  /// Fails for texts cut at the left or right, except where the window scrolls sideways.
  void expect_nothing_cut(const std::vector<DrawnText>& texts) const {
    const auto edit = ui.landmarks().find("region/edit");
    for (const DrawnText& t : texts) {
      const bool seen = t.max.y > t.clip.y && t.min.y < t.clip.w && t.max.x > t.clip.x && t.min.x < t.clip.z;
      if (!seen || (edit && lies_in(t, *edit)) || scrolls_sideways(t)) continue;
      if (t.min.x < t.clip.x - 1 || t.max.x > t.clip.z + 1)
        ADD_FAILURE() << where << ": " << words_of(t) << " is cut";
    }
  }

  /// Half of a row could be read as other numbers.
  void expect_rows_of_edit_are_whole(const std::vector<DrawnText>& texts) {
    const auto numbers = ui.landmarks().find("edit/numbers");
    if (!numbers) return;
    if (ui.rect("region/model").max.y > ui.rect("region/edit").min.y) return;  // it scrolls with MODEL
    for (const DrawnText& t : texts) {
      const bool inside = t.min.x >= numbers->min.x && t.max.x <= numbers->max.x && t.max.y > numbers->min.y;
      if (!inside || t.min.y > numbers->max.y) continue;
      ++texts_of_edit;
      if (t.max.y > std::min(numbers->max.y, t.clip.w) + 1)
        ADD_FAILURE() << where << ": EDIT cuts " << words_of(t);
    }
  }

  bool scrolls_sideways(const DrawnText& t) const {
    const auto strip = ui.landmarks().find("region/stages");
    return strip && ui.has("strip/wider") && t.clip.x >= strip->min.x - 1 && t.clip.y >= strip->min.y - 1 &&
           t.clip.z <= strip->max.x + 1;
  }

  void expect_tabs_are_free() const {
    for (const auto& [name, tab] : ui.landmarks().all()) {
      if (!name.starts_with("tabs/")) continue;
      for (const auto& [other, button] : ui.landmarks().all())
        if (other.starts_with("view/") && button.min.x < tab.max.x && button.max.x > tab.min.x &&
            button.min.y < tab.max.y && button.max.y > tab.min.y)
          ADD_FAILURE() << where << ": " << other << " stands over " << name;
    }
  }

  /// What is drawn in the view bar is as wide as measured.
  void expect_bar_is_as_measured(const std::vector<DrawnText>& texts) {
    const auto bar = ui.landmarks().find("view/controls");
    if (!bar) return;  // they are in a menu
    float left = bar->max.x, right = bar->min.x, tabs = 0;
    for (const auto& [name, rect] : ui.landmarks().all()) {
      if (name.starts_with("tabs")) tabs = std::max(tabs, rect.max.x);
      if (!name.starts_with("view/") || name == "view/controls") continue;
      left = std::min(left, rect.min.x), right = std::max(right, rect.max.x);
    }
    for (const DrawnText& t : texts)
      if (t.min.x > tabs && t.max.x < bar->max.x && t.min.y > bar->min.y && t.max.y < bar->max.y)
        left = std::min(left, t.min.x);
    const float bearing = 2 * scale;  // of the first letter
    EXPECT_NEAR(left, bar->min.x, bearing) << where;
    EXPECT_NEAR(right, bar->max.x, 0.5f) << where;
    ++bars;
  }

  /// A text of a form is beside its controls, or in one of them.
  void expect_labels_beside_controls(const std::vector<DrawnText>& texts, const std::string& prefix) {
    for (const auto& [name, control] : ui.landmarks().all()) {
      if (!name.starts_with(prefix)) continue;
      ++controls;
      for (const DrawnText& t : texts)
        if (overlap(t, control) && (std::max(t.min.x, t.clip.x) < control.min.x - 1 ||
                                    std::min(t.max.x, t.clip.z) > control.max.x + 1))
          ADD_FAILURE() << where << ": " << words_of(t) << " lies under " << name;
    }
  }

  /// Returns the decimals in each fully visible map, by name; maps without numbers are not included.
  std::map<std::string, int> decimals(const std::vector<DrawnText>& texts) const {
    std::map<std::string, int> found;
    const auto view = ui.rect("region/stages");
    const auto& trace = ui.store.live().trace();
    for (const StageInfo& stage : core::attention::stages()) {
      const std::string name = std::string("strip/") + stage.name;
      const auto map = ui.landmarks().find(name);
      if (!map || map->min.y < view.min.y || map->max.y > view.max.y || map->max.x > view.max.x) continue;
      std::set<int> of_map;
      std::vector<const DrawnText*> numbers;
      for (const DrawnText& t : texts)
        if (lies_in(t, *map)) {
          numbers.push_back(&t);
          if (const int d = decimals_of(t.text); d >= 0) of_map.insert(d);
        }
      const int has = decimals_in(*trace.at(stage.stage, 0));
      EXPECT_LE(of_map.size(), 1u) << where << ": " << name << " has numbers of several counts of decimals";
      if (!of_map.empty()) {
        found[name] = *of_map.begin();
        EXPECT_GE(found[name], std::min(has, 1)) << where << ": " << name;
        EXPECT_LE(found[name], has) << where << ": " << name << " shows decimals that it does not have";
      }
      expect_room_between(numbers, name);
    }
    return found;
  }

  void expect_room_between(const std::vector<const DrawnText*>& numbers, const std::string& name) const {
    for (const DrawnText* a : numbers)
      for (const DrawnText* b : numbers)
        if (a != b && b->min.x >= a->min.x && std::abs(a->min.y - b->min.y) < 4) {
          if (b->min.x - a->max.x < 1)  // cells have their own backgrounds, and a line between them
            ADD_FAILURE() << where << ": " << name << ": " << words_of(*a) << " and " << words_of(*b)
                          << " touch";
        }
  }

  /// Scrolls through the strip, checks every page, and returns the decimals of its maps.
  std::map<std::string, int> all_decimals() {
    std::map<std::string, int> found;
    const auto view = ui.rect("region/stages");
    ui.play(support::move_to({view.max.x - 3, view.min.y + 2}));
    for (int page = 0; page < 40; ++page) {
      const std::vector<DrawnText> texts = reader->texts();
      expect_no_overlaps(texts);
      expect_nothing_cut(texts);
      for (const auto& [name, count] : decimals(texts)) found[name] = count;
      ++pages;
      const float before = ui.rect("strip/" + first_stage()).min.y;
      support::InputFrame turn;
      turn.wheel = -4;
      ui.play({turn});
      if (ui.rect("strip/" + first_stage()).min.y == before) break;
    }
    return found;
  }

  /// Scrolls until the top of a map of the strip is in the upper half of the view.
  void reach(const std::string& map) {
    const auto view = ui.rect("region/stages");
    ui.play(support::move_to({view.max.x - 3, view.min.y + 2}));
    support::InputFrame turn;
    for (turn.wheel = 100; turn.wheel != 0; turn.wheel = 0) ui.play({turn});  // to the top
    turn.wheel = -0.5f;
    float before = -1;
    for (int page = 0; page < 200; ++page) {
      const float top = ui.has(map) ? ui.rect(map).min.y : view.max.y + static_cast<float>(page);
      if (top < view.min.y + (view.max.y - view.min.y) / 2 || top == before) break;
      before = top;
      ui.play({turn});
    }
  }

  /// Returns the number of maps in the row of a map of the strip.
  std::ptrdiff_t maps_beside(const std::string& name) const {
    return std::ranges::count_if(core::attention::stages(), [&](const StageInfo& stage) {
      const auto other = ui.landmarks().find(std::string("strip/") + stage.name);
      return other && other->min.y == ui.rect(name).min.y;
    });
  }

  std::string first_stage() const {
    for (const StageInfo& stage : core::attention::stages())
      if (ui.has(std::string("strip/") + stage.name)) return stage.name;
    return "";
  }
};

/// A larger window may have more maps in a row instead of more decimals, and fewer rows instead of more than
/// two.
TEST_F(Window, HasRoomForEveryTextAndNeverFewerDecimalsWhenItIsLarger) {
  for (std::size_t s = 0; s < scales.size(); ++s)
    for (std::size_t p = 0; p < core::editing::presets().size(); ++p) {
      if ((s + p) % scales.size() != 0) continue;  // each preset at one scale, in every size
      const auto& preset = core::editing::presets()[p];
      std::map<std::string, std::pair<int, std::ptrdiff_t>> before;  // decimals, and maps in the row
      float width_before = 0;  // of the strip, which in the narrowest window has no inspector beside it
      for (const ImVec2 size : sizes) {
        if (ui.store.document().preset != preset.name) ui.store.dispatch(app::LoadPreset{preset.name});
        show(preset.name, size, scales[s]);
        expect_tabs_are_free();
        expect_bar_is_as_measured(reader->texts());
        if (size.y >= 460 * scales[s])  // smaller ones have no room for a row
          expect_rows_of_edit_are_whole(reader->texts());
        const auto now = all_decimals();
        if (const float width = ui.rect("region/stages").width(); std::exchange(width_before, width) > width)
          before.clear();
        for (const auto& [name, count] : now) {
          const std::ptrdiff_t in_row = maps_beside(name);
          const auto same = before.find(name);
          if (same != before.end() && in_row <= same->second.second) {
            EXPECT_GE(count, std::min(same->second.first, 2))
                << where << ": " << name << " had more in a smaller window";
          }
          before[name] = {count, in_row};
        }
        maps_with_numbers += now.size();
      }
    }
  EXPECT_GT(pages, sizes.size() * core::editing::presets().size()) << "small windows scroll";
  EXPECT_GT(texts_of_edit, 10 * core::editing::presets().size());
  EXPECT_GT(bars, 2 * core::editing::presets().size());
  EXPECT_GT(maps_with_numbers, 4 * sizes.size() * core::editing::presets().size());
}

/// View with content, and the region that it fills.
struct ViewCase {
  const char* name;
  const char* region;
  void (*show)(gui::Program&);
};

void load(gui::Program& ui, const char* preset, const std::function<void(app::View&)>& look) {
  ui.store.dispatch(app::LoadPreset{preset});
  support::look(ui.store, look);
}

const std::array view_cases{
    ViewCase{"two heads", "region/heads",
             [](gui::Program& ui) { load(ui, "multi-head", [](auto& v) { v.look.tab = app::Tab::heads; }); }},
    ViewCase{
        "eight heads", "region/heads",
        [](gui::Program& ui) { load(ui, "modern-alibi", [](auto& v) { v.look.tab = app::Tab::heads; }); }},
    ViewCase{"tokens", "region/tokens",
             [](gui::Program& ui) {
               load(ui, "001-multi-head",
                    [](auto& v) { v.look.tab = app::Tab::tokens, v.look.tokens.pinned_query = 3; });
             }},
    ViewCase{"large", "region/stages",
             [](gui::Program& ui) {
               load(ui, "multi-head", [](auto& v) {
                 v.look.tab = app::Tab::stages, v.look.large = Stage::weights;
                 v.selection.pinned = app::CellRef{Stage::weights, 0, 3, 1};
               });
             }},
    ViewCase{"rotary positions", "region/stages",
             [](gui::Program& ui) {
               load(ui, "modern-rotary",
                    [](auto& v) { v.look.tab = app::Tab::stages, v.look.large = Stage::rotated_queries; });
             }},
    ViewCase{"laboratory", "region/laboratory",
             [](gui::Program& ui) {
               load(ui, "004-causal-dropout", [](auto& v) { v.look.tab = app::Tab::laboratory; });
             }},
    ViewCase{"layers", "region/layers",
             [](gui::Program& ui) {
               ui.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam fig and egg jam f", 2);
             }},
    ViewCase{"lesson", "region/lesson",
             [](gui::Program& ui) {
               ui.store.dispatch(app::StartLesson{core::lessons::lessons().front().name});
               ui.run(3);
               for (int step = 0; step < 5; ++step) ui.store.dispatch(app::StepLesson{1});
             }},
    ViewCase{"compare", "region/compare", [](gui::Program& ui) {
               ui.store.dispatch(app::LeaveLesson{});
               load(ui, "004-causal-dropout", [](auto& v) { v.look.tab = app::Tab::compare; });
               ui.store.dispatch(app::AddReference{});
               ui.edit(core::editing::SetScale{{core::attention::ScaleRule::none}});
               ui.edit(core::editing::SetCausal{false});
             }}};

const std::array named_words{"The", "cat", "because", "running", "mice", "an", "house", "inside"};

core::attention::Model words_of(std::size_t n_tokens, std::size_t n_heads) {
  support::Random random(static_cast<unsigned>(n_tokens + n_heads));
  core::attention::Model model = support::model(random, n_tokens, 8, 4 * n_heads, n_heads);
  for (std::size_t i = 0; i < n_tokens; ++i)
    model.sequences.front().tokens[i] = named_words[i % named_words.size()];
  return model;
}

float x_of(ImVec2 at) {
  return at.x;
}

float y_of(ImVec2 at) {
  return at.y;
}

/// Returns how many of n rows or columns have a label: a text with its center on the line along one axis,
/// ending before the map along the other, at most `most` pixels away.
std::size_t named_lines(const std::vector<DrawnText>& texts, std::size_t n, float from, float to, float edge,
                        float most, float (*along)(ImVec2), float (*end)(ImVec2)) {
  std::set<long> lines;
  for (const DrawnText& t : texts) {
    const float middle = (along(t.min) + along(t.max)) / 2;
    if (end(t.max) < edge && end(t.max) > edge - most && middle > from && middle < to)
      lines.insert(std::lround(std::floor((middle - from) / (to - from) * static_cast<float>(n))));
  }
  return lines.size();
}

std::size_t named_rows(const std::vector<DrawnText>& texts, const app::Rect& map, std::size_t n) {
  return named_lines(texts, n, map.min.y, map.max.y, map.min.x, 220, &y_of, &x_of);
}

std::size_t named_columns(const std::vector<DrawnText>& texts, const app::Rect& map, std::size_t n) {
  return named_lines(texts, n, map.min.x, map.max.x, map.min.y + 1, 90, &x_of, &y_of);
}

TEST_F(Window, NamesRowsAndColumnsOfAnyNumberOfTokensAndHeadsInEverySize) {
  const std::array<ImVec2, 3> screens{ImVec2{1280, 800}, {1600, 1000}, {1920, 1080}};
  std::size_t looked_at = 0;
  for (const std::size_t n_tokens : {6u, 14u, 24u, 100u, 1000u})
    for (const std::size_t n_heads : {1u, 2u, 12u, 24u}) {
      ui.edit(core::editing::ReplaceModel{words_of(n_tokens, n_heads)});
      support::settle(ui.store, [&] { ui.run(1); });
      for (const float at : scales)
        for (const ImVec2 size : screens) {
          for (const auto& [tab, map] : {std::pair{app::Tab::stages, "strip/scores"},
                                         {app::Tab::stages, "strip/weights"},
                                         {app::Tab::heads, "heads/0"}}) {
            support::look(ui.store, [tab](app::View& v) { v.look.tab = tab; });
            show(std::to_string(n_tokens) + " tokens, " + std::to_string(n_heads) + " heads, " + map, size,
                 at);
            if (tab == app::Tab::stages) reach(map);
            const std::vector<DrawnText> texts = reader->texts();
            expect_no_overlaps(texts);
            expect_nothing_cut(texts);
            expect_tabs_are_free();
            if (!ui.has(map)) {
              ADD_FAILURE() << where << " is not there";
              continue;
            }
            const std::size_t few = std::min<std::size_t>(n_tokens / 2, 4);
            EXPECT_GE(named_rows(texts, ui.rect(map), n_tokens), few) << where;
            EXPECT_GE(named_columns(texts, ui.rect(map), n_tokens), std::min<std::size_t>(few, 2)) << where;
            ++looked_at;
          }
        }
    }
  EXPECT_GT(looked_at, 400u);
}

/// Writes a GPT-2 checkpoint of random numbers.
void write_random_gpt2(const support::TemporaryDirectory& folder, std::size_t n_layers, std::size_t n_heads) {
  const std::size_t d = 8 * n_heads, n_vocabulary = 1024, n_context = 64;
  std::string header;
  std::vector<float> numbers;
  support::Random random(5);
  const auto add = [&](const std::string& name, std::vector<std::size_t> shape, float at = 0) {
    std::size_t n = 1;
    std::string sides;
    for (const std::size_t k : shape) n *= k, sides += (sides.empty() ? "" : ",") + std::to_string(k);
    header += (header.empty() ? "{\"" : ",\"") + name + "\":{\"dtype\":\"F32\",\"shape\":[" + sides +
              "],\"data_offsets\":[" + std::to_string(4 * numbers.size()) + "," +
              std::to_string(4 * (numbers.size() + n)) + "]}";
    for (; n > 0; --n) numbers.push_back(at + 0.2f * static_cast<float>(support::number(random)));
  };
  add("wte.weight", {n_vocabulary, d}), add("wpe.weight", {n_context, d});
  for (std::size_t l = 0; l < n_layers; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    for (const char* norm : {"ln_1", "ln_2"}) add(h + norm + ".weight", {d}, 1), add(h + norm + ".bias", {d});
    add(h + "attn.c_attn.weight", {d, 3 * d}), add(h + "attn.c_attn.bias", {3 * d});
    add(h + "attn.c_proj.weight", {d, d}), add(h + "attn.c_proj.bias", {d});
    add(h + "mlp.c_fc.weight", {d, 4 * d}), add(h + "mlp.c_fc.bias", {4 * d});
    add(h + "mlp.c_proj.weight", {4 * d, d}), add(h + "mlp.c_proj.bias", {d});
  }
  add("ln_f.weight", {d}, 1), add("ln_f.bias", {d});
  header += "}";
  const std::uint64_t length = header.size();
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header;
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  std::ofstream(folder / "config.json")
      << R"({"model_type": "gpt2", "n_ctx": 64, "n_positions": 64, "vocab_size": 1024, "n_layer": )"
      << n_layers << R"(, "n_head": )" << n_heads << R"(, "n_embd": )" << d << "}";
  std::filesystem::copy(FIXTURES "/../../assets/examples/tiny_gpt/tokenizer.json", folder / "tokenizer.json");
}

TEST_F(Window, NamesTheHeadsOfAllLayersInEverySize) {
  const support::TemporaryDirectory folder;
  write_random_gpt2(folder, 12, 12);
  const std::string text = "egg jam fig and egg jam f";
  std::size_t looked_at = 0;
  for (const auto& [model, n] : {std::pair{std::string(FIXTURES "/../../assets/examples/tiny_gpt"), 4},
                                 {folder.path().string(), 12}}) {
    ui.store.open(model, text, 1);
    support::settle(ui.store, [&] { ui.run(1); });
    for (const float at : scales)
      for (const ImVec2 size : {ImVec2{1280, 800}, {1600, 1000}, {1920, 1080}}) {
        show(std::to_string(n) + " layers", size, at);
        const std::vector<DrawnText> texts = reader->texts();
        expect_no_overlaps(texts);
        expect_nothing_cut(texts);
        expect_tabs_are_free();
        const auto view = ui.rect("region/layers");
        std::set<std::string> seen;
        for (const DrawnText& t : texts)
          if (lies_in(t, view)) seen.insert(t.text);
        if (n == 12) {
          EXPECT_TRUE(ui.has("layers/alone")) << where << ": its names stand beside it";
        }
        EXPECT_TRUE(seen.contains("·f")) << where << ": the token that is predicted from";
        EXPECT_TRUE(ui.has("next/probability")) << where;
        ++looked_at;
      }
  }
  EXPECT_GE(looked_at, 10u);
}

TEST_F(Window, HasRoomForEveryTextInEveryView) {
  std::size_t regions = 0;
  for (std::size_t k = 0; k < view_cases.size(); ++k) {
    const ViewCase& view = view_cases[k];
    view.show(ui);
    ui.run(4);
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      const float at = scales[(k + s) % scales.size()];
      if (sizes[s].x < 1000 * at) continue;  // smaller windows scroll the panels next to the view
      show(view.name, sizes[s], at);
      const std::vector<DrawnText> texts = reader->texts();
      EXPECT_GT(texts.size(), 30u) << where;
      expect_no_overlaps(texts);
      expect_nothing_cut(texts);
      expect_tabs_are_free();
      expect_bar_is_as_measured(texts);
      EXPECT_TRUE(ui.has(view.region)) << where;
      ++regions;
    }
  }
  EXPECT_GT(regions, 2 * view_cases.size());
}

/// A form in a popup or a dialog, and the beginning of its landmarks.
struct FormCase {
  const char* name;
  const char* prefix;
  void (*open)(gui::Program&);
};

void show_import(gui::Program& ui, const char* file, app::ImportAs as) {
  ui.store.dispatch(app::OpenPath{std::string(FIXTURES) + file});
  ui.run(3);
  ui.store.dispatch(app::set<&app::ImportForm::as>(as));
}

const std::array form_cases{
    FormCase{"additions", "more/",
             [](gui::Program& ui) {
               load(ui, "modern-llama", [](auto&) {});
               ui.run(3);
               ui.click("model/more");
             }},
    FormCase{"rules of the mask", "mask/",
             [](gui::Program& ui) {
               load(ui, "modern-llama", [](auto&) {});
               ui.run(3);
               ui.click("model/mask_more");
             }},
    FormCase{"colors", "colours/",
             [](gui::Program& ui) {
               load(ui, "multi-head", [](auto& v) {
                 v.look.tab = app::Tab::stages, v.look.colors.range = app::ColorRangeRule::typed;
               });
               ui.run(3);
               ui.click(ui.has("view/range") ? "view/range" : "view/menu");
             }},
    FormCase{"controls of Heads", "view/",
             [](gui::Program& ui) {
               load(ui, "modern-llama", [](auto& v) { v.look.tab = app::Tab::heads; });
               ui.run(3);
               if (ui.has("view/menu")) ui.click("view/menu");
             }},
    FormCase{"initialize", "draw/",
             [](gui::Program& ui) { ui.store.dispatch(app::ShowDialog{app::Dialog::draw_model}); }},
    FormCase{"fill", "fill/",
             [](gui::Program& ui) { ui.store.dispatch(app::ShowDialog{app::Dialog::fill}); }},
    FormCase{
        "a layer of a file", "import/",
        [](gui::Program& ui) { show_import(ui, "/checkpoints/gpt2.safetensors", app::ImportAs::layer); }},
    FormCase{
        "projections of a file", "import/",
        [](gui::Program& ui) { show_import(ui, "/checkpoints/gpt2.safetensors", app::ImportAs::by_hand); }},
    FormCase{"stages of a file", "import/", [](gui::Program& ui) {
               show_import(ui, "/checkpoints/gpt2.safetensors", app::ImportAs::stages);
             }}};

TEST_F(Window, HasNoLabelUnderAControlInAnyForm) {
  std::size_t forms = 0;
  for (std::size_t k = 0; k < form_cases.size(); ++k)
    for (std::size_t s = 0; s < 4; ++s) {
      const float at = scales[(k + s) % scales.size()];
      if (sizes[s].x < 1000 * at) continue;  // narrower ones do not have room for dialogs
      show(form_cases[k].name, sizes[s], at);
      const auto texts_with_form = [&] {
        form_cases[k].open(ui);
        ui.run(4);
        return reader->texts();
      };
      const auto close = [&] {
        ui.store.dispatch(app::ShowDialog{app::Dialog::none});
        for (int level = 0; level < 2; ++level) ui.key(app::Key::escape);
        ui.run(4);
      };
      texts_with_form();
      close();
      const auto covered = reader->texts();
      auto texts = texts_with_form();
      std::erase_if(texts, [&](const DrawnText& t) {
        return std::ranges::any_of(covered, [&](const DrawnText& c) {
          return c.text == t.text && c.min.x == t.min.x && c.min.y == t.min.y;
        });
      });
      if (const auto code = ui.landmarks().find("draw/torch"))  // it scrolls sideways
        std::erase_if(texts, [&](const DrawnText& t) { return lies_in(t, *code); });
      forms += !texts.empty();
      expect_no_overlaps(texts);
      expect_nothing_cut(texts);
      expect_labels_beside_controls(texts, form_cases[k].prefix);
      close();
    }
  EXPECT_GT(forms, form_cases.size());
  EXPECT_GT(controls, 10 * forms);
}

/// Labels, messages and lessons use the terms of the field.
TEST_F(Window, DrawsNoWordsOfItsOwnForWhatTheFieldHasATermFor) {
  std::size_t read = 0;
  const auto expect_terms = [&](const std::string& name) {
    show(name, {1920, 1080}, 1);
    for (const DrawnText& t : reader->texts())
      EXPECT_EQ(support::nonstandard_phrase(t.text), "") << where << ": " << t.text;
    read += reader->texts().size();
  };
  for (const auto& preset : core::editing::presets()) {
    ui.store.dispatch(app::LoadPreset{preset.name});
    expect_terms(preset.name);
  }
  for (const ViewCase& view : view_cases) {
    view.show(ui);
    expect_terms(view.name);
  }
  for (const auto& lesson : core::lessons::lessons()) {
    const auto expect_words = [&](const std::string& text) {
      EXPECT_EQ(support::nonstandard_phrase(text), "") << lesson.name << ": " << text;
    };
    expect_words(lesson.title), expect_words(lesson.about);
    for (const auto& step : lesson.steps)
      for (const std::string& text : {step.title, step.text, step.try_it, step.seen}) expect_words(text);
  }
  for (const auto& term : core::lessons::glossary())
    EXPECT_EQ(support::nonstandard_phrase(term.word + ": " + term.meaning), "") << term.word;
  EXPECT_GT(read, 5000u);
}

TEST_F(Window, SaysOfAHeadTheSameOnItsMapAndBesideIt) {
  ImGui::GetIO().DisplaySize = {1600, 1000};
  ui.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam fig and egg jam f", 2);
  for (ui.run(1); !ui.store.pending().reading->random_roles(); ui.run(1)) std::this_thread::yield();
  for (std::size_t head = 0; head < 4; ++head) {
    support::look(ui.store, [head](app::View& v) { v.look.head = head; });
    ui.run(3);
    reader.emplace();
    const auto view = ui.rect("region/layers");
    std::set<std::string> on_maps, beside;
    for (const DrawnText& t : reader->texts())
      if (t.text.starts_with("induction ")) (t.min.x < view.max.x ? on_maps : beside).insert(t.text);
    EXPECT_EQ(on_maps.size(), 4u) << "four heads of layer 2 copy what followed";
    ASSERT_EQ(beside.size(), 1u) << head;
    EXPECT_TRUE(on_maps.contains(*beside.begin())) << *beside.begin();
  }
}

/// Page up and down change the layer, without moving the keyboard focus over the controls.
TEST_F(Window, LeavesPageUpAndDownToTheLayers) {
  ImGui::GetIO().DisplaySize = {1600, 1000};
  ui.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam fig and egg jam f", 2);
  ui.run(3);
  ui.key(app::Key::page_up);
  EXPECT_EQ(ui.store.pending().full_model->experiment.layer, 1u);
  EXPECT_FALSE(ImGui::GetIO().NavVisible);
}

/// The last step of a lesson is followed by the name of the next one, however long that is.
TEST_F(Window, HasRoomForTheKeysAtTheEndOfEveryLesson) {
  std::size_t ends = 0;
  for (const auto& lesson : core::lessons::lessons()) {
    if (!lesson.model.empty() || lesson.trains()) continue;  // these read a model first
    ui.store.dispatch(app::StartLesson{lesson.name});
    for (std::size_t step = 1; step < lesson.steps.size(); ++step) ui.store.dispatch(app::StepLesson{1});
    for (const ImVec2 size : {sizes[0], sizes[1], sizes[2]}) {
      where = std::string(lesson.name) + " " + std::to_string(std::lround(size.x));
      ImGui::GetIO().DisplaySize = size;
      ui.run(4);
      reader.emplace();
      expect_nothing_cut(reader->texts());
      const auto leave = ui.rect("lesson/leave"), region = ui.rect("region/lesson");
      EXPECT_LE(leave.max.x, region.max.x) << where;
      ++ends;
    }
  }
  EXPECT_GT(ends, 30u);
}

/// Escape closes only the menu: the pinned cell and the lesson stay.
TEST_F(Window, LeavesEscapeAndArrowsToAnOpenMenu) {
  ImGui::GetIO().DisplaySize = {1600, 1000};
  const auto has_menu = [] {
    return ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  };
  const app::CellRef cell{Stage::weights, 0, 1, 0};
  ui.store.dispatch(app::StartLesson{core::lessons::lessons().front().name});
  support::look(ui.store, [&](app::View& v) { v.selection.pinned = cell; });
  ui.run(3);
  ui.click("menu/View");
  ASSERT_TRUE(has_menu());
  ui.key(app::Key::right);
  EXPECT_EQ(ui.store.lesson()->step, 0u);
  if (!has_menu()) ui.click("menu/View");
  for (int k = 0; k < 3 && has_menu(); ++k) ui.key(app::Key::escape);
  EXPECT_FALSE(has_menu());
  ASSERT_NE(ui.store.lesson(), nullptr);
  EXPECT_EQ(ui.store.view().selection.pinned, cell);
  ui.key(app::Key::escape);
  EXPECT_NE(ui.store.view().selection.pinned, cell);
}

}  // namespace
