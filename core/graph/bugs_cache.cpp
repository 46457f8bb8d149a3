#include <array>

#include "core/graph/bugs.hpp"

/// Bugs of the cache of keys and values: slots that are not written, overwritten or out of order.
namespace core::bugs {
namespace {

using graph::digits;
using graph::OperationInputs;

/// Returns the key of which row `key` has the numbers, none if they are zeros.
using SourceOfRow = std::optional<long> (*)(long key, long n_keys, long x);

struct CacheForm {
  const char* form;
  Words<double> words;
  SourceOfRow source;
};

constexpr double max_slots = 16;  // to try

std::string unwritten_words(const char* which, double n) {
  return std::string("the ") + which + " " + digits(n) +
         (n > 1 ? " keys and values are" : " key and value are") + " zeros (not written to the cache)";
}

constexpr std::array cache_forms{
    CacheForm{
        "last_zero", [](double n) { return unwritten_words("last", n); },
        [](long key, long n_keys, long n) { return key < n_keys - n ? std::optional(key) : std::nullopt; }},
    CacheForm{"first_zero", [](double n) { return unwritten_words("first", n); },
              [](long key, long, long n) { return key >= n ? std::optional(key) : std::nullopt; }},
    CacheForm{"overwritten",
              "the cache has {0} slots, and later keys and values overwrite earlier ones (a ring)",
              [](long key, long n_keys, long n) { return std::optional(key + (n_keys - 1 - key) / n * n); }},
    CacheForm{"out_of_order",
              "keys and values are rolled by {0} after they are rotated (slots of a ring cache out of order)",
              [](long key, long n_keys, long n) { return std::optional((key - n + n_keys) % n_keys); }},
};

void edit_cache(Editing& e, const BugCase& c, ProjectionName) {
  const auto* products = e.get<graph::DotProducts>(Stage::scores);
  const auto* sum = e.get<graph::WeightedSum>(Stage::contexts);
  if (!products || !sum) return;
  const auto read = [source = of_form(cache_forms, c.form).source,
                     x = static_cast<long>(c.number())](const OperationInputs& in) {
    const arma::mat& all = in[0];
    arma::mat rows(arma::size(all), arma::fill::zeros);
    for (long key = 0; key < static_cast<long>(all.n_rows); ++key)
      if (const auto from = source(key, static_cast<long>(all.n_rows), x))
        rows.row(static_cast<arma::uword>(key)) = all.row(static_cast<arma::uword>(*from));
    return in.selected(std::move(rows));
  };
  for (const graph::Input& input : {products->inputs[1], sum->inputs[1]})
    if (const Stage* stage = input.stage())
      e.insert_after(*stage, graph::StageFunction({{*stage, "::"}}, read));
}

void try_caches(const BugContext& c, BugCases& to) {
  const double n_keys = static_cast<double>(c.model().n_keys());
  for (const CacheForm& form : cache_forms)
    for (double x = 1; x <= max_slots && x < n_keys; ++x) to.add({x}, form.form);
}

const std::array cache_rows{
    Bug{.name = "cache",
        .edit = edit_cache,
        .words = form_words<cache_forms>,
        .cases = try_caches,
        .in_pairs = false},
};

}  // namespace

std::span<const Bug> cache_bugs() {
  return cache_rows;
}

}  // namespace core::bugs
