#include "tests/core/model/goldens.hpp"

#include <limits>

#include "core/files/tensor_formats.hpp"
#include "core/system/file.hpp"

namespace core::transformer::goldens {

std::shared_ptr<const Transformer> opened(const std::string& path) {
  return open_transformer(path, std::uint64_t{1} << 30);
}

std::vector<std::size_t> ids_of(const Transformer& model, const std::string& text) {
  return tokenizers::ids_of(model.tokenize(text));
}

std::shared_ptr<const LocalPass> run(const Transformer& model, const std::vector<std::size_t>& ids,
                                     const Tools& tools, const std::vector<PassEdit>& edits) {
  return std::static_pointer_cast<const LocalPass>(model.run(ids, edits, tools.context));
}

Golden::Golden(const std::string& path) : file_(formats::open_tensors(path)) {}

arma::mat Golden::matrix(const std::string& name, const std::vector<std::size_t>& leading) const {
  return formats::matrix(file_.read(name, leading));
}

std::vector<std::size_t> Golden::ids() const {
  std::vector<std::size_t> ids;
  for (const double id : file_.read("ids").numbers) ids.push_back(static_cast<std::size_t>(id));
  return ids;
}

std::string text_in(const std::string& path) {
  return system::read_file(path, 1 << 16);
}

double relative_difference(const arma::fmat& got, const arma::mat& expected) {
  if (arma::size(got) != arma::size(expected)) return std::numeric_limits<double>::infinity();
  return arma::abs(arma::conv_to<arma::mat>::from(got) - expected).max() / arma::abs(expected).max();
}

std::vector<std::vector<std::size_t>> top_five(const arma::mat& rows) {
  std::vector<std::vector<std::size_t>> top;
  for (std::size_t i = 0; i < rows.n_rows; ++i) {
    const arma::uvec order = arma::stable_sort_index(arma::rowvec(rows.row(i)), "descend");
    top.emplace_back(order.begin(), order.begin() + 5);
  }
  return top;
}

}  // namespace core::transformer::goldens
