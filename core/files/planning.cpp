#include "core/files/planning.hpp"

#include <algorithm>

#include "core/files/config_keys.hpp"
#include "core/files/signs.hpp"

namespace core::formats::checkpoints {
namespace {

// By model_type, blanks around each; where the configuration does not say it.
constexpr const char* types_of_neighbours = " gptj codegen cohere cohere2 glm glm4 helium roformer ";
constexpr const char* types_that_turn_otherwise = " llama4 llama4_text chatglm ";
constexpr const char* types_of_other_tables = " udop pix2struct ";
constexpr std::size_t usual_max_distance = 128;
constexpr double usual_slope = 8;

bool is_among(std::string_view words, const std::string& word) {
  return !word.empty() && words.find(" " + word + " ") != words.npos;
}

class Planner {
 public:
  Planner(Behaviour& behaviour, std::span<const TensorInfo> tensors, const Layer& layer,
          const Sources& sources)
      : b_(behaviour), tensors_(tensors), layer_(layer), sources_(sources), index_(number_of(layer)) {}

  void plan() const {
    const Positions of_kind = b_.kind ? b_.kind->positions : Positions::before;
    const ConfigPositions& positions = sources_.positions;
    const auto signs = absences_by_tensors(tensors_, layer_, b_.is_cross);
    const bool alibi = positions.alibi.value_or(of_kind == Positions::alibi && !positions.rotary);
    if (!b_.is_cross) {  // whose keys stand nowhere among the queries
      if (alibi || is_either()) plan_alibi();
      const bool turns = is_kind("ESM") && std::ranges::find(signs, std::string("rotary")) != signs.end();
      const bool tensors_turn = std::ranges::find(signs, std::string("rotary")) != signs.end();
      if (!alibi && of_kind == Positions::rotary && !positions.rotary && !tensors_turn &&
          is_called_so_alone())
        b_.assumed.push_back("no rotary positions, as nothing but the names of projections is that of " +
                             std::string(b_.kind->name));
      else if (!alibi && (positions.rotary || turns || of_kind == Positions::rotary))
        plan_rotary();
      if (positions.relative || of_kind == Positions::relative) plan_relative();
      find_window();
    }
    if (positions.cap && wanted("cap")) {
      b_.planned.cap = positions.cap;
      b_.known.push_back("a cap on the scores");
    }
    plan_norm();
    plan_sink();
    if (positions.clipped) lacks("clip");
    for (const char* name : signs)
      if (!is_planned(name)) lacks(name);
  }

 private:
  bool is_kind(std::string_view name) const { return b_.kind && b_.kind->name == name; }

  /// Projections that anybody calls so, in no block of layers and without another tensor of such models.
  bool is_called_so_alone() const {
    const std::string& prefix = layer_.prefix;
    const bool is_of_a_block =
        prefix.find_first_of("0123456789") != prefix.npos || prefix.find("self_attn") != prefix.npos;
    return !sources_.by_config && (is_kind("Llama") || is_kind("Phi")) && !is_of_a_block &&
           !info(prefix + "q_norm.weight", 1);
  }

  /// Which of the two a Baichuan has its configuration tells alone.
  bool is_either() const {
    return is_kind("Baichuan") && !sources_.positions.alibi && !sources_.positions.rotary;
  }

  void lacks(const char* name) const {
    const Absence* absence = &absence_named(name);
    if (std::ranges::find(b_.not_computed, absence) == b_.not_computed.end())
      b_.not_computed.push_back(absence);
  }

  /// Whether something is to be computed; what a person leaves out is said.
  bool wanted(const char* name) const {
    const bool is_left_out = std::ranges::find(sources_.left_out, name) != sources_.left_out.end();
    if (is_left_out) lacks(name);
    return !is_left_out;
  }

  void say(const std::string& words) const {
    if (sources_.by_config)
      b_.known.push_back(words);
    else
      b_.assumed.push_back(words +
                           (b_.kind ? std::string(", as ") + b_.kind->name + " has, by its names" : ""));
  }

  bool is_planned(std::string_view name) const {
    const Planned& p = b_.planned;
    return (name == "rotary" && (p.rotary || !turns())) || (name == "relative" && p.relative) ||
           (name == "alibi" && p.alibi) || (name == "norm" && p.norm) || (name == "sinks" && !p.sink.empty());
  }

  const TensorInfo* info(const std::string& name, std::size_t n_axes) const {
    const auto found = std::ranges::find(tensors_, name, &TensorInfo::name);
    return found != tensors_.end() && found->shape.size() == n_axes ? &*found : nullptr;
  }

  bool has_window() const {
    const auto& windowed = sources_.positions.windowed;
    return index_ >= windowed.size() || windowed[index_];
  }

  void plan_alibi() const {
    if (is_either()) return lacks("alibi");
    if (!wanted("alibi")) return;
    PlannedAlibi alibi{Slopes::bloom, sources_.positions.alibi_max.value_or(usual_slope)};
    if (is_kind("Falcon")) alibi.slopes = Slopes::scaled;
    if (is_kind("MPT")) alibi.slopes = Slopes::mpt;
    b_.planned.alibi = alibi;
    say(words_of(alibi));
  }

  /// Some layers of a model may know no positions.
  bool turns() const {
    const auto& turning = sources_.positions.turning;
    return index_ >= turning.size() || turning[index_];
  }

