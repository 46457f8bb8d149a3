#include "app/cli/arguments.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace app {
namespace {

std::string usage_error(std::vector<std::string> arguments) {
  const Arguments result = parse_arguments(std::move(arguments));
  const auto* wrong = std::get_if<WrongUsage>(&result);
  return wrong ? wrong->message : "no usage error";
}

/// The words of a line as a shell parts them, of which only double quotes are understood here.
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

TEST(Arguments, OfEveryExampleThatHelpGivesAreRight) {
  const std::string help = std::get<ShowText>(parse_arguments({"--help"})).text;
  std::istringstream lines(help.substr(help.find("\n  presets ") + 1));
  std::string line, command;
  std::size_t n_commands = 0;
  for (; std::getline(lines, line) && line.starts_with("  ");) {
    if (line.starts_with("   ")) continue;  // an explanation goes on
    ++n_commands;
    std::istringstream(line) >> command;
    const std::string text = std::get<ShowText>(parse_arguments({command, "--help"})).text;
    const std::size_t at = text.find("Example: attnscope " + command);
    ASSERT_NE(at, text.npos) << command;
    std::string example = text.substr(at + 19, text.find('\n', at) - at - 19);
    if (const std::size_t pipe = example.find(" | "); pipe != example.npos) example.erase(pipe);
    EXPECT_EQ(usage_error(words_of(example)), "no usage error") << example;
  }
  EXPECT_EQ(n_commands, 12u);
}

TEST(Arguments, OfNothingOrAFileOpenTheWindow) {
  EXPECT_FALSE(std::get<OpenWindow>(parse_arguments({})).file);
  EXPECT_EQ(*std::get<OpenWindow>(parse_arguments({"s.json"})).file, "s.json");
  EXPECT_EQ(*std::get<OpenWindow>(parse_arguments({"--", "-s.json"})).file, "-s.json");
}

TEST(Arguments, OfTheWindowNameATextAndALayerOfAWholeModel) {
  const auto window = std::get<OpenWindow>(parse_arguments({"m", "--text", "a b", "--layer", "0"}));
  EXPECT_EQ(window.text, "a b");
  EXPECT_EQ(window.layer, 0u);
  EXPECT_EQ(std::get<OpenWindow>(parse_arguments({"m"})).layer, std::nullopt);
  EXPECT_EQ(usage_error({"--text", "a"}), "--text: expected with a FILE, a whole model");
  EXPECT_EQ(usage_error({"--layer", "1"}), "--layer: expected with a FILE, a whole model");
}

TEST(Arguments, OfTheWindowNameAPreset) {
  const auto window = std::get<OpenWindow>(parse_arguments({"--preset", "004-causal"}));
  EXPECT_EQ(window.preset, core::editing::find_preset("004-causal"));
  EXPECT_EQ(std::get<OpenWindow>(parse_arguments({"a.json"})).preset, nullptr);
  EXPECT_EQ(usage_error({"--preset", "nope"}),
            "--preset: there is no preset \"nope\"; attnscope presets lists them");
  EXPECT_EQ(usage_error({"a", "--preset", "004-causal"}),
            "expected either a FILE or --preset NAME, got both");
  EXPECT_EQ(usage_error({"--preset", "004-causal", "--text", "a"}),
            "--text: expected with a FILE, a whole model");
}

TEST(Arguments, ThatWouldChangeNothingAreRefused) {
  EXPECT_EQ(usage_error({"--text", "a", "presets"}), "expected --text or a command, got both");
  EXPECT_EQ(usage_error({"--text", "a", "manual", "man"}), "expected --text or a command, got both");
  EXPECT_EQ(usage_error({"--preset", "004-causal", "export", "a", "--out", "D"}),
            "expected --preset or a command, got both");
  EXPECT_EQ(usage_error({"export", "a", "--out", "F.npz", "--format", "csv"}),
            "export: --format: expected the one of F.npz, got \"csv\"");
  EXPECT_EQ(usage_error({"generate", "m", "--text", "a", "--seed", "1"}),
            "generate: --seed: expected with a --temperature above 0, as nothing is drawn else");
  EXPECT_EQ(usage_error({"figure", "a", "--stage", "output", "--head", "1", "--out", "F.svg"}),
            "figure: --head: expected a stage of each head, got output, which is of all heads");
  EXPECT_EQ(usage_error({"figure", "a", "--stage", "weights", "--scale", "2", "--out", "F.svg"}),
            "figure: --scale: expected with a .png, as lines can be enlarged without loss");
}

TEST(Arguments, OfExportAreReadInAnyOrder) {
  const Arguments result = parse_arguments(
      {"export", "--stages", "weights,output", "--out", "D", "s.json", "--no-labels", "--format=npy"});
  const auto& command = std::get<Export>(result);
  EXPECT_EQ(std::get<std::filesystem::path>(command.source), "s.json");
  EXPECT_EQ(command.out, "D");
  EXPECT_EQ(command.options.stages, (std::vector<std::string>{"weights", "output"}));
  EXPECT_STREQ(command.options.format->name, "npy");
  EXPECT_FALSE(command.options.labels);
}

TEST(Arguments, OfExportMeanEverythingAsLabelledCsvByDefault) {
  const Arguments result = parse_arguments({"export", "--preset", "multi-head", "--out", "D"});
  const auto& command = std::get<Export>(result);
  EXPECT_EQ(std::get<const core::editing::Preset*>(command.source), core::editing::find_preset("multi-head"));
  EXPECT_TRUE(command.options.stages.empty());
  EXPECT_STREQ(command.options.format->name, "csv");
  EXPECT_TRUE(command.options.labels);
}

TEST(Arguments, OfExportTakeTheFormatFromTheNameOfTheFile) {
  const auto of = [](const char* out) {
    return std::get<Export>(parse_arguments({"export", "--preset", "multi-head", "--out", out})).options;
  };
  EXPECT_TRUE(of("all.npz").archive);
  EXPECT_STREQ(of("w.npy").format->name, "npy");
  EXPECT_STREQ(of("D.x").format->name, "csv");
  EXPECT_FALSE(of("D.x").archive);
  EXPECT_TRUE(
      std::get<Export>(parse_arguments({"export", "a", "--out", "D", "--format", "npz"})).options.archive);
}

TEST(Arguments, OfProgramNameAModelAndPerhapsAFile) {
  const Arguments to_file = parse_arguments({"program", "--preset", "multi-head", "--out", "F.py"});
  EXPECT_EQ(std::get<WriteProgram>(to_file).file, "F.py");
  EXPECT_FALSE(std::get<WriteProgram>(parse_arguments({"program", "s.json"})).file);
  EXPECT_EQ(usage_error({"program"}), "program: expected either a FILE or --preset NAME, got neither");
}

TEST(Arguments, OfAFileOfTensorsSayWhatIsMeant) {
  const auto command =
      std::get<WriteSession>(parse_arguments({"session", "m.safetensors", "--layer", "2", "--heads", "4",
                                              "--embeddings", "x.npz", "--tensor", "L2", "--out", "F"}));
  EXPECT_EQ(std::get<std::filesystem::path>(command.source), "m.safetensors");
  EXPECT_EQ(command.choices.layer, "2");
  EXPECT_EQ(command.choices.n_heads, 4u);
  EXPECT_EQ(command.choices.embeddings, "x.npz");
  EXPECT_EQ(command.choices.embeddings_tensor, "L2");
  EXPECT_EQ(usage_error({"export", "m", "--heads", "0", "--out", "D"}),
            "--heads: expected a whole number of at least 1, got \"0\"");
}

TEST(Arguments, NameWhatMayBeIgnored) {
  const Arguments result =
      parse_arguments({"export", "m.safetensors", "--out", "D", "--ignore", "rotary,norm"});
  EXPECT_EQ(std::get<Export>(result).choices.ignored, (std::vector<std::string>{"rotary", "norm"}));
  EXPECT_EQ(
      usage_error({"export", "m.safetensors", "--out", "D", "--ignore", "rotari"}),
      "--ignore: expected all, or names among rotary, scaling, relative, alibi, window, cap, norm, clip, sinks, "
      "extra_keys, bias, mask, got \"rotari\"");
}

TEST(Arguments, AboutAFileAreNoneAboutAPreset) {
  for (const char* option : {"--heads", "--embeddings", "--tensor", "--ignore", "--layer"}) {
    const std::string value = std::string(option) == "--ignore" ? "all" : "2";
    EXPECT_EQ(usage_error({"session", "--preset", "multi-head", "--out", "s.json", option, value}),
              "session: " + std::string(option) + ": expected with a FILE" +
                  (std::string(option) == "--layer" ? ", or with --given" : ""));
  }
}

TEST(Arguments, NameStagesThatAreGiven) {
  const Arguments result = parse_arguments({"session", "--given", "weights=a.npy", "--given",
                                            "values=b.npz:v", "--layer", "3", "--out", "F.json", "s.json"});
  const auto& command = std::get<WriteSession>(result);
  EXPECT_EQ(std::get<std::filesystem::path>(command.source), "s.json");
  ASSERT_EQ(command.choices.given.size(), 2u);
  EXPECT_EQ(command.choices.given[1].stage, "values");
  EXPECT_EQ(command.choices.given[1].source, "b.npz:v");
  EXPECT_EQ(command.choices.given[1].layer, 3u);
  const Arguments alone = parse_arguments({"export", "--given", "weights=a.npy", "--out", "D"});
  EXPECT_TRUE(std::get<std::filesystem::path>(std::get<Export>(alone).source).empty());
}

TEST(Arguments, RefuseStagesThatCannotBeGiven) {
  const std::string stages =
      "expected STAGE=FILE with embeddings, queries, keys, values, scores, scaled_scores, masked_scores, weights or dropout_mask";
  for (const char* wrong : {"output=a.npy", "weights", "weights="})
    EXPECT_EQ(usage_error({"export", "--given", wrong, "--out", "D"}),
              "--given: " + stages + ", got \"" + wrong + "\"");
  EXPECT_EQ(usage_error({"export", "--given", "weights=a", "--layer", "x", "--out", "D"}),
            "--layer: expected a whole number for given tensors, got \"x\"");
}

TEST(Arguments, OfFigureChooseWhatIsDrawn) {
  const auto of = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"figure", "--preset", "multi-head"});
    return std::get<DrawFigure>(parse_arguments(more));
  };
  const DrawFigure one = of({"--stage", "scores", "--head", "1", "--out", "F.svg", "--dark"});
  EXPECT_EQ(one.options.stage, core::attention::Stage::scores);
  EXPECT_EQ(one.options.head, 1u);
  EXPECT_TRUE(one.options.dark);
  EXPECT_TRUE(one.options.numbers);
  EXPECT_EQ(one.format, FigureFormat::svg);
  EXPECT_FALSE(of({"--stage", "weights", "--all-heads", "--out", "F.svg"}).options.head);
  const DrawFigure strip = of({"--strip", "--out", "F.png", "--scale", "2", "--no-numbers"});
  EXPECT_FALSE(strip.options.stage);
  EXPECT_FALSE(strip.options.numbers);
  EXPECT_EQ(strip.format, FigureFormat::png);
  EXPECT_EQ(strip.scale, 2);
  EXPECT_EQ(of({"--strip", "--sequence", "3", "--out", "F.svg"}).options.sequence, 3u);
}

