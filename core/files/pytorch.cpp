#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/readers.hpp"

/// Files of torch.save: a Python pickle that describes tensors, and their numbers.
namespace core::formats::readers {
namespace {

using std::uint64_t;
using namespace std::string_view_literals;

// Limits beyond which a file is refused.
constexpr uint64_t max_pickle = uint64_t{1} << 26;  // bytes
constexpr uint64_t max_item = uint64_t{1} << 24;    // bytes of a text
constexpr std::size_t max_values = std::size_t{1} << 20, max_tensors = std::size_t{1} << 16, max_depth = 64;
constexpr std::size_t max_line = 4096, max_key = 100, max_name = 1000, max_name_bytes = std::size_t{1} << 24;

/// Sequential reader of the bytes of a pickle; place begins every message.
class PickleBytes {
 public:
  PickleBytes(std::string_view bytes, std::string place) : bytes_(bytes), place_(std::move(place)) {}

  uint64_t at() const { return at_; }
  const std::string& place() const { return place_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}damaged pickle: {} at byte {}", place_, what, at_));
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) fail(fmt::format("expected {} more bytes, got the end", count));
    if (count > max_item) fail("expected a text of at most 2^24 bytes, got one of " + std::to_string(count));
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  /// Returns the bytes up to the end of the line, which is skipped.
  std::string line() {
    const std::size_t length = bytes_.substr(at_).find('\n');
    if (length == bytes_.npos) fail("expected 1 more bytes, got the end");
    if (length > max_line) fail("expected the end of a line");
    return std::string(take(length + 1).substr(0, length));
  }
  /// Reads a little-endian number of up to eight bytes.
  uint64_t number(uint64_t n_bytes) { return little_endian(take(n_bytes)); }

 private:
  std::string_view bytes_;
  std::string place_;
  uint64_t at_ = 0;
};

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
  object,  ///< the result of an unknown function or class, which is not called
  storage,
  tensor
};

/// A value in a pickle; it refers to other values by their index.
struct PickleValue {
  using Index = std::uint32_t;
  PickleKind kind = PickleKind::none;
  std::int64_t whole = 0;  ///< a whole number; the index of a storage or tensor
  std::string text = {};   ///< a text, bytes, or the bytes of a large number; "module.name" of a name
  std::vector<Index> items =
      {};  ///< of a list or tuple; keys and values of a dict alternately; function or class of an object
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

/// Content of one pickle.
struct Pickle {
  std::vector<PickleValue> values;
  PickleValue::Index root = 0;
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;
  std::string unknown_name;  ///< the first unknown function or class, or ""

  /// Returns the "module.name" of a name, or of the function or class of an object.
  const std::string& name_of(const PickleValue& value) const {
    return value.kind == PickleKind::object ? values[value.items.front()].text : value.text;
  }
};

/// Returns the dtype of a storage class such as "torch.FloatStorage", bytes if it is untyped, or nothing.
std::optional<Dtype> dtype_of_storage(std::string_view name) {
  if (name == "torch.storage.UntypedStorage" || name == "torch.UntypedStorage") return Dtype::u8;
  constexpr std::string_view begin = "torch.", end = "Storage";
  if (!name.starts_with(begin) || !name.ends_with(end)) return std::nullopt;
  name.remove_prefix(begin.size());
  return find_dtype(name.substr(0, name.size() - end.size()), &DtypeNames::storage);
}

/// Advice on an unknown name, by its prefix; the last one fits all.
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

/// Returns a name for a message: the file may contain any bytes.
std::string printable_name(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return name.size() <= 100 && std::ranges::all_of(name, is_plain) ? name : quoted_briefly(name);
}

/// Throws core::Error for an unknown function or class, with advice.
[[noreturn]] void refuse_name(const std::string& name, const std::string& place) {
  const auto advice =
      std::ranges::find_if(advices, [&](const Advice& a) { return name.starts_with(a.begins); });
  throw Error(place + "holds " + printable_name(name) + ", only tensors can be read: " + advice->words);
}

std::optional<Dtype> dtype_of(std::string_view name) {
  constexpr std::string_view begin = "torch.";
  return name.starts_with(begin) ? find_dtype(name.substr(begin.size()), &DtypeNames::name) : std::nullopt;
}

/// Arguments of a call, looked up and checked for their kind.
class CallArguments {
 public:
  CallArguments(const Pickle& pickle, const PickleValue& tuple, const std::string& place,
                const std::string& of)
      : pickle_(pickle), tuple_(tuple), file_place_(place), place_(place + "damaged: " + of + ": ") {}

