#include "core/files/planned.hpp"

#include <bit>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number.hpp"

namespace core::formats::checkpoints {
namespace {

using text::number_text;

arma::mat row_of(const TensorFile& file, const std::string& name, std::size_t n, const char* meaning,
                 const Token& progress) {
  const Tensor tensor = file.read(name, {}, progress);
  if (tensor.shape != Shape{n})
    throw Error(file.place() + name + ": expected " + std::to_string(n) + " numbers, one for each " +
                meaning + ", got " + shape_text(tensor.shape));
  return arma::mat(tensor.numbers.data(), 1, n);
}

attention::HeadNorm read_norm(const TensorFile& file, const PlannedNorm& planned, std::size_t d_head,
                              const Token& progress) {
  const double more = planned.plus_one ? 1 : 0;
  const auto factors = [&](const std::string& name) {
    return arma::mat(row_of(file, name, d_head, "column of a head", progress) + more);
  };
  return {attention::NormRule::rms, factors(planned.query), factors(planned.key), planned.epsilon};
}

positions::Rotary read_rotary(const TensorFile& file, const PlannedRotary& planned, std::size_t d_head) {
  positions::Rotary rotary = planned.rotary;
  if (!rotary.dimensions && planned.fraction != 1)
    rotary.dimensions = static_cast<std::size_t>(static_cast<double>(d_head) * planned.fraction);
  if (rotary.dimensions == d_head) rotary.dimensions.reset();
  const std::size_t turned = rotary.dimensions.value_or(d_head);
  if (turned < 2 || turned > d_head || turned % 2 != 0)
    throw Error(file.place() + "expected an even number of columns that turn, from 2 to " +
                std::to_string(d_head) + " of a head, got " + std::to_string(turned));
  return rotary;
}

/// MPT: exponents of the next power of two, of which every other one comes first.
arma::mat slopes_of_mpt(std::size_t n_heads, double largest) {
  const std::size_t power = std::bit_ceil(n_heads);
  const auto slope = [&](std::size_t k) { return std::exp2(-largest * double(k + 1) / double(power)); };
  arma::mat slopes(1, n_heads);
  for (std::size_t h = 0; h < n_heads; ++h)
    slopes[h] = power == n_heads ? slope(h) : slope(h < power / 2 ? 2 * h + 1 : 2 * (h - power / 2));
  return slopes;
}

positions::Alibi read_alibi(const PlannedAlibi& planned, std::size_t n_heads, std::size_t d_head) {
  if (planned.slopes == Slopes::bloom) return {};
  if (planned.slopes == Slopes::mpt) return {slopes_of_mpt(n_heads, planned.largest)};
  const std::vector<double> slopes = positions::default_slopes(n_heads);
  return {arma::mat(arma::rowvec(slopes) / std::sqrt(static_cast<double>(d_head)))};
}

positions::Relative read_relative(const TensorFile& file, const PlannedRelative& planned, std::size_t n_heads,
                                  const Token& progress) {
  const arma::mat table = matrix(file.read(planned.table, {}, progress));
  if (table.n_cols != n_heads)
    throw Error(file.place() + planned.table + ": expected a column for each of " + std::to_string(n_heads) +
                " heads, got " + std::to_string(table.n_rows) + " × " + std::to_string(table.n_cols));
  return {arma::mat(table.t()), planned.max_distance, planned.bidirectional};
}

/// "500000" and not "5e+05".
std::string base_text(double base) {
  constexpr double largest = 1e15;
  const bool is_whole = std::trunc(base) == base && base < largest;
  return is_whole ? std::to_string(static_cast<long long>(base)) : number_text(base);
}

}  // namespace

std::vector<std::string> tensors_of(const Planned& planned) {
  std::vector<std::string> names;
  if (planned.relative) names.push_back(planned.relative->table);
  if (planned.norm) names.insert(names.end(), {planned.norm->query, planned.norm->key});
  if (!planned.sink.empty()) names.push_back(planned.sink);
  return names;
}

std::string words_of(const PlannedRotary& planned) {
  const positions::Rotary& rotary = planned.rotary;
  std::string words = "rotary positions, base " + base_text(rotary.base) + ", pairs of " +
                      (rotary.pairs == positions::Pairs::halves ? "halves" : "neighbours");
  if (rotary.dimensions)
    words += ", " + std::to_string(*rotary.dimensions) + " columns of a head";
  else if (planned.fraction != 1)
    words += ", " + number_text(planned.fraction) + " of the columns";
  const positions::Scaling& scaling = rotary.scaling;
  if (scaling.rule != positions::ScalingRule::none)
    words += std::string(scaling.rule == positions::ScalingRule::linear ? ", linear" : ", Llama 3's") +
             " scaling by " + number_text(scaling.factor);
  return words;
}

std::string words_of(const PlannedAlibi& alibi) {
  return std::string("ALiBi's biases by distance") +
         (alibi.slopes == Slopes::scaled ? ", scaled as the scores are" : "");
}

std::string words_of(const PlannedRelative& relative) {
  return "relative position biases of " + relative.table + ", distances up to " +
         std::to_string(relative.max_distance) +
         (relative.bidirectional ? ", both ways" : ", of earlier keys");
}

std::string words_of(const PlannedNorm& norm) {
  return std::string("norms of each head's queries and keys (root of the mean square") +
         (norm.plus_one ? ", factors 1 + w)" : ")");
}

attention::Additions read_additions(const TensorFile& file, const Planned& planned, std::size_t n_heads,
                                    std::size_t d_head, const Token& progress) {
  attention::Additions additions;
  if (planned.norm) additions.normalise = read_norm(file, *planned.norm, d_head, progress);
  if (planned.rotary) additions.positions.rotary = read_rotary(file, *planned.rotary, d_head);
  if (planned.alibi) additions.positions.alibi = read_alibi(*planned.alibi, n_heads, d_head);
  if (planned.relative)
    additions.positions.relative = read_relative(file, *planned.relative, n_heads, progress);
  additions.score_cap = planned.cap;
  if (!planned.sink.empty()) additions.sink = row_of(file, planned.sink, n_heads, "head", progress);
  return additions;
}

}  // namespace core::formats::checkpoints
