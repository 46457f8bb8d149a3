// Checkpoints of many families against NumPy's computation of each:
// tests/fixtures/checkpoints/families/make_families.py.
#include <gmock/gmock.h>

#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/importing/import.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::importing {
namespace {

using attention::Stage;
using testing::Contains;
using testing::HasSubstr;

const std::string folder = FIXTURES "/checkpoints/families/";

/// A family, or one of its layers, and the expected findings.
struct Family {
  const char *name, *layer;  ///< prefix of the layer, or "" for the only one
  bool causal;
  const char* left_out;  ///< names separated by commas, in the order reported
  bool expects_head_count = false;
  std::size_t n_heads = 4;
};

const Family families[] = {
    {"gpt2", "", true, ""},
    {"gpt_neo", "", true, ""},
    {"gptj", "", true, ""},
    {"opt", "", true, ""},
    {"bert", "", false, ""},
    {"bert_decoder", "", true, ""},
    {"roberta", "", false, ""},
    {"esm", "", false, ""},
    {"distilbert", "", false, ""},
    {"albert", "", false, ""},
    {"vit", "", false, ""},
    {"deberta", "", false, "relative"},
    {"deberta_v2", "", false, "relative"},
    {"bart", "encoder.layers.0.self_attn.", false, ""},
    {"bart", "decoder.layers.0.self_attn.", true, ""},
    {"bart", "decoder.layers.0.encoder_attn.", false, "source"},
    {"clip", "text_model.encoder.layers.0.self_attn.", true, ""},
    {"clip", "vision_model.encoder.layers.0.self_attn.", false, ""},
    {"t5", "encoder.block.0.layer.0.", false, ""},
    {"t5", "encoder.block.1.layer.0.", false, ""},
    {"t5", "decoder.block.0.layer.0.", true, ""},
    {"t5", "decoder.block.1.layer.0.", true, ""},
    {"t5", "decoder.block.0.layer.1.", false, "source"},
    {"gpt_neox", "", true, ""},
    {"bloom", "", true, ""},
    {"falcon_7b", "", true, ""},
    {"falcon_40b", "", true, ""},
    {"falcon_rw", "", true, ""},
    {"phi3", "", true, ""},
    {"mpt", "", true, ""},
    {"gpt_neo_local", "", true, ""},
    {"modern_bert", "", false, ""},
    {"swin", "", false, "relative,window", true},
    {"starcoder", "", true, ""},
    {"starcoder_by_head", "", true, ""},
    {"timm", "", false, "", true},
    {"to_qkv", "", false, "", true},
    {"x_transformers", "", true, "", true},
    {"qwen3", "", true, ""},
    {"gemma2", "", true, ""},
    {"transformer_lens", "", true, ""},
    {"baichuan", "", true, ""},
    {"baichuan_13b", "", true, ""},
    {"codegen", "", true, "", false, 8},
    {"llama3", "", true, ""},
    {"meta_llama", "", true, "", true},
    {"gemma3_window", "", true, ""},
    {"gemma3_full", "", true, ""},
    {"gpt_oss", "", true, ""},
};

// transformers saves a single tower without the name prefix that would identify it.
TEST(Clip, OfOneTowerIsToldByItsType) {
  const support::TemporaryDirectory directory;
  const auto path = directory.path() / "model.safetensors";
  std::vector<support::Written> tensors;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
    tensors.push_back({"encoder.layers.0.self_attn." + std::string(name) + ".weight", {2, 2}, {1, 0, 0, 1}});
  support::write(path, tensors);
  for (const auto& [type, is_causal] : {std::pair{"clip_text_model", true},
                                        std::pair{"clip_vision_model", false}, std::pair{"clip", false}}) {
    support::put_bytes(directory.path() / "config.json",
                       "{\"model_type\": \"" + std::string(type) + "\", \"num_attention_heads\": 1}");
    const ImportResult tower = import_file(path, {}, {});
    EXPECT_EQ(tower.model.mask.causal, is_causal) << type;
    EXPECT_THAT(tower.import_report.used, Contains(is_causal ? "causal, as the text tower of CLIP"
                                                             : "not causal, as the image tower of CLIP"));
  }
}

// Many modules name their projections as Llama does but have no rotary embedding.
TEST(ProjectionsAlone, TurnNothingUnlessMoreThanTheirNamesIsThatOfLlama) {
  const support::TemporaryDirectory directory;
  const auto path = directory.path() / "model.safetensors";
  const auto turns = [&](const std::string& prefix) {
    std::vector<support::Written> tensors;
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      tensors.push_back({prefix + name + ".weight", {2, 2}, {1, 0, 0, 1}});
    support::write(path, tensors);
    const ImportResult module = import_file(path, {.n_heads = 1}, {});
    const bool is_said = std::ranges::any_of(module.import_report.assumed, [](const std::string& words) {
      return words.starts_with("no rotary positions, as nothing but the names");
    });
    const bool has_rotary = module.model.additions.positions.rotary.has_value();
    EXPECT_NE(is_said, has_rotary) << prefix;
    return has_rotary;
  };
  EXPECT_FALSE(turns(""));
  EXPECT_FALSE(turns("attn."));
  EXPECT_TRUE(turns("model.layers.0.self_attn."));
  EXPECT_TRUE(turns("self_attn."));
}

Choices choices_of(const Family& family) {
  Choices choices;
  choices.layer = family.layer;
  choices.embeddings_tensor = "x";
  if (family.expects_head_count) choices.n_heads = 4;
  return choices;
}

std::string path_of(const Family& family) {
  return folder + family.name + "/model.safetensors";
}

ImportResult opened(const Family& family, const Choices& choices) {
  return import_file(path_of(family), choices, {});
}

std::string names(const std::vector<UnsupportedFeature>& left_out) {
  std::string text;
  for (const UnsupportedFeature& each : left_out) text += (text.empty() ? "" : ",") + each.name;
  return text;
}

/// Reads NumPy's values for that layer; T5's prefix ends before the name that its projections share.
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

/// Returns the rows that enter the scores: rotated, normalized, or as projected.
const arma::mat& score_rows(const arma::mat& turned, const arma::mat& normed, const arma::mat& plain) {
  return !turned.empty() ? turned : !normed.empty() ? normed : plain;
}

TEST(Family, GivesWhatNumpyMakesOfItsLayout) {
  for (const Family& family : families) {
    SCOPED_TRACE(std::string(family.name) + " " + family.layer);
    const ImportResult imported = opened(family, choices_of(family));
    EXPECT_EQ(imported.model.mask.causal, family.causal);
    EXPECT_EQ(imported.model.n_heads, family.n_heads);
    const attention::Trace trace = attention::attend(imported.model);
    const formats::TensorFile file = formats::open_tensors(path_of(family));
    const auto worst = [&](const arma::mat& ours, const char* what, std::size_t head) {
      return arma::abs(ours - want(file, family, what, head)).max();
    };
    for (std::size_t head = 0; head < family.n_heads; ++head) {
      const auto at = [&](Stage stage) -> const auto& {
        return trace.at(stage, head);
      };
      EXPECT_LT(worst(score_rows(at(Stage::rotated_queries), at(Stage::normed_queries), at(Stage::queries)),
                      "q", head),
                1e-13)
          << head;
      EXPECT_LT(
          worst(score_rows(at(Stage::rotated_keys), at(Stage::normed_keys), at(Stage::keys)), "k", head),
          1e-13)
          << head;
      EXPECT_LT(worst(at(Stage::values), "v", head), 1e-13) << head;
      EXPECT_LT(worst(at(Stage::weights), "weights", head), 1e-13) << head;
    }
    EXPECT_LT(worst(*trace.at(Stage::output), "out", 0), 1e-12);
  }
}

TEST(Family, IsRefusedUnlessWhatCannotBeComputedIsIgnored) {
  for (const Family& family : families) {
    SCOPED_TRACE(std::string(family.name) + " " + family.layer);
    Choices choices = choices_of(family);
    EXPECT_EQ(names(opened(family, choices).import_report.not_supported), family.left_out);
    choices.ignored.emplace();
    const std::string error = support::error_of([&] { opened(family, choices); });
    if (*family.left_out)
      EXPECT_THAT(error, HasSubstr("which cannot be computed yet; --ignore "));
    else
      EXPECT_EQ(error, "no error");
    choices.ignored = {"all"};
    EXPECT_EQ(names(opened(family, choices).import_report.not_supported), family.left_out);
  }
}

/// Families differ in ways that tensor names do not reveal.
TEST(Family, OfATypeThatIsNotKnownIsRefusedUnlessItIsSaid) {
  const support::TemporaryDirectory dir;
  std::filesystem::copy_file(FIXTURES "/checkpoints/llama.safetensors", dir / "model.safetensors");
  support::put_bytes(dir / "config.json", R"({"model_type": "doge", "num_attention_heads": 2})");
  Choices choices;
  choices.ignored.emplace();
  const auto import = [&] { return import_file(dir / "model.safetensors", choices, {}); };
  EXPECT_THAT(support::error_of(import),
              HasSubstr("expected a model_type that is known, as models may differ in more than names, not "
                        "\"doge\", got one whose tensors are named as those of Llama; --assume llama opens"));
  choices.settings.type_override = "llama";
  const ImportResult opened = import();
  EXPECT_TRUE(opened.model.additions.positions.rotary.has_value());
  EXPECT_THAT(opened.import_report.used, Contains("model_type \"doge\" as llama, as said"));
}

TEST(Family, WithCrossAttentionTakesEncoderStatesBesideTheEmbeddings) {
  const Family bart{"bart", "decoder.layers.0.encoder_attn.", false, ""};
  const support::TemporaryDirectory dir;
  Choices choices = choices_of(bart);
  const ImportResult alone = opened(bart, choices);
  const arma::mat& x = *alone.model.sequences.front().embeddings;
  const arma::mat memory = arma::flipud(2 * x.head_rows(2));
  const auto put = [&](const char* name, const arma::mat& numbers) {
    std::ostringstream text;
    text.precision(17);
    numbers.raw_print(text);
    support::put_bytes(dir / name, text.str());
  };
  put("hidden_states.txt", x);
  put("encoder_hidden_states.txt", memory);
  choices.embeddings = dir.path(), choices.embeddings_tensor.clear(), choices.ignored.emplace();
  const ImportResult both = opened(bart, choices);
  const auto& projections = *both.model.projections;
  const arma::mat keys =
      memory * *projections.key.weight + arma::repmat(arma::mat(*projections.key.bias), memory.n_rows, 1);
  const arma::mat second = arma::mat(attention::attend(both.model).at(attention::Stage::keys, 1));
  EXPECT_EQ(second.n_rows, 2u);
  EXPECT_LT(arma::abs(second - keys.cols(second.n_cols, 2 * second.n_cols - 1)).max(), 1e-12);
}

TEST(Family, IsLeftWithoutWhatIsIgnoredByNameThoughItCouldBeComputed) {
  const Family qwen{"qwen3", "", true, ""};
  Choices choices = choices_of(qwen);
  choices.ignored = {"rotary"};
  const ImportResult without = opened(qwen, choices);
  EXPECT_EQ(names(without.import_report.not_supported), "rotary");
  EXPECT_FALSE(without.model.additions.positions.rotary.has_value());
  EXPECT_TRUE(without.model.additions.normalize.has_value());
  choices.ignored = {"all"};
  EXPECT_TRUE(opened(qwen, choices).model.additions.positions.rotary.has_value());
}

}  // namespace
}  // namespace core::importing
