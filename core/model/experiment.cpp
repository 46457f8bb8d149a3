#include "core/model/experiment.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <system_error>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/files/session.hpp"
#include "core/files/session_files.hpp"
#include "core/files/session_parts.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"
#include "core/system/file.hpp"

namespace core::experiment {
namespace {

namespace fs = std::filesystem;
using attention::Linear;
using attention::Model;
using attention::Projections;
using attention::SharedMatrix;
using formats::Json;
using formats::json_quoted;
using transformer::FullModel;

/// Returns a layer without the parts that depend on the text.
Model without_text(Model model) {
  model.sequences.front().tokens.clear();
  model.sequences.front().embeddings = {};
  model.heads_off.clear();
  return model;
}

/// Drops the parts that belong to tokens of a text of another length; returns whether there were any.
bool drop_token_edits(LayerEdit& edit, std::size_t n_tokens) {
  Model& model = edit.model;
  const auto beyond = [n_tokens](std::size_t row, std::size_t column) {
    return row >= n_tokens || column >= n_tokens;
  };
  const std::size_t before = edit.inputs.size() + model.given.cells.size() + model.given.stages.size() +
                             model.mask.cells.size() + model.mask.documents.size() +
                             model.mask.hidden_keys.size() + model.dropout.given.size() +
                             model.additions.score_bias.size();
  std::erase_if(edit.inputs, [&](const auto& cell) { return cell.first.first >= n_tokens; });
  std::erase_if(model.given.cells, [&](const attention::GivenCell& cell) {
    const bool of_pairs = attention::info(cell.place.stage).columns == attention::Columns::tokens;
    return beyond(cell.place.row, of_pairs ? cell.place.column : 0);
  });
  model.given.stages.clear();
  std::erase_if(model.mask.cells,
                [&](const attention::MaskCell& cell) { return beyond(cell.row, cell.column); });
  model.mask.documents.clear();
  model.mask.hidden_keys.clear();
  model.dropout.given.clear();
  model.additions.score_bias.clear();
  const bool is_too_long = model.mask.prefix > n_tokens,
             is_too_short = model.context_length && *model.context_length < n_tokens;
  if (is_too_long) model.mask.prefix = n_tokens;
  if (is_too_short) model.context_length.reset();
  return is_too_long || is_too_short ||
         before != edit.inputs.size() + model.given.cells.size() + model.mask.cells.size();
}

}  // namespace

std::map<IndexPair, double> changed_numbers(const arma::mat& before, const arma::mat& after) {
  std::map<IndexPair, double> changed;
  for (std::size_t j = 0; j < before.n_cols; ++j)
    for (std::size_t i = 0; i < before.n_rows; ++i)
      if (!attention::same_bits(before.at(i, j), after.at(i, j))) changed[{i, j}] = after.at(i, j);
  return changed;
}

std::vector<std::size_t> Experiment::heads_off_in(std::size_t of_layer, std::size_t n_heads) const {
  std::vector<std::size_t> heads;
  for (std::size_t head = 0; head < n_heads; ++head)
    if (heads_off.contains({of_layer, head})) heads.push_back(head);
  return heads;
}

bool Experiment::has_patched_attention(std::size_t of_layer) const {
  return std::ranges::any_of(patches, [&](const transformer::Patch& patch) {
    return patch.layer == of_layer && patch.is_of_attention();
  });
}

Experiment Experiment::unedited() const {
  return first ? Experiment{.text = first->text, .layer = layer}
               : Experiment{.text = text, .made = made, .layer = layer};
}

transformer::TokenAlignment alignment_of(const FullModel& model, const Experiment& experiment) {
  return transformer::align(ids_of(tokens_of(model, experiment.unedited())),
                            ids_of(tokens_of(model, experiment)), experiment.first->aligned);
}

void require_patches(const FullModel& model, const Experiment& experiment) {
  if (experiment.patches.empty()) return;
  if (!experiment.first) throw Error("first prompt: expected one to take patches from, got none");
  const transformer::TokenAlignment rows = alignment_of(model, experiment);
  const std::size_t n = rows.size(), n_first = tokens_of(model, experiment.unedited()).size();
  for (const transformer::Patch& patch : experiment.patches) {
    const auto& sizes = model.description().sizes;
    if (model.description().is_attached && !patch.is_of_attention())
      throw Error(transformer::patch_name(patch) +
                  ": expected a part of attention, as nothing else of an attached model can be patched");
    const std::size_t n_parts = transformer::n_parts(sizes, patch.part);
    if (patch.layer >= sizes.n_layers || patch.index >= n_parts || patch.position.value_or(0) >= n)
      throw Error(fmt::format("{}: expected a layer below {}, a head below {} and a position below {}",
                              transformer::patch_name(patch), sizes.n_layers, n_parts, n));
    if (patch.position && !rows[*patch.position])
      throw Error(transformer::patch_name(patch) +
                  ": expected a position that is aligned with one of the first prompt");
    if (patch.part == transformer::PatchedPart::pattern && !transformer::is_one_by_one(rows, n_first))
      throw Error(transformer::patch_name(patch) + ": expected prompts that are aligned one by one");
    if (experiment.layers.contains(patch.layer) && patch.is_of_attention())
      throw Error(
          fmt::format("{}: expected a layer without edits of its numbers", transformer::patch_name(patch)));
  }
}

std::vector<tokenizers::TextToken> tokens_of(const FullModel& model, const Experiment& experiment) {
  std::vector<tokenizers::TextToken> tokens = model.tokenize(experiment.text);
  for (const std::size_t id : experiment.made) {
    const transformer::VocabularyToken token = model.token(id);
    tokens.push_back({id, token.bytes, token.is_special, false});
  }
  transformer::require_tokens(model.description(), ids_of(tokens));
  return tokens;
}

std::string whole_text(const FullModel& model, const Experiment& experiment) {
  std::string text = experiment.text;
  for (const std::size_t id : experiment.made) text += model.token(id).bytes;
  return text;
}

Model edited(const Model& unedited, const LayerEdit& edit) {
  Model model = edit.model;
  model.sequences.front().tokens = unedited.sequences.front().tokens;
  model.sequences.front().embeddings = unedited.sequences.front().embeddings;
  for (const auto& [place, number] : edit.inputs)
    if (place.first < unedited.n_tokens() && place.second < unedited.d_model())
      model.sequences.front().embeddings.set(place.first, place.second, number);
  model.heads_off = unedited.heads_off;
  std::erase_if(model.heads_off, [&](std::size_t head) { return head >= model.n_heads; });
  return model;
}

void require_compatible_layer(std::size_t layer, const Model& unedited, const Model& after,
                              const std::string& place) {
  const attention::Sequence &then = unedited.sequences.front(), &now = after.sequences.front();
  const bool is_same_text = after.sequences.size() == 1 && then.tokens == now.tokens &&
                            then.embeddings.n_rows() == now.embeddings.n_rows() &&
                            then.embeddings.n_cols() == now.embeddings.n_cols();
  const bool has_other_keys =
      after.has_key_embeddings() || !now.key_tokens.empty() || after.n_keys() != after.n_tokens();
  if (!is_same_text || has_other_keys)
    throw Error(place +
                "A whole model makes what enters its layers, and their keys, of the text: change the text "
                "under PROMPT.");
  if (after.d_output() != unedited.d_output())
    throw Error(fmt::format("{}Layer {} must give {} numbers for each token to the layers behind it, not {}.",
                            place, layer, unedited.d_output(), after.d_output()));
}

std::size_t n_heads_in(const Experiment& experiment, std::size_t layer, const transformer::Sizes& sizes) {
  const auto edit = experiment.layers.find(layer);
  return edit == experiment.layers.end() ? sizes.n_heads : edit->second.model.n_heads;
}

void drop_edit(Experiment& experiment, std::size_t layer, std::size_t n_heads) {
  experiment.layers.erase(layer);
  std::erase_if(experiment.heads_off,
                [&](const IndexPair& off) { return off.first == layer && off.second >= n_heads; });
}

Experiment with_layer(Experiment before, std::size_t layer, const Model& unedited, const Model& after,
                      const std::string& words) {
  require_compatible_layer(layer, unedited, after, "");
  std::erase_if(before.heads_off, [layer](const IndexPair& off) { return off.first == layer; });
  for (const std::size_t head : after.heads_off) before.heads_off.insert({layer, head});
  LayerEdit edit{without_text(after),
                 changed_numbers(unedited.sequences.front().embeddings, after.sequences.front().embeddings),
                 {}};
  if (edit.inputs.empty() && edit.model == without_text(unedited)) {
    drop_edit(before, layer, unedited.n_heads);
    return before;
  }
  LayerEdit& known = before.layers[layer];
  edit.words = known.words;
  const bool is_another = edit.model != known.model || edit.inputs != known.inputs;  // beyond ablation
  const auto subject = [](const std::string& text) { return text.substr(0, text.find(": ")); };
  const auto again = std::ranges::find(edit.words, subject(words), subject);
  if (is_another && again != edit.words.end()) *again = words;
  if (is_another && again == edit.words.end()) edit.words.push_back(words);
  known = std::move(edit);
  return before;
}

std::string discard_stale_edits(Experiment& experiment, std::size_t n_tokens) {
  std::string words;
  for (auto& [layer, edit] : experiment.layers)
    if (drop_token_edits(edit, n_tokens)) words += (words.empty() ? "" : ", ") + std::to_string(layer);
  if (words.empty()) return "";
  return "Edits of tokens of the previous text were discarded in layer " + words + ".";
}

// Session files.

namespace {

constexpr std::size_t sniffed_bytes = 512;  // bytes in which to recognize such a session
constexpr std::size_t hashed_bytes = std::size_t{1} << 20;
constexpr const char* unchanged = "unchanged";

std::string pair_json(const IndexPair& place) {
  return fmt::format("{}, {}", place.first, place.second);
}

std::string cells_json(const std::map<IndexPair, double>& cells) {
  return formats::json_list(cells, [](const auto& cell) {
    return "[" + pair_json(cell.first) + ", " + text::number_text(cell.second) + "]";
  });
}

std::string rows_json(const arma::mat& numbers) {
  return formats::json_list(formats::indices(numbers.n_rows),
                            [&](std::size_t i) { return formats::row_text(numbers, i); });
}

/// Returns the change of a matrix: unchanged, some cells, or all of it.
std::string change_json(const SharedMatrix* unedited, const SharedMatrix& now) {
  if (unedited && *unedited == now) return json_quoted(unchanged);
  const arma::mat& after = now;
  if (!unedited || unedited->n_rows() != after.n_rows || unedited->n_cols() != after.n_cols)
    return rows_json(after);
  const arma::mat& before = *unedited;
  const auto cells = changed_numbers(before, after);
  return cells.size() * 4 > after.n_elem ? rows_json(after) : "{\"cells\": " + cells_json(cells) + "}";
}

std::string linear_json(const Linear* unedited, const Linear& now) {
  const SharedMatrix* bias = unedited && unedited->bias ? &*unedited->bias : nullptr;
  return "{\"weight\": " + change_json(unedited ? &unedited->weight : nullptr, now.weight) +
         ", \"bias\": " + (now.bias ? change_json(bias, *now.bias) : "null") + "}";
}

std::string projections_json(const Projections& unedited, const std::optional<Projections>& now) {
  if (!now) return "null";
  return "{\"query\": " + linear_json(&unedited.query, now->query) +
         ", \"key\": " + linear_json(&unedited.key, now->key) +
         ", \"value\": " + linear_json(&unedited.value, now->value) + ", \"output\": " +
         (now->output ? linear_json(unedited.output ? &*unedited.output : nullptr, *now->output) : "null") +
         "}";
}

/// Returns the rules of an edited layer as a small model of its shape without its numbers.
Model rules_alone(const Model& unedited, const LayerEdit& edit, std::size_t n_tokens, std::size_t d_model) {
  Model model = edit.model;
  auto& sequence = model.sequences.front();
  sequence.tokens = attention::numbered_tokens(n_tokens);
  if (!model.projections) {
    sequence.embeddings = arma::mat(n_tokens, d_model, arma::fill::zeros);
    return model;
  }
  sequence.embeddings = arma::mat(n_tokens, 1, arma::fill::zeros);
  const auto empty = [](std::size_t rows, const Linear& like) {
    return Linear{arma::mat(rows, like.weight.n_cols(), arma::fill::zeros), std::nullopt};
  };
  Projections& p = *model.projections;
  p.query = empty(1, p.query);
  p.key = empty(1, p.key);
  p.value = empty(1, p.value);
  if (p.output) p.output = Linear{arma::mat(p.output->weight.n_rows(), 1, arma::fill::zeros), std::nullopt};
  const bool has_own_norm = model.additions.normalize != unedited.additions.normalize;
  if (!has_own_norm) model.additions.normalize.reset();
  return model;
}

std::map<IndexPair, double> read_cells(const Json& list) {
  std::map<IndexPair, double> cells;
  for (const Json& cell : list.items_or_empty("a list of cells")) {
    const auto parts = cell.items("[row, column, number]", 3);
    cells[{parts[0].whole(0), parts[1].whole(0)}] = parts[2].number();
  }
  return cells;
}

SharedMatrix read_change(const Json& place, const SharedMatrix* unedited) {
  if (place.is_list()) return place.matrix();
  if (!unedited) place.fail("rows of numbers, as the model has none there");
  if (place.is_text() && place.text() == unchanged) return *unedited;
  place.expect_keys({"cells"});
  SharedMatrix changed = *unedited;
  for (const auto& [cell, number] : read_cells(place.required("cells"))) {
    if (cell.first >= changed.n_rows() || cell.second >= changed.n_cols())
      place.fail(fmt::format("cells of a matrix of {} × {}", changed.n_rows(), changed.n_cols()),
                 fmt::format("[{}, {}]", cell.first, cell.second));
    changed.set(cell.first, cell.second, number);
  }
  return changed;
}

Linear read_linear(const Json& place, const Linear* unedited) {
  place.expect_keys({"weight", "bias"});
  Linear linear{read_change(place.required("weight"), unedited ? &unedited->weight : nullptr), std::nullopt};
  if (const Json bias = place.required("bias"); !bias.is_null())
    linear.bias = read_change(bias, unedited && unedited->bias ? &*unedited->bias : nullptr);
  return linear;
}

std::optional<Projections> read_projections(const Json& place, const Projections& unedited) {
  if (place.is_null()) return std::nullopt;
  place.expect_keys({"query", "key", "value", "output"});
  Projections p{read_linear(place.required("query"), &unedited.query),
                read_linear(place.required("key"), &unedited.key),
                read_linear(place.required("value"), &unedited.value), std::nullopt};
  if (const Json output = place.required("output"); !output.is_null())
    p.output = read_linear(output, unedited.output ? &*unedited.output : nullptr);
  return p;
}

/// Returns the first prompt and the patches from it as members of the session.
std::string first_prompt_json(const Experiment& experiment) {
  if (!experiment.first) return "";
  const auto patch_json = [](const transformer::Patch& patch) {
    return fmt::format("{{\"layer\": {}, \"part\": \"{}\", \"index\": {}{}}}", patch.layer,
                       transformer::patched_parts()[static_cast<std::size_t>(patch.part)].name, patch.index,
                       patch.position ? fmt::format(", \"position\": {}", *patch.position) : "");
  };
  return fmt::format(
      ",\n    \"first\": {{\"text\": {}, \"answer\": {}, \"against\": {}{}}},\n    \"patches\": {}",
      json_quoted(experiment.first->text), json_quoted(experiment.first->answer),
      json_quoted(experiment.first->against),
      experiment.first->aligned.empty()
          ? ""
          : ", \"aligned\": " +
                formats::json_list(experiment.first->aligned,
                                   [](const IndexPair& pair) { return "[" + pair_json(pair) + "]"; }),
      formats::json_list(experiment.patches, patch_json));
}

void read_first_prompt(const Json& place, Experiment& experiment) {
  if (const auto first = place.member("first")) {
    first->expect_keys({"text", "answer", "against", "aligned"});
    experiment.first = FirstPrompt{first->required("text").text(), first->required("answer").text(),
                                   first->required("against").text()};
    if (const auto aligned = first->member("aligned"))
      for (const Json& pair : aligned->items_or_empty("a list of pairs of positions")) {
        const auto parts = pair.items("[position in the first prompt, position in the second]", 2);
        experiment.first->aligned.emplace_back(parts[0].whole(0), parts[1].whole(0));
      }
  }
  const auto patches = place.member("patches");
  if (!patches) return;
  for (const Json& patch : patches->items_or_empty("a list of patches")) {
    patch.expect_keys({"layer", "part", "index", "position"});
    const Json name = patch.required("part");
    const auto* part = transformer::find_part(name.text());
    if (!part) name.fail("a part of a layer", formats::quoted_briefly(name.text()));
    const auto position = patch.member("position");
    experiment.patches.insert({patch.required("layer").whole(0), part->part, patch.required("index").whole(0),
                               position ? std::optional<std::size_t>(position->whole(0)) : std::nullopt});
  }
}

/// Returns the edit of a layer as JSON, without unchanged numbers.
std::string edit_json(std::size_t layer, const LayerEdit& edit, const Model& unedited, std::size_t n_tokens,
                      std::size_t d_model) {
  const bool keeps_norm = unedited.additions.normalize == edit.model.additions.normalize;
  return fmt::format(
      "{{\"layer\": {}, \"words\": {},\n     \"inputs\": {},\n     \"projections\": {},\n     \"keeps_norm\": {},\n     \"rules\": {}}}",
      layer, formats::json_list(edit.words, json_quoted), cells_json(edit.inputs),
      projections_json(*unedited.projections, edit.model.projections), keeps_norm ? "true" : "false",
      formats::session_text({rules_alone(unedited, edit, n_tokens, d_model), "", {}}));
}

std::size_t edited_layer(const Json& place, std::size_t n_layers) {
  place.expect_keys({"layer", "words", "inputs", "projections", "keeps_norm", "rules"});
  const Json number = place.required("layer");
  const std::size_t layer = number.whole(0);
  if (layer >= n_layers) number.fail("a layer below " + std::to_string(n_layers), std::to_string(layer));
  return layer;
}

LayerEdit read_edit(const Json& place, const Model& unedited) {
  LayerEdit edit;
  edit.model = formats::parse_session(formats::json_text(place.required("rules")), place.place()).model;
  edit.model.projections = read_projections(place.required("projections"), *unedited.projections);
  if (place.required("keeps_norm").boolean()) edit.model.additions.normalize = unedited.additions.normalize;
  edit.model = without_text(std::move(edit.model));
  edit.inputs = read_cells(place.required("inputs"));
  edit.words = place.required("words").texts("a list of words");
  return edit;
}

}  // namespace

std::string content_hash(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return text::hexadecimal(hash, 16);
}

FileFingerprint fingerprint_of(const fs::path& file) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(file, error);
  if (error) throw Error(file.string() + ": the model's file cannot be read: " + error.message());
  return {bytes, content_hash(system::read_prefix(file, hashed_bytes))};
}

