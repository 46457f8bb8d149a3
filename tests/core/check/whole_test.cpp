// Whole models against transformers on the same text: hidden states and attention of every layer.
#include <gmock/gmock.h>

#include <functional>

#include "core/check/whole_check.hpp"
#include "core/graph/rounding.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"

namespace core::check {
namespace {

namespace goldens = transformer::goldens;
using formats::Tensor;
using testing::HasSubstr;

/// A model, its text, and a dump as PyTorch programs write it: one tensor per layer.
class WholeDump : public testing::TestWithParam<std::string> {
 protected:
  WholeDump() {
    const auto golden = formats::open_tensors(goldens::folder + GetParam() + "/golden.npz");
    for (const double id : golden.read("ids").numbers) ids_.push_back(static_cast<std::size_t>(id));
    for (const std::string kind : {"hidden", "attention"}) {
      const std::size_t count = golden.info(kind).shape.front();
      for (std::size_t k = 0; k < count; ++k) {
        Tensor part = golden.read(kind, std::array{k});
        part.name = (kind == "hidden" ? "hidden_states." : "attentions.") + std::to_string(k);
        part.shape.insert(part.shape.begin(), 1);
        tensors_.push_back(std::move(part));
      }
    }
    if (golden.find("logits")) tensors_.push_back(golden.read("logits"));
  }

  WholeReport report(const WholeOptions& options = {}) {
    const StopToken progress, search;
    ThreadPool pool(1);
    std::vector<std::string> names;
    for (std::size_t k = 0; k < ids_.size(); ++k) names.push_back(std::to_string(k));
    return check_whole(*model_, ids_, names, support::tensors_in_memory(tensors_), options, {pool, progress},
                       search);
  }
  Tensor& tensor(const std::string& name) { return *std::ranges::find(tensors_, name, &Tensor::name); }

