// Stages of attention that a file gives: found by the names of its tensors, read for each head, and made a
// model.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/match.hpp"
#include "core/graph/given.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/limits.hpp"
#include "core/graph/stages.hpp"
#include "core/importing/import_parts.hpp"

namespace core::importing {
namespace {

using attention::GivenStage;
using attention::Stage;
using formats::Shape;
using formats::Tensor;
using formats::TensorFile;
using formats::TensorInfo;

constexpr double rounding_of_a_row = 0.02;    // of float16 and bfloat16, added up
constexpr double rounding_of_an_axis = 0.02;  // of float16 and bfloat16
constexpr double rounding_of_a_score = 0.02;  // of float16, relative to the largest score
constexpr double masked_score = -1e4;         // what masks add is at least as low
constexpr double same_factor = 0.01;          // relative

/// What a name says: a stage that can be given, of which layer, of which head.
struct Said {
  Stage stage = Stage::weights;
  std::string layer;
  std::optional<std::size_t> head;
};

std::optional<Stage> givable(const std::string& base) {
  for (const Stage stage : check::meaning_of(base).stages)
    if (attention::can_be_given(stage)) return stage;
  return std::nullopt;
}

std::optional<Said> said_by(const std::string& name) {
  const check::Name parts = check::split_name(name);
  if (parts.sequence) return std::nullopt;
  if (const auto stage = givable(parts.base)) {
    const std::size_t last = parts.base.find_last_of("./");
    return Said{*stage, last == std::string::npos ? "" : parts.base.substr(0, last), parts.head};
  }
  for (const auto& [base, number, is_parted, behind] : check::without_numbers(name))
    if (const auto stage = givable(base)) return Said{*stage, number, {}};
  return std::nullopt;
}

bool can_be_a_stage(const TensorInfo& info) {
  return info.dtype != formats::Dtype::text && info.shape.size() >= 2 && info.shape.size() <= 5 &&
         std::ranges::all_of(info.shape, [](std::size_t n) { return n > 0; });
}

bool holds_weights(const TensorFile& file, const TensorInfo& info, const core::Token& progress) {
  const Tensor first = file.read(info.name, Shape(info.shape.size() - 2, 0), progress);
  const std::size_t n_columns = info.shape.back();
  bool a_row_counts = false;
  for (std::size_t at = 0; at < first.numbers.size(); at += n_columns) {
    double sum = 0;
    for (std::size_t j = 0; j < n_columns; ++j) {
      const double number = first.numbers[at + j];
      if (!(number >= 0 && number <= 1 + rounding_of_a_row)) return false;
      sum += number;
    }
    if (sum != 0 && std::abs(sum - 1) > rounding_of_a_row) return false;  // a padded row is of zeros
    a_row_counts = a_row_counts || sum != 0;
  }
  return a_row_counts;
}

/// Weights under names that say nothing, one tensor a layer: "arr_0", "arr_1", …
std::vector<StageLayer> nameless_weights(const TensorFile& file, const core::Token& progress) {
  std::vector<const TensorInfo*> tensors;
  for (const TensorInfo& info : file.tensors())
    if (info.dtype != formats::Dtype::text) tensors.push_back(&info);
  const bool alike = !tensors.empty() && std::ranges::all_of(tensors, [&](const TensorInfo* info) {
    return can_be_a_stage(*info) && info->shape.size() > 2 && info->shape == tensors.front()->shape &&
           std::max(info->shape.end()[-2], info->shape.back()) <= attention::max_tokens;
  });
  if (!alike || !holds_weights(file, *tensors.front(), progress)) return {};
  std::vector<StageLayer> layers;
  for (const TensorInfo* info : tensors) layers.push_back({info->name, {{Stage::weights, {info->name}}}});
  std::ranges::stable_sort(layers, text::comes_before, &StageLayer::name);
  return layers;
}

/// The numbers in another order of axes: axis k of the result is axis order[k] of the tensor.
Tensor with_axes(Tensor tensor, const Shape& order) {
  const std::size_t n_axes = order.size();
  Shape strides(n_axes, 1), shape(n_axes), steps(n_axes), at(n_axes, 0);
  for (std::size_t k = n_axes - 1; k-- > 0;) strides[k] = strides[k + 1] * tensor.shape[k + 1];
  for (std::size_t k = 0; k < n_axes; ++k) {
    shape[k] = tensor.shape[order[k]];
    steps[k] = strides[order[k]];
  }
  std::vector<double> numbers;
  numbers.reserve(tensor.numbers.size());
  std::size_t from = 0;
  while (numbers.size() < tensor.numbers.size()) {
    numbers.push_back(tensor.numbers[from]);
    for (std::size_t k = n_axes; k-- > 0;) {
      from += steps[k];
      if (++at[k] < shape[k]) break;
      from -= steps[k] * shape[k];
      at[k] = 0;
    }
  }
  tensor.numbers = std::move(numbers);
  tensor.shape = std::move(shape);
  return tensor;
}

/// Whether all sums over an axis are 1, but for rows of zeros, of which not all are.
bool sums_to_one(const Tensor& tensor, std::size_t axis) {
  std::size_t inner = 1, outer = 1;
  for (std::size_t k = axis + 1; k < tensor.shape.size(); ++k) inner *= tensor.shape[k];
  for (std::size_t k = 0; k < axis; ++k) outer *= tensor.shape[k];
  bool a_row_counts = false;
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < tensor.shape[axis]; ++k)
        sum += tensor.numbers[(o * tensor.shape[axis] + k) * inner + i];
      if (sum == 0) continue;
      if (!(std::abs(sum - 1) <= rounding_of_an_axis)) return false;
      a_row_counts = true;
    }
  return a_row_counts;
}

