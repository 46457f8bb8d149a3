#include "core/editing/presets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/find.hpp"
#include "core/editing/draw.hpp"

namespace core::editing {

using attention::CombineRule;
using attention::Linear;
using attention::MaskMethod;
using attention::Model;
using attention::Projections;
using attention::ScaleRule;
using attention::ScoreRule;
using attention::Sequence;
using random::Generator;
using PresetTokens = std::vector<std::string>;

namespace {

arma::mat eye(std::size_t n) {
  return arma::mat(n, n, arma::fill::eye);
}

/// Returns a model of these sequences with projections to d_out initialized from a seed.
Model model_with_projections(std::vector<Sequence> sequences, std::size_t d_out, std::uint64_t seed = 123) {
  Generator g(seed);
  Model m;
  m.sequences = std::move(sequences);
  m.projections = sample_projections(g, m.d_model(), d_out);
  return m;
}

void set_half_dropout(Model& m) {
  m.dropout.rate = 0.5;
  m.dropout.seed = 123;
}

}  // namespace

/// Models of the five teaching notebooks, 000 to 004, sampled as in their code.
namespace notebooks {

Model attention_class(const ClassSize& size, bool causal) {
  Generator g(size.seed);
  Model m;
  m.sequences = sample_batch(g, size.n_sequences, 4, size.d_model);
  m.projections = sample_projections(g, size.d_model, size.d_model, true);
  m.mask.causal = causal;
  return m;
}

Model multi_head_class(const ClassSize& size, CombineRule merge) {
  Generator g(size.seed);
  Model m;
  m.projections = sample_projections(g, size.d_model, size.d_model);
  m.projections->output = sample_linear(g, size.d_model, size.d_model, true);
  m.sequences = sample_batch(g, size.n_sequences, 4, size.d_model);  // this class samples its input last
  m.n_heads = size.n_heads;
  m.merge = merge;
  return m;
}

namespace {

Model causal_step_by_step() {
  Generator g(123);
  Model m;
  m.sequences = {{{"The", "cat", "ran", "to", "the", "door"}, filled(g.rand(18), 6, 3)}};
  m.projections = sample_projections(g, 3, 3);
  return m;
}

Model raw_dot_product() {
  Model m;
  m.sequences = {your_journey()};
  m.scale.rule = ScaleRule::none;
  m.mask.causal = false;
  return m;
}

/// Uniform scores on four sequences of 8 × 65.
Model averaging(MaskMethod method) {
  Generator g(1337);
  Model m;
  m.sequences = sample_batch(g, 4, 8, 65);
  m.scores = ScoreRule::uniform;
  m.mask.method = method;
  return m;
}

Model full_attention() {
  Generator g(1337);
  Model m;
  m.sequences = sample_batch(g, 4, 8, 65);
  m.projections = sample_projections(g, 65, 65, false, LayerOrder::key_query_value);
  return m;
}

Model printed_run() {
  Generator inputs(1337), layers(1337);  // the seed was set twice
  Model m;
  m.sequences = sample_batch(inputs, 4, 8, 32);
  layers.randint(6, 0, 10);  // sampled by an earlier cell
  m.projections = sample_projections(layers, 32, 16, false, LayerOrder::key_query_value);
  m.scale.rule = ScaleRule::none;
  return m;
}

/// Returns one-hot tokens that are their own keys and values, so that the scores of a query are its row of
/// the weight.
Model with_scores(PresetTokens tokens, arma::mat scores) {
  Model m;
  const arma::mat one_hot = eye(tokens.size());
  m.sequences = {{std::move(tokens), one_hot}};
  m.projections.emplace();
  m.projections->query.weight = std::move(scores);
  m.projections->key.weight = m.projections->value.weight = one_hot;
  m.scale.rule = ScaleRule::none;
  return m;
}

/// Puts the question in the last row: its scores are log(relevance), so that softmax gives the relevance.
Model library() {
  constexpr std::array relevance{0.35, 0.40, 0.20, 0.00, 0.05};
  constexpr std::size_t question = relevance.size();
  arma::mat scores(question + 1, question + 1, arma::fill::zeros);
  for (std::size_t book = 0; book < question; ++book)
    if (relevance[book] > 0) scores(question, book) = std::log(relevance[book]);
  Model m = with_scores(
      {"Climate Change Overview", "Polar Bear Biology", "Arctic Ecosystems", "17th Century Poetry",
       "Ocean Acidification", "How does climate change affect polar bears?"},
      std::move(scores));
  m.mask.cells = {{question, 3, false},          // log 0 is −∞
                  {question, question, false}};  // the question is no book
  return m;
}

Model causal_class() {
  Generator g(123);
  const Sequence words{attention::numbered_tokens(6), filled(g.normal(18), 6, 3)};
  Model m;
  m.sequences = {words, words};
  m.projections = sample_projections(g, 3, 2);
  m.context_length = 6;
  return m;
}

Model masked_scores() {
  return with_scores(attention::numbered_tokens(5), filled(Generator(123).normal(25), 5, 5));
}

/// One token that attends to itself with weight 1 in each of ten heads: the output is
/// nn.Dropout(0.5)(ones(10)).
Model ten_ones_dropped() {
  Model m;
  m.sequences = {{{"ones"}, arma::mat(1, 10, arma::fill::ones)}};
  m.n_heads = 10;
  set_half_dropout(m);
  return m;
}

Model your_journey_attention(bool causal, MaskMethod method, bool drops = false) {
  Model m = model_with_projections({your_journey()}, 2);
  m.mask.causal = causal;
  m.mask.method = method;
  set_half_dropout(m);
  if (!drops) m.dropout.rate = 0;
  return m;
}

}  // namespace
}  // namespace notebooks

/// The examples of chapter 3 of "Build a Large Language Model (From Scratch)" by Sebastian Raschka.
namespace chapter {
namespace {

Model sentence(std::size_t n_sequences, std::size_t d_out, std::uint64_t seed = 123) {
  Model m = model_with_projections(std::vector<Sequence>(n_sequences, your_journey()), d_out, seed);
  m.context_length = m.n_tokens();
  return m;
}

Model causal_class() {
  return sentence(2, 2);
}

/// Returns two heads of two columns, sampled one after the other; the model has them as bands of columns.
Model two_heads() {
  const auto joined = [](const Linear& left, const Linear& right) {
    return Linear{arma::mat(arma::join_rows(*left.weight, *right.weight)), std::nullopt};
  };
  Generator g(123);
  const Projections first = sample_projections(g, 3, 2), second = sample_projections(g, 3, 2);
  Model m = sentence(2, 2);
  m.projections = Projections{joined(first.query, second.query), joined(first.key, second.key),
                              joined(first.value, second.value), std::nullopt};
  m.n_heads = 2;
  return m;
}

Model with_output_projection(std::size_t n_sequences, std::size_t d_out) {
  Generator g(123);
  Model m = sentence(n_sequences, d_out);
  m.projections = sample_projections(g, 3, d_out);
  m.projections->output = sample_linear(g, d_out, d_out, true);
  m.n_heads = 2;
  return m;
}

Model multi_head() {
  return with_output_projection(2, 2);
}

Model dropped_weights() {
  Model m = sentence(1, 2, 789);
  set_half_dropout(m);
  return m;
}

/// Not in the chapter.
Model wider_multi_head() {
  Model m = with_output_projection(1, 4);
  m.context_length.reset();
  return m;
}

}  // namespace
}  // namespace chapter

/// Heads with projections written by hand, on one-hot tokens and positions, to show what a head can do.
///
/// Scores are not scaled: a match scores hand_built::match, everything else 0.
namespace hand_built {
namespace {

/// Returns the index of each token in the vocabulary, in order of first appearance.
std::vector<std::size_t> indices(const PresetTokens& tokens) {
  const PresetTokens vocabulary = text::vocabulary(tokens);
  std::vector<std::size_t> found;
  for (const std::string& token : tokens)
    found.push_back(static_cast<std::size_t>(std::ranges::find(vocabulary, token) - vocabulary.begin()));
  return found;
}

/// Returns an identity times a factor for the words, or for the positions below them; zeros elsewhere.
arma::mat word_selector(std::size_t n, double factor) {
  return arma::join_cols(eye(n) * factor, arma::mat(n, n, arma::fill::zeros));
}
arma::mat position_selector(std::size_t n) {
  return arma::join_cols(arma::mat(n, n, arma::fill::zeros), eye(n));
}

/// Returns tokens as one-hot word and one-hot position, n columns each; values are the words, and queries and
/// keys are zero.
Model words_and_positions(const PresetTokens& tokens) {
  const std::size_t n = tokens.size();
  const std::vector<std::size_t> word = indices(tokens);
  arma::mat x(n, 2 * n, arma::fill::zeros);
  for (std::size_t i = 0; i < n; ++i) x(i, word[i]) = x(i, n + i) = 1;
  Model m;
  m.sequences = {{tokens, x}};
  m.projections.emplace();
  m.projections->query.weight = m.projections->key.weight = arma::mat(2 * n, n, arma::fill::zeros);
  m.projections->value.weight = word_selector(n, 1);
  m.scale.rule = ScaleRule::none;
  return m;
}

Model previous_token() {
  Model m = words_and_positions({"one", "word", "follows", "another", "word", "here"});
  const std::size_t n = m.n_tokens();
  arma::mat& query = m.projections->query.weight.edit();
  for (std::size_t i = 1; i < n; ++i)
    query(n + i, i - 1) = match_score;  // position i looks for position i − 1
  m.projections->key.weight = position_selector(n);
  return m;
}

Model first_token() {
  Model m = words_and_positions({"Once", "upon", "a", "time", "there", "was"});
  const std::size_t n = m.n_tokens();
  m.projections->query.weight.edit().col(0).tail(n).fill(match_score);  // every position looks for position 0
  m.projections->key.weight = position_selector(n);
  return m;
}

Model same_token() {
  Model m = words_and_positions({"a", "rose", "is", "a", "rose", "is"});
  m.projections->query.weight = word_selector(m.n_tokens(), match_score);
  m.projections->key.weight = word_selector(m.n_tokens(), 1);
  return m;
}

Model average() {
  return words_and_positions({"all", "words", "count", "the", "same", "here"});
}

/// Returns embeddings that hold the previous token too: the head looks for the token that followed this word
/// last time.
Model induction() {
  const PresetTokens tokens{"the", "cat", "sat", "and", "the", "cat", "sat"};
  const std::size_t n = tokens.size();
  const std::vector<std::size_t> word = indices(tokens);
  Model m = words_and_positions(tokens);
  arma::mat& x = m.sequences.front().embeddings.edit();
  x.tail_cols(n).zeros();
  for (std::size_t i = 1; i < n; ++i) x(i, n + word[i - 1]) = 1;  // previous word instead of the position
  m.projections->query.weight =
      word_selector(n, match_score);  // looks for keys with this word as previous word
  m.projections->key.weight = position_selector(n);
  return m;
}

}  // namespace
}  // namespace hand_built

/// Additions of modern models to the original paper, each on a few tokens.
namespace modern {
namespace {

const PresetTokens mat{"The", "cat", "sat", "on", "the", "mat", "and", "slept"};
const PresetTokens first_six{mat.begin(), mat.begin() + 6};
constexpr std::size_t d_model = 8, d_head = 4;

/// Samples standard normal numbers, which make heads prefer some keys.
arma::mat sampled(Generator& g, std::size_t rows, std::size_t columns) {
  return filled(g.normal(rows * columns), rows, columns);
}

Linear layer(Generator& g, std::size_t d_in, std::size_t d_out) {
  return {arma::mat(sampled(g, d_in, d_out) / std::sqrt(static_cast<double>(d_in))), std::nullopt};
}

/// Returns words with embeddings and projections sampled from seed 123.
Model words(const PresetTokens& tokens, std::size_t n_heads, std::size_t n_kv_heads = 2) {
  Generator g(123);
  Model m;
  m.sequences.push_back({tokens, sampled(g, tokens.size(), d_model)});
  const std::size_t d_out = n_heads * d_head, kv_width = n_kv_heads * d_head;
  // Braces guarantee that they are sampled in this order.
  m.projections = Projections{layer(g, d_model, d_out), layer(g, d_model, kv_width),
                              layer(g, d_model, kv_width), layer(g, d_out, d_model)};
  m.n_heads = n_heads;
  if (n_kv_heads != n_heads) m.n_kv_heads = n_kv_heads;
  return m;
}

/// Returns one word eight times, with queries and keys of ones: only positions distinguish them.
Model eight_ticks(std::size_t n_heads, std::size_t width) {
  Model m;
  m.sequences.push_back({PresetTokens(8, "tick"), arma::mat(8, width, arma::fill::ones)});
  const Linear same{eye(width), std::nullopt};
  m.projections = Projections{same, same, same, std::nullopt};
  m.n_heads = n_heads;
  return m;
}

Model grouped() {
  return words(first_six, 4);
}

Model rotary() {
  Model m = eight_ticks(1, 4);
  m.additions.positions.rotary.emplace().base = 100;
  return m;
}

Model llama() {
  Model m = words(mat, 4);
  m.additions.positions.rotary.emplace().base = 500000;
  return m;
}

Model window() {
  Model m = words(mat, 2);
  m.mask.window = {3, 0};
  return m;
}

Model alibi() {
  Model m = eight_ticks(8, 8);
  m.additions.positions.alibi.emplace();
  return m;
}

Model cap() {
  Model m = words(first_six, 2);
  m.scale.rule = ScaleRule::none;
  m.additions.softcap = 2;
  return m;
}

Model sink() {
  Model m = window();
  m.additions.sink = arma::mat{{0, 2}};
  return m;
}

Model cross() {
  Generator g(123);
  Model m;
  const PresetTokens source{"The", "cat", "is", "asleep"};
  const arma::mat x = sampled(g, 3, 6);
  m.sequences.push_back({{"Le", "chat", "dort"}, x, source, sampled(g, source.size(), 4)});
  m.projections = Projections{layer(g, 6, 4), layer(g, 4, 4), layer(g, 4, 4), layer(g, 4, 6)};
  m.n_heads = 2;
  m.mask.causal = false;
  return m;
}

/// Returns the last word with a cache of all keys up to itself.
Model decode() {
  Model m = llama();
  Sequence& s = m.sequences.front();
  s.key_embeddings = s.embeddings;
  s.key_tokens = s.tokens;
  s.embeddings = arma::mat(s.embeddings.row(s.tokens.size() - 1));
  s.tokens = {s.tokens.back()};
  return m;
}

}  // namespace
}  // namespace modern

namespace {

// clang-format off
constexpr std::array table{
    Preset{"multi-head", "Your journey, two heads",
           "two heads of two columns each, with an output projection, initialized at seed 123",
           Evidence::sampled, "initialized at seed 123", chapter::wider_multi_head},

    Preset{"000-causal", "Notebook 0: step by step",
           "six words with three features each, sampled at seed 123, and causal attention step by step",
           Evidence::printed, "notebook 000, scaled scores and output", notebooks::causal_step_by_step},

    Preset{"001-dot-product", "Notebook 1: dot products",
           "attention on the embeddings themselves: no projections, no scale, no mask",
           Evidence::printed, "notebook 001, scores, weights and contexts", notebooks::raw_dot_product},
    Preset{"001-attention", "Notebook 1: attention",
           "projections with biases on a batch of 8 sequences of 4 tokens with 256 features, no mask",
           Evidence::unseeded_notebook, "PyTorch run at seed 42; notebook 001 sets no seed",
           [] { return notebooks::attention_class(notebooks::full_size, false); }},
    Preset{"001-attention-mask", "Notebook 1: with mask",
           "the same class with a causal mask, built in each call",
           Evidence::unseeded_notebook, "PyTorch run at seed 42; notebook 001 sets no seed",
           [] { return notebooks::attention_class(notebooks::full_size, true); }},
    Preset{"001-multi-head", "Notebook 1: multi-head",
           "eight heads, transposed before they are concatenated, so that no later token leaks",
           Evidence::unseeded_notebook, "PyTorch run at seed 42; notebook 001 sets no seed",
           [] { return notebooks::multi_head_class(notebooks::full_size, CombineRule::concatenate); }},
    Preset{"001-multi-head-as-written", "Notebook 1: as written",
           "the notebook's bug: heads are reshaped without the transpose, so that later tokens leak into earlier rows",
           Evidence::unseeded_notebook, "PyTorch run at seed 42; notebook 001 sets no seed",
           [] { return notebooks::multi_head_class(notebooks::full_size, CombineRule::reshape_without_transpose); }},

    Preset{"002-library", "Notebook 2: five books",
           "a question about five books: the last row holds the weights of the analogy",
           Evidence::printed, "notebook 002, library analogy", notebooks::library},
    Preset{"002-average", "Notebook 2: past mean",
           "each token is the average of all tokens up to itself: a triangle divided by its row sums",
           Evidence::reference, "PyTorch run of notebook 002", [] { return notebooks::averaging(MaskMethod::renormalize); }},
    Preset{"002-softmax-zeros", "Notebook 2: softmax mean",
           "the same averages from a softmax of zeros, with −∞ for later tokens",
           Evidence::reference, "PyTorch run of notebook 002",
           [] { return notebooks::averaging(MaskMethod::negative_infinity); }},
    Preset{"002-full", "Notebook 2: final code",
           "queries, keys and values of 65 columns, scaled, as in the notebook's final code",
           Evidence::outdated_print, "PyTorch run of notebook 002; its printed weights come from an earlier run",
           notebooks::full_attention},
    Preset{"002-as-printed", "Notebook 2: printed run",
           "the run whose weights the notebook prints: 32 features, head size 16, not scaled, six samples in between",
           Evidence::printed, "notebook 002, printed weights", notebooks::printed_run},

    Preset{"003-causal-class", "Notebook 3: causal class",
           "a batch of two equal sequences, three features to two",
           Evidence::reference, "PyTorch run of notebook 003", notebooks::causal_class},
    Preset{"003-masked-scores", "Notebook 3: masked scores",
           "a random 5×5 score matrix, masked, then softmax: every row sums to 1",
           Evidence::reference, "PyTorch run of notebook 003", notebooks::masked_scores},
    Preset{"003-dropout", "Notebook 3: ten ones",
           "one token in ten heads of weight 1: the output is ten ones after dropout at p = 0.5",
           Evidence::reference, "PyTorch run of notebook 003", notebooks::ten_ones_dropped},

    Preset{"004-self-attention", "Notebook 4: no mask",
           "the sentence, three features to two at seed 123, no mask",
           Evidence::printed, "notebook 004, weights and output",
           [] { return notebooks::your_journey_attention(false, MaskMethod::negative_infinity); }},
    Preset{"004-renormalise", "Notebook 4: renormalize",
           "softmax first, then the triangle, then each row divided by its sum",
           Evidence::printed, "notebook 004, renormalized weights",
           [] { return notebooks::your_journey_attention(true, MaskMethod::renormalize); }},
    Preset{"004-causal", "Notebook 4: mask with −∞",
           "−∞ for later keys before softmax: the same weights in one step",
           Evidence::printed, "notebook 004, masked weights",
           [] { return notebooks::your_journey_attention(true, MaskMethod::negative_infinity); }},
    Preset{"004-causal-dropout", "Notebook 4: dropout",
           "the causal weights with dropout at p = 0.5 and seed 123: kept weights are doubled",
           Evidence::reference, "PyTorch run of notebook 004", 
           [] { return notebooks::your_journey_attention(true, MaskMethod::negative_infinity, true); }},

    Preset{"chapter-causal-class", "Chapter: causal class",
           "the sentence twice in a batch, three features to two, at seed 123",
           Evidence::published, "chapter 3, CausalAttention", chapter::causal_class},
    Preset{"chapter-two-heads", "Chapter: two heads",
           "two heads of two columns, initialized one after the other and concatenated",
           Evidence::published, "chapter 3, MultiHeadAttentionWrapper", chapter::two_heads},
    Preset{"chapter-multi-head", "Chapter: multi-head",
           "two heads of one column each, with an output projection",
           Evidence::published, "chapter 3, MultiHeadAttention", chapter::multi_head},
    Preset{"chapter-dropped-weights", "Chapter: dropped weights",
           "causal weights at seed 789 with dropout at seed 123: one row loses everything",
           Evidence::published, "chapter 3, dropout of the causal weights", chapter::dropped_weights},

    Preset{"head-previous-token", "Head: previous token",
           "each position attends to the one before it; the first attends to itself",
           Evidence::by_construction, "projections written by hand", hand_built::previous_token},
    Preset{"head-first-token", "Head: first token",
           "every position attends to position 0",
           Evidence::by_construction, "projections written by hand", hand_built::first_token},
    Preset{"head-same-token", "Head: same token",
           "each word attends to its own earlier occurrences and itself",
           Evidence::by_construction, "projections written by hand", hand_built::same_token},
    Preset{"head-average", "Head: average",
           "queries and keys of zero: all unmasked tokens have the same weight",
           Evidence::by_construction, "projections written by hand", hand_built::average},
    Preset{"head-induction", "Head: induction",
           "each word attends to the word that followed it last time, through keys that hold the previous word",
           Evidence::by_construction, "projections written by hand", hand_built::induction},

    Preset{"modern-grouped", "Modern: GQA",
           "four query heads that share two KV heads, as in Llama, Mistral and Qwen",
           Evidence::sampled, "initialized at seed 123", modern::grouped},
    Preset{"modern-rotary", "Modern: rotary embedding",
           "one word eight times: only the rotated queries and keys distinguish its positions",
           Evidence::by_construction, "queries and keys of ones, rotated", modern::rotary},
    Preset{"modern-llama", "Modern: as in Llama",
           "GQA and RoPE with base 500000, pairs of halves",
           Evidence::sampled, "initialized at seed 123", modern::llama},
    Preset{"modern-window", "Modern: sliding window",
           "each word attends to itself and the three before it, as in Mistral and Gemma",
           Evidence::sampled, "initialized at seed 123", modern::window},
    Preset{"modern-alibi", "Modern: ALiBi",
           "one word eight times in eight heads whose scores fall with distance, each with its own slope",
           Evidence::by_construction, "scores of 1 less a slope for each step", modern::alibi},
    Preset{"modern-cap", "Modern: soft-capping",
           "large scores limited to ±2 by 2·tanh(score/2), as in Gemma 2",
           Evidence::sampled, "initialized at seed 123", modern::cap},
    Preset{"modern-sink", "Modern: attention sink",
           "a sliding window and an attention sink in the sum of every row, as in gpt-oss",
           Evidence::sampled, "initialized at seed 123", modern::sink},
    Preset{"modern-cross", "Modern: cross-attention",
           "three words attend to four others: keys and values come from encoder states",
           Evidence::sampled, "initialized at seed 123", modern::cross},
    Preset{"modern-decode", "Modern: KV cache",
           "the newest word attends to a cache of all words up to itself",
           Evidence::sampled, "initialized at seed 123", modern::decode},
};
// clang-format on

}  // namespace

std::span<const Preset> presets() {
  return table;
}

const Preset* find_preset(std::string_view name) {
  return find_by(table, name, &Preset::name);
}

const Preset& default_preset() {
  return *find_preset("multi-head");
}

}  // namespace core::editing
