#include "core/base/shared_matrix.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace core::attention {
namespace {

constexpr std::size_t max_changes = 64;  // keeps reading one cell cheap

}  // namespace

/// Numbers of its own, or those of another block except for some cells. Shared blocks never change.
struct SharedMatrix::Storage {
  struct NumberChange {
    MatrixCell cell;
    double number = 0;
  };

  explicit Storage(arma::mat own) : numbers(std::move(own)) {}
  explicit Storage(std::shared_ptr<const Storage> of) : base(std::move(of)) {}

  arma::mat numbers;
  std::shared_ptr<const Storage> base;  // has numbers of its own
  std::vector<NumberChange> changes;    // each cell once, sorted

  // Computed by readers. `materialized` holds all numbers once they have been read; later copies may start
  // from it.
  mutable std::mutex materialize_mutex;
  mutable std::shared_ptr<const Storage> materialized;
  mutable std::atomic<const Storage*> ready_storage{nullptr};
  enum class Finite : char { unknown, yes, no };
  mutable std::atomic<Finite> finite{Finite::unknown};
  mutable std::atomic<double> largest{-1};  // −1: unknown

  /// Requires a block with numbers of its own.
  double largest_magnitude() const {
    if (largest < 0) {
      double max_magnitude = 0;
      for (const double number : numbers) max_magnitude = std::max(max_magnitude, std::abs(number));
      largest = max_magnitude;
    }
    return largest;
  }

  const arma::mat& size() const { return base ? base->numbers : numbers; }

  /// Returns the block with all numbers, this one or `materialized`; nullptr until it is made.
  const Storage* ready() const { return base ? ready_storage.load(std::memory_order_acquire) : this; }

  const Storage& materialize() const {
    if (const Storage* block = ready()) return *block;
    const std::lock_guard lock(materialize_mutex);
    if (!materialized) {
      auto all = std::make_shared<Storage>(base->numbers);
      for (const NumberChange& change : changes)
        all->numbers.at(change.cell.row, change.cell.column) = change.number;
      materialized = std::move(all);
      ready_storage.store(materialized.get(), std::memory_order_release);
    }
    return *materialized;
  }

  /// Returns the change of a cell, or the place to insert it.
  static auto find(auto& list, MatrixCell cell) {
    return std::lower_bound(list.begin(), list.end(), cell,
                            [](const NumberChange& change, MatrixCell c) { return change.cell < c; });
  }

  double at(std::size_t row, std::size_t column) const {
    if (const Storage* block = ready()) return block->numbers.at(row, column);
    const auto change = find(changes, {row, column});
    return change != changes.end() && change->cell == MatrixCell{row, column} ? change->number
                                                                              : base->numbers.at(row, column);
  }

  void put(MatrixCell cell, double number) {
    const auto change = find(changes, cell);
    if (change != changes.end() && change->cell == cell)
      change->number = number;
    else
      changes.insert(change, {cell, number});
  }
};

/// View of a block as another one with some cells changed.
struct SharedMatrix::StorageView {
  const Storage* origin;
  const std::vector<Storage::NumberChange>* changes;
};

SharedMatrix::SharedMatrix() : SharedMatrix(arma::mat()) {}

SharedMatrix::SharedMatrix(arma::mat numbers) : storage_(std::make_shared<Storage>(std::move(numbers))) {}

SharedMatrix::operator const arma::mat&() const {
  return storage_->materialize().numbers;
}

std::size_t SharedMatrix::n_rows() const {
  return storage_->size().n_rows;
}

std::size_t SharedMatrix::n_cols() const {
  return storage_->size().n_cols;
}

double SharedMatrix::at(std::size_t row, std::size_t column) const {
  return storage_->at(row, column);
}

arma::rowvec SharedMatrix::row(std::size_t i) const {
  if (const Storage* block = storage_->ready()) return block->numbers.row(i);
  arma::rowvec numbers = storage_->base->numbers.row(i);
  for (const Storage::NumberChange& change : storage_->changes)
    if (change.cell.row == i) numbers.at(change.cell.column) = change.number;
  return numbers;
}

arma::vec SharedMatrix::column(std::size_t j) const {
  if (const Storage* block = storage_->ready()) return block->numbers.col(j);
  arma::vec numbers = storage_->base->numbers.col(j);
  for (const Storage::NumberChange& change : storage_->changes)
    if (change.cell.column == j) numbers.at(change.cell.row) = change.number;
  return numbers;
}

