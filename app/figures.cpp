#include "app/figures.hpp"

namespace app {

constexpr std::uint64_t quick_logarithms = 2'000'000;  // some 30 ms

void Figures::start_with(std::uint64_t version) {
  if (version == version_) return;
  version_ = version;
  heads_.reset();
  likeness_.reset();
  lines_.reset();
  rows_.clear();
}

const std::vector<core::attention::RowFacts>& Figures::rows(const core::attention::Trace& trace, std::uint64_t version,
                                                            core::attention::Stage stage, std::size_t head) {
  start_with(version);
  const core::attention::StageInfo& info = core::attention::info(stage);
  const auto [it, is_new] = rows_.try_emplace({stage, info.per_head ? head : 0});
  if (is_new) {
    const arma::mat& numbers = info.matrix(trace, head);
    for (std::size_t i = 0; i < numbers.n_rows; ++i) it->second.push_back(core::attention::row_facts(numbers, i));
  }
  return it->second;
}

const std::vector<core::attention::HeadFacts>& Figures::heads(const core::attention::Trace& trace, std::uint64_t version,
                                                              std::span<const std::string> tokens) {
  start_with(version);
  if (!heads_) {
    heads_.emplace();
    for (const auto& head : trace.heads) heads_->push_back(core::attention::head_facts(head.weights, tokens));
  }
  return *heads_;
}

const arma::mat& Figures::likeness(const core::attention::Trace& trace, std::uint64_t version) {
  start_with(version);
  if (!likeness_) likeness_ = core::attention::likeness_of_heads(trace);
  return *likeness_;
}

const TokenLines& Figures::lines(const core::attention::Trace& trace, std::uint64_t version, const LineChoice& choice) {
  start_with(version);
  if (!lines_ || !(lines_->choice == choice)) lines_ = Lines{choice, token_lines(trace, choice)};
  return lines_->found;
}

bool likeness_is_quick(const core::attention::Trace& trace) {
  const std::uint64_t n_heads = trace.heads.size(), n_tokens = trace.mask.n_rows;
  return n_heads * (n_heads - 1) / 2 * n_tokens * n_tokens <= quick_logarithms;
}

}  // namespace app
