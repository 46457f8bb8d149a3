#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/base/text.hpp"
#include "core/graph/bugs.hpp"

/// Bugs of the mask, and of how masked positions are excluded.
namespace core::bugs {
namespace {

using attention::Mask;
using graph::digits;
using graph::OperationInputs;
using std::to_string;

const Mask& mask_of(const Editing& e) {
  return e.get<graph::AttentionMask>(Stage::mask)->mask;
}
std::string other_end(const Editing& e) {
  return mask_of(e).align == attention::MaskAlignment::last ? "first" : "last";
}
void align_otherwise(Mask& mask) {
  using enum attention::MaskAlignment;
  mask.align = mask.align == last ? first : last;
}
std::optional<std::size_t> limit(double width) {
  return width < 0 ? std::optional<std::size_t>() : static_cast<std::size_t>(width);
}
double width_or_none(const std::optional<std::size_t>& side) {
  return side ? static_cast<double>(*side) : -1;
}
std::string keys_text(double n, const char* one, const char* many) {
  return digits(n) + (n > 1 ? many : one);
}

/// Changes the positions that the mask leaves unmasked, by a function of all rows; for each head if it says
/// so.
void change_cells(Editing& e, graph::StageFunction::Function function, bool by_head = false) {
  e.wrap(
      Stage::mask,
      [function = std::move(function)](const OperationInputs& in) { return in.selected(function(in)); }, {},
      "::");
  if (by_head) e.graph.find(Stage::mask)->heads = graph::NodeHeads::per_head;
}
/// Masks the keys of each sequence for which is(sequence, key).
template <class Is>
void set_padding(Editing& e, Is is) {
  const std::size_t n_sequences = e.model().sequences.size(), n_keys = e.model().n_keys();
  std::vector<std::vector<std::size_t>> hidden(n_sequences);
  bool hides = false;
  for (std::size_t s = 0; s < n_sequences; ++s)
    for (std::size_t key = 0; key < n_keys; ++key)
      if (is(s, static_cast<long>(key))) hidden[s].push_back(key), hides = true;
  e.change_mask([&](Mask& mask) { mask.hidden_keys = hides ? hidden : decltype(hidden)(); });
}

/// Rule of a mask, with its numbers.
struct MaskRule {
  const char* form;
  std::string (*words)(const Editing& before, const Numbers&);
  void (*edit)(Editing&, const Numbers&);
};

std::string window_text(double left, double right) {
  const auto side = [](double n) { return n < 0 ? "no limit" : digits(n); };
  return "[" + side(left) + ", " + side(right) + "]";
}
/// Describes a window that differs from the model's, by a rule if there is one.
std::string other_window_words(const Editing& before, const Numbers& x) {
  const double l = width_or_none(mask_of(before).window.left),
               r = width_or_none(mask_of(before).window.right), half_l = std::trunc(l / 2),
               half_r = std::trunc(r / 2);
  const std::pair<std::pair<double, double>, const char*> names[] = {
      {{l, l}, "the same on both sides"},
      {{2 * l, r}, "twice as wide on the left"},
      {{r, l}, "the other way round"},
      {{l, half_l}, "(w, w/2)"},
      {{half_l, half_r}, "half as wide on both sides"},
      {{half_l, r}, "half as wide on the left"},
      {{l - 1, r}, "one smaller on the left (counted with the query itself)"},
      {{l + 1, r}, "one larger on the left"}};
  const auto name = std::ranges::find(names, std::pair{x[0], x[1]},
                                      &std::pair<std::pair<double, double>, const char*>::first);
  return "the sliding window is " + window_text(x[0], x[1]) + " instead of " + window_text(l, r) +
         (name == std::end(names) ? "" : std::string(": ") + name->second);
}

constexpr std::array mask_rules{
    MaskRule{"aligned_otherwise",
             [](const Editing& before, const Numbers&) {
               return "the mask puts the queries at the " + other_end(before) + " keys (aligned " +
                      other_end(before) + ")";
             },
             [](Editing& e, const Numbers&) { e.change_mask(align_otherwise); }},
    MaskRule{"last_keys_masked",
             [](const Editing&, const Numbers& x) {
               return "the last " + keys_text(x[0], " key is", " keys are") +
                      " masked (or missing from the cache)";
             },
             [](Editing& e, const Numbers& x) {
               const long first = static_cast<long>(e.model().n_keys()) - static_cast<long>(x[0]);
               set_padding(e, [&](std::size_t, long key) { return key >= first; });
             }},
    MaskRule{"first_keys_masked",
             [](const Editing&, const Numbers& x) {
               return "the first " + keys_text(x[0], " key is", " keys are") +
                      " masked (or missing from the cache)";
             },
             [](Editing& e, const Numbers& x) {
               set_padding(e, [&](std::size_t, long key) { return static_cast<double>(key) < x[0]; });
             }},
    MaskRule{"causal_missing",
             [](const Editing&, const Numbers&) { return std::string("the causal mask is missing"); },
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.causal = false; }); }},
    MaskRule{"edge_moved",
             [](const Editing&, const Numbers& x) {
               if (x[0] > 0)
                 return "the causal mask lets every query see " +
                        keys_text(x[0], " key ahead", " keys ahead");
               return x[0] == -1
                          ? std::string("the causal mask hides a query's own key (strict: the diagonal too)")
                          : "the causal mask hides a query's own and " + digits(-x[0] - 1) + " more keys";
             },
             [](Editing& e, const Numbers& x) {
               e.change_mask([&](Mask& mask) { mask.edge.diagonal = static_cast<int>(x[0]); });
             }},
    MaskRule{"causal_transposed",
             [](const Editing&, const Numbers&) {
               return std::string("the causal mask is transposed (a query sees itself and what comes after)");
             },
             [](Editing& e, const Numbers&) {
               change_cells(e, [](const OperationInputs& in) { return arma::mat(in[0].t()); });
             }},
    MaskRule{"causal_added",
             [](const Editing&, const Numbers&) {
               return std::string("a causal mask is applied, which the model does not have");
             },
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.causal = true; }); }},
    MaskRule{"causal_added_otherwise",
             [](const Editing& before, const Numbers&) {
               return "a causal mask is applied from the first key on (aligned " + other_end(before) +
                      "), which the model does not have";
             },
             [](Editing& e, const Numbers&) {
               e.change_mask([](Mask& mask) { mask.causal = true, align_otherwise(mask); });
             }},
    MaskRule{"strictly_causal_added",
             [](const Editing&, const Numbers&) {
               return std::string("a strict causal mask is applied, which the model does not have");
             },
             [](Editing& e, const Numbers&) {
               e.change_mask([](Mask& mask) { mask.causal = true, mask.edge.diagonal = -1; });
             }},
    MaskRule{"window_added",
             [](const Editing&, const Numbers& x) {
               return "a sliding window of " + digits(x[0]) + (x[1] < 0 ? " to the left" : " to both sides") +
                      " is applied, which the model does not have";
             },
             [](Editing& e, const Numbers& x) {
               e.change_mask([&](Mask& mask) { mask.window = {limit(x[0]), limit(x[1])}; });
             }},
    MaskRule{"own_blocks",
             [](const Editing&, const Numbers& x) {
               return "queries see their own block of " + digits(x[0]) + " keys alone";
             },
             [](Editing& e, const Numbers& x) {
               e.mask_also([w = static_cast<std::int64_t>(x[0])](std::int64_t i, std::int64_t j,
                                                                 std::int64_t) { return i / w == j / w; });
             }},
    MaskRule{"window_missing",
             [](const Editing&, const Numbers&) {
               return std::string("the sliding window is missing (or hides nothing here)");
             },
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.window = {}; }); }},
    MaskRule{"other_window", other_window_words,
             [](Editing& e, const Numbers& x) {
               e.change_mask([&](Mask& mask) { mask.window = {limit(x[0]), limit(x[1])}; });
             }},
    MaskRule{"window_of_block",
             [](const Editing&, const Numbers& x) {
               return "queries of each block of " + digits(x[0]) +
                      " see back to where the sliding window of its first query begins";
             },
             [](Editing& e, const Numbers& x) {
               const auto n = static_cast<std::int64_t>(x[0]);
               const auto l = static_cast<std::int64_t>(width_or_none(mask_of(e).window.left));
               e.change_mask([](Mask& mask) { mask.window = {}; });
               e.mask_also([n, l](std::int64_t i, std::int64_t j, std::int64_t first) {
                 return j >= (i - first) / n * n + first - l;
               });
             }},
    MaskRule{"window_in_blocks",
             [](const Editing&, const Numbers& x) {
               return "the sliding window is cut in blocks of " + digits(x[0]) +
                      " (a query sees its own block)";
             },
             [](Editing& e, const Numbers& x) {
               e.change_mask([](Mask& mask) { mask.window = {}; });
               e.mask_also([w = static_cast<std::int64_t>(x[0])](std::int64_t i, std::int64_t j,
                                                                 std::int64_t) { return i / w == j / w; });
             }},
    MaskRule{"window_by_row",
             [](const Editing&, const Numbers&) {
               return std::string(
                   "the sliding window is counted from the query's row, not from its position "
                   "behind the earlier keys");
             },
             [](Editing& e, const Numbers&) {
               const Mask own = mask_of(e);
               const auto l = static_cast<std::int64_t>(width_or_none(own.window.left)),
                          r = static_cast<std::int64_t>(width_or_none(own.window.right));
               e.change_mask([](Mask& mask) { mask.window = {}; });
               e.mask_also(
                   [l, r, is_causal = own.causal](std::int64_t i, std::int64_t j, std::int64_t first) {
                     return (l < 0 || j >= i - first - l) && (r < 0 || is_causal || j <= i - first + r);
                   });
             }},
    MaskRule{"window_of_first_keys",
             [](const Editing&, const Numbers&) {
               return std::string("the sliding window keeps the first keys instead of the last");
             },
             [](Editing& e, const Numbers&) {
               const auto l = static_cast<std::int64_t>(width_or_none(mask_of(e).window.left));
               e.change_mask([](Mask& mask) { mask.window = {}; });
               e.mask_also([l](std::int64_t, std::int64_t j, std::int64_t) { return j <= l; });
             }},
    MaskRule{"window_replaces_causal",
             [](const Editing&, const Numbers&) {
               return std::string("the sliding window replaces the causal mask");
             },
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.causal = false; }); }},
    MaskRule{"window_to_both_sides",
             [](const Editing& before, const Numbers&) {
               return "the sliding window reaches " + digits(width_or_none(mask_of(before).window.left)) +
                      " to both sides and is not causal";
             },
             [](Editing& e, const Numbers&) {
               e.change_mask([](Mask& mask) { mask.causal = false, mask.window.right = mask.window.left; });
             }},
};

