// Sessions that refer to tensors in other files, including the shipped examples.
#include <gmock/gmock.h>

#include <array>

#include "core/files/session.hpp"
#include "core/files/session_files.hpp"
#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/out/numpy.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string examples = FIXTURES "/../../assets/examples/tiny_gpt/";

TEST(TinyGptExample, OpensEveryLayer) {
  const TensorFile sentence = open_tensors(examples + "sentence.npz");
  for (int layer = 0; layer < 4; ++layer) {
    const Session session = load_session(examples + "layer" + std::to_string(layer) + ".json");
    EXPECT_EQ(session.model.n_heads, 4u);
    EXPECT_EQ(session.model.d_head(), 32u);
    EXPECT_EQ(session.model.n_tokens(), 47u);
    EXPECT_TRUE(session.model.mask.causal);
    EXPECT_TRUE(session.model.projections->output.has_value());
    EXPECT_EQ(session.model.sequences[0].tokens[1], "iss");
    EXPECT_TRUE(support::is_near(*session.model.sequences[0].embeddings,
                                 matrix(sentence.read("layer" + std::to_string(layer))), 0));
  }
}

TEST(TinyGptExample, ShowsTheHeadsOfAnInduction) {
  const arma::mat back =
      attention::attend(load_session(examples + "layer0.json").model).at(attention::Stage::weights, 2);
  EXPECT_GT(arma::mean(back.diag(-1)), 0.9) << "a head that looks one token back";
  const attention::Model model = load_session(examples + "layer2.json").model;
  ASSERT_EQ(model.sequences[0].tokens[33], "Z");
  ASSERT_EQ(model.sequences[0].tokens[3], "Z");
  EXPECT_GT(attention::attend(model).at(attention::Stage::weights, 0)(33, 4), 0.9)
      << "one that finds what followed before";
}

class SessionFiles : public testing::Test {
 protected:
  Session loaded(const std::string& members, UntrustedPaths untrusted_paths = UntrustedPaths::refused) {
    fs::create_directories(session_.parent_path());
    support::put_bytes(session_, "{\"attnscope\": 1, " + members + "}");
    return load_session(session_, untrusted_paths);
  }
  std::string error_of_session(const std::string& members,
                               UntrustedPaths untrusted_paths = UntrustedPaths::refused) {
    return support::error_of([&] { loaded(members, untrusted_paths); });
  }
  std::string error_of_embeddings(const std::string& file,
                                  UntrustedPaths untrusted_paths = UntrustedPaths::refused) {
    return error_of_session(R"("embeddings": {"file": ")" + file + "\"}", untrusted_paths);
  }
  /// Returns the error for an unsuitable file outside the session's folder.
  std::string unquoted(const std::string& key, const std::string& file) const {
    return session_.string() + ": " + key + ".file: the file \"" + file +
           "\" cannot be used as the session wants it; it does not lie beside the session, so nothing of what "
           "it holds is quoted: open it by itself to see why";
  }
  void copy(const std::string& from, const std::string& name) { fs::copy_file(from, directory_ / name); }

  support::TemporaryDirectory directory_;
  fs::path session_ = directory_ / "s.json";
};

TEST_F(SessionFiles, AreFoundBesideTheSession) {
  copy(FIXTURES "/formats/npy/f4.little.C.npy", "x.npy");
  support::put_bytes(directory_ / "x.csv", "1,2\n3,4\n");
  const attention::Model model = loaded(R"("embeddings": {"file": "x.csv"})").model;
  EXPECT_TRUE(support::is_near(*model.sequences[0].embeddings, arma::mat{{1, 2}, {3, 4}}, 0));
  EXPECT_THAT(
      error_of_session(R"("embeddings": [{"file": "x.npy", "at": [0]}, {"file": "x.npy", "at": [2]}])"),
      HasSubstr("x.npy: x: expected index 0 of [2, 3, 4] to be below 2, got 2"));
}

