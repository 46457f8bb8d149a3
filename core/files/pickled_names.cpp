#include "core/files/pickled_names.hpp"

#include <algorithm>
#include <unordered_set>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
#include "core/files/pickle_calls.hpp"

namespace core::formats::readers {
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

}  // namespace core::formats::readers
