#pragma once

#include <armadillo>

#include "core/base/thread_pool.hpp"
#include "core/model/architecture.hpp"
#include "core/model/weights.hpp"

/// The parts of a layer beside attention: pure functions of float32, a token a row.
namespace core::transformer {

/// Each row less its mean, over its standard deviation (biased, epsilon under the root), times the weight,
/// plus the bias; of RMS norms over the root of its mean square. Source: Ba, Kiros and Hinton 2016; Zhang and
/// Sennrich 2019.
arma::fmat normed(const arma::fmat& x, const Affine& numbers, NormKind kind, double epsilon);

/// x·W + b.
arma::fmat projected(const arma::fmat& x, const Affine& numbers, ThreadPool& pool);

/// Applies an activation to so many numbers in place.
void activate(float* numbers, std::size_t count, Activation activation);

/// down(activation(up(x))), or down(activation(gate(x)) ∘ up(x)). Source: Shazeer 2020.
arma::fmat mlp(const arma::fmat& x, const LayerWeights& weights, const Mlp& rules, ThreadPool& pool);

/// Turns the pairs of every head's numbers by the positions of their tokens, which begin at first: n_tokens ×
/// heads · d_head, in place.
void rotate(arma::fmat& heads, std::size_t d_head, const positions::Rotary& rotary, std::size_t first);

/// The norms of every head's numbers on their own, as Qwen 3 has them, in place.
void norm_heads(arma::fmat& heads, std::size_t d_head, const Affine& numbers, const Norm& norm);

}  // namespace core::transformer
