#include "core/files/session.hpp"

#include <fmt/core.h>
#include <algorithm>

#include "core/base/number.hpp"
#include "core/files/json.hpp"
#include "core/files/session_files.hpp"
#include "core/files/session_parts.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"
#include "core/system/file.hpp"

namespace core::formats {

namespace {

using attention::GivenCell;
using attention::Linear;
using attention::Model;
using attention::Projections;
using attention::Sequence;
using attention::SharedMatrix;
using attention::Stage;

/// Overridden stages and values, and their numbers of sequences and heads; 0 if no whole stage is overridden.
struct ParsedGiven {
  attention::Given given;
  std::size_t n_sequences = 0, n_heads = 0;
  std::size_t n_shared = 0;  ///< KV heads, if keys or values are overridden
};

/// Returns the number of nested lists around the first number.
std::size_t nesting_depth(const Json& json) {
  const auto first = json.first();
  return first ? 1 + nesting_depth(*first) : 0;
}

/// Matrices of one stage, flattened from [sequence][head].
struct StageMatrices {
  std::size_t n_sequences = 0, n_heads = 0;
  std::vector<SharedMatrix> all;
};

void add_sequence(const Json& place, StageMatrices& matrices) {
  const auto heads = place.items("a list of matrices, one for each head");
  if (matrices.n_sequences > 0 && heads.size() != matrices.n_heads)
    place.fail(std::to_string(matrices.n_heads) + " matrices as in the first sequence",
               std::to_string(heads.size()));
  require_count(place, heads.size(), attention::max_columns, "heads");
  require_bytes(place, (matrices.all.size() + heads.size()) * bytes_of_a_matrix, "matrices");
  ++matrices.n_sequences, matrices.n_heads = heads.size();
  for (const Json& head : heads) matrices.all.emplace_back(head.matrix(AllowedNumbers::any));
}

StageMatrices listed_matrices(const Json& place) {
  const std::size_t levels = nesting_depth(place);
  if (levels < 3) return {1, 1, {SharedMatrix(place.matrix(AllowedNumbers::any))}};
  StageMatrices matrices;
  if (levels == 3)
    add_sequence(place, matrices);
  else {
    const auto sequences = place.items("a list of sequences");
    require_count(place, sequences.size(), attention::max_sequences, "sequences");
    for (const Json& sequence : sequences) add_sequence(sequence, matrices);
  }
  return matrices;
}

StageMatrices read_referenced_matrices(const Json& place, const SessionFolder& folder, Stage stage) {
  TensorStage read = read_referenced_stage(place, folder, stage);
  return {read.n_sequences, read.given.matrices.size() / read.n_sequences, std::move(read.given.matrices)};
}

attention::GivenStage read_given_stage(const Json& place, const SessionFolder& folder, Stage stage,
                                       ParsedGiven& read) {
  StageMatrices matrices =
      is_file_reference(place) ? read_referenced_matrices(place, folder, stage) : listed_matrices(place);
  // There may be fewer KV heads than heads; attention::check() validates their number.
  const bool is_per_kv_head = attention::info(stage).rows == attention::RowTokens::keys;
  const bool other_heads = !is_per_kv_head && read.n_heads > 0 && read.n_heads != matrices.n_heads;
  const bool other_sequences = read.n_sequences > 0 && read.n_sequences != matrices.n_sequences;
  if (other_heads || other_sequences)
    fail_about_reference(place, folder,
                         std::to_string(read.n_sequences * read.n_heads) + " matrices as of the stage before",
                         std::to_string(matrices.all.size()));
  (is_per_kv_head ? read.n_shared : read.n_heads) = matrices.n_heads, read.n_sequences = matrices.n_sequences;
  return {stage, std::move(matrices.all)};
}

void read_cells(const Json& place, std::vector<GivenCell>& cells) {
  for (const Json& cell : place.items_or_empty("a list of cells")) cells.push_back(read_cell(cell));
  std::ranges::sort(cells, {}, &GivenCell::place);
  const auto duplicate = std::ranges::adjacent_find(cells, {}, &GivenCell::place);
  if (duplicate == cells.end()) return;
  place.fail("each cell once",
             fmt::format("{} [{}, {}] of head {} twice", attention::info(duplicate->place.stage).name,
                         duplicate->place.row, duplicate->place.column, duplicate->place.head));
}

/// Reads {"weights": [head][row][column], …, "cells": [{"stage", "head", "row", "column", "value"}, …]}; a
/// batch has one more level, a single head may have one less. A stage may be in a file: {"file", "tensor",
/// "at"}, see read_referenced_matrix().
///
/// Throws core::Error as Json and TensorFile do, and when two stages have different numbers of heads.
ParsedGiven read_given(const Json& place, const SessionFolder& folder) {
  place.expect_keys({"queries", "keys", "values", "scores", "scaled_scores", "masked_scores", "weights",
                     "dropout_mask", "cells"});
  ParsedGiven read;
  std::uint64_t bytes = 0;
  for (const attention::StageInfo& stage : attention::stages())
    if (const auto found = attention::can_be_given(stage.stage) ? place.member(stage.name) : std::nullopt) {
      read.given.stages.push_back(read_given_stage(*found, folder, stage.stage, read));
      for (const SharedMatrix& m : read.given.stages.back().matrices) bytes += matrix_bytes(m);
      require_bytes(*found, bytes, "stages");
    }
  if (read.n_heads == 0) read.n_heads = read.n_shared;
  if (const auto cells = place.member("cells")) read_cells(*cells, read.given.cells);
  return read;
}

/// Returns whether this looks like a list of matrices; errors in it are found when it is read.
bool is_list_of_matrices(const Json& embeddings) {
  const auto matrix = embeddings.first();
  if (!matrix) return false;
  if (matrix->is_object()) return true;  // in a file
  const auto row = matrix->first();
  return row && row->is_list();
}

arma::mat read_matrix(const Json& place, const SessionFolder& folder) {
  return is_file_reference(place) ? read_referenced_matrix(place, folder) : place.matrix();
}

/// Names of n tokens, of queries or keys.
struct TokenNames {
  std::vector<std::string> Sequence::*member;
  std::size_t n;
  const char* words;  ///< follows n in messages
};

std::vector<std::string> read_tokens(const Json& place, const SessionFolder& folder,
                                     const TokenNames& names) {
  std::vector<std::string> tokens;
  if (is_file_reference(place)) {
    tokens = read_referenced_texts(place, folder);
  } else {
    const auto items = place.items("a list of strings");
    require_count(place, items.size(), attention::max_tokens, "tokens");
    for (const Json& item : items) tokens.push_back(item.text());
  }
  if (tokens.size() != names.n)
    fail_about_reference(place, folder, std::to_string(names.n) + names.words, std::to_string(tokens.size()));
  return tokens;
}

void set_token_names(const Json& place, const TokenNames& names, const std::vector<std::string>& tokens,
                     std::vector<Sequence>& sequences) {
  require_bytes(place, sequences.size() * name_bytes(tokens), "names", max_copied_bytes);
  for (Sequence& s : sequences) s.*names.member = tokens;
}

/// Reads the names of tokens: one list for all sequences, or a list for each.
void read_token_names(const Json& place, bool is_batch, const SessionFolder& folder, const TokenNames& names,
                      std::vector<Sequence>& sequences) {
  const auto first = is_file_reference(place) ? std::nullopt : place.first();
  if (!is_batch || !first || !first->is_list())
    return set_token_names(place, names, read_tokens(place, folder, names), sequences);
  const auto items = place.items("a list of strings");
  if (items.size() != sequences.size())
    place.fail(std::to_string(sequences.size()) + " lists of tokens, one for each sequence",
               std::to_string(items.size()));
  std::uint64_t bytes = 0;
  for (std::size_t s = 0; s < items.size(); ++s) {
    sequences[s].*names.member = read_tokens(items[s], folder, names);
    require_bytes(place, bytes += name_bytes(sequences[s].*names.member), "names", max_copied_bytes);
  }
}

/// Sets the token names of a session, or numbers where names are required.
void read_all_token_names(const Json& top, bool is_batch, const SessionFolder& folder, Model& m) {
  const TokenNames queries{&Sequence::tokens, m.n_tokens(), " tokens, one for each row of the embeddings"};
  const TokenNames keys{&Sequence::key_tokens, m.n_keys(), " tokens, one for each key"};
  const auto name = [&](const char* key, const TokenNames& names, bool must_be) {
    if (const auto specified = top.member(key))
      read_token_names(*specified, is_batch, folder, names, m.sequences);
    else if (must_be)
      set_token_names(top, names, attention::numbered_tokens(names.n), m.sequences);
  };
  name("tokens", queries, true);
  name("key_tokens", keys, m.has_key_embeddings() || keys.n != queries.n);
}

/// Reads a list of at most max_sequences matrices and passes each to use.
template <class Use>
void read_matrices(const Json& place, const std::vector<Json>& items, const SessionFolder& folder, Use use) {
  require_count(place, items.size(), attention::max_sequences, "sequences");
  std::uint64_t bytes = 0;
  for (const Json& item : items) {
    SharedMatrix read = read_matrix(item, folder);
    require_bytes(place, bytes += matrix_bytes(read), "matrices");
    use(std::move(read));
  }
}

std::vector<Sequence> read_embeddings(const Json& embeddings, const SessionFolder& folder) {
  std::vector<Sequence> sequences;
  if (is_list_of_matrices(embeddings))
    read_matrices(embeddings, embeddings.items("a list of matrices"), folder, [&](SharedMatrix read) {
      sequences.push_back({{}, std::move(read)});
    });
  else
    sequences.push_back({{}, read_matrix(embeddings, folder)});
  return sequences;
}

/// Reads one matrix for all sequences, or one for each.
void read_key_embeddings(const Json& place, bool is_batch, const SessionFolder& folder,
                         std::vector<Sequence>& sequences) {
  if (!is_list_of_matrices(place)) {
    const SharedMatrix encoder_states = read_matrix(place, folder);
    for (Sequence& s : sequences) s.key_embeddings = encoder_states;
    return;
  }
  const auto items = place.items("a list of matrices, one for each sequence");
  if (!is_batch || items.size() != sequences.size())
    place.fail(std::to_string(sequences.size()) + " matrices, one for each sequence",
               std::to_string(items.size()));
  auto next = sequences.begin();
  read_matrices(place, items, folder, [&](SharedMatrix read) { (next++)->key_embeddings = std::move(read); });
}

/// Returns sequences without embeddings; the overridden stages give the number of tokens.
std::vector<Sequence> sequences_without_embeddings(const ParsedGiven& given) {
  return std::vector<Sequence>(given.n_sequences,
                               {{}, arma::mat(attention::n_queries_of(given.given.stages), 0)});
}

Linear read_linear(const Json& place) {
  place.expect_keys({"weight", "bias"});
  Linear linear{place.required("weight").matrix(), {}};
  if (const auto bias = place.given("bias")) linear.bias = bias->row();
  return linear;
}

std::optional<Projections> read_projections(const Json& place) {
  if (place.is_null()) return std::nullopt;
  place.expect_keys({"query", "key", "value", "output"});
  Projections p{read_linear(place.required("query")),
                read_linear(place.required("key")),
                read_linear(place.required("value")),
                {}};
  if (const auto output = place.given("output")) p.output = read_linear(*output);
  return p;
}

attention::Scale read_scale(const Json& place) {
  if (place.is_number()) return {attention::ScaleRule::factor, place.number()};
  return {place.word(scale_words, " or a number"), 1};
}

std::vector<std::size_t> read_heads(const Json& place) {
  const auto specified = place.whole_numbers("a list of heads");
  std::vector<std::size_t> heads(specified.begin(), specified.end());
  std::ranges::sort(heads);
  return heads;
}

/// Reads a checkpoint layer, which gives the number of heads and additions that the session does not.
void read_checkpoint(const Json& place, const SessionFolder& folder, std::optional<std::size_t> n_heads,
                     Model& model) {
  ReferencedLayer read = read_referenced_layer(place, folder, n_heads);
  model.projections = std::move(read.attention.projections);
  model.n_heads = read.attention.n_heads;
  model.n_kv_heads = read.attention.n_kv_heads;
  model.additions = std::move(read.additions);
}

Model read_model(const Json& top, const SessionFolder& folder) {
  Model m;
  const auto given = top.member("given");
  ParsedGiven read = given ? read_given(*given, folder) : ParsedGiven();
  auto embeddings = top.member("embeddings");
  if (embeddings && embeddings->is_null()) embeddings.reset();
  const bool has_embeddings = embeddings || read.n_sequences == 0;
  m.sequences = has_embeddings ? read_embeddings(top.required("embeddings"), folder)
                               : sequences_without_embeddings(read);
  const bool is_batch = has_embeddings ? is_list_of_matrices(*embeddings) : read.n_sequences > 1;
  m.n_heads = std::max<std::size_t>(1, read.n_heads);
  m.given = std::move(read.given);
  const auto n_heads = top.member("n_heads");
  if (n_heads) m.n_heads = n_heads->whole(1);
  if (const auto p = top.member("projections"); p && is_file_reference(*p))
    read_checkpoint(*p, folder, n_heads ? std::optional(m.n_heads) : std::nullopt, m);
  else if (p)
    m.projections = read_projections(*p);
  if (const auto groups = top.given("n_kv_heads")) m.n_kv_heads = groups->whole(1);
  if (const auto encoder_states = top.given("key_embeddings"))
    read_key_embeddings(*encoder_states, is_batch, folder, m.sequences);
  attention::require_size(attention::model_size(m), top.place());
  read_all_token_names(top, is_batch, folder, m);
  if (const auto s = top.member("scores")) m.scores = s->word(score_words);
  if (const auto s = top.member("scale")) m.scale = read_scale(*s);
  if (const auto mask = top.member("mask")) m.mask = read_mask(*mask, m.sequences.size(), m.n_keys());
  if (const auto d = top.member("dropout")) m.dropout = read_dropout(*d, m, is_batch);
  m.additions = read_additions(top, std::move(m.additions));
  if (const auto merge = top.member("merge_heads")) m.merge = merge->word(combine_words);
  if (const auto d = top.member("departures")) read_deviations(*d, m);
  if (const auto list = top.member("mistakes")) read_bugs(*list, m);
  if (const auto c = top.given("context_length")) m.context_length = c->whole(1);
  if (const auto off = top.member("heads_off")) m.heads_off = read_heads(*off);
  if (m.n_kv_heads == m.n_heads) m.n_kv_heads.reset();  // the default
  return m;
}

}  // namespace

Session parse_session(std::string_view text, const std::string& file_name, UntrustedPaths untrusted_paths) {
  const Json top = parse_json(text, file_name);
  top.expect_keys({"attnscope",   "tokens",    "key_tokens",  "embeddings",     "key_embeddings",
                   "projections", "n_heads",   "n_kv_heads",  "normalise",      "positions",
                   "scores",      "score_cap", "score_bias",  "sink",           "scale",
                   "mask",        "dropout",   "merge_heads", "context_length", "departures",
                   "mistakes",    "given",     "heads_off",   "left_out",       "assumed",
                   "view"});
  require_version(top);
  Session session{read_model(top, {std::filesystem::path(file_name).parent_path(), untrusted_paths}), "", {}};
  if (const auto projections = top.member("projections")) session.left_out = ignored_features(*projections);
  if (const auto list = top.member("left_out"))
    for (std::string& words : list->texts("a list of what is left out")) session.left_out.push_back(words);
  if (const auto list = top.member("assumed")) session.assumed = list->texts("a list of what was assumed");
  session.view = read_view(top);
  attention::require_within_limits(session.model, file_name + ": ");
  return session;
}

Session load_session(const std::filesystem::path& path, UntrustedPaths untrusted_paths) {
  return parse_session(system::read_file(path, max_session_bytes), path.string(), untrusted_paths);
}

namespace {

std::string given_text(const attention::Model& model) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += (text.empty() ? "{\n  \"" : ",\n  \"") + std::string(key) + "\": " + value;
  };
  for (const attention::GivenStage& stage : model.given.stages)
    add(attention::info(stage.stage).name,
        heads_text(stage.matrices, n_matrices(model, stage.stage), model.sequences.size()));
  if (!model.given.cells.empty())
    add("cells", lines_text(model.given.cells, "  ", [&](const GivenCell& cell, const std::string&) {
          return cell_text(cell, model.sequences.size());
        }));
  return text + "}";
}