const MaskRule& mask_rule(const BugCase& c) {
  return *std::ranges::find(mask_rules, c.form, &MaskRule::form);
}

/// Returns the numbers of the mask for every sequence and head.
Numbers cells_of(const Editing& e) {
  graph::LazyStages stages(e.graph, e.model());
  Numbers all;
  for (std::size_t s = 0; s < e.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < e.model().n_heads; ++h) {
      const arma::mat& cells = stages.matrix(Stage::mask, s, stages.n_matrices(Stage::mask) == 1 ? 0 : h);
      all.insert(all.end(), cells.begin(), cells.end());
    }
  return all;
}

/// Adds rules, each once: rules that mask the same positions here are one, unless the model is large.
class MaskCases {
 public:
  MaskCases(const BugContext& c, BugCases& to) : c_(c), to_(to) {
    if (!c.is_large) seen_.insert(cells_of(c.now));
  }
  void add(const char* form, Numbers x = {}) {
    to_.add(std::move(x), form);
    if (c_.is_large) return;
    Editing other = c_.now;
    to_.all.back().edit(other);
    if (!seen_.insert(cells_of(other)).second) to_.all.pop_back();
  }

 private:
  const BugContext& c_;
  BugCases& to_;
  std::set<Numbers> seen_;
};

/// Returns widths that the first differing row suggests: what is left of it and its own key, or without it.
std::set<double> suggested_widths(const BugContext& c) {
  std::set<double> widths;
  if (c.differing_rows.empty()) return widths;
  const double row = static_cast<double>(c.differing_rows[0]) + static_cast<double>(c.model().n_keys()) -
                     static_cast<double>(c.model().n_tokens());
  for (const double width : {row - 1, row})
    if (width >= 0) widths.insert(width);
  return widths;
}