/// 0, 1, … with one axis moved to another place.
Shape moved(std::size_t n_axes, std::size_t from, std::size_t to) {
  Shape order;
  for (std::size_t k = 0; k < n_axes; ++k)
    if (k != from) order.push_back(k);
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), from);
  return order;
}

/// Turns weights [.., queries, keys, heads] into [.., heads, queries, keys] when the axis that sums to 1
/// tells that they are kept so, which is said; others stay.
Tensor with_heads_in_front(Tensor weights, Account& account) {
  const std::size_t n = weights.shape.size();
  if (n < 3 || weights.numbers.empty() || sums_to_one(weights, n - 1) || !sums_to_one(weights, n - 2))
    return weights;
  if (weights.shape[n - 3] != weights.shape[n - 2] && weights.shape[n - 2] == weights.shape[n - 1])
    return weights;  // [heads, T, T] whose columns sum to 1: the softmax went the wrong way
  account.assumed.push_back("that the last axis of " + tensor_words(weights) +
                            " counts heads, as the one before it sums to 1");
  return with_axes(std::move(weights), moved(n, n - 1, n - 3));
}

/// How many heads queries, keys or values have by their name, where nobody has said it; else it is said that
/// heads are taken to come before tokens.
std::optional<std::size_t> heads_by_name(const TensorInfo& info, Account& account) {
  const std::size_t n = info.shape.size();
  if (n != 3 && n != 4) return std::nullopt;
  // TransformerLens has heads after tokens.
  for (const char* hook : {"hook_q", "hook_k", "hook_v"})
    if (info.name.ends_with(hook)) return info.shape[n - 2];
  if (info.shape[n - 3] == 1) return std::nullopt;  // one head, which is said
  account.assumed.push_back(tensor_words(info) + " is [" + (n == 4 ? "sequences, " : "") +
                            "heads, tokens, columns] (--heads would tell)");
  return std::nullopt;
}

/// Queries, keys or values of so many heads, [.., heads, tokens, d_head]: split are [1, tokens, columns] and
/// [sequences, tokens, columns], transposed is [sequences, tokens, heads, d_head]; what was done is said.
/// Without a number of heads, and of two dimensions, they stay.
Tensor with_heads(Tensor tensor, std::optional<std::size_t> n_heads, const std::string& place,
                  Account& account) {
  const std::size_t n = tensor.shape.size();
  if (!n_heads || n < 3 || n > 4 || tensor.numbers.empty() || tensor.shape[n - 3] == *n_heads) return tensor;
  const std::string words = tensor_words(tensor);
  if (n == 3 && tensor.shape[0] > 1 && tensor.shape[1] == *n_heads && tensor.shape[2] % *n_heads != 0) {
    account.assumed.push_back(words + " is [tokens, heads, columns]");
    return with_axes(std::move(tensor), {1, 0, 2});
  }
  if (n == 3 && tensor.shape[2] % *n_heads == 0) {
    const Shape& s = tensor.shape;
    tensor.shape = {s[0], s[1], *n_heads, s[2] / *n_heads};
    account.assumed.push_back(words + " is [sequences, tokens, columns of " + std::to_string(*n_heads) +
                              " heads]");
    return with_axes(std::move(tensor), {0, 2, 1, 3});
  }
  if (n == 4 && tensor.shape[2] == *n_heads) {
    account.assumed.push_back(words + " is [sequences, tokens, heads, columns]");
    return with_axes(std::move(tensor), {0, 2, 1, 3});
  }
  if (n == 4 && tensor.shape[1] > 0 && *n_heads % tensor.shape[1] == 0) return tensor;  // grouped
  throw Error(place + "expected " + std::to_string(*n_heads) + " heads, got " +
              formats::shape_text(tensor.shape));
}

