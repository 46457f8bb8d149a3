// Verbs as lines of text, so that a run of them can be written down and repeated: the name, and then all
// fields one after the other, through one visitor over the fields of any plain struct.
#include "app/session/command.hpp"

#include <array>
#include <charconv>
#include <source_location>

#include "core/base/error.hpp"
#include "core/files/session.hpp"

namespace app {
namespace {

using core::attention::Model;
using core::attention::SharedMatrix;

/// Calls visit with each field of a struct that has nothing else.
template <class T, class Visit>
void for_each_field(T& v, const Visit& visit) {
  using S = std::remove_const_t<T>;
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  if constexpr (std::is_empty_v<S>) {
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

/// The name of a type, as the compiler writes it, without its namespaces: "PinCell".
template <class T>
std::string name_of() {
  const std::string_view all = std::source_location::current().function_name();
  const std::size_t from = all.find("T = ") + 4;
  std::string name(all.substr(from, all.find_first_of(";]", from) - from));
  for (const std::string_view space : {" ", "app::", "core::editing::", "core::attention::"})
    for (std::size_t at; (at = name.find(space)) != name.npos;) name.erase(at, space.size());
  return name;
}

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

class Writer {
 public:
  template <class T>
  void write(const T& v) {
    if constexpr (std::is_enum_v<T>) {
      number(static_cast<std::underlying_type_t<T>>(v));
    } else if constexpr (std::is_same_v<T, bool>) {
      number(v ? 1 : 0);
    } else if constexpr (std::is_arithmetic_v<T>) {
      number(v);
    } else if constexpr (std::is_same_v<T, std::string>) {
      quoted(v);
    } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
      quoted(v.native());
    } else if constexpr (std::is_same_v<T, Model>) {
      quoted(core::formats::session_text({v, "", {}}));
    } else if constexpr (std::is_same_v<T, SharedMatrix>) {
      write(*v);
    } else if constexpr (std::is_same_v<T, arma::mat>) {
      number(v.n_rows), number(v.n_cols);
      for (const double x : v) number(x);
    } else if constexpr (is_optional<T>) {
      number(v ? 1 : 0);
      if (v) write(*v);
    } else if constexpr (is_variant<T>) {
      std::visit(
          [this]<class Kind>(const Kind& kind) {
            text += ' ' + name_of<Kind>();
            write(kind);
          },
          v);
    } else if constexpr (is_list<T>) {
      number(v.size());
      for (const auto& item : v) write(item);
    } else {
      for_each_field(v, [this](const auto& field) { write(field); });
    }
  }
  void write(const SetField& v);

  std::string text;

 private:
  template <class T>
  void number(T v) {
    std::array<char, 32> digits;
    text += ' ';
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), v).ptr);
  }
  void quoted(std::string_view words) {
    text += " \"";
    for (const char c : words) {
      if (c == '"' || c == '\\') text += '\\';
      text += c == '\n' ? "\\n" : std::string(1, c);
    }
    text += '"';
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  template <class T>
  void read(T& v) {
    if constexpr (std::is_enum_v<T>) {
      v = static_cast<T>(number<std::underlying_type_t<T>>());
    } else if constexpr (std::is_same_v<T, bool>) {
      v = number<int>() != 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      v = number<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      v = quoted();
    } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
      v = quoted();
    } else if constexpr (std::is_same_v<T, Model>) {
      v = core::formats::parse_session(quoted(), "a verb").model;
    } else if constexpr (std::is_same_v<T, SharedMatrix>) {
      v = value<arma::mat>();
    } else if constexpr (std::is_same_v<T, arma::mat>) {
      const auto n_rows = number<std::size_t>(), n_cols = number<std::size_t>();
      if (n_cols > 0 && n_rows > rest_.size() / n_cols) fail("as many numbers");
      v.set_size(n_rows, n_cols);
      for (double& x : v) x = number<double>();
    } else if constexpr (is_optional<T>) {
      v.reset();
      if (value<bool>()) v = value<typename T::value_type>();
    } else if constexpr (is_variant<T>) {
      read_kind(v, word());
    } else if constexpr (is_list<T>) {
      v = {};
      for (std::size_t n = count(); n > 0; --n) insert(v);
    } else {
      for_each_field(v, [this](auto& field) { read(field); });
    }
  }
  void read(SetField& v);

