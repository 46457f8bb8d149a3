#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check/score_steps.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"

/// Attention as a recipe that a deviation may change anywhere, and its lazy evaluation.
///
/// A model describes intended attention; a recipe also covers unintended variants: another order of the
/// steps, a norm over all heads, a sink in base 2. A run computes stages on demand and uses given ones as
/// they are, so that one step can be judged alone, from the observed numbers before it.
namespace core::check::inference {

using attention::Precision;
using attention::Stage;
using attention::StageSet;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// [sequence][head][row][column]; an axis of length 1 is broadcast.
using Shape = std::array<std::size_t, 4>;
/// Calls f(sequence, head, row, column) for every element, in storage order.
template <class F>
void each_cell(const Shape& n, F f) {
  for (std::size_t b = 0; b < n[0]; ++b)
    for (std::size_t h = 0; h < n[1]; ++h)
      for (std::size_t i = 0; i < n[2]; ++i)
        for (std::size_t j = 0; j < n[3]; ++j) f(b, h, i, j);
}
struct Block {
  Shape n{0, 0, 0, 0};
  std::vector<double> v;

  Block() = default;
  explicit Block(Shape shape, double fill = 0)
      : n(shape), v(shape[0] * shape[1] * shape[2] * shape[3], fill) {}
  /// Fills every element with f(sequence, head, row, column).
  template <class F>
  static Block of(Shape shape, F f) {
    Block made(shape);
    std::size_t at = 0;
    each_cell(shape, [&](auto b, auto h, auto i, auto j) { made.v[at++] = f(b, h, i, j); });
    return made;
  }
  std::size_t at(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    return ((b * n[1] + h) * n[2] + i) * n[3] + j;
  }
  double operator()(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    return v[at(n[0] == 1 ? 0 : b, n[1] == 1 ? 0 : h, n[2] == 1 ? 0 : i, n[3] == 1 ? 0 : j)];
  }
  double* row(std::size_t b, std::size_t h, std::size_t i) { return v.data() + at(b, h, i, 0); }
  const double* row(std::size_t b, std::size_t h, std::size_t i) const { return v.data() + at(b, h, i, 0); }
};
using SharedBlock = std::shared_ptr<const Block>;

inline SharedBlock share(Block block) {
  return std::make_shared<const Block>(std::move(block));
}
template <class F>
Block mapped(Block a, F f) {
  for (double& x : a.v) x = f(x);
  return a;
}
/// Computes f(a, b) element by element, with broadcasting; returns a if the shapes do not fit.
template <class F>
Block zipped(const Block& a, const Block& b, F f) {
  if (a.n == b.n) {
    Block made = a;
    for (std::size_t k = 0; k < made.v.size(); ++k) made.v[k] = f(a.v[k], b.v[k]);
    return made;
  }
  Shape shape;
  for (std::size_t k = 0; k < 4; ++k) {
    if (a.n[k] != b.n[k] && a.n[k] != 1 && b.n[k] != 1)
      return a;  // incompatible shapes: this variant is not pursued
    shape[k] = std::max(a.n[k], b.n[k]);
  }
  return Block::of(shape, [&](auto s, auto h, auto i, auto j) { return f(a(s, h, i, j), b(s, h, i, j)); });
}
/// Computes one number f(first, length) per row.
template <class F>
Block by_row(const Block& a, F f) {
  Block made({a.n[0], a.n[1], a.n[2], 1});
  for (std::size_t k = 0; k < made.v.size(); ++k) made.v[k] = f(a.v.data() + k * a.n[3], a.n[3]);
  return made;
}
/// Returns 0, 1, …, n − 1.
std::vector<std::size_t> index_range(std::size_t n);
/// Returns the block with an axis reordered: index k holds the former index order[k].
Block index_select(const Block& a, std::size_t axis, const std::vector<std::size_t>& order);
/// Rolls an axis, as numpy.roll.
Block rolled(const Block& a, std::size_t axis, long by);
/// Reverses an axis; copies the values at one index to the whole axis.
Block reversed(const Block& a, std::size_t axis);
Block repeat_index(const Block& a, std::size_t axis, std::size_t place);
Block scaled(Block a, double factor);
/// Returns the same numbers in storage order with another shape.
Block reshaped(Block a, Shape shape);
Block rounded(Block a, Precision precision);
/// Whether a precision is float16 or bfloat16, whose numbers reveal little.
inline bool is_coarse(Precision precision) {
  return precision == Precision::bfloat16 || precision == Precision::float16;
}
Block transposed(const Block& a);  ///< swaps rows and columns
Block mean_of_heads(const Block& a);
arma::mat matrix_of(const Block& a, std::size_t sequence, std::size_t head);
/// Divides each row by its sum.
Block normalized(const Block& a);

/// Projections: queries, keys, values, output.
enum Side : std::size_t { Q, K, V, O };
inline constexpr std::array side_stage{Stage::queries, Stage::keys, Stage::values, Stage::output};
inline constexpr std::array normed_stage{Stage::normed_queries, Stage::normed_keys, Stage::values,
                                         Stage::output};
inline constexpr std::array rotated_stage{Stage::rotated_queries, Stage::rotated_keys, Stage::values,
                                          Stage::output};

struct Rope {
  std::vector<double> inverse_frequencies;  ///< radians per position, for each pair
  std::string_view pairs = "halves";
  std::size_t dims = 0;
  double base = 10000, sign = 1;
  std::string_view form = "right";
  std::optional<std::pair<std::string_view, Precision>> coarse = {};  ///< rounded part of the angles
  std::size_t first_column = 0;
  bool is_listed = false;       ///< the frequencies are listed, not derived from the base
  double attention_factor = 1;  ///< of cosines and sines
};
std::vector<double> frequencies_of(double base, std::size_t dims, double over);

struct NormSpec {
  std::string_view rule = "rms", over = "head", form = "w", epsilon_place = "inside";
  std::vector<double> w;
  double epsilon = 1e-6;
};

struct RelativeBuckets {
  SharedBlock table;
  double max_distance = 128;
  bool is_bidirectional = true;
  int sign = 1;
  long shift = 0;
  std::size_t buckets = 0;  ///< 0: the size of the table
};

class Run;
struct Recipe {
  std::size_t B = 1, T = 0, S = 0, D = 0, H = 1, G = 1, d = 0, dv = 0;
  bool cross = false, uniform = false;
  std::array<SharedBlock, 3> x;  ///< inputs of the query, key and value projections
  std::array<SharedBlock, 4> W, b;
  std::array<std::string_view, 3> split{"bands", "bands", "bands"};
  SharedBlock scale;
  std::array<std::optional<NormSpec>, 2> norm;
  std::array<std::optional<Rope>, 2> rope;
  positions::Scaling scaling;
  std::array<SharedBlock, 2> pos;  ///< [sequence or 1][1][1][token]
  bool norms_last = false;
  std::array<bool, 2> omits_norm{}, omits_rotation{};
  bool omits_bias = false;
  std::array<ScoreStep, 4> step_order{ScoreStep::scale, ScoreStep::softcap, ScoreStep::bias, ScoreStep::mask};
  std::array<std::vector<std::size_t>, 3> group;  ///< of keys and values: the KV head of each head
  double cap = 0;                                 ///< 0: none
  std::string_view cap_form = "right";
  std::vector<double> slopes;  ///< of ALiBi; none without it
  std::optional<RelativeBuckets> relative;
  std::array<SharedBlock, 3> bias;  ///< ALiBi, relative, additive attn_mask
  std::array<double, 3> bias_count{1, 1, 1};
  SharedBlock masked, masked_queries;  ///< [sequence][1][1][key or query]: 1 if masked by padding
  bool causal = true, aligns_last = true;
  std::optional<std::pair<long, long>> window;  ///< −1: no limit
  std::size_t prefix = 0;
  std::vector<std::size_t> documents;
  std::vector<attention::MaskCell> cells;
  long shift = 0;       ///< of the causal edge
  SharedBlock visible;  ///< [sequence][1 or head][query][key]
  std::string_view method = "-inf", empty = "nan";
  double mask_value = 0;  ///< for the methods "value" and "plus value"
  std::optional<std::vector<double>> sink;
  std::string_view sink_form = "right";
  double denominator_bias = 0,
         unscaled_denominator_bias = 0;  ///< added to the softmax denominator, with and without exp(−max)
  std::size_t axis = 3;                  ///< axis of the softmax
  bool twice = false;
  double rate = 0;
  SharedBlock drop;  ///< of 0 and 1
  std::string_view drop_form = "right", merge = "concatenate";
  std::vector<std::size_t> heads_off;
  using Transform = std::function<Block(const Block&, Run&)>;
  std::vector<std::pair<Stage, Transform>> transforms,
      reported;                                          ///< applied to a stage; to its reported value only
  std::vector<std::pair<Stage, SharedBlock>> overrides;  ///< overridden in the model instead of computed
  std::array<Precision, attention::n_stages> precision{};
  bool has_reordered_steps = false;  ///< score steps are reordered, so that their stage names are ambiguous
  double relative_tolerance = 1e-7;  ///< relative accuracy of fitted numbers
  int digits = 6;