std::string experiment_text(const FullModel& model, const Experiment& experiment, const std::string& view,
                            const fs::path& folder) {
  const FileFingerprint fingerprint = fingerprint_of(model.description().file);
  const std::string made =
      formats::json_list(experiment.made, [](std::size_t id) { return std::to_string(id); });
  const auto head_json = [](const IndexPair& head) { return "[" + pair_json(head) + "]"; };
  const std::string off = formats::json_list(experiment.heads_off, head_json);
  std::string text = "{\n  \"attnscope\": 1,\n  \"whole_model\": {\n    \"model\": " +
                     json_quoted(formats::path_in_session(model.description().path, folder).string()) +
                     ",\n    \"bytes\": " + std::to_string(fingerprint.bytes) +
                     ",\n    \"begin\": " + json_quoted(fingerprint.begin) +
                     ",\n    \"text\": " + json_quoted(experiment.text) + ",\n    \"made\": " + made +
                     ",\n    \"layer\": " + std::to_string(experiment.layer) +
                     ",\n    \"heads_off\": " + off + first_prompt_json(experiment) + ",\n    \"edits\": [";
  const std::size_t n_tokens = experiment.layers.empty() ? 0 : tokens_of(model, experiment).size();
  bool is_first = true;
  for (const auto& [layer, edit] : experiment.layers) {
    text +=
        std::string(is_first ? "\n    " : ",\n    ") +
        edit_json(layer, edit, model.parameters(layer, nullptr), n_tokens, model.description().sizes.d_model);
    formats::check_session_size(text);
    is_first = false;
  }
  text += "]\n  }";
  if (!view.empty()) text += ",\n  \"view\": " + formats::json_text(formats::parse_json(view, "view"));
  return text + "\n}\n";
}

