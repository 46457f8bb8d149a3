// The numbers are compared with NumPy's in tests/python/check_scan.py.
#include <gmock/gmock.h>

#include "core/scan/tree.hpp"
#include "core/system/file.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::scan {
namespace {

using support::error_of;
using testing::HasSubstr;
using transformer::goldens::Tools;
namespace fs = std::filesystem;

const std::vector<std::string> lines{
    "Mrs. Norris was sorry; Mrs. Norris", "",    "egg jam fig and egg jam f", "a",          "\xff\xfe",
    "to be or not to be or not to be",    "egg", "fig fig fig fig fig",       "jam and egg"};

struct ScanOf : testing::Test {
  support::TemporaryDirectory dir;
  Tools tools;
  std::shared_ptr<const transformer::Transformer> model =
      transformer::goldens::opened(transformer::goldens::tiny_gpt);

  fs::path file(const std::string& name, std::size_t first, std::size_t end) const {
    std::string text;
    for (std::size_t k = first; k < end; ++k) text += lines[k] + "\n";
    system::write_atomically(dir.path() / name, text);
    return dir.path() / name;
  }
  Scan run_on(const fs::path& texts, const fs::path& folder, std::uint64_t n = 0, bool resumes = false,
              std::optional<std::size_t> length = {}) const {
    return run(*model, read_texts(texts), {n, length, folder, resumes}, tools.context);
  }
  std::string refusal(const fs::path& texts, const fs::path& folder, bool resumes,
                      std::optional<std::size_t> length = {}) const {
    return error_of([&] { run_on(texts, folder, 0, resumes, length); });
  }
};

void expect_same(const Scan& a, const Scan& b) {
  EXPECT_EQ(a.n_sequences, b.n_sequences);
  EXPECT_EQ(a.n_tokens, b.n_tokens);
  EXPECT_EQ(a.counts, b.counts);
  EXPECT_EQ(a.n_skipped, b.n_skipped);
  ASSERT_EQ(a.heads.size(), b.heads.size());
  for (std::size_t at = 0; at < a.heads.size(); ++at) {
    EXPECT_EQ(a.heads[at].sums, b.heads[at].sums) << at;
    ASSERT_EQ(a.heads[at].examples.size(), b.heads[at].examples.size());
    for (std::size_t k = 0; k < a.heads[at].examples.size(); ++k) {
      const Example &x = a.heads[at].examples[k], &y = b.heads[at].examples[k];
      EXPECT_EQ(x.strength, y.strength);
      EXPECT_EQ(x.sequence->text, y.sequence->text);
      EXPECT_EQ(x.cells, y.cells);
      EXPECT_EQ(x.weights, y.weights);
    }
  }
}

TEST_F(ScanOf, PartsMergeToTheScanOfAllOfThem) {
  Scan all = run_on(file("all.txt", 0, lines.size()), "");
  EXPECT_EQ(all.n_sequences, 7u);
  EXPECT_EQ(all.skipped, (std::vector<SkippedLine>{{0, 5, "it is not UTF-8"}}));
  Scan parts = run_on(file("a.txt", 0, 3), dir.path() / "a");
  merge(parts, run_on(file("b.txt", 3, 6), ""), "a and b");
  merge(parts, run_on(file("c.txt", 6, 9), ""), "a and c");
  expect_same(parts, all);
  EXPECT_EQ(error_of([&] { merge(parts, run_on(dir.path() / "b.txt", ""), "x and y"); }),
            "x and y: expected scans of different texts, but both are of b.txt");
  EXPECT_EQ(
      error_of([&] { merge(parts, run_on(file("d.txt", 0, 1), "", 0, false, 4), "x and y"); }),
      "x and y: expected scans of one model and length, but the first is with texts of at most 256 tokens");
}

TEST_F(ScanOf, AFolderIsContinuedAndReadBack) {
  const fs::path texts = file("all.txt", 0, lines.size()), folder = dir.path() / "heads";
  EXPECT_EQ(run_on(texts, folder, 2).n_sequences, 2u);
  EXPECT_THAT(refusal(texts, folder, false),
              HasSubstr("it holds a scan of 2 of these texts; --resume goes on with it"));
  // As after a kill between the files of heads and config.json.
  const std::string config = system::read_file(folder / "config.json", 1 << 20);
  run_on(texts, folder, 5, true);
  system::write_atomically(folder / "config.json", config);
  const Scan all = run_on(texts, "");
  expect_same(run_on(texts, folder, 0, true), all);
  expect_same(read_scan(folder), all);
}

TEST_F(ScanOf, AStoppedScanKeepsWhatIsThere) {
  const fs::path texts = file("all.txt", 0, lines.size()), folder = dir.path() / "heads";
  const Scan stopped = run(*model, read_texts(texts), {0, {}, folder, false}, tools.context,
                           [&](const Scan&, std::uint64_t n) {
                             EXPECT_GE(n, 7u);
                             tools.token.stop();
                           });
  EXPECT_EQ(stopped.n_sequences, 4u);
  expect_same(read_scan(folder), stopped);
}

TEST_F(ScanOf, AnotherScanIsRefused) {
  const fs::path texts = file("a.txt", 0, 3), folder = dir.path() / "heads";
  run_on(texts, folder);
  EXPECT_THAT(refusal(file("b.txt", 2, 4), folder, true),
              HasSubstr("expected another folder, as this one holds a scan of other texts (a.txt)"));
  EXPECT_THAT(refusal(texts, folder, true, 8), HasSubstr("holds a scan with texts of at most 256 tokens"));
  EXPECT_THAT(refusal(texts, "", false, 1000), HasSubstr("expected a length of 1 to 256 tokens"));
  EXPECT_THAT(refusal(texts, dir.path(), false), HasSubstr("expected a new or empty folder for the scan"));
  EXPECT_THAT(refusal(file("none.txt", 1, 2), "", false), HasSubstr("expected texts, one a line"));
  EXPECT_THAT(refusal(file("bad.txt", 4, 5), "", false), HasSubstr("line 1 cannot be read: it is not UTF-8"));
  EXPECT_THAT(refusal(dir.path() / "missing", "", false), HasSubstr("missing"));
  system::write_atomically(dir.path() / "x.jsonl", "{\"text\": \"egg jam\"}\n{\"no\": 1}\n[\n");
  EXPECT_EQ(run_on(dir.path() / "x.jsonl", "").n_skipped, 2u);
}

TEST_F(ScanOf, ADamagedFolderIsRefused) {
  const fs::path folder = dir.path() / "heads", config = folder / "config.json";
  run_on(file("a.txt", 0, 5), folder);
  const std::string whole = system::read_file(config, 1 << 20);
  for (std::size_t n = 0; n + 2 < whole.size(); n += 397) {
    system::write_atomically(config, whole.substr(0, n));
    EXPECT_THAT(error_of([&] { read_scan(folder); }), HasSubstr("config.json")) << n;
  }
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string text = whole;
    text.replace(text.find(before), before.size(), after);
    system::write_atomically(config, text);
    return error_of([&] { read_scan(folder); });
  };
  EXPECT_THAT(with("\"n_layers\":4", "\"n_layers\":5"),
              HasSubstr("expected the sums of 5 layers of 4 heads"));
  EXPECT_THAT(with("\"counts\":[", "\"counts\":[1,"), HasSubstr("expected 7 numbers"));
  EXPECT_THAT(with("\"source\":0", "\"source\":1"), HasSubstr("expected the index of a file"));
  EXPECT_THAT(with("\"version\":1", "\"version\":2"), HasSubstr("expected version 1"));
}

