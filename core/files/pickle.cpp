#include "core/files/pickle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"

namespace core::formats::readers {

namespace {

constexpr std::uint64_t fetched_in_one_go = std::uint64_t{1} << 16;
constexpr std::uint64_t longest_item = std::uint64_t{1} << 24;  // of a text, or of bytes
constexpr std::size_t longest_line = 4096;

}  // namespace

PickleBytes::PickleBytes(Fetch fetch, std::uint64_t from, std::uint64_t end, std::string place,
                         const Token& progress)
    : fetch_(std::move(fetch)), at_(from), end_(end), place_(std::move(place)), progress_(progress) {}

void PickleBytes::fail(const std::string& what) const {
  throw Error(place_ + "damaged pickle: " + what + " at byte " + std::to_string(at_));
}

std::string_view PickleBytes::take(std::uint64_t count) {
  if (count > end_ - at_) fail("expected " + std::to_string(count) + " more bytes, got the end");
  if (count > longest_item)
    fail("expected a text of at most 2^24 bytes, got one of " + std::to_string(count));
  if (window_.size() < count) {
    // Only what follows is fetched: a byte that was passed may cost as much as all before it.
    fetched_.erase(0, fetched_.size() - window_.size());
    const std::uint64_t held = fetched_.size();
    const std::uint64_t more = std::min(std::max(count - held, fetched_in_one_go), end_ - at_ - held);
    fetched_ += fetch_(at_ + held, more, buffer_, progress_);
    progress_.add(0);
    window_ = fetched_;
  }
  const std::string_view taken = window_.substr(0, count);
  window_.remove_prefix(count);
  at_ += count;
  return taken;
}

std::string PickleBytes::line() {
  std::string line;
  for (char c = take(1)[0]; c != '\n'; c = take(1)[0]) {
    line += c;
    if (line.size() > longest_line) fail("expected the end of a line");
  }
  return line;
}

std::uint64_t PickleBytes::number(std::uint64_t n_bytes) {
  return little_endian(take(n_bytes));
}

void PickleBytes::go_to(std::uint64_t at) {
  const std::uint64_t passed = at - at_;
  window_.remove_prefix(at >= at_ && passed < window_.size() ? passed : window_.size());
  at_ = at;
}

namespace {

constexpr std::size_t deepest = 64;
constexpr std::size_t most_visited = std::size_t{1} << 20;  // a pickle may hold one value at many places
constexpr std::size_t longest_name = 1000;
constexpr std::size_t most_name_bytes = std::size_t{1} << 24;  // of all tensors
constexpr std::size_t shown_others = 3;

class Names {
 public:
  Names(const Pickle& pickle, const std::string& stem, const std::string& place)
      : pickle_(pickle), stem_(stem), place_(place) {}

  PickledNames all() {
    visit(pickle_.root, "", 0);
    if (!pickle_.foreign.empty()) refuse_name(pickle_.foreign, place_);
    if (names_.tensors.empty()) throw Error(place_ + "expected tensors, got none in it");
    return std::move(names_);
  }

 private:
  void visit(PickleValue::Index index, const std::string& name, std::size_t depth) {
    const PickleValue& value = pickle_.values[index];
    if (depth > deepest) throw Error(place_ + "expected at most 64 levels of dicts and lists, got more");
    if (++n_visited_ > most_visited) throw Error(place_ + "expected at most 2^20 values, got more");
    if (value.kind == PickleKind::tensor) {
      add(name.empty() ? stem_ : name, static_cast<std::size_t>(value.whole));
    } else if (value.kind == PickleKind::dict) {
      for (std::size_t k = 0; k < value.items.size(); k += 2)
        visit(value.items[k + 1], below(name, key_of(pickle_.values[value.items[k]])), depth + 1);
    } else if (value.kind == PickleKind::list || value.kind == PickleKind::tuple) {
      for (std::size_t k = 0; k < value.items.size(); ++k)
        visit(value.items[k], below(name, std::to_string(k)), depth + 1);
    } else if (value.kind == PickleKind::object ||
               (value.kind == PickleKind::name && !names_dtype(value.text))) {
      refuse_name(pickle_.name_of(value), place_);
    } else {
      if (++names_.n_others <= shown_others) names_.first_others.push_back(name.empty() ? stem_ : name);
    }
  }