void try_added_windows(const BugContext& c, MaskCases& cases) {
  const double n_keys = static_cast<double>(c.model().n_keys());
  std::set<double> widths = suggested_widths(c);
  for (double w = 0; w < std::min(n_keys, c.is_large ? 0 : 32.0); ++w) widths.insert(w);
  for (int k = 5; k < 14; ++k)
    for (const int less : {0, 1})
      if ((1 << k) - less < n_keys) widths.insert((1 << k) - less);
  for (const double w : widths) {
    cases.add("window_added", {w, -1});
    if (!mask_of(c.now).causal) cases.add("window_added", {w, w});
  }
  for (double w = 2; w < std::min(n_keys, 17.0); ++w) cases.add("own_blocks", {w});
}

void try_other_windows(const BugContext& c, MaskCases& cases) {
  const Mask& own = mask_of(c.now);
  const double l = width_or_none(own.window.left), r = width_or_none(own.window.right),
               n_keys = static_cast<double>(c.model().n_keys()),
               n_tokens = static_cast<double>(c.model().n_tokens());
  cases.add("window_missing");
  std::set<std::pair<double, double>> done{{l, r}};
  const auto add = [&](double left, double right) {
    if (done.emplace(left, right).second) cases.add("other_window", {left, right});
  };
  std::set<double> widths = suggested_widths(c);
  const double greatest = c.is_large ? 0 : std::min(n_keys, 64.0);
  for (double w = -1; w <= greatest; ++w) widths.insert(w);
  for (int k = 6; k < 14; ++k)
    widths.insert({static_cast<double>((1 << k) - 1), static_cast<double>(1 << k)});
  widths.insert({l - 1, l + 1, std::trunc(l / 2), 2 * l});
  for (const double w : widths)
    if (w >= -1 && (!c.is_large || w <= n_keys)) add(w, r);
  for (const auto& [left, right] :
       {std::pair{l, l}, {r, l}, {l, std::trunc(l / 2)}, {std::trunc(l / 2), std::trunc(r / 2)}})
    add(left, right);
  if (!own.causal || r != 0)
    for (double left = -1; left <= std::min(greatest, 32.0); ++left)
      for (double right = -1; right <= std::min(greatest, 32.0); ++right) add(left, right);
  if (l > 0) {
    for (const double n : {2, 3, 4, 5, 6, 8, 16, 32, 64, 128})
      if (n < n_tokens) cases.add("window_of_block", {n});
    for (const double w : {l, l + 1}) cases.add("window_in_blocks", {w});
  }
  if (n_tokens != n_keys) cases.add("window_by_row"), cases.add("window_of_first_keys");
  if (own.causal) cases.add("window_replaces_causal"), cases.add("window_to_both_sides");
}

