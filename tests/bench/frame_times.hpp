#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

inline double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Processor time of all threads so far, in milliseconds; of the children that have ended, where they are
/// asked for.
inline double processor_ms(int whose = RUSAGE_SELF) {
  rusage usage{};
  ::getrusage(whose, &usage);
  const auto ms = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

/// What was measured, by name.
struct Result {
  std::string name, words;
  std::vector<double> values;
  double processor_ms = 0;  ///< of all threads, for one of the values
  const char* unit = "ms";

  double at(double share) const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  }
};

/// Prints every result at once, and writes all of them.
class Results {
 public:
  void add(Result result) {
    if (result.values.empty()) return;
    std::printf("%-34s median %8.2f   95 %% %8.2f   longest %8.2f %-2s  processor %7.2f ms   of %-4zu %s\n",
                result.name.c_str(), result.at(0.5), result.at(0.95), result.at(1), result.unit,
                result.processor_ms, result.values.size(), result.words.c_str());
    std::fflush(stdout);
    all_.push_back(std::move(result));
  }
  /// What a function gives, with the processor time that it takes.
  template <class Function>
  void measure(std::string name, std::string words, Function&& function) {
    const double before = processor_ms();
    std::vector<double> values = function();
    const double used = (processor_ms() - before) / static_cast<double>(values.size());
    add({std::move(name), std::move(words), std::move(values), used});
  }
  bool write(const char* path) const {
    std::FILE* file = std::fopen(path, "w");
    if (!file) return false;
    std::fputs("{\n", file);
    for (std::size_t i = 0; i < all_.size(); ++i)
      std::fprintf(
          file,
          "  \"%s\": {\"median\": %.3f, \"p95\": %.3f, \"longest\": %.3f, \"processor\": %.3f, \"unit\": \"%s\", \"count\": %zu}%s\n",
          all_[i].name.c_str(), all_[i].at(0.5), all_[i].at(0.95), all_[i].at(1), all_[i].processor_ms,
          all_[i].unit, all_[i].values.size(), i + 1 < all_.size() ? "," : "");
    std::fputs("}\n", file);
    return std::fclose(file) == 0;
  }

 private:
  std::vector<Result> all_;
};

}  // namespace bench
