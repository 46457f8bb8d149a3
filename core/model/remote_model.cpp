#include "core/model/remote_model.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/graph/validation.hpp"
#include "core/model/connection.hpp"
#include "core/system/process.hpp"

namespace core::transformer {
namespace {

using arma::fmat;
using attached::Connection;
using attached::ProtocolFrame;
using attached::ProtocolRequest;
using attention::Stage;
using formats::Json;
using std::chrono::milliseconds;

constexpr milliseconds no_timeout{0};
constexpr milliseconds tokens_timeout{5'000};  // the window waits for them
constexpr std::uint64_t max_size = std::uint64_t{1} << 24, max_layers = 4096;
constexpr std::size_t max_exact_logits = 1 << 19;
constexpr std::size_t max_known_layers = 4;  // whose projections are kept, so that undo shares them
constexpr std::size_t max_piece = 4096;      // bytes
// Tolerances of cosines and sines rounded to the model's type; that of float32 holds up to 256 tokens.
constexpr double float32_tolerance = 2e-5, float16_tolerance = 2e-3, bfloat16_tolerance = 1e-2;
constexpr std::size_t max_masked_cells = 1 << 18;

std::string field(const char* name, std::size_t number) {
  return fmt::format(",\"{}\":{}", name, number);
}

std::size_t size_in(const Json& json, const char* name, std::uint64_t min_value,
                    std::uint64_t max_value = max_size) {
  const Json value = json.required(name);
  const std::uint64_t number = value.whole(min_value);
  if (number > max_value) value.fail("at most " + std::to_string(max_value), std::to_string(number));
  return number;
}

/// Returns a text of the other process, on one line.
std::string line_in(const Json& json, const char* name) {
  const std::string line = text::printable(json.required(name).text());
  return line.size() <= max_piece ? line : throw Error(std::string(name) + " is too long");
}

/// Returns the bytes that hexadecimal digits represent.
std::string bytes_of(const Json& json) {
  const std::string& digits = json.text();
  const auto bytes = digits.size() > 2 * max_piece ? std::nullopt : text::parse_hexadecimal(digits);
  if (!bytes) json.fail("bytes as hexadecimal digits");
  return *bytes;
}

/// Thrown for a layer without projections, norms and positions that the window knows and that lead to its
/// queries, keys and values; what() says why.
class CannotRebuild : public Error {
 public:
  using Error::Error;
};

/// A layer of a model as the model describes it.
struct LayerSizes {
  std::size_t d_head = 0, d_value = 0;
  std::string not_editable;  ///< or ""
  std::array<TorchProjection, 4> torch = {};
};

struct Greeting {
  Description description;
  std::string dtype;
  std::vector<LayerSizes> layers;
};

/// Returns the modules of a layer's projections, without names where the model does not tell them.
std::array<TorchProjection, 4> torch_in(const Json& layer) {
  std::array<TorchProjection, 4> torch;
  const auto modules = layer.member("modules");
  if (!modules || modules->is_null()) return torch;
  constexpr std::array names{"query", "key", "value", "output"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    const auto parts = modules->required(names[k]).items("[module, first feature of each head, width]", 3);
    const auto heads = parts[1].whole_numbers("features");
    torch[k] = {text::printable(parts[0].text()), {heads.begin(), heads.end()}, parts[2].whole(1)};
  }
  return torch;
}

Greeting greeting_of(const Json& json) {
  Greeting greeting;
  Description& of = greeting.description;
  std::string name = line_in(json, "model");
  std::ranges::replace(name, '/', '_');
  of.path = name;
  of.is_attached = true;
  of.family = line_in(json, "family");
  greeting.dtype = line_in(json, "dtype");
  if (json.given("source")) of.source = line_in(json, "source");
  Sizes& sizes = of.sizes;
  sizes.n_vocabulary = size_in(json, "n_vocabulary", 1);
  sizes.n_context = size_in(json, "n_context", 1);
  sizes.d_model = size_in(json, "d_model", 1);
  of.n_tokens = size_in(json, "n_tokens", 1);
  of.n_parameters = json.required("n_parameters").number();
  of.causal = json.required("causal").boolean();
  of.reads_text = json.required("text").boolean();
  if (!json.required("predicts").boolean()) of.no_prediction_reason = "it has no output embeddings";
  if (const auto mask = json.given("mask_token")) of.mask_token = mask->whole(0);
  if (of.n_tokens > sizes.n_vocabulary || (of.mask_token && *of.mask_token >= sizes.n_vocabulary))
    throw Error("its tokenizer has tokens that the model has not");
  for (const Json& layer : json.required("layers").items("layers that attend")) {
    const std::size_t heads = size_in(layer, "heads", 1, attention::max_tokens),
                      kv_heads = size_in(layer, "kv_heads", 1, heads);
    if (greeting.layers.empty()) sizes.n_heads = heads, sizes.kv_heads = kv_heads;
    if (heads != sizes.n_heads || kv_heads != sizes.kv_heads || heads % kv_heads != 0)
      throw Error("its layers have different numbers of heads, which the window cannot display");
    greeting.layers.push_back({size_in(layer, "d_head", 1), size_in(layer, "d_value", 1),
                               layer.required("not_editable").is_null() ? "" : line_in(layer, "not_editable"),
                               torch_in(layer)});
  }
  if (greeting.layers.size() > max_layers) throw Error("it has too many layers");
  sizes.n_layers = greeting.layers.size();
  sizes.d_head = greeting.layers.front().d_head;
  return greeting;
}

/// Computations of layers by number: passes that share a computation share its pointer.
class Computations {
 public:
  std::shared_ptr<const void> of(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (known_.size() > 4 * n_alive_ + 64) {
      std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
      n_alive_ = known_.size();
    }
    if (auto known = known_[number].lock()) return known;
    const auto made = std::make_shared<const std::uint64_t>(number);
    known_[number] = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<const void>> known_;
  std::size_t n_alive_ = 0;
};

/// A pass that the other process keeps as long as this object exists.
class RemotePass : public Pass {
 public:
  RemotePass(std::shared_ptr<const Connection> connection, std::size_t number)
      : connection_(std::move(connection)), number_(number) {}
  ~RemotePass() override { connection_->post({"forget", field("pass", number_)}); }
  RemotePass(const RemotePass&) = delete;
  RemotePass& operator=(const RemotePass&) = delete;

  std::shared_ptr<const void> computation_id(std::size_t layer) const override {
    return layer < layers.size() ? layers[layer] : nullptr;
  }
  std::uint64_t state() const override { return parameters_state; }
  std::string field_of_pass() const { return field("pass", number_); }

  std::vector<std::shared_ptr<const void>> layers;
  std::uint64_t parameters_state = 0;
  bool is_edited = false;

  /// Answers about layers, by layer.
  mutable std::mutex mutex;
  mutable std::map<std::size_t, std::shared_ptr<const ProtocolFrame>> known;

 private:
  std::shared_ptr<const Connection> connection_;
  std::size_t number_;
};

const RemotePass& remote(const Pass& pass) {
  return dynamic_cast<const RemotePass&>(pass);
}

/// Returns the same numbers in float64.
arma::mat to_float64(const fmat& numbers) {
  return arma::conv_to<arma::mat>::from(numbers);
}

/// Returns an array of n numbers as a row in float64.
arma::mat row_in(const ProtocolFrame& answer, const std::string& name, std::size_t n) {
  return to_float64(fmat(arma::frowvec(answer.numbers<float>(name, {n}))));
}

/// Rotary embedding with the cosines and sines of a pass; rotation_of() throws CannotRebuild if none has
/// them.
struct MeasuredRotary {
  positions::Rotary rotary;
  double magnitude = 1;  ///< by which queries and keys are lengthened
};

/// Returns radians per position from the cosines and sines of positions 0, 1, 2 …
double frequency_in(const arma::fvec& cosines, const arma::fvec& sines) {
  double frequency = 0;
  // Later rows are more exact, but their angle is known only up to multiples of 2π.
  for (std::size_t row = 1; row < cosines.n_elem; row *= 2) {
    const double angle = std::atan2(double{sines[row]}, double{cosines[row]});
    const double foreseen = frequency * static_cast<double>(row);
    frequency += std::remainder(angle - foreseen, 2 * M_PI) / static_cast<double>(row);
  }
  return frequency;
}

MeasuredRotary rotation_of(const ProtocolFrame& answer, std::size_t n_tokens, std::size_t d_head,
                           const std::string& dtype) {
  const auto pairs = answer.header().required("rotary");
  const auto& shape = answer.shape("cosines");
  if (shape.size() != 2 || shape[1] == 0 || 2 * shape[1] > d_head)
    throw Error("the cosines of rotary embeddings are of another width");
  const std::size_t n = shape[1];
  const fmat cosines = answer.matrix("cosines", n_tokens, n), sines = answer.matrix("sines", n_tokens, n);
  MeasuredRotary rotation;
  constexpr std::array words{formats::Word{"halves", positions::Pairs::halves},
                             formats::Word{"neighbors", positions::Pairs::neighbors}};
  rotation.rotary.pairs = pairs.word(words);
  if (2 * n != d_head) rotation.rotary.dimensions = 2 * n;
  rotation.magnitude = std::hypot(double{cosines.at(0, 0)}, double{sines.at(0, 0)});
  arma::mat frequencies(1, n, arma::fill::zeros);
  if (answer.has("frequencies"))
    frequencies = row_in(answer, "frequencies", n);
  else if (n_tokens < 2)
    throw CannotRebuild("a text of one token does not tell its rotary embedding");
  else
    for (std::size_t p = 0; p < n; ++p) frequencies.at(0, p) = frequency_in(cosines.col(p), sines.col(p));
  double worst = 0;
  for (std::size_t row = 0; row < n_tokens; ++row)
    for (std::size_t p = 0; p < n; ++p) {
      const double angle = frequencies.at(0, p) * static_cast<double>(row);
      worst = std::max({worst, std::abs(rotation.magnitude * std::cos(angle) - double{cosines.at(row, p)}),
                        std::abs(rotation.magnitude * std::sin(angle) - double{sines.at(row, p)})});
    }
  const double tolerance = dtype == "bfloat16" ? bfloat16_tolerance
                           : dtype == "float16"
                               ? float16_tolerance
                               : float32_tolerance * std::max(1.0, static_cast<double>(n_tokens) / 256);
  if (!(worst <= tolerance * rotation.magnitude))
    throw CannotRebuild("its rotary embedding has no frequencies that are the same at every position");
  rotation.rotary.inverse_frequencies = attention::SharedMatrix(std::move(frequencies));
  return rotation;
}

/// Returns the QK norm of a layer; throws CannotRebuild where a model of the window cannot have it.
attention::QueryKeyNorm norm_of(const ProtocolFrame& answer, const Json& norms, std::size_t d_head) {
  const auto query = norms.member("query"), key = norms.member("key");
  if (!query || !key) throw CannotRebuild("of queries and keys only one is normalized");
  const auto rule = [](const Json& norm) { return norm.required("rule").text(); };
  const auto epsilon = [](const Json& norm) { return norm.required("epsilon").number(); };
  if (rule(*query) != rule(*key) || epsilon(*query) != epsilon(*key))
    throw CannotRebuild("queries and keys are normalized in different ways");
  if (answer.has("query_norm.bias") || answer.has("key_norm.bias"))
    throw CannotRebuild("the norms of its queries and keys have biases");
  const auto weight = [&](const std::string& name) {
    if (answer.shape(name) != std::vector{d_head})
      throw CannotRebuild("queries and keys are normalized over all heads at once");
    return attention::SharedMatrix(row_in(answer, name, d_head));
  };
  return {rule(*query) == "layer" ? attention::NormRule::layer : attention::NormRule::rms,
          weight("query_norm.weight"), weight("key_norm.weight"), epsilon(*query)};
}

/// Returns the mask with these cells, 0 where masked, as a causal rule, a window and single cells; throws
/// CannotRebuild when the latter are too many.
attention::Mask mask_of_cells(const std::vector<std::uint8_t>& visible, std::size_t n) {
  std::size_t left = 0, right = 0, n_visible = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (visible[i * n + j]) {
        ++n_visible;
        left = std::max(left, i > j ? i - j : 0);
        right = std::max(right, j > i ? j - i : 0);
      }
  attention::Mask mask;
  mask.causal = right == 0;
  if (left + 1 < n) mask.window.left = left;
  if (!mask.causal && right + 1 < n) mask.window.right = right;
  const auto in_band = [&](std::size_t i, std::size_t j) { return j + left >= i && j <= i + right; };
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (in_band(i, j) && !visible[i * n + j]) mask.cells.push_back({i, j, false});
  if (mask.cells.size() > max_masked_cells) throw CannotRebuild("its mask has no rule that the window knows");
  return mask;
}

attention::Mask mask_of(const ProtocolFrame& answer, const Description& of, std::size_t n_tokens) {
  const Json mask_json = answer.header().required("mask");
  attention::Mask mask;
  if (const auto window = mask_json.member("causal_window")) {
    mask.window.left = window->whole(1) - 1;
  } else if (const std::string& word = mask_json.text(); word == "none") {
    mask.causal = of.causal && n_tokens == 1;  // where a causal mask would hide nothing
  } else if (word == "given") {
    return mask_of_cells(answer.numbers<std::uint8_t>("visible", {n_tokens, n_tokens}), n_tokens);
  } else if (word != "causal") {
    mask_json.fail("causal, none, given or causal_window");
  }
  return mask;
}

/// Returns the parts of a model that both rebuild_layer() and given() need.
attention::Model rules_of(const ProtocolFrame& answer, const Description& of, std::size_t n_tokens) {
  const Json& header = answer.header();
  const Sizes& sizes = of.sizes;
  attention::Model model;
  model.sequences.resize(1);
  model.n_heads = sizes.n_heads;
  if (sizes.kv_heads != sizes.n_heads) model.n_kv_heads = sizes.kv_heads;
  model.mask = mask_of(answer, of, n_tokens);
  if (const auto cap = header.given("softcap"); cap && cap->number() != 0)
    model.additions.softcap = cap->number();
  if (answer.has("sinks"))
    model.additions.sink = attention::SharedMatrix(row_in(answer, "sinks", sizes.n_heads));
  return model;
}

attention::Scale scale_of(double factor, std::size_t d_head) {
  const double usual = 1 / std::sqrt(static_cast<double>(d_head));
  if (std::abs(factor / usual - 1) < 1e-6) return {};
  return {attention::ScaleRule::factor, factor};
}

/// A model in a Python process.
class RemoteModel : public FullModel {
 public:
  RemoteModel(const std::string& address, const std::string& token)
      : connection_(std::make_shared<const Connection>(address, token)) {
    Greeting greeting = with_address([&] { return greeting_of(connection_->greeting()); });
    description_ = std::move(greeting.description);
    description_.address = address;
    layers_ = std::move(greeting.layers);
    dtype_ = std::move(greeting.dtype);
    for (std::size_t l = 0; l < layers_.size(); ++l) reasons_[l] = layers_[l].not_editable;
  }

  const Description& description() const override { return description_; }
  std::uint64_t state() const override { return connection_->state(); }
  std::string lost() const override { return connection_->lost(); }
  std::vector<tokenizers::TextToken> tokenize(std::string_view text) const override;
  VocabularyToken token(std::size_t id) const override;
  PassRef run(const std::vector<std::size_t>& ids, const std::vector<PassEdit>& edits,
              const CallContext& context, std::size_t n_layers) const override;
  fmat input(const Pass& pass, std::size_t layer, const StopToken& progress) const override;
  attention::Model parameters(std::size_t layer, const Pass* of, const StopToken& progress) const override;
  std::string not_editable_reason(std::size_t layer) const override;
  LayerHeads maps(const Pass& pass, std::size_t layer, std::size_t block, std::size_t row,
                  const CallContext& context) const override;
  arma::frowvec next(const Pass& pass, std::size_t row, const CallContext& context) const override;
  fmat lens(const Pass& pass, std::size_t row, const CallContext& context) const override;
  fmat residual_points(const Pass& pass, std::size_t row, const CallContext& context) const override;
  fmat unembed(const fmat& rows, const CallContext& context) const override;
  LogitAttributions logit_attributions(const Pass&, std::size_t, std::size_t, const std::vector<fmat>&,
                                       const CallContext&) const override {
    throw Error(place() + "PyTorch does not tell the parts of a logit");
  }
  ResidualElement stream(const Pass& pass, std::size_t layer, std::size_t row, std::size_t column,
                         const CallContext& context) const override;
  TorchNames torch_names() const override;
  void publish(const std::string& program) const override {
    connection_->post({"edits", ",\"program\":" + formats::json_quoted(program)});
  }

 private:
  struct Parameters {
    std::uint64_t state = 0;
    attention::Projections projections;
  };

  std::string place() const { return connection_->address() + ": "; }
  /// Calls a function; errors that it throws get the address in front.
  template <class Function>
  std::invoke_result_t<Function> with_address(Function function) const {
    try {
      return function();
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      const std::string words = error.what();
      throw Error(words.starts_with(place()) ? words : place() + words);
    }
  }
  ProtocolFrame call(const ProtocolRequest& request, const CallContext& context) const {
    return connection_->call(request, context.progress, no_timeout);
  }
  void cache_token(std::size_t id, VocabularyToken token) const {
    const std::lock_guard lock(mutex_);
    tokens_.emplace(id, std::move(token));
  }
  /// Returns whether logits must be the model's own to the last bit, which takes as long as those of all
  /// tokens; a long edited text does without.
  bool needs_exact_logits(const RemotePass& pass) const;
  std::shared_ptr<const ProtocolFrame> layer(const RemotePass& pass, std::size_t layer,
                                             const StopToken& progress) const;
  std::shared_ptr<const Parameters> projections(std::size_t layer, std::uint64_t state,
                                                const StopToken& progress) const;
  attention::Model rebuild_layer(std::size_t layer, const RemotePass& pass, const ProtocolFrame& answer,
                                 const StopToken& progress) const;
  attention::Model given(std::size_t layer, const RemotePass& pass, const ProtocolFrame& answer) const;

  std::shared_ptr<const Connection> connection_;
  Description description_;
  std::string dtype_;  // of the model's numbers
  std::vector<LayerSizes> layers_;
  mutable std::atomic<std::size_t> last_pass_ = 0;
  mutable Computations computations_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::map<std::size_t, VocabularyToken> tokens_;
  mutable std::map<std::size_t, std::shared_ptr<const Parameters>> parameters_;
  mutable std::map<std::size_t, std::string> reasons_;  // why layers cannot be edited
};

/// Returns the n tokens in an answer.
std::vector<VocabularyToken> tokens_in(const Json& header, std::size_t n) {
  const auto list = [&](const char* name) {
    auto items = header.required(name).items_or_empty("a list with an item for each token");
    return items.size() == n ? items
                             : throw Error(std::string("expected a list of ") + name + ", one a token");
  };
  const auto pieces = list("pieces"), bytes = list("bytes"), special = list("special");
  std::vector<VocabularyToken> tokens;
  for (std::size_t k = 0; k < n; ++k) {
    const std::string& piece = pieces[k].text();
    if (piece.size() > max_piece) throw Error("a token is too long");
    tokens.push_back({piece, bytes[k].is_null() ? piece : bytes_of(bytes[k]), special[k].boolean()});
  }
  return tokens;
}

std::vector<tokenizers::TextToken> RemoteModel::tokenize(std::string_view text) const {
  text::code_points(text);  // throws when the text is not UTF-8
  return with_address([&] {
    const ProtocolRequest request{"tokens", ",\"text\":" + formats::json_quoted(text)};
    const ProtocolFrame answer = connection_->call(request, StopToken(), tokens_timeout);
    const std::size_t n = answer.shape("ids").empty() ? 0 : answer.shape("ids").front();
    const auto ids = answer.numbers<std::int64_t>("ids", {n});
    const auto ends = answer.header().required("ends").items_or_empty("a list of numbers");
    const auto known = tokens_in(answer.header(), n);
    std::vector<tokenizers::TextToken> tokens;
    std::size_t begin = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const auto id = static_cast<std::size_t>(ids[k]);  // a negative one becomes too large
      if (id >= description_.sizes.n_vocabulary)
        throw Error(fmt::format("expected tokens below {}, got {}", description_.sizes.n_vocabulary, ids[k]));
      const std::size_t end = k < ends.size() ? ends[k].whole(begin) : text.size() + 1;
      if (end > text.size()) throw Error("expected the end of each token's part of the text");
      const bool is_special = known[k].is_special;
      tokens.push_back(
          {id, std::string(text.substr(begin, end - begin)), is_special, is_special && end == begin});
      begin = end;
      cache_token(id, known[k]);
    }
    return tokens;
  });
}

VocabularyToken RemoteModel::token(std::size_t id) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = tokens_.find(id); known != tokens_.end()) return known->second;
  }
  if (id >= description_.sizes.n_vocabulary) return {};
  return with_address([&] {
    const ProtocolRequest request{"pieces", "", {attached::array_of("ids", std::vector{id})}};
    VocabularyToken token =
        tokens_in(connection_->call(request, StopToken(), tokens_timeout).header(), 1).front();
    cache_token(id, token);
    return token;
  });
}

