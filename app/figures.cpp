#include "app/figures.hpp"

namespace app {
namespace {

using core::attention::HeadFacts;
using core::attention::Trace;

constexpr std::uint64_t quick_logarithms = 2'000'000;  // some 30 ms
constexpr std::uint64_t quick_cells = 400'000;         // some 4 ms of logarithms

FigureOf key_of(const Trace& trace, std::uint64_t version) {
  return {version, trace.heads.size(), trace.mask.n_rows};
}

bool is_quick(const Trace& trace) {
  const std::uint64_t n = trace.mask.n_rows;
  return trace.heads.size() * n * n <= quick_cells;
}

std::vector<HeadFacts> facts_of(const Trace& trace, std::span<const std::string> tokens) {
  std::vector<HeadFacts> facts;
  for (const auto& head : trace.heads) facts.push_back(core::attention::head_facts(head.weights, tokens));
  return facts;
}

}  // namespace

const std::vector<HeadFacts>& Figures::heads(const Trace& trace, std::uint64_t version,
                                             std::span<const std::string> tokens) {
  const bool at_once = is_quick(trace) || !may_wait(trace);
  std::function<std::vector<HeadFacts>()> make = [&] { return facts_of(trace, tokens); };
  if (!at_once)
    make = [held = held_, names = std::vector<std::string>(tokens.begin(), tokens.end())] {
      return facts_of(*held, names);
    };
  if (const auto* facts = heads_.of(key_of(trace, version), at_once, make)) return *facts;
  no_facts_.assign(trace.heads.size(), {});
  return no_facts_;
}

const arma::mat& Figures::likeness(const Trace& trace, std::uint64_t version) {
  const bool at_once = likeness_is_quick(trace) || !may_wait(trace);
  std::function<arma::mat()> make = [&] { return core::attention::likeness_of_heads(trace); };
  if (!at_once) make = [held = held_] { return core::attention::likeness_of_heads(*held); };
  const arma::mat* likeness = likeness_.of(key_of(trace, version), at_once, make);
  return likeness ? *likeness : no_likeness_;
}

const TokenLines& Figures::lines(const Trace& trace, std::uint64_t version, const LineChoice& choice) {
  const bool at_once = is_quick(trace) || !may_wait(trace);
  std::function<TokenLines()> make = [&] { return token_lines(trace, choice); };
  if (!at_once) make = [held = held_, choice] { return token_lines(*held, choice); };
  if (choice_ != choice) choice_ = choice, ++choices_;
  FigureOf key = key_of(trace, version);
  key.version = (version << 32) + choices_;
  const TokenLines* lines = lines_.of(key, at_once, make);
  return lines ? *lines : no_lines_;
}

void Figures::stop() {
  held_.reset();
  heads_.stop();
  likeness_.stop();
  lines_.stop();
}

void Figures::when_done(const std::function<void()>& call) {
  heads_.when_done(call);
  likeness_.when_done(call);
  lines_.when_done(call);
}

bool likeness_is_quick(const Trace& trace) {
  const std::uint64_t n_heads = trace.heads.size(), n_tokens = trace.mask.n_rows;
  return n_heads * (n_heads - 1) / 2 * n_tokens * n_tokens <= quick_logarithms;
}

}  // namespace app