TEST_F(SessionFiles, HoldGivenStages) {
  copy(FIXTURES "/formats/npy/f4.little.C.npy", "w.npy");  // [2, 3, 4]
  const arma::mat numbers =
      matrix(open_tensors(directory_ / "w.npy").read("w"), std::array<std::size_t, 1>{1});
  const attention::Model two = loaded(R"("given": {"weights": {"file": "w.npy"}})").model;
  EXPECT_EQ(two.n_heads, 2u);
  ASSERT_EQ(two.given.stages.size(), 1u);
  EXPECT_TRUE(support::is_near(*two.given.stages[0].matrices[1], numbers, 0));
  EXPECT_EQ(two.n_tokens(), 3u);
  EXPECT_EQ(two.n_keys(), 4u);
  const attention::Model one = loaded(R"("given": {"weights": {"file": "w.npy", "at": [1]}})").model;
  EXPECT_EQ(one.n_heads, 1u);
  EXPECT_TRUE(support::is_near(*one.given.stages[0].matrices[0], numbers, 0));
  EXPECT_THAT(
      error_of_session(R"("given": {"weights": {"file": "w.npy", "at": [0, 0]}})"),
      HasSubstr(
          "s.json: given.weights: expected [rows, columns], [heads, rows, columns] or [sequences, heads, rows, columns], got [4]"));
  EXPECT_THAT(
      error_of_session(R"("given": {"scores": {"file": "w.npy"}, "weights": {"file": "w.npy", "at": [1]}})"),
      HasSubstr("s.json: given.weights: expected 2 matrices as of the stage before, got 1"));
}

TEST_F(SessionFiles, OfNoMatricesAreRefused) {
  for (const std::vector<std::size_t>& shape :
       {std::vector<std::size_t>{0, 2, 2}, {std::size_t{1} << 40, 0, 2, 2}}) {
    support::put_bytes(directory_ / "w.npy", npy_header(shape));
    EXPECT_THAT(error_of_session(R"("given": {"weights": {"file": "w.npy"}})"),
                HasSubstr("s.json: given.weights: expected at least one number, got " + shape_text(shape)));
  }
}

TEST_F(SessionFiles, ThatAreWrongAreNamed) {
  copy(FIXTURES "/formats/words.npz", "words.npz");
  copy(FIXTURES "/checkpoints/llama.safetensors", "llama.safetensors");
  const std::string numbers = R"("embeddings": [[1, 2, 3, 4, 5, 6]], )";
  EXPECT_THAT(error_of_session(R"("embeddings": {"file": "none.npy"})"), HasSubstr("none.npy: no such file"));
  EXPECT_THAT(
      error_of_session(R"("embeddings": {"file": "words.npz"})"),
      HasSubstr("s.json: embeddings: expected the key \"tensor\", as there are 2 of them in the file"));
  EXPECT_THAT(error_of_session(R"("embeddings": {"file": "words.npz", "tensor": "tokens"})"),
              HasSubstr("expected numbers, got text"));
  EXPECT_THAT(error_of_session(numbers + R"("tokens": {"file": "words.npz", "tensor": "weights"})"),
              HasSubstr("s.json: tokens: expected a list of texts in the file, got float64 [2, 2]"));
  EXPECT_THAT(error_of_session(numbers + R"("projections": {"file": "words.npz"})"),
              HasSubstr("words.npz: expected a checkpoint of a known layout"));
  EXPECT_THAT(error_of_session(numbers + R"("projections": {"file": "llama.safetensors", "layer": 1})"),
              HasSubstr("llama.safetensors: expected a layer from 0"));
  copy(FIXTURES "/checkpoints/families/swin/model.safetensors", "swin.safetensors");
  EXPECT_THAT(error_of_session(numbers + R"("projections": {"file": "swin.safetensors"})"),
              HasSubstr("s.json: projections: expected a layer without relative position biases, or "
                        "\"ignore\": [\"relative\"], got one with them"));
  EXPECT_THAT(
      error_of_session(numbers + R"("projections": {"file": "llama.safetensors", "ignore": ["rotary"]})"),
      HasSubstr("the number of heads must be said"));
  EXPECT_EQ(
      error_of_session(
          numbers +
          R"("n_heads": 2, "projections": {"file": "llama.safetensors", "layer": "model.layers.0.self_attn", "ignore": ["rotary"]})"),
      "no error");
  EXPECT_THAT(load_session(session_).left_out, testing::ElementsAre("rotary positions"));
  EXPECT_FALSE(load_session(session_).model.additions.positions.rotary.has_value());
}

