#include "core/check/whole_check.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/check/computed.hpp"
#include "core/check/match.hpp"
#include "core/files/json.hpp"
#include "core/files/stage_names.hpp"

namespace core::check {

namespace {

using formats::ModelTensor;
using formats::NumberedName;
using formats::ParsedName;
using formats::TensorInfo;

std::optional<std::size_t> last_number(const std::string& text) {
  const std::size_t from = text.find_last_not_of("0123456789") + 1;
  const auto number = text::parse_unsigned(std::string_view(text).substr(from));
  return number ? std::optional(static_cast<std::size_t>(*number)) : std::nullopt;
}

/// Returns the layer number in a name without a known stage: 3 of "my.3.thing".
std::optional<std::size_t> first_number(const std::string& name) {
  const auto numbers = formats::split_numbers(name);
  return numbers.empty() ? std::nullopt : last_number(numbers.front().number);
}

/// Sorts the tensors of a file by content.
class Sorter {
 public:
  Sorter(const transformer::Sizes& sizes, const std::map<std::string, std::string>& by_hand)
      : sizes_(sizes), by_hand_(by_hand) {}

  void take(const TensorInfo& info) {
    if (info.dtype == formats::Dtype::text) return ignore(info, "it holds text");
    const auto hand = by_hand_.find(info.name);
    if (hand != by_hand_.end() && hand->second.empty()) return ignore(info, "ignored by --map");
    if (hand != by_hand_.end()) return take_stage(info, first_number(info.name));
    if (take_hidden(info)) return;
    const ParsedName parsed = formats::parse_name(info.name);
    if (parsed.meaning.stages.empty()) return unknown_names_.push_back(info.name);
    take_stage(info, last_number(parsed.layer));
  }

  Dump finish() {
    if (!unknown_names_.empty())
      dump_.left_out.push_back(text::joined(unknown_names_, ", ") + ": " +
                               (unknown_names_.size() == 1 ? "its name says" : "their names say") +
                               " nothing of a pass");
    return std::move(dump_);
  }

 private:
  void ignore(const TensorInfo& info, const std::string& why) {
    dump_.left_out.push_back(info.name + ": " + why);
  }

  /// Adds a tensor of attention, of one layer or of all layers.
  void take_stage(const TensorInfo& info, std::optional<std::size_t> layer) {
    if (layer)
      dump_.stages[*layer].insert(info.name);
    else if (info.shape.size() > 3 && info.shape.front() == sizes_.n_layers)
      dump_.stacked.insert(info.name);
    else if (sizes_.n_layers == 1)
      dump_.stages[0].insert(info.name);
    else
      ignore(info, "its name says no layer");
  }

  void put(std::size_t layer, DumpTensor tensor) {
    if (!dump_.hidden.try_emplace(layer, tensor).second)
      dump_.left_out.push_back(tensor.name + ": " + dump_.hidden.at(layer).name + " is the same place");
  }

  /// Adds the hidden states of all layers in one tensor, with or without the last output.
  void take_stack(const TensorInfo& info, ModelTensor model_tensor) {
    const std::size_t count = info.shape.empty() ? 0 : info.shape.front();
    const bool fits =
        info.shape.size() > 2 &&
        (count == sizes_.n_layers || (model_tensor == ModelTensor::entering && count == sizes_.n_layers + 1));
    if (!fits) return ignore(info, "its name says no layer, and its first axis counts none");
    for (std::size_t k = 0; k < count; ++k)
      put(k + (model_tensor == ModelTensor::leaving ? 1 : 0), {info.name, k});
  }

  /// Adds a tensor that occurs once, after the last layer.
  void take_end(const TensorInfo& info, std::optional<DumpTensor>& end) {
    if (end) return ignore(info, end->name + " is the same place");
    end = DumpTensor{info.name};
  }

  /// Adds a tensor whose name has its layer, set apart (`parted`) or as in "hidden3".
  bool take_of_layer(const TensorInfo& info, bool parted) {
    for (const NumberedName& each : formats::split_numbers(text::lower(info.name))) {
      const bool is_end = each.suffix.empty();
      // "layers.1.mlp.hidden" is inside the layer.
      if (each.is_separate != parted || (!is_end && each.suffix.find_first_of("./") != std::string::npos))
        continue;
      const ModelTensor model_tensor = formats::model_tensor_of(is_end ? each.base : each.suffix);
      const auto layer = last_number(each.number);
      if (!layer || (model_tensor != ModelTensor::entering && model_tensor != ModelTensor::leaving)) continue;
      put(*layer + (model_tensor == ModelTensor::leaving ? 1 : 0), {info.name});
      return true;
    }
    return false;
  }

