#pragma once

#include <filesystem>

#include "app/screen/paths.hpp"
#include "app/session/jobs.hpp"

namespace app {

/// Writes what the program remembers soon after it has changed, beside the window: whatever ends it, lessons,
/// recent files and settings are there the next time.
class Remembering {
 public:
  /// began is what was read from that folder.
  Remembering(Jobs& jobs, std::filesystem::path folder, platform::Memory began)
      : lane_(jobs), folder_(std::move(folder)), written_(began), seen_(std::move(began)) {}

  /// Once a frame; what cannot be written is said once.
  void follow(const platform::Memory& now);
  /// Waits for what is being written, and writes what is new.
  void finish(const platform::Memory& now);

 private:
  Lane lane_;
  std::filesystem::path folder_;
  platform::Memory written_, seen_;
  Jobs::Clock::time_point next_;
  bool has_failed_ = false;
};

}  // namespace app
