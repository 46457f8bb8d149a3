#include "core/out/gradient_export.hpp"

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/files/given_tensors.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/out/numpy.hpp"

namespace core::formats {
namespace {

namespace fs = std::filesystem;
using attention::MatrixName;
using attention::Model;
using attention::StageInfo;
using graph::gradient_name;
using graph::Gradients;

struct LearnedGradient {
  std::string name;
  bool is_vector;
  arma::mat numbers;
};

/// Returns the gradients of the learned matrices, none if stages are chosen.
std::vector<LearnedGradient> learned_gradients(const Model& model, const Gradients& all,
                                               const ExportOptions& options) {
  std::vector<LearnedGradient> learned;
  if (!options.stages.empty()) return learned;
  for (const attention::MatrixRef& place : graph::learned_matrices(model)) {
    const bool has_several = place.name == MatrixName::score_bias && model.additions.score_bias.size() > 1;
    const arma::mat& gradient = all.of(place);
    learned.push_back({std::string("d_") + gradient_name(place.name) +
                           (has_several ? ".head" + std::to_string(place.nth) : ""),
                       attention::has_one_row(place.name),
                       gradient.empty()
                           ? arma::mat(arma::size(**find_matrix(model, place)), arma::fill::zeros)
                           : gradient});
  }
  return learned;
}

std::string archive_of(const Model& model, const Gradients& all, const ExportOptions& options) {
  std::vector<ZipEntry> files;
  for (const StageInfo* stage : select_stages(model, options.stages))
    files.push_back({std::string("d_") + stage->name + ".npy", [&, stage] {
                       return npy_stage(*stage, {&all.stages, 1}, model);
                     }});
  const std::vector<LearnedGradient> learned = learned_gradients(model, all, options);
  for (const LearnedGradient& each : learned)
    files.push_back({each.name + ".npy", [&each] { return npy_bytes(each.numbers, each.is_vector); }});
  return zip_bytes(files);
}

}  // namespace

std::vector<fs::path> export_gradients(const Model& model, const Gradients& all, const fs::path& path,
                                       const ExportOptions& options) {
  if (options.archive) return write_archive(archive_of(model, all, options), path, "gradients.npz");
  std::vector<ExportFile> files;
  for (const StageInfo* stage : select_stages(model, options.stages))
    for (std::size_t head = 0; head < stage->count(model.n_heads); ++head)
      files.push_back({"d_" + stage_file_name(*stage, head, *options.format), [=, &model, &all] {
                         return labeled_stage(model, all.stages, *stage, head, all.stages.sequence);
                       }});
  for (const auto& [name, is_vector, numbers] : learned_gradients(model, all, options))
    files.push_back({name + "." + options.format->name, [matrix = numbers] {
                       return LabeledMatrix{matrix, attention::numbered_tokens(matrix.n_rows),
                                            attention::numbered_tokens(matrix.n_cols)};
                     }});
  return write_files(files, path, options);
}

std::vector<double> read_expected_row(const std::string& source, std::size_t row) {
  const auto [path, name] = parse_tensor_address(source);
  const TensorFile file = open_tensors(path);
  if (name.empty() && file.tensors().size() != 1)
    throw Error(
        fmt::format("{}expected one tensor, or FILE:TENSOR, got {}", file.place(), file.tensors().size()));
  const arma::mat numbers = matrix(file.read(name.empty() ? file.tensors().front().name : name));
  if (numbers.n_rows != 1 && row >= numbers.n_rows)
    throw Error(
        fmt::format("{}expected one row, or more than {}, got {}", file.place(), row, numbers.n_rows));
  return arma::conv_to<std::vector<double>>::from(numbers.row(numbers.n_rows == 1 ? 0 : row));
}

}  // namespace core::formats
