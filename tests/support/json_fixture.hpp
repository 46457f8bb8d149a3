#pragma once

#include <armadillo>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Contents of the reference files under tests/fixtures as plain values; a missing file or key throws.
namespace support {

/// Numbers in row-major order, the last index fastest.
struct Tensor {
  std::vector<std::size_t> shape;
  std::vector<double> data;
  double absolute = 0, relative = 0;  ///< tolerances
  /// Returns the last two dimensions at the given leading indices; a tensor of one dimension is one row.
  arma::mat matrix(const std::vector<std::size_t>& leading = {}) const;
};

/// Parts and sums of a tensor that is too large to store.
struct Sample {
  std::vector<std::size_t> shape;
  std::vector<double> first, last;
  double sum = 0, sum_of_squares = 0, tolerance = 0, sum_tolerance = 0;
};

struct Config {
  std::size_t n_sequences = 0, n_tokens = 0, d_in = 0, d_out = 0, n_heads = 0;
  bool projections = false, qkv_bias = false, causal = false, output_projection = false, output_bias = false;
  double scale = 1, dropout_rate = 0;
  std::string mask_mode, merge;
};

/// A file of schema attention-fixture-1, attention-sampled-1 or tensor-demo-1.
struct Fixture {
  std::string schema;
  Config config;  ///< not in demos
  std::map<std::string, Tensor> tensors, printed;
  std::map<std::string, Sample> samples;
};

/// One op of the generator: all its numbers, or a sample of them, or the positions that dropout kept.
struct Draws {
  std::string name, op;
  std::vector<std::size_t> shape;
  std::size_t n_draws = 0;
  std::vector<double> data;
  Sample sample;
  std::string kept_bits;
  std::size_t n_kept = 0, checksum = 0;
  double kept_value = 0;
};

struct GeneratorFile {
  std::uint64_t seed = 0;
  std::vector<std::uint32_t> first_outputs;
  std::vector<Draws> ops;
  std::map<std::string, std::vector<Draws>> sequences;
};

/// Weights of a text query over text keys.
struct TextDemo {
  std::vector<std::string> keys;
  std::string query;
  std::vector<double> weights;
};

/// One query computed token by token.
struct Walkthrough {
  std::size_t query = 0;
  double dot_with_first = 0;
  Tensor scores, weights, context;
  std::vector<double> printed_scores;
};

Fixture read_fixture(const std::string& id);
Walkthrough read_walkthrough(const std::string& id);
TextDemo read_text_demo(const std::string& id);
GeneratorFile read_generator_file(const std::string& name);

/// Returns the schema of every .json file of tests/fixtures, by ID.
std::map<std::string, std::string> fixture_schemas();

}  // namespace support
