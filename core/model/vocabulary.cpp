#include "core/model/vocabulary.hpp"

#include <utility>

namespace core::tokenizers {

void Vocabulary::put(std::string piece, std::size_t id) {
  if (id >= pieces_.size()) pieces_.resize(id + 1);
  pieces_[id] = piece;
  ids_.insert_or_assign(std::move(piece), id);
}

std::optional<std::size_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string& Vocabulary::piece(std::size_t id) const {
  static const std::string none;
  return id < pieces_.size() ? pieces_[id] : none;
}

}  // namespace core::tokenizers
