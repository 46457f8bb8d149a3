#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/file.hpp"
#include "core/files/json.hpp"
#include "core/files/session.hpp"
#include "core/files/session_additions.hpp"
#include "core/files/session_departures.hpp"
#include "core/files/session_given.hpp"
#include "core/files/session_lists.hpp"
#include "core/files/session_mask.hpp"
#include "core/files/session_words.hpp"

namespace core::formats {
namespace {

using attention::Linear;
using attention::Model;
using attention::Sequence;
using attention::SharedMatrix;

std::string tokens_json(const std::vector<std::string>& tokens) {
  return list_text(tokens, "", false,
                   [](const std::string& token, const std::string&) { return json_quoted(token); });
}

/// Names a token of each sequence, once when all have the same.
std::string all_tokens_json(const std::vector<Sequence>& sequences,
                            std::vector<std::string> Sequence::*tokens) {
  const auto& first = sequences.front().*tokens;
  if (std::ranges::all_of(sequences, [&](const Sequence& s) { return s.*tokens == first; }))
    return tokens_json(first);
  return list_text(sequences, "  ", true,
                   [&](const Sequence& s, const std::string&) { return tokens_json(s.*tokens); });
}

std::string embeddings_json(const std::vector<Sequence>& sequences, SharedMatrix Sequence::*embeddings) {
  if ((sequences.front().*embeddings).n_cols() == 0) return "null";
  if (sequences.size() == 1) return matrix_text(sequences.front().*embeddings, "  ");
  return list_text(sequences, "  ", true, [&](const Sequence& s, const std::string& indent) {
    return matrix_text(s.*embeddings, indent);
  });
}

std::string linear_json(const Linear& linear) {
  return "{\n      \"weight\": " + matrix_text(linear.weight, "      ") +
         ",\n      \"bias\": " + (linear.bias ? row_text(*linear.bias, 0) : "null") + "\n    }";
}

std::string projections_json(const Model& m) {
  if (!m.projections) return "null";
  const auto& p = *m.projections;
  std::string text = "{";
  const auto add = [&](const char* key, const std::string& linear) {
    text += std::string(text.size() > 1 ? "," : "") + "\n    \"" + key + "\": " + linear;
    require_readable_session(text);  // before the next of them takes its memory
  };
  add("query", linear_json(p.query));
  add("key", linear_json(p.key));
  add("value", linear_json(p.value));
  add("output", p.output ? linear_json(*p.output) : "null");
  return text + "\n  }";
}

std::string dropout_json(const Model& m) {
  const attention::Dropout& d = m.dropout;
  std::string text =
      "{\"rate\": " + text::number_text(d.rate) + ", \"training\": " + (d.training ? "true" : "false") +
      ", \"seed\": " + std::to_string(d.seed) + ", \"stream\": " + quoted_word(stream_words, d.stream);
  if (!d.rescale) text += ", \"rescale\": false";
  if (!d.given.empty()) text += ", \"mask\": " + heads_text(d.given, m.n_heads, m.sequences.size());
  return text + "}";
}

std::string scale_json(const attention::Scale& scale) {
  return scale.rule == attention::ScaleRule::factor ? text::number_text(scale.factor)
                                                    : quoted_word(scale_words, scale.rule);
}

std::string view_json(const std::string& view) {
  const Json json = parse_json(view, "view");
  if (!json.is_object()) throw Error("view: expected an object");
  return json_text(json);
}

}  // namespace

void require_readable_session(std::string_view text) {
  if (text.size() <= largest_session) return;
  throw Error("a session of more than " + std::to_string(largest_session >> 20) +
              " MiB, which could not be read again; numbers of that size can be exported as .npy or .npz");
}

std::string session_text(const Session& session) {
  const Model& m = session.model;
  attention::require(m);
  std::string text = "{\n  \"attnscope\": 1";
  const auto add = [&](const char* key, const std::string& value) {
    text += ",\n  \"" + std::string(key) + "\": " + value;
    require_readable_session(text);
  };
  add("tokens", all_tokens_json(m.sequences, &Sequence::tokens));
  if (!m.sequences.front().key_tokens.empty())
    add("key_tokens", all_tokens_json(m.sequences, &Sequence::key_tokens));
  add("embeddings", embeddings_json(m.sequences, &Sequence::embeddings));
  if (m.has_memory()) add("key_embeddings", embeddings_json(m.sequences, &Sequence::key_embeddings));
  add("projections", projections_json(m));
  add("n_heads", std::to_string(m.n_heads));
  if (m.n_kv_heads) add("n_kv_heads", std::to_string(*m.n_kv_heads));
  add("scores", quoted_word(score_words, m.scores));
  add("scale", scale_json(m.scale));
  add("mask", mask_text(m.mask));
  add("dropout", dropout_json(m));
  add("merge_heads", quoted_word(merge_words, m.merge));
  add("context_length", m.context_length ? std::to_string(*m.context_length) : "null");
  for (const auto& [key, value] : additions_text(m.additions)) add(key, value);
  if (!(m.departures == attention::Departures())) add("departures", departures_text(m.departures));
  if (!m.given.empty()) add("given", given_text(m));
  if (!m.heads_off.empty())
    add("heads_off", list_text(m.heads_off, "", false,
                               [](std::size_t h, const std::string&) { return std::to_string(h); }));
  if (!session.left_out.empty())
    add("left_out", list_text(session.left_out, "", false, [](const std::string& words, const std::string&) {
          return json_quoted(words);
        }));
  if (!session.view.empty()) add("view", view_json(session.view));
  return text + "\n}\n";
}

void save_session(const std::filesystem::path& path, const Session& session) {
  std::string text;
  try {
    text = session_text(session);
  } catch (const Error& error) {
    throw Error(path.string() + ": cannot be written: " + error.what());
  }
  write_atomically(path, text);
}

}  // namespace core::formats
