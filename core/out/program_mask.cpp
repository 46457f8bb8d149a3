#include "core/out/program_mask.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "core/graph/python.hpp"
#include "core/graph/stages.hpp"
#include "core/out/program_additions.hpp"
#include "core/out/program_forward.hpp"

namespace core::formats {
namespace {

using attention::EmptyRows;
using attention::Mask;
using attention::MaskMethod;
using attention::Model;
using python::line;
using std::to_string;

std::string list(const std::vector<std::size_t>& numbers) {
  return "[" + text::joined(numbers, ", ", [](std::size_t n) { return to_string(n); }) + "]";
}

/// Whether sequences of a batch hide other keys, so that each has a mask of its own.
bool has_masks_of_their_own(const Model& m) {
  return m.sequences.size() > 1 && !m.mask.hidden_keys.empty();
}

/// The rules by which keys are hidden, before those that were switched by hand.
std::string rules_text(const Model& m) {
  const Mask& mask = m.mask;
  const std::string keys = names_keys(m) ? "n_keys" : "n_tokens";
  const bool is_moved = m.n_keys() != m.n_tokens() && mask.align == attention::MaskAlignment::last;
  const char* remark = "  # 1: the query may see the key";
  if (!mask.says_more() || !mask.hides_by_rule())
    return line("mask = torch.ones(n_tokens, " + keys + ")" +
                (!mask.causal ? ""
                 : is_moved   ? ".tril(n_keys - n_tokens)"
                              : ".tril()") +
                remark);
  std::string text =
      line("query, key = torch.arange(n_tokens)[:, None]" +
           std::string(is_moved ? " + n_keys - n_tokens" : "") + ", torch.arange(" + keys + ")");
  text += line(mask.causal ? std::string("mask = key <= query")
                           : "mask = torch.ones(n_tokens, " + keys + ", dtype=bool)");
  if (const auto left = mask.window.left) text += line("mask &= key >= query - " + to_string(*left));
  if (const auto right = mask.window.right; right && !mask.causal)
    text += line("mask &= key <= query + " + to_string(*right));
  if (mask.prefix > 0) text += line("mask |= key < " + to_string(mask.prefix) + "  # the prefix");
  if (!mask.documents.empty())
    text += line("documents = torch.tensor(" + list(mask.documents) + ")") +
            line("mask &= documents[:, None] == documents");
  if (has_masks_of_their_own(m)) text += line("mask = mask.repeat(len(x), 1, 1)");
  for (std::size_t s = 0; s < mask.hidden_keys.size(); ++s)
    if (!mask.hidden_keys[s].empty())
      text += line("mask[" + (has_masks_of_their_own(m) ? to_string(s) + ", " : std::string()) + ":, " +
                   list(mask.hidden_keys[s]) + "] = False  # padding");
  return text + line("mask = mask.double()" + std::string(remark));
}

}  // namespace

std::string program_mask(const Model& m) {
  // Named one by one, as in program_forward().
  [[maybe_unused]] const auto& [causal, method, empty_rows, cells, align, window, prefix, documents,
                                hidden_keys] = m.mask;
  std::string text = rules_text(m);
  const std::string every = has_masks_of_their_own(m) ? "..., " : "";
  for (const auto& [row, column, visible] : cells)
    text +=
        line("mask[" + every + to_string(row) + ", " + to_string(column) + "] = " + (visible ? "1" : "0"));
  const std::string mask = has_masks_of_their_own(m) && m.n_heads > 1 ? "mask.unsqueeze(-3)" : "mask";
  const std::string before = attention::info(last_stages(m).scores).name;
  const std::string softmax = softmax_text(m);
  switch (method) {
    case MaskMethod::negative_infinity:
      text += line("masked_scores = " + before + ".masked_fill(" + mask + " == 0, -torch.inf)") +
              line("weights = " + softmax);
      break;
    case MaskMethod::large_negative:
      text += line("masked_scores = " + before + ".masked_fill(" + mask + " == 0, -1e9)") +
              line("weights = " + softmax);
      break;
    case MaskMethod::zero_after_softmax:
      text += line("masked_scores = " + before + "  # masked after the softmax") +
              line("unmasked_weights = " + softmax) + line("weights = unmasked_weights * " + mask);
      break;
    case MaskMethod::renormalise:
      text += line("masked_scores = " + before + "  # masked after the softmax") +
              line("unmasked_weights = " + softmax) + line("zeroed_weights = unmasked_weights * " + mask) +
              line("row_sums = zeroed_weights.sum(dim=-1, keepdim=True)") +
              line("weights = zeroed_weights / row_sums");
      break;
  }
  switch (empty_rows) {
    case EmptyRows::nan:
      break;
    case EmptyRows::zeros:
      text +=
          line("nothing = ((" + mask + " == 0) | (masked_scores == -torch.inf)).all(dim=-1, keepdim=True)") +
          line("weights = weights.masked_fill(nothing, 0)  # queries that see no key");
      break;
  }
  return text;
}

}  // namespace core::formats