std::string tokens_json(const std::vector<std::string>& tokens) {
  return json_list(tokens, json_quoted);
}

/// Returns the token names of all sequences, as a single list if all are equal.
std::string all_tokens_json(const std::vector<Sequence>& sequences,
                            std::vector<std::string> Sequence::*tokens) {
  const auto& first = sequences.front().*tokens;
  if (std::ranges::all_of(sequences, [&](const Sequence& s) { return s.*tokens == first; }))
    return tokens_json(first);
  return lines_text(sequences, "  ",
                    [&](const Sequence& s, const std::string&) { return tokens_json(s.*tokens); });
}

std::string embeddings_json(const std::vector<Sequence>& sequences, SharedMatrix Sequence::*embeddings) {
  if ((sequences.front().*embeddings).n_cols() == 0) return "null";
  if (sequences.size() == 1) return matrix_text(sequences.front().*embeddings, "  ");
  return lines_text(sequences, "  ", [&](const Sequence& s, const std::string& indent) {
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
    check_session_size(text);  // before memory for the next one is allocated
  };
  add("query", linear_json(p.query));
  add("key", linear_json(p.key));
  add("value", linear_json(p.value));
  add("output", p.output ? linear_json(*p.output) : "null");
  return text + "\n  }";
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

void check_session_size(std::string_view text) {
  if (text.size() <= max_session_bytes) return;
  throw Error(fmt::format(
      "a session of more than {} MiB, which could not be read again; numbers of that size can be exported as .npy or .npz",
      max_session_bytes >> 20));
}

std::string session_text(const Session& session) {
  const Model& m = session.model;
  attention::require(m);
  std::string text = "{\n  \"attnscope\": 1";
  const auto add = [&](const char* key, const std::string& value) {
    text += ",\n  \"" + std::string(key) + "\": " + value;
    check_session_size(text);
  };
  add("tokens", all_tokens_json(m.sequences, &Sequence::tokens));
  if (!m.sequences.front().key_tokens.empty())
    add("key_tokens", all_tokens_json(m.sequences, &Sequence::key_tokens));
  add("embeddings", embeddings_json(m.sequences, &Sequence::embeddings));
  if (m.has_key_embeddings()) add("key_embeddings", embeddings_json(m.sequences, &Sequence::key_embeddings));
  add("projections", projections_json(m));
  add("n_heads", std::to_string(m.n_heads));
  if (m.n_kv_heads) add("n_kv_heads", std::to_string(*m.n_kv_heads));
  add("scores", quoted_word(score_words, m.scores));
  add("scale", scale_json(m.scale));
  add("mask", mask_text(m.mask));
  add("dropout", dropout_text(m));
  add("merge_heads", quoted_word(combine_words, m.merge));
  add("context_length", m.context_length ? std::to_string(*m.context_length) : "null");
  for (const auto& [key, value] : additions_text(m.additions)) add(key, value);
  if (const std::string departures = deviations_text(m); !departures.empty()) add("departures", departures);
  if (!m.bugs.empty()) add("mistakes", bugs_text(m));
  if (!m.given.empty()) add("given", given_text(m));
  if (!m.heads_off.empty())
    add("heads_off", json_list(m.heads_off, [](std::size_t h) { return std::to_string(h); }));
  for (const auto& [key, words] : {std::pair{"left_out", &session.left_out}, {"assumed", &session.assumed}})
    if (!words->empty()) add(key, json_list(*words, json_quoted));
  if (!session.view.empty()) add("view", view_json(session.view));
  return text + "\n}\n";
}

void save_session(const std::filesystem::path& path, const Session& session) {
  write_session(path, [&] { return session_text(session); });
}

}  // namespace core::formats