  std::size_t count() const { return tuple_.items.size(); }
  const PickleValue& at(std::size_t index, PickleKind kind, const char* expected) const {
    const PickleValue* value = any(index);
    if (value && value->kind == PickleKind::object) refuse_name(pickle_.name_of(*value), file_place_);
    if (!value || value->kind != kind)
      throw Error(fmt::format("{}expected {} as argument {}", place_, expected, index));
    return *value;
  }
  const PickleValue* any(std::size_t index) const {
    return index < count() ? &pickle_.values[tuple_.items[index]] : nullptr;
  }
  std::uint64_t whole(std::size_t index, const char* expected) const {
    return not_negative(at(index, PickleKind::whole, expected), expected);
  }
  std::vector<std::uint64_t> whole_numbers(std::size_t index, const char* expected) const {
    const PickleValue& list = at(index, PickleKind::tuple, expected);
    if (list.items.size() > max_dimensions)
      throw Error(fmt::format("{}expected at most 32 dimensions, got {}", place_, list.items.size()));
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

/// Does the same as torch._utils._rebuild_tensor, _v2 and _v3, which has its own dtype (typed).
PickleValue rebuild_tensor(Pickle& pickle, const CallArguments& arguments, bool typed,
                           const std::string& place) {
  PickledTensor tensor;
  tensor.storage = static_cast<std::size_t>(arguments.at(0, PickleKind::storage, "a storage").whole);
  tensor.offset = arguments.whole(1, "an offset");
  const auto lengths = arguments.whole_numbers(2, "lengths");
  tensor.shape.assign(lengths.begin(), lengths.end());
  tensor.strides = arguments.whole_numbers(3, "strides");
  if (tensor.strides.size() != tensor.shape.size())
    throw Error(fmt::format("{}damaged: expected a stride for each of {} lengths, got {}", place,
                            tensor.shape.size(), tensor.strides.size()));
  tensor.dtype = pickle.storages[tensor.storage].dtype;
  if (typed) {
    const PickleValue& name = arguments.at(6, PickleKind::name, "a type of numbers");
    const auto dtype = dtype_of(name.text);
    if (!dtype)
      throw Error(place + "holds numbers of the type " + printable_name(name.text) +
                  ", which are not read: save them as float32");
    tensor.dtype = *dtype;
  }
  const PickleValue* about = arguments.any(typed ? 7 : 6);  // set for a negated or conjugate view
  if (about && about->kind != PickleKind::none && !about->items.empty())
    throw Error(place + "holds a tensor that is not stored as it is: save tensor.resolve_neg().clone()");
  if (pickle.tensors.size() == max_tensors) throw Error(place + "expected at most 2^16 tensors, got more");
  pickle.tensors.push_back(std::move(tensor));
  return {PickleKind::tensor, static_cast<std::int64_t>(pickle.tensors.size() - 1)};
}

/// Returns a collections.OrderedDict, empty or, as written by Python 2, from a list of pairs.
PickleValue ordered_dict(const Pickle& pickle, const CallArguments& arguments, const std::string& place) {
  PickleValue dict{PickleKind::dict};
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

/// Throws core::Error when the state of an object is that of a torch.nn.Module; outermost is its class.
void refuse_module(const Pickle& pickle, const PickleValue& state, const std::string& outermost,
                   const std::string& place) {
  if (has_key(pickle, state, "_parameters") && has_key(pickle, state, "_modules"))
    throw Error(place + "holds a torch.nn.Module (" + printable_name(outermost) +
                "), only tensors can be read: save model.state_dict()");
}

/// Returns the result of calling a known function that builds tensors: a tensor, a dict, a tuple or bytes; or
/// nothing for any other function.
///
/// Throws core::Error for arguments that do not fit.
std::optional<PickleValue> call_known_function(Pickle& pickle, const PickleValue& function,
                                               const PickleValue& tuple, const std::string& place) {
  const std::string& name = function.text;
  const CallArguments arguments(pickle, tuple, place, printable_name(name));
  if (name == "collections.OrderedDict") return ordered_dict(pickle, arguments, place);
  if (name == "torch.Size") {
    const PickleValue* lengths = arguments.any(0);
    if (!lengths) return PickleValue{PickleKind::tuple};
    return arguments.at(0, PickleKind::tuple, "lengths");
  }
  if (name == "torch._utils._rebuild_parameter") return arguments.at(0, PickleKind::tensor, "a tensor");
  if (name == "torch._utils._rebuild_tensor_v3") return rebuild_tensor(pickle, arguments, true, place);
  if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor")
    return rebuild_tensor(pickle, arguments, false, place);
  if (name == "_codecs.encode" || name == "__builtin__.bytes")  // as protocol 2 writes bytes
    return PickleValue{PickleKind::bytes};
  return std::nullopt;
}

/// Returns the storage for a tuple ('storage', type, key, device, count), or the class for ('module', class,
/// …). Throws core::Error.
PickleValue resolve_persistent_id(Pickle& pickle, const PickleValue& tuple, const std::string& place) {
  const CallArguments arguments(pickle, tuple, place, "storage");
  if (tuple.kind != PickleKind::tuple) throw Error(place + "damaged: expected a storage by its key");
  const std::string& word = arguments.at(0, PickleKind::text, "a word").text;
  if (word == "module") return arguments.at(1, PickleKind::name, "a class");
  if (word != "storage") throw Error(place + "damaged: expected a storage by its key");
  const PickleValue& type = arguments.at(1, PickleKind::name, "a type of storage");
  const auto dtype = dtype_of_storage(type.text);
  if (!dtype) refuse_name(type.text, place);
  const std::string& key = arguments.at(2, PickleKind::text, "a key").text;
  if (key.size() > max_key)
    throw Error(place + "damaged: expected the key of a storage, got " + quoted_briefly(key));
  PickledStorage storage{key, *dtype, 0};
  storage.count = arguments.whole(4, "the count of its numbers");
  if (const PickleValue* view = arguments.any(5); view && view->kind != PickleKind::none)
    throw Error(place + "holds a storage within a storage, as PyTorch before 0.4 wrote it: save it anew");
  pickle.storages.push_back(std::move(storage));
  return {PickleKind::storage, static_cast<std::int64_t>(pickle.storages.size() - 1)};
}

constexpr std::size_t highest_protocol = 5;
constexpr unsigned char protocol_follows = 0x80;  // from protocol 2 on, the first opcode

[[noreturn]] void refuse_old_pickle(const std::string& place) {
  throw Error(
      place +
      "is a pickle of protocol 0 or 1, only 2 to 5 are read: save it again with torch.save as it does by "
      "itself, numpy.savez or safetensors");
}

/// Reader of one Python pickle, of protocol 2 to 5. Nothing that it names is looked up or run.
///
/// It may hold tensors of PyTorch, dicts, lists, tuples, texts, bytes and numbers; of other functions and
/// classes only the name is kept, to be refused. Throws core::Error for a torch.nn.Module, when it is
/// damaged, and when it has more than a million values. Source: Python, Lib/pickletools.py.
class Unpickler {
 public:
  explicit Unpickler(PickleBytes& bytes) : bytes_(bytes) {
    for (const PickleKind kind : {PickleKind::none, PickleKind::boolean}) pickle_.values.push_back({kind});
  }

  Pickle read() {
    for (bool is_first = true;; is_first = false) {
      const auto code = static_cast<unsigned char>(bytes_.take(1)[0]);
      if (is_first) says_protocol_ = code == protocol_follows;
      if (code == '.') break;
      execute(code);
    }
    pickle_.root = pop();
    return std::move(pickle_);
  }

 private:
  void push(PickleValue::Index index) {
    if (stack_.size() == max_values) bytes_.fail("expected at most 2^20 values on its stack, got more");
    stack_.push_back(index);
  }
  PickleValue& new_value(PickleKind kind) {
    if (pickle_.values.size() == max_values) bytes_.fail("expected at most 2^20 values, got more");
    push(static_cast<PickleValue::Index>(pickle_.values.size()));
    return pickle_.values.emplace_back(PickleValue{kind});
  }
  void push_value(PickleValue value) { new_value(value.kind) = std::move(value); }

  PickleValue::Index pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) bytes_.fail("expected a value, got none");
    const PickleValue::Index index = stack_.back();
    stack_.pop_back();
    return index;
  }
  PickleValue::Index top() {
    const PickleValue::Index index = pop();
    stack_.push_back(index);
    return index;
  }
  std::vector<PickleValue::Index> pop_to_mark() {
    if (marks_.empty()) bytes_.fail("expected a mark, got none");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue::Index> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<PickleValue::Index> pop_some(std::size_t count) {
    std::vector<PickleValue::Index> items(count);
    for (std::size_t k = count; k-- > 0;) items[k] = pop();
    return items;
  }

  const PickleValue& value(PickleValue::Index index) const { return pickle_.values[index]; }
  const std::string& text_of(PickleValue::Index index) {
    if (value(index).kind != PickleKind::text) bytes_.fail("expected a text");
    return value(index).text;
  }

  void push_whole(std::int64_t number) { new_value(PickleKind::whole).whole = number; }
  /// Pushes a little-endian signed number of n_bytes.
  void push_long(std::uint64_t n_bytes) {
    if (n_bytes > 8) return push_value({PickleKind::large, 0, std::string(bytes_.take(n_bytes)), {}});
    const std::uint64_t unused = 64 - 8 * n_bytes;
    const std::uint64_t number = n_bytes == 0 ? 0 : bytes_.number(n_bytes) << unused;
    push_whole(n_bytes == 0 ? 0 : std::bit_cast<std::int64_t>(number) >> unused);
  }

  void push_text(PickleKind kind, std::uint64_t n_length_bytes) {
    push_value({kind, 0, std::string(bytes_.take(bytes_.number(n_length_bytes))), {}});
  }

  /// Executes an opcode.
  void execute(unsigned char code) {
    switch (code) {
      // numbers
      case 'N':
        return push(0);
      case 0x88:
      case 0x89:
        return push(1);
      case 'K':
        return push_whole(static_cast<std::int64_t>(bytes_.number(1)));
      case 'M':
        return push_whole(static_cast<std::int64_t>(bytes_.number(2)));
      case 'J':
        return push_long(4);
      case 0x8a:
        return push_long(bytes_.number(1));
      case 0x8b:
        return push_long(bytes_.number(4));
      case 'G':
        bytes_.take(8);
        return push_value({PickleKind::real});
      // texts and bytes
      case 0x8c:
      case 'U':  // of Python 2
        return push_text(PickleKind::text, 1);
      case 'X':
      case 'T':
        return push_text(PickleKind::text, 4);
      case 0x8d:
        return push_text(PickleKind::text, 8);
      case 'C':
        return push_text(PickleKind::bytes, 1);
      case 'B':
        return push_text(PickleKind::bytes, 4);
      case 0x8e:
      case 0x96:
        return push_text(PickleKind::bytes, 8);
      // lists, tuples and dicts
      case '(':
        if (marks_.size() == max_values) bytes_.fail("expected at most 2^20 marks, got more");
        return marks_.push_back(stack_.size());
      case ')':
        return push_value({PickleKind::tuple});
      case 0x85:
      case 0x86:
      case 0x87:
        return push_value({PickleKind::tuple, 0, {}, pop_some(code - 0x84u)});
      case 't':
        return push_value({PickleKind::tuple, 0, {}, pop_to_mark()});
      case ']':
        return push_value({PickleKind::list});
      case 'l':
        return push_value({PickleKind::list, 0, {}, pop_to_mark()});
      case 'a':
        return add(pop_some(1), PickleKind::list);
      case 'e':
        return add(pop_to_mark(), PickleKind::list);
      case '}':
        return push_value({PickleKind::dict});
      case 'd': {
        const std::vector<PickleValue::Index> items = pop_to_mark();
        push_value({PickleKind::dict});
        return add(items, PickleKind::dict);
      }
      case 's':
        return add(pop_some(2), PickleKind::dict);
      case 'u':
        return add(pop_to_mark(), PickleKind::dict);
      case 0x8f:
      case 0x91:
        refuse_name("a set", bytes_.place());
      // the stack and the memo
      case '0':
        pop();
        return;
      case '1':
        pop_to_mark();
        return;
      case '2':
        return push(top());
      case 'q':
        return memoize(bytes_.number(1));
      case 'r':
        return memoize(bytes_.number(4));
      case 0x94:
        return memoize(memo_.size());
      case 'h':
        return push_memoized(bytes_.number(1));
      case 'j':
        return push_memoized(bytes_.number(4));
      // names and calls
      case protocol_follows:
        if (bytes_.number(1) > highest_protocol) bytes_.fail("expected protocol 2 to 5, got a later one");
        return;
      case 0x95:  // a frame: only its length
        bytes_.take(8);
        return;
      case 'c': {
        const std::string module = bytes_.line();
        return push_value({PickleKind::name, 0, module + "." + bytes_.line(), {}});
      }
      case 0x93: {
        const std::string& name = text_of(pop());
        const std::string& module = text_of(pop());
        count_copied(module.size() + name.size());
        return push_value({PickleKind::name, 0, module + "." + name, {}});
      }
      case 'R':
        return call();
      case 0x92:
        pop();  // keyword arguments
        [[fallthrough]];
      case 0x81:
        return push_object();
      case 'b':
        return set_state();
      case 'Q': {
        const PickleValue::Index tuple = pop();
        PickleValue named = resolve_persistent_id(pickle_, value(tuple), bytes_.place());
        count_copied(named.text.size());
        return push_value(std::move(named));
      }
      default:
        if (!says_protocol_) refuse_old_pickle(bytes_.place());
        bytes_.fail("expected a pickle of protocol 2 to 5, got opcode " + std::to_string(code));
    }
  }

  void add(const std::vector<PickleValue::Index>& items, PickleKind kind) {
    PickleValue& whole = pickle_.values[top()];
    if (whole.kind == PickleKind::object) return;  // refused at the end
    if (whole.kind != kind || (kind == PickleKind::dict && items.size() % 2 != 0))
      bytes_.fail(kind == PickleKind::list ? "expected a list to add to" : "expected a dict to add pairs to");
    whole.items.insert(whole.items.end(), items.begin(), items.end());
  }

  /// Limits copies: values built from the memo can be large although the file is small.
  void count_copied(std::size_t count) {
    n_copied_ += count;
    if (n_copied_ > max_values) bytes_.fail("expected fewer long names, got more");
  }

  void memoize(std::uint64_t number) {
    if (memo_.size() == max_values) bytes_.fail("expected at most 2^20 values that are kept, got more");
    memo_[number] = top();
  }
  void push_memoized(std::uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end())
      bytes_.fail("expected a value that was kept, got number " + std::to_string(number));
    push(found->second);
  }

  void call() {
    const PickleValue::Index arguments = pop(), function = pop();
    if (value(function).kind != PickleKind::name || value(arguments).kind != PickleKind::tuple)
      bytes_.fail("expected a name and a tuple of arguments");
    auto made = call_known_function(pickle_, value(function), value(arguments), bytes_.place());
    if (!made) return push_unknown(function);
    count_copied(made->items.size());
    push_value(std::move(*made));
  }

  /// Pushes an object with only its function or class, which is not called; refused later, as the rest of the
  /// pickle may lead to better advice.
  void push_unknown(PickleValue::Index maker) {
    if (pickle_.unknown_name.empty()) pickle_.unknown_name = value(maker).text;
    push_value({PickleKind::object, 0, {}, {maker}});
  }
  void push_object() {
    pop();
    const PickleValue::Index type = pop();
    if (value(type).kind != PickleKind::name) bytes_.fail("expected the name of a class");
    if (outermost_.empty()) outermost_ = value(type).text;
    push_unknown(type);
  }

  /// Ignores attributes of an OrderedDict, such as the versions in a state_dict, which are not tensors.
  void set_state() {
    const PickleValue::Index state = pop(), whole = top();
    if (value(whole).kind == PickleKind::object) {
      count_copied(value(state).items.size());  // they are searched
      return refuse_module(pickle_, value(state), outermost_, bytes_.place());
    }
    if (value(whole).kind != PickleKind::dict || value(state).kind != PickleKind::dict)
      bytes_.fail("expected an object to set the state of");
  }

  PickleBytes& bytes_;
  Pickle pickle_;
  std::vector<PickleValue::Index> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue::Index> memo_;
  std::string outermost_;  ///< class of the first object
  bool says_protocol_ = false;
  std::size_t n_copied_ = 0;
};

/// Returns whether bytes begin like a pickle of protocol 0 or 1.
bool looks_like_old_pickle(std::string_view begin) {
  // A dict, list, tuple, name, number or text, which ends with its line or is memoized.
  constexpr std::array begins{"(]"sv, "(}"sv, "(d"sv, "(l"sv, "(i"sv, "(c"sv, "}q"sv,
                              "]q"sv, "(K"sv, "(I"sv, "(S"sv, "(V"sv, "(X"sv, "(U"sv};
  if (std::ranges::any_of(begins, [&](std::string_view some) { return begin.starts_with(some); }))
    return true;
  const std::size_t end = begin.find('\n');
  if (end == begin.npos || end < 2) return false;
  const std::string_view line = begin.substr(1, end - 1);
  constexpr std::string_view digits = "-0123456789L";
  if (begin[0] == 'L' || begin[0] == 'I') return line.find_first_not_of(digits) == line.npos;
  return begin[0] == 'c' && line.find_first_of(" ,;:\t") == line.npos;
}

/// Tensors of a pickle by name, and the rest of its content.
struct PickleContent {
  struct NamedTensor {
    std::string name;
    std::size_t tensor;  ///< index into Pickle::tensors
  };
  std::vector<NamedTensor> tensors;
  std::size_t n_non_tensors = 0;               ///< values that are not tensors
  std::vector<std::string> first_non_tensors;  ///< names of the first few of them
};

/// Collector of names: nested keys are joined by dots; a single tensor is named like the file.
///
/// Throws core::Error, "PLACEwhat is wrong", when there is no tensor, two have one name, a key is not a name,
/// there is an object among them, or the nesting is too deep.
class TensorNameCollector {
 public:
  TensorNameCollector(const Pickle& pickle, const std::string& stem, const std::string& place)
      : pickle_(pickle), stem_(stem), place_(place) {}

