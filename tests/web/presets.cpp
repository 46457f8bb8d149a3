// Computes every preset, so that two builds can be compared to the last digit.
//
//   presets           prints the session of each preset and every number of every stage of every sequence
//   presets ROUNDS    prints how many milliseconds computing all of them takes, the median of ROUNDS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/number.hpp"
#include "core/base/shared_matrix.hpp"
#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"

namespace {

using core::attention::Model;

void print(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

void print_stages(const Model& model, std::size_t sequence) {
  const core::attention::Trace trace = core::attention::attend(model, sequence);
  for (const auto& stage : core::attention::stages()) {
    if (!stage.present(model)) continue;
    for (std::size_t head = 0; head < stage.count(model.n_heads); ++head) {
      const arma::mat& numbers = trace.at(stage.stage, head);
      for (std::size_t i = 0; i < numbers.n_rows; ++i) {
        std::string line = stage.name + (' ' + std::to_string(head)) + ' ' + std::to_string(i) + ':';
        for (std::size_t j = 0; j < numbers.n_cols; ++j)
          core::text::append_number(line += ' ', numbers(i, j));
        print(line);
      }
    }
  }
}

/// Expects strtod to read decimals as std::from_chars does, for libraries without the latter.
void check_decimals() {
  constexpr double none = 7, inf = std::numeric_limits<double>::infinity();
  constexpr std::pair<const char*, double> decimals[] = {
      {"0.1", 0.1},       {"-0", -0.0},
      {".5", 0.5},        {"1.", 1},
      {"5e-324", 5e-324}, {"1e-400", 0},
      {"-inf", -inf},     {"1e23", 1e23},
      {"-.25e+2", -25},   {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
      {"1e400", none},    {"+1", none},
      {" 1", none},       {"1e", none},
      {"0x10", none},     {"", none},
      {"1,5", none},      {"1.5.2", none},
      {"-", none},        {"infinity", none}};
  for (const auto& [text, number] : decimals)
    if (!core::attention::same_bits(core::text::parse_number(text).value_or(none), number))
      throw core::Error(std::string("reads another number in ") + text);
}

void print_all() {
  check_decimals();
  for (const auto& preset : core::editing::presets()) {
    print(std::string("preset ") + preset.name);
    const Model model = preset.make();
    const std::string session = core::formats::session_text({model, ""});
    print(session);
    if (core::formats::parse_session(session, preset.name).model != model)
      throw core::Error(preset.name + std::string(": its session reads back as another model"));
    for (std::size_t s = 0; s < model.sequences.size(); ++s) print_stages(model, s);
  }
}

double milliseconds(const std::vector<Model>& models) {
  const auto start = std::chrono::steady_clock::now();
  for (const Model& model : models)
    for (std::size_t s = 0; s < model.sequences.size(); ++s) core::attention::attend(model, s);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median_of(std::size_t n_rounds) {
  std::vector<Model> models;
  for (const auto& preset : core::editing::presets()) models.push_back(preset.make());
  std::vector<double> times(n_rounds);
  for (double& time : times) time = milliseconds(models);
  std::sort(times.begin(), times.end());
  return times[n_rounds / 2];
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto n_rounds = argc > 1 ? core::text::parse_unsigned(argv[1]) : 0;
    if (n_rounds.value_or(0) > 0)
      print(core::text::rounded(median_of(*n_rounds), 1));
    else
      print_all();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
