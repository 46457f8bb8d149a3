#include "tests/screen/screen.hpp"

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace screen {

Server::Server() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], 3);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  std::string words[] = {"Xvfb",        "-displayfd", "3",   "-screen", "0",
                         "1280x800x24", "-nolisten",  "tcp", "-noreset"};
  char* argv[std::size(words) + 1] = {};
  for (std::size_t i = 0; i < std::size(words); ++i) argv[i] = words[i].data();
  const int error = ::posix_spawnp(&process_, "Xvfb", &files, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  display_ = ":";
  for (char sign = 0; error == 0 && ::read(ends[0], &sign, 1) == 1 && sign != '\n';) display_ += sign;
  ::close(ends[0]);
  if (error != 0 || display_.size() < 2) throw std::runtime_error("Xvfb does not start");
}

void Server::kill() {
  if (process_ == 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  // A killed server leaves these behind.
  ::unlink(("/tmp/.X" + display_.substr(1) + "-lock").c_str());
  ::unlink(("/tmp/.X11-unix/X" + display_.substr(1)).c_str());
  process_ = 0;
}

struct Neighbor::Connection {
  Display* display;
};

Neighbor::Neighbor(const std::string& display)
    : connection_(std::make_unique<Connection>(XOpenDisplay(display.c_str()))) {
  if (!connection_->display) throw std::runtime_error("no display " + display);
}

Neighbor::~Neighbor() {
  XCloseDisplay(connection_->display);
}

std::optional<unsigned long> Neighbor::window_called(const std::string& title) const {
  Display* display = connection_->display;
  Window root = 0, parent = 0, *windows = nullptr;
  unsigned n_windows = 0;
  XQueryTree(display, DefaultRootWindow(display), &root, &parent, &windows, &n_windows);
  std::optional<unsigned long> found;
  for (unsigned i = 0; i < n_windows && !found; ++i) {
    XWindowAttributes attributes;
    char* name = nullptr;
    if (XGetWindowAttributes(display, windows[i], &attributes) && attributes.map_state == IsViewable &&
        XFetchName(display, windows[i], &name) && std::string(name).find(title) != std::string::npos)
      found = windows[i];
    if (name) XFree(name);
  }
  if (windows) XFree(windows);
  return found;
}

void Neighbor::press(unsigned long window, char letter) {
  Display* display = connection_->display;
  XKeyEvent event{};
  event.display = display;
  event.window = window;
  event.root = DefaultRootWindow(display);
  event.same_screen = True;
  event.keycode = XKeysymToKeycode(display, static_cast<KeySym>(letter));  // letters are their own keysyms
  for (const int type : {KeyPress, KeyRelease}) {
    event.type = type;
    XSendEvent(display, window, True, type == KeyPress ? KeyPressMask : KeyReleaseMask,
               reinterpret_cast<XEvent*>(&event));
  }
  XSync(display, False);
}

void Neighbor::take_clipboard() {
  Display* display = connection_->display;
  const Window window = XCreateSimpleWindow(display, DefaultRootWindow(display), 0, 0, 1, 1, 0, 0, 0);
  XSetSelectionOwner(display, XInternAtom(display, "CLIPBOARD", False), window, CurrentTime);
  XSync(display, False);
}

bool Neighbor::clipboard_is_taken() const {
  return XGetSelectionOwner(connection_->display, XInternAtom(connection_->display, "CLIPBOARD", False)) !=
         None;
}

}  // namespace screen