  PickleContent all() {
    visit(pickle_.root, "", 0);
    if (!pickle_.unknown_name.empty()) refuse_name(pickle_.unknown_name, place_);
    if (names_.tensors.empty()) throw Error(place_ + "expected tensors, got none in it");
    return std::move(names_);
  }

 private:
  void visit(PickleValue::Index index, const std::string& name, std::size_t depth) {
    const PickleValue& value = pickle_.values[index];
    if (depth > max_depth) throw Error(place_ + "expected at most 64 levels of dicts and lists, got more");
    if (++n_visited_ > max_values) throw Error(place_ + "expected at most 2^20 values, got more");
    if (value.kind == PickleKind::tensor) {
      add(name.empty() ? stem_ : name, static_cast<std::size_t>(value.whole));
    } else if (value.kind == PickleKind::dict) {
      for (std::size_t k = 0; k < value.items.size(); k += 2)
        visit(value.items[k + 1], join_names(name, key_of(pickle_.values[value.items[k]])), depth + 1);
    } else if (value.kind == PickleKind::list || value.kind == PickleKind::tuple) {
      for (std::size_t k = 0; k < value.items.size(); ++k)
        visit(value.items[k], join_names(name, std::to_string(k)), depth + 1);
    } else if (value.kind == PickleKind::object ||
               (value.kind == PickleKind::name && !dtype_of(value.text))) {
      refuse_name(pickle_.name_of(value), place_);
    } else {
      if (++names_.n_non_tensors <= 3) names_.first_non_tensors.push_back(name.empty() ? stem_ : name);
    }
  }

