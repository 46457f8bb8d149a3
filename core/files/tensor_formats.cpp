#include "core/files/tensor_formats.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/file.hpp"
#include "core/files/gguf.hpp"
#include "core/files/left_out.hpp"
#include "core/files/npy.hpp"
#include "core/files/npz.hpp"
#include "core/files/pytorch.hpp"
#include "core/files/safetensors.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor.hpp"
#include "core/files/zip.hpp"

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

namespace {

constexpr std::size_t numbers_in_one_go = std::size_t{1} << 17;  // numbers between two looks at the progress
constexpr std::size_t most_bytes = std::size_t{1} << 20;         // fetched in one go
constexpr std::size_t window_bytes = std::size_t{1} << 26;       // of what is deflated
constexpr std::size_t most_texts = std::size_t{1} << 20, most_text_bytes = std::size_t{1} << 28;

/// The bytes of a tensor's items first, first + 1 …, fetched go by go; of those that are deflated a window
/// goes forward over them, so that none is unpacked again and again.
class Items {
 public:
  Items(const RawTensor& raw, std::uint64_t first, std::uint64_t count, const Token& progress)
      : raw_(raw), first_(first), count_(count), progress_(progress) {}
  Items(const Items&) = delete;  // it looks into its own buffer
  Items& operator=(const Items&) = delete;

  std::string_view operator()(std::uint64_t from, std::uint64_t count) {
    if (!raw_.deflated) return fetch(from, count);
    if (from < begin_ || from + count > end_) move_window(from, from + count);
    return std::string_view(window_).substr((from - begin_) * raw_.item_bytes, count * raw_.item_bytes);
  }

 private:
  /// The window keeps those of its items that are still wanted, as no others can be had soon.
  void move_window(std::uint64_t from, std::uint64_t to) {
    const bool keeps = from >= begin_ && from < end_;
    if (keeps) {
      window_.erase(0, (from - begin_) * raw_.item_bytes);
    } else {
      std::string().swap(window_);  // an assignment would keep its room
      end_ = from;
    }
    begin_ = from;
    const std::uint64_t further = std::max<std::uint64_t>(window_bytes / raw_.item_bytes, 1);
    to = std::min(std::max(to, end_ + further), count_);
    const std::string_view more = fetch(end_, to - end_);
    if (window_.empty() && more.data() == buffer_.data() && more.size() == buffer_.size())
      window_.swap(buffer_);
    else
      window_ += more;
    std::string().swap(buffer_);
    end_ = to;
  }

  std::string_view fetch(std::uint64_t from, std::uint64_t count) {
    return raw_.fetch((first_ + from) * raw_.item_bytes, count * raw_.item_bytes, buffer_, progress_);
  }

