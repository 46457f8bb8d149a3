#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "core/files/json.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

using support::put_bytes;
using support::TemporaryDirectory;

const std::string models = FIXTURES "/transformer/";
const std::string tiny_gpt = FIXTURES "/../../assets/examples/tiny_gpt";
const std::string names = "Miss Zoë Fitzgerald paid £12; then Miss Zoë";

core::formats::Json json_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return core::formats::parse_json(outcome.out, "out");
}

void expect_line(const Outcome& outcome, const std::string& line) {
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "attnscope: " + line + "\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(WholeModel, TokensGiveTheTextAndItsBytes) {
  const auto tokens = json_of(run({"tokens", tiny_gpt, "--text", names, "--json"})).required("tokens");
  std::string text, bytes;
  for (const auto& token : tokens.items("tokens")) {
    text += token.required("text").text();
    bytes += (bytes.empty() ? "" : " ") + token.required("bytes").text();
  }
  EXPECT_EQ(text, names);
  EXPECT_EQ(bytes.substr(0, 23), "4d 69 73 73 20 5a 6f c3");
  const Outcome plain = run({"tokens", tiny_gpt, "--text", "a é<|endoftext|>"});
  EXPECT_THAT(plain.out, testing::HasSubstr("\t1023\t\"<|endoftext|>\"\t"));
}

TEST(WholeModel, PredictsWhatTheLibraryPredicts) {
  for (const std::string name : {"gpt2", "llama", "qwen3", "gpt_neox"}) {
    const std::string text = support::bytes_of(models + name + "/text.txt");
    const auto top = json_of(run({"predict", models + name, "--text", text, "--json"}));
    std::string together;
    for (const auto& token : top.required("tokens").items("tokens"))
      together += token.required("text").text();
    EXPECT_EQ(together, text);
    const auto golden = core::formats::open_tensors(models + name + "/golden.npz").read("logits");
    const std::size_t width = golden.shape[1], from = (golden.shape[0] - 1) * width;
    const auto next = top.required("next").items("guesses");
    ASSERT_EQ(next.size(), 10u);
    if (name == "llama") {
      const auto gguf = json_of(run({"predict", models + "llama.gguf", "--text", text, "--json"}));
      const auto same = gguf.required("next").items("guesses");
      for (std::size_t k = 0; k < 10; ++k)
        EXPECT_EQ(same[k].required("id").whole(0), next[k].required("id").whole(0));
    }
    double before = 1;
    for (const auto& guess : next) {
      const double probability = guess.required("probability").number();
      EXPECT_LE(probability, before);
      before = probability;
      EXPECT_NEAR(guess.required("logit").number(), golden.numbers[from + guess.required("id").whole(0)],
                  1e-4);
    }
    EXPECT_NEAR(
        next[0].required("logit").number(),
        *std::max_element(golden.numbers.begin() + static_cast<std::ptrdiff_t>(from), golden.numbers.end()),
        1e-4);
  }
}

TEST(WholeModel, ASwitchedOffHeadIsMissed) {
  const Outcome with = run({"predict", tiny_gpt, "--text", names, "--top", "1"});
  const Outcome without = run({"predict", tiny_gpt, "--text", names, "--top", "1", "--off", "0.2,2.3"});
  EXPECT_EQ(with.out.substr(0, 45), "position\ttoken\tprobability\tlogit\n30\t\" F\"\t0.99");
  EXPECT_NE(with.out, without.out);
  expect_line(run({"predict", tiny_gpt, "--text", "a", "--off", "4.0"}),
              "--off: expected layers below 4 and heads below 4, got 4.0");
  EXPECT_EQ(run({"predict", tiny_gpt, "--text", "a", "--off", "x"}).status, 2);
}

