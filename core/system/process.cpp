#include "core/system/process.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "core/base/number.hpp"
#include "core/base/token.hpp"

namespace core::system {
namespace {

std::atomic<int> pending_signal = 0;  // a signal handler can reach only globals

void record_signal(int signal) {
  pending_signal = signal;
}

/// Signal actions to restore, which belong to the whole process.
struct Actions {
  std::mutex mutex;
  int depth = 0;  ///< number of live blockers
  std::vector<std::pair<int, struct sigaction>> before;
};

Actions& actions() {
  static Actions all;
  return all;
}

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) != 0 || now.sa_handler == SIG_IGN;
}

/// Starts to note signals. Returns whether this is the outermost blocker, which handles them.
bool begin_blocking(std::initializer_list<int> signals, bool even_ignored) {
  Actions& all = actions();
  const std::lock_guard lock(all.mutex);
  if (++all.depth > 1) return false;
  pending_signal = 0;
  struct sigaction action {};
  action.sa_handler = record_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) {
    if (!even_ignored && is_ignored(signal)) continue;
    struct sigaction before {};
    ::sigaction(signal, &action, &before);
    all.before.emplace_back(signal, before);
  }
  return true;
}

}  // namespace

SignalBlocker::SignalBlocker() : is_outermost_(begin_blocking({SIGINT, SIGTERM, SIGHUP}, false)) {}

SignalBlocker::SignalBlocker(std::initializer_list<int> signals)
    : is_outermost_(begin_blocking(signals, true)) {}

SignalBlocker::~SignalBlocker() {
  Actions& all = actions();
  const std::lock_guard lock(all.mutex);
  if (--all.depth > 0) return;
  for (const auto& [signal, before] : all.before) ::sigaction(signal, &before, nullptr);
  all.before.clear();
  if (const int came = pending_signal.exchange(0)) ::raise(came);
}

int SignalBlocker::take() const {
  return is_outermost_ ? pending_signal.exchange(0) : 0;
}

void SignalBlocker::throw_if_pending() const {
  if (is_outermost_ && pending_signal != 0) throw Stopped();
}

void terminate_by_signal(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

bool stdout_is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::filesystem::path executable_path() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown);
}

std::optional<std::uint64_t> parse_mem_available(std::string_view meminfo) {
  constexpr std::string_view name = "MemAvailable:";
  const std::size_t line = meminfo.find(name);
  if (line == meminfo.npos) return std::nullopt;
  std::string_view rest = meminfo.substr(line + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const auto kibibytes = text::consume_unsigned(rest);
  if (!kibibytes || !rest.starts_with(" kB")) return std::nullopt;
  return *kibibytes << 10;
}

std::uint64_t available_memory() {
  std::ostringstream meminfo;
  meminfo << std::ifstream("/proc/meminfo").rdbuf();
  if (const auto available = parse_mem_available(meminfo.str())) return *available;
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

void trim_heap() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

void advise_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // only a hint
#endif
}

}  // namespace core::system
