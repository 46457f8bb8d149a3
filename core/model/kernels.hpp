#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/files/families.hpp"

/// Inner loops of whole models on raw float32 numbers, compiled once for each width of vector registers and
/// chosen at run time.
///
/// The sums of a product run over its depth in order, separately for each number of the result. So they do
/// not depend on the number of threads, on the width of the registers, or on whether a text is read at once
/// or token by token; rounding differs only without fused multiply-add, and for Q8_0 with a single row.
namespace core::transformer {

/// How the numbers of a matrix are stored: as in its file, so that none is widened before it is used.
enum class Encoding : unsigned char { f32, f16, bf16, q8_0 };

/// Outputs of a panel. Matrices are stored in panels of 32 outputs: the numbers of one input are adjacent,
/// followed by those of the next input. For Q8_0 this holds within each block of 32 inputs, which begins with
/// the scales of the outputs.
constexpr std::size_t panel_width = 32;
constexpr std::size_t q8_block = 32;

/// Returns the bytes of a panel with `depth` inputs.
constexpr std::size_t panel_bytes(Encoding encoding, std::size_t depth) {
  switch (encoding) {
    case Encoding::f32:
      return depth * panel_width * 4;
    case Encoding::q8_0:
      return depth / q8_block * (panel_width * 2 + q8_block * panel_width);
    default:
      return depth * panel_width * 2;
  }
}

/// Rows times some panels of a matrix, plus a bias.
struct PanelProduct {
  const float* x;  ///< n_rows × depth
  std::size_t x_stride, n_rows;
  const unsigned char* panels;
  Encoding encoding;
  std::size_t depth;
  const float* bias;  ///< one per output of the panels, or nullptr
  float* y;           ///< n_rows × all outputs
  std::size_t y_stride;
  std::size_t begin, end;  ///< range of panels
};

/// The rule of a norm for a row.
struct RowNorm {
  const float *factors, *bias;  ///< bias may be nullptr
  bool is_centered;             ///< LayerNorm, else RMSNorm
  float epsilon;
};

/// Rows are padded: up to a multiple of panel_width numbers may be read and written after them.
struct ModelKernels {
  const char* name;  ///< "AVX-512", "AVX2" or "plain"
  void (*product)(const PanelProduct&);
  /// y = x · panel, n_rows × panel_width; the numbers of successive inputs are panel_stride apart.
  void (*float_panel)(const float* x, std::size_t x_stride, std::size_t n_rows, const float* panel,
                      std::size_t panel_stride, std::size_t depth, float* y, std::size_t y_stride);
  /// Writes at most panel_width rows of depth numbers as a float32 panel; zeros replace missing rows.
  void (*pack_panel)(const float* rows, std::size_t stride, std::size_t n_rows, std::size_t depth,
                     float* panel);
  /// Converts `count` inputs of a panel to float32, from input `from` on.
  void (*widen)(const unsigned char* panel, Encoding encoding, std::size_t from, std::size_t count,
                float* to);
  /// softmax(scale · scores) over begin … end − 1, in place; the others of n become 0.
  void (*softmax)(float* scores, std::size_t begin, std::size_t end, std::size_t n, float scale);
  void (*norm)(const float* x, std::size_t width, const RowNorm& rule, float* y);
  /// activation(x), times factors if they are given.
  void (*activate)(float* x, const float* factors, std::size_t n,
                   formats::checkpoints::Activation activation);
};

/// Returns the kernels that this processor can run, the fastest first; the plain ones are always included.
std::vector<const ModelKernels*> supported_kernels();
/// Returns the fastest of them.
const ModelKernels& kernels();

}  // namespace core::transformer
