#include "app/session/live_scan.hpp"

#include <fmt/core.h>

#include "core/base/text.hpp"
#include "core/system/file.hpp"

namespace app {
namespace {

namespace scan = core::scan;

constexpr std::chrono::milliseconds between_looks(500);  // at the folder

ShownExample shown(scan::Example example) {
  const std::size_t n = example.sequence->tokens.size();
  ShownExample result{{}, arma::mat(n, n, arma::fill::zeros)};
  double largest = -1;
  for (std::size_t k = 0; k < example.cells.size(); ++k) {
    const std::size_t i = example.cells[k] / n, j = example.cells[k] % n;
    result.pattern(i, j) = example.weights[k];
    if (i > 0 && j > 0 && i != j && example.weights[k] > largest)
      result.query = i, result.key = j, largest = example.weights[k];
  }
  result.of = std::move(example);
  return result;
}

std::string name_of(const FullModelState& full_model) {
  const std::filesystem::path& path = full_model.model->description().path;
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

std::string texts_words(const scan::HeadTable& table) {
  return table.n_sequences ? core::text::counted(*table.n_sequences, "text") : "many texts";
}

std::string scan_folder(const std::string& texts, const FullModelState& full_model) {
  const std::filesystem::path path = texts;
  return (path.parent_path() / (path.stem().string() + "-heads-" + name_of(full_model))).string();
}

template <class Work>
LiveScan::OrError<std::invoke_result_t<Work>> LiveScan::or_error(Work work) {
  try {
    return {work()};
  } catch (const core::Stopped&) {
    throw;
  } catch (const core::Error& error) {
    return {.error = error.what()};
  }
}

void LiveScan::follow(const FullModelState& full_model, const ScanForm& form) {
  const RunKey key{full_model.model.get(), form.texts, form.folder};
  if (!form.runs || form.texts.empty() || form.folder.empty()) {
    runs_.cancel();
  } else if (runs_.needs(key)) {
    if (!pool_) pool_ = std::make_shared<core::ThreadPool>();
    runs_.begin(key, Schedule::background,
                [key, model = full_model.model, pool = pool_](const core::StopToken& token) {
                  return or_error([&]() -> std::string {
                    const scan::Scan found = scan::run(*model, scan::read_texts(key.texts),
                                                       {0, {}, key.folder, true}, {*pool, token});
                    if (found.skipped.empty()) return "";
                    return fmt::format("{} could not be read, as line {}: {}",
                                       core::text::counted(found.n_skipped, "line"),
                                       found.skipped.front().line, found.skipped.front().why);
                  });
                });
  }
  follow_folder(form);
}

void LiveScan::follow_folder(const ScanForm& form) {
  const bool has_ended = std::exchange(was_scanning_, runs_.is_busy()) && !was_scanning_;
  if (folder_.folder != form.folder || has_ended || Clock::now() - looked_ > between_looks) {
    folder_ = {form.folder, core::system::file_stamp(std::filesystem::path(form.folder) / "config.json")};
    looked_ = Clock::now();
  }
  if (folder_.folder.empty() || folder_.stamp.empty()) {
    tables_.clear(), examples_.clear();
    return;
  }
  if (tables_.needs(folder_))
    tables_.begin(folder_, Schedule::background, [folder = folder_.folder](const core::StopToken&) {
      return or_error([&] { return scan::read_table(folder); });
    });
  const ExamplesKey key{folder_, form.head};
  if (!form.shows_head || !examples_.needs(key)) return;
  ++version_;
  examples_.begin(key, Schedule::background, [key](const core::StopToken&) {
    return or_error([&] {
      std::vector<ShownExample> result;
      for (scan::Example& example : scan::read_examples(key.of.folder, key.head.first, key.head.second))
        result.push_back(shown(std::move(example)));
      return result;
    });
  });
}

void LiveScan::clear() {
  runs_.clear(), tables_.clear(), examples_.clear();
}

const scan::HeadTable* LiveScan::table() const {
  const auto* result = tables_.value();
  return result && tables_.key()->folder == folder_.folder && result->error.empty() ? &result->value
                                                                                    : nullptr;
}

bool LiveScan::is_of(const FullModelState& full_model) const {
  const auto& sizes = full_model.model->description().sizes;
  return table() && table()->model == name_of(full_model) &&
         table()->row_of(sizes.n_layers - 1, sizes.n_heads - 1) &&
         table()->rows.size() == sizes.n_layers * sizes.n_heads;
}

std::optional<core::transformer::HeadRoles> LiveScan::roles(const FullModelState& full_model,
                                                            std::size_t layer, std::size_t head) const {
  return is_of(full_model) ? table()->roles_of(layer, head) : std::nullopt;
}

const std::vector<ShownExample>* LiveScan::examples(const ScanForm& form) const {
  return examples_.key() && examples_.key()->of.folder == folder_.folder && examples_.key()->head == form.head
             ? &examples_.value()->value
             : nullptr;
}

std::string LiveScan::error() const {
  if (runs_.value() && runs_.key()->folder == folder_.folder && !runs_.value()->error.empty())
    return runs_.value()->error;
  if (tables_.value() && tables_.key()->folder == folder_.folder && !tables_.value()->error.empty())
    return tables_.value()->error;
  return examples_.value() ? examples_.value()->error : "";
}

}  // namespace app