bool is_score(double number) {
  return std::isfinite(number) && number > masked_score;
}

/// The factor between Q·Kᵀ and scores where both are finite, or nothing when they do not go together.
std::optional<double> factor_between(const GivenStage& scores, const GivenStage& queries,
                                     const GivenStage& keys) {
  const std::size_t n = scores.matrices.size();
  if (queries.matrices.size() != n || n == 0 || n % keys.matrices.size() != 0) return std::nullopt;
  const std::size_t repeats = n / keys.matrices.size();
  double products = 0, squares = 0, largest = 0;
  std::vector<arma::mat> raw;
  for (std::size_t m = 0; m < n; ++m) {
    const arma::mat &q = queries.matrices[m], &k = keys.matrices[m / repeats], &s = scores.matrices[m];
    if (q.n_cols != k.n_cols || q.n_rows != s.n_rows || k.n_rows != s.n_cols) return std::nullopt;
    raw.emplace_back(q * k.t());
    for (arma::uword c = 0; c < s.n_elem; ++c) {
      if (!is_score(s[c])) continue;
      products += s[c] * raw[m][c], squares += raw[m][c] * raw[m][c];
      largest = std::max(largest, std::abs(s[c]));
    }
  }
  if (!(squares > 0) || !(largest > 0)) return std::nullopt;
  const double factor = products / squares;
  for (std::size_t m = 0; m < n; ++m) {
    const arma::mat& s = scores.matrices[m];
    for (arma::uword c = 0; c < s.n_elem; ++c)
      if (is_score(s[c]) && !(std::abs(s[c] - factor * raw[m][c]) <= rounding_of_a_score * largest))
        return std::nullopt;
  }
  return factor;
}

bool masks_some(const GivenStage& scores) {
  return std::ranges::any_of(
      scores.matrices, [](const arma::mat& m) { return arma::any(arma::vectorise(m) <= masked_score); });
}

/// What the scores of a file are: a stage, and what they are still to be multiplied by.
struct ScoresAre {
  attention::Stage stage = attention::Stage::scores;
  std::optional<double> factor;
  std::string words;  ///< how that is known, or what is assumed
  bool is_assumed = false;
};

/// Tells raw scores from scaled ones by Q·Kᵀ, as far as queries and keys are known, and else by whether there
/// is a scale beside them.
ScoresAre judge_scores(const GivenStage& scores, const GivenStage* queries, const GivenStage* keys,
                       bool has_scale) {
  const Stage done = masks_some(scores) ? Stage::masked_scores : Stage::scaled_scores;
  const auto factor = queries && keys ? factor_between(scores, *queries, *keys) : std::nullopt;
  if (factor && std::abs(*factor - 1) <= same_factor) {
    const auto d_head = static_cast<double>(queries->matrices.front().n_cols());
    return {Stage::scores, 1 / std::sqrt(d_head), "the scores are Q·Kᵀ, not scaled yet"};
  }
  if (factor)
    return {done,
            {},
            "the scores are scaled already: Q·Kᵀ × " + text::number_text(std::round(*factor * 1e4) / 1e4)};
  if (queries && keys)
    return {done, {}, "the scores, which are not Q·Kᵀ times a number, are scaled already", true};
  if (has_scale) return {Stage::scores, {}, "the scores are still to be scaled", true};
  return {done, {}, "the scores are scaled already", true};
}

/// Whether the columns of all heads may stand side by side.
bool is_band(Stage stage) {
  return stage == Stage::queries || stage == Stage::keys || stage == Stage::values;
}

