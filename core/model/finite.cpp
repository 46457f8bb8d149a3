#include "core/model/finite.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/model/reading.hpp"

namespace core::transformer {
namespace {

/// "TENSOR" or "TENSOR, row R" where the first of these has what is no number, or "finite weights".
std::string origin_among(const formats::TensorFile& file, const std::vector<std::string>& names,
                         const Token& progress) {
  constexpr std::size_t rows_at_once = 1024;
  for (const std::string& name : names) {
    const formats::Shape& shape = file.info(name).shape;
    const std::size_t n_rows = shape.size() < 2 ? 1 : shape[0];
    for (std::size_t first = 0; first < n_rows; first += rows_at_once) {
      const arma::fmat rows =
          read_rows(file, name, first, std::min(rows_at_once, n_rows - first), progress);  // a row a column
      if (rows.is_finite()) continue;
      std::size_t row = 0;
      while (rows.col(row).is_finite()) ++row;
      return "in " + name + (n_rows == 1 ? "" : ", row " + std::to_string(first + row));
    }
  }
  return "of finite weights";
}

[[noreturn]] void refuse_numbers(const Transformer& model, const std::string& place,
                                 const std::vector<std::string>& names, const Token& progress) {
  const formats::TensorFile& file = model.weights->file();
  throw Error(file.place() + "numbers that are not finite begin in " + place + ", " +
              origin_among(file, names, progress));
}

}  // namespace

void require_finite(const Transformer& model, const Pass& pass, const Token& progress) {
  if (!pass.first_not_finite) return;
  const std::size_t layer = *pass.first_not_finite;
  if (!pass.layers[layer]->residual.is_finite())
    refuse_numbers(model, "the embeddings", model.weights->tensors_of_embeddings(), progress);
  refuse_numbers(model, "layer " + std::to_string(layer), model.weights->tensors_of(layer), progress);
}

void require_finite_scores(const Transformer& model, const arma::fmat& logits, const Token& progress) {
  if (!logits.is_finite())
    refuse_numbers(model, "what predicts tokens", model.weights->tensors_of_prediction(), progress);
}

}  // namespace core::transformer
