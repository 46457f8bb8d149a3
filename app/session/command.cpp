// Verbs as lines of text, so that a run of them can be recorded and replayed: the name, then all fields,
// through one visitor over the fields of any plain struct.
#include "app/session/command.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/session.hpp"

namespace app {
namespace {

using core::attention::Model;
using core::attention::SharedMatrix;

/// Calls visit with each field of a plain struct.
template <class S, class Visit>
void for_each_field(S& v, const Visit& visit) {
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  if constexpr (std::is_empty_v<S>) {
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = v;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = v;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = v;
    all(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = v;
    all(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = v;
    all(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g, h, i, j] = v;
    all(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g, h, i] = v;
    all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g, h] = v;
    all(a, b, c, d, e, f, g, h);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f, g] = v;
    all(a, b, c, d, e, f, g);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e, f] = v;
    all(a, b, c, d, e, f);
  } else if constexpr (requires { S{{}, {}, {}, {}, {}}; }) {
    auto& [a, b, c, d, e] = v;
    all(a, b, c, d, e);
  } else if constexpr (requires { S{{}, {}, {}, {}}; }) {
    auto& [a, b, c, d] = v;
    all(a, b, c, d);
  } else if constexpr (requires { S{{}, {}, {}}; }) {
    auto& [a, b, c] = v;
    all(a, b, c);
  } else if constexpr (requires { S{{}, {}}; }) {
    auto& [a, b] = v;
    all(a, b);
  } else {
    auto& [a] = v;
    all(a);
  }
}

/// Returns the compiler's name of a type, without namespaces: "PinCell".
template <class T>
std::string name_of() {
  const std::string_view all = __PRETTY_FUNCTION__;
  const std::size_t from = all.find("T = ") + 4;
  std::string name(all.substr(from, all.find_first_of(";]", from) - from));
  for (const std::string_view space : {" ", "app::", "core::editing::", "core::attention::"})
    for (std::size_t at; (at = name.find(space)) != name.npos;) name.erase(at, space.size());
  return name;
}

/// Returns the compiler's name of an enumerator, without its type: "weights"; "" for a number without one.
template <auto value>
constexpr std::string_view enumerator_name() {
  const std::string_view all = __PRETTY_FUNCTION__;
  const std::size_t from = all.find("value = ") + 8;
  const std::string_view name = all.substr(from, all.find_first_of(";]", from) - from);
  return name.front() == '(' ? "" : name.substr(name.rfind(':') + 1);
}

constexpr std::size_t max_enumerators = 64;  // of any type in a verb

template <class T>
constexpr std::array<std::string_view, max_enumerators> enumerator_names = [
]<std::size_t... i>(std::index_sequence<i...>) {
  return std::array{enumerator_name<static_cast<T>(i)>()...};
}
(std::make_index_sequence<max_enumerators>());

template <class T>
constexpr bool is_list = requires(const T& v) {
  v.begin(), v.end(), v.size();
};
template <class T>
constexpr bool is_variant = false;
template <class... Kinds>
constexpr bool is_variant<std::variant<Kinds...>> = true;
template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

/// One verb as a line: written when constructed without a text, else parsed. The same walk over the fields
/// does both.
class VerbCodec {
 public:
  VerbCodec() = default;
  explicit VerbCodec(std::string_view text) : rest_(text), reads_(true) {}

