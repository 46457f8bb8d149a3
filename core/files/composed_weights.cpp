#include "core/files/composed_weights.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/words.hpp"
#include "core/files/config.hpp"
#include "core/files/namings.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/system/file.hpp"

namespace core::formats::checkpoints {
namespace {

using File = std::shared_ptr<const TensorFile>;

constexpr std::array adapter_file_names{"adapter_config.json", "adapter_model.safetensors",
                                        "adapter_model.bin"};
constexpr std::string_view peft_prefix = "base_model.model.";

/// Ends of the names of a scale by which a quantized weight is multiplied.
constexpr std::array scale_names{"weight_scale", "weight_scale_inv", "scale_weight", "scale_inv"};
/// Ends of the names of scales for rounding inputs, or keys and values in a cache; weights do not need them.
constexpr const char* activation_scales =
    " input_scale scale_input activation_scale k_scale v_scale q_scale prob_scale ";

/// Returns a weight's name without "weight": "q_proj." of "q_proj.weight", "in_proj_" of "in_proj_weight".
std::string stem_of(const std::string& weight) {
  constexpr std::string_view word = "weight";
  return weight.ends_with(word) ? weight.substr(0, weight.size() - word.size()) : weight;
}

bool is_whole_number(Dtype dtype) {
  return dtype == Dtype::i64 || dtype == Dtype::i32 || dtype == Dtype::i16 || dtype == Dtype::i8 ||
         dtype == Dtype::u64 || dtype == Dtype::u32 || dtype == Dtype::u16 || dtype == Dtype::u8;
}

/// Returns GPTQ (packed along the inputs), AWQ (packed along the outputs), or both if it is unclear.
std::string packed_scheme(const TensorFile& file, const TensorInfo& tensor, const std::string& base) {
  const TensorInfo* scales = file.find(base + "scales");
  if (file.find(base + "g_idx")) return "GPTQ";
  if (!scales || scales->shape.empty() || tensor.shape.size() != 2) return "GPTQ or AWQ";
  return scales->shape.back() == tensor.shape[1] ? "GPTQ" : "AWQ";
}

/// Returns the quantization scheme of a tensor of integers, or nothing.
std::optional<std::string> scheme_of(const TensorFile& file, const TensorInfo& tensor) {
  const std::size_t end = tensor.name.rfind('.') + 1;  // 0 without a point
  const std::string base = tensor.name.substr(0, end), last = tensor.name.substr(end);
  const auto has = [&](const char* sibling) { return file.find(base + sibling) != nullptr; };
  if (last == "qweight") return packed_scheme(file, tensor, base);
  if (last == "weight_packed") return "compressed-tensors";
  if (!is_whole_number(tensor.dtype) || tensor.shape.size() < 2) return std::nullopt;
  const auto follows = [&](const char* ending) { return file.find(tensor.name + ending) != nullptr; };
  if (follows(".absmax") || follows(".quant_map") || (last == "weight" && has("SCB"))) return "bitsandbytes";
  if (last == "weight")
    for (const char* scale : {"scale", "scales"})
      if (has(scale)) return "a scheme with " + base + scale;
  for (const char* scale : {"_scale", ".scale", "_scales", ".scales"})
    if (follows(scale)) return "a scheme with " + tensor.name + scale;
  return std::nullopt;
}

/// Throws core::Error when weights are quantized as integers; configured is the method in config.json, or "".
void refuse_quantized(const TensorFile& file, const std::string& configured) {
  for (const TensorInfo& tensor : file.tensors()) {
    const auto scheme = scheme_of(file, tensor);
    if (!scheme) continue;
    std::string words = *scheme;
    if (!configured.empty() && text::lower(words) != text::lower(configured))
      words += " (config.json says " + configured + ")";
    throw Error(file.place() + tensor.name + ": expected weights as floating-point numbers, got " +
                dtype_name(tensor.dtype) + " quantised by " + words + ", which is not read");
  }
}

/// Returns an entry for a tensor of a file, possibly under another name.
TensorEntry entry_of(const File& file, const std::string& name, TensorInfo info) {
  TensorEntry entry{std::move(info),
                    [file, name](std::span<const std::size_t> leading, const StopToken& progress) {
                      return file->read(name, leading, progress);
                    }};
  if (const StoredNumbers* stored = file->stored(name)) entry.stored = *stored;
  return entry;
}

/// A matrix that is read from a file when it is first needed.
class LazyMatrix {
 public:
  LazyMatrix(File file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}
  const arma::mat& get(const StopToken& progress) const {
    const auto no_pause = progress.without_pause();
    std::call_once(once_, [&] { matrix_ = matrix(file_->read(name_, {}, progress)); });
    return matrix_;
  }

