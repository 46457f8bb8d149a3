#include "app/cli/arguments.hpp"
#include "core/base/version.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace app {
namespace {

std::string usage_error(std::vector<std::string> arguments) {
  const CommandLine result = parse_arguments(std::move(arguments));
  const auto* wrong = std::get_if<UsageError>(&result);
  return wrong ? wrong->message : "no usage error";
}

/// Returns the command parsed from words.
template <class Command>
Command parsed(std::vector<std::string> words) {
  return std::get<Command>(parse_arguments(std::move(words)));
}

/// Splits a line into words like a shell that only understands double quotes.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ' ' && !quoted)
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

TEST(Settings, OfAttentionAreReadForFilesOfTensors) {
  const auto said_of = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"session", "t.npz", "--out", "s.json"});
    return parsed<WriteSession>(more).choices.settings;
  };
  for (const char* pairs : {"neighbors", "neighbours"})  // as in help and as in sessions
    EXPECT_EQ(said_of({"--rope", std::string("1e4,") + pairs}).rotary->pairs,
              core::positions::Pairs::neighbors);
  const auto said = said_of(
      {"--no-causal", "--scale", "0.5", "--rope", "500000,neighbours,4", "--window", "3", "--kv-heads", "2"});
  EXPECT_EQ(said.causal, false);
  EXPECT_EQ(said.scale, 0.5);
  EXPECT_EQ(said.rotary->base, 500000);
  EXPECT_EQ(said.rotary->pairs, core::positions::Pairs::neighbors);
  EXPECT_EQ(said.rotary->dimensions, 4u);
  EXPECT_EQ(said.window, 3u);
  EXPECT_EQ(said.n_kv_heads, 2u);
  const auto figure = parsed<DrawFigure>(
      {"figure", "t.npz", "--stage", "weights", "--out", "a.png", "--scale", "2", "--score-scale", "0.5"});
  EXPECT_EQ(figure.scale, 2);
  EXPECT_EQ(figure.choices.settings.scale, 0.5);
}

TEST(Arguments, OfEveryExampleThatHelpGivesAreRight) {
  const std::string help = parsed<ShowText>({"--help"}).text;
  std::istringstream lines(help.substr(help.find("\n  presets ") + 1));
  std::string line, command;
  std::size_t n_commands = 0;
  for (; std::getline(lines, line) && line.starts_with("  ");) {
    if (line.starts_with("   ")) continue;  // continued explanation
    ++n_commands;
    std::istringstream(line) >> command;
    const std::string text = parsed<ShowText>({command, "--help"}).text;
    const std::size_t at = text.find("Example: attnscope " + command);
    ASSERT_NE(at, text.npos) << command;
    std::string example = text.substr(at + 19, text.find('\n', at) - at - 19);
    if (const std::size_t pipe = example.find(" | "); pipe != example.npos) example.erase(pipe);
    EXPECT_EQ(usage_error(words_of(example)), "no usage error") << example;
  }
  EXPECT_EQ(n_commands, 20u);
}

TEST(Arguments, OfNothingOrAFileOpenTheWindow) {
  EXPECT_FALSE(parsed<OpenWindow>({}).file);
  EXPECT_EQ(*parsed<OpenWindow>({"s.json"}).file, "s.json");
  EXPECT_EQ(*parsed<OpenWindow>({"--", "-s.json"}).file, "-s.json");
  const auto window = parsed<OpenWindow>({"m", "--text", "a b", "--layer", "0"});
  EXPECT_EQ(window.text, "a b");
  EXPECT_EQ(window.layer, 0u);
  EXPECT_EQ(*parsed<OpenWindow>({"s.json", "--record", "r"}).record, "r");
  const auto replay = parsed<OpenWindow>({"--replay", "r", "--until", "7"});
  EXPECT_EQ(*replay.replay, "r");
  EXPECT_EQ(replay.until, 7u);
  EXPECT_EQ(parsed<OpenWindow>({"--preset", "004-causal"}).preset, core::editing::find_preset("004-causal"));
  EXPECT_EQ(parsed<WriteProgram>({"program", "s.json", "--out", "F.py"}).file, "F.py");
  const auto attach = parsed<Attach>({"attach", "host:1", "--token", "t", "--layer", "2"});
  EXPECT_EQ(attach.address + " " + attach.token, "host:1 t");
  EXPECT_EQ(attach.layer, 2u);
}