  std::string key_of(const PickleValue& key) const {
    if (key.kind == PickleKind::whole) return std::to_string(key.whole);
    if (key.kind != PickleKind::text || key.text.empty() || !text::is_utf8(key.text))
      throw Error(place_ + "expected dicts with names or whole numbers as their keys, got " +
                  (key.kind == PickleKind::text ? quoted_briefly(key.text) : "another"));
    return key.text;
  }

  std::string join_names(const std::string& name, const std::string& key) const {
    if (name.size() + key.size() > max_name)
      throw Error(place_ + "expected names of at most 1000 bytes, got " + quoted_briefly(name + "." + key));
    return name.empty() ? key : name + "." + key;
  }

  void add(const std::string& name, std::size_t tensor) {
    n_name_bytes_ += name.size();
    if (names_.tensors.size() == max_tensors || n_name_bytes_ > max_name_bytes)
      throw Error(place_ + "expected at most 2^16 tensors, got more");
    if (!known_.insert(name).second) throw Error(place_ + "two tensors are called " + quoted_briefly(name));
    names_.tensors.push_back({name, tensor});
  }

  const Pickle& pickle_;
  const std::string& stem_;
  const std::string& place_;
  PickleContent names_;
  std::unordered_set<std::string> known_;
  std::size_t n_visited_ = 0, n_name_bytes_ = 0;
};

/// Returns "Left out as no tensors: epoch, loss, lr and 35 more."
std::string non_tensors_note(const PickleContent& names) {
  const std::size_t more = names.n_non_tensors - names.first_non_tensors.size();
  return "Left out as no tensors: " +
         text::joined(names.first_non_tensors, ", ", {}, more == 0 ? " and " : ", ") +
         (more == 0 ? "" : fmt::format(" and {} more", more)) + ".";
}

constexpr std::string_view legacy_magic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t legacy_protocol = 1001;
constexpr std::size_t first_bytes = 64;  // to include the first member's name or the magic number

/// The bytes of a storage.
struct StorageBytes {
  uint64_t n_bytes = 0;
  Fetch fetch;
  uint64_t begin = 0;  ///< offset of its first byte in fetch
};
using FindStorage = std::function<StorageBytes(const PickledStorage&)>;

/// Returns the bytes of count numbers, or more than any file has.
uint64_t bytes_of(uint64_t count, Dtype dtype) {
  const uint64_t each = dtype_bytes(dtype);
  return count > UINT64_MAX / each ? UINT64_MAX : count * each;
}

std::string words_on_strides(const PickledTensor& tensor) {
  return fmt::format("{} with strides {} from {}", shape_text(tensor.shape),
                     shape_text({tensor.strides.begin(), tensor.strides.end()}), tensor.offset);
}

/// Throws core::Error unless a tensor is within its storage of n_items and repeats numbers no more often than
/// a compressed file could.
void check_tensor(const PickledTensor& tensor, uint64_t n_items, const std::string& place) {
  constexpr uint64_t always_fine = uint64_t{1} << 20, max_repeats = 1024;
  const auto span = span_of(tensor.shape, tensor.strides);
  const auto count = count_of(tensor.shape);
  if (!count || !span || *span > n_items || tensor.offset > n_items - *span)
    throw Error(fmt::format("{}expected it within its storage of {} numbers, got {}", place, n_items,
                            words_on_strides(tensor)));
  if (*count > always_fine && *count / max_repeats > *span)
    throw Error(place + "expected at most 1024 times as many numbers as it has stored, got " +
                words_on_strides(tensor));
}

TensorEntry entry_of_tensor(const PickleContent::NamedTensor& named, const Pickle& pickle,
                            const FindStorage& find, bool big_endian, const std::string& file_place) {
  const PickledTensor& tensor = pickle.tensors[named.tensor];
  const PickledStorage& storage = pickle.storages[tensor.storage];
  RawTensor raw;
  raw.info = {named.name, tensor.dtype, tensor.shape};
  raw.item_bytes = dtype_bytes(tensor.dtype);
  raw.big_endian = big_endian;
  raw.strides = tensor.strides;
  raw.place = file_place + named.name + ": ";
  const StorageBytes stored = find(storage);
  if (const uint64_t claimed = bytes_of(storage.count, storage.dtype); claimed != stored.n_bytes)
    throw Error(fmt::format("{}expected a storage of {} bytes, got {}", raw.place, claimed, stored.n_bytes));
  check_tensor(tensor, stored.n_bytes / raw.item_bytes, raw.place);
  raw.fetch = stored.fetch;
  raw.begin = stored.begin + tensor.offset * raw.item_bytes;
  return make_entry(std::move(raw));
}

TensorFile file_of_pickle(const std::filesystem::path& path, const Pickle& pickle, const FindStorage& find,
                          bool big_endian, const StopToken& progress) {
  const std::string place = path.string() + ": ";
  const PickleContent names = TensorNameCollector(pickle, path.stem().string(), place).all();
  std::vector<TensorEntry> entries;
  for (const auto& named : names.tensors) {
    progress.add(0);
    entries.push_back(entry_of_tensor(named, pickle, find, big_endian, place));
  }
  std::vector<std::string> notes;
  if (names.n_non_tensors > 0) notes.push_back(non_tensors_note(names));
  return {path, "pytorch", std::move(entries), std::move(notes)};
}

/// Members of an archive by their names inside its folder.
using ArchiveMembers = std::map<std::string, const ZipMember*, std::less<>>;

ArchiveMembers members_of(const ZipArchive& archive, const std::string& place) {
  const auto& all = archive.members();
  const auto pickle = std::ranges::find_if(all, is_torch_pickle_name, &ZipMember::name);
  if (pickle == all.end()) throw Error(place + "expected an archive of torch.save, got one without data.pkl");
  const std::string folder =
      pickle->name.substr(0, pickle->name.size() - std::string_view("data.pkl").size());
  ArchiveMembers members;
  for (const ZipMember& member : all)
    if (member.name.starts_with(folder)) members[member.name.substr(folder.size())] = &member;
  return members;
}

const ZipMember& require_member(const ArchiveMembers& members, std::string_view name,
                                const std::string& place) {
  const auto found = members.find(name);
  if (found == members.end()) throw Error(place + "damaged: expected the member " + quoted_briefly(name));
  if (!found->second->problem.empty()) throw Error(place + std::string(name) + ": " + found->second->problem);
  return *found->second;
}

bool is_big_endian(const ZipArchive& archive, const ArchiveMembers& members, const std::string& place) {
  if (!members.contains("byteorder")) return false;  // not written before PyTorch 2.1
  const std::string order = archive.begin(require_member(members, "byteorder", place), 16);
  if (order != "little" && order != "big")
    throw Error(place + "byteorder: expected little or big, got " + quoted_briefly(order));
  return order == "big";
}

TensorFile open_archive(const std::filesystem::path& path, const StopToken& progress) {
  const std::string place = path.string() + ": ";
  const auto archive = std::make_shared<const ZipArchive>(path);
  const ArchiveMembers members = members_of(*archive, place);
  if (members.contains("constants.pkl"))
    throw Error(place + "holds a TorchScript program, only tensors can be read: save module.state_dict()");
  const ZipMember& member = require_member(members, "data.pkl", place);
  if (member.size > max_pickle)
    throw Error(fmt::format("{}data.pkl: expected at most {} bytes, got {}", place, max_pickle, member.size));
  const std::string content = archive->bytes(member, 0, member.size, progress);
  PickleBytes bytes(content, place);
  const Pickle pickle = Unpickler(bytes).read();
  const FindStorage find = [&](const PickledStorage& storage) -> StorageBytes {
    const ZipMember& data = require_member(members, "data/" + storage.key, place);
    return {data.size, fetch_from(archive, data)};
  };
  return file_of_pickle(path, pickle, find, is_big_endian(*archive, members, place), progress);
}

/// Offsets and bytes of the storages after the pickles of a legacy file.
using Storages = std::map<std::string, std::pair<uint64_t, uint64_t>, std::less<>>;

/// Returns the storages, the first at byte `at`; each follows the count of its numbers.
Storages storages_after(const system::OpenFile& file, uint64_t at, const Pickle& pickle, const Pickle& keys) {
  std::map<std::string_view, const PickledStorage*> known;
  for (const PickledStorage& storage : pickle.storages) known.emplace(storage.key, &storage);
  Storages storages;
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("{}: damaged pickle: {} at byte {}", file.path().string(), what, at));
  };
  for (const auto index : keys.values[keys.root].items) {
    const std::string& key = keys.values[index].text;
    const auto storage = known.find(key);
    if (storage == known.end()) fail("expected the key of a storage, got " + quoted_briefly(key));
    if (file.size() - at < 8) fail("expected a storage, got the end");
    const uint64_t n_bytes = bytes_of(little_endian(file.bytes(at, 8)), storage->second->dtype);
    at += 8;
    if (n_bytes > file.size() - at) fail(fmt::format("expected a storage of {} bytes, got the end", n_bytes));
    storages[key] = {at, n_bytes};
    at += n_bytes;
  }
  return storages;
}

