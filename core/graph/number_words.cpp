#include "core/graph/number_words.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <utility>

#include "core/base/text.hpp"

namespace core::graph {

using std::to_string;

std::string digits(double f, int n) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.*g", n, f == 0 ? 0.0 : f);
  std::string words = text.data();
  for (std::size_t at = 0; (at = words.find('-', at)) != words.npos; at += 3) words.replace(at, 1, "−");
  return words;
}

NumberWords::NumberWords(const attention::Model& m, attention::Precision precision)
    : d_(static_cast<double>(m.d_head())),
      d_value_(static_cast<double>(m.d_value())),
      d_model_(static_cast<double>(m.d_model())),
      n_heads_(static_cast<double>(m.n_heads)),
      n_kv_heads_(static_cast<double>(m.kv_heads())),
      scale_(scale_factor(m)),
      cap_(m.additions.softcap.value_or(0)) {
  using attention::Precision;
  if (m.additions.positions.rotary) scaling_ = m.additions.positions.rotary->scaling;
  tolerance_ = precision == Precision::float64   ? 1e-7
               : precision == Precision::float32 ? 1e-5
               : precision == Precision::float16 ? 2e-3
                                                 : 1.5e-2;
  n_digits_ = precision == Precision::float64 ? 6 : precision == Precision::float32 ? 5 : 3;
}

std::string NumberWords::known_number(double f) const {
  const double d = d_, D = d_model_, H = n_heads_, G = n_kv_heads_;
  const auto is = [&](double value) {
    return std::isfinite(value) && std::abs(value - f) <= tolerance_ * std::max(std::abs(value), 1e-12);
  };
  const std::pair<double, const char*> known[] = {{0, "0"},
                                                  {1, "1"},
                                                  {-1, "−1"},
                                                  {std::sqrt(d), "√d_head"},
                                                  {1 / std::sqrt(d), "1/√d_head"},
                                                  {1 / d, "1/d_head"},
                                                  {d, "d_head"},
                                                  {std::sqrt(D), "√d_model"},
                                                  {1 / std::sqrt(D), "1/√d_model"},
                                                  {1 / D, "1/d_model"},
                                                  {D, "d_model"},
                                                  {1 / std::sqrt(d_value_), "1/√d_value"},
                                                  {std::pow(d, -0.25), "d_head^−¼"},
                                                  {std::pow(d, 0.25), "d_head^¼"},
                                                  {std::sqrt(D / H), "√(d_model/heads)"},
                                                  {std::sqrt(H / D), "1/√(d_model/heads)"},
                                                  {std::sqrt(d * H), "√(heads · d_head)"},
                                                  {1 / std::sqrt(d * H), "1/√(heads · d_head)"},
                                                  {std::sqrt(d / D), "√(d_head/d_model)"},
                                                  {std::sqrt(D / d), "√(d_model/d_head)"},
                                                  {H, "the number of heads"},
                                                  {1 / H, "1/heads"},
                                                  {std::sqrt(H), "√heads"},
                                                  {1 / std::sqrt(H), "1/√heads"},
                                                  {H / G, "heads per KV head"},
                                                  {std::log(2.0), "ln 2"},
                                                  {1 / std::log(2.0), "log₂ e"}};
  for (const auto& [value, words] : known)
    if (is(value)) return words;
  if (const double s = scale_; s > 0)
    for (const auto& [value, words] :
         {std::pair{s, "the scale"}, {1 / s, "1/scale"}, {s * s, "scale²"}, {std::sqrt(s), "√scale"}})
      if (is(value)) return words;
  if (cap_ != 0 && is(cap_)) return "the softcap";
  if (cap_ != 0 && is(1 / cap_)) return "1/softcap";
  for (const double a : {1.0, 0.707, 0.8})
    for (const double s : {2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 64.0, 128.0}) {
      if (a != 1 && (s == 2 || tolerance_ >= 1e-3)) continue;
      const double y = 0.1 * a * std::log(s) + 1;
      const std::string of = digits(s) + (a == 1 ? "" : " (" + digits(a) + ")");
      if (is(y)) return "YaRN's mscale of factor " + of;
      if (is(1 / y)) return "1/mscale of YaRN's factor " + of;
      if (is(y * y)) return "YaRN's mscale² of factor " + of;
      if (is(1 / y / y)) return "1/mscale² of YaRN's factor " + of + ": mscale² is missing";
    }
  if (scaling_.rule != positions::ScalingRule::none) {
    if (is(scaling_.factor)) return "the scaling factor";
    if (is(1 / scaling_.factor)) return "1/the scaling factor";
    if (is(0.1 * std::log(scaling_.factor) + 1)) return "YaRN's mscale";
  }
  for (int n = 2; n < 17; ++n) {
    if (is(n)) return to_string(n);
    if (is(-n)) return "−" + to_string(n);
    if (is(1.0 / n)) return "1/" + to_string(n);
  }
  for (int n = 2; tolerance_ < 1e-3 && n < 1025; ++n) {
    if (is(1 / std::sqrt(n))) return "1/√" + to_string(n);
    if (is(std::sqrt(n))) return "√" + to_string(n);
  }
  for (const double p : {0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8, 0.9}) {
    if (is(1 / (1 - p))) return "1/(1 − " + digits(p) + ")";
    if (is(1 - p)) return "1 − " + digits(p);
    if (is(1 / p)) return "1/" + digits(p);
  }
  return "";
}

