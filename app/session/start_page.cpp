#include "app/session/start_page.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <system_error>

#include "app/session/lessons.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "core/model/full_model.hpp"
#include "core/system/file.hpp"
#include "core/training/run_files.hpp"

namespace app {

namespace {

namespace fs = std::filesystem;
using core::attention::Stage;

// A start page that reads for long, or fills the memory, is worse than one without pictures.
constexpr std::uintmax_t max_read_bytes = std::uintmax_t{8} << 20;
constexpr std::size_t max_pictured_cells = std::size_t{1} << 20;  // of the weights of all heads
constexpr std::uint64_t weights_kept = std::uint64_t{1} << 26;

/// Returns the size of a file, or of all files in a folder; the largest number where it is unknown.
std::uintmax_t size_on_disk(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t own = core::system::is_folder(path) ? 0 : fs::file_size(path, error);
  if (error) return static_cast<std::uintmax_t>(-1);
  std::uintmax_t size = own;
  if (core::system::is_folder(path))
    for (const fs::path& file : core::system::list_folder(path).paths)
      if (!core::system::is_folder(file)) size += std::min(size_on_disk(file), max_read_bytes + 1);
  return size;
}

/// Returns a matrix as small as a thumbnail: of every block of cells the largest.
arma::mat thumbnail(const arma::mat& all) {
  constexpr arma::uword max_side = 32;
  const arma::uword block = (std::max(all.n_rows, all.n_cols) + max_side - 1) / max_side;
  if (block <= 1) return all;
  arma::mat small((all.n_rows + block - 1) / block, (all.n_cols + block - 1) / block);
  for (arma::uword i = 0; i < all.n_rows; ++i)
    for (arma::uword j = 0; j < all.n_cols; ++j)
      small(i / block, j / block) = std::max(small(i / block, j / block), all(i, j));
  return small;
}

void describe(RecentFile& found, const OpenedModel& opened) {
  const auto& now = *opened.reading;
  found.words = fmt::format("{}, {}", core::text::counted(now.layers.size(), "layer"),
                            core::text::counted(now.names.size(), "token"));
  const auto& layer = *now.layers[now.experiment.layer];
  if (!layer.heads.empty()) found.weights = thumbnail(layer.heads.front().map);
}

void describe(RecentFile& found, const core::attention::Model& model) {
  found.words = fmt::format("{}, {}", core::text::counted(model.n_tokens(), "token"),
                            core::text::counted(model.n_heads, "head"));
  if (model.n_tokens() * model.n_keys() * model.n_heads <= max_pictured_cells)
    found.weights = thumbnail(core::attention::attend(model).at(Stage::weights, 0));
}

/// Reads a file that is small enough.
void read(RecentFile& found, const core::StopToken& progress) {
  if (core::training::is_run_session_file(found.path)) {
    found.words = "a run of training";
  } else if (core::experiment::is_saved_experiment(found.path)) {
    const std::string text = core::system::read_file(found.path, core::formats::max_session_bytes);
    const auto saved = core::experiment::parse_experiment(text, found.path, core::UntrustedPaths::refused);
    if (size_on_disk(saved.model) <= max_read_bytes)
      describe(found, open_saved_full_model(text, found.path, core::UntrustedPaths::refused, weights_kept,
                                            progress));
  } else if (const auto model = full_model_at(found.path)) {
    if (size_on_disk(*model) <= max_read_bytes)
      describe(found, open_full_model(*model, "", 0, weights_kept, progress));
  } else if (const Opened opened = open_file(found.path, progress); opened.imported) {
    describe(found, opened.model());
  }
}

std::optional<LessonPicture> picture_of(const core::lessons::Lesson& lesson, std::size_t step) {
  constexpr std::size_t max_side = 12;
  if (!lesson.model.empty() || lesson.trains()) return std::nullopt;
  const core::lessons::LessonStep& shown = lesson.steps[step];
  const core::attention::Model model = core::lessons::model_at_start(shown);
  const core::attention::Trace trace = core::attention::attend(model);
  LessonPicture picture;
  constexpr std::string_view strip = "strip/";
  for (const std::string_view name : shown.focus)
    if (const auto* stage =
            name.starts_with(strip) ? core::attention::find_stage(name.substr(strip.size())) : nullptr;
        stage && stage->present(model))
      picture.stage = stage->stage;
  if (shown.predict) picture.stage = *shown.predict;
  const auto& info = core::attention::info(picture.stage);
  picture.numbers = trace.at(picture.stage, 0);
  if (std::max(picture.numbers.n_rows, picture.numbers.n_cols) > max_side) return std::nullopt;
  if (info.columns == core::attention::Columns::tokens && picture.stage > Stage::mask)
    picture.visible = trace.at(Stage::mask);
  return picture;
}

}  // namespace

std::pair<const core::lessons::Lesson*, std::size_t> suggested_lesson(
    const std::map<std::string, LessonProgress>* progress) {
  if (const auto* left = unfinished_lesson(progress)) return {left, progress_of(progress, left->name)->step};
  const auto& all = core::lessons::lessons();
  const auto next = std::ranges::find_if(all, [&](const core::lessons::Lesson& lesson) {
    const LessonProgress* known = progress_of(progress, lesson.name);
    return !known || known->done.size() < lesson.steps.size();
  });
  return {next == all.end() ? &all.front() : &*next, 0};
}

StartModel read_start_model(const fs::path& path, const core::StopToken& progress) {
  constexpr std::size_t n_next = 3;
  StartModel start{open_full_model(path, "", 0, weights_kept, progress), {}};
  const auto& logits = start.reading->logits;
  if (logits.empty()) return start;
  for (const auto& token :
       core::transformer::top_tokens(logits.tail_rows(1), n_next, start.model->description().n_tokens))
    start.next.emplace_back(core::transformer::token_name(*start.model, token.id), token.probability);
  return start;
}

StartRun train_start_run(const StartRun& before, const core::StopToken& progress) {
  constexpr std::size_t n_steps = 120, pictured_every = 60;
  using core::training::TrainingRun;
  const core::training::Task& task = core::training::tasks().front();
  const auto run = before.run ? std::make_shared<TrainingRun>(*before.run)
                              : std::make_shared<TrainingRun>(
                                    task.setup, std::make_shared<const core::training::TaskData>(task));
  while (run->n_steps() < n_steps && !run->diverged_at()) {
    progress.add(1);
    run->step();
    if (progress.is_due()) return {run, {}};
  }
  StartRun start{run, {}};
  for (const auto& snapshot : run->snapshots())
    if (snapshot->step % pictured_every == 0) start.heads.push_back(learned_picture(*run, *snapshot, 0));
  return start;
}

StartPictures read_start_pictures(const StartPicturesKey& key, const core::StopToken& progress) {
  StartPictures pictures;
  if (const auto* lesson = core::lessons::find_lesson(key.lesson))
    pictures.lesson = picture_of(*lesson, key.step);
  for (const fs::path& path : key.recent) {
    RecentFile found{path, "", modified_at(path), {}};
    try {
      if (size_on_disk(path) <= max_read_bytes) read(found, progress);
    } catch (const core::Stopped&) {
      throw;
    } catch (const core::Error&) {  // opening the file says why
    }
    pictures.recent.push_back(std::move(found));
  }
  return pictures;
}

}  // namespace app
