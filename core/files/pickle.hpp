#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/pickle_bytes.hpp"
#include "core/files/raw_tensor.hpp"

namespace core::formats::readers {

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

}  // namespace core::formats::readers
