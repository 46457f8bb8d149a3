#include "app/session/tensor_check.hpp"

#include "app/session/memory.hpp"
#include "core/base/error.hpp"
#include "core/check/check.hpp"

namespace app {

std::shared_ptr<const TensorCheck> checked_tensors(const CheckKey& key, const Reference& reference,
                                                   const core::attention::Model& live,
                                                   const core::Token& token) {
  auto check = std::make_shared<TensorCheck>();
  try {
    check->matched =
        core::check::match(live, *reference.tensors, reference.by_hand,
                           {key.sequence, core::check::find_layout(reference.layout), reference.layer});
  } catch (const core::Error& error) {
    check->problem = error.what();
    return check;
  }
  core::Token no_search;
  no_search.stop();
  check->report = core::check::check(live, check->matched, {}, key.searches ? token : no_search);
  if (key.searches) give_back_memory();  // of hundreds of models that were tried
  check->searched = key.searches && token.goes_on();
  core::check::ObservedTrace observed =
      core::check::observed_trace(live, check->matched, check->report, key.sequence);
  check->observed = std::move(observed.trace);
  check->stages = std::move(observed.stages);
  return check;
}

}  // namespace app
