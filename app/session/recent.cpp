#include "app/session/recent.hpp"

namespace app {

std::vector<std::filesystem::path> with_recent(std::vector<std::filesystem::path> recent,
                                               const std::filesystem::path& file) {
  std::erase(recent, file);
  recent.insert(recent.begin(), file);
  if (recent.size() > most_recent) recent.resize(most_recent);
  return recent;
}

}  // namespace app