  bool take_hidden(const TensorInfo& info) {
    if (take_of_layer(info, true)) return true;
    const auto numbers = formats::split_numbers(info.name);
    const bool is_of_layer = std::ranges::any_of(numbers, &NumberedName::is_separate);
    const ModelTensor model_tensor = is_of_layer ? ModelTensor::nothing : formats::model_tensor_of(info.name);
    if (model_tensor == ModelTensor::nothing) return take_of_layer(info, false);
    if (model_tensor == ModelTensor::normed || model_tensor == ModelTensor::logits)
      take_end(info, model_tensor == ModelTensor::normed ? dump_.normed : dump_.logits);
    else
      take_stack(info, model_tensor);
    return true;
  }

  const transformer::Sizes& sizes_;
  const std::map<std::string, std::string>& by_hand_;
  Dump dump_;
  std::vector<std::string> unknown_names_;
};

}  // namespace

Dump find_dump(const formats::TensorFile& file, const transformer::Sizes& sizes,
               const std::map<std::string, std::string>& by_hand) {
  for (const auto& [name, stage] : by_hand) file.info(name);  // throws if it does not exist
  Sorter sorter(sizes, by_hand);
  for (const TensorInfo& info : file.tensors()) sorter.take(info);
  return sorter.finish();
}

arma::mat read_matrix(const formats::TensorFile& file, const DumpTensor& tensor) {
  std::vector<std::size_t> leading;
  if (tensor.index) leading.push_back(*tensor.index);
  formats::Tensor read = file.read(tensor.name, leading);
  while (read.shape.size() > 2 && read.shape.front() == 1) read.shape.erase(read.shape.begin());
  if (read.shape.size() != 2)
    throw Error(file.place() + tensor.name + ": expected a matrix of tokens × numbers, got " +
                formats::shape_text(read.shape));
  return formats::matrix(read);
}

namespace {

using formats::TensorFile;
using transformer::CallContext;
using transformer::Transformer;

/// Returns a dump with the layers of the model in place of the file's numbers, and without others.
Dump placed(const Dump& dump, const Placement& placement, std::size_t n_layers) {
  Dump result = dump;
  result.hidden.clear(), result.stages.clear();
  const std::string why = ": the model has " + text::counted(n_layers, "layer");
  for (const auto& [number, tensor] : dump.hidden) {
    if (const auto layer = placement.states.place(number, n_layers + 1))
      result.hidden.emplace(*layer, tensor);
    else
      result.left_out.push_back(tensor.name + why);
  }
  for (const auto& [number, names] : dump.stages) {
    if (const auto layer = placement.attention.place(number, n_layers))
      result.stages.emplace(*layer, names);
    else
      for (const std::string& name : names) result.left_out.push_back(name + why);
  }
  return result;
}

/// Returns the numbers of tokens and of sequences that most tensors of a dump have, or 0.
std::pair<std::size_t, std::size_t> given_sizes(const TensorFile& file, const Dump& dump) {
  std::map<std::size_t, std::size_t> tokens, sequences;
  const auto count = [&](const std::string& name, std::size_t n_stacked, std::size_t n_axes) {
    const formats::TensorShape& shape = file.info(name).shape;
    if (shape.size() < n_stacked + 2) return;
    ++tokens[shape[shape.size() - 2]];
    ++sequences[shape.size() == n_stacked + n_axes ? shape[n_stacked] : 1];
  };
  for (const auto& [number, tensor] : dump.hidden) count(tensor.name, tensor.index ? 1 : 0, 3);
  for (const auto& end : {dump.normed, dump.logits})
    if (end) count(end->name, 0, 3);
  const auto count_square = [&](const std::string& name, std::size_t n_stacked) {
    const formats::TensorShape& shape = file.info(name).shape;
    if (shape.size() > 1 && shape.back() == shape[shape.size() - 2]) count(name, n_stacked, 4);
  };
  for (const auto& [number, names] : dump.stages)
    for (const std::string& name : names) count_square(name, 0);
  for (const std::string& name : dump.stacked) count_square(name, 1);
  const auto commonest = [](const std::map<std::size_t, std::size_t>& counts) {
    const auto most = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
    return most == counts.end() ? 0 : most->first;
  };
  return {commonest(tokens), commonest(sequences)};
}

/// Returns the largest |number| of each row of an update.
arma::vec largest_of_rows(const arma::fmat& added) {
  return arma::conv_to<arma::vec>::from(arma::max(arma::abs(added), 1));
}

/// Comparison of one run of the model with a file.
class WholeComparison {
 public:
  /// A trial ends at the first difference.
  WholeComparison(const Transformer& model, const TensorFile& file, const Dump& dump,
                  const Placement& placement, const WholeOptions& options, const CallContext& context,
                  const StopToken& search, bool is_trial)
      : model_(model),
        file_(file),
        dump_(placed(dump, placement, model.architecture().sizes.n_layers)),
        placement_(placement),
        options_(options),
        context_(context),
        search_(search),
        is_trial_(is_trial) {}

