#include "core/files/pickle.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"

namespace core::formats::readers {
namespace {

using std::uint64_t;

constexpr uint64_t max_item = uint64_t{1} << 24;  // bytes of a text
constexpr std::size_t max_line = 4096, max_key = 100;

/// Sequential reader of the bytes of a pickle; place begins every message.
class PickleBytes {
 public:
  PickleBytes(std::string_view bytes, uint64_t at, std::string place)
      : bytes_(bytes), place_(std::move(place)), at_(at) {}

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
  uint64_t at_;
};

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

}  // namespace

std::string printable_name(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return name.size() <= 100 && std::ranges::all_of(name, is_plain) ? name : quoted_briefly(name);
}

std::string problem_of_name(const std::string& name) {
  const auto advice =
      std::ranges::find_if(advices, [&](const Advice& a) { return name.starts_with(a.begins); });
  return "holds " + printable_name(name) + ", only tensors can be read: " + advice->words;
}

std::optional<Dtype> dtype_of_torch_name(std::string_view name) {
  constexpr std::string_view begin = "torch.";
  return name.starts_with(begin) ? find_dtype(name.substr(begin.size()), &DtypeNames::name) : std::nullopt;
}

void refuse_old_pickle(const std::string& place) {
  throw Error(
      place +
      "is a pickle of protocol 0 or 1, only 2 to 5 are read: save it again with torch.save as it does by "
      "itself, numpy.savez or safetensors");
}

namespace {

/// Returns the dtype of a storage class such as "torch.FloatStorage", bytes if it is untyped, or nothing.
std::optional<Dtype> dtype_of_storage(std::string_view name) {
  if (name == "torch.storage.UntypedStorage" || name == "torch.UntypedStorage") return Dtype::u8;
  constexpr std::string_view begin = "torch.", end = "Storage";
  if (!name.starts_with(begin) || !name.ends_with(end)) return std::nullopt;
  name.remove_prefix(begin.size());
  return find_dtype(name.substr(0, name.size() - end.size()), &DtypeNames::storage);
}

/// Returns an object of an unknown function or class, which is not called.
PickleValue unknown_object(Pickle& pickle, const std::string& name, std::string problem = "") {
  if (problem.empty()) problem = problem_of_name(name);
  pickle.objects.push_back({name, std::move(problem)});
  return {PickleKind::object, static_cast<std::int64_t>(pickle.objects.size() - 1)};
}

/// Arguments of a call, looked up and checked for their kind.
class CallArguments {
 public:
  CallArguments(const Pickle& pickle, const PickleValue& tuple, const std::string& place,
                const std::string& of)
      : pickle_(pickle), tuple_(tuple), place_(place + "damaged: " + of + ": ") {}

