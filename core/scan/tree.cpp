#include "core/scan/tree.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <map>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"
#include "core/system/file.hpp"

namespace core::scan {
namespace {

namespace fs = std::filesystem;
using formats::Json;
using formats::json_quoted;
using text::number_text;
using transformer::HeadMeasure;
using transformer::HeadMeasureInfo;

constexpr std::size_t max_file_bytes = std::size_t{1} << 30, n_top_tokens = 50;

/// Names of measures in a tree; HeadVis's own where it has the measure, and another that is read.
struct TreeName {
  HeadMeasure measure;
  const char *name, *alternative;
};
constexpr PerMeasure<TreeName> tree_names{{
    {HeadMeasure::previous, "previous_token_score", "prev_token_score"},
    {HeadMeasure::first, "first_token_score", ""},
    {HeadMeasure::itself, "self_attention_score", ""},
    {HeadMeasure::same_token, "same_token_score", ""},
    {HeadMeasure::induction, "induction_score", ""},
    {HeadMeasure::entropy, "pattern_entropy", ""},
    {HeadMeasure::distance, "qk_distance", ""},
}};

/// Returns a JSON list without spaces.
std::string list(const auto& items, auto words) {
  return formats::json_list(items, words, ",");
}
std::string number_list(const auto& numbers) {
  return list(numbers, [](auto number) { return std::to_string(number); });
}
std::string or_null(const std::optional<double>& number) {
  return number ? number_text(*number) : "null";
}
std::string fingerprint_json(const FileFingerprint& of) {
  return fmt::format("\"bytes\":{},\"begin\":{}", of.bytes, json_quoted(of.begin));
}

std::string skipped_json(const Scan& scan) {
  return fmt::format("\"n_skipped\":{},\"skipped\":", scan.n_skipped) +
         list(scan.skipped, [](const SkippedLine& of) {
           return fmt::format("{{\"source\":{},\"line\":{},\"why\":{}}}", of.source, of.line,
                              json_quoted(of.why));
         });
}

fs::path head_path(const fs::path& folder, std::size_t layer, std::size_t head) {
  return folder / "heads" / fmt::format("L{}H{}.json", layer, head);
}

std::string config_json(const Scan& scan) {
  std::vector<std::string> heads;
  for (std::size_t at = 0; at < scan.heads.size(); ++at)
    heads.push_back(fmt::format("[{},{}]", at / scan.n_heads, at % scan.n_heads));
  const auto quoted_name = [](const TreeName& row) { return json_quoted(row.name); };
  const auto description = [](const TreeName& row) {
    const HeadMeasureInfo& info = transformer::head_measures()[static_cast<std::size_t>(row.measure)];
    return json_quoted(row.name) + ":" + json_quoted(info.about);
  };
  std::string own =
      fmt::format("\"version\":1,{},\"sequences\":{},\"tokens\":{},\"length\":{},\n  \"sources\":",
                  fingerprint_json(scan.fingerprint), scan.n_sequences, scan.n_tokens, scan.max_length);
  own += list(scan.sources, [](const TextSource& of) {
    return fmt::format("{{\"name\":{},{},\"lines\":{}}}", json_quoted(of.name),
                       fingerprint_json(of.fingerprint), of.n_lines);
  });
  own += ",\n  " + skipped_json(scan);
  own += ",\n  \"counts\":" + number_list(scan.counts) +
         ",\n  \"sums\":" + list(scan.heads, [](const ScannedHead& head) { return number_list(head.sums); });
  return fmt::format(
      "{{\"model_name\":{},\"dataset_name\":{},\"n_sequences\":{},\"seq_len\":{},\"dtype\":\"float32\",\"attn_implementation\":\"eager\",\n"
      " \"n_layers\":{},\"n_heads\":{},\"n_intervals\":1,\"heads\":[{}],\n"
      " \"metrics\":{},\n \"metric_descriptions\":{{{}}},\n"
      " \"head_data_pattern\":\"L{{layer}}H{{head}}.json\",\"has_umap\":false,\"umap_heads\":[],\n"
      " \"custom_plots\":[{{\"key\":\"qk_distance_histogram\",\"label\":\"Q-K distance\"}}],\n"
      " \"custom_tables\":[{{\"key\":\"top_query_tokens\",\"label\":\"Top query tokens\"}},"
      "{{\"key\":\"top_key_tokens\",\"label\":\"Top key tokens\"}}],\n \"statistics_display\":{{}},\n"
      " \"attnscope\":{{{}}}}}\n",
      json_quoted(scan.model), json_quoted(text::joined(scan.sources, ", ", &TextSource::name)),
      scan.n_sequences, scan.max_length, scan.n_layers, scan.n_heads, text::joined(heads, ","),
      list(tree_names, quoted_name), text::joined(tree_names, ",", description), own);
}

std::string scatter_json(const Scan& scan) {
  std::string rows;
  for (std::size_t l = 0; l < scan.n_layers; ++l)
    for (std::size_t h = 0; h < scan.n_heads; ++h) {
      rows += fmt::format("{}{{\"layer\":{},\"head\":{}", rows.empty() ? "" : ",\n ", l, h);
      for (std::size_t k = 0; k < tree_names.size(); ++k)
        rows += fmt::format(",\"{}\":{}", tree_names[k].name, or_null(scan.mean(l, h, k)));
      rows += "}";
    }
  return "[" + rows + "]\n";
}

/// Returns the tokens with the largest weights in the examples, of queries or of keys.
std::string top_tokens_json(const ScannedHead& head, bool of_keys) {
  std::map<std::string, double> weights;
  for (const Example& example : head.examples)
    for (std::size_t k = 0; k < example.cells.size(); ++k) {
      const std::uint64_t n = example.sequence->tokens.size();
      const std::uint64_t at = of_keys ? example.cells[k] % n : example.cells[k] / n;
      weights[example.sequence->tokens[at]] += example.weights[k];
    }
  std::vector<std::pair<std::string, double>> sorted(weights.begin(), weights.end());
  std::ranges::stable_sort(sorted, std::greater<>(), &std::pair<std::string, double>::second);
  sorted.resize(std::min(sorted.size(), n_top_tokens));
  return list(sorted, [](const auto& token) {
    return fmt::format("{{\"token\":{},\"weight\":{:.4f}}}", json_quoted(token.first), token.second);
  });
}

/// Returns the weights of the examples by distance: 0, 1, 2–3, 4–7 ….
std::string distances_json(const ScannedHead& head) {
  std::vector<double> weights(1);
  for (const Example& example : head.examples)
    for (std::size_t k = 0; k < example.cells.size(); ++k) {
      const std::uint64_t n = example.sequence->tokens.size(), i = example.cells[k] / n,
                          j = example.cells[k] % n;
      const auto bin = static_cast<std::size_t>(std::bit_width(i > j ? i - j : j - i));
      if (weights.size() <= bin) weights.resize(bin + 1);
      weights[bin] += example.weights[k];
    }
  std::vector<std::uint64_t> edges{0};
  for (std::size_t bin = 0; bin < weights.size(); ++bin) edges.push_back(std::uint64_t{1} << bin);
  return "{\"bin_edges\":" + number_list(edges) +
         ",\"bin_values\":" + list(weights, [](double weight) { return fmt::format("{:.4f}", weight); }) +
         "}";
}

std::string head_json(const ScannedHead& head) {
  const std::string sequences = list(head.examples, [](const Example& example) {
    const ScannedText& of = *example.sequence;
    return fmt::format(
        "\n {{\"sequence_id\":{},\"interval\":1,\"max_activation\":{},\"seq_len\":{},\"source\":{},\"text\":{},\n  \"tokens\":{},\n"
        "  \"attention_indices\":{},\n  \"attention_values\":{}}}",
        of.line, number_text(example.strength), of.tokens.size(), of.source, json_quoted(of.text),
        list(of.tokens, json_quoted), number_list(example.cells), list(example.weights, number_text));
  });
  return fmt::format(
      "{{\"sequences\":{},\n \"qk_distance_histogram\":{},\n \"top_query_tokens\":{},\n \"top_key_tokens\":{},\n"
      " \"histogram\":{{}},\"statistics\":{{}}}}\n",
      sequences, distances_json(head), top_tokens_json(head, false), top_tokens_json(head, true));
}

Json read_json(const fs::path& path) {
  return formats::parse_json(system::read_file(path, max_file_bytes), path.string());
}

FileFingerprint fingerprint_in(const Json& place) {
  return {place.required("bytes").whole(0), place.required("begin").text()};
}

/// Returns the values of a list of one whole number for each measure.
PerMeasure<std::uint64_t> per_measure(const Json& place) {
  const auto numbers = place.whole_numbers("a list of whole numbers");
  PerMeasure<std::uint64_t> values{};
  if (numbers.size() != values.size()) place.fail(fmt::format("{} numbers", values.size()));
  std::ranges::copy(numbers, values.begin());
  return values;
}

std::pair<std::size_t, std::size_t> place_of(const HeadTable::HeadRow& row) {
  return {row.layer, row.head};
}

}  // namespace

void write_tree(Scan& scan, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder / "heads", error);
  if (error) throw Error(folder.string() + ": cannot be written: " + error.message());
  for (std::size_t at = 0; at < scan.heads.size(); ++at)
    if (ScannedHead& head = scan.heads[at]; !head.is_written) {
      system::write_atomically(head_path(folder, at / scan.n_heads, at % scan.n_heads), head_json(head));
      head.is_written = true;
    }
  system::write_atomically(folder / "scatter_data.json", scatter_json(scan));
  system::write_atomically(folder / "config.json", config_json(scan));
}