  void plan_rotary() const {
    const ConfigPositions& positions = sources_.positions;
    if (is_among(types_that_turn_otherwise, sources_.type) || is_kind("ChatGLM")) return lacks("rotary");
    const bool in_window = positions.turns_in_window && !positions.windowed.empty() && has_window();
    const ConfigRotary& said = in_window ? *positions.turns_in_window : positions.turns;
    if (!turns()) {
      b_.known.push_back("no positions, as config.json says of this layer");
      return;
    }
    if (!wanted("rotary")) return;
    PlannedRotary planned;
    const bool neighbours = said.neighbours.value_or(
        is_among(types_of_neighbours, sources_.type) || is_kind("GPT-J") || is_kind("CodeGen") ||
        is_kind("RoFormer") || std::string_view(layer_.layout->name) == "wq");
    planned.rotary.pairs = neighbours ? positions::Pairs::neighbours : positions::Pairs::halves;
    planned.rotary.base = said.base.value_or(planned.rotary.base);
    planned.rotary.dimensions = said.dimensions;
    const bool is_plain_neox =
        is_kind("GPT-NeoX") && !is_among(" gpt_neox_japanese persimmon ", sources_.type);
    planned.fraction = said.fraction.value_or(usual_fraction(is_plain_neox ? "gpt_neox" : sources_.type));
    planned.rotary.scaling = said.scaling;
    if (!said.other_scaling.empty()) lacks("scaling");
    b_.planned.rotary = planned;
    say(words_of(planned));
    const bool has_fixed_base = is_kind("GPT-J") || is_kind("CodeGen") || is_kind("RoFormer") ||
                                is_kind("ESM") || is_kind("Baichuan");
    if (sources_.by_config && !said.base && !has_fixed_base)
      b_.assumed.push_back("base 10000, as config.json tells none");
    b_.assumed.push_back("that the first token stands at position 0");
  }

  /// The table of the layer itself, or that of the first layer of its stack, which shares it.
  const TensorInfo* table() const {
    const std::string end = "relative_attention_bias.weight";
    if (const TensorInfo* own = info(layer_.prefix + "SelfAttention." + end, 2)) return own;
    if (const TensorInfo* own = info(layer_.prefix + end, 2)) return own;
    for (const TensorInfo& tensor : tensors_)
      if (tensor.shape.size() == 2 && tensor.name.ends_with(end) && shares_stack(tensor.name, layer_))
        return &tensor;
    return nullptr;
  }

  void plan_relative() const {
    const TensorInfo* found = is_kind("T5") || is_kind("MPNet") ? table() : nullptr;
    if (!found || is_among(types_of_other_tables, sources_.type)) return lacks("relative");
    if (!wanted("relative")) return;
    b_.planned.relative = {found->name, sources_.positions.max_distance.value_or(usual_max_distance),
                           !b_.causal};
    say(words_of(*b_.planned.relative));
  }

  /// Norms of one head's width without biases, as Qwen 3 and Gemma 3 have; those of all heads at once, and
  /// layer norms, are not computed.
  void plan_norm() const {
    const std::string query = layer_.prefix + "q_norm.weight", key = layer_.prefix + "k_norm.weight";
    const TensorInfo *q = info(query, 1), *k = info(key, 1);
    const TensorInfo* weight = info(layer_.mapping.query.weights.front(), 2);
    const bool has_bias = info(layer_.prefix + "q_norm.bias", 1) || info(layer_.prefix + "k_norm.bias", 1);
    const bool fits = q && k && weight && q->shape == k->shape && !has_bias && is_kind("Llama");
    const bool is_of_a_head =
        fits && (b_.heads.n == 1u || q->shape[0] < weight->shape[layer_.mapping.query.out_by_in ? 0 : 1]);
    if (!is_of_a_head) {
      if (sources_.positions.normed) lacks("norm");
      return;
    }
    if (!wanted("norm")) return;
    PlannedNorm norm{query, key};
    norm.plus_one = sources_.by_config ? sources_.type.starts_with("gemma") : has_norm_before_the_mlp();
    norm.epsilon = sources_.positions.epsilon.value_or(norm.epsilon);
    b_.planned.norm = norm;
    say(words_of(norm));
    if (!sources_.positions.epsilon) b_.assumed.push_back("1e-6 in the roots of these norms");
  }

  /// Gemma's blocks have four norms of their own names.
  bool has_norm_before_the_mlp() const {
    const std::string block = layer_.prefix.substr(0, layer_.prefix.rfind("self_attn."));
    return info(block + "pre_feedforward_layernorm.weight", 1) != nullptr;
  }

  void plan_sink() const {
    const std::string name = layer_.prefix + "sinks";
    if (!info(name, 1) || !wanted("sinks")) return;
    b_.planned.sink = name;
    b_.known.push_back("learned attention sinks");
  }

  /// A window of W keys is the query's own and W − 1 before it; without a causal mask, W/2 on both sides.
  /// Whole numbers that mean something else, as of windows of a picture, are not computed.
  void find_window() const {
    if (!sources_.positions.window || *sources_.positions.window == 0 || !has_window()) return;
    const std::size_t width = *sources_.positions.window;
    if (!b_.causal && !is_kind("ModernBERT")) return lacks("window");
    if (!wanted("window")) return;
    if (b_.causal)
      b_.window.left = width - 1;
    else
      b_.window.left = b_.window.right = width / 2;
    b_.known.push_back("a sliding window of " + std::to_string(width) + " keys");
  }

  Behaviour& b_;
  std::span<const TensorInfo> tensors_;
  const Layer& layer_;
  const Sources& sources_;
  std::size_t index_;
};

}  // namespace

void plan_additions(Behaviour& behaviour, std::span<const TensorInfo> tensors, const Layer& layer,
                    const Sources& sources) {
  Planner(behaviour, tensors, layer, sources).plan();
}

}  // namespace core::formats::checkpoints
