// The part of the store that opens files: they are read beside the window, and what is found is taken in when
// it is there.
#include "app/session/browser.hpp"
#include "app/session/filling.hpp"
#include "app/session/journal.hpp"
#include "app/session/remembered.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/files/given_tensors.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/stages.hpp"

namespace app {
namespace {

namespace formats = core::formats;

std::string opened_words(const std::filesystem::path& path, const std::vector<std::string>& notes) {
  std::string words = "Opened " + path.string();
  for (const std::string& note : notes) words += (&note == &notes.front() ? ". " : " ") + note;
  return words;
}

/// A whole model; or one of its layers, where it is of a kind that can be looked at so alone, and why.
FoundInFile as_whole_or_tensors(const std::filesystem::path& whole, const OpenFile& command,
                                std::uint64_t keep_at_most, const core::Token& progress) {
  FoundInFile found;
  try {
    found.whole = std::make_shared<const OpenedWhole>(
        open_whole(whole, command.text, command.layer, keep_at_most, progress));
    return found;
  } catch (const core::Stopped&) {
    throw;
  } catch (const core::Error& error) {
    if (!command.text.empty() || command.layer > 0) throw;
    const std::string why = "Not as a whole model: " + std::string(error.what());
    try {
      found = find_in_file(command.path, progress, command.elsewhere);
    } catch (const core::Stopped&) {
      throw;
    } catch (const core::Error&) {
    }
    if (!found.imported && !found.tensors) throw;
    if (found.imported) found.imported->notes.insert(found.imported->notes.begin(), why + ".");
    if (found.tensors) found.problem = why;
    return found;
  }
}

}  // namespace

void Store::read_beside(const std::filesystem::path& path, const Jobs::Job& reading,
                        const std::optional<Command>& if_elsewhere) {
  list_again_after_it();
  waiting_.was_read = {};
  reader_.begin(
      path,
      [this, reading](const core::Token& progress) -> Jobs::Delivery {
        return [this, was_read = reading(progress)] { take_when_answered(was_read); };
      },
      [this, path, if_elsewhere](const Failure& failure) {
        if (!failure.is_outside || !if_elsewhere) return fail_to_read(path, failure);
        take_when_answered([this, words = failure.words, next = *if_elsewhere] {
          ask(words + ". Files elsewhere on this computer are opened only when you say so.",
              "Open it all the same", next);
        });
      });
}

void Store::fail_to_read(const std::filesystem::path& path, const Failure& failure) {
  if (failure.is_stopped) return;
  say(failure.lacks_memory ? path.string() + ": there is not enough memory for it" : failure.words, true);
  if (chooses_file(view_.forms.dialog))  // another name may be typed at once
    view_.forms.typed = Typed{"browser/name", view_.forms.browser.name, true, true};
}

void Store::read_aside(const std::filesystem::path& path, const Jobs::Job& reading) {
  if (!reader_.is_free_for_asides()) return;
  list_again_after_it();
  reader_.begin(path, reading, [this, path](const Failure& failure) { fail_to_read(path, failure); });
  reader_.set_aside();
}

void Store::list(const std::filesystem::path& directory) {
  view_.forms.browser.directory = directory;
  view_.forms.browser.entries.clear();
  view_.forms.browser.error.clear();
  view_.forms.browser.asks_to_replace = false;
  view_.forms.browser.is_listing = true;
  to_list_ = directory;
}

/// Where the list of a folder is given up for something else that is read.
void Store::list_again_after_it() {
  if (view_.forms.browser.is_listing) to_list_ = view_.forms.browser.directory;
}

void Store::list_files() {
  if (!to_list_ || !reader_.is_free_for_asides()) return;
  const std::filesystem::path directory = *to_list_;
  read_aside(directory, [this, directory](const core::Token&) -> Jobs::Delivery {
    auto listed = std::make_shared<Browser>(browse(directory, ""));
    return [this, listed] {
      Browser& browser = view_.forms.browser;
      browser.directory = std::move(listed->directory);
      browser.entries = std::move(listed->entries);
      browser.error = std::move(listed->error);
      browser.is_listing = false;
    };
  });
  to_list_.reset();
}

void Store::open(const std::filesystem::path& path, const std::string& text, std::size_t layer) {
  message_ = {};
  if (!text.empty() && !whole_model_at(path))
    throw core::Error(path.string() +
                      ": --text: expected a whole model: a folder with its tokenizer, or a .gguf file");
  carry_out(OpenFile{.path = path, .text = text, .layer = layer});
  reader_.wait();
  settle();
  // What a dialog asks about the file is no end.
  if (message_.is_error && view_.forms.dialog != Dialog::import_tensors) throw core::Error(message_.text);
}

Opening Store::opening() const {
  Opening opening{.path = reader_.path(),
                  .is_reading = reader_.is_busy(),
                  .seconds = reader_.seconds(),
                  .bytes = reader_.bytes(),
                  .tensors = found_.tensors ? &*found_.tensors : nullptr,
                  .previewed = found_.previewed,
                  .preview = found_.preview};
  if (!writer_.exporting.is_busy() || !reader_.is_free_for_asides()) return opening;
  opening.path = writer_.exported;
  opening.is_reading = opening.is_writing = true;
  opening.seconds = writer_.exporting.seconds();
  opening.bytes = writer_.exporting.done();
  return opening;
}

void Store::carry_out(const OpenFile& command) {
  const bool asks_for_input =
      view_.forms.import.as == ImportAs::layer || view_.forms.import.as == ImportAs::by_hand;
  if (view_.forms.dialog == Dialog::import_tensors &&
      asks_for_input) {  // what is dropped there is the input of the checkpoint
    view_.forms.import.choices.embeddings = command.path;
    return;
  }
  read_beside(
      command.path,
      [this, command, free = free_memory_()](const core::Token& progress) -> Jobs::Delivery {
        auto found = std::make_shared<FoundInFile>();
        const auto whole = command.as_tensors ? std::nullopt : whole_model_at(command.path);
        if (core::experiment::is_saved_experiment(command.path))
          found->whole = std::make_shared<const OpenedWhole>(
              open_saved_whole(formats::read_file(command.path, formats::largest_session), command.path,
                               command.elsewhere, free / 2, progress));
        else if (whole)
          *found = as_whole_or_tensors(*whole, command, free / 2, progress);
        else
          *found = find_in_file(command.path, progress, command.elsewhere);
        return [this, found, path = command.path] { take(path, std::move(*found)); };
      },
      OpenFile{.path = command.path, .elsewhere = core::Elsewhere::allowed});
}

void Store::take(const std::filesystem::path& path, FoundInFile found) {
  if (found.whole) {
    found_.ready = {path, {}, {}, "", found.whole};
    return carry_out(FinishOpening{});
  }
  if (!found.imported) {
    const bool names_tell = !found.tensors->layers.empty() || !found.tensors->stages.empty();
    const bool counts = found.tensors->has_counting_line;
    choose_from(std::move(*found.tensors));
    if (!found.problem.empty())
      say(found.problem, true);
    else if (counts)
      say("The first line of the table is 0, 1, 2 …: say whether it names the columns.");
    else if (!names_tell)
      say("The names do not tell what the tensors are: say which is which.");
    return;
  }
  found_.ready = {path, std::move(*found.imported), std::move(found.source), found.stamp};
  carry_out(FinishOpening{});
}

void Store::choose_from(OpenedTensors tensors) {
  ImportForm form;
  if (!tensors.stages.empty()) form.choices.stages = core::importing::usual_stages(tensors.stages.front());
  const auto is_of_heads = [](const formats::TensorInfo& info) { return info.shape.size() > 2; };
  form.as = !tensors.layers.empty() ? ImportAs::layer
            : !form.choices.stages.empty() || std::ranges::any_of(tensors.file->tensors(), is_of_heads)
                ? ImportAs::stages
                : ImportAs::by_hand;
  if (tensors.has_counting_line) form.choices.first_line_is_names = true;
  if (tensors.has_counting_line && form.as == ImportAs::by_hand && !tensors.embeddings.empty())
    form.as = ImportAs::embeddings, form.choices.embeddings_tensor = tensors.embeddings;
  const auto& source = lessons_.own(document_).origin.source;
  if (source && source->tensors.file == tensors.file) form.layer = source->layer;
  found_.tensors = std::move(tensors);
  view_.forms.import = std::move(form);
  view_.forms.dialog = Dialog::import_tensors;
  message_ = {};
}

Jobs::Job Store::making_of(const OpenedTensors& tensors, const core::importing::Choices& choices) {
  return [this, tensors, choices](const core::Token& progress) -> Jobs::Delivery {
    auto made = std::make_shared<MadeOfTensors>(make_of(tensors, choices, progress));
    return [this, made] {
      found_.ready = {made->source.tensors.file->path(), std::move(made->imported), std::move(made->source),
                      ""};
      carry_out(FinishOpening{});
    };
  };
}

void Store::carry_out(const ImportTensors& command) {
  if (found_.tensors) read_beside(found_.tensors->file->path(), making_of(*found_.tensors, command.choices));
}

void Store::carry_out(const ChooseLayer& command) {
  if (!document_.origin.source) return;
  core::importing::Choices choices = document_.origin.source->choices;
  choices.layer = std::to_string(command.layer);
  const OpenedTensors& tensors = document_.origin.source->tensors;
  read_for_document(tensors.file->path(), making_of(tensors, choices));
}

void Store::carry_out(const FinishOpening& command) {
  if (!found_.ready) return;
  try {
    const auto& whole = found_.ready->whole;
    if (!may_take_memory(whole ? whole->layer : found_.ready->imported.model, command)) return;
  } catch (const core::Error&) {
    drop_opened();
    throw;
  }
  leave_lesson();
  if (!may_leave(command)) return;
  FoundInFiles::Ready ready = *std::exchange(found_.ready, std::nullopt);
  if (ready.left) return take_up(ready);
  if (ready.whole) return start_with_whole(ready);
  Origin origin{ready.path.filename().string()};
  if (ready.source)
    origin.source = std::make_shared<const TensorSource>(std::move(*ready.source));
  else
    origin.path = lasting_path(ready.path), origin.stamp = ready.stamp;
  origin.account = std::move(ready.imported.account);
  origin.notes = ready.imported.notes;
  start_with(document_of(ready.imported.model, std::move(origin)));
  recall_view(ready.imported.view, view_);
  keep_view_within_model();
  remember(ready.path);
  say(opened_words(ready.path, ready.imported.notes));
}

void Store::carry_out(const MeasureTensor& command) {
  if (!found_.tensors || found_.tensors->ranges.contains(command.name)) return;
  const auto file = found_.tensors->file;
  read_aside(file->path(), [this, file, name = command.name](const core::Token& progress) -> Jobs::Delivery {
    const TensorRange range = measure(*file, name, progress);
    return [this, file, name, range] {
      if (found_.tensors && found_.tensors->file == file) found_.tensors->ranges[name] = range;
    };
  });
}

void Store::carry_out(const PreviewFile& command) {
  if (!reader_.is_free_for_asides()) return;
  found_.previewed = command.path;
  found_.preview = "";
  read_aside(command.path, [this, path = command.path](const core::Token& progress) -> Jobs::Delivery {
    std::string preview;
    try {
      preview = preview_text(path, progress);
    } catch (const core::Stopped&) {
      throw;
    } catch (const core::Error& error) {
      preview = error.what();
    }
    return [this, path, preview] {
      if (found_.previewed == path) found_.preview = preview;
    };
  });
}

void Store::carry_out(const GiveFile& command) {
  read_for_document(
      command.path, [this, command, model = document_.model](const core::Token& progress) -> Jobs::Delivery {
        const bool counts = formats::has_counting_line(formats::open_tensors(command.path), progress);
        const std::vector<formats::GivenTensor> given{
            {core::attention::info(command.stage).name, command.path.string(), {}, counts}};
        const auto stage = std::make_shared<core::attention::GivenStage>(
            *formats::with_given_tensors(model, given).given.find(command.stage));
        return [this, stage, counts] {
          close(Dialog::give);
          close(Dialog::open_given);
          carry_out(ApplyEdit{core::editing::GiveStage{std::move(*stage)}});
          if (counts) say("The first line, 0, 1 … or 1, 2 …, was taken for the names of the columns");
        };
      });
}

void Store::carry_out(const FillFromFile& command) {
  read_for_document(command.path, [this, command](const core::Token& progress) -> Jobs::Delivery {
    const auto file = std::make_shared<NumbersInFile>(numbers_in_file(command.path, progress));
    return [this, file, place = command.place] {
      document_.history.end_gesture();
      carry_out(ApplyEdit{edit_with(*file, document_.model, place)});
      document_.history.end_gesture();
      if (view_.forms.dialog == Dialog::none) say("Taken from " + file->path.string());
    };
  });
}

void Store::carry_out(const CancelReading&) {
  if (opening().is_writing) return writer_.exporting.stop();
  if (reader_.is_free_for_asides()) return;
  reader_.cancel();
  say("Stopped reading " + reader_.path().string());
}

}  // namespace app