  template <class T>
  void field(T& v) {
    if constexpr (std::is_enum_v<T>) {
      v = enumerator(v);
    } else if constexpr (std::is_same_v<T, bool>) {
      v = number(v ? 1 : 0) != 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      v = number(v);
    } else if constexpr (std::is_same_v<T, std::string>) {
      v = quoted(v);
    } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
      v = quoted(v.native());
    } else if constexpr (std::is_same_v<T, Model>) {
      const std::string session = quoted(reads_ ? "" : core::formats::session_text({v, "", {}}));
      if (reads_) v = core::formats::parse_session(session, "a verb").model;
    } else if constexpr (std::is_same_v<T, SharedMatrix>) {
      arma::mat numbers = v;
      field(numbers);
      if (reads_) v = std::move(numbers);
    } else if constexpr (std::is_same_v<T, arma::mat>) {
      const auto n_rows = number(std::size_t{v.n_rows}), n_cols = number(std::size_t{v.n_cols});
      if (reads_ && n_cols > 0 && n_rows > rest_.size() / n_cols) fail("as many numbers");
      if (reads_) v.set_size(n_rows, n_cols);
      for (double& x : v) x = number(x);
    } else if constexpr (is_optional<T>) {
      bool has_value = v.has_value();
      field(has_value);
      if (!has_value) return v.reset();
      if (!v) v.emplace();
      field(*v);
    } else if constexpr (is_variant<T>) {
      kind(v);
    } else if constexpr (is_list<T>) {
      list(v);
    } else {
      for_each_field(v, [this](auto& each) { field(each); });
    }
  }
  void field(SetField& v);

  std::string word(const std::string& own = "") {
    if (!reads_) {
      text_ += (text_.empty() ? "" : " ") + own;
      return own;
    }
    skip();
    const std::size_t n = std::min(rest_.find(' '), rest_.size());
    const std::string word(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return word;
  }
  const std::string& text() const { return text_; }

  /// Parses a verb, which begins with its name.
  template <class... All>
  Command verb(VerbList<All...>) {
    std::optional<Command> found;
    const std::string name = word();
    const auto is_it = [&]<class Verb>(std::type_identity<Verb>) {
      if (name != name_of<Verb>()) return false;
      Verb verb{};
      field(verb);
      found = std::move(verb);
      return true;
    };
    if (!(is_it(std::type_identity<All>()) || ...)) fail("the name of a command", name);
    if (!rest_.empty()) fail("the end of the line");
    return *std::move(found);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const { fail(expected, rest_.substr(0, 40)); }
  [[noreturn]] static void fail(const std::string& expected, std::string_view got) {
    throw core::Error("expected " + expected + ", got \"" + std::string(got) + "\"");
  }
  template <class T>
  T enumerator(T v) {
    const auto& names = enumerator_names<T>;
    const std::string name = word(std::string(reads_ ? "" : names.at(static_cast<std::size_t>(v))));
    if (!reads_) return v;
    const auto found = std::ranges::find(names, name);
    if (name.empty() || found == names.end()) fail("one of " + name_of<T>(), name);
    return static_cast<T>(found - names.begin());
  }
  void skip() {
    if (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  template <class T>
  T number(T v) {
    if (!reads_) {
      std::array<char, 32> digits;
      text_ += ' ';
      text_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), v).ptr);
      return v;
    }
    skip();
    if constexpr (std::is_floating_point_v<T>) {  // which std::from_chars reads in some libraries only
      const std::string_view digits = rest_.substr(0, rest_.find(' '));
      const bool is_negative_nan = digits == "-nan";  // as std::to_chars writes it
      const auto parsed = core::text::parse_number(is_negative_nan ? "nan" : digits);
      if (!parsed || (std::isfinite(*parsed) && std::abs(*parsed) > std::numeric_limits<T>::max()))
        fail("a number");
      rest_.remove_prefix(digits.size());
      return static_cast<T>(is_negative_nan ? -*parsed : *parsed);
    } else {
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v);
      if (error != std::errc()) fail("a number");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      return v;
    }
  }
  std::string quoted(const std::string& own) {
    if (!reads_) {
      text_ += " \"";
      for (const char c : own) {
        if (c == '"' || c == '\\') text_ += '\\';
        text_ += c == '\n' ? "\\n" : std::string(1, c);
      }
      text_ += '"';
      return own;
    }
    skip();
    std::string words;
    std::size_t i = 1;
    for (; i < rest_.size() && rest_[i] != '"'; ++i) {
      if (rest_[i] != '\\')
        words += rest_[i];
      else if (++i < rest_.size())
        words += rest_[i] == 'n' ? '\n' : rest_[i];
    }
    if (!rest_.starts_with('"') || i >= rest_.size()) fail("a text");
    rest_.remove_prefix(i + 1);
    return words;
  }
  template <class List>
  void list(List& v) {
    std::size_t n = number(v.size());
    if (n > rest_.size() && reads_) fail("as many values");
    if (reads_) v = {};
    for (auto at = v.begin(); n > 0; --n) {
      if constexpr (requires { typename List::mapped_type; }) {
        typename List::key_type key{};
        typename List::mapped_type value{};
        if (!reads_) key = at->first, value = (at++)->second;
        field(key), field(value);
        if (reads_) v[std::move(key)] = std::move(value);
      } else {
        typename List::value_type item{};
        if (!reads_) item = *at++;
        field(item);
        if (reads_) v.insert(v.end(), std::move(item));
      }
    }
  }
  template <class... Kinds>
  void kind(std::variant<Kinds...>& v) {
    const std::string name = word(std::visit([]<class Kind>(const Kind&) { return name_of<Kind>(); }, v));
    const auto is_it = [&]<class Kind>(std::type_identity<Kind>) {
      if (name != name_of<Kind>()) return false;
      if (reads_) v.template emplace<Kind>();
      field(std::get<Kind>(v));
      return true;
    };
    if (!(is_it(std::type_identity<Kinds>()) || ...)) fail("the name of a kind", name);
  }

