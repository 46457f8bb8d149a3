// A page with every head. Numbers are base64 of raw deflate over byte planes, as assets/page/data.js reads
// them; python/attnscope/page.py writes the same.
#include "core/out/page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/packing.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/injected_bugs.hpp"
#include "embedded_page.hpp"

namespace core::formats {
namespace {

using attention::Model;
using attention::Stage;
using attention::StageMatrix;
using attention::Trace;

static_assert(std::endian::native == std::endian::little, "numbers of a page are little-endian");

constexpr std::size_t max_float32_weight_bytes = 400'000;  // bytes of float32; more are stored in 16 bits
constexpr std::size_t max_stage_bytes = 1'500'000;  // bytes of queries, keys and values of several layers
constexpr std::size_t max_float64_numbers = 4000;   // at most this many are stored in 64 bits

/// Packs numbers as byte planes, which deflate compresses better.
template <class Number>
std::string packed(const std::vector<Number>& numbers) {
  std::string planes(numbers.size() * sizeof(Number), '\0');
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    char bytes[sizeof(Number)];
    std::memcpy(bytes, &numbers[i], sizeof(Number));
    for (std::size_t b = 0; b < sizeof(Number); ++b) planes[b * numbers.size() + i] = bytes[b];
  }
  return packing::base64(packing::deflated(planes));
}

template <class Number>
std::vector<Number> narrowed(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// A stage of all layers: [layer][head][row][column].
struct PageStage {
  std::string name;
  std::size_t n_heads = 0, n_rows = 0, n_cols = 0;  // of each layer
  std::vector<double> numbers = {};
};

/// All data of a page, collected layer by layer.
struct Page {
  std::size_t n_layers = 0, n_heads = 0;
  std::vector<std::string> tokens, keys;
  std::vector<arma::mat> visible;  // of each layer
  std::vector<double> scales, caps;
  std::vector<arma::rowvec> sinks;
  bool has_sinks = false;
  bool computes_scores = true, computes_contexts = true;  // whether the page can compute them itself
  std::vector<PageStage> stages;
};

PageStage& find_or_add_stage(Page& page, const std::string& name) {
  const auto found = std::ranges::find(page.stages, name, &PageStage::name);
  return found != page.stages.end() ? *found : page.stages.emplace_back(PageStage{name});
}

void add(Page& page, const std::string& name, std::size_t n_heads, const arma::mat& matrix) {
  PageStage& stage = find_or_add_stage(page, name);
  const bool is_new = stage.numbers.empty();
  if (is_new) stage.n_heads = n_heads, stage.n_rows = matrix.n_rows, stage.n_cols = matrix.n_cols;
  if (stage.n_heads != n_heads || stage.n_rows != matrix.n_rows || stage.n_cols != matrix.n_cols)
    throw Error("a page: expected layers with " + name + " of the same shape");
  for (arma::uword i = 0; i < matrix.n_rows; ++i)
    for (arma::uword j = 0; j < matrix.n_cols; ++j) stage.numbers.push_back(matrix(i, j));
}

/// Returns the queries or keys that are multiplied into scores, after QK norm and RoPE.
const StageMatrix& score_input(const Trace& trace, std::size_t head, std::array<Stage, 3> candidates) {
  for (const Stage stage : candidates)
    if (const StageMatrix& matrix = trace.at(stage, head); matrix.n_rows() > 0) return matrix;
  return trace.at(candidates.back(), head);
}
constexpr std::array query_stages{Stage::rotated_queries, Stage::normed_queries, Stage::queries};
constexpr std::array key_stages{Stage::rotated_keys, Stage::normed_keys, Stage::keys};

/// Returns the bias of the scores after scale and softcap, 0 where both are infinite; empty if unknown.
arma::mat bias_of(const Model& model, const Trace& trace, std::size_t head) {
  if (!model.additions.has_bias()) return {};
  const graph::Graph g = graph::attention(model);
  const Stage stage = input_stage(g, Stage::masked_scores);
  const arma::mat &sum = trace.at(stage, head), &before = trace.at(input_stage(g, stage), head);
  if (arma::size(sum) != arma::size(before)) return {};
  arma::mat bias = sum - before;
  bias.replace(arma::datum::nan, 0);
  return bias;
}

/// Returns whether two matrices agree to about float32 precision, where unmasked and finite.
bool all_close(const arma::mat& a, const arma::mat& b, const arma::mat& visible) {
  if (arma::size(a) != arma::size(b)) return false;
  double largest = 0, max_difference = 0;
  for (arma::uword k = 0; k < a.n_elem; ++k) {
    if (visible[k] == 0 || !std::isfinite(b[k])) continue;
    largest = std::max(largest, std::abs(b[k]));
    max_difference = std::isfinite(a[k]) ? std::max(max_difference, std::abs(a[k] - b[k])) : arma::datum::inf;
  }
  return max_difference <= 1e-5 * largest;
}

/// Returns whether the page would compute the scores of the softmax from queries, keys, scale, softcap (0:
/// none) and bias; injected bugs and given stages may give others.
bool computes_scores(const Trace& trace, std::size_t head, double scale, double cap, const arma::mat& bias) {
  const arma::mat &queries = score_input(trace, head, query_stages),
                  &keys = score_input(trace, head, key_stages);
  if (queries.n_cols != keys.n_cols || queries.empty()) return false;
  arma::mat scores = queries * keys.t() * scale;
  if (cap > 0) scores = attention::softcapped(scores, cap);
  if (!bias.empty()) scores += bias;
  return all_close(scores, trace.at(Stage::masked_scores, head), trace.at(Stage::mask));
}

/// Returns whether the context vectors are the weighted sums that the page would compute.
bool computes_contexts(const Trace& trace, std::size_t head) {
  const arma::mat &weights = trace.at(Stage::dropped_weights, head), &values = trace.at(Stage::values, head),
                  &contexts = trace.at(Stage::contexts, head);
  return weights.n_cols == values.n_rows &&
         all_close(weights * values, contexts, arma::ones(arma::size(contexts)));
}

/// Adds a stage of all heads, if the trace has it.
void add_stage(Page& page, const Trace& trace, Stage stage) {
  const std::size_t n = info(stage).count(trace.n_heads());
  for (std::size_t h = 0; h < n; ++h)
    if (const StageMatrix& numbers = trace.at(stage, h); numbers.n_cols() > 0)
      add(page, info(stage).name, n, numbers);
}

void add_heads(Page& page, const Model& model, const Trace& trace) {
  const std::size_t n_heads = model.n_heads;
  add_stage(page, trace, Stage::weights);
  const double scale = page.scales.back(), cap = page.caps.back();
  bool drops = false, are_consecutive = true;
  for (std::size_t h = 0; h < n_heads; ++h) {
    const arma::mat bias = bias_of(model, trace, h);
    if (!bias.empty()) add(page, "bias", n_heads, bias);
    if (const StageMatrix& queries = score_input(trace, h, query_stages); queries.n_rows() > 0)
      add(page, "queries", n_heads, queries);
    page.computes_scores = page.computes_scores && computes_scores(trace, h, scale, cap, bias);
    page.computes_contexts = page.computes_contexts && computes_contexts(trace, h);
    drops = drops || arma::any(arma::vectorise(*trace.at(Stage::dropout_mask, h)) != 1);
    are_consecutive = are_consecutive && (h == 0 || model.kv_head_of(h - 1) <= model.kv_head_of(h));
  }
  if (drops)
    for (const Stage stage : {Stage::dropout_mask, Stage::dropped_weights}) add_stage(page, trace, stage);
  // The page shares keys and values among consecutive heads; if others share them, each head gets its own.
  const std::size_t n_stored = are_consecutive ? model.kv_heads() : n_heads;
  for (std::size_t k = 0; k < n_stored; ++k) {
    const std::size_t head = k * n_heads / n_stored;
    if (const StageMatrix& keys = score_input(trace, head, key_stages); keys.n_rows() > 0)
      add(page, "keys", n_stored, keys);
    if (const StageMatrix& values = trace.at(Stage::values, head); values.n_rows() > 0)
      add(page, "values", n_stored, values);
  }
}

/// Adds the stages that only a page of one layer has.
void add_single_layer_stages(Page& page, const Model& model, const Trace& trace) {
  if (!page.computes_scores)
    for (const Stage stage : {Stage::scores, Stage::scaled_scores, Stage::masked_scores})
      add_stage(page, trace, stage);
  if (!page.computes_contexts) add_stage(page, trace, Stage::contexts);
  add_stage(page, trace, Stage::embeddings);
  if (model.projections && model.projections->output) add_stage(page, trace, Stage::output);
}

void add_layer(Page& page, const Model& model, std::size_t sequence, bool is_alone) {
  if (sequence >= model.sequences.size())
    throw Error(
        fmt::format("a page: expected a sequence below {}, got {}", model.sequences.size(), sequence));
  const Trace trace = attention::attend(model, sequence);
  const attention::Sequence& of = model.sequences[sequence];
  if (page.n_layers == 0) {
    page.tokens = of.tokens, page.n_heads = model.n_heads;
    if (!of.key_tokens.empty() || trace.at(Stage::mask).n_cols() != of.tokens.size()) page.keys = of.keys();
  }
  if (model.n_heads != page.n_heads || of.tokens.size() != page.tokens.size())
    throw Error("a page: expected layers with the same tokens and numbers of heads");
  ++page.n_layers;
  page.visible.push_back(trace.at(Stage::mask));
  page.scales.push_back(attention::scale_factor(model));
  const attention::Additions used = bugs::effective_model(model).additions;
  page.caps.push_back(used.softcap.value_or(0));
  page.sinks.emplace_back();
  if (used.sink) page.sinks.back() = arma::rowvec(**used.sink), page.has_sinks = true;
  add_heads(page, model, trace);
  if (is_alone) add_single_layer_stages(page, model, trace);
}

/// Removes the inputs of stages that the page would compute differently from the model.
void remove_differing_inputs(Page& page) {
  if (!page.computes_scores) {
    page.scales.clear();
    std::erase_if(page.stages, [](const PageStage& stage) { return stage.name == "bias"; });
  }
  const bool has_contexts = std::ranges::find(page.stages, "contexts", &PageStage::name) != page.stages.end();
  if (!page.computes_contexts && !has_contexts)
    std::erase_if(page.stages, [](const PageStage& stage) { return stage.name == "values"; });
}

/// Keeps only the weights if there are several layers and their other stages are large.
void remove_large_stages(Page& page) {
  std::size_t n = 0;
  for (const PageStage& stage : page.stages)
    if (stage.name == "queries" || stage.name == "keys" || stage.name == "values") n += stage.numbers.size();
  if (page.n_layers == 1 || n * sizeof(float) <= max_stage_bytes) return;
  std::erase_if(page.stages, [](const PageStage& stage) { return stage.name != "weights"; });
  page.scales.clear();
}

// -------------------------------------------------------------------- as JSON

template <class Items, class Words>
std::string list(const Items& items, Words words) {
  return "[" + text::joined(items, ",", words) + "]";
}

/// Returns the mask as a rule if there is one, else as one bit per cell.
std::string mask_json(const arma::mat& visible) {
  const auto n_rows = static_cast<std::int64_t>(visible.n_rows),
             n_cols = static_cast<std::int64_t>(visible.n_cols);
  std::int64_t left = -1, right = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t i = 0; i < n_rows; ++i)
    for (std::int64_t j = 0; j < n_cols; ++j)
      if (visible(static_cast<arma::uword>(i), static_cast<arma::uword>(j)) != 0) {
        const std::int64_t distance = i + n_cols - n_rows - j;
        left = std::max(left, distance), right = std::max(right, -distance);
      }
  for (const auto& [l, r] :
       {std::pair<std::int64_t, std::int64_t>{-1, -1}, {-1, 0}, {left, 0}, {left, right}}) {
    bool agrees = true;
    for (std::int64_t i = 0; agrees && i < n_rows; ++i)
      for (std::int64_t j = 0; agrees && j < n_cols; ++j) {
        const std::int64_t distance = i + n_cols - n_rows - j;
        const bool is_unmasked = (l < 0 || distance <= l) && (r < 0 || -distance <= r);
        agrees = is_unmasked == (visible(static_cast<arma::uword>(i), static_cast<arma::uword>(j)) != 0);
      }
    if (agrees) return fmt::format("{{\"left\":{},\"right\":{}}}", l, r);
  }
  std::vector<std::uint8_t> bits((visible.n_elem + 7) / 8, 0);
  for (arma::uword k = 0; k < visible.n_elem; ++k)
    if (visible(k / visible.n_cols, k % visible.n_cols) != 0)
      bits[k / 8] = static_cast<std::uint8_t>(bits[k / 8] | 1u << k % 8);
  return json_quoted(packed(bits));
}

bool is_weight_stage(const PageStage& stage) {
  return stage.name == "weights" || stage.name == "dropped_weights";
}

/// Returns only the numbers of unmasked cells; masked ones need not be stored.
std::vector<double> unmasked_numbers(const PageStage& stage, const std::vector<arma::mat>& visible) {
  std::vector<double> seen;
  const std::size_t n_cells = stage.n_rows * stage.n_cols;
  for (std::size_t m = 0; m < stage.numbers.size() / n_cells; ++m)
    for (std::size_t k = 0; k < n_cells; ++k)
      if (visible[m / stage.n_heads](k / stage.n_cols, k % stage.n_cols) != 0)
        seen.push_back(stage.numbers[m * n_cells + k]);
  return seen;
}

/// Numbers in 65,535 steps from 0 to the largest number of each row.
struct QuantizedNumbers {
  std::vector<double> steps;
  std::vector<float> most;
  double loss = 0;
};

QuantizedNumbers quantized(const PageStage& stage) {
  QuantizedNumbers result;
  for (std::size_t row = 0; row < stage.numbers.size() / stage.n_cols; ++row) {
    const auto* numbers = stage.numbers.data() + row * stage.n_cols;
    const auto most = static_cast<float>(*std::max_element(numbers, numbers + stage.n_cols));
    const double step = (most > 0 ? static_cast<double>(most) : 1) / 65535;
    result.most.push_back(most);
    for (std::size_t j = 0; j < stage.n_cols; ++j) {
      const double n = std::min(65535.0, std::nearbyint(numbers[j] / step));
      result.steps.push_back(n);
      result.loss = std::max(result.loss, std::abs(n * step - numbers[j]));
    }
  }
  return result;
}

std::string stage_json(PageStage stage, const Page& page) {
  const std::size_t n = stage.numbers.size();
  const std::size_t n_layers = n / std::max<std::size_t>(1, stage.n_heads * stage.n_rows * stage.n_cols);
  const bool masks = std::ranges::any_of(
      page.visible, [](const arma::mat& m) { return arma::any(arma::vectorise(m) == 0); });
  const bool is_unmasked_only = is_weight_stage(stage) && masks;
  const bool is_finite = std::ranges::all_of(stage.numbers, [](double x) { return std::isfinite(x); });
  const bool in_16_bits = is_weight_stage(stage) && is_finite && n * sizeof(float) > max_float32_weight_bytes;
  std::string json =
      fmt::format("{{\"id\":\"{}\",\"shape\":[{},{},{},{}],\"seen\":{}", stage.name, n_layers, stage.n_heads,
                  stage.n_rows, stage.n_cols, is_unmasked_only ? "true" : "false");
  if (in_16_bits) {
    QuantizedNumbers steps = quantized(stage);
    json += ",\"most\":" + json_quoted(packed(steps.most)) + ",\"loss\":" + text::number_text(steps.loss);
    stage.numbers = std::move(steps.steps);
  }
  const std::vector<double> numbers =
      is_unmasked_only ? unmasked_numbers(stage, page.visible) : stage.numbers;
  const std::string data = in_16_bits                 ? packed(narrowed<std::uint16_t>(numbers))
                           : n <= max_float64_numbers ? packed(numbers)
                                                      : packed(narrowed<float>(numbers));
  return json + ",\"store\":\"" +
         (in_16_bits                 ? "q16"
          : n <= max_float64_numbers ? "f64"
                                     : "f32") +
         "\",\"data\":\"" + data + "\"}";
}

std::string data_json(const Page& page, const PageOptions& options) {
  std::vector<std::string> masks;
  std::vector<std::size_t> mask_of;
  for (const arma::mat& visible : page.visible) {
    const std::string json = mask_json(visible);
    const auto found = std::ranges::find(masks, json);
    mask_of.push_back(static_cast<std::size_t>(found - masks.begin()));
    if (found == masks.end()) masks.push_back(json);
  }
  const auto identity = [](const std::string& json) { return json; };
  const auto number = [](double x) { return text::number_text(x); };
  std::string json =
      fmt::format("{{\"layers\":{},\"heads\":{},\"tokens\":{},\"masks\":{},\"mask_of\":{}", page.n_layers,
                  page.n_heads, list(page.tokens, json_quoted), list(masks, identity),
                  list(mask_of, [](std::size_t i) { return std::to_string(i); }));
  if (!page.keys.empty()) json += ",\"keys\":" + list(page.keys, json_quoted);
  if (page.scales.size() == page.n_layers) {
    json += ",\"scale\":" + list(page.scales, number);
    if (std::ranges::any_of(page.caps, [](double cap) { return cap != 0; }))
      json += ",\"softcap\":" + list(page.caps, number);
    if (page.has_sinks)
      json += ",\"sinks\":" + list(page.sinks, [&](const arma::rowvec& sinks) {
                return sinks.empty() ? std::string("null")
                                     : list(std::vector<double>(sinks.begin(), sinks.end()), number);
              });
  }
  json += ",\"stages\":" + list(page.stages, [&](const PageStage& stage) { return stage_json(stage, page); });
  return json + ",\"title\":" + json_quoted(options.title) + ",\"note\":" + json_quoted(options.note) +
         ",\"log\":false,\"select\":null}";
}

// -------------------------------------------------------------------- the template

std::string_view part(std::string_view name) {
  const auto found = std::ranges::find(embedded::page, name, &embedded::File::name);
  if (found == embedded::page.end()) throw Error("a page: its template has no " + std::string(name));
  return found->text;
}

/// Removes comments and indentation of JavaScript or CSS; a comment fills a line or follows two spaces.
std::string minified(std::string_view source) {
  std::string result;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    std::string_view line = source.substr(at, end - at);
    at = end + 1;
    const std::size_t first = line.find_first_not_of(' ');
    if (first == line.npos) continue;
    line.remove_prefix(first);
    if (line.starts_with("//") || line.starts_with("/**") ||
        (line.starts_with("/* ") && line.ends_with("*/")))
      continue;
    if (const std::size_t comment = line.find("  // "); comment != line.npos)
      line = line.substr(0, line.find_last_not_of(' ', comment) + 1);
    result += std::string(line) + '\n';
  }
  return result;
}

