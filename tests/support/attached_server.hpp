#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/model/connection.hpp"
#include "core/model/transformer.hpp"
#include "tests/support/temporary_directory.hpp"

namespace support {

/// Server of attnscope's own model by docs/protocol.md, as attnscope.attach() serves one of PyTorch.
class AttachedServer {
 public:
  explicit AttachedServer(const std::string& model);
  ~AttachedServer();

  std::string address() const { return directory_ / "model"; }
  const core::transformer::Transformer& model() const { return *model_; }
  /// Tells all clients that the parameters of the model have changed.
  void change_parameters();
  /// Closes every connection and accepts no more.
  void end();
  /// Returns the operations requested since the last call.
  std::vector<std::string> take_operations();
  std::size_t n_passes() const { return n_passes_; }

  std::string token = "right";
  std::string not_rebuilt;  ///< why layers have no projections
  std::atomic<int> pass_ms = 0, maps_ms = 0;
  /// Changes the bytes of a response.
  std::function<std::string(const std::string& operation, std::string bytes)> distort;

 private:
  struct Client {
    explicit Client(core::system::Descriptor connected) : socket(std::move(connected)) {}
    core::system::Socket socket;
    std::mutex sending;
    std::map<std::size_t, core::transformer::PassRef> passes;
    std::jthread thread;
  };
  struct Answer {
    std::string fields;
    std::vector<core::attached::Array> arrays;
  };
  void accept();
  void serve(Client& client);
  std::string greeting() const;
  Answer answer(Client& client, const core::attached::ProtocolFrame& request);
  Answer told(const std::vector<std::size_t>& ids) const;
  Answer run(Client& client, const core::attached::ProtocolFrame& request);
  Answer maps(const core::transformer::Pass& pass, std::size_t layer, const core::formats::Json& request);
  Answer layer(const core::transformer::Pass& pass, std::size_t layer);
  Answer parameters(std::size_t layer);
  std::uint64_t number_of(const std::shared_ptr<const void>& computation_id);

  TemporaryDirectory directory_;
  std::shared_ptr<const core::transformer::Transformer> model_;
  core::ThreadPool pool_{1};
  core::StopToken progress_;
  core::transformer::CallContext context_{pool_, progress_};
  std::mutex mutex_;  // guards the members below
  std::map<std::shared_ptr<const void>, std::uint64_t> numbers_;
  std::vector<std::string> operations_;
  std::list<Client> clients_;
  std::atomic<std::size_t> n_passes_ = 0, state_ = 1;
  core::system::Descriptor listener_;
  std::jthread acceptor_;
};

}  // namespace support
