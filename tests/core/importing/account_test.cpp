#include "core/importing/import.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::importing {
namespace {

using support::Written;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Imported opened_file(const std::filesystem::path& path, const Choices& choices = {}) {
  core::Token progress;
  return import_file(path, choices, progress);
}

TEST(Account, IsOneLine) {
  Account account;
  EXPECT_EQ(reservations_text(account), "");
  EXPECT_EQ(account_text(account), "assumed: nothing; not used: nothing");
  account = {
      {"q [2, 2] as queries"}, {"attn_mask [6, 6]"}, {"causal", "1 head"}, {{"rotary", "rotary positions"}}};
  EXPECT_EQ(reservations_text(account),
            "not computed: rotary positions; assumed: causal, 1 head; not used: attn_mask [6, 6]");
  EXPECT_EQ(account_text(account),
            "used: q [2, 2] as queries; not computed: rotary positions; assumed: causal, 1 head; not used: "
            "attn_mask [6, 6]");
  account.not_used.assign(9, "t [1]");
  EXPECT_THAT(reservations_text(account), HasSubstr("t [1], t [1] and 3 more"));
}

TEST(ImportedTable, SaysThatItsFirstLineOfNumbersIsNoHeader) {
  const support::TemporaryDirectory directory;
  support::put_bytes(directory / "x.csv", "0,1,2\n0.5,0.25,3\n1,2,4\n");
  const Imported counted = opened_file(directory / "x.csv");
  EXPECT_EQ(counted.model.n_tokens(), 3u);
  EXPECT_THAT(counted.account.assumed,
              Contains("the first line of x, 0, 1 …, is a row of numbers and no names of columns "
                       "(--first-line says which)"));
  support::put_bytes(directory / "x.csv", "0.5,0.25,3\n1,2,4\n");
  EXPECT_THAT(opened_file(directory / "x.csv").account.assumed, Not(Contains(HasSubstr("first line"))));
}

TEST(ImportedTable, TakesItsFirstLineForWhatItIsSaidToBe) {
  const support::TemporaryDirectory directory;
  const auto opened = [&](bool names) {
    core::Token progress;
    Choices choices;
    choices.first_line_is_names = names;
    return import_file(directory / "x.csv", choices, progress);
  };
  support::put_bytes(directory / "x.csv", "1,2,3\n0.5,0.25,3\n1,2,4\n");
  EXPECT_EQ(opened(false).model.n_tokens(), 3u);
  EXPECT_THAT(opened(false).account.assumed, Not(Contains(HasSubstr("first line"))));
  const Imported named = opened(true);
  EXPECT_EQ(named.model.n_tokens(), 2u);
  EXPECT_EQ((*named.model.sequences[0].embeddings)(0, 1), 0.25);
  EXPECT_THAT(named.account.assumed, Not(Contains(HasSubstr("first line"))));
  support::put_bytes(directory / "x.csv", "1,2,4\n0.5,0.25,3\n");
  EXPECT_THAT(support::error_of([&] { opened(true); }),
              HasSubstr("x.csv: expected a table whose first line is 0, 1, 2 … or 1, 2, 3 …"));
}

TEST(ImportedEmbeddings, AreSaidToStandBeforeTheNorm) {
  const support::TemporaryDirectory directory;
  const auto path = directory / "model.safetensors";
  Written weight{"h.0.attn.c_attn.weight", {2, 6}, {}},
      output{"h.0.attn.c_proj.weight", {2, 2}, {1, 0, 0, 1}};
  weight.numbers.assign(12, 0.5f);
  support::write(
      path,
      {weight, output, {"hidden_states", {3, 2}, {1, 2, 3, 4, 5, 6}}, {"ln_1", {3, 2}, {1, 2, 3, 4, 5, 6}}});
  Choices choices;
  choices.n_heads = 1;
  choices.embeddings_tensor = "hidden_states";
  EXPECT_THAT(
      opened_file(path, choices).account.assumed,
      Contains("hidden_states enters attention as it is, though it seems to stand before the layer norm, "
               "which is not computed"));
  choices.embeddings_tensor = "ln_1";
  EXPECT_THAT(opened_file(path, choices).account.assumed, Not(Contains(HasSubstr("norm"))));
}

TEST(QuantisedWeights, AreRefusedByTheNameOfTheirScheme) {
  const support::TemporaryDirectory directory;
  const auto path = directory / "model.safetensors";
  const auto refusal = [&](const std::vector<Written>& tensors) {
    support::write(path, tensors);
    return support::error_of([&] { opened_file(path); });
  };
  const std::string q = "model.layers.0.self_attn.q_proj.";
  const Written packed{q + "qweight", {1, 8}, {1, 2, 3, 4, 5, 6, 7, 8}, "I32"};
  const Written scales{q + "scales", {1, 8}, {1, 1, 1, 1, 1, 1, 1, 1}};
  EXPECT_THAT(
      refusal({packed, scales, {q + "g_idx", {8}, {0, 0, 0, 0, 0, 0, 0, 0}, "I32"}}),
      HasSubstr(q + "qweight: expected weights as floating-point numbers, got int32 quantised by GPTQ"));
  EXPECT_THAT(refusal({packed, {q + "scales", {1, 64}, std::vector<float>(64, 1)}}), HasSubstr("by AWQ"));
  const Written bytes{q + "weight", {2, 2}, {1, 2, 3, 4}, "I8"};
  EXPECT_THAT(refusal({bytes, {q + "SCB", {2}, {1, 1}}}), HasSubstr("int8 quantised by bitsandbytes"));
  EXPECT_THAT(refusal({bytes, {q + "scale", {1}, {1}}}),
              HasSubstr("quantised by a scheme with " + q + "scale"));
  EXPECT_THAT(refusal({bytes, {q + "weight_scale", {1}, {1}}}), HasSubstr(q + "weight_scale"));
  // Whole numbers without a scale are numbers, and so are those beside the scale of a dump.
  EXPECT_EQ(refusal({{"x", {2, 2}, {1, 2, 3, 4}, "I8"}}), "no error");
  EXPECT_EQ(refusal({{"q", {2, 2}, {1, 2, 3, 4}},
                     {"k", {2, 2}, {1, 2, 3, 4}},
                     {"scale", {1}, {1}},
                     {"mask", {2, 2}, {1, 0, 1, 1}, "I32"}}),
            "no error");
}

TEST(Names, ThatCanBeIgnoredAreThoseOfTheTable) {
  for (const char* name : {"rotary", "relative", "alibi", "window", "cap", "norm", "all"})
    EXPECT_TRUE(can_be_ignored(name)) << name;
  EXPECT_FALSE(can_be_ignored("rotari"));
  EXPECT_THAT(names_to_ignore(), HasSubstr("rotary, scaling, relative, alibi"));
}

}  // namespace
}  // namespace core::importing
