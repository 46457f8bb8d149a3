#include "core/base/draw_op.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <ostream>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace core::random {
namespace {

SampledMatrix block(const std::vector<std::size_t>& shape, auto numbers) {
  const std::size_t columns = shape.back();
  return {numbers.size() / columns, columns, std::move(numbers)};
}

std::vector<float> dropped_ones(const Bits& kept, double rate) {
  const float keep_scale = 1.0f / static_cast<float>(1 - rate);
  std::vector<float> ones;
  ones.reserve(kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) ones.push_back(kept[i] ? keep_scale : 0.0f);
  return ones;
}

std::size_t product(const std::vector<std::size_t>& shape) {
  std::size_t n = 1;
  for (const std::size_t extent : shape) n *= extent;
  return n;
}

/// Reads one op and adds its count of numbers to the total.
RandomOp parse_within(const std::string& text, std::size_t& total, std::size_t max_numbers) {
  RandomOp op = parse_random_op(text);
  total += op.size();
  if (total > max_numbers)
    throw Error(fmt::format("draw {}: expected at most {} numbers in all ops together, got {} so far", text,
                            max_numbers, total));
  return op;
}

/// Returns the tensor, or the weight of a linear layer.
SampledMatrix first_block(Generator& generator, const RandomOp& op) {
  const std::size_t n = product(op.shape);
  switch (op.kind) {
    case RandomOpKind::rand:
      return block(op.shape, generator.rand(n));
    case RandomOpKind::randn:
    case RandomOpKind::embedding:
      return block(op.shape, generator.normal(n));
    case RandomOpKind::uniform:
      return block(op.shape, generator.uniform(n, op.first, op.second));
    case RandomOpKind::normal:
      return block(op.shape, generator.normal(n, op.first, op.second));
    case RandomOpKind::randint:
      return block(op.shape, generator.randint(n, op.low, op.high));
    case RandomOpKind::dropout:
      return block(op.shape, dropped_ones(generator.dropout_kept(n, op.first), op.first));
    case RandomOpKind::dropout_mkl:
      return block(op.shape, dropped_ones(generator.dropout_kept_mkl(n, op.first), op.first));
    case RandomOpKind::linear:
      break;
  }
  return block(op.shape, generator.linear_weight(op.shape[1], op.shape[0]));
}

}  // namespace

std::vector<RandomOp> parse_random_ops(std::string_view texts, std::size_t max_numbers) {
  constexpr std::string_view whitespace = " \t\n\r";
  std::vector<RandomOp> ops;
  std::size_t total = 0;
  for (std::size_t start = texts.find_first_not_of(whitespace); start != texts.npos;
       start = texts.find_first_not_of(whitespace)) {
    texts.remove_prefix(start);
    const std::size_t length = std::min(texts.find(')'), texts.size() - 1) + 1;
    ops.push_back(parse_within(std::string(texts.substr(0, length)), total, max_numbers));
    texts.remove_prefix(length);
  }
  return ops;
}

std::size_t RandomOp::size() const {
  return product(shape) + (bias ? shape.front() : 0);
}

std::vector<SampledMatrix> run(Generator& generator, const RandomOp& op) {
  std::vector<SampledMatrix> blocks;  // an initializer list would copy them
  blocks.push_back(first_block(generator, op));
  if (op.bias) blocks.push_back(block({op.shape[0]}, generator.linear_bias(op.shape[1], op.shape[0])));
  return blocks;
}

void write_block(std::ostream& out, const SampledMatrix& b) {
  std::visit(
      [&](const auto& numbers) {
        std::array<char, 32> text;
        for (std::size_t k = 0; k < numbers.size(); ++k) {
          const auto end = std::to_chars(text.data(), text.data() + text.size(), numbers[k]).ptr;
          out.write(text.data(), end - text.data());
          out.put((k + 1) % b.columns == 0 ? '\n' : ',');
        }
      },
      b.numbers);
}

void write_samples(std::uint64_t seed, const std::vector<std::string>& texts, std::ostream& out) {
  std::vector<RandomOp> ops;
  std::size_t total = 0;
  for (const std::string& text : texts) ops.push_back(parse_within(text, total, max_sampled_numbers));
  Generator generator(seed);
  bool first = true;
  for (const RandomOp& op : ops)
    for (const SampledMatrix& b : run(generator, op)) {
      if (!first) out.put('\n');
      first = false;
      write_block(out, b);
    }
}

