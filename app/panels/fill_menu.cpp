#include "app/panels/fill_menu.hpp"

#include <algorithm>
#include <array>

#include "app/widgets/buttons.hpp"
#include "app/widgets/fields.hpp"
#include "app/widgets/text.hpp"
#include "core/random/generator.hpp"

namespace app::panels {
namespace {

using core::random::Generator;

/// PyTorch's tensors lie row after row.
arma::mat row_by_row(const std::vector<float>& numbers, std::size_t n_rows, std::size_t n_columns) {
  arma::mat m(n_columns, n_rows);
  std::copy(numbers.begin(), numbers.end(), m.begin());
  return m.t();
}

arma::mat zeros(std::size_t r, std::size_t c, std::uint64_t) {
  return arma::mat(r, c, arma::fill::zeros);
}
arma::mat ones(std::size_t r, std::size_t c, std::uint64_t) {
  return arma::mat(r, c, arma::fill::ones);
}
arma::mat identity(std::size_t r, std::size_t c, std::uint64_t) {
  return arma::mat(r, c, arma::fill::eye);
}
arma::mat rand(std::size_t r, std::size_t c, std::uint64_t seed) {
  return row_by_row(Generator(seed).rand(r * c), r, c);
}
arma::mat randn(std::size_t r, std::size_t c, std::uint64_t seed) {
  return row_by_row(Generator(seed).normal(r * c), r, c);
}
/// A projection here is d_in × d_out, PyTorch's weight its transpose.
arma::mat linear(std::size_t r, std::size_t c, std::uint64_t seed) {
  return row_by_row(Generator(seed).linear_weight(r, c), c, r).t();
}

struct Filling {
  const char *key, *words, *help;
  arma::mat (*make)(std::size_t n_rows, std::size_t n_columns, std::uint64_t seed);
  bool drawn;  ///< takes a seed
};
constexpr std::array fillings{
    Filling{"zeros", "zeros", "0 everywhere", zeros, false},
    Filling{"ones", "ones", "1 everywhere", ones, false},
    Filling{"identity", "identity", "1 on the diagonal, else 0", identity, false},
    Filling{"rand", "rand", "torch.rand: evenly from 0 to 1", rand, true},
    Filling{"randn", "randn", "torch.randn: standard normal", randn, true},
    Filling{"linear", "Linear", "The first weights of nn.Linear of this shape", linear, true}};

void fill(const Frame& frame, core::editing::MatrixPlace place, const arma::mat& old,
          const Filling& filling) {
  const std::uint64_t seed = frame.view.fill_seed;
  frame.commands.edit(core::editing::SetBlock{place, 0, 0, filling.make(old.n_rows, old.n_cols, seed)});
}

void fill_popup(const Frame& frame, core::editing::MatrixPlace place, const arma::mat& numbers) {
  for (const Filling& filling : fillings) {
    const std::string name = std::string("edit/fill/") + filling.key;
    if (ImGui::Selectable(filling.words)) fill(frame, place, numbers, filling);
    frame.landmarks.mark_item(name);
    widgets::tooltip(filling.help);
  }
  ImGui::Separator();
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted("seed");
  ImGui::SameLine();
  const auto step = [](std::uint64_t seed, int direction) {
    return direction > 0 ? seed + 1 : seed > 0 ? seed - 1 : 0;
  };
  const float width = frame.metrics.px(64);
  if (const auto seed =
          widgets::count_field(frame, "edit/fill_seed", "seed", frame.view.fill_seed, width, step))
    frame.commands.look([s = *seed](View& view) { view.fill_seed = s; });
}

}  // namespace

void draw_fill_buttons(const Frame& frame, core::editing::MatrixPlace place, const arma::mat& numbers) {
  const std::string help =
      "torch.randn at seed " + std::to_string(frame.view.fill_seed) + "; each press takes the next seed";
  if (widgets::button(frame, "edit/random", "random", help.c_str())) {
    fill(frame, place, numbers,
         *std::find_if(fillings.begin(), fillings.end(), [](const Filling& f) { return f.make == randn; }));
    frame.commands.look([](View& view) { ++view.fill_seed; });
  }
  ImGui::SameLine();
  if (widgets::button(frame, "edit/fill", "fill", "Zeros, ones, identity, or numbers as PyTorch draws them"))
    ImGui::OpenPopup("fill");
  if (ImGui::BeginPopup("fill")) {
    fill_popup(frame, place, numbers);
    ImGui::EndPopup();
  }
}

}  // namespace app::panels
