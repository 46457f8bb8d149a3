#pragma once

#include <armadillo>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/token.hpp"
#include "core/files/json.hpp"
#include "core/files/tensor.hpp"
#include "core/system/socket.hpp"

/// Frames exchanged with a Python process that has a model: docs/protocol.md.
namespace core::attached {

/// An array of a frame, as it is sent.
struct Array {
  std::string name, type;  ///< type: "F32", as in a safetensors file
  std::vector<std::size_t> shape;
  std::string bytes;
};
Array array_of(std::string name, const arma::fmat& numbers);
Array array_of(std::string name, const std::vector<std::size_t>& ids);

/// Returns the bytes of a frame; header is a JSON object.
std::string frame_bytes(const std::string& header, const std::vector<Array>& arrays = {});

/// A received frame.
class ProtocolFrame {
 public:
  /// Waits for a frame. Once one has begun, a silence of 30 s is an error. Throws core::Error, without the
  /// address, when the connection ends or the bytes are no frame; memory grows with the bytes that arrive,
  /// not with an announced length.
  static ProtocolFrame receive(const system::Socket& socket, std::chrono::milliseconds timeout);

  const formats::Json& header() const { return header_; }
  bool has(const std::string& name) const { return arrays_.contains(name); }
  const std::vector<std::size_t>& shape(const std::string& name) const;
  /// Returns the numbers of an array, row after row: float, double, std::int64_t or std::uint8_t. Throws
  /// core::Error when it is missing, or of another type or shape.
  template <class Number>
  std::vector<Number> numbers(const std::string& name, const std::vector<std::size_t>& shape) const;
  /// Returns n matrices of finite numbers; matrix() returns one.
  std::vector<arma::fmat> matrices(const std::string& name, std::size_t n, std::size_t n_rows,
                                   std::size_t n_cols) const;
  arma::fmat matrix(const std::string& name, std::size_t n_rows, std::size_t n_cols) const;

 private:
  struct ReceivedArray {
    formats::Dtype dtype;
    std::vector<std::size_t> shape;
    std::string_view bytes;  // in payload_
  };
  explicit ProtocolFrame(formats::Json header) : header_(std::move(header)) {}
  void read_arrays();
  const ReceivedArray& part(const std::string& name) const;

  formats::Json header_;
  std::shared_ptr<const std::string> payload_;
  std::map<std::string, ReceivedArray> arrays_;
};

/// A request to the other process; fields: further members of the JSON object, each after a comma.
struct ProtocolRequest {
  std::string op;
  std::string fields = {};
  std::vector<Array> arrays = {};
};

/// A connection to a Python process in which attnscope.attach() serves a model. Safe between threads.
class Connection {
 public:
  /// Connects and sends the token. Throws core::Error, "ADDRESS: …".
  Connection(std::string address, const std::string& token);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& address() const { return address_; }
  /// Returns the header of the server's greeting, which describes its model.
  const formats::Json& greeting() const { return greeting_->header(); }

  /// Sends a request and waits for its answer, reporting its progress.
  ///
  /// Throws core::Error, one line that names the address, when it is refused, when no answer came within
  /// `timeout` (0 ms: no limit), or when the connection is lost, from then on always; Stopped once it is to
  /// stop, which cancels the request.
  ProtocolFrame call(const ProtocolRequest& request, const StopToken& progress,
                     std::chrono::milliseconds timeout) const;
  /// Returns the state of the model's parameters as last reported: a number that changes with them.
  std::uint64_t state() const { return state_; }
  /// Returns why the connection was lost, a line that names the address, or "".
  std::string lost() const;
  /// Sends a request without waiting for its answer; does nothing when the connection is lost.
  void post(const ProtocolRequest& request) const;

 private:
  struct PendingCall {
    std::optional<ProtocolFrame> answer;
    std::string error_message;
    double share = 0;
    bool is_over = false, is_stopped = false;
  };

  std::uint64_t send(const ProtocolRequest& request, const std::shared_ptr<PendingCall>& pending) const;
  void read();
  void handle_frame(ProtocolFrame frame);
  void lose(const std::string& why) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string address_;
  std::optional<ProtocolFrame> greeting_;
  system::Socket socket_;
  mutable std::mutex sending_, mutex_;
  mutable std::condition_variable changed_;
  mutable std::atomic<std::uint64_t> last_id_ = 0, state_ = 0;
  mutable std::map<std::uint64_t, std::shared_ptr<PendingCall>> pending_;  // guarded by mutex_
  mutable std::string lost_;                                               // why, or ""; guarded by mutex_
  std::jthread reader_;
};

}  // namespace core::attached
