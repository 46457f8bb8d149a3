#include <array>
#include <charconv>

#include "core/random/draw_op.hpp"

namespace core::random {
namespace {

std::string listed(const std::vector<std::size_t>& shape) {
  std::string words;
  for (const std::size_t extent : shape) words += (words.empty() ? "" : ", ") + std::to_string(extent);
  return words;
}

/// A shape in parentheses; Python's tuple of one has a comma.
std::string tuple(const std::vector<std::size_t>& shape) {
  return "(" + listed(shape) + (shape.size() == 1 ? ",)" : ")");
}

std::string shortest(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string dropped_ones(const DrawOp& op) {
  return "nn.Dropout(" + shortest(op.first) + ")(torch.ones(" + listed(op.shape) + "))";
}

/// torch.normal knows whole numbers as something else.
std::string real(double value) {
  const std::string text = shortest(value);
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
      return "torch.empty(" + listed(op.shape) + ").uniform_(" + shortest(op.first) + ", " +
             shortest(op.second) + ")";
    case DrawKind::normal:
      return "torch.normal(" + real(op.first) + ", " + real(op.second) + ", " + tuple(op.shape) + ")";
    case DrawKind::randint:
      return "torch.randint(" + std::to_string(op.low) + ", " + std::to_string(op.high) + ", " +
             tuple(op.shape) + ")";
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
