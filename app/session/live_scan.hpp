#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "core/base/thread_pool.hpp"
#include "core/scan/tree.hpp"

namespace app {

/// An example of a head, for display.
struct ShownExample {
  core::scan::Example of;
  arma::mat pattern;               ///< its large weights, n_tokens × n_tokens
  std::size_t query = 0, key = 0;  ///< of the largest weight on another position, without position 0
};

/// A scan of many texts in the background, and what the folder of a scan has.
class LiveScan {
 public:
  explicit LiveScan(Jobs& jobs) : runs_(jobs), tables_(jobs), examples_(jobs) {}

  /// Scans the texts of a form into its folder while it runs; a scan that is stopped keeps what is there.
  /// Reads the folder whenever it changes. Once a frame.
  void follow(const FullModelState& full_model, const ScanForm& form);
  void clear();

  /// Return the heads in the folder, or nullptr; and whether they are heads of that model.
  const core::scan::HeadTable* table() const;
  bool is_of(const FullModelState& full_model) const;
  /// Returns the roles of a head over the texts, if the folder is of that model.
  std::optional<core::transformer::HeadRoles> roles(const FullModelState& full_model, std::size_t layer,
                                                    std::size_t head) const;
  /// Returns the examples of the form's head, or nullptr while they are read.
  const std::vector<ShownExample>* examples(const ScanForm& form) const;
  /// Returns a number that changes with the examples.
  std::uint64_t version() const { return version_; }
  /// Returns why the form cannot be scanned, or its folder not be read, in one line, or "".
  std::string error() const;
  /// Returns the lines of the form's texts that could not be read, in words, or "".
  std::string skipped(const ScanForm& form) const {
    const bool is_of_form =
        runs_.value() && runs_.key()->texts == form.texts && runs_.key()->folder == form.folder;
    return is_of_form ? runs_.value()->value : "";
  }

  bool is_scanning() const { return runs_.is_busy(); }
  bool is_busy() const { return runs_.is_busy() || tables_.is_busy() || examples_.is_busy(); }
  double share() const { return runs_.share(); }
  double seconds() const { return runs_.seconds(); }

 private:
  struct RunKey {
    const void* model = nullptr;
    std::string texts, folder;
    friend bool operator==(const RunKey&, const RunKey&) = default;
  };
  /// What was read or computed, or why not.
  template <class Value>
  struct OrError {
    Value value = {};
    std::string error = {};
  };
  template <class Work>
  static OrError<std::invoke_result_t<Work>> or_error(Work work);
  struct TableKey {
    std::string folder, stamp;
    friend bool operator==(const TableKey&, const TableKey&) = default;
  };
  struct ExamplesKey {
    TableKey of;
    std::pair<std::size_t, std::size_t> head;
    friend bool operator==(const ExamplesKey&, const ExamplesKey&) = default;
  };
  void follow_folder(const ScanForm& form);

  std::shared_ptr<core::ThreadPool> pool_;
  TableKey folder_;
  Clock::time_point looked_;
  bool was_scanning_ = false;
  std::uint64_t version_ = 0;
  AsyncValue<RunKey, OrError<std::string>> runs_;
  AsyncValue<TableKey, OrError<core::scan::HeadTable>> tables_;
  AsyncValue<ExamplesKey, OrError<std::vector<ShownExample>>> examples_;
};

/// Returns the texts of a table in words: "100 texts".
std::string texts_words(const core::scan::HeadTable& table);

/// Returns the folder beside a file of texts for its scan by a model.
std::string scan_folder(const std::string& texts, const FullModelState& full_model);

}  // namespace app
