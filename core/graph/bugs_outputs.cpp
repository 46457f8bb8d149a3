#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/least_squares.hpp"
#include "core/base/text.hpp"
#include "core/graph/bugs.hpp"

/// Bugs of what follows the weights: context vectors, their combination, the output; of orders of heads, rows
/// and columns; and of what is given under the name of a stage.
namespace core::bugs {
namespace {

using graph::digits;
using graph::Input;
using graph::OperationInputs;
using graph::words_of;
using std::to_string;
using Order = std::vector<std::size_t>;

Order order_from(const Numbers& x) {
  return {x.begin(), x.end()};
}
Numbers numbers_of(const Order& order) {
  return {order.begin(), order.end()};
}
const char* name_of_stage(Stage stage) {
  return attention::info(stage).name;
}
arma::mat rolled_rows(const arma::mat& x, double by) {
  const long n = static_cast<long>(x.n_rows);
  return arma::shift(x, (static_cast<long>(by) % n + n) % n, 0);
}
arma::mat mean_of_heads(const OperationInputs& in) {
  return sum_of_heads(in) / static_cast<double>(in.model.n_heads);
}

// Context vectors.

/// Computes context vectors from other inputs in place of the weights by rows and the values.
void sum_from(
    Editing& e, const std::function<void(Input& weights, Input& values)>& change,
    graph::StageFunction::Function function = [](const OperationInputs& in) {
      return arma::mat(in[0] * in[1]);
    }) {
  const auto* own = e.get<graph::WeightedSum>(Stage::contexts);
  if (!own) return;
  std::vector<Input> from = own->inputs;
  change(from[0], from[1]);
  e.compute(Stage::contexts, std::move(from), std::move(function));
}
void as_they_are(Input&, Input&) {}

const graph::DotProducts* products_of_scores(const Editing& e) {
  return e.get<graph::DotProducts>(Stage::scores);
}

/// Attention between the heads of each token. Inputs: values, queries, keys.
template <bool is_causal>
arma::mat attention_over_heads(const OperationInputs& in) {
  const auto* own = in.graph.get<graph::ScaleScores>(Stage::scaled_scores);
  const std::size_t n = is_causal ? in.head + 1 : in.model.n_heads;
  arma::mat scores(in.n_rows(), n);
  for (std::size_t h = 0; h < n; ++h)
    scores.col(h) = (own ? own->factor : 1) * arma::sum(in[1] % in.of_head(2, h), 1);
  scores.each_col() -= arma::vec(arma::max(scores, 1));
  const arma::mat w = arma::exp(scores);
  arma::mat sum(in.n_rows(), in[0].n_cols, arma::fill::zeros);
  for (std::size_t h = 0; h < n; ++h) {
    arma::mat v = in.of_head(0, h);
    v.each_col() %= w.col(h);
    sum += v;
  }
  sum.each_col() /= arma::vec(arma::sum(w, 1));
  return sum;
}
/// Computes context vectors from values, queries and keys of the same position.
void compute_contexts_by_position(Editing& e, graph::StageFunction::Function function) {
  const auto* products = products_of_scores(e);
  const auto* own = e.get<graph::WeightedSum>(Stage::contexts);
  if (!products || !own) return;
  std::vector<Input> from{own->inputs[1], products->inputs[0], products->inputs[1]};
  for (Input& input : from) input.cells = "i:";
  e.compute(Stage::contexts, std::move(from), std::move(function));
}
template <bool is_causal>
void attend_over_heads(Editing& e, double) {
  compute_contexts_by_position(e, attention_over_heads<is_causal>);
}

/// Does so, and combines the result as if its heads came before its tokens.
template <bool is_causal>
void attend_over_heads_transposed(Editing& e, double x) {
  attend_over_heads<is_causal>(e, x);
  e.change<graph::CombineHeads>(
      Stage::concatenated, [](graph::CombineHeads& own) { own.inputs[0].layout = &graph::untransposed; });
}
bool is_causal(const Editing& e) {
  const auto* own = e.get<graph::AttentionMask>(Stage::mask);
  return own && own->mask.causal;
}
bool can_attend_over_heads(const Editing& e) {
  return are_scores_square(e) && has_several_heads(e) && have_one_width(e);
}

/// Attention between the sequences of a batch at each position. Inputs: values, queries, keys.
template <bool is_causal>
arma::mat attention_over_batch(const OperationInputs& in) {
  const auto* own = in.graph.get<graph::ScaleScores>(Stage::scaled_scores);
  const std::size_t n = is_causal ? in.sequence + 1 : in.model.sequences.size();
  arma::mat w(in.n_rows(), n);
  for (std::size_t s = 0; s < n; ++s)
    w.col(s) = (own ? own->factor : 1) * arma::sum(in[1] % in.of_sequence(2, s, in.head), 1);
  w.each_col() -= arma::vec(arma::max(w, 1));
  w = arma::exp(w);
  w.each_col() /= arma::vec(arma::sum(w, 1));
  arma::mat sum(in.n_rows(), in[0].n_cols, arma::fill::zeros);
  for (std::size_t s = 0; s < n; ++s) sum += in.of_sequence(0, s, in.head).each_col() % w.col(s);
  return sum;
}
template <bool is_causal>
void attend_over_batch(Editing& e, double) {
  compute_contexts_by_position(e, attention_over_batch<is_causal>);
}
bool can_attend_over_batch(const Editing& e) {
  return are_scores_square(e) && e.model().sequences.size() > 1;
}

/// Makes context vectors of some queries zero.
template <class IsZero>
void zero_contexts(Editing& e, IsZero is_zero) {
  e.wrap(Stage::contexts, [is_zero](const OperationInputs& in) {
    arma::mat c = in[0];
    for (std::size_t a = 0; a < c.n_rows; ++a)
      if (is_zero(in, in.row(a))) c.row(a).zeros();
    return c;
  });
}
std::string zero_queries_words(const char* which, double n) {
  return std::string("context vectors of the ") + which + (n > 1 ? " " + digits(n) + " queries" : " query") +
         " are zero";
}

struct ContextForm {
  const char* form;
  Words<double> words;
  void (*edit)(Editing&, double x);
  bool (*fits)(const Editing&) = nullptr;
  // Where it has a number:
  std::vector<double> (*numbers)(const Model&) = nullptr;
};
std::vector<double> numbers_below(std::size_t first, std::size_t last) {
  std::vector<double> all;
  for (std::size_t n = first; n < last; ++n) all.push_back(static_cast<double>(n));
  return all;
}
std::vector<double> numbers_of_rows(const Model& m) {
  return numbers_below(1, std::min<std::size_t>(m.n_tokens(), 17));
}

constexpr std::array context_forms{
    ContextForm{
        "keys", "context vectors are sums of keys instead of values",
        [](Editing& e, double) { sum_from(e, [](Input&, Input& values) { values.source = Stage::keys; }); },
        have_one_width},
    ContextForm{"prepared_keys", "context vectors are sums of rotated (or normalized) keys instead of values",
                [](Editing& e, double) {
                  if (const auto* products = products_of_scores(e))
                    sum_from(e, [&](Input&, Input& values) { values.source = products->inputs[1].source; });
                },
                [](const Editing& e) {
                  return have_one_width(e) && (e.find(Stage::rotated_keys) || e.find(Stage::normed_keys));
                }},
    ContextForm{"transposed", "context vectors are computed with the weights transposed",
                [](Editing& e, double) {
                  sum_from(
                      e, [](Input& weights, Input&) { weights.cells = "::"; },
                      [](const OperationInputs& in) { return in.selected(in[0].t() * in[1]); });
                },
                are_scores_square},
    ContextForm{"before_dropout", "context vectors are computed with the weights before dropout",
                [](Editing& e, double) {
                  sum_from(e, [](Input& weights, Input&) { weights.source = Stage::weights; });
                },
                [](const Editing& e) { return has_dropout(e.model()); }},
    ContextForm{"reversed", "context vectors are computed from the values in reverse order",
                [](Editing& e, double) {
                  sum_from(e, as_they_are,
                           [](const OperationInputs& in) { return arma::mat(in[0] * arma::flipud(in[1])); });
                }},
    ContextForm{"scores", "context vectors are computed with scores instead of weights",
                [](Editing& e, double) {
                  if (const auto* softmax = e.softmax())
                    sum_from(
                        e, [&](Input& weights, Input&) { weights.source = softmax->inputs[0].source; },
                        [](const OperationInputs& in) {
                          arma::mat scores = in[0];
                          scores.transform([](double s) { return std::isfinite(s) ? s : 0; });
                          return arma::mat(scores * in[1]);
                        });
                }},
    ContextForm{"over_heads",
                "attention runs over the heads of each token instead of the tokens "
                "([tokens, heads, d_head] not transposed)",
                attend_over_heads<false>, can_attend_over_heads},
    ContextForm{"over_heads_causally",
                "attention runs over the heads of each token instead of the tokens "
                "([tokens, heads, d_head] not transposed), causal over the heads",
                attend_over_heads<true>,
                [](const Editing& e) { return can_attend_over_heads(e) && is_causal(e); }},
    ContextForm{"over_heads_transposed",
                "attention runs over the heads of each token instead of the tokens (heads and tokens "
                "swapped), and its result is transposed all the same",
                attend_over_heads_transposed<false>, can_attend_over_heads},
    ContextForm{"over_heads_causally_transposed",
                "attention runs over the heads of each token instead of the tokens (heads and tokens "
                "swapped), causal over the heads, and its result is transposed all the same",
                attend_over_heads_transposed<true>,
                [](const Editing& e) { return can_attend_over_heads(e) && is_causal(e); }},
    ContextForm{"over_batch",
                "attention runs over the batch instead of the tokens ([batch, tokens] taken for "
                "[tokens, batch], as without batch_first)",
                attend_over_batch<false>, can_attend_over_batch},
    ContextForm{"over_batch_causally",
                "attention runs over the batch instead of the tokens ([batch, tokens] taken for "
                "[tokens, batch], as without batch_first), causal over the batch",
                attend_over_batch<true>,
                [](const Editing& e) { return can_attend_over_batch(e) && is_causal(e); }},
    ContextForm{"averaged", "context vectors are averaged over the heads",
                [](Editing& e, double) {
                  e.wrap(Stage::contexts, [](const OperationInputs& in) { return mean_of_heads(in); });
                },
                has_several_heads},
    ContextForm{"averaged_weights", "context vectors are computed with weights averaged over the heads",
                [](Editing& e, double) {
                  sum_from(e, as_they_are,
                           [](const OperationInputs& in) { return arma::mat(mean_of_heads(in) * in[1]); });
                },
                has_several_heads},
    ContextForm{"normalized_weights", "context vectors are computed with weights normalized to sum 1",
                [](Editing& e, double) {
                  sum_from(e, as_they_are, [](const OperationInputs& in) {
                    arma::mat w = in[0];
                    w.each_col() /= arma::vec(arma::sum(w, 1));
                    return arma::mat(w * in[1]);
                  });
                },
                [](const Editing& e) { return e.model().additions.sink || has_dropout(e.model()); }},
    ContextForm{"rolled",
                [](double by) {
                  return "weights and values are " + digits(std::abs(by)) +
                         " out of step (values rolled by " + digits(by) + ")";
                },
                [](Editing& e, double by) {
                  sum_from(e, as_they_are, [by](const OperationInputs& in) {
                    return arma::mat(in[0] * rolled_rows(in[1], by));
                  });
                },
                nullptr,
                [](const Model&) {
                  return std::vector<double>{1, -1, 2, -2};
                }},
    ContextForm{
        "padded", "context vectors of padded queries are zero (masked by the padding mask of the keys)",
        [](Editing& e, double) {
          zero_contexts(e, [](const OperationInputs& in, std::size_t query) {
            const auto& hidden = in.model.mask.hidden_keys;
            return in.sequence < hidden.size() && std::ranges::binary_search(hidden[in.sequence], query);
          });
        },
        [](const Editing& e) { return are_scores_square(e) && !e.model().mask.hidden_keys.empty(); }},
    ContextForm{"last_queries", [](double n) { return zero_queries_words("last", n); },
                [](Editing& e, double n) {
                  zero_contexts(e, [n](const OperationInputs& in, std::size_t query) {
                    return static_cast<double>(query) + n >= static_cast<double>(in.model.n_tokens());
                  });
                },
                nullptr, numbers_of_rows},
    ContextForm{"first_queries", [](double n) { return zero_queries_words("first", n); },
                [](Editing& e, double n) {
                  zero_contexts(e, [n](const OperationInputs&, std::size_t query) {
                    return static_cast<double>(query) < n;
                  });
                },
                nullptr, numbers_of_rows},
    ContextForm{"head", "head {0} adds nothing (its context vectors are zero)",
                [](Editing& e, double head) {
                  e.wrap(Stage::contexts, [head](const OperationInputs& in) {
                    return static_cast<double>(in.head) == head
                               ? arma::mat(arma::size(in[0]), arma::fill::zeros)
                               : in[0];
                  });
                },
                has_several_heads,
                [](const Model& m) { return numbers_below(0, std::min<std::size_t>(m.n_heads, 32)); }},
};
void try_contexts(const BugContext& c, BugCases& to) {
  for (const ContextForm& form : context_forms) {
    if (form.fits && !form.fits(c.now)) continue;
    if (!form.numbers) to.add({}, form.form);
    for (const double x : form.numbers ? form.numbers(c.model()) : Numbers()) to.add({x}, form.form);
  }
}

// Combination of heads.

struct MergeForm {
  const char* form;
  const char* words;
  const graph::HeadLayout* layout;
};
const std::array merge_forms{
    MergeForm{"reshape", "the heads are combined by a reshape without the transpose", &graph::untransposed},
    MergeForm{"interleaved",
              "the heads are combined as [d_head, heads] (columns interleaved; or the output projection's "
              "rows are in that order)",
              &graph::interleaved},
    MergeForm{"concatenate", "the heads are combined by concatenation", &graph::contiguous},
};
void try_merges(const BugContext& c, BugCases& to) {
  const auto* own = c.now.get<graph::CombineHeads>(Stage::concatenated);
  for (const MergeForm& merge : merge_forms)
    if (own && has_several_heads(c.now) && own->inputs[0].layout != merge.layout) to.add({}, merge.form);
}

/// Numbers: one of how many equal parts of the heads.
std::pair<std::size_t, std::size_t> heads_of_part(const Model& m, const BugCase& c) {
  const auto part = static_cast<std::size_t>(c.numbers[0]), n = static_cast<std::size_t>(c.numbers[1]);
  return {part * m.n_heads / n, (part + 1) * m.n_heads / n};
}
void project_one_part(Editing& e, const BugCase& c, ProjectionName) {
  const auto [first, end] = heads_of_part(e.model(), c);
  e.insert_after(Stage::concatenated,
                 graph::StageFunction({{Stage::concatenated}}, [first, end](const OperationInputs& in) {
                   const std::size_t width = in[0].n_cols / in.model.n_heads;
                   arma::mat part(arma::size(in[0]), arma::fill::zeros);
                   part.cols(first * width, end * width - 1) = in[0].cols(first * width, end * width - 1);
                   return part;
                 }));
}
std::string one_part_words(const Editing& before, const BugCase& c) {
  const auto [first, end] = heads_of_part(before.model(), c);
  return "only heads " + to_string(first) + "–" + to_string(end - 1) + " reach the output (one of " +
         digits(c.numbers[1]) + " parts, not summed with the others)";
}
void try_parts(const BugContext& c, BugCases& to) {
  const std::size_t n_heads = c.model().n_heads;
  if (n_heads == 1 || !c.now.has_projection(ProjectionName::output)) return;
  for (std::size_t n = 2; n <= std::min<std::size_t>(n_heads, 8); ++n)
    for (std::size_t part = 0; n_heads % n == 0 && part < n; ++part)
      to.add({static_cast<double>(part), static_cast<double>(n)});
}

// Orders of columns, heads and rows.

constexpr std::string_view to_neighbors = "halves to neighbors", to_halves = "neighbors to halves";

void reorder_columns(Editing& e, const BugCase& c, ProjectionName part) {
  e.wrap(
      graph::projected_stages[static_cast<std::size_t>(part)],
      [becomes_neighbors = c.form == to_neighbors](const OperationInputs& in) {
        const std::size_t half = in[0].n_cols / 2;
        arma::uvec from(in[0].n_cols);
        for (std::size_t j = 0; j < from.n_elem; ++j)
          from[j] = becomes_neighbors ? j % 2 * half + j / 2 : j % half * 2 + j / half;
        return arma::mat(in[0].cols(from));
      },
      {}, "i:");
}
void try_column_orders(const BugContext& c, BugCases& to) {
  if (c.model().d_head() % 2 != 0 || c.model().d_head() <= 2) return;
  for (const char* sides : query_key_sides)
    for (const std::string_view form : {to_neighbors, to_halves}) to.add({}, std::string(form), sides);
}

void try_head_orders(const BugContext& c, BugCases& to) {
  for (const Stage stage : {Stage::queries, Stage::keys, Stage::values, Stage::contexts})
    for (const Order& order : graph::usual_orders(c.stages.n_matrices(stage)))
      to.add(numbers_of(order), name_of_stage(stage));
}

/// Order of the rows of a stage. Form "output:reversed".
struct RowRule {
  const char* form;
  const char* words;
  arma::mat (*moved)(const arma::mat&);
};
constexpr std::array row_orders{
    RowRule{"exchanged", " are read in the other order (rows and columns exchanged by a reshape)",
            [](const arma::mat& x) {
              return arma::mat(arma::reshape(arma::vectorise(x), x.n_cols, x.n_rows).t());
            }},
    RowRule{"reversed", " are in reverse order of rows",
            [](const arma::mat& x) { return arma::mat(arma::flipud(x)); }},
    RowRule{"rolled_on", " are rolled by 1 rows", [](const arma::mat& x) { return rolled_rows(x, 1); }},
    RowRule{"rolled_back", " are rolled by −1 rows", [](const arma::mat& x) { return rolled_rows(x, -1); }},
};
void move_rows(Editing& e, const BugCase& c, ProjectionName) {
  const auto [stage, form] = stage_and_form(c);
  e.wrap(
      stage,
      [moved = of_form(row_orders, form).moved](const OperationInputs& in) {
        return in.selected(moved(in[0]));
      },
      {}, "::");
}
void try_row_orders(const BugContext& c, BugCases& to) {
  for (const Stage stage : {Stage::output, Stage::contexts, Stage::queries})
    for (const RowRule& order : row_orders) {
      const bool is_rolled = std::string_view(order.form).starts_with("rolled");
      if ((stage != Stage::output || c.now.has_projection(ProjectionName::output)) &&
          (stage != Stage::queries || !is_rolled))
        to.add({}, std::string(name_of_stage(stage)) + ":" + order.form);
    }
}

// Another model: its graph is made anew.

/// Whether no stage was given, and agrees, whose shape the other model changes.
bool is_still_open(const BugContext& c, std::initializer_list<Stage> unchanged) {
  return std::ranges::none_of(attention::stages(), [&](const attention::StageInfo& row) {
    return c.stages.is_given(row.stage) && std::ranges::find(unchanged, row.stage) == unchanged.end();
  });
}
bool can_be_self_attention(const Model& m) {
  return m.has_key_embeddings() && m.given.empty() && m.n_tokens() != m.n_keys() && m.projections &&
         m.projections->key.weight.n_rows() == m.d_model() && m.additions.score_bias.empty();
}
void attend_to_itself(Editing& e, const BugCase&, ProjectionName) {
  Model m = e.model();
  for (attention::Sequence& sequence : m.sequences) sequence.key_embeddings = {}, sequence.key_tokens.clear();
  m.mask.hidden_keys.clear();
  trim_mask(m);
  e.rebuild(std::move(m));
}

/// Whether a model has no parts that depend on the number of its heads.
bool can_have_other_heads(const Model& m) {
  const auto& added = m.additions;
  const auto& rotary = added.positions.rotary;
  const bool is_rotated_whole = !rotary || (positions::rotated_columns(*rotary, m.d_head()) == m.d_head() &&
                                            rotary->scaling.rule == positions::ScalingRule::none);
  return m.given.empty() && !added.normalize && !added.sink && !added.has_bias() && !added.softcap &&
         is_rotated_whole && m.d_value() == m.d_head() && m.heads_off.empty() && m.dropout.given.empty();
}
void change_number_of_heads(Editing& e, const BugCase& c, ProjectionName) {
  Model m = e.model();
  const auto n = static_cast<std::size_t>(c.numbers[0]);
  if (std::abs(scale_factor(m) - 1 / std::sqrt(static_cast<double>(m.d_head()))) < 1e-12)
    m.scale = {attention::ScaleRule::inverse_sqrt_d_head};
  if (m.n_kv_heads) m.n_kv_heads = *m.n_kv_heads * n / m.n_heads;
  m.n_heads = n;
  if (auto& rotary = m.additions.positions.rotary)
    rotary->dimensions = std::nullopt, rotary->inverse_frequencies = std::nullopt;
  e.rebuild(std::move(m));
}
void try_numbers_of_heads(const BugContext& c, BugCases& to) {
  const Model& m = c.model();
  if (!can_have_other_heads(m) || !is_still_open(c, {})) return;
  const std::size_t width = m.n_heads * m.d_head();
  for (const std::size_t n : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}) {
    const bool fits = n != m.n_heads && width % n == 0 && m.kv_heads() * n % m.n_heads == 0 &&
                      m.kv_heads() * n >= m.n_heads;
    if (fits && (!m.additions.positions.rotary || width / n % 2 == 0)) to.add({static_cast<double>(n)});
  }
}

// The output.

bool has_output_of_input_width(const Editing& e) {
  return e.has_projection(ProjectionName::output) && e.model().d_output() == e.model().d_model();
}
bool has_square_output_weight(const Editing& e) {
  return e.has_projection(ProjectionName::output) && e.model().d_output() == e.model().d_out();
}
void add_residual(Editing& e, double factor) {
  e.wrap(Stage::output, [factor](const OperationInputs& in) { return arma::mat(in[0] + factor * in[1]); },
         {{Stage::embeddings}});
}
/// Normalizes rows without weights.
void norm_output(Editing& e, bool centers, double epsilon) {
  e.wrap(
      Stage::output,
      [centers, epsilon](const OperationInputs& in) {
        arma::mat y = in[0];
        if (centers) y.each_col() -= arma::vec(arma::mean(y, 1));
        y.each_col() /= arma::vec(arma::sqrt(arma::mean(arma::square(y), 1) + epsilon));
        return y;
      },
      {}, "i:");
}
void project_output_again(Editing& e, double) {
  if (const auto* own = e.get<graph::Project>(Stage::output))
    e.wrap(
        Stage::output, [](const OperationInputs& in) { return arma::mat(in[0] * in[1]); }, {own->inputs[1]},
        "i:");
}
void add_bias_before_projection(Editing& e, double) {
  const auto* own = e.get<graph::Project>(Stage::output);
  if (!own || !own->has_bias()) return;
  e.compute(Stage::output, own->inputs, [](const OperationInputs& in) {
    arma::mat x = in[0];
    x.each_row() += arma::rowvec(in[2]);
    return arma::mat(x * in[1]);
  });
}

struct OutputForm {
  const char* form;
  const char* words;
  void (*edit)(Editing&, double epsilon);
  bool (*fits)(const Editing&);
  bool is_norm = false;  ///< tried for each usual epsilon
};
bool has_output_projection(const Editing& e) {
  return e.has_projection(ProjectionName::output);
}
constexpr std::array output_forms{
    OutputForm{"missing", "the output projection is missing",
               [](Editing& e, double) {
                 e.compute(Stage::output, {{Stage::concatenated}},
                           [](const OperationInputs& in) { return in[0]; });
               },
               has_output_projection},
    OutputForm{"twice", "the output projection is applied twice", project_output_again,
               has_square_output_weight},
    OutputForm{"bias_first", "the bias of the output is added before the projection",
               add_bias_before_projection,
               [](const Editing& e) {
                 return has_square_output_weight(e) && !e.bias(ProjectionName::output).is_empty();
               }},
    OutputForm{"layer_norm", "the output went through a LayerNorm (without weights)",
               [](Editing& e, double epsilon) { norm_output(e, true, epsilon); }, has_output_projection,
               true},
    OutputForm{"rms_norm", "the output went through an RMSNorm (without weights)",
               [](Editing& e, double epsilon) { norm_output(e, false, epsilon); }, has_output_projection,
               true},
    OutputForm{"residual_and_norm", "the residual is added and a LayerNorm applied",
               [](Editing& e, double epsilon) { add_residual(e, 1), norm_output(e, true, epsilon); },
               has_output_of_input_width, true},
};
void try_output_forms(const BugContext& c, BugCases& to) {
  for (const OutputForm& form : output_forms)
    if (!form.is_norm && form.fits(c.now)) to.add({}, form.form);
  for (const double epsilon : {1e-5, 1e-6, 1e-12})
    for (const OutputForm& form : output_forms)
      if (form.is_norm && form.fits(c.now)) to.add({epsilon}, form.form);
}

// What is read off the first stage that differs.

/// Whether numbers of the target can be compared one by one: of how many matrices for a sequence.
std::optional<std::size_t> n_comparable(const BugContext& c) {
  const auto* given = c.observed(c.target);
  if (!given || c.is_large || !c.now.find(c.target)) return std::nullopt;
  const std::size_t n = c.stages.n_matrices(c.target);
  const bool fits = given->size() == c.model().sequences.size() * n &&
                    arma::size(*(*given)[0]) == arma::size(*c.stages.matrix(c.target, 0, 0));
  return fits ? std::optional(n) : std::nullopt;
}

/// Numbers: the vector, of one head after another.
void add_vector(Editing& e, const BugCase& c, ProjectionName) {
  e.wrap(stage_named(c.form), [all = arma::rowvec(c.numbers)](const OperationInputs& in) {
    arma::mat y = in[0];
    y.each_row() += arma::rowvec(all.cols(in.head * y.n_cols, (in.head + 1) * y.n_cols - 1));
    return y;
  });
}
void read_off_vector(const BugContext& c, BugCases& to) {
  constexpr std::array with_vectors{Stage::queries,        Stage::keys,        Stage::values,
                                    Stage::normed_queries, Stage::normed_keys, Stage::output};
  const auto n = n_comparable(c);
  if (!n || std::ranges::find(with_vectors, c.target) == with_vectors.end()) return;
  const auto& given = *c.observed(c.target);
  const std::size_t n_sequences = c.model().sequences.size();
  if (given[0].n_rows() * n_sequences <= 2) return;
  Numbers all;
  for (std::size_t h = 0; h < *n; ++h) {
    arma::rowvec mean(given[0].n_cols(), arma::fill::zeros);
    for (std::size_t s = 0; s < n_sequences; ++s)
      mean += arma::mean(*given[s * *n + h] - *c.stages.matrix(c.target, s, h), 0);
    mean /= static_cast<double>(n_sequences);
    all.insert(all.end(), mean.begin(), mean.end());
  }
  to.add(std::move(all), name_of_stage(c.target));
}

/// Heads that are sums of heads: [to][from]. Numbers: its rows, one after another.
arma::mat mixture_of(const BugCase& c) {
  const auto n = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(c.numbers.size()))));
  return arma::mat(c.numbers.data(), n, n).t();
}
void mix_heads(Editing& e, const BugCase& c, ProjectionName) {
  e.wrap(stage_named(c.form), [mixture = mixture_of(c)](const OperationInputs& in) {
    arma::mat sum(arma::size(in[0]), arma::fill::zeros);
    for (std::size_t h = 0; h < mixture.n_cols; ++h)
      if (mixture(in.head, h) != 0) sum += mixture(in.head, h) * in.of_head(0, h);
    return sum;
  });
}
bool are_single(const arma::mat& mixture) {
  return arma::all(arma::vectorise(arma::sum(arma::conv_to<arma::umat>::from(mixture != 0), 1)) == 1);
}
/// Describes a mixture that is the same for all heads, of the own one and another; else "".
std::string differential_words(const arma::mat& mixture) {
  const std::size_t n = mixture.n_rows;
  for (std::size_t by = 1; by < n; ++by)
    for (const bool in_pairs : {true, false}) {
      if (in_pairs && n % 2 != 0) continue;
      const auto other = [&](std::size_t h) { return in_pairs ? h ^ 1 : (h + by) % n; };
      const double own = mixture(0, 0), f = mixture(0, other(0));
      arma::mat alike(n, n, arma::fill::zeros);
      for (std::size_t h = 0; h < n; ++h) alike(h, h) = own, alike(h, other(h)) = f;
      if (f >= 0 || own == 0 || !(arma::abs(mixture - alike).max() < 1e-5)) continue;
      return " of every head are less " + digits(-f / own) + " × those of " +
             (in_pairs      ? "its neighbor (heads in pairs"
              : by <= n / 2 ? "the head " + to_string(by) + " further (cyclic"
                            : "the head " + to_string(n - by) + " before (cyclic") +
             ", as differential attention with λ = " + digits(-f / own) + ")" +
             (std::abs(own - 1) < 1e-9 ? "" : ", × " + digits(own));
    }
  return "";
}
std::string mixture_words(const Editing&, const BugCase& c) {
  const arma::mat mixture = mixture_of(c);
  const std::string stage = words_of(stage_named(c.form));
  if (are_single(mixture) && arma::abs(arma::sum(mixture, 1) - 1).max() < 1e-6) {
    Order order;
    for (std::size_t h = 0; h < mixture.n_rows; ++h) order.push_back(mixture.row(h).index_max());
    return stage + ": " + graph::order_words(order, "head");
  }
  if (const std::string words = differential_words(mixture); !words.empty()) return stage + words;
  std::vector<std::string> phrases;
  for (std::size_t h = 0; h < mixture.n_rows; ++h) {
    std::vector<std::string> sum;
    for (const std::size_t from : arma::uvec(arma::find(mixture.row(h))))
      sum.push_back(digits(mixture(h, from), 5) + " × " + to_string(from));
    const bool is_own = sum.size() == 1 && mixture(h, h) != 0;
    if (!is_own) phrases.push_back("head " + to_string(h) + " = " + text::joined(sum, " + "));
  }
  return stage + " are mixtures of heads: " + text::joined(phrases, "; ");
}
int rank_of_mixture(const BugContext& c, const BugCase& of) {
  const arma::mat mixture = mixture_of(of);
  if (are_single(mixture)) return 2;
  const bool is_coarse = c.precision == Precision::bfloat16 || c.precision == Precision::float16;
  return !is_coarse || !differential_words(mixture).empty() ? 3 : 4;  // rounding looks like a mixture too
}
/// Reads off heads that are least-squares sums of few of ours.
void read_off_mixture(const BugContext& c, BugCases& to) {
  constexpr std::array mixed_stages{
      Stage::queries,         Stage::keys,         Stage::values, Stage::normed_queries, Stage::normed_keys,
      Stage::rotated_queries, Stage::rotated_keys, Stage::scores, Stage::weights,        Stage::contexts};
  const auto comparable = n_comparable(c);
  if (!comparable || *comparable < 2 || std::ranges::find(mixed_stages, c.target) == mixed_stages.end())
    return;
  const std::size_t n = *comparable;
  arma::mat ours, theirs;
  for (std::size_t s = 0; s < c.model().sequences.size(); ++s) {
    arma::mat x(c.stages.matrix(c.target, s, 0)->n_elem, n), y = x;
    for (std::size_t h = 0; h < n; ++h) {
      x.col(h) = arma::vectorise(*c.stages.matrix(c.target, s, h));
      y.col(h) = arma::vectorise(*(*c.observed(c.target))[s * n + h]);
    }
    ours = arma::join_cols(ours, x), theirs = arma::join_cols(theirs, y);
  }
  const arma::uvec finite = arma::find_finite(arma::vec(arma::sum(ours, 1) + arma::sum(theirs, 1)));
  const auto solved =
      finite.n_elem < 3 * n ? std::nullopt : least_squares(ours.rows(finite), theirs.rows(finite));
  if (!solved) return;
  arma::mat mixture = *solved;
  const arma::uword max_mixed = 3;  // any stage is a mixture of many heads
  mixture.transform([&](double f) {
    const double near = std::round(f * 1e6) / 1e6;
    return std::abs(f) < c.estimate_tolerance ? 0 : std::abs(near - f) < 1e-7 ? near : f;
  });
  const arma::umat counted = arma::conv_to<arma::umat>::from(arma::abs(mixture) > 10 * c.estimate_tolerance);
  if (mixture.is_diagmat() || arma::max(arma::sum(counted, 0)) > max_mixed) return;
  to.add({mixture.begin(), mixture.end()}, name_of_stage(c.target));
}

