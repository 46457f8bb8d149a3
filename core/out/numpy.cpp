#include "core/out/numpy.hpp"

#include <zip.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <exception>
#include <memory>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/little_endian.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/matrices.hpp"
#include "core/out/export.hpp"

namespace core::formats {

std::string npy_header(const std::vector<std::size_t>& shape, const std::string& type) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + text::tuple_text(shape) + ", }";
  // Numbers begin at a multiple of 64, so that the file can be mapped into memory.
  constexpr std::size_t before_header = 10, alignment = 64;
  while ((before_header + header.size() + 1) % alignment != 0) header += ' ';
  header += '\n';

  std::string bytes("\x93NUMPY\x01\x00", 8);
  append_little_endian(bytes, static_cast<std::uint16_t>(header.size()));
  return bytes + header;
}

void append_rows(std::string& bytes, const arma::mat& matrix) {
  for (std::size_t i = 0; i < matrix.n_rows; ++i)
    for (std::size_t j = 0; j < matrix.n_cols; ++j)
      append_little_endian(bytes, std::bit_cast<std::uint64_t>(matrix(i, j)));
}

std::string npy_strings(const std::vector<std::string>& words, const std::vector<std::size_t>& shape) {
  std::vector<std::u32string> all;
  std::size_t longest = 1;
  for (const std::string& word : words)
    longest = std::max(longest, all.emplace_back(text::decode_utf8_lossy(word)).size());
  std::string bytes = npy_header(shape, "<U" + std::to_string(longest));
  for (std::u32string& word : all) {
    word.resize(longest);  // with zeros, which NumPy ignores
    for (const char32_t c : word) append_little_endian(bytes, static_cast<std::uint32_t>(c));
  }
  return bytes;
}

std::string npy_bytes(const arma::mat& matrix, bool is_vector) {
  std::vector<std::size_t> shape{matrix.n_cols};
  if (!is_vector) shape.insert(shape.begin(), matrix.n_rows);
  std::string bytes = npy_header(shape);
  append_rows(bytes, matrix);
  return bytes;
}

namespace {

constexpr zip_uint16_t midnight = 0, first_day = 33;  // 1 January 1980
constexpr zip_uint32_t fastest_level = 1;

/// State of a file while libzip reads it; exceptions must not pass through libzip.
struct ZipSource {
  const ZipEntry* file;
  std::string bytes = {};
  std::size_t size = 0, at = 0;
  std::exception_ptr failure = {};

  zip_int64_t make() {
    try {
      if (bytes.empty()) bytes = file->make();
      size = bytes.size(), at = 0;
      return 0;
    } catch (...) {
      failure = std::current_exception();
      return -1;
    }
  }
};

zip_int64_t read_zip_source(void* content, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& c = *static_cast<ZipSource*>(content);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      return c.make();
    case ZIP_SOURCE_READ: {
      const std::size_t count = c.bytes.copy(static_cast<char*>(data), length, c.at);
      c.at += count;
      return static_cast<zip_int64_t>(count);
    }
    case ZIP_SOURCE_CLOSE:
      c.bytes = {};
      return 0;
    case ZIP_SOURCE_STAT: {  // without a size, libzip reserves room for more than 4 GiB
      if (c.size == 0 && c.make() != 0) return -1;
      auto& about = *static_cast<zip_stat_t*>(data);
      zip_stat_init(&about);
      about.size = c.size;
      about.valid = ZIP_STAT_SIZE;
      return sizeof about;
    }
    case ZIP_SOURCE_ERROR: {
      zip_error_t error;
      zip_error_init_with_code(&error, ZIP_ER_READ);
      return zip_error_to_data(&error, data, length);
    }
    case ZIP_SOURCE_FREE:
      return 0;
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    default:
      return -1;
  }
}

[[noreturn]] void fail(zip_error_t& error) {
  throw Error(std::string("the archive cannot be made: ") + zip_error_strerror(&error));
}

void add(zip_t* archive, ZipSource& content) {
  zip_source_t* source = zip_source_function(archive, read_zip_source, &content);
  const zip_int64_t added =
      source ? zip_file_add(archive, content.file->name.c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
  if (added < 0) {
    zip_source_free(source);
    fail(*zip_get_error(archive));
  }
  const auto index = static_cast<zip_uint64_t>(added);
  zip_set_file_compression(archive, index, ZIP_CM_DEFAULT, fastest_level);
  zip_file_set_dostime(archive, index, midnight, first_day, 0);
}

std::string bytes_of(zip_source_t* written) {
  zip_stat_t about;
  if (zip_source_stat(written, &about) != 0 || zip_source_open(written) != 0)
    fail(*zip_source_error(written));
  std::string bytes(about.size, '\0');
  const zip_int64_t got = zip_source_read(written, bytes.data(), bytes.size());
  zip_source_close(written);
  if (got < 0 || static_cast<std::size_t>(got) != bytes.size()) fail(*zip_source_error(written));
  return bytes;
}

}  // namespace

