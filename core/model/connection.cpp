#include "core/model/connection.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/readers.hpp"

namespace core::attached {
namespace {

using formats::Dtype;
using formats::Json;
using formats::json_quoted;
using std::chrono::milliseconds;

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view magic = "ATNS";
constexpr std::size_t prefix_bytes = 16;
constexpr std::uint64_t max_header = std::uint64_t{1} << 20, max_payload = std::uint64_t{256} << 20;
constexpr std::size_t max_message_bytes = 300;
constexpr std::size_t chunk = std::size_t{1} << 20;
constexpr milliseconds no_timeout{0}, frame_timeout{30'000}, greeting_timeout{10'000}, poll_interval{20};
constexpr std::uint64_t protocol = 1;

std::string shape_words(const std::vector<std::size_t>& shape) {
  return text::joined(shape, " × ", [](std::size_t n) { return std::to_string(n); });
}

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// Receives exactly `count` bytes; memory grows as they arrive.
std::string received(const system::Socket& socket, std::uint64_t count) {
  std::string bytes;
  while (bytes.size() < count) {
    const std::size_t before = bytes.size(), next = std::min<std::uint64_t>(chunk, count - before);
    bytes.resize(before + next);
    const std::size_t got = socket.receive(bytes.data() + before, next, frame_timeout);
    if (got == 0) throw Error("the other side has closed it in the middle of an answer");
    bytes.resize(before + got);
  }
  return bytes;
}

/// Returns a message of the other process as one line, shortened if it is long.
std::string words_of(const Json& json) {
  std::string words = text::printable(json.is_text() ? json.text() : "it does not say why");
  if (words.size() <= max_message_bytes) return words;
  std::size_t end = max_message_bytes;
  while (end > 0 && !text::is_character_start(words[end])) --end;
  return words.substr(0, end) + "…";
}

}  // namespace

Array array_of(std::string name, const arma::fmat& numbers) {
  Array array{std::move(name), "F32", {numbers.n_rows, numbers.n_cols}, {}};
  array.bytes.reserve(numbers.n_elem * sizeof(float));
  for (std::size_t i = 0; i < numbers.n_rows; ++i)
    for (std::size_t j = 0; j < numbers.n_cols; ++j) append(array.bytes, numbers.at(i, j));
  return array;
}

Array array_of(std::string name, const std::vector<std::size_t>& ids) {
  Array array{std::move(name), "I64", {ids.size()}, {}};
  for (const std::size_t id : ids) append(array.bytes, static_cast<std::int64_t>(id));
  return array;
}

std::string frame_bytes(const std::string& header, const std::vector<Array>& arrays) {
  std::string index, numbers;
  for (const Array& array : arrays) {
    const std::string begin = std::to_string(numbers.size());
    numbers += array.bytes;
    index += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                         std::string(index.empty() ? "{" : ","), json_quoted(array.name), array.type,
                         text::joined(array.shape, ",", [](std::size_t n) { return std::to_string(n); }),
                         begin, numbers.size());
  }
  if (!arrays.empty()) index += "}";
  const std::uint64_t payload = arrays.empty() ? 0 : 8 + index.size() + numbers.size();
  if (header.size() > max_header || payload > max_payload)
    throw Error(fmt::format("what is to be sent has {} bytes, more than a message may have",
                            header.size() + payload));
  std::string bytes(magic);
  append(bytes, static_cast<std::uint32_t>(header.size()));
  append(bytes, payload);
  bytes += header;
  if (payload == 0) return bytes;
  append(bytes, static_cast<std::uint64_t>(index.size()));
  return bytes + index + numbers;
}

ProtocolFrame ProtocolFrame::receive(const system::Socket& socket, milliseconds timeout) {
  std::string prefix(1, '\0');
  if (socket.receive(prefix.data(), 1, timeout) == 0) throw Error("the other side has closed it");
  prefix += received(socket, prefix_bytes - 1);
  if (!prefix.starts_with(magic)) throw Error("the server is not attnscope.attach()");
  const auto n_header = number_at<std::uint32_t>(prefix, 4);
  const auto n_payload = number_at<std::uint64_t>(prefix, 8);
  if (n_header > max_header || n_payload > max_payload)
    throw Error(fmt::format("an answer claims to have {} and {} bytes, more than answers may have", n_header,
                            n_payload));
  ProtocolFrame frame(formats::parse_json(received(socket, n_header), "an answer"));
  if (!frame.header_.is_object()) throw Error("an answer is no JSON object");
  frame.payload_ = std::make_shared<const std::string>(received(socket, n_payload));
  frame.read_arrays();
  return frame;
}