 private:
  File file_;
  std::string name_;
  mutable std::once_flag once_;
  mutable arma::mat matrix_;
};

std::shared_ptr<const LazyMatrix> lazy(const File& file, const std::string& name) {
  return std::make_shared<const LazyMatrix>(file, name);
}

/// Changes a row of a weight in place.
using RowChange = std::function<void(std::size_t row, arma::rowvec& numbers, const StopToken& progress)>;

/// A weight that is read from one tensor, whose rows are then changed.
struct ComposedWeight {
  std::string name;
  std::string source;
  TensorShape shape;
  std::vector<RowChange> changes;
};

Tensor read_composed(const TensorFile& file, const TensorInfo& info, const ComposedWeight& weight,
                     std::span<const std::size_t> leading, const StopToken& progress) {
  const auto of_rows = leading.first(std::min<std::size_t>(leading.size(), 1));
  Tensor tensor = file.read(weight.source, of_rows, progress);
  static_cast<TensorInfo&>(tensor) = info;
  const std::size_t first = leading.empty() ? 0 : leading[0], width = info.shape[1];
  for (std::size_t i = 0; i * width < tensor.numbers.size(); ++i) {
    arma::rowvec row(tensor.numbers.data() + i * width, width, false, true);
    for (const RowChange& change : weight.changes) change(first + i, row, progress);
  }
  if (!leading.empty()) tensor.shape.erase(tensor.shape.begin());
  return leading.size() < 2 ? tensor : slice_tensor(tensor, leading.subspan(1));
}

/// Returns the number of rows and columns that share a scale, or nothing if a scale does not fit a weight.
std::optional<std::pair<std::size_t, std::size_t>> scale_block(
    const TensorShape& weight, const TensorShape& scale,
    const std::optional<std::pair<std::size_t, std::size_t>>& configured) {
  constexpr std::size_t usual = 128;  // of DeepSeek-V3
  const std::size_t n_rows = weight[0], n_columns = weight[1];
  if (count_of(scale) == 1u) return std::pair(n_rows, n_columns);
  if (scale == TensorShape{n_rows} || scale == TensorShape{n_rows, 1})
    return std::pair(std::size_t{1}, n_columns);
  if (scale.size() != 2) return std::nullopt;
  const auto fits = [&](std::size_t rows, std::size_t columns) {
    return rows > 0 && columns > 0 && (n_rows - 1) / rows + 1 == scale[0] &&
           (n_columns - 1) / columns + 1 == scale[1];
  };
  if (configured && fits(configured->first, configured->second)) return configured;
  if (configured) return std::nullopt;
  if (fits(usual, usual)) return std::pair(usual, usual);
  if (n_rows % scale[0] != 0 || n_columns % scale[1] != 0) return std::nullopt;
  return std::pair(n_rows / scale[0], n_columns / scale[1]);
}

/// Settings of an adapter_config.json.
struct AdapterSettings {
  double alpha = 0;
  std::optional<std::size_t> rank;  ///< or nothing where it differs between weights
  bool by_root = false;             ///< the factor is alpha/√rank, not alpha/rank
  bool transposed = false;          ///< weights are [in, out], as in GPT-2
};

AdapterSettings parse_adapter(const Json& json) {
  const auto flag = [&](const char* key) {
    const auto value = json.given(key);
    return value && value->is_boolean() && value->boolean();
  };
  if (const Json type = json.required("peft_type"); !type.is_text() || type.text() != "LORA")
    type.fail("\"LORA\", as other adapters are not applied");
  for (const char* key : {"lora_bias", "use_qalora"})
    if (flag(key)) json.required(key).fail("false, as adapters with it are not applied");
  for (const char* key : {"alpha_pattern", "layer_replication", "trainable_token_indices", "modules_to_save"})
    if (const auto value = json.given(key);
        value && !(value->is_object() ? value->members().empty()
                                      : value->is_list() && value->items_or_empty("a list").empty()))
      value->fail("none, as adapters with it are not applied");
  AdapterSettings settings{
      json.required("lora_alpha").number(), {}, flag("use_rslora"), flag("fan_in_fan_out")};
  const auto ranks = json.given("rank_pattern");
  if (!ranks || ranks->members().empty()) settings.rank = json.required("r").whole(1);
  return settings;
}

/// Returns the name of a tensor of an adapter in two parts around a word: "q_proj" and "default.weight" of
/// "q_proj.lora_A.default.weight".
std::optional<std::pair<std::string, std::string>> split_at(const std::string& name,
                                                            const std::string& word) {
  const std::size_t at = name.find("." + word + ".");
  if (at == name.npos) return std::nullopt;
  return std::pair(name.substr(0, at), name.substr(at + word.size() + 2));
}

bool is_of_adapter(const TensorInfo& tensor) {
  return tensor.name.find(".lora_") != tensor.name.npos;
}

/// Returns a file with the tensors of the adapter in its folder, if there is one.
File with_adapter(File file) {
  if (std::ranges::any_of(file->tensors(), is_of_adapter)) return file;
  const auto folder = folder_of(file->path());
  if (!system::is_file(folder / adapter_file_names[0])) return file;
  for (const char* name : {adapter_file_names[1], adapter_file_names[2]}) {
    if (!system::is_file(folder / name)) continue;
    const auto adapter = std::make_shared<const TensorFile>(open_tensors(folder / name));
    std::vector<TensorEntry> entries;
    for (const File& each : {file, adapter})
      for (const TensorInfo& info : each->tensors()) entries.push_back(entry_of(each, info.name, info));
    return std::make_shared<const TensorFile>(file->path(), file->format(), std::move(entries),
                                              file->notes());
  }
  return file;
}

/// Composes the weights of one file.
class Composer {
 public:
  Composer(File file, const std::optional<Json>& config_json) : file_(std::move(file)) {
    if (!config_json) return;
    const auto quantization = config_json->given("quantization_config");
    if (!quantization || !quantization->is_object()) return;
    is_quantized_ = true;
    if (const auto block = quantization->given("weight_block_size")) {
      const auto sizes = block->whole_numbers("two sizes of a block");
      if (sizes.size() != 2) block->fail("two sizes of a block");
      block_ = std::pair(sizes[0], sizes[1]);
    }
  }