  const RawTensor& raw_;
  std::uint64_t first_, count_;
  const Token& progress_;
  std::string buffer_, window_;
  std::uint64_t begin_ = 0, end_ = 0;  ///< items that the window holds
};

[[noreturn]] void fail_integer(const RawTensor& raw, std::size_t index) {
  throw Error(raw.place +
              "expected whole numbers that float64 can hold (up to 2^53), got a larger one at place " +
              std::to_string(index));
}

/// Items that are fetched in one go when they lie so many bytes apart.
std::size_t in_one_go(std::size_t bytes) {
  return std::clamp<std::size_t>(most_bytes / std::max<std::size_t>(bytes, 1), 1, numbers_in_one_go);
}

void decode_text(const RawTensor& raw, Items& items, std::size_t count, Tensor& tensor) {
  if (count > most_texts || count > most_text_bytes / raw.item_bytes)
    throw Error(raw.place + "expected at most " + std::to_string(most_texts) + " texts of " +
                std::to_string(most_text_bytes) + " bytes in all, got " + shape_text(tensor.shape) + " of " +
                std::to_string(raw.item_bytes) + " bytes each");
  tensor.texts.reserve(count);
  const std::size_t most = in_one_go(raw.item_bytes);
  for (std::size_t k = 0; k < count; k += most) {
    const std::size_t n = std::min(most, count - k);
    const std::string_view bytes = items(k, n);
    for (std::size_t i = 0; i < n; ++i)
      tensor.texts.push_back(decode_utf32(bytes.data() + i * raw.item_bytes, raw.item_bytes, raw.big_endian));
  }
}

void decode_in_order(const RawTensor& raw, Items& items, Tensor& tensor, const Token& progress) {
  const std::size_t count = tensor.numbers.size(), most = in_one_go(raw.item_bytes);
  for (std::size_t k = 0; k < count; k += most) {
    const std::size_t n = std::min(most, count - k);
    const std::size_t good =
        decode_numbers(items(k, n).data(), raw.info.dtype, raw.big_endian, n, tensor.numbers.data() + k);
    if (good < n) fail_integer(raw, k + good);
    progress.add(n * raw.item_bytes);
  }
}

Strides rows_first(const Shape& shape) {
  Strides strides(shape.size());
  std::uint64_t apart = 1;
  for (std::size_t k = shape.size(); k-- > 0; apart *= shape[k]) strides[k] = apart;
  return strides;
}

/// An index of a tensor that takes several values: how far a step goes in the file and in row-major order.
struct Axis {
  std::size_t length;
  std::uint64_t apart;
  std::size_t step;
};

/// The axes of a part, those with the longest steps in the file first.
std::vector<Axis> axes_of(const Shape& shape, const Strides& strides) {
  const Strides steps = rows_first(shape);
  std::vector<Axis> axes;
  for (std::size_t k = 0; k < shape.size(); ++k)
    if (shape[k] != 1) axes.push_back({shape[k], strides[k], steps[k]});
  std::ranges::stable_sort(axes, std::greater(), &Axis::apart);
  return axes;
}

/// Reads the numbers of a part that has strides, as much of the file in one go as lies close together.
class Strided {
 public:
  Strided(const RawTensor& raw, Items& items, const Strides& strides, Tensor& tensor, const Token& progress)
      : raw_(raw),
        items_(items),
        tensor_(tensor),
        progress_(progress),
        axes_(axes_of(tensor.shape, strides)) {
    for (std::size_t k = axes_.size(); k-- > 0;)
      spans_[k] = spans_[k + 1] + (axes_[k].length - 1) * axes_[k].apart;
    if (raw.deflated && goes_back() && spans_[0] > window_bytes / raw.item_bytes)
      throw Error(raw.place + "expected deflated numbers whose rows do not overlap, got " +
                  shape_text(tensor.shape) + " with strides " + shape_text({strides.begin(), strides.end()}));
  }

  void read() { read(0, 0, 0); }

 private:
  std::uint64_t most_items() const { return std::max<std::uint64_t>(most_bytes / raw_.item_bytes, 1); }

  /// Whether what is fetched later may stand before what was fetched: a step is shorter than what it is of.
  bool goes_back() const {
    for (std::size_t k = 0; k < axes_.size(); ++k)
      if (spans_[k + 1] > most_items() && axes_[k].apart < spans_[k + 1]) return true;
    return false;
  }

  /// Reads what the axes from this one on run through: items from `from`, into places from `to`.
  void read(std::size_t axis, std::uint64_t from, std::size_t to) {
    if (axis == axes_.size()) return fetch(axis, 1, from, to);
    const auto [length, apart, step] = axes_[axis];
    const std::uint64_t most = most_items();
    if (spans_[axis + 1] > most) {
      for (std::size_t k = 0; k < length; ++k) read(axis + 1, from + k * apart, to + k * step);
      return;
    }
    const std::uint64_t fit = apart == 0 ? length : (most - spans_[axis + 1]) / apart + 1;
    const auto together = static_cast<std::size_t>(std::min<std::uint64_t>(fit, length));
    for (std::size_t k = 0; k < length; k += together)
      fetch(axis, std::min(together, length - k), from + k * apart, to + k * step);
  }

