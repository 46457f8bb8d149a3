#include "core/model/full_model.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/graph/validation.hpp"
#include "core/model/matrix.hpp"

namespace core::transformer {
namespace {

/// Returns text as it is, and bytes that are part of a character as "<E2><80>".
std::string printable(std::string name) {
  if (text::is_utf8(name)) return name;
  constexpr const char* digits = "0123456789ABCDEF";
  std::string hex;
  for (const char byte : name) {
    const auto value = static_cast<unsigned char>(byte);
    hex += std::string("<") + digits[value >> 4] + digits[value & 15] + ">";
  }
  return hex;
}

}  // namespace

TorchNames FullModel::torch_names() const {
  throw Error(description().path.string() + ": its parts have no known names in PyTorch");
}

arma::mat max_pool(const arma::mat& numbers, std::size_t block) {
  if (block == 1) return numbers;
  const auto blocks = [block](std::size_t n) { return (n + block - 1) / block; };
  arma::mat result(blocks(numbers.n_rows), blocks(numbers.n_cols), arma::fill::zeros);
  for (std::size_t j = 0; j < numbers.n_cols; ++j)
    for (std::size_t i = 0; i < numbers.n_rows; ++i) {
      double& largest = result.at(i / block, j / block);
      if (const double number = numbers.at(i, j); !(number <= largest)) largest = number;  // NaN stays
    }
  return result;
}

double LogitAttributions::sum() const {
  double all = embedding + constant;
  for (const auto& layer : heads) all = std::accumulate(layer.begin(), layer.end(), all);
  all = std::accumulate(output_biases.begin(), output_biases.end(), all);
  return std::accumulate(mlps.begin(), mlps.end(), all);
}

void FullModel::for_each_pattern(const std::vector<std::vector<std::size_t>>& texts, const UsePattern& use,
                                 const CallContext& context) const {
  for (std::size_t k = 0; k < texts.size(); ++k) {
    const PassRef pass = run(texts[k], {}, context);
    for (std::size_t l = 0; l < description().sizes.n_layers; ++l) {
      const LayerHeads layer = maps(*pass, l, 1, texts[k].size() - 1, context);
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
        use(k, l, h, RowBuffer(arma::conv_to<arma::fmat>::from(layer.heads[h].map)));
    }
  }
}

std::vector<std::size_t> FullModel::generate(const std::vector<std::size_t>& ids,
                                             const std::vector<PassEdit>& edits, std::size_t n_more,
                                             const Sampling& sampling, random::Generator& generator,
                                             const CallContext& context) const {
  const Description& of = description();
  const std::string place = of.path.string() + ": ";
  const std::size_t n_context = of.sizes.n_context;
  if (ids.size() + n_more > n_context)
    throw Error(
        fmt::format("{}expected at most {} tokens, as many as the model takes at once, got {} and {} more",
                    place, n_context, ids.size(), n_more));
  if (!of.causal) throw Error(place + "this model is bidirectional, so it cannot continue a text");
  std::vector<std::size_t> all = ids, made;
  for (PassRef pass; made.size() < n_more;) {
    pass = run(all, edits, context);
    made.push_back(sample_token(next(*pass, all.size() - 1, context), of.n_tokens, sampling, generator));
    all.push_back(made.back());
  }
  return made;
}

std::vector<std::string> token_names(const FullModel& model,
                                     const std::vector<tokenizers::TextToken>& tokens) {
  std::vector<std::string> names;
  for (const tokenizers::TextToken& token : tokens) {
    const VocabularyToken of = model.token(token.id);
    names.push_back(printable(token.is_inserted ? of.piece : of.bytes));
  }
  return names;
}

std::string token_name(const FullModel& model, std::size_t id) {
  return printable(model.token(id).bytes);
}

std::span<const NamedPart> patched_parts() {
  static constexpr NamedPart all[] = {
      {"head", PatchedPart::head}, {"pattern", PatchedPart::pattern},  {"queries", PatchedPart::queries},
      {"keys", PatchedPart::keys}, {"values", PatchedPart::values},    {"attention", PatchedPart::attention},
      {"mlp", PatchedPart::mlp},   {"residual", PatchedPart::residual}};
  return all;
}

const NamedPart* find_part(std::string_view name) {
  const auto found = std::ranges::find(patched_parts(), name, &NamedPart::name);
  return found == patched_parts().end() ? nullptr : &*found;
}

std::size_t n_parts(const Sizes& sizes, PatchedPart part) {
  if (part == PatchedPart::keys || part == PatchedPart::values) return sizes.kv_heads;
  return part == PatchedPart::head || part == PatchedPart::pattern || part == PatchedPart::queries
             ? sizes.n_heads
             : 1;
}

std::string patch_name(const Patch& patch) {
  static constexpr const char* of_layer[] = {"attention", "MLP", "residual stream before layer"};
  const auto part = static_cast<std::size_t>(patch.part);
  const std::string head = fmt::format("{}.{}", patch.layer, patch.index),
                    name = patch.part < PatchedPart::attention
                               ? (patch.part == PatchedPart::head
                                      ? "head " + head
                                      : fmt::format("{} {}", patched_parts()[part].name, head))
                               : fmt::format("{} {}", of_layer[part - 5], patch.layer);
  return name + (patch.position ? fmt::format(", position {}", *patch.position) : "");
}

TokenAlignment align(const std::vector<std::size_t>& first, const std::vector<std::size_t>& text,
                     const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  TokenAlignment rows(text.size());
  const std::size_t shorter = std::min(first.size(), text.size());
  if (pairs.empty()) {
    const bool is_equal = first.size() == text.size();
    std::size_t begin = 0, end = 0;
    while (begin < shorter && (is_equal || first[begin] == text[begin])) rows[begin] = begin, ++begin;
    while (begin + end < shorter && *(first.end() - end - 1) == *(text.end() - end - 1))
      ++end, rows[text.size() - end] = first.size() - end;
  }
  std::size_t from = 0, to = 0;  // the next positions that are free
  for (const auto& [source, place] : pairs) {
    if (source < from || place < to || source >= first.size() || place >= text.size())
      throw Error(fmt::format("align: expected positions in order, below {} and {}, got {}:{}", first.size(),
                              text.size(), source, place));
    rows[place] = source;
    from = source + 1, to = place + 1;
  }
  return rows;
}

std::vector<std::pair<std::size_t, std::size_t>> toggle_pair(const TokenAlignment& rows, std::size_t first,
                                                             std::size_t place) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const bool was_there = rows[place] == first;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == place && !was_there) pairs.emplace_back(first, place);
    if (rows[i] &&
        (was_there ? i != place : (i < place && *rows[i] < first) || (i > place && *rows[i] > first)))
      pairs.emplace_back(*rows[i], i);
  }
  return pairs;
}

