#include "app/session/filling.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/tensor_formats.hpp"

namespace app {
namespace {

namespace editing = core::editing;
using core::attention::Model;
using core::text::shape_text;

/// The only sequence of a model with other numbers, and with as many tokens as these have rows.
editing::Edit other_tokens(const Model& model, const NumbersInFile& file) {
  Model next = editing::apply(model, editing::SetTokenCount{file.numbers.n_rows});
  if (!file.row_names.empty()) next.sequences.front().tokens = file.row_names;
  next.sequences.front().embeddings = file.numbers;
  return editing::ReplaceModel{std::move(next), "embeddings from " + file.path.filename().string()};
}

}  // namespace

NumbersInFile numbers_in_file(const std::filesystem::path& path, const core::Token& progress) {
  const core::formats::TensorFile file = core::formats::open_tensors(path, progress);
  if (file.tensors().size() != 1)
    throw core::Error(path.string() + ": expected one matrix, got " + std::to_string(file.tensors().size()) +
                      " tensors");
  const core::formats::Tensor tensor = file.read(file.tensors().front().name, {}, progress);
  return {path, core::formats::matrix(tensor), tensor.row_labels};
}

editing::Edit edit_with(const NumbersInFile& file, const Model& model, editing::MatrixPlace place) {
  const core::attention::SharedMatrix* old = editing::find_matrix(model, place);
  if (!old) throw core::Error(file.path.string() + ": the model has no matrix that it could fill");
  const bool takes_tokens = place.name == editing::MatrixName::embeddings && model.sequences.size() == 1;
  if (file.numbers.n_cols == old->n_cols()) {
    if (takes_tokens) return other_tokens(model, file);
    if (file.numbers.n_rows == old->n_rows()) return editing::SetBlock{place, 0, 0, file.numbers};
  }
  const std::string expected =
      takes_tokens ? std::to_string(old->n_cols()) + " columns" : shape_text(old->n_rows(), old->n_cols());
  throw core::Error(file.path.string() + ": expected " + expected + " for this matrix, got " +
                    shape_text(file.numbers.n_rows, file.numbers.n_cols));
}

}  // namespace app
