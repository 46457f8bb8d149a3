#include "core/importing/arranging.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace core::importing {
namespace {

using formats::Shape;
using formats::Tensor;

constexpr double rounding_of_an_axis = 0.02;  // of float16 and bfloat16

/// The numbers in another order of axes: axis k of the result is axis order[k] of the tensor.
Tensor with_axes(Tensor tensor, const Shape& order) {
  const std::size_t n_axes = order.size();
  Shape strides(n_axes, 1), shape(n_axes), steps(n_axes), at(n_axes, 0);
  for (std::size_t k = n_axes - 1; k-- > 0;) strides[k] = strides[k + 1] * tensor.shape[k + 1];
  for (std::size_t k = 0; k < n_axes; ++k) {
    shape[k] = tensor.shape[order[k]];
    steps[k] = strides[order[k]];
  }
  std::vector<double> numbers;
  numbers.reserve(tensor.numbers.size());
  std::size_t from = 0;
  while (numbers.size() < tensor.numbers.size()) {
    numbers.push_back(tensor.numbers[from]);
    for (std::size_t k = n_axes; k-- > 0;) {
      from += steps[k];
      if (++at[k] < shape[k]) break;
      from -= steps[k] * shape[k];
      at[k] = 0;
    }
  }
  tensor.numbers = std::move(numbers);
  tensor.shape = std::move(shape);
  return tensor;
}

/// Whether all sums over an axis are 1, but for rows of zeros, of which not all are.
bool sums_to_one(const Tensor& tensor, std::size_t axis) {
  std::size_t inner = 1, outer = 1;
  for (std::size_t k = axis + 1; k < tensor.shape.size(); ++k) inner *= tensor.shape[k];
  for (std::size_t k = 0; k < axis; ++k) outer *= tensor.shape[k];
  bool a_row_counts = false;
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < tensor.shape[axis]; ++k)
        sum += tensor.numbers[(o * tensor.shape[axis] + k) * inner + i];
      if (sum == 0) continue;
      if (!(std::abs(sum - 1) <= rounding_of_an_axis)) return false;
      a_row_counts = true;
    }
  return a_row_counts;
}

/// 0, 1, … with one axis moved to another place.
Shape moved(std::size_t n_axes, std::size_t from, std::size_t to) {
  Shape order;
  for (std::size_t k = 0; k < n_axes; ++k)
    if (k != from) order.push_back(k);
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), from);
  return order;
}

}  // namespace

Tensor with_heads_in_front(Tensor weights, Account& account) {
  const std::size_t n = weights.shape.size();
  if (n < 3 || weights.numbers.empty() || sums_to_one(weights, n - 1) || !sums_to_one(weights, n - 2))
    return weights;
  if (weights.shape[n - 3] != weights.shape[n - 2] && weights.shape[n - 2] == weights.shape[n - 1])
    return weights;  // [heads, T, T] whose columns sum to 1: the softmax went the wrong way
  account.assumed.push_back("that the last axis of " + tensor_words(weights) +
                            " counts heads, as the one before it sums to 1");
  return with_axes(std::move(weights), moved(n, n - 1, n - 3));
}

std::optional<std::size_t> heads_by_name(const formats::TensorInfo& info, Account& account) {
  const std::size_t n = info.shape.size();
  if (n != 3 && n != 4) return std::nullopt;
  // TransformerLens has heads after tokens.
  for (const char* hook : {"hook_q", "hook_k", "hook_v"})
    if (info.name.ends_with(hook)) return info.shape[n - 2];
  if (info.shape[n - 3] == 1) return std::nullopt;  // one head, which is said
  account.assumed.push_back(tensor_words(info) + " is [" + (n == 4 ? "sequences, " : "") +
                            "heads, tokens, columns] (--heads would tell)");
  return std::nullopt;
}

Tensor with_heads(Tensor tensor, std::optional<std::size_t> n_heads, const std::string& place,
                  Account& account) {
  const std::size_t n = tensor.shape.size();
  if (!n_heads || n < 3 || n > 4 || tensor.numbers.empty() || tensor.shape[n - 3] == *n_heads) return tensor;
  const std::string words = tensor_words(tensor);
  if (n == 3 && tensor.shape[0] > 1 && tensor.shape[1] == *n_heads && tensor.shape[2] % *n_heads != 0) {
    account.assumed.push_back(words + " is [tokens, heads, columns]");
    return with_axes(std::move(tensor), {1, 0, 2});
  }
  if (n == 3 && tensor.shape[2] % *n_heads == 0) {
    const Shape& s = tensor.shape;
    tensor.shape = {s[0], s[1], *n_heads, s[2] / *n_heads};
    account.assumed.push_back(words + " is [sequences, tokens, columns of " + std::to_string(*n_heads) +
                              " heads]");
    return with_axes(std::move(tensor), {0, 2, 1, 3});
  }
  if (n == 4 && tensor.shape[2] == *n_heads) {
    account.assumed.push_back(words + " is [sequences, tokens, heads, columns]");
    return with_axes(std::move(tensor), {0, 2, 1, 3});
  }
  if (n == 4 && tensor.shape[1] > 0 && *n_heads % tensor.shape[1] == 0) return tensor;  // grouped
  throw Error(place + "expected " + std::to_string(*n_heads) + " heads, got " +
              formats::shape_text(tensor.shape));
}

}  // namespace core::importing
