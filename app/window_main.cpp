#include "app/window_main.hpp"

#include <iostream>

#include "app/batch.hpp"

namespace app {

int run_window(const WindowOptions&) {
  print_error(std::cerr, "this build has no window");
  return 1;
}

}  // namespace app
