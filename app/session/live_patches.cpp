#include "app/session/live_patches.hpp"

#include <algorithm>

#include "core/base/number.hpp"

namespace app {

namespace circuits = core::circuits;
namespace transformer = core::transformer;

std::string no_patches_reason(const FullModelState& full_model) {
  const auto& of = full_model.model->description();
  if (of.is_attached)
    return "Patches need the numbers of every layer, which an attached model does not send; open its files.";
  if (full_model.experiment.is_edited())
    return "Patches are of the model without edits. Discard the edits first.";
  return of.no_prediction_reason;
}

LivePatches::Key LivePatches::key_of(const FullModelState& full_model, const PromptsForm& form) {
  Key key{full_model.model.get(), core::experiment::whole_text(*full_model.model, full_model.experiment),
          form};
  key.form.runs = true;
  return key;
}

void LivePatches::follow(const FullModelState& full_model, const PromptsForm& form) {
  const auto* own = dynamic_cast<const transformer::Transformer*>(full_model.model.get());
  if (!own || !form.runs || !no_patches_reason(full_model).empty()) return results_.cancel();
  const Key key = key_of(full_model, form);
  if (!results_.needs(key)) return;
  if (!pool_) pool_ = std::make_shared<core::ThreadPool>();
  results_.begin(key, Schedule::background,
                 [key, model = full_model.model, own, pool = pool_](const core::StopToken& token) {
                   PatchResult result;
                   try {
                     const auto read = [&](const std::string& text, std::vector<std::string>& names) {
                       const auto tokens = own->tokenize(text);
                       names = transformer::token_names(*own, tokens);
                       return core::tokenizers::ids_of(tokens);
                     };
                     const circuits::PromptPair prompts{
                         read(key.clean, result.clean_tokens), read(key.form.corrupt, result.corrupt_tokens),
                         circuits::answer_token(*own, key.form.answer, "answer"),
                         circuits::answer_token(*own, key.form.against, "against")};
                     result.map =
                         circuits::patch(circuits::Float64Model(*own), prompts,
                                         {transformer::patched_parts()[key.form.part].part}, {*pool, token});
                   } catch (const core::Stopped&) {
                     throw;
                   } catch (const core::Error& error) {
                     result.error = error.what();
                   }
                   return result;
                 });
}

const PatchResult* LivePatches::of(const FullModelState& full_model, const PromptsForm& form) const {
  return results_.matches(key_of(full_model, form)) ? results_.value() : nullptr;
}

std::string patches_csv(const PatchResult& result) {
  std::string text = "layer";
  const arma::mat& recovered = result.map.recovered;
  for (std::size_t k = 0; k < recovered.n_cols; ++k) text += "," + std::to_string(k);
  for (std::size_t l = 0; l < recovered.n_rows; ++l) {
    text += "\r\n" + std::to_string(l);
    for (const double share : arma::rowvec(recovered.row(l))) text += "," + core::text::number_text(share);
  }
  return text + "\r\n";
}

}  // namespace app
