#include "app/cli/batch.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <thread>

#include "app/cli/circuits.hpp"
#include "app/cli/learning.hpp"
#include "app/cli/scan.hpp"
#include "app/session/exporting.hpp"
#include "app/session/memory.hpp"
#include "app/session/opening.hpp"
#include "app/session/picture_source.hpp"
#include "core/base/draw_op.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/check/backward_check.hpp"
#include "core/check/check.hpp"
#include "core/check/whole_check.hpp"
#include "core/files/json.hpp"
#include "core/files/session.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/validation.hpp"
#include "core/model/experiment.hpp"
#include "core/model/lens.hpp"
#include "core/model/transformer.hpp"
#include "core/out/drawing.hpp"
#include "core/out/experiment_program.hpp"
#include "core/out/page.hpp"
#include "core/out/program.hpp"
#include "core/system/file.hpp"
#include "core/system/fonts.hpp"
#include "core/system/model_cache.hpp"
#include "core/system/process.hpp"

namespace app {
namespace {

constexpr int done = 0, failed = 1, usage_error = 2;

// A search that Ctrl+C stops.

constexpr std::chrono::milliseconds tick(20);
constexpr double progress_delay_seconds = 0.4, progress_interval_seconds = 0.2;
constexpr const char* clear_line = "\r\033[K";

std::string progress_words(const core::StopToken& token, double seconds) {
  char text[128];
  std::snprintf(text, sizeof text, "searching for the cause: %llu tried, %.1f s; Ctrl+C stops",
                static_cast<unsigned long long>(token.done()), seconds);
  return text;
}

void watch(const std::stop_token& ended, const core::system::SignalBlocker& blocker, core::StopToken& token,
           std::ostream& err, bool says) {
  const auto begin = Clock::now();
  double next = progress_delay_seconds;
  bool has_said = false;
  while (!ended.stop_requested()) {
    std::this_thread::sleep_for(tick);
    if (blocker.take() == SIGINT) {
      if (!token.should_continue()) core::system::terminate_by_signal(SIGINT);
      token.stop();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (!says || seconds < next) continue;
    err << clear_line << progress_words(token, seconds) << std::flush;
    has_said = true;
    next = seconds + progress_interval_seconds;
  }
  if (has_said) err << clear_line << std::flush;
}

/// While it lives, Ctrl+C stops the work of a token instead of the program; a second Ctrl+C ends the program.
/// Where `err` is standard error on a terminal, a line there shows the progress of the search.
class SearchWatch {
 public:
  /// The token and the stream must outlive it.
  SearchWatch(core::StopToken& token, std::ostream& err)
      : blocker_({SIGINT}), thread_([this, &token, &err](const std::stop_token& ended) {
          const bool is_terminal = &err == &std::cerr && core::system::stderr_is_terminal();
          watch(ended, blocker_, token, err, is_terminal);
        }) {}
  SearchWatch(const SearchWatch&) = delete;
  SearchWatch& operator=(const SearchWatch&) = delete;

 private:
  core::system::SignalBlocker blocker_;
  std::jthread thread_;
};

// Whole models and a text.

namespace transformer = core::transformer;
using core::formats::json_quoted;
using core::tokenizers::TextToken;

/// Returns the shortest decimal that parses back to the same float32.
std::string float_text(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(number)).ptr;
  return {text, end};
}

std::string hex_text(const std::string& bytes) {
  std::string text;
  for (const char c : bytes)
    text += (text.empty() ? "" : " ") + core::text::hexadecimal(static_cast<unsigned char>(c), 2);
  return text;
}

/// A whole model and a text.
struct TextRun {
  explicit TextRun(const FullModelOptions& command)
      : model(open_or_attach(command.model, command.token)), tokens(tokenized(command)) {
    for (const TextToken& token : tokens) ids.push_back(token.id);
    const auto& sizes = model->description().sizes;
    for (const auto& [layer, head] : command.heads_off) {
      if (layer >= sizes.n_layers || head >= sizes.n_heads)
        throw core::Error(fmt::format("--off: expected layers below {} and heads below {}, got {}.{}",
                                      sizes.n_layers, sizes.n_heads, layer, head));
      edits.emplace_back(transformer::AblatedHead{layer, head});
    }
  }

