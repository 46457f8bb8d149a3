// The part of the store that opens files: they are read beside the window, and what is found is taken in when
// it is there.
#include <new>

#include "app/store.hpp"
#include "app/view_text.hpp"
#include "core/error.hpp"

namespace app {
namespace {

namespace formats = core::formats;

std::string opened_words(const std::filesystem::path& path, const std::vector<std::string>& notes) {
  std::string words = "Opened " + path.string();
  for (const std::string& note : notes) words += (&note == &notes.front() ? ". " : " ") + note;
  return words;
}

}  // namespace

void Store::read_beside(const std::filesystem::path& path, const Reading& reading) {
  stop_reading();
  reading_.path = path;
  reading_.is_aside = false;
  reading_.since = std::chrono::steady_clock::now();
  reading_.progress = std::make_shared<formats::Progress>();
  reader_.start(
      [reading, progress = reading_.progress](const std::stop_token&) { return reading(*progress); });
}

void Store::read_aside(const std::filesystem::path& path, const Reading& reading) {
  if (reader_.is_busy() && !reading_.is_aside) return;
  read_beside(path, reading);
  reading_.is_aside = true;
}

void Store::stop_reading() {
  if (reading_.progress) reading_.progress->cancel();
  reader_.cancel();
}

void Store::take_what_was_read() {
  if (!reader_.is_busy()) return;
  try {
    reader_.deliver();
  } catch (const core::Error& error) {
    say(error.what(), true);
  } catch (const std::bad_alloc&) {
    say(reading_.path.string() + ": there is not enough memory for it", true);
  }
}

void Store::finish_reading() {
  while (reader_.is_busy()) {
    reader_.wait();
    take_what_was_read();
  }
}

void Store::open(const std::filesystem::path& path) {
  carry_out(OpenFile{path});
  reader_.wait();
  reader_.deliver();
  settle();
}

Opening Store::opening() const {
  Opening opening{
      reading_.path,      reader_.is_busy(), 0, 0, reading_.tensors ? &*reading_.tensors : nullptr,
      reading_.previewed, reading_.preview};
  if (!opening.is_reading) return opening;
  opening.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - reading_.since).count();
  opening.bytes = reading_.progress->bytes();
  return opening;
}

void Store::carry_out(const OpenFile& command) {
  if (view_.dialog == Dialog::import_tensors) {  // what is dropped there is the input of the checkpoint
    view_.import.choices.embeddings = command.path;
    return;
  }
  read_beside(command.path, [this, path = command.path](formats::Progress& progress) -> Worker::Delivery {
    auto found = std::make_shared<FoundInFile>(find_in_file(path, progress));
    return [this, found] { take(std::move(*found)); };
  });
}

void Store::take(FoundInFile found) {
  reading_.tensors = std::move(found.tensors);
  view_.import = {};
  if (found.imported) {
    reading_.ready = std::move(found.imported);
    return carry_out(FinishOpening{});
  }
  if (reading_.tensors->config.n_heads) view_.import.choices.n_heads = reading_.tensors->config.n_heads;
  view_.import.by_hand = reading_.tensors->layers.empty();
  view_.dialog = Dialog::import_tensors;
  message_ = {};
  if (!found.problem.empty()) say(found.problem, true);
}

void Store::carry_out(const ImportTensors& command) {
  if (!reading_.tensors) return;
  const auto file = reading_.tensors->file;
  read_beside(file->path(),
              [this, file, choices = command.choices](formats::Progress& progress) -> Worker::Delivery {
                auto imported = std::make_shared<core::importing::Imported>(
                    core::importing::import_tensors(*file, choices, progress));
                return [this, imported] {
                  reading_.ready = std::move(*imported);
                  carry_out(FinishOpening{});
                };
              });
}

void Store::carry_out(const FinishOpening& command) {
  if (!reading_.ready) return;
  try {
    if (!may_take_memory(reading_.ready->model, command)) return;
  } catch (const core::Error&) {
    reading_.ready.reset();
    throw;
  }
  if (lesson_) leave_lesson();
  if (!may_leave(command)) return;
  core::importing::Imported imported = *std::exchange(reading_.ready, std::nullopt);
  const bool is_session = !reading_.tensors;
  start_with(std::move(imported.model), {reading_.path.filename().string(), "",
                                         is_session ? std::optional(reading_.path) : std::nullopt});
  recall_view(imported.view, view_);
  keep_view_within_model();
  remember(reading_.path);
  say(opened_words(reading_.path, imported.notes));
}

void Store::carry_out(const MeasureTensor& command) {
  if (!reading_.tensors || reading_.tensors->ranges.contains(command.name)) return;
  const auto file = reading_.tensors->file;
  read_aside(file->path(),
             [this, file, name = command.name](formats::Progress& progress) -> Worker::Delivery {
               const TensorRange range = measure(*file, name, progress);
               return [this, file, name, range] {
                 if (reading_.tensors && reading_.tensors->file == file)
                   reading_.tensors->ranges[name] = range;
               };
             });
}

void Store::carry_out(const PreviewFile& command) {
  if (reader_.is_busy() && !reading_.is_aside) return;
  reading_.previewed = command.path;
  reading_.preview = "";
  read_aside(command.path, [this, path = command.path](formats::Progress& progress) -> Worker::Delivery {
    std::string preview;
    try {
      preview = preview_text(path, progress);
    } catch (const formats::Cancelled&) {
      throw;
    } catch (const core::Error& error) {
      preview = error.what();
    }
    return [this, path, preview] {
      if (reading_.previewed == path) reading_.preview = preview;
    };
  });
}

void Store::carry_out(const CancelReading&) {
  if (!reader_.is_busy()) return;
  stop_reading();
  say("Stopped reading " + reading_.path.string());
}

}  // namespace app