TEST(Arguments, OfFigureChooseColours) {
  const auto of = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"figure", "--preset", "multi-head", "--stage", "weights", "--out", "F.svg"});
    return std::get<DrawFigure>(parse_arguments(more)).colours;
  };
  using core::colour::ColourMap;
  EXPECT_EQ(of({}), ColourChoice());
  EXPECT_EQ(of({"--colours", "magma"}).sequential, ColourMap::magma);
  const ColourChoice two = of({"--colours", "greys,red-blue", "--range", "stage", "--logarithmic"});
  EXPECT_EQ(two.sequential, ColourMap::greys);
  EXPECT_EQ(two.diverging, ColourMap::red_blue);
  EXPECT_EQ(two.range, RangeRule::stage);
  EXPECT_TRUE(two.logarithmic);
  EXPECT_EQ(of({"--range", "all"}).range, RangeRule::all_heads);
  const ColourChoice typed = of({"--range", "-2:0.5"});
  EXPECT_EQ(typed.range, RangeRule::typed);
  EXPECT_EQ(typed.typed_values, (Ends{-2, 0.5}));
  EXPECT_EQ(typed.typed_weights, (Ends{-2, 0.5}));
}

TEST(Arguments, OfFigureThatAreWrongAreNamed) {
  const auto wrong = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"figure", "--preset", "multi-head"});
    return usage_error(more);
  };
  EXPECT_EQ(wrong({"--out", "F.svg"}), "figure: expected either --stage NAME or --strip");
  EXPECT_EQ(wrong({"--out", "F.svg", "--strip", "--stage", "weights"}),
            "figure: expected either --stage NAME or --strip");
  EXPECT_EQ(wrong({"--out", "F.gif", "--strip"}),
            "figure: --out: expected a name that ends in .svg, .pdf or .png, got \"F.gif\"");
  EXPECT_EQ(wrong({"--out", "F.png", "--strip", "--scale", "0"}),
            "figure: --scale: expected a number from 0.1 to 16, got \"0\"");
  EXPECT_EQ(wrong({"--out", "F.svg", "--strip", "--head", "x"}),
            "figure: --head: expected a whole number, 0 for the first, got \"x\"");
  EXPECT_EQ(wrong({"--out", "F.svg", "--strip", "--all-heads"}),
            "figure: --all-heads: expected with a --stage, and without --head and --strip");
  EXPECT_EQ(wrong({"--out", "F.svg", "--strip", "--sequence", "-1"}),
            "figure: --sequence: expected a whole number, 0 for the first, got \"-1\"");
  EXPECT_EQ(
      wrong({"--out", "F.svg", "--strip", "--colours", "magma,jet"}),
      "figure: --colours: expected one of viridis, magma, cividis, greys, blue-orange, red-blue, got \"jet\"");
  for (const std::string range : {"1", "1:1", "2:1", "a:b", "0:inf", ":"})
    EXPECT_EQ(
        wrong({"--out", "F.svg", "--strip", "--range", range}),
        "figure: --range: expected matrix, stage, all or LOW:HIGH, two numbers of which the second is larger, got \"" +
            range + "\"");
}

