// What the built program takes for files that are made to take much: the column of memory under "Limits".
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

using support::TemporaryDirectory;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool has_memory_of_its_own = true;
#else
constexpr bool has_memory_of_its_own = false;
#endif

constexpr double mib = 1 << 20;

/// Of any command, with room for other releases of libraries.
constexpr double of_the_program = 32 * mib;

/// So much of something, again and again, as fits into some bytes.
std::string filled(const std::string& unit, std::size_t bytes = 6 << 20) {
  std::string text;
  for (text.reserve(bytes + unit.size()); text.size() < bytes;) text += unit;
  return text;
}
std::string list_of(const std::string& item) {
  return "[" + filled(item + ",") + item + "]";
}
std::string header_of(const std::string& json) {
  std::string length;
  for (int k = 0; k < 8; ++k) length += static_cast<char>(json.size() >> 8 * k & 255);
  return length + json;
}
/// A GGUF file of one list of bytes.
std::string list_in_gguf(std::size_t n) {
  std::string file = "GGUF";
  const auto put = [&](std::uint64_t value, int n_bytes) {
    for (int k = 0; k < n_bytes; ++k) file += static_cast<char>(value >> 8 * k & 255);
  };
  put(3, 4), put(0, 8), put(1, 8);            // version, tensors, keys
  put(1, 8), file += 'a', put(9, 4);          // a key, which is a list
  put(0, 4), put(n, 8), file.append(n, '1');  // of bytes
  return file;
}

/// A .safetensors file of one tensor, a byte a number.
std::string tensor_of(const std::string& name, std::size_t n_rows, std::size_t n_columns) {
  const std::string n = std::to_string(n_rows * n_columns);
  const std::string shape = std::to_string(n_rows) + "," + std::to_string(n_columns);
  return header_of("{\"" + name + R"(":{"dtype":"BOOL","shape":[)" + shape + R"(],"data_offsets":[0,)" + n +
                   "]}}") +
         std::string(n_rows * n_columns, '\0');
}

struct Hungry {
  const char* what;
  const char* name;  ///< of the file
  std::string (*bytes)();
  double bytes_of_a_byte, at_once_mib = 0;  ///< that may be taken
  friend std::ostream& operator<<(std::ostream& out, const Hungry& of) { return out << of.what; }
};

const Hungry hungry[] = {
    {"rows of a number", "a.csv", [] { return filled("1\n"); }, 28},
    {"rows with a name", "a.csv", [] { return ",a\n" + filled(",1\n", (3 << 21) + 3); }, 28},
    {"a line of fields", "a.csv", [] { return std::string((1 << 20) - 2, ',') + "\n1\n"; }, 28, 80},
    {"a printed tensor", "a.txt", [] { return "tensor(" + list_of("[1]") + ")"; }, 28},
    {"JSON of numbers", "a.json", [] { return R"({"attnscope":1,"embeddings":)" + list_of("1") + "}"; }, 27},
    {"JSON of rows", "a.json", [] { return R"({"attnscope":1,"embeddings":)" + list_of("[1]") + "}"; }, 27},
    {"JSON of names", "a.json",
     [] { return R"({"attnscope":1,"embeddings":[[1]],"tokens":)" + list_of("\"a\"") + "}"; }, 27},
    {"JSON of objects", "a.json", [] { return R"({"attnscope":1,"view":)" + list_of("{}") + "}"; }, 27},
    {"JSON of matrices", "a.json",
     [] { return R"({"attnscope":1,"embeddings":[[1]],"given":{"weights":)" + list_of("[[1]]") + "}}"; }, 80},
    {"a header of lists", "a.safetensors", [] { return header_of(R"({"a":)" + list_of("[]") + "}"); }, 27},
    {"a header of numbers", "a.safetensors", [] { return header_of(R"({"a":)" + list_of("0") + "}"); }, 27},
    {"embeddings", "a.safetensors", [] { return tensor_of("embeddings", 1024, 6144); }, 24},
    {"weights", "a.safetensors", [] { return tensor_of("weights", 1024, 6144); }, 24},
    {"too many tokens", "a.safetensors", [] { return tensor_of("embeddings", 6 << 20, 1); }, 0},
    {"too many queries", "a.safetensors", [] { return tensor_of("weights", 6 << 20, 1); }, 0},
    {"a list in GGUF", "a.gguf", [] { return list_in_gguf(6 << 20); }, 16},
};

/// The most that this process had, in bytes; until it runs the program, a new one counts that as its own.
double of_this_process() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

/// The most memory that opening a file took, in bytes.
double taken_by(const std::string& path, const std::string& folder) {
  const std::string out = folder + "/out";
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (int descriptor : {1, 2})
    posix_spawn_file_actions_addopen(&files, descriptor, out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  std::string words[] = {PROGRAM, "session", path, "--out", folder + "/session.json"};
  char* argv[std::size(words) + 1] = {};
  for (std::size_t k = 0; k < std::size(words); ++k) argv[k] = words[k].data();
  pid_t child = 0;
  const int error = ::posix_spawn(&child, PROGRAM, &files, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot run " PROGRAM);
  struct rusage usage {};
  int status = 0;
  ::wait4(child, &status, 0, &usage);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_THAT(support::bytes_of(out), testing::Not(testing::HasSubstr("not enough memory")));
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

class Memory : public testing::TestWithParam<Hungry> {};

TEST_P(Memory, IsNotMoreThanTheLimitsSay) {
  if (has_memory_of_its_own) GTEST_SKIP() << "sanitizers take their own";
  const Hungry& file = GetParam();
  const TemporaryDirectory dir;
  const std::string path = (dir / file.name).string();
  support::put_bytes(path, file.bytes());
  const double size = static_cast<double>(std::filesystem::file_size(path));
  const double at_first = std::max(of_the_program, of_this_process());
  EXPECT_LE(taken_by(path, dir.path().string()),
            at_first + file.bytes_of_a_byte * size + file.at_once_mib * mib)
      << file.what;
}

INSTANTIATE_TEST_SUITE_P(OfHungryFiles, Memory, testing::ValuesIn(hungry), [](const auto& of) {
  std::string name = of.param.what;
  std::erase(name, ' ');
  return name;
});

}  // namespace
}  // namespace cli