  WholeReport report(const std::vector<std::string>& tokens) {
    report_.left_out = dump_.left_out;
    tokens_ = tokens;
    const std::vector<std::size_t>& ids = placement_.ids;
    arma::fmat rows = model_.embed(ids, 0, context_).view().matrix();
    arma::vec update_sizes = largest_of_rows(rows);
    const std::size_t n_layers = model_.architecture().sizes.n_layers;
    for (std::size_t l = 0; l < n_layers; ++l) {
      context_.progress.add(1);
      LayerResult result;
      result.entering = entering(l, rows, update_sizes);
      const transformer::RowBuffer residual(rows);
      result.attention = attention(l, model_.attention_input(l, residual, context_).view().matrix());
      arma::fmat next = model_.run_layer(l, residual, context_).view().matrix();
      update_sizes = largest_of_rows(next - rows);
      rows = std::move(next);
      report_.layers.push_back(std::move(result));
      if (is_trial_ && !report_.agrees()) return std::move(report_);
    }
    compare_end(rows, update_sizes);
    add_left_out();
    require_comparison();
    return std::move(report_);
  }

 private:
  /// Compares rows; steps[i] is the largest number last added to row i, which bounds the rounding of its
  /// sums. Sets `observed` to the file's rows if their shape fits.
  TensorResult compared(const DumpTensor& tensor, const arma::fmat& in_float32, const arma::vec& update_sizes,
                        arma::mat* observed = nullptr) const {
    const formats::TensorInfo& info = file_.info(tensor.name);
    TensorResult result{tensor.words(), formats::shape_text(info.shape), formats::dtype_name(info.dtype)};
    Agreement& agreement = result.agreement;
    const auto ours = arma::conv_to<arma::mat>::from(in_float32);
    formats::TensorShape shape = info.shape;
    if (tensor.index) shape.erase(shape.begin());
    while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
    if (shape != formats::TensorShape{ours.n_rows, ours.n_cols}) {
      agreement.within = false;
      result.obstacle = "expected " + formats::shape_text({ours.n_rows, ours.n_cols}) + ", got " +
                        formats::shape_text(shape);
      if (shape.size() == 2 && shape[1] == ours.n_cols)
        result.obstacle +=
            ": " + text::counted(shape[0], "token") + ", the text has " + std::to_string(ours.n_rows);
      return result;
    }
    arma::mat theirs = read_matrix(file_, tensor);
    // Programs often store half-precision results as float32.
    Limits limits{options_.tolerance, coarsest_type({theirs.memptr(), theirs.n_elem})};
    limits.sums = max_float32_roundings;
    for (std::size_t i = 0; i < ours.n_rows; ++i) {
      limits.added = update_sizes(i);
      for (std::size_t k = 0; k < ours.n_cols; ++k) agreement.add(theirs(i, k), ours(i, k), limits, i, k);
    }
    if (agreement.within && !agreement.is_within_unrounded) result.rounding = rounding_words(limits.dtype);
    if (observed) *observed = std::move(theirs);
    return result;
  }

  /// Compares a layer's input, and continues with the file's rows if it has them.
  std::optional<TensorResult> entering(std::size_t layer, arma::fmat& rows,
                                       const arma::vec& update_sizes) const {
    const auto tensor = dump_.hidden.find(layer);
    if (tensor == dump_.hidden.end()) return std::nullopt;
    arma::mat observed;
    TensorResult result = compared(tensor->second, rows, update_sizes, &observed);
    if (!observed.is_empty() && observed.is_finite()) rows = arma::conv_to<arma::fmat>::from(observed);
    return result;
  }

