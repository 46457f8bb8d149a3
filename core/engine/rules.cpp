#include "core/engine/rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "core/base/positions.hpp"
#include "core/graph/visible.hpp"

namespace core::attention::fast {

UnmaskedKeys::UnmaskedKeys(const Model& model, std::size_t sequence) {
  const std::size_t n = model.n_tokens(), n_keys = model.n_keys();
  const Mask& mask = model.mask;
  first_keys_.assign(n, 0);
  ends_.assign(n, n_keys);
  const bool is_plain = !mask.has_other_rules() && n == n_keys;
  std::optional<SequenceMask> sequence_mask;  // for rows that must be checked key by key
  auto cell = mask.cells.begin();             // sorted by row
  for (std::size_t row = 0; row < n; ++row) {
    const auto first_cell = cell;
    while (cell != mask.cells.end() && cell->row == row) ++cell;
    const bool by_hand = cell != first_cell;
    if (is_plain && !by_hand) {
      if (mask.causal) ends_[row] = row + 1;
    } else if (!by_hand && mask.documents.empty()) {
      set_range(model, sequence, row);
    } else {
      if (!sequence_mask) sequence_mask.emplace(model, sequence);
      std::vector<char> visible(n_keys);
      for (std::size_t j = 0; j < n_keys; ++j) visible[j] = sequence_mask->by_rules(row, j).visible;
      for (auto each = first_cell; each != cell; ++each) visible[each->column] = each->visible;
      set_keys(row, visible);
    }
  }
}

/// Sets a row by the causal rule, sliding window, prefix and padding mask, without checking every key.
void UnmaskedKeys::set_range(const Model& model, std::size_t sequence, std::size_t row) {
  const Mask& mask = model.mask;
  const auto n_keys = static_cast<std::int64_t>(model.n_keys());
  const std::int64_t place = aligned_query_position(model, row);
  std::int64_t first = 0, end = n_keys;
  if (mask.causal) end = std::min(end, place + 1);
  const auto& [left, right] = mask.window;
  if (left) first = std::max(first, place - static_cast<std::int64_t>(*left));
  if (right) end = std::min(end, place + static_cast<std::int64_t>(*right) + 1);
  const auto prefix = static_cast<std::int64_t>(mask.prefix);
  if (end <= first) first = end = prefix;  // only the prefix
  std::vector<std::uint32_t> masked_keys;
  const auto mask_key = [&](std::int64_t key) { masked_keys.push_back(static_cast<std::uint32_t>(key)); };
  if (prefix > 0) {
    for (std::int64_t key = prefix; key < first; ++key) mask_key(key);
    first = 0, end = std::max(end, prefix);
  }
  if (sequence < mask.hidden_keys.size()) {
    for (const std::size_t key : mask.hidden_keys[sequence])
      if (const auto k = static_cast<std::int64_t>(key); k >= first && k < end) mask_key(k);
    std::sort(masked_keys.begin(), masked_keys.end());
    masked_keys.erase(std::unique(masked_keys.begin(), masked_keys.end()), masked_keys.end());
    while (!masked_keys.empty() && masked_keys.back() + 1 == end) --end, masked_keys.pop_back();
    std::size_t before = 0;  // masked keys at the start of the range
    while (before < masked_keys.size() && masked_keys[before] == first) ++first, ++before;
    masked_keys.erase(masked_keys.begin(), masked_keys.begin() + static_cast<std::ptrdiff_t>(before));
  }
  if (first >= end) first = end = 0;
  first_keys_[row] = static_cast<std::size_t>(first), ends_[row] = static_cast<std::size_t>(end);
  if (!masked_keys.empty()) masked_keys_.emplace_back(row, std::move(masked_keys));
}

/// Sets a row from the visibility of each key.
void UnmaskedKeys::set_keys(std::size_t row, const std::vector<char>& visible) {
  std::size_t &first = first_keys_[row], &end = ends_[row];
  for (end = visible.size(); end > 0 && !visible[end - 1];) --end;
  while (first < end && !visible[first]) ++first;
  std::vector<std::uint32_t> masked_keys;
  for (std::size_t j = first; j < end; ++j)
    if (!visible[j]) masked_keys.push_back(static_cast<std::uint32_t>(j));
  if (!masked_keys.empty()) masked_keys_.emplace_back(row, std::move(masked_keys));
}

std::size_t UnmaskedKeys::mean_width() const {
  std::size_t sum = 0;
  for (std::size_t row = 0; row < ends_.size(); ++row) sum += ends_[row] - first_keys_[row];
  return sum / ends_.size();
}

std::size_t UnmaskedKeys::min_first_key(std::size_t first, std::size_t end, std::size_t unit) const {
  std::size_t least = SIZE_MAX;
  for (std::size_t row = first; row < end; ++row)
    if (ends_[row] > 0) least = std::min(least, first_keys_[row]);
  return least == SIZE_MAX ? 0 : least / unit * unit;
}

const std::vector<std::uint32_t>& UnmaskedKeys::masked_keys(std::size_t row) const {
  static const std::vector<std::uint32_t> none;
  const auto at = std::lower_bound(masked_keys_.begin(), masked_keys_.end(), row,
                                   [](const auto& h, std::size_t r) { return h.first < r; });
  return at != masked_keys_.end() && at->first == row ? at->second : none;
}

std::vector<std::size_t> UnmaskedKeys::rows_attending_to(std::size_t key) const {
  std::vector<std::size_t> rows;
  rows.reserve(ends_.size());
  auto next = masked_keys_.begin();
  for (std::size_t row = 0; row < ends_.size(); ++row) {
    const bool has_masked_keys = next != masked_keys_.end() && next->first == row;
    if (key >= first_keys_[row] && key < ends_[row] && (!has_masked_keys || is_unmasked(row, key)))
      rows.push_back(row);
    if (has_masked_keys) ++next;
  }
  return rows;
}

bool UnmaskedKeys::is_unmasked(std::size_t row, std::size_t key) const {
  const auto& h = masked_keys(row);
  return key >= first_keys_[row] && key < ends_[row] &&
         !std::binary_search(h.begin(), h.end(), static_cast<std::uint32_t>(key));
}

namespace {

/// Returns the relative position bias of a head, for each distance from 1 − n_keys on.
std::vector<double> position_biases(const Model& m, std::size_t head, std::size_t count) {
  const Positions& positions = m.additions.positions;
  const double slope = positions.alibi ? alibi_slope(*positions.alibi, head, m.n_heads) : 0;
  std::vector<double> biases(count);
  for (std::size_t k = 0; k < count; ++k) {
    const auto distance = static_cast<std::int64_t>(k) - static_cast<std::int64_t>(m.n_keys() - 1);
    biases[k] = positions.relative ? positions.relative->table.at(
                                         head, relative_position_bucket(distance, *positions.relative))
                                   : -slope * static_cast<double>(std::abs(distance));
  }
  return biases;
}

std::vector<double> row_major(const arma::mat& m) {
  const arma::mat rows = m.t();
  return {rows.begin(), rows.end()};
}

}  // namespace

Rules::Rules(const Model& model)
    : n_queries_(model.n_tokens()),
      n_keys_(model.n_keys()),
      d_head_(model.d_head()),
      n_heads_(model.n_heads),
      norm_(model.additions.normalize),
      rotary_(rotary_of(model)),
      softcap_(model.additions.softcap),
      positions_(model.additions.positions),
      score_bias_(model.additions.score_bias) {
  // The last query is at the position of the last key, so the longer of both lists begins earliest.
  const std::size_t count = std::max(n_queries_, n_keys_);
  if (rotary_) {
    const std::vector<double> frequencies = positions::frequencies(*rotary_, d_head_);
    for (std::size_t p = 0; p < frequencies.size(); ++p) pairs_.push_back(pair_columns(*rotary_, p, d_head_));
    const std::int64_t last = position_of_key(model, n_keys_ - 1);
    for (std::size_t k = 0; k < count; ++k) {
      const auto position = last - static_cast<std::int64_t>(count - 1 - k);
      const positions::PairRotations rotation = rotation_at(*rotary_, frequencies, position);
      cosines_.insert(cosines_.end(), rotation.cosines.begin(), rotation.cosines.end());
      sines_.insert(sines_.end(), rotation.sines.begin(), rotation.sines.end());
    }
  }
  for (std::size_t h = 0; h < n_heads_ && positions_.has_bias(); ++h)
    position_biases_.push_back(position_biases(model, h, n_keys_ + count - 1));
  for (const SharedMatrix& bias : score_bias_) attention_bias_.push_back(row_major(bias));
}

bool Rules::matches(const Model& model) const {
  const Additions& a = model.additions;
  return n_queries_ == model.n_tokens() && n_keys_ == model.n_keys() && d_head_ == model.d_head() &&
         n_heads_ == model.n_heads && norm_ == a.normalize && softcap_ == a.softcap &&
         positions_ == a.positions && score_bias_ == a.score_bias;
}

void Rules::norm(Qkv what, double* row) const {
  if (!norm_) return;
  const double n = static_cast<double>(d_head_);
  double mean = 0, squares = 0;
  if (norm_->rule == NormRule::layer) {
    for (std::size_t c = 0; c < d_head_; ++c) mean += row[c];
    mean /= n;
  }
  for (std::size_t c = 0; c < d_head_; ++c) squares += (row[c] - mean) * (row[c] - mean);
  const double root = std::sqrt(squares / n + norm_->epsilon);
  const arma::mat& factors = what == Qkv::queries ? norm_->query : norm_->key;
  for (std::size_t c = 0; c < d_head_; ++c) row[c] = (row[c] - mean) / root * factors[c];
}

void Rules::prepare(Qkv what, std::size_t t, double* row) const {
  if (what == Qkv::values) return;
  norm(what, row);
  if (!rotary_) return;
  const std::size_t count = what == Qkv::queries ? n_queries_ : n_keys_,
                    at = (std::max(n_queries_, n_keys_) - count + t) * pairs_.size();
  for (std::size_t p = 0; p < pairs_.size(); ++p)
    positions::rotate_pair(row[pairs_[p].first], row[pairs_[p].second], cosines_[at + p], sines_[at + p]);
}

const double* Rules::position_bias_row(std::size_t head, std::size_t row) const {
  // The last query is at the position of the last key.
  return position_biases_.empty() ? nullptr : position_biases_[head].data() + (n_queries_ - 1 - row);
}

const double* Rules::attention_bias_row(std::size_t head, std::size_t row) const {
  return attention_bias_.empty()
             ? nullptr
             : attention_bias_[attention_bias_.size() == 1 ? 0 : head].data() + row * n_keys_;
}

double Rules::position_bias(std::size_t head, std::size_t row, std::size_t key) const {
  const double* numbers = position_bias_row(head, row);
  return numbers ? numbers[key] : 0;
}

double Rules::biased_score(std::size_t head, std::size_t row, std::size_t key, double scaled) const {
  const double* numbers = attention_bias_row(head, row);
  return softcapped(scaled) + (position_bias(head, row, key) + (numbers ? numbers[key] : 0));
}

namespace {

/// Applies the softcap c·tanh(score / c) to n scores, in place.
template <class Number>
void apply_softcap(const AttentionKernels<Number>& kernels, Number c, Number* scores, std::size_t n) {
  constexpr Number far = 40;  // tanh rounds to 1 long before
  constexpr std::size_t chunk_size = 256;
  std::array<Number, chunk_size> powers;
  for (std::size_t first = 0; first < n; first += chunk_size, scores += chunk_size) {
    const std::size_t count = std::min(chunk_size, n - first);
    for (std::size_t j = 0; j < count; ++j) powers[j] = std::clamp(2 * scores[j] / c, -far, far);
    kernels.exponentials(powers.data(), count);
    for (std::size_t j = 0; j < count; ++j) {
      const Number tanh = 1 - 2 / (powers[j] + 1);
      if constexpr (std::is_same_v<Number, double>) {
        scores[j] = c * tanh;
      } else {  // in float32 the difference is inaccurate where tanh is small
        const Number x = scores[j] / c, s = x * x;
        const Number series =
            x *
            (1 - s * (1.f / 3 - s * (2.f / 15 - s * (17.f / 315 - s * (62.f / 2835 - s * 1382 / 155925)))));
        scores[j] = c * (s < 0.09f ? series : tanh);
      }
    }
  }
}

}  // namespace

template <class Number>
void Rules::finish_scores(const AttentionKernels<Number>& kernels, std::size_t head, std::size_t row,
                          Number* scores, std::size_t first, std::size_t end) const {
  if (softcap_) apply_softcap(kernels, static_cast<Number>(*softcap_), scores + first, end - first);
  for (const double* numbers : {position_bias_row(head, row), attention_bias_row(head, row)})
    for (std::size_t j = first; numbers && j < end; ++j) scores[j] += static_cast<Number>(numbers[j]);
}

template void Rules::finish_scores(const AttentionKernels<double>&, std::size_t, std::size_t, double*,
                                   std::size_t, std::size_t) const;
template void Rules::finish_scores(const AttentionKernels<float>&, std::size_t, std::size_t, float*,
                                   std::size_t, std::size_t) const;

}  // namespace core::attention::fast
