#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/files/pickle.hpp"

namespace core::formats::readers {

/// What calling a name with a tuple of arguments would give, when it is one that tensors are made with: a
/// tensor, a dict, a tuple or bytes; or nothing.
///
/// Throws core::Error for arguments that do not fit.
std::optional<PickleValue> called(Pickle& pickle, const PickleValue& function, const PickleValue& arguments,
                                  const std::string& place);

/// The storage that a tuple ('storage', type, key, device, count) names, or the class of a module that one of
/// ('module', class, …) does. Throws core::Error.
PickleValue storage_named(Pickle& pickle, const PickleValue& tuple, const std::string& place);

/// Throws core::Error when the state that an object gets is that of a module; the outermost is called so.
void refuse_module(const Pickle& pickle, const PickleValue& state, const std::string& outermost,
                   const std::string& place);

/// Throws core::Error for a function or a class that is none of ours, with what to do instead.
[[noreturn]] void refuse_name(const std::string& name, const std::string& place);

/// Whether a name is that of a type of numbers, such as torch.float32.
bool names_dtype(std::string_view name);

}  // namespace core::formats::readers