TEST(WholeModel, GuessesMaskedWords) {
  const std::string text = support::bytes_of(models + "bert/text.txt");
  const auto top = json_of(run({"predict", models + "bert", "--text", text, "--json", "--top", "2"}));
  for (const auto& guess : top.required("next").items("guesses"))
    EXPECT_GT(guess.required("position").whole(0), 0u);
  expect_line(run({"predict", models + "bert", "--text", "the ferry"}),
              models +
                  "bert: this model is bidirectional: expected a text with [MASK] where a word is to be "
                  "predicted");
  expect_line(run({"predict", models + "bert_headless", "--text", "the [MASK]"}),
              models +
                  "bert_headless: it has nothing that predicts tokens, which a checkpoint would have as "
                  "cls.predictions.transform.dense.weight");
}

/// Copy of the GPT-2 model with one number replaced in the embedding of token 300, which no text here has.
struct Broken {
  explicit Broken(const std::string& number) {
    for (const auto& entry : std::filesystem::directory_iterator(models + "gpt2"))
      std::filesystem::copy(entry.path(), dir.path());
    std::string bytes = support::bytes_of(dir / "model.safetensors");
    const std::size_t header =
        8 + static_cast<unsigned char>(bytes[0]) + 256 * static_cast<unsigned char>(bytes[1]);
    const std::size_t name = bytes.find("transformer.wte.weight");
    const std::size_t begin = std::stoul(bytes.substr(bytes.find("data_offsets\":[", name) + 15));
    bytes.replace(header + begin + 300 * 24 * 4, 4, number);
    put_bytes(dir / "model.safetensors", bytes);
  }
  TemporaryDirectory dir;
};

TEST(WholeModel, ThatPredictsWhatIsNoNumberIsRefused) {
  const std::string text = support::bytes_of(models + "gpt2/text.txt");
  for (const std::string& number : {std::string("\0\0\xC0\x7F", 4), std::string("\0\0\x80\x7F", 4)}) {
    const Broken broken(number);
    const std::string model = broken.dir.path().string();
    const std::string line =
        model +
        "/model.safetensors: numbers that are not finite begin in what predicts tokens, in "
        "transformer.wte.weight, row 300";
    expect_line(run({"predict", model, "--text", text}), line);
    expect_line(run({"predict", model, "--text", text, "--json"}), line);
    expect_line(run({"generate", model, "--text", text, "--tokens", "3"}), line);
  }
}

TEST(WholeModel, TellsWhatHeadsDo) {
  const Outcome outcome = run({"heads", tiny_gpt, "--text", names});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 17);
  const std::size_t head = outcome.out.find("\n0,2,");  // the previous-token head of the model card
  EXPECT_GT(std::stod(outcome.out.substr(head + 5)), 0.95);
}

TEST(WholeModel, GoesOnWithAText) {
  const Outcome outcome = run({"generate", tiny_gpt, "--text", names, "--tokens", "7"});
  EXPECT_EQ(outcome.out, names + " Fitzgerald\n");
  const std::vector<std::string> drawn{"generate", tiny_gpt, "--text", names, "--tokens",      "12",
                                       "--seed",   "5",      "--top",  "20",  "--temperature", "1.2"};
  EXPECT_EQ(run(drawn).out, run(drawn).out);
}

TEST(WholeModel, ALayerIsExportedAsItReadsAText) {
  const TemporaryDirectory dir;
  const std::string gpt2 = models + "gpt2", text = support::bytes_of(gpt2 + "/text.txt"),
                    out = (dir / "D").string();
  const Outcome outcome = run({"export", gpt2, "--text", text, "--layer", "1", "--stages", "weights",
                               "--format", "npy", "--out", out});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err.substr(0, 61), "attnscope: note: gpt2: used: attention of layer 1 on 13 token");
  const auto golden =
      core::formats::open_tensors(gpt2 + "/golden.npz").read("attention", std::array<std::size_t, 2>{1, 2});
  const auto got = core::formats::open_tensors(out + "/weights.head2.npy");
  const auto numbers = got.read(got.tensors().front().name).numbers;
  ASSERT_EQ(numbers.size(), golden.numbers.size());
  for (std::size_t k = 0; k < numbers.size(); ++k) EXPECT_NEAR(numbers[k], golden.numbers[k], 1e-5);
  const std::string session = (dir / "s.json").string();
  EXPECT_EQ(run({"session", tiny_gpt, "--text", names, "--layer", "2", "--out", session}).status, 0);
  EXPECT_EQ(run({"figure", session, "--stage", "weights", "--out", (dir / "f.svg").string()}).status, 0);
  EXPECT_EQ(run({"export", "--preset", "multi-head", "--text", "a", "--out", out}).status, 2);
  EXPECT_EQ(
      run({"export", models + "llama.gguf", "--text", "a", "--layer", "1", "--out", (dir / "E").string()})
          .status,
      0);
  expect_line(run({"export", models + "llama", "--text", "a", "--layer", "2", "--out", (dir / "F").string()}),
              models + "llama: expected a layer below 2, got 2");
}

