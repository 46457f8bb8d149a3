// The rules on made-up text: each rule finds what it is there to find, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rules/includes_rule.hpp"
#include "tests/rules/listing_rule.hpp"
#include "tests/rules/size_rule.hpp"
#include "tests/rules/state_rule.hpp"

namespace tests::rules {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

struct Case {
  const char* file;
  const char* line;
};

TEST(IncludesRule, ForbidsWhatPointsUpOrPastADoor) {
  for (const Case& c : std::vector<Case>{
           {"core/attention/model.hpp", "#include \"app/state/view.hpp\""},
           {"core/error.hpp", "#include <imgui.h>"},
           {"core/formats/writers/csv.cpp", "#include <epoxy/gl.h>"},
           {"core/editing/edit.cpp", "#  include <GLFW/glfw3.h>"},
           {"core/attention/attend.cpp", "#include \"core/editing/edit.hpp\""},
           {"core/attention/attend.cpp", "#include \"core/formats/writers/csv.hpp\""},
           {"core/random/generator.cpp", "#include \"core/attention/model.hpp\""},
           {"app/state/view.hpp", "#include <imgui.h>"},
           {"app/state/view.hpp", "#include \"app/work/jobs.hpp\""},
           {"app/store/store.cpp", "#include <imgui.h>"},
           {"app/store/store.cpp", "#include \"app/render/painter.hpp\""},
           {"app/command_line/batch.cpp", "#include \"app/ui/frame.hpp\""},
           {"app/ui/panels/heads/heads_panel.cpp", "#include \"app/store/store.hpp\""},
           {"app/ui/panels/heads/heads_panel.cpp", "#include \"core/attention/attend.hpp\""},
           {"app/ui/panels/heads/heads_panel.cpp", "#include <epoxy/gl.h>"},
           {"app/ui/widgets/heatmap/heatmap_view.cpp", " #include <GLFW/glfw3.h>"},
           {"app/ui/widgets/heatmap/heatmap_view.cpp", "#include \"app/ui/panels/heads/heads_panel.hpp\""},
           {"app/window/loop.cpp", "#include <epoxy/gl.h>"},
           {"app/render/heatmap_renderer.cpp", "#include <GLFW/glfw3.h>"},
           {"app/theme/theme.cpp", "#include <imgui_internal.h>"},
           {"app/theme/theme.cpp", "#include \"theme.hpp\""},
           {"app/main.cpp", "#include \"tests/support/fixture.hpp\""},
           {"app/newcomer/room.cpp", "#include <string>"},
           {"app/theme/theme.cpp", "#include \"app/newcomer/room.hpp\""},
       })
    EXPECT_THAT(forbidden_includes({{c.file, c.line}}), SizeIs(1)) << c.file << " " << c.line;
}

TEST(IncludesRule, AllowsWhatPointsDown) {
  for (const Case& c : std::vector<Case>{
           {"core/attention/model.hpp",
            "#include <armadillo>\n#include <vector>\n#include \"core/matrix/shared_matrix.hpp\""},
           {"core/random/generator.cpp",
            "#include \"core/random/generator.hpp\"\n#include \"core/error.hpp\"\n#include <cmath>"},
           {"app/render/shader_program.cpp", "#include \"shaders.hpp\"\n#include <epoxy/gl.h>"},
           {"app/platform/window.cpp", "#include <GLFW/glfw3.h>"},
           {"app/ui/panels/heads/heads_panel.cpp",
            "// #include \"app/store/store.hpp\"\n/*\n#include <epoxy/gl.h>\n*/"},
       })
    EXPECT_THAT(forbidden_includes({{c.file, c.line}}), IsEmpty()) << c.file;
}

TEST(IncludesRule, NamesFileLineAndReason) {
  EXPECT_THAT(forbidden_includes({{"core/error.hpp", "#pragma once\n\n#include <imgui.h>\n"}}),
              ElementsAre("core/error.hpp:3: includes imgui.h: core does not know imgui"));
}

TEST(LibraryRule, FindsASecondUserAHeaderAndATest) {
  const std::string line = "#include <nlohmann/json.hpp>\n";
  EXPECT_THAT(misplaced_library({{"core/a.cpp", line}, {"core/b.cpp", line}}, "nlohmann/"),
              ElementsAre("core/b.cpp: includes nlohmann/: so does core/a.cpp, and one is enough"));
  EXPECT_THAT(misplaced_library({{"core/a.hpp", line}}, "nlohmann/"), SizeIs(1));
  EXPECT_THAT(misplaced_library({{"tests/core/a_test.cpp", line}}, "nlohmann/"), SizeIs(1));
  EXPECT_THAT(misplaced_library({{"core/a.cpp", line}, {"tests/support/fixture.cpp", line}}, "nlohmann/"),
              IsEmpty());
}

TEST(StateRule, FindsStaticsThatCanChange) {
  EXPECT_THAT(mutable_statics("void f() {\n  static int n = 0;\n}\n"), ElementsAre(2));
  EXPECT_THAT(mutable_statics("void f() {\n  if (x) {\n    static std::string s(\"a\");\n  }\n}\n"),
              ElementsAre(3));
  EXPECT_THAT(mutable_statics("void f() {\n  auto g = [] { static bool b{}; };\n}\n"), ElementsAre(2));
  EXPECT_THAT(mutable_statics("void f() { static const char* p = nullptr; }"), ElementsAre(1));
  EXPECT_THAT(mutable_statics("template <class T>\nT f(T t) {\n  static T u(t);\n}"), ElementsAre(3));
  EXPECT_THAT(mutable_statics("void f() { thread_local int n; }"), ElementsAre(1));
  EXPECT_THAT(mutable_statics("namespace a {\nstatic int n;\n}"), ElementsAre(2));
  EXPECT_THAT(mutable_statics("struct A {\n  static inline int n = f();\n};"), ElementsAre(2));
}

TEST(StateRule, LeavesConstantsFunctionsAndWordsAlone) {
  for (const char* text : {
           "void f() { static constexpr int n = 1; static const std::vector<int> v{1, 2}; }",
           "void f() { static const char* const p = \"x\"; }",
           "struct A { static A make(int n); static constexpr int n = 0; };",
           "static int helper(int n) { return n; }",
           "void f() { auto n = static_cast<int>(x); int nonstatic = 1; }",
           "// static int n;\nvoid f() { g(\"static int n;\"); /* static int n; */ }",
           "const char* s = R\"(void f() { static int n; })\";",
       })
    EXPECT_THAT(mutable_statics(text), IsEmpty()) << text;
}

TEST(SizeRule, CountsWhatATypeOffers) {
  struct Expected {
    const char* text;
    std::size_t members, functions;
  };
  for (
      const Expected& e : std::vector<Expected>{
          {"struct A { int a, b = f(1, 2); std::vector<std::pair<int, int>> c{1, 2}; };", 3, 0},
          {"class A { int a; void f(); };", 0, 0},
          {"class A { public: explicit A(int n) : n_(n) {} int n() const { return n_; } private: int n_; };",
           0, 2},
          {"struct A { std::function<void(int)> f; int (*g)(int) = nullptr; };", 2, 0},
          {"struct A { enum class B { x, y }; using C = int; friend bool operator==(const A&, const A&) = default; };",
           0, 0},
          {"struct A : B<int> { bool operator()(int a, int b) const; A& operator=(A&&); };", 0, 2},
          {"struct A { struct B; B* b; template <class T> T get() const; static A of(int, int); };", 1, 2},
          {"struct A { int a[3]; std::array<int, 2> b; // int c;\n };", 2, 0},
      }) {
    const auto sizes = type_sizes(e.text);
    ASSERT_THAT(sizes, SizeIs(1)) << e.text;
    EXPECT_EQ(sizes[0].members, e.members) << e.text;
    EXPECT_EQ(sizes[0].functions, e.functions) << e.text;
  }
  EXPECT_THAT(type_sizes("struct A { struct B { int b; }; int a; }; enum class C { x }; struct D;"),
              SizeIs(2));
}

TEST(ListingRule, FindsASourceThatNoListNames) {
  const std::vector<File> sources{
      {"core/a/x.cpp", ""}, {"core/a/y.cpp", ""}, {"core/b/x.cpp", ""}, {"tests/s/main.cpp", ""}};
  const std::vector<File> lists{
      {"core/a/CMakeLists.txt", "target_sources(t PRIVATE x.cpp)  # y.cpp comes later\n"},
      {"tests/CMakeLists.txt", "add_executable(t s/main.cpp)\n"}};
  EXPECT_THAT(unlisted_sources(sources, lists), ElementsAre("core/a/y.cpp", "core/b/x.cpp"));
}

TEST(LengthRule, FindsFilesThatAreTooLong) {
  EXPECT_THAT(longer_than({{"a.cpp", "1\n2\n3\n"}, {"b.cpp", "1\n2\n"}}, 2), ElementsAre("a.cpp: 3 lines"));
}

}  // namespace
}  // namespace tests::rules
