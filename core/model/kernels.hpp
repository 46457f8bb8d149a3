#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/files/families.hpp"

/// Inner loops of whole models on bare float32 numbers, compiled once for each width of vector registers and
/// chosen when the program runs.
///
/// The sums of a product run over its depth in order, each number of the result for itself. So they do not
/// depend on the number of threads, on the width of the registers, or on whether a text is read at once or
/// token by token; only without fused multiply-add are they rounded otherwise, and of Q8_0 for a row alone.
namespace core::transformer {

/// How the numbers of a matrix are kept: as its file has them, so that none is widened before it is used.
enum class Encoding : unsigned char { f32, f16, bf16, q8_0 };

/// Outputs of a panel. Panels are how matrices are kept: of 32 outputs the numbers that belong to one input
/// lie side by side, and those of the next input behind them. Of Q8_0 that holds for each block of 32 inputs,
/// which begins with the scales of the outputs.
constexpr std::size_t panel_width = 32;
constexpr std::size_t q8_block = 32;

/// Bytes of a panel of so many inputs.
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
  const float* bias;  ///< as many as the panels have outputs, or nullptr
  float* y;           ///< n_rows × all outputs
  std::size_t y_stride;
  std::size_t begin, end;  ///< of the panels
};

/// What a norm does to a row.
struct NormOfRow {
  const float *factors, *bias;  ///< bias may be nullptr
  bool is_centered;             ///< LayerNorm, else RMSNorm
  float epsilon;
};

/// Rows are padded: up to a multiple of panel_width numbers may be read and written behind them.
struct Kernels {
  const char* name;  ///< "AVX-512", "AVX2" or "plain"
  void (*product)(const PanelProduct&);
  /// y = x · panel, n_rows × panel_width; the numbers of one input after those of another, panel_stride
  /// apart.
  void (*float_panel)(const float* x, std::size_t x_stride, std::size_t n_rows, const float* panel,
                      std::size_t panel_stride, std::size_t depth, float* y, std::size_t y_stride);
  /// A float32 panel of at most panel_width rows of depth numbers; zeros where there are no more rows.
  void (*make_panel)(const float* rows, std::size_t stride, std::size_t n_rows, std::size_t depth,
                     float* panel);
  /// The numbers of one encoding as float32.
  void (*widen)(const unsigned char* panel, Encoding encoding, std::size_t from, std::size_t count,
                float* to);
  /// softmax(scale · scores) over begin … end − 1, in place; the others of n become 0.
  void (*softmax)(float* scores, std::size_t begin, std::size_t end, std::size_t n, float scale);
  void (*norm)(const float* x, std::size_t width, const NormOfRow& rule, float* y);
  /// activation(x), times other numbers where they are given.
  void (*activate)(float* x, const float* factors, std::size_t n,
                   formats::checkpoints::Activation activation);
};

/// Those that this processor can run, the fastest first; the plain ones are always among them.
std::vector<const Kernels*> kernels_of_this_processor();
/// The fastest of them.
const Kernels& kernels();

}  // namespace core::transformer