  /// Maps tensors of other layers to "" (ignored); sets has_any if a stage of this layer remains.
  std::map<std::string, std::string> by_hand(std::size_t layer, const Model& of_layer, bool& has_any) {
    std::map<std::string, std::string> result = options_.by_hand;
    for (const formats::TensorInfo& info : file_.tensors()) {
      const bool is_own = is_of(layer, info.name);
      const auto hand = result.find(info.name);
      const bool is_stage =
          is_own && (hand != result.end() ||
                     std::ranges::any_of(formats::parse_name(info.name).meaning.stages, [&](Stage stage) {
                       return attention::info(stage).present(of_layer);
                     }));
      has_any = has_any || is_stage;
      if (!is_own) result[info.name] = "";
    }
    return result;
  }

  std::optional<Report> attention(std::size_t layer, const arma::fmat& input) {
    if (!dump_.stages.contains(layer) && dump_.stacked.empty()) return std::nullopt;
    Model of_layer = model_.parameters(layer, nullptr);
    of_layer.sequences = {{tokens_, arma::conv_to<arma::mat>::from(input)}};
    bool has_any = false;
    const auto hands = by_hand(layer, of_layer, has_any);
    if (!has_any) {
      for (const formats::TensorInfo& info : file_.tensors())
        if (is_of(layer, info.name)) leave_out(layer, info.name, "the model does not have this stage");
      return std::nullopt;
    }
    MatchOptions how{.layout = options_.layout};
    if (!dump_.stacked.empty()) {
      const std::size_t n_layers = model_.architecture().sizes.n_layers;
      const std::ptrdiff_t index = placement_.attention.number(layer, n_layers);
      if (index < 0 || static_cast<std::size_t>(index) >= n_layers) return std::nullopt;
      how.layer = std::to_string(index);
    }
    MatchResult matched = match(of_layer, file_, hands, how);
    for (const auto& [name, why] : matched.left_out)  // tensors of other layers are expected here
      if (is_of(layer, name)) leave_out(layer, name, why);
    matched.left_out.clear(), matched.notes.clear();
    return check(of_layer, matched, options_.tolerance, search_);
  }

  /// Whether a tensor holds attention of that layer, alone or with other layers.
  bool is_of(std::size_t layer, const std::string& name) const {
    const auto own = dump_.stages.find(layer);
    return dump_.stacked.contains(name) || (own != dump_.stages.end() && own->second.contains(name));
  }
  void leave_out(std::size_t layer, const std::string& name, const std::string& why) {
    left_out_[{name, why}].push_back(layer);
  }

  /// Reports ignored tensors; a stacked one with the layers in which it was ignored, unless in all.
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

  void compare_end(const arma::fmat& rows, const arma::vec& update_sizes) {
    arma::fmat last = rows;
    const auto compare_normed = [&](const DumpTensor& tensor) {
      const arma::fmat normed = model_.apply_final_norm(last, context_);
      return compared(tensor, normed, largest_of_rows(normed));
    };
    if (const auto tensor = dump_.hidden.find(report_.layers.size()); tensor != dump_.hidden.end()) {
      report_.leaving = entering(report_.layers.size(), last, update_sizes);
      const Agreement plain = report_.leaving->agreement;
      if (!plain.within && report_.leaving->obstacle.empty()) {
        last = rows;
        TensorResult after = compare_normed(tensor->second);  // transformers returns it after the final norm
        after.reading = "after the last norm";
        if (after.agreement.within || after.agreement.largest < plain.largest) report_.leaving = after;
      }
    }
    if (dump_.normed) report_.normed = compare_normed(*dump_.normed);
    if (!dump_.logits) return;
    const arma::fmat logits = model_.compute_logits(last, context_);
    report_.logits = compared(*dump_.logits, logits, largest_of_rows(logits));
  }