  void fetch(std::size_t axis, std::size_t length, std::uint64_t from, std::size_t to) {
    const std::uint64_t apart = axis < axes_.size() ? axes_[axis].apart : 0;
    const std::uint64_t rest = axis < axes_.size() ? spans_[axis + 1] : 1;
    const std::string_view bytes = items_(from, (length - 1) * apart + rest);
    put(axis, length, bytes.data(), to);
    progress_.add(bytes.size());
  }

  void put(std::size_t axis, std::size_t length, const char* bytes, std::size_t to) {
    if (axis >= axes_.size()) return decode(bytes, 1, to);
    const auto [whole, apart, step] = axes_[axis];
    const bool is_last = axis + 1 == axes_.size();
    if (is_last && apart == 1 && step == 1) return decode(bytes, length, to);
    for (std::size_t k = 0; k < length; ++k) {
      const char* at = bytes + k * apart * raw_.item_bytes;
      if (is_last)
        decode(at, 1, to + k * step);
      else
        put(axis + 1, axes_[axis + 1].length, at, to + k * step);
    }
  }

  void decode(const char* bytes, std::size_t count, std::size_t to) {
    const std::size_t good =
        decode_numbers(bytes, raw_.info.dtype, raw_.big_endian, count, &tensor_.numbers[to]);
    if (good < count) fail_integer(raw_, to + good);
  }

  const RawTensor& raw_;
  Items& items_;
  Tensor& tensor_;
  const Token& progress_;
  std::vector<Axis> axes_;
  std::vector<std::uint64_t> spans_ =
      std::vector<std::uint64_t>(axes_.size() + 1, 1);  ///< of the axes from one on
};

Tensor read(const RawTensor& raw, std::span<const std::size_t> leading, const Token& progress) {
  const Shape& shape = raw.info.shape;
  Tensor tensor;
  static_cast<TensorInfo&>(tensor) = raw.info;
  const auto n_leading = static_cast<std::ptrdiff_t>(leading.size());
  tensor.shape.assign(shape.begin() + n_leading, shape.end());
  const std::size_t count = count_of(tensor.shape).value();  // the file and the asked part have been checked
  const bool strided = !raw.strides.empty() && raw.strides != rows_first(shape);
  if (strided && raw.info.dtype == Dtype::text)
    throw Error(raw.place + "text in Fortran order is not supported");
  const Strides strides = strided ? raw.strides : rows_first(shape);
  std::uint64_t first = 0;
  for (std::size_t k = 0; k < leading.size(); ++k) first += leading[k] * strides[k];
  if (strided) {
    if (count == 0) return tensor;
    const Strides rest(strides.begin() + n_leading, strides.end());
    tensor.numbers.resize(count);
    Items items(raw, first, span_of(tensor.shape, rest).value(), progress);
    Strided(raw, items, rest, tensor, progress).read();
    return tensor;
  }
  Items items(raw, first, count, progress);
  if (raw.info.dtype == Dtype::text) {
    decode_text(raw, items, count, tensor);
  } else {
    tensor.numbers.resize(count);
    decode_in_order(raw, items, tensor, progress);
  }
  return tensor;
}

}  // namespace

std::optional<std::uint64_t> byte_count(const RawTensor& tensor) {
  Shape lengths = tensor.info.shape;
  lengths.push_back(tensor.item_bytes);
  return count_of(lengths);
}

Strides columns_first(const Shape& shape) {
  Strides strides;
  std::uint64_t apart = 1;
  for (const std::size_t length : shape) {
    strides.push_back(apart);
    apart *= length;
  }
  return strides;
}

std::optional<std::uint64_t> span_of(const Shape& shape, const Strides& strides) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  if (std::ranges::find(shape, 0u) != shape.end()) return 0;
  std::uint64_t last = 0;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] > 1 && strides[k] > (most - 1 - last) / (shape[k] - 1)) return std::nullopt;
    last += (shape[k] - 1) * strides[k];
  }
  return last + 1;
}