  transformer::PassRef run() {
    try {
      return model->run(ids, edits, context);
    } catch (const core::Error& error) {
      const std::string words = error.what(), place = model->description().path.string();
      throw core::Error(words.starts_with(place) ? words : place + ": " + words);
    }
  }
  std::vector<std::string> names() const { return transformer::token_names(*model, tokens); }

  transformer::ModelRef model;
  std::vector<TextToken> tokens;
  std::vector<std::size_t> ids = {};
  std::vector<transformer::PassEdit> edits = {};
  core::ThreadPool pool;
  core::StopToken progress = {};
  transformer::CallContext context{pool, progress};

 private:
  std::vector<TextToken> tokenized(const FullModelOptions& command) const {
    try {
      return model->tokenize(command.text);
    } catch (const core::Error& error) {
      throw core::Error("--text: " + std::string(error.what()));
    }
  }
};

/// Returns tokens as JSON; with `more`, their pieces and bytes in that model.
std::string tokens_json(const std::vector<TextToken>& tokens, const transformer::FullModel* more) {
  return core::text::joined(tokens, ",\n    ", [&](const TextToken& token) {
    std::string json = fmt::format("{{\"id\": {}, \"text\": {}", token.id, json_quoted(token.text));
    if (more) {
      const auto [piece, bytes, is_special] = more->token(token.id);
      json += ", \"piece\": " + json_quoted(piece) +
              ", \"bytes\": " + json_quoted(token.is_inserted ? "" : hex_text(bytes)) +
              ", \"special\": " + (token.is_special ? "true" : "false");
    }
    return json + "}";
  });
}

struct PositionPrediction {
  transformer::PredictedPosition place;
  std::vector<transformer::TokenScore> tokens;
};

std::string predictions_json(const std::vector<PositionPrediction>& predictions,
                             const transformer::FullModel& model) {
  std::string json;
  for (const PositionPrediction& prediction : predictions)
    for (const auto& [id, logit, probability] : prediction.tokens) {
      json += fmt::format("{}{{\"id\": {}, \"text\": {}, \"logit\": {}, \"probability\": {}",
                          json.empty() ? "" : ",\n    ", id, json_quoted(model.token(id).bytes),
                          float_text(logit), float_text(probability));
      if (!model.description().causal) json += ", \"position\": " + std::to_string(prediction.place.position);
      json += "}";
    }
  return json;
}

/// Returns a layer of a whole model on a text: the input of its attention, and its projections. Without a
/// layer it is the first.
core::importing::ImportResult load_text_layer(const FullModelOptions& command, const std::string& layer) {
  const auto number = layer.empty() ? 0 : core::text::parse_unsigned(layer);
  if (!number) throw core::Error("--layer: expected a whole number, 0 for the first, got \"" + layer + "\"");
  TextRun session(command);
  transformer::require_layer(*session.model, *number);
  const transformer::PassRef pass = session.run();
  std::vector<std::size_t> heads_off;
  for (const auto& [of_layer, head] : command.heads_off)
    if (of_layer == *number) heads_off.push_back(head);
  core::importing::ImportResult imported;
  imported.model = transformer::layer_model(*session.model, *pass, *number, session.names(), heads_off);
  imported.import_report.used = {
      fmt::format("attention of layer {} on {}, whose layers before were computed in float32", *number,
                  core::text::counted(session.ids.size(), "token"))};
  return imported;
}

/// Returns every layer of a whole model on a text.
std::vector<core::attention::Model> load_text_layers(const FullModelOptions& command) {
  TextRun session(command);
  const transformer::PassRef pass = session.run();
  std::vector<core::attention::Model> layers;
  for (std::size_t l = 0; l < session.model->description().sizes.n_layers; ++l)
    layers.push_back(transformer::layer_model(*session.model, *pass, l, session.names(), {}));
  return layers;
}

// The model of a command.

/// Prints one line with the used, unused and assumed parts of a file, and then a line for each note.
void print_import_account(const std::string& name, const core::importing::ImportResult& imported,
                          std::ostream& err) {
  print_error(err, "note: " + name + ": " + core::importing::import_report_text(imported.import_report));
  for (const std::string& note : imported.notes) print_error(err, "note: " + note);
}

/// Reads pipes to the end, as they are read more than once: to detect the format, then for the contents.
void read_pipes_whole(const ModelOptions& command) {
  if (const auto* path = std::get_if<std::filesystem::path>(&command.source))
    core::system::buffer_pipe_to_file(*path);
  if (!command.choices.embeddings.empty()) core::system::buffer_pipe_to_file(command.choices.embeddings);
  for (const auto& given : command.choices.given)
    core::system::buffer_pipe_to_file(core::formats::parse_tensor_address(given.source).file);
}

/// Throws core::Error for options that a session answers itself, such as the number of heads.
void refuse_unused_options(const core::importing::Choices& choices, const std::filesystem::path& path) {
  const core::importing::AttentionSettings& said = choices.settings;
  const char* option = choices.n_heads                      ? "--heads"
                       : said.causal                        ? "--causal"
                       : said.scale                         ? "--scale"
                       : said.rotary                        ? "--rope"
                       : said.window                        ? "--window"
                       : said.n_kv_heads                    ? "--kv-heads"
                       : !said.type_override.empty()        ? "--assume"
                       : !choices.embeddings.empty()        ? "--embeddings"
                       : !choices.embeddings_tensor.empty() ? "--tensor"
                       : choices.ignored                    ? "--ignore"
                                                            : nullptr;
  if (option && core::importing::is_session(path))
    throw core::Error(std::string(option) + ": expected with a checkpoint or tensors, got the session " +
                      path.filename().string());
}

/// Returns the model of a file or a preset; notes about it go to err, a line each.
core::importing::ImportResult load_model(const ModelOptions& command, std::ostream& err) {
  if (const auto* preset = std::get_if<const core::editing::Preset*>(&command.source))
    return {(*preset)->make(), {}, {}, {}};
  const auto& path = std::get<std::filesystem::path>(command.source);
  if (command.text) {
    auto imported = load_text_layer({path, *command.text}, command.choices.layer);
    print_import_account(path.filename().string(), imported, err);
    return imported;
  }
  if (core::experiment::is_saved_experiment(path))
    throw core::Error(
        path.filename().string() +
        ": expected a model, got a session of a whole one, which the window opens; here give the model itself, with "
        "--text and --layer");
  core::importing::Choices choices = command.choices;
  refuse_unused_options(choices, path);
  if (!choices.given.empty() && core::importing::is_session(path))
    choices.layer.clear();                          // it is that of the given tensors
  if (!choices.ignored) choices.ignored.emplace();  // only named features may be ignored
  core::StopToken progress;
  auto imported = core::importing::import_file(path, choices, progress);
  const std::string name = path.filename().string();
  if (!core::importing::is_session(path))
    print_import_account(name, imported, err);
  else if (const std::string words = core::importing::caveats_text(imported.import_report); !words.empty())
    print_error(err, "note: " + name + ": " + words);
  return imported;
}

/// Returns the given tensors as --first-line, --first-column and --decimal-comma say that their tables are
/// written; notes which first lines and columns are assumed to be numbers.
std::vector<core::formats::StageFile> resolve_given_tables(const ModelOptions& command, std::ostream& err) {
  const core::formats::IndexChoice& index = command.choices.index;
  const core::StopToken progress;
  auto given = command.choices.given;
  for (auto& tensor : given) {
    tensor.names = index.names();
    tensor.mark = command.choices.mark;
    if (index.line && index.column) continue;
    const auto file = core::formats::open_tensors(core::formats::parse_tensor_address(tensor.source).file,
                                                  progress, tensor.mark);
    if (!core::formats::find_index(file, progress).any()) continue;
    const auto& name = file.tensors().front().name;
    for (const std::string& words : core::formats::index_assumptions(file, file.read(name), index))
      print_error(err, "note: " + file.path().filename().string() + ": assumed: " + words);
  }
  return given;
}

/// Returns the model that a command is about, with its given stages and injected bugs.
core::importing::ImportResult load_edited_model(const ModelOptions& command, std::ostream& err) {
  read_pipes_whole(command);
  const auto given = resolve_given_tables(command, err);
  core::importing::ImportResult result;
  if (command.source == ModelSource(std::filesystem::path())) {
    result.model =
        core::formats::with_overrides_from_files(std::nullopt, given, command.choices.n_heads.value_or(1));
    result.import_report = core::importing::given_stages_report(result.model, given);
    if (command.choices.settings != core::importing::AttentionSettings())
      core::importing::apply(command.choices.settings, result, "");
    if (const auto wrong = core::importing::row_sums_note(result.model); !wrong.empty())
      result.notes.push_back(wrong);
    print_import_account("given", result, err);
  } else if (result = load_model(command, err); !given.empty()) {
    result.model = core::formats::with_overrides_from_files(result.model, given);
    if (const auto wrong = core::importing::row_sums_note(result.model); !wrong.empty())
      print_error(err, "note: " + wrong);
  }
  for (const core::bugs::Bug* bug : command.mistakes) {
    if (!core::bugs::has_effect(*bug, result.model))
      throw core::Error("--mistake " + std::string(bug->name) + ": cannot be made in this model");
    result.model = injected(*bug, result.model);
  }
  return result;
}

/// Throws core::Error if a model is too large for this machine; nobody can be asked about others here.
void require_memory(const core::attention::Model& model) {
  const MemoryNeed need = memory_need(model, core::system::available_memory());
  if (need.is_too_much()) throw core::Error(need.words());
}

/// Whether there is no layer to choose, as in a session or a preset: --layer is then that of the tensors.
bool has_no_layers(const CheckModel& command) {
  const auto* path = std::get_if<std::filesystem::path>(&command.source);
  return !path || (!path->empty() && core::importing::is_session(*path));
}

core::check::SplitTensors checked_tensors(const CheckModel& command) {
  core::system::buffer_pipe_to_file(command.against);
  auto file = core::formats::open_tensors(command.against, core::StopToken(), command.choices.mark);
  if (const auto names = command.choices.index.names(); names.any())
    file = core::formats::with_index_as_names(file, names, core::StopToken());
  return core::check::split_gradients(file, command.by_hand);
}

core::check::Report check_tensors(const CheckModel& command, const core::attention::Model& model,
                                  const core::check::SplitTensors& tensors, const core::StopToken& token) {
  const std::string& layer = command.choices.layer;
  const core::check::MatchOptions options{.layout = command.layout, .layer = layer};
  std::optional<core::check::Report> of_stages;
  if (tensors.has_stages() || !tensors.has_gradients()) {
    const auto matched = core::check::match(model, tensors.others, tensors.by_hand, options);
    const bool is_of_tensors = has_no_layers(command) && command.choices.given.empty();
    if (matched.layers.empty() && is_of_tensors && !layer.empty() && layer != "0")
      throw core::Error(tensors.others.place() + "expected layer 0, the only one, got \"" + layer + "\"");
    of_stages = core::check::check(model, matched, command.tolerance, token);
    of_stages->readings.clear();  // they point into the tensors
    if (!of_stages->agrees || !tensors.has_gradients()) return *std::move(of_stages);
  }
  auto report = core::check::check_backward(model, tensors, options, command.tolerance, token);
  if (of_stages) report.notes.insert(report.notes.begin(), "The stages in the file agree");
  return report;
}

/// Returns the model of queries, keys and values, changed so that the later tensors of the same file follow
/// from them: causal or not, or with the first cause that explains the difference.
core::attention::Model fit_to_later_tensors(const CheckModel& command, core::attention::Model model,
                                            std::ostream& err) {
  namespace check = core::check;
  const auto& path = std::get<std::filesystem::path>(command.source);
  const std::string name = path.filename().string();
  const auto file = core::formats::open_tensors(path, core::StopToken(), command.choices.mark);
  const check::MatchOptions options{.layout = command.layout, .layer = command.choices.layer};
  const auto report_of = [&](const core::attention::Model& of, const core::StopToken& token) {
    return check::check(of, check::match(of, file, {}, options), command.tolerance, token);
  };
  core::StopToken stopped, search;
  stopped.stop();
  if (report_of(model, stopped).agrees) return model;
  core::attention::Model other = model;
  other.mask.causal = !other.mask.causal;
  if (!command.choices.settings.causal && !core::attention::check(other) &&
      report_of(other, stopped).agrees) {
    print_error(err, "note: " + name + ": " + (other.mask.causal ? "causal" : "not causal") +
                         ", as its own later tensors are");
    return other;
  }
  const check::Report report =
      report_of(model, command.choices.settings == core::importing::AttentionSettings() ? search : stopped);
  const std::string differs =
      "note: " + name + ": its " +
      (report.first_difference() ? core::attention::info(report.first_difference()->stage).name : "tensors") +
      " do not follow from its queries, keys and values";
  if (report.explanations.empty() || command.choices.settings != core::importing::AttentionSettings()) {
    print_error(err, differs + "; what follows is compared");
    return model;
  }
  print_error(err, differs + ", but where " +
                       core::text::joined(report.explanations.front().sentences, "; and ") + ": taken so");
  return check::injected(report.explanations.front());
}

/// Returns the number of which gradients are computed, with the numbers of its file. Throws core::Error.
core::formats::GradientRequest complete_target(const core::attention::Model& model,
                                               const GradientOptions& options) {
  core::formats::GradientRequest request = options;
  core::attention::require(model, request.sequence);
  if (!options.expected.empty())
    request.target.expected = core::formats::read_expected_row(options.expected, *request.target.row);
  return request;
}

std::string title_of(const ModelSource& source) {
  if (const auto* preset = std::get_if<const core::editing::Preset*>(&source)) return (*preset)->title;
  return std::get<std::filesystem::path>(source).filename().string();
}

// Commands.

void list_tokens(const ListTokens& command, std::ostream& out) {
  const TextRun session(command);
  if (command.json) {
    out << "{\"tokens\": [\n    " << tokens_json(session.tokens, session.model.get()) << "]}\n";
    return;
  }
  out << "position\tid\ttoken\tbytes\n";
  for (std::size_t i = 0; i < session.tokens.size(); ++i) {
    const TextToken& token = session.tokens[i];
    const transformer::VocabularyToken of = session.model->token(token.id);
    const std::string& text = token.is_inserted ? of.piece : of.bytes;
    out << i << '\t' << token.id << '\t' << json_quoted(text) << '\t'
        << (token.is_inserted ? "put in" : hex_text(text) + (token.is_special ? "\tspecial" : "")) << '\n';
  }
}

void predict(const Predict& command, std::ostream& out) {
  TextRun session(command);
  const transformer::Description& model = session.model->description();
  if (!model.no_prediction_reason.empty())
    throw core::Error(model.path.string() + ": " + model.no_prediction_reason);
  const transformer::PredictedPositions places =
      session.ids.empty() ? transformer::PredictedPositions()
                          : transformer::find_predicted_positions(*session.model, session.ids);
  if (!places.no_prediction_reason.empty())
    throw core::Error(model.path.string() + ": " + places.no_prediction_reason);
  const transformer::PassRef pass = session.run();
  std::vector<PositionPrediction> predictions;
  for (const transformer::PredictedPosition& place : places.all)
    predictions.push_back(
        {place, transformer::top_tokens(session.model->next(*pass, place.row, session.context), command.top,
                                        model.n_tokens)});
  if (command.json) {
    out << "{\"tokens\": [\n    " << tokens_json(session.tokens, nullptr) << "],\n  \"next\": [\n    "
        << predictions_json(predictions, *session.model) << "]}\n";
    return;
  }
  out << "position\ttoken\tprobability\tlogit\n";
  for (const PositionPrediction& prediction : predictions)
    for (const auto& [id, logit, probability] : prediction.tokens)
      out << prediction.place.position << '\t' << json_quoted(session.model->token(id).bytes) << '\t'
          << float_text(probability) << '\t' << float_text(logit) << '\n';
}

void list_head_roles(const ListHeadRoles& command, std::ostream& out) {
  TextRun session(command);
  const transformer::PassRef pass = session.run();
  const auto if_any = [](const std::optional<double>& share) { return share ? float_text(*share) : ""; };
  out << "layer,head,previous,first,itself,same_token,induction,entropy_bits\r\n";
  for (std::size_t l = 0; l < session.model->description().sizes.n_layers; ++l) {
    const auto layer =
        session.model->maps(*pass, l, session.ids.size(), session.ids.size() - 1, session.context);
    for (std::size_t h = 0; h < layer.heads.size(); ++h) {
      const auto& roles = layer.heads[h].roles;
      out << l << ',' << h << ',' << float_text(roles.previous) << ',' << float_text(roles.first) << ','
          << float_text(roles.itself) << ',' << if_any(roles.same_token) << ',' << if_any(roles.induction)
          << ',' << float_text(roles.entropy_bits) << "\r\n";
    }
  }
}

void read_lens(const ReadLens& command, std::ostream& out) {
  TextRun session(command);
  const transformer::Description& model = session.model->description();
  if (!model.no_prediction_reason.empty())
    throw core::Error(model.path.string() + ": " + model.no_prediction_reason);
  const auto places = transformer::find_predicted_positions(*session.model, session.ids);
  if (!places.no_prediction_reason.empty())
    throw core::Error(model.path.string() + ": " + places.no_prediction_reason);
  const transformer::Lens lens = transformer::open_lens(*session.model, command.lens, session.progress);
  const transformer::PassRef pass = session.run();
  std::string json;
  if (!command.json) out << "position\tlayer\tpoint\ttoken\tprobability\tlogit\n";
  for (const auto& [position, row] : places.all) {
    const auto [after, between] = transformer::lens_logits(*session.model, *pass, row, lens, session.context);
    for (std::size_t l = 0; l < after.n_rows; ++l)
      for (const auto* logits : {&between, &after}) {
        if (logits->is_empty() || std::isnan((*logits)(l, 0))) continue;
        const char* point = logits == &after ? "after" : "between";
        for (const auto& [id, logit, probability] :
             transformer::top_tokens(logits->row(l), command.top, model.n_tokens)) {
          const std::string text = json_quoted(session.model->token(id).bytes);
          if (command.json)
            json += fmt::format(
                "{}{{\"position\": {}, \"layer\": {}, \"point\": \"{}\", \"id\": {}, \"text\": {}, "
                "\"probability\": {}, \"logit\": {}}}",
                json.empty() ? "" : ",\n  ", position, l, point, id, text, float_text(probability),
                float_text(logit));
          else
            out << position << '\t' << l << '\t' << point << '\t' << text << '\t' << float_text(probability)
                << '\t' << float_text(logit) << '\n';
        }
      }
  }
  if (command.json) out << "[" << json << "]\n";
}

void generate(const Generate& command, std::ostream& out) {
  TextRun session(command);
  core::random::Generator generator(command.seed);
  std::string text = command.text;
  for (const std::size_t id : session.model->generate(session.ids, session.edits, command.n_tokens,
                                                      command.sampling, generator, session.context))
    text += session.model->token(id).bytes;
  const bool is_terminal = &out == &std::cout && core::system::stdout_is_terminal();
  out << (is_terminal ? core::text::printable_lines(text) : text) << '\n';
}

/// Returns the model of a session as a Transformer, which can be checked step by step.
const transformer::Transformer& require_local_model(const TextRun& session) {
  if (const auto* own = dynamic_cast<const transformer::Transformer*>(session.model.get())) return *own;
  throw core::Error(session.model->description().path.string() +
                    ": expected a model in a file or a folder, got an attached one");
}

/// Checks tensors of all layers against a whole model; command.text must be set. Returns whether they agree.
bool check_full_model(const CheckModel& command, std::ostream& out, std::ostream& err) {
  core::system::buffer_pipe_to_file(command.against);
  TextRun session({std::get<std::filesystem::path>(command.source), *command.text});
  const auto file = core::formats::open_tensors(command.against, core::StopToken(), command.choices.mark);
  for (const std::string& note : file.notes()) print_error(err, "note: " + note);
  core::StopToken search;
  const SearchWatch watch(search, err);
  const auto report =
      core::check::check_whole(require_local_model(session), session.ids, session.names(), file,
                               {command.tolerance, command.layout, command.by_hand}, session.context, search);
  out << (command.json ? core::check::whole_report_json(report) : core::check::whole_report_text(report));
  return report.agrees();
}

/// Returns the program of a whole model's experiment, if a command is about one: a session of it, or a text
/// without a layer.
std::optional<std::string> experiment_program(const WriteProgram& command) {
  const auto* path = std::get_if<std::filesystem::path>(&command.source);
  if (!path || !command.choices.given.empty() || command.has_gradient) return std::nullopt;
  const core::formats::ExperimentProgramOptions options{command.library, title_of(command.source)};
  if (core::experiment::is_saved_experiment(*path)) {
    const core::experiment::SavedExperiment saved =
        core::experiment::parse_experiment(core::system::read_file(*path, core::formats::max_session_bytes),
                                           *path, command.choices.untrusted_paths);
    const auto model = transformer::open_transformer(saved.model, core::system::available_memory() / 2);
    core::experiment::require_same_model(saved, *model, *path);
    auto experiment = core::experiment::with_saved_edits(saved, *model);
    experiment.heads_off.insert(command.heads_off.begin(), command.heads_off.end());
    return core::formats::experiment_program_text(*model, experiment, options);
  }
  if (!command.text || !command.choices.layer.empty()) {
    if (command.heads_off.empty() && command.library == core::formats::HookLibrary::transformers)
      return std::nullopt;
    throw core::Error("program: --off, --library: expected with a whole model and --text");
  }
  const TextRun run({*path, *command.text, command.token, command.heads_off});
  core::experiment::Experiment experiment{.text = *command.text, .heads_off = command.heads_off};
  return core::formats::experiment_program_text(*run.model, experiment, options);
}

struct Runner {
  std::ostream& out;
  std::ostream& err;