TEST_F(ScanOf, ATreeOfHeadVisIsDisplayedButNotContinued) {
  const fs::path folder = dir.path() / "tree";
  fs::create_directories(folder / "heads");
  const auto write = [&](const char* name, const std::string& text) {
    system::write_atomically(folder / name, text);
  };
  write("config.json",
        R"({"model_name": "m", "heads": [[3, 1]], "n_layers": 4, "n_heads": 2, "n_intervals": 10,
            "metrics": ["prev_token_score", "logit_std"], "metric_descriptions": {"logit_std": "its spread"}})");
  write("scatter_data.json", R"([{"layer": 3, "head": 1, "prev_token_score": 0.75, "logit_std": null}])");
  write("heads/L3H1.json",
        R"({"sequences": [{"sequence_id": 7, "interval": 9, "tokens": ["a", " b"], "seq_len": 2,
            "attention_indices": [0, 3], "attention_values": [1, 0.5], "max_activation": 0.5},
            {"sequence_id": 8, "interval": 10, "tokens": ["c"], "seq_len": 1, "attention_indices": [],
             "attention_values": [], "max_activation": 0.75}], "histogram": {}})");
  const HeadTable table = read_table(folder);
  EXPECT_EQ(table.roles_of(3, 1)->previous, 0.75);
  EXPECT_FALSE(table.roles_of(0, 0));
  EXPECT_EQ(table.metrics[1].about, "its spread");
  EXPECT_FALSE(table.rows[0].values[1]);
  const auto examples = read_examples(folder, 3, 1);
  ASSERT_EQ(examples.size(), 2u);
  EXPECT_EQ(examples[0].sequence->line, 8u);
  EXPECT_EQ(examples[1].sequence->text, "a b");
  EXPECT_THAT(error_of([&] { read_scan(folder); }), HasSubstr("config.json: expected a scan of attnscope"));
  write("heads/L3H1.json", R"({"sequences": [{"sequence_id": 7, "tokens": ["a"], "seq_len": 1,
            "attention_indices": [1], "attention_values": [1], "max_activation": 0.5}]})");
  EXPECT_THAT(error_of([&] { read_examples(folder, 3, 1); }), HasSubstr("expected cells below 1"));
  write("scatter_data.json", "[");
  EXPECT_THAT(error_of([&] { read_table(folder); }), HasSubstr("scatter_data.json"));
}

}  // namespace
}  // namespace core::scan
