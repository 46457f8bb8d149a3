#pragma once

#include <cstdint>
#include <filesystem>
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
#include "core/graph/mistakes.hpp"
#include "core/importing/import.hpp"
#include "core/model/whole_model.hpp"
#include "core/out/export.hpp"
#include "core/out/figure.hpp"

namespace app {

/// Where a command takes its model from.
/// An empty path: from nothing but what is given.
using Source = std::variant<std::filesystem::path, const core::editing::Preset*>;

/// What every command about a model says of it.
struct OfModel {
  Source source;
  core::importing::Choices choices = {};                      ///< about a file of tensors
  std::vector<const core::mistakes::Mistake*> mistakes = {};  ///< to be made in the model first
  std::optional<std::string> text = {};  ///< what a whole model reads; its layer is then that of choices
};

/// Opens the window on a model in a process of Python; without a token it is that of the environment.
struct Attach : OpenWindow {};
struct ListPresets {};
struct ListMistakes {};
struct Export : OfModel {
  std::filesystem::path out;  ///< a directory, or a file where one is enough
  core::formats::ExportOptions options;
  bool is_page = false;  ///< one self-contained HTML file, of a whole model with every layer
};
struct WriteProgram : OfModel {
  std::optional<std::filesystem::path> file;  ///< else standard output
};
struct WriteSession : OfModel {
  std::filesystem::path file;
};
/// Somebody's tensors against a model.
struct Check : OfModel {
  std::filesystem::path against;
  core::check::Tolerance tolerance;
  std::map<std::string, std::string> by_hand;   ///< stage of a tensor; "" leaves it out
  const core::check::Layout* layout = nullptr;  ///< of the features of heads, or nullptr for whichever fits
  bool json = false;
  bool computes_source = false;  ///< the model is what follows from the tensors of the source
  std::filesystem::path fixed;   ///< session to write with the first cause applied, or ""
};
struct Draw {
  std::uint64_t seed = 0;
  std::vector<std::string> ops;  ///< as core::random::parse_draw_op() reads them
};
struct DrawFigure : OfModel {
  core::figures::FigureOptions options;
  ColorChoice colors;                 ///< what of them the options follow
  ExportForm form = ExportForm::svg;  ///< one of the pictures
  std::filesystem::path file;
  double scale = 1;  ///< of a PNG
};
/// What every command about a whole model and a text says of it.
struct OfWholeModel {
  std::filesystem::path model;
  std::string text;
  std::string token = {};  ///< of an attached model, whose address `model` is, or ""
  std::set<std::pair<std::size_t, std::size_t>> heads_off = {};  ///< layer and head
};
struct ListTokens : OfWholeModel {
  bool json = false;
};
struct Predict : OfWholeModel {
  std::size_t top = 10;
  bool json = false;
};
struct DescribeHeads : OfWholeModel {};
struct Generate : OfWholeModel {
  std::size_t n_tokens = 20;
  core::transformer::Sampling sampling;
  std::uint64_t seed = 123;
};
/// What --help and --version print.
struct ShowText {
  std::string text;
};
/// Arguments that are no command; the message is one line.
struct WrongUsage {
  std::string message;
};

/// What the command line asks for.
using Arguments =
    std::variant<OpenWindow, Attach, ListPresets, ListMistakes, Export, WriteSession, WriteProgram,
                 DrawFigure, Check, Draw, ListTokens, Predict, DescribeHeads, Generate, ShowText, WrongUsage>;

/// Reads the arguments that follow the name of the program. Touches no file and never throws core::Error.
Arguments parse_arguments(std::vector<std::string> arguments);

}  // namespace app
