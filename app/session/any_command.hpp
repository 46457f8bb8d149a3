#pragma once

#include <variant>

#include "app/session/command.hpp"

namespace app {

/// Every kind of command; only who carries them out needs to know them all.
struct AnyCommand
    : std::variant<ApplyEdit, ChangeView, EndGesture, Undo, Redo, LoadPreset, OpenFile, ReadText, LookAtLayer,
                   SwitchHead, DropEdits, WriteToken, CompareEdits, SweepHeads, ImportTensors, ChooseLayer,
                   FinishOpening, MeasureTensor, PreviewFile, CancelReading, SaveFile, SaveFileAs, ExportAs,
                   ShowDialog, BrowseTo, CopyText, ShowMessage, Quit, DiscardAndContinue, SaveAndContinue,
                   CancelQuestion, TakeMemory, GoOn, TakeUpLeft, DropLeft, KeepLeft, EndNow, StartLesson,
                   GoInLesson, LeaveLesson, KeepReference, KeepSwitched, GiveFile, FillFromFile,
                   LoadReference, CheckTensors, MapTensor, ReadTensorsAs, SearchCauses, StopSearch,
                   DropReference, RenameReference, ShowReference> {
  using variant::variant;
  const variant& kinds() const { return *this; }
};

template <class Kind>
const Kind* Command::as() const {
  return std::get_if<Kind>(&any_->kinds());
}

}  // namespace app
