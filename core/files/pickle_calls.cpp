#include "core/files/pickle_calls.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/files/json.hpp"

namespace core::formats::readers {
namespace {

constexpr std::size_t longest_key = 100;

struct StorageType {
  const char* name;
  Dtype dtype;
};
constexpr std::array storage_types{StorageType{"torch.DoubleStorage", Dtype::f64},
                                   StorageType{"torch.FloatStorage", Dtype::f32},
                                   StorageType{"torch.HalfStorage", Dtype::f16},
                                   StorageType{"torch.BFloat16Storage", Dtype::bf16},
                                   StorageType{"torch.LongStorage", Dtype::i64},
                                   StorageType{"torch.IntStorage", Dtype::i32},
                                   StorageType{"torch.ShortStorage", Dtype::i16},
                                   StorageType{"torch.CharStorage", Dtype::i8},
                                   StorageType{"torch.ByteStorage", Dtype::u8},
                                   StorageType{"torch.BoolStorage", Dtype::boolean},
                                   StorageType{"torch.storage.UntypedStorage", Dtype::u8},
                                   StorageType{"torch.UntypedStorage", Dtype::u8}};

/// What to do about a name, by what it begins with; the last fits all.
struct Advice {
  const char* begins;
  const char* words;
};
constexpr std::array advices{Advice{"numpy.", "save arrays with numpy.savez"},
                             Advice{"torch.storage._load_from_bytes", "save them with torch.save"},
                             Advice{"__torch__", "save module.state_dict()"},
                             Advice{"torch._utils._rebuild_sparse", "save tensor.to_dense()"},
                             Advice{"torch._utils._rebuild_qtensor", "save tensor.dequantize()"},
                             Advice{"torch.Complex", "save torch.view_as_real(tensor)"},
                             Advice{"", "save them alone, such as model.state_dict()"}};

/// A name as a message shows it: it comes from a stranger's file.
std::string shown(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return name.size() <= 100 && std::ranges::all_of(name, is_plain) ? name : quoted_briefly(name);
}

std::optional<Dtype> dtype_of(std::string_view name) {
  if (!name.starts_with("torch.")) return std::nullopt;
  name.remove_prefix(6);
  for (int k = 0; k < static_cast<int>(Dtype::text); ++k)
    if (name == dtype_name(static_cast<Dtype>(k))) return static_cast<Dtype>(k);
  return std::nullopt;
}

/// The arguments of a call, each looked up and of the kind that is wanted.
class Arguments {
 public:
  Arguments(const Pickle& pickle, const PickleValue& tuple, const std::string& place, const std::string& of)
      : pickle_(pickle), tuple_(tuple), file_place_(place), place_(place + "damaged: " + of + ": ") {}

  std::size_t count() const { return tuple_.items.size(); }
  const PickleValue& at(std::size_t index, PickleKind kind, const char* expected) const {
    const PickleValue* value = any(index);
    if (value && value->kind == PickleKind::object) refuse_name(pickle_.name_of(*value), file_place_);
    if (!value || value->kind != kind)
      throw Error(place_ + "expected " + expected + " as argument " + std::to_string(index));
    return *value;
  }
  const PickleValue* any(std::size_t index) const {
    return index < count() ? &pickle_.values[tuple_.items[index]] : nullptr;
  }
  std::uint64_t whole(std::size_t index, const char* expected) const {
    return not_negative(at(index, PickleKind::whole, expected), expected);
  }
  std::vector<std::uint64_t> wholes(std::size_t index, const char* expected) const {
    const PickleValue& list = at(index, PickleKind::tuple, expected);
    if (list.items.size() > most_dimensions)
      throw Error(place_ + "expected at most 32 dimensions, got " + std::to_string(list.items.size()));
    std::vector<std::uint64_t> numbers;
    for (const auto item : list.items) numbers.push_back(not_negative(pickle_.values[item], expected));
    return numbers;
  }

 private:
  std::uint64_t not_negative(const PickleValue& value, const char* expected) const {
    if (value.kind != PickleKind::whole || value.whole < 0)
      throw Error(place_ + "expected " + expected + ", got no number from 0");
    return static_cast<std::uint64_t>(value.whole);
  }

