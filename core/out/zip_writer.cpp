#include "core/out/zip_writer.hpp"

#include <zip.h>

#include <exception>
#include <memory>

#include "core/base/error.hpp"
#include "core/files/little_endian.hpp"

namespace core::formats {
namespace {

constexpr zip_uint16_t midnight = 0, first_day = 33;  // 1 January 1980
constexpr zip_uint32_t quickest = 1;

/// What libzip asks a file for; an exception must not pass through it.
struct Content {
  const ZipContent* file;
  bool is_made = false;
  std::string bytes = {};
  std::size_t size = 0, at = 0;
  std::exception_ptr failure = {};

  bool make() {
    if (is_made) return true;
    try {
      bytes = file->make();
      size = bytes.size();
      return is_made = true;
    } catch (...) {
      failure = std::current_exception();
      return false;
    }
  }
  bool open() {
    at = 0;
    return make();
  }
  void close() {
    bytes = {};
    is_made = false;
  }
  /// The size is told as soon as it is asked for: libzip reserves room for one above 4 GiB otherwise, and
  /// ends the program where that little memory is not to be had.
  zip_int64_t stat(zip_stat_t& about) {
    if (size == 0 && !make()) return -1;
    zip_stat_init(&about);
    about.size = size;
    about.valid = ZIP_STAT_SIZE;
    return sizeof about;
  }
  zip_int64_t read(void* data, zip_uint64_t length) {
    const std::size_t count = bytes.copy(static_cast<char*>(data), length, at);
    at += count;
    return static_cast<zip_int64_t>(count);
  }
};

zip_int64_t answer(void* content, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& c = *static_cast<Content*>(content);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      return c.open() ? 0 : -1;
    case ZIP_SOURCE_READ:
      return c.read(data, length);
    case ZIP_SOURCE_CLOSE:
      c.close();
      return 0;
    case ZIP_SOURCE_STAT:
      return c.stat(*static_cast<zip_stat_t*>(data));
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

using Source = std::unique_ptr<zip_source_t, decltype(&zip_source_free)>;
using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;

[[noreturn]] void fail(zip_error_t& error) {
  if (zip_error_code_zip(&error) == ZIP_ER_MEMORY) throw std::bad_alloc();
  const bool has_words = zip_error_code_zip(&error) != ZIP_ER_OK;
  throw Error(std::string("the archive cannot be made: ") +
              (has_words ? zip_error_strerror(&error) : "libzip gives no reason"));
}

[[noreturn]] void fail(zip_t* archive) {
  fail(*zip_get_error(archive));
}

[[noreturn]] void fail(zip_source_t* source) {
  fail(*zip_source_error(source));
}

void add(zip_t* archive, Content& content) {
  zip_source_t* source = zip_source_function(archive, answer, &content);
  const zip_int64_t added =
      source ? zip_file_add(archive, content.file->name.c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
  if (added < 0) {
    zip_source_free(source);
    fail(archive);
  }
  const auto index = static_cast<zip_uint64_t>(added);
  if (zip_set_file_compression(archive, index, ZIP_CM_DEFAULT, quickest) != 0 ||
      zip_file_set_dostime(archive, index, midnight, first_day, 0) != 0)
    fail(archive);
}

std::string bytes_of(zip_source_t* written) {
  zip_stat_t about;
  if (zip_source_stat(written, &about) != 0 || zip_source_open(written) != 0) fail(written);
  std::string bytes(about.size, '\0');
  const zip_int64_t got = zip_source_read(written, bytes.data(), bytes.size());
  zip_source_close(written);
  if (got < 0 || static_cast<std::size_t>(got) != bytes.size()) fail(written);
  return bytes;
}

}  // namespace

std::string zip_bytes(const std::vector<ZipContent>& files) {
  const Source written(zip_source_buffer_create(nullptr, 0, 0, nullptr), zip_source_free);
  if (!written) throw std::bad_alloc();
  zip_source_keep(written.get());  // once for the archive
  zip_error_t error;
  zip_error_init(&error);
  Archive archive(zip_open_from_source(written.get(), ZIP_TRUNCATE, &error), zip_discard);
  if (!archive) fail(error);
  std::vector<Content> contents;
  for (const ZipContent& file : files) contents.push_back({&file});
  for (Content& content : contents) add(archive.get(), content);
  if (zip_close(archive.get()) != 0) {
    for (const Content& content : contents)
      if (content.failure) std::rethrow_exception(content.failure);
    fail(archive.get());
  }
  static_cast<void>(archive.release());  // closing has freed it
  return bytes_of(written.get());
}

}  // namespace core::formats
