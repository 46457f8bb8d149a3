#include "tests/support/json_fixture.hpp"

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace support {
namespace {

using nlohmann::json;
using Sizes = std::vector<std::size_t>;

json parsed(const std::string& name) {
  const std::string path = std::string(FIXTURES) + "/" + name + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return json::parse(file);
}

double number(const json& j) {
  if (!j.is_string()) return j.get<double>();
  if (j.get<std::string>() != "-inf") throw std::runtime_error("expected a number or -inf, got " + j.dump());
  return -std::numeric_limits<double>::infinity();
}

std::size_t product(const Sizes& shape) {
  std::size_t n = 1;
  for (const std::size_t extent : shape) n *= extent;
  return n;
}

Tensor tensor(const json& j) {
  Tensor t;
  t.shape = j.at("shape").get<Sizes>();
  for (const json& value : j.at("data")) t.data.push_back(number(value));
  if (j.contains("rel"))
    t.relative = j.at("rel");
  else
    t.absolute = j.contains("abs") ? j.at("abs") : j.at("tol");
  if (t.data.size() != product(t.shape))
    throw std::runtime_error("a tensor has not as many numbers as its shape says");
  return t;
}

std::map<std::string, Tensor> tensors(const json& j, const char* key) {
  std::map<std::string, Tensor> all;
  if (j.contains(key))
    for (const auto& [name, value] : j.at(key).items()) all[name] = tensor(value);
  return all;
}

Sample sample(const json& j) {
  Sample s;
  s.shape = j.at("shape").get<Sizes>();
  s.first = j.at("first").get<std::vector<double>>();
  s.last = j.at("last").get<std::vector<double>>();
  s.sum = j.at("sum");
  s.sum_of_squares = j.at("sum_sq");
  s.tolerance = j.value("tol", 0.0);
  s.sum_tolerance = j.value("sum_tol", 0.0);
  return s;
}

Config config(const json& j) {
  Config c;
  c.n_sequences = j.at("B");
  c.n_tokens = j.at("T");
  c.d_in = j.at("d_in");
  c.d_out = j.at("d_out");
  c.n_heads = j.at("heads");
  c.projections = j.at("projections");
  c.qkv_bias = j.at("qkv_bias");
  c.causal = j.at("causal");
  c.output_projection = j.at("out_proj");
  c.output_bias = j.at("out_bias");
  c.scale = j.at("scale");
  c.dropout_rate = j.at("dropout_p");
  c.mask_mode = j.at("mask_mode");
  c.merge = j.at("merge");
  return c;
}

Draws draws(const json& j) {
  Draws d;
  d.name = j.at("name");
  d.op = j.at("op");
  d.shape = j.at("shape").get<Sizes>();
  d.n_draws = j.at("draws");
  if (j.contains("bits")) {
    d.kept_bits = j.at("bits");
    d.n_kept = j.at("kept");
    d.checksum = j.at("checksum");
    d.kept_value = j.at("kept_value");
  } else if (j.contains("data")) {
    d.data = j.at("data").get<std::vector<double>>();
  } else {
    d.sample = sample(j);
  }
  return d;
}

std::vector<Draws> all_draws(const json& list) {
  std::vector<Draws> all;
  for (const json& one : list) all.push_back(draws(one));
  return all;
}

}  // namespace

arma::mat Tensor::matrix(const Sizes& leading) const {
  const std::size_t columns = shape.back(), rows = shape.size() > 1 ? shape[shape.size() - 2] : 1;
  if (leading.size() + 2 != std::max<std::size_t>(shape.size(), 2))
    throw std::runtime_error("a tensor has not as many dimensions as expected");
  std::size_t place = 0;
  for (std::size_t k = 0; k < leading.size(); ++k) {
    if (leading[k] >= shape[k]) throw std::runtime_error("a tensor is smaller than expected");
    place = place * shape[k] + leading[k];
  }
  arma::mat m(rows, columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) m(i, j) = data[(place * rows + i) * columns + j];
  return m;
}

Fixture read_fixture(const std::string& id) {
  const json j = parsed(id);
  Fixture f;
  f.schema = j.at("schema");
  if (f.schema != "tensor-demo-1") f.config = config(j.at("config"));
  if (f.schema == "attention-sampled-1") {
    for (const auto& [name, value] : j.at("samples").items()) f.samples[name] = sample(value);
    return f;
  }
  f.tensors = tensors(j, "tensors");
  f.printed = tensors(j, "printed");
  return f;
}

Walkthrough read_walkthrough(const std::string& id) {
  const json j = parsed(id).at("walkthrough");
  return {j.at("query_index"),     j.at("dot_with_x0"),
          tensor(j.at("scores")),  tensor(j.at("weights")),
          tensor(j.at("context")), j.at("printed_scores").get<std::vector<double>>()};
}

TextDemo read_text_demo(const std::string& id) {
  const json j = parsed(id);
  return {j.at("keys"), j.at("query"), j.at("weights")};
}

GeneratorFile read_generator_file(const std::string& name) {
  const json j = parsed("rng/" + name);
  GeneratorFile f;
  f.seed = j.at("seed");
  f.first_outputs = j.at("first_u32").get<std::vector<std::uint32_t>>();
  f.ops = all_draws(j.at("ops"));
  for (const auto& [sequence, list] : j.at("sequences").items()) f.sequences[sequence] = all_draws(list);
  return f;
}

std::map<std::string, std::string> fixture_schemas() {
  std::map<std::string, std::string> schemas;
  for (const auto& entry : std::filesystem::directory_iterator(FIXTURES))
    if (entry.path().extension() == ".json") {
      std::string& schema = schemas[entry.path().stem().string()];
      std::ifstream file(entry.path());
      // It is the first value. Every process of the tests asks for it, and most read none of these files.
      for (int k = 0; k < 4; ++k) std::getline(file, schema, '"');
    }
  return schemas;
}

}  // namespace support