  std::string key_of(const PickleValue& key) const {
    if (key.kind == PickleKind::whole) return std::to_string(key.whole);
    if (key.kind != PickleKind::text || key.text.empty() || !text::is_utf8(key.text))
      throw Error(place_ + "expected dicts with names or whole numbers as their keys, got " +
                  (key.kind == PickleKind::text ? quoted_briefly(key.text) : "another"));
    return key.text;
  }

  std::string below(const std::string& name, const std::string& key) const {
    if (name.size() + key.size() > longest_name)
      throw Error(place_ + "expected names of at most 1000 bytes, got " + quoted_briefly(name + "." + key));
    return name.empty() ? key : name + "." + key;
  }

  void add(const std::string& name, std::size_t tensor) {
    n_name_bytes_ += name.size();
    if (names_.tensors.size() == most_pickled_tensors || n_name_bytes_ > most_name_bytes)
      throw Error(place_ + "expected at most 2^16 tensors, got more");
    if (!known_.insert(name).second) throw Error(place_ + "two tensors are called " + quoted_briefly(name));
    names_.tensors.push_back({name, tensor});
  }

  const Pickle& pickle_;
  const std::string& stem_;
  const std::string& place_;
  PickledNames names_;
  std::unordered_set<std::string> known_;
  std::size_t n_visited_ = 0, n_name_bytes_ = 0;
};

}  // namespace

PickledNames named_tensors(const Pickle& pickle, const std::string& stem, const std::string& place) {
  return Names(pickle, stem, place).all();
}

std::string words_on_others(const PickledNames& names) {
  if (names.n_others == 0) return "";
  const std::size_t more = names.n_others - names.first_others.size();
  return "Left out as no tensors: " + text::joined(names.first_others, ", ", {}, more == 0 ? " and " : ", ") +
         (more == 0 ? "" : " and " + std::to_string(more) + " more") + ".";
}

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

namespace {

using namespace std::string_view_literals;

constexpr std::size_t most_values = std::size_t{1} << 20;
constexpr std::size_t highest_protocol = 5;
constexpr unsigned char protocol_follows = 0x80;  // from protocol 2 on, before all

class Unpickler {
 public:
  explicit Unpickler(PickleBytes& bytes) : bytes_(bytes) {
    for (const PickleKind kind : {PickleKind::none, PickleKind::boolean})
      pickle_.values.push_back({kind, 0, {}, {}});
  }

