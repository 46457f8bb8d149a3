#include "core/check/whole_check.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/check/match.hpp"
#include "core/check/names.hpp"
#include "core/check/stored_as.hpp"

namespace core::check {
namespace {

using formats::TensorFile;
using transformer::Means;
using transformer::Transformer;

/// Compares rows; steps[i] is the largest number that the last step added to row i, whose sums round.
void compare(const arma::mat& theirs, const arma::fmat& in_float32, const arma::vec& steps,
             formats::Dtype type, const Tolerance& tolerance, RowsResult& result) {
  const auto ours = arma::conv_to<arma::mat>::from(in_float32);
  Limits limits{tolerance, type};
  limits.sums = float32_sums;
  if (tolerance.of_largest > 0) limits.more = tolerance.of_largest * largest_finite(ours);
  Gap gap;
  for (std::size_t i = 0; i < ours.n_rows; ++i) {
    limits.added = steps(i);
    for (std::size_t c = 0; c < ours.n_cols; ++c) gap.add(theirs(i, c), ours(i, c), limits, i, c);
  }
  result.within = gap.near != Near::none;
  result.largest = gap.largest, result.of_nan = gap.of_nan, result.row = gap.row, result.column = gap.column;
  if (gap.near == Near::rounded) result.rounding = rounding_words(type);
}

/// The largest |number| of each row of what was added.
arma::vec largest_of_rows(const arma::fmat& added) {
  return arma::conv_to<arma::vec>::from(arma::max(arma::abs(added), 1));
}

/// One run of the model beside a file.
class Comparing {
 public:
  Comparing(const Transformer& model, const std::vector<std::string>& tokens, const TensorFile& file,
            const WholeOptions& options, const Means& means, const Token& search)
      : model_(model), tokens_(tokens), file_(file), options_(options), means_(means), search_(search) {}

  WholeReport report(const std::vector<std::size_t>& ids) {
    read_dump();
    transformer::require_tokens(model_.description(), ids);
    arma::fmat rows = model_.embedded(ids, 0, means_);
    arma::vec steps = largest_of_rows(rows);
    const std::size_t n_layers = model_.architecture().sizes.n_layers;
    for (std::size_t l = 0; l < n_layers; ++l) {
      means_.progress.add(1);
      LayerResult result;
      result.entering = entering(l, rows, steps);
      arma::fmat next;
      const auto layer = model_.run_layer(l, rows, {}, {}, means_, next);
      result.attention = attention(l, layer->attention_input);
      steps = largest_of_rows(next - rows);
      rows = std::move(next);
      report_.layers.push_back(std::move(result));
    }
    compare_end(rows, steps);
    add_left_out();
    require_comparison();
    return std::move(report_);
  }

 private:
  void read_dump() {
    dump_ = dump_in(file_, model_.architecture().sizes, options_.by_hand);
    report_.left_out = dump_.left_out;
    const bool is_empty = dump_.hidden.empty() && !dump_.normed && !dump_.logits && dump_.stages.empty() &&
                          dump_.stacked.empty();
    if (is_empty)
      throw Error(
          file_.place() +
          "expected tensors of layers (hidden_states.3, attentions.0, layers.2.q) or logits, got none; "
          "--layer says of which layer they are");
  }

  /// Their rows where they fit ours, which they are compared with.
  std::optional<arma::mat> compared(const DumpTensor& tensor, const arma::fmat& ours, const arma::vec& steps,
                                    RowsResult& result) const {
    const formats::TensorInfo& info = file_.info(tensor.name);
    result.tensor = tensor;
    result.shape = formats::shape_text(info.shape), result.type = formats::dtype_name(info.dtype);
    formats::Shape shape = info.shape;
    if (tensor.index) shape.erase(shape.begin());
    while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
    if (shape != formats::Shape{ours.n_rows, ours.n_cols}) {
      result.obstacle = "expected " + formats::shape_text({ours.n_rows, ours.n_cols}) + ", got " +
                        formats::shape_text(shape);
      if (shape.size() == 2 && shape[1] == ours.n_cols)
        result.obstacle +=
            ": " + text::counted(shape[0], "token") + ", the text has " + std::to_string(ours.n_rows);
      return std::nullopt;
    }
    arma::mat theirs = rows_of(file_, tensor);
    // Programs often keep as float32 what they computed in half of that.
    const formats::Dtype type = coarsest_type({theirs.memptr(), theirs.n_elem});
    compare(theirs, ours, steps, type, options_.tolerance, result);
    return theirs;
  }

  /// Goes on with their rows, if they have them.
  std::optional<RowsResult> entering(std::size_t layer, arma::fmat& rows, const arma::vec& steps) const {
    const auto tensor = dump_.hidden.find(layer);
    if (tensor == dump_.hidden.end()) return std::nullopt;
    RowsResult result;
    if (const auto theirs = compared(tensor->second, rows, steps, result); theirs && theirs->is_finite())
      rows = arma::conv_to<arma::fmat>::from(*theirs);
    return result;
  }

