#include "app/cli/circuits.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/session/exporting.hpp"
#include "app/session/live_patches.hpp"
#include "app/session/opening.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/circuits/composition.hpp"
#include "core/files/json.hpp"
#include "core/out/tables.hpp"
#include "core/system/file.hpp"
#include "core/system/process.hpp"
#include "core/system/socket.hpp"

namespace app {
namespace {

namespace circuits = core::circuits;
using core::formats::json_quoted;
using core::text::number_text;

std::shared_ptr<const core::transformer::Transformer> opened(const std::filesystem::path& path) {
  if (core::system::is_socket_address(path.string()))
    throw core::Error(path.string() + ": expected a model in a file or a folder, got an attached one");
  return core::transformer::open_transformer(path, core::system::available_memory() / 2);
}

std::vector<std::size_t> ids_of(const core::transformer::FullModel& model, const std::string& text,
                                const char* option, std::vector<std::string>* names = nullptr) {
  try {
    const auto tokens = model.tokenize(text);
    if (names) *names = core::transformer::token_names(model, tokens);
    return core::tokenizers::ids_of(tokens);
  } catch (const core::Error& error) {
    throw core::Error(std::string(option) + ": " + error.what());
  }
}

/// A model that commands compute with, and its threads.
struct CircuitRun {
  explicit CircuitRun(const std::filesystem::path& path) : model(opened(path)), exact(*model) {}
  std::shared_ptr<const core::transformer::Transformer> model;
  circuits::Float64Model exact;
  core::ThreadPool pool;
  std::vector<std::string> names;  ///< of the tokens
  core::StopToken progress = {};
  core::transformer::CallContext context{pool, progress};
};

std::string fixed(double number) {
  return fmt::format("{:.4f}", number);
}

/// Returns a row of numbers in JSON; null for those that do not exist.
std::string row_json(const arma::rowvec& row) {
  return "[" +
         core::text::joined(row, ", ",
                            [](double number) { return std::isnan(number) ? "null" : number_text(number); }) +
         "]";
}

std::string matrix_json(const arma::mat& matrix) {
  std::string json;
  for (std::size_t i = 0; i < matrix.n_rows; ++i) json += (i == 0 ? "" : ",\n    ") + row_json(matrix.row(i));
  return "[" + json + "]";
}

/// Returns the cells of a matrix, those of largest magnitude first.
std::vector<arma::uword> by_magnitude(const arma::mat& matrix) {
  const arma::uvec order = arma::stable_sort_index(arma::vec(arma::abs(arma::vectorise(matrix))), "descend");
  return {order.begin(), order.end()};
}

std::string token_json(const CircuitRun& run, const char* name, std::size_t position) {
  return fmt::format("\"{}\": {}", name, json_quoted(run.names[position]));
}

/// Returns a position and its token: "6 'ig'".
std::string token_text(const CircuitRun& run, std::size_t position) {
  return fmt::format("{} '{}'", position, core::text::printable(run.names[position]));
}

std::string sources_json(const CircuitRun& run, const circuits::ScoreCell& cell,
                         const circuits::ScoreSources& of) {
  std::string pairs, sources;
  for (const arma::uword k : by_magnitude(of.pairs_above_row_mean))
    pairs += fmt::format("{}{{\"query\": {}, \"key\": {}, \"direct\": {}, \"direct_above_row_mean\": {}}}",
                         pairs.empty() ? "" : ",\n    ", json_quoted(of.parts[k % of.parts.size()]),
                         json_quoted(of.parts[k / of.parts.size()]), number_text(of.pairs[k]),
                         number_text(of.pairs_above_row_mean[k]));
  for (const circuits::ScoreSource& source : of.sources)
    sources += fmt::format("{}{{\"name\": {}, \"total\": {}, \"weight_without\": {}{}}}",
                           sources.empty() ? "" : ",\n    ", json_quoted(source.name),
                           number_text(source.total), number_text(source.weight_without),
                           source.read ? fmt::format(", \"read\": {}, \"read_weight\": {}", source.read->key,
                                                     number_text(source.read->weight))
                                       : "");
  std::string json =
      fmt::format("{{\"score\": {}, \"above_row_mean\": {}, \"weight\": {}, {}, {}", number_text(of.score),
                  number_text(of.above_row_mean), number_text(of.weight),
                  token_json(run, "query_token", cell.query), token_json(run, "key_token", cell.key));
  if (of.has_alibi)
    json += fmt::format(", \"alibi\": {}, \"alibi_above_row_mean\": {}", number_text(of.alibi),
                        number_text(of.alibi_above_row_mean));
  if (of.softcap) json += ", \"softcap\": " + number_text(*of.softcap);
  return json + ",\n  \"pairs\": [\n    " + pairs + "],\n  \"sources\": [\n    " + sources + "]}\n";
}

/// Returns the largest pairs and every source, above the row's mean.
std::string sources_text(const CircuitRun& run, const circuits::ScoreCell& cell,
                         const circuits::ScoreSources& of) {
  constexpr std::size_t n_listed = 10;

  std::string text = fmt::format("head {}.{}, query {}, key {}\n", cell.layer, cell.head,
                                 token_text(run, cell.query), token_text(run, cell.key));
  text += fmt::format("score {} = row mean {} + {}, weight {}\n", fixed(of.score),
                      fixed(of.score - of.above_row_mean), fixed(of.above_row_mean), fixed(of.weight));
  if (of.softcap) text += "softcap " + number_text(*of.softcap) + " is applied after the sum\n";
  text += "query part\tkey part\tabove row mean\tdirect\n";
  const std::vector<arma::uword> order = by_magnitude(of.pairs_above_row_mean);
  double rest = of.above_row_mean - of.alibi_above_row_mean, direct_rest = of.score - of.alibi;
  for (std::size_t k = 0; k < std::min(n_listed, order.size()); ++k) {
    const double above = of.pairs_above_row_mean[order[k]], direct = of.pairs[order[k]];
    text += of.parts[order[k] % of.parts.size()] + "\t" + of.parts[order[k] / of.parts.size()] + "\t" +
            fixed(above) + "\t" + fixed(direct) + "\n";
    rest -= above, direct_rest -= direct;
  }
  if (order.size() > n_listed)
    text +=
        fmt::format("{} other pairs\t\t{}\t{}\n", order.size() - n_listed, fixed(rest), fixed(direct_rest));
  if (of.has_alibi) text += "ALiBi\t\t" + fixed(of.alibi_above_row_mean) + "\t" + fixed(of.alibi) + "\n";
  std::vector<circuits::ScoreSource> sources = of.sources;
  std::ranges::stable_sort(sources, std::greater<>(), [](const auto& one) { return std::abs(one.total); });
  if (!sources.empty()) text += "source\ttotal\tweight without it\n";
  for (const circuits::ScoreSource& source : sources)
    text += source.name + "\t" + fixed(source.total) + "\t" + fixed(source.weight_without) + "\n";
  return text;
}

std::string head_name(std::size_t index, std::size_t n_heads) {
  return fmt::format("{}.{}", index / n_heads, index % n_heads);
}

std::string sum_json(const CircuitRun& run, const circuits::WrittenSum& sum) {
  std::string parts, heads;
  for (const arma::uword k : by_magnitude(sum.parts))
    parts += fmt::format("{}{{\"name\": {}, \"direct\": {}}}", parts.empty() ? "" : ",\n    ",
                         json_quoted(sum.names[k]), number_text(sum.parts[k]));
  for (std::size_t k = 0; k < sum.by_token.n_rows; ++k)
    heads += fmt::format("{}{{\"name\": \"head {}\", \"by_token\": {}}}", k == 0 ? "" : ",\n    ",
                         head_name(k, run.exact.rules().sizes.n_heads), row_json(sum.by_token.row(k)));
  return fmt::format("{{\"value\": {},\n  \"parts\": [\n    {}],\n  \"heads\": [{}]}}\n",
                     number_text(sum.value), parts, heads);
}

std::string sum_text(const CircuitRun& run, const circuits::WrittenSum& sum, const std::string& what) {
  constexpr std::size_t n_listed = 10;
  std::string text = what + " " + fixed(sum.value) + "\npart\tdirect\n";
  for (const arma::uword k : by_magnitude(sum.parts))
    text += sum.names[k] + "\t" + fixed(sum.parts[k]) + "\n";
  if (sum.by_token.empty()) return text;
  text += "head\tsource token\tdirect\n";
  const auto order = by_magnitude(sum.by_token);
  for (std::size_t k = 0; k < std::min(n_listed, order.size()); ++k)
    text += fmt::format("head {}\t{}\t{}\n",
                        head_name(order[k] % sum.by_token.n_rows, run.exact.rules().sizes.n_heads),
                        token_text(run, order[k] / sum.by_token.n_rows), fixed(sum.by_token[order[k]]));
  return text;
}

/// Writes the largest pairs of tokens of a head.
void list_token_pairs(const ListComposition& command, CircuitRun& run, std::ostream& out) {
  const auto of =
      circuits::head_circuits(run.exact, command.head->first, command.head->second, command.top, run.context);
  const auto name = [&](std::size_t id) { return core::transformer::token_name(*run.model, id); };
  if (!command.json) out << "circuit\tfrom\tto\tvalue\n";
  const auto write = [&](const char* circuit, const std::vector<circuits::TokenPair>& pairs) {
    if (command.json)
      out << '"' << circuit << "\": ["
          << core::text::joined(pairs, ",\n    ",
                                [&](const circuits::TokenPair& pair) {
                                  return fmt::format("{{\"from\": {}, \"to\": {}, \"value\": {}}}",
                                                     json_quoted(name(pair.from)), json_quoted(name(pair.to)),
                                                     number_text(pair.value));
                                })
          << "]";
    for (const circuits::TokenPair& pair : command.json ? std::vector<circuits::TokenPair>() : pairs)
      out << fmt::format("{}\t'{}'\t'{}'\t{}\n", circuit, core::text::printable(name(pair.from)),
                         core::text::printable(name(pair.to)), fixed(pair.value));
  };
  if (command.json) out << "{";
  write("ov", of.ov);
  if (command.json) out << ",\n  ";
  write("qk", of.qk);
  if (command.json) out << "}\n";
}

}  // namespace

void explain_score(const ExplainScore& command, std::ostream& out) {
  using enum ExplainScore::Explained;
  CircuitRun run(command.model);
  const auto ids = ids_of(*run.model, command.text, "--text", &run.names);
  const circuits::ScoreCell& cell = command.cell;
  if (command.what == score) {
    const auto of = circuits::sources_of(run.exact, ids, cell, run.context);
    out << (command.json ? sources_json(run, cell, of) : sources_text(run, cell, of));
    return;
  }
  circuits::WrittenSum sum;
  std::string what;
  if (command.what == logit) {
    sum = circuits::logit_sources(
        run.exact, ids, core::transformer::answer_token(*run.model, command.token, "--token"), run.context);
    what = "logit of '" + command.token + "'";
  } else if (command.what == contexts) {
    sum = circuits::context_sources(run.exact, ids, cell, {}, run.context);
    what = "length of the context vector of " + token_text(run, cell.query);
    for (std::size_t j = 0; j < sum.names.size(); ++j) sum.names[j] = token_text(run, j);
  } else {
    sum = circuits::stream_sources(run.exact, ids, cell.layer, cell.query, {}, run.context);
    what = "length of the residual stream of " + token_text(run, cell.query);
  }
  out << (command.json ? sum_json(run, sum) : sum_text(run, sum, what));
}

void patch_prompts(const PatchPrompts& command, std::ostream& out) {
  const core::transformer::ModelRef model = open_or_attach(command.model, command.token);
  circuits::PromptPair prompts{ids_of(*model, command.clean, "--clean"),
                               ids_of(*model, command.corrupt, "--corrupt"),
                               core::transformer::answer_token(*model, command.answer, "--answer"),
                               core::transformer::answer_token(*model, command.against, "--against")};
  prompts.rows = core::transformer::align(prompts.clean, prompts.corrupt, command.aligned);
  core::ThreadPool pool;
  const core::StopToken progress;
  const core::experiment::Experiment both{
      .text = command.corrupt,
      .first =
          core::experiment::FirstPrompt{command.clean, command.answer, command.against, command.aligned}};
  const circuits::PatchMap map = circuits::patch(*model, both, prompts, command.plan, {pool, progress});
  if (!command.out.empty())
    core::system::write_atomically(command.out,
                                   map_bytes(command.out, labeled(map), "Recovered by each patch alone"));
  if (command.json) {
    out << "{\"clean\": " << number_text(map.clean) << ", \"corrupt\": " << number_text(map.corrupt)
        << ",\n  \"recovered\": " << matrix_json(map.recovered) << "}\n";
    return;
  }
  out << "clean " << fixed(map.clean) << ", corrupt " << fixed(map.corrupt) << '\n';
  if (!command.out.empty()) return;
  out << (map.n_parts == 1 ? "layer" : "head");
  for (std::size_t k = 0; k < map.recovered.n_cols; ++k) out << '\t' << k;
  for (std::size_t l = 0; l < map.recovered.n_rows; ++l) {
    out << '\n' << (map.n_parts == 1 ? std::to_string(l) : map.row_name(l));
    for (const double recovered : arma::rowvec(map.recovered.row(l))) out << '\t' << fixed(recovered);
  }
  out << '\n';
}

void list_composition(const ListComposition& command, std::ostream& out) {
  CircuitRun run(command.model);
  if (command.head) return list_token_pairs(command, run, out);
  const circuits::Composition of = circuits::composition(run.exact, run.context);
  const std::size_t n = of.queries.n_rows;
  if (command.json) {
    std::vector<std::size_t> heads(n);
    std::iota(heads.begin(), heads.end(), std::size_t{0});
    out << "{\"heads\": ["
        << core::text::joined(heads, ", ",
                              [&](std::size_t k) { return json_quoted(head_name(k, of.n_heads)); })
        << "],\n  \"queries\": " << matrix_json(of.queries) << ",\n  \"keys\": " << matrix_json(of.keys)
        << ",\n  \"values\": " << matrix_json(of.values) << "}\n";
    return;
  }
  out << "from,to,queries,keys,values\r\n";
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = (from / of.n_heads + 1) * of.n_heads; to < n; ++to)
      out << head_name(from, of.n_heads) << ',' << head_name(to, of.n_heads) << ','
          << number_text(of.queries(from, to)) << ',' << number_text(of.keys(from, to)) << ','
          << number_text(of.values(from, to)) << "\r\n";
}

}  // namespace app
