#include "core/out/program.hpp"

#include "core/base/error.hpp"
#include "core/graph/python.hpp"
#include "core/graph/stages.hpp"
#include "core/out/program_forward.hpp"
#include "core/out/program_numbers.hpp"

namespace core::formats {
namespace {

using attention::Model;

std::string class_name(const Model& m) {
  return std::string(m.mask.causal ? "Causal" : "Self") + (m.n_heads > 1 ? "MultiHead" : "") + "Attention";
}

}  // namespace

std::string program_text(const Model& model, const std::string& title,
                         const std::vector<std::uint64_t>& seeds) {
  attention::require(model);
  if (!(model.departures == attention::Departures()) || !model.dropout.rescale)
    throw Error("departures: a program is written of attention as in the paper; mend the mistakes first");
  if (!model.given.empty() || !model.heads_off.empty())
    throw Error(
        "program: expected a model that computes every stage, got one with given stages, typed cells or heads that are off");
  const ProgramNumbers numbers = program_numbers(model, seeds);
  const std::string name = class_name(model);
  std::string text =
      // Python looks for a declaration in the first two lines, whoever wrote them.
      "# -*- coding: utf-8 -*-\n# Written by attnscope " ATTNSCOPE_VERSION
      "; needs PyTorch. Prints every stage, computed in float64.\n" +
      python::string(title) + "\nimport torch\nfrom torch import nn\n\n";
  text += numbers.definitions.substr(numbers.definitions.find_first_not_of('\n'));
  text += "\n\nclass " + name + "(nn.Module):\n";
  text += program_forward(model);
  text += "\n\nattention = " + name + "(" + numbers.layers + ").double()\nwith torch.no_grad():\n";
  text += "    stages = attention(x.double())\n\n";
  text += "torch.set_printoptions(precision=8, threshold=10**9, linewidth=120)\n";
  text +=
      "for name, numbers in stages.items():\n    print(f\"{name} {tuple(numbers.shape)}\\n{numbers}\\n\")\n";
  return text;
}

}  // namespace core::formats
