#include "app/ui/panels/model/additions_popup.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/model/mask_popup.hpp"
#include "app/ui/panels/model/popup_fields.hpp"
#include "app/ui/panels/model/positions_rows.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"

namespace app::panels {
namespace {

using core::attention::HeadNorm;
using core::attention::Model;
using core::attention::NormRule;
using core::attention::SharedMatrix;
using namespace core::editing;

constexpr float wide_labels = 108;          // at scale 1
constexpr std::size_t most_own_keys = 1e6;  // what is typed by mistake is no reason to take all memory

const std::array<std::string, 3> norms{"none", "rms", "layer"};

std::optional<std::size_t> choice(PopupFields& fields, const char* words, const char* name,
                                  std::span<const widgets::Option> options, std::size_t now,
                                  const char* help) {
  fields.row(words);
  const auto chosen = widgets::combo(fields.frame, name, fields.frame.metrics.px(popup_controls),
                                     options[now].words, options, now);
  widgets::tooltip(help);
  return chosen;
}

void groups_row(PopupFields& fields, const Model& model) {
  if (!model.projections) return;
  std::vector<widgets::Option> options;
  std::vector<std::size_t> counts;
  std::size_t now = 0;
  for (std::size_t n = model.n_heads; n > 0; --n) {
    if (model.n_heads % n != 0) continue;
    if (n == model.n_groups()) now = counts.size();
    const char* remark = n == model.n_heads ? " · each head its own" : n == 1 ? " · all heads share" : "";
    options.push_back({std::to_string(n) + remark, ""});
    counts.push_back(n);
  }
  if (const auto chosen =
          choice(fields, "keys, values", "more/groups", options, now,
                 "How many keys and values there are for the heads to share (n_kv_heads); a new one is the "
                 "mean of those that its heads had"))
    fields.frame.commands.edit(SetGroupCount{counts[*chosen]});
}

/// Rows of every sequence's own keys, kept as far as there are, then zeros.
SetKeyEmbeddings with_keys(const Model& model, std::size_t n_keys) {
  SetKeyEmbeddings edit;
  for (const auto& sequence : model.sequences) {
    arma::mat rows(n_keys, model.d_memory(), arma::fill::zeros);
    const arma::mat& old = sequence.key_embeddings;
    if (const arma::uword kept = std::min<arma::uword>(n_keys, old.n_rows))
      rows.head_rows(kept) = old.head_rows(kept);
    edit.embeddings.emplace_back(std::move(rows));
  }
  if (model.has_memory()) edit.tokens = model.sequences.front().keys();
  for (std::size_t j = edit.tokens.size(); j < n_keys; ++j) edit.tokens.push_back(std::to_string(j));
  edit.tokens.resize(n_keys);
  return edit;
}

void keys_rows(PopupFields& fields, const Model& model) {
  if (!model.has_embeddings()) return;
  const std::array options{widgets::Option{"the tokens", "Keys and values are projected from X"},
                           widgets::Option{"a copy of the tokens", "Own rows that begin as those of X"},
                           widgets::Option{"own rows, zeros", "As in cross-attention, or a cache"}};
  const auto chosen = choice(fields, "keys are of", "more/keys", options, model.has_memory() ? 2 : 0,
                             "What keys and values are made of: key_embeddings");
  if (chosen == 0u && model.has_memory()) fields.frame.commands.edit(SetKeyEmbeddings{});
  if (chosen == 1u) {
    SetKeyEmbeddings edit;
    for (const auto& sequence : model.sequences) edit.embeddings.push_back(sequence.embeddings);
    edit.tokens = model.sequences.front().tokens;
    fields.frame.commands.edit(std::move(edit));
  }
  if (chosen == 2u) {
    SetKeyEmbeddings edit;
    const arma::mat zeros(model.n_keys(), model.d_memory(), arma::fill::zeros);
    edit.embeddings.assign(model.sequences.size(), SharedMatrix(zeros));
    fields.frame.commands.edit(std::move(edit));
  }
  const auto typed =
      fields.field("as many", "more/n_keys", model.has_memory() ? std::to_string(model.n_keys()) : "",
                   "How many keys have rows of their own; new ones are zeros. Empty: none.");
  if (!typed) return;
  const auto counts = counts_in(*typed);
  if (counts && counts->empty())
    fields.frame.commands.edit(SetKeyEmbeddings{});
  else if (counts && counts->size() == 1 && counts->front() > 0 && counts->front() <= most_own_keys)
    fields.frame.commands.edit(with_keys(model, counts->front()));
  else
    fields.refuse("keys of their own", "a whole number from 1 to 1000000, or nothing", *typed);
}

void norm_rows(PopupFields& fields, const Model& model) {
  const auto& norm = model.additions.normalise;
  fields.row("norm");
  const std::size_t now = norm ? 1 + static_cast<std::size_t>(norm->rule) : 0;
  if (const auto chosen = widgets::segmented(fields.frame, "more/norm", norms, now)) {
    std::optional<HeadNorm> next;
    if (*chosen > 0) {
      const arma::mat ones(1, model.d_head(), arma::fill::ones);
      next = norm.value_or(HeadNorm{NormRule::rms, ones, ones});
      next->rule = static_cast<NormRule>(*chosen - 1);
    }
    fields.frame.commands.edit(SetHeadNorm{next});
  }
  widgets::tooltip(
      "What every query and key is divided by before they meet: the root of its mean square, or, without its "
      "mean, its standard deviation. The factors q_norm and k_norm begin as ones.");
  if (!norm) return;
  if (const auto epsilon =
          fields.real("ε", "more/epsilon", norm->epsilon, "Added to the mean square under the root")) {
    HeadNorm next = *norm;
    next.epsilon = *epsilon;
    fields.frame.commands.edit(SetHeadNorm{next});
  }
}

void cap_row(PopupFields& fields, const Model& model) {
  const auto& cap = model.additions.score_cap;
  const auto typed = fields.field("cap", "more/cap", cap ? core::text::number_text(*cap) : "",
                                  "c: scaled scores s become c·tanh(s/c), as in Gemma 2. Empty: none.");
  if (!typed) return;
  if (typed->find_first_not_of(' ') == typed->npos) return fields.frame.commands.edit(SetScoreCap{});
  const auto number = widgets::read_number(*typed);
  if (number && *number > 0)
    fields.frame.commands.edit(SetScoreCap{number});
  else
    fields.refuse("cap", "a number above 0, or nothing", *typed);
}

void score_bias_row(PopupFields& fields, const Model& model) {
  const std::array options{widgets::Option{"none", ""}, widgets::Option{"one for all heads", ""},
                           widgets::Option{"one a head", ""}};
  const auto& biases = model.additions.score_bias;
  const std::size_t now = biases.empty() ? 0 : biases.size() == 1 ? 1 : 2;
  const auto chosen =
      choice(fields, "bias", "more/bias", options, now,
             "Added to the scores before the mask, as a float attn_mask is; begins as zeros, or as "
             "the bias that there was (of the first head)");
  if (!chosen || *chosen == now) return;
  SetScoreBias edit;
  const arma::mat zeros(model.n_tokens(), model.n_keys(), arma::fill::zeros);
  if (*chosen > 0)
    edit.value.assign(*chosen == 1 ? 1 : model.n_heads,
                      biases.empty() ? SharedMatrix(zeros) : biases.front());
  fields.frame.commands.edit(std::move(edit));
}

void sink_row(PopupFields& fields, const Model& model) {
  fields.row("sink");
  const auto on = widgets::checkbox(
      fields.frame, "more/sink", "a number a head", model.additions.sink.has_value(),
      "exp(sink) joins the sum of each row of the softmax, so that its weights sum to less than 1; begins as "
      "zeros");
  if (!on) return;
  SetSink edit;
  if (*on) edit.value = arma::mat(1, model.n_heads, arma::fill::zeros);
  fields.frame.commands.edit(std::move(edit));
}

}  // namespace

std::string additions_words(const Model& model, std::size_t sequence) {
  std::vector<std::string> parts;
  const auto& a = model.additions;
  if (model.n_groups() != model.n_heads)
    parts.push_back("grouped " + std::to_string(model.n_heads) + " → " + std::to_string(model.n_groups()));
  if (model.has_memory()) parts.push_back(core::text::counted(model.n_keys(), "own key"));
  if (a.normalise) parts.push_back(norms.at(1 + static_cast<std::size_t>(a.normalise->rule)) + " norm");
  for (const std::string& words : positions_words(a.positions)) parts.push_back(words);
  if (a.score_cap) parts.push_back("cap " + core::text::number_text(*a.score_cap));
  if (!a.score_bias.empty()) parts.push_back(a.score_bias.size() == 1 ? "bias" : "bias a head");
  const bool adds = !parts.empty() || a.sink;
  if (!adds) return "";
  if (const std::string rules = mask_rules_words(model.mask, sequence); !rules.empty())
    parts.push_back(rules);
  if (a.sink) parts.push_back("sink");
  return core::text::joined(parts, " · ");
}

void draw_additions_popup(const Frame& frame, const char* name, ImVec2 top_left) {
  ImGui::SetNextWindowPos(top_left, ImGuiCond_Always);
  if (!ImGui::BeginPopup(name)) return;
  const Model& model = frame.newest.model;
  const ImVec2 start = ImGui::GetCursorScreenPos();
  PopupFields fields{{frame, start, wide_labels}};
  groups_row(fields, model);
  keys_rows(fields, model);
  norm_rows(fields, model);
  positions_rows(fields, model);
  cap_row(fields, model);
  score_bias_row(fields, model);
  sink_row(fields, model);
  platform::move_to(start);
  ImGui::Dummy({frame.metrics.px(wide_labels + popup_controls), fields.at.y - start.y});
  ImGui::EndPopup();
}

}  // namespace app::panels
