#include "core/model/experiment_file.hpp"

#include <system_error>

#include "core/base/error.hpp"
#include "core/files/beside.hpp"
#include "core/files/file.hpp"
#include "core/files/session.hpp"
#include "core/files/session_limits.hpp"
#include "core/graph/limits.hpp"
#include "core/model/edit_file.hpp"
#include "core/model/layer_model.hpp"

namespace core::experiment {
namespace {

namespace fs = std::filesystem;
using attention::Model;
using formats::Json;
using formats::json_quoted;

constexpr std::size_t looked_at = 512;  // bytes that tell such a session from others

}  // namespace

std::string experiment_text(const transformer::Transformer& model, const Experiment& experiment,
                            const std::string& view, const fs::path& folder) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(model.path, ignored),
                 home = fs::absolute(folder.empty() ? "." : folder, ignored);
  const fs::path relative = whole.lexically_relative(home);
  const bool is_beside = !relative.empty() && *relative.begin() != "..";
  const FileMark mark = mark_of(model.weights->file().path());
  std::vector<std::string> made, off;
  for (const std::size_t id : experiment.made) made.push_back(std::to_string(id));
  for (const auto& [layer, head] : experiment.heads_off)
    off.push_back("[" + std::to_string(layer) + ", " + std::to_string(head) + "]");
  std::string text =
      "{\n  \"attnscope\": 1,\n  \"whole_model\": {\n    \"model\": " +
      json_quoted((is_beside ? relative : whole).string()) +
      ",\n    \"bytes\": " + std::to_string(mark.bytes) + ",\n    \"begin\": " + json_quoted(mark.begin) +
      ",\n    \"text\": " + json_quoted(experiment.text) + ",\n    \"made\": " + json_list(made) +
      ",\n    \"layer\": " + std::to_string(experiment.layer) + ",\n    \"heads_off\": " + json_list(off) +
      ",\n    \"edits\": [";
  const std::size_t n_tokens = experiment.layers.empty() ? 0 : tokens_of(model, experiment).size();
  bool is_first = true;
  for (const auto& [layer, edit] : experiment.layers) {
    text += std::string(is_first ? "\n    " : ",\n    ") +
            edit_json(layer, edit, transformer::layer_without_text(model, layer), n_tokens,
                      model.architecture.sizes.d_model);
    formats::require_readable_session(text);
    is_first = false;
  }
  text += "]\n  }";
  if (!view.empty()) text += ",\n  \"view\": " + formats::json_text(formats::parse_json(view, "view"));
  return text + "\n}\n";
}

void save_experiment(const fs::path& path, const transformer::Transformer& model,
                     const Experiment& experiment, const std::string& view) {
  std::string text;
  try {
    text = experiment_text(model, experiment, view, path.parent_path());
  } catch (const Error& error) {
    throw Error(path.string() + ": cannot be written: " + error.what());
  }
  formats::write_atomically(path, text);
}

bool is_saved_experiment(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() != ".json" || !fs::is_regular_file(path, ignored)) return false;
  return is_saved_experiment_text(formats::read_begin(path, looked_at));
}

bool is_saved_experiment_text(std::string_view text) {
  text = text.substr(0, looked_at);
  constexpr std::string_view key = "\"whole_model\"";
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + key.size());
    if (next != text.npos && text[next] == ':') return true;  // else it is a token of that text
  }
  return false;
}

SavedExperiment parse_experiment(std::string_view text, const fs::path& file, Elsewhere elsewhere) {
  const Json top = formats::parse_json(text, file.string());
  top.expect_keys({"attnscope", "whole_model", "view"});
  const Json version = top.required("attnscope");
  if (version.whole(0) != 1) version.fail("version 1 of the session file");
  const Json place = top.required("whole_model");
  place.expect_keys({"model", "bytes", "begin", "text", "made", "layer", "heads_off", "edits"});
  SavedExperiment saved;
  const Json name = place.required("model");
  if (name.text().find('\0') != std::string::npos) name.fail("the path of a model");
  if (elsewhere == Elsewhere::refused && !formats::lies_beside(name.text(), file.parent_path()))
    throw Outside(name.place() + "the model " + formats::quoted_briefly(name.text()) +
                  formats::leading_words(name.text(), file.parent_path()) +
                  " does not lie beside the session");
  saved.named = name.text();
  saved.model = file.parent_path() / saved.named;
  saved.mark = {place.required("bytes").whole(0), place.required("begin").text()};
  saved.experiment.text = place.required("text").text();
  saved.experiment.layer = place.required("layer").whole(0);
  const Json made = place.required("made");
  const auto ids = made.items_if_any("a list of tokens");
  formats::require_count(made, ids.size(), attention::max_tokens, "tokens");
  for (const Json& id : ids) saved.experiment.made.push_back(id.whole(0));
  for (const Json& off : place.required("heads_off").items_if_any("a list of heads")) {
    const auto parts = off.items("[layer, head]");
    if (parts.size() != 2) off.fail("[layer, head]");
    saved.experiment.heads_off.insert({parts[0].whole(0), parts[1].whole(0)});
  }
  saved.edits = place.required("edits").items_if_any("a list of edited layers");
  if (const auto view = top.member("view")) {
    if (!view->is_object()) view->fail("an object");
    saved.view = formats::json_text(*view);
  }
  return saved;
}

void require_mark(const SavedExperiment& saved, const transformer::Transformer& model,
                  const fs::path& session) {
  const fs::path file = model.weights->file().path();
  const FileMark now = mark_of(file);
  if (now == saved.mark) return;
  if (!formats::lies_beside(saved.named, session.parent_path()))
    throw Error(session.string() + ": whole_model.model: expected the model " +
                formats::quoted_briefly(saved.named.string()) +
                " as it was when this was saved, got another");
  throw Error(
      session.string() + ": whole_model.model: expected " + file.string() + " of " +
      std::to_string(saved.mark.bytes) + " bytes as it was when this was saved, got " +
      (now.bytes == saved.mark.bytes ? "one of other contents" : "one of " + std::to_string(now.bytes)));
}

Experiment with_saved_edits(const SavedExperiment& saved, const transformer::Transformer& model) {
  Experiment experiment = saved.experiment;
  const auto& sizes = model.architecture.sizes;
  transformer::require_layer(model, experiment.layer);
  const std::size_t n_tokens = tokens_of(model, experiment).size();
  for (const Json& place : *saved.edits) {
    const std::size_t layer = edited_layer(place, sizes.n_layers);
    // Whether edits fit does not depend on what enters the layer.
    Model of_pass = transformer::layer_without_text(model, layer);
    of_pass.sequences.front() = {attention::numbered_tokens(n_tokens),
                                 arma::mat(n_tokens, sizes.d_model, arma::fill::zeros)};
    LayerEdit edit = read_edit(place, of_pass);
    const Model now = edited(of_pass, edit);
    attention::require(now, place.place());
    require_goes_on(layer, of_pass, now, place.place());
    experiment.layers[layer] = std::move(edit);
  }
  for (const auto& [layer, head] : experiment.heads_off)
    if (layer >= sizes.n_layers || head >= n_heads_in(experiment, layer, sizes))
      throw Error("whole_model.heads_off: expected layers below " + std::to_string(sizes.n_layers) +
                  " and heads that they have, got " + std::to_string(layer) + "." + std::to_string(head));
  return experiment;
}

}  // namespace core::experiment