  void transform(Stage stage, Transform change) { transforms.emplace_back(stage, std::move(change)); }
  bool has_bias() const { return bias[0] || bias[1] || bias[2]; }
  double plain_scale() const { return scale->v.size() == 1 ? scale->v[0] : 0; }
  void set_scale(double factor) { scale = share(Block({1, 1, 1, 1}, factor)); }
  long offset() const { return static_cast<long>(S) - static_cast<long>(T); }
  std::size_t width(Side side) const { return W[side] ? W[side]->n[3] : 0; }
  bool has(Stage stage) const;
  bool has_step(ScoreStep step) const {
    return (step != ScoreStep::softcap || cap != 0) && (step != ScoreStep::bias || has_bias());
  }
};

/// Returns the recipe of a model; nullopt if none describes it, as with mistakes or overridden cells.
std::optional<Recipe> recipe_of(const attention::Model& model);

/// Computes the mask from a recipe's rules, 1 where unmasked: [sequence][1][query][key].
Block mask_from_rules(const Recipe& m);
/// Returns n consecutive positions of tokens, starting at `first`.
SharedBlock positions_from(double first, std::size_t n);
Block alibi_bias(const Recipe& m, const std::vector<double>& slopes, std::string_view distance = "abs",
                 long shift = 0);
Block relative_bias(const Recipe& m, const RelativeBuckets& relative);
Block apply_rope(const Block& x, const Rope& rope, const Block& positions);
Block apply_norm(const Block& x, const NormSpec& norm);

/// Stages of a recipe, computed on demand.
class Run {
 public:
  explicit Run(const Recipe& recipe) : m(recipe) {}
  const Recipe& m;
  std::array<SharedBlock, attention::n_stages> made;  ///< known or computed

