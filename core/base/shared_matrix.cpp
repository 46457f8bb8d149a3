#include "core/base/shared_matrix.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace core::attention {
namespace {

constexpr std::size_t max_changes = 64;  // keeps reading one cell cheap

}  // namespace

/// Numbers of its own, or those of another block except for some cells. Shared blocks never change.
struct SharedMatrix::Block {
  struct Change {
    Cell cell;
    double number = 0;
  };

  explicit Block(arma::mat own) : numbers(std::move(own)) {}
  explicit Block(std::shared_ptr<const Block> of) : base(std::move(of)) {}

  arma::mat numbers;
  std::shared_ptr<const Block> base;  // has numbers of its own
  std::vector<Change> changes;        // each cell once, sorted

  // Computed by readers. `made` holds all numbers once they have been read; later copies may start from it.
  mutable std::mutex making;
  mutable std::shared_ptr<const Block> made;
  mutable std::atomic<const Block*> made_ready{nullptr};
  enum class Finite : char { unknown, yes, no };
  mutable std::atomic<Finite> finite{Finite::unknown};
  mutable std::atomic<double> largest{-1};  // −1: unknown

  /// Requires a block with numbers of its own.
  double largest_magnitude() const {
    if (largest < 0) {
      double most = 0;
      for (const double number : numbers) most = std::max(most, std::abs(number));
      largest = most;
    }
    return largest;
  }

  const arma::mat& size() const { return base ? base->numbers : numbers; }

  /// Returns the block with all numbers, this one or `made`; nullptr until it is made.
  const Block* ready() const { return base ? made_ready.load(std::memory_order_acquire) : this; }

  const Block& whole() const {
    if (const Block* block = ready()) return *block;
    const std::lock_guard lock(making);
    if (!made) {
      auto all = std::make_shared<Block>(base->numbers);
      for (const Change& change : changes)
        all->numbers.at(change.cell.row, change.cell.column) = change.number;
      made = std::move(all);
      made_ready.store(made.get(), std::memory_order_release);
    }
    return *made;
  }

  /// Returns the change of a cell, or the place to insert it.
  static auto find(auto& list, Cell cell) {
    return std::lower_bound(list.begin(), list.end(), cell,
                            [](const Change& change, Cell c) { return change.cell < c; });
  }

  double at(std::size_t row, std::size_t column) const {
    if (const Block* block = ready()) return block->numbers.at(row, column);
    const auto change = find(changes, {row, column});
    return change != changes.end() && change->cell == Cell{row, column} ? change->number
                                                                        : base->numbers.at(row, column);
  }

  void put(Cell cell, double number) {
    const auto change = find(changes, cell);
    if (change != changes.end() && change->cell == cell)
      change->number = number;
    else
      changes.insert(change, {cell, number});
  }
};

/// View of a block as another one with some cells changed.
struct SharedMatrix::Version {
  const Block* origin;
  const std::vector<Block::Change>* changes;
};

SharedMatrix::SharedMatrix() : SharedMatrix(arma::mat()) {}

SharedMatrix::SharedMatrix(arma::mat numbers) : block_(std::make_shared<Block>(std::move(numbers))) {}

SharedMatrix::operator const arma::mat&() const {
  return block_->whole().numbers;
}

std::size_t SharedMatrix::n_rows() const {
  return block_->size().n_rows;
}

std::size_t SharedMatrix::n_cols() const {
  return block_->size().n_cols;
}

double SharedMatrix::at(std::size_t row, std::size_t column) const {
  return block_->at(row, column);
}

arma::rowvec SharedMatrix::row(std::size_t i) const {
  if (const Block* block = block_->ready()) return block->numbers.row(i);
  arma::rowvec numbers = block_->base->numbers.row(i);
  for (const Block::Change& change : block_->changes)
    if (change.cell.row == i) numbers.at(change.cell.column) = change.number;
  return numbers;
}

arma::vec SharedMatrix::column(std::size_t j) const {
  if (const Block* block = block_->ready()) return block->numbers.col(j);
  arma::vec numbers = block_->base->numbers.col(j);
  for (const Block::Change& change : block_->changes)
    if (change.cell.column == j) numbers.at(change.cell.row) = change.number;
  return numbers;
}