PassRef RemoteModel::run(const std::vector<std::size_t>& ids, const std::vector<PassEdit>& edits,
                         const CallContext& context, std::size_t n_layers) const {
  require_tokens(description_, ids);
  struct LayerEdits {
    std::string heads;
    bool has_output = false;
  };
  std::map<std::size_t, LayerEdits> by_layer;
  ProtocolRequest request{"run", "", {attached::array_of("ids", ids)}};
  for (const PassEdit& edit : edits) {
    if (const auto* off = std::get_if<AblatedHead>(&edit)) {
      std::string& heads = by_layer[off->layer].heads;
      heads += (heads.empty() ? "" : ",") + std::to_string(off->head);
    } else if (const auto* set = std::get_if<SetOutput>(&edit)) {
      by_layer[set->layer].has_output = true;
      request.arrays.push_back(attached::array_of("output." + std::to_string(set->layer), *set->output));
    } else {
      throw Error(patch_name(std::get<SetStream>(edit).patch) +
                  ": expected a part of attention, as nothing else of an attached model can be patched");
    }
  }
  const std::size_t number = ++last_pass_;
  request.fields =
      field("pass", number) + ",\"edits\":[" +
      text::joined(by_layer, ",",
                   [](const auto& each) {
                     return fmt::format("{{\"layer\":{},\"heads_off\":[{}]}}", each.first, each.second.heads);
                   }) +
      "]";
  if (n_layers < layers_.size()) request.fields += field("n_layers", n_layers);
  const auto pass = std::make_shared<RemotePass>(connection_, number);  // forgotten even when stopped
  pass->ids = ids;
  pass->is_edited = !edits.empty();
  return with_address([&] {
    const ProtocolFrame answer = call(request, context);
    for (const Json& computation : answer.header().required("layers").items_or_empty("numbers of layers"))
      pass->layers.push_back(computations_.of(computation.whole(0)));
    if (pass->layers.size() < std::min(n_layers, layers_.size()))
      throw Error("a pass has not read all layers");
    pass->parameters_state = answer.header().required("state").whole(0);
    return pass;
  });
}