/// Order of rows or columns that is read off. Form "output:row".
void reorder_lines(Editing& e, const BugCase& c, ProjectionName) {
  const auto [stage, line] = stage_and_form(c);
  e.wrap(
      stage,
      [of_rows = line == "row",
       order = arma::conv_to<arma::uvec>::from(c.numbers)](const OperationInputs& in) {
        if ((of_rows ? in[0].n_rows : in[0].n_cols) != order.n_elem) return in.selected(in[0]);
        return in.selected(of_rows ? arma::mat(in[0].rows(order)) : arma::mat(in[0].cols(order)));
      },
      {}, "::");
}
std::string lines_words(const Editing&, const BugCase& c) {
  const auto [stage, line] = stage_and_form(c);
  return words_of(stage) + ": " + graph::order_words(order_from(c.numbers), line);
}
void read_off_order(const BugContext& c, BugCases& to, bool of_rows) {
  constexpr std::size_t max_lines = 512;
  const auto n_matrices = n_comparable(c);
  if (!n_matrices) return;
  const auto lines_of = [&](auto matrix_of) {
    arma::mat all;  // one column for each line
    for (std::size_t s = 0; s < c.model().sequences.size(); ++s)
      for (std::size_t h = 0; h < *n_matrices; ++h) {
        const arma::mat& x = matrix_of(s, h);
        all = arma::join_cols(all, of_rows ? arma::mat(x.t()) : x);
      }
    return all;
  };
  const arma::mat ours = lines_of([&](std::size_t s, std::size_t h) -> const arma::mat& {
    return c.stages.matrix(c.target, s, h);
  }),
                  theirs = lines_of([&](std::size_t s, std::size_t h) -> const arma::mat& {
                    return (*c.observed(c.target))[s * *n_matrices + h];
                  });
  const std::size_t n = ours.n_cols;
  if (n < 2 || n > max_lines || !ours.is_finite() || !theirs.is_finite()) return;
  Order order(n);
  for (std::size_t i = 0; i < n; ++i) {
    double least = graph::infinity;
    for (std::size_t j = 0; j < n; ++j)
      if (const double apart = arma::accu(arma::square(theirs.col(i) - ours.col(j))); apart < least)
        least = apart, order[i] = j;
  }
  if (order != graph::index_order(n))
    to.add(numbers_of(order), std::string(name_of_stage(c.target)) + (of_rows ? ":row" : ":column"));
}