  File compose() {
    apply_scales();
    apply_weight_norms();
    apply_adapters();
    refuse_parametrizations();
    if (applied_.empty()) return file_;
    return result();
  }

 private:
  [[noreturn]] void fail(const std::string& tensor, const std::string& expected) const {
    throw Error(file_->place() + tensor + ": expected " + expected);
  }

  /// Adds a change of the rows of a weight.
  void change(const TensorInfo& source, const std::string& name, RowChange change) {
    const auto added =
        composed_.try_emplace(source.name, ComposedWeight{name, source.name, source.shape, {}});
    added.first->second.changes.push_back(std::move(change));
  }

  /// Returns whether a name is that of a projection of attention.
  static bool is_projection(const std::string& name) {
    return std::ranges::any_of(namings(), [&](const Naming& naming) {
      return name.ends_with(naming.output_weight) ||
             std::ranges::any_of(naming.weights, [&](const std::string& w) { return name.ends_with(w); });
    });
  }

  void note(const std::string& what, const std::string& tensor) {
    applied_.insert(tensor);
    ++notes_[what];
  }

  void apply_scales() {
    for (const TensorInfo& tensor : file_->tensors()) {
      if (tensor.dtype != Dtype::f8_e4m3 && tensor.dtype != Dtype::f8_e5m2) continue;
      const std::string stem = stem_of(tensor.name);
      std::vector<std::string> names;
      for (const char* word : scale_names) names.push_back(stem + word);
      if (stem == tensor.name) names = {tensor.name + "_scale", tensor.name + "_scale_inv"};
      const auto has_scale = [&](const std::string& name) { return file_->find(name) != nullptr; };
      if (is_quantized_ && is_projection(tensor.name) && std::ranges::none_of(names, has_scale))
        fail(tensor.name,
             "its scale " + names.front() + ", as config.json has a quantization_config, got none");
      for (const std::string& name : names)
        if (const TensorInfo* scale = file_->find(name)) apply_scale(tensor, *scale);
      for (const std::string_view word : text::split_words(activation_scales))
        for (const std::string& name : {stem + std::string(word), module_of(stem) + std::string(word)})
          if (const TensorInfo* scale = file_->find(name); scale && count_of(scale->shape) == 1u)
            if (applied_.insert(name).second) ++n_activation_scales_;
    }
  }