TEST_F(SessionFiles, TakeFromACheckpointWhatTheyDoNotSay) {
  copy(FIXTURES "/checkpoints/families/qwen3/model.safetensors", "model.safetensors");
  copy(FIXTURES "/checkpoints/families/qwen3/config.json", "config.json");
  const auto opened = [&](const std::string& rest) {
    return loaded(R"("embeddings": {"file": "model.safetensors", "tensor": "x"}, )" + rest +
                  R"("projections": {"file": "model.safetensors"})")
        .model;
  };
  const attention::Model model = opened("");
  EXPECT_EQ(model.n_kv_heads, 2u);
  ASSERT_TRUE(model.additions.positions.rotary.has_value());
  EXPECT_EQ(model.additions.positions.rotary->base, 1e6);
  const attention::Trace trace = attention::attend(model);
  const TensorFile file = open_tensors(directory_ / "model.safetensors");
  for (std::size_t head = 0; head < 4; ++head)
    EXPECT_TRUE(support::is_near(*trace.at(attention::Stage::weights, head),
                                 matrix(file.read("want.weights"), std::vector{head}), 1e-13));
  const attention::Model other = opened(R"("positions": {"rotary": {"base": 500}}, "normalise": null, )");
  EXPECT_EQ(other.additions.positions.rotary->base, 500);
  EXPECT_FALSE(other.additions.normalize.has_value());
}

TEST_F(SessionFiles, LieBesideItUnlessItIsSaidThatTheyMayNot) {
  fs::create_directories(directory_ / "home/deep");
  support::put_bytes(directory_ / "out.csv", "1,2\n3,4\n");
  fs::create_symlink("../out.csv", directory_ / "home/link.csv");
  fs::create_directory_symlink("..", directory_ / "home/up");
  fs::copy_file(directory_ / "out.csv", directory_ / "home/deep/in.csv");
  fs::create_symlink("deep/in.csv", directory_ / "home/inner.csv");
  session_ = directory_ / "home/s.json";
  const std::string out = (directory_ / "out.csv").string();
  for (const std::string& file : {std::string("../out.csv"), out, std::string("link.csv"),
                                  std::string("up/out.csv"), std::string("deep/../../out.csv")}) {
    // The error also says where a link leads.
    const bool is_link = file == "link.csv" || file == "up/out.csv";
    EXPECT_EQ(error_of_embeddings(file),
              session_.string() + ": embeddings.file: the file " + quoted_briefly(file) +
                  (is_link ? ", which leads to \"" + out + "\"," : "") + " does not lie beside the session");
    EXPECT_EQ(error_of_embeddings(file, UntrustedPaths::allowed), "no error") << file;
  }
  for (const char* file : {"deep/in.csv", "inner.csv", "./deep/in.csv"})
    EXPECT_EQ(error_of_embeddings(file), "no error");
  EXPECT_THAT(error_of_embeddings("/etc/passwd"),
              testing::Not(HasSubstr("root")));  // no content is quoted
  EXPECT_THAT(error_of_embeddings("deep/in.csv\\u0000x"),
              HasSubstr("embeddings.file: expected the name of a file, got"));
}

TEST_F(SessionFiles, OfAFileElsewhereNothingIsQuoted) {
  const fs::path folder = directory_ / "folder";
  session_ = folder / "s.json";
  fs::create_directories(folder);
  const auto embeddings = [&](const std::string& file) {
    return error_of_embeddings(file, UntrustedPaths::allowed);
  };
  for (const char* bytes : {"1,2\nsecret:x:1\n", R"({"secret": [1, "x"]})", "\x93NUMPY\x01secret"})
    for (const std::string name : {"x.csv", "x.npy", "x.json", "x.safetensors", "passwd"}) {
      support::put_bytes(directory_ / name, bytes);
      support::put_bytes(folder / name, bytes);
      EXPECT_EQ(embeddings("../" + name), unquoted("embeddings", "../" + name)) << bytes;
      EXPECT_THAT(embeddings(name), HasSubstr((folder / name).string() + ":")) << bytes;
    }
  EXPECT_THAT(embeddings("../no.csv"), HasSubstr("/no.csv: no such file"));
  support::put_bytes(directory_ / "x.json", R"({"secret": [[1, 2]]})");
  EXPECT_EQ(error_of_session(R"("embeddings": [[1, 2]], "projections": {"file": "../x.json", "layer": 0})",
                             UntrustedPaths::allowed),
            unquoted("projections", "../x.json"));
}

