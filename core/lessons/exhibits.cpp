#include "core/lessons/exhibits.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>

#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "core/lessons/expression.hpp"

namespace core::lessons {
namespace {

using attention::CombineRule;
using attention::MaskMethod;
using attention::Model;
using attention::ScaleRule;

using Labels = std::vector<std::string>;

const Labels& tokens(const StepState& m) {
  return m.model.sequences.front().tokens;
}

const Labels& keys(const StepState& m) {
  return m.model.sequences.front().keys();
}

Labels numbered(const std::string& word, std::size_t n) {
  Labels names;
  for (std::size_t k = 0; k < n; ++k) names.push_back(word + std::to_string(k));
  return names;
}

arma::mat weights_of(const Model& model) {
  return attention::attend(model).at(attention::Stage::weights, 0);
}

Model with_method(Model model, MaskMethod method) {
  model.mask.method = method;
  return model;
}

Model with_scale(Model model, ScaleRule rule) {
  model.scale.rule = rule;
  return model;
}

Model with_combine_rule(Model model, CombineRule rule) {
  model.merge = rule;
  return model;
}

std::vector<ExhibitPicture> library(const StepState& m) {
  constexpr std::array relevance{"high", "high", "medium", "none", "low"};
  const std::size_t question = m.model.n_tokens() - 1,
                    books = std::min({relevance.size(), question, m.model.n_keys()});
  ExhibitPicture p{.title = tokens(m)[question], .shading = ExhibitShading::bars};
  p.numbers.set_size(books, 1);
  for (std::size_t book = 0; book < books; ++book) {
    p.rows.push_back(keys(m)[book]);
    p.ends.push_back(relevance[book]);
    p.numbers(book, 0) = m.trace.at(attention::Stage::weights, 0)(question, book);
  }
  p.note = "together " + number(arma::accu(p.numbers));
  return {p};
}

std::vector<ExhibitPicture> single_query(const StepState& m) {
  constexpr std::size_t query = 1;
  const arma::mat &q = m.trace.at(attention::Stage::queries, 0), &k = m.trace.at(attention::Stage::keys, 0);
  if (q.n_rows <= query) return {};
  const arma::mat products = k.each_row() % q.row(query);
  ExhibitPicture terms{.title = tokens(m)[query] + " times each, number by number",
                       .rows = keys(m),
                       .columns = numbered("", k.n_cols),
                       .numbers = products,
                       .shading = ExhibitShading::signed_values};
  ExhibitPicture sums{.title = "added up",
                      .note = "row 1 of the scores",
                      .rows = keys(m),
                      .columns = {tokens(m)[query]},
                      .numbers = arma::sum(products, 1),
                      .shading = ExhibitShading::signed_values};
  return {terms, sums};
}

std::vector<ExhibitPicture> double_loop(const StepState& m) {
  const arma::mat &q = m.trace.at(attention::Stage::queries, 0), &k = m.trace.at(attention::Stage::keys, 0);
  arma::mat loops(q.n_rows, k.n_rows, arma::fill::zeros);
  for (std::size_t i = 0; i < q.n_rows; ++i)
    for (std::size_t j = 0; j < k.n_rows; ++j)
      for (std::size_t c = 0; c < q.n_cols; ++c) loops(i, j) += q(i, c) * k(j, c);
  const arma::mat product = q * k.t();
  const std::string difference_note = "largest difference " + number(largest_difference(loops, product));
  return {{"two loops", "", tokens(m), keys(m), {}, loops, ExhibitShading::signed_values},
          {"one product", difference_note, tokens(m), keys(m), {}, product, ExhibitShading::signed_values}};
}

std::vector<ExhibitPicture> next_token(const StepState& m) {
  ExhibitPicture p{.title = "what may be read",
                   .rows = tokens(m),
                   .columns = keys(m),
                   .numbers = m.trace.at(attention::Stage::mask),
                   .shading = ExhibitShading::mask};
  for (std::size_t i = 1; i < tokens(m).size(); ++i) p.ends.push_back("→ " + tokens(m)[i]);
  p.note = fmt::format("{}{} to learn from", p.ends.size(), p.ends.size() == 1 ? " pair" : " pairs");
  p.ends.push_back("→ ?");
  return {p};
}

std::vector<ExhibitPicture> moved_rows(const StepState& m) {
  const arma::vec joined = rows_moved_by_last_token(with_combine_rule(m.model, CombineRule::concatenate));
  const arma::vec reshaped =
      rows_moved_by_last_token(with_combine_rule(m.model, CombineRule::reshape_without_transpose));
  return {{.title = "how far each row moves with the last token",
           .note = "only the last row may move",
           .rows = tokens(m),
           .columns = {"concatenate", "reshape"},
           .numbers = arma::join_rows(joined, reshaped),
           .shading = ExhibitShading::signed_values}};
}

/// Returns a picture of weights, labeled with the tokens, or with numbers where the size differs.
ExhibitPicture weights_picture(const StepState& m, const std::string& title, const std::string& note,
                               const arma::mat& weights) {
  const auto names = [](const Labels& known, std::size_t n) {
    return n == known.size() ? known : numbered("", n);
  };
  return {title, note,    names(tokens(m), weights.n_rows), names(keys(m), weights.n_cols),
          {},    weights, ExhibitShading::weights};
}

std::vector<ExhibitPicture> versions(const StepState& m) {
  const arma::mat first = weights_of(editing::find_preset("002-average")->make()),
                  second = weights_of(editing::find_preset("002-softmax-zeros")->make());
  const arma::mat& third = m.trace.at(attention::Stage::weights, 0);
  const auto distance = [&](const arma::mat& other) {
    return "from version 1: " + number(largest_difference(first, other));
  };
  return {weights_picture(m, "version 1: triangle", "", first),
          weights_picture(m, "version 2: softmax of zeros", distance(second), second),
          weights_picture(m, "version 3: queries and keys", distance(third), third)};
}

std::vector<ExhibitPicture> mask_methods(const StepState& m) {
  const arma::mat infinite = weights_of(with_method(m.model, MaskMethod::negative_infinity));
  const arma::mat renormalized = weights_of(with_method(m.model, MaskMethod::renormalize));
  const bool divides_by_zero = infinite.is_finite() && !renormalized.is_finite();
  const std::string note = divides_by_zero
                               ? "0/0: nothing is left to divide by"
                               : "largest difference " + number(largest_difference(infinite, renormalized));
  return {weights_picture(m, "−∞ before softmax", "", infinite),
          weights_picture(m, "softmax, 0, renormalise", note, renormalized)};
}

std::vector<ExhibitPicture> entropy(const StepState& m) {
  const arma::vec scaled = entropies(weights_of(with_scale(m.model, ScaleRule::inverse_sqrt_d_head)));
  const arma::vec plain = entropies(weights_of(with_scale(m.model, ScaleRule::none)));
  const arma::vec max_entropy = arma::log2(arma::vec(arma::sum(*m.trace.at(attention::Stage::mask), 1)));
  return {
      {.title = "entropy of each row, in bits",
       .note = "mean " + number(arma::mean(scaled)) + " scaled, " + number(arma::mean(plain)) + " not scaled",
       .rows = tokens(m),
       .columns = {"scaled", "not scaled", "at most"},
       .numbers = arma::join_rows(scaled, plain, max_entropy),
       .shading = ExhibitShading::signed_values}};
}

}  // namespace

std::vector<ExhibitPicture> pictures(Exhibit exhibit, const StepState& state) {
  // Exhibits recompute attention, which says nothing about given numbers.
  if (!state.model.given.empty()) return {};
  switch (exhibit) {
    case Exhibit::library:
      return library(state);
    case Exhibit::single_query:
      return single_query(state);
    case Exhibit::double_loop:
      return double_loop(state);
    case Exhibit::next_token:
      return next_token(state);
    case Exhibit::moved_rows:
      return moved_rows(state);
    case Exhibit::versions:
      return versions(state);
    case Exhibit::mask_methods:
      return mask_methods(state);
    case Exhibit::entropy:
      return entropy(state);
    case Exhibit::none:
      break;
  }
  return {};
}

arma::vec rows_moved_by_last_token(const Model& model) {
  Model moved = model;
  arma::mat& x = moved.sequences.front().embeddings.edit();
  x.row(x.n_rows - 1) += 1;
  return row_differences(attention::attend(model).at(attention::Stage::output),
                         attention::attend(moved).at(attention::Stage::output));
}

}  // namespace core::lessons
