#pragma once

namespace core::attention::fast {

/// Queries, keys and values: each is a projection of embeddings, or the embeddings themselves.
enum class Projected { queries, keys, values };

}  // namespace core::attention::fast