bool NumberWords::has_two_digits(double f) const {
  std::array<char, 32> two{};
  std::snprintf(two.data(), two.size(), "%.2g", f);
  return std::abs(f - std::atof(two.data())) <= tolerance_ * std::abs(f);
}

std::string NumberWords::number(double f, bool is_plain) const {
  if (std::abs(f) < tolerance_) f = 0;
  const std::string text = digits(f, n_digits_);
  if (is_plain && has_two_digits(f)) return text;
  const std::string words = known_number(f);
  return words.empty() || words == text ? text : text + " = " + words;
}

int NumberWords::rank_of_factor(double f) const {
  const bool has_name = number(f).find('=') != std::string::npos || std::abs(f - std::round(f)) < 1e-9;
  return has_name || has_two_digits(f) ? 1 : 2;
}

std::string NumberWords::list(const std::vector<double>& numbers, std::size_t max_shown) const {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < std::min(max_shown, numbers.size()); ++k)
    words.push_back(digits(std::abs(numbers[k]) < tolerance_ ? 0 : numbers[k], n_digits_));
  return "[" + text::joined(words, ", ") + (numbers.size() > max_shown ? ", …]" : "]");
}

std::string NumberWords::factor(double f, const std::string& what) const {
  if (std::abs(f) < tolerance_) return what + " is missing";
  if (std::abs(f - 2) < tolerance_) return what + " is added twice";
  if (std::abs(f + 1) < tolerance_) return what + " has the other sign";
  return what + " counts " + number(f) + " times";
}

std::string list_of(const std::vector<std::size_t>& numbers, std::size_t max_shown) {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < std::min(max_shown, numbers.size()); ++k)
    words.push_back(to_string(numbers[k]));
  return text::joined(words, ", ") + (numbers.size() > max_shown ? ", …" : "");
}

std::string shift_words(double n) {
  return digits(std::abs(n)) + (n < 0 ? " behind" : " ahead");
}

std::string words_of(attention::Stage stage) {
  std::string name = attention::info(stage).name;
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string stages_of_sides(std::string_view sides) {
  using attention::Stage;
  return text::joined(
      sides, ", ",
      [](char side) {
        return words_of(side == 'q'   ? Stage::queries
                        : side == 'k' ? Stage::keys
                        : side == 'v' ? Stage::values
                                      : Stage::output);
      },
      " and ");
}

std::string projections_of_sides(std::string_view sides) {
  if (sides == "qkvo") return "all projections";
  const auto name = [](char side) -> std::string {
    return side == 'q' ? "query" : side == 'k' ? "key" : side == 'v' ? "value" : "output";
  };
  return "the " + text::joined(sides, ", ", name, " and ") +
         (sides.size() > 1 ? " projections" : " projection");
}

// Orders.

std::vector<std::size_t> index_order(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

namespace {

std::vector<std::size_t> order_by(std::size_t n, const std::function<std::size_t(std::size_t)>& of) {
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = of(i);
  return order;
}

/// Returns the order of reading [k, n/k] as [n/k, k].
std::vector<std::size_t> interleaved_order(std::size_t n, std::size_t k) {
  return order_by(n, [&](std::size_t i) { return i % k * (n / k) + i / k; });
}

}  // namespace

std::vector<std::vector<std::size_t>> usual_orders(std::size_t n) {
  std::vector<std::vector<std::size_t>> all{index_order(n)};
  const auto add = [&](std::vector<std::size_t> order) {
    if (std::ranges::find(all, order) == all.end()) all.push_back(std::move(order));
  };
  for (std::size_t by = 1; by < n; ++by) add(order_by(n, [&](std::size_t i) { return (i + by) % n; }));
  add(order_by(n, [&](std::size_t i) { return n - 1 - i; }));
  for (std::size_t k = 2; k < n; ++k)
    if (n % k == 0) add(interleaved_order(n, k));
  if (n % 2 == 0) add(order_by(n, [](std::size_t i) { return i ^ 1; }));
  all.erase(all.begin());
  return all;
}

std::string order_words(const std::vector<std::size_t>& order, const std::string& what) {
  const std::size_t n = order.size();
  if (n > 0 && std::ranges::all_of(order, [&](std::size_t one) { return one == order[0]; }))
    return fmt::format("all {}s are {} {}", what, what, order[0]);
  for (std::size_t by = 1; by < n; ++by)
    if (order == order_by(n, [&](std::size_t i) { return (i + by) % n; }))
      return "every " + what + " is " + what +
             (by <= n / 2 ? " +" + to_string(by) : " −" + to_string(n - by)) + " (cyclic)";
  if (order == order_by(n, [&](std::size_t i) { return n - 1 - i; })) return what + "s are in reverse order";
  for (std::size_t k = 2; k < n; ++k)
    if (n % k == 0 && order == interleaved_order(n, k))
      return fmt::format("{}s are interleaved (read as [{}, {}])", what, n / k, k);
  if (n > 1 && n % 2 == 0 && order == order_by(n, [](std::size_t i) { return i ^ 1; }))
    return "neighboring " + what + "s are exchanged";
  return what + "s are laid out as [" + list_of(order) + "]";
}

}  // namespace core::graph
