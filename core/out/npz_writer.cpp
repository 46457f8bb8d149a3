#include "core/out/npz_writer.hpp"

#include <array>

#include "core/graph/attend.hpp"
#include "core/graph/matrices.hpp"
#include "core/out/export.hpp"
#include "core/out/npy.hpp"
#include "core/out/zip_writer.hpp"

namespace core::formats {
namespace {

using attention::Linear;
using attention::Model;
using attention::StageInfo;
using attention::Trace;

std::string stage_array(const StageInfo& stage, const std::vector<Trace>& traces, const Model& model) {
  const std::size_t matrices = n_matrices(model, stage.stage);  // heads share keys and values of a group
  const arma::mat& first = stage.matrix(traces.front(), 0);
  std::vector<std::size_t> shape{first.n_rows, first.n_cols};
  if (stage.per_head) shape.insert(shape.begin(), matrices);
  if (traces.size() > 1) shape.insert(shape.begin(), traces.size());
  std::string bytes = npy_header(shape);
  bytes.reserve(bytes.size() + traces.size() * matrices * first.n_elem * sizeof(double));
  for (const Trace& trace : traces)
    for (std::size_t k = 0; k < matrices; ++k)
      append_rows(bytes, stage.matrix(trace, head_of_matrix(model, stage.stage, k)));
  return bytes;
}

using Files = std::vector<ZipContent>;

void add_linear(Files& files, const std::string& name, const Linear& linear) {
  files.push_back({name + ".weight.npy", [&linear] { return npy_bytes(linear.weight); }});
  if (!linear.bias) return;
  files.push_back({name + ".bias.npy", [&bias = *linear.bias] {
                     std::string bytes = npy_header({bias->n_cols});
                     append_rows(bytes, bias);
                     return bytes;
                   }});
}

void add_tokens(Files& files, const std::string& name, const Model& model,
                std::vector<std::string> attention::Sequence::*part) {
  std::vector<std::string> all;
  for (const attention::Sequence& sequence : model.sequences)
    all.insert(all.end(), (sequence.*part).begin(), (sequence.*part).end());
  if (all.empty()) return;
  std::vector<std::size_t> shape{all.size() / model.sequences.size()};
  if (model.sequences.size() > 1) shape.insert(shape.begin(), model.sequences.size());
  files.push_back({name + ".npy", [words = npy_words(all, shape)] { return words; }});
}

}  // namespace

std::string npz_bytes(const Model& model, const std::vector<std::string>& stages, const Token* progress) {
  const std::vector<const StageInfo*> wanted = wanted_stages(model, stages);
  std::vector<Trace> traces;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) traces.push_back(attention::attend(model, s));
  Files files;
  add_tokens(files, "tokens", model, &attention::Sequence::tokens);
  add_tokens(files, "key_tokens", model, &attention::Sequence::key_tokens);
  for (const StageInfo* stage : wanted)
    files.push_back({std::string(stage->name) + ".npy", [&, stage] {
                       std::string bytes = stage_array(*stage, traces, model);
                       if (progress) progress->add(bytes.size());
                       return bytes;
                     }});
  if (stages.empty() && model.projections) {
    const auto& [query, key, value, output] = *model.projections;
    add_linear(files, "projections.query", query);
    add_linear(files, "projections.key", key);
    add_linear(files, "projections.value", value);
    if (output) add_linear(files, "projections.output", *output);
  }
  using attention::MatrixName;
  constexpr std::array added{
      std::pair{MatrixName::query_norm, "query_norm"},       std::pair{MatrixName::key_norm, "key_norm"},
      std::pair{MatrixName::frequencies, "frequencies"},     std::pair{MatrixName::slopes, "slopes"},
      std::pair{MatrixName::relative_bias, "relative_bias"}, std::pair{MatrixName::sink, "sink"}};
  for (const auto& [name, word] : added)  // learned as the projections are
    if (const auto* numbers = stages.empty() ? find_matrix(model, {name, 0}) : nullptr)
      files.push_back(
          {std::string("projections.") + word + ".npy", [numbers] { return npy_bytes(*numbers); }});
  return zip_bytes(files);
}

}  // namespace core::formats