TEST(Arguments, OfSessionNameAPresetAndAFile) {
  const Arguments result = parse_arguments({"session", "--out", "F.json", "--preset", "multi-head"});
  EXPECT_EQ(std::get<const core::editing::Preset*>(std::get<WriteSession>(result).source),
            core::editing::find_preset("multi-head"));
  EXPECT_EQ(std::get<WriteSession>(result).file, "F.json");
}

TEST(Arguments, OfExportAndSessionNameMistakes) {
  const Arguments exported = parse_arguments(
      {"export", "--mistake", "no_scale", "--mistake", "mask_shows_next", "s.json", "--out", "D"});
  ASSERT_EQ(std::get<Export>(exported).mistakes.size(), 2u);
  EXPECT_EQ(std::get<Export>(exported).mistakes[1], core::mistakes::find_mistake("mask_shows_next"));
  const Arguments session =
      parse_arguments({"session", "--preset", "multi-head", "--out", "F", "--mistake", "no_mask"});
  EXPECT_EQ(std::get<WriteSession>(session).mistakes.size(), 1u);
  EXPECT_EQ(usage_error({"export", "--preset", "multi-head", "--out", "D", "--mistake", "nonsense"}),
            "--mistake: there is no mistake \"nonsense\"; attnscope mistakes lists them");
}

