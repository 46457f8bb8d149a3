#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <variant>
#include <vector>

#include "app/cli/arguments.hpp"
#include "app/cli/batch.hpp"
#include "app/window/window_main.hpp"
#include "core/system/process.hpp"

extern "C" void openblas_set_num_threads(int);

int main(int argc, char** argv) {
  try {
    core::system::ignore_file_size_signal();
    openblas_set_num_threads(1);  // with more, the last bits of a product depend on the machine
    const app::CommandLine arguments =
        app::parse_arguments(std::vector<std::string>(argv + (argc > 0), argv + argc));
    if (const auto* window = std::get_if<app::OpenWindow>(&arguments)) {
      if (window->record)
        app::print_error(std::cerr, "note: " + window->record->string() +
                                        " will hold all that is typed, and the paths of files");
      return app::run_window(*window);
    }
    if (const auto* window = std::get_if<app::Attach>(&arguments)) return app::run_window(*window);
    return app::run_batch(arguments, std::cout, std::cerr);
  } catch (const std::bad_alloc&) {
    app::print_error(std::cerr, "not enough memory");
  } catch (const std::exception& error) {
    app::print_error(std::cerr, error.what());
  }
  return 1;
}