  const Transformer& model_;
  const TensorFile& file_;
  const Dump dump_;
  const Placement& placement_;
  const WholeOptions& options_;
  const CallContext& context_;
  const StopToken& search_;
  const bool is_trial_;
  std::vector<std::string> tokens_;
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>>
      left_out_;  ///< [tensor, reason]: layers
  WholeReport report_;
};

}  // namespace

bool WholeReport::agrees() const {
  if (!placement.empty()) return false;
  const auto fits = [](const std::optional<TensorResult>& rows) { return !rows || rows->agreement.within; };
  return std::ranges::all_of(layers,
                             [&](const LayerResult& layer) {
                               return fits(layer.entering) && (!layer.attention || layer.attention->agrees);
                             }) &&
         fits(leaving) && fits(normed) && fits(logits);
}

namespace {

/// Special tokens that are tried in front of a text or behind it, and sequences of a batch.
constexpr std::size_t max_special_tokens = 8, max_sequences = 64;
/// For states and attention of half precision; other layers are further off.
constexpr Tolerance coarse{.relative = 0.05, .absolute = 0.02};
/// At least so many tensors more must agree if one still differs.
constexpr std::size_t enough_tensors = 2;

/// Returns how many tensors agree before the first that differs.
std::size_t count_agreeing(const WholeReport& report) {
  std::size_t n = 0;
  for (const auto& [entering, attention] : report.layers) {
    if (entering && !entering->agreement.within) return n;
    n += entering ? 1 : 0;
    if (attention && !attention->agrees) return n;
    n += attention ? attention->n_tensors : 0;
  }
  for (const auto* end : {&report.leaving, &report.normed, &report.logits}) {
    if (*end && !(*end)->agreement.within) return n;
    n += *end ? 1 : 0;
  }
  return n;
}

/// Finds out how a file is to be read: as its names say, unless much more agrees otherwise.
class PlacementSearch {
 public:
  PlacementSearch(const Transformer& model, const TensorFile& file, const WholeOptions& options,
                  const CallContext& context)
      : model_(model),
        file_(file),
        options_(options),
        context_(context),
        dump_(find_dump(file, model.architecture().sizes, options.by_hand)) {
    const bool is_empty = dump_.hidden.empty() && !dump_.normed && !dump_.logits && dump_.stages.empty() &&
                          dump_.stacked.empty();
    if (is_empty)
      throw Error(
          file_.place() +
          "expected tensors of layers (hidden_states.3, attentions.0, layers.2.q) or logits, got none; "
          "--layer says of which layer they are");
    std::tie(n_tokens_, n_sequences_) = given_sizes(file, dump_);
    no_search_.stop();
  }

  WholeReport report(const std::vector<std::size_t>& ids, const std::vector<std::string>& tokens,
                     const StopToken& search) {
    Placement named;
    named.ids = ids;
    WholeReport report = run(named, options_, tokens, no_search_, true);
    if (report.agrees()) return report;
    Placement found = improved(named, agreed(report), options_.tolerance);
    if (found.words().empty())
      if (const Agreed as_named = tried(named, coarse); !as_named.agrees)
        found = improved(named, as_named, coarse);
    report = run(found, options_, found.ids == ids ? tokens : names_of(found.ids), search, false);
    report.placement = found.words();
    report.n_tokens = found.ids.size(), report.n_given_tokens = n_tokens_;
    return report;
  }

 private:
  struct Agreed {
    bool agrees = false;
    std::size_t n_agreeing = 0;
  };

  WholeReport run(const Placement& placement, const WholeOptions& options,
                  const std::vector<std::string>& tokens, const StopToken& search, bool is_trial) {
    std::optional<TensorFile> of_sequence;
    if (placement.sequence)
      of_sequence =
          sequence_of(file_, n_sequences_, *placement.sequence, model_.architecture().sizes.n_layers);
    return WholeComparison(model_, of_sequence ? *of_sequence : file_, dump_, placement, options, context_,
                           search, is_trial)
        .report(tokens);
  }

  static Agreed agreed(const WholeReport& report) { return {report.agrees(), count_agreeing(report)}; }

  Agreed tried(const Placement& placement, const Tolerance& tolerance) {
    WholeOptions options = options_;
    options.tolerance = tolerance;
    return agreed(run(placement, options, names_of(placement.ids), no_search_, true));
  }

  static std::vector<std::string> names_of(const std::vector<std::size_t>& ids) {
    std::vector<std::string> names;
    for (const std::size_t id : ids) names.push_back(std::to_string(id));
    return names;
  }

