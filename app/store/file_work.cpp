#include "app/store/file_work.hpp"

namespace app {

void FileReader::begin(const std::filesystem::path& path, const Jobs::Job& reading,
                       const Jobs::Failed& failed) {
  lane_.cancel();
  path_ = path;
  is_aside_ = false;
  lane_.start(reading, failed);
}

}  // namespace app