std::shared_ptr<const ProtocolFrame> RemoteModel::layer(const RemotePass& pass, std::size_t layer,
                                                        const StopToken& progress) const {
  const std::lock_guard lock(pass.mutex);
  auto& known = pass.known[layer];
  if (!known)
    known = std::make_shared<const ProtocolFrame>(
        connection_->call({"layer", pass.field_of_pass() + field("layer", layer)}, progress, no_timeout));
  return known;
}

fmat RemoteModel::input(const Pass& pass, std::size_t of, const StopToken& progress) const {
  return with_address([&] {
    return layer(remote(pass), of, progress)->matrix("inputs", pass.ids.size(), description_.sizes.d_model);
  });
}

std::shared_ptr<const RemoteModel::Parameters> RemoteModel::projections(std::size_t layer,
                                                                        std::uint64_t state,
                                                                        const StopToken& progress) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = parameters_.find(layer);
        known != parameters_.end() && known->second->state == state)
      return known->second;
  }
  const ProtocolFrame answer = connection_->call({"parameters", field("layer", layer)}, progress, no_timeout);
  const Sizes& sizes = description_.sizes;
  const auto linear = [&](const std::string& name, std::size_t rows, std::size_t columns) {
    attention::Linear made{
        attention::SharedMatrix(to_float64(answer.matrix(name + ".weight", rows, columns))), std::nullopt};
    if (answer.has(name + ".bias"))
      made.bias = attention::SharedMatrix(row_in(answer, name + ".bias", columns));
    return made;
  };
  const std::size_t d = layers_[layer].d_head;
  auto made = std::make_shared<Parameters>();
  made->state = state;
  made->projections = {
      linear("query", sizes.d_model, sizes.n_heads * d), linear("key", sizes.d_model, sizes.kv_heads * d),
      linear("value", sizes.d_model, sizes.kv_heads * d), linear("output", sizes.n_heads * d, sizes.d_model)};
  const std::lock_guard lock(mutex_);
  while (parameters_.size() >= max_known_layers) parameters_.erase(parameters_.begin());
  parameters_[layer] = made;
  return made;
}

