#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/model/experiment.hpp"
#include "core/model/head_measures.hpp"

/// Heads over many texts: measures as sums and counts, so that parts can be merged exactly, and examples.
namespace core::scan {

using experiment::FileFingerprint;
using transformer::CallContext;
using transformer::FullModel;
using transformer::PerMeasure;

/// A file of texts, one a line; in a .jsonl file the "text" of an object a line.
struct Texts {
  std::filesystem::path path;
  FileFingerprint fingerprint;  ///< of all of it
  std::vector<std::string> lines;
};

/// Reads such a file. Throws core::Error, "PATH: …", when it cannot be read or has more than 4 GiB.
Texts read_texts(const std::filesystem::path& path);

/// A text as the model read it.
struct ScannedText {
  std::size_t source = 0;  ///< of Scan::sources
  std::uint64_t line = 0;  ///< of its file, from 1
  std::string text;
  std::vector<std::string> tokens;  ///< for display
};

/// A text on which a head has large weights.
struct Example {
  std::shared_ptr<const ScannedText> sequence;
  /// The largest weight of a head on another position, without query and key 0. Examples are sorted by it,
  /// the largest first, then by source and line.
  double strength = 0;
  std::vector<std::uint64_t> cells;  ///< query · n_tokens + key of its large weights, ascending
  std::vector<double> weights;       ///< [cell], with 4 decimals
};

/// How many examples of a head, and how many weights of a row from which size on, are kept, as HeadVis does.
constexpr std::size_t n_examples = 10, n_row_weights = 8;
constexpr double min_example_weight = 0.005;

/// Sums are whole multiples of it: an addend is rounded to 6e-8, and the order of addends does not matter.
constexpr double sum_unit = 1.0 / (1 << 24);

/// What is known of a head.
struct ScannedHead {
  PerMeasure<std::uint64_t> sums{};  ///< over all queries, in sum_unit
  std::vector<Example> examples;
  bool is_written = false;  ///< its file has these examples
};

/// A file of texts, and how much of it was read.
struct TextSource {
  std::string name;
  FileFingerprint fingerprint;
  std::uint64_t n_lines = 0;  ///< that were read
  friend bool operator==(const TextSource&, const TextSource&) = default;
};

/// A line that could not be read.
struct SkippedLine {
  std::size_t source = 0;
  std::uint64_t line = 0;  ///< from 1
  std::string why;
  friend bool operator==(const SkippedLine&, const SkippedLine&) = default;
};

/// The heads of a model over the texts that were read so far.
struct Scan {
  std::string model;  ///< its name
  FileFingerprint fingerprint;
  std::size_t n_layers = 0, n_heads = 0;
  std::size_t max_length = 0;  ///< tokens of a text; the others are not read
  std::vector<TextSource> sources;
  std::uint64_t n_sequences = 0, n_tokens = 0;
  PerMeasure<std::uint64_t> counts{};  ///< of queries that each sum is over, the same for all heads
  std::vector<ScannedHead> heads;      ///< [layer · n_heads + head]
  std::uint64_t n_skipped = 0;
  std::vector<SkippedLine> skipped;  ///< the first 100

  const ScannedHead& head(std::size_t layer, std::size_t index) const {
    return heads[layer * n_heads + index];
  }
  /// Returns the mean of a measure over all its queries, or nothing.
  std::optional<double> mean(std::size_t layer, std::size_t index, std::size_t measure) const;
};

/// What to scan.
struct ScanOptions {
  std::uint64_t n_sequences = 0;      ///< of the folder, earlier ones included; 0: as many as there are
  std::optional<std::size_t> length;  ///< tokens of a text; nothing: 512, or as many as the model takes
  std::filesystem::path folder = {};  ///< for the result, or ""
  bool resumes = false;               ///< a folder with the same scan is continued
};

/// Receives the state from time to time, and the number of sequences that there will be at most.
using ScanReport = std::function<void(const Scan&, std::uint64_t n_sequences)>;

/// Reads texts with a model, several at once, and returns the measures of its heads.
///
/// Writes them into the folder every 20 seconds and at the end, also when progress is stopped, which keeps
/// the sequences that are done. Lines without text are no sequences; a line that cannot be read is skipped.
/// Throws core::Error, one line, when nothing can be read, and before anything is computed when the folder
/// holds something else, or the same scan without resumes.
Scan run(const FullModel& model, const Texts& texts, const ScanOptions& options, const CallContext& context,
         const ScanReport& report = {});

/// Adds the sums, counts and examples of another scan. Throws core::Error, which begins with `names`, when it
/// is of another model or length, or of the same texts.
void merge(Scan& scan, const Scan& other, const std::string& names);

}  // namespace core::scan