  std::string text_;       // written so far
  std::string_view rest_;  // still to be read
  bool reads_ = false;
};

/// A field of the view, with its name.
struct NamedField {
  std::string name;
  void (*assign)(View&, const std::any&);
  void (*value)(VerbCodec&, std::any&);
};

template <auto member>
std::string member_name() {
  const std::string_view all = __PRETTY_FUNCTION__;
  const std::size_t from = all.find("app::", all.find("member = ")) + 5;
  return std::string(all.substr(from, all.find_first_of(";])", from) - from));
}

template <auto... members>
std::vector<NamedField> named_fields(MemberList<members...>) {
  const auto row = []<auto member>(std::integral_constant<decltype(member), member>) {
    return NamedField{member_name<member>(), &FieldOf<member>::assign, [](VerbCodec& line, std::any& value) {
                        typename FieldOf<member>::FieldType v{};
                        if (value.has_value()) v = std::any_cast<const decltype(v)&>(value);
                        line.field(v);
                        value = std::move(v);
                      }};
  };
  return {row(std::integral_constant<decltype(members), members>())...};
}

void VerbCodec::field(SetField& v) {
  static const std::vector<NamedField> all = named_fields(ViewFields());
  const std::string name = reads_ ? word() : "";
  const auto found = std::ranges::find_if(
      all, [&](const NamedField& f) { return reads_ ? f.name == name : f.assign == v.assign; });
  if (found == all.end()) fail("the name of a field of the view", name);
  if (!reads_) word(found->name);
  v.assign = found->assign;
  found->value(*this, v.value);
}

}  // namespace

std::string to_text(const Command& command) {
  VerbCodec line;
  command.visit([&]<class Verb>(Verb verb) {
    line.word(name_of<Verb>());
    line.field(verb);
  });
  return line.text();
}

std::vector<Command> fields_of(View view) {
  std::vector<Command> fields;
  const auto add_each = [&]<auto... members>(MemberList<members...>) {
    (fields.emplace_back(set<members>(part_of<typename FieldOf<members>::Owner>(view).*members)), ...);
  };
  add_each(ViewFields());
  return fields;
}

Command parse_command(std::string_view text) {
  return VerbCodec(text).verb(Verbs());
}

}  // namespace app