namespace {

using text::trimmed;

/// Name and arguments of an op.
struct OpForm {
  const char* name;
  RandomOpKind kind;
  const char* pattern;    ///< shown in errors
  std::size_t n_leading;  ///< numbers before the shape
};

constexpr std::array forms{
    OpForm{"rand", RandomOpKind::rand, "rand(shape…)", 0},
    OpForm{"randn", RandomOpKind::randn, "randn(shape…)", 0},
    OpForm{"uniform", RandomOpKind::uniform, "uniform(low,high,shape…)", 2},
    OpForm{"normal", RandomOpKind::normal, "normal(mean,deviation,shape…)", 2},
    OpForm{"randint", RandomOpKind::randint, "randint(low,high,shape…)", 2},
    OpForm{"Linear", RandomOpKind::linear, "Linear(in,out) or Linear(in,out,bias)", 0},
    OpForm{"Embedding", RandomOpKind::embedding, "Embedding(rows,columns)", 0},
    OpForm{"Dropout", RandomOpKind::dropout, "Dropout(rate,shape…)", 1},
    OpForm{"DropoutMKL", RandomOpKind::dropout_mkl, "DropoutMKL(rate,shape…)", 1},
};

/// Returns untrusted text in quotes, on one line and shortened, for an error.
std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string q(text.substr(0, longest));
  std::replace_if(
      q.begin(), q.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return "\"" + q + (text.size() > longest ? "…\"" : "\"");
}

/// Arguments of one op; every error names the op and the argument.
class OpArguments {
 public:
  OpArguments(std::string_view op, std::string_view list) : op_(op) {
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
    throw Error(fmt::format("draw {}, argument {}: expected {}, got {}", quoted(op_), k + 1, expected,
                            quoted(texts_[k])));
  }

  template <class Whole>
  Whole read(std::size_t k, const char* expected) const {
    const std::string_view t = texts_[k];
    Whole value{};
    const auto [end, problem] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (problem != std::errc{} || end != t.data() + t.size()) fail_at(k, expected);
    return value;
  }

  double read_number(std::size_t k, const char* expected) const {
    const auto value = text::parse_number(texts_[k]);
    if (!value) fail_at(k, expected);
    return *value;
  }

  /// Reads a number in the range of float32, to which PyTorch rounds it.
  double read_float(std::size_t k) const {
    constexpr const char* expected = "a number within the range of float32";
    const double value = read_number(k, expected);
    if (!(std::fabs(value) <= std::numeric_limits<float>::max())) fail_at(k, expected);
    return value;
  }

  std::size_t read_extent(std::size_t k) const {
    constexpr const char* expected = "a whole number from 1 to 100000000";
    const auto value = read<std::size_t>(k, expected);
    if (value == 0 || value > max_sampled_numbers) fail_at(k, expected);
    return value;
  }