  Placement improved(Placement found, Agreed best, const Tolerance& tolerance) {
    const std::size_t n_named = best.n_agreeing;
    for (const auto& others : {&PlacementSearch::other_tokens, &PlacementSearch::other_sequences,
                               &PlacementSearch::other_layers}) {
      for (Placement& other : (this->*others)(found)) {
        const Agreed trial = tried(other, tolerance);
        const bool is_better = trial.n_agreeing > best.n_agreeing &&
                               (trial.agrees || trial.n_agreeing >= n_named + enough_tensors);
        if (is_better) found = std::move(other), best = trial;
      }
      if (best.agrees) return found;
    }
    return found;
  }

  std::vector<Placement> other_layers(const Placement& placement) const {
    return other_orders(placement, !dump_.stages.empty() || !dump_.stacked.empty(), !dump_.hidden.empty());
  }
  std::vector<Placement> other_sequences(const Placement& placement) const {
    std::vector<Placement> all;
    for (std::size_t k = 0; n_sequences_ > 1 && k < std::min(n_sequences_, max_sequences); ++k) {
      all.push_back(placement);
      all.back().sequence = k;
    }
    return all;
  }
  std::vector<Placement> other_tokens(const Placement& placement) const;

  const Transformer& model_;
  const TensorFile& file_;
  const WholeOptions& options_;
  const CallContext& context_;
  const Dump dump_;
  std::size_t n_tokens_ = 0, n_sequences_ = 0;  ///< of the file, 0 if unknown
  StopToken no_search_;
};

/// Returns texts with a special token more in front or at the end, or a token less there, of the file's
/// length.
std::vector<Placement> PlacementSearch::other_tokens(const Placement& placement) const {
  std::vector<Placement> all;
  const std::vector<std::size_t>& ids = placement.ids;
  const auto add = [&](std::vector<std::size_t> other, const std::string& words) {
    all.push_back(placement);
    all.back().ids = std::move(other), all.back().tokens = words;
  };
  if (n_tokens_ + 1 == ids.size() && n_tokens_ > 0) {
    add({ids.begin() + 1, ids.end()}, "the file lacks the first token of the text");
    add({ids.begin(), ids.end() - 1}, "the file lacks the last token of the text");
  }
  if (n_tokens_ != ids.size() + 1) return all;
  std::size_t n_tried = 0;
  for (std::size_t id = 0; id < model_.description().n_tokens && n_tried < max_special_tokens; ++id) {
    const transformer::VocabularyToken token = model_.token(id);
    if (!token.is_special) continue;
    ++n_tried;
    std::vector<std::size_t> in_front = ids, behind = ids;
    in_front.insert(in_front.begin(), id), behind.push_back(id);
    add(std::move(in_front), "the file has one token more, in front of the text: " + token.piece);
    add(std::move(behind), "the file has one token more, behind the text: " + token.piece);
  }
  return all;
}

}  // namespace

WholeReport check_whole(const Transformer& model, const std::vector<std::size_t>& ids,
                        const std::vector<std::string>& tokens, const TensorFile& file,
                        const WholeOptions& options, const CallContext& context, const StopToken& search) {
  transformer::require_tokens(model.description(), ids);
  return PlacementSearch(model, file, options, context).report(ids, tokens, search);
}

namespace {

using formats::json_quoted;
using std::to_string;
using TableRows = std::vector<std::vector<std::string>>;

void add_row(const std::string& layer, const std::string& what, const std::optional<TensorResult>& result,
             TableRows& rows) {
  if (!result) return;
  std::vector<std::string> row{layer, what};
  for (std::string& cell : result->row("token " + to_string(result->agreement.row) + ", number " +
                                       to_string(result->agreement.column)))
    row.push_back(std::move(cell));
  rows.push_back(std::move(row));
}

bool differs(const std::optional<TensorResult>& rows) {
  return rows && !rows->agreement.within;
}
bool differs(const std::optional<Report>& report) {
  return report && !report->agrees;
}

/// Whether some tensor has another shape than the model's.
bool has_other_shapes(const WholeReport& report) {
  const auto has_obstacle = [](const std::optional<TensorResult>& rows) {
    return rows && !rows->obstacle.empty();
  };
  return std::ranges::any_of(report.layers,
                             [&](const LayerResult& layer) {
                               return has_obstacle(layer.entering) ||
                                      (layer.attention && layer.attention->has_shape_mismatch());
                             }) ||
         has_obstacle(report.leaving) || has_obstacle(report.normed) || has_obstacle(report.logits);
}

/// Place of the first difference: a layer, or the end of the model, and a stage there.
struct LayerStage {
  std::size_t layer = 0;
  std::string stage;  ///< "tokens", "hidden_states", a stage of attention, "normed" or "logits"
};
std::optional<LayerStage> find_first_difference(const WholeReport& report) {
  if (report.n_given_tokens != 0 && report.n_given_tokens != report.n_tokens && has_other_shapes(report))
    return LayerStage{0, "tokens"};
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    if (differs(report.layers[l].entering)) return LayerStage{l, "hidden_states"};
    if (const auto& attention = report.layers[l].attention; differs(attention)) {
      const StageResult* first = attention->first_difference();
      return LayerStage{l, first ? attention::info(first->stage).name : "attention"};
    }
  }
  if (differs(report.leaving)) return LayerStage{report.layers.size(), "hidden_states"};
  if (differs(report.normed)) return LayerStage{report.layers.size(), "normed"};
  if (differs(report.logits)) return LayerStage{report.layers.size(), "logits"};
  return std::nullopt;
}

/// Describes a difference in a layer's output, and the parts of the layer that may cause it.
std::string words_of_hidden(const WholeReport& report, std::size_t layer) {
  if (layer == 0)
    return "First difference: what enters layer 0: the embeddings of tokens or positions, or their norm.\n";
  const LayerResult& before = report.layers[layer - 1];
  std::string text = "First difference: what leaves layer " + to_string(layer - 1);
  const bool behind_norm =
      report.leaving && layer == report.layers.size() && !report.leaving->reading.empty();
  const std::string norms = behind_norm ? ", its norms or the last norm.\n" : " or its norms.\n";
  if (!before.attention) return text + ", whose attention was not given: its attention, its MLP" + norms;
  const auto& stages = before.attention->stages;
  const bool to_the_end =
      std::ranges::any_of(stages, [](const StageResult& s) { return s.stage == Stage::output; });
  return text + ", though " +
         (to_the_end ? "its attention agrees: its MLP"
                     : "what was given of its attention agrees: what follows, its MLP") +
         norms;
}

/// Describes later layers whose attention differs, and whether for the same causes.
std::string words_of_others(const WholeReport& report, std::size_t first) {
  const auto causes = report.layers[first].attention->causes();
  std::size_t n_same = 0, n_differ = 0;  // two empty lists are no common reason
  for (std::size_t l = first + 1; l < report.layers.size(); ++l) {
    if (!differs(report.layers[l].attention)) continue;
    ++n_differ;
    n_same += report.layers[l].attention->causes() == causes ? 1 : 0;
  }
  if (n_differ == 0) return "";
  return "Attention of " + text::counted(n_differ, "later layer") + (n_differ == 1 ? " differs" : " differ") +
         " as well, " +
         (n_same == 0 || (causes.empty() && n_same < n_differ) ? "not for the same reason"
          : causes.empty()                                     ? "by nothing known here"
          : n_same == n_differ                                 ? "for the same reason"
                               : to_string(n_same) + " of them for the same reason") +
         ".\n";
}

std::string listed(const std::vector<std::size_t>& numbers) {
  return text::joined(numbers, ", ", [](std::size_t n) { return to_string(n); });
}

/// Lists tensors that the file lacks, which the verdict does not cover.
std::string words_of_missing(const WholeReport& report) {
  std::vector<std::size_t> no_hidden, no_attention;
  std::set<Stage> not_given;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    if (!report.layers[l].entering) no_hidden.push_back(l);
    const auto& attention = report.layers[l].attention;
    if (!attention) no_attention.push_back(l);
    if (attention) not_given.insert(attention->not_given.begin(), attention->not_given.end());
  }
  std::vector<std::string> missing;
  if (!no_hidden.empty()) missing.push_back("what enters layers " + listed(no_hidden));
  if (!report.leaving && !report.normed) missing.push_back("what leaves the last layer");
  if (!no_attention.empty()) missing.push_back("attention of layers " + listed(no_attention));
  if (!not_given.empty())
    missing.push_back("of attention " +
                      text::joined(not_given, ", ", [](Stage s) { return attention::info(s).name; }));
  if (!report.logits) missing.push_back("logits");
  return missing.empty() ? "" : "Not given, and not compared: " + text::joined(missing, "; ") + ".\n";
}

