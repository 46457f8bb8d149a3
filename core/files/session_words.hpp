#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "core/files/json.hpp"
#include "core/graph/model.hpp"

/// The words of the session file for the choices of a model; reading and writing share them.
namespace core::formats {

inline constexpr std::array score_words{
    Word{"query_key", attention::ScoreRule::query_key},
    Word{"uniform", attention::ScoreRule::uniform},
};
inline constexpr std::array scale_words{
    Word{"inverse_sqrt_d_head", attention::ScaleRule::inverse_sqrt_d_head},
    Word{"none", attention::ScaleRule::none},
    Word{"inverse_sqrt_d_model", attention::ScaleRule::inverse_sqrt_d_model},
};
inline constexpr std::array method_words{
    Word{"negative_infinity", attention::MaskMethod::negative_infinity},
    Word{"renormalise", attention::MaskMethod::renormalise},
    Word{"zero_after_softmax", attention::MaskMethod::zero_after_softmax},
    Word{"large_negative", attention::MaskMethod::large_negative},
};
inline constexpr std::array empty_row_words{
    Word{"nan", attention::EmptyRows::nan},
    Word{"zeros", attention::EmptyRows::zeros},
};
inline constexpr std::array alignment_words{
    Word{"last", attention::MaskAlignment::last},
    Word{"first", attention::MaskAlignment::first},
};
inline constexpr std::array norm_words{
    Word{"rms", attention::NormRule::rms},
    Word{"layer", attention::NormRule::layer},
};
inline constexpr std::array pair_words{
    Word{"halves", positions::Pairs::halves},
    Word{"neighbours", positions::Pairs::neighbours},
};
inline constexpr std::array scaling_words{
    Word{"linear", positions::ScalingRule::linear},
    Word{"llama3", positions::ScalingRule::llama3},
};
inline constexpr std::array stream_words{
    Word{"mt19937", attention::DropoutStream::mt19937},
    Word{"mkl", attention::DropoutStream::mkl},
};
inline constexpr std::array merge_words{
    Word{"concatenate", attention::MergeRule::concatenate},
    Word{"reshape_without_transpose", attention::MergeRule::reshape_without_transpose},
};

inline constexpr std::array softmax_words{
    Word{"keys", attention::SoftmaxOver::keys},
    Word{"queries", attention::SoftmaxOver::queries},
};
inline constexpr std::array dropout_place_words{
    Word{"weights", attention::DropoutPlace::weights},
    Word{"scaled_scores", attention::DropoutPlace::scaled_scores},
    Word{"masked_scores", attention::DropoutPlace::masked_scores},
};
inline constexpr std::array head_column_words{
    Word{"bands", attention::HeadColumns::bands},
    Word{"interleaved", attention::HeadColumns::interleaved},
};
inline constexpr std::array precision_words{
    Word{"float64", attention::Precision::float64}, Word{"float32", attention::Precision::float32},
    Word{"float16", attention::Precision::float16}, Word{"bfloat16", attention::Precision::bfloat16},
    Word{"tf32", attention::Precision::tf32},
};
inline constexpr std::array block_rule_words{
    Word{"whole", attention::BlockRule::whole},
    Word{"not_rescaled", attention::BlockRule::not_rescaled},
    Word{"sum_not_rescaled", attention::BlockRule::sum_not_rescaled},
    Word{"contexts_not_rescaled", attention::BlockRule::contexts_not_rescaled},
    Word{"last_dropped", attention::BlockRule::last_dropped},
};

/// The word for a choice, in quotation marks.
template <class Meaning, std::size_t n>
std::string quoted_word(const std::array<Word<Meaning>, n>& words, Meaning meaning) {
  const auto found = std::ranges::find(words, meaning, &Word<Meaning>::meaning);
  return "\"" + std::string(found->text) + "\"";
}

}  // namespace core::formats