  /// Returns the name of a module's parent: "attn." of "attn.k_proj.".
  static std::string module_of(const std::string& stem) {
    const std::size_t end = stem.find_last_not_of("._");
    const std::size_t point = end == stem.npos ? stem.npos : stem.rfind('.', end);
    return point == stem.npos ? "" : stem.substr(0, point + 1);
  }

  void apply_scale(const TensorInfo& weight, const TensorInfo& scale) {
    const bool is_matrix = weight.shape.size() == 2 && weight.shape[0] > 0 && weight.shape[1] > 0;
    if (!is_matrix && !is_projection(weight.name)) return;  // as of experts in one tensor
    if (!is_matrix)
      fail(scale.name, "the scale of a matrix, got one of " + weight.name + " " + shape_text(weight.shape));
    const auto block = scale_block(weight.shape, scale.shape, block_);
    if (!block && !is_projection(weight.name)) return;
    if (!block)
      fail(scale.name,
           fmt::format(
               "one scale for {0}, for each of its {1} rows or for each of its blocks of {2} × {3}, got {4}",
               weight.name, weight.shape[0], block_ ? block_->first : 128, block_ ? block_->second : 128,
               shape_text(scale.shape)));
    const std::size_t scales_in_row = (weight.shape[1] - 1) / block->second + 1;
    change(weight, weight.name,
           [scales = lazy(file_, scale.name), block = *block, scales_in_row](
               std::size_t row, arma::rowvec& numbers, const StopToken& progress) {
             // One dimension is read as a row, two as a matrix: both hold the scales of a row together.
             const arma::mat& all = scales->get(progress);
             const bool is_flat = all.n_rows == 1;
             const std::size_t first = row / block.first * scales_in_row;
             for (std::size_t j = 0; j < numbers.n_elem; ++j)
               numbers[j] *=
                   is_flat ? all[first + j / block.second] : all(row / block.first, j / block.second);
           });
    note("FP8 weights multiplied by their scales", scale.name);
  }

  /// Returns the change that gives each row the length in a tensor.
  RowChange rescaling(const std::string& lengths) const {
    return
        [lengths = lazy(file_, lengths)](std::size_t row, arma::rowvec& numbers, const StopToken& progress) {
          numbers *= lengths->get(progress)[row] / arma::norm(numbers);
        };
  }

  /// Composes weights that are stored as directions v and lengths g of their rows.
  void apply_weight_norms() {
    for (const TensorInfo& tensor : file_->tensors())
      for (const auto& [length, direction] :
           {std::pair{"weight_g", "weight_v"},
            std::pair{"parametrizations.weight.original0", "parametrizations.weight.original1"}}) {
        if (!tensor.name.ends_with(length)) continue;
        const std::string stem = tensor.name.substr(0, tensor.name.size() - std::string_view(length).size());
        const std::string weight = stem + "weight";
        const TensorInfo* v = file_->find(stem + direction);
        if (!v || v->shape.size() != 2 || file_->find(weight)) continue;
        const bool is_of_rows = tensor.shape == TensorShape{v->shape[0], 1};
        if (!is_of_rows && !is_projection(weight)) continue;
        if (!is_of_rows)
          fail(tensor.name, fmt::format("lengths of the {} rows of {}, got {}", v->shape[0], v->name,
                                        shape_text(tensor.shape)));
        change(*v, weight, rescaling(tensor.name));
        note("weight norms applied", tensor.name);
        applied_.insert(v->name);
      }
  }

  /// Returns the weight that an adapter of a module changes, or nullptr.
  const TensorInfo* adapted_weight(std::string module) const {
    for (const char* ending : {".base_layer.weight", ".weight"})
      if (const TensorInfo* found = file_->find(module + ending)) return found;
    if (module.starts_with(peft_prefix)) module.erase(0, peft_prefix.size());
    for (;;) {  // a file may hold the model without the names of the modules around it
      if (const TensorInfo* found = file_->find(module + ".weight")) return found;
      const std::size_t point = module.find('.');
      if (point == module.npos) return nullptr;
      module.erase(0, point + 1);
    }
  }

