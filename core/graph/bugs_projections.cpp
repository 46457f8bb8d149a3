#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/base/text.hpp"
#include "core/graph/bugs.hpp"

/// Bugs of projections and of their inputs, and factors of whole stages.
namespace core::bugs {
namespace {

using graph::digits;
using graph::Input;
using graph::OperationInputs;
using graph::projections_of_sides;
using graph::stages_of_sides;

constexpr std::string_view side_letters = "qkvo";
constexpr std::array usual_sides{"qkv", "q", "k", "v", "qk", "kv", "qv"};

Stage stage_of(ProjectionName part) {
  return graph::projected_stages[static_cast<std::size_t>(part)];
}
bool have_projections(const Editing& e, std::string_view sides) {
  return std::ranges::all_of(sides, [&](char side) { return e.has_projection(part_of(side)); });
}

// Biases of the projections.

/// Returns the sides whose projections have a bias: "qkv".
std::string sides_with_bias(const Editing& e) {
  std::string sides;
  for (const char side : side_letters)
    if (!e.bias(part_of(side)).is_empty()) sides += side;
  return sides;
}

/// Returns the sets of some of these sides, the whole and "qkv" first, then the smaller ones.
std::vector<std::string> sets_of(const std::string& sides) {
  std::vector<std::string> sets{sides};
  if (sides == "qkvo") sets.emplace_back("qkv");
  for (std::size_t size = 1; size < sides.size(); ++size)
    for (unsigned bits = 1; bits < 1u << sides.size(); ++bits) {
      std::string set;
      for (std::size_t i = 0; i < sides.size(); ++i)
        if (bits >> i & 1) set += sides[i];
      if (set.size() == size && set != "qkv") sets.push_back(set);
    }
  return sets;
}

std::string bias_words(const Editing& e, const BugCase& c) {
  return e.words.factor(c.numbers[0], "the bias of " + projections_of_sides(c.sides));
}
void scale_bias(Editing& e, const BugCase& c, ProjectionName part) {
  e.set_bias(part, e.bias(part) * c.numbers[0]);
}

void try_bias_counts(const BugContext& c, BugCases& to) {
  const std::string with_bias = sides_with_bias(c.now);
  if (with_bias.empty()) return;
  for (const std::string& sides : sets_of(with_bias))
    for (const double f : std::set<double>{0, 2, -1, 3, 4, static_cast<double>(c.model().n_heads)})
      if (f != 1) to.add({f}, "", sides);
}
void fit_bias_factors(const BugContext& c, BugCases& to) {
  for (const char side : sides_with_bias(c.now)) to.fit({1.1}, "", std::string(1, side));
}

/// Form "qk": the query projection adds the bias of the key projection.
void use_bias_of_another(Editing& e, const BugCase& c, ProjectionName) {
  e.set_bias(part_of(c.form[0]), e.bias(part_of(c.form[1])));
}
void try_biases_of_others(const BugContext& c, BugCases& to) {
  for (const char side : sides_with_bias(c.now))
    for (const char other : side_letters) {
      const bool fits = other != side && c.now.has_projection(part_of(other)) &&
                        c.now.weight(part_of(other)).n_cols == c.now.bias(part_of(side)).n_cols;
      if (fits) to.add({}, {other, side});
    }
}

// Weights.

void transpose_weight(Editing& e, const BugCase&, ProjectionName part) {
  const arma::mat w = e.weight(part);
  e.set_weight(part, arma::mat(arma::reshape(w, w.n_cols, w.n_rows).t()));
}
std::string transposed_words(const Editing& e, const BugCase& c) {
  const bool are_square =
      std::ranges::all_of(c.sides, [&](char side) { return e.weight(part_of(side)).is_square(); });
  const bool are_own =
      std::ranges::all_of(c.sides, [&](char side) { return e.has_own_weight(part_of(side)); });
  const std::string whose =
      are_own ? "of " + projections_of_sides(c.sides) : "that makes the " + stages_of_sides(c.sides);
  return "the weight " + whose + " is " +
         (are_square ? "transposed" : "read in the other order (reshaped instead of transposed)");
}
void try_transposed(const BugContext& c, BugCases& to) {
  std::vector<std::string> sets(usual_sides.begin(), usual_sides.end());
  sets.insert(sets.end(), {"o", "qkvo"});
  for (const std::string& sides : sets)
    if (have_projections(c.now, sides)) to.add({}, "", sides);
}

/// Form "kqv": queries come from the key projection, keys from the query projection.
void exchange_projections(Editing& e, const BugCase& c, ProjectionName) {
  const Editing old = e;
  for (std::size_t side = 0; side < 3; ++side) {
    const auto part = static_cast<ProjectionName>(side), from = part_of(c.form[side]);
    if (from == part) continue;
    const auto* other = old.get<graph::Project>(graph::linear_stage(from));
    e.change<graph::Project>(graph::linear_stage(part), [&](graph::Project& own) {
      own.inputs.resize(1);
      own.inputs.insert(own.inputs.end(), other->inputs.begin() + 1, other->inputs.end());
    });
  }
}
std::string exchanged_words(const Editing&, const BugCase& c) {
  std::vector<std::string> phrases;
  for (std::size_t side = 0; side < 3; ++side)
    if (c.form[side] != side_letters[side])
      phrases.push_back(stages_of_sides(side_letters.substr(side, 1)) + " come from " +
                        projections_of_sides(c.form.substr(side, 1)));
  return text::joined(phrases, "; ");
}
void try_exchanged(const BugContext& c, BugCases& to) {
  if (!have_projections(c.now, "qkv")) return;
  const auto size_of = [&](char side) { return arma::size(c.now.weight(part_of(side))); };
  for (const char q : side_letters.substr(0, 3))
    for (const char k : side_letters.substr(0, 3))
      for (const char v : side_letters.substr(0, 3)) {
        const bool fits =
            size_of('q') == size_of(q) && size_of('k') == size_of(k) && size_of('v') == size_of(v);
        if (const std::string form{q, k, v}; fits && form != "qkv") to.add({}, form);
      }
}

// Heads of the projected columns.

void split_otherwise(Editing& e, const BugCase& c, ProjectionName part) {
  e.change<graph::SplitHeads>(stage_of(part), [&](graph::SplitHeads& split) {
    split.inputs[0].layout = c.form == "view" ? &graph::untransposed : &graph::interleaved;
  });
}
std::string split_words(const Editing&, const BugCase& c) {
  return "the heads of the " + stages_of_sides(c.sides) + " are cut " +
         (c.form == "view" ? "by a view as [heads, tokens, d_head] without a transpose"
                           : "interleaved, as [d_head, heads] instead of [heads, d_head]");
}
void try_splits(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  for (const char* form : {"view", "interleaved"})
    for (const std::string sides : usual_sides)
      if (m.n_heads > 1 && (m.kv_heads() > 1 || sides == "q")) to.add({}, form, sides);
}

// One weight for queries, keys and values, or for keys and values.

/// Layout of the columns of a fused weight.
struct FusedOrder {
  const char* name;
  const char *words, *kv_words;  ///< with queries, and without
};
constexpr std::array fused_layouts{
    FusedOrder{"bands", "as bands [Q | K | V]", "as bands [K | V]"},
    FusedOrder{"by head", "head by head (a group's queries, its key, its value)",
               "head by head (a key, its value)"},
    FusedOrder{"columns", "column by column ([head][column][q, k, v])",
               "column by column ([head][column][k, v])"},
    FusedOrder{"columns first", "with heads last ([column][q, k, v][head])",
               "with heads last ([column][k, v][head])"},
    FusedOrder{"heads last", "with heads last in each of Q, K, V", "with heads last in each of K, V"}};

/// Returns the column of [Wq | Wk | Wv], or of [Wk | Wv], at each column of a fused weight that holds
/// `sides`.
std::vector<std::size_t> fused_columns(const Model& m, std::string_view layout, std::string_view sides) {
  const std::size_t n_heads = m.n_heads, n_kv_heads = m.kv_heads(), d = m.d_head();
  const bool has_queries = sides.find('q') != sides.npos;
  std::vector<std::size_t> all;
  const auto add = [&](char side, std::size_t head, std::size_t column) {
    const std::size_t first =
        side == 'q' ? 0 : (has_queries ? n_heads * d : 0) + (side == 'v' ? n_kv_heads * d : 0);
    all.push_back(first + head * d + column);
  };
  const auto heads_of = [&](char side) { return side == 'q' ? n_heads : n_kv_heads; };
  if (layout == "bands")
    for (const char side : sides)
      for (std::size_t k = 0; k < heads_of(side) * d; ++k) add(side, k / d, k % d);
  if (layout == "heads last")
    for (const char side : sides)
      for (std::size_t k = 0; k < heads_of(side) * d; ++k) add(side, k % heads_of(side), k / heads_of(side));
  if (layout == "by head")
    for (std::size_t group = 0; group < n_kv_heads; ++group)
      for (const char side : sides) {
        const std::size_t n = heads_of(side) / n_kv_heads;
        for (std::size_t k = 0; k < n * d; ++k) add(side, group * n + k / d, k % d);
      }
  if (layout == "columns")
    for (std::size_t head = 0; head < n_kv_heads; ++head)
      for (std::size_t column = 0; column < d; ++column)
        for (const char side : sides) add(side, head, column);
  if (layout == "columns first")
    for (std::size_t column = 0; column < d; ++column)
      for (const char side : sides)
        for (std::size_t head = 0; head < n_kv_heads; ++head) add(side, head, column);
  return all;
}

/// Form "by head>bands>kqv": how the weight is stored, how it is cut, and the order in which it is stored.
struct FusedForm {
  std::string stored, cut, order;
  explicit FusedForm(const std::string& form) {
    const std::size_t first = form.find('>'), second = form.find('>', first + 1);
    stored = form.substr(0, first);
    cut = form.substr(first + 1, second - first - 1);
    order = form.substr(second + 1);
  }
};

void cut_fused_weight(Editing& e, const BugCase& c, ProjectionName part) {
  if (part != ProjectionName::value || !have_projections(e, c.sides)) return;  // once for all sides
  const FusedForm form(c.form);
  const std::vector<std::size_t> from = fused_columns(e.model(), form.stored, form.order),
                                 to = fused_columns(e.model(), form.cut, c.sides);
  arma::uvec source(to.size());
  for (std::size_t i = 0; i < to.size(); ++i) source[to[i]] = from[i];
  arma::mat weights, biases;
  bool has_bias = false;
  for (const char side : c.sides) {
    const arma::mat weight = e.weight(part_of(side)), bias = e.bias(part_of(side));
    has_bias = has_bias || !bias.is_empty();
    weights = arma::join_rows(weights, weight);
    biases = arma::join_rows(biases, bias.is_empty() ? arma::mat(1, weight.n_cols) : bias);
  }
  weights = arma::mat(weights.cols(source)), biases = arma::mat(biases.cols(source));
  std::size_t first = 0;
  for (const char side : c.sides) {
    const std::size_t last = first + e.weight(part_of(side)).n_cols - 1;
    e.set_weight(part_of(side), weights.cols(first, last));
    if (has_bias) e.set_bias(part_of(side), biases.cols(first, last));
    first = last + 1;
  }
}
std::string fused_words(const Editing&, const BugCase& c) {
  const FusedForm form(c.form);
  const bool has_queries = c.sides == "qkv";
  const auto words_of = [&](const std::string& name) {
    const auto row = std::ranges::find(fused_layouts, name, &FusedOrder::name);
    return std::string(has_queries ? row->words : row->kv_words);
  };
  return "the fused " + std::string(has_queries ? "QKV" : "KV") + " weight is stored " +
         words_of(form.stored) +
         (form.order == c.sides
              ? ""
              : " in the order " + text::joined(form.order, ", ", [](char s) { return std::string(1, s); })) +
         " but cut " + words_of(form.cut);
}
void try_fused(const BugContext& c, BugCases& to, const std::string& sides) {
  const Model& m = c.model();
  if (!have_projections(c.now, sides) || m.d_value() != m.d_head()) return;
  const bool is_even = sides == "kv" || m.kv_heads() == m.n_heads;
  const auto add = [&](std::string_view stored, std::string_view cut, std::string_view order) {
    to.add({}, std::string(stored) + ">" + std::string(cut) + ">" + std::string(order), sides);
  };
  add("by head", "bands", sides);
  for (const auto& [stored, words, kv_words] : fused_layouts)
    for (const auto& [cut, other_words, other_kv_words] : fused_layouts) {
      const std::string_view from = stored, as = cut;
      const bool is_usual = from == "by head" && as == "bands",
                 is_split = from == "bands" && as == "heads last";
      const bool fits = is_even || (!from.starts_with("columns") && !as.starts_with("columns"));
      if (from != as && !is_usual && !is_split && fits) add(from, as, sides);
    }
  if (!is_even)
    for (const char* order : {"kqv", "kvq", "vqk", "vkq"})
      for (const char* how : {"bands", "by head"}) add(how, how, order);
}

// Inputs of the projections.

/// Change of all rows of an input, by its form.
struct InputChange {
  const char* form;
  Words<double> words;
  arma::mat (*changed)(const OperationInputs&, double x);
};

arma::mat rows_from(const arma::mat& x, long (*source)(long row, long n, long by), double by) {
  arma::uvec from(x.n_rows);
  for (std::size_t i = 0; i < from.n_elem; ++i)
    from[i] = static_cast<std::size_t>(
        source(static_cast<long>(i), static_cast<long>(x.n_rows), static_cast<long>(by)));
  return x.rows(from);
}
arma::mat normed_rows(arma::mat x, bool centers, double epsilon) {
  if (centers) x.each_col() -= arma::vec(arma::mean(x, 1));
  x.each_col() /= arma::vec(arma::sqrt(arma::mean(arma::square(x), 1) + epsilon));
  return x;
}

constexpr std::array input_changes{
    InputChange{"shifted",
                [](double by) {
                  return "is that of " + digits(std::abs(by)) + (by > 0 ? " earlier" : " later") +
                         " (a stale cache: rows shifted)";
                },
                [](const OperationInputs& in, double by) {
                  return rows_from(
                      in[0], [](long i, long n, long s) { return std::clamp(i - s, 0L, n - 1); }, by);
                }},
    InputChange{"rolled", "is rolled by {0}",
                [](const OperationInputs& in, double by) {
                  return rows_from(
                      in[0], [](long i, long n, long s) { return ((i - s) % n + n) % n; }, by);
                }},
    InputChange{"reversed", "is in reverse order",
                [](const OperationInputs& in, double) { return arma::mat(arma::flipud(in[0])); }},
    InputChange{"zero",
                [](double n) {
                  return "is zero in the " + std::string(n > 0 ? "last " : "first ") + digits(std::abs(n)) +
                         " rows (not written to the cache)";
                },
                [](const OperationInputs& in, double n) {
                  arma::mat x = in[0];
                  const auto n_zero = static_cast<arma::uword>(std::abs(n));
                  if (n > 0)
                    x.tail_rows(n_zero).zeros();
                  else
                    x.head_rows(n_zero).zeros();
                  return x;
                }},
    InputChange{"other_sequence", "is that of another sequence of the batch",
                [](const OperationInputs& in, double) {
                  const std::size_t n = in.model.sequences.size();
                  return in.of_sequence(0, (in.sequence + n - 1) % n, in.head);
                }},
    InputChange{"layer", "went through a LayerNorm (without weights) once more",
                [](const OperationInputs& in, double epsilon) { return normed_rows(in[0], true, epsilon); }},
    InputChange{"rms", "went through an RMSNorm (without weights) once more",
                [](const OperationInputs& in, double epsilon) { return normed_rows(in[0], false, epsilon); }},
    InputChange{"other_side", "is the other side's (the key embeddings and the embeddings are confused)",
                [](const OperationInputs& in, double) { return in[1]; }},
};

/// Inserts a function of all rows before a projection, or before the heads if there is none.
void change_input(Editing& e, ProjectionName part, std::vector<Input> from,
                  graph::StageFunction::Function function) {
  constexpr std::array projecting{graph::all_queries, graph::all_keys, graph::all_values};
  const auto* node =
      e.find(e.has_projection(part) ? projecting[static_cast<std::size_t>(part)] : stage_of(part));
  if (!node) return;
  const auto all_rows = [function = std::move(function)](const OperationInputs& in) {
    return in.selected(function(in));
  };
  e.graph.insert_before(node->operation.get(), graph::StageFunction(std::move(from), all_rows));
}

void edit_input(Editing& e, const BugCase& c, ProjectionName part) {
  const InputChange* row = &of_form(input_changes, c.form);
  const Stage other = part == ProjectionName::query ? Stage::key_embeddings : Stage::embeddings;
  std::vector<Input> from{{Stage::embeddings, "::"}};
  if (c.form == "other_side") from.push_back({other, "::"});
  change_input(e, part, std::move(from),
               [row, x = c.number()](const OperationInputs& in) { return row->changed(in, x); });
}
std::string input_words(const Editing&, const BugCase& c) {
  return "the input of the " + stages_of_sides(c.sides) + " " +
         of_form(input_changes, c.form).words(c.number());
}
void try_inputs(const BugContext& c, BugCases& to) {
  using Sets = std::vector<std::string>;
  const Model& m = c.model();
  const bool is_cross = m.has_key_embeddings();
  const double n_keys = static_cast<double>(m.n_keys());
  for (const std::string& sides : is_cross ? Sets{"kv", "k", "v"} : Sets{"qkv", "k", "v", "kv", "q"}) {
    for (const double by : {1, -1, 2, -2}) {
      if (std::abs(by) >= n_keys) continue;
      to.add({by}, "shifted", sides);
      if (std::abs(by) != 2 || n_keys != 2) to.add({by}, "rolled", sides);
    }
    to.add({}, "reversed", sides);
    if (sides.find('q') == sides.npos)
      for (const double n : {1, 2, 3, 4, -1, -2, -3, -4})
        if (std::abs(n) < n_keys) to.add({n}, "zero", sides);
    if (m.sequences.size() > 1) to.add({}, "other_sequence", sides);
  }
  for (const std::string& sides : is_cross ? Sets{"q", "kv"} : Sets{"qkv", "q", "kv"})
    for (const double epsilon : {1e-5, 1e-6, 0.0})
      for (const char* form : {"layer", "rms"}) to.add({epsilon}, form, sides);
  if (is_cross && arma::size(*m.sequences[0].embeddings) == arma::size(*m.sequences[0].key_embeddings))
    for (const char* sides : {"kv", "k", "v", "q"}) to.add({}, "other_side", sides);
}

void scale_input(Editing& e, const BugCase& c, ProjectionName part) {
  change_input(e, part, {{Stage::embeddings, "::"}},
               [f = c.numbers[0]](const OperationInputs& in) { return arma::mat(in[0] * f); });
}
void fit_input_factors(const BugContext& c, BugCases& to) {
  using Sets = std::vector<std::string>;
  for (const std::string& sides : c.model().has_key_embeddings() ? Sets{"q", "kv"} : Sets{"qkv"})
    for (const double f : {0.2, 0.5, 1.1, 2.0, 3.0, 5.0, 9.0}) to.fit({f}, "", sides);
}
int rank_of_number(const BugContext& c, const BugCase& of) {
  return c.now.words.rank_of_factor(of.numbers[0]);
}

// Factors of stages, by their names.

constexpr std::array scaled_stages{
    Stage::queries,         Stage::keys,         Stage::values,  Stage::normed_queries, Stage::normed_keys,
    Stage::rotated_queries, Stage::rotated_keys, Stage::weights, Stage::contexts,       Stage::output};

void fit_stage_factors(const BugContext& c, BugCases& to) {
  const auto add = [&](Stage stage) {
    if (stage != Stage::masked_scores) to.add({0}, attention::info(stage).name);  // else 0 · −∞
    to.fit({1.1}, attention::info(stage).name);
  };
  for (const Stage stage : scaled_stages)
    if (c.now.find(stage) && (stage != Stage::output || c.now.has_projection(ProjectionName::output)))
      add(stage);
  // Elsewhere a factor of the scores is another scale.
  for (const Stage stage : {Stage::scores, Stage::scaled_scores, Stage::masked_scores})
    if (stage == c.target && c.now.find(stage)) add(stage);
}
int rank_of_stage_factor(const BugContext& c, const BugCase& of) {
  return rank_of_number(c, of) + (stage_named(of.form) != c.target);
}

void fit_factors_by_head(const BugContext& c, BugCases& to) {
  for (const Stage stage : scaled_stages) {
    if (!c.now.find(stage) || stage == Stage::output) continue;
    const std::size_t n = c.stages.n_matrices(stage);
    if (n > 1) to.fit(Numbers(n, 1.1), attention::info(stage).name);
  }
}
/// Returns the heads that share one factor while the others have none; empty if there are other factors.
std::vector<std::size_t> heads_with_one_factor(const Editing& e, const Numbers& factors) {
  std::vector<std::size_t> heads;
  for (std::size_t h = 0; h < factors.size(); ++h)
    if (std::abs(factors[h] - 1) > 2 * e.words.tolerance()) heads.push_back(h);
  const bool share_one = heads.size() < factors.size() && std::ranges::all_of(heads, [&](std::size_t h) {
                           return std::abs(factors[h] - factors[heads[0]]) < 3 * e.words.tolerance();
                         });
  return share_one ? heads : std::vector<std::size_t>();
}
std::string factors_by_head_words(const Editing& e, const BugCase& c) {
  const std::string stage = graph::words_of(stage_named(c.form));
  const std::vector<std::size_t> heads = heads_with_one_factor(e, c.numbers);
  if (heads.empty()) return stage + " are multiplied by a factor for each head: " + e.words.list(c.numbers);
  return stage + (heads.size() > 1 ? " of heads " : " of head ") + graph::list_of(heads) +
         " are multiplied by " + e.words.number(c.numbers[heads[0]]);
}

const std::array projection_rows{
    Bug{.name = "projection_bias", .edit = scale_bias, .words = bias_words, .cases = try_bias_counts},
    Bug{.name = "projection_bias_factor",
        .edit = scale_bias,
        .words = bias_words,
        .cases = fit_bias_factors,
        .rank = 2},
    Bug{.name = "bias_of_another",
        .edit = use_bias_of_another,
        .words =
            [](const Editing&, const BugCase& c) {
              return projections_of_sides(c.form.substr(0, 1)) + " adds the bias of " +
                     projections_of_sides(c.form.substr(1));
            },
        .cases = try_biases_of_others},
    Bug{.name = "projection_transposed",
        .edit = transpose_weight,
        .words = transposed_words,
        .cases = try_transposed},
    Bug{.name = "projections_exchanged",
        .edit = exchange_projections,
        .words = exchanged_words,
        .cases = try_exchanged},
    Bug{.name = "query_key_swapped:projections",
        .is_form = true,
        .texts = {"query and key projections swapped",
                  "Queries come from the key projection, and keys from the query projection.",
                  "Project queries with the query weight and keys with the key weight.", Stage::queries},
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName part) { exchange_projections(e, {.bug = c.bug, .form = "kqv"}, part); },
        .is_also = {{{"projections_exchanged", "kqv"}}}},
    Bug{.name = "head_split", .edit = split_otherwise, .words = split_words, .cases = try_splits},
    Bug{.name = "fused_layout",
        .edit = cut_fused_weight,
        .words = fused_words,
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (!c.model().has_key_embeddings() && c.model().n_heads > 1) try_fused(c, to, "qkv");
            }},
    Bug{.name = "fused_kv",
        .edit = cut_fused_weight,
        .words = fused_words,
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (c.model().kv_heads() > 1) try_fused(c, to, "kv");
            }},
    Bug{.name = "input", .edit = edit_input, .words = input_words, .cases = try_inputs},
    Bug{.name = "input_factor",
        .edit = scale_input,
        .words = "the input of the {stages} is multiplied by {number}",
        .cases = fit_input_factors,
        .rank_of = rank_of_number,
        .is_last = true},
    Bug{.name = "stage_factor",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { e.scale(stage_named(c.form), c.numbers[0]); },
        .words =
            [](const Editing& e, const BugCase& c) {
              const Stage stage = stage_named(c.form);
              return (stage == Stage::output ? "the output is" : graph::words_of(stage) + " are") +
                     " multiplied by " + e.words.number(c.numbers[0]);
            },
        .cases = fit_stage_factors,
        .rank_of = rank_of_stage_factor,
        .is_last = true},
    Bug{.name = "stage_factor_by_head",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              e.wrap(stage_named(c.form), [factors = c.numbers](const OperationInputs& in) {
                return arma::mat(in[0] * factors[in.head]);
              });
            },
        .words = factors_by_head_words,
        .cases = fit_factors_by_head,
        .rank_of =
            [](const BugContext& c, const BugCase& of) {
              return (heads_with_one_factor(c.now, of.numbers).empty() ? 3 : 2) +
                     (stage_named(of.form) != c.target);
            },
        .is_last = true,
        .is_plausible = [](const BugContext&, const BugCase& of) { return !are_all_equal(of.numbers); }},
};

}  // namespace

std::span<const Bug> projection_bugs() {
  return projection_rows;
}

}  // namespace core::bugs
