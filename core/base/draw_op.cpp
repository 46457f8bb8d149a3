#include "core/base/draw_op.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ostream>

#include "core/base/error.hpp"

namespace core::random {
namespace {

Block block(const std::vector<std::size_t>& shape, auto numbers) {
  const std::size_t columns = shape.back();
  return {numbers.size() / columns, columns, std::move(numbers)};
}

std::vector<float> dropped_ones(const Bits& kept, double rate) {
  const float survivor = 1.0f / static_cast<float>(1 - rate);
  std::vector<float> ones;
  ones.reserve(kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) ones.push_back(kept[i] ? survivor : 0.0f);
  return ones;
}

std::size_t product(const std::vector<std::size_t>& shape) {
  std::size_t n = 1;
  for (const std::size_t extent : shape) n *= extent;
  return n;
}

/// Reads one op and adds its numbers to those of the ops before it.
DrawOp parse_within(const std::string& text, std::size_t& total, std::size_t most) {
  DrawOp op = parse_draw_op(text);
  total += op.size();
  if (total > most)
    throw Error("draw " + text + ": expected at most " + std::to_string(most) +
                " numbers in all ops together, got " + std::to_string(total) + " so far");
  return op;
}

/// The tensor, or the weight of a linear layer.
Block first_block(Generator& generator, const DrawOp& op) {
  const std::size_t n = product(op.shape);
  switch (op.kind) {
    case DrawKind::rand:
      return block(op.shape, generator.rand(n));
    case DrawKind::randn:
    case DrawKind::embedding:
      return block(op.shape, generator.normal(n));
    case DrawKind::uniform:
      return block(op.shape, generator.uniform(n, op.first, op.second));
    case DrawKind::normal:
      return block(op.shape, generator.normal(n, op.first, op.second));
    case DrawKind::randint:
      return block(op.shape, generator.randint(n, op.low, op.high));
    case DrawKind::dropout:
      return block(op.shape, dropped_ones(generator.dropout_kept(n, op.first), op.first));
    case DrawKind::dropout_mkl:
      return block(op.shape, dropped_ones(generator.dropout_kept_mkl(n, op.first), op.first));
    case DrawKind::linear:
      break;
  }
  return block(op.shape, generator.linear_weight(op.shape[1], op.shape[0]));
}

}  // namespace

std::vector<DrawOp> parse_draw_ops(std::string_view texts, std::size_t most) {
  constexpr std::string_view blanks = " \t\n\r";
  std::vector<DrawOp> ops;
  std::size_t total = 0;
  for (std::size_t start = texts.find_first_not_of(blanks); start != texts.npos;
       start = texts.find_first_not_of(blanks)) {
    texts.remove_prefix(start);
    const std::size_t length = std::min(texts.find(')'), texts.size() - 1) + 1;
    ops.push_back(parse_within(std::string(texts.substr(0, length)), total, most));
    texts.remove_prefix(length);
  }
  return ops;
}

std::size_t DrawOp::size() const {
  return product(shape) + (bias ? shape.front() : 0);
}

std::vector<Block> run(Generator& generator, const DrawOp& op) {
  std::vector<Block> blocks;  // a list of them in braces would be copied
  blocks.push_back(first_block(generator, op));
  if (op.bias) blocks.push_back(block({op.shape[0]}, generator.linear_bias(op.shape[1], op.shape[0])));
  return blocks;
}

void write_block(std::ostream& out, const Block& b) {
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

void draw(std::uint64_t seed, const std::vector<std::string>& texts, std::ostream& out) {
  std::vector<DrawOp> ops;
  std::size_t total = 0;
  for (const std::string& text : texts) ops.push_back(parse_within(text, total, most_drawn_numbers));
  Generator generator(seed);
  bool first = true;
  for (const DrawOp& op : ops)
    for (const Block& b : run(generator, op)) {
      if (!first) out.put('\n');
      first = false;
      write_block(out, b);
    }
}

}  // namespace core::random
