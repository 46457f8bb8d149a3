#include "app/cli/whole_model.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <thread>

#include "app/cli/batch.hpp"
#include "app/cli/search_watch.hpp"
#include "app/session/memory.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/check/whole_check.hpp"
#include "core/files/file.hpp"
#include "core/files/json.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/model/transformer.hpp"

namespace app {
namespace {

namespace transformer = core::transformer;
using core::formats::json_quoted;
using core::tokenizers::TextToken;

/// The shortest decimal that reads back to the same float32.
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

/// A model and a text.
struct Session {
  explicit Session(const OfWholeModel& command)
      : model(transformer::open_transformer(command.model, free_memory() / 2)),
        tokens(tokenized(command)),
        pool(std::max(1u, std::thread::hardware_concurrency())) {
    for (const TextToken& token : tokens) ids.push_back(token.id);
    const auto& sizes = model->description().sizes;
    for (const auto& [layer, head] : command.heads_off) {
      if (layer >= sizes.n_layers || head >= sizes.n_heads)
        throw core::Error("--off: expected layers below " + std::to_string(sizes.n_layers) +
                          " and heads below " + std::to_string(sizes.n_heads) + ", got " +
                          std::to_string(layer) + "." + std::to_string(head));
      edits.emplace_back(transformer::HeadOff{layer, head});
    }
  }

  transformer::PassRef run() {
    try {
      return model->run(ids, edits, means);
    } catch (const core::Error& error) {
      const std::string words = error.what(), place = model->description().path.string();
      throw core::Error(words.starts_with(place) ? words : place + ": " + words);
    }
  }
  std::vector<std::string> names() const { return transformer::token_names(*model, tokens); }

  std::shared_ptr<const transformer::Transformer> model;
  std::vector<TextToken> tokens;
  std::vector<std::size_t> ids = {};
  std::vector<transformer::Edit> edits = {};
  core::ThreadPool pool;
  core::Token progress = {};
  transformer::Means means{pool, progress};

