#include "app/session/recording.hpp"

#include <fmt/core.h>
#include <cerrno>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/base/version.hpp"
#include "core/system/file.hpp"

namespace app {
namespace {

std::string first_line() {
  return fmt::format("attnscope {} recording", core::version());
}
constexpr std::size_t max_recording_bytes = std::size_t{1} << 30;

void update_until_idle(Store& store) {
  for (store.update();
       store.is_reading() || store.is_writing() || store.is_working() || store.live().is_behind();
       store.update())
    std::this_thread::yield();
}

void replay_line(Store& store, std::string_view line) {
  if (line == update_line) return update_until_idle(store);
  const Command command = parse_command(line);
  if (!command.get_if<Quit>() && !command.get_if<QuitNow>()) store.dispatch(command);
}

}  // namespace

void record(Store& store, const std::filesystem::path& path) {
  if (core::system::is_file(path)) throw core::Error(path.string() + ": expected the name of a new file");
  const auto file = std::make_shared<std::ofstream>(path);
  *file << first_line() << std::endl;
  if (!*file) throw core::Error(core::system::write_error_message(path, errno));
  store.record_to([&store, path, file, idle = std::set<std::string>()](const std::string& line) mutable {
    // A window at rest does both in every frame.
    const bool is_idle = line == update_line || line == to_text(EndGesture{});
    if (!*file || (is_idle && !idle.insert(line).second)) return;
    if (!is_idle) idle.clear();
    *file << line << std::endl;
    if (!*file) store.dispatch(ShowMessage{core::system::write_error_message(path, errno), true});
  });
}

void replay(Store& store, const std::filesystem::path& path, std::size_t last_line) {
  const std::string text = core::system::read_file(path, max_recording_bytes);
  store.set_writes_files(false);
  std::size_t number = 0, begin = 0;
  do {
    ++number;
    try {
      const std::size_t end = text.find('\n', begin);
      if (end == text.npos) throw core::Error("expected a whole line, got a part of it");
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      begin = end + 1;
      if (number > 1)
        replay_line(store, line);
      else if (line != first_line())
        throw core::Error("expected \"" + first_line() + "\", got \"" +
                          std::string(line.substr(0, first_line().size())) + "\"");
    } catch (const core::Error& error) {
      throw core::Error(fmt::format("{}: line {}: {}", path.string(), number, error.what()));
    }
  } while (begin < text.size() && number < last_line);
  update_until_idle(store);
  store.take_clipboard();  // of the person who recorded
  store.set_writes_files(true);
}

}  // namespace app
