#include "app/ui/panels/heads/head_figures.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/ui/widgets/number_text.hpp"

namespace app::panels {

using core::attention::HeadFigure;

const std::vector<core::attention::HeadFacts>& head_facts(const Frame& frame) {
  return frame.work.statistics.heads(frame.shown.trace, frame.shown.version,
                                     frame.shown.model.sequences[frame.shown.look.sequence].tokens);
}

std::string figure_text(HeadFigure figure, const std::optional<double>& value, std::size_t n_tokens) {
  if (!value) return "–";
  if (figure == HeadFigure::entropy) return widgets::fixed(*value, 2) + " bit";
  const int decimals =
      1 + static_cast<int>(std::ceil(std::log10(std::max<double>(10, static_cast<double>(n_tokens)))));
  return widgets::share_text(*value, decimals);
}

double figure_top(const Frame& frame, HeadFigure figure) {
  return figure == HeadFigure::entropy
             ? std::log2(std::max<double>(2, static_cast<double>(frame.shown.model.n_tokens())))
             : 1;
}

std::string figure_words(const Frame& frame, HeadFigure figure) {
  const double top = figure_top(frame, figure);
  if (figure == HeadFigure::entropy)
    return "mean entropy of the rows of weights, 0 to " +
           widgets::fixed(top, top == std::floor(top) ? 0 : 2) + " bit";
  const std::string title = core::attention::info(figure).title;
  return "mean weight on " +
         (figure == HeadFigure::previous ? "the token before"
          : figure == HeadFigure::first  ? "the " + title
                                         : title) +
         ", 0 to 1";
}

std::vector<std::size_t> sorted_heads(const Frame& frame) {
  if (frame.shown.look.heads_order)
    return core::attention::heads_by(*frame.shown.look.heads_order, head_facts(frame));
  std::vector<std::size_t> order(frame.shown.trace.heads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

}  // namespace app::panels
