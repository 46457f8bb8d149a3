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
#include "core/files/json.hpp"
#include "core/files/own_descriptor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/model/finite.hpp"
#include "core/model/layer_model.hpp"
#include "core/model/predictions.hpp"
#include "core/model/roles.hpp"
#include "core/model/transformer.hpp"

namespace app {
namespace {

namespace transformer = core::transformer;
using core::formats::json_quoted;
using core::tokenizers::TextToken;
using core::tokenizers::Tokenizer;

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

/// A model, a text and what it takes to run the one on the other.
struct Session {
  explicit Session(const OfWholeModel& command)
      : model(transformer::open_transformer(command.model, free_memory() / 2)),
        tokens(encoded(command)),
        interventions{command.heads_off, {}},
        pool(std::max(1u, std::thread::hardware_concurrency())) {
    for (const TextToken& token : tokens) ids.push_back(token.id);
    const auto& sizes = model.architecture.sizes;
    for (const auto& [layer, head] : command.heads_off)
      if (layer >= sizes.n_layers || head >= sizes.n_heads)
        throw core::Error("--off: expected layers below " + std::to_string(sizes.n_layers) +
                          " and heads below " + std::to_string(sizes.n_heads) + ", got " +
                          std::to_string(layer) + "." + std::to_string(head));
  }

  transformer::Pass run() {
    transformer::Pass pass = [&] {
      try {
        return transformer::run(model, ids, interventions, means);
      } catch (const core::Error& error) {
        throw core::Error(model.path.string() + ": " + error.what());
      }
    }();
    transformer::require_finite(model, pass, progress);
    return pass;
  }

  transformer::Transformer model;
  std::vector<TextToken> tokens;
  std::vector<std::size_t> ids = {};
  transformer::Interventions interventions;
  core::ThreadPool pool;
  core::Token progress = {};
  transformer::Means means{pool, progress};

