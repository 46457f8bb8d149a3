#include "core/scan/scan.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <tuple>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
#include "core/scan/tree.hpp"
#include "core/system/file.hpp"

namespace core::scan {
namespace {

using transformer::RowsView;
using transformer::TokenRepeats;

constexpr std::size_t max_bytes = std::size_t{4} << 30, max_listed_lines = 100, usual_length = 512;
constexpr std::chrono::seconds between_writes(20);

/// A text and what was measured on it.
struct Measured {
  std::shared_ptr<ScannedText> sequence;
  std::vector<std::size_t> ids;
  PerMeasure<std::size_t> counts{};
  std::vector<PerMeasure<double>> sums = {};          // [head of the scan]
  std::vector<std::optional<Example>> examples = {};  // [head of the scan], strong enough to be kept
};

auto rank(const Example& example) {
  return std::tuple(-example.strength, example.sequence->source, example.sequence->line);
}

bool is_kept(const std::vector<Example>& examples, const Example& example) {
  return examples.size() < n_examples || rank(example) < rank(examples.back());
}

void keep(ScannedHead& head, Example example) {
  const auto place = std::ranges::lower_bound(head.examples, rank(example), {}, rank);
  // The folder of a killed scan may have examples of lines that are read again.
  if (place != head.examples.end() && rank(*place) == rank(example)) return;
  head.examples.insert(place, std::move(example));
  if (head.examples.size() > n_examples) head.examples.pop_back();
  head.is_written = false;
}

double strength_of(const RowsView& weights) {
  std::array<float, 16> largest{};  // several at once, as one would wait for the one before
  for (std::size_t i = 1; i < weights.n_rows; ++i) {
    const auto take = [&, row = weights.row(i)](std::size_t begin, std::size_t end) {
      for (; begin + largest.size() <= end; begin += largest.size())
        for (std::size_t k = 0; k < largest.size(); ++k)
          largest[k] = row[begin + k] > largest[k] ? row[begin + k] : largest[k];
      for (; begin < end; ++begin) largest[0] = std::max(largest[0], row[begin]);
    };
    take(1, i);
    take(i + 1, weights.n_rows);
  }
  return *std::ranges::max_element(largest);
}

void add_cells(const RowsView& weights, Example& example) {
  const std::size_t n = weights.n_rows;
  std::vector<std::size_t> keys;
  for (std::size_t i = 0; i < n; ++i) {
    const float* const row = weights.row(i);
    keys.clear();
    for (std::size_t j = 0; j < n; ++j)
      if (row[j] >= min_example_weight) keys.push_back(j);
    if (keys.size() > n_row_weights) {
      const auto end = keys.begin() + n_row_weights;
      std::partial_sort(keys.begin(), end, keys.end(), [&](std::size_t a, std::size_t b) {
        return row[a] != row[b] ? row[a] > row[b] : a < b;
      });
      keys.erase(end, keys.end());
      std::ranges::sort(keys);
    }
    for (const std::size_t key : keys) {
      example.cells.push_back(i * n + key);
      example.weights.push_back(std::round(static_cast<double>(row[key]) * 1e4) / 1e4);
    }
  }
}

std::string text_of_line(const Texts& texts, std::size_t index) {
  const std::string& line = texts.lines[index];
  if (texts.path.extension() != ".jsonl") return line;
  return formats::parse_json(line, "line " + std::to_string(index + 1)).required("text").text();
}

class Run {
 public:
  Run(Scan& scan, const FullModel& model, const Texts& texts, const CallContext& context)
      : scan_(scan), model_(model), texts_(texts), context_(context), source_(scan.sources.front()) {}

  /// Reads the next sequences, two for each thread, but not more than n. Throws Stopped and leaves the scan
  /// as it was before. Returns whether there were any.
  bool read(std::uint64_t n) {
    std::vector<Measured> batch;
    std::vector<SkippedLine> skipped;
    std::uint64_t line = source_.n_lines;
    const std::uint64_t n_read = std::min<std::uint64_t>(n, 2 * context_.pool.n_threads());
    for (; line < texts_.lines.size() && batch.size() < n_read; ++line)
      if (!text::trimmed(texts_.lines[line], " \t\r\n").empty()) try {
          batch.push_back(tokenized(line));
        } catch (const Stopped&) {
          throw;
        } catch (const Error& error) {
          skipped.push_back({0, line + 1, error.what()});
        }
    if (!batch.empty()) measure(batch);
    for (Measured& measured : batch) add(measured);
    scan_.n_skipped += skipped.size();
    for (SkippedLine& one : skipped)
      if (scan_.skipped.size() < max_listed_lines) scan_.skipped.push_back(std::move(one));
    source_.n_lines = line;
    return !batch.empty();
  }