/// Returns a layer with its projections. Throws CannotRebuild.
attention::Model RemoteModel::rebuild_layer(std::size_t layer, const RemotePass& pass,
                                            const ProtocolFrame& answer, const StopToken& progress) const {
  const Json& header = answer.header();
  const LayerSizes& sizes = layers_[layer];
  if (!sizes.not_editable.empty()) throw CannotRebuild(sizes.not_editable);
  if (const std::string why = line_in(header, "not_rebuilt"); !why.empty()) throw CannotRebuild(why);
  if (sizes.d_head != sizes.d_value) throw CannotRebuild("its values are not as wide as its keys");
  const std::size_t n_tokens = pass.ids.size();
  attention::Model model = rules_of(answer, description_, n_tokens);
  if (!model.mask.masks_keys() && header.given("window"))
    throw CannotRebuild("this text is too short to show its sliding window, which looks to both sides");
  double factor = header.required("scale").number() * header.required("factor").number();
  if (header.given("rotary")) {
    auto [rotary, magnitude] = rotation_of(answer, n_tokens, sizes.d_head, dtype_);
    const bool is_scaled = std::abs(magnitude - 1) > 1e-6;
    if (is_scaled && rotary.dimensions)
      throw CannotRebuild("its rotary embedding scales those columns alone that it rotates");
    model.additions.positions.rotary = std::move(rotary);
    if (is_scaled) factor *= magnitude * magnitude;
  }
  if (const Json norms = header.required("norms"); !norms.members().empty())
    model.additions.normalize = norm_of(answer, norms, sizes.d_head);
  model.scale = scale_of(factor, sizes.d_head);
  model.projections = projections(layer, pass.state(), progress)->projections;
  return model;
}

