#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/session/opening.hpp"
#include "app/session/view.hpp"
#include "core/check/computed.hpp"
#include "core/check/match.hpp"
#include "core/circuits/patching.hpp"
#include "core/circuits/sources.hpp"
#include "core/graph/bugs.hpp"
#include "core/importing/import.hpp"
#include "core/model/full_model.hpp"
#include "core/model/lens.hpp"
#include "core/out/experiment_program.hpp"
#include "core/out/export.hpp"
#include "core/out/figure.hpp"
#include "core/out/gradient_export.hpp"
#include "core/scan/scan.hpp"
#include "core/training/setup.hpp"

namespace app {

/// Source of a command's model; with an empty path, only the given stages.
using ModelSource = std::variant<std::filesystem::path, const core::editing::Preset*>;

/// Options of every command about a model.
struct ModelOptions {
  ModelSource source;
  core::importing::Choices choices = {};              ///< for a file of tensors
  std::vector<const core::bugs::Bug*> mistakes = {};  ///< bugs to inject into the model first
  std::optional<std::string> text = {};  ///< for a whole model to read; its layer is then that of choices
};

/// Opens the window on a model in a Python process; without a token, $ATTNSCOPE_TOKEN is used.
struct Attach : OpenWindow {};
struct ListPresets {};
struct ListMistakes {};
inline constexpr const char* page_format = "html";    ///< every head in one page
inline constexpr const char* archive_format = "npz";  ///< all matrices in one file; others hold one matrix
struct Export : ModelOptions {
  std::filesystem::path out;  ///< a directory, or a file where one is enough
  core::formats::ExportOptions options;
  bool is_page = false;  ///< one self-contained HTML file, of a whole model with every layer
};
/// Number of which gradients are computed; for the error of a row of the output, the file of its target.
struct GradientOptions : core::formats::GradientRequest {
  std::string expected = {};  ///< FILE or FILE:TENSOR, or ""
};
struct WriteGradients : Export {
  GradientOptions of;
};
struct WriteProgram : ModelOptions {
  std::optional<std::filesystem::path> file;  ///< else standard output
  bool has_gradient = false;                  ///< it prints the gradients instead of every stage
  GradientOptions gradient;
  /// For a whole model without a layer, whose program repeats an experiment.
  std::set<std::pair<std::size_t, std::size_t>> heads_off = {};
  std::string token = {};
  core::formats::HookLibrary library = core::formats::HookLibrary::transformers;
};
struct WriteSession : ModelOptions {
  std::filesystem::path file;
};
/// Checks tensors against a model.
struct CheckModel : ModelOptions {
  std::filesystem::path against;
  core::check::Tolerance tolerance;
  std::map<std::string, std::string> by_hand;  ///< stage of a tensor; "" ignores it
  const core::check::TensorLayout* layout =
      nullptr;  ///< of the features of heads, or nullptr for whichever fits
  bool json = false;
  bool computes_source = false;      ///< the model is computed from the tensors of the source
  std::filesystem::path fixed;       ///< session to write with the first cause applied, or ""
  std::vector<std::string> renamed;  ///< a note for each option that was given by its earlier name
};
struct DrawRandom {
  std::uint64_t seed = 0;
  std::vector<std::string> ops;  ///< as core::random::parse_random_op() reads them
};
struct DrawFigure : ModelOptions {
  core::figures::FigureOptions options;
  bool has_gradient = false;  ///< it shows gradients of a number of its head instead of the stages
  GradientOptions gradient;
  ColorChoice colors;                     ///< of the figure, in place of those in options
  ExportFormat form = ExportFormat::svg;  ///< a picture format
  std::filesystem::path file;
  double scale = 1;  ///< of a PNG
};
/// Options of every command about a whole model and a text.
struct FullModelOptions {
  std::filesystem::path model;
  std::string text;
  std::string token = {};  ///< of an attached model, whose address `model` is, or ""
  std::set<std::pair<std::size_t, std::size_t>> heads_off = {};  ///< ablated ones, by layer and head
};
struct ListTokens : FullModelOptions {
  bool json = false;
};
struct Predict : FullModelOptions {
  std::size_t top = 10;
  bool json = false;
};
struct ListHeadRoles : FullModelOptions {};
/// Predicts tokens from the residual stream at each layer.
struct ReadLens : FullModelOptions {
  core::transformer::LensKind lens = core::transformer::LensKind::logit;
  std::size_t top = 1;
  bool json = false;
};
struct Generate : FullModelOptions {
  std::size_t n_tokens = 20;
  core::transformer::Sampling sampling;
  std::uint64_t seed = 123;
};
/// Splits a score of a whole model, a row of numbers or a logit by its sources.
struct ExplainScore {
  enum class Explained { score, contexts, residual, logit };
  std::filesystem::path model;
  std::string text;
  Explained what = Explained::score;
  core::circuits::ScoreCell cell;
  std::string token;  ///< of the logit
  bool json = false;
};
/// Patches parts of a pass over one prompt into a pass over another.
struct PatchPrompts {
  std::filesystem::path model;
  std::string token = {};  ///< of an attached model, or ""
  std::string clean, corrupt, answer, against;
  core::circuits::PatchPlan plan;
  std::vector<std::pair<std::size_t, std::size_t>>
      aligned;                ///< positions in the clean and the corrupt prompt
  std::filesystem::path out;  ///< of the map, or ""
  bool json = false;
};
/// Measures how the heads of a whole model compose.
struct ListComposition {
  std::filesystem::path model;
  std::optional<std::pair<std::size_t, std::size_t>> head;  ///< whose pairs of tokens are listed instead
  std::size_t top = 20;
  bool json = false;
};
/// Measures the heads of a whole model over many texts, or merges such scans.
struct ScanTexts {
  std::filesystem::path model;  ///< or an address, or "" with scans to merge
  std::string token = {};       ///< of an attached model, or ""
  std::filesystem::path texts;
  core::scan::ScanOptions options;
  std::vector<std::filesystem::path> merged;
  bool json = false;
};
/// Trains a small transformer.
struct Learn {
  std::string task;  ///< of core::training::tasks(), a text file, or a session of a run
  core::training::TrainingSetup setup;
  std::filesystem::path out;           ///< a new folder for the model, its snapshots and run.json, or ""
  std::filesystem::path session = {};  ///< to save the run in, or ""
  bool json = false;
  std::vector<std::function<void(core::training::TrainingSetup&)>> changes = {};  ///< of the task's setup
};
/// Text to print, such as for --help and --version.
struct ShowText {
  std::string text;
};
/// Invalid arguments; the message is one line.
struct UsageError {
  std::string message;
};

/// The parsed command line.
using CommandLine = std::variant<OpenWindow, Attach, ListPresets, ListMistakes, Export, WriteGradients,
                                 WriteSession, WriteProgram, DrawFigure, CheckModel, DrawRandom, ListTokens,
                                 Predict, ListHeadRoles, ReadLens, Generate, ExplainScore, PatchPrompts,
                                 ListComposition, ScanTexts, Learn, ShowText, UsageError>;

/// Parses the arguments after the name of the program. Touches no file and never throws core::Error.
CommandLine parse_arguments(std::vector<std::string> arguments);

}  // namespace app