/// Reads the stages of one layer of a file, each for as many heads as were said or as others of them have.
class StageReading {
 public:
  StageReading(const TensorFile& file, const Choices& choices, const LayerOf& layer,
               const core::Token& progress, Account& account)
      : file_(file),
        layer_(layer),
        progress_(progress),
        account_(account),
        first_line_is_names_(choices.first_line_is_names),
        n_heads_(choices.n_heads) {}

  /// Reads a stage; what of it is a matrix a head tells how many heads the others have. Throws core::Error.
  formats::TensorStage read(const StageSource& source) {
    const bool has_bands = is_band(source.stage) && source.tensors.size() == 1;
    formats::TensorStage all{{source.stage, {}}, 1};
    for (const std::string& name : source.tensors) {
      const std::string place = file_.place() + name + ": ";
      Tensor tensor = numbers_of(file_.info(name));
      note_counting_line(file_, tensor, first_line_is_names_, account_);
      if (source.stage == Stage::weights) tensor = with_heads_in_front(std::move(tensor), account_);
      if (has_bands && !n_heads_) n_heads_ = heads_by_name(tensor, account_);
      if (has_bands) tensor = with_heads(std::move(tensor), n_heads_, place, account_);
      auto part = formats::stage_of(tensor, source.stage, has_bands ? n_heads_.value_or(1) : 1, place);
      all.n_sequences = part.n_sequences;
      for (auto& matrix : part.given.matrices) all.given.matrices.push_back(std::move(matrix));
    }
    repeat_groups(source, all);
    const std::size_t n = all.given.matrices.size() / std::max<std::size_t>(1, all.n_sequences);
    if (n_heads_ && *n_heads_ != n)
      throw Error(file_.place() + source.tensors.front() + ": expected " + std::to_string(*n_heads_) +
                  " heads, got " + std::to_string(n) + " in " +
                  formats::shape_text(file_.info(source.tensors.front()).shape));
    n_heads_ = n;
    return all;
  }

  /// Reads stages, those first that tell of heads, of as many sequences each. Throws core::Error.
  std::vector<formats::TensorStage> read_all(std::vector<StageSource> stages) {
    std::stable_partition(stages.begin(), stages.end(),
                          [](const StageSource& s) { return !is_band(s.stage); });
    std::vector<formats::TensorStage> all;
    for (const StageSource& source : stages) {
      formats::TensorStage stage = read(source);
      if (!all.empty() && stage.n_sequences != all.front().n_sequences)
        throw Error(file_.place() + source.tensors.front() + ": expected " +
                    std::to_string(all.front().n_sequences) + " sequences, as the other stages have, got " +
                    std::to_string(stage.n_sequences));
      all.push_back(std::move(stage));
    }
    return all;
  }

 private:
  Tensor numbers_of(const TensorInfo& info) const {
    const std::vector<std::size_t> leading =
        layer_.n > 0 ? std::vector{layer_.index} : std::vector<std::size_t>();
    // Sequences, heads, tokens and columns have one limit; a model beyond it is refused before it is read.
    const bool is_within = std::ranges::all_of(std::span(info.shape).subspan(leading.size()),
                                               [](std::size_t n) { return n <= attention::max_tokens; });
    if (!is_within)
      throw Error(file_.place() + info.name + ": expected axes of at most " +
                  std::to_string(attention::max_tokens) + ", got " + formats::shape_text(info.shape));
    return file_.read(info.name, leading, progress_);
  }

  /// Gives every query's head the keys or values of its group.
  void repeat_groups(const StageSource& source, formats::TensorStage& stage) {
    if (!n_heads_ || !is_band(source.stage) || source.stage == Stage::queries || stage.n_sequences == 0)
      return;
    auto& matrices = stage.given.matrices;
    const std::size_t n = matrices.size() / stage.n_sequences;
    if (n == 0 || n >= *n_heads_ || *n_heads_ % n != 0) return;
    std::vector<attention::SharedMatrix> repeated;
    for (const auto& matrix : matrices)
      for (std::size_t k = 0; k < *n_heads_ / n; ++k) repeated.push_back(matrix);
    matrices = std::move(repeated);
    account_.used.push_back(std::to_string(n) + " heads of " + source.tensors.front() + ", each for " +
                            std::to_string(*n_heads_ / n) + " heads of queries");
  }

  const TensorFile& file_;
  LayerOf layer_;
  const core::Token& progress_;
  Account& account_;
  std::optional<bool> first_line_is_names_;
  std::optional<std::size_t> n_heads_;
};