void ProtocolFrame::read_arrays() {
  if (payload_->empty()) return;
  const std::string_view payload = *payload_;
  const auto n_index = payload.size() < 8 ? max_header + 1 : number_at<std::uint64_t>(payload, 0);
  if (n_index > std::min<std::uint64_t>(max_header, payload.size() - 8))
    throw Error("an answer's list of arrays is longer than the answer");
  const std::string_view data = payload.substr(8 + n_index);
  for (auto& [info, begin, end] : formats::readers::read_safetensors_header(
           payload.substr(8, n_index), data.size(), "an answer's list of arrays"))
    arrays_.emplace(std::move(info.name),
                    ReceivedArray{info.dtype, std::move(info.shape), data.substr(begin, end - begin)});
}

const ProtocolFrame::ReceivedArray& ProtocolFrame::part(const std::string& name) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) throw Error("the answer lacks the array " + name);
  return found->second;
}

const std::vector<std::size_t>& ProtocolFrame::shape(const std::string& name) const {
  return part(name).shape;
}

template <class Number>
std::vector<Number> ProtocolFrame::numbers(const std::string& name,
                                           const std::vector<std::size_t>& shape) const {
  constexpr Dtype dtype = std::is_same_v<Number, float>          ? Dtype::f32
                          : std::is_same_v<Number, double>       ? Dtype::f64
                          : std::is_same_v<Number, std::int64_t> ? Dtype::i64
                                                                 : Dtype::u8;
  const ReceivedArray& found = part(name);
  if (found.dtype != dtype || found.shape != shape)
    throw Error("expected the array " + name + " to be " + formats::dtype_name(dtype) + " of " +
                shape_words(shape) + ", got " + formats::dtype_name(found.dtype) + " of " +
                shape_words(found.shape));
  std::vector<Number> numbers(found.bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), found.bytes.data(), found.bytes.size());
  return numbers;
}

template std::vector<float> ProtocolFrame::numbers(const std::string&, const std::vector<std::size_t>&) const;
template std::vector<double> ProtocolFrame::numbers(const std::string&,
                                                    const std::vector<std::size_t>&) const;
template std::vector<std::int64_t> ProtocolFrame::numbers(const std::string&,
                                                          const std::vector<std::size_t>&) const;
template std::vector<std::uint8_t> ProtocolFrame::numbers(const std::string&,
                                                          const std::vector<std::size_t>&) const;

std::vector<arma::fmat> ProtocolFrame::matrices(const std::string& name, std::size_t n, std::size_t n_rows,
                                                std::size_t n_cols) const {
  const bool is_one = shape(name).size() == 2 && n == 1;
  const auto all =
      numbers<float>(name, is_one ? std::vector{n_rows, n_cols} : std::vector{n, n_rows, n_cols});
  if (!std::ranges::all_of(all, [](float number) { return std::isfinite(number); }))
    throw Error("numbers of the array " + name + " are not finite");
  std::vector<arma::fmat> matrices;
  for (std::size_t k = 0; k < n; ++k) {
    arma::fmat& matrix = matrices.emplace_back(n_rows, n_cols);
    const float* from = all.data() + k * n_rows * n_cols;
    for (std::size_t i = 0; i < n_rows; ++i)
      for (std::size_t j = 0; j < n_cols; ++j) matrix.at(i, j) = *from++;
  }
  return matrices;
}

arma::fmat ProtocolFrame::matrix(const std::string& name, std::size_t n_rows, std::size_t n_cols) const {
  if (shape(name).size() != 2)
    throw Error("expected the array " + name + " to be a matrix, got " + shape_words(shape(name)));
  return std::move(matrices(name, 1, n_rows, n_cols).front());
}