TEST(Arguments, OfExportAreReadInAnyOrderAndMeanEverythingAsLabeledCsvByDefault) {
  const auto command = parsed<Export>(
      {"export", "--stages", "weights,output", "--out", "D", "s.json", "--no-labels", "--format=npy"});
  EXPECT_EQ(std::get<std::filesystem::path>(command.source), "s.json");
  EXPECT_EQ(command.out, "D");
  EXPECT_EQ(command.options.stages, (std::vector<std::string>{"weights", "output"}));
  EXPECT_STREQ(command.options.format->name, "npy");
  EXPECT_FALSE(command.options.labels);
  const auto plain = parsed<Export>({"export", "--preset", "multi-head", "--out", "D"});
  EXPECT_EQ(std::get<const core::editing::Preset*>(plain.source), core::editing::find_preset("multi-head"));
  EXPECT_TRUE(plain.options.stages.empty());
  EXPECT_STREQ(plain.options.format->name, "csv");
  EXPECT_TRUE(plain.options.labels);
}

TEST(Arguments, OfExportTakeTheFormatFromTheNameOfTheFile) {
  const auto of = [](const char* out) {
    return parsed<Export>({"export", "--preset", "multi-head", "--out", out}).options;
  };
  EXPECT_TRUE(of("all.npz").archive);
  EXPECT_STREQ(of("w.npy").format->name, "npy");
  EXPECT_STREQ(of("D.x").format->name, "csv");
  EXPECT_FALSE(of("D.x").archive);
  EXPECT_TRUE(parsed<Export>({"export", "a", "--out", "D", "--format", "npz"}).options.archive);
}

TEST(Arguments, OfAFileOfTensorsSayWhatIsMeant) {
  const auto command =
      parsed<WriteSession>({"session", "m.safetensors", "--layer", "2", "--heads", "4", "--embeddings",
                            "x.npz", "--tensor", "L2", "--ignore", "rotary,norm", "--out", "F"});
  EXPECT_EQ(std::get<std::filesystem::path>(command.source), "m.safetensors");
  EXPECT_EQ(command.choices.layer, "2");
  EXPECT_EQ(command.choices.n_heads, 4u);
  EXPECT_EQ(command.choices.embeddings, "x.npz");
  EXPECT_EQ(command.choices.embeddings_tensor, "L2");
  EXPECT_EQ(command.choices.ignored, (std::vector<std::string>{"rotary", "norm"}));
}

TEST(Arguments, NameStagesThatAreGiven) {
  const auto command = parsed<WriteSession>({"session", "--given", "weights=a.npy", "--given",
                                             "values=b.npz:v", "--layer", "3", "--out", "F.json", "s.json"});
  EXPECT_EQ(std::get<std::filesystem::path>(command.source), "s.json");
  ASSERT_EQ(command.choices.given.size(), 2u);
  EXPECT_EQ(command.choices.given[1].stage, "values");
  EXPECT_EQ(command.choices.given[1].source, "b.npz:v");
  EXPECT_EQ(command.choices.given[1].layer, 3u);
  const auto alone = parsed<Export>({"export", "--given", "weights=a.npy", "--out", "D"});
  EXPECT_TRUE(std::get<std::filesystem::path>(alone.source).empty());
}

TEST(Arguments, OfFigureChooseWhatIsDrawn) {
  const auto of = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"figure", "--preset", "multi-head"});
    return parsed<DrawFigure>(more);
  };
  const DrawFigure one = of({"--stage", "scores", "--head", "1", "--out", "F.svg", "--dark"});
  EXPECT_EQ(one.options.stage, core::attention::Stage::scores);
  EXPECT_EQ(one.options.head, 1u);
  EXPECT_TRUE(one.options.dark);
  EXPECT_TRUE(one.options.numbers);
  EXPECT_EQ(one.form, ExportFormat::svg);
  EXPECT_FALSE(of({"--stage", "weights", "--all-heads", "--out", "F.svg"}).options.head);
  const DrawFigure strip = of({"--strip", "--out", "F.png", "--scale", "2", "--no-numbers"});
  EXPECT_FALSE(strip.options.stage);
  EXPECT_FALSE(strip.options.numbers);
  EXPECT_EQ(strip.form, ExportFormat::png);
  EXPECT_EQ(strip.scale, 2);
  EXPECT_EQ(of({"--strip", "--sequence", "3", "--out", "F.svg"}).options.sequence, 3u);
}