/// Returns a layer with its queries, keys and values as given stages.
attention::Model RemoteModel::given(std::size_t layer, const RemotePass& pass,
                                    const ProtocolFrame& answer) const {
  const Sizes& sizes = description_.sizes;
  const std::size_t n_tokens = pass.ids.size();
  attention::Model model = rules_of(answer, description_, n_tokens);
  model.scale = scale_of(answer.header().required("scale").number(), layers_[layer].d_head);
  const auto give = [&](Stage stage, const char* name, std::size_t n, std::size_t columns) {
    attention::GivenStage given{stage, {}};
    for (const fmat& matrix : answer.matrices(name, n, n_tokens, columns))
      given.matrices.emplace_back(attention::SharedMatrix(to_float64(matrix)));
    model.given.stages.push_back(std::move(given));
  };
  give(Stage::queries, "queries", sizes.n_heads, layers_[layer].d_head);
  give(Stage::keys, "keys", sizes.kv_heads, layers_[layer].d_head);
  give(Stage::values, "values", sizes.kv_heads, layers_[layer].d_value);
  return model;
}

attention::Model RemoteModel::parameters(std::size_t of, const Pass* pass, const StopToken& progress) const {
  if (!pass) throw Error(place() + "the layers of an attached model are known by their passes alone");
  return with_address([&] {
    const auto answer = layer(remote(*pass), of, progress);
    const auto set_reason = [&](const std::string& why) {
      const std::lock_guard lock(mutex_);
      reasons_[of] = why;
    };
    try {
      attention::Model model = rebuild_layer(of, remote(*pass), *answer, progress);
      set_reason("");
      return model;
    } catch (const CannotRebuild& why) {
      set_reason(why.what());
      return given(of, remote(*pass), *answer);
    }
  });
}

