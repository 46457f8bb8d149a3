#include "core/files/pickle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/pickle_calls.hpp"

namespace core::formats::readers {
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