TEST(Arguments, OfFigureChooseColors) {
  const auto of = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"figure", "--preset", "multi-head", "--stage", "weights", "--out", "F.svg"});
    return parsed<DrawFigure>(more).colors;
  };
  using core::color::ColorMap;
  EXPECT_EQ(of({}), ColorChoice());
  EXPECT_EQ(of({"--colours", "magma"}).sequential, ColorMap::magma);
  const ColorChoice two = of({"--colours", "greys,red-blue", "--range", "stage", "--logarithmic"});
  EXPECT_EQ(two.sequential, ColorMap::grays);
  EXPECT_EQ(two.diverging, ColorMap::red_blue);
  EXPECT_EQ(two.range, ColorRangeRule::stage);
  EXPECT_TRUE(two.logarithmic);
  EXPECT_EQ(of({"--range", "all"}).range, ColorRangeRule::all_heads);
  const ColorChoice typed = of({"--range", "-2:0.5"});
  EXPECT_EQ(typed.range, ColorRangeRule::typed);
  EXPECT_EQ(typed.typed_values, (ColorLimits{-2, 0.5}));
  EXPECT_EQ(typed.typed_weights, (ColorLimits{-2, 0.5}));
}

TEST(Arguments, OfExportAndSessionNameMistakes) {
  const auto exported = parsed<Export>(
      {"export", "--mistake", "no_scale", "--mistake", "mask_shows_next", "s.json", "--out", "D"});
  ASSERT_EQ(exported.mistakes.size(), 2u);
  EXPECT_EQ(exported.mistakes[1], core::bugs::find_offered_bug("mask_shows_next"));
  const auto session =
      parsed<WriteSession>({"session", "--preset", "multi-head", "--out", "F", "--mistake", "no_mask"});
  EXPECT_EQ(session.mistakes.size(), 1u);
}

TEST(Arguments, OfGradientNameANumber) {
  const auto cell = parsed<WriteGradients>(
      {"gradient", "s.json", "--of", "weights[3,1]", "--head", "1", "--sequence", "2", "--out", "D"});
  EXPECT_EQ(cell.of.target, (core::graph::Target{core::attention::Stage::weights, 1, 3, 1}));
  EXPECT_EQ(cell.of.sequence, 2u);
  const auto error =
      parsed<WriteGradients>({"gradient", "s.json", "--target", "t.npy", "--row", "3", "--out", "D.npz"});
  EXPECT_EQ(error.of.expected, "t.npy");
  EXPECT_EQ(error.of.target.row, 3u);
  EXPECT_TRUE(error.options.archive);
  const auto program = parsed<WriteProgram>({"program", "s.json", "--gradient-of", "output"});
  EXPECT_TRUE(program.has_gradient);
  EXPECT_EQ(program.gradient.target, core::graph::Target());
  const auto refused = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"gradient", "s.json", "--out", "D"});
    return usage_error(more);
  };
  EXPECT_EQ(refused({}), "gradient: expected either --of STAGE[ROW,COLUMN] or --target FILE, got neither");
  EXPECT_EQ(refused({"--of", "weights[3]"}),
            "--of: expected STAGE[ROW,COLUMN], as weights[3,1] or weights[3,:], got \"weights[3]\"");
  EXPECT_THAT(refused({"--of", "weigths[3,1]"}),
              testing::StartsWith("--of: expected a cell of a stage among embeddings, key_embeddings, "));
  EXPECT_EQ(refused({"--of", "output[3,1]", "--head", "1"}),
            "gradient: --head: expected a stage of each head, got output, which is of all heads");
  EXPECT_NE(refused({"--target", "t.npy"}), "no usage error");
  EXPECT_NE(refused({"--of", "output[0,0]", "--target", "t.npy", "--row", "1"}), "no usage error");
  EXPECT_EQ(usage_error({"program", "s.json", "--head", "1"}),
            "program: --head: expected with --gradient-of");
}