std::string zip_bytes(const std::vector<ZipEntry>& files) {
  const std::unique_ptr<zip_source_t, decltype(&zip_source_free)> written(
      zip_source_buffer_create(nullptr, 0, 0, nullptr), zip_source_free);
  zip_source_keep(written.get());  // once for the archive
  zip_error_t error;
  zip_error_init(&error);
  std::unique_ptr<zip_t, decltype(&zip_discard)> archive(
      zip_open_from_source(written.get(), ZIP_TRUNCATE, &error), zip_discard);
  if (!archive) fail(error);
  std::vector<ZipSource> contents;
  for (const ZipEntry& file : files) contents.push_back({&file});
  for (ZipSource& content : contents) add(archive.get(), content);
  if (zip_close(archive.get()) != 0) {
    for (const ZipSource& content : contents)
      if (content.failure) std::rethrow_exception(content.failure);
    fail(*zip_get_error(archive.get()));
  }
  static_cast<void>(archive.release());  // closing has freed it
  return bytes_of(written.get());
}

namespace {

using attention::Linear;
using attention::MatrixName;
using attention::Model;
using attention::StageInfo;
using attention::Trace;

using Files = std::vector<ZipEntry>;

void add_linear(Files& files, const std::string& name, const Linear& linear) {
  files.push_back({name + ".weight.npy", [&linear] { return npy_bytes(linear.weight); }});
  if (!linear.bias) return;
  files.push_back({name + ".bias.npy", [&bias = *linear.bias] { return npy_bytes(bias, true); }});
}

void add_tokens(Files& files, const std::string& name, const Model& model,
                std::vector<std::string> attention::Sequence::*part) {
  std::vector<std::string> all;
  for (const attention::Sequence& sequence : model.sequences)
    all.insert(all.end(), (sequence.*part).begin(), (sequence.*part).end());
  if (all.empty()) return;
  std::vector<std::size_t> shape{all.size() / model.sequences.size()};
  if (model.sequences.size() > 1) shape.insert(shape.begin(), model.sequences.size());
  files.push_back({name + ".npy", [words = npy_strings(all, shape)] { return words; }});
}

}  // namespace

std::string npy_stage(const StageInfo& stage, std::span<const Trace> traces, const Model& model) {
  const std::size_t matrices = n_matrices(model, stage.stage);  // heads of a group share keys and values
  const arma::mat& first = traces.front().at(stage.stage, 0);
  std::vector<std::size_t> shape{first.n_rows, first.n_cols};
  if (stage.per_head) shape.insert(shape.begin(), matrices);
  if (traces.size() > 1) shape.insert(shape.begin(), traces.size());
  std::string bytes = npy_header(shape);
  bytes.reserve(bytes.size() + traces.size() * matrices * first.n_elem * sizeof(double));
  for (const Trace& trace : traces)
    for (std::size_t k = 0; k < matrices; ++k)
      append_rows(bytes, trace.at(stage.stage, head_of_matrix(model, stage.stage, k)));
  return bytes;
}

std::string npz_bytes(const Model& model, const std::vector<std::string>& stages, const StopToken* progress) {
  const std::vector<const StageInfo*> wanted = select_stages(model, stages);
  std::vector<Trace> traces;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) traces.push_back(attention::attend(model, s));
  Files files;
  add_tokens(files, "tokens", model, &attention::Sequence::tokens);
  add_tokens(files, "key_tokens", model, &attention::Sequence::key_tokens);
  for (const StageInfo* stage : wanted)
    files.push_back({std::string(stage->name) + ".npy", [&, stage] {
                       std::string bytes = npy_stage(*stage, traces, model);
                       if (progress) progress->add(bytes.size());
                       return bytes;
                     }});
  const Model used = bugs::effective_model(model);
  if (stages.empty() && used.projections) {
    const auto& [query, key, value, output] = *used.projections;
    add_linear(files, "projections.query", query);
    add_linear(files, "projections.key", key);
    add_linear(files, "projections.value", value);
    if (output) add_linear(files, "projections.output", *output);
  }
  constexpr std::array added{
      std::pair{MatrixName::query_norm, "query_norm"},       std::pair{MatrixName::key_norm, "key_norm"},
      std::pair{MatrixName::frequencies, "frequencies"},     std::pair{MatrixName::slopes, "slopes"},
      std::pair{MatrixName::relative_bias, "relative_bias"}, std::pair{MatrixName::sink, "sink"}};
  for (const auto& [name, word] : added)  // learned like the projections
    if (const auto* numbers = stages.empty() ? find_matrix(used, {name, 0}) : nullptr)
      files.push_back(
          {std::string("projections.") + word + ".npy", [numbers] { return npy_bytes(*numbers); }});
  return zip_bytes(files);
}

}  // namespace core::formats
