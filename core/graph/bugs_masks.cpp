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
std::string keys_text(double n, const char* one, const char* many) {
  return digits(n) + (n > 1 ? many : one);
}

// Cells of the mask, of all rows at once.

struct CellRule {
  const char* form;
  Words<double> words;
  arma::mat (*visible)(const OperationInputs& in, double x);  ///< from the whole mask, input 0
  bool by_head = false;
};

arma::mat nothing_masked(const arma::mat& mask) {
  return arma::mat(arma::size(mask), arma::fill::ones);
}
/// Returns the mask with its rows (0) or columns (1) rolled by one, forward or backward.
arma::mat rolled_by_one(const arma::mat& mask, double by, int axis) {
  return (axis == 0 ? mask.n_rows : mask.n_cols) > 1 ? arma::mat(arma::shift(mask, by > 0 ? 1 : -1, axis))
                                                     : mask;
}
/// Returns the mask with rows that hide every key replaced: attends(query, key).
template <class Attends>
arma::mat with_empty_rows(arma::mat mask, Attends attends) {
  for (std::size_t i = 0; i < mask.n_rows; ++i)
    for (std::size_t j = 0; arma::all(mask.row(i) == 0) && j < mask.n_cols; ++j)
      if (attends(i, j)) {
        for (std::size_t k = 0; k < mask.n_cols; ++k) mask(i, k) = attends(i, k);
        break;
      }
  return mask;
}
arma::mat row_for_every_query(const arma::mat& mask, std::size_t row) {
  return arma::repmat(mask.row(row), mask.n_rows, 1);
}

constexpr std::array cell_changes{
    CellRule{"causal_transposed", "the causal mask is transposed (a query sees itself and what comes after)",
             [](const OperationInputs& in, double) { return arma::mat(in[0].t()); }},
    CellRule{"causal_transposed_added",
             "the mask hides what comes before (transposed causal), which the model does not do",
             [](const OperationInputs& in, double) { return arma::mat(arma::trimatu(in[0])); }},
    CellRule{"padding_over_heads",
             "padding masks are laid over heads instead of sequences ([batch · heads] read as "
             "[heads · batch])",
             [](const OperationInputs& in, double) {
               const std::size_t nth = in.sequence * in.model.n_heads + in.head;
               return in.of_sequence(0, nth % in.model.sequences.size(), 0);
             },
             true},
    CellRule{"inverted", "the mask is inverted (masked positions are attended to)",
             [](const OperationInputs& in, double) { return arma::mat(1 - in[0]); }},
    CellRule{"missing", "the mask is missing altogether",
             [](const OperationInputs& in, double) { return nothing_masked(in[0]); }},
    CellRule{"transposed", "the mask is transposed",
             [](const OperationInputs& in, double) { return arma::mat(in[0].t()); }},
    CellRule{"keys_reversed", "the mask runs backwards along the keys",
             [](const OperationInputs& in, double) { return arma::mat(arma::fliplr(in[0])); }},
    CellRule{"diagonal_masked", "the mask hides the diagonal too",
             [](const OperationInputs& in, double) {
               arma::mat visible = in[0];
               visible.diag().zeros();
               return visible;
             }},
    CellRule{"head_not_masked", "head {0} is not masked",
             [](const OperationInputs& in, double head) {
               return static_cast<double>(in.head) == head ? nothing_masked(in[0]) : in[0];
             },
             true},
    CellRule{"head_masked_alone", "only head {0} is masked",
             [](const OperationInputs& in, double head) {
               return static_cast<double>(in.head) == head ? in[0] : nothing_masked(in[0]);
             },
             true},
    CellRule{"keys_rolled", "the mask is rolled by {0} along the keys",
             [](const OperationInputs& in, double by) { return rolled_by_one(in[0], by, 1); }},
    CellRule{"queries_rolled", "the mask is rolled by {0} along the queries",
             [](const OperationInputs& in, double by) { return rolled_by_one(in[0], by, 0); }},
    CellRule{"empty_rows_unmasked", "queries without an unmasked key attend to every key",
             [](const OperationInputs& in, double) {
               return with_empty_rows(in[0], [](std::size_t, std::size_t) { return true; });
             }},
    CellRule{"empty_rows_causal", "queries without an unmasked key attend to all keys up to their own",
             [](const OperationInputs& in, double) {
               return with_empty_rows(in[0], [](std::size_t i, std::size_t j) { return j <= i; });
             }},
    CellRule{"empty_rows_diagonal", "queries without an unmasked key attend to their own key",
             [](const OperationInputs& in, double) {
               return with_empty_rows(in[0], [](std::size_t i, std::size_t j) { return j == i; });
             }},
    CellRule{"last_query", "the mask of the last query is used for all",
             [](const OperationInputs& in, double) { return row_for_every_query(in[0], in[0].n_rows - 1); }},
    CellRule{"first_query", "the mask of the first query is used for all",
             [](const OperationInputs& in, double) { return row_for_every_query(in[0], 0); }},
};