TEST(Arguments, OfCheckAreAModelTensorsAndHowToReadThem) {
  const auto check = parsed<CheckModel>({"check", "--preset", "multi-head", "--against", "T.npz", "--rtol",
                                         "0.01", "--atol", "1e-3", "--map", "a=b=weights", "--map",
                                         "c=", "--layout", "thd", "--layer", "3", "--json"});
  ASSERT_NE(check.layout, nullptr);
  EXPECT_EQ(check.layout->name, std::string("thd"));
  EXPECT_EQ(check.choices.layer, "3");
  EXPECT_EQ(std::get<const core::editing::Preset*>(check.source), core::editing::find_preset("multi-head"));
  EXPECT_EQ(check.against, "T.npz");
  EXPECT_EQ(check.tolerance.relative, 0.01);
  EXPECT_EQ(check.tolerance.absolute, 1e-3);
  EXPECT_EQ(check.by_hand, (std::map<std::string, std::string>{{"a=b", "weights"}, {"c", ""}}));
  EXPECT_TRUE(check.json);
}

TEST(Arguments, OfDrawAreASeedAndOps) {
  const auto draw =
      parsed<DrawRandom>({"draw", "--seed", "18446744073709551615", "rand(6,3)", "Linear(3,2,bias)"});
  EXPECT_EQ(draw.seed, UINT64_MAX);
  EXPECT_EQ(draw.ops, (std::vector<std::string>{"rand(6,3)", "Linear(3,2,bias)"}));
}

TEST(Arguments, AskForTexts) {
  EXPECT_EQ(parsed<ShowText>({"--version"}).text, std::string("attnscope ") + core::version() + "\n");
  const std::string help = parsed<ShowText>({"--help"}).text;
  for (const char* word :
       {"presets", "export", "session", "program", "draw", "--version", "FILE", ".pt", ".index.json"})
    EXPECT_NE(help.find(word), help.npos) << word;
  const std::string export_help = parsed<ShowText>({"export", "--format", "x", "--help"}).text;
  for (const char* word : {"--preset", "--out", "--stages", "--format", "--no-labels"})
    EXPECT_NE(export_help.find(word), export_help.npos) << word;
}