 private:
  std::vector<TextToken> tokenized(const OfWholeModel& command) const {
    try {
      return model->tokenize(command.text);
    } catch (const core::Error& error) {
      throw core::Error("--text: " + std::string(error.what()));
    }
  }
};

/// more: of a model that tells pieces and bytes, or nullptr.
std::string tokens_json(const std::vector<TextToken>& tokens, const transformer::WholeModel* more) {
  return core::text::joined(tokens, ",\n    ", [&](const TextToken& token) {
    std::string json = "{\"id\": " + std::to_string(token.id) + ", \"text\": " + json_quoted(token.text);
    if (more) {
      const auto [piece, bytes, is_special] = more->token(token.id);
      json += ", \"piece\": " + json_quoted(piece) +
              ", \"bytes\": " + json_quoted(token.is_put_in ? "" : hex_text(bytes)) +
              ", \"special\": " + (token.is_special ? "true" : "false");
    }
    return json + "}";
  });
}

struct Prediction {
  transformer::Place place;
  std::vector<transformer::TokenScore> tokens;
};

std::string predictions_json(const std::vector<Prediction>& predictions,
                             const transformer::WholeModel& model) {
  std::string json;
  for (const Prediction& prediction : predictions)
    for (const auto& [id, logit, probability] : prediction.tokens) {
      json += (json.empty() ? "" : ",\n    ") + std::string("{\"id\": ") + std::to_string(id) +
              ", \"text\": " + json_quoted(model.token(id).bytes) + ", \"logit\": " + float_text(logit) +
              ", \"probability\": " + float_text(probability);
      if (!model.description().causal) json += ", \"position\": " + std::to_string(prediction.place.position);
      json += "}";
    }
  return json;
}

}  // namespace

void list_tokens(const ListTokens& command, std::ostream& out) {
  const Session session(command);
  if (command.json) {
    out << "{\"tokens\": [\n    " << tokens_json(session.tokens, session.model.get()) << "]}\n";
    return;
  }
  out << "position\tid\ttoken\tbytes\n";
  for (std::size_t i = 0; i < session.tokens.size(); ++i) {
    const TextToken& token = session.tokens[i];
    const transformer::VocabularyToken of = session.model->token(token.id);
    const std::string& text = token.is_put_in ? of.piece : of.bytes;
    out << i << '\t' << token.id << '\t' << json_quoted(text) << '\t'
        << (token.is_put_in ? "put in" : hex_text(text) + (token.is_special ? "\tspecial" : "")) << '\n';
  }
}

void predict(const Predict& command, std::ostream& out) {
  Session session(command);
  const transformer::Description& model = session.model->description();
  if (!model.why_no_prediction.empty())
    throw core::Error(model.path.string() + ": " + model.why_no_prediction);
  const transformer::Places places =
      session.ids.empty() ? transformer::Places() : transformer::find_places(*session.model, session.ids);
  if (!places.why_none.empty()) throw core::Error(model.path.string() + ": " + places.why_none);
  const transformer::PassRef pass = session.run();
  std::vector<Prediction> predictions;
  for (const transformer::Place& place : places.all)
    predictions.push_back(
        {place, transformer::top_tokens(session.model->next(*pass, place.row, session.means), command.top,
                                        model.n_tokens)});
  if (command.json) {
    out << "{\"tokens\": [\n    " << tokens_json(session.tokens, nullptr) << "],\n  \"next\": [\n    "
        << predictions_json(predictions, *session.model) << "]}\n";
    return;
  }
  out << "position\ttoken\tprobability\tlogit\n";
  for (const Prediction& prediction : predictions)
    for (const auto& [id, logit, probability] : prediction.tokens)
      out << prediction.place.position << '\t' << json_quoted(session.model->token(id).bytes) << '\t'
          << float_text(probability) << '\t' << float_text(logit) << '\n';
}

void describe_heads(const DescribeHeads& command, std::ostream& out) {
  Session session(command);
  const transformer::PassRef pass = session.run();
  const auto if_any = [](const std::optional<double>& share) { return share ? float_text(*share) : ""; };
  out << "layer,head,previous,first,itself,same_token,induction,entropy_bits\r\n";
  for (std::size_t l = 0; l < session.model->description().sizes.n_layers; ++l) {
    const auto layer =
        session.model->maps(*pass, l, session.ids.size(), session.ids.size() - 1, session.means);
    for (std::size_t h = 0; h < layer.heads.size(); ++h) {
      const auto& roles = layer.heads[h].roles;
      out << l << ',' << h << ',' << float_text(roles.previous) << ',' << float_text(roles.first) << ','
          << float_text(roles.itself) << ',' << if_any(roles.same_token) << ',' << if_any(roles.induction)
          << ',' << float_text(roles.entropy_bits) << "\r\n";
    }
  }
}

void generate(const Generate& command, std::ostream& out) {
  Session session(command);
  core::random::Generator generator(command.seed);
  std::string text = command.text;
  for (const std::size_t id : session.model->generate(session.ids, session.edits, command.n_tokens,
                                                      command.sampling, generator, session.means))
    text += session.model->token(id).bytes;
  const bool is_terminal = &out == &std::cout && ::isatty(STDOUT_FILENO) == 1;
  out << (is_terminal ? core::text::printable_lines(text) : text) << '\n';
}

core::importing::Imported layer_of_text(const OfWholeModel& command, const std::string& layer) {
  const auto number = layer.empty() ? 0 : core::text::parse_whole_number(layer);
  if (!number) throw core::Error("--layer: expected a whole number, 0 for the first, got \"" + layer + "\"");
  Session session(command);
  transformer::require_layer(*session.model, *number);
  const transformer::PassRef pass = session.run();
  std::vector<std::size_t> heads_off;
  for (const auto& [of_layer, head] : command.heads_off)
    if (of_layer == *number) heads_off.push_back(head);
  core::importing::Imported imported;
  imported.model = transformer::layer_model(*session.model, *number, session.model->input(*pass, *number),
                                            session.names(), heads_off);
  imported.account.used = {"attention of layer " + std::to_string(*number) + " on " +
                           core::text::counted(session.ids.size(), "token") +
                           ", whose layers before were computed in float32"};
  return imported;
}

bool check_whole_model(const Check& command, std::ostream& out, std::ostream& err) {
  core::formats::read_pipe_whole(command.against);
  Session session({std::get<std::filesystem::path>(command.source), *command.text});
  const auto file = core::formats::open_tensors(command.against);
  for (const std::string& note : file.notes()) print_error(err, "note: " + note);
  core::Token search;
  const SearchWatch watch(search, err, is_on_terminal(err));
  const auto report =
      core::check::check_whole(*session.model, session.ids, session.names(), file,
                               {command.tolerance, command.layout, command.by_hand}, session.means, search);
  out << (command.json ? core::check::whole_report_json(report) : core::check::whole_report_text(report));
  return report.agrees();
}

}  // namespace app