Connection::Connection(std::string address, const std::string& token)
    : address_(std::move(address)), socket_(address_, greeting_timeout) {
  try {
    socket_.send(frame_bytes("{\"id\":0,\"op\":\"hello\",\"token\":" + json_quoted(token) + "}"));
    greeting_ = ProtocolFrame::receive(socket_, greeting_timeout);
    if (const auto error = greeting().member("error")) throw Error(words_of(error->required("message")));
    if (const Json version = greeting().required("protocol"); version.whole(0) != protocol)
      throw Error(
          fmt::format("expected protocol {}, got {}: the program and the package are of different versions",
                      protocol, version.whole(0)));
    state_ = greeting().required("state").whole(0);
  } catch (const Error& error) {
    throw Error(address_ + ": cannot be attached: " + error.what());
  }
  reader_ = std::jthread([this] { read(); });
}

Connection::~Connection() {
  socket_.shut_down();
}

void Connection::read() {
  try {
    while (true) handle_frame(ProtocolFrame::receive(socket_, no_timeout));
  } catch (const Error& error) {
    lose(error.what());
  } catch (const std::bad_alloc&) {
    lose("there is not enough memory for an answer");
  }
}

void Connection::handle_frame(ProtocolFrame frame) {
  const Json id = frame.header().required("id");
  const auto error = frame.header().member("error");
  if (id.is_null()) throw Error(error ? words_of(error->required("message")) : "an answer has no id");
  if (id.whole(0) == 0) {
    state_ = frame.header().required("state").whole(0);
    return;
  }
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(id.whole(0));
  if (id.whole(0) > last_id_) throw Error("an answer has the ID of no request");
  if (found == pending_.end()) return;  // its caller has stopped waiting
  PendingCall& pending = *found->second;
  if (const auto progress = frame.header().member("progress")) {
    const auto parts = progress->items("[done, of]");
    if (parts.size() == 2) pending.share = parts[0].number() / std::max(1.0, parts[1].number());
    return changed_.notify_all();
  }
  if (error) {
    const std::string code = error->required("code").text();
    pending.is_stopped = code == "cancelled";
    pending.error_message = (code == "failed" ? "PyTorch: " : "") + words_of(error->required("message"));
  } else {
    pending.answer = std::move(frame);
  }
  pending.is_over = true;
  pending_.erase(found);
  changed_.notify_all();
}

void Connection::lose(const std::string& why) const {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = "the connection to Python was lost: " + why;
  changed_.notify_all();
}

std::string Connection::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_.empty() ? "" : address_ + ": " + lost_;
}

void Connection::refuse(const std::string& why) const {
  throw Error(address_ + ": " + why);
}

std::uint64_t Connection::send(const ProtocolRequest& request,
                               const std::shared_ptr<PendingCall>& pending) const {
  const std::lock_guard order(sending_);
  const std::uint64_t id = last_id_ + 1;
  const std::string bytes = frame_bytes(
      fmt::format("{{\"id\":{},\"op\":\"{}\"{}}}", id, request.op, request.fields), request.arrays);
  last_id_ = id;  // before it can be answered
  if (pending) {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) throw Error(lost_);
    pending_[id] = pending;
  }
  try {
    socket_.send(bytes);
  } catch (const Error& error) {
    lose(error.what());
    socket_.shut_down();  // a part of a request may have been sent
  }
  return id;
}

ProtocolFrame Connection::call(const ProtocolRequest& request, const StopToken& progress,
                               milliseconds timeout) const {
  const auto pending = std::make_shared<PendingCall>();
  const auto until = std::chrono::steady_clock::now() + timeout;
  std::uint64_t id = 0;
  try {
    id = send(request, pending);
  } catch (const Error& error) {
    refuse(error.what());
  }
  std::unique_lock lock(mutex_);
  while (!pending->is_over && lost_.empty() && progress.should_continue()) {
    if (timeout != no_timeout && std::chrono::steady_clock::now() > until) break;
    progress.report(pending->share);
    changed_.wait_for(lock, poll_interval);
  }
  pending_.erase(id);
  if (pending->answer) return std::move(*pending->answer);
  if (pending->is_over && pending->is_stopped) throw Stopped();
  if (pending->is_over) refuse(pending->error_message);
  if (!lost_.empty()) refuse(lost_);
  lock.unlock();
  post({"cancel", ",\"request\":" + std::to_string(id)});
  if (!progress.should_continue()) throw Stopped();
  refuse(fmt::format("no answer came from Python within {} s", timeout.count() / 1000));
}

void Connection::post(const ProtocolRequest& request) const {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) return;
  }
  send(request, nullptr);
}

}  // namespace core::attached
