// Memory of the built program for files made to need much of it: the memory column under "Limits".
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>

#include "core/files/little_endian.hpp"
#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

using support::TemporaryDirectory;

constexpr double mib = 1 << 20;

/// Bytes that any command needs, with room for other releases of libraries.
constexpr double program_bytes = 32 * mib;

/// Repeats a unit until the text has at least `bytes` bytes.
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
  core::formats::append_little_endian(length, std::uint64_t{json.size()});
  return length + json;
}
/// Returns a GGUF file of one list of bytes.
std::string list_in_gguf(std::size_t n) {
  std::string file = "GGUF";
  const auto short_number = [&](std::uint32_t value) { core::formats::append_little_endian(file, value); };
  const auto long_number = [&](std::uint64_t value) { core::formats::append_little_endian(file, value); };
  short_number(3), long_number(0), long_number(1);       // version, tensors, keys
  long_number(1), file += 'a', short_number(9);          // a key with a list
  short_number(0), long_number(n), file.append(n, '1');  // of bytes
  return file;
}

/// Returns a .safetensors file of one tensor, one byte per number.
std::string tensor_of(const std::string& name, std::size_t n_rows, std::size_t n_columns) {
  const std::string n = std::to_string(n_rows * n_columns);
  const std::string shape = std::to_string(n_rows) + "," + std::to_string(n_columns);
  return header_of("{\"" + name + R"(":{"dtype":"BOOL","shape":[)" + shape + R"(],"data_offsets":[0,)" + n +
                   "]}}") +
         std::string(n_rows * n_columns, '\0');
}

struct LargeFileCase {
  const char* what;
  const char* name;  ///< of the file
  std::string (*bytes)();
  double max_bytes_per_byte, max_extra_mib = 0;  ///< limits: bytes per byte of the file, and MiB in addition
  friend std::ostream& operator<<(std::ostream& out, const LargeFileCase& of) { return out << of.what; }
};

const LargeFileCase hungry[] = {
    {"rows of a number", "a.csv", [] { return filled("1\n"); }, 28},
    {"rows with a name", "a.csv", [] { return ",a\n" + filled(",1\n", (3 << 21) + 3); }, 28},
    {"a line of fields", "a.csv", [] { return std::string((1 << 20) - 2, ',').append("\n1\n"); }, 28, 80},
    {"a printed tensor", "a.txt", [] { return "tensor(" + list_of("[1]") + ")"; }, 28},
    {"JSON of numbers", "a.json", [] { return R"({"attnscope":1,"embeddings":)" + list_of("1") + "}"; }, 32},
    {"JSON of rows", "a.json", [] { return R"({"attnscope":1,"embeddings":)" + list_of("[1]") + "}"; }, 32},
    {"JSON of names", "a.json",
     [] { return R"({"attnscope":1,"embeddings":[[1]],"tokens":)" + list_of("\"a\"") + "}"; }, 32},
    {"JSON of objects", "a.json", [] { return R"({"attnscope":1,"view":)" + list_of("{}") + "}"; }, 32},
    {"JSON of matrices", "a.json",
     [] { return R"({"attnscope":1,"embeddings":[[1]],"given":{"weights":)" + list_of("[[1]]") + "}}"; }, 80},
    {"a header of lists", "a.safetensors", [] { return header_of(R"({"a":)" + list_of("[]") + "}"); }, 32},
    {"a header of numbers", "a.safetensors", [] { return header_of(R"({"a":)" + list_of("0") + "}"); }, 32},
    {"embeddings", "a.safetensors", [] { return tensor_of("embeddings", 1024, 6144); }, 24},
    {"weights", "a.safetensors", [] { return tensor_of("weights", 1024, 6144); }, 24},
    {"too many tokens", "a.safetensors", [] { return tensor_of("embeddings", 6 << 20, 1); }, 0},
    {"too many queries", "a.safetensors", [] { return tensor_of("weights", 6 << 20, 1); }, 0},
    {"a list in GGUF", "a.gguf", [] { return list_in_gguf(6 << 20); }, 16},
};

/// Returns the peak memory of this process in bytes, which a child inherits until it runs the program.
double peak_memory_of_process() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

class Memory : public testing::TestWithParam<LargeFileCase> {};

TEST_P(Memory, IsNotMoreThanTheLimitsSay) {
  if (is_sanitized) GTEST_SKIP() << "sanitizers take their own";
  const LargeFileCase& file = GetParam();
  const TemporaryDirectory dir;
  const std::string path = (dir / file.name).string();
  support::put_bytes(path, file.bytes());
  const double size = static_cast<double>(std::filesystem::file_size(path));
  const double at_first = std::max(program_bytes, peak_memory_of_process());
  const Outcome opened = run({"session", path, "--out", (dir / "session.json").string()});
  EXPECT_NE(opened.status, -1);
  EXPECT_THAT(opened.out + opened.err, testing::Not(testing::HasSubstr("not enough memory")));
  EXPECT_LE(opened.peak_bytes, at_first + file.max_bytes_per_byte * size + file.max_extra_mib * mib)
      << file.what;
}

INSTANTIATE_TEST_SUITE_P(OfHungryFiles, Memory, testing::ValuesIn(hungry), [](const auto& of) {
  std::string name = of.param.what;
  std::erase(name, ' ');
  return name;
});

}  // namespace
}  // namespace cli
