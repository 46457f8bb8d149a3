#include "app/figures.hpp"

namespace app {
namespace {

using core::attention::GoesOn;
using core::attention::HeadFacts;
using core::attention::RowFacts;
using core::attention::Trace;

constexpr std::uint64_t quick_logarithms = 2'000'000;  // some 30 ms
constexpr std::uint64_t quick_cells = 400'000;         // some 4 ms of logarithms

FigureOf key_of(const Trace& trace, std::uint64_t version, std::uint64_t choice = 0) {
  return {version, trace.heads.size(), trace.mask.n_rows(), choice};
}

bool is_quick(const Trace& trace) {
  const std::uint64_t n = trace.mask.n_rows();
  return trace.heads.size() * n * n <= quick_cells;
}

std::vector<HeadFacts> facts_of(const Trace& trace, std::span<const std::string> tokens,
                                const GoesOn& goes_on) {
  std::vector<HeadFacts> facts;
  for (const auto& head : trace.heads)
    facts.push_back(core::attention::head_facts(head.weights, tokens, goes_on));
  return facts;
}

std::vector<RowFacts> facts_of_rows(const Trace& trace, core::attention::Stage stage, std::size_t head,
                                    const GoesOn& goes_on) {
  std::vector<RowFacts> facts;
  const core::attention::StageMatrix& numbers = core::attention::info(stage).matrix(trace, head);
  for (std::size_t i = 0; i < numbers.n_rows() && (!goes_on || goes_on()); ++i)
    facts.push_back(core::attention::row_facts(numbers, i));
  return facts;
}

}  // namespace

const std::vector<HeadFacts>& Figures::heads(const Trace& trace, std::uint64_t version,
                                             std::span<const std::string> tokens) {
  const bool at_once = is_quick(trace) || !may_wait(trace);
  Figure<std::vector<HeadFacts>>::Make make = [&](const GoesOn& goes_on) {
    return facts_of(trace, tokens, goes_on);
  };
  if (!at_once)
    make = [held = held_, names = std::vector<std::string>(tokens.begin(), tokens.end())](
               const GoesOn& goes_on) { return facts_of(*held, names, goes_on); };
  if (const auto* facts = heads_.of(key_of(trace, version), at_once, make)) return *facts;
  no_facts_.assign(trace.heads.size(), {});
  return no_facts_;
}

const std::vector<RowFacts>& Figures::rows(const Trace& trace, std::uint64_t version,
                                           core::attention::Stage stage, std::size_t head) {
  const RowsOf which{stage, core::attention::info(stage).per_head ? head : 0};
  asked_rows_.insert(which);
  const bool at_once = is_quick(trace) || !may_wait(trace);
  if (!wanted_rows_.contains(which) &&
      (at_once || wanted_rows_.empty())) {  // else it waits for the next frame
    wanted_rows_.insert(which);
    ++row_choices_;
  }
  const auto all = [wanted = wanted_rows_](const Trace& of, const GoesOn& goes_on) {
    AllRows facts;
    for (const auto& [s, h] : wanted)
      if (h < of.heads.size())
        facts[{s, h}] = facts_of_rows(of, s, h, goes_on);  // else the last trace had it
    return facts;
  };
  Figure<AllRows>::Make make = [&](const GoesOn& goes_on) { return all(trace, goes_on); };
  if (!at_once) make = [held = held_, all](const GoesOn& goes_on) { return all(*held, goes_on); };
  const AllRows* known = rows_.of(key_of(trace, version, row_choices_), at_once, make);
  const auto found = known ? known->find(which) : AllRows::const_iterator{};
  return known && found != known->end() ? found->second : no_rows_;
}

const arma::mat& Figures::likeness(const Trace& trace, std::uint64_t version) {
  const bool at_once = likeness_is_quick(trace) || !may_wait(trace);
  Figure<arma::mat>::Make make = [&](const GoesOn& goes_on) {
    return core::attention::likeness_of_heads(trace, goes_on);
  };
  if (!at_once)
    make = [held = held_](const GoesOn& goes_on) {
      return core::attention::likeness_of_heads(*held, goes_on);
    };
  const arma::mat* likeness = likeness_.of(key_of(trace, version), at_once, make);
  return likeness ? *likeness : no_likeness_;
}

const TokenLines& Figures::lines(const Trace& trace, std::uint64_t version, const LineChoice& choice) {
  const bool at_once = is_quick(trace) || !may_wait(trace);
  Figure<TokenLines>::Make make = [&](const GoesOn& goes_on) { return token_lines(trace, choice, goes_on); };
  if (!at_once)
    make = [held = held_, choice](const GoesOn& goes_on) { return token_lines(*held, choice, goes_on); };
  if (choice_ != choice) choice_ = choice, ++choices_;
  const TokenLines* lines = lines_.of(key_of(trace, version, choices_), at_once, make);
  return lines ? *lines : no_lines_;
}

void Figures::read_from(std::shared_ptr<const Trace> trace) {
  held_ = std::move(trace);
  heads_.next_frame(), likeness_.next_frame(), lines_.next_frame(), rows_.next_frame();
  std::set<RowsOf> asked = std::exchange(asked_rows_, {});
  if (asked.empty() || asked == wanted_rows_) return;
  wanted_rows_ = std::move(asked);
  ++row_choices_;
}

void Figures::stop() {
  held_.reset();
  heads_.stop(), likeness_.stop(), lines_.stop(), rows_.stop();
}

void Figures::when_done(const std::function<void()>& call) {
  heads_.when_done(call);
  likeness_.when_done(call);
  lines_.when_done(call);
  rows_.when_done(call);
}

bool likeness_is_quick(const Trace& trace) {
  const std::uint64_t n_heads = trace.heads.size(), n_tokens = trace.mask.n_rows();
  return n_heads * (n_heads - 1) / 2 * n_tokens * n_tokens <= quick_logarithms;
}

}  // namespace app