  const Block& operator[](Stage stage) { return *shared(stage); }
  SharedBlock shared(Stage stage);
  /// Returns the stage as it would be reported, which may differ from the value used in the computation.
  SharedBlock seen(Stage stage);
  /// Returns queries or keys as used in the scores, after norm and rotation.
  const Block& score_input(Side side);
  /// Returns the scores that the softmax receives.
  const Block& softmax_input() { return (*this)[stage_of(m.step_order.back())]; }
  Block dot_products(const Block& queries, const Block& keys, bool are_grouped = true) const;
  Block sums(const Block& weights, const Block& values) const;

 private:
  Block node(Stage stage);
  Block projected(Side side);
  Block norm_or_rotate(bool norms, Side side);
  Block step(ScoreStep step);
  Block softmax();
  Block combine_heads();
};

constexpr std::size_t index(Stage stage) {
  return static_cast<std::size_t>(stage);
}
StageSet set_of(std::initializer_list<Stage> stages);
/// Returns the stages of a recipe, in the order of computation.
std::span<const Stage> run_stages();
/// Returns the inputs of a stage for any order of norm and rotation and of the score steps.
StageSet inputs_of(Stage stage);
/// Returns all stages that depend on these, including themselves.
StageSet downstream(StageSet stages);
const StageSet& downstream(Stage stage);
inline bool has_key_rows(Stage stage) {
  return attention::info(stage).rows == attention::RowTokens::keys;
}

}  // namespace core::check::inference