TensorFile::Entry entry_of(RawTensor tensor) {
  TensorInfo info = tensor.info;
  return {std::move(info),
          [raw = std::move(tensor)](std::span<const std::size_t> leading, const Token& progress) {
            return read(raw, leading, progress);
          }};
}

namespace {

namespace fs = std::filesystem;

/// A tensor of a file that is open, or several of one shape that together have one dimension more.
struct Part {
  TensorInfo info;
  std::shared_ptr<const TensorFile> file;  ///< where it is, without members
  std::string name;                        ///< and under which name
  std::vector<Part> members;
};

using Parts = std::map<std::string, Part>;

Tensor read(const Part& part, std::span<const std::size_t> leading, const Token& progress) {
  if (part.file) return part.file->read(part.name, leading, progress);
  if (!leading.empty()) return read(part.members[leading[0]], leading.subspan(1), progress);
  Tensor whole;
  for (const Part& member : part.members) {
    Tensor tensor = read(member, {}, progress);
    whole.numbers.insert(whole.numbers.end(), tensor.numbers.begin(), tensor.numbers.end());
    whole.texts.insert(whole.texts.end(), tensor.texts.begin(), tensor.texts.end());
    whole.row_labels = std::move(tensor.row_labels);
    whole.column_labels = std::move(tensor.column_labels);
    whole.printed_to = std::max(whole.printed_to, tensor.printed_to);
  }
  static_cast<TensorInfo&>(whole) = part.info;
  return whole;
}

/// The number at the end of a name after a word: 3 for "weights.head3" after ".head".
std::optional<std::size_t> number_after(const std::string& name, const std::string& word) {
  const std::size_t at = name.rfind(word);
  return at == name.npos ? std::nullopt
                         : text::parse_whole_number(std::string_view(name).substr(at + word.size()));
}

/// Parts 0, 1, 2 … of one shape as one; what they are called together begins the message when they are not.
Part stacked(const std::string& name, std::map<std::size_t, Part> members, const std::string& place) {
  Part whole;
  for (auto& [index, member] : members) {
    if (index != whole.members.size())
      throw Error(place + name + ": number " + std::to_string(whole.members.size()) + " is missing");
    const auto words = [](const TensorInfo& info) {
      return (info.dtype == Dtype::text ? "text " : "") + shape_text(info.shape);
    };
    if (index == 0) whole.info = member.info;
    if (words(member.info) != words(whole.info))
      throw Error(place + name + ": expected every part to be " + words(whole.info) + " as the first, got " +
                  words(member.info));
    whole.members.push_back(std::move(member));
  }
  whole.info.name = name;
  whole.info.shape.insert(whole.info.shape.begin(), whole.members.size());
  return whole;
}

void add(Parts& parts, const std::string& name, Part part, const std::string& place) {
  part.info.name = name;
  if (!parts.emplace(name, std::move(part)).second) throw Error(place + "two tensors are called " + name);
}

std::vector<fs::path> sorted_entries(const fs::path& path) {
  Listing listing = list_folder(path);
  if (listing.error != 0) throw Error(cannot_be_read(path, listing.error));
  return std::move(listing.paths);
}

/// Whether an entry is a folder; one that leads nowhere is none, one that cannot be looked at is refused.
bool is_folder(const fs::path& path) {
  std::error_code error;
  const bool is = fs::is_directory(path, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error(cannot_be_read(path, error.value()));
  return is;
}

/// The files of tensors in a folder that can be opened. What cannot is left out, unless it stands in a row
/// with others, as heads do, which would be another without it.
std::vector<std::shared_ptr<const TensorFile>> files_in(const fs::path& folder, bool is_in_a_row,
                                                        LeftOut& left_out, const Token& progress) {
  std::vector<std::shared_ptr<const TensorFile>> files;
  for (const fs::path& path : sorted_entries(folder)) {
    progress.add(0);
    if (!has_tensor_ending(path) || is_folder(path)) continue;
    const auto open = [&] {
      auto file = std::make_shared<const TensorFile>(open_tensors(path, progress));
      if (path.extension() == ".json") return;  // of an index that is right, the files are here
      for (const std::string& note : file->notes()) left_out.add(path.filename().string() + ": " + note);
      files.push_back(std::move(file));
    };
    if (is_in_a_row || number_after(path.stem().string(), ".head"))
      open();
    else
      left_out.unless(open);
  }
  return files;
}

/// A checkpoint is often kept as pytorch_model.bin beside model.safetensors: the same tensors once more.
bool repeats(const TensorFile& file, const Parts& parts) {
  return std::string_view(file.format()) == "pytorch" &&
         std::ranges::any_of(file.tensors(), [&](const TensorInfo& info) {
           const auto known = parts.find(info.name);
           return known != parts.end() && known->second.file &&
                  std::string_view(known->second.file->format()) == "safetensors";
         });
}

Parts parts_of(const fs::path& folder, bool is_in_a_row, LeftOut& left_out, const Token& progress) {
  const std::string place = folder.string() + ": ";
  Parts parts;
  std::map<std::string, std::map<std::size_t, Part>> heads;
  auto files = files_in(folder, is_in_a_row, left_out, progress);
  std::ranges::stable_sort(files, {},
                           [](const auto& file) { return std::string_view(file->format()) == "pytorch"; });
  for (const auto& file : files) {
    if (repeats(*file, parts)) {
      left_out.note(file->path().filename().string() + " has the tensors of a .safetensors file beside it");
      continue;
    }
    for (const TensorInfo& info : file->tensors()) {
      Part part{info, file, info.name, {}};
      const auto head = number_after(info.name, ".head");
      if (!head)
        add(parts, info.name, std::move(part), place);
      else if (!heads[info.name.substr(0, info.name.rfind(".head"))].emplace(*head, std::move(part)).second)
        throw Error(place + "two tensors are called " + info.name);
    }
  }
  for (auto& [name, members] : heads) add(parts, name, stacked(name, std::move(members), place), place);
  return parts;
}

}  // namespace

TensorFile open_folder(const fs::path& path, const Token& progress) {
  const std::string place = path.string() + ": ";
  LeftOut left_out(place, (path / "").string());
  Parts parts = parts_of(path, false, left_out, progress);
  std::map<std::string, std::map<std::size_t, Part>> sequences;
  for (const fs::path& entry : sorted_entries(path)) {
    const auto sequence = number_after(entry.filename().string(), "sequence");
    if (!sequence || !is_folder(entry)) continue;
    for (auto& [name, part] : parts_of(entry, true, left_out, progress))
      sequences[name].emplace(*sequence, std::move(part));
  }
  for (auto& [name, members] : sequences) add(parts, name, stacked(name, std::move(members), place), place);
  if (parts.empty())
    left_out.fail("expected a folder of tensors (.npy, .csv, .safetensors …), got none in it");
  std::vector<TensorFile::Entry> entries;
  for (auto& [name, part] : parts)
    entries.push_back({part.info, [shared = std::make_shared<const Part>(part)](
                                      std::span<const std::size_t> leading, const Token& p) {
                         return read(*shared, leading, p);
                       }});
  return {path, "folder", std::move(entries), left_out.notes()};
}

}  // namespace core::formats::readers