const TensorInfo& info_of(const TensorFile& file, const StageSource& source) {
  return file.info(source.tensors.empty() ? "" : source.tensors.front());
}

/// A number from 0, or the beginning of a layer's name.
std::size_t chosen_layer(const TensorFile& file, const std::string& chosen, std::size_t n_layers,
                         const std::vector<StageLayer>& named) {
  if (chosen.empty()) return 0;
  if (const auto number = text::parse_whole_number(chosen); number && *number < n_layers) return *number;
  for (std::size_t k = 0; k < named.size(); ++k)
    if (n_layers == named.size() && named[k].name.starts_with(chosen)) return k;
  throw Error(file.place() +
              (n_layers == 1 ? "expected layer 0, the only one"
                             : "expected a layer of 0 … " + std::to_string(n_layers - 1)) +
              ", got \"" + chosen + "\"");
}

/// Says which stage the scores are, with queries and keys beside them as witnesses; gives those that were
/// looked at.
std::vector<std::string> judge_scores_of_file(const TensorFile& file, const std::vector<StageSource>& beside,
                                              std::size_t n_layers, bool is_batch, StageReading& reading,
                                              bool has_scale, std::vector<GivenStage>& given,
                                              std::optional<double>& factor, Account& account) {
  std::vector<std::string> looked_at;
  const auto scores = std::ranges::find(given, Stage::scores, &GivenStage::stage);
  if (scores == given.end()) return looked_at;
  std::optional<formats::TensorStage> queries, keys;
  const auto* q = find_by(beside, Stage::queries, &StageSource::stage);
  const auto* k = find_by(beside, Stage::keys, &StageSource::stage);
  if (q && k) {
    try {
      if (layers_within(file, {*q, *k}, is_batch) != n_layers) throw Error("of other layers");
      queries = reading.read(*q), keys = reading.read(*k);
      for (const StageSource* source : {q, k})
        for (const std::string& name : source->tensors) {
          looked_at.push_back(name);
          account.used.push_back(tensor_words(file.info(name)) + " to tell what the scores are");
        }
    } catch (const core::Stopped&) {
      throw;
    } catch (const Error&) {
      queries.reset(), keys.reset();  // of another shape they are no witnesses
    }
  }
  const ScoresAre are =
      judge_scores(*scores, queries ? &queries->given : nullptr, keys ? &keys->given : nullptr, has_scale);
  scores->stage = are.stage;
  factor = are.factor;
  (are.is_assumed ? account.assumed : account.used).push_back(are.words);
  return looked_at;
}

attention::Model model_of(const TensorFile& file, std::vector<GivenStage> given, std::size_t n_sequences) {
  try {
    return attention::model_of(std::move(given), n_sequences);
  } catch (const Error& error) {
    throw Error(file.place() + error.what());
  }
}

/// Whether a mask beside stages of four axes says that the first of these counts sequences: it has as many
/// rows of keys, or matrices for all heads.
bool masks_count_sequences(const TensorFile& file, const std::vector<StageSource>& stages,
                           const MaskAndScale& beside) {
  std::optional<std::size_t> n;
  std::vector<std::size_t> lengths;
  for (const StageSource& source : stages) {
    const formats::Shape& shape = info_of(file, source).shape;
    if (shape.size() != 4 || shape[0] < 2 || (n && n != shape[0])) return false;
    n = shape[0];
    const bool is_of_scores = attention::info(source.stage).columns == attention::Columns::tokens;
    if (is_of_scores)
      lengths = {shape[3]};
    else if (source.stage == Stage::keys)
      lengths = {shape[1], shape[2]};  // heads come before tokens or after them
  }
  const auto is_length = [&](std::size_t keys) { return std::ranges::find(lengths, keys) != lengths.end(); };
  return std::ranges::any_of(beside.masks, [&](const TensorInfo* mask) {
    const formats::Shape& shape = mask->shape;
    if (shape.empty() || shape[0] != n || !is_length(shape.back())) return false;
    const bool is_of_keys = shape.size() == 2 && !is_length(shape[0]);  // not of queries and keys
    return is_of_keys || (shape.size() == 4 && shape[1] == 1);
  });
}

std::string opened_note(const TensorFile& file, const std::vector<StageSource>& stages,
                        const std::string& layer) {
  std::string note;
  for (const StageSource& source : stages)
    note += (note.empty() ? "Given " : ", ") + std::string(attention::info(source.stage).name) + " " +
            formats::shape_text(info_of(file, source).shape);
  return note + (layer.empty() ? "." : ": " + layer + ".");
}

