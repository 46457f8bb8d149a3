#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/readers.hpp"
#include "core/files/tensor.hpp"

/// Python pickles that describe tensors, as torch.save writes them.
namespace core::formats::readers {

/// Maximum number of values in a pickle, and of its tensors.
constexpr std::size_t max_pickled_values = std::size_t{1} << 20, max_pickled_tensors = std::size_t{1} << 16;

/// Kind of a value in a pickle.
enum class PickleKind {
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
  object,  ///< the result of an unknown function or class, which is not called; its items are kept
  storage,
  tensor
};

/// A value in a pickle; it refers to other values by their index.
struct PickleValue {
  using Index = std::uint32_t;
  PickleKind kind = PickleKind::none;
  std::int64_t whole = 0;         ///< a whole number; the index of a storage, tensor or object
  std::string text = {};          ///< a text, bytes, or the bytes of a large number; "module.name" of a name
  std::vector<Index> items = {};  ///< of a list, tuple or object; keys and values of a dict alternately
};

/// A storage of PyTorch, which holds the numbers of tensors.
struct PickledStorage {
  std::string key;
  Dtype dtype = Dtype::u8;  ///< bytes if it is untyped
  std::uint64_t count = 0;  ///< in numbers of dtype
};

/// A tensor as PyTorch writes it: a view of a storage.
struct PickledTensor {
  std::size_t storage = 0;
  Dtype dtype = Dtype::f32;
  std::uint64_t offset = 0;  ///< of its first number, in numbers
  TensorShape shape;
  Strides strides;
};

/// An object in a pickle that is no tensor or plain value.
struct UnknownObject {
  std::string name;         ///< of its function or class: "argparse.Namespace"
  std::string problem;      ///< why it is not read: "holds argparse.Namespace, only tensors can be read: …"
  bool is_of_keys = false;  ///< its items are keys and values, as those of a dict
};

/// Content of one pickle.
struct Pickle {
  std::vector<PickleValue> values;
  PickleValue::Index root = 0;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;
  std::vector<UnknownObject> objects;
  std::string module_problem;  ///< what to do about a torch.nn.Module in it, or ""

  const UnknownObject& object_of(const PickleValue& value) const {
    return objects[static_cast<std::size_t>(value.whole)];
  }
};

/// Reads the pickle at byte `at` of a text and sets `at` to its end. Nothing that it names is looked up or
/// run.
///
/// It may be of protocol 2 to 5 and hold tensors of PyTorch, dicts, lists, tuples, texts, bytes and numbers;
/// of other functions and classes only the name is kept, and the items that are added to their objects, as to
/// those of classes that extend dict or tuple. Throws core::Error, "PLACEdamaged pickle: …", when it is
/// damaged, and when it has more than a million values. Source: Python, Lib/pickletools.py.
Pickle read_pickle(std::string_view content, std::uint64_t& at, const std::string& place);

/// Throws core::Error for a pickle of protocol 0 or 1.
[[noreturn]] void refuse_old_pickle(const std::string& place);

/// Returns the dtype of a name such as "torch.float16", or nothing.
std::optional<Dtype> dtype_of_torch_name(std::string_view name);

/// Returns why the objects of a function or class are not read, and what to do: "holds argparse.Namespace,
/// only tensors can be read: …".
std::string problem_of_name(const std::string& name);

/// Returns the name of a function or class for a message: the file may contain any bytes.
std::string printable_name(const std::string& name);

}  // namespace core::formats::readers
