#pragma once

#include <span>

#include "core/lessons/lesson.hpp"

/// The steps of each lesson, one file each.
namespace core::lessons {

std::span<const Step> causal_attention_steps();  ///< notebook 000
std::span<const Step> dot_products_steps();      ///< notebook 001, up to the contexts and batches
std::span<const Step> multi_head_steps();        ///< notebook 001, from the mask to the heads
std::span<const Step> why_attention_steps();     ///< notebook 002
std::span<const Step> causal_class_steps();      ///< notebook 003
std::span<const Step> two_masks_steps();         ///< notebook 004
std::span<const Step> dropout_steps();
std::span<const Step> scaling_steps();
std::span<const Step> heads_steps();
std::span<const Step> positions_steps();
std::span<const Step> groups_steps();
std::span<const Step> window_steps();
std::span<const Step> decode_steps();
std::span<const Step> next_word_steps();       ///< about a whole model
std::span<const Step> induction_head_steps();  ///< about a whole model

}  // namespace core::lessons
