#include "core/out/experiment_program.hpp"

#include <gmock/gmock.h>

#include "core/graph/validation.hpp"
#include "core/model/transformer.hpp"
#include "tests/support/error_of.hpp"

// tests/python/check_experiments.py runs the programs where PyTorch and transformers are installed.

namespace {

using core::experiment::Experiment;
using core::formats::experiment_program_text;
using core::formats::HookLibrary;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<const core::transformer::Transformer> fixture(const std::string& name) {
  return core::transformer::open_transformer(FIXTURES "/transformer/" + name, 1 << 24);
}

/// Returns an experiment with a changed layer.
template <class Change>
Experiment edited(const core::transformer::Transformer& model, std::size_t layer, Change change) {
  Experiment experiment{.text = "abc"};
  core::attention::Model unedited = model.parameters(layer, nullptr);
  const std::size_t n = core::experiment::tokens_of(model, experiment).size();
  unedited.sequences.front() = {core::attention::numbered_tokens(n),
                                arma::mat(n, model.description().sizes.d_model, arma::fill::zeros)};
  core::attention::Model after = unedited;
  change(after);
  return core::experiment::with_layer(experiment, layer, unedited, after, "a change: of \"this\"");
}

TEST(ExperimentProgram, AblatesHeadsInFrontOfTheOutputProjection) {
  const auto model = fixture("gpt2");
  const std::string text =
      experiment_program_text(*model, {.text = "abc", .heads_off = {{1, 0}, {1, 2}}}, {.title = "two heads"});
  const std::size_t d = model->description().sizes.d_head;
  EXPECT_THAT(text, HasSubstr("AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)"));
  EXPECT_THAT(text, HasSubstr("h.1.attn.c_proj\", [0, " + std::to_string(2 * d) + "], " + std::to_string(d)));
  EXPECT_THAT(text, Not(HasSubstr("class ")));
}

TEST(ExperimentProgram, WritesOnlyChangedNumbersOfAnEditedLayer) {
  const auto model = fixture("llama");
  const Experiment experiment = edited(*model, 1, [](core::attention::Model& m) {
    m.projections->key.weight.set(3, 2, 0.25);
    m.given.cells.push_back({{core::attention::Stage::weights, 0, 1, 2, 0}, 0.5});
    m.heads_off = {0};
  });
  const std::string text = experiment_program_text(*model, experiment, {});
  EXPECT_THAT(text, HasSubstr("W_key.weight[[2], [3]] = torch.tensor([0.25], dtype=torch.float64)"));
  EXPECT_THAT(text, HasSubstr("weights = override(weights, {(1, 2, 0): 0.5})"));
  EXPECT_THAT(text, HasSubstr("contexts = override(contexts, {0: 0.})"));
  EXPECT_THAT(text,
              HasSubstr("replace(\"model.layers.1.self_attn.q_proj\", \"model.layers.1.self_attn.o_proj\""));
  EXPECT_LT(text.size(), 8000u);
  const std::string lens = experiment_program_text(*model, experiment, {HookLibrary::transformer_lens});
  EXPECT_THAT(lens, HasSubstr("W_key = projection(1, \"K\")"));
}

TEST(ExperimentProgram, SaysWhatItCannotHold) {
  const auto model = fixture("gpt2");
  const Experiment experiment =
      edited(*model, 0, [](core::attention::Model& m) { m.mask.edge.diagonal = 1; });
  EXPECT_EQ(support::error_of([&] { experiment_program_text(*model, experiment, {}); }),
            "layer 0: a program is written of attention without injected bugs; fix them first");
  const Experiment patched{.text = "abc", .patches = {{0, core::transformer::PatchedPart::head, 1}}};
  EXPECT_EQ(support::error_of([&] { experiment_program_text(*fixture("gpt2"), patched, {}); }),
            "first prompt: expected one to take patches from, got none");
  EXPECT_THAT(support::error_of([&] { experiment_program_text(*fixture("gpt2.gguf"), {.text = "abc"}, {}); }),
              HasSubstr("gpt2.gguf: expected a folder that transformers opens, got a GGUF file"));
}

}  // namespace