TEST_F(SessionFiles, OfWhatIsReadWithAFileElsewhereNothingIsQuoted) {
  const fs::path folder = directory_ / "folder";
  session_ = folder / "s.json";
  fs::create_directories(folder / "m");
  fs::create_directories(folder / "data/sequence0");
  support::put_bytes(directory_ / "secret", "1,2\nsecret:x:1\n");
  const auto expect_closed = [&](const std::string& words, const std::string& place, const std::string& file,
                                 const std::string& leading) {
    EXPECT_EQ(error_of_session(words), session_.string() + ": " + place + ".file: the file \"" + file + "\"" +
                                           leading + " leads to \"" + (directory_ / "secret").string() +
                                           "\", does not lie beside the session");
    EXPECT_EQ(error_of_session(words, UntrustedPaths::allowed), unquoted(place, file));
  };
  fs::create_symlink("../../../secret", folder / "data/sequence0/x.csv");
  expect_closed(R"("embeddings": {"file": "data", "tensor": "x", "at": [0]})", "embeddings", "data",
                ", in which \"sequence0/x.csv\"");

  support::put_bytes(folder / "m/m.safetensors.index.json",
                     R"({"weight_map": {"x": "a.safetensors", "y": 1}})");
  fs::create_symlink("../../secret", folder / "m/a.safetensors");
  expect_closed(R"("embeddings": {"file": "m/m.safetensors.index.json", "tensor": "x"})", "embeddings",
                "m/a.safetensors", ", which");
  fs::remove(folder / "m/a.safetensors");
  EXPECT_THAT(error_of_embeddings("m/m.safetensors.index.json", UntrustedPaths::allowed),
              HasSubstr("weight_map.x: the file \"a.safetensors\" is missing beside it"));

  copy(FIXTURES "/checkpoints/llama.safetensors", "folder/m/model.safetensors");
  fs::create_symlink("../../secret", folder / "m/config.json");
  expect_closed(R"("embeddings": [[1]], "projections": {"file": "m/model.safetensors"})", "projections",
                "m/config.json", ", which");
}

TEST_F(SessionFiles, ElsewhereAreNotQuotedWhenTheyAreNotWhatIsWanted) {
  session_ = directory_ / "folder/s.json";
  copy(FIXTURES "/formats/words.npz", "words.npz");
  support::put_bytes(directory_ / "x.csv", "1,2\n3,4\n");
  copy(FIXTURES "/formats/npy/f4.little.C.npy", "w.npy");
  for (const char* words :
       {R"("embeddings": {"file": "../w.npy"})",
        R"("embeddings": {"file": "../words.npz", "tensor": "tokens"})",
        R"("embeddings": [[1]], "tokens": {"file": "../x.csv"})",
        R"("embeddings": [[1]], "tokens": {"file": "../words.npz", "tensor": "tokens"})",
        R"("given": {"weights": {"file": "../w.npy", "at": [0, 0]}})",
        R"("given": {"scores": {"file": "../w.npy"}, "weights": {"file": "../w.npy", "at": [1]}})"})
    EXPECT_THAT(error_of_session(words, UntrustedPaths::allowed),
                HasSubstr("so nothing of what it holds is quoted"))
        << words;
}

TEST_F(SessionFiles, ThatAreNamedOverAndOverAreCountedBeforeTheyAreKept) {
  const auto error = [&](const TensorShape& shape, const std::string& members) {
    support::put_bytes(directory_ / "x.npy", npy_header(shape) + std::string(16385 * 8, '\0'));
    return error_of_session(members);
  };
  const std::string place = session_.string() + ": ", given = R"("given": {"weights": {"file": "x.npy"}})";
  EXPECT_EQ(error({16385, 1}, R"("embeddings": {"file": "x.npy"})"),
            place + "embeddings: expected at most 16384 rows, got 16385");
  EXPECT_EQ(error({16385, 1, 1, 1}, given),
            place + "given.weights: expected at most 16384 sequences, got 16385");
  EXPECT_EQ(error({1, 16385}, given), place + "given: expected at most 16384 keys, got 16385");
}

TEST_F(SessionFiles, NeedNotLieBesideWhenTheyAreNotRead) {
  const fs::path folder = directory_ / "d";
  session_ = folder / "s.json";
  fs::create_directories(folder / "data/logs");
  for (const char* name : {"x.csv", "data/x.csv"}) support::put_bytes(folder / name, "1,2\n3,4\n");
  support::put_bytes(directory_ / "other.json", "{}");
  fs::create_symlink("../other.json", folder / "config.json");
  fs::create_symlink("../../../other.json", folder / "data/logs/run");
  EXPECT_EQ(error_of_embeddings("x.csv"), "no error");
  EXPECT_EQ(error_of_session(R"("embeddings": {"file": "data", "tensor": "x"})"), "no error");
}

