#include "app/session/command.hpp"

#include <utility>

namespace app {

template <class Kind>
Command::Command(Kind kind) : any_(std::make_shared<const AnyCommand>(std::move(kind))) {}

void Commands::add(Command command) {
  list_.push_back(std::move(command));
}

void Commands::edit(core::editing::Edit e) {
  add(ApplyEdit{std::move(e)});
}

void Commands::look(std::function<void(View&)> change) {
  add(ChangeView{std::move(change)});
}

std::vector<Command> Commands::take() {
  return std::exchange(list_, {});
}

template Command::Command(ApplyEdit);
template Command::Command(ChangeView);
template Command::Command(EndGesture);
template Command::Command(Undo);
template Command::Command(Redo);
template Command::Command(LoadPreset);
template Command::Command(OpenFile);
template Command::Command(ReadText);
template Command::Command(LookAtLayer);
template Command::Command(SwitchHead);
template Command::Command(DropEdits);
template Command::Command(WriteToken);
template Command::Command(CompareEdits);
template Command::Command(SweepHeads);
template Command::Command(ImportTensors);
template Command::Command(ChooseLayer);
template Command::Command(FinishOpening);
template Command::Command(MeasureTensor);
template Command::Command(PreviewFile);
template Command::Command(CancelReading);
template Command::Command(SaveFile);
template Command::Command(SaveFileAs);
template Command::Command(ExportAs);
template Command::Command(ShowDialog);
template Command::Command(BrowseTo);
template Command::Command(CopyText);
template Command::Command(ShowMessage);
template Command::Command(Quit);
template Command::Command(DiscardAndContinue);
template Command::Command(SaveAndContinue);
template Command::Command(CancelQuestion);
template Command::Command(TakeMemory);
template Command::Command(GoOn);
template Command::Command(RestoreLeft);
template Command::Command(DropLeft);
template Command::Command(KeepLeft);
template Command::Command(EndNow);
template Command::Command(StartLesson);
template Command::Command(GoInLesson);
template Command::Command(LeaveLesson);
template Command::Command(KeepReference);
template Command::Command(KeepSwitched);
template Command::Command(GiveFile);
template Command::Command(FillFromFile);
template Command::Command(LoadReference);
template Command::Command(CheckTensors);
template Command::Command(MapTensor);
template Command::Command(ReadTensorsAs);
template Command::Command(SearchCauses);
template Command::Command(StopSearch);
template Command::Command(DropReference);
template Command::Command(RenameReference);
template Command::Command(ShowReference);

}  // namespace app
