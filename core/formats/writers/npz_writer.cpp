#include "core/formats/writers/npz_writer.hpp"

#include "core/attention/attend.hpp"
#include "core/formats/writers/export.hpp"
#include "core/formats/writers/npy.hpp"
#include "core/formats/writers/zip_writer.hpp"

namespace core::formats {
namespace {

using attention::Linear;
using attention::Model;
using attention::StageInfo;
using attention::Trace;

std::string stage_array(const StageInfo& stage, const std::vector<Trace>& traces, std::size_t n_heads) {
  const std::size_t matrices = stage.per_head ? n_heads : 1;
  const arma::mat& first = stage.matrix(traces.front(), 0);
  std::vector<std::size_t> shape{first.n_rows, first.n_cols};
  if (stage.per_head) shape.insert(shape.begin(), n_heads);
  if (traces.size() > 1) shape.insert(shape.begin(), traces.size());
  std::string bytes = npy_header(shape);
  bytes.reserve(bytes.size() + traces.size() * matrices * first.n_elem * sizeof(double));
  for (const Trace& trace : traces)
    for (std::size_t head = 0; head < matrices; ++head) append_rows(bytes, stage.matrix(trace, head));
  return bytes;
}

void add_linear(ZipWriter& zip, const std::string& name, const Linear& linear) {
  const auto& [weight, bias] = linear;
  zip.add(name + ".weight.npy", npy_bytes(weight));
  if (!bias) return;
  std::string bytes = npy_header({(*bias)->n_cols});
  append_rows(bytes, *bias);
  zip.add(name + ".bias.npy", bytes);
}

void add_tokens(ZipWriter& zip, const std::string& name, const Model& model,
                std::vector<std::string> attention::Sequence::*part) {
  std::vector<std::string> all;
  for (const attention::Sequence& sequence : model.sequences)
    all.insert(all.end(), (sequence.*part).begin(), (sequence.*part).end());
  if (all.empty()) return;
  std::vector<std::size_t> shape{all.size() / model.sequences.size()};
  if (model.sequences.size() > 1) shape.insert(shape.begin(), model.sequences.size());
  zip.add(name + ".npy", npy_words(all, shape));
}

}  // namespace

std::string npz_bytes(const Model& model, const std::vector<std::string>& stages, const Token* progress) {
  const std::vector<const StageInfo*> wanted = wanted_stages(model, stages);
  std::vector<Trace> traces;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) traces.push_back(attention::attend(model, s));
  ZipWriter zip;
  add_tokens(zip, "tokens", model, &attention::Sequence::tokens);
  add_tokens(zip, "key_tokens", model, &attention::Sequence::key_tokens);
  for (const StageInfo* stage : wanted) {
    const std::string bytes = stage_array(*stage, traces, model.n_heads);
    if (progress) progress->add(bytes.size());
    zip.add(std::string(stage->name) + ".npy", bytes);
  }
  if (stages.empty() && model.projections) {
    const auto& [query, key, value, output] = *model.projections;
    add_linear(zip, "projections.query", query);
    add_linear(zip, "projections.key", key);
    add_linear(zip, "projections.value", value);
    if (output) add_linear(zip, "projections.output", *output);
  }
  return zip.finished();
}

}  // namespace core::formats