TEST_F(SessionFiles, InASnapshotOfACacheMayBeLinksToItsBlobs) {
  const fs::path model = directory_ / "models--org--name", snapshot = model / "snapshots/1a2b";
  fs::create_directories(snapshot);
  fs::create_directories(model / "blobs");
  fs::create_directories(directory_ / "models--org--other/blobs");
  support::put_bytes(model / "blobs/3c4d", "1,2\n3,4\n");
  support::put_bytes(directory_ / "models--org--other/blobs/5e6f", "1,2\n3,4\n");
  fs::create_symlink("../../blobs/3c4d", snapshot / "x.csv");
  fs::create_symlink("../../../models--org--other/blobs/5e6f", snapshot / "other.csv");
  fs::create_symlink("/etc/hostname", model / "blobs/7a8b");
  fs::create_symlink("../../blobs/7a8b", snapshot / "host.csv");
  session_ = snapshot / "s.json";
  EXPECT_EQ(error_of_embeddings("x.csv"), "no error");
  support::put_bytes(model / "blobs/9c0d", R"({"weight_map": {"x": "model-1.safetensors"}, "metadata": {}})");
  fs::create_symlink("../../blobs/9c0d", snapshot / "model.safetensors.index.json");
  support::write(model / "blobs/1e2f", {{"x", {2}, {1, 2}}});
  fs::create_symlink("../../blobs/1e2f", snapshot / "model-1.safetensors");
  fs::create_symlink("../../blobs/9c0d", snapshot / "config.json");
  EXPECT_EQ(error_of_embeddings("model.safetensors.index.json"), "no error");
  for (const char* file : {"other.csv", "host.csv", "../../blobs/3c4d"})
    EXPECT_THAT(error_of_embeddings(file), HasSubstr("does not lie beside the session")) << file;
}

struct Beside : testing::Test {
  support::TemporaryDirectory directory;
  const fs::path home = directory / "home";

  Beside() {
    fs::create_directories(home / "model");
    fs::create_directories(directory / "elsewhere");
    support::put_bytes(home / "model/a.npy", "a");
    support::put_bytes(directory / "elsewhere/b.npy", "b");
  }
};

TEST_F(Beside, IsWhatLiesBelowTheFolderWhetherItExistsOrNot) {
  for (const char* path : {"model", "model/a.npy", "missing.npy", "model/./a.npy"})
    EXPECT_TRUE(is_within(path, home)) << path;
}

TEST(BesideTheCurrentFolder, IsWhatDoesNotExistToo) {
  EXPECT_TRUE(is_within("there is no such file", ""));
  EXPECT_EQ(link_target_text("there is no such file", ""), "");
}

TEST_F(Beside, IsNoFolderOfFilesThatLieElsewhere) {
  fs::create_symlink("a.npy", home / "model/again.npy");
  EXPECT_TRUE(is_within("model", home)) << "a link to what lies beside it";
  fs::create_symlink(directory / "elsewhere/b.npy", home / "model/b.npy");
  EXPECT_FALSE(is_within("model", home));
}

TEST_F(Beside, IsNoFolderWithASequenceThatLiesElsewhere) {
  fs::create_directories(home / "data/sequence0");
  fs::create_directories(home / "other");
  EXPECT_TRUE(is_within("data", home));
  fs::create_symlink(directory / "elsewhere/b.npy", home / "data/sequence0/x.npy");
  EXPECT_FALSE(is_within("data", home));
  EXPECT_EQ(link_target_text("data", home),
            ", in which \"sequence0/x.npy\" leads to \"" + (directory / "elsewhere/b.npy").string() + "\",");
  fs::remove_all(home / "data/sequence0");
  fs::create_directory_symlink("../other", home / "data/sequence0");
  EXPECT_TRUE(is_within("data", home)) << "a link to a folder beside it";
  fs::create_symlink("../../elsewhere/b.npy", home / "other/x.npy");
  EXPECT_FALSE(is_within("data", home));
}

TEST_F(Beside, SaysNothingOfWhereAPathLeadsThatSaysItItself) {
  EXPECT_EQ(link_target_text("model/../model/a.npy", home), "");
  EXPECT_EQ(link_target_text(home / "model", home), "");
}

}  // namespace
}  // namespace core::formats
