#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace core::tokenizers {

/// Pieces and their numbers.
class Vocabulary {
 public:
  /// Puts a piece at a number; what had it before keeps its own number as well.
  void put(std::string piece, std::size_t id);

  /// One more than the largest number.
  std::size_t size() const { return pieces_.size(); }
  std::optional<std::size_t> find(std::string_view piece) const;
  /// The piece of a number, "" where there is none.
  const std::string& piece(std::size_t id) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> ids_;
  std::vector<std::string> pieces_;
};

/// A token of a word: its number, and where in the word it ends.
struct Piece {
  std::size_t id = 0;
  std::size_t end = 0;  ///< bytes of the word
  friend bool operator==(const Piece&, const Piece&) = default;
};

}  // namespace core::tokenizers