std::string words_of_difference(const WholeReport& report, const LayerStage& place) {
  if (place.stage == "tokens")
    return "First difference: the file is of " + text::counted(report.n_given_tokens, "token") +
           ", and the text has " + to_string(report.n_tokens) +
           ". Give the same tokens, with those that a tokenizer adds.\n";
  if (place.stage == "hidden_states") return words_of_hidden(report, place.layer);
  if (place.stage == "normed")
    return "First difference: the last norm, though what leaves the last layer agrees or was not given.\n";
  if (place.stage == "logits")
    return "First difference: the scores of tokens: the last norm or what predicts tokens, or what leaves the "
           "last layer where that was not given.\n";
  return "First difference: attention of layer " + to_string(place.layer) + ".\n" +
         verdict_words(*report.layers[place.layer].attention) + words_of_others(report, place.layer);
}

std::string verdict(const WholeReport& report) {
  const auto place = find_first_difference(report);
  if (report.placement.empty())
    return place ? words_of_difference(report, *place) : "Everything agrees that was given.\n";
  return "First difference: how the file is laid out: " + report.placement + ".\n" +
         (place ? "So read: " + words_of_difference(report, *place)
                : "So read, everything agrees that was given.\n");
}

std::string rows_json(const std::optional<TensorResult>& r) {
  if (!r) return "null";
  return formats::json_object({{"tensor", json_quoted(r->tensor)},
                               {"shape", json_quoted(r->shape)},
                               {"dtype", json_quoted(r->type)},
                               {"within", formats::json_boolean(r->agreement.within)},
                               {"max_abs", r->max_abs()},
                               {"row", r->at(r->agreement.row)},
                               {"column", r->at(r->agreement.column)},
                               {"rounding", formats::quoted_or_null(r->rounding)},
                               {"reading", r->reading.empty() ? "" : json_quoted(r->reading)},
                               {"obstacle", r->obstacle.empty() ? "" : json_quoted(r->obstacle)}});
}

