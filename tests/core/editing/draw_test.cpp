// Initialization as in PyTorch: whole models, single matrices, embeddings of a sentence.
#include "core/editing/draw.hpp"

#include <gmock/gmock.h>

#include "core/base/random.hpp"
#include "core/editing/edit.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/validation.hpp"
#include "tests/golden/fixture_model.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/json_fixture.hpp"
#include "tests/support/random_model.hpp"

namespace core::editing {
namespace {

attention::Model preset(const char* name) {
  return find_preset(name)->make();
}

/// Returns the model with zeroed projections and without an output projection.
attention::Model zeroed_projections(attention::Model model) {
  for (attention::Linear* linear :
       {&model.projections->query, &model.projections->key, &model.projections->value})
    linear->weight = arma::mat(linear->weight->n_rows, linear->weight->n_cols, arma::fill::zeros);
  model.projections->output.reset();
  return model;
}

TEST(DrawnModel, GivesThePresetsBack) {
  ModelInit draw;
  EXPECT_TRUE(initialized_model(zeroed_projections(preset("004-self-attention")), draw) ==
              preset("004-self-attention"));

  draw.before = random::parse_random_ops("randn(6,3)");  // the notebook stacks one drawn sequence twice
  EXPECT_TRUE(initialized_model(zeroed_projections(preset("003-causal-class")), draw) ==
              preset("003-causal-class"));

  draw.before.clear();
  draw.embeddings = EmbeddingsInit::rand_first;
  attention::Model words = zeroed_projections(preset("000-causal"));
  words.sequences[0].embeddings.edit().zeros();
  EXPECT_TRUE(initialized_model(words, draw) == preset("000-causal"));

  draw.embeddings = EmbeddingsInit::none;
  draw.output = OutputLayer::with_bias;
  EXPECT_TRUE(initialized_model(zeroed_projections(preset("multi-head")), draw) == preset("multi-head"));
}

TEST(DrawnModel, DrawsKeysFirstAfterABatchWhenTheNotebookDoes) {
  const attention::Model expected = preset("002-full");
  attention::Model model = zeroed_projections(expected);
  for (attention::Sequence& sequence : model.sequences) sequence.embeddings.edit().zeros();
  ModelInit draw;
  draw.seed = 1337;
  draw.order = LayerOrder::key_query_value;
  draw.embeddings = EmbeddingsInit::randn_first;
  EXPECT_TRUE(initialized_model(model, draw) == expected);
}

TEST(DrawnModel, EqualsTheFixturesOfClasses) {
  const auto fixture = support::read_fixture("s001_mha_correct_small");
  const attention::Model expected = golden::model_of(fixture);
  attention::Model model = zeroed_projections(expected);
  for (attention::Sequence& sequence : model.sequences) sequence.embeddings.edit().zeros();
  ModelInit draw;
  draw.output = OutputLayer::with_bias;
  draw.embeddings = EmbeddingsInit::randn_last;
  EXPECT_TRUE(initialized_model(model, draw) == expected);
  const attention::Model biases = golden::model_of(support::read_fixture("s001_attention_small"));
  ModelInit with_biases;
  with_biases.bias = true;
  with_biases.embeddings = EmbeddingsInit::randn_first;
  EXPECT_TRUE(initialized_model(zeroed_projections(biases), with_biases) == biases);
}

TEST(DrawnModel, KeepsTokensAndRulesAndGivesProjectionsToAModelWithoutThem) {
  attention::Model model = preset("001-dot-product");
  model.n_heads = 3;
  const attention::Model drawn = initialized_model(model, {});
  EXPECT_EQ(attention::check(drawn), std::nullopt);
  ASSERT_TRUE(drawn.projections.has_value());
  attention::Model without = drawn;
  without.projections.reset();
  EXPECT_TRUE(without == model);
}

TEST(DrawLike, HasTheLayersOfTheModel) {
  const ModelInit two_heads = matching_init(preset("multi-head"));
  EXPECT_FALSE(two_heads.bias);
  EXPECT_EQ(two_heads.output, OutputLayer::with_bias);
  EXPECT_TRUE(matching_init(preset("001-attention")).bias);
  EXPECT_EQ(matching_init(preset("001-dot-product")).output, OutputLayer::none);
  EXPECT_EQ(matching_init(apply(preset("multi-head"), SetBias{ProjectionName::output, false})).output,
            OutputLayer::without_bias);
}

TEST(TorchLines, SayWhatIsDrawnInOrder) {
  ModelInit draw;
  draw.seed = 7;
  draw.order = LayerOrder::key_query_value;
  draw.output = OutputLayer::with_bias;
  draw.embeddings = EmbeddingsInit::randn_last;
  draw.before = random::parse_random_ops("rand(6,3) Linear(3,2,bias)");
  EXPECT_EQ(torch_lines(preset("chapter-multi-head"), draw),
            "import torch\nfrom torch import nn\n\n"
            "torch.manual_seed(7)\n"
            "torch.rand(6, 3)\n"
            "nn.Linear(3, 2)\n"
            "W_k = nn.Linear(3, 2, bias=False)\n"
            "W_q = nn.Linear(3, 2, bias=False)\n"
            "W_v = nn.Linear(3, 2, bias=False)\n"
            "W_o = nn.Linear(2, 2)\n"
            "x = torch.randn(2, 6, 3)\n");
}

bool equal(const arma::mat& a, const arma::mat& b) {
  return arma::approx_equal(a, b, "absdiff", 0);
}

/// Returns a tensor of a sequence of draws in the reference file of seed 123.
arma::mat reference(const std::string& sequence, const std::string& name) {
  const auto file = support::read_generator_file("seed123");
  for (const support::Draws& d : file.sequences.at(sequence))
    if (d.name == name) {
      const std::size_t columns = d.shape.back();
      return arma::reshape(arma::mat(d.data), columns, d.data.size() / columns).t();
    }
  throw std::runtime_error(sequence + " has no " + name);
}

attention::Model six_words() {
  return find_preset("000-causal")->make();
}

Fill fill(FillRule rule, const char* before = "", std::uint64_t seed = 123) {
  return {rule, seed, random::parse_random_ops(before)};
}

TEST(Fill, GivesEachMatrixOfNotebook000AtItsPlaceInTheSequence) {
  const attention::Model model = six_words();
  EXPECT_TRUE(equal(filled(model, {MatrixName::embeddings, 0}, fill(FillRule::rand)),
                    reference("seed000", "inputs")));
  const auto layer = [&](MatrixName name, const char* before) {
    return filled(model, {name, 0}, fill(FillRule::linear, before));
  };
  EXPECT_TRUE(equal(layer(MatrixName::query_weight, "rand(6,3)"), reference("seed000", "W_Q").t()));
  EXPECT_TRUE(equal(layer(MatrixName::key_weight, "rand(6,3) Linear(3,3)"), reference("seed000", "W_K").t()));
  EXPECT_TRUE(equal(layer(MatrixName::value_weight, "rand(6,3)  Linear(3,3)Linear(3,3)"),
                    reference("seed000", "W_V").t()));
}

TEST(Fill, WritesFixedNumbersOrNormalOnesAsRandnDoes) {
  const arma::mat normal = reference("seed003", "inputs");
  for (const auto& [rule, expected] : {std::pair(FillRule::zeros, arma::mat(6, 3, arma::fill::zeros)),
                                       {FillRule::ones, arma::mat(6, 3, arma::fill::ones)},
                                       {FillRule::identity, arma::mat(6, 3, arma::fill::eye)},
                                       {FillRule::randn, normal},
                                       {FillRule::embedding, normal}})
    EXPECT_TRUE(equal(filled(six_words(), {}, fill(rule)), expected));
}

/// Expects the first and last numbers of a reference tensor that is stored in parts.
void expect_parts(const arma::rowvec& numbers, const std::string& name) {
  SCOPED_TRACE(name);
  const auto file = support::read_generator_file("seed123");
  for (const support::Draws& d : file.sequences.at("two_linears_with_bias"))
    if (d.name == name) {
      const arma::rowvec head(d.sample.first), tail(d.sample.last);
      ASSERT_EQ(numbers.n_elem, d.shape.front());
      EXPECT_TRUE(arma::approx_equal(numbers.head(head.n_elem), head, "absdiff", 0));
      EXPECT_TRUE(arma::approx_equal(numbers.tail(tail.n_elem), tail, "absdiff", 0));
      return;
    }
  ADD_FAILURE() << "the file has no such tensor";
}

TEST(Fill, DrawsABiasAfterTheWeightOfItsLayer) {
  attention::Model model = six_words();
  model.sequences[0].embeddings = arma::mat(6, 16, arma::fill::zeros);
  model.projections->query = {arma::mat(16, 16, arma::fill::zeros), arma::mat(1, 16, arma::fill::zeros)};
  const MatrixRef bias{MatrixName::query_bias, 0};
  expect_parts(filled(model, bias, fill(FillRule::linear)), "b1");
  expect_parts(filled(model, bias, fill(FillRule::linear, "Linear(16,16,bias)")), "b2");
}

TEST(Fill, TakesTheWidthOfTheOutputProjectionForItsBias) {
  attention::Model model = find_preset("multi-head")->make();  // 3 → 4 → 4
  random::Generator generator(7);
  generator.linear_weight(4, 4);
  const std::vector<float> expected = generator.linear_bias(4, 4);
  const arma::mat found = filled(model, {MatrixName::output_bias, 0}, fill(FillRule::linear, "", 7));
  EXPECT_EQ(arma::conv_to<std::vector<float>>::from(found.row(0)), expected);
}

}  // namespace
}  // namespace core::editing

