#pragma once

#include <string>

#include "core/editing/edit.hpp"
#include "core/graph/limits.hpp"

/// The cases of apply(): each changes a copy of a valid model in place.
///
/// They throw core::Error for what only they can see, and before they allocate for a size beyond the limits;
/// what attention::check() finds in the result is left to apply().
namespace core::editing::cases {

using attention::Model;

void change(Model& model, const SetCell& edit);
void change(Model& model, const SetBlock& edit);
void change(Model& model, const RenameToken& edit);
void change(Model& model, const InsertToken& edit);
void change(Model& model, const RemoveToken& edit);
void change(Model& model, const MoveToken& edit);
void change(Model& model, const SetTokenCount& edit);
void change(Model& model, const SetInputWidth& edit);
void change(Model& model, const SetOutputWidth& edit);
void change(Model& model, const SetHeadCount& edit);
void change(Model& model, const SetGroupCount& edit);
void change(Model& model, const SetKeyEmbeddings& edit);
void change(Model& model, const SetProjections& edit);
void change(Model& model, const SetOutputProjection& edit);
void change(Model& model, const SetBias& edit);
void change(Model& model, const SetCausal& edit);
void change(Model& model, const SwitchMaskCell& edit);
void change(Model& model, const ClearMaskCells& edit);
void change(Model& model, const AddSequence& edit);
void change(Model& model, const RemoveSequence& edit);
void change(Model& model, const GiveStage& edit);
void change(Model& model, const ComputeStage& edit);
void change(Model& model, const TypeOver& edit);
void change(Model& model, const ClearTypedCells& edit);
void change(Model& model, const SwitchHead& edit);
void change(Model& model, const SwitchMistake& edit);
void change(Model& model, const ReplaceModel& edit);

template <auto... path>
void change(Model& model, const Set<path...>& edit) {
  member<path...>(model) = edit.value;
}

void change(Model& model, const SetMaskAlignment& edit);
void change(Model& model, const SetMaskWindow& edit);
void change(Model& model, const SetMaskPrefix& edit);
void change(Model& model, const SetDocuments& edit);
void change(Model& model, const SetHiddenKeys& edit);

/// Keeps of what is added what fits the model's shape now; new numbers change nothing (1 as a factor, else
/// 0).
void fit_additions(Model& model);

/// Keeps the top left corner of a matrix; what is new is the fill.
void resize(attention::SharedMatrix& matrix, std::size_t n_rows, std::size_t n_columns, double fill = 0);

/// Drops the cells that say what the rules say anyway.
void drop_cells_that_follow_the_rule(Model& model);

/// Throws core::Error that names the place and what was expected there.
[[noreturn]] void refuse(const std::string& path, const std::string& message);

/// Throws core::Error unless index < count; things are what is counted, in the plural.
void require_index(const std::string& path, std::size_t index, std::size_t count, const char* things);

}  // namespace core::editing::cases
