#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "core/base/thread_pool.hpp"
#include "core/circuits/patching.hpp"

namespace app {

/// Patches between the prompt of a whole model, A, and a second one, B, or why there are none.
struct PatchResult {
  core::circuits::PatchMap map;
  std::vector<std::string> clean_tokens, corrupt_tokens;
  std::string error;  ///< one line, or ""
};

/// Patches parts of A into B in the background, while they are wanted.
class LivePatches {
 public:
  explicit LivePatches(Jobs& jobs) : results_(jobs) {}

  /// Requests the patches of a form, or stops. Once a frame.
  void follow(const FullModelState& full_model, const PromptsForm& form);
  void clear() { results_.clear(); }

  /// Returns the patches of that model and form, or nullptr.
  const PatchResult* of(const FullModelState& full_model, const PromptsForm& form) const;
  bool is_busy() const { return results_.is_busy(); }
  double share() const { return results_.share(); }

 private:
  struct Key {
    const void* model = nullptr;
    std::string clean;
    PromptsForm form;
    friend bool operator==(const Key&, const Key&) = default;
  };
  static Key key_of(const FullModelState& full_model, const PromptsForm& form);

  std::shared_ptr<core::ThreadPool> pool_;
  AsyncValue<Key, PatchResult> results_;
};

/// Returns why prompts of a model cannot be patched, or "".
std::string no_patches_reason(const FullModelState& full_model);

/// Returns the recovered shares as CSV, a row for each layer.
std::string patches_csv(const PatchResult& result);

}  // namespace app
