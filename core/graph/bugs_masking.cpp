#include <array>
#include <functional>

#include "core/base/text.hpp"
#include "core/graph/bugs.hpp"

/// Bugs of how masked positions are excluded, and masks of no rule.
namespace core::bugs {
namespace {

using graph::digits;
using graph::OperationInputs;
using std::to_string;

/// Lets the weights be what the softmax gives, if they are masked after it.
void unmask_weights(Editing& e) {
  if (!e.find(Stage::unmasked_weights)) return;
  const graph::Operation* masking = e.get<graph::Multiply>(Stage::weights);
  if (!masking) masking = e.get<graph::DivideByRowSum>(Stage::weights);
  if (masking)
    e.graph.replace(masking, graph::StageFunction({{Stage::unmasked_weights}},
                                                  [](const OperationInputs& in) { return in[0]; }));
  e.graph.sort();
}
/// Masks the scores before the softmax, by a function of a score and whether it is unmasked.
void mask_scores(Editing& e, std::function<double(double score, bool is_unmasked)> masked) {
  const graph::Node* own = e.find(Stage::masked_scores);
  if (!own) return;
  const graph::Input scores{own->operation->inputs[0].source};
  unmask_weights(e);
  // Rows are then empty only where scores are −∞.
  e.change<graph::ZeroEmptyRows>(Stage::weights, [](graph::ZeroEmptyRows& rows) { rows.inputs.resize(2); });
  e.compute(Stage::masked_scores, {scores, {Stage::mask}},
            [masked = std::move(masked)](const OperationInputs& in) {
              arma::mat y = in[0];
              const arma::mat& unmasked = in[1];
              for (std::size_t k = 0; k < y.n_elem; ++k) y[k] = masked(y[k], unmasked[k] != 0);
              return y;
            });
}
/// Masks what the softmax gives.
void mask_weights(Editing& e, bool renormalizes) {
  e.leave_out(Stage::masked_scores);
  unmask_weights(e);
  const auto softmax = std::ranges::find_if(e.graph.nodes, [](const graph::Node& node) {
    return dynamic_cast<const graph::Softmax*>(node.operation.get());
  });
  if (softmax == e.graph.nodes.end()) return;
  const auto masked = [renormalizes](const OperationInputs& in) {
    arma::mat w = in[0] % in[1];
    if (renormalizes) w.each_col() /= arma::vec(arma::sum(w, 1));
    return w;
  };
  e.wrap(softmax->stage, masked, {{Stage::mask, "i:"}}, "i:");
}
void fill_masked_scores(Editing& e, double fill) {
  mask_scores(e, [fill](double score, bool is_unmasked) { return is_unmasked ? score : fill; });
}

struct MaskingMethod {
  const char* form;
  const char* words;
  void (*edit)(Editing&);
  attention::MaskMethod own;  ///< of models that do so; see has_own
  bool has_own = true;
};
using enum attention::MaskMethod;
constexpr std::array masking_methods{
    MaskingMethod{
        "times",
        "the scores are multiplied by the mask (masked ones become 0, or a tiny number such as −1e-9, "
        "instead of −∞)",
        [](Editing& e) {
          mask_scores(e, [](double score, bool is_unmasked) { return is_unmasked ? score : score * 0; });
        },
        negative_infinity, false},
    MaskingMethod{"plus", "the mask is added as 0 and 1 (a boolean mask taken as numbers)",
                  [](Editing& e) {
                    mask_scores(e, [](double score, bool is_unmasked) { return score + is_unmasked; });
                  },
                  negative_infinity, false},
    MaskingMethod{"renormalize", "masked weights are set to zero after the softmax and the rest renormalized",
                  [](Editing& e) { mask_weights(e, true); }, renormalize},
    MaskingMethod{"zero", "masked weights are set to zero after the softmax and not renormalized",
                  [](Editing& e) { mask_weights(e, false); }, zero_after_softmax},
    MaskingMethod{"-inf", "masked scores become −∞ before the softmax",
                  [](Editing& e) { fill_masked_scores(e, -graph::infinity); }, negative_infinity},
};

/// Whether anything is masked.
bool masks_keys(const BugContext& c) {
  for (std::size_t s = 0; s < c.model().sequences.size(); ++s)
    for (std::size_t h = 0; h < c.stages.n_matrices(Stage::mask); ++h)
      if (c.stages.matrix(Stage::mask, s, h)->min() == 0) return true;
  return false;
}
void try_methods(const BugContext& c, BugCases& to) {
  if (!c.reaches(Stage::masked_scores)) return;
  const bool is_masked = masks_keys(c);
  for (const MaskingMethod& method : masking_methods) {
    const std::string_view form = method.form;
    const bool is_own = method.has_own && method.own == c.model().mask.method;
    const bool is_unseen =
        form == "renormalize" && c.model().additions.sink && !c.observed(Stage::masked_scores);
    if (!is_own && !is_unseen && (is_masked || form == "plus")) to.add({}, method.form);
  }
}

/// Form "value": the number replaces masked scores; "plus value": it is added to them.
void set_masked_value(Editing& e, const BugCase& c, ProjectionName) {
  const double value = c.numbers[0];
  if (c.form == "value") return fill_masked_scores(e, value);
  mask_scores(e, [value](double score, bool is_unmasked) { return is_unmasked ? score : score + value; });
}
std::string masked_value_words(const Editing& before, const BugCase& c) {
  const std::string value = digits(c.numbers[0], before.words.n_digits());
  return c.form == "value" ? "masked scores become " + value + " instead of −∞"
                           : value + " is added to masked scores instead of −∞";
}
void try_masked_values(const BugContext& c, BugCases& to) {
  if (!c.reaches(Stage::masked_scores) || !masks_keys(c)) return;
  for (const char* form : {"value", "plus value"})
    for (const double fill : {-10.0, -100.0, -1000.0, 1.0, 100.0, -5.0, -50.0, -1e4, -1e9, -1.0})
      if (form == std::string_view("value") || fill != -1) to.add({fill}, form);
}
void fit_masked_values(const BugContext& c, BugCases& to) {
  if (!c.reaches(Stage::masked_scores) || !masks_keys(c)) return;
  for (const char* form : {"value", "plus value"})
    for (const double start : {-2.0, 0.5, -8.0}) to.fit({start}, form);
}

/// Reads the mask off, for when no rule gives it: matrices of 0 and 1.
void read_off_mask(const BugContext& c, BugCases& to) {
  const ObservedMask observed = observed_mask(c);
  if (!observed.matrices || c.is_large || !c.reaches(Stage::mask)) return;
  const std::size_t n_heads = c.model().n_heads;
  std::vector<SharedMatrix> unmasked;
  bool differs = false;
  for (std::size_t k = 0; k < observed.matrices->size(); ++k) {
    const arma::mat& own =
        c.stages.matrix(Stage::mask, k / n_heads, c.stages.n_matrices(Stage::mask) == 1 ? 0 : k % n_heads);
    arma::mat cells(arma::size(own));
    for (std::size_t key = 0; key < cells.n_cols; ++key)
      for (std::size_t query = 0; query < cells.n_rows; ++query) {
        cells(query, key) = !observed.is_masked(k, query, key);
        differs = differs || cells(query, key) != own(query, key);
      }
    unmasked.emplace_back(std::move(cells));
  }
  if (!differs) return;
  to.add();
  to.all.back().observed = std::make_shared<const std::vector<SharedMatrix>>(std::move(unmasked));
}
void set_cells(Editing& e, const BugCase& c, ProjectionName) {
  e.compute(Stage::mask, {}, [cells = c.observed](const OperationInputs& in) {
    return in.selected((*cells)[in.sequence * in.model.n_heads + in.head]);
  });
  mask_by_head(e);
}
std::string cells_words(const Editing& before, const BugCase& c) {
  using Cell = std::pair<std::size_t, std::size_t>;
  std::vector<Cell> more, less;
  graph::LazyStages stages(before.graph, before.model());
  const std::size_t n_heads = before.model().n_heads;
  for (std::size_t k = 0; k < c.observed->size(); ++k) {
    const arma::mat &own = stages.matrix(Stage::mask, k / n_heads,
                                         stages.n_matrices(Stage::mask) == 1 ? 0 : k % n_heads),
                    &cells = (*c.observed)[k];
    for (std::size_t query = 0; query < own.n_rows; ++query)
      for (std::size_t key = 0; key < own.n_cols; ++key) {
        std::vector<Cell>& list = own(query, key) != 0 ? less : more;
        if (own(query, key) != cells(query, key) && std::ranges::find(list, Cell(query, key)) == list.end())
          list.emplace_back(query, key);
      }
  }
  const auto some = [](const std::vector<Cell>& list) {
    const auto text_of = [](const Cell& at) {
      return "(" + to_string(at.first) + ", " + to_string(at.second) + ")";
    };
    return list.size() <= 6 ? text::joined(list, ", ", text_of)
                            : to_string(list.size()) + " cells, the first " + text_of(list[0]);
  };
  std::string words = "the mask differs by no rule known here";
  if (!more.empty()) words += "; attended to though masked: " + some(more);
  if (!less.empty()) words += "; masked though attended to: " + some(less);
  return words;
}

const std::array masking_rows{
    Bug{.name = "mask_method",
        .edit = [](Editing& e, const BugCase& c,
                   ProjectionName) { of_form(masking_methods, c.form).edit(e); },
        .words = form_words<masking_methods>,
        .cases = try_methods},
    Bug{.name = "mask_value",
        .edit = set_masked_value,
        .words = masked_value_words,
        .cases = try_masked_values,
        .rank = 1},
    Bug{.name = "mask_value_fitted",
        .edit = set_masked_value,
        .words = masked_value_words,
        .cases = fit_masked_values,
        .rank = 2},
    Bug{.name = "mask_cells",
        .edit = set_cells,
        .words = cells_words,
        .cases = read_off_mask,
        .rank = 4,
        .is_last = true},
};

}  // namespace

ObservedMask observed_mask(const BugContext& c) {
  const Model& m = c.model();
  for (const Stage stage : {Stage::masked_scores, Stage::weights}) {
    const auto* given = c.observed(stage);
    if (given && given->size() == m.sequences.size() * m.n_heads && (*given)[0].n_rows() == m.n_tokens() &&
        (*given)[0].n_cols() == m.n_keys())
      return {given, stage == Stage::weights ? 0 : -graph::infinity};
  }
  return {};
}

void mask_by_head(Editing& e) {
  e.graph.find(Stage::mask)->heads = graph::NodeHeads::per_head;
}

std::span<const Bug> masking_bugs() {
  return masking_rows;
}

}  // namespace core::bugs