const StageSource* find(const StageLayer& layer, Stage stage) {
  return find_by(layer.stages, stage, &StageSource::stage);
}

}  // namespace

std::vector<StageLayer> find_stages(const TensorFile& file, const core::Token& progress) {
  using Heads = std::map<std::size_t, std::string>;
  std::map<std::string, std::map<Stage, Heads>, decltype(&text::comes_before)> layers(text::comes_before);
  for (const TensorInfo& info : file.tensors()) {
    if (!can_be_a_stage(info)) continue;
    const auto said = said_by(info.name);
    if (said) layers[said->layer][said->stage].emplace(said->head.value_or(0), info.name);
  }
  if (layers.empty()) return nameless_weights(file, progress);
  std::vector<StageLayer> result;
  for (const auto& [name, stages] : layers) {
    StageLayer& layer = result.emplace_back(StageLayer{name, {}});
    for (const auto& [stage, heads] : stages) {
      StageSource& source = layer.stages.emplace_back(StageSource{stage, {}});
      for (const auto& [head, tensor] : heads) source.tensors.push_back(tensor);
    }
  }
  return result;
}

std::vector<StageSource> usual_stages(const StageLayer& layer) {
  std::vector<StageSource> usual;
  for (const Stage stage : {Stage::weights, Stage::masked_scores, Stage::scaled_scores, Stage::scores})
    if (const StageSource* source = find(layer, stage); source && usual.empty()) usual.push_back(*source);
  const StageSource *queries = find(layer, Stage::queries), *keys = find(layer, Stage::keys);
  if (usual.empty() && queries && keys) usual = {*queries, *keys};
  if (usual.empty()) return {};
  if (const StageSource* values = find(layer, Stage::values)) usual.push_back(*values);
  return usual;
}

bool counts_sequences(const TensorFile& file, const std::vector<StageSource>& stages,
                      const std::string& layer, const Choices& choices) {
  return choices.first_axis_is_batch ||
         (choices.layer.empty() && masks_count_sequences(file, stages, mask_and_scale_in(file, layer)));
}

std::size_t layers_within(const TensorFile& file, const std::vector<StageSource>& stages,
                          bool first_axis_is_batch) {
  std::optional<std::size_t> n_layers;
  for (const StageSource& source : stages) {
    const TensorInfo& info = info_of(file, source);
    const auto& shape = info.shape;
    if (info.dtype == formats::Dtype::text || formats::count_of(shape) == std::uint64_t{0})
      throw Error(file.place() + info.name + ": expected at least one number, got " +
                  formats::shape_text(shape));
    const bool has_layers = shape.size() == 5 || (shape.size() == 4 && shape[0] > 1 && !first_axis_is_batch);
    const std::size_t n = has_layers ? shape[0] : 0;
    if (n_layers && *n_layers != n)
      throw Error(file.place() + info.name + ": expected " + std::to_string(*n_layers) +
                  " layers, as the other stages have, got " + formats::shape_text(shape));
    n_layers = n;
  }
  return n_layers.value_or(0);
}

Account expected_of_stages(const TensorFile& file, const std::vector<StageSource>& stages,
                           const std::string& layer) {
  Account account;
  std::vector<std::string> used;
  for (const StageSource& source : stages)
    used.insert(used.end(), source.tensors.begin(), source.tensors.end());
  const MaskAndScale beside = mask_and_scale_in(file, layer);
  const bool is_masked = find_by(stages, Stage::weights, &StageSource::stage) ||
                         find_by(stages, Stage::masked_scores, &StageSource::stage);
  const bool is_scaled = is_masked || find_by(stages, Stage::scaled_scores, &StageSource::stage);
  std::vector<const TensorInfo*> applied;
  if (!is_masked) applied = beside.masks;
  if (!is_masked && beside.is_causal) applied.push_back(beside.is_causal);
  if (!is_scaled && beside.scale) applied.push_back(beside.scale);
  for (const TensorInfo* info : applied) used.push_back(info->name);
  for (const std::string& name : used)
    if (const TensorInfo* info = file.find(name)) account.used.push_back(tensor_words(*info));
  if (!is_masked && beside.masks.empty() && !beside.is_causal)
    account.assumed.push_back("not causal: every key is seen");
  note_unused(account, file, used, layer);
  return account;
}