  int operator()(const ListPresets&) const {
    for (const core::editing::Preset& preset : core::editing::presets())
      out << preset.name << '\t' << preset.about << '\n';
    return done;
  }
  int operator()(const ListMistakes&) const {
    for (const core::bugs::Bug* bug : core::bugs::offered_bugs())
      out << bug->name << '\t' << bug->texts.about << '\n';
    return done;
  }
  int operator()(const Export& command) const {
    if (command.is_page) return export_page(command);
    const core::attention::Model model = load_edited_model(command, err).model;
    require_memory(model);
    core::formats::export_to(model, command.out, command.options);
    if (model.kv_heads() < model.n_heads && !command.options.archive)
      err << "keys and values: " << model.n_heads / model.kv_heads()
          << " heads share theirs, so the files of these heads hold the same numbers\n";
    return done;
  }
  int export_page(const Export& command) const {
    std::vector<core::attention::Model> layers;
    if (command.text && command.choices.layer.empty() && command.choices.given.empty())
      layers = load_text_layers({std::get<std::filesystem::path>(command.source), *command.text});
    else
      layers.push_back(load_edited_model(command, err).model);
    for (const auto& layer : layers) require_memory(layer);
    const auto file = core::system::is_folder(command.out) ? command.out / "attention.html" : command.out;
    core::system::write_atomically(file, core::formats::page_text(layers, {title_of(command.source)}));
    return done;
  }
  int operator()(const WriteGradients& command) const {
    const core::attention::Model model = load_edited_model(command, err).model;
    require_memory(model);
    const auto of = complete_target(model, command.of);
    const auto all = core::graph::gradients(core::graph::attention(model), model, of.sequence, of.target);
    core::formats::export_gradients(model, all, command.out, command.options);
    out << (of.target.expected.empty() ? "" : "mean squared error of ") << text_of(of.target) << " = "
        << core::text::number_text(all.value) << '\n';
    return done;
  }
  int operator()(const WriteProgram& command) const {
    if (const auto text = experiment_program(command)) return write_program(command, *text);
    const core::attention::Model model = load_edited_model(command, err).model;
    std::optional<core::formats::GradientRequest> of;
    if (command.has_gradient) of = complete_target(model, command.gradient);
    const std::string text = core::formats::program_text(model, title_of(command.source),
                                                         core::editing::usual_seeds(), of ? &*of : nullptr);
    return write_program(command, text);
  }
  int write_program(const WriteProgram& command, const std::string& text) const {
    if (command.file)
      core::system::write_atomically(*command.file, text);
    else
      out << text;
    return done;
  }
  int operator()(const WriteSession& command) const {
    auto imported = load_edited_model(command, err);
    core::formats::save_session(command.file, {std::move(imported.model), std::move(imported.view),
                                               core::importing::not_supported_words(imported.import_report),
                                               imported.import_report.assumed});
    return done;
  }
  int operator()(const CheckModel& command) const {
    for (const std::string& note : command.renamed) print_error(err, "note: " + note);
    namespace check = core::check;
    if (command.text && command.choices.layer.empty())
      return check_full_model(command, out, err) ? done : failed;
    ModelOptions of_model = command;
    if (has_no_layers(command)) of_model.choices.layer.clear();
    of_model.choices.index = {};  // it is for the checked tensors
    of_model.choices.computes_stages = command.computes_source;
    core::attention::Model model = load_edited_model(of_model, err).model;
    if (command.computes_source) model = fit_to_later_tensors(command, std::move(model), err);
    const check::SplitTensors tensors = checked_tensors(command);
    core::StopToken token;
    const check::Report report = [&] {
      const SearchWatch watch(token, err);
      return check_tensors(command, model, tensors, token);
    }();
    out << (command.json ? check::report_json(report) : check::report_text(report));
    if (!command.fixed.empty()) {
      if (report.explanations.empty() || report.is_of_gradients())
        throw core::Error("--apply-fix: no cause was found that could be applied");
      core::formats::save_session(command.fixed, {check::injected(report.explanations.front()), {}, {}});
    }
    return report.agrees ? done : failed;
  }
  int operator()(const DrawFigure& command) const {
    const core::attention::Model model = load_edited_model(command, err).model;
    require_memory(model);
    const core::attention::Trace trace = core::attention::attend(model, command.options.sequence);
    core::figures::FigureOptions options = command.options;
    if (command.has_gradient) {
      core::graph::Target of = command.gradient.target;
      if (core::attention::info(of.stage).per_head) of.head = options.head.value_or(0);
      options.gradient =
          core::graph::gradients(core::graph::attention(model), model, options.sequence, of).stages;
    }
    const auto figure = colored_figure(model, trace, options, command.colors);
    core::system::write_atomically(command.file, figure_bytes(command.form, figure, command.scale));
    if (command.form != ExportFormat::svg)  // a viewer of SVG has its own fonts
      if (const auto missing = core::figures::missing_characters(figure); !missing.empty())
        print_error(err, "note: " + core::fonts::missing_characters_message(missing));
    return done;
  }
  int operator()(const DrawRandom& command) const {
    core::random::write_samples(command.seed, command.ops, out);
    return done;
  }
  int operator()(const ListTokens& command) const { return (list_tokens(command, out), done); }
  int operator()(const Predict& command) const { return (predict(command, out), done); }
  int operator()(const ListHeadRoles& command) const { return (list_head_roles(command, out), done); }
  int operator()(const ReadLens& command) const { return (read_lens(command, out), done); }
  int operator()(const Generate& command) const { return (generate(command, out), done); }
  int operator()(const ExplainScore& command) const { return (explain_score(command, out), done); }
  int operator()(const PatchPrompts& command) const { return (patch_prompts(command, out), done); }
  int operator()(const ListComposition& command) const { return (list_composition(command, out), done); }
  int operator()(const ScanTexts& command) const { return (scan_texts(command, out, err), done); }
  int operator()(const Learn& command) const { return learn(command, out, err) ? done : failed; }
  int operator()(const ShowText& command) const {
    out << command.text;
    return done;
  }
  int operator()(const UsageError& command) const {
    print_error(err, command.message);
    return usage_error;
  }
  int operator()(const OpenWindow&) const { throw core::Error("a window cannot be opened here"); }
};

/// Returns the command with the folders of models in Hugging Face's cache in place of their names.
CommandLine with_resolved_names(CommandLine command) {
  std::visit(
      [](auto& of) {
        if constexpr (std::is_base_of_v<ModelOptions, std::remove_reference_t<decltype(of)>>)
          if (auto* path = std::get_if<std::filesystem::path>(&of.source))
            *path = core::system::resolve_model_name(*path);
        if constexpr (requires {
                        { of.model } -> std::same_as<std::filesystem::path&>;
                      })
          if (!of.model.empty()) of.model = core::system::resolve_model_name(of.model);
        if constexpr (std::is_same_v<CheckModel&, decltype(of)>)
          of.against = core::system::resolve_model_name(of.against);
      },
      command);
  return command;
}

}  // namespace

int run_batch(const CommandLine& arguments, std::ostream& out, std::ostream& err) {
  try {
    const int status = std::visit(Runner{out, err}, with_resolved_names(arguments));
    if (!out.flush()) throw core::Error("standard output: cannot be written");
    return status;
  } catch (const std::bad_alloc&) {
    print_error(err, "not enough memory");
  } catch (const std::exception& error) {
    print_error(err, error.what());
  }
  return failed;
}

void print_error(std::ostream& err, std::string_view message) {
  std::string line(message);
  std::ranges::replace_if(
      line, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
  err << "attnscope: " << core::text::printable(line) << std::endl;
}

}  // namespace app