namespace core::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

attention::Model base_model() {
  support::Random random(3);
  return support::model(random, 6, 3, 4, 2, 2);
}

TEST(Words, KeepPunctuationApartAndApostrophesWithinInAnyScript) {
  EXPECT_THAT(words("I'm here, well-known: 3.5 (or 4)."),
              ElementsAre("I'm", "here", ",", "well-known", ":", "3.5", "(", "or", "4", ")", "."));
  EXPECT_THAT(words("'quoted' end-"), ElementsAre("'", "quoted", "'", "end", "-"));
  EXPECT_THAT(words("…a.b"), ElementsAre("…", "a", ".", "b"));
  EXPECT_THAT(words("¿Qué\tpasó?\n"), ElementsAre("¿", "Qué", "pasó", "?"));
  EXPECT_THAT(words("注意力，机制。"), ElementsAre("注意力", "，", "机制", "。"));
  EXPECT_THAT(words("l’été\u00A0« бег »\u3000终"), ElementsAre("l’été", "«", "бег", "»", "终"));
  EXPECT_THAT(characters("aé 注\n😀"), ElementsAre("a", "é", "␣", "注", "↵", "😀"));
  EXPECT_THAT(vocabulary({"the", "cat", "the", "mat", "cat"}), ElementsAre("the", "cat", "mat"));
}

