#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::Model;

Model without_window() {
  Model m = preset("modern-window");
  m.mask.window = {};
  return m;
}

/// Keys that the last query sees.
std::size_t seen_by_last(const attention::Trace& trace) {
  return static_cast<std::size_t>(arma::accu(trace.mask.row(trace.mask.n_rows() - 1)));
}

/// What the weights of the last row of a head sum to; NaN where it is no more.
double last_sum(const attention::Trace& trace, std::size_t head) {
  if (head >= trace.heads.size()) return arma::datum::nan;
  const auto& all = trace.heads[head].weights;
  return arma::accu(all.row(all.n_rows() - 1));
}

constexpr Step window_table[] = {
    {"A window",
     "A query that sees every key before it costs more with every token. With a window it sees the last few "
     "alone; what lies further back reaches it through the layers between.",
     {"strip/mask", "strip/weights", "model/mask_more"},
     {"mask", "causal"},
     "set the window to 3, 0 (MODEL, mask, more…).",
     ModelTask{without_window,
               [](const Moment& m) {
                 return m.model.mask.window != m.start.mask.window &&
                        seen_by_last(m.trace) < seen_by_last(m.before);
               },
               [](const Moment& m) {
                 return "The last query sees " + std::to_string(seen_by_last(m.trace)) + " keys instead of " +
                        std::to_string(seen_by_last(m.before)) + ".";
               }},
     Exhibit::none,
     attention::Stage::weights},
    {"Off by one",
     "Is the query's own key among the three, or beside them? FlashAttention counts keys to the left of it, "
     "some configurations all keys of the window. The difference is one key in each row.",
     {"strip/mask", "strip/weights"},
     {"mask"},
     "set the window to 2, 0 (MODEL, mask, more…).",
     ModelTask{[] { return preset("modern-window"); },
               [](const Moment& m) { return seen_by_last(m.trace) + 1 == seen_by_last(m.before); },
               [](const Moment& m) {
                 return "The last query sees " + std::to_string(seen_by_last(m.trace)) +
                        " keys, and the weights of the first head moved by up to " +
                        number(moved_weights(m)) + ".";
               }}},
    {"A sink",
     "Weights of a softmax sum to 1 even where no key is worth a look. A sink is one more number in the sum, "
     "which belongs to no key: what it takes, no value gets.",
     {"strip/weights", "edit/numbers"},
     {"sink", "softmax"},
     "change the second number of the sink to 4.",
     ModelTask{[] { return preset("modern-sink"); },
               [](const Moment& m) { return last_sum(m.trace, 1) < last_sum(m.before, 1); },
               [](const Moment& m) {
                 return "The weights of the last row of head 1 sum to " + number(last_sum(m.trace, 1)) +
                        " instead of " + number(last_sum(m.before, 1)) + "; the rest went to the sink.";
               }}},
};

}  // namespace

std::span<const Step> window_steps() {
  return window_table;
}

}  // namespace core::lessons