  void apply_adapters() {
    std::optional<AdapterSettings> settings;
    for (const TensorInfo& a : file_->tensors()) {
      const auto parts = split_at(a.name, "lora_A");
      if (!parts) continue;
      if (!settings) {
        const auto json = sibling_json(file_->path(), adapter_file_names[0]);
        if (!json)
          fail(a.name, fmt::format("{} next to the file, which gives the factor of the adapter, got none",
                                   adapter_file_names[0]));
        settings = parse_adapter(*json);
      }
      const std::string& module = parts->first;
      const TensorInfo* weight = adapted_weight(module);
      const TensorInfo* b = file_->find(module + ".lora_B." + parts->second);
      if (!weight)
        fail(
            a.name,
            "the weight that the adapter changes in the same file or folder, got the adapter alone: merge it "
            "into its model (merge_and_unload), or put both into one folder");
      if (!b) fail(a.name, "also " + module + ".lora_B." + parts->second + ", got none");
      apply_adapter(*weight, a, *b, *settings);
      for (const std::string& ending :
           {"." + parts->second,
            parts->second == "weight" ? "" : "." + parts->second.substr(0, parts->second.rfind('.'))})
        if (const TensorInfo* lengths = file_->find(module + ".lora_magnitude_vector" + ending))
          apply_magnitude(*weight, *lengths, *settings);
    }
    for (const TensorInfo& tensor : file_->tensors()) {
      const bool is_saved = tensor.name.find(".modules_to_save.") != tensor.name.npos ||
                            (settings && !has_base_layers_ && tensor.name.starts_with(peft_prefix));
      const bool is_left = is_of_adapter(tensor) || is_saved;
      if (is_left && !applied_.contains(tensor.name))
        fail(tensor.name,
             "an adapter of lora_A and lora_B alone, got this tensor as well: merge it into its "
             "model (merge_and_unload)");
    }
  }

  void apply_adapter(const TensorInfo& weight, const TensorInfo& a, const TensorInfo& b,
                     const AdapterSettings& settings) {
    const std::size_t rank = a.shape.empty() ? 0 : a.shape[0];
    if (a.shape.size() != 2 || rank == 0 || (settings.rank && rank != *settings.rank))
      fail(a.name, fmt::format("{} rows, r of {}, got {}", settings.rank.value_or(1), adapter_file_names[0],
                               shape_text(a.shape)));
    TensorShape expected = weight.shape;
    if (settings.transposed) std::ranges::reverse(expected);
    if (expected.size() != 2 || a.shape[1] != expected[1] || b.shape != TensorShape{expected[0], rank})
      fail(b.name, fmt::format("{} × {} to be of the shape of {}, {}, got {} and {}", b.name, a.name,
                               weight.name, shape_text(expected), shape_text(b.shape), shape_text(a.shape)));
    const auto r = static_cast<double>(rank);
    const double factor = settings.alpha / (settings.by_root ? std::sqrt(r) : r);
    change(weight, weight.name,
           [a = lazy(file_, a.name), b = lazy(file_, b.name), factor, transposed = settings.transposed](
               std::size_t row, arma::rowvec& numbers, const StopToken& progress) {
             if (transposed)
               numbers += factor * (b->get(progress) * a->get(progress).col(row)).t();
             else
               numbers += factor * b->get(progress).row(row) * a->get(progress);
           });
    note("weights plus LoRA adapters", a.name);
    applied_.insert(b.name);
    if (weight.name.ends_with(".base_layer.weight")) has_base_layers_ = true;
  }

  void apply_magnitude(const TensorInfo& weight, const TensorInfo& lengths, const AdapterSettings& settings) {
    if (settings.transposed || count_of(lengths.shape) != std::uint64_t{weight.shape[0]})
      fail(lengths.name, fmt::format("lengths of the {} rows of {}, got {}{}", weight.shape[0], weight.name,
                                     shape_text(lengths.shape), settings.transposed ? " of columns" : ""));
    change(weight, weight.name, rescaling(lengths.name));
    note("rows of DoRA scaled to their lengths", lengths.name);
  }

