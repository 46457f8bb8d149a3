#include "core/formats/writers/program.hpp"

#include "core/attention/stages.hpp"
#include "core/error.hpp"
#include "core/formats/writers/program_forward.hpp"
#include "core/formats/writers/program_numbers.hpp"

namespace core::formats {
namespace {

using attention::Model;

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return text;
}

std::string class_name(const Model& m) {
  return std::string(m.mask.causal ? "Causal" : "Self") + (m.n_heads > 1 ? "MultiHead" : "") + "Attention";
}

}  // namespace

std::string program_text(const Model& model, const std::string& title,
                         const std::vector<std::uint64_t>& seeds) {
  if (const auto problem = attention::check(model)) throw Error(problem->path + ": " + problem->message);
  const ProgramNumbers numbers = program_numbers(model, seeds);
  const std::string name = class_name(model);
  std::string text =
      "# " + one_line(title) + "\n# Written by attnscope " ATTNSCOPE_VERSION +
      "; needs PyTorch. Prints every stage, computed in float64.\nimport torch\nfrom torch import nn\n\n";
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