Imported import_stages(const TensorFile& file, const std::vector<StageLayer>& found, const Choices& choices,
                       const core::Token& progress) {
  const bool by_name = choices.stages.empty() && found.size() > 1;
  std::vector<StageSource> stages = choices.stages;
  std::size_t index = 0;
  if (stages.empty() && !found.empty()) {
    if (by_name) index = chosen_layer(file, choices.layer, found.size(), found);
    stages = usual_stages(found[index]);
  }
  if (stages.empty())
    throw Error(file.place() + "expected weights, scores, or queries and keys among its tensors");
  const std::string name_of_first = found.empty() ? "" : found[std::min(index, found.size() - 1)].name;
  const bool is_batch = counts_sequences(file, stages, name_of_first, choices);
  const std::size_t n_layers = by_name ? 0 : layers_within(file, stages, is_batch);
  std::optional<std::size_t> layer;
  const bool has_a_named_layer = found.size() == 1 && !found.front().name.empty();
  if (!by_name && n_layers == 0 && !has_a_named_layer && !choices.layer.empty() && choices.given.empty())
    throw Error(file.place() + "expected no layer to be chosen, as there are none in it, got \"" +
                choices.layer + "\"");
  if (!by_name && (n_layers > 0 || has_a_named_layer))
    index = chosen_layer(file, choices.layer, std::max<std::size_t>(1, n_layers), found);
  if (n_layers > 0) layer = index;

  Imported result;
  Account& account = result.account;
  std::vector<std::string> used;
  for (const StageSource& source : stages)
    for (const std::string& name : source.tensors) {
      used.push_back(name);
      account.used.push_back(tensor_words(file.info(name)) + " as " + attention::info(source.stage).name);
    }
  const std::string name = found.empty() ? "" : found[std::min(index, found.size() - 1)].name;
  const MaskAndScale beside = mask_and_scale_in(file, name);
  StageReading reading(file, choices, {layer.value_or(0), n_layers}, progress, account);
  std::vector<GivenStage> given;
  std::size_t n_sequences = 1;
  for (formats::TensorStage& stage : reading.read_all(stages)) {
    n_sequences = stage.n_sequences;
    given.push_back(std::move(stage.given));
  }
  std::optional<double> factor;
  if (choices.stages.empty() && !found.empty())
    for (std::string& seen :
         judge_scores_of_file(file, found[std::min(index, found.size() - 1)].stages, n_layers, is_batch,
                              reading, beside.scale != nullptr, given, factor, account))
      used.push_back(std::move(seen));
  result.model = model_of(file, std::move(given), n_sequences);
  const TensorInfo& first = info_of(file, stages.front());
  if (layer && choices.layer.empty() && first.shape.size() == 4)
    account.assumed.push_back("that the first axis of " + tensor_words(first) +
                              " counts layers, not sequences");
  if (is_batch && !choices.first_axis_is_batch)
    account.used.push_back("the first axis as sequences, of which a mask has as many");
  const std::string n_heads =
      std::to_string(result.model.n_heads) + (result.model.n_heads == 1 ? " head" : " heads");
  if (choices.n_heads)
    account.used.push_back(n_heads + ", as said");
  else if (result.model.n_heads == 1 && result.model.given.find(Stage::queries))
    account.assumed.push_back(n_heads);
  if (factor) result.model.scale = {attention::ScaleRule::factor, *factor};
  if (factor && !beside.scale) account.assumed.push_back(scale_words(result.model));
  for (std::string& name_of_used :
       apply_mask_and_scale(file, beside, {layer.value_or(0), n_layers}, result, progress))
    used.push_back(std::move(name_of_used));
  if (choices.ignored) require_ignored(account, *choices.ignored, file.place());
  if (const std::string wrong = row_sums_note(result.model); !wrong.empty()) result.notes.push_back(wrong);
  note_unused(account, file, used, by_name && !name.empty() ? name : "");
  for (attention::Sequence& sequence : result.model.sequences)
    sequence.tokens = tokens_in(file, sequence.tokens.size(), progress);
  const std::string words = by_name ? "layer " + std::to_string(index) + " of " + std::to_string(found.size())
                            : layer ? "layer " + std::to_string(index) + " of " + std::to_string(n_layers)
                                    : "";
  result.notes.push_back(opened_note(file, stages, words));
  return result;
}

}  // namespace core::importing