void save_experiment(const fs::path& path, const FullModel& model, const Experiment& experiment,
                     const std::string& view) {
  formats::write_session(path, [&] { return experiment_text(model, experiment, view, path.parent_path()); });
}

bool is_saved_experiment(const fs::path& path) {
  if (path.extension() != ".json" || !system::is_file(path)) return false;
  return is_saved_experiment_text(system::read_prefix(path, sniffed_bytes));
}

bool is_saved_experiment_text(std::string_view text) {
  text = text.substr(0, sniffed_bytes);
  constexpr std::string_view key = "\"whole_model\"";
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + key.size());
    if (next != text.npos && text[next] == ':') return true;  // else it is the text of a token
  }
  return false;
}

SavedExperiment parse_experiment(std::string_view text, const fs::path& file,
                                 UntrustedPaths untrusted_paths) {
  const Json top = formats::parse_json(text, file.string());
  top.expect_keys({"attnscope", "whole_model", "view"});
  formats::require_version(top);
  const Json place = top.required("whole_model");
  place.expect_keys(
      {"model", "bytes", "begin", "text", "made", "layer", "heads_off", "first", "patches", "edits"});
  SavedExperiment saved;
  const Json name = place.required("model");
  if (name.text().find('\0') != std::string::npos) name.fail("the path of a model");
  if (untrusted_paths == UntrustedPaths::refused && !formats::is_within(name.text(), file.parent_path()))
    throw UntrustedPath(name.place() + "the model " + formats::quoted_briefly(name.text()) +
                        formats::link_target_text(name.text(), file.parent_path()) +
                        " does not lie beside the session");
  saved.written_path = name.text();
  saved.model = file.parent_path() / saved.written_path;
  saved.fingerprint = {place.required("bytes").whole(0), place.required("begin").text()};
  saved.experiment.text = place.required("text").text();
  saved.experiment.layer = place.required("layer").whole(0);
  const Json made = place.required("made");
  const auto ids = made.whole_numbers("a list of tokens");
  formats::require_count(made, ids.size(), attention::max_tokens, "tokens");
  saved.experiment.made.assign(ids.begin(), ids.end());
  for (const Json& off : place.required("heads_off").items_or_empty("a list of heads")) {
    const auto parts = off.items("[layer, head]", 2);
    saved.experiment.heads_off.insert({parts[0].whole(0), parts[1].whole(0)});
  }
  read_first_prompt(place, saved.experiment);
  saved.edits = place.required("edits").items_or_empty("a list of edited layers");
  saved.view = formats::read_view(top);
  return saved;
}