  Pickle read() {
    for (bool is_first = true;; is_first = false) {
      const auto code = static_cast<unsigned char>(bytes_.take(1)[0]);
      if (is_first) says_protocol_ = code == protocol_follows;
      if (code == '.') break;
      if (!(is_number(code) || is_text(code) || is_collection(code) || is_memory(code) || is_call(code)))
        refuse_code(code);
    }
    pickle_.root = pop();
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void refuse_code(unsigned char code) {
    if (!says_protocol_) refuse_old_pickle(bytes_.place());
    bytes_.fail("expected a pickle of protocol 2 to 5, got opcode " + std::to_string(code));
  }

  void push(PickleValue::Index index) {
    if (stack_.size() == most_values) bytes_.fail("expected at most 2^20 values on its stack, got more");
    stack_.push_back(index);
  }
  PickleValue& make(PickleKind kind) {
    if (pickle_.values.size() == most_values) bytes_.fail("expected at most 2^20 values, got more");
    push(static_cast<PickleValue::Index>(pickle_.values.size()));
    return pickle_.values.emplace_back(PickleValue{kind, 0, {}, {}});
  }
  bool make(PickleValue value) {
    make(value.kind) = std::move(value);
    return true;
  }

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

  bool make_whole(std::int64_t number) {
    make(PickleKind::whole).whole = number;
    return true;
  }
  /// A whole number of some bytes, the lowest first, the highest with the sign.
  bool make_long(std::uint64_t n_bytes) {
    if (n_bytes > 8) {
      make(PickleKind::large).text = bytes_.take(n_bytes);
      return true;
    }
    const std::uint64_t unused = 64 - 8 * n_bytes;
    const std::uint64_t number = n_bytes == 0 ? 0 : bytes_.number(n_bytes) << unused;
    return make_whole(n_bytes == 0 ? 0 : std::bit_cast<std::int64_t>(number) >> unused);
  }

  bool is_number(unsigned char code) {
    switch (code) {
      case 'N':
        push(0);
        return true;
      case 0x88:
      case 0x89:
        push(1);
        return true;
      case 'K':
        return make_whole(static_cast<std::int64_t>(bytes_.number(1)));
      case 'M':
        return make_whole(static_cast<std::int64_t>(bytes_.number(2)));
      case 'J':
        return make_long(4);
      case 0x8a:
        return make_long(bytes_.number(1));
      case 0x8b:
        return make_long(bytes_.number(4));
      case 'G':
        make(PickleKind::real);
        bytes_.take(8);
        return true;
      default:
        return false;
    }
  }

  bool make_text(PickleKind kind, std::uint64_t n_length_bytes) {
    std::string text(bytes_.take(bytes_.number(n_length_bytes)));
    make(kind).text = std::move(text);
    return true;
  }

  bool is_text(unsigned char code) {
    switch (code) {
      case 0x8c:
      case 'U':  // of Python 2
        return make_text(PickleKind::text, 1);
      case 'X':
      case 'T':
        return make_text(PickleKind::text, 4);
      case 0x8d:
        return make_text(PickleKind::text, 8);
      case 'C':
        return make_text(PickleKind::bytes, 1);
      case 'B':
        return make_text(PickleKind::bytes, 4);
      case 0x8e:
      case 0x96:
        return make_text(PickleKind::bytes, 8);
      default:
        return false;
    }
  }

  bool is_collection(unsigned char code) {
    switch (code) {
      case '(':
        if (marks_.size() == most_values) bytes_.fail("expected at most 2^20 marks, got more");
        marks_.push_back(stack_.size());
        return true;
      case ')':
        return make({PickleKind::tuple, 0, {}, {}});
      case 0x85:
      case 0x86:
      case 0x87:
        return make({PickleKind::tuple, 0, {}, pop_some(code - 0x84u)});
      case 't':
        return make({PickleKind::tuple, 0, {}, pop_to_mark()});
      case ']':
        return make({PickleKind::list, 0, {}, {}});
      case 'l':
        return make({PickleKind::list, 0, {}, pop_to_mark()});
      case 'a':
        return add(pop_some(1), PickleKind::list);
      case 'e':
        return add(pop_to_mark(), PickleKind::list);
      case '}':
        return make({PickleKind::dict, 0, {}, {}});
      case 'd': {
        const std::vector<PickleValue::Index> items = pop_to_mark();
        return make({PickleKind::dict, 0, {}, {}}) && add(items, PickleKind::dict);
      }
      case 's':
        return add(pop_some(2), PickleKind::dict);
      case 'u':
        return add(pop_to_mark(), PickleKind::dict);
      case 0x8f:
      case 0x91:
        refuse_name("a set", bytes_.place());
      default:
        return false;
    }
  }

  bool is_memory(unsigned char code) {
    switch (code) {
      case '0':
        pop();
        return true;
      case '1':
        pop_to_mark();
        return true;
      case '2':
        push(top());
        return true;
      case 'q':
        return keep(bytes_.number(1));
      case 'r':
        return keep(bytes_.number(4));
      case 0x94:
        return keep(memo_.size());
      case 'h':
        return recall(bytes_.number(1));
      case 'j':
        return recall(bytes_.number(4));
      default:
        return false;
    }
  }

  bool is_call(unsigned char code) {
    switch (code) {
      case protocol_follows:
        if (bytes_.number(1) > highest_protocol) bytes_.fail("expected protocol 2 to 5, got a later one");
        return true;
      case 0x95:  // a frame: only its length
        bytes_.take(8);
        return true;
      case 'c': {
        const std::string module = bytes_.line();
        return make({PickleKind::name, 0, module + "." + bytes_.line(), {}});
      }
      case 0x93: {
        const std::string& name = text_of(pop());
        const std::string& module = text_of(pop());
        count_copied(module.size() + name.size());
        return make({PickleKind::name, 0, module + "." + name, {}});
      }
      case 'R':
        return call();
      case 0x92:
        pop();  // its arguments with names
        [[fallthrough]];
      case 0x81:
        return make_object();
      case 'b':
        return set_state();
      case 'Q': {
        const PickleValue::Index tuple = pop();
        PickleValue named = storage_named(pickle_, value(tuple), bytes_.place());
        count_copied(named.text.size());
        return make(std::move(named));
      }
      default:
        return false;
    }
  }

  bool add(const std::vector<PickleValue::Index>& items, PickleKind kind) {
    PickleValue& whole = pickle_.values[top()];
    if (whole.kind == PickleKind::object) return true;  // which is refused in the end
    if (whole.kind != kind || (kind == PickleKind::dict && items.size() % 2 != 0))
      bytes_.fail(kind == PickleKind::list ? "expected a list to add to" : "expected a dict to add pairs to");
    whole.items.insert(whole.items.end(), items.begin(), items.end());
    return true;
  }

  /// What is made of values that are kept may be long without many bytes in the file.
  void count_copied(std::size_t count) {
    n_copied_ += count;
    if (n_copied_ > most_values) bytes_.fail("expected fewer long names, got more");
  }

  bool keep(std::uint64_t number) {
    if (memo_.size() == most_values) bytes_.fail("expected at most 2^20 values that are kept, got more");
    memo_[number] = top();
    return true;
  }
  bool recall(std::uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end())
      bytes_.fail("expected a value that was kept, got number " + std::to_string(number));
    push(found->second);
    return true;
  }

