#include "app/cli/batch.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "core/files/session.hpp"
#include "core/files/tensor_formats.hpp"
#include "tests/support/temporary_directory.hpp"

namespace app {
namespace {

struct Outcome {
  int status;
  std::string out, err;
};

Outcome run(std::vector<std::string> arguments) {
  std::ostringstream out, err;
  const int status = run_batch(parse_arguments(std::move(arguments)), out, err);
  return {status, out.str(), err.str()};
}

TEST(Batch, ListsEveryPresetOnALineOfItsOwn) {
  std::string expected;
  for (const core::editing::Preset& preset : core::editing::presets())
    expected += std::string(preset.name) + "\t" + preset.about + "\n";
  const Outcome outcome = run({"presets"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, expected);
  EXPECT_NE(outcome.out.find("multi-head\t"), expected.npos);
}

TEST(Batch, WritesEveryPresetAsASessionThatReadsBack) {
  const support::TemporaryDirectory dir;
  for (const core::editing::Preset& preset : core::editing::presets()) {
    const Outcome outcome = run({"session", "--preset", preset.name, "--out", (dir / "s.json").string()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(core::formats::load_session(dir / "s.json").model == preset.make()) << preset.name;
  }
}

TEST(Batch, ExportsAPresetAndItsSessionAlike) {
  const support::TemporaryDirectory dir;
  const std::string file = (dir / "s.json").string(), a = (dir / "a").string(), b = (dir / "b").string();
  ASSERT_EQ(run({"session", "--preset", "multi-head", "--out", file}).status, 0);
  ASSERT_EQ(run({"export", "--preset", "multi-head", "--out", a}).status, 0);
  ASSERT_EQ(run({"export", file, "--out", b}).status, 0);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(a)) {
    EXPECT_EQ(support::bytes_of(entry.path()), support::bytes_of(b / entry.path().filename()));
    ++files;
  }
  EXPECT_GE(files, 20u);
}

TEST(Batch, WritesTheGradientsOfANumberInTheFilesOfAnExport) {
  const support::TemporaryDirectory dir;
  const std::string folder = (dir / "d").string();
  const auto gradient = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"gradient", "--preset", "multi-head", "--out"});
    return run(more);
  };
  Outcome outcome = gradient({folder, "--of", "weights[3,:]", "--head", "1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "weights[3,:] = 1\n");  // a row of weights
  for (const char* file :
       {"d_embeddings.csv", "d_weights.head0.csv", "d_query_weight.csv", "d_output_bias.csv"})
    EXPECT_TRUE(std::filesystem::exists(dir / "d" / file)) << file;
  // A constant: each cell of the row has a gradient of 1, and nothing before the softmax has any.
  EXPECT_NE(support::bytes_of(dir / "d" / "d_weights.head1.csv").find("\nwith,1,1,1,1,1,1\r"),
            std::string::npos);
  outcome = gradient({(dir / "d.npz").string(), "--of", "output[0,0]"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto archive = core::formats::open_tensors(dir / "d.npz");
  EXPECT_EQ(archive.info("d_weights").shape, (core::formats::TensorShape{2, 6, 6}));
  EXPECT_EQ(archive.read("d_output_bias").numbers, (std::vector<double>{1, 0, 0, 0}));
  EXPECT_EQ(gradient({folder, "--of", "weights[6,0]"}).err,
            "attnscope: weights[6,0]: expected a row below 6 and a column below 6\n");
  EXPECT_EQ(gradient({folder, "--of", "weights[0,0]", "--head", "2"}).err,
            "attnscope: weights: expected a head below 2, got 2\n");
  EXPECT_EQ(gradient({folder, "--of", "output[0,0]", "--sequence", "9"}).err,
            "attnscope: sequence 9: there is no such sequence\n");
}

TEST(Batch, WritesTheGradientsOfAnErrorAgainstARow) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "t.csv", "0,0\n1,2\n");
  const auto gradient = [&](const char* row) {
    return run({"gradient", "--preset", "004-causal", "--target", (dir / "t.csv").string(), "--row", row,
                "--out", (dir / "d.npz").string()});
  };
  EXPECT_EQ(gradient("1").status, 0);
  EXPECT_EQ(gradient("1").out.find("mean squared error of output[1,:] = "), 0u);
  EXPECT_NE(gradient("2").err.find("expected one row, or more than 2, got 2"), std::string::npos);
}

TEST(Batch, DrawsTheSequenceInTheColorsThatAreAskedFor) {
  const support::TemporaryDirectory dir;
  const auto drawn = [&](std::vector<std::string> more) {
    const std::string file = (dir / "f.svg").string();
    more.insert(more.begin(), {"figure", "--preset", "001-attention", "--stage", "weights", "--out", file});
    const Outcome outcome = run(more);
    return outcome.status == 0 ? support::bytes_of(file) : outcome.err;
  };
  const std::string first = drawn({});
  EXPECT_EQ(drawn({"--sequence", "0", "--colours", "viridis", "--range", "matrix"}), first);
  EXPECT_NE(drawn({"--sequence", "7"}), first);
  EXPECT_NE(drawn({"--colours", "greys"}), first);
  EXPECT_NE(drawn({"--range", "0:0.2"}).find("above the range"), first.npos);
  EXPECT_EQ(drawn({"--sequence", "8"}), "attnscope: sequence 8: there is no such sequence\n");
}

TEST(Batch, DrawsOpsOneAfterTheOther) {
  const Outcome outcome = run({"draw", "--seed", "123", "rand(2,2)", "randint(0,10,3)"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  // PyTorch's numbers from fixtures/rng/seed123.json, as NumPy prints float32.
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find("\n\n")), "0.29611194,0.5165623\n0.25167072,0.6885568");
}

TEST(Batch, TellsWrongUsageFromFailure) {
  EXPECT_EQ(run({"export"}).status, 2);
  const Outcome outcome = run({"export", "/nowhere/s.json", "--out", "/nowhere/D"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "attnscope: /nowhere/s.json: no such file\n");
}

TEST(Batch, FailsWhenItsOutputCannotBeWritten) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(run_batch(ListPresets(), out, err), 1);
  EXPECT_EQ(err.str(), "attnscope: standard output: cannot be written\n");
  std::ostringstream odd;
  print_error(odd, "a\nb\rc\x1b[31m");
  EXPECT_EQ(odd.str(), "attnscope: a b c [31m\n");
}

TEST(Batch, MakesASessionOfALayerOfACheckpoint) {
  const support::TemporaryDirectory dir;
  const std::string checkpoint = FIXTURES "/tiny_gpt/attention.safetensors",
                    golden = FIXTURES "/tiny_gpt/golden.npz";
  const auto file = (dir / "s.json").string();
  const Outcome outcome = run(
      {"session", checkpoint, "--layer", "1", "--embeddings", golden, "--tensor", "L1.ln_1", "--out", file});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(
      outcome.err,
      "attnscope: note: attention.safetensors: used: h.1.attn.: c_attn.weight [128, 384], c_attn.bias "
      "[384], c_proj.weight [128, 128], c_proj.bias [128], 4 heads, as config.json says, causal, as GPT-2 "
      "is, h.1.attn.c_attn.weight cut into bands, L1.ln_1 [35, 128] of golden.npz as embeddings, scale "
      "1/√32; assumed: nothing; not used: 12 tensors of other parts\n");
  const core::attention::Model model = core::formats::load_session(file).model;
  EXPECT_EQ(model.n_heads, 4u);
  EXPECT_EQ(model.n_tokens(), 35u);
  const Outcome drawn = run({"session", checkpoint, "--layer", "1", "--out", file});
  EXPECT_EQ(drawn.status, 0);
  EXPECT_NE(drawn.err.find("\nattnscope: note: No embeddings were given: 8 to"), drawn.err.npos);
}

TEST(Batch, OpensACheckpointByItsIndexAsByItsFile) {
  const support::TemporaryDirectory dir;
  const std::string checkpoint = FIXTURES "/tiny_gpt/attention.safetensors";
  std::filesystem::copy_file(checkpoint, dir / "m.safetensors");
  std::filesystem::copy_file(FIXTURES "/tiny_gpt/config.json", dir / "config.json");
  std::string map;
  const auto whole = core::formats::open_tensors(checkpoint);
  for (const auto& info : whole.tensors())
    map += (map.empty() ? "\"" : ", \"") + info.name + "\": \"m.safetensors\"";
  support::put_bytes(dir / "m.safetensors.index.json", "{\"metadata\": {}, \"weight_map\": {" + map + "}}");
  const auto session_of = [&](const std::filesystem::path& path) {
    const auto file = (dir / "s.json").string();
    EXPECT_EQ(run({"session", path.string(), "--layer", "1", "--out", file}).status, 0);
    return support::bytes_of(file);
  };
  EXPECT_EQ(session_of(dir / "m.safetensors.index.json"), session_of(checkpoint));
}

TEST(Batch, SaysWhatOfAFileWasLeftOut) {
  const support::TemporaryDirectory dir;
  const std::string nested = FIXTURES "/formats/pytorch/nested.pt";
  const Outcome outcome =
      run({"session", nested, "--tensor", "model.query.weight", "--out", (dir / "s.json").string()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("note: Left out as no tensors: "), std::string::npos) << outcome.err;
  std::filesystem::copy_file(FIXTURES "/formats/npy/row.npy", dir / "row.npy");
  std::filesystem::copy_file(FIXTURES "/formats/damaged/objects.npy", dir / "weights.npy");
  const auto check = [&] {
    return run({"check", "--preset", "004-causal", "--against", dir.path().string()});
  };
  const std::string left_out = "Left out: weights.npy: expected numbers, got Python objects";
  EXPECT_NE(check().err.find(left_out), std::string::npos) << check().err;  // nothing else to compare
  run({"export", "--preset", "004-causal", "--stages", "output", "--out", (dir / "output.csv").string()});
  EXPECT_NE(check().out.find("note: " + left_out), std::string::npos) << check().out;
}

TEST(Batch, RefusesWhatCannotBeComputedUnlessItIsIgnored) {
  const support::TemporaryDirectory dir;
  const Outcome outcome = run({"session", FIXTURES "/checkpoints/families/deberta_v2/model.safetensors",
                               "--out", (dir / "s.json").string()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(
      outcome.err,
      "attnscope: " FIXTURES
      "/checkpoints/families/deberta_v2/model.safetensors: deberta.encoder.layer.0.attention.: expected "
      "attention without relative position biases, which cannot be computed yet; --ignore relative "
      "opens it without them\n");
  EXPECT_TRUE(dir.names().empty());
  const std::string file = (dir / "s.json").string(), again = (dir / "t.json").string();
  run({"session", FIXTURES "/checkpoints/llama.safetensors", "--heads", "2", "--ignore", "rotary", "--out",
       file});
  const Outcome kept = run({"session", file, "--out", again});
  EXPECT_EQ(kept.err,
            "attnscope: note: s.json: not computed: rotary positions; assumed: causal, as Llama is, by its "
            "names, scale 1/√4\n");
  EXPECT_EQ(core::formats::load_session(again).left_out, std::vector<std::string>{"rotary positions"});
  EXPECT_EQ(run({"export", file, "--heads", "2", "--out", (dir / "D").string()}).err,
            "attnscope: --heads: expected with a checkpoint or tensors, got the session s.json\n");
}

TEST(Batch, SaysWhatIsAssumedOfGivenStagesAndCutsThemForTheHeads) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "q:q.csv", "2,2,3,4\n5,6,7,8\n");
  const std::string path = (dir / "q:q.csv").string();
  const Outcome outcome = run({"export", "--given", "queries=" + path, "--given", "keys=" + path, "--heads",
                               "2", "--out", (dir / "D").string(), "--stages", "keys", "--no-labels"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err,
            "attnscope: note: given: used: " + path + " as queries, " + path +
                " as keys; assumed: not causal: every key is attended to, scale 1/√2; not used: nothing\n");
  EXPECT_EQ(support::bytes_of(dir / "D/keys.head1.csv"), "3,4\r\n7,8\r\n");
}

TEST(Batch, AsksWhatTheFirstLineOfGivenTablesIs) {
  const support::TemporaryDirectory dir;
  support::put_bytes(dir / "w.csv", "0,1,2\n0.2,0.3,0.5\n0.1,0.4,0.5\n0.3,0.3,0.4\n");
  const std::string given = "weights=" + (dir / "w.csv").string(), out = (dir / "w.npz").string();
  const auto rows = [&] { return core::formats::open_tensors(out).info("weights").shape; };
  const Outcome unsaid = run({"export", "--given", given, "--out", out});
  EXPECT_EQ(
      unsaid.err.substr(0, unsaid.err.find('\n')),
      "attnscope: note: w.csv: assumed: the first line of w, 0, 1 …, is a row of numbers and no names of columns "
      "(--first-line says which)");
  EXPECT_EQ(rows(), (core::formats::TensorShape{1, 4, 3}));
  const Outcome names = run({"export", "--given", given, "--first-line", "names", "--out", out});
  EXPECT_EQ(names.status, 0) << names.err;
  EXPECT_EQ(names.err.find("first line"), names.err.npos) << names.err;
  EXPECT_EQ(rows(), (core::formats::TensorShape{1, 3, 3}));
  EXPECT_EQ(run({"export", "--given", given, "--first-line", "numbers", "--out", out}).status, 0);
  EXPECT_EQ(rows(), (core::formats::TensorShape{1, 4, 3}));
}

TEST(Batch, ReadsGivenTablesAsTheOptionsSay) {
  const support::TemporaryDirectory dir;
  const std::string file = (dir / "w.csv").string(), out = (dir / "w.json").string();
  const auto tokens_of = [&](const char* text, std::vector<std::string> options) {
    support::put_bytes(file, text);
    options.insert(options.begin(), {"session", "--given", "weights=" + file, "--out", out});
    const Outcome outcome = run(options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto model = core::formats::load_session(out).model;
    EXPECT_EQ(model.given.stages.front().matrices.front()->at(1, 0), 0.25);
    return model.sequences.front().tokens;
  };
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(tokens_of(";The;cat\nThe;1;0\ncat;0,25;0,75\n", {"--decimal-comma"}), (Tokens{"The", "cat"}));
  EXPECT_EQ(tokens_of("The;cat\n1;0\n0,25;0,75\n", {"--decimal-comma"}), (Tokens{"The", "cat"}));
  EXPECT_EQ(tokens_of("1,1,0\n2,0.25,0.75\n3,0,1\n", {"--first-column", "names"}), (Tokens{"1", "2", "3"}));
  // The program's own table.
  const std::string own = (dir / "own.csv").string();
  ASSERT_EQ(run({"export", "--preset", "004-causal", "--stages", "weights", "--out", own}).status, 0);
  ASSERT_EQ(run({"session", "--given", "weights=" + own, "--out", out}).status, 0);
  EXPECT_EQ(core::formats::load_session(out).model.sequences.front().tokens,
            core::editing::find_preset("004-causal")->make().sequences.front().tokens);
}

}  // namespace
}  // namespace app