std::string RemoteModel::not_editable_reason(std::size_t layer) const {
  const std::lock_guard lock(mutex_);
  return reasons_[layer];
}

LayerHeads RemoteModel::maps(const Pass& pass, std::size_t of, std::size_t block, std::size_t row,
                             const CallContext& context) const {
  return with_address([&] {
    const Sizes& sizes = description_.sizes;
    const ProtocolFrame answer = call({"maps", remote(pass).field_of_pass() + field("layer", of) +
                                                   field("block", block) + field("row", row)},
                                      context);
    const std::size_t n = (pass.ids.size() + block - 1) / block, n_roles = 6;
    const auto roles = answer.numbers<double>("roles", {sizes.n_heads, n_roles});
    LayerHeads layer;
    for (const fmat& map : answer.matrices("maps", sizes.n_heads, n, n)) {
      const double* r = roles.data() + n_roles * layer.heads.size();
      const auto or_zero = [](double share) { return std::isfinite(share) ? share : 0; };
      const auto if_any = [](double share) {
        return std::isfinite(share) ? std::optional(share) : std::nullopt;
      };
      layer.heads.push_back(
          {to_float64(map),
           {or_zero(r[0]), or_zero(r[1]), or_zero(r[2]), if_any(r[3]), if_any(r[4]), or_zero(r[5])}});
    }
    if (answer.has("added")) layer.added = answer.matrix("added", sizes.n_heads, sizes.d_model);
    if (answer.has("visible")) {
      const auto visible = answer.numbers<std::uint8_t>("visible", {n, n});
      arma::mat blocks(n, n);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) blocks.at(i, j) = visible[i * n + j];
      layer.visible = std::make_shared<const arma::mat>(std::move(blocks));
    }
    return layer;
  });
}