namespace core::formats {

namespace {

using Path = std::filesystem::path;

constexpr std::size_t longest_begin = 4096;

bool is_text(std::string_view begin) {
  return !begin.empty() && std::ranges::none_of(begin, [](char c) {
    return c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
}

constexpr const char* pytorch_endings = ".pt .pth .bin .pkl .ckpt";

/// Whether the name of a file ends as one of several endings with blanks between them.
bool ends_as(const Path& path, std::string_view endings) {
  const std::string name = path.filename().string();
  while (!endings.empty()) {
    const std::string_view ending = endings.substr(0, endings.find(' '));
    if (name.size() > ending.size() && name.ends_with(ending)) return true;
    endings.remove_prefix(std::min(ending.size() + 1, endings.size()));
  }
  return false;
}

constexpr std::array tensor_format_table{
    TensorFormat{"folder", "", "a folder of such files, such as attnscope exports",
                 [](const Path& path, std::string_view) {
                   std::error_code ignored;
                   return std::filesystem::is_directory(path, ignored);
                 },
                 readers::open_folder},
    TensorFormat{"npy", ".npy", "NumPy's file of one array",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_npy(begin) || path.extension() == ".npy";
                 },
                 readers::open_npy},
    TensorFormat{"npz", ".npz", "NumPy's archive of arrays",
                 [](const Path& path, std::string_view begin) {
                   return (readers::looks_like_zip(begin) && !readers::looks_like_pytorch(begin)) ||
                          path.extension() == ".npz";
                 },
                 readers::open_npz},
    TensorFormat{"gguf", ".gguf", "a model of llama.cpp, quantised or not",
                 [](const Path& path, std::string_view begin) {
                   return looks_like_gguf(begin) || path.extension() == ".gguf";
                 },
                 open_gguf},
    TensorFormat{"safetensors", ".safetensors", "a checkpoint of Hugging Face",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_safetensors(begin) || path.extension() == ".safetensors";
                 },
                 readers::open_safetensors},
    TensorFormat{"index", ".index.json", "a checkpoint of Hugging Face in several files",
                 readers::looks_like_index, readers::open_index},
    TensorFormat{"pytorch", pytorch_endings, "what torch.save wrote, if it holds only tensors",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_pytorch(begin) || ends_as(path, pytorch_endings);
                 },
                 readers::open_pytorch},
    TensorFormat{"table", ".csv .tsv", "a table with or without names of rows and columns",
                 [](const Path& path, std::string_view) {
                   return path.extension() == ".csv" || path.extension() == ".tsv";
                 },
                 readers::open_table},
    TensorFormat{
        "text", ".txt", "what PyTorch or NumPy printed, a JSON list, or numbers in rows",
        [](const Path&, std::string_view begin) { return is_text(begin) && !begin.starts_with('{'); },
        readers::open_text},
};

}  // namespace