/// Reads a pickle that holds only plain values.
Pickle read_plain(PickleBytes& bytes) {
  Pickle pickle = Unpickler(bytes).read();
  if (!pickle.unknown_name.empty()) refuse_name(pickle.unknown_name, bytes.place());
  return pickle;
}

TensorFile open_legacy(const std::filesystem::path& path, const StopToken& progress) {
  const std::string place = path.string() + ": ";
  const auto file = std::make_shared<const system::OpenFile>(path);
  const std::string content = file->bytes(0, std::min(file->size(), max_pickle));
  PickleBytes bytes(content, place);
  read_plain(bytes);  // the magic number
  const Pickle protocol = read_plain(bytes);
  if (const auto version = protocol.values[protocol.root].whole; version != legacy_protocol)
    throw Error(fmt::format("{}expected version 1001 of PyTorch's older format, got {}", place, version));
  read_plain(bytes);  // the machine that wrote it; storages are little-endian on any
  const Pickle pickle = Unpickler(bytes).read(), keys = read_plain(bytes);
  const Storages storages = storages_after(*file, bytes.at(), pickle, keys);
  const FindStorage find = [&](const PickledStorage& storage) -> StorageBytes {
    const auto found = storages.find(storage.key);
    if (found == storages.end())
      throw Error(place + "damaged: expected the storage " + quoted_briefly(storage.key));
    return {found->second.second, fetch_from(file), found->second.first};
  };
  return file_of_pickle(path, pickle, find, false, progress);
}