bool is_one_by_one(const TokenAlignment& rows, std::size_t n_first) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != i) return false;
  return rows.size() == n_first;
}

void require_layer(const FullModel& model, std::size_t layer) {
  const Description& of = model.description();
  if (layer >= of.sizes.n_layers)
    throw Error(
        fmt::format("{}: expected a layer below {}, got {}", of.path.string(), of.sizes.n_layers, layer));
}

void require_tokens(const Description& model, const std::vector<std::size_t>& ids, std::size_t n_before) {
  if (ids.empty()) throw Error("the text has no tokens to run the model on");
  if (n_before + ids.size() > model.sizes.n_context)
    throw Error(fmt::format("expected at most {} tokens, as many as the model takes at once, got {}",
                            model.sizes.n_context, n_before + ids.size()));
  for (const std::size_t id : ids)
    if (id >= model.sizes.n_vocabulary)
      throw Error(fmt::format("expected tokens below {}, got {}", model.sizes.n_vocabulary, id));
}

attention::Model layer_model(const FullModel& model, const Pass& pass, std::size_t layer,
                             const std::vector<std::string>& tokens,
                             const std::vector<std::size_t>& heads_off, const StopToken& progress) {
  require_layer(model, layer);
  attention::Model result = model.parameters(layer, &pass, progress);
  result.sequences = {{tokens, arma::mat(tokens.size(), 0)}};
  if (result.projections)
    result.sequences.front().embeddings = arma::conv_to<arma::mat>::from(model.input(pass, layer, progress));
  result.heads_off = heads_off;
  attention::require(result, model.description().path.string() + ": ");
  return result;
}

