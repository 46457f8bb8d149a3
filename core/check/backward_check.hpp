#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/token.hpp"
#include "core/check/check.hpp"
#include "core/check/match.hpp"

/// "Why is my backward different?": compares a user's gradients with those of a model.
namespace core::check {

/// Whether a name is that of a gradient: "d_queries", "dq", "q.grad", "d_query_weight".
bool is_gradient(std::string_view name);

/// Tensors of a file: gradients, named after what they are of, and the others.
struct SplitTensors {
  formats::TensorFile gradients, others;
  std::map<std::string, std::string> names;    ///< of the gradients, in the file
  std::map<std::string, std::string> by_hand;  ///< of the others, see match()

  /// Whether there are gradients beside the one that a backward begins with.
  bool has_gradients() const;
  /// Whether some of the others are stages.
  bool has_stages() const;
};
SplitTensors split_gradients(const formats::TensorFile& file,
                             const std::map<std::string, std::string>& by_hand);

/// Compares gradients with those of a model, and searches for the bug of a backward that explains all of
/// them.
///
/// The backward begins with the gradient of the output, without it with that of the context vectors, or with
/// ones. Throws core::Error as match() does, and for a gradient that it begins with of another shape.
Report check_backward(const Model& model, const SplitTensors& tensors, const MatchOptions& options,
                      const Tolerance& tolerance, const core::StopToken& token = {});

}  // namespace core::check