SavedExperiment load_experiment(const fs::path& file) {
  return parse_experiment(system::read_file(file, formats::max_session_bytes), file, UntrustedPaths::allowed);
}

void require_same_model(const SavedExperiment& saved, const FullModel& model, const fs::path& session) {
  const fs::path& file = model.description().file;
  const FileFingerprint now = fingerprint_of(file);
  if (now == saved.fingerprint) return;
  if (!formats::is_within(saved.written_path, session.parent_path()))
    throw Error(session.string() + ": whole_model.model: expected the model " +
                formats::quoted_briefly(saved.written_path.string()) +
                " as it was when this was saved, got another");
  throw Error(
      fmt::format("{}: whole_model.model: expected {} of {} bytes as it was when this was saved, got {}",
                  session.string(), file.string(), saved.fingerprint.bytes,
                  now.bytes == saved.fingerprint.bytes ? "one of other contents"
                                                       : "one of " + std::to_string(now.bytes)));
}

Experiment with_saved_edits(const SavedExperiment& saved, const FullModel& model) {
  Experiment experiment = saved.experiment;
  const auto& sizes = model.description().sizes;
  transformer::require_layer(model, experiment.layer);
  const std::size_t n_tokens = tokens_of(model, experiment).size();
  for (const Json& place : saved.edits) {
    const std::size_t layer = edited_layer(place, sizes.n_layers);
    // Whether edits fit does not depend on the inputs of the layer.
    Model unedited = model.parameters(layer, nullptr);
    unedited.sequences.front() = {attention::numbered_tokens(n_tokens),
                                  arma::mat(n_tokens, sizes.d_model, arma::fill::zeros)};
    LayerEdit edit = read_edit(place, unedited);
    const Model now = edited(unedited, edit);
    attention::require(now, place.place());
    require_compatible_layer(layer, unedited, now, place.place());
    experiment.layers[layer] = std::move(edit);
  }
  for (const auto& [layer, head] : experiment.heads_off)
    if (layer >= sizes.n_layers || head >= n_heads_in(experiment, layer, sizes))
      throw Error(
          fmt::format("whole_model.heads_off: expected layers below {} and heads that they have, got {}.{}",
                      sizes.n_layers, layer, head));
  try {
    if (experiment.first) alignment_of(model, experiment);
    require_patches(model, experiment);
  } catch (const Error& error) {
    throw Error(std::string("whole_model.patches: ") + error.what());
  }
  return experiment;
}

}  // namespace core::experiment
