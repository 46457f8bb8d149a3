#include "core/importing/import.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/files/read_layer.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/validation.hpp"
#include "core/importing/import_stages.hpp"
#include "core/system/file.hpp"

namespace core::importing {
namespace {

using formats::Tensor;
using formats::TensorFile;
using formats::TensorInfo;
namespace checkpoints = formats::checkpoints;
using checkpoints::Checkpoint;
using checkpoints::Layer;
using checkpoints::LayerRules;

constexpr std::size_t max_listed = 6;
constexpr double rounding_of_a_sum = 0.005;  // of float16, and of numbers printed to four digits

constexpr std::array names_of_embeddings{"embeddings", "x",    "inputs", "input",        "hidden_states",
                                         "embedding",  "ln_1", "embed",  "inputs_embeds"};

bool can_be_embeddings(const TensorInfo& info) {
  return info.dtype != formats::Dtype::text && (info.shape.size() == 2 || info.shape.size() == 3);
}

void add_part(std::string& text, const char* what, const std::string& words) {
  if (!words.empty()) text += (text.empty() ? "" : "; ") + std::string(what) + ": " + words;
}

/// Returns a few items by name, and the number of the others.
std::string listed(const std::vector<std::string>& items) {
  if (items.size() <= max_listed) return text::joined(items, ", ");
  const std::vector<std::string> first(items.begin(), items.begin() + max_listed);
  return fmt::format("{} and {} more", text::joined(first, ", "), items.size() - max_listed);
}

std::string parts_text(const ImportReport& import_report, const std::string& used, const std::string& none) {
  std::string text;
  add_part(text, "used", used);
  add_part(text, "not computed", text::joined(import_report.not_supported, ", ", &UnsupportedFeature::words));
  add_part(text, "assumed", import_report.assumed.empty() ? none : text::joined(import_report.assumed, ", "));
  add_part(text, "not used", import_report.not_used.empty() ? none : listed(import_report.not_used));
  return text;
}

}  // namespace

std::string caveats_text(const ImportReport& import_report) {
  return parts_text(import_report, "", "");
}

std::string import_report_text(const ImportReport& import_report) {
  return parts_text(import_report, text::joined(import_report.used, ", "), "nothing");
}

std::vector<std::string> not_supported_words(const ImportReport& import_report) {
  std::vector<std::string> words;
  for (const UnsupportedFeature& feature : import_report.not_supported) words.push_back(feature.words);
  return words;
}

std::string tensor_words(const formats::TensorInfo& info) {
  return info.name + " " + formats::shape_text(info.shape);
}

void note_unused(ImportReport& import_report, const formats::TensorFile& file,
                 const std::vector<std::string>& used, const std::string& prefix) {
  std::vector<std::string> others;
  for (const formats::TensorInfo& info : file.tensors()) {
    const bool is_names = info.dtype == formats::Dtype::text && info.name == "tokens";
    if (is_names || std::ranges::find(used, info.name) != used.end()) continue;
    (info.name.starts_with(prefix) ? import_report.not_used : others).push_back(tensor_words(info));
  }
  if (others.size() == 1) import_report.not_used.push_back(others.front());
  if (others.size() > 1)
    import_report.not_used.push_back(std::to_string(others.size()) + " tensors of other parts");
}

void require_ignored(const ImportReport& import_report, const std::vector<std::string>& ignored,
                     const std::string& place) {
  std::vector<UnsupportedFeature> refused;
  for (const UnsupportedFeature& feature : import_report.not_supported) {
    const auto is_named = [&](const std::string& name) { return name == feature.name || name == "all"; };
    if (std::ranges::none_of(ignored, is_named)) refused.push_back(feature);
  }
  if (refused.empty()) return;
  throw Error(place + "expected attention without " +
              text::joined(refused, ", ", &UnsupportedFeature::words, " and ") +
              ", which cannot be computed yet; --ignore " +
              text::joined(refused, ",", &UnsupportedFeature::name) + " opens it without them");
}

void refuse_layer(const TensorFile& file, const Choices& choices) {
  if (!choices.layer.empty() && choices.given.empty())
    throw Error(file.place() + "expected no layer to be chosen, as there are none in it, got \"" +
                choices.layer + "\"");
}

std::pair<std::string, std::string> owner_and_last(const std::string& name) {
  const std::size_t last = name.find_last_of("./");
  return {last == name.npos ? "" : name.substr(0, last), name.substr(last + 1)};
}

std::string ignorable_names() {
  return text::joined(formats::checkpoints::features(), ", ", &formats::checkpoints::Feature::name);
}

bool can_be_ignored(const std::string& name) {
  return name == "all" || std::ranges::any_of(formats::checkpoints::features(),
                                              [&](const auto& feature) { return name == feature.name; });
}

ImportReport given_stages_report(const attention::Model& model,
                                 const std::vector<formats::StageFile>& given) {
  using attention::Stage;
  ImportReport import_report;
  for (const formats::StageFile& tensor : given)
    import_report.used.push_back(tensor.source + " as " + tensor.stage);
  if (model.given.find(Stage::weights)) return import_report;
  if (!model.given.find(Stage::masked_scores))
    import_report.assumed.push_back("not causal: every key is attended to");
  if (!model.given.find(Stage::masked_scores) && !model.given.find(Stage::scaled_scores))
    import_report.assumed.push_back(scale_words(model));
  return import_report;
}

std::string scale_words(const attention::Model& model) {
  using attention::ScaleRule;
  switch (model.scale.rule) {
    case ScaleRule::inverse_sqrt_d_head:
      return model.d_head() > 0 ? "scale 1/√" + std::to_string(model.d_head()) : "scale 1/√d_head";
    case ScaleRule::inverse_sqrt_d_model:
      return "scale 1/√" + std::to_string(model.d_model());
    case ScaleRule::none:
      return "no scale";
    case ScaleRule::factor:
      break;
  }
  return "scale " + text::number_text(model.scale.factor);
}

std::string row_sums_note(const attention::Model& model) {
  const attention::GivenStage* weights = model.given.find(attention::Stage::weights);
  if (!weights) return "";
  std::size_t n_rows = 0, n_wrong = 0;
  std::string first;
  for (std::size_t m = 0; m < weights->matrices.size(); ++m) {
    const arma::mat& matrix = weights->matrices[m];
    const arma::vec sums = arma::sum(matrix, 1);
    for (std::size_t i = 0; i < sums.n_elem; ++i, ++n_rows) {
      if (std::abs(sums[i] - 1) <= rounding_of_a_sum) continue;
      if (n_wrong++ == 0)
        first = fmt::format("row {} of head {} sums to {}", i, m % model.n_heads,
                            text::number_text(std::round(sums[i] * 1e4) / 1e4));
    }
  }
  if (n_wrong == 0) return "";
  return fmt::format("The weights are no weights of a softmax: {} of {} rows do not sum to 1 ({}).", n_wrong,
                     n_rows, first);
}

void note_index(const formats::TensorFile& file, const formats::Tensor& tensor,
                const formats::IndexChoice& choice, ImportReport& import_report) {
  for (std::string& words : index_assumptions(file, tensor, choice))
    import_report.assumed.push_back(std::move(words));
}

const TensorInfo* guess_embeddings(const TensorFile& file) {
  for (const char* known : names_of_embeddings)
    if (const TensorInfo* info = file.find(known); info && can_be_embeddings(*info)) return info;
  const auto& all = file.tensors();
  const auto first = std::ranges::find_if(all, can_be_embeddings);
  const bool is_only_one =
      first != all.end() && std::find_if(first + 1, all.end(), can_be_embeddings) == all.end();
  return is_only_one ? &*first : nullptr;
}

std::vector<std::string> tokens_in(const TensorFile& file, std::size_t n_tokens,
                                   const core::StopToken& progress) {
  const TensorInfo* texts = file.find("tokens");
  if (texts && texts->dtype == formats::Dtype::text && texts->shape == formats::TensorShape{n_tokens})
    return file.read("tokens", {}, progress).texts;
  return attention::numbered_tokens(n_tokens);
}

namespace {

constexpr std::size_t n_sampled_tokens = 8;
constexpr std::uint32_t embedding_seed = 123;

/// Last parts of tensor names, before the layer norm and after it.
constexpr std::array names_before_the_norm{"embeddings",    "embedding",     "embed",     "emb",
                                           "inputs_embeds", "hidden_states", "resid_pre", "wte"};
constexpr std::array names_after_the_norm{"ln_1", "ln1", "norm1", "norm", "normalized", "input_layernorm"};
[[noreturn]] void fail(const TensorFile& file, const std::string& what) {
  throw Error(file.place() + what);
}

/// Returns names of a few of a file's tensors, to choose from.
std::string some_names(const TensorFile& file) {
  const auto& all = file.tensors();
  const std::span<const TensorInfo> first(all.begin(), std::min<std::size_t>(all.size(), 6));
  return text::joined(first, ", ", &TensorInfo::name) + (all.size() > first.size() ? " …" : "");
}

const TensorInfo& find_embeddings(const TensorFile& file, const std::string& name) {
  if (!name.empty()) return file.info(name);
  if (const TensorInfo* info = guess_embeddings(file)) return *info;
  fail(file, "expected a tensor called embeddings, or one to be chosen among " + some_names(file));
}

bool is_named(const TensorInfo& info, std::span<const char* const> names) {
  return std::ranges::find(names, owner_and_last(info.name).second) != names.end();
}

/// Notes that attention reads the output of the norm, while a tensor may be from before it.
void note_norm(const TensorInfo& info, bool norm_before, ImportReport& import_report) {
  if (!norm_before || is_named(info, names_after_the_norm)) return;
  if (is_named(info, names_before_the_norm))
    import_report.assumed.push_back(
        info.name +
        " enters attention as it is, though it seems to come before the layer norm, "
        "which is not computed");
  else
    import_report.assumed.push_back(info.name + " is the input of attention, after the layer norm");
}

arma::mat sampled_embeddings(std::size_t d_in) {
  const std::vector<float> numbers = random::Generator(embedding_seed).normal(n_sampled_tokens * d_in);
  return arma::conv_to<arma::mat>::from(arma::fmat(numbers.data(), d_in, n_sampled_tokens)).t();
}

/// Returns the sequences in a tensor of a file: [tokens, d_model], or a batch of these; without a name, that
/// of guess_embeddings().
///
/// Tokens are the names of its rows, or the texts of a tensor "tokens" of that length, or numbers.
std::vector<attention::Sequence> embeddings_in(const TensorFile& file, const std::string& name,
                                               const core::StopToken& progress) {
  const TensorInfo& info = find_embeddings(file, name);
  if (!can_be_embeddings(info))
    fail(file, info.name + ": expected embeddings [tokens, columns] or a batch of them, got " +
                   formats::shape_text(info.shape));
  if (formats::count_of(info.shape) == std::uint64_t{0})  // an empty tensor can claim any number of tokens
    fail(file,
         info.name + ": expected at least one number, got the shape " + formats::shape_text(info.shape));
  const std::size_t n_tokens = info.shape[info.shape.size() - 2], n_columns = info.shape.back();
  const std::size_t n_sequences = info.shape.size() == 3 ? info.shape.front() : 1;
  // Checked before numbers are read and names are made.
  attention::require_size({.n_sequences = n_sequences, .n_tokens = n_tokens, .d_model = n_columns},
                          file.place());
  const Tensor tensor = file.read(info.name, {}, progress);
  const auto tokens =
      tensor.row_labels.size() == n_tokens ? tensor.row_labels : tokens_in(file, n_tokens, progress);
  std::vector<attention::Sequence> sequences;
  for (const arma::mat& embeddings : formats::matrices(tensor)) sequences.push_back({tokens, embeddings});
  return sequences;
}

/// Returns the file of the embeddings: a checkpoint itself, or another one, a table of which may have names.
TensorFile embeddings_file(const TensorFile& checkpoint, const Choices& choices,
                           const core::StopToken& progress) {
  if (choices.embeddings.empty()) return checkpoint;
  TensorFile file = formats::open_tensors(choices.embeddings, progress, choices.mark);
  const formats::TableIndex names = choices.index.names();
  return names.any() ? with_index_as_names(file, names, progress) : file;
}

/// Returns the sequences for a checkpoint's attention with d_in columns, chosen or else sampled; adds to the
/// result which they are and what is assumed about them.
std::vector<attention::Sequence> embeddings_for(const TensorFile& checkpoint, const Choices& choices,
                                                std::size_t d_in, bool norm_before, ImportResult& result,
                                                const core::StopToken& progress) {
  if (choices.embeddings.empty() && choices.embeddings_tensor.empty()) {
    result.notes.push_back(fmt::format(
        "No embeddings were given: {} tokens of standard normal numbers (seed 123) stand for them.",
        n_sampled_tokens));
    return {{attention::numbered_tokens(n_sampled_tokens), sampled_embeddings(d_in)}};
  }
  const bool is_other = !choices.embeddings.empty();
  const TensorFile file = embeddings_file(checkpoint, choices, progress);
  auto sequences = embeddings_in(file, choices.embeddings_tensor, progress);
  const std::size_t n_columns = sequences.front().embeddings->n_cols;
  if (n_columns != d_in)
    fail(file,
         fmt::format("expected embeddings of {} columns, as many as the projections have inputs, got {}",
                     d_in, n_columns));
  const TensorInfo& info = find_embeddings(file, choices.embeddings_tensor);
  const std::string from = is_other ? " of " + file.path().filename().string() : "";
  result.import_report.used.push_back(tensor_words(info) + from + " as embeddings");
  note_norm(info, norm_before, result.import_report);
  if (is_other) note_index(file, file.read(info.name, {}, progress), choices.index, result.import_report);
  return sequences;
}

constexpr std::array names_of_sources{"encoder_hidden_states", "encoder_last_hidden_state", "encoder_states",
                                      "key_value_states", "memory"};

/// Reads the cross-attention source from the encoder states next to the embeddings, if there are some. Throws
/// core::Error, "FILE: …", when it does not have d_source columns or the number of sequences differs.
void read_source(const TensorFile& checkpoint, const Choices& choices,
                 const attention::Projections& projections, ImportResult& result,
                 const core::StopToken& progress) {
  const TensorFile file = embeddings_file(checkpoint, choices, progress);
  const auto& all = file.tensors();
  const auto found = std::ranges::find_if(all, [](const TensorInfo& info) {
    return can_be_embeddings(info) && is_named(info, names_of_sources);
  });
  if (found == all.end()) {
    const checkpoints::Feature& feature = checkpoints::feature_named("source");
    result.import_report.not_supported.push_back({feature.name, feature.words});
    if (choices.ignored) require_ignored(result.import_report, *choices.ignored, file.place());
    return;
  }
  auto sources = embeddings_in(file, found->name, progress);
  const std::size_t d_source = projections.key.weight->n_rows;
  auto& sequences = result.model.sequences;
  if (sources.size() != sequences.size() || sources.front().embeddings->n_cols != d_source)
    fail(file, fmt::format("{}: expected {} of {} columns, got {}", found->name,
                           text::counted(sequences.size(), "sequence"), d_source,
                           formats::shape_text(found->shape)));
  for (std::size_t k = 0; k < sequences.size(); ++k) {
    sequences[k].key_tokens = attention::numbered_tokens(sources[k].embeddings->n_rows);
    sequences[k].key_embeddings = sources[k].embeddings;
  }
  std::erase_if(result.import_report.assumed,
                [](const std::string& words) { return words.starts_with("keys and values of"); });
  result.import_report.used.push_back(tensor_words(*found) + " as what keys and values are made of");
}

/// Makes a model of embeddings alone, which are its queries, keys and values.
ImportResult import_embeddings(const TensorFile& file, const Choices& choices,
                               const core::StopToken& progress) {
  const TensorInfo* info =
      choices.embeddings_tensor.empty() ? guess_embeddings(file) : &file.info(choices.embeddings_tensor);
  if (!info)
    fail(file,
         "expected a session, a checkpoint of a known layout, stages of attention (weights, scores, or "
         "queries and keys) or embeddings, and none of the names tells which these are: " +
             some_names(file));
  refuse_layer(file, choices);
  ImportResult result;
  ImportReport& import_report = result.import_report;
  result.model.sequences = embeddings_in(file, info->name, progress);
  result.model.n_heads = choices.n_heads.value_or(1);
  result.notes.push_back(
      "There are no projections of a known layout in the file: queries, keys and values are the embeddings.");
  const Tensor whole = file.read(info->name, {}, progress);
  import_report.used.push_back(tensor_words(*info) + " as embeddings");
  if (!whole.row_labels.empty()) import_report.used.push_back("the first column as tokens");
  if (choices.n_heads) import_report.used.push_back(text::counted(*choices.n_heads, "head") + ", as said");
  if (choices.embeddings_tensor.empty() && !is_named(*info, names_of_embeddings))
    import_report.assumed.push_back("that " + info->name + " is embeddings");
  if (!choices.n_heads) import_report.assumed.push_back("1 head");
  import_report.assumed.push_back("causal");
  attention::require_within_limits(result.model, file.place());
  import_report.assumed.push_back(scale_words(result.model));
  note_index(file, whole, choices.index, import_report);
  note_unused(import_report, file, {info->name}, "");
  return result;
}

const checkpoints::Naming naming_by_hand{"by_hand", "projections named by hand", "", true};

/// Returns a layer with projections named by hand; the rest comes from the known layer that they belong to.
Layer layer_by_hand(const std::vector<Layer>& layers, const checkpoints::ProjectionMapping& mapping) {
  const std::string weight = mapping.query.weights.empty() ? "" : mapping.query.weights.front();
  Layer layer{"", &naming_by_hand, mapping, 0};
  for (const Layer& known : layers)
    if (weight.starts_with(known.prefix)) layer.prefix = known.prefix, layer.naming = known.naming;
  for (auto* source : {&layer.mapping.query, &layer.mapping.key, &layer.mapping.value})
    source->n_parts = 1;  // parts named by hand are plain thirds, whatever the family's fused layout
  return layer;
}

void add_not_supported(ImportReport& import_report, const LayerRules& rules) {
  for (const checkpoints::Feature* feature : rules.not_supported)
    import_report.not_supported.push_back({feature->name, rules.words_of(*feature)});
}

/// Returns "h.0.attn.: c_attn.weight [12, 36], c_attn.bias [36]".
std::string weights_words(const TensorFile& file, const Layer& layer, const std::vector<std::string>& names) {
  const auto words = [&](const std::string& name) {
    return tensor_words(file.info(name)).substr(name.starts_with(layer.prefix) ? layer.prefix.size() : 0);
  };
  return (layer.prefix.empty() ? "" : layer.prefix + ": ") + text::joined(names, ", ", words);
}

/// Returns the file name of a checkpoint's configuration: "config.json", or "params.json" of Meta.
std::string config_name(const Checkpoint& checkpoint) {
  if (!checkpoint.config_json) return "config.json";
  const std::string place = checkpoint.config_json->place();
  return std::filesystem::path(place.substr(0, place.find(": "))).filename().string();
}

std::string heads_words(std::size_t n, const Choices& choices, const LayerRules& rules, const Layer& layer,
                        const std::string& config) {
  const std::string words = text::counted(n, "head");
  const auto& configured = rules.heads.n;
  if (choices.n_heads)
    return words + ", as said" +
           (configured && configured != n ? fmt::format(" ({} says {})", config, *configured) : "");
  return words + (layer.n_heads > 0 ? ", as its names say" : ", as " + config + " says");
}

/// Throws core::Error for a model type that is not known, as such a model may do anything.
void require_known_type(const LayerRules& rules, const std::vector<std::string>& ignored,
                        const std::string& place) {
  if (rules.unknown_type.empty() || std::ranges::find(ignored, "all") != ignored.end()) return;
  std::string like;
  if (rules.family) {
    std::string_view types = rules.family->types;
    types.remove_prefix(1);
    like = ", got one whose tensors are named as those of " + std::string(rules.family->name) +
           "; --assume " + std::string(types.substr(0, types.find(' '))) + " opens it as one of these";
  }
  throw Error(place + "expected a model_type that is known, as models may differ in more than names, not \"" +
              rules.unknown_type + "\"" + like);
}

/// Makes a model from a layer of a checkpoint, or from projections named by hand.
ImportResult import_checkpoint(const Checkpoint& checkpoint, const Choices& choices,
                               const core::StopToken& progress) {
  const TensorFile& file = *checkpoint.file;
  const checkpoints::Config config = checkpoint.config_as(choices.settings.type_override);
  const Layer layer = choices.mapping
                          ? layer_by_hand(checkpoint.layers, *choices.mapping)
                          : checkpoints::choose_layer(
                                checkpoint.layers, choices.layer.empty() ? "0" : choices.layer, file.place());
  LayerRules rules = checkpoints::infer_layer_rules(checkpoint, layer, config,
                                                    choices.ignored.value_or(std::vector<std::string>()));
  if (choices.mapping) rules.mapping = *choices.mapping;
  ImportResult result;
  ImportReport& import_report = result.import_report;
  add_not_supported(import_report, rules);
  if (choices.ignored) require_known_type(rules, *choices.ignored, file.place());
  if (choices.ignored)
    require_ignored(import_report, *choices.ignored,
                    file.place() + layer.prefix + (layer.prefix.empty() ? "" : ": "));

  const auto heads = checkpoints::resolve_head_count(file, layer, rules, choices.n_heads);
  checkpoints::Attention read = checkpoints::read_attention(file, rules.mapping, heads, progress);
  result.notes = std::move(read.notes);
  attention::Model& model = result.model;
  model.n_heads = read.n_heads;
  model.n_kv_heads = read.n_kv_heads;
  const std::size_t d_in = read.projections.query.weight->n_rows;
  const std::size_t d_out = read.projections.query.weight->n_cols, d_head = d_out / read.n_heads;
  // Checked before embeddings are sampled for it.
  attention::require_size({.d_model = d_in, .d_out = d_out, .n_heads = read.n_heads, .projections = true},
                          file.place());
  model.scale = checkpoints::layer_scale(rules, config, layer, d_head);
  model.additions =
      checkpoints::read_additions(file, rules, model.n_heads, model.kv_heads(), d_head, progress);
  model.projections = std::move(read.projections);
  model.mask.causal = rules.causal;
  model.mask.window = rules.window;

  std::vector<std::string> used =
      checkpoints::projection_tensors(rules.mapping, model.projections->output.has_value());
  std::ranges::copy(rules.tensors(), std::back_inserter(used));
  import_report.used.push_back(weights_words(file, layer, used));
  import_report.used.push_back(heads_words(model.n_heads, choices, rules, layer, config_name(checkpoint)));
  if (model.n_kv_heads)
    import_report.used.push_back(std::to_string(*model.n_kv_heads) +
                                 " of keys and values, which the others share");
  import_report.used.insert(import_report.used.end(), rules.known.begin(), rules.known.end());
  import_report.assumed = rules.assumed;
  import_report.not_used = rules.not_used;
  model.sequences = embeddings_for(file, choices, d_in, rules.norm_before, result, progress);
  if (rules.is_cross && !(choices.embeddings.empty() && choices.embeddings_tensor.empty()))
    read_source(file, choices, *model.projections, result, progress);
  const bool is_configured = !config.model_type.empty() || !config.parts.empty();
  (is_configured ? import_report.used : import_report.assumed).push_back(scale_words(model));
  if (!choices.embeddings_tensor.empty() && choices.embeddings.empty())
    used.push_back(choices.embeddings_tensor);
  note_unused(import_report, file, used, layer.prefix);
  attention::require_within_limits(model, file.place());
  return result;
}

}  // namespace

ExpectedLayer expected_of_layer(const Checkpoint& checkpoint, const Layer& layer) {
  const LayerRules rules = checkpoints::infer_layer_rules(checkpoint, layer, checkpoint.config);
  ExpectedLayer expected{{}, rules.heads.n};
  if (layer.n_heads > 0) expected.n_heads = layer.n_heads;
  ImportReport& import_report = expected.import_report;
  add_not_supported(import_report, rules);
  import_report.used = rules.known;
  import_report.assumed = rules.assumed;
  import_report.not_used = rules.not_used;
  return expected;
}

bool is_session(const std::filesystem::path& path) {
  if (formats::is_index_of_tensors(path)) return false;
  const std::string begin = system::read_prefix(path, 4096);
  const std::size_t first = begin.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  // A binary file may begin like this by chance, through its length, but no text has a zero byte.
  if (begin.find('\0') != begin.npos) return false;
  const char character = first == begin.npos ? '\0' : begin[first];
  // A .json file without JSON is a damaged session, not a table.
  return character == '{' || (path.extension() == ".json" && character != '[');
}

void apply(const AttentionSettings& settings, ImportResult& imported, const std::string& place) {
  attention::Model& model = imported.model;
  ImportReport& import_report = imported.import_report;
  const auto record_setting = [&](const std::string& words, const char* instead_of) {
    std::erase_if(import_report.assumed, [&](const std::string& assumed) {
      return assumed.find(instead_of) != assumed.npos && assumed.find("--heads") == assumed.npos;
    });
    import_report.used.push_back(words + ", as said");
  };
  if (settings.causal) {
    model.mask.causal = *settings.causal;
    record_setting(*settings.causal ? "causal" : "not causal", "causal");
  }
  if (settings.scale) {
    model.scale = {attention::ScaleRule::factor, *settings.scale};
    record_setting(scale_words(model), "scale");
  }
  if (settings.rotary) {
    model.additions.positions.rotary = settings.rotary;
    std::erase_if(import_report.not_supported,
                  [](const UnsupportedFeature& each) { return each.name == "rotary"; });
    record_setting("rotary base " + text::number_text(settings.rotary->base), "rotary");
  }
  if (settings.window) {
    model.mask.window.left = *settings.window - 1;
    record_setting("a window of " + text::counted(*settings.window, "key"), "window");
  }
  if (settings.n_kv_heads && model.projections && model.kv_heads() != *settings.n_kv_heads)
    throw Error(fmt::format("{}expected {}, got {}", place, text::counted(*settings.n_kv_heads, "KV head"),
                            model.kv_heads()));
  attention::require(model, place);
}

namespace {

/// Throws core::Error for a checkpoint of unknown layout: its parameters are not queries and keys, whatever
/// their names.
void refuse_checkpoint_as_stages(const Checkpoint& checkpoint, const Choices& choices) {
  const TensorFile& file = *checkpoint.file;
  const std::string stem = file.path().stem().string();
  const bool is_checkpoint = stem.starts_with("model") || stem.starts_with("pytorch_model");
  if (!choices.ignored || !choices.stages.empty() || !is_checkpoint) return;
  if (const std::string& type = checkpoint.config.model_type; !type.empty())
    fail(file, "expected a checkpoint of a known layout, got one of model_type \"" + type + "\"");
}

ImportResult import_without_settings(const Checkpoint& checkpoint, const Choices& choices,
                                     const core::StopToken& progress) {
  const TensorFile& file = *checkpoint.file;
  const auto has_queries = [](const StageLayer& layer) {
    return find_by(layer.stages, attention::Stage::queries, &StageSource::stage) != nullptr;
  };
  const bool is_of_stages =
      choices.computes_stages && std::ranges::any_of(find_stages(file, progress), has_queries);
  const bool is_checkpoint = !checkpoint.layers.empty() && choices.stages.empty() && !is_of_stages;
  if (choices.mapping || is_checkpoint) return import_checkpoint(checkpoint, choices, progress);
  if (!choices.embeddings_tensor.empty()) return import_embeddings(file, choices, progress);
  const auto found = find_stages(file, progress);
  const bool has_stages = !choices.stages.empty() || std::ranges::any_of(found, [](const StageLayer& layer) {
    return !default_stages(layer).empty();
  });
  if (!has_stages) return import_embeddings(file, choices, progress);
  refuse_checkpoint_as_stages(checkpoint, choices);
  ImportResult result = import_stages(file, found, choices, progress);
  attention::require_within_limits(result.model, file.place());
  return result;
}

}  // namespace

ImportResult import_tensors(const Checkpoint& checkpoint, const Choices& choices,
                            const core::StopToken& progress) {
  if (const formats::TableIndex names = choices.index.names(); names.any() && choices.embeddings.empty()) {
    Choices rest = choices;
    if (names.line) rest.index.line = false;
    if (names.column) rest.index.column = false;
    Checkpoint renamed = checkpoint;
    renamed.file = std::make_shared<const TensorFile>(with_index_as_names(*checkpoint.file, names, progress));
    return import_tensors(renamed, rest, progress);
  }
  ImportResult result = import_without_settings(checkpoint, choices, progress);
  if (choices.settings != AttentionSettings()) apply(choices.settings, result, checkpoint.file->place());
  return result;
}

std::vector<std::string> layer_names(const Checkpoint& checkpoint, const Choices& choices,
                                     const core::StopToken& progress) {
  const TensorFile& file = *checkpoint.file;
  std::vector<std::string> names;
  if (choices.mapping) return names;
  if (!checkpoint.layers.empty() && choices.stages.empty()) {
    for (const auto& layer : checkpoint.layers) names.push_back(layer.prefix);
    return names;
  }
  if (!choices.embeddings_tensor.empty()) return names;
  const auto found = choices.stages.empty() ? find_stages(file, progress) : std::vector<StageLayer>();
  if (found.size() > 1) {
    for (const StageLayer& layer : found) names.push_back(layer.name);
    return names;
  }
  const auto stages = found.empty() ? choices.stages : default_stages(found.front());
  const bool is_batch = counts_sequences(file, stages, found.empty() ? "" : found.front().name, choices);
  const std::size_t n = count_layers(file, stages, is_batch);
  for (std::size_t k = 0; k < n; ++k) names.push_back("");
  return names;
}

ImportResult import_session(formats::Session session) {
  ImportResult imported{std::move(session.model), {}, std::move(session.view), {}};
  for (std::string& words : session.left_out)
    imported.import_report.not_supported.push_back({"", std::move(words)});
  imported.import_report.assumed = std::move(session.assumed);
  return imported;
}

ImportResult import_file(const std::filesystem::path& path, const Choices& choices,
                         const core::StopToken& progress) {
  if (is_session(path)) {
    if (choices.has_choices())
      throw Error(path.string() + ": it is a session, of which nothing is to be chosen");
    return import_session(formats::load_session(path, choices.untrusted_paths));
  }
  const Checkpoint checkpoint = checkpoints::read_checkpoint(
      std::make_shared<const TensorFile>(formats::open_tensors(path, progress, choices.mark)));
  ImportResult result = import_tensors(checkpoint, choices, progress);
  const auto& notes = checkpoint.file->notes();
  result.notes.insert(result.notes.begin(), notes.begin(), notes.end());
  return result;
}

}  // namespace core::importing
