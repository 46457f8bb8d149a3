#include "core/editing/presets.hpp"

#include <algorithm>
#include <array>

#include "core/random/generator.hpp"

namespace core::editing {
namespace {

using attention::Linear;
using attention::Model;
using attention::Projections;
using attention::Sequence;

/// Row-major float32 numbers, as PyTorch holds them, transposed into d_in × d_out.
arma::mat transposed(const std::vector<float>& numbers, std::size_t d_in, std::size_t d_out) {
  arma::mat m(d_in, d_out);
  std::copy(numbers.begin(), numbers.end(), m.begin());
  return m;
}

Linear linear(random::Generator& g, std::size_t d_in, std::size_t d_out, bool bias) {
  Linear l;
  l.weight = transposed(g.linear_weight(d_in, d_out), d_in, d_out);
  if (bias) l.bias = transposed(g.linear_bias(d_in, d_out), 1, d_out);
  return l;
}

/// "Your journey starts with one step", each number rounded to float32 as the notebooks hold it.
Sequence your_journey() {
  return {{"Your", "journey", "starts", "with", "one", "step"},
          arma::mat(arma::conv_to<arma::mat>::from(arma::fmat{{0.43f, 0.15f, 0.89f},
                                                              {0.55f, 0.87f, 0.66f},
                                                              {0.57f, 0.85f, 0.64f},
                                                              {0.22f, 0.58f, 0.33f},
                                                              {0.77f, 0.25f, 0.10f},
                                                              {0.05f, 0.80f, 0.55f}}))};
}

Model multi_head() {
  Model m;
  m.sequences = {your_journey()};
  random::Generator g(123);
  Projections p;
  p.query = linear(g, 3, 4, false);
  p.key = linear(g, 3, 4, false);
  p.value = linear(g, 3, 4, false);
  p.output = linear(g, 4, 4, true);
  m.projections = p;
  m.n_heads = 2;
  return m;
}

constexpr std::array table{
    Preset{"multi-head", "Your journey · two heads", "two heads of two columns each, with an output projection, at seed 123", multi_head},
};

}  // namespace

std::span<const Preset> presets() { return table; }

const Preset* find_preset(std::string_view name) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const Preset& p) { return name == p.name; });
  return row == table.end() ? nullptr : &*row;
}

const Preset& default_preset() { return *find_preset("multi-head"); }

}  // namespace core::editing
