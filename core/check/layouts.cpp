#include "core/check/layouts.hpp"

#include <array>

#include "core/base/find.hpp"

namespace core::check {
namespace {

constexpr std::array layout_table{
    Layout{"bhtd", "shrc", "heads before tokens"}, Layout{"bthd", "srhc", "heads after tokens"},
    Layout{"btd", "srj", "heads side by side"},    Layout{"htd", "hrc", "heads before tokens"},
    Layout{"thd", "rhc", "heads after tokens"},    Layout{"td", "rj", "heads side by side"},
};

}  // namespace

std::span<const Layout> layouts() {
  return layout_table;
}

const Layout* find_layout(std::string_view name) {
  return find_by(layout_table, name, &Layout::name);
}

const Layout* layout_of(std::string_view letters) {
  return find_by(layout_table, letters, &Layout::letters);
}

}  // namespace core::check
