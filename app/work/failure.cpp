#include "app/work/failure.hpp"

#include <exception>
#include <filesystem>
#include <new>

#include "core/error.hpp"

namespace app {

std::string failure_text(const std::string& what) {
  try {
    throw;
  } catch (const core::Error& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    return "There is not enough memory for " + what;
  } catch (const std::filesystem::filesystem_error& error) {
    return error.path1().string() + ": " + error.code().message();
  } catch (const std::exception& error) {
    return "Something went wrong with " + what + ": " + error.what();
  } catch (...) {
    return "Something went wrong with " + what;
  }
}

}  // namespace app