 private:
  Measured tokenized(std::size_t index) const {
    const std::string text = text_of_line(texts_, index);
    if (!text::is_utf8(text)) throw Error("it is not UTF-8");
    std::vector<tokenizers::TextToken> tokens = model_.tokenize(text);
    if (tokens.empty()) throw Error("it has no tokens");
    if (tokens.size() > scan_.max_length) tokens.resize(scan_.max_length);
    Measured measured{std::make_shared<ScannedText>(), tokenizers::ids_of(tokens)};
    measured.sequence->line = index + 1;
    measured.sequence->text =
        text::joined(tokens, "", [](const auto& token) -> const std::string& { return token.text; });
    measured.sequence->tokens = transformer::token_names(model_, tokens);
    transformer::require_tokens(model_.description(), measured.ids);
    return measured;
  }

  void measure(std::vector<Measured>& batch) const {
    std::vector<std::vector<std::size_t>> texts;
    std::vector<TokenRepeats> repeats;
    for (Measured& measured : batch) {
      measured.counts = repeats.emplace_back(measured.ids).counts();
      measured.sums.resize(scan_.heads.size());
      measured.examples.resize(scan_.heads.size());
      texts.push_back(measured.ids);
    }
    model_.for_each_pattern(
        texts,
        [&](std::size_t k, std::size_t layer, std::size_t head, const RowsView& weights) {
          Measured& measured = batch[k];
          const std::size_t at = layer * scan_.n_heads + head;
          measured.sums.at(at) = transformer::measure_sums(weights, repeats[k]);
          Example example{measured.sequence, strength_of(weights), {}, {}};
          if (!is_kept(scan_.heads[at].examples, example)) return;
          add_cells(weights, example);
          measured.examples[at] = std::move(example);
        },
        context_);
  }

  void add(Measured& measured) {
    for (std::size_t at = 0; at < scan_.heads.size(); ++at) {
      ScannedHead& head = scan_.heads[at];
      for (std::size_t k = 0; k < head.sums.size(); ++k) {
        const double units = measured.sums[at][k] / sum_unit;
        if (!(units < 0x1p62) || !(head.sums[k] < std::uint64_t{1} << 62))
          throw Error(fmt::format("{}: line {}: expected finite weights of head {}.{}, and sums below 2^38",
                                  texts_.path.string(), measured.sequence->line, at / scan_.n_heads,
                                  at % scan_.n_heads));
        head.sums[k] += static_cast<std::uint64_t>(std::llround(units));
      }
      if (measured.examples[at]) keep(head, std::move(*measured.examples[at]));
    }
    for (std::size_t k = 0; k < scan_.counts.size(); ++k) scan_.counts[k] += measured.counts[k];
    ++scan_.n_sequences;
    scan_.n_tokens += measured.ids.size();
  }

