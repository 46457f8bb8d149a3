#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/ascii.hpp"
#include "core/base/draw_op.hpp"
#include "core/base/error.hpp"

namespace core::random {
namespace {

using text::trimmed;

/// What stands between the parentheses of one op.
struct Form {
  const char* name;
  DrawKind kind;
  const char* pattern;    ///< as it is shown in errors
  std::size_t n_leading;  ///< numbers before the shape
};

constexpr std::array forms{
    Form{"rand", DrawKind::rand, "rand(shape…)", 0},
    Form{"randn", DrawKind::randn, "randn(shape…)", 0},
    Form{"uniform", DrawKind::uniform, "uniform(low,high,shape…)", 2},
    Form{"normal", DrawKind::normal, "normal(mean,deviation,shape…)", 2},
    Form{"randint", DrawKind::randint, "randint(low,high,shape…)", 2},
    Form{"Linear", DrawKind::linear, "Linear(in,out) or Linear(in,out,bias)", 0},
    Form{"Embedding", DrawKind::embedding, "Embedding(rows,columns)", 0},
    Form{"Dropout", DrawKind::dropout, "Dropout(rate,shape…)", 1},
    Form{"DropoutMKL", DrawKind::dropout_mkl, "DropoutMKL(rate,shape…)", 1},
};

/// A text from outside as it may stand in one line of an error.
std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string q(text.substr(0, longest));
  std::replace_if(
      q.begin(), q.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return "\"" + q + (text.size() > longest ? "…\"" : "\"");
}

/// The arguments of one op; every error names the op and the argument.
class Arguments {
 public:
  Arguments(std::string_view op, std::string_view list) : op_(op) {
    for (std::size_t comma = list.find(','); comma != list.npos; comma = list.find(',')) {
      texts_.push_back(trimmed(list.substr(0, comma)));
      list.remove_prefix(comma + 1);
    }
    if (!texts_.empty() || !trimmed(list).empty()) texts_.push_back(trimmed(list));
  }

  std::size_t size() const { return texts_.size(); }
  std::string_view operator[](std::size_t k) const { return texts_[k]; }
  void drop_last() { texts_.pop_back(); }

  [[noreturn]] void fail(const std::string& expected) const {
    throw Error("draw " + quoted(op_) + ": expected " + expected);
  }
  [[noreturn]] void fail_at(std::size_t k, const std::string& expected) const {
    throw Error("draw " + quoted(op_) + ", argument " + std::to_string(k + 1) + ": expected " + expected +
                ", got " + quoted(texts_[k]));
  }

  template <class Number>
  Number read(std::size_t k, const char* expected) const {
    const std::string_view t = texts_[k];
    Number value{};
    const auto [end, problem] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (problem != std::errc{} || end != t.data() + t.size()) fail_at(k, expected);
    return value;
  }

  /// A number that float32 can hold, as PyTorch rounds it to float32.
  double read_float(std::size_t k) const {
    constexpr const char* expected = "a number within the range of float32";
    const double value = read<double>(k, expected);
    if (!(std::fabs(value) <= std::numeric_limits<float>::max())) fail_at(k, expected);
    return value;
  }

  std::size_t read_extent(std::size_t k) const {
    constexpr const char* expected = "a whole number from 1 to 100000000";
    const auto value = read<std::size_t>(k, expected);
    if (value == 0 || value > most_drawn_numbers) fail_at(k, expected);
    return value;
  }

 private:
  std::string_view op_;
  std::vector<std::string_view> texts_;
};

void read_leading(DrawOp& op, const Arguments& arguments) {
  switch (op.kind) {
    case DrawKind::uniform:
      op.first = arguments.read_float(0);
      op.second = arguments.read_float(1);
      if (op.second < op.first) arguments.fail_at(1, "a high that is not below the low");
      if (op.second - op.first > std::numeric_limits<float>::max())
        arguments.fail_at(1, "a high at most 3.4e38 above the low, as float32 can hold");
      break;
    case DrawKind::normal:
      op.first = arguments.read_float(0);
      op.second = arguments.read_float(1);
      if (op.second < 0) arguments.fail_at(1, "a deviation of 0 or more");
      break;
    case DrawKind::randint:
      op.low = arguments.read<std::int64_t>(0, "a whole number of at most 64 bits");
      op.high = arguments.read<std::int64_t>(1, "a whole number of at most 64 bits");
      if (op.high <= op.low) arguments.fail_at(1, "a high above the low");
      break;
    case DrawKind::dropout:
    case DrawKind::dropout_mkl:
      op.first = arguments.read<double>(0, "a rate from 0 to 1");
      if (!(op.first >= 0 && op.first <= 1)) arguments.fail_at(0, "a rate from 0 to 1");
      break;
    default:
      break;
  }
}

void check_size(const DrawOp& op, const Arguments& arguments) {
  std::size_t n = 1;
  for (const std::size_t extent : op.shape)  // each is at most 10^8, so no product below wraps around
    if ((n *= extent) > most_drawn_numbers) break;
  if (n <= most_drawn_numbers && op.bias) n += op.shape.front();
  if (n > most_drawn_numbers)
    arguments.fail("at most " + std::to_string(most_drawn_numbers) + " numbers, got " + std::to_string(n) +
                   " or more");
}

}  // namespace

DrawOp parse_draw_op(std::string_view whole) {
  const std::string_view text = trimmed(whole);
  const std::size_t open = text.find('(');
  const std::string_view name = trimmed(text.substr(0, open));
  const auto form = std::find_if(forms.begin(), forms.end(), [&](const Form& f) { return name == f.name; });
  if (form == forms.end())
    throw Error("draw " + quoted(text) + ": unknown op " + quoted(name) +
                ", expected rand, randn, uniform, normal, randint, Linear, Embedding, Dropout or DropoutMKL");
  if (open == text.npos || text.back() != ')' || text.find('(', open + 1) != text.npos)
    throw Error("draw " + quoted(text) + ": expected " + form->pattern);

  Arguments arguments(text, text.substr(open + 1, text.size() - open - 2));
  DrawOp op;
  op.kind = form->kind;
  const bool two_extents = op.kind == DrawKind::linear || op.kind == DrawKind::embedding;
  if (op.kind == DrawKind::linear && arguments.size() == 3) {
    if (arguments[2] != "bias") arguments.fail_at(2, "bias or nothing");
    op.bias = true;
    arguments.drop_last();
  }
  if (two_extents ? arguments.size() != 2 : arguments.size() <= form->n_leading)
    arguments.fail(form->pattern + std::string(", got ") + std::to_string(arguments.size() + op.bias) +
                   " arguments");

  read_leading(op, arguments);
  for (std::size_t k = form->n_leading; k < arguments.size(); ++k)
    op.shape.push_back(arguments.read_extent(k));
  if (op.kind == DrawKind::linear) std::swap(op.shape[0], op.shape[1]);  // PyTorch holds it as out × in
  check_size(op, arguments);
  return op;
}

}  // namespace core::random