void change_cells(Editing& e, const CellRule& change, double x) {
  e.wrap(
      Stage::mask,
      [visible = change.visible, x](const OperationInputs& in) { return in.selected(visible(in, x)); }, {},
      "::");
  if (change.by_head) mask_by_head(e);
}

// Padding.

/// Keys of each sequence that a mask hides as padding.
class Padding {
 public:
  explicit Padding(const Editing& e)
      : hidden_(mask_of(e).hidden_keys), n_keys_(static_cast<long>(e.model().n_keys())) {}
  long n_keys() const { return n_keys_; }
  bool has(std::size_t sequence, long key) const {
    return key >= 0 && sequence < hidden_.size() &&
           std::ranges::binary_search(hidden_[sequence], static_cast<std::size_t>(key));
  }
  bool has_in_any_sequence(long key) const {
    return std::ranges::any_of(hidden_, [&](const auto& keys) {
      return std::ranges::binary_search(keys, static_cast<std::size_t>(key));
    });
  }

 private:
  std::vector<std::vector<std::size_t>> hidden_;
  long n_keys_;
};

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

/// Lets every sequence have the padding of another: of(sequence).
template <class Of>
void take_padding_of(Editing& e, Of of) {
  set_padding(e, [&, own = Padding(e)](std::size_t s, long key) { return own.has(of(s), key); });
}

/// Masks every key for the queries that are padding.
void mask_padded_queries(Editing& e) {
  e.wrap(Stage::mask, [own = Padding(e)](const OperationInputs& in) {
    arma::mat visible = in[0];
    for (std::size_t a = 0; a < visible.n_rows; ++a)
      if (own.has(in.sequence, static_cast<long>(in.row(a)))) visible.row(a).zeros();
    return visible;
  });
}

/// Lets padded queries attend to padded keys alone, as if padding were a document.
void separate_padding(Editing& e) {
  const Padding own(e);
  e.change_mask([](Mask& mask) { mask.hidden_keys.clear(); });
  e.wrap(Stage::mask, [own](const OperationInputs& in) {
    arma::mat visible = in[0];
    for (std::size_t a = 0; a < visible.n_rows; ++a)
      for (std::size_t key = 0; key < visible.n_cols; ++key)
        if (own.has(in.sequence, static_cast<long>(in.row(a))) !=
            own.has(in.sequence, static_cast<long>(key)))
          visible(a, key) = 0;
    return visible;
  });
}

/// Other place of the padding.
struct PaddingMove {
  const char* form;
  Words<double> words;
  bool (*is)(const Padding& own, std::size_t sequence, long key, long n);
  bool says_keys = true;
};

constexpr std::array padding_moves{
    PaddingMove{"padding_shifted",
                [](double n) {
                  return "is shifted by " + digits(std::abs(n)) + " to the " + (n > 0 ? "right" : "left");
                },
                [](const Padding& own, std::size_t s, long key, long n) { return own.has(s, key - n); }},
    PaddingMove{"padding_early", "begins {0} early",
                [](const Padding& own, std::size_t s, long key, long n) {
                  return own.has(s, key + n) || own.has(s, key);
                }},
    PaddingMove{"padding_rolled", "is rolled by {0}",
                [](const Padding& own, std::size_t s, long key, long n) {
                  const long n_keys = own.n_keys();
                  return own.has(s, ((key - n) % n_keys + n_keys) % n_keys);
                }},
    PaddingMove{"padding_inverted", "is inverted (the real keys are masked)",
                [](const Padding& own, std::size_t s, long key, long) { return !own.has(s, key); }, false},
    PaddingMove{
        "padding_reversed", "is at the other end",
        [](const Padding& own, std::size_t s, long key, long) { return own.has(s, own.n_keys() - 1 - key); }},
    PaddingMove{"padding_of_any", "of any sequence is that of all",
                [](const Padding& own, std::size_t, long key, long) { return own.has_in_any_sequence(key); },
                false},
};

void move_padding(Editing& e, const PaddingMove& move, double n) {
  set_padding(e, [&, own = Padding(e)](std::size_t s, long key) {
    return move.is(own, s, key, static_cast<long>(n));
  });
}