bool RemoteModel::needs_exact_logits(const RemotePass& pass) const {
  return !pass.is_edited || pass.ids.size() * description_.sizes.n_vocabulary <= max_exact_logits;
}

arma::frowvec RemoteModel::next(const Pass& pass, std::size_t row, const CallContext& context) const {
  return with_address([&] {
    const std::string exact = needs_exact_logits(remote(pass)) ? "" : ",\"exact\":false";
    return arma::frowvec(call({"next", remote(pass).field_of_pass() + field("row", row) + exact}, context)
                             .matrix("logits", 1, description_.sizes.n_vocabulary));
  });
}

fmat RemoteModel::lens(const Pass& pass, std::size_t row, const CallContext& context) const {
  return with_address([&] {
    const std::string fields = remote(pass).field_of_pass() + field("row", row);
    const Sizes& sizes = description_.sizes;
    fmat logits = call({"lens", fields}, context).matrix("logits", sizes.n_layers, sizes.n_vocabulary);
    // Replaces a row that differs only by rounding, as the last bits of a product depend on its number of
    // rows; next() gives the model's own.
    if (needs_exact_logits(remote(pass))) logits.tail_rows(1) = next(pass, row, context);
    return logits;
  });
}

fmat RemoteModel::residual_points(const Pass& pass, std::size_t row, const CallContext& context) const {
  return with_address([&] {
    const Sizes& sizes = description_.sizes;
    const fmat after = call({"points", remote(pass).field_of_pass() + field("row", row)}, context)
                           .matrix("rows", sizes.n_layers, sizes.d_model);
    fmat points(2 * after.n_rows, after.n_cols, arma::fill::value(arma::datum::nan));
    for (std::size_t l = 0; l < after.n_rows; ++l) points.row(2 * l + 1) = after.row(l);
    return points;
  });
}

