#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/token_lines.hpp"
#include "core/attention/head_facts.hpp"
#include "core/attention/row_facts.hpp"
#include "core/attention/stages.hpp"
#include "core/attention/trace.hpp"

namespace app {

/// What takes a while to work out of all weights of a trace, each once for a version of it.
class Figures {
 public:
  /// The facts of every head.
  const std::vector<core::attention::HeadFacts>& heads(const core::attention::Trace& trace, std::uint64_t version,
                                                       std::span<const std::string> tokens);
  const arma::mat& likeness(const core::attention::Trace& trace, std::uint64_t version);
  /// The facts of every row of a stage.
  const std::vector<core::attention::RowFacts>& rows(const core::attention::Trace& trace, std::uint64_t version,
                                                     core::attention::Stage stage, std::size_t head);
  /// The lines of the last choice.
  const TokenLines& lines(const core::attention::Trace& trace, std::uint64_t version, const LineChoice& choice);

 private:
  struct Lines {
    LineChoice choice;
    TokenLines found;
  };

  void start_with(std::uint64_t version);

  std::uint64_t version_ = 0;
  std::optional<std::vector<core::attention::HeadFacts>> heads_;
  std::optional<arma::mat> likeness_;
  std::optional<Lines> lines_;
  std::map<std::pair<core::attention::Stage, std::size_t>, std::vector<core::attention::RowFacts>> rows_;
};

/// Whether the likeness of a trace's heads takes no longer than a frame or two.
bool likeness_is_quick(const core::attention::Trace& trace);

}  // namespace app