/// Describes the keys of the first sequence for which is(key): "3–5".
template <class Is>
std::string keys_where(long n_keys, Is is) {
  std::vector<std::size_t> all;
  for (long key = 0; key < n_keys; ++key)
    if (is(key)) all.push_back(static_cast<std::size_t>(key));
  if (all.empty()) return "none";
  if (all.size() > 1 && all.back() - all.front() + 1 == all.size())
    return to_string(all.front()) + "–" + to_string(all.back());
  return graph::list_of(all);
}
std::string moved_padding_words(const Editing& before, const PaddingMove& move, double n) {
  const std::string words = "the padding mask " + move.words(n);
  if (!move.says_keys) return words;
  const Padding own(before);
  const auto is = [&](long key) { return move.is(own, 0, key, static_cast<long>(n)); };
  return words + " (keys " + keys_where(own.n_keys(), is) + " are masked instead of " +
         keys_where(own.n_keys(), [&](long key) { return own.has(0, key); }) + ")";
}

/// Returns where documents begin, the first only if wanted.
std::vector<std::size_t> boundaries_of(const Mask& mask, bool with_first = false) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < mask.documents.size(); ++i)
    if (i == 0 ? with_first : mask.documents[i] != mask.documents[i - 1]) all.push_back(i);
  return all;
}