 private:
  std::vector<TextToken> encoded(const OfWholeModel& command) const {
    try {
      return model.tokenizer->encode(command.text);
    } catch (const core::Error& error) {
      throw core::Error("--text: " + std::string(error.what()));
    }
  }
};

std::string tokens_json(const std::vector<TextToken>& tokens, const Tokenizer* more) {
  return core::text::joined(tokens, ",\n    ", [&](const TextToken& token) {
    std::string json = "{\"id\": " + std::to_string(token.id) + ", \"text\": " + json_quoted(token.text);
    if (more)
      json += ", \"piece\": " + json_quoted(more->piece(token.id)) +
              ", \"bytes\": " + json_quoted(token.is_put_in ? "" : hex_text(more->bytes(token.id))) +
              ", \"special\": " + (token.is_special ? "true" : "false");
    return json + "}";
  });
}

struct Prediction {
  transformer::Place place;
  std::vector<transformer::Guess> guesses;
};

std::string guesses_json(const std::vector<Prediction>& predictions, const Tokenizer& tokenizer,
                         bool masked) {
  std::string json;
  for (const Prediction& prediction : predictions)
    for (const auto& [id, logit, probability] : prediction.guesses) {
      json += (json.empty() ? "" : ",\n    ") + std::string("{\"id\": ") + std::to_string(id) +
              ", \"text\": " + json_quoted(tokenizer.bytes(id)) + ", \"logit\": " + float_text(logit) +
              ", \"probability\": " + float_text(probability);
      if (masked) json += ", \"position\": " + std::to_string(prediction.place.position);
      json += "}";
    }
  return json;
}

}  // namespace

void list_tokens(const ListTokens& command, std::ostream& out) {
  const Session session(command);
  const Tokenizer& tokenizer = *session.model.tokenizer;
  if (command.json) {
    out << "{\"tokens\": [\n    " << tokens_json(session.tokens, &tokenizer) << "]}\n";
    return;
  }
  out << "position\tid\ttoken\tbytes\n";
  for (std::size_t i = 0; i < session.tokens.size(); ++i) {
    const TextToken& token = session.tokens[i];
    const std::string text = token.is_put_in ? tokenizer.piece(token.id) : tokenizer.bytes(token.id);
    out << i << '\t' << token.id << '\t' << json_quoted(text) << '\t'
        << (token.is_put_in ? "put in" : hex_text(text) + (token.is_special ? "\tspecial" : "")) << '\n';
  }
}

void predict(const Predict& command, std::ostream& out) {
  Session session(command);
  const Tokenizer& tokenizer = *session.model.tokenizer;
  if (!session.model.weights->predicts())
    transformer::logits_of(session.model, {}, session.means);  // says so
  const auto places = session.ids.empty() ? std::vector<transformer::Place>()
                                          : transformer::places_to_guess(session.model, session.ids);
  const transformer::Pass pass = session.run();
  std::vector<Prediction> predictions;
  for (const transformer::Place& place : places) {
    const arma::frowvec logits =
        transformer::logits_of(session.model, pass.last.row(place.row), session.means);
    predictions.push_back({place, transformer::best_guesses(logits, command.top, tokenizer.size())});
  }
  if (command.json) {
    out << "{\"tokens\": [\n    " << tokens_json(session.tokens, nullptr) << "],\n  \"next\": [\n    "
        << guesses_json(predictions, tokenizer, !session.model.architecture.causal) << "]}\n";
    return;
  }
  out << "position\ttoken\tprobability\tlogit\n";
  for (const Prediction& prediction : predictions)
    for (const auto& [id, logit, probability] : prediction.guesses)
      out << prediction.place.position << '\t' << json_quoted(tokenizer.bytes(id)) << '\t'
          << float_text(probability) << '\t' << float_text(logit) << '\n';
}

void describe_heads(const DescribeHeads& command, std::ostream& out) {
  Session session(command);
  const transformer::Pass pass = session.run();
  const auto if_any = [](const std::optional<double>& share) { return share ? float_text(*share) : ""; };
  out << "layer,head,previous,first,itself,same_token,induction,entropy_bits\r\n";
  for (std::size_t l = 0; l < pass.layers.size(); ++l)
    for (std::size_t h = 0; h < session.model.architecture.sizes.n_heads; ++h) {
      const auto roles =
          transformer::roles_of(transformer::weights_in(session.model, pass, l, h), session.ids);
      out << l << ',' << h << ',' << float_text(roles.previous) << ',' << float_text(roles.first) << ','
          << float_text(roles.itself) << ',' << if_any(roles.same_token) << ',' << if_any(roles.induction)
          << ',' << float_text(roles.entropy_bits) << "\r\n";
    }
}

void generate(const Generate& command, std::ostream& out) {
  Session session(command);
  const Tokenizer& tokenizer = *session.model.tokenizer;
  core::random::Generator generator(command.seed);
  transformer::Cache cache;
  std::vector<std::size_t> ids = session.ids, made;
  const std::size_t n_context = session.model.architecture.sizes.n_context;
  if (session.ids.size() + command.n_tokens > n_context)
    throw core::Error(session.model.path.string() + ": expected at most " + std::to_string(n_context) +
                      " tokens, as many as the model takes at once, got " +
                      std::to_string(session.ids.size()) + " and " + std::to_string(command.n_tokens) +
                      " more");
  for (std::size_t k = 0; k < command.n_tokens; ++k) {
    const arma::frowvec logits =
        transformer::read_on(session.model, cache, ids, session.interventions, session.means);
    if (!logits.is_finite()) {
      session.ids.insert(session.ids.end(), made.begin(), made.end());
      session.run();  // says where that begins
      transformer::require_finite_scores(session.model, logits, session.progress);
    }
    made.push_back(transformer::chosen(logits, tokenizer.size(), command.choice, generator));
    ids = {made.back()};
  }
  std::string text = command.text;
  for (const std::size_t id : made) text += tokenizer.bytes(id);
  const bool is_terminal = &out == &std::cout && ::isatty(STDOUT_FILENO) == 1;
  out << (is_terminal ? core::text::printable_lines(text) : text) << '\n';
}

core::importing::Imported layer_of_text(const OfWholeModel& command, const std::string& layer) {
  const auto number = layer.empty() ? 0 : core::text::parse_whole_number(layer);
  if (!number) throw core::Error("--layer: expected a whole number, 0 for the first, got \"" + layer + "\"");
  Session session(command);
  transformer::require_layer(session.model, *number);
  const transformer::Pass pass = session.run();
  core::importing::Imported imported;
  imported.model = transformer::layer_model(
      session.model, pass, *number, transformer::token_names(*session.model.tokenizer, session.tokens),
      session.interventions);
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
  const auto report = core::check::check_whole(
      session.model, session.ids, transformer::token_names(*session.model.tokenizer, session.tokens), file,
      {command.tolerance, command.layout, command.by_hand}, session.means, search);
  out << (command.json ? core::check::whole_report_json(report) : core::check::whole_report_text(report));
  return report.agrees();
}

}  // namespace app
