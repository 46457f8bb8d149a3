#pragma once

#include "core/graph/model.hpp"

/// What models of today add to the paper, each on a few tokens.
namespace core::editing::modern {

/// Four heads that share two keys and values.
attention::Model grouped();

/// One word eight times, so that only rotary positions tell its places apart.
attention::Model rotary();

/// Groups and rotary positions as in Llama 3.
attention::Model llama();

/// A window of four keys.
attention::Model window();

/// One word eight times in eight heads that fall with distance, each at its own slope.
attention::Model alibi();

/// Wide scores that a cap keeps below 2.
attention::Model cap();

/// A window with a sink in each head.
attention::Model sink();

/// Three words that ask four others.
attention::Model cross();

/// The newest word asks a cache of all words up to itself.
attention::Model decode();

}  // namespace core::editing::modern