/// Rule of a mask, with its numbers.
struct MaskRule {
  const char* form;
  Words<const Editing&, const Numbers&> words;
  void (*edit)(Editing&, const Numbers&);
  std::ptrdiff_t n_numbers = 0;  ///< of rules that may be the second of two
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

void set_prefix(Editing& e, const Numbers& x) {
  e.change_mask([&](Mask& mask) { mask.prefix = static_cast<std::size_t>(x[0]); });
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
    MaskRule{"causal_missing", "the causal mask is missing",
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
    MaskRule{"causal_added", "a causal mask is applied, which the model does not have",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.causal = true; }); }},
    MaskRule{"causal_added_otherwise",
             [](const Editing& before, const Numbers&) {
               return "a causal mask is applied from the first key on (aligned " + other_end(before) +
                      "), which the model does not have";
             },
             [](Editing& e, const Numbers&) {
               e.change_mask([](Mask& mask) { mask.causal = true, align_otherwise(mask); });
             }},
    MaskRule{"strictly_causal_added", "a strict causal mask is applied, which the model does not have",
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
             },
             2},
    MaskRule{"own_blocks", "queries see their own block of {0} keys alone",
             [](Editing& e, const Numbers& x) {
               e.mask_also([w = static_cast<std::int64_t>(x[0])](std::int64_t i, std::int64_t j,
                                                                 std::int64_t) { return i / w == j / w; });
             },
             1},
    MaskRule{"own_blocks_and_prefix",
             [](const Editing&, const Numbers& x) {
               return "queries see their own block of " + digits(x[0]) + " keys and the first " +
                      keys_text(x[1], " key", " keys");
             },
             [](Editing& e, const Numbers& x) {
               set_prefix(e, {x[1]});
               e.mask_also(
                   [w = static_cast<std::int64_t>(x[0]), n = static_cast<std::int64_t>(x[1])](
                       std::int64_t i, std::int64_t j, std::int64_t) { return j < n || i / w == j / w; });
             }},
    MaskRule{"window_or_block", "queries see their own block of {0} keys beside the sliding window",
             [](Editing& e, const Numbers& x) {
               const auto l = static_cast<std::int64_t>(width_or_none(mask_of(e).window.left));
               e.change_mask([](Mask& mask) { mask.window.left = {}; });
               e.mask_also(
                   [w = static_cast<std::int64_t>(x[0]), l](std::int64_t i, std::int64_t j, std::int64_t) {
                     return j >= i - l || i / w == j / w;
                   });
             }},
    MaskRule{"window_missing", "the sliding window is missing (or hides nothing here)",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.window = {}; }); }},
    MaskRule{"other_window", other_window_words,
             [](Editing& e, const Numbers& x) {
               e.change_mask([&](Mask& mask) { mask.window = {limit(x[0]), limit(x[1])}; });
             }},
    MaskRule{"window_of_block",
             "queries of each block of {0} see back to where the sliding window of its first query begins",
             [](Editing& e, const Numbers& x) {
               const auto n = static_cast<std::int64_t>(x[0]);
               const auto l = static_cast<std::int64_t>(width_or_none(mask_of(e).window.left));
               e.change_mask([](Mask& mask) { mask.window = {}; });
               e.mask_also([n, l](std::int64_t i, std::int64_t j, std::int64_t first) {
                 return j >= (i - first) / n * n + first - l;
               });
             }},
    MaskRule{"window_in_blocks", "the sliding window is cut in blocks of {0} (a query sees its own block)",
             [](Editing& e, const Numbers& x) {
               e.change_mask([](Mask& mask) { mask.window = {}; });
               e.mask_also([w = static_cast<std::int64_t>(x[0])](std::int64_t i, std::int64_t j,
                                                                 std::int64_t) { return i / w == j / w; });
             }},
    MaskRule{"window_by_row",
             "the sliding window is counted from the query's row, not from its position "
             "behind the earlier keys",
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
    MaskRule{"window_of_first_keys", "the sliding window keeps the first keys instead of the last",
             [](Editing& e, const Numbers&) {
               const auto l = static_cast<std::int64_t>(width_or_none(mask_of(e).window.left));
               e.change_mask([](Mask& mask) { mask.window = {}; });
               e.mask_also([l](std::int64_t, std::int64_t j, std::int64_t) { return j <= l; });
             }},
    MaskRule{"window_replaces_causal", "the sliding window replaces the causal mask",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.causal = false; }); }},
    MaskRule{"window_to_both_sides",
             [](const Editing& before, const Numbers&) {
               return "the sliding window reaches " + digits(width_or_none(mask_of(before).window.left)) +
                      " to both sides and is not causal";
             },
             [](Editing& e, const Numbers&) {
               e.change_mask([](Mask& mask) { mask.causal = false, mask.window.right = mask.window.left; });
             }},
    MaskRule{"padding_missing", "the padding mask is missing",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.hidden_keys.clear(); }); }},
    MaskRule{"padding_of_queries", "the padding mask hides the padded rows (queries) instead of the keys",
             [](Editing& e, const Numbers&) {
               mask_padded_queries(e);
               e.change_mask([](Mask& mask) { mask.hidden_keys.clear(); });
             }},
    MaskRule{"padding_of_queries_too", "the padding mask hides the padded rows (queries) too",
             [](Editing& e, const Numbers&) { mask_padded_queries(e); }},
    MaskRule{"padding_as_document",
             "padding is a document of its own (padded queries attend to padded keys, and to no others)",
             [](Editing& e, const Numbers&) { separate_padding(e); }},
    MaskRule{"padding_of_other_sequence",
             "every sequence has the padding mask of the sequence {0} further (cyclic)",
             [](Editing& e, const Numbers& x) {
               take_padding_of(e, [by = static_cast<std::size_t>(x[0]),
                                   n = e.model().sequences.size()](std::size_t s) { return (s + by) % n; });
             }},
    MaskRule{
        "padding_of_first_sequence", "all sequences have the padding mask of sequence 0",
        [](Editing& e, const Numbers&) { take_padding_of(e, [](std::size_t) { return std::size_t{0}; }); }},
    MaskRule{"padding_replaces_causal", "the padding mask replaces the causal mask",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.causal = false; }); }},
    MaskRule{"documents_missing", "documents are ignored",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.documents.clear(); }); }},
    MaskRule{"documents_moved",
             [](const Editing&, const Numbers& x) {
               return "documents begin " + digits(std::abs(x[0])) + (x[0] > 0 ? " later" : " earlier");
             },
             [](Editing& e, const Numbers& x) {
               e.change_mask([by = static_cast<long>(x[0])](Mask& mask) {
                 const std::vector<std::size_t> own = mask.documents;
                 const long last = static_cast<long>(own.size()) - 1;
                 for (long i = 0; i <= last; ++i)
                   mask.documents[static_cast<std::size_t>(i)] =
                       own[static_cast<std::size_t>(std::clamp(i - by, 0L, last))];
               });
             }},
    MaskRule{"boundary_moved",
             [](const Editing& before, const Numbers& x) {
               const std::size_t at = boundaries_of(mask_of(before))[static_cast<std::size_t>(x[0])];
               return "the document that begins at " + to_string(at) + " begins " + digits(std::abs(x[1])) +
                      (x[1] > 0 ? " later" : " earlier") + ", the others where they should";
             },
             [](Editing& e, const Numbers& x) {
               e.change_mask([&](Mask& mask) {
                 const auto at = static_cast<long>(boundaries_of(mask)[static_cast<std::size_t>(x[0])]),
                            to = at + static_cast<long>(x[1]);
                 std::vector<std::size_t>& of = mask.documents;
                 const std::size_t earlier = of[static_cast<std::size_t>(at) - 1],
                                   later = of[static_cast<std::size_t>(at)];
                 for (long i = std::min(at, to); i < std::max(at, to); ++i)
                   of[static_cast<std::size_t>(i)] = to < at ? later : earlier;
               });
             }},
    MaskRule{"documents_merged",
             [](const Editing& before, const Numbers& x) {
               const std::vector<std::size_t> at = boundaries_of(mask_of(before), true);
               const auto first = static_cast<std::size_t>(x[0]), second = static_cast<std::size_t>(x[1]);
               return "the documents that begin at " + to_string(at[first]) + " and at " +
                      to_string(at[second]) + " are one" +
                      (second == first + 1 ? " (the boundary between them is missing)" : "");
             },
             [](Editing& e, const Numbers& x) {
               e.change_mask([&](Mask& mask) {
                 const std::vector<std::size_t> at = boundaries_of(mask, true);
                 const std::size_t kept = mask.documents[at[static_cast<std::size_t>(x[0])]],
                                   merged = mask.documents[at[static_cast<std::size_t>(x[1])]];
                 std::ranges::replace(mask.documents, merged, kept);
               });
             }},
    MaskRule{"document_cut", "one more document begins at {0}",
             [](Editing& e, const Numbers& x) {
               e.change_mask([&](Mask& mask) {
                 const auto first = mask.documents.begin() + static_cast<std::ptrdiff_t>(x[0]);
                 const std::size_t own = *first, added = *std::ranges::max_element(mask.documents) + 1;
                 std::replace(first, mask.documents.end(), own, added);
               });
             }},
    MaskRule{"documents_replace_causal", "documents replace the causal mask (all of the document is seen)",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.causal = false; }); }},
    MaskRule{"documents_and_window_missing", "documents and sliding window are both ignored",
             [](Editing& e, const Numbers&) {
               e.change_mask([](Mask& mask) { mask.documents.clear(), mask.window = {}; });
             }},
    MaskRule{"documents_inverted",
             "documents are told apart the other way round (a query sees the other documents)",
             [](Editing& e, const Numbers&) {
               const std::vector<std::size_t> own = mask_of(e).documents;
               e.change_mask([](Mask& mask) { mask.documents.clear(); });
               e.mask_also([own](std::int64_t i, std::int64_t j, std::int64_t) {
                 const auto last = static_cast<std::int64_t>(own.size()) - 1;
                 const auto of = [&](std::int64_t place) {
                   return own[static_cast<std::size_t>(std::clamp<std::int64_t>(place, 0, last))];
                 };
                 return of(i) != of(j);
               });
             }},
    MaskRule{"prefix_missing", "the prefix is not visible to everyone (it is ignored)",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.prefix = 0; }); }},
    MaskRule{"other_prefix",
             [](const Editing& before, const Numbers& x) {
               return "the prefix has " + digits(x[0]) + " keys instead of " +
                      to_string(mask_of(before).prefix);
             },
             set_prefix, 1},
    MaskRule{"prefix_added",
             "the first {0} keys are visible to every query (a prefix or kept sink tokens), which the model "
             "does not do",
             set_prefix, 1},
    MaskRule{"cells_missing", "the single cells of the mask are ignored",
             [](Editing& e, const Numbers&) { e.change_mask([](Mask& mask) { mask.cells.clear(); }); }},
    MaskRule{"cells_transposed", "the single cells of the mask are transposed",
             [](Editing& e, const Numbers&) {
               e.change_mask([n_rows = e.model().n_tokens(), n_keys = e.model().n_keys()](Mask& mask) {
                 std::erase_if(mask.cells, [&](const attention::MaskCell& cell) {
                   return cell.column >= n_rows || cell.row >= n_keys;
                 });
                 for (attention::MaskCell& cell : mask.cells) std::swap(cell.row, cell.column);
                 std::ranges::sort(mask.cells);
               });
             }},
    MaskRule{"cells_inverted", "the single cells of the mask are inverted",
             [](Editing& e, const Numbers&) {
               e.change_mask([](Mask& mask) {
                 for (attention::MaskCell& cell : mask.cells) cell.visible = !cell.visible;
               });
             }},
};