  std::shared_ptr<const transformer::Transformer> model_ = goldens::opened(goldens::folder + GetParam());
  std::vector<std::size_t> ids_;
  std::vector<Tensor> tensors_;
};

TEST_P(WholeDump, OfTheLibraryAgreesInEveryLayer) {
  const WholeReport found = report();
  EXPECT_TRUE(found.agrees()) << whole_report_text(found);
  ASSERT_EQ(found.layers.size(), model_->architecture().sizes.n_layers);
  for (const LayerResult& layer : found.layers) {
    EXPECT_TRUE(layer.entering.has_value());
    ASSERT_TRUE(layer.attention.has_value());
    EXPECT_EQ(layer.attention->n_tensors, 1u);
  }
  EXPECT_TRUE(found.leaving.has_value());
  EXPECT_EQ(found.logits.has_value(), model_->weights().predicts());
  EXPECT_TRUE(found.left_out.empty());
}

/// The cause is searched for, which takes long: one model of each kind of layer.
class WholeDumpThatDiffers : public WholeDump {};

TEST_P(WholeDumpThatDiffers, InHiddenStatesPointsToWhatMadeThem) {
  tensor("hidden_states.1").numbers[5] += 0.01;
  const WholeReport found = report();
  EXPECT_FALSE(found.agrees());
  EXPECT_THAT(
      whole_report_text(found),
      HasSubstr("First difference: what leaves layer 0, though what was given of its attention agrees"));
  EXPECT_THAT(whole_report_json(found),
              HasSubstr("\"first_difference\": {\"layer\": 1, \"stage\": \"hidden_states\"}"));
  EXPECT_TRUE(found.layers[0].attention->agrees);
}

TEST_P(WholeDumpThatDiffers, InAttentionPointsToIt) {
  Tensor& weights = tensor("attentions.1");
  const std::size_t n_keys = weights.shape.back();
  std::swap(weights.numbers[3 * n_keys], weights.numbers[3 * n_keys + 1]);
  const WholeReport found = report();
  EXPECT_FALSE(found.agrees());
  EXPECT_TRUE(found.layers[0].attention->agrees);
  EXPECT_THAT(whole_report_json(found),
              HasSubstr("\"first_difference\": {\"layer\": 1, \"stage\": \"weights\"}"));
  EXPECT_THAT(whole_report_text(found), HasSubstr("First difference: attention of layer 1."));
}

TEST_P(WholeDump, ThatWasKeptInHalfIsNotCalledAnotherModel) {
  for (Tensor& part : tensors_)
    if (!part.name.starts_with("attentions"))
      for (double& x : part.numbers) x = attention::rounded(attention::Precision::bfloat16, x);
  std::erase_if(tensors_, [](const Tensor& t) { return t.name.starts_with("attentions"); });
  const WholeReport found = report();
  EXPECT_TRUE(found.agrees()) << whole_report_text(found);
  EXPECT_EQ(found.layers[0].entering->rounding, "bfloat16");
}

TEST_P(WholeDump, InOneTensorForAllLayersIsTheSame) {
  std::vector<Tensor> stacks(2);
  stacks[0].name = "hidden_states", stacks[1].name = "attentions";
  for (const Tensor& part : tensors_) {
    if (part.name == "logits") continue;
    Tensor& stack = stacks[part.name.starts_with("hidden") ? 0 : 1];
    if (stack.shape.empty()) stack.shape = part.shape, stack.shape.front() = 0, stack.dtype = part.dtype;
    ++stack.shape.front();
    stack.numbers.insert(stack.numbers.end(), part.numbers.begin(), part.numbers.end());
  }
  tensors_ = stacks;
  const WholeReport found = report();
  EXPECT_TRUE(found.agrees()) << whole_report_text(found);
  for (const LayerResult& layer : found.layers) EXPECT_TRUE(layer.entering && layer.attention);
  EXPECT_THAT(whole_report_text(found), HasSubstr("hidden_states[1]"));
  EXPECT_THAT(whole_report_text(found), HasSubstr("not compared:"));
}

TEST_P(WholeDump, TakesTensorsThatAreNamedByHand) {
  tensor("attentions.1").name = "mine.1.thing";
  EXPECT_FALSE(report().layers[1].attention.has_value());
  const WholeReport found = report({.by_hand = {{"mine.1.thing", "weights"}, {"hidden_states.0", ""}}});
  EXPECT_TRUE(found.agrees()) << whole_report_text(found);
  EXPECT_TRUE(found.layers[1].attention.has_value());
  EXPECT_FALSE(found.layers[0].entering.has_value());
  EXPECT_THAT(found.left_out, testing::ElementsAre("hidden_states.0: ignored by --map"));
  EXPECT_THAT(support::error_of([&] {
                report({.by_hand = {{"other", "weights"}}});
              }),
              HasSubstr("there is no tensor \"other\" in it"));
}

TEST_P(WholeDump, OfAnotherTextIsOfAnotherShape) {
  ids_.resize(ids_.size() - 2);
  const WholeReport found = report();
  EXPECT_FALSE(found.agrees());
  EXPECT_THAT(whole_report_text(found), HasSubstr("DIFFERS: expected [" + std::to_string(ids_.size())));
  EXPECT_THAT(whole_report_text(found),
              HasSubstr(": " + std::to_string(ids_.size() + 2) + " tokens, the text has " +
                        std::to_string(ids_.size()) + "\n"));
  EXPECT_THAT(whole_report_json(found), HasSubstr("\"max_abs\": null, \"row\": null, \"column\": null"));
  EXPECT_THAT(whole_report_text(found), HasSubstr("First difference: the file is of"));
}

TEST(WholeReportText, SaysOfOtherNumbersOfTokensOnlyWhereShapesDiffer) {
  WholeReport report;
  report.n_tokens = 13, report.n_given_tokens = 8;  // as heads × d_head of a square tensor
  report.layers.resize(1);
  report.layers[0].entering = TensorResult{};
  EXPECT_THAT(whole_report_text(report), HasSubstr("Everything agrees that was given."));
  report.layers[0].entering->agreement.within = false;
  EXPECT_THAT(whole_report_text(report), HasSubstr("First difference: what enters layer 0"));
  report.layers[0].entering->obstacle = "expected [13, 24], got [8, 24]";
  EXPECT_THAT(whole_report_text(report),
              HasSubstr("First difference: the file is of 8 tokens, and the text has 13"));
}

TEST(WholeReportText, CallsTwoUnknownCausesNoCommonReason) {
  Report unknown, no_scale;
  for (Report* of : {&unknown, &no_scale}) of->agrees = false;
  no_scale.explanations.push_back({{"no_scale"}, {}, {}, {}});
  const auto text_of = [](const Report& first, const Report& later) {
    WholeReport report;
    report.layers.resize(2);
    report.layers[0].attention = first, report.layers[1].attention = later;
    return whole_report_text(report);
  };
  EXPECT_THAT(text_of(unknown, unknown), HasSubstr("1 later layer differs as well, by nothing known here."));
  EXPECT_THAT(text_of(unknown, no_scale), HasSubstr("differs as well, not for the same reason."));
  EXPECT_THAT(text_of(no_scale, no_scale), HasSubstr("differs as well, for the same reason."));
}

/// A dump that is the pass, but for how its layers are counted, its tokens begin, or its sequences lie.
class PlacedDump : public WholeDump {
 protected:
  static constexpr auto attention = "attentions.", states = "hidden_states.";
  /// Gives tensors of a kind other numbers; those without one are left out.
  void renumber(const std::string& kind, const std::function<std::ptrdiff_t(std::ptrdiff_t)>& number) {
    std::erase_if(tensors_, [&](Tensor& tensor) {
      if (!tensor.name.starts_with(kind)) return false;
      const auto to = number(std::stol(tensor.name.substr(kind.size())));
      tensor.name = kind + std::to_string(to);
      return to < 0;
    });
  }
  void expect_placed(const std::string& words) {
    const WholeReport found = report();
    EXPECT_EQ(found.placement, words) << whole_report_text(found);
    EXPECT_FALSE(found.agrees());
    EXPECT_THAT(whole_report_text(found), HasSubstr("So read, everything agrees that was given."));
  }
  std::ptrdiff_t n_layers() const {
    return static_cast<std::ptrdiff_t>(model_->architecture().sizes.n_layers);
  }
};

TEST_P(PlacedDump, IsCountedFromOne) {
  renumber(attention, [](auto k) { return k + 1; });
  expect_placed("layers of attention are counted from 1");
  renumber(states, [](auto k) { return k + 1; });
  expect_placed("layers are counted from 1");
}

TEST_P(PlacedDump, IsInReverseOrder) {
  renumber(attention, [&](auto k) { return n_layers() - 1 - k; });
  expect_placed("layers of attention are in reverse order");
}

TEST_P(PlacedDump, LacksWhatEntersTheFirstLayer) {
  renumber(states, [](auto k) { return k - 1; });
  expect_placed("hidden states begin behind the first layer, without what enters it");
}

TEST_P(PlacedDump, LacksTheFirstToken) {
  ids_.insert(ids_.begin(), ids_.back());
  expect_placed("the file lacks the first token of the text");
}

TEST_P(PlacedDump, IsASequenceOfABatch) {
  for (Tensor& tensor : tensors_) {
    if (tensor.shape.size() < 3) tensor.shape.insert(tensor.shape.begin(), 1);
    tensor.shape.front() = 2;
    std::vector<double> other(tensor.numbers.rbegin(), tensor.numbers.rend());
    tensor.numbers.insert(tensor.numbers.begin(), other.begin(), other.end());
  }
  expect_placed("the text is sequence 1 of the batch");
}

TEST_P(PlacedDump, OfOneWrongLayerIsPlacedAllTheSame) {
  renumber(states, [](auto k) { return k - 1; });
  tensor("attentions.1").numbers[3] += 0.1;
  const WholeReport found = report();
  EXPECT_THAT(whole_report_text(found), HasSubstr("So read: First difference: attention of layer 1."));
}

/// The file's final norm and logits are compared with those of the file's own last hidden states.
TEST_P(WholeDump, IsGoneOnWithBehindTheLastLayer) {
  const StopToken progress;
  ThreadPool pool(1);
  const transformer::CallContext context{pool, progress};
  const std::size_t n_layers = model_->architecture().sizes.n_layers;
  const auto pass = std::static_pointer_cast<const transformer::LocalPass>(model_->run(ids_, {}, context));
  arma::fmat last = model_->residual(*pass, n_layers, context);
  last.transform([](float x) {
    return static_cast<float>(attention::rounded(attention::Precision::bfloat16, double(x)));
  });
  const arma::fmat normed = model_->apply_final_norm(last, context);
  const auto put = [](Tensor& tensor, const arma::fmat& rows) {
    const arma::mat row_by_row = arma::conv_to<arma::mat>::from(rows).t();
    tensor.numbers.assign(row_by_row.begin(), row_by_row.end());
  };
  Tensor& leaving = tensor("hidden_states." + std::to_string(n_layers));
  put(leaving, last);
  Tensor behind = leaving;
  behind.name = "last_hidden_state", put(behind, normed);
  tensors_.push_back(behind);
  std::erase_if(tensors_, [](const Tensor& t) { return t.name == "logits"; });
  const WholeReport found = report();
  EXPECT_TRUE(found.agrees()) << whole_report_text(found);
  EXPECT_EQ(found.leaving->rounding, "bfloat16");
  EXPECT_EQ(found.normed->rounding, "");
}

/// Returns what a file with tensors of these names and this shape contains of a two-layer model.
Dump recognized_dump(const std::vector<std::string>& names, const formats::TensorShape& shape = {1, 5, 24}) {
  std::vector<Tensor> tensors(names.size());
  for (std::size_t k = 0; k < names.size(); ++k) {
    tensors[k].name = names[k], tensors[k].shape = shape;
    tensors[k].numbers.resize(*formats::count_of(shape));
  }
  transformer::Sizes sizes;
  sizes.n_layers = 2;
  return find_dump(support::tensors_in_memory(std::move(tensors)), sizes, {});
}

TEST(DumpNames, SayWhichLayerHiddenStatesAreOf) {
  const std::pair<const char*, std::size_t> cases[]{{"blocks.0.hook_resid_pre", 0},
                                                    {"blocks.0.hook_resid_post", 1},
                                                    {"layers.1.hidden_states", 1},
                                                    {"hidden_states.2", 2},
                                                    {"model.hidden_states.0", 0},
                                                    {"my_hidden_states.1", 1},
                                                    {"hidden2", 2},
                                                    {"layer1_hidden_state", 1}};
  for (const auto& [name, layer] : cases) {
    const Dump dump = recognized_dump({name});
    ASSERT_EQ(dump.hidden.size(), 1u) << name;
    EXPECT_EQ(dump.hidden.begin()->first, layer) << name;
    EXPECT_TRUE(dump.left_out.empty()) << name;
  }
  EXPECT_EQ(recognized_dump({"gpt2/hidden_states"}, {3, 5, 24}).hidden.size(), 3u);
  EXPECT_TRUE(recognized_dump({"layers.1.mlp.hidden"}).hidden.empty());
}

TEST(DumpNames, OfScoresOfAttentionAreNoScoresOfTokens) {
  for (const std::string name : {"layers.0.attn_logits", "layers.0.attention_logits", "layers.0.logits"}) {
    const Dump dump = recognized_dump({name}, {1, 4, 5, 5});
    EXPECT_FALSE(dump.logits) << name;
    EXPECT_TRUE(dump.stages.contains(0)) << name;
  }
  EXPECT_FALSE(recognized_dump({"router_logits"}).logits);
  for (const std::string name : {"logits", "lm_logits", "gpt2/logits", "model.logits"})
    EXPECT_TRUE(recognized_dump({name}).logits) << name;
}

TEST_P(WholeDump, OfNothingThatCanBeComparedIsRefused) {
  Tensor absent = tensor("attentions.0");
  absent.name = "layers.0.attn.alibi";
  tensors_ = {absent};
  EXPECT_THAT(
      support::error_of([&] { report(); }),
      HasSubstr("expected tensors that can be compared, got none: layers.0.attn.alibi: the model does not "
                "have this stage"));
}

INSTANTIATE_TEST_SUITE_P(Models, WholeDump,
                         testing::Values("bert", "bert_headless", "distilbert", "gpt2", "gpt2_by_layer",
                                         "gpt_neox", "gpt_neox_serial", "llama", "mistral", "qwen2", "qwen3",
                                         "roberta"),
                         [](const auto& of) { return of.param; });

INSTANTIATE_TEST_SUITE_P(Models, PlacedDump, testing::Values("bert", "gpt2_by_layer", "gpt_neox", "qwen3"),
                         [](const auto& of) { return of.param; });

INSTANTIATE_TEST_SUITE_P(Models, WholeDumpThatDiffers,
                         testing::Values("bert", "gpt2_by_layer", "gpt_neox", "qwen3"),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace core::check
