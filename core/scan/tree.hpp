#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/scan/scan.hpp"

/// A scan as a tree of files that HeadVis opens: config.json, scatter_data.json and
/// heads/L{layer}H{head}.json. Source: github.com/anthropics/headvis, data_pipeline.py. What only a scan
/// has is in config.json's "attnscope".
namespace core::scan {

/// Writes config.json last; each file is renamed into place. Throws core::Error.
void write_tree(Scan& scan, const std::filesystem::path& folder);

/// Returns whether a folder has a config.json, of whatever kind.
bool has_scan(const std::filesystem::path& folder);
/// Makes the folder if there is none. Throws core::Error when it has other files than those of a scan.
void require_room(const std::filesystem::path& folder);

/// Reads a scan that can be continued. Throws core::Error, "FILE: PATH: …", also for a tree that only HeadVis
/// has written.
Scan read_scan(const std::filesystem::path& folder);

/// The heads in a tree, whoever has written it.
struct HeadTable {
  struct Metric {
    std::string name, title, about;  ///< title and about of ours are those of head_measures()
  };
  struct HeadRow {
    std::size_t layer = 0, head = 0;
    std::vector<std::optional<double>> values;  ///< [metric]
  };
  std::string model;
  std::vector<Metric> metrics;
  std::vector<HeadRow> rows;  ///< sorted by layer and head
  std::optional<std::uint64_t> n_sequences;

  const HeadRow* row_of(std::size_t layer, std::size_t head) const;
  /// Returns the roles of a head as far as the tree has their measures.
  std::optional<transformer::HeadRoles> roles_of(std::size_t layer, std::size_t head) const;
};

/// Reads config.json and scatter_data.json. Throws core::Error, "FILE: PATH: …".
HeadTable read_table(const std::filesystem::path& folder);

/// Reads the examples of a head, the strongest first; none if it has no file. Throws core::Error.
std::vector<Example> read_examples(const std::filesystem::path& folder, std::size_t layer, std::size_t head);

/// Returns a scan as a table of CSV, a row for each head; or as JSON with examples and skipped lines.
std::string scan_csv(const Scan& scan);
std::string scan_json(const Scan& scan);

}  // namespace core::scan