/// Splits a form of two rules, "window_added+prefix_added": the second has as many numbers as it needs, the
/// first those before.
struct RulePair {
  const MaskRule* first = nullptr;
  const MaskRule* second = nullptr;
  Numbers of_first, of_second;
  explicit RulePair(const BugCase& c) {
    const std::size_t plus = c.form.find('+');
    if (plus == c.form.npos) return;
    first = find_form(mask_rules, std::string_view(c.form).substr(0, plus));
    second = find_form(mask_rules, std::string_view(c.form).substr(plus + 1));
    of_first.assign(c.numbers.begin(), c.numbers.end() - second->n_numbers);
    of_second.assign(c.numbers.end() - second->n_numbers, c.numbers.end());
  }
  explicit operator bool() const { return first; }
};

void edit_mask(Editing& e, const BugCase& c, ProjectionName) {
  if (const RulePair both(c); both)
    both.first->edit(e, both.of_first), both.second->edit(e, both.of_second);
  else if (const CellRule* change = find_form(cell_changes, c.form))
    change_cells(e, *change, c.number());
  else if (const PaddingMove* move = find_form(padding_moves, c.form))
    move_padding(e, *move, c.number());
  else
    find_form(mask_rules, c.form)->edit(e, c.numbers);
}
std::string mask_words(const Editing& before, const BugCase& c) {
  if (const RulePair both(c); both)
    return both.first->words(before, both.of_first) + ", and " + both.second->words(before, both.of_second);
  if (const CellRule* change = find_form(cell_changes, c.form)) return change->words(c.number());
  if (const PaddingMove* move = find_form(padding_moves, c.form))
    return moved_padding_words(before, *move, c.number());
  return find_form(mask_rules, c.form)->words(before, c.numbers);
}

