#include "core/files/strangers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>

#include "core/base/number.hpp"
#include "core/files/open_file.hpp"

namespace core::formats::readers {
namespace {

using Path = std::filesystem::path;
using namespace std::string_view_literals;

constexpr std::string_view pointer_begins = "version https://git-lfs.github.com/spec/";

/// An amount as servers of files write it: "548 MB".
std::string amount(std::uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  if (bytes < 1000 * 1000) return std::to_string(bytes / 1000) + " kB";
  if (bytes < 1000 * 1000 * 1000) return std::to_string(bytes / (1000 * 1000)) + " MB";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

std::string words_on_pointer(std::string_view begin) {
  constexpr std::string_view size = "\nsize ";
  std::string words = "is a Git LFS pointer";
  if (const std::size_t at = begin.find(size); at != begin.npos) {
    begin.remove_prefix(at + size.size());
    if (const auto bytes = text::take_whole_number(begin)) words += " of " + amount(*bytes);
  }
  return words + ", not the file itself: run git lfs pull";
}

bool has_hdf5_block(std::string_view begin) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  for (const std::size_t at : {0, 512, 1024, 2048})  // where the format lets it begin
    if (at < begin.size() && begin.substr(at).starts_with(signature)) return true;
  return false;
}

/// A model of ONNX begins with the version of its format and who made it: fields 1 and 2 of its message.
bool is_onnx(const Path& path, std::string_view begin) {
  if (path.extension() == ".onnx") return true;
  const std::size_t length = begin.size() > 4 ? static_cast<unsigned char>(begin[3]) : 0;
  return begin.size() > 4 + length && begin[0] == '\x08' && begin[1] > 0 && begin[1] < 32 &&
         begin[2] == '\x12' && length > 0 &&
         std::ranges::all_of(begin.substr(4, length), [](unsigned char c) { return std::isprint(c); });
}

/// The index of a checkpoint ends with the number of the tables of LevelDB; its data have but their name.
bool is_tensorflow(const Path& path, std::string_view begin) {
  const std::string name = path.filename().string();
  if (name.find(".data-0") != name.npos && name.find("-of-0") != name.npos) return true;
  if (name == "saved_model.pb" || begin.starts_with("model_checkpoint_path:")) return true;
  constexpr std::string_view footer = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  const OpenFile file(path);
  return file.size() > footer.size() && file.bytes(file.size() - footer.size(), footer.size()) == footer;
}

bool is_web_page(std::string_view begin) {
  return begin.starts_with("<!DOCTYPE html") || begin.starts_with("<!doctype html") ||
         begin.starts_with("<html");
}

/// Whether bytes are no text, which may begin with any word.
bool is_binary(std::string_view begin) {
  return std::ranges::any_of(begin, [](char c) { return c >= 0 && c < '\t'; });
}

/// A format that is known and not read, and what to do with a file of it.
struct Stranger {
  bool (*is_meant)(const Path& path, std::string_view begin);
  const char* words;
};

constexpr std::array strangers{
    Stranger{
        [](const Path&, std::string_view b) {
          return is_binary(b) && (b.starts_with("lmgg") || b.starts_with("tjgg"));
        },
        "is a file of llama.cpp from before GGUF, which is not read: take a .gguf file of the same model"},
    Stranger{[](const Path&, std::string_view b) { return has_hdf5_block(b); },
             "is an HDF5 file, which is not read: write its arrays with numpy.savez (h5py reads them)"},
    Stranger{
        [](const Path&, std::string_view b) {
          return b.starts_with("MATLAB ") && b.substr(0, 20).find("MAT-file") != b.npos;
        },
        "is a MATLAB file, which is not read: write its arrays with numpy.savez (scipy.io.loadmat reads them)"},
    Stranger{[](const Path&, std::string_view b) { return b.size() > 8 && b.substr(4, 4) == "TFL3"; },
             "is a TensorFlow Lite model, which is not read: write its tensors with numpy.savez"},
    Stranger{[](const Path&, std::string_view b) { return is_binary(b) && b.starts_with("PAR1"); },
             "is a Parquet table, which is not read: write it as .csv, or its arrays with numpy.savez"},
    Stranger{[](const Path&, std::string_view b) { return b.starts_with("\x1f\x8b"); },
             "is packed with gzip: unpack it with gunzip first"},
    Stranger{[](const Path&, std::string_view b) { return b.starts_with("\x28\xb5\x2f\xfd"); },
             "is packed with Zstandard: unpack it with unzstd first"},
    Stranger{[](const Path&, std::string_view b) {
               return b.starts_with(
                   "\xfd"
                   "7zXZ");
             },
             "is packed with xz: unpack it with unxz first"},
    Stranger{[](const Path&, std::string_view b) { return b.size() > 262 && b.substr(257, 5) == "ustar"; },
             "is a tar archive: unpack it with tar -xf first"},
    Stranger{[](const Path&, std::string_view b) { return is_web_page(b); },
             "is a web page, not a file of tensors: download the file itself"},
    Stranger{[](const Path& p, std::string_view) { return p.extension() == ".msgpack"; },
             "is a msgpack file, as Flax writes it, which is not read: write its arrays with numpy.savez"},
    Stranger{is_onnx,
             "is an ONNX model, which is not read: write its initializers with numpy.savez "
             "(onnx.numpy_helper.to_array reads them)"},
    Stranger{is_tensorflow,
             "is of a TensorFlow checkpoint, which is not read: write its variables with numpy.savez "
             "(tf.train.load_checkpoint reads them)"},
};

}  // namespace

std::string words_on_stranger(const Path& path, std::string_view begin) {
  if (begin.empty()) return "";  // a folder, or nothing
  if (begin.starts_with(pointer_begins)) return words_on_pointer(begin);
  const auto found =
      std::ranges::find_if(strangers, [&](const Stranger& s) { return s.is_meant(path, begin); });
  return found == strangers.end() ? "" : found->words;
}

}  // namespace core::formats::readers
