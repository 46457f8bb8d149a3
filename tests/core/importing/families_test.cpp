// Checkpoints of many families, each with what NumPy makes of it;
// tests/fixtures/checkpoints/families/make_families.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/attention/attend.hpp"
#include "core/formats/readers/tensor_formats.hpp"
#include "core/importing/import.hpp"
#include "tests/support/error_of.hpp"

namespace core::importing {
namespace {

using testing::HasSubstr;

const std::string folder = FIXTURES "/checkpoints/families/";

/// A family, or a layer of one, and what must be found out about it.
struct Family {
  const char *name, *layer;  ///< the layer by its prefix, or "" for the only one
  bool causal;
  const char* left_out;  ///< names with commas, in the order in which they are said
  bool says_heads = false;
  std::size_t n_heads = 4;
};

const Family families[] = {
    {"gpt2", "", true, ""},
    {"gpt_neo", "", true, ""},
    {"gptj", "", true, "rotary"},
    {"opt", "", true, ""},
    {"bert", "", false, ""},
    {"bert_decoder", "", true, ""},
    {"roberta", "", false, ""},
    {"esm", "", false, "rotary"},
    {"distilbert", "", false, ""},
    {"albert", "", false, ""},
    {"vit", "", false, ""},
    {"deberta", "", false, "relative"},
    {"deberta_v2", "", false, "relative"},
    {"bart", "encoder.layers.0.self_attn.", false, ""},
    {"bart", "decoder.layers.0.self_attn.", true, ""},
    {"bart", "decoder.layers.0.encoder_attn.", false, ""},
    {"clip", "text_model.encoder.layers.0.self_attn.", true, ""},
    {"clip", "vision_model.encoder.layers.0.self_attn.", false, ""},
    {"t5", "encoder.block.0.layer.0.", false, "relative"},
    {"t5", "decoder.block.0.layer.0.", true, "relative"},
    {"t5", "decoder.block.0.layer.1.", false, ""},
    {"gpt_neox", "", true, "rotary"},
    {"bloom", "", true, "alibi"},
    {"falcon_7b", "", true, "rotary"},
    {"falcon_40b", "", true, "rotary"},
    {"falcon_rw", "", true, "alibi"},
    {"phi3", "", true, "rotary"},
    {"mpt", "", true, "alibi"},
    {"gpt_neo_local", "", true, ""},
    {"modern_bert", "", false, "rotary"},
    {"swin", "", false, "relative,window", true},
    {"starcoder", "", true, ""},
    {"starcoder_by_head", "", true, ""},
    {"timm", "", false, "", true},
    {"to_qkv", "", false, "", true},
    {"x_transformers", "", true, "", true},
    {"qwen3", "", true, "rotary,norm"},
    {"gemma2", "", true, "rotary,cap"},
    {"transformer_lens", "", true, ""},
    {"baichuan", "", true, "rotary"},
    {"baichuan_13b", "", true, "alibi"},
    {"codegen", "", true, "rotary", false, 8},
};

Choices choices_of(const Family& family) {
  Choices choices;
  choices.layer = family.layer;
  choices.embeddings_tensor = "x";
  if (family.says_heads) choices.n_heads = 4;
  return choices;
}

std::string path_of(const Family& family) {
  return folder + family.name + "/model.safetensors";
}

Imported opened(const Family& family, const Choices& choices) {
  core::Token progress;
  return import_file(path_of(family), choices, progress);
}

std::string names(const std::vector<LeftOut>& left_out) {
  std::string text;
  for (const LeftOut& each : left_out) text += (text.empty() ? "" : ",") + each.name;
  return text;
}

/// The values that NumPy gives that layer; T5's prefix stops before the name that its projections share.
arma::mat want(const formats::TensorFile& file, const Family& family, const std::string& what,
               std::size_t head) {
  for (const formats::TensorInfo& info : file.tensors()) {
    const std::size_t end = info.name.find("want." + what);
    if (end == info.name.npos || !info.name.starts_with(family.layer)) continue;
    return info.shape.size() == 3 ? formats::matrix(file.read(info.name), std::vector{head})
                                  : formats::matrix(file.read(info.name));
  }
  throw Error("no want." + what);
}

TEST(Family, GivesWhatNumpyMakesOfItsLayout) {
  for (const Family& family : families) {
    SCOPED_TRACE(std::string(family.name) + " " + family.layer);
    const Imported imported = opened(family, choices_of(family));
    EXPECT_EQ(imported.model.mask.causal, family.causal);
    EXPECT_EQ(imported.model.n_heads, family.n_heads);
    const attention::Trace trace = attention::attend(imported.model);
    const formats::TensorFile file = formats::open_tensors(path_of(family));
    const auto worst = [&](const arma::mat& ours, const char* what, std::size_t head) {
      return arma::abs(ours - want(file, family, what, head)).max();
    };
    for (std::size_t head = 0; head < family.n_heads; ++head) {
      EXPECT_LT(worst(trace.heads[head].queries, "q", head), 1e-13) << head;
      EXPECT_LT(worst(trace.heads[head].keys, "k", head), 1e-13) << head;
      EXPECT_LT(worst(trace.heads[head].values, "v", head), 1e-13) << head;
      EXPECT_LT(worst(trace.heads[head].weights, "weights", head), 1e-13) << head;
    }
    EXPECT_LT(worst(*trace.output, "out", 0), 1e-12);
  }
}

TEST(Family, IsRefusedUnlessWhatCannotBeComputedIsIgnored) {
  for (const Family& family : families) {
    SCOPED_TRACE(std::string(family.name) + " " + family.layer);
    Choices choices = choices_of(family);
    EXPECT_EQ(names(opened(family, choices).account.left_out), family.left_out);
    choices.ignored.emplace();
    const std::string error = support::error_of([&] { opened(family, choices); });
    if (*family.left_out)
      EXPECT_THAT(error, HasSubstr("which cannot be computed yet; --ignore "));
    else
      EXPECT_EQ(error, "no error");
    choices.ignored = {"all"};
    EXPECT_EQ(names(opened(family, choices).account.left_out), family.left_out);
  }
}

TEST(Family, SaysWhatItLacksBeforeAnythingElseThatIsMissing) {
  Choices choices;
  choices.ignored.emplace();
  core::Token progress;
  EXPECT_THAT(
      support::error_of([&] { import_file(FIXTURES "/checkpoints/llama.safetensors", choices, progress); }),
      HasSubstr("llama.safetensors: model.layers.0.self_attn.: expected attention without rotary "
                "positions, which cannot be computed yet; --ignore rotary opens it without them"));
}

TEST(Family, IsIgnoredByNameOnly) {
  const Family qwen{"qwen3", "", true, "rotary,norm"};
  Choices choices = choices_of(qwen);
  choices.ignored = {"rotary"};
  EXPECT_THAT(support::error_of([&] { opened(qwen, choices); }),
              HasSubstr("without norms of queries and keys, which"));
  choices.ignored = {"norm", "rotary"};
  EXPECT_EQ(support::error_of([&] { opened(qwen, choices); }), "no error");
}

}  // namespace
}  // namespace core::importing
