#include "core/model/merging.hpp"

#include <queue>
#include <tuple>

namespace core::tokenizers {
namespace {

constexpr std::size_t no_symbol = static_cast<std::size_t>(-1);

struct Symbol {
  Piece piece;
  std::size_t begin, left, right;
  bool is_gone = false;
};

/// Two neighbours as they were when they were looked at.
struct Candidate {
  double order;
  std::size_t left, right, left_end, right_end, id;
  bool operator>(const Candidate& other) const {
    return std::tie(order, left) > std::tie(other.order, other.left);
  }
};

}  // namespace

std::vector<Piece> merged(std::vector<Piece> pieces,
                          const std::function<std::optional<Merge>(const Piece& left, std::size_t left_begin,
                                                                   const Piece& right)>& merge_of) {
  std::vector<Symbol> symbols;
  for (std::size_t k = 0; k < pieces.size(); ++k)
    symbols.push_back({pieces[k], k == 0 ? 0 : pieces[k - 1].end, k == 0 ? no_symbol : k - 1,
                       k + 1 == pieces.size() ? no_symbol : k + 1});
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> waiting;
  const auto look_at = [&](std::size_t left, std::size_t right) {
    if (left == no_symbol || right == no_symbol) return;
    const Symbol &a = symbols[left], &b = symbols[right];
    if (const auto merge = merge_of(a.piece, a.begin, b.piece))
      waiting.push({merge->order, left, right, a.piece.end, b.piece.end, merge->id});
  };
  for (std::size_t k = 0; k + 1 < symbols.size(); ++k) look_at(k, k + 1);
  while (!waiting.empty()) {
    const Candidate best = waiting.top();
    waiting.pop();
    Symbol &a = symbols[best.left], &b = symbols[best.right];
    if (a.is_gone || b.is_gone || a.piece.end != best.left_end || b.piece.end != best.right_end) continue;
    a.piece = {best.id, b.piece.end};
    b.is_gone = true;
    a.right = b.right;
    if (b.right != no_symbol) symbols[b.right].left = best.left;
    look_at(a.left, best.left);
    look_at(best.left, a.right);
  }
  pieces.clear();
  for (const Symbol& symbol : symbols)
    if (!symbol.is_gone) pieces.push_back(symbol.piece);
  return pieces;
}

}  // namespace core::tokenizers
