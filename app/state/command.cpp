#include "app/state/command.hpp"

#include <utility>

#include "app/state/any_command.hpp"

namespace app {

template <class Kind>
Command::Command(Kind kind) : any_(std::make_shared<const AnyCommand>(std::move(kind))) {}

template <class Kind>
const Kind* Command::as() const {
  return std::get_if<Kind>(&any_->kinds());
}

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
template const ApplyEdit* Command::as<ApplyEdit>() const;
template Command::Command(ChangeView);
template const ChangeView* Command::as<ChangeView>() const;
template Command::Command(EndGesture);
template const EndGesture* Command::as<EndGesture>() const;
template Command::Command(Undo);
template const Undo* Command::as<Undo>() const;
template Command::Command(Redo);
template const Redo* Command::as<Redo>() const;
template Command::Command(LoadPreset);
template const LoadPreset* Command::as<LoadPreset>() const;
template Command::Command(OpenFile);
template const OpenFile* Command::as<OpenFile>() const;
template Command::Command(ImportTensors);
template const ImportTensors* Command::as<ImportTensors>() const;
template Command::Command(ChooseLayer);
template const ChooseLayer* Command::as<ChooseLayer>() const;
template Command::Command(FinishOpening);
template const FinishOpening* Command::as<FinishOpening>() const;
template Command::Command(MeasureTensor);
template const MeasureTensor* Command::as<MeasureTensor>() const;
template Command::Command(PreviewFile);
template const PreviewFile* Command::as<PreviewFile>() const;
template Command::Command(CancelReading);
template const CancelReading* Command::as<CancelReading>() const;
template Command::Command(SaveFile);
template const SaveFile* Command::as<SaveFile>() const;
template Command::Command(SaveFileAs);
template const SaveFileAs* Command::as<SaveFileAs>() const;
template Command::Command(ExportAs);
template const ExportAs* Command::as<ExportAs>() const;
template Command::Command(ShowDialog);
template const ShowDialog* Command::as<ShowDialog>() const;
template Command::Command(BrowseTo);
template const BrowseTo* Command::as<BrowseTo>() const;
template Command::Command(CopyText);
template const CopyText* Command::as<CopyText>() const;
template Command::Command(ShowMessage);
template const ShowMessage* Command::as<ShowMessage>() const;
template Command::Command(Quit);
template const Quit* Command::as<Quit>() const;
template Command::Command(DiscardAndContinue);
template const DiscardAndContinue* Command::as<DiscardAndContinue>() const;
template Command::Command(SaveAndContinue);
template const SaveAndContinue* Command::as<SaveAndContinue>() const;
template Command::Command(CancelQuestion);
template const CancelQuestion* Command::as<CancelQuestion>() const;
template Command::Command(TakeMemory);
template const TakeMemory* Command::as<TakeMemory>() const;
template Command::Command(StartLesson);
template const StartLesson* Command::as<StartLesson>() const;
template Command::Command(GoInLesson);
template const GoInLesson* Command::as<GoInLesson>() const;
template Command::Command(LeaveLesson);
template const LeaveLesson* Command::as<LeaveLesson>() const;
template Command::Command(KeepReference);
template const KeepReference* Command::as<KeepReference>() const;
template Command::Command(KeepSwitched);
template const KeepSwitched* Command::as<KeepSwitched>() const;
template Command::Command(GiveFile);
template const GiveFile* Command::as<GiveFile>() const;
template Command::Command(FillFromFile);
template const FillFromFile* Command::as<FillFromFile>() const;
template Command::Command(LoadReference);
template const LoadReference* Command::as<LoadReference>() const;
template Command::Command(CheckTensors);
template const CheckTensors* Command::as<CheckTensors>() const;
template Command::Command(MapTensor);
template const MapTensor* Command::as<MapTensor>() const;
template Command::Command(SearchCauses);
template const SearchCauses* Command::as<SearchCauses>() const;
template Command::Command(StopSearch);
template const StopSearch* Command::as<StopSearch>() const;
template Command::Command(DropReference);
template const DropReference* Command::as<DropReference>() const;
template Command::Command(RenameReference);
template const RenameReference* Command::as<RenameReference>() const;
template Command::Command(ShowReference);
template const ShowReference* Command::as<ShowReference>() const;

}  // namespace app