  /// Refuses weights of attention that a module computes from others in another way, such as spectral norm.
  void refuse_parametrizations() const {
    for (const TensorInfo& tensor : file_->tensors()) {
      const auto parts = split_at(tensor.name, "parametrizations");
      if (!parts || applied_.contains(tensor.name)) continue;
      const std::string weight = parts->first + "." + parts->second.substr(0, parts->second.find('.'));
      if (!file_->find(weight) && is_projection(weight))
        fail(tensor.name, weight +
                              " itself: save the model after "
                              "torch.nn.utils.parametrize.remove_parametrizations");
    }
  }

  /// Returns a name without what PEFT adds to it.
  static std::string whole_name(std::string name) {
    constexpr std::string_view layer = ".base_layer.";
    if (const std::size_t at = name.find(layer); at != name.npos) name.replace(at, layer.size(), ".");
    if (name.starts_with(peft_prefix)) name.erase(0, peft_prefix.size());
    return name;
  }

  File result() const {
    std::vector<TensorEntry> entries;
    for (const TensorInfo& info : file_->tensors()) {
      const auto found = composed_.find(info.name);
      const bool is_composed = found != composed_.end();
      if (!is_composed && applied_.contains(info.name)) continue;
      TensorInfo named = info;
      if (is_composed) named.name = found->second.name, named.dtype = Dtype::f32;
      if (has_base_layers_) named.name = whole_name(named.name);
      if (is_composed)
        entries.push_back({named, [file = file_, named, weight = found->second](
                                      std::span<const std::size_t> leading, const StopToken& progress) {
                             return read_composed(*file, named, weight, leading, progress);
                           }});
      else
        entries.push_back(entry_of(file_, info.name, named));
    }
    std::vector<std::string> notes = file_->notes();
    for (const auto& [what, count] : notes_) notes.push_back(fmt::format("Applied: {} ({}).", what, count));
    if (n_activation_scales_ > 0)
      notes.push_back(fmt::format("Not applied: {}, as activations are not rounded to FP8.",
                                  text::counted(n_activation_scales_, "scale") + " of activations"));
    return std::make_shared<const TensorFile>(file_->path(), file_->format(), std::move(entries),
                                              std::move(notes));
  }

  File file_;
  bool is_quantized_ = false;                                 ///< whether config.json says so
  std::optional<std::pair<std::size_t, std::size_t>> block_;  ///< of config.json
  std::map<std::string, ComposedWeight> composed_;            ///< by the name of their source
  std::set<std::string> applied_;                             ///< tensors that are no longer listed
  std::map<std::string, std::size_t> notes_;                  ///< what was applied, and how often
  std::size_t n_activation_scales_ = 0;
  bool has_base_layers_ = false;  ///< names are those of PEFT
};

}  // namespace

File compose_weights(File file, const std::optional<Json>& config_json) {
  file = with_adapter(std::move(file));
  std::string method;
  if (config_json)
    if (const auto quantization = config_json->given("quantization_config"))
      if (const auto name = quantization->member("quant_method"); name && name->is_text())
        method = name->text();
  refuse_quantized(*file, method);
  return Composer(std::move(file), config_json).compose();
}

std::span<const char* const> adapter_files() {
  return adapter_file_names;
}

std::vector<std::string> unused_tensors_of_weights(const TensorFile& file,
                                                   std::span<const std::string> used) {
  const std::set<std::string_view> known(used.begin(), used.end());
  std::set<std::string> unused;
  for (const std::string& name : used) {
    const std::string stem = stem_of(name);
    if (stem.empty() || name.ends_with("bias")) continue;
    const std::vector<std::string> begins =
        stem == name ? std::vector{stem + ".", stem + "_"} : std::vector{stem};
    for (const std::string& begin : begins)
      for (const TensorInfo* tensor : file.with_prefix(begin))
        if (!known.contains(tensor->name)) unused.insert(tensor->name);
  }
  return {unused.begin(), unused.end()};
}

bool is_buffer(const TensorInfo& tensor) {
  const std::string_view last = std::string_view(tensor.name).substr(tensor.name.rfind('.') + 1);
  const std::size_t n = tensor.shape.size();
  if (text::has_word(" bias mask tril causal_mask attn_mask attention_mask ", last))
    return n >= 2 && tensor.shape[n - 1] == tensor.shape[n - 2];
  if (text::has_word(" masked_bias scale_attn norm_factor IGNORE ", last))
    return count_of(tensor.shape) == 1u;
  return text::has_word(
      " inv_freq original_inv_freq cos_cached sin_cached freqs_cis embed_positions position_ids ", last);
}

}  // namespace core::formats::checkpoints
