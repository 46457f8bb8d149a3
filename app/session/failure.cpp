#include "app/session/failure.hpp"

#include <exception>
#include <filesystem>
#include <new>

#include "core/base/error.hpp"
#include "core/base/token.hpp"

namespace app {

Failure failure_of(const std::string& what) {
  const auto with = [&](const char* words, const char* link) {
    return what.empty() ? words : words + (link + what);
  };
  const std::string wrong = with("Something went wrong", " with ");
  try {
    throw;
  } catch (const core::Stopped& stopped) {
    return {stopped.what(), true};
  } catch (const core::Outside& outside) {
    return {outside.what(), false, false, true};
  } catch (const core::Error& error) {
    return {error.what()};
  } catch (const std::bad_alloc&) {
    return {with("There is not enough memory", " for "), false, true};
  } catch (const std::filesystem::filesystem_error& error) {
    return {error.path1().string() + ": " + error.code().message()};
  } catch (const std::exception& error) {
    return {wrong + ": " + error.what()};
  } catch (...) {
    return {wrong};
  }
}

}  // namespace app