  std::string word() {
    skip();
    const std::size_t n = std::min(rest_.find(' '), rest_.size());
    const std::string word(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return word;
  }
  template <class T>
  T value() {
    T v{};
    read(v);
    return v;
  }
  /// The verb that begins with its name.
  template <class... All>
  std::optional<Command> one_of(VerbList<All...>) {
    std::optional<Command> verb;
    const std::string name = word();
    const auto is_it = [&]<class Verb>(std::type_identity<Verb>) {
      if (name != name_of<Verb>()) return false;
      verb = value<Verb>();
      return true;
    };
    if (!(is_it(std::type_identity<All>()) || ...)) fail("a verb by its name and not " + name);
    return verb;
  }
  void end() {
    if (!rest_.empty()) fail("the end");
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw core::Error("a verb: expected " + expected + ", got \"" + std::string(rest_.substr(0, 20)) + "\"");
  }
  void skip() {
    if (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  template <class T>
  T number() {
    skip();
    T v{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v);
    if (error != std::errc()) fail("a number");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return v;
  }
  std::size_t count() {
    const auto n = number<std::size_t>();
    if (n > rest_.size()) fail("as many values");
    return n;
  }
  std::string quoted() {
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
  void insert(List& list) {
    if constexpr (requires { typename List::mapped_type; }) {
      auto key = value<typename List::key_type>();
      list[std::move(key)] = value<typename List::mapped_type>();
    } else {
      list.insert(list.end(), value<typename List::value_type>());
    }
  }
  template <class... Kinds>
  void read_kind(std::variant<Kinds...>& v, const std::string& name) {
    const auto try_kind = [&]<class Kind>(std::type_identity<Kind>) {
      if (name != name_of<Kind>()) return false;
      v = value<Kind>();
      return true;
    };
    if (!(try_kind(std::type_identity<Kinds>()) || ...)) fail("a verb by its name and not " + name);
  }

  std::string_view rest_;
};

/// How a field of the view is written.
struct FieldText {
  std::string name;
  void (*assign)(View&, const std::any&);
  void (*write)(Writer&, const std::any&);
  std::any (*read)(Reader&);
};

template <auto member>
std::string member_name() {
  const std::string_view all = std::source_location::current().function_name();
  const std::size_t from = all.find("app::", all.find("member = ")) + 5;
  return std::string(all.substr(from, all.find_first_of(";])", from) - from));
}

template <auto... members>
std::vector<FieldText> field_texts(Members<members...>) {
  const auto row = []<auto member>(std::integral_constant<decltype(member), member>) {
    using Value = typename FieldOf<member>::Value;
    return FieldText{
        member_name<member>(), &FieldOf<member>::assign,
        [](Writer& writer, const std::any& value) { writer.write(std::any_cast<const Value&>(value)); },
        [](Reader& reader) { return std::any(reader.value<Value>()); }};
  };
  return {row(std::integral_constant<decltype(members), members>())...};
}

const FieldText& field_text(const auto& is_it) {
  static const std::vector<FieldText> all = field_texts(ViewFields());
  const auto found = std::find_if(all.begin(), all.end(), is_it);
  if (found == all.end()) throw core::Error("a verb: there is no such field of the view");
  return *found;
}

void Writer::write(const SetField& v) {
  const FieldText& field = field_text([&](const FieldText& f) { return f.assign == v.assign; });
  text += ' ' + field.name;
  field.write(*this, v.value);
}

void Reader::read(SetField& v) {
  const FieldText& field = field_text([name = word()](const FieldText& f) { return f.name == name; });
  v = {field.assign, field.read(*this)};
}

}  // namespace

std::string to_text(const Command& command) {
  Writer writer;
  command.visit([&]<class Verb>(const Verb& verb) {
    writer.text += name_of<Verb>();
    writer.write(verb);
  });
  return writer.text;
}

Command command_of(std::string_view line) {
  Reader reader(line);
  std::optional<Command> command = reader.one_of(Verbs());
  reader.end();
  return *std::move(command);
}

}  // namespace app