fmat RemoteModel::unembed(const fmat& rows, const CallContext& context) const {
  return with_address([&] {
    ProtocolRequest request{"unembed", ""};
    request.arrays.push_back(attached::array_of("rows", rows));
    return call(request, context).matrix("logits", rows.n_rows, description_.sizes.n_vocabulary);
  });
}

TorchNames RemoteModel::torch_names() const {
  TorchNames torch{.source = description_.source, .dtype = dtype_};
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (layers_[l].torch.front().module.empty())
      throw Error(fmt::format("{}the projections of layer {} are no modules with names", place(), l));
    torch.layers.push_back({layers_[l].torch});
  }
  return torch;
}

ResidualElement RemoteModel::stream(const Pass& pass, std::size_t layer, std::size_t row, std::size_t column,
                                    const CallContext& context) const {
  return with_address([&] {
    const ProtocolFrame answer = call({"stream", remote(pass).field_of_pass() + field("layer", layer) +
                                                     field("row", row) + field("column", column)},
                                      context);
    const Json& header = answer.header();
    ResidualElement number;
    number.entering = header.required("entering").number();
    number.input = header.required("input").number();
    number.leaving = header.required("leaving").number();
    number.no_sum_reason = "What attention and the MLP add is not told for an attached model.";
    return number;
  });
}

}  // namespace

ModelRef attach_model(const std::string& address, const std::string& token) {
  return std::make_shared<const RemoteModel>(
      address, token.empty() ? system::environment_variable("ATTNSCOPE_TOKEN") : token);
}

}  // namespace core::transformer