  std::size_t count() const { return tuple_.items.size(); }
  const PickleValue& at(std::size_t index, PickleKind kind, const char* expected) const {
    const PickleValue* value = any(index);
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
  std::string place_;
};

/// Does the same as torch._utils._rebuild_tensor, _v2 and _v3, which has its own dtype (typed).
PickleValue rebuild_tensor(Pickle& pickle, const CallArguments& arguments, bool typed,
                           const std::string& place) {
  PickledTensor tensor;
  tensor.storage = static_cast<std::size_t>(arguments.at(0, PickleKind::storage, "a storage").whole);
  tensor.offset = arguments.whole(1, "an offset");
  const auto lengths = arguments.whole_numbers(2, "lengths");
  for (const std::uint64_t length : lengths) {
    if (!std::in_range<std::size_t>(length))
      throw Error(fmt::format("{}too long: {} numbers", place, length));
    tensor.shape.push_back(static_cast<std::size_t>(length));
  }
  tensor.strides = arguments.whole_numbers(3, "strides");
  if (tensor.strides.size() != tensor.shape.size())
    throw Error(fmt::format("{}damaged: expected a stride for each of {} lengths, got {}", place,
                            tensor.shape.size(), tensor.strides.size()));
  tensor.dtype = pickle.storages[tensor.storage].dtype;
  if (typed) {
    const PickleValue& name = arguments.at(6, PickleKind::name, "a type of numbers");
    const auto dtype = dtype_of_torch_name(name.text);
    if (!dtype)
      return unknown_object(pickle, name.text,
                            "holds numbers of the type " + printable_name(name.text) +
                                ", which are not read: save them as float32");
    tensor.dtype = *dtype;
  }
  const PickleValue* about = arguments.any(typed ? 7 : 6);  // set for a negated or conjugate view
  if (about && about->kind != PickleKind::none && !about->items.empty())
    return unknown_object(pickle, "a negated or conjugate view",
                          "holds a tensor that is not stored as it is: save tensor.resolve_neg().clone()");
  if (pickle.tensors.size() == max_pickled_tensors)
    throw Error(place + "expected at most 2^16 tensors, got more");
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

/// Returns the result of calling a known function that builds tensors: a tensor, a dict, a tuple or bytes; or
/// nothing for any other function.
///
/// Throws core::Error for arguments that do not fit.
std::optional<PickleValue> call_known_function(Pickle& pickle, const PickleValue& function,
                                               const PickleValue& tuple, const std::string& place) {
  const std::string& name = function.text;
  const CallArguments arguments(pickle, tuple, place, printable_name(name));
  const PickleValue* first = arguments.any(0);
  const bool is_of_first =
      name.starts_with("torch._utils._rebuild_tensor") || name == "torch._utils._rebuild_parameter";
  if (first && first->kind == PickleKind::object && is_of_first)
    return PickleValue(*first);  // a tensor of what is not known, such as a storage of complex numbers
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
  if (!dtype) return unknown_object(pickle, type.text);
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

/// Reader of one pickle.
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
    if (stack_.size() == max_pickled_values)
      bytes_.fail("expected at most 2^20 values on its stack, got more");
    stack_.push_back(index);
  }
  PickleValue& new_value(PickleKind kind) {
    if (pickle_.values.size() == max_pickled_values) bytes_.fail("expected at most 2^20 values, got more");
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
        if (marks_.size() == max_pickled_values) bytes_.fail("expected at most 2^20 marks, got more");
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
        return push_unknown("builtins.set");
      case 0x90:
        return add(pop_to_mark(), PickleKind::list);
      case 0x91:
        pop_to_mark();
        return push_unknown("builtins.set");
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
    if (whole.kind == PickleKind::object) return add_to_object(whole, items, kind);
    if (whole.kind != kind || (kind == PickleKind::dict && items.size() % 2 != 0))
      bytes_.fail(kind == PickleKind::list ? "expected a list to add to" : "expected a dict to add pairs to");
    whole.items.insert(whole.items.end(), items.begin(), items.end());
  }

  /// Adds items to an object; keys and values take the place of what it was made of.
  void add_to_object(PickleValue& whole, const std::vector<PickleValue::Index>& items, PickleKind kind) {
    UnknownObject& object = pickle_.objects[static_cast<std::size_t>(whole.whole)];
    const bool is_of_keys = kind == PickleKind::dict;
    if (is_of_keys && items.size() % 2 != 0) bytes_.fail("expected a dict to add pairs to");
    if (object.is_of_keys != is_of_keys) whole.items.clear();
    object.is_of_keys = is_of_keys;
    whole.items.insert(whole.items.end(), items.begin(), items.end());
  }

  /// Limits copies: values built from the memo can be large although the file is small.
  void count_copied(std::size_t count) {
    n_copied_ += count;
    if (n_copied_ > max_pickled_values) bytes_.fail("expected fewer long names, got more");
  }

  void memoize(std::uint64_t number) {
    if (memo_.size() == max_pickled_values)
      bytes_.fail("expected at most 2^20 values that are kept, got more");
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
    if (value(function).kind == PickleKind::object && value(arguments).kind == PickleKind::tuple)
      return push(function);
    if (value(function).kind != PickleKind::name || value(arguments).kind != PickleKind::tuple)
      bytes_.fail("expected a name and a tuple of arguments");
    auto made = call_known_function(pickle_, value(function), value(arguments), bytes_.place());
    if (!made) return push_unknown(value(function).text);
    count_copied(made->items.size());
    push_value(std::move(*made));
  }

  void push_unknown(const std::string& name, std::vector<PickleValue::Index> items = {}) {
    count_copied(items.size());
    PickleValue object = unknown_object(pickle_, name);
    object.items = std::move(items);
    push_value(std::move(object));
  }
  /// Pushes an object of a class; its items are the arguments, as those of a named tuple.
  void push_object() {
    const PickleValue::Index arguments = pop(), type = pop();
    if (value(type).kind == PickleKind::object) return push(type);
    if (value(type).kind != PickleKind::name) bytes_.fail("expected the name of a class");
    if (outermost_.empty()) outermost_ = value(type).text;
    push_unknown(value(type).text, value(arguments).kind == PickleKind::tuple
                                       ? value(arguments).items
                                       : std::vector<PickleValue::Index>());
  }

  /// Ignores attributes: those of an OrderedDict, such as the versions in a state_dict, are not tensors.
  void set_state() {
    const PickleValue::Index state = pop(), whole = top();
    if (value(whole).kind == PickleKind::object) {
      count_copied(value(state).items.size());  // they are searched
      const bool is_module =
          has_key(pickle_, value(state), "_parameters") && has_key(pickle_, value(state), "_modules");
      if (is_module && pickle_.module_problem.empty())
        pickle_.module_problem = "holds a torch.nn.Module (" + printable_name(outermost_) +
                                 "), only tensors can be read: save model.state_dict()";
      return;
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

}  // namespace

Pickle read_pickle(std::string_view content, uint64_t& at, const std::string& place) {
  PickleBytes bytes(content, at, place);
  Pickle pickle = Unpickler(bytes).read();
  at = bytes.at();
  return pickle;
}

}  // namespace core::formats::readers
