#pragma once

#include <algorithm>

namespace core {

/// Returns the first item with that key, or nullptr; key_of is a function of the item or a member pointer.
template <class Items, class Key, class KeyOf>
auto* find_by(const Items& items, const Key& key, KeyOf key_of) {
  const auto found = std::ranges::find(items, key, key_of);
  return found == items.end() ? nullptr : &*found;
}

}  // namespace core