  const Pickle& pickle_;
  const PickleValue& tuple_;
  const std::string& file_place_;
  std::string place_;
};

/// torch._utils._rebuild_tensor, _v2 and _v3, which has a type of its own.
PickleValue rebuilt(Pickle& pickle, const Arguments& arguments, bool typed, const std::string& place) {
  PickledTensor tensor;
  tensor.storage = static_cast<std::size_t>(arguments.at(0, PickleKind::storage, "a storage").whole);
  tensor.offset = arguments.whole(1, "an offset");
  const auto lengths = arguments.wholes(2, "lengths");
  tensor.shape.assign(lengths.begin(), lengths.end());
  tensor.strides = arguments.wholes(3, "strides");
  if (tensor.strides.size() != tensor.shape.size())
    throw Error(place + "damaged: expected a stride for each of " + std::to_string(tensor.shape.size()) +
                " lengths, got " + std::to_string(tensor.strides.size()));
  tensor.dtype = pickle.storages[tensor.storage].dtype;
  if (typed) {
    const PickleValue& name = arguments.at(6, PickleKind::name, "a type of numbers");
    const auto dtype = dtype_of(name.text);
    if (!dtype)
      throw Error(place + "holds numbers of the type " + shown(name.text) +
                  ", which are not read: save them as float32");
    tensor.dtype = *dtype;
  }
  const PickleValue* about = arguments.any(typed ? 7 : 6);  // a view that is negated or conjugate
  if (about && about->kind != PickleKind::none && !about->items.empty())
    throw Error(place + "holds a tensor that is not stored as it is: save tensor.resolve_neg().clone()");
  if (pickle.tensors.size() == most_pickled_tensors)
    throw Error(place + "expected at most 2^16 tensors, got more");
  pickle.tensors.push_back(std::move(tensor));
  PickleValue value{PickleKind::tensor, 0, {}, {}};
  value.whole = static_cast<std::int64_t>(pickle.tensors.size() - 1);
  return value;
}

/// collections.OrderedDict, of nothing or, as Python 2 wrote it, of a list of pairs.
PickleValue ordered_dict(const Pickle& pickle, const Arguments& arguments, const std::string& place) {
  PickleValue dict{PickleKind::dict, 0, {}, {}};
  if (arguments.count() == 0) return dict;
  for (const auto item : arguments.at(0, PickleKind::list, "a list of pairs").items) {
    const PickleValue& pair = pickle.values[item];
    if (pair.items.size() != 2 || (pair.kind != PickleKind::list && pair.kind != PickleKind::tuple))
      throw Error(place + "damaged: expected pairs of a key and a value");
    dict.items.insert(dict.items.end(), pair.items.begin(), pair.items.end());
  }
  return dict;
}

bool has_key(const Pickle& pickle, const PickleValue& dict, std::string_view key) {
  if (dict.kind != PickleKind::dict) return false;
  for (std::size_t k = 0; k < dict.items.size(); k += 2)
    if (pickle.values[dict.items[k]].text == key) return true;
  return false;
}

}  // namespace

bool names_dtype(std::string_view name) {
  return dtype_of(name).has_value();
}

void refuse_name(const std::string& name, const std::string& place) {
  const auto advice =
      std::ranges::find_if(advices, [&](const Advice& a) { return name.starts_with(a.begins); });
  throw Error(place + "holds " + shown(name) + ", only tensors can be read: " + advice->words);
}

void refuse_module(const Pickle& pickle, const PickleValue& state, const std::string& outermost,
                   const std::string& place) {
  if (has_key(pickle, state, "_parameters") && has_key(pickle, state, "_modules"))
    throw Error(place + "holds a torch.nn.Module (" + shown(outermost) +
                "), only tensors can be read: save model.state_dict()");
}

std::optional<PickleValue> called(Pickle& pickle, const PickleValue& function, const PickleValue& tuple,
                                  const std::string& place) {
  const std::string& name = function.text;
  const Arguments arguments(pickle, tuple, place, shown(name));
  if (name == "collections.OrderedDict") return ordered_dict(pickle, arguments, place);
  if (name == "torch.Size") {
    const PickleValue* lengths = arguments.any(0);
    if (!lengths) return PickleValue{PickleKind::tuple, 0, {}, {}};
    return arguments.at(0, PickleKind::tuple, "lengths");
  }
  if (name == "torch._utils._rebuild_parameter") return arguments.at(0, PickleKind::tensor, "a tensor");
  if (name == "torch._utils._rebuild_tensor_v3") return rebuilt(pickle, arguments, true, place);
  if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor")
    return rebuilt(pickle, arguments, false, place);
  if (name == "_codecs.encode" || name == "__builtin__.bytes")  // as protocol 2 writes bytes
    return PickleValue{PickleKind::bytes, 0, {}, {}};
  return std::nullopt;
}

PickleValue storage_named(Pickle& pickle, const PickleValue& tuple, const std::string& place) {
  const Arguments arguments(pickle, tuple, place, "storage");
  if (tuple.kind != PickleKind::tuple) throw Error(place + "damaged: expected a storage by its key");
  const std::string& word = arguments.at(0, PickleKind::text, "a word").text;
  if (word == "module") return arguments.at(1, PickleKind::name, "a class");
  if (word != "storage") throw Error(place + "damaged: expected a storage by its key");
  const PickleValue& type = arguments.at(1, PickleKind::name, "a type of storage");
  const StorageType* known = find_by(storage_types, type.text, &StorageType::name);
  if (!known) refuse_name(type.text, place);
  const std::string& key = arguments.at(2, PickleKind::text, "a key").text;
  if (key.size() > longest_key)
    throw Error(place + "damaged: expected the key of a storage, got " + quoted_briefly(key));
  PickledStorage storage{key, known->dtype, 0};
  storage.count = arguments.whole(4, "the count of its numbers");
  if (const PickleValue* view = arguments.any(5); view && view->kind != PickleKind::none)
    throw Error(place + "holds a storage within a storage, as PyTorch before 0.4 wrote it: save it anew");
  pickle.storages.push_back(std::move(storage));
  PickleValue value{PickleKind::storage, 0, {}, {}};
  value.whole = static_cast<std::int64_t>(pickle.storages.size() - 1);
  return value;
}

}  // namespace core::formats::readers
