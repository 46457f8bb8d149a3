#include "core/files/given_tensors.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <system_error>

#include "core/base/error.hpp"
#include "core/files/session_parts.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"

namespace core::formats {
namespace {

using attention::GivenStage;
using attention::Model;
using attention::Stage;

/// Returns the only tensor of a layer by its name: "2" or "attentions.2", as tuples of all layers are saved;
/// or nullptr.
const TensorInfo* tensor_of_layer(const TensorFile& file, std::size_t layer) {
  const std::string number = std::to_string(layer);
  const TensorInfo* found = nullptr;
  for (const TensorInfo& info : file.tensors()) {
    if (info.name != number && !info.name.ends_with("." + number)) continue;
    if (found) return nullptr;
    found = &info;
  }
  return found;
}

/// A tensor, and the layer that is along its first axis.
struct ChosenTensor {
  const TensorInfo& info;
  std::optional<std::size_t> layer;
};

ChosenTensor select_tensor(const TensorFile& file, const std::string& name, const StageFile& wanted) {
  const auto& tensors = file.tensors();
  const std::string& expected = name.empty() ? wanted.stage : name;
  if (const TensorInfo* found = file.find(expected)) return {*found, wanted.layer};
  if (name.empty() && tensors.size() == 1) return {tensors.front(), wanted.layer};
  if (name.empty() && wanted.layer)
    if (const TensorInfo* found = tensor_of_layer(file, *wanted.layer)) return {*found, {}};
  std::string names;
  for (std::size_t k = 0; k < std::min<std::size_t>(tensors.size(), 8); ++k)
    names += (k > 0 ? ", " : "") + tensors[k].name;
  if (tensors.size() > 8) names += ", …";
  const std::string advice = name.empty() && !tensors.empty()
                                 ? "; " + wanted.stage + "=FILE:" + tensors.front().name + " takes the first"
                                 : "";
  throw Error(file.place() + "expected a tensor " + expected + ", got " + (names.empty() ? "none" : names) +
              advice);
}

[[noreturn]] void refuse_shape(const TensorFile& file, const TensorInfo& tensor,
                               const std::string& expected) {
  throw Error(file.place() + tensor.name + ": expected " + expected + ", got " + shape_text(tensor.shape));
}

/// Throws core::Error for too many matrices: a matrix of one number takes far more memory than the number.
void check_matrix_count(std::size_t n_sequences, std::size_t n_heads, const std::string& place) {
  constexpr std::size_t max_matrices = attention::max_bytes / bytes_of_a_matrix;
  const auto refuse = [&](std::size_t limit, const char* item_names, std::size_t got) {
    throw Error(fmt::format("{}expected at most {} {}, got {}", place, limit, item_names, got));
  };
  if (n_sequences > attention::max_sequences) refuse(attention::max_sequences, "sequences", n_sequences);
  if (n_heads > attention::max_columns) refuse(attention::max_columns, "heads", n_heads);
  if (n_sequences * n_heads > max_matrices) refuse(max_matrices, "matrices", n_sequences * n_heads);
}

void put_embeddings(Model& model, const TensorFile& file, const TensorInfo& info,
                    std::optional<std::size_t> layer) {
  const std::vector<std::size_t> leading = layer ? std::vector{*layer} : std::vector<std::size_t>();
  const Tensor tensor = file.read(info.name, leading);
  const std::size_t n_axes = tensor.shape.size();
  if (tensor.numbers.empty()) refuse_shape(file, info, "at least one number");
  if (n_axes != 2 && n_axes != 3)
    refuse_shape(file, info, "[tokens, columns] or [sequences, tokens, columns]");
  std::vector<attention::Sequence> sequences;
  for (const arma::mat& embeddings : matrices(tensor)) {
    const std::size_t s = sequences.size();
    const bool named = s < model.sequences.size() && model.sequences[s].tokens.size() == embeddings.n_rows;
    sequences.push_back(
        {named ? model.sequences[s].tokens : attention::numbered_tokens(embeddings.n_rows), embeddings});
  }
  model.sequences = std::move(sequences);
}

}  // namespace

TensorAddress parse_tensor_address(const std::string& source) {
  const std::size_t colon = source.rfind(':');
  std::error_code ignored;  // opening the file reports any error
  if (colon == source.npos || std::filesystem::exists(source, ignored)) return {source, ""};
  return {source.substr(0, colon), source.substr(colon + 1)};
}

bool name_tokens(Model& model, const TensorStage& table) {
  if (model.sequences.size() != 1) return false;
  attention::Sequence& sequence = model.sequences.front();
  const attention::StageInfo& stage = attention::info(table.given.stage);
  const bool has_queries =
      stage.rows == attention::RowTokens::queries && table.row_labels.size() == sequence.tokens.size();
  if (has_queries) sequence.tokens = table.row_labels;
  const auto& keys = stage.columns == attention::Columns::tokens ? table.column_labels : table.row_labels;
  const bool has_keys =
      !keys.empty() && keys.size() == sequence.keys().size() &&
      (stage.columns == attention::Columns::tokens || stage.rows == attention::RowTokens::keys);
  if (has_keys && table.row_labels.empty() && keys.size() == sequence.tokens.size())
    sequence.tokens = keys;  // of self-attention
  else if (has_keys && keys != sequence.keys())
    sequence.key_tokens = keys;
  return has_queries || has_keys;
}

TensorStage stage_from_tensor(const Tensor& tensor, Stage stage, std::size_t n_heads,
                              const std::string& place) {
  const std::size_t n_axes = tensor.shape.size();
  if (n_axes < 2 || n_axes > 4)
    throw Error(
        place +
        "expected [rows, columns], [heads, rows, columns] or [sequences, heads, rows, columns], got " +
        shape_text(tensor.shape));
  if (tensor.numbers.empty())
    throw Error(place + "expected at least one number, got " + shape_text(tensor.shape));
  TensorStage read{{stage, {}}, n_axes == 4 ? tensor.shape[0] : 1};
  check_matrix_count(read.n_sequences, n_axes > 2 ? tensor.shape[n_axes - 3] : 1, place);
  if (n_axes == 2) {
    read.row_labels = tensor.row_labels, read.column_labels = tensor.column_labels;
    const arma::mat all = matrix(tensor);
    const std::size_t bands = attention::is_projected(stage) ? n_heads : 1, width = all.n_cols / bands;
    if (all.n_cols % bands != 0)
      throw Error(
          fmt::format("{}expected columns for {} heads, got {}", place, bands, shape_text(tensor.shape)));
    for (std::size_t h = 0; h < bands && width > 0; ++h)
      read.given.matrices.emplace_back(arma::mat(all.cols(h * width, (h + 1) * width - 1)));
    return read;
  }
  for (arma::mat& m : matrices(tensor)) read.given.matrices.emplace_back(std::move(m));
  return read;
}

TensorStage read_stage(const TensorFile& file, const TensorInfo& info, Stage stage,
                       std::optional<std::size_t> layer, std::size_t n_heads, const StopToken& progress) {
  const std::vector<std::size_t> leading = layer ? std::vector{*layer} : std::vector<std::size_t>();
  return stage_from_tensor(file.read(info.name, leading, progress), stage, n_heads,
                           file.place() + info.name + ": ");
}

Model with_overrides_from_files(const std::optional<Model>& model, std::span<const StageFile> tensors,
                                std::size_t n_heads) {
  std::optional<Model> result = model;
  std::vector<TensorStage> alone;
  std::size_t n_sequences = 1;
  for (const StageFile& tensor : tensors) {
    const TensorAddress address = parse_tensor_address(tensor.source);
    const StopToken progress;
    TensorFile file = open_tensors(address.file, progress, tensor.mark);
    if (tensor.names.any()) {
      const TableIndex index = find_index(file, progress);
      const TableIndex names{tensor.names.line && index.line, tensor.names.column && index.column};
      if (names.any()) file = with_index_as_names(file, names, progress);
    }
    const auto [info, layer] = select_tensor(file, address.tensor, tensor);
    if (tensor.stage == "embeddings") {
      if (!result) throw Error("embeddings: expected a session or a preset for them");
      put_embeddings(*result, file, info, layer);
      continue;
    }
    const attention::StageInfo* stage = attention::find_stage(tensor.stage);
    if (!stage || !attention::can_be_given(stage->stage))
      throw Error(tensor.stage + ": expected a stage that can be given");
    TensorStage read =
        read_stage(file, info, stage->stage, layer, result ? result->n_heads : n_heads, progress);
    const std::size_t wanted = result ? result->sequences.size() : read.n_sequences;
    if (read.n_sequences != wanted || (!result && wanted > 1 && !tensor.layer))
      refuse_shape(file, info,
                   result ? fmt::format("one layer chosen, or {} sequences", wanted) : "one layer chosen");
    n_sequences = read.n_sequences;
    if (result)
      attention::set_given_stage(*result, std::move(read.given));
    else
      alone.push_back(std::move(read));
  }
  if (!result) {
    std::vector<GivenStage> stages;
    for (const TensorStage& each : alone) stages.push_back(each.given);
    result = attention::model_of(std::move(stages), n_sequences);
    for (const TensorStage& each : alone) name_tokens(*result, each);
  }
  attention::require_within_limits(*result);
  return *std::move(result);
}

}  // namespace core::formats
