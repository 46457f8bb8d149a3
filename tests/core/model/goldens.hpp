#pragma once

#include <armadillo>
#include <string>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/files/tensor.hpp"
#include "core/model/transformer.hpp"

/// Reference results of the library that wrote a model.
namespace core::transformer::goldens {

inline const std::string folder = FIXTURES "/transformer/";
inline const std::string tiny_gpt = FIXTURES "/../../assets/examples/tiny_gpt";

/// Thread pool and cancellation token of a test.
struct Tools {
  ThreadPool pool{2};
  StopToken token;
  CallContext context{pool, token};
};

std::shared_ptr<const Transformer> opened(const std::string& path);

std::vector<std::size_t> ids_of(const Transformer& model, const std::string& text);

/// Runs a pass of the built-in engine.
std::shared_ptr<const LocalPass> run(const Transformer& model, const std::vector<std::size_t>& ids,
                                     const Tools& tools, const std::vector<PassEdit>& edits = {});

/// Reference numbers of a model's golden.npz, or of another file.
class Golden {
 public:
  explicit Golden(const std::string& path);
  /// Returns the matrix at leading indices of a tensor.
  arma::mat matrix(const std::string& name, const std::vector<std::size_t>& leading = {}) const;
  std::vector<std::size_t> ids() const;
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }

 private:
  formats::TensorFile file_;
};

std::string text_in(const std::string& path);

/// Returns the largest difference divided by the largest expected magnitude.
double relative_difference(const arma::fmat& got, const arma::mat& expected);

/// Returns the columns of the five largest numbers of each row.
std::vector<std::vector<std::size_t>> top_five(const arma::mat& rows);

}  // namespace core::transformer::goldens
