#include "core/importing/account.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/files/kinds.hpp"

namespace core::importing {
namespace {

constexpr std::size_t most_listed = 6;
constexpr double rounding_of_a_sum = 0.005;  // of float16, and of numbers printed to four digits

void add_part(std::string& text, const char* what, const std::string& words) {
  if (!words.empty()) text += (text.empty() ? "" : "; ") + std::string(what) + ": " + words;
}

/// A few items by name, the others by their number.
std::string listed(const std::vector<std::string>& items) {
  if (items.size() <= most_listed) return text::joined(items, ", ");
  const std::vector<std::string> first(items.begin(), items.begin() + most_listed);
  return text::joined(first, ", ") + " and " + std::to_string(items.size() - most_listed) + " more";
}

}  // namespace

std::string reservations_text(const Account& account) {
  std::string text;
  add_part(text, "not computed", text::joined(account.left_out, ", ", &LeftOut::words));
  add_part(text, "assumed", text::joined(account.assumed, ", "));
  add_part(text, "not used", listed(account.not_used));
  return text;
}

std::string account_text(const Account& account) {
  std::string text;
  add_part(text, "used", text::joined(account.used, ", "));
  add_part(text, "not computed", text::joined(account.left_out, ", ", &LeftOut::words));
  add_part(text, "assumed", account.assumed.empty() ? "nothing" : text::joined(account.assumed, ", "));
  add_part(text, "not used", account.not_used.empty() ? "nothing" : listed(account.not_used));
  return text;
}

std::vector<std::string> left_out_words(const Account& account) {
  std::vector<std::string> words;
  for (const LeftOut& left_out : account.left_out) words.push_back(left_out.words);
  return words;
}

std::string tensor_words(const formats::TensorInfo& info) {
  return info.name + " " + formats::shape_text(info.shape);
}

void note_unused(Account& account, const formats::TensorFile& file, const std::vector<std::string>& used,
                 const std::string& prefix) {
  std::vector<std::string> others;
  for (const formats::TensorInfo& info : file.tensors()) {
    const bool is_names = info.dtype == formats::Dtype::text && info.name == "tokens";
    if (is_names || std::ranges::find(used, info.name) != used.end()) continue;
    (info.name.starts_with(prefix) ? account.not_used : others).push_back(tensor_words(info));
  }
  if (others.size() == 1) account.not_used.push_back(others.front());
  if (others.size() > 1)
    account.not_used.push_back(std::to_string(others.size()) + " tensors of other parts");
}

void require_ignored(const Account& account, const std::vector<std::string>& ignored,
                     const std::string& place) {
  std::vector<LeftOut> refused;
  for (const LeftOut& left_out : account.left_out) {
    const auto is_named = [&](const std::string& name) { return name == left_out.name || name == "all"; };
    if (std::ranges::none_of(ignored, is_named)) refused.push_back(left_out);
  }
  if (refused.empty()) return;
  throw Error(place + "expected attention without " + text::joined(refused, ", ", &LeftOut::words, " and ") +
              ", which cannot be computed yet; --ignore " + text::joined(refused, ",", &LeftOut::name) +
              " opens it without them");
}

std::string names_to_ignore() {
  return text::joined(formats::checkpoints::absences(), ", ", &formats::checkpoints::Absence::name);
}

bool can_be_ignored(const std::string& name) {
  return name == "all" || std::ranges::any_of(formats::checkpoints::absences(),
                                              [&](const auto& absence) { return name == absence.name; });
}

Account account_of_given(const attention::Model& model, const std::vector<formats::GivenTensor>& given) {
  using attention::Stage;
  Account account;
  for (const formats::GivenTensor& tensor : given)
    account.used.push_back(tensor.source + " as " + tensor.stage);
  if (model.given.find(Stage::weights)) return account;
  if (!model.given.find(Stage::masked_scores)) account.assumed.push_back("not causal: every key is seen");
  if (!model.given.find(Stage::masked_scores) && !model.given.find(Stage::scaled_scores))
    account.assumed.push_back(scale_words(model));
  return account;
}

std::string scale_words(const attention::Model& model) {
  using attention::ScaleRule;
  switch (model.scale.rule) {
    case ScaleRule::inverse_sqrt_d_head:
      return model.d_head() > 0 ? "scale 1/√" + std::to_string(model.d_head()) : "scale 1/√d_head";
    case ScaleRule::inverse_sqrt_d_model:
      return "scale 1/√" + std::to_string(model.d_model());
    case ScaleRule::none:
      return "no scale";
    case ScaleRule::factor:
      break;
  }
  return "scale " + text::number_text(model.scale.factor);
}

std::string row_sums_note(const attention::Model& model) {
  const attention::GivenStage* weights = model.given.find(attention::Stage::weights);
  if (!weights) return "";
  std::size_t n_rows = 0, n_wrong = 0;
  std::string first;
  for (std::size_t m = 0; m < weights->matrices.size(); ++m) {
    const arma::mat& matrix = weights->matrices[m];
    const arma::vec sums = arma::sum(matrix, 1);
    for (std::size_t i = 0; i < sums.n_elem; ++i, ++n_rows) {
      if (std::abs(sums[i] - 1) <= rounding_of_a_sum) continue;
      if (n_wrong++ == 0)
        first = "row " + std::to_string(i) + " of head " + std::to_string(m % model.n_heads) + " sums to " +
                text::number_text(std::round(sums[i] * 1e4) / 1e4);
    }
  }
  if (n_wrong == 0) return "";
  return "The weights are no weights of a softmax: " + std::to_string(n_wrong) + " of " +
         std::to_string(n_rows) + " rows do not sum to 1 (" + first + ").";
}

}  // namespace core::importing