/// Refused arguments, and the name that the error must contain.
TEST(Arguments, ThatAreWrongOrWouldChangeNothingAreRefusedByName) {
  struct Case {
    std::vector<std::string> arguments;
    const char* named;
  };
  const auto figure = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"figure", "--preset", "multi-head", "--out", "F.svg"});
    return more;
  };
  for (const Case& c : std::vector<Case>{
           {{""}, "empty argument"},
           {{"--frob"}, "\"--frob\""},
           {{"a", "b"}, "\"a\" and \"b\""},
           {{"chek", "a.json", "--against", "b"}, "\"chek\" and \"a.json\""},
           {{"check", "a.json", "--agains", "b"}, "\"--agains\" (attnscope check --help"},
           {{"presets", "b"}, "\"b\" (attnscope presets --help"},
           {{"a", "presets"}, "a FILE or a command"},
           {{"a", "export", "--out", "D"}, "a FILE or a command"},
           {{"--preset", "004-causal", "export", "a", "--out", "D"}, "--preset or a command"},
           {{"--text", "a"}, "--text requires FILE"},
           {{"attach", "--token", "t"}, "ADDRESS is required"},
           {{"--layer", "1"}, "--layer requires FILE"},
           {{"--preset", "nope"}, "no preset \"nope\""},
           {{"--until", "3"}, "--until requires --replay"},
           {{"--replay", "r", "--until", "0"}, "--until: expected a whole number of at least 1"},
           {{"--replay", "r", "--record", "s"}, "--replay"},
           {{"--replay", "r", "a"}, "--replay"},
           {{"--replay", "r", "--preset", "004-causal"}, "--replay"},
           {{"--record", "r", "presets"}, "--record or a command"},
           {{"a", "--preset", "004-causal"}, "--preset"},
           {{"export", "a"}, "--out is required"},
           {{"export", "--out", "D"}, "FILE or --preset"},
           {{"export", "a", "--preset", "multi-head", "--out", "D"}, "--preset"},
           {{"session", "--preset", "nope", "--out", "F"}, "no preset \"nope\""},
           {{"export", "a", "--out", "D", "--format", "xls"}, "csv, npy, npz or html, got \"xls\""},
           {{"export", "a", "--out", "F.npz", "--format", "csv"}, "F.npz, got \"csv\""},
           {{"export", "a", "--out", "D", "--stages", "weights,wights"}, "got \"wights\""},
           {{"export", "m", "--heads", "0", "--out", "D"}, "--heads: expected a whole number of at least 1"},
           {{"export", "m", "--out", "D", "--ignore", "rotari"}, "got \"rotari\""},
           {{"export", "m", "--out", "D", "--mistake", "nonsense"},
            "--mistake: there is no mistake \"nonsense\"; attnscope mistakes lists them"},
           {{"export", "--given", "output=a.npy", "--out", "D"}, "got \"output=a.npy\""},
           {{"export", "--given", "weights", "--out", "D"}, "got \"weights\""},
           {{"export", "--given", "weights=", "--out", "D"}, "got \"weights=\""},
           {{"export", "--given", "weights=a", "--layer", "x", "--out", "D"}, "--layer"},
           {{"session", "--preset", "multi-head", "--out", "s", "--heads", "2"}, "--heads"},
           {{"session", "--preset", "multi-head", "--out", "s", "--embeddings", "2"}, "--embeddings"},
           {{"session", "--preset", "multi-head", "--out", "s", "--tensor", "2"}, "--tensor"},
           {{"session", "--preset", "multi-head", "--out", "s", "--ignore", "all"}, "--ignore"},
           {{"session", "--preset", "multi-head", "--out", "s", "--layer", "2"}, "--layer"},
           {{"program"}, "FILE or --preset"},
           {{"figure", "--preset", "multi-head", "--out", "F.gif", "--strip"}, "got \"F.gif\""},
           {{"figure", "--preset", "multi-head", "--out", "F.png", "--strip", "--scale", "0"}, "--scale"},
           {figure({}), "--stage NAME or --strip"},
           {figure({"--strip", "--stage", "weights"}), "--strip"},
           {figure({"--strip", "--head", "x"}), "--head: expected a whole number"},
           {figure({"--strip", "--all-heads"}), "--all-heads"},
           {figure({"--stage", "output", "--head", "1"}), "output, which is of all heads"},
           {figure({"--stage", "weights", "--scale", "2"}), "--scale"},
           {figure({"--strip", "--sequence", "-1"}), "--sequence: expected a whole number"},
           {figure({"--strip", "--colours", "magma,jet"}), "got \"jet\""},
           {figure({"--strip", "--range", "1"}), "--range"},
           {figure({"--strip", "--range", "1:1"}), "--range"},
           {figure({"--strip", "--range", "a:b"}), "--range"},
           {figure({"--strip", "--range", "0:inf"}), "--range"},
           {{"check", "s.json"}, "--against is required"},
           {{"session", "t.npz", "--out", "s.json", "--rope", "0"}, "--rope: expected BASE"},
           {{"session", "t.npz", "--out", "s.json", "--rope", "1e4,thirds"}, "--rope: expected BASE"},
           {{"session", "t.npz", "--out", "s.json", "--rope", "1e4,halves,5"}, "--rope: expected BASE"},
           {{"session", "t.npz", "--out", "s.json", "--causal", "--no-causal"}, "excludes"},
           {{"session", "t.npz", "--out", "s.json", "--window", "0"}, "--window: expected a whole number"},
           {{"session", "--preset", "multi-head", "--out", "s.json", "--scale", "2"}, "excludes"},
           {{"check", "s.json", "--against", "T", "--layout", "hdt"}, "got \"hdt\""},
           {{"check", "s.json", "--against", "T", "--rtol", "-1"}, "--rtol: expected a number from 0"},
           {{"check", "s.json", "--against", "T", "--atol", "inf"}, "--atol: expected a number from 0"},
           {{"check", "s.json", "--against", "T", "--map", "weights"}, "--map: expected NAME=STAGE"},
           {{"check", "s.json", "--against", "T", "--map", "a=b"}, "--map: expected a stage"},
           {{"draw", "rand(1)"}, "--seed is required"},
           {{"draw", "--seed", "1"}, "OPS is required"},
           {{"draw", "--seed", "1", "rand(1)", "frob(1)"}, "frob"},
           {{"draw", "--seed", "x", "rand(1)"}, "--seed: expected a whole number"},
           {{"draw", "--seed", "1.5", "rand(1)"}, "--seed"},
           {{"draw", "--seed", "-1", "rand(1)"}, "--seed"},
           {{"draw", "--seed", "18446744073709551616", "rand(1)"}, "--seed"},
           {{"generate", "m", "--text", "a", "--seed", "1"}, "--temperature"},
       })
    EXPECT_THAT(usage_error(c.arguments), testing::HasSubstr(c.named));
}

}  // namespace
}  // namespace app