bool SharedMatrix::is_finite() const {
  using Finite = Block::Finite;
  const auto found_out = [](const Block& block) {
    if (block.finite == Finite::unknown) block.finite = block.numbers.is_finite() ? Finite::yes : Finite::no;
    return block.finite == Finite::yes;
  };
  if (!block_->base) return found_out(*block_);
  const auto is_finite = [](const Block::Change& change) { return std::isfinite(change.number); };
  if (!std::all_of(block_->changes.begin(), block_->changes.end(), is_finite)) return false;
  return found_out(*block_->base) || found_out(block_->whole());
}

double SharedMatrix::largest_magnitude() const {
  if (const Block* block = block_->ready()) return block->largest_magnitude();
  double most = block_->base->largest_magnitude();
  for (const Block::Change& change : block_->changes) {
    if (std::abs(block_->base->numbers.at(change.cell.row, change.cell.column)) == most)
      return block_->whole().largest_magnitude();  // it may be the only one this large
  }
  for (const Block::Change& change : block_->changes) most = std::max(most, std::abs(change.number));
  return most;
}

arma::mat& SharedMatrix::edit() {
  if (block_.use_count() > 1 || block_->base) block_ = std::make_shared<Block>(block_->whole().numbers);
  // Copying and releasing the pointer orders this after the last reader's release: use_count() alone does
  // not, and ThreadSanitizer does not know fences.
  std::shared_ptr<Block>(block_).reset();
  block_->finite = Block::Finite::unknown;
  block_->largest = -1;
  return block_->numbers;
}

void SharedMatrix::set(std::size_t row, std::size_t column, double number) {
  if (row >= n_rows() || column >= n_cols()) throw std::out_of_range("SharedMatrix::set: no such cell");
  if (block_.use_count() == 1 && !block_->base) {
    edit().at(row, column) = number;
    return;
  }
  std::shared_ptr<Block> next;
  if (!block_->base) {
    next = std::make_shared<Block>(block_);
  } else if (block_->ready() || block_->changes.size() >= max_changes) {
    block_->whole();
    next = std::make_shared<Block>(block_->made);
  } else {
    next = std::make_shared<Block>(block_->base);
    next->changes = block_->changes;
  }
  next->put({row, column}, number);
  block_ = std::move(next);
}

std::optional<std::vector<SharedMatrix::Cell>> SharedMatrix::known_differences(const SharedMatrix& a,
                                                                               const SharedMatrix& b) {
  static const std::vector<Block::Change> none;
  const auto versions = [](const Block& block) {
    std::vector<Version> all;
    if (block.base) all.push_back({block.base.get(), &block.changes});
    if (const Block* ready = block.ready()) all.push_back({ready, &none});
    return all;
  };
  for (const Version& one : versions(*a.block_))
    for (const Version& other : versions(*b.block_)) {
      if (one.origin != other.origin) continue;
      std::vector<Cell> cells;
      for (const auto* changes : {one.changes, other.changes})
        for (const Block::Change& change : *changes) {
          const Cell cell = change.cell;
          if (!same_bits(a.at(cell.row, cell.column), b.at(cell.row, cell.column))) cells.push_back(cell);
        }
      std::sort(cells.begin(), cells.end());
      cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
      return cells;
    }
  return std::nullopt;
}

std::optional<SharedMatrix::Cell> known_difference(const SharedMatrix& a, const SharedMatrix& b) {
  const auto cells = SharedMatrix::known_differences(a, b);
  return cells && cells->size() == 1 ? std::optional(cells->front()) : std::nullopt;
}

bool operator==(const SharedMatrix& a, const SharedMatrix& b) {
  if (a.shares_with(b)) return true;
  if (a.n_rows() != b.n_rows() || a.n_cols() != b.n_cols()) return false;
  if (const auto cells = SharedMatrix::known_differences(a, b)) return cells->empty();
  return a->n_elem == 0 || std::memcmp(a->memptr(), b->memptr(), a->n_elem * sizeof(double)) == 0;
}

void SharedMatrix::visit_memory(const std::function<void(const void*, std::size_t)>& visit) const {
  const auto bytes = [](const Block& block) {
    return sizeof block + block.numbers.n_elem * sizeof(double) +
           block.changes.size() * sizeof(Block::Change);
  };
  visit(block_.get(), bytes(*block_));
  if (!block_->base) return;
  visit(block_->base.get(), bytes(*block_->base));
  if (const Block* made = block_->ready()) visit(made, bytes(*made));
}

}  // namespace core::attention
