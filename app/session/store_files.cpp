#include <fmt/core.h>
#include <algorithm>

#include "app/session/exporting.hpp"
#include "app/session/opening.hpp"
#include "app/session/recovery.hpp"
#include "app/session/remembered.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"
#include "core/editing/presets.hpp"
#include "core/files/given_tensors.hpp"
#include "core/files/link.hpp"
#include "core/files/session.hpp"
#include "core/files/table.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/stages.hpp"
#include "core/system/file.hpp"
#include "core/system/model_cache.hpp"
#include "core/training/run_files.hpp"

namespace app {

namespace {

namespace formats = core::formats;

std::string opened_words(const std::filesystem::path& path, const std::vector<std::string>& notes) {
  std::string words = "Opened " + path.string();
  for (const std::string& note : notes) words += (&note == &notes.front() ? ". " : " ") + note;
  return words;
}

/// Opens a whole model, or, if it cannot be computed as a whole, only its tensors, with the reason.
Opened as_full_model_or_tensors(const std::filesystem::path& full_model, const OpenPath& command,
                                std::uint64_t max_cached_bytes, const core::StopToken& progress) {
  Opened found{command.path};
  try {
    found.full_model = std::make_shared<const OpenedModel>(
        open_full_model(full_model, command.text, command.layer, max_cached_bytes, progress));
    return found;
  } catch (const core::Stopped&) {
    throw;
  } catch (const core::Error& error) {
    if (!command.text.empty() || command.layer > 0) throw;
    const std::string why = "Not as a whole model: " + std::string(error.what());
    try {
      found = open_file(command.path, progress, command.untrusted_paths);
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

bool is_lesson_file(const std::filesystem::path& path) {
  constexpr std::size_t sniffed = 4096;  // bytes; the key is one of the first
  return path.extension() == ".json" && core::system::is_file(path) &&
         core::lessons::is_lesson_text(core::system::read_prefix(path, sniffed));
}

core::lessons::Lesson read_lesson_file(const std::filesystem::path& path) {
  const std::filesystem::path whole = absolute_path(path).value_or(path);
  return core::lessons::parse_lesson(core::system::read_file(path, core::formats::max_linked_bytes),
                                     whole.string(), whole.parent_path());
}

/// Returns the origin of work in a journal, which has the title of a preset but not its name.
Origin origin_of(const JournalHeader& header) {
  Origin origin{header.title, "", header.path, header.stamp};
  const auto& presets = core::editing::presets();
  const auto preset = std::ranges::find(presets, header.title, &core::editing::Preset::title);
  if (!header.path && preset != presets.end()) origin.preset = preset->name;
  return origin;
}

}  // namespace

void Store::read_in_background(const std::filesystem::path& path, const Jobs::Job& reading,
                               const std::optional<Command>& if_untrusted) {
  deferred_.read_result = {};
  side_tasks_.stop_preview();  // else a large file would be read twice at once
  reader_.cancel();
  read_path_ = path;
  reader_.start(
      [this, reading](const core::StopToken& progress) -> Jobs::Delivery {
        return [this, read_result = reading(progress)] { deliver_when_answered(read_result); };
      },
      [this, path, if_untrusted](const Failure& failure) {
        if (!failure.is_untrusted || !if_untrusted) return fail_to_read(path, failure);
        deliver_when_answered([this, words = failure.words, next = *if_untrusted] {
          ask(words + ". Files elsewhere on this computer are opened only when you say so.", "Open it anyway",
              next);
        });
      });
}

void Store::fail_to_read(const std::filesystem::path& path, const Failure& failure) {
  if (failure.is_stopped) return;
  say(failure.is_out_of_memory ? path.string() + ": there is not enough memory for it" : failure.words, true);
  if (chooses_file(view_.forms.dialog))  // another name may be typed at once
    view_.forms.typed = TypedField{"browser/name", view_.forms.browser.name, true, true};
}

void Store::open(const std::filesystem::path& path, const std::string& text, std::size_t layer) {
  message_ = {};
  if (!text.empty() && !full_model_at(core::system::resolve_model_name(path)))
    throw core::Error(path.string() +
                      ": --text: expected a whole model: a folder with its tokenizer, or a .gguf file");
  dispatch(OpenPath{.path = path, .text = text, .layer = layer});
  if (core::training::is_run_session_file(path)) return;  // the window shows how it is learned again
  reader_.wait();
  update();
  // A question of the import dialog about the file is no failure.
  if (message_.is_error && view_.forms.dialog != Dialog::import_tensors) throw core::Error(message_.text);
}

void Store::attach(const std::string& address, const std::string& token, const std::string& text,
                   std::size_t layer) {
  message_ = {};
  read_in_background(address, [=, this](const core::StopToken& progress) -> Jobs::Delivery {
    const auto opened = std::make_shared<Opened>(Opened{address});
    opened->full_model =
        std::make_shared<const OpenedModel>(open_attached(address, token, text, layer, progress));
    return [this, opened] { take(std::move(*opened)); };
  });
  reader_.wait();
  update();
  if (message_.is_error) throw core::Error(message_.text);
}

Opening Store::opening() const {
  Opening opening{.path = read_path_,
                  .is_reading = reader_.is_busy(),
                  .seconds = reader_.seconds(),
                  .bytes = reader_.done(),
                  .tensors = choosing_ ? &*choosing_ : nullptr,
                  .previewed = side_tasks_.previewed(),
                  .preview = side_tasks_.preview(),
                  .is_previewing = side_tasks_.is_previewing()};
  if (!writer_.exporting.is_busy() || reader_.is_busy()) return opening;
  opening.path = writer_.export_path;
  opening.is_reading = opening.is_writing = true;
  opening.seconds = writer_.exporting.seconds();
  opening.bytes = writer_.exporting.done();
  return opening;
}

void Store::open_link(const OpenPath& command) {
  const formats::Link link = formats::parse_link(command.path.string());
  if (!link.lesson.empty()) return start_lesson(link.lesson, {.step = link.step});
  if (!link.lesson_text.empty())
    return read_in_background("", [this, text = link.lesson_text](const core::StopToken&) -> Jobs::Delivery {
      formats::require_no_files(text);
      const auto lesson =
          std::make_shared<core::lessons::Lesson>(core::lessons::parse_lesson(text, "link", {}));
      return [this, lesson] { start_lesson(lessons_.add(std::move(*lesson)), {}); };
    });
  if (!link.preset.empty()) {
    const core::editing::Preset* preset = core::editing::find_preset(link.preset);
    if (!preset) throw core::Error("link: preset=" + link.preset + ": there is no such preset");
    const std::optional<Tab> tab = tab_of(link.view);
    if (!link.view.empty() && !tab) throw core::Error("link: view=" + link.view + ": there is no such view");
    if (const std::size_t n_heads = preset->make().n_heads; link.head.value_or(0) >= n_heads)
      throw core::Error(fmt::format("link: head={}: expected a head below {}", *link.head, n_heads));
    leave_lesson();
    if (!may_discard_work(command)) return;
    handle(LoadPreset{preset->name});
    if (tab) view_.look.tab = *tab;
    view_.look.head = link.head.value_or(0);
    return;
  }
  read_in_background("", [this, text = link.session](const core::StopToken&) -> Jobs::Delivery {
    const auto opened = std::make_shared<Opened>();
    opened->imported = core::importing::import_session(formats::parse_linked_session(text));
    return [this, opened] { take(std::move(*opened)); };
  });
}

void Store::handle(const OpenPath& given) {
  if (formats::is_link(given.path.string())) {
    try {
      return open_link(given);
    } catch (const core::Error&) {
      return fail_to_read("", current_failure());
    }
  }
  OpenPath command = given;
  command.path = core::system::resolve_model_name(given.path);
  if (core::training::is_run_session_file(command.path)) return open_run(command.path);
  const bool asks_for_input =
      view_.forms.import.as == ImportAs::layer || view_.forms.import.as == ImportAs::by_hand;
  if (view_.forms.dialog == Dialog::import_tensors &&
      asks_for_input) {  // a file dropped there is the input of the checkpoint
    view_.forms.import.choices.embeddings = command.path;
    return;
  }
  read_in_background(
      command.path,
      [this, command, free = free_memory_(),
       mark = view_.forms.browser.mark()](const core::StopToken& progress) -> Jobs::Delivery {
        if (is_lesson_file(command.path)) {
          const auto lesson = std::make_shared<core::lessons::Lesson>(read_lesson_file(command.path));
          return [this, lesson] { start_lesson(lessons_.add(std::move(*lesson)), {}); };
        }
        const auto opened = std::make_shared<Opened>(Opened{command.path});
        const auto full_model = command.as_tensors ? std::nullopt : full_model_at(command.path);
        if (core::experiment::is_saved_experiment(command.path))
          opened->full_model = std::make_shared<const OpenedModel>(
              open_saved_full_model(core::system::read_file(command.path, formats::max_session_bytes),
                                    command.path, command.untrusted_paths, free / 2, progress));
        else if (full_model)
          *opened = as_full_model_or_tensors(*full_model, command, free / 2, progress);
        else
          *opened = open_file(command.path, progress, command.untrusted_paths, mark);
        return [this, opened] { take(std::move(*opened)); };
      },
      OpenPath{.path = command.path, .untrusted_paths = core::UntrustedPaths::allowed});
}

void Store::take(Opened opened) {
  if (opened.tensors) {
    const bool names_tell = !opened.tensors->layers.empty() || !opened.tensors->stages.empty();
    const formats::TableIndex index = opened.tensors->index;
    choose_from(std::move(*opened.tensors));
    if (!opened.problem.empty())
      say(opened.problem, true);
    else if (index.line)
      say("The first line of the table is 0, 1, 2 …: say whether it names the columns.");
    else if (index.column)
      say("The first column of the table is 0, 1, 2 …: say whether it names the rows.");
    else if (!names_tell)
      say("The names do not tell what the tensors are: say which is which.");
    return;
  }
  opened_ = std::move(opened);
  handle(FinishOpening{});
}

void Store::choose_from(OpenedTensors tensors) {
  ImportForm form;
  if (!tensors.stages.empty()) form.choices.stages = core::importing::default_stages(tensors.stages.front());
  const auto is_of_heads = [](const formats::TensorInfo& info) { return info.shape.size() > 2; };
  form.as = !tensors.layers.empty() ? ImportAs::layer
            : !form.choices.stages.empty() || std::ranges::any_of(tensors.file->tensors(), is_of_heads)
                ? ImportAs::stages
                : ImportAs::by_hand;
  if (tensors.index.line) form.choices.index.line = true;
  if (tensors.index.column) form.choices.index.column = true;
  if (tensors.index.any() && form.as == ImportAs::by_hand && !tensors.embeddings.empty())
    form.as = ImportAs::embeddings, form.choices.embeddings_tensor = tensors.embeddings;
  const auto& source = lessons_.own(document_).origin.source;
  if (source && source->tensors.file == tensors.file) form.layer = source->layer;
  choosing_ = std::move(tensors);
  view_.forms.import = std::move(form);
  view_.forms.dialog = Dialog::import_tensors;
  message_ = {};
}

Jobs::Job Store::make_model_job(const OpenedTensors& tensors, const core::importing::Choices& choices) {
  return [this, tensors, choices](const core::StopToken& progress) -> Jobs::Delivery {
    const auto made = std::make_shared<Opened>(make_model(tensors, choices, progress));
    return [this, made] { take(std::move(*made)); };
  };
}

void Store::handle(const ImportTensors& command) {
  if (choosing_) read_in_background(choosing_->file->path(), make_model_job(*choosing_, command.choices));
}

void Store::handle(const ImportLayer& command) {
  if (!document_.origin.source) return;
  core::importing::Choices choices = document_.origin.source->choices;
  choices.layer = std::to_string(command.layer);
  const OpenedTensors& tensors = document_.origin.source->tensors;
  read_for_document(tensors.file->path(), make_model_job(tensors, choices));
}

void Store::handle(const FinishOpening& command) {
  if (!opened_) return;
  try {
    if (!may_use_memory(opened_->model(), command)) return;
  } catch (const core::Error&) {
    drop_opened();
    throw;
  }
  leave_lesson();
  if (!may_discard_work(command)) return;
  Opened ready = *std::exchange(opened_, std::nullopt);
  if (ready.leftover) return restore(ready);
  if (ready.full_model) return start_full_model(ready);
  const bool is_linked = ready.path.empty();
  Origin origin{is_linked ? "Linked session" : ready.path.filename().string()};
  if (ready.source)
    origin.source = std::make_shared<const TensorSource>(std::move(*ready.source));
  else if (!is_linked)
    origin.path = absolute_path(ready.path), origin.stamp = ready.stamp;
  origin.import_report = std::move(ready.imported->import_report);
  origin.notes = ready.imported->notes;
  replace_document(document_of(ready.imported->model, std::move(origin)));
  restore_view(ready.imported->view, view_);
  if (is_linked) return say("Opened the session of a link; Save keeps it in a file.");
  remember(ready.path);
  say(opened_words(ready.path, ready.imported->notes));
}

void Store::handle(const MeasureTensor& command) {
  if (!choosing_ || choosing_->ranges.contains(command.name)) return;
  const auto& file = choosing_->file;
  side_tasks_.measure(file, command.name, [this, file, name = command.name](const TensorRange& range) {
    if (choosing_ && choosing_->file == file) choosing_->ranges[name] = range;
  });
}

void Store::handle(const PreviewFile& command) {
  if (!reader_.is_busy()) side_tasks_.preview(command.path, view_.forms.browser.mark());
}

void Store::handle(const OverrideStageFromFile& command) {
  read_for_document(
      command.path,
      [this, command, model = document_.model,
       mark = view_.forms.browser.mark()](const core::StopToken& progress) -> Jobs::Delivery {
        const formats::TableIndex names =
            formats::find_index(formats::open_tensors(command.path, progress, mark), progress);
        const std::vector<formats::StageFile> given{
            {core::attention::info(command.stage).name, command.path.string(), {}, names, mark}};
        const auto stage = std::make_shared<core::attention::GivenStage>(
            *formats::with_overrides_from_files(model, given).given.find(command.stage));
        return [this, stage, names] {
          close(Dialog::override_stage);
          close(Dialog::open_override);
          handle(ApplyEdit{core::editing::OverrideStage{std::move(*stage)}});
          if (names.line) say("The first line, 0, 1 … or 1, 2 …, was taken for the names of the columns");
          if (names.column) say("The first column, 0, 1 … or 1, 2 …, was taken for the names of the rows");
        };
      });
}

void Store::handle(const FillFromFile& command) {
  read_for_document(command.path, [this, command](const core::StopToken& progress) -> Jobs::Delivery {
    const auto file = std::make_shared<MatrixFile>(read_matrix_file(command.path, progress));
    return [this, file, place = command.place] {
      document_.history.end_gesture();
      handle(ApplyEdit{edit_from_file(*file, document_.model, place)});
      document_.history.end_gesture();
      if (view_.forms.dialog == Dialog::none) say("Taken from " + file->path.string());
    };
  });
}

void Store::handle(const CancelReading&) {
  if (opening().is_writing) return writer_.exporting.stop();
  if (!reader_.is_busy()) return;
  reader_.cancel();
  say("Stopped reading " + read_path_.string());
}

namespace formats = core::formats;

void Store::require_saveable() const {
  if (is_in_learn() && !lesson()) return;
  if (lesson()) throw core::Error("A lesson's model is not your work: leave the lesson with Esc, then save.");
  if (document_.is_attached())
    throw core::Error(
        "The edits of an attached model cannot be saved, as the model is in Python. Export writes what is displayed.");
  if (document_.has_no_file())
    throw core::Error(
        "This model is a step of a run, in no file. In Learn, “Learn on with its edits” takes them into the run, which is saved there; or export the run, and edit its folder.");
}

void Store::handle(const SaveFile&) {
  require_saveable();
  const auto path = document().path;
  if (!path) return handle(ShowDialog{Dialog::save_as});
  if (is_changed_on_disk())
    return ask(
        path->string() +
            " has been changed by somebody else since it was read here. Saving replaces what is there.",
        "Replace it", SaveFileAs{*path});
  save_to(*path);
}

void Store::handle(const SaveFileAs& command) {
  save_to(command.path);
  deferred_.is_for_writing = deferred_.next.has_value();
}

void Store::handle(const CopyLink&) {
  formats::Link link;
  if (lesson()) {
    const core::lessons::Lesson& shown = *lesson()->lesson;
    if (!shown.source.empty() && !shown.model.empty())
      throw core::Error("A link cannot carry a whole model: send the file of the lesson, next to its model.");
    if (shown.source.empty())
      link.lesson = shown.name, link.step = lesson()->step;
    else
      link.lesson_text = shown.source;
  } else if (document_.full_model) {
    throw core::Error("A link cannot carry a whole model: save the session, which names its folder.");
  } else if (const auto* preset = core::editing::find_preset(document_.origin.preset);
             preset && document_.model == preset->make()) {
    link.preset = preset->name, link.view = tab_name(view_.look.tab);
    if (view_.look.head > 0) link.head = view_.look.head;
  } else {
    const auto& report = document_.origin.import_report;
    link.session = formats::session_text(
        {document_.model, view_text(view_), core::importing::not_supported_words(report), report.assumed});
  }
  clipboard_ = formats::link_text(link);
  const std::size_t length = clipboard_->size();
  say("Copied a link of " + core::text::counted(length, "character") +
      (length < formats::long_link ? "" : ", too long for many chats: a saved session is safer"));
}

void Store::handle(const NewLesson&) {
  require_saveable();
  if (!document_.origin.path) throw core::Error("Save the session first: its lesson is written next to it.");
  const std::filesystem::path session = *document_.origin.path, folder = session.parent_path();
  std::filesystem::path path;
  for (int k = 1; path.empty() || std::filesystem::exists(path); ++k)
    path = folder /
           (stem_of(session.filename().string()) + "-lesson" + (k == 1 ? "" : std::to_string(k)) + ".json");
  const Stage shown = view_.selection.pinned ? view_.selection.pinned->stage : Stage::weights;
  std::string name, start, focus = std::string("strip/") + core::attention::info(shown).name;
  if (document_.full_model) {
    const FullModelState& whole = *document_.full_model;
    const std::filesystem::path& at = whole.model->description().path;
    const bool is_ours = std::ranges::count(view_.forms.models, at) > 0;
    name = (is_ours ? at.filename() : at.lexically_relative(folder)).string();
    if (!is_ours && !formats::is_within(name, folder))
      throw core::Error(
          "The model does not lie beside the session, where a lesson looks for it: save the session there.");
    start = core::experiment::experiment_text(*whole.model, whole.experiment, "", at.parent_path());
    focus = "region/layers";
  } else {
    start = formats::session_text({document_.model, "", {}});
  }
  const std::string text = core::lessons::lesson_draft(document_.origin.title, name, start, focus);
  core::system::write_atomically(path, text);
  start_lesson(lessons_.add(read_lesson_file(path)),
               {.words = "Wrote " + path.string() + ": edit it, and open it again"});
}

void Store::handle(const SaveAndContinue&) {
  view_.forms.dialog = Dialog::none;
  const auto path = document().path;
  if (!path) return handle(ShowDialog{Dialog::save_as});
  if (is_changed_on_disk()) {
    handle(ShowDialog{Dialog::save_as});
    return say(path->string() + " has been changed by somebody else since it was read here.", true);
  }
  save_to(*path);
  if (deferred_.next) continue_when_written(*deferred_.next);
}

void Store::save_to(const std::filesystem::path& path) {
  if (is_in_learn() && !lesson()) return save_run_to(path);
  const Document& own = lessons_.own(document_);
  if (own.has_no_file()) require_saveable();
  writer_.save_path = path;
  writer_.saving.start(
      [this, path, model = own.model, full_model = own.full_model, n_steps = own.history.n_applied(),
       view = view_text(view_, absolute_path(path).value_or(path).parent_path()),
       left_out = core::importing::not_supported_words(own.origin.import_report),
       assumed = own.origin.import_report.assumed,
       writes = writes_files_](const core::StopToken&) -> Jobs::Delivery {
        if (full_model && writes)
          core::experiment::save_experiment(path, *full_model->model, full_model->experiment, view);
        else if (writes)
          formats::save_session(path, {model, view, left_out, assumed});
        return [this, path, model, full_model, n_steps, stamp = core::system::file_stamp(path)] {
          Document& saved = lessons_.own(document_);
          saved.saved = model;  // which may have been edited since
          if (full_model) saved.saved_experiment = full_model->experiment;
          saved.n_steps_saved = n_steps;
          saved.origin.path = absolute_path(path);
          saved.origin.stamp = stamp;
          saved.origin.title = path.filename().string();
          close(Dialog::save_as);
          remember(path);
          written_.push_back(path);
          say("Saved " + path.string());
        };
      },
      [this, path](const Failure& failure) { fail_to_write(path, failure, true); });
}

void Store::handle(const ExportAs& command) {
  const auto trace = is_up_to_date() ? live_.read_lock().trace : nullptr;
  writer_.export_path = command.path;
  writer_.exporting.start(
      [this, command, model = document_.model, trace, view = view_, title = document_.origin.title,
       left_out = core::importing::not_supported_words(document_.origin.import_report),
       full_model = document_.full_model,
       readings = model_reading_.readings() ? *model_reading_.readings() : BothReadings(),
       writes = writes_files_](const core::StopToken& progress) -> Jobs::Delivery {
        const auto files = writes ? export_as({model, trace.get(), view, title, left_out, full_model,
                                               readings.now ? readings.now->pass : nullptr},
                                              command, progress)
                                  : std::vector{command.path};
        return [this, files, path = command.path] {
          close(Dialog::export_files);
          written_.push_back(files.size() == 1 ? files.front() : path);
          view_.forms.browser.confirms_overwrite = false;
          say(files.size() == 1 ? "Exported " + files.front().string()
                                : fmt::format("Exported {} files to {}", files.size(), path.string()));
        };
      },
      [this, path = command.path](const Failure& failure) { fail_to_write(path, failure, false); });
}

void Store::handle(const ExportMap& command) {
  const core::circuits::PatchMap* map = model_reading_.patches().of(plan_of(view_.layers.patches));
  if (!document_.full_model || !map) throw core::Error("There is no map of patches to export.");
  writer_.export_path = command.path;
  writer_.exporting.start(
      [this, matrix = labeled(*map), path = command.path,
       writes = writes_files_](const core::StopToken&) -> Jobs::Delivery {
        const std::string bytes = map_bytes(path, matrix, "Recovered by each patch alone");
        if (writes) core::system::write_atomically(path, bytes);
        return [this, path] {
          written_.push_back(path);
          close(Dialog::export_map);
          view_.forms.browser.confirms_overwrite = false;
          say("Exported " + path.string());
        };
      },
      [this, path = command.path](const Failure& failure) { fail_to_write(path, failure, false); });
}

void Store::fail_to_write(const std::filesystem::path& path, const Failure& failure, bool was_saving) {
  if (failure.is_stopped) return say("Stopped: nothing was exported");
  say(failure.is_out_of_memory ? path.string() + ": there is not enough memory to write it" : failure.words,
      true);
  const bool is_awaited = deferred_.is_for_writing && (was_saving || is_quitting());
  if (!is_awaited) return;
  deferred_.is_for_writing = false;  // work that is not written must not be lost
  if (view_.forms.dialog != Dialog::save_as) cancel_deferred();
  close(Dialog::writing);
}

void Store::continue_if_written() {
  if (!deferred_.is_for_writing || writer_.saving.is_busy()) return;
  if (is_quitting() && writer_.exporting.is_busy()) return;
  deferred_.is_for_writing = false;
  close(Dialog::writing);
  continue_deferred();
}

UnsavedWork Store::work_to_record() const {
  const bool in_lesson = lessons_.is_under_way();
  return {lessons_.own(document_), view_, lessons_.state(), in_lesson ? &document_ : nullptr,
          learning_.recovery_text()};
}

void Store::record_in(const std::filesystem::path& folder) {
  try {
    recorder_.begin(folder);
  } catch (const core::Error& error) {
    say(not_recorded_message(error.what()), true);
  }
  tidy();
}

/// Asks about work that was left, or closes the question when there is none.
void Store::show_leftovers() {
  auto& lines = view_.forms.leftovers;
  lines.clear();
  for (const auto& journal : recorder_.leftovers()) {
    try {
      lines.push_back(journal_summary(journal->header()));
    } catch (const std::exception& error) {
      lines.push_back(error.what());
    }
  }
  view_.forms.dialog = lines.empty() ? Dialog::none : Dialog::recovery;
}

void Store::handle(const RestoreLeftover& command) {
  if (command.index >= recorder_.leftovers().size()) return;
  const auto journal = recorder_.leftovers()[command.index];
  const JournalHeader header = journal->header();
  const std::filesystem::path path = header.path.value_or(header.title);
  message_ = {};
  read_in_background(
      path,
      [this, journal, header, path,
       free = free_memory_()](const core::StopToken& progress) -> Jobs::Delivery {
        JournalSessions texts = journal->texts();
        const auto ready = std::make_shared<Opened>(Opened{path});
        ready->leftover = Opened::Leftover{journal, header, std::move(texts.in_lesson)};
        if (!texts.run.empty())
          ready->leftover->run = core::training::reopen_run(texts.run, "the run", progress).run;
        if (core::experiment::is_saved_experiment_text(texts.own)) {
          // Its paths are absolute.
          ready->full_model = std::make_shared<const OpenedModel>(open_saved_full_model(
              texts.own, "/" + header.title, core::UntrustedPaths::allowed, free / 2, progress));
        } else {
          core::formats::Session session = core::formats::parse_session(texts.own, header.title);
          ready->imported = {std::move(session.model), {}, session.view};
          for (std::string& words : session.left_out)
            ready->imported->import_report.not_supported.push_back({"", std::move(words)});
          ready->imported->import_report.assumed = std::move(session.assumed);
        }
        return [this, ready, journal] {
          if (!std::ranges::count(recorder_.leftovers(), journal)) return;  // not wanted anymore
          take(std::move(*ready));
        };
      });
}

void Store::restore(const Opened& ready) {
  if (!std::ranges::count(recorder_.leftovers(), ready.leftover->journal))
    throw core::Error("What an earlier window has left is no longer there.");
  const JournalHeader& header = ready.leftover->header;
  Origin origin = origin_of(header);
  if (ready.imported) origin.import_report = ready.imported->import_report;
  replace_document(ready.full_model ? document_of(*ready.full_model, std::move(origin))
                                    : document_of(ready.imported->model, std::move(origin)));
  if (const auto* preset = core::editing::find_preset(document_.origin.preset))
    document_.first = preset->make();  // and not the edited model
  if (!header.is_saved) {              // it exists only in the journal
    document_.saved = {};
    document_.saved_experiment = {};
  }
  if (ready.full_model) {
    model_reading_.set_readings(*document_.full_model, {ready.full_model->reading, ready.full_model->before});
    show_layers_view(view_);
  }
  restore_view(ready.full_model ? ready.full_model->view : ready.imported->view, view_, "/");
  const std::string words =
      "Recovered: " + journal_summary(header) + (header.is_saved ? "." : ". It is not saved yet.");
  say(words);
  if (ready.leftover->run) {
    learning_.open(ready.leftover->run, std::nullopt, "");
    show_run(words, false);
  }
  if (header.lesson.empty()) return recorder_.restore(ready.leftover->journal);
  if (!lessons_.find(header.lesson) && is_lesson_file(header.lesson))
    lessons_.add(read_lesson_file(header.lesson));
  start_lesson(header.lesson,
               {ready.leftover->in_lesson, words, header.lesson_step, ready.leftover->journal});
}

/// Restores edits made in a lesson before a crash to the document of its step, as an undo step.
void Store::restore_lesson_work(const LessonWork& lesson_work) {
  if (lesson_work.session.empty()) return;
  document_.history.end_gesture();
  record_step("", "what was tried before");
  if (document_.full_model) {
    const auto saved = core::experiment::parse_experiment(lesson_work.session, "/" + document_.origin.title,
                                                          core::UntrustedPaths::allowed);
    set_experiment(core::experiment::with_saved_edits(saved, *document_.full_model->model), "", "");
  } else {
    document_.model = core::formats::parse_session(lesson_work.session, document_.origin.title).model;
  }
  document_.n_steps_saved = document_.history.n_applied();  // those before are counted already
  document_.history.end_gesture();
}

void Store::handle(const DiscardLeftover& command) {
  if (command.index >= recorder_.leftovers().size()) return;
  if (!command.is_agreed)
    return ask("This work is not saved anywhere else: " + view_.forms.leftovers.at(command.index) + ".",
               "Discard", DiscardLeftover{command.index, true});
  recorder_.drop(command.index);
}

void Store::handle(const KeepLeftovers&) {
  recorder_.keep_for_later();
  view_.forms.dialog = Dialog::none;
  say("What was left is offered again by the next window.");
}

void Store::handle(const ConfirmQuestion&) {
  view_.forms.dialog = Dialog::none;
  continue_deferred();
}

/// Asks whether to continue with a command.
void Store::ask(std::string question, std::string answer, const Command& next) {
  wait_for(next, false);
  view_.forms.question = std::move(question);
  view_.forms.answer = std::move(answer);
  view_.forms.dialog = Dialog::question;
}

bool Store::is_changed_on_disk() const {
  const auto path = document().path;
  const std::string& then = is_in_learn() ? learning_.document().stamp : lessons_.own(document_).origin.stamp;
  if (!path || then.empty()) return false;
  const std::string now = core::system::file_stamp(*path);
  return !now.empty() && now != then;
}

void Store::handle(const QuitNow&) {
  writer_.exporting.stop(true);
  writer_.saving.wait();
  jobs_.deliver();
  attempt("the record of edits", [this] { recorder_.finish(work_to_record()); });
  quit_ = true;
}

}  // namespace app