bool SharedMatrix::is_finite() const {
  using Finite = Storage::Finite;
  const auto found_out = [](const Storage& block) {
    if (block.finite == Finite::unknown) block.finite = block.numbers.is_finite() ? Finite::yes : Finite::no;
    return block.finite == Finite::yes;
  };
  if (!storage_->base) return found_out(*storage_);
  const auto is_finite = [](const Storage::NumberChange& change) { return std::isfinite(change.number); };
  if (!std::all_of(storage_->changes.begin(), storage_->changes.end(), is_finite)) return false;
  return found_out(*storage_->base) || found_out(storage_->materialize());
}

double SharedMatrix::largest_magnitude() const {
  if (const Storage* block = storage_->ready()) return block->largest_magnitude();
  double max_magnitude = storage_->base->largest_magnitude();
  for (const Storage::NumberChange& change : storage_->changes) {
    if (std::abs(storage_->base->numbers.at(change.cell.row, change.cell.column)) == max_magnitude)
      return storage_->materialize().largest_magnitude();  // it may be the only one this large
  }
  for (const Storage::NumberChange& change : storage_->changes)
    max_magnitude = std::max(max_magnitude, std::abs(change.number));
  return max_magnitude;
}

arma::mat& SharedMatrix::edit() {
  if (storage_.use_count() > 1 || storage_->base)
    storage_ = std::make_shared<Storage>(storage_->materialize().numbers);
  // Copying and releasing the pointer orders this after the last reader's release: use_count() alone does
  // not, and ThreadSanitizer does not know fences.
  std::shared_ptr<Storage>(storage_).reset();
  storage_->finite = Storage::Finite::unknown;
  storage_->largest = -1;
  return storage_->numbers;
}

void SharedMatrix::set(std::size_t row, std::size_t column, double number) {
  if (row >= n_rows() || column >= n_cols()) throw std::out_of_range("SharedMatrix::set: no such cell");
  if (storage_.use_count() == 1 && !storage_->base) {
    edit().at(row, column) = number;
    return;
  }
  std::shared_ptr<Storage> next;
  if (!storage_->base) {
    next = std::make_shared<Storage>(storage_);
  } else if (storage_->ready() || storage_->changes.size() >= max_changes) {
    storage_->materialize();
    next = std::make_shared<Storage>(storage_->materialized);
  } else {
    next = std::make_shared<Storage>(storage_->base);
    next->changes = storage_->changes;
  }
  next->put({row, column}, number);
  storage_ = std::move(next);
}

std::optional<std::vector<SharedMatrix::MatrixCell>> SharedMatrix::known_differences(const SharedMatrix& a,
                                                                                     const SharedMatrix& b) {
  static const std::vector<Storage::NumberChange> none;
  const auto versions = [](const Storage& block) {
    std::vector<StorageView> all;
    if (block.base) all.push_back({block.base.get(), &block.changes});
    if (const Storage* ready = block.ready()) all.push_back({ready, &none});
    return all;
  };
  for (const StorageView& one : versions(*a.storage_))
    for (const StorageView& other : versions(*b.storage_)) {
      if (one.origin != other.origin) continue;
      std::vector<MatrixCell> cells;
      for (const auto* changes : {one.changes, other.changes})
        for (const Storage::NumberChange& change : *changes) {
          const MatrixCell cell = change.cell;
          if (!same_bits(a.at(cell.row, cell.column), b.at(cell.row, cell.column))) cells.push_back(cell);
        }
      std::sort(cells.begin(), cells.end());
      cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
      return cells;
    }
  return std::nullopt;
}

std::optional<SharedMatrix::MatrixCell> known_difference(const SharedMatrix& a, const SharedMatrix& b) {
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
  const auto bytes = [](const Storage& block) {
    return sizeof block + block.numbers.n_elem * sizeof(double) +
           block.changes.size() * sizeof(Storage::NumberChange);
  };
  visit(storage_.get(), bytes(*storage_));
  if (!storage_->base) return;
  visit(storage_->base.get(), bytes(*storage_->base));
  if (const Storage* materialized = storage_->ready()) visit(materialized, bytes(*materialized));
}

}  // namespace core::attention
