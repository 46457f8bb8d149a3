#pragma once

#include "core/base/thread_pool.hpp"
#include "core/engine/heads.hpp"
#include "core/engine/panels.hpp"
#include "core/engine/projected.hpp"

namespace core::attention::fast {

/// The projection that makes them, or nullptr.
const Linear* projection(const Model& model, Projected what);

/// Works out queries, keys and values of all tokens; false when a value is not finite.
bool project_all(Heads& all, const Model& model, std::size_t sequence, ThreadPool& threads);

/// Row t of the queries of all heads, or of the keys or values of all groups, side by side, afresh.
std::vector<double> projected_row(const Heads& all, const Model& model, std::size_t sequence, Projected what,
                                  std::size_t t);

/// The same as it is kept.
std::vector<double> kept_row(Heads& all, Projected what, std::size_t t);

/// Puts row t in its place in every head or group, and prepares it.
void put_row(Heads& all, Projected what, std::size_t t, const double* row);

/// Adds a projection's bias, if it has one, to a tile of its products.
void add_bias(const Linear& linear, const ProductTile& tile);

/// From now on OpenBLAS does each product on the thread that asks for it, in the whole program.
void keep_blas_to_one_thread();

}  // namespace core::attention::fast
