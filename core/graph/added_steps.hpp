#pragma once

#include "core/graph/work.hpp"

/// The steps of what models of today add to the paper.
namespace core::explain {

void write_normed(const Work& w, Step& step);
void write_turned(const Work& w, Step& step);
/// Of values, which only a mistake turns.
void write_turned_product(const Work& w, Step& step);
void write_capped(const Work& w, Step& step);
void write_sloped(const Work& w, Step& step);
void write_biased(const Work& w, Step& step);

}  // namespace core::explain
