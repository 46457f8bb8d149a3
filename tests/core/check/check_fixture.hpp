#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/check/check.hpp"
#include "core/check/match.hpp"
#include "core/files/session.hpp"
#include "core/files/tensor_formats.hpp"

/// Fixtures of tests/fixtures/check: models, and tensors that NumPy computed with mistakes.
namespace support {

using core::formats::TensorFile;

/// Returns the causes that a case names: a and b for "a~how+b".
inline std::set<std::string> causes_of(const std::string& name) {
  std::set<std::string> causes;
  for (std::size_t begin = 0, end = 0; end != name.npos; begin = end + 1) {
    end = name.find('+', begin);
    const std::string one = name.substr(begin, end == name.npos ? end : end - begin);
    causes.insert(one.substr(0, one.find('~')));
  }
  return causes;
}

/// Returns whether one of the explanations has exactly these causes.
inline bool names_causes(const core::check::Report& report, const std::set<std::string>& causes) {
  return std::ranges::any_of(report.explanations, [&](const core::check::Explanation& e) {
    return std::set(e.causes.begin(), e.causes.end()) == causes;
  });
}

inline core::formats::Tensor& named(std::vector<core::formats::Tensor>& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &core::formats::Tensor::name);
}

/// Returns a tensor file that lives in memory.
inline TensorFile tensors_in_memory(std::vector<core::formats::Tensor> tensors, const char* format = "npz") {
  std::vector<core::formats::TensorEntry> entries;
  for (core::formats::Tensor& tensor : tensors) {
    const auto shared = std::make_shared<const core::formats::Tensor>(std::move(tensor));
    entries.push_back({*shared, [shared](std::span<const std::size_t> leading, const core::StopToken&) {
                         return core::formats::slice_tensor(*shared, leading);
                       }});
  }
  return {"memory", format, std::move(entries)};
}

/// Returns a report's sentences about ignored tensors.
inline std::vector<std::string> words_of(const std::vector<core::check::IgnoredTensors>& left_out) {
  std::vector<std::string> all;
  for (const auto& each : left_out) all.push_back(each.words());
  return all;
}

/// A model and its cases.
class CheckFixture {
 public:
  explicit CheckFixture(const std::string& name)
      : model(core::formats::load_session(path(name + ".json")).model),
        file_(core::formats::open_tensors(path(name + ".npz"))) {}

  core::attention::Model model;

  std::set<std::string> cases() const {
    std::set<std::string> names;
    for (const auto& info : file_.tensors()) names.insert(info.name.substr(0, info.name.find('/')));
    return names;
  }

  /// Reads the tensors of a case: all, or only the given stages.
  std::vector<core::formats::Tensor> tensors(const std::string& name,
                                             const std::set<std::string>& stages = {}) const {
    std::vector<core::formats::Tensor> found;
    for (const auto& info : file_.tensors()) {
      const std::size_t slash = info.name.find('/');
      if (info.name.substr(0, slash) != name) continue;
      if (!stages.empty() && !stages.contains(info.name.substr(slash + 1))) continue;
      found.push_back(file_.read(info.name));
      found.back().name = info.name.substr(slash + 1);
    }
    return found;
  }

 private:
  static std::string path(const std::string& file) { return std::string(FIXTURES) + "/check/" + file; }
  TensorFile file_;
};

/// Fixture of tests with one model.
struct CheckOfOneModel : testing::Test {
  explicit CheckOfOneModel(const char* name) : fixture(name) {}
  CheckFixture fixture;
  const core::attention::Model& model = fixture.model;

  core::formats::Tensor tensor(const std::string& of, const std::string& stage,
                               const std::string& name) const {
    core::formats::Tensor found = fixture.tensors(of, {stage}).at(0);
    found.name = name;
    return found;
  }
};

/// Checks tensors against a model with the default tolerance.
inline core::check::Report checked(const core::attention::Model& model,
                                   std::vector<core::formats::Tensor> tensors) {
  return core::check::check(model, core::check::match(model, tensors_in_memory(std::move(tensors)), {}), {});
}

}  // namespace support
