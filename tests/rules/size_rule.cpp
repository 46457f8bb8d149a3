#include "tests/rules/size_rule.hpp"

#include <algorithm>
#include <regex>

#include "tests/rules/source_tree.hpp"

namespace tests::rules {
namespace {

/// The place of the bracket that closes the one at a place, or the end.
std::size_t closing(const std::string& code, std::size_t open) {
  int depth = 0;
  for (std::size_t k = open; k < code.size(); ++k) {
    if (std::string_view("({[").find(code[k]) != std::string_view::npos) ++depth;
    if (std::string_view(")}]").find(code[k]) != std::string_view::npos && --depth == 0) return k;
  }
  return code.size();
}

/// Without what stands between angle brackets, inner ones first.
std::string without_template_arguments(std::string text) {
  static const std::regex innermost("<[^<>]*>");
  for (std::string less; (less = std::regex_replace(text, innermost, "")) != text;) text = less;
  return text;
}

/// The declarations of a type's body, without what stands between brackets of any kind.
std::vector<std::string> declarations(const std::string& body) {
  std::vector<std::string> found(1);
  for (std::size_t k = 0; k < body.size(); ++k) {
    if (body[k] == ';') {
      found.emplace_back();
    } else if (body[k] == '(' || body[k] == '{' || body[k] == '[') {
      const bool is_of_function = body[k] == '{' && found.back().find("()") != std::string::npos;
      found.back() += body[k] == '(' ? "()" : "";
      k = closing(body, k);
      if (is_of_function) found.emplace_back();
    } else {
      found.back() += body[k];
    }
  }
  return found;
}

TypeSize size_of(const std::string& name, bool is_public, const std::string& body) {
  static const std::regex access(R"(\b(public|private|protected)\s*:(?!:))");
  static const std::regex neither(
      R"(\s*(struct|class|enum|union)\b[^()]*|\s*(using|friend|typedef|static_assert)\b[^]*|\s*)");
  static const std::regex function(R"([\w=!<>+*/%&|\]\s-]\(\))");
  static const std::regex shared(R"(\bstatic\b)");  // by all values
  TypeSize size{name, 0, 0};
  for (const std::string& declaration : declarations(body)) {
    std::string rest = declaration;
    for (std::smatch found; std::regex_search(rest, found, access); rest = found.suffix())
      is_public = found[1] == "public";
    rest = without_template_arguments(rest);
    if (!is_public || std::regex_match(rest, neither)) continue;
    const std::string declared = rest.substr(0, rest.find('='));
    const bool is_operator = rest.find("operator") != std::string::npos;
    const bool is_pointer = declared.find("()()") != std::string::npos;  // to a function
    if (is_operator || (!is_pointer && std::regex_search(declared, function)))
      ++size.functions;
    else if (!std::regex_search(declared, shared))
      size.members += 1 + static_cast<std::size_t>(std::count(rest.begin(), rest.end(), ','));
  }
  return size;
}

}  // namespace

std::vector<TypeSize> type_sizes(std::string_view text) {
  static const std::regex head(R"(\b(enum\s+)?(struct|class)\s+([\w:]+)(\s+final)?\s*(:[^;{}()]*)?\{)");
  const std::string code = without_comments_and_literals(text);
  std::vector<TypeSize> sizes;
  for (std::sregex_iterator found(code.begin(), code.end(), head), end; found != end; ++found) {
    if ((*found)[1].matched) continue;
    const auto open = static_cast<std::size_t>(found->position() + found->length() - 1);
    const std::string body = code.substr(open + 1, closing(code, open) - open - 1);
    sizes.push_back(size_of((*found)[3], (*found)[2] == "struct", body));
  }
  return sizes;
}

}  // namespace tests::rules
