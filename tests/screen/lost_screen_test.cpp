// The X server or the clipboard's owner goes away while the window is open.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "app/screen/window.hpp"
#include "app/session/store.hpp"
#include "tests/screen/screen.hpp"
#include "tests/support/loaded_drivers.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace {

using support::TemporaryDirectory;

/// Polls a condition for at most a minute; returns whether it came true.
template <class Question>
bool wait_until(Question question) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!question()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

/// Process of attnscope with its own display and home.
class Started {
 public:
  Started(const std::string& display, const std::filesystem::path& home) {
    std::string variables[] = {"DISPLAY=" + display,
                               "WAYLAND_DISPLAY=",
                               "HOME=" + home.string(),
                               "XDG_CONFIG_HOME=" + (home / "config").string(),
                               "XDG_STATE_HOME=" + (home / "state").string(),
                               "XDG_RUNTIME_DIR=" + home.string()};
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    for (char** other = environ; *other; ++other) {  // keeps sanitizer options
      const std::string name(*other, std::strcspn(*other, "=") + 1);
      const bool is_own = std::ranges::any_of(
          variables, [&](const std::string& variable) { return variable.starts_with(name); });
      if (!is_own) environment.push_back(*other);
    }
    environment.push_back(nullptr);
    std::string name = PROGRAM;
    char* argv[] = {name.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, (home / "err").c_str(), O_WRONLY | O_CREAT, 0600);
    const int error = ::posix_spawn(&process_, PROGRAM, &files, nullptr, argv, environment.data());
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) throw std::runtime_error("cannot run " PROGRAM);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() {
    if (status_) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  /// Sends SIGTERM.
  void end() const { ::kill(process_, SIGTERM); }
  /// Returns its status from waitpid(), once it has ended.
  std::optional<int> status() {
    if (int status = 0; !status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
    return status_;
  }

 private:
  pid_t process_ = 0;
  std::optional<int> status_;
};

bool has_journal(const std::filesystem::path& state) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(state, none))
    if (entry.path().extension() == ".journal") return true;
  return false;
}

TEST(LostScreen, EndsTheWindowAndItsWorkIsOfferedByTheNext) {
  const TemporaryDirectory home;
  const std::filesystem::path state = home / "state/attnscope";
  std::filesystem::create_directories(home / "config/attnscope");
  support::put_bytes(home / "config/attnscope/settings", "tour=known\nstart_page=no\n");
  screen::Server server;
  Started window(server.display(), home.path());
  {
    screen::Neighbor hand(server.display());
    ASSERT_TRUE(wait_until([&] { return hand.window_called("attnscope").has_value(); }));
    EXPECT_FALSE(has_journal(state));
    hand.press(*hand.window_called("attnscope"), 'c');  // toggles the causal mask
    ASSERT_TRUE(wait_until([&] { return has_journal(state); }));
  }
  EXPECT_FALSE(window.status());
  server.kill();
  ASSERT_TRUE(wait_until([&] { return window.status().has_value(); }));
  EXPECT_TRUE(WIFEXITED(*window.status()) && WEXITSTATUS(*window.status()) == 1)
      << support::bytes_of(home / "err");

  app::Store next;
  const bool before = next.model().mask.causal;
  next.apply_settings({{}, {}, state, {}});
  ASSERT_EQ(next.view().forms.leftovers.size(), 1u);
  next.dispatch(app::RestoreLeftover{0});
  support::finish_reading(next);
  EXPECT_THAT(next.message().text, testing::StartsWith("Recovered: "));
  EXPECT_EQ(next.model().mask.causal, !before);
}

TEST(SilentScreen, CanBeLeft) {
  const TemporaryDirectory home;
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent, 1), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  constexpr int port_of_the_first = 6000;
  Started window("127.0.0.1:" + std::to_string(::ntohs(address.sin_port) - port_of_the_first), home.path());
  pollfd caller{silent, POLLIN, 0};
  ASSERT_EQ(::poll(&caller, 1, 60'000), 1) << "nobody asks for a window";
  window.end();
  EXPECT_TRUE(wait_until([&] { return window.status().has_value(); }));
  ASSERT_TRUE(window.status());
  EXPECT_TRUE(WIFEXITED(*window.status()));
  EXPECT_EQ(WEXITSTATUS(*window.status()), 128 + SIGTERM);
  ::close(silent);
}

TEST(LostClipboard, LeavesNothingToPasteAndTheWindowGoesOn) {
  const screen::Server server;
  ::setenv("DISPLAY", server.display().c_str(), 1);
  app::Jobs jobs;
  app::platform::Window window(jobs, "attnscope tests", 960, 600);
  support::keep_drivers_loaded();
  window.prepare_fonts(1);
  auto other = std::make_unique<screen::Neighbor>(server.display());
  const screen::Neighbor looker(server.display());
  other->take_clipboard();
  ASSERT_TRUE(looker.clipboard_is_taken());
  other.reset();
  ASSERT_TRUE(wait_until([&] { return !looker.clipboard_is_taken(); }));
  const char* text = ImGui::GetClipboardText();
  EXPECT_STREQ(text ? text : "", "");
  window.begin_frame();
  window.end_frame(app::rgb(0));
  ImGui::SetClipboardText("1\t2\n");
  EXPECT_TRUE(looker.clipboard_is_taken());
  EXPECT_STREQ(ImGui::GetClipboardText(), "1\t2\n");
}

}  // namespace