  /// The tensors of a layer that are stages of its model, the others being left out.
  std::map<std::string, std::string> by_hand(std::size_t layer, const Model& of_layer, bool& has_any) {
    std::map<std::string, std::string> result = options_.by_hand;
    for (const formats::TensorInfo& info : file_.tensors()) {
      const bool is_own = is_of(layer, info.name);
      const auto hand = result.find(info.name);
      const bool is_stage =
          is_own &&
          (hand != result.end() || std::ranges::any_of(said_by(info.name).meaning.stages, [&](Stage stage) {
             return attention::info(stage).present(of_layer);
           }));
      has_any = has_any || is_stage;
      if (!is_own) result[info.name] = "";
    }
    return result;
  }

  std::optional<Report> attention(std::size_t layer, const arma::fmat& input) {
    if (!dump_.stages.contains(layer) && dump_.stacked.empty()) return std::nullopt;
    const Model of_layer = transformer::layer_model(model_, layer, input, tokens_, {});
    bool has_any = false;
    const auto hands = by_hand(layer, of_layer, has_any);
    if (!has_any) {
      for (const formats::TensorInfo& info : file_.tensors())
        if (is_of(layer, info.name)) leave_out(layer, info.name, "the model does not have this stage");
      return std::nullopt;
    }
    MatchOptions how{.layout = options_.layout};
    if (!dump_.stacked.empty()) how.layer = std::to_string(layer);
    Matched matched = match(of_layer, file_, hands, how);
    for (const auto& [name, why] : matched.left_out)  // what is of other layers is no news
      if (is_of(layer, name)) leave_out(layer, name, why);
    matched.left_out.clear();
    return check(of_layer, matched, options_.tolerance, search_);
  }

  /// Whether a tensor is one of attention of that layer, alone or with those of others.
  bool is_of(std::size_t layer, const std::string& name) const {
    const auto own = dump_.stages.find(layer);
    return dump_.stacked.contains(name) || (own != dump_.stages.end() && own->second.contains(name));
  }
  void leave_out(std::size_t layer, const std::string& name, const std::string& why) {
    left_out_[{name, why}].push_back(layer);
  }

  /// Of a tensor of all layers those in which it was left out are said, unless they are all.
  void add_left_out() {
    for (const auto& [tensor, layers] : left_out_) {
      const auto& [name, why] = tensor;
      const bool is_of_some = dump_.stacked.contains(name) && layers.size() < report_.layers.size();
      const auto number = [](std::size_t layer) { return std::to_string(layer); };
      report_.left_out.push_back(name + ": " + why +
                                 (is_of_some
                                      ? " (in " + std::string(layers.size() > 1 ? "layers " : "layer ") +
                                            text::joined(layers, ", ", number) + ")"
                                      : ""));
    }
  }

  void require_comparison() const {
    const auto is_compared = [](const LayerResult& layer) { return layer.entering || layer.attention; };
    if (std::ranges::any_of(report_.layers, is_compared) || report_.leaving || report_.normed ||
        report_.logits)
      return;
    throw Error(file_.place() +
                "expected tensors that can be compared, got none: " + text::joined(report_.left_out, "; "));
  }

  void compare_end(const arma::fmat& rows, const arma::vec& steps) {
    arma::fmat last = rows;
    const auto of_normed = [&](const DumpTensor& tensor) {
      const arma::fmat normed = model_.before_prediction(last, means_);
      RowsResult result;
      compared(tensor, normed, largest_of_rows(normed), result);
      return result;
    };
    if (const auto tensor = dump_.hidden.find(report_.layers.size()); tensor != dump_.hidden.end()) {
      RowsResult plain;
      const auto theirs = compared(tensor->second, rows, steps, plain);
      report_.leaving = plain;
      if (!plain.within && plain.obstacle.empty()) {
        RowsResult after = of_normed(tensor->second);  // as transformers keeps it
        after.reading = "after the last norm";
        if (after.within || after.largest < plain.largest) report_.leaving = after;
      } else if (theirs && theirs->is_finite()) {
        last = arma::conv_to<arma::fmat>::from(*theirs);
      }
    }
    if (dump_.normed) report_.normed = of_normed(*dump_.normed);
    if (!dump_.logits) return;
    const arma::fmat logits = model_.logits_of(last, means_);
    report_.logits.emplace();
    compared(*dump_.logits, logits, largest_of_rows(logits), *report_.logits);
  }

  const Transformer& model_;
  const std::vector<std::string>& tokens_;
  const TensorFile& file_;
  const WholeOptions& options_;
  const Means& means_;
  const Token& search_;
  Dump dump_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>>
      left_out_;  ///< tensor and why: layers
  WholeReport report_;
};

}  // namespace

bool WholeReport::agrees() const {
  const auto fits = [](const std::optional<RowsResult>& rows) { return !rows || rows->within; };
  return std::ranges::all_of(layers,
                             [&](const LayerResult& layer) {
                               return fits(layer.entering) && (!layer.attention || layer.attention->agrees);
                             }) &&
         fits(leaving) && fits(normed) && fits(logits);
}

WholeReport check_whole(const Transformer& model, const std::vector<std::size_t>& ids,
                        const std::vector<std::string>& tokens, const TensorFile& file,
                        const WholeOptions& options, const Means& means, const Token& search) {
  return Comparing(model, tokens, file, options, means, search).report(ids);
}

}  // namespace core::check