bool has_scan(const fs::path& folder) {
  return system::is_file(folder / "config.json");
}

void require_room(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder.string() + ": cannot be written: " + error.message());
  for (const fs::path& path : system::list_folder(folder).paths)
    if (!has_scan(folder) && path.filename() != "heads" && path.filename() != "scatter_data.json")
      throw Error(fmt::format("{}: expected a new or empty folder for the scan, but it has {}",
                              folder.string(), path.filename().string()));
  system::remove_stale(folder);
  if (system::is_folder(folder / "heads")) system::remove_stale(folder / "heads");
}

Scan read_scan(const fs::path& folder) {
  const Json top = read_json(folder / "config.json");
  const std::optional<Json> own = top.member("attnscope");
  if (!own)
    top.fail("a scan of attnscope, with its sums", "a tree without them, which can only be displayed");
  if (own->required("version").whole(1) != 1) own->required("version").fail("version 1");
  Scan scan;
  scan.model = top.required("model_name").text();
  scan.fingerprint = fingerprint_in(*own);
  scan.n_layers = top.required("n_layers").whole(1), scan.n_heads = top.required("n_heads").whole(1);
  scan.max_length = own->required("length").whole(1);
  scan.n_sequences = own->required("sequences").whole(0), scan.n_tokens = own->required("tokens").whole(0);
  for (const Json& place : own->required("sources").items("a list of files"))
    scan.sources.push_back(
        {place.required("name").text(), fingerprint_in(place), place.required("lines").whole(0)});
  scan.n_skipped = own->required("n_skipped").whole(0);
  for (const Json& place : own->required("skipped").items_or_empty("a list of lines")) {
    const Json source = place.required("source");
    if (source.whole(0) >= scan.sources.size()) source.fail("the index of a file");
    scan.skipped.push_back({source.whole(0), place.required("line").whole(1), place.required("why").text()});
  }
  scan.counts = per_measure(own->required("counts"));
  for (const Json& place : own->required("sums").items("a list of heads")) {
    ScannedHead& head = scan.heads.emplace_back();
    head.sums = per_measure(place);
  }
  if (scan.heads.size() / scan.n_heads != scan.n_layers || scan.heads.size() % scan.n_heads != 0)
    own->required("sums").fail(
        fmt::format("the sums of {} layers of {}", scan.n_layers, text::counted(scan.n_heads, "head")));
  for (std::size_t at = 0; at < scan.heads.size(); ++at) {
    scan.heads[at].examples = read_examples(folder, at / scan.n_heads, at % scan.n_heads);
    scan.heads[at].is_written = true;
  }
  return scan;
}

