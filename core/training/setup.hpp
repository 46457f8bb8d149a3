#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "core/files/json.hpp"

/// Small transformers that learn a task: their setup, training, and the result as a whole model.
namespace core::training {

using formats::Word;

/// Where positions enter: nowhere, a learned embedding of each, in RoPE, or in ALiBi.
enum class PositionChoice { none, learned, rotary, alibi };
/// Norm before attention, before the MLP and before the unembedding.
enum class NormChoice { none, layer, rms };
enum class OptimizerChoice { adam, sgd };

inline constexpr std::array position_words{
    Word{"none", PositionChoice::none}, Word{"learned", PositionChoice::learned},
    Word{"rotary", PositionChoice::rotary}, Word{"alibi", PositionChoice::alibi}};
inline constexpr std::array norm_words{Word{"none", NormChoice::none}, Word{"layer", NormChoice::layer},
                                       Word{"rms", NormChoice::rms}};
inline constexpr std::array optimizer_words{Word{"adam", OptimizerChoice::adam},
                                            Word{"sgd", OptimizerChoice::sgd}};

inline constexpr std::array mask_words{Word{"on", true}, Word{"off", false}};

/// Returns the word of a table that has the meaning.
template <class Words>
const char* word_of(const Words& words, decltype(Words::value_type::meaning) meaning) {
  for (const auto& word : words)
    if (word.meaning == meaning) return word.text;
  return "";
}

/// Everything that determines a run, besides its task. Equal setups give equal runs.
struct TrainingSetup {
  std::size_t n_layers = 1;  ///< 1 to 3
  std::size_t n_heads = 1;   ///< 1 to 4
  std::size_t d_model = 32;  ///< 16 to 64
  PositionChoice positions = PositionChoice::learned;
  std::size_t n_kv_heads = 0;  ///< a divisor of n_heads; 0: one for each head
  std::size_t d_mlp = 0;       ///< hidden units of the MLPs, 0 to 256; 0: no MLPs
  NormChoice norm = NormChoice::layer;
  bool causal = true;
  double dropout = 0;  ///< of attention weights, 0 to 0.9
  OptimizerChoice optimizer = OptimizerChoice::adam;
  double rate = 3e-3;         ///< learning rate, 1e-6 to 10, after a warmup of 20 steps
  std::size_t batch = 16;     ///< sequences of a step, 1 to 256
  std::string mistake;        ///< name of a bug that is injected into every layer, or ""
  std::size_t n_steps = 300;  ///< 1 to 100,000, of a run that nobody stops
  std::size_t seed = 1;
  friend bool operator==(const TrainingSetup&, const TrainingSetup&) = default;

  std::size_t kv_heads() const { return n_kv_heads > 0 ? n_kv_heads : n_heads; }
  std::size_t d_head() const { return d_model / n_heads; }
  /// Returns whether projections and MLPs have biases: MPT, the model with ALiBi, has none.
  bool has_biases() const { return positions != PositionChoice::alibi; }
};

/// Returns whether a run with one setup can learn on with the other: the networks have the same parameters.
/// Optimizer, rate, batch, number of steps, dropout, mask and bug may differ.
bool learns_on(const TrainingSetup& before, const TrainingSetup& after);

/// An option of a setup that cannot be trained.
struct SetupProblem {
  const char* option;   ///< as on the command line: "--heads"
  std::string message;  ///< what was expected and what was found, in one line
};

/// Returns the first problem of a setup, or nothing if it can be trained.
std::optional<SetupProblem> check(const TrainingSetup& setup);

/// Throws core::Error, "OPTION: message", if check() finds a problem.
void require(const TrainingSetup& setup);

}  // namespace core::training