 private:
  std::string_view op_;
  std::vector<std::string_view> texts_;
};

void read_leading(RandomOp& op, const OpArguments& arguments) {
  switch (op.kind) {
    case RandomOpKind::uniform:
      op.first = arguments.read_float(0);
      op.second = arguments.read_float(1);
      if (op.second < op.first) arguments.fail_at(1, "a high that is not below the low");
      if (op.second - op.first > std::numeric_limits<float>::max())
        arguments.fail_at(1, "a high at most 3.4e38 above the low, as float32 can hold");
      break;
    case RandomOpKind::normal:
      op.first = arguments.read_float(0);
      op.second = arguments.read_float(1);
      if (op.second < 0) arguments.fail_at(1, "a deviation of 0 or more");
      break;
    case RandomOpKind::randint:
      op.low = arguments.read<std::int64_t>(0, "a whole number of at most 64 bits");
      op.high = arguments.read<std::int64_t>(1, "a whole number of at most 64 bits");
      if (op.high <= op.low) arguments.fail_at(1, "a high above the low");
      break;
    case RandomOpKind::dropout:
    case RandomOpKind::dropout_mkl:
      op.first = arguments.read_number(0, "a rate from 0 to 1");
      if (!(op.first >= 0 && op.first <= 1)) arguments.fail_at(0, "a rate from 0 to 1");
      break;
    default:
      break;
  }
}

void check_size(const RandomOp& op, const OpArguments& arguments) {
  std::size_t n = 1;
  for (const std::size_t extent : op.shape)  // each is at most 10^8, so no product wraps around
    if ((n *= extent) > max_sampled_numbers) break;
  if (n <= max_sampled_numbers && op.bias) n += op.shape.front();
  if (n > max_sampled_numbers)
    arguments.fail(fmt::format("at most {} numbers, got {} or more", max_sampled_numbers, n));
}

using text::number_text;
using text::tuple_text;

std::string listed(const std::vector<std::size_t>& shape) {
  return text::joined(shape, ", ", [](std::size_t extent) { return std::to_string(extent); });
}

std::string dropped_ones(const RandomOp& op) {
  return "nn.Dropout(" + number_text(op.first) + ")(torch.ones(" + listed(op.shape) + "))";
}

/// Returns a float literal, as torch.normal treats integers differently.
std::string real(double value) {
  const std::string text = number_text(value);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

}  // namespace

RandomOp parse_random_op(std::string_view whole) {
  const std::string_view text = trimmed(whole);
  const std::size_t open = text.find('(');
  const std::string_view name = trimmed(text.substr(0, open));
  const auto form = std::find_if(forms.begin(), forms.end(), [&](const OpForm& f) { return name == f.name; });
  if (form == forms.end())
    throw Error("draw " + quoted(text) + ": unknown op " + quoted(name) +
                ", expected rand, randn, uniform, normal, randint, Linear, Embedding, Dropout or DropoutMKL");
  if (open == text.npos || text.back() != ')' || text.find('(', open + 1) != text.npos)
    throw Error("draw " + quoted(text) + ": expected " + form->pattern);

  OpArguments arguments(text, text.substr(open + 1, text.size() - open - 2));
  RandomOp op;
  op.kind = form->kind;
  const bool two_extents = op.kind == RandomOpKind::linear || op.kind == RandomOpKind::embedding;
  if (op.kind == RandomOpKind::linear && arguments.size() == 3) {
    if (arguments[2] != "bias") arguments.fail_at(2, "bias or nothing");
    op.bias = true;
    arguments.drop_last();
  }
  if (two_extents ? arguments.size() != 2 : arguments.size() <= form->n_leading)
    arguments.fail(fmt::format("{}, got {} arguments", form->pattern, arguments.size() + op.bias));

  read_leading(op, arguments);
  for (std::size_t k = form->n_leading; k < arguments.size(); ++k)
    op.shape.push_back(arguments.read_extent(k));
  if (op.kind == RandomOpKind::linear) std::swap(op.shape[0], op.shape[1]);  // PyTorch stores out × in
  check_size(op, arguments);
  return op;
}

std::string torch_line(const RandomOp& op) {
  switch (op.kind) {
    case RandomOpKind::rand:
      return "torch.rand(" + listed(op.shape) + ")";
    case RandomOpKind::randn:
      return "torch.randn(" + listed(op.shape) + ")";
    case RandomOpKind::uniform:
      return "torch.empty(" + listed(op.shape) + ").uniform_(" + number_text(op.first) + ", " +
             number_text(op.second) + ")";
    case RandomOpKind::normal:
      return "torch.normal(" + real(op.first) + ", " + real(op.second) + ", " + tuple_text(op.shape) + ")";
    case RandomOpKind::randint:
      return fmt::format("torch.randint({}, {}, {})", op.low, op.high, tuple_text(op.shape));
    case RandomOpKind::linear:
      return fmt::format("nn.Linear({}, {}{}", op.shape[1], op.shape[0], op.bias ? ")" : ", bias=False)");
    case RandomOpKind::embedding:
      return "nn.Embedding(" + listed(op.shape) + ")";
    case RandomOpKind::dropout:
      return dropped_ones(op);
    case RandomOpKind::dropout_mkl:
      return dropped_ones(op) + "  # a build with MKL before PyTorch 2.7";
  }
  return "";
}

}  // namespace core::random