TEST(Sentence, OfTooMuchTextOrInvalidUtf8IsRefusedInOneLine) {
  using support::error_of;
  const std::string million(1'000'000, 'a');
  EXPECT_EQ(error_of([&] { characters(million); }), "text: expected at most 65536 bytes, got 1000000");
  EXPECT_EQ(error_of([] { characters(std::string(513, 'a')); }),
            "text: expected at most 512 tokens, got 513");
  EXPECT_EQ(characters(std::string(512, 'a')).size(), 512u);
  EXPECT_EQ(error_of([] { words(" \t\n"); }), "text: expected at least one token");
  EXPECT_EQ(error_of([] { characters(""); }), "text: expected at least one token");
  for (const char* bad :
       {"ab\x80", "ab\xC3", "ab\xC0\xAF", "ab\xED\xA0\x80", "ab\xF5\x80\x80\x80", "ab\xE2\x82z"})
    for (const TokenRule rule : {TokenRule::words, TokenRule::characters})
      EXPECT_EQ(error_of([&] { tokens(bad, rule); }), "text: byte 2 is no valid UTF-8");
}

TEST(WithSentence, GivesEqualTokensTheirRowOfTheEmbedding) {
  const attention::Model m = with_sentence(base_model(), words("the cat on the mat"), 123);
  ASSERT_EQ(m.sequences.size(), 1u);
  const arma::mat& x = m.sequences[0].embeddings;
  ASSERT_EQ(x.n_rows, 5u);
  ASSERT_EQ(x.n_cols, 3u);
  const auto table = random::Generator(123).normal(4 * 3);  // the, cat, on, mat
  const std::vector<std::size_t> rows{0, 1, 2, 0, 3};
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(x(i, c), table[rows[i] * 3 + c]);
  EXPECT_EQ(m.projections, base_model().projections);
  EXPECT_EQ(m.n_heads, 2u);
}

TEST(WithSentence, DropsWhatSpokeOfOtherTokensOnlyAndKeepsToTheContextLength) {
  attention::Model base = base_model();
  base.mask.cells = {{1, 2, true}, {5, 0, false}};
  base.dropout.given.assign(4, arma::mat(6, 6, arma::fill::ones));
  base.context_length = 6;
  const attention::Model m = with_sentence(base, words("one two three"), 1);
  EXPECT_EQ(m.mask.cells, (std::vector<attention::MaskCell>{{1, 2, true}}));
  EXPECT_TRUE(m.dropout.given.empty());
  const std::string refused = support::error_of([&] { with_sentence(base, words("a b c d e f g"), 1); });
  EXPECT_THAT(refused, HasSubstr("at most 6 tokens"));
  EXPECT_THAT(refused, HasSubstr("got 7"));
}

}  // namespace
}  // namespace core::text