TEST(Arguments, OfCheckAreAModelTensorsAndHowToReadThem) {
  const Arguments result = parse_arguments({"check", "--preset", "multi-head", "--against", "T.npz", "--rtol",
                                            "0.01", "--atol", "1e-3", "--map", "a=b=weights", "--map",
                                            "c=", "--layout", "thd", "--layer", "3", "--json"});
  const auto& check = std::get<Check>(result);
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

TEST(Arguments, OfCheckThatAreWrongAreNamed) {
  const auto error = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"check", "s.json", "--against", "T"});
    return usage_error(more);
  };
  EXPECT_EQ(error({"--layout", "hdt"}),
            "--layout: expected one of bhtd, bthd, btd, htd, thd, td, got \"hdt\"");
  EXPECT_EQ(error({"--preset", "multi-head"}), "check: expected either a FILE or --preset NAME, got both");
  EXPECT_EQ(error({"--rtol", "-1"}), "--rtol: expected a number from 0, got \"-1\"");
  EXPECT_EQ(error({"--atol", "inf"}), "--atol: expected a number from 0, got \"inf\"");
  EXPECT_EQ(error({"--map", "weights"}), "--map: expected NAME=STAGE, got \"weights\"");
  EXPECT_TRUE(error({"--map", "a=b"}).starts_with("--map: expected a stage among embeddings, "));
  EXPECT_EQ(usage_error({"check", "s.json"}), "--against is required (attnscope check --help tells more)");
}

TEST(Arguments, OfDrawAreASeedAndOps) {
  const Arguments result =
      parse_arguments({"draw", "--seed", "18446744073709551615", "rand(6,3)", "Linear(3,2,bias)"});
  EXPECT_EQ(std::get<Draw>(result).seed, UINT64_MAX);
  EXPECT_EQ(std::get<Draw>(result).ops, (std::vector<std::string>{"rand(6,3)", "Linear(3,2,bias)"}));
}

