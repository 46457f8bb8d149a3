#include "core/lessons/changes.hpp"
#include "core/lessons/paths.hpp"
#include "core/lessons/states.hpp"

namespace core::lessons {
namespace {

using attention::HeadTrace;
using attention::MaskAlignment;

std::size_t visible_keys(const attention::Trace& trace) {
  return static_cast<std::size_t>(arma::accu(trace.mask.row(0)));
}

constexpr Step decode_table[] = {
    {"What is kept",
     "A model writes one token after the other. The keys and values of the earlier ones do not change, so they "
     "are kept: only the newest token asks, and its query meets all keys.",
     {"strip/embeddings", "strip/key_embeddings", "strip/keys", "strip/weights"},
     {"query", "key", "key embedding"},
     "change a number of X: the query's own.",
     ModelTask{
         [] { return preset("modern-decode"); },
         [](const Moment& m) { return changed(m, &HeadTrace::queries) && !changed(m, &HeadTrace::keys); },
         [](const Moment& m) {
           return "The weights of the first head moved by up to " + number(moved_weights(m)) +
                  ", and no key and no value did.";
         }},
     Exhibit::none,
     attention::Stage::weights},
    {"The past can be touched",
     "The cache holds what was made of earlier tokens. A change there reaches the newest token through one key "
     "and one value: its score, and what it hands over.",
     {"strip/key_embeddings", "strip/keys", "strip/values", "strip/weights"},
     {"key embedding", "value"},
     "change a number of M, the embeddings of the keys.",
     ModelTask{
         [] { return preset("modern-decode"); },
         [](const Moment& m) { return changed(m, &HeadTrace::keys) && !changed(m, &HeadTrace::queries); },
         [](const Moment& m) {
           return "The keys moved by up to " +
                  number(largest_difference(head_now(m).keys, head_before(m).keys)) +
                  " and the weights by up to " + number(moved_weights(m)) + ".";
         }}},
    {"Where the newest token stands",
     "There is one query, and there are eight keys: it stands at the last of them and sees all. A causal mask "
     "that counts from the first key on, as PyTorch's is_causal=True does, lets it see the first alone.",
     {"strip/mask", "strip/weights", "model/mask_more"},
     {"causal", "mask"},
     "let the queries be the first keys (MODEL, mask, more…).",
     ModelTask{[] { return preset("modern-decode"); },
               [](const Moment& m) {
                 return m.model.mask.align == MaskAlignment::first &&
                        visible_keys(m.trace) < visible_keys(m.before);
               },
               [](const Moment& m) {
                 return "Of " + std::to_string(visible_keys(m.before)) + " visible keys " +
                        std::to_string(visible_keys(m.trace)) + " is left, and it takes everything.";
               }}},
};

}  // namespace

std::span<const Step> decode_steps() {
  return decode_table;
}

}  // namespace core::lessons