const HeadTable::HeadRow* HeadTable::row_of(std::size_t layer, std::size_t head) const {
  const auto found = std::ranges::lower_bound(rows, std::pair(layer, head), {}, place_of);
  return found == rows.end() || place_of(*found) != std::pair(layer, head) ? nullptr : &*found;
}

std::optional<transformer::HeadRoles> HeadTable::roles_of(std::size_t layer, std::size_t head) const {
  const HeadRow* row = row_of(layer, head);
  if (!row) return std::nullopt;
  PerMeasure<double> values{};
  PerMeasure<std::size_t> counts{};
  for (std::size_t k = 0; k < tree_names.size(); ++k)
    for (std::size_t m = 0; m < metrics.size(); ++m)
      if (row->values[m] && (metrics[m].name == tree_names[k].name ||
                             (*tree_names[k].alternative && metrics[m].name == tree_names[k].alternative)))
        values[k] = *row->values[m], counts[k] = 1;
  return transformer::roles_of(values, counts);
}

HeadTable read_table(const fs::path& folder) {
  const Json config = read_json(folder / "config.json");
  HeadTable table;
  table.model = config.required("model_name").text();
  if (const auto n = config.given("n_sequences")) table.n_sequences = n->whole(0);
  const auto about = config.given("metric_descriptions");
  for (const std::string& name : config.required("metrics").texts("a list of names")) {
    const auto words = about ? about->given(name) : std::nullopt;
    const auto* own = find_by(tree_names, name, [](const TreeName& row) { return std::string(row.name); });
    table.metrics.push_back(
        {name, own ? transformer::head_measures()[static_cast<std::size_t>(own->measure)].title : name,
         words ? words->text() : ""});
  }
  for (const Json& place : read_json(folder / "scatter_data.json").items("a list of heads")) {
    HeadTable::HeadRow row{place.required("layer").whole(0), place.required("head").whole(0), {}};
    for (const HeadTable::Metric& metric : table.metrics) {
      const auto value = place.given(metric.name);
      row.values.push_back(value ? std::optional(value->number()) : std::nullopt);
    }
    table.rows.push_back(std::move(row));
  }
  std::ranges::sort(table.rows, {}, place_of);
  return table;
}