/// Returns which cells are unmasked, in every sequence and head.
std::vector<bool> unmasked_cells(const Editing& e) {
  graph::LazyStages stages(e.graph, e.model());
  std::vector<bool> all;
  for (std::size_t s = 0; s < e.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < stages.n_matrices(Stage::mask); ++h)
      for (const double cell : *stages.matrix(Stage::mask, s, h)) all.push_back(cell != 0);
  return all;
}

/// Adds rules, each once: rules that mask the same positions here are one, unless the model is large.
class MaskCases {
 public:
  MaskCases(const BugContext& c, BugCases& to) : c_(c), to_(to) {
    if (!c.is_large) seen_.insert(unmasked_cells(c.now));
  }
  void add(const char* form, Numbers x = {}) {
    to_.add(std::move(x), form);
    if (c_.is_large) return;
    Editing other = c_.now;
    to_.all.back().edit(other);
    if (!seen_.insert(unmasked_cells(other)).second) to_.all.pop_back();
  }

 private:
  const BugContext& c_;
  BugCases& to_;
  std::set<std::vector<bool>> seen_;
};

using WindowSizes = std::set<std::pair<double, double>>;

/// Returns the windows that the first differing row suggests, and the smallest that has all that is unmasked.
WindowSizes suggested_windows(const BugContext& c) {
  const Model& m = c.model();
  const double n_before = static_cast<double>(m.n_keys()) - static_cast<double>(m.n_tokens());
  WindowSizes found;
  if (!c.differing_rows.empty()) {
    const double i = static_cast<double>(c.differing_rows[0]) + n_before;
    found.insert({{i - 1, 0}, {i - 1, -1}, {i, 0}, {i, -1}});
  }
  if (const ObservedMask observed = observed_mask(c); observed.matrices) {
    const double first = mask_of(c.now).align == attention::MaskAlignment::last ? n_before : 0;
    double left = -1, right = -1;
    for (std::size_t k = 0; k < observed.matrices->size(); ++k)
      for (std::size_t key = 0; key < m.n_keys(); ++key)
        for (std::size_t query = 0; query < m.n_tokens(); ++query) {
          if (observed.is_masked(k, query, key)) continue;
          const double behind = static_cast<double>(query) + first - static_cast<double>(key);
          left = std::max(left, behind), right = std::max(right, -behind);
        }
    found.insert({{left, std::max(right, 0.0)}, {left, -1}});
  }
  std::erase_if(found, [](const auto& window) { return window.first < 0; });
  return found;
}
std::set<double> widths_of(const WindowSizes& windows) {
  std::set<double> widths;
  for (const auto& [left, right] : windows) widths.insert(left);
  return widths;
}

void try_blocks(MaskCases& cases, const char* form, double n_keys) {
  for (double w = 2; w < std::min(n_keys, 17.0); ++w) cases.add(form, {w});
}
void try_added_windows(const BugContext& c, MaskCases& cases) {
  const double n_keys = static_cast<double>(c.model().n_keys());
  std::set<double> widths = widths_of(suggested_windows(c));
  for (double w = 0; w < std::min(n_keys, c.is_large ? 0 : 32.0); ++w) widths.insert(w);
  for (int k = 5; k < 14; ++k)
    for (const int less : {0, 1})
      if ((1 << k) - less < n_keys) widths.insert((1 << k) - less);
  for (const double w : widths) {
    cases.add("window_added", {w, -1});
    if (!mask_of(c.now).causal) cases.add("window_added", {w, w});
  }
  try_blocks(cases, "own_blocks", n_keys);
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
  const WindowSizes suggested = suggested_windows(c);
  std::set<double> widths = widths_of(suggested);
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
  for (const auto& [left, right] : suggested) add(left, right);
  if (l > 0) {
    for (const double n : {2, 3, 4, 5, 6, 8, 16, 32, 64, 128})
      if (n < n_tokens) cases.add("window_of_block", {n});
    for (const double w : {l, l + 1}) cases.add("window_in_blocks", {w});
    for (const char* form : {"window_in_blocks", "own_blocks", "window_or_block"})
      try_blocks(cases, form, n_keys);
  }
  if (n_tokens != n_keys) cases.add("window_by_row"), cases.add("window_of_first_keys");
  if (own.causal) cases.add("window_replaces_causal"), cases.add("window_to_both_sides");
}

