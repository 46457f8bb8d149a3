#include "core/base/draw_op.hpp"
#include "core/base/number.hpp"
#include "core/base/words.hpp"

namespace core::random {
namespace {

using text::number_text;
using text::tuple_text;

std::string listed(const std::vector<std::size_t>& shape) {
  return text::joined(shape, ", ", [](std::size_t extent) { return std::to_string(extent); });
}

std::string dropped_ones(const DrawOp& op) {
  return "nn.Dropout(" + number_text(op.first) + ")(torch.ones(" + listed(op.shape) + "))";
}

/// torch.normal knows whole numbers as something else.
std::string real(double value) {
  const std::string text = number_text(value);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

}  // namespace

std::string torch_words(const DrawOp& op) {
  switch (op.kind) {
    case DrawKind::rand:
      return "torch.rand(" + listed(op.shape) + ")";
    case DrawKind::randn:
      return "torch.randn(" + listed(op.shape) + ")";
    case DrawKind::uniform:
      return "torch.empty(" + listed(op.shape) + ").uniform_(" + number_text(op.first) + ", " +
             number_text(op.second) + ")";
    case DrawKind::normal:
      return "torch.normal(" + real(op.first) + ", " + real(op.second) + ", " + tuple_text(op.shape) + ")";
    case DrawKind::randint:
      return "torch.randint(" + std::to_string(op.low) + ", " + std::to_string(op.high) + ", " +
             tuple_text(op.shape) + ")";
    case DrawKind::linear:
      return "nn.Linear(" + std::to_string(op.shape[1]) + ", " + std::to_string(op.shape[0]) +
             (op.bias ? ")" : ", bias=False)");
    case DrawKind::embedding:
      return "nn.Embedding(" + listed(op.shape) + ")";
    case DrawKind::dropout:
      return dropped_ones(op);
    case DrawKind::dropout_mkl:
      return dropped_ones(op) + "  # a build with MKL before PyTorch 2.7";
  }
  return "";
}

}  // namespace core::random
