#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/bits.hpp"
#include "core/base/twister.hpp"

namespace core::random {

/// The numbers of PyTorch's CPU generator after manual_seed(seed), op after op, bit for bit (float32, AVX2
/// builds).
///
/// Rules measured against PyTorch 1.13; every op takes its numbers from where the op before it left off.
class Generator {
 public:
  explicit Generator(std::uint64_t seed);

  /// The next output of mt19937.
  std::uint32_t next_u32();
  /// Two outputs, the first in the high half.
  std::uint64_t next_u64();

  /// torch.rand: n numbers in [0, 1).
  std::vector<float> rand(std::size_t n);
  /// tensor.uniform_(low, high): n numbers in [low, high).
  std::vector<float> uniform(std::size_t n, double low, double high);
  /// torch.randn, torch.normal and nn.Embedding: n numbers; fewer than 16 are drawn by another rule than
  /// more.
  std::vector<float> normal(std::size_t n, double mean = 0, double standard_deviation = 1);
  /// torch.randint: n whole numbers in [low, high); low must be below high.
  std::vector<std::int64_t> randint(std::size_t n, std::int64_t low, std::int64_t high);
  /// The first values of nn.Linear(d_in, d_out): weight as PyTorch holds it, d_out × d_in, row after row.
  std::vector<float> linear_weight(std::size_t d_in, std::size_t d_out);
  /// The first values of the bias of nn.Linear(d_in, d_out), drawn after its weight: d_out numbers.
  std::vector<float> linear_bias(std::size_t d_in, std::size_t d_out);
  /// Which of n numbers nn.Dropout(rate) keeps, in the mt19937 stream; rates 0 and 1 take nothing from it.
  Bits dropout_kept(std::size_t n, double rate);
  /// The same in the stream of official x86 builds with MKL before PyTorch 2.7.
  Bits dropout_kept_mkl(std::size_t n, double rate);

 private:
  float unit_float();
  double unit_double();
  double normal_value(double mean, double standard_deviation);

  Twister twister_;
  std::optional<double> cached_normal_;
};

}  // namespace core::random
