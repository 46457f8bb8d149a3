#include "app/cli/circuits.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/circuits/composition.hpp"
#include "core/files/json.hpp"
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

/// A model that commands compute with, and its threads.
struct CircuitRun {
  explicit CircuitRun(const std::filesystem::path& path) : model(opened(path)), exact(*model) {}
  std::vector<std::size_t> ids_of(const std::string& text, const char* option) const {
    try {
      return core::tokenizers::ids_of(model->tokenize(text));
    } catch (const core::Error& error) {
      throw core::Error(std::string(option) + ": " + error.what());
    }
  }

  std::shared_ptr<const core::transformer::Transformer> model;
  circuits::Float64Model exact;
  core::ThreadPool pool;
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

std::string sources_json(const circuits::ScoreSources& of) {
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
      fmt::format("{{\"score\": {}, \"above_row_mean\": {}, \"weight\": {}", number_text(of.score),
                  number_text(of.above_row_mean), number_text(of.weight));
  if (of.has_alibi)
    json += fmt::format(", \"alibi\": {}, \"alibi_above_row_mean\": {}", number_text(of.alibi),
                        number_text(of.alibi_above_row_mean));
  if (of.softcap) json += ", \"softcap\": " + number_text(*of.softcap);
  return json + ",\n  \"pairs\": [\n    " + pairs + "],\n  \"sources\": [\n    " + sources + "]}\n";
}

/// Returns the largest pairs and every source, above the row's mean.
std::string sources_text(const circuits::ScoreSources& of) {
  constexpr std::size_t n_listed = 10;

  std::string text =
      fmt::format("score {} = row mean {} + {}, weight {}\n", fixed(of.score),
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

}  // namespace

void explain_score(const ExplainScore& command, std::ostream& out) {
  CircuitRun run(command.model);
  const auto of =
      circuits::sources_of(run.exact, run.ids_of(command.text, "--text"), command.cell, run.context);
  out << (command.json ? sources_json(of) : sources_text(of));
}

void patch_prompts(const PatchPrompts& command, std::ostream& out) {
  CircuitRun run(command.model);
  const circuits::PromptPair prompts{run.ids_of(command.clean, "--clean"),
                                     run.ids_of(command.corrupt, "--corrupt"),
                                     circuits::answer_token(*run.model, command.answer, "--answer"),
                                     circuits::answer_token(*run.model, command.against, "--against")};
  const circuits::PatchMap map = circuits::patch(run.exact, prompts, command.plan, run.context);
  if (command.json) {
    out << "{\"clean\": " << number_text(map.clean) << ", \"corrupt\": " << number_text(map.corrupt)
        << ",\n  \"recovered\": " << matrix_json(map.recovered) << "}\n";
    return;
  }

  out << "clean " << fixed(map.clean) << ", corrupt " << fixed(map.corrupt) << "\nlayer";
  for (std::size_t k = 0; k < map.recovered.n_cols; ++k) out << '\t' << k;
  for (std::size_t l = 0; l < map.recovered.n_rows; ++l) {
    out << '\n' << l;
    for (const double recovered : arma::rowvec(map.recovered.row(l))) out << '\t' << fixed(recovered);
  }
  out << '\n';
}

void list_composition(const ListComposition& command, std::ostream& out) {
  CircuitRun run(command.model);
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