const std::array output_rows{
    Bug{.name = "contexts_from",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { of_form(context_forms, c.form).edit(e, c.number()); },
        .words = form_words<context_forms>,
        .cases = try_contexts},
    Bug{.name = "merge",
        .edit =
            [](Editing& e, const BugCase& c, ProjectionName) {
              e.change<graph::CombineHeads>(Stage::concatenated, [&](graph::CombineHeads& own) {
                own.inputs[0].layout = of_form(merge_forms, c.form).layout;
              });
            },
        .words = form_words<merge_forms>,
        .cases = try_merges},
    Bug{.name = "heads_not_summed", .edit = project_one_part, .words = one_part_words, .cases = try_parts},
    Bug{.name = "column_order",
        .edit = reorder_columns,
        .words =
            "the columns of each head of the {stages} are in the order of the other rotary pairs ({form}): "
            "a weight converted once too often or not at all",
        .cases = try_column_orders,
        .rank = 1},
    Bug{.name = "self_instead_of_cross",
        .edit = attend_to_itself,
        .words = "keys and values are projected from the embeddings instead of the key embeddings (self- "
                 "instead of cross-attention)",
        .cases =
            [](const BugContext& c, BugCases& to) {
              using enum Stage;
              if (can_be_self_attention(c.model()) &&
                  is_still_open(c, {queries, normed_queries, rotated_queries}))
                to.add();
            }},
    Bug{.name = "head_order",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { e.reorder_heads(stage_named(c.form), order_from(c.numbers)); },
        .words =
            [](const Editing&, const BugCase& c) {
              return words_of(stage_named(c.form)) + ": " + graph::order_words(order_from(c.numbers), "head");
            },
        .cases = try_head_orders},
    Bug{.name = "rows_moved",
        .edit = move_rows,
        .words =
            [](const Editing&, const BugCase& c) {
              const auto [stage, form] = stage_and_form(c);
              return "the " + words_of(stage) + of_form(row_orders, form).words;
            },
        .cases = try_row_orders},
    Bug{.name = "residual",
        .edit = [](Editing& e, const BugCase&, ProjectionName) { add_residual(e, 1); },
        .words = "the residual (the input of the layer) is already added",
        .fits = has_output_of_input_width},
    Bug{.name = "residual_factor",
        .edit = [](Editing& e, const BugCase& c, ProjectionName) { add_residual(e, c.numbers[0]); },
        .words = "{number} × the embeddings are added to the output",
        .cases =
            [](const BugContext& c, BugCases& to) {
              if (has_output_of_input_width(c.now)) to.fit({0.5});
            },
        .rank = 2},
    Bug{.name = "output_form",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { of_form(output_forms, c.form).edit(e, c.number()); },
        .words = form_words<output_forms>,
        .cases = try_output_forms},
    Bug{.name = "vector_added",
        .edit = add_vector,
        .words =
            [](const Editing& before, const BugCase& c) {
              return "one and the same vector is added to every row of the " + words_of(stage_named(c.form)) +
                     " (a bias that the model does not have): " + before.words.list(c.numbers, 6);
            },
        .cases = read_off_vector,
        .rank = 3,
        .is_last = true},
    Bug{.name = "heads_mixed",
        .edit = mix_heads,
        .words = mixture_words,
        .cases = read_off_mixture,
        .rank_of = rank_of_mixture,
        .is_last = true},
    Bug{.name = "order_read_off",
        .edit = reorder_lines,
        .words = lines_words,
        .cases =
            [](const BugContext& c, BugCases& to) {
              read_off_order(c, to, true);
              read_off_order(c, to, false);
            },
        .rank = 2,
        .is_last = true},
    Bug{.name = "heads_other",
        .edit = change_number_of_heads,
        .words =
            [](const Editing& before, const BugCase& c) {
              return "there are " + digits(c.numbers[0]) + " heads instead of " +
                     to_string(before.model().n_heads);
            },
        .cases = try_numbers_of_heads,
        .in_pairs = false},
};

}  // namespace

std::span<const Bug> output_bugs() {
  return output_rows;
}

}  // namespace core::bugs
