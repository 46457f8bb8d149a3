#include "core/graph/sight_words.hpp"

namespace core::explain {
namespace {

using attention::Decided;
using attention::Mask;
using attention::Model;
using std::to_string;

std::string window_words(const attention::MaskWindow& window) {
  const auto side = [](const std::optional<std::size_t>& n, const char* name) {
    return n ? to_string(*n) + " " + name : std::string();
  };
  const std::string left = side(window.left, "left"), right = side(window.right, "right");
  return left + (left.empty() || right.empty() ? "" : ", ") + right;
}

/// Where something else than the causal rule decides, in words.
std::string by_another(const Mask& mask, Decided decided, std::size_t query, std::size_t key) {
  const std::string k = "key " + to_string(key), q = "query " + to_string(query);
  switch (decided) {
    case Decided::by_window:
      return k + " is outside the window of " + q + " (" + window_words(mask.window) + ")";
    case Decided::by_prefix:
      return k + " is one of the first " + to_string(mask.prefix) + ", which every query sees";
    case Decided::by_document:
      return k + " is of document " + to_string(mask.documents[key]) + ", " + q + " of document " +
             to_string(mask.documents[query]);
    case Decided::by_padding:
      return k + " is padding";
    default:
      return "";
  }
}

/// The same as a formula; place is the query's among the keys.
std::string formula_of_another(const Mask& mask, Decided decided, std::size_t query, std::size_t key,
                               std::int64_t place) {
  const std::string k = "key " + to_string(key);
  switch (decided) {
    case Decided::by_window:
      if (static_cast<std::int64_t>(key) < place)
        return k + " < " + to_string(place) + " − " + to_string(*mask.window.left);
      return k + " > " + to_string(place) + " + " + to_string(*mask.window.right);
    case Decided::by_prefix:
      return k + " < prefix " + to_string(mask.prefix);
    case Decided::by_document:
      return "document " + to_string(mask.documents[key]) + " ≠ " + to_string(mask.documents[query]);
    case Decided::by_padding:
      return k + " is padding";
    default:
      return "";
  }
}

bool is_causal(const Model& model) {
  return model.mask.causal && model.departures.mask_edge == attention::MaskEdge();
}

/// Why the causal rule hides a key where its edge is moved or turned over.
std::string moved_edge_words(const Model& model, std::size_t query, std::size_t key) {
  const attention::MaskEdge& edge = model.departures.mask_edge;
  const std::string q = "query " + to_string(query), k = "key " + to_string(key);
  const std::string by = edge.diagonal > 0   ? " + " + to_string(edge.diagonal)
                         : edge.diagonal < 0 ? " − " + to_string(-edge.diagonal)
                                             : "";
  if (edge.transposed)
    return k + " comes before " + q + (by.empty() ? "" : " by more than " + to_string(edge.diagonal)) +
           ", as the mask is transposed";
  return k + " comes after " + q + by + ", as the edge of the mask is moved";
}

}  // namespace

std::string sight_formula(const Model& model, std::size_t sequence, std::size_t query, std::size_t key) {
  const auto [visible, decided] = attention::sight(model, sequence, query, key);
  if (decided == Decided::by_hand) return visible ? "shown by hand" : "hidden by hand";
  if (std::string words =
          formula_of_another(model.mask, decided, query, key, attention::place_of_query(model, query));
      !words.empty())
    return words;
  if (!model.mask.causal)
    return model.mask.window == attention::MaskWindow()
               ? "no causal mask"
               : "within the window (" + window_words(model.mask.window) + ")";
  if (!is_causal(model)) return "by another rule than the causal one";
  const std::int64_t later = attention::place_of_query(model, 0);
  return "key " + to_string(key) + (visible ? " ≤ query " : " > query ") + to_string(query) +
         (later > 0   ? " + " + to_string(later)
          : later < 0 ? " − " + to_string(-later)
                      : "");
}

std::string sight_words(const Model& model, std::size_t sequence, std::size_t query, std::size_t key) {
  const auto [visible, decided] = attention::sight(model, sequence, query, key);
  if (decided == Decided::by_hand) return visible ? "shown by hand" : "hidden by hand";
  if (std::string words = by_another(model.mask, decided, query, key); !words.empty())
    return (visible ? "visible: " : "hidden: ") + words;
  if (visible) return "visible";
  if (!is_causal(model)) return "hidden: " + moved_edge_words(model, query, key);
  const std::int64_t place = attention::place_of_query(model, query);
  std::string words = "hidden: key " + to_string(key) + " comes after query " + to_string(query);
  if (place == static_cast<std::int64_t>(query)) return words;
  return words +
         (place < 0 ? ", which stands before every key" : ", which is the place of key " + to_string(place));
}

}  // namespace core::explain