void try_masks(const BugContext& c, BugCases& to) {
  const Mask& own = mask_of(c.now);
  const bool is_square = c.model().n_tokens() == c.model().n_keys(),
             has_window = own.window.left || own.window.right;
  const double n_keys = static_cast<double>(c.model().n_keys());
  MaskCases cases(c, to);
  const auto try_cache = [&] {
    for (double n = 1; own.hidden_keys.empty() && n < std::min(n_keys, 9.0); ++n)
      cases.add("last_keys_masked", {n}), cases.add("first_keys_masked", {n});
  };
  if (!is_square && (own.causal || has_window)) cases.add("aligned_otherwise");
  if (!is_square) try_cache();
  if (own.causal) {
    cases.add("causal_missing");
    for (const double n : {1, -1, 2, -2, 3, -3, 4, -4}) cases.add("edge_moved", {n});
    if (is_square) cases.add("causal_transposed");
  } else {
    cases.add("causal_added");
    if (!is_square) cases.add("causal_added_otherwise");
    cases.add("strictly_causal_added");
  }
  if (has_window)
    try_other_windows(c, cases);
  else
    try_added_windows(c, cases);
  if (is_square) try_cache();
}

const std::array mask_rows{
    Bug{.name = "mask",
        .edit = [](Editing& e, const BugCase& c, ProjectionName) { mask_rule(c).edit(e, c.numbers); },
        .words = [](const Editing& before,
                    const BugCase& c) { return mask_rule(c).words(before, c.numbers); },
        .cases = try_masks},
};

}  // namespace

std::span<const Bug> mask_bugs() {
  return mask_rows;
}

}  // namespace core::bugs
