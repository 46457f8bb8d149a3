#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/random.hpp"

namespace core::random {

enum class RandomOpKind { rand, randn, uniform, normal, randint, linear, embedding, dropout, dropout_mkl };

/// One PyTorch op that consumes random numbers, as written: "randint(0,10,3,2)".
struct RandomOp {
  RandomOpKind kind{};
  double first = 0, second = 0;    ///< low and high of uniform, mean and deviation of normal, rate of dropout
  std::int64_t low = 0, high = 0;  ///< of randint
  std::vector<std::size_t> shape;  ///< of the tensor; d_out × d_in of a linear layer
  bool bias = false;               ///< of a linear layer
  std::size_t size() const;        ///< how many numbers it yields, bias included
};

/// Numbers as printed: one row per line.
struct SampledMatrix {
  std::size_t rows = 0, columns = 0;
  std::variant<std::vector<float>, std::vector<std::int64_t>> numbers;  ///< row-major
};

/// Most numbers that write_samples() yields at once.
constexpr std::size_t max_sampled_numbers = 100'000'000;

/// Reads one op: rand, randn(shape…); uniform(low,high,shape…); normal(mean,deviation,shape…);
/// randint(low,high,shape…); Linear(in,out) or Linear(in,out,bias); Embedding(rows,columns); Dropout and
/// DropoutMKL(rate,shape…).
///
/// Throws core::Error naming the op, the argument and what was expected.
RandomOp parse_random_op(std::string_view text);

/// Reads a list of ops separated by spaces: "rand(6,3) Linear(3,3)"; an empty text has no ops.
///
/// Throws core::Error as parse_random_op() does, or if the ops need more than `max_numbers` numbers together.
std::vector<RandomOp> parse_random_ops(std::string_view texts, std::size_t max_numbers = max_sampled_numbers);

/// Samples the op's numbers: one block, or weight and bias of a linear layer.
///
/// A one-dimensional tensor becomes one row; one of more than two dimensions, rows of its last.
std::vector<SampledMatrix> run(Generator& generator, const RandomOp& op);

/// Writes bare numbers as CSV, float32 values as the shortest decimals that read back to them.
void write_block(std::ostream& out, const SampledMatrix& block);

/// Returns the line of Python that samples the same numbers with torch: "torch.rand(6, 3)".
std::string torch_line(const RandomOp& op);

/// Runs all ops in order after manual_seed(seed) and writes their blocks, separated by empty lines.
///
/// Throws core::Error before writing anything if an op cannot be read or the ops need too many numbers.
void write_samples(std::uint64_t seed, const std::vector<std::string>& ops, std::ostream& out);

}  // namespace core::random