TEST(Arguments, OfDrawThatAreWrongAreNamed) {
  for (const char* seed : {"x", "1.5", "-1", "18446744073709551616", "1 "})
    EXPECT_EQ(
        usage_error({"draw", "--seed", seed, "rand(1)"}),
        "--seed: expected a whole number from 0 to 18446744073709551615, got \"" + std::string(seed) + "\"");
  EXPECT_EQ(usage_error({"draw", "rand(1)"}), "--seed is required (attnscope draw --help tells more)");
  EXPECT_EQ(usage_error({"draw", "--seed", "1"}), "OPS is required (attnscope draw --help tells more)");
  EXPECT_NE(usage_error({"draw", "--seed", "1", "rand(1)", "frob(1)"}).find("frob"), std::string::npos);
}

TEST(Arguments, AskForTexts) {
  EXPECT_EQ(std::get<ShowText>(parse_arguments({"--version"})).text, "attnscope " ATTNSCOPE_VERSION "\n");
  const std::string help = std::get<ShowText>(parse_arguments({"--help"})).text;
  for (const char* word :
       {"presets", "export", "session", "program", "draw", "--version", "FILE", ".pt", ".index.json"})
    EXPECT_NE(help.find(word), help.npos) << word;
  const std::string export_help = std::get<ShowText>(parse_arguments({"export", "--help"})).text;
  for (const char* word : {"--preset", "--out", "--stages", "--format", "--no-labels"})
    EXPECT_NE(export_help.find(word), export_help.npos) << word;
}

TEST(Arguments, AskForHelpEvenBesideOptionsThatAreWrong) {
  const std::string help = std::get<ShowText>(parse_arguments({"figure", "--help"})).text;
  EXPECT_NE(help.find("--all-heads"), help.npos);
  EXPECT_EQ(std::get<ShowText>(parse_arguments({"figure", "--head", "x", "--help"})).text, help);
}

TEST(Arguments, ThatAreWrongAreNamed) {
  const std::string more = " (attnscope --help tells more)";
  EXPECT_EQ(usage_error({"--frob"}), "there is no option or place for \"--frob\"" + more);
  EXPECT_EQ(usage_error({"a", "b"}), "expected a command or one FILE, got \"a\" and \"b\"" + more);
  EXPECT_EQ(usage_error({"chek", "a.json", "--against", "b"}),
            "expected a command or one FILE, got \"chek\" and \"a.json\"" + more);
  EXPECT_EQ(usage_error({"check", "a.json", "--agains", "b"}),
            "there is no option or place for \"--agains\" (attnscope check --help tells more)");
  EXPECT_EQ(usage_error({"a", "presets"}), "expected a FILE or a command, got both");
  EXPECT_EQ(usage_error({"a", "export", "--out", "D"}), "expected a FILE or a command, got both");
  EXPECT_EQ(usage_error({"presets", "b"}),
            "there is no option or place for \"b\" (attnscope presets --help tells more)");
  EXPECT_EQ(usage_error({""}), "expected no empty argument, got one");
  EXPECT_EQ(usage_error({"export", "a"}), "--out is required (attnscope export --help tells more)");
  EXPECT_EQ(usage_error({"export", "--out", "D"}),
            "export: expected either a FILE or --preset NAME, got neither");
  EXPECT_EQ(usage_error({"export", "a", "--preset", "multi-head", "--out", "D"}),
            "export: expected either a FILE or --preset NAME, got both");
  EXPECT_EQ(usage_error({"export", "--preset", "nope", "--out", "D"}),
            "--preset: there is no preset \"nope\"; attnscope presets lists them");
  EXPECT_EQ(usage_error({"session", "--preset", "nope", "--out", "F"}),
            "--preset: there is no preset \"nope\"; attnscope presets lists them");
  EXPECT_EQ(usage_error({"session", "--preset", "multi-head"}),
            "--out is required (attnscope session --help tells more)");
  EXPECT_EQ(usage_error({"export", "a", "--out", "D", "--format", "xls"}),
            "--format: expected csv, npy or npz, got \"xls\"");
  EXPECT_EQ(usage_error({"export", "a", "--out", "D", "--stages", "weights,wights"}),
            "--stages: expected names among " + core::formats::known_stage_names() + "; got \"wights\"");
  EXPECT_EQ(usage_error({"export", "a", "--out", "D", "--stages", "weights,"}),
            "--stages: expected names among " + core::formats::known_stage_names() + "; got \"\"");
}

}  // namespace
}  // namespace app
