#include "app/tensor_check.hpp"

#include "core/check/their_trace.hpp"
#include "core/error.hpp"

namespace app {

std::shared_ptr<const TensorCheck> checked_tensors(const CheckKey& key, const Reference& reference,
                                                   const core::attention::Model& live,
                                                   std::atomic<std::size_t>& tried,
                                                   const core::attention::GoesOn& goes_on) {
  auto check = std::make_shared<TensorCheck>();
  try {
    check->matched = core::check::match(live, *reference.tensors, reference.by_hand, key.sequence);
  } catch (const core::Error& error) {
    check->problem = error.what();
    return check;
  }
  check->searched = key.searches;
  check->report = core::check::check(live, check->matched, {}, [&] {
    check->searched = check->searched && (!goes_on || goes_on());
    ++tried;
    return check->searched;
  });
  core::check::TheirTrace theirs =
      core::check::their_trace(live, check->matched, check->report, key.sequence);
  check->theirs = std::move(theirs.trace);
  check->stages = std::move(theirs.stages);
  return check;
}

}  // namespace app