std::string tensor_endings() {
  std::string text;
  for (const TensorFormat& f : tensor_format_table)
    if (*f.endings) text += (text.empty() ? "" : " ") + std::string(f.endings);
  return text;
}

bool is_index_of_tensors(const Path& path) {
  return readers::looks_like_index(path, read_begin(path, longest_begin));
}

std::span<const TensorFormat> tensor_formats() {
  return tensor_format_table;
}

const TensorFormat& tensor_format_of(const Path& path) {
  const std::string begin = read_begin(path, longest_begin);
  if (const std::string words = readers::words_on_stranger(path, begin); !words.empty())
    throw Error(path.string() + ": " + words);
  const auto row = std::ranges::find_if(tensor_format_table,
                                        [&](const TensorFormat& f) { return f.is_meant(path, begin); });
  if (row == tensor_format_table.end())
    throw Error(path.string() + ": expected a file of tensors (" + tensor_endings() + ")");
  return *row;
}

bool has_tensor_ending(const Path& path) {
  return std::ranges::any_of(tensor_format_table,
                             [&](const TensorFormat& f) { return ends_as(path, f.endings); });
}

TensorFile open_tensors(const std::filesystem::path& path) {
  Token progress;
  return open_tensors(path, progress);
}

TensorFile open_tensors(const std::filesystem::path& path, const Token& progress) {
  return tensor_format_of(path).open(path, progress);
}

}  // namespace core::formats
