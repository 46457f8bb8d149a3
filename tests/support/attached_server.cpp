#include "tests/support/attached_server.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/attend.hpp"

namespace support {
namespace {

using core::attention::Stage;

using core::Error;
using core::attached::Array;
using core::attached::array_of;
using core::attached::ProtocolFrame;
using core::formats::Json;
using core::formats::json_quoted;
using core::text::joined;
namespace transformer = core::transformer;

constexpr std::chrono::milliseconds no_timeout{0};

std::string list_of(const std::vector<std::string>& items) {
  return "[" + joined(items, ",") + "]";
}
std::string quoted_list(std::vector<std::string> items) {
  for (auto& item : items) item = json_quoted(item);
  return list_of(items);
}
std::string hex_of(const std::string& bytes) {
  std::string digits;
  for (const char byte : bytes) digits += core::text::hexadecimal(static_cast<unsigned char>(byte), 2);
  std::ranges::transform(digits, digits.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return digits;
}
std::string exact(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", number);
  return text;
}
arma::fmat narrow(const arma::mat& numbers) {
  return arma::conv_to<arma::fmat>::from(numbers);
}
Array row_of(const std::string& name, const arma::mat& row) {
  Array array = array_of(name, narrow(row));
  array.shape = {row.n_elem};
  return array;
}
/// Returns matrices of one shape as a stacked array.
Array stack_of(const std::string& name, const std::vector<arma::fmat>& matrices) {
  Array all{name, "F32", {matrices.size(), matrices.front().n_rows, matrices.front().n_cols}, {}};
  for (const auto& matrix : matrices) all.bytes += array_of("", matrix).bytes;
  return all;
}

}  // namespace

AttachedServer::AttachedServer(const std::string& model)
    : model_(transformer::open_transformer(model, std::numeric_limits<std::uint64_t>::max())),
      listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::strncpy(where.sun_path, address().c_str(), sizeof where.sun_path - 1);
  if (::bind(listener_.number(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      ::listen(listener_.number(), 8) != 0)
    throw std::runtime_error("no socket");
  acceptor_ = std::jthread([this] { accept(); });
}

AttachedServer::~AttachedServer() {
  end();
}

void AttachedServer::end() {
  ::shutdown(listener_.number(), SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  for (Client& client : clients_) client.socket.shut_down();
  for (Client& client : clients_)
    if (client.thread.joinable()) client.thread.join();
}

void AttachedServer::change_parameters() {
  const std::string bytes =
      core::attached::frame_bytes("{\"id\":0,\"state\":" + std::to_string(++state_) + "}");
  for (Client& client : clients_) {
    const std::lock_guard lock(client.sending);
    client.socket.send(bytes);
  }
}

std::vector<std::string> AttachedServer::take_operations() {
  const std::lock_guard lock(mutex_);
  return std::exchange(operations_, {});
}

void AttachedServer::accept() {
  while (true) {
    core::system::Descriptor connected(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connected.is_open()) return;
    Client& client = clients_.emplace_back(std::move(connected));
    client.thread = std::jthread([this, &client] {
      try {
        serve(client);
      } catch (const Error&) {  // the client disconnected
      }
      client.socket.shut_down();
      n_passes_ -= client.passes.size();
    });
  }
}

void AttachedServer::serve(Client& client) {
  const ProtocolFrame hello = ProtocolFrame::receive(client.socket, no_timeout);
  if (hello.header().required("token").text() != token) {
    client.socket.send(core::attached::frame_bytes(
        R"({"id":null,"error":{"code":"malformed","message":"that is not the right token"}})"));
    return;
  }
  const auto send = [&](const std::string& operation, std::string bytes) {
    const std::lock_guard lock(client.sending);
    client.socket.send(distort ? distort(operation, std::move(bytes)) : bytes);
  };
  send("hello", core::attached::frame_bytes("{\"id\":0" + greeting() + "}"));
  while (true) {
    const ProtocolFrame request = ProtocolFrame::receive(client.socket, no_timeout);
    const std::string operation = request.header().required("op").text(),
                      begin = "{\"id\":" + std::to_string(request.header().required("id").whole(0));
    {
      const std::lock_guard lock(mutex_);
      operations_.push_back(operation);
    }
    try {
      const Answer given = answer(client, request);
      send(operation, core::attached::frame_bytes(begin + given.fields + "}", given.arrays));
    } catch (const Error& error) {
      send(operation, core::attached::frame_bytes(begin + ",\"error\":{\"code\":\"refused\",\"message\":" +
                                                  json_quoted(error.what()) + "}}"));
    }
  }
}

std::string AttachedServer::greeting() const {
  const auto& of = model_->description();
  const auto& sizes = of.sizes;
  const std::string layer =
      "{\"path\":\"\",\"heads\":" + std::to_string(sizes.n_heads) +
      ",\"kv_heads\":" + std::to_string(sizes.kv_heads) + ",\"d_head\":" + std::to_string(sizes.d_head) +
      ",\"d_value\":" + std::to_string(sizes.d_head) + ",\"block\":0,\"not_editable\":\"\"}";
  return ",\"protocol\":1,\"state\":" + std::to_string(state_) +
         ",\"source\":" + core::formats::json_quoted(of.path.string()) +
         ",\"model\":\"TinyModel\",\"dtype\":\"float32\",\"family\":\"one that is not ours\"" +
         ",\"n_vocabulary\":" + std::to_string(sizes.n_vocabulary) +
         ",\"n_context\":" + std::to_string(sizes.n_context) +
         ",\"d_model\":" + std::to_string(sizes.d_model) + ",\"n_tokens\":" + std::to_string(of.n_tokens) +
         ",\"n_parameters\":" + exact(of.n_parameters) + ",\"causal\":" + (of.causal ? "true" : "false") +
         ",\"text\":true,\"predicts\":" + (of.no_prediction_reason.empty() ? "true" : "false") +
         ",\"mask_token\":" + (of.mask_token ? std::to_string(*of.mask_token) : "null") +
         ",\"layers\":" + list_of(std::vector<std::string>(sizes.n_layers, layer));
}

AttachedServer::Answer AttachedServer::answer(Client& client, const ProtocolFrame& request) {
  const Json& header = request.header();
  const std::string& operation = header.required("op").text();
  const auto number = [&](const char* name) {
    return static_cast<std::size_t>(header.required(name).whole(0));
  };
  if (operation == "cancel") return {};
  if (operation == "tokens") {
    const auto tokens = model_->tokenize(header.required("text").text());
    std::vector<std::size_t> ids;
    std::vector<std::string> ends;
    std::size_t end = 0;
    for (const auto& each : tokens) {
      ids.push_back(each.id);
      ends.push_back(std::to_string(end += each.text.size()));
    }
    Answer answer = told(ids);
    answer.fields += ",\"ends\":" + list_of(ends);
    answer.arrays = {array_of("ids", ids)};
    return answer;
  }
  if (operation == "pieces") {
    const auto ids = request.numbers<std::int64_t>("ids", request.shape("ids"));
    return told({ids.begin(), ids.end()});
  }
  if (operation == "run") return run(client, request);
  if (operation == "parameters") return parameters(number("layer"));
  if (operation == "forget") {
    n_passes_ -= client.passes.erase(number("pass"));
    return {};
  }
  if (operation == "unembed")
    return {"",
            {array_of("logits", model_->unembed(request.matrix("rows", request.shape("rows")[0],
                                                               model_->description().sizes.d_model),
                                                context_))}};
  const auto found = client.passes.find(number("pass"));
  if (found == client.passes.end()) throw Error("there is no pass " + std::to_string(number("pass")));
  const transformer::Pass& pass = *found->second;
  if (operation == "maps") return maps(pass, number("layer"), header);
  if (operation == "layer") return layer(pass, number("layer"));
  if (operation == "next")
    return {"", {array_of("logits", arma::fmat(model_->next(pass, number("row"), context_)))}};
  if (operation == "lens") return {"", {array_of("logits", model_->lens(pass, number("row"), context_))}};
  if (operation == "points") {
    const arma::fmat points = model_->residual_points(pass, number("row"), context_);
    return {"",
            {array_of("rows", arma::fmat(points.rows(arma::regspace<arma::uvec>(1, 2, points.n_rows - 1))))}};
  }
  if (operation == "stream") {
    const auto of = model_->stream(pass, number("layer"), number("row"), number("column"), context_);
    return {",\"entering\":" + exact(of.entering) + ",\"input\":" + exact(of.input) +
                ",\"attention\":" + exact(of.attention) + ",\"leaving\":" + exact(of.leaving),
            {}};
  }
  throw Error("there is no operation " + operation);
}

AttachedServer::Answer AttachedServer::told(const std::vector<std::size_t>& ids) const {
  std::vector<std::string> pieces, bytes, special;
  for (const std::size_t id : ids) {
    const auto known = model_->token(id);
    pieces.push_back(known.piece);
    bytes.push_back(hex_of(known.bytes));
    special.push_back(known.is_special ? "true" : "false");
  }
  return {",\"pieces\":" + quoted_list(pieces) + ",\"bytes\":" + quoted_list(bytes) +
              ",\"special\":" + list_of(special),
          {}};
}

std::uint64_t AttachedServer::number_of(const std::shared_ptr<const void>& computation_id) {
  const std::lock_guard lock(mutex_);
  return numbers_.try_emplace(computation_id, numbers_.size()).first->second;
}

AttachedServer::Answer AttachedServer::run(Client& client, const ProtocolFrame& request) {
  std::this_thread::sleep_for(std::chrono::milliseconds(pass_ms));
  const Json& header = request.header();
  const auto& sizes = model_->description().sizes;
  const auto ids64 = request.numbers<std::int64_t>("ids", request.shape("ids"));
  const std::vector<std::size_t> ids(ids64.begin(), ids64.end());
  std::vector<transformer::PassEdit> edits;
  for (const Json& edit : header.required("edits").items_or_empty("edits")) {
    const std::size_t layer = edit.required("layer").whole(0);
    for (const Json& head : edit.required("heads_off").items_or_empty("heads"))
      edits.emplace_back(transformer::AblatedHead{layer, head.whole(0)});
    if (const std::string name = "output." + std::to_string(layer); request.has(name))
      edits.emplace_back(transformer::SetOutput{
          layer, std::make_shared<const arma::fmat>(request.matrix(name, ids.size(), sizes.d_model))});
  }
  const auto n_layers = header.given("n_layers");
  const std::size_t n = n_layers ? n_layers->whole(0) : sizes.n_layers;
  const auto pass = model_->run(ids, edits, context_, n);
  client.passes[header.required("pass").whole(1)] = pass;
  ++n_passes_;
  std::vector<std::string> layers;
  for (std::size_t l = 0; l < n; ++l) layers.push_back(std::to_string(number_of(pass->computation_id(l))));
  return {",\"state\":" + std::to_string(state_) + ",\"layers\":" + list_of(layers), {}};
}

AttachedServer::Answer AttachedServer::maps(const transformer::Pass& pass, std::size_t layer,
                                            const Json& request) {
  std::this_thread::sleep_for(std::chrono::milliseconds(maps_ms));
  const auto heads = model_->maps(pass, layer, request.required("block").whole(1),
                                  request.required("row").whole(0), context_);
  std::vector<arma::fmat> maps;
  Array roles{"roles", "F64", {heads.heads.size(), 6}, {}};
  for (const auto& head : heads.heads) {
    maps.push_back(narrow(head.map));
    const double none = std::numeric_limits<double>::quiet_NaN();
    for (const double share :
         {head.roles.previous, head.roles.first, head.roles.itself, head.roles.same_token.value_or(none),
          head.roles.induction.value_or(none), head.roles.entropy_bits})
      roles.bytes.append(reinterpret_cast<const char*>(&share), sizeof share);
  }
  Answer answer{",\"mask\":\"causal\"", {stack_of("maps", maps), roles, array_of("added", heads.added)}};
  if (heads.visible) {
    Array visible{"visible", "U8", {heads.visible->n_rows, heads.visible->n_cols}, {}};
    for (std::size_t i = 0; i < heads.visible->n_rows; ++i)
      for (std::size_t j = 0; j < heads.visible->n_cols; ++j)
        visible.bytes += heads.visible->at(i, j) != 0 ? '\1' : '\0';
    answer.arrays.push_back(visible);
  }
  return answer;
}

AttachedServer::Answer AttachedServer::layer(const transformer::Pass& pass, std::size_t layer) {
  const std::size_t n = pass.ids.size();
  Answer answer{"", {array_of("inputs", model_->input(pass, layer))}};
  const auto& own = dynamic_cast<const transformer::LocalPass&>(pass);
  if (layer >= own.layers.size()) return answer;
  const core::attention::Model of =
      transformer::layer_model(*model_, pass, layer, core::attention::numbered_tokens(n), {});
  const auto trace = core::attention::attend(of);
  std::vector<arma::fmat> queries, keys, values;
  for (std::size_t h = 0; h < of.n_heads; ++h) {
    const auto last = [&](std::initializer_list<Stage> last_first) {
      for (const Stage stage : last_first)
        if (trace.at(stage, h).n_rows() > 0) return narrow(*trace.at(stage, h));
      return arma::fmat();
    };
    queries.push_back(last({Stage::rotated_queries, Stage::normed_queries, Stage::queries}));
    if (h % (of.n_heads / of.kv_heads()) != 0) continue;
    keys.push_back(last({Stage::rotated_keys, Stage::normed_keys, Stage::keys}));
    values.push_back(narrow(*trace.at(Stage::values, h)));
  }
  answer.arrays.insert(answer.arrays.end(),
                       {stack_of("queries", queries), stack_of("keys", keys), stack_of("values", values)});
  const auto& additions = of.additions;
  answer.fields =
      ",\"scale\":" + exact(core::attention::scale_factor(of)) +
      ",\"factor\":1.0,\"softcap\":null,\"not_editable\":\"\",\"not_rebuilt\":" + json_quoted(not_rebuilt);
  const auto window = of.mask.window.left;
  answer.fields +=
      ",\"mask\":" + (!of.mask.causal             ? std::string("\"none\"")
                      : window && *window + 1 < n ? "{\"causal_window\":" + std::to_string(*window + 1) + "}"
                                                  : std::string("\"causal\""));
  answer.fields += ",\"norms\":{";
  if (const auto& norm = additions.normalize) {
    const std::string rule = "{\"rule\":\"rms\",\"epsilon\":" + exact(norm->epsilon) + "}";
    answer.fields += "\"query\":" + rule + ",\"key\":" + rule;
    answer.arrays.push_back(row_of("query_norm.weight", norm->query));
    answer.arrays.push_back(row_of("key_norm.weight", norm->key));
  }
  answer.fields += "}";
  if (const auto& rotary = additions.positions.rotary) {
    const auto frequencies = core::positions::frequencies(*rotary, of.d_head());
    arma::mat cosines(n, frequencies.size()), sines = cosines;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t p = 0; p < frequencies.size(); ++p) {
        const double angle = core::positions::angle_at(*rotary, static_cast<double>(i), frequencies[p]);
        cosines.at(i, p) = std::cos(angle), sines.at(i, p) = std::sin(angle);
      }
    answer.fields += std::string(",\"rotary\":") +
                     (rotary->pairs == core::positions::Pairs::halves ? "\"halves\"" : "\"neighbors\"");
    answer.arrays.push_back(array_of("cosines", narrow(cosines)));
    answer.arrays.push_back(array_of("sines", narrow(sines)));
  }
  return answer;
}

AttachedServer::Answer AttachedServer::parameters(std::size_t layer) {
  const core::attention::Model of = model_->parameters(layer, nullptr);
  Answer answer;
  const auto add = [&](const std::string& name, const core::attention::Linear& linear) {
    answer.arrays.push_back(array_of(name + ".weight", narrow(linear.weight)));
    if (linear.bias) answer.arrays.push_back(row_of(name + ".bias", *linear.bias));
  };
  add("query", of.projections->query);
  add("key", of.projections->key);
  add("value", of.projections->value);
  add("output", *of.projections->output);
  return answer;
}

}  // namespace support
