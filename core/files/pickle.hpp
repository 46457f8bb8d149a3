#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/tensor_formats.hpp"

namespace core::formats::readers {

/// The bytes of a file from one on, taken one after the other.
class PickleBytes {
 public:
  /// Up to the byte before end; place begins every message.
  PickleBytes(Fetch fetch, std::uint64_t from, std::uint64_t end, std::string place, const Token& progress);

  /// The next bytes, which stay until more are taken. Throws core::Error when there are not so many left,
  /// Stopped when that was asked for.
  std::string_view take(std::uint64_t count);
  /// The bytes up to the end of a line, which is passed over.
  std::string line();
  /// The number that the next bytes are, the lowest first; of up to eight.
  std::uint64_t number(std::uint64_t n_bytes);

  /// Where in the file the next byte stands.
  std::uint64_t at() const { return at_; }
  /// Goes on at another byte of the file, which must not lie beyond its end.
  void go_to(std::uint64_t at);
  const std::string& place() const { return place_; }
  /// Throws core::Error: "PLACEdamaged pickle: WHAT at byte 12".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  Fetch fetch_;
  std::uint64_t at_, end_;
  std::string place_;
  const Token& progress_;
  std::string buffer_, fetched_;
  std::string_view window_;  ///< the end of fetched_: bytes of the file from at_ on
};

/// A value that a pickle holds; others stand in it by their index among all.
struct PickleValue {
  using Index = std::uint32_t;
  enum class Kind {
    none,
    boolean,
    whole,
    large,  ///< a whole number beyond int64
    real,
    text,
    bytes,
    list,
    tuple,
    dict,
    name,    ///< of a function or class
    object,  ///< what a function or class that is none of ours would give: nothing is called or made
    storage,
    tensor
  };
  Kind kind = Kind::none;
  std::int64_t whole = 0;    ///< a whole number; which of the storages or tensors it is
  std::string text;          ///< a text, bytes, those of a large number; "module.name" of a name
  std::vector<Index> items;  ///< of a list or tuple; keys and values of a dict in turn; an object's maker
};

using PickleKind = PickleValue::Kind;

/// Where a tensor's numbers are, in the words of PyTorch.
struct PickledStorage {
  std::string key;
  Dtype dtype = Dtype::u8;  ///< of one that has no type, bytes
  std::uint64_t count = 0;  ///< of numbers of the type
};

/// A tensor as PyTorch writes it: a view of a storage.
struct PickledTensor {
  std::size_t storage = 0;
  Dtype dtype = Dtype::f32;
  std::uint64_t offset = 0;  ///< of its first number, in numbers
  Shape shape;
  Strides strides;
};

/// More are refused.
constexpr std::size_t most_pickled_tensors = std::size_t{1} << 16;

/// What one pickle holds.
struct Pickle {
  std::vector<PickleValue> values;
  PickleValue::Index root = 0;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;
  std::string foreign;  ///< the first function or class that is none of ours, or ""

  /// "module.name" of a name, or of what would make an object.
  const std::string& name_of(const PickleValue& value) const {
    return value.kind == PickleValue::Kind::object ? values[value.items.front()].text : value.text;
  }
};

/// Reads one pickle of Python, of protocol 2 to 5, up to its end. Nothing that it names is looked up or run.
///
/// It may hold tensors of PyTorch, dicts, lists, tuples, texts, bytes and numbers; of what else it would make
/// or call only the name is kept, to be refused. Throws core::Error for a torch.nn.Module, when it is
/// damaged, and when it has more than a million values. Source: Python, Lib/pickletools.py.
Pickle read_pickle(PickleBytes& bytes);

/// Whether bytes begin as a pickle of protocol 0 or 1 does.
bool looks_like_old_pickle(std::string_view begin);

/// Throws core::Error: what to do with a pickle of protocol 0 or 1.
[[noreturn]] void refuse_old_pickle(const std::string& place);

/// The tensors of a pickle under their names, and what else is in it.
struct PickledNames {
  struct Named {
    std::string name;
    std::size_t tensor;  ///< which of Pickle::tensors
  };
  std::vector<Named> tensors;
  std::size_t n_others = 0;               ///< values that are no tensors
  std::vector<std::string> first_others;  ///< names of the first few of them
};

/// Names of nested dicts and lists are joined by dots; a tensor alone is called as the file.
///
/// Throws core::Error, "PLACEwhat is wrong", when there is no tensor, two have one name, a key is no name, an
/// object is among them, or they are nested without end.
PickledNames named_tensors(const Pickle& pickle, const std::string& stem, const std::string& place);

/// "Left out as no tensors: epoch, loss, lr and 35 more.", or "".
std::string words_on_others(const PickledNames& names);

/// What calling a name with a tuple of arguments would give, when it is one that tensors are made with: a
/// tensor, a dict, a tuple or bytes; or nothing.
///
/// Throws core::Error for arguments that do not fit.
std::optional<PickleValue> called(Pickle& pickle, const PickleValue& function, const PickleValue& arguments,
                                  const std::string& place);

/// The storage that a tuple ('storage', type, key, device, count) names, or the class of a module that one of
/// ('module', class, …) does. Throws core::Error.
PickleValue storage_named(Pickle& pickle, const PickleValue& tuple, const std::string& place);

/// Throws core::Error when the state that an object gets is that of a module; the outermost is called so.
void refuse_module(const Pickle& pickle, const PickleValue& state, const std::string& outermost,
                   const std::string& place);

/// Throws core::Error for a function or a class that is none of ours, with what to do instead.
[[noreturn]] void refuse_name(const std::string& name, const std::string& place);

/// Whether a name is that of a type of numbers, such as torch.float32.
bool names_dtype(std::string_view name);

}  // namespace core::formats::readers