std::string escaped(std::string_view words) {
  std::string result;
  for (const char c : words) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

void fill(std::string& page, std::string_view mark, const std::string& content) {
  page.replace(page.find(mark), mark.size(), content);
}

}  // namespace

std::string page_text(const std::vector<Model>& layers, const PageOptions& options) {
  if (layers.empty()) throw Error("a page: expected at least one layer");
  Page data;
  for (const Model& model : layers) add_layer(data, model, options.sequence, layers.size() == 1);
  remove_differing_inputs(data);
  remove_large_stages(data);
  const bool computes = std::ranges::any_of(
      data.stages, [](const PageStage& stage) { return stage.name == "keys" || stage.name == "values"; });
  std::string parts;
  for (const char* name : {"data.js", "computed.js", "state.js", "paint.js", "grid.js", "map.js", "side.js",
                           "words.js", "input.js", "start.js"})
    if (computes || name != std::string_view("computed.js")) parts += std::string(part(name)) + "\n";
  std::string script(part("frame.js"));
  fill(script, "/*PARTS*/", parts);
  std::string json;
  for (const char c : data_json(data, options)) json += c == '<' ? "\\u003c" : std::string(1, c);
  std::string page(part("page.html"));
  fill(page, "<!--TITLE-->", escaped(options.title) + " · attnscope");
  fill(page, "/*STYLE*/", minified(part("page.css")));
  fill(page, "/*SCRIPT*/", minified(script));
  fill(page, "<!--DATA-->", json);
  return page;
}

}  // namespace core::formats
