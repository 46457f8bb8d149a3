#include "app/cli/scan.hpp"

#include <fmt/core.h>
#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

#include "app/cli/batch.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/model/transformer.hpp"
#include "core/scan/tree.hpp"
#include "core/system/process.hpp"

namespace app {
namespace {

namespace scan = core::scan;
namespace transformer = core::transformer;

/// Prints how far a scan is: on a terminal in one line, else a line every ten seconds.
class Progress {
 public:
  explicit Progress(std::ostream& err)
      : err_(err), is_terminal_(&err == &std::cerr && core::system::stderr_is_terminal()) {}
  ~Progress() { clear(); }

  void show(const scan::Scan& now, std::uint64_t n_sequences) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
    if (n_before_ == unknown) n_before_ = now.n_sequences, begin_ = std::chrono::steady_clock::now();
    if (passed.count() < next_ || now.n_sequences == n_before_) return;
    next_ = passed.count() + (is_terminal_ ? 0.2 : 10);
    const double left = passed.count() * static_cast<double>(n_sequences - now.n_sequences) /
                        static_cast<double>(now.n_sequences - n_before_);
    const std::string words =
        fmt::format("{} of {} texts, {} left", now.n_sequences, n_sequences,
                    left < 90 ? fmt::format("{:.0f} s", left) : fmt::format("{:.0f} min", left / 60));
    if (is_terminal_)
      err_ << "\r\033[K" << words << "; Ctrl+C keeps what is there" << std::flush;
    else
      err_ << words << std::endl;
    has_said_ = true;
  }
  void clear() {
    if (is_terminal_ && has_said_) err_ << "\r\033[K" << std::flush;
    has_said_ = false;
  }

 private:
  static constexpr auto unknown = static_cast<std::uint64_t>(-1);
  std::ostream& err_;
  bool is_terminal_, has_said_ = false;
  std::uint64_t n_before_ = unknown;  // sequences when the first rate could be measured
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double next_ = 0;
};

scan::Scan scanned(const ScanTexts& command, std::ostream& err) {
  const transformer::ModelRef model = open_or_attach(command.model, command.token);
  const scan::Texts texts = scan::read_texts(command.texts);
  core::ThreadPool pool;
  core::StopToken token;
  const core::system::SignalBlocker blocker({SIGINT, SIGTERM});
  const std::jthread watch([&](const std::stop_token& ended) {
    for (; !ended.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(20)))
      if (const int signal = blocker.take()) {
        if (!token.should_continue()) core::system::terminate_by_signal(signal);
        token.stop();
      }
  });
  Progress progress(err);
  scan::Scan result = scan::run(*model, texts, command.options, {pool, token},
                                [&](const scan::Scan& now, std::uint64_t n) { progress.show(now, n); });
  progress.clear();
  if (!token.should_continue())
    print_error(err, fmt::format("note: stopped after {}{}", core::text::counted(result.n_sequences, "text"),
                                 command.options.folder.empty() ? "" : "; --resume goes on"));
  return result;
}

scan::Scan merged(const ScanTexts& command) {
  scan::Scan all = scan::read_scan(command.merged.front());
  for (std::size_t k = 1; k < command.merged.size(); ++k)
    scan::merge(all, scan::read_scan(command.merged[k]),
                command.merged.front().string() + " and " + command.merged[k].string());
  if (const auto& folder = command.options.folder; !folder.empty()) {
    if (scan::has_scan(folder))
      throw core::Error(folder.string() + ": expected a new folder, but it has a scan");
    scan::require_room(folder);
    for (scan::ScannedHead& head : all.heads) head.is_written = false;
    scan::write_tree(all, folder);
  }
  return all;
}

}  // namespace

void scan_texts(const ScanTexts& command, std::ostream& out, std::ostream& err) {
  const scan::Scan result = command.merged.empty() ? scanned(command, err) : merged(command);
  if (!result.skipped.empty())
    print_error(
        err, fmt::format("note: {} skipped, {} line {}: {}{}", core::text::counted(result.n_skipped, "line"),
                         result.sources[result.skipped.front().source].name, result.skipped.front().line,
                         result.skipped.front().why, result.n_skipped > 1 ? "; --json lists them" : ""));
  out << (command.json ? scan::scan_json(result) : scan::scan_csv(result));
}

}  // namespace app