void try_paddings(const BugContext& c, MaskCases& cases) {
  const double n_keys = static_cast<double>(c.model().n_keys());
  cases.add("padding_missing");
  for (const double n : {1, -1, 2, -2, 3, -3}) {
    if (std::abs(n) >= n_keys) continue;
    cases.add("padding_shifted", {n});
    if (n < 0) cases.add("padding_early", {-n});
    cases.add("padding_rolled", {n});
  }
  cases.add("padding_inverted"), cases.add("padding_reversed");
  if (c.model().n_tokens() == c.model().n_keys())
    cases.add("padding_of_queries"), cases.add("padding_of_queries_too");
  const std::size_t n_sequences = c.model().sequences.size();
  if (n_sequences > 1) {
    for (std::size_t by = 1; by < n_sequences; ++by)
      cases.add("padding_of_other_sequence", {static_cast<double>(by)});
    for (const char* form : {"padding_of_first_sequence", "padding_of_any", "padding_over_heads"})
      cases.add(form);
  }
  cases.add("padding_replaces_causal");
  if (c.model().n_tokens() == c.model().n_keys()) cases.add("padding_as_document");
}

/// Moves, drops and adds one boundary of documents.
void try_boundaries(const Mask& own, MaskCases& cases) {
  constexpr std::size_t max_documents = 9, max_tokens = 64;
  const std::vector<std::size_t> at = boundaries_of(own);
  const std::size_t n = own.documents.size(), n_documents = std::min(at.size() + 1, max_documents);
  for (std::size_t k = 0; k + 1 < n_documents; ++k)
    cases.add("documents_merged", {static_cast<double>(k), static_cast<double>(k + 1)});
  for (std::size_t k = 0; k + 1 < n_documents; ++k)
    for (const int by : {1, -1, 2, -2, 3, -3}) {
      const long to = static_cast<long>(at[k]) + by, before = k > 0 ? static_cast<long>(at[k - 1]) : 0,
                 after = static_cast<long>(k + 1 < at.size() ? at[k + 1] : n);
      if (to > before && to < after)
        cases.add("boundary_moved", {static_cast<double>(k), static_cast<double>(by)});
    }
  for (std::size_t first = 0; first < n_documents; ++first)
    for (std::size_t second = first + 2; second < n_documents; ++second)
      cases.add("documents_merged", {static_cast<double>(first), static_cast<double>(second)});
  for (std::size_t i = 1; i < std::min(n, max_tokens); ++i)
    if (own.documents[i] == own.documents[i - 1]) cases.add("document_cut", {static_cast<double>(i)});
}

/// Tries two rules instead of what the model has: masks are sets of rules.
void try_two_rules(const BugContext& c, MaskCases& cases) {
  if (c.is_large) return;
  const Mask& own = mask_of(c.now);
  const double n_keys = static_cast<double>(c.model().n_keys()), l = width_or_none(own.window.left),
               r = width_or_none(own.window.right), widest = std::min(n_keys - 1, 17.0);
  const bool has_window = own.window.left || own.window.right, has_documents = !own.documents.empty(),
             has_padding = !own.hidden_keys.empty(), has_prefix = own.prefix > 0;
  if (has_documents && has_padding) cases.add("documents_missing+padding_missing");
  if (has_window && has_padding) cases.add("window_missing+padding_missing");
  if (has_prefix && has_padding) cases.add("prefix_missing+padding_missing");
  if (has_window && has_prefix) cases.add("window_missing+prefix_missing");
  if (has_documents && has_prefix) cases.add("documents_missing+prefix_missing");
  if (own.causal && has_padding) cases.add("causal_missing+padding_missing");
  if (own.causal && has_documents) cases.add("causal_missing+documents_missing");
  for (double w = 1; !has_window && w < widest; ++w) {
    if (has_documents) cases.add("documents_missing+window_added", {w, -1});
    if (has_prefix) cases.add("prefix_missing+window_added", {w, -1});
  }
  for (double w = 2; w < widest; ++w) {
    if (has_documents) cases.add("documents_missing+own_blocks", {w});
    if (has_prefix) cases.add("prefix_missing+own_blocks", {w});
  }
  if (has_window && l > 0)
    for (const double w : {l - 1, l + 1}) {
      if (has_prefix) cases.add("other_window+prefix_missing", {w, r});
      if (has_padding) cases.add("other_window+padding_missing", {w, r});
      if (has_documents) cases.add("other_window+documents_missing", {w, r});
      for (double n = 1; !has_prefix && n <= 4; ++n) cases.add("other_window+prefix_added", {w, r, n});
    }
  if (!own.causal || has_prefix) return;
  for (double n = 1; !has_window && n <= std::min(n_keys - 2, 4.0); ++n) {
    for (double w = 1; w < std::min(n_keys - n, 9.0); ++w) cases.add("window_added+prefix_added", {w, -1, n});
    for (double w = 2; w < std::min(n_keys, 9.0); ++w) cases.add("own_blocks_and_prefix", {w, n});
  }
  for (double w = 1; !has_window && w < std::min(n_keys, 9.0); ++w)
    for (double n = w + 1; n < std::min(n_keys, 9.0); ++n) cases.add("window_added+own_blocks", {w, -1, n});
}

