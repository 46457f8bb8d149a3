#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/session/learning.hpp"
#include "app/session/opening.hpp"
#include "core/graph/stages.hpp"
#include "core/lessons/lessons.hpp"

/// What the start page shows: it is read and computed in the background.
namespace app {

/// The whole model that comes with the program, and its first text.
struct StartModel : OpenedModel {
  std::vector<std::pair<std::string, double>> next;  ///< the most probable tokens and their probabilities
};

/// One of the recent files.
struct RecentFile {
  std::filesystem::path path;
  std::string words;             ///< "6 tokens, 2 heads", or "" where it was not read
  std::int64_t modified_at = 0;  ///< last change, in seconds since 1970; 0 if unknown
  arma::mat weights;             ///< of its first head; empty where they were not computed
};

/// A stage of one head at the start of a step of a lesson.
struct LessonPicture {
  core::attention::Stage stage = core::attention::Stage::weights;
  arma::mat numbers, visible;  ///< visible is 0 at masked positions, empty for stages without
};

/// What the pictures of the start page depend on.
struct StartPicturesKey {
  std::vector<std::filesystem::path> recent;
  std::string lesson;
  std::size_t step = 0;
  friend bool operator==(const StartPicturesKey&, const StartPicturesKey&) = default;
};

struct StartPictures {
  std::vector<RecentFile> recent;
  std::optional<LessonPicture> lesson;  ///< nothing for steps about a whole model, and for large stages
};

/// A short run of training, and its only head at some of its steps.
struct StartRun {
  std::shared_ptr<const core::training::TrainingRun> run;
  std::vector<LearnedPicture> heads;
};

/// Trains it, in half a second of processor time, or goes on with the part that is there; returns a part,
/// which has no heads, when that is due. Throws core::Stopped.
StartRun train_start_run(const StartRun& before, const core::StopToken& progress);

/// Length of the list of recent files on the start page.
constexpr std::size_t max_start_files = 5;

/// Returns the interrupted lesson, else the first one that is not done, else the first one; and its step.
std::pair<const core::lessons::Lesson*, std::size_t> suggested_lesson(
    const std::map<std::string, LessonProgress>* progress);

/// Opens the whole model of a folder. Throws core::Error.
StartModel read_start_model(const std::filesystem::path& path, const core::StopToken& progress);

/// Reads the recent files as far as they are small; of others, and of those that cannot be read, only the
/// time is known. Blocks on the disk. Throws core::Stopped.
StartPictures read_start_pictures(const StartPicturesKey& key, const core::StopToken& progress);

}  // namespace app
