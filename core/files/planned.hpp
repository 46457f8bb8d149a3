#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/files/tensor.hpp"
#include "core/graph/additions.hpp"

/// What a layer adds to the paper's attention, as its configuration and names tell it, before its tensors are
/// read.
namespace core::formats::checkpoints {

/// How a head's slope follows from its number: as in Bloom; as there, times the scale of the scores; or as in
/// MPT, which orders them otherwise when heads are no power of two.
enum class Slopes { bloom, scaled, mpt };

struct PlannedAlibi {
  Slopes slopes = Slopes::bloom;
  double largest = 8;  ///< the last slope is 2 to the minus this
};

/// Rotary positions; the columns that turn are a fraction of a head's unless rotary tells their number.
struct PlannedRotary {
  positions::Rotary rotary;
  double fraction = 1;
};

struct PlannedRelative {
  std::string table;  ///< a tensor [buckets, heads]
  std::size_t max_distance = 128;
  bool bidirectional = true;
};

struct PlannedNorm {
  std::string query, key;  ///< tensors [d_head]
  bool plus_one = false;   ///< whether factors are 1 + the tensor's numbers, as in Gemma
  double epsilon = 1e-6;
};

struct Planned {
  std::optional<PlannedRotary> rotary;
  std::optional<PlannedAlibi> alibi;
  std::optional<PlannedRelative> relative;
  std::optional<PlannedNorm> norm;
  std::optional<double> cap;
  std::string sink;  ///< a tensor [heads], or ""
};

/// The tensors that it needs.
std::vector<std::string> tensors_of(const Planned& planned);

/// Each in a few words: "rotary positions, base 10000, pairs of halves, 0.25 of the columns".
std::string words_of(const PlannedRotary& rotary);
std::string words_of(const PlannedAlibi& alibi);
std::string words_of(const PlannedRelative& relative);
std::string words_of(const PlannedNorm& norm);

/// Reads what is planned for heads of that number and width. Throws core::Error, "FILE: …", when it does not
/// fit them.
attention::Additions read_additions(const TensorFile& file, const Planned& planned, std::size_t n_heads,
                                    std::size_t d_head, const Token& progress);

}  // namespace core::formats::checkpoints