bool looks_like_pickle(std::string_view begin) {
  return begin.size() > 2 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5;
}

/// Throws core::Error that describes the content of a pickle that torch.save did not write.
[[noreturn]] void refuse_pickle(const std::filesystem::path& path) {
  const std::string place = path.string() + ": ";
  const system::OpenFile file(path);
  const std::string content = file.bytes(0, std::min(file.size(), max_pickle));
  PickleBytes bytes(content, place);
  const Pickle pickle = Unpickler(bytes).read();
  if (!pickle.unknown_name.empty()) TensorNameCollector(pickle, "", place).all();
  throw Error(place + "is a pickle without tensors: save them with torch.save, numpy.savez or safetensors");
}

}  // namespace

bool is_torch_pickle_name(std::string_view member) {
  return member == "data.pkl" || (member.ends_with("/data.pkl") && std::ranges::count(member, '/') == 1);
}

bool looks_like_pytorch(std::string_view begin) {
  constexpr std::size_t name_at = 30, length_at = 26;  // offsets in the first member's record
  if (!looks_like_zip(begin)) return looks_like_pickle(begin);
  return begin.size() > name_at &&
         is_torch_pickle_name(begin.substr(name_at, little_endian(begin.substr(length_at, 2))));
}

TensorFile open_pytorch(const std::filesystem::path& path, const StopToken& progress) {
  const std::string begin = system::read_prefix(path, first_bytes);
  if (looks_like_zip(begin)) return open_archive(path, progress);
  if (!looks_like_pickle(begin) && looks_like_old_pickle(begin)) refuse_old_pickle(path.string() + ": ");
  if (!looks_like_pickle(begin))
    throw Error(path.string() +
                ": expected a file of torch.save, an archive or a pickle, which begins in another way");
  if (begin.find(legacy_magic) != begin.npos) return open_legacy(path, progress);
  refuse_pickle(path);
}

}  // namespace core::formats::readers