  Scan& scan_;
  const FullModel& model_;
  const Texts& texts_;
  const CallContext& context_;
  TextSource& source_;
};

/// Returns an empty scan.
Scan begun(const FullModel& model, const Texts& texts, const ScanOptions& options) {
  const transformer::Description& of = model.description();
  const std::size_t n_context = of.sizes.n_context;
  const std::size_t length = options.length.value_or(std::min(usual_length, n_context));
  if (length < 1 || length > n_context)
    throw Error(fmt::format("{}: expected a length of 1 to {} tokens, as many as the model takes, got {}",
                            of.path.string(), n_context, length));
  Scan scan;
  const std::filesystem::path path = of.path.has_filename() ? of.path : of.path.parent_path();
  scan.model = path.filename().string();
  if (!of.file.empty()) scan.fingerprint = experiment::fingerprint_of(of.file);
  scan.n_layers = of.sizes.n_layers, scan.n_heads = of.sizes.n_heads, scan.max_length = length;
  scan.sources = {{texts.path.filename().string(), texts.fingerprint}};
  scan.heads.resize(scan.n_layers * scan.n_heads);
  return scan;
}

std::string difference_of(const Scan& a, const Scan& b) {
  if (a.model != b.model || !(a.fingerprint == b.fingerprint) || a.n_layers != b.n_layers ||
      a.n_heads != b.n_heads)
    return a.model == b.model ? "of another model of that name" : "of the model " + a.model;
  if (a.max_length != b.max_length) return fmt::format("with texts of at most {} tokens", a.max_length);
  return "";
}

/// Returns the scan that a folder has begun. Throws core::Error.
Scan resumed(const Scan& wanted, const ScanOptions& options) {
  const std::string place = options.folder.string() + ": ";
  Scan found = read_scan(options.folder);
  const auto source = [](const Scan& of) {
    return std::pair(of.sources.front().name, of.sources.front().fingerprint);
  };
  std::string other = difference_of(found, wanted);
  if (other.empty() && (found.sources.size() > 1 || source(found).second != source(wanted).second))
    other = "of other texts (" + text::joined(found.sources, ", ", &TextSource::name) + ")";
  if (!other.empty()) throw Error(place + "expected another folder, as this one holds a scan " + other);
  if (!options.resumes)
    throw Error(fmt::format("{}it holds a scan of {} of these texts; --resume goes on with it", place,
                            found.n_sequences));
  return found;
}

}  // namespace

Texts read_texts(const std::filesystem::path& path) {
  system::buffer_pipe_to_file(path);
  const std::string content = system::read_file(path, max_bytes);
  Texts texts{path, {content.size(), experiment::content_hash(content)}, {}};
  for (std::size_t from = 0; from < content.size();) {
    const std::size_t end = std::min(content.find('\n', from), content.size());
    texts.lines.emplace_back(content, from, end - from - (end > from && content[end - 1] == '\r'));
    from = end + 1;
  }
  return texts;
}

std::optional<double> Scan::mean(std::size_t layer, std::size_t index, std::size_t measure) const {
  if (counts[measure] == 0) return std::nullopt;
  return static_cast<double>(head(layer, index).sums[measure]) * sum_unit /
         static_cast<double>(counts[measure]);
}

Scan run(const FullModel& model, const Texts& texts, const ScanOptions& options, const CallContext& context,
         const ScanReport& report) {
  Scan scan = begun(model, texts, options);
  if (!options.folder.empty()) {
    if (has_scan(options.folder)) scan = resumed(scan, options);
    require_room(options.folder);
  }
  const auto n_texts = static_cast<std::uint64_t>(std::ranges::count_if(
      texts.lines, [](const std::string& line) { return !text::trimmed(line, " \t\r\n").empty(); }));
  const auto n_wanted = [&] {
    const std::uint64_t n = n_texts - std::min(n_texts, scan.n_skipped);
    return options.n_sequences == 0 ? n : std::min(n, options.n_sequences);
  };
  Run reading(scan, model, texts, context);
  const std::uint64_t n_before = scan.n_sequences;
  auto written = std::chrono::steady_clock::now();
  const auto write = [&] {
    if (!options.folder.empty()) write_tree(scan, options.folder);
    written = std::chrono::steady_clock::now();
  };
  try {
    while (scan.n_sequences < n_wanted() && reading.read(n_wanted() - scan.n_sequences)) {
      context.progress.report(static_cast<double>(scan.n_sequences - n_before) /
                              static_cast<double>(n_wanted() - n_before));
      if (report) report(scan, n_wanted());
      if (std::chrono::steady_clock::now() - written > between_writes) write();
    }
  } catch (const Stopped&) {  // keeps what is there
  }
  if (scan.n_sequences == 0) {
    if (!context.progress.should_continue()) return scan;
    throw Error(texts.path.string() + ": expected texts, one a line" +
                (scan.skipped.empty() ? ""
                                      : fmt::format(", but line {} cannot be read: {}",
                                                    scan.skipped.front().line, scan.skipped.front().why)));
  }
  write();
  return scan;
}

void merge(Scan& scan, const Scan& other, const std::string& names) {
  if (const std::string difference = difference_of(scan, other); !difference.empty())
    throw Error(names + ": expected scans of one model and length, but the first is " + difference);
  for (const TextSource& source : other.sources)
    for (const TextSource& earlier : scan.sources)
      if (source.fingerprint == earlier.fingerprint)
        throw Error(names + ": expected scans of different texts, but both are of " + source.name);
  const std::size_t n_before = scan.sources.size();
  scan.sources.insert(scan.sources.end(), other.sources.begin(), other.sources.end());
  const auto moved = [n_before](const std::shared_ptr<const ScannedText>& sequence) {
    auto copy = std::make_shared<ScannedText>(*sequence);
    copy->source += n_before;
    return copy;
  };
  for (std::size_t at = 0; at < scan.heads.size(); ++at) {
    for (std::size_t k = 0; k < scan.counts.size(); ++k) scan.heads[at].sums[k] += other.heads[at].sums[k];
    for (const Example& example : other.heads[at].examples)
      keep(scan.heads[at], {moved(example.sequence), example.strength, example.cells, example.weights});
  }
  for (std::size_t k = 0; k < scan.counts.size(); ++k) scan.counts[k] += other.counts[k];
  scan.n_sequences += other.n_sequences, scan.n_tokens += other.n_tokens, scan.n_skipped += other.n_skipped;
  for (const SkippedLine& line : other.skipped)
    if (scan.skipped.size() < max_listed_lines)
      scan.skipped.push_back({line.source + n_before, line.line, line.why});
}

}  // namespace core::scan