  bool call() {
    const PickleValue::Index arguments = pop(), function = pop();
    if (value(function).kind != PickleKind::name || value(arguments).kind != PickleKind::tuple)
      bytes_.fail("expected a name and a tuple of arguments");
    auto made = called(pickle_, value(function), value(arguments), bytes_.place());
    if (!made) return make_foreign(function);
    count_copied(made->items.size());
    return make(std::move(*made));
  }

  /// Nothing is made or called: only what would make it is kept, as what follows may say more of what to do
  /// instead.
  bool make_foreign(PickleValue::Index maker) {
    if (pickle_.foreign.empty()) pickle_.foreign = value(maker).text;
    return make({PickleKind::object, 0, {}, {maker}});
  }
  bool make_object() {
    pop();
    const PickleValue::Index type = pop();
    if (value(type).kind != PickleKind::name) bytes_.fail("expected the name of a class");
    if (outermost_.empty()) outermost_ = value(type).text;
    return make_foreign(type);
  }

  /// An OrderedDict may have attributes, such as the versions that a state_dict has, which are no tensors.
  bool set_state() {
    const PickleValue::Index state = pop(), whole = top();
    if (value(whole).kind == PickleKind::object) {
      count_copied(value(state).items.size());  // which are looked through
      refuse_module(pickle_, value(state), outermost_, bytes_.place());
      return true;
    }
    if (value(whole).kind != PickleKind::dict || value(state).kind != PickleKind::dict)
      bytes_.fail("expected an object to set the state of");
    return true;
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

bool looks_like_old_pickle(std::string_view begin) {
  // A dict, a list, a tuple, a name, a number or a text, which end with their line or are kept.
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

void refuse_old_pickle(const std::string& place) {
  throw Error(
      place +
      "is a pickle of protocol 0 or 1, only 2 to 5 are read: save it again with torch.save as it does by "
      "itself, numpy.savez or safetensors");
}

Pickle read_pickle(PickleBytes& bytes) {
  return Unpickler(bytes).read();
}

}  // namespace core::formats::readers
