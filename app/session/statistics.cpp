#include "app/session/statistics.hpp"

namespace app {
namespace {

using core::attention::HeadFacts;
using core::attention::RowFacts;
using core::attention::Trace;

constexpr std::uint64_t quick_logarithms = 2'000'000;   // some 30 ms
constexpr std::uint64_t quick_entropy_cells = 400'000;  // some 4 ms of logarithms

StatisticOf key_of(const Trace& trace, std::uint64_t version, std::uint64_t choice = 0) {
  return {version, trace.heads.size(), trace.mask.n_rows(), choice};
}

bool is_quick(const Trace& trace) {
  const std::uint64_t n = trace.mask.n_rows();
  return trace.heads.size() * n * n <= quick_entropy_cells;
}

std::vector<RowFacts> facts_of_rows(const Trace& trace, core::attention::Stage stage, std::size_t head,
                                    const core::Token& token) {
  std::vector<RowFacts> facts;
  const core::attention::StageMatrix& numbers = core::attention::info(stage).matrix(trace, head);
  for (std::size_t i = 0; i < numbers.n_rows() && token.goes_on(); ++i)
    facts.push_back(core::attention::row_facts(numbers, i));
  return facts;
}

}  // namespace

/// make(trace, token) gives the value of any trace.
template <class Value, class Make>
const Value* Statistics::worked_out(Slot<StatisticOf, Value>& slot, const Trace& trace,
                                    const StatisticOf& key, bool is_quick, const Make& make) {
  const bool at_once = is_quick || !may_wait(trace);
  const When when = at_once ? When::at_once : When::when_still;
  if (slot.needs(key, when)) {
    if (at_once) {
      slot.begin(key, when, [&](const core::Token& token) { return make(trace, token); });
    } else {
      const Lease lease = live_->lease();
      slot.begin(
          key, when, [trace = lease.trace, make](const core::Token& token) { return make(*trace, token); },
          lease.recalled);
    }
  }
  return slot.value() && slot.key()->is_near(key) ? slot.value() : nullptr;
}

const std::vector<HeadFacts>& Statistics::heads(const Trace& trace, std::uint64_t version,
                                                std::span<const std::string> tokens) {
  const auto make = [names = std::vector<std::string>(tokens.begin(), tokens.end())](
                        const Trace& of, const core::Token& token) {
    std::vector<HeadFacts> facts;
    for (const auto& head : of.heads)
      facts.push_back(core::attention::head_facts(head.weights, names, token));
    return facts;
  };
  if (const auto* facts = worked_out(heads_, trace, key_of(trace, version), is_quick(trace), make))
    return *facts;
  no_facts_.assign(trace.heads.size(), {});
  return no_facts_;
}

const std::vector<RowFacts>& Statistics::rows(const Trace& trace, std::uint64_t version,
                                              core::attention::Stage stage, std::size_t head) {
  const RowsOf which{stage, core::attention::info(stage).per_head ? head : 0};
  asked_rows_.insert(which);
  const bool at_once = is_quick(trace) || !may_wait(trace);
  if (!wanted_rows_.contains(which) &&
      (at_once || wanted_rows_.empty())) {  // else it waits for the next frame
    wanted_rows_.insert(which);
    ++row_choices_;
  }
  const auto make = [wanted = wanted_rows_](const Trace& of, const core::Token& token) {
    AllRows facts;
    for (const auto& [s, h] : wanted)
      if (h < of.heads.size()) facts[{s, h}] = facts_of_rows(of, s, h, token);  // else the last trace had it
    return facts;
  };
  const AllRows* known =
      worked_out(rows_, trace, key_of(trace, version, row_choices_), is_quick(trace), make);
  const auto found = known ? known->find(which) : AllRows::const_iterator{};
  return known && found != known->end() ? found->second : no_rows_;
}

const arma::mat& Statistics::likeness(const Trace& trace, std::uint64_t version) {
  const auto make = [](const Trace& of, const core::Token& token) {
    return core::attention::likeness_of_heads(of, token);
  };
  const auto* known = worked_out(likeness_, trace, key_of(trace, version), likeness_is_quick(trace), make);
  return known ? *known : no_likeness_;
}

const TokenLines& Statistics::lines(const Trace& trace, std::uint64_t version, const LineChoice& choice) {
  if (choice_ != choice) choice_ = choice, ++choices_;
  const auto make = [choice](const Trace& of, const core::Token& token) {
    return token_lines(of, choice, token);
  };
  const auto* known = worked_out(lines_, trace, key_of(trace, version, choices_), is_quick(trace), make);
  return known ? *known : no_lines_;
}

void Statistics::read_from(const LiveTrace& live) {
  live_ = &live;
  std::set<RowsOf> asked = std::exchange(asked_rows_, {});
  if (asked.empty() || asked == wanted_rows_) return;
  wanted_rows_ = std::move(asked);
  ++row_choices_;
}

bool likeness_is_quick(const Trace& trace) {
  const std::uint64_t n_heads = trace.heads.size(), n_tokens = trace.mask.n_rows();
  return n_heads * (n_heads - 1) / 2 * n_tokens * n_tokens <= quick_logarithms;
}

}  // namespace app