std::vector<Example> read_examples(const fs::path& folder, std::size_t layer, std::size_t head) {
  const fs::path path = head_path(folder, layer, head);
  std::vector<Example> examples;
  if (!system::is_file(path)) return examples;
  for (const Json& place : read_json(path).required("sequences").items_or_empty("a list of sequences")) {
    ScannedText of;
    of.line = place.required("sequence_id").whole(0);
    of.tokens = place.required("tokens").texts("a list of tokens");
    if (const auto source = place.given("source")) of.source = source->whole(0);
    const auto text = place.given("text");
    of.text = text ? text->text() : text::joined(of.tokens, "");
    Example example{nullptr, place.required("max_activation").number(), {}, {}};
    example.cells = place.required("attention_indices").whole_numbers("a list of cells");
    const arma::mat weights = place.required("attention_values").row();
    example.weights.assign(weights.begin(), weights.end());
    const std::size_t n = of.tokens.size();
    if (place.required("seq_len").whole(1) != n)
      place.required("seq_len").fail(std::to_string(n) + ", as many as there are tokens");
    if (example.cells.size() != example.weights.size())
      place.required("attention_values").fail("as many as attention_indices");
    if (std::ranges::any_of(example.cells, [n](std::uint64_t cell) { return cell >= n * n; }))
      place.required("attention_indices").fail(fmt::format("cells below {}", n * n));
    example.sequence = std::make_shared<const ScannedText>(std::move(of));
    examples.push_back(std::move(example));
  }
  std::ranges::stable_sort(examples, std::greater<>(), &Example::strength);
  return examples;
}

std::string scan_csv(const Scan& scan) {
  std::string csv = "layer,head";
  for (const HeadMeasureInfo& info : transformer::head_measures()) csv += std::string(",") + info.name;
  for (std::size_t l = 0; l < scan.n_layers; ++l)
    for (std::size_t h = 0; h < scan.n_heads; ++h) {
      csv += fmt::format("\r\n{},{}", l, h);
      for (std::size_t k = 0; k < transformer::n_head_measures; ++k) {
        const std::optional<double> mean = scan.mean(l, h, k);
        csv += "," + (mean ? number_text(*mean) : "");
      }
    }
  return csv + "\r\n";
}

std::string scan_json(const Scan& scan) {
  std::string heads;
  for (std::size_t l = 0; l < scan.n_layers; ++l)
    for (std::size_t h = 0; h < scan.n_heads; ++h) {
      heads += fmt::format("{}{{\"layer\": {}, \"head\": {}", heads.empty() ? "" : ",\n    ", l, h);
      for (std::size_t k = 0; k < transformer::n_head_measures; ++k)
        heads +=
            fmt::format(", \"{}\": {}", transformer::head_measures()[k].name, or_null(scan.mean(l, h, k)));
      heads +=
          ", \"examples\": " +
          list(scan.head(l, h).examples,
               [](const Example& example) {
                 return fmt::format("{{\"source\":{},\"line\":{},\"strength\":{}}}", example.sequence->source,
                                    example.sequence->line, number_text(example.strength));
               }) +
          "}";
    }
  return fmt::format(
      "{{\"model\": {}, \"sequences\": {}, \"tokens\": {}, \"sources\": {},\n  {},\n"
      "  \"heads\": [\n    {}]}}\n",
      json_quoted(scan.model), scan.n_sequences, scan.n_tokens,
      list(scan.sources, [](const TextSource& of) { return json_quoted(of.name); }), skipped_json(scan),
      heads);
}

}  // namespace core::scan