void try_exceptions(const BugContext& c, MaskCases& cases) {
  const Mask& own = mask_of(c.now);
  const bool has_window = own.window.left || own.window.right;
  if (!own.documents.empty()) {
    cases.add("documents_missing");
    for (const double n : {1, -1, 2, -2, 3}) cases.add("documents_moved", {n});
    cases.add("documents_replace_causal");
    if (has_window) cases.add("documents_and_window_missing");
    try_boundaries(own, cases);
    cases.add("documents_inverted");
  }
  const double n_keys = static_cast<double>(c.model().n_keys());
  if (own.prefix > 0) {
    cases.add("prefix_missing");
    for (const double n : {1, -1, 2, -2, 3, 4})
      if (const double length = static_cast<double>(own.prefix) + n; length > 0 && length <= n_keys)
        cases.add("other_prefix", {length});
  } else if (own.causal || has_window) {
    for (double n = 1; n < std::min(n_keys, 9.0); ++n) cases.add("prefix_added", {n});
  }
  if (!own.cells.empty())
    for (const char* form : {"cells_missing", "cells_transposed", "cells_inverted"}) cases.add(form);
}

void try_cells(const BugContext& c, MaskCases& cases) {
  cases.add("inverted"), cases.add("missing");
  if (c.model().n_tokens() == c.model().n_keys())
    for (const char* form : {"transposed", "keys_reversed", "diagonal_masked"}) cases.add(form);
  const std::size_t n_heads = c.model().n_heads;
  for (std::size_t head = 0; n_heads > 1 && head < std::min<std::size_t>(n_heads, 8); ++head)
    for (const char* form : {"head_not_masked", "head_masked_alone"})
      cases.add(form, {static_cast<double>(head)});
  for (const double n : {1, -1}) cases.add("keys_rolled", {n}), cases.add("queries_rolled", {n});
  cases.add("last_query"), cases.add("first_query");
  for (const char* form : {"empty_rows_unmasked", "empty_rows_causal", "empty_rows_diagonal"})
    if (c.model().n_tokens() == c.model().n_keys() || form == std::string_view("empty_rows_unmasked"))
      cases.add(form);
}

void try_masks(const BugContext& c, BugCases& to) {
  if (!c.now.get<graph::AttentionMask>(Stage::mask)) return;  // an earlier bug computes it
  if (!c.reaches(Stage::mask)) return;
  const Mask& own = mask_of(c.now);
  const bool is_square = c.model().n_tokens() == c.model().n_keys(),
             has_window = own.window.left || own.window.right, pads = !own.hidden_keys.empty();
  const double n_keys = static_cast<double>(c.model().n_keys());
  MaskCases cases(c, to);
  const auto try_cache = [&] {
    for (double n = 1; !pads && n < std::min(n_keys, 9.0); ++n)
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
  if (!own.causal && is_square) cases.add("causal_transposed_added");
  if (pads)
    try_paddings(c, cases);
  else if (is_square)
    try_cache();
  try_exceptions(c, cases);
  try_cells(c, cases);
  try_two_rules(c, cases);
}

const std::array mask_rows{
    Bug{.name = "mask",
        .edit = edit_mask,
        .words = mask_words,
        .cases = try_masks,
        .rank_of = [](const BugContext&,
                      const BugCase& c) { return c.form.find('+') == c.form.npos ? 0 : 1; }},
};

}  // namespace

std::span<const Bug> mask_bugs() {
  return mask_rows;
}

}  // namespace core::bugs