TEST(WholeModel, IsCheckedInAllLayers) {
  const std::string text = support::bytes_of(models + "gpt2/text.txt");
  const std::string dump = models + "gpt2/golden.npz";
  const Outcome right = run({"check", models + "gpt2", "--text", text, "--against", dump});
  EXPECT_EQ(right.status, 0) << right.out << right.err;
  EXPECT_THAT(right.out, testing::HasSubstr("Everything agrees that was given."));
  const Outcome other =
      run({"check", models + "gpt2", "--text", text, "--against", models + "gpt_neox/golden.npz", "--json"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.out, testing::HasSubstr("\"agrees\": false"));
}

TEST(WholeModel, RefusesInOneLine) {
  const TemporaryDirectory dir;
  const std::string place = dir.path().string();
  expect_line(run({"predict", place + "/none", "--text", "a"}),
              place + "/none: expected a .gguf file, or a folder with config.json, tensors and a tokenizer");
  expect_line(run({"predict", place, "--text", "a"}), place + "/config.json: no such file");
  expect_line(run({"tokens", tiny_gpt, "--text", "a\xFF"}),
              "--text: expected text in UTF-8, got other bytes");
  std::string longer;
  for (int k = 0; k < 300; ++k) longer += " and";
  expect_line(run({"predict", tiny_gpt, "--text", longer}),
              tiny_gpt + ": expected at most 256 tokens, as many as the model takes at once, got 300");
}

TEST(WholeModel, LensEndsWithThePredictionAndReadsBetweenAttentionAndMlp) {
  const auto items =
      json_of(run({"lens", tiny_gpt, "--text", names, "--lens", "between", "--json"})).items("points");
  ASSERT_EQ(items.size(), 8u);
  EXPECT_EQ(items[0].required("point").text(), "between");
  const auto next = json_of(run({"predict", tiny_gpt, "--text", names, "--top", "1", "--json"}));
  const auto best = next.required("next").items("guesses").front();
  EXPECT_EQ(items.back().required("id").whole(0), best.required("id").whole(0));
  EXPECT_EQ(items.back().required("probability").number(), best.required("probability").number());
  expect_line(
      run({"lens", models + "gpt2", "--text", names, "--lens", "tuned"}),
      models + "gpt2: there is no tuned lens next to it: expected lens/params.pt with its config.json");
  EXPECT_THAT(run({"lens", models + "gpt2_by_layer", "--text", "the ferry", "--lens", "jacobian"}).out,
              testing::Not(testing::HasSubstr("\n2\t1\t")))
      << "its file has no matrix of layer 1";
}

TEST(WholeModel, ProgramOfItOrOfItsSessionRepeatsTheExperiment) {
  const Outcome ablated = run({"program", tiny_gpt, "--text", names, "--off", "1.2"});
  EXPECT_EQ(ablated.status, 0) << ablated.err;
  EXPECT_THAT(ablated.out, testing::HasSubstr("ablate(\"h.1.attn.c_proj\", [64], 32)"));
  const Outcome both = run({"program", tiny_gpt, "--text", names, "--layer", "1", "--off", "1.2"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, testing::HasSubstr("--off: expected with a whole model and --text"));
  const Outcome layer = run({"program", models + "llama", "--text", "the ferry", "--layer", "1"});
  EXPECT_THAT(layer.out, testing::HasSubstr("stages = attention(x.double())")) << layer.err;
}

}  // namespace
}  // namespace cli