std::string layer_json(const LayerResult& layer) {
  std::string attention = layer.attention ? report_json(*layer.attention) : "null";
  if (attention.ends_with('\n')) attention.pop_back();
  return formats::json_object({{"hidden", rows_json(layer.entering)}, {"attention", attention}});
}

}  // namespace

std::string whole_report_text(const WholeReport& report) {
  TableRows rows{{"layer", "what", "tensor", "shape", "type", "", "largest difference", ""}};
  bool any_hidden = false;
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    const auto& [entering, attention] = report.layers[l];
    any_hidden = any_hidden || entering;
    add_row(to_string(l), "what enters it", entering, rows);
    if (!attention) continue;
    for (const StageResult& stage : attention->stages) {
      std::vector<std::string> row = row_of(stage);
      row.insert(row.begin(), to_string(l));
      rows.push_back(std::move(row));
    }
  }
  add_row("", "what leaves the last layer", report.leaving, rows);
  add_row("", "the last norm", report.normed, rows);
  add_row("", "scores of tokens", report.logits, rows);
  if (std::ranges::any_of(rows, [](const auto& row) { return !row[5].empty(); })) rows.front()[5] = "read as";
  std::string text = text::aligned_table(rows);
  for (const std::string& name : report.left_out) text += "ignored: " + name + "\n";
  for (std::size_t l = 0; l < report.layers.size(); ++l)
    if (report.layers[l].attention)
      for (const std::string& note : report.layers[l].attention->notes)
        text += "note: layer " + to_string(l) + ": " + note + ".\n";
  if (any_hidden) text += "note: each layer was computed from the hidden states that the file has of it.\n";
  return text + "\n" + verdict(report) + words_of_missing(report);
}

std::string whole_report_json(const WholeReport& report) {
  const auto place = find_first_difference(report);
  return formats::json_object(
             {{"agrees", formats::json_boolean(report.agrees())},
              {"first_difference", place ? formats::json_object({{"layer", to_string(place->layer)},
                                                                 {"stage", json_quoted(place->stage)}})
                                         : "null"},
              {"placement", formats::quoted_or_null(report.placement)},
              {"layers", formats::json_list(report.layers, layer_json)},
              {"leaving", rows_json(report.leaving)},
              {"normed", rows_json(report.normed)},
              {"logits", rows_json(report.logits)},
              {"left_out", formats::json_list(report.left_out, json_quoted)}}) +
         "\n";
}

}  // namespace core::check
