#include "core/editing/modern.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "core/editing/drawn.hpp"

namespace core::editing::modern {
namespace {

using attention::Linear;
using attention::Model;
using attention::Projections;
using attention::SharedMatrix;
using random::Generator;

using Words = std::vector<std::string>;

const Words mat{"The", "cat", "sat", "on", "the", "mat", "and", "slept"};

struct Width {
  std::size_t d_model = 8, n_heads = 4, d_head = 4;
};

/// Normal numbers; wide enough for heads to prefer some keys.
arma::mat drawn(Generator& g, std::size_t rows, std::size_t columns) {
  return filled(g.normal(rows * columns), rows, columns);
}

Linear layer(Generator& g, std::size_t d_in, std::size_t d_out) {
  return {arma::mat(drawn(g, d_in, d_out) / std::sqrt(static_cast<double>(d_in))), std::nullopt};
}

/// Words with embeddings and projections that are drawn at seed 123; so many keys and values for all heads.
Model words(const Words& tokens, const Width& width, std::size_t n_kv_heads) {
  Generator g(123);
  Model m;
  m.sequences.push_back({tokens, drawn(g, tokens.size(), width.d_model)});
  const std::size_t d_out = width.n_heads * width.d_head, of_groups = n_kv_heads * width.d_head;
  Linear query = layer(g, width.d_model, d_out), key = layer(g, width.d_model, of_groups),
         value = layer(g, width.d_model, of_groups), output = layer(g, d_out, width.d_model);
  m.projections = Projections{std::move(query), std::move(key), std::move(value), std::move(output)};
  m.n_heads = width.n_heads;
  if (n_kv_heads != width.n_heads) m.n_kv_heads = n_kv_heads;
  return m;
}

/// One word so many times, whose query and key are the same rows, all ones.
Model one_word(const std::string& word, std::size_t times, std::size_t n_heads, std::size_t d_head) {
  Model m;
  const std::size_t width = n_heads * d_head;
  m.sequences.push_back({Words(times, word), arma::mat(times, width, arma::fill::ones)});
  const Linear same{arma::mat(width, width, arma::fill::eye), std::nullopt};
  m.projections = Projections{same, same, same, std::nullopt};
  m.n_heads = n_heads;
  return m;
}

}  // namespace

Model grouped() {
  return words({mat.begin(), mat.begin() + 6}, {}, 2);
}

Model rotary() {
  Model m = one_word("tick", 8, 1, 4);
  m.additions.positions.rotary.emplace().base = 100;
  return m;
}

Model llama() {
  Model m = words(mat, {}, 2);
  m.additions.positions.rotary.emplace().base = 500000;
  return m;
}

Model window() {
  Model m = words(mat, {.n_heads = 2}, 2);
  m.mask.window = {3, 0};
  return m;
}

Model alibi() {
  Model m = one_word("tick", 8, 8, 1);
  m.additions.positions.alibi.emplace();
  return m;
}

Model cap() {
  Model m = words({mat.begin(), mat.begin() + 6}, {.n_heads = 2}, 2);
  m.scale.rule = attention::ScaleRule::none;
  m.additions.score_cap = 2;
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
  const Words asked{"The", "cat", "is", "asleep"};
  m.sequences.push_back({{"Le", "chat", "dort"}, drawn(g, 3, 6), asked, drawn(g, asked.size(), 4)});
  m.projections = Projections{layer(g, 6, 4), layer(g, 4, 4), layer(g, 4, 4), layer(g, 4, 6)};
  m.n_heads = 2;
  m.mask.causal = false;
  return m;
}

Model decode() {
  Model m = llama();
  attention::Sequence& s = m.sequences.front();
  s.key_embeddings = s.embeddings;
  s.key_tokens = s.tokens;
  const std::size_t last = s.tokens.size() - 1;
  s.embeddings = arma::mat(s.embeddings.row(last));
  s.tokens = {s.tokens[last]};
  return m;
}

}  // namespace core::editing::modern