std::size_t answer_token(const FullModel& model, const std::string& answer, const std::string& option) {
  std::vector<std::size_t> ids;
  try {
    for (const tokenizers::TextToken& token : model.tokenize(answer))
      if (!token.is_inserted) ids.push_back(token.id);
  } catch (const Error& error) {
    throw Error(option + ": " + error.what());
  }
  if (ids.size() == 1 && model.token(ids[0]).bytes == answer) return ids[0];
  // A tokenizer that begins each text with a space has no other way to spell a token without one.
  for (std::size_t id = 0; id < model.description().n_tokens; ++id)
    if (const auto token = model.token(id); token.bytes == answer && !token.is_special) return id;
  const std::string names = text::joined(
      ids, ", ", [&](std::size_t id) { return "'" + text::printable(model.token(id).bytes) + "'"; });
  throw Error(
      fmt::format("{}: expected one token, got {}{}", option, ids.size(), names.empty() ? "" : ": " + names));
}

PredictedPositions find_predicted_positions(const FullModel& model, const std::vector<std::size_t>& ids) {
  const Description& of = model.description();
  if (of.causal) return {{{ids.size(), ids.size() - 1}}};
  if (!of.mask_token) return {{}, "its tokenizer has no [MASK] or <mask>, so nothing can be predicted"};
  PredictedPositions places;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == *of.mask_token) places.all.push_back({i, i});
  if (places.all.empty())
    places.no_prediction_reason = "this model is bidirectional: expected a text with " +
                                  model.token(*of.mask_token).piece + " where a word is to be predicted";
  return places;
}

std::vector<TokenScore> top_tokens(const arma::frowvec& logits, std::size_t n_listed, std::size_t n_tokens) {
  std::vector<std::size_t> order(std::min<std::size_t>(n_tokens, logits.n_elem));
  std::iota(order.begin(), order.end(), std::size_t{0});
  n_listed = std::min(n_listed, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_listed), order.end(),
      [&](std::size_t a, std::size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  const Probabilities probabilities(logits);
  std::vector<TokenScore> scores;
  for (std::size_t k = 0; k < n_listed; ++k)
    scores.push_back({order[k], logits[order[k]], probabilities.of(order[k])});
  return scores;
}

Probabilities::Probabilities(const arma::frowvec& logits, double temperature)
    : logits_(logits), temperature_(temperature), largest_(logits.max()) {
  for (const float logit : logits_) sum_ += std::exp((logit - largest_) / temperature_);
}

double Probabilities::of(std::size_t token) const {
  return std::exp((logits_[token] - largest_) / temperature_) / sum_;
}

std::size_t sample_token(const arma::frowvec& logits, std::size_t n_tokens, const Sampling& sampling,
                         random::Generator& generator) {
  if (sampling.temperature == 0) return top_tokens(logits, 1, n_tokens).front().id;
  auto scores = top_tokens(logits, sampling.top == 0 ? n_tokens : std::min(sampling.top, n_tokens), n_tokens);
  // Relative to the best logit, so that no temperature makes a number overflow.
  const double best = scores.front().logit;
  double sum = 0;
  for (TokenScore& score : scores)
    sum += score.probability = std::exp((score.logit - best) / sampling.temperature);
  double left = generator.rand(1)[0] * sum;
  for (const TokenScore& score : scores)
    if ((left -= score.probability) < 0) return score.id;
  return scores.front().id;  // reached only by rounding of the sums
}

}  // namespace core::transformer
