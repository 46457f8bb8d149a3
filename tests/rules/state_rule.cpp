#include "tests/rules/state_rule.hpp"

#include <algorithm>
#include <regex>

#include "tests/rules/source_tree.hpp"

namespace tests::rules {
namespace {

/// Whether the text before an opening brace begins the body of a function (or of a loop within one).
bool opens_function(const std::string& before) {
  static const std::regex template_head(R"(\btemplate\s*<[^>]*>)");
  static const std::regex other(R"(\b(namespace|class|struct|union|enum|extern)\b)");
  const std::string head = std::regex_replace(before, template_head, "");
  const std::size_t open = head.find('(');
  return open != head.npos && !std::regex_search(head.substr(0, open), other);
}

/// A declaration from "static" on, up to its ';', '{' or '='.
std::string declaration_at(const std::string& code, std::size_t from) {
  return code.substr(from, std::min(code.find_first_of(";{=", from), code.size()) - from);
}

bool is_constant(const std::string& declaration) {
  static const std::regex fixed(R"(\bconstexpr\b)"), constant(R"(\bconst\b)"),
      constant_pointer(R"(\*\s*const\b)");
  if (std::regex_search(declaration, fixed)) return true;
  const bool pointer = declaration.find('*') != std::string::npos;
  return std::regex_search(declaration, pointer ? constant_pointer : constant);
}

}  // namespace

std::vector<std::size_t> mutable_statics(std::string_view text) {
  const std::string code = without_comments_and_literals(text);
  static const std::regex word(R"(\b(static|thread_local)\b)");
  std::vector<std::size_t> found;
  std::vector<bool> in_function{false};  // for each open brace, whether it stands in a function
  std::size_t statement = 0;             // where the statement under way began
  for (std::size_t k = 0; k < code.size(); ++k) {
    const char c = code[k];
    if (c == '{') {
      in_function.push_back(in_function.back() || opens_function(code.substr(statement, k - statement)));
    } else if (c == '}' && in_function.size() > 1) {
      in_function.pop_back();
    } else if ((c == 's' || c == 't') &&
               std::regex_search(code.begin() + static_cast<std::ptrdiff_t>(k), code.end(), word,
                                 std::regex_constants::match_continuous) &&
               (k == 0 || (!std::isalnum(static_cast<unsigned char>(code[k - 1])) && code[k - 1] != '_'))) {
      const std::string declaration = declaration_at(code, k);
      const bool function = !in_function.back() && declaration.find('(') != std::string::npos;
      if (!function && !is_constant(declaration)) found.push_back(count_lines(code.substr(0, k)) + 1);
      k += declaration.size() - 1;
      continue;
    }
    if (c == ';' || c == '{' || c == '}') statement = k + 1;
  }
  return found;
}

}  // namespace tests::rules
