// A model in another process: its results arrive unchanged, and nothing received is trusted.
#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include "core/base/random.hpp"
#include "core/circuits/patching.hpp"
#include "core/graph/attend.hpp"
#include "core/model/lens.hpp"
#include "core/model/remote_model.hpp"
#include "core/model/text_reading.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/attached_server.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/matchers.hpp"

namespace core::transformer {
namespace {

using goldens::tiny_gpt;
using goldens::Tools;
using support::AttachedServer;
using support::error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using tokenizers::ids_of;

const std::string prompt = "egg jam fig and egg jam f";

bool are_equal_numbers(const arma::fmat& a, const arma::fmat& b) {
  return arma::size(a) == arma::size(b) && std::equal(a.begin(), a.end(), b.begin());
}

struct AttachedModel : testing::Test, Tools {
  AttachedServer server{tiny_gpt};
  ModelRef remote = attach_model(server.address(), "right");
  const Transformer& own = server.model();
  const std::vector<std::size_t> ids = ids_of(own.tokenize(prompt));
};

TEST_F(AttachedModel, TellsTokensAndNumbersAsTheModelDoes) {
  EXPECT_EQ(remote->description().sizes.n_layers, own.description().sizes.n_layers);
  EXPECT_EQ(remote->description().path, "TinyModel");
  EXPECT_EQ(own.description().layer_input, "LayerNorm(residual)");
  EXPECT_EQ(remote->description().layer_input, "") << "its family is none that is known here";
  for (const std::string& some : {prompt, std::string("naïve café – 日本"), std::string()})
    EXPECT_EQ(remote->tokenize(some), own.tokenize(some));
  EXPECT_EQ(remote->token(686).bytes, own.token(686).bytes);
  EXPECT_THAT(error_of([&] { remote->tokenize("\xff"); }), HasSubstr("UTF-8"));

  const auto output = std::make_shared<const arma::fmat>(ids.size(), own.description().sizes.d_model,
                                                         arma::fill::value(0.5f));
  for (const std::vector<PassEdit>& edits : {std::vector<PassEdit>(),
                                             {AblatedHead{2, 3}, AblatedHead{2, 0}, AblatedHead{0, 1}},
                                             {SetOutput{1, output}}}) {
    const PassRef here = own.run(ids, edits, context), there = remote->run(ids, edits, context);
    EXPECT_TRUE(are_equal_numbers(remote->next(*there, 5, context), own.next(*here, 5, context)));
    EXPECT_TRUE(are_equal_numbers(remote->lens(*there, 13, context), own.lens(*here, 13, context)));
    EXPECT_TRUE(are_equal_numbers(remote->input(*there, 2), own.input(*here, 2)));
    const LayerHeads a = remote->maps(*there, 2, 3, 13, context), b = own.maps(*here, 2, 3, 13, context);
    EXPECT_TRUE(are_equal_numbers(a.added, b.added));
    for (std::size_t h = 0; h < b.heads.size(); ++h) {
      EXPECT_TRUE(arma::approx_equal(a.heads[h].map, b.heads[h].map, "absdiff", 0));
      EXPECT_EQ(a.heads[h].roles.entropy_bits, b.heads[h].roles.entropy_bits);
      EXPECT_EQ(a.heads[h].roles.induction, b.heads[h].roles.induction);
    }
    EXPECT_TRUE(arma::approx_equal(*a.visible, *b.visible, "absdiff", 0));
    EXPECT_EQ(remote->stream(*there, 2, 13, 5, context).entering,
              own.stream(*here, 2, 13, 5, context).entering);
    EXPECT_NE(remote->stream(*there, 2, 13, 5, context).no_sum_reason, "");
  }
  const std::string folder = goldens::folder + "gpt2_by_layer";
  const AttachedServer with_lens(folder);
  const ModelRef apart = attach_model(with_lens.address(), "right");
  const PassRef here = with_lens.model().run({1, 2, 3}, {}, context),
                there = apart->run({1, 2, 3}, {}, context);
  for (const LensKind kind : {LensKind::tuned, LensKind::jacobian}) {
    const auto first_layer = [&](const FullModel& model, const Pass& pass) {
      return arma::frowvec(lens_logits(model, pass, 2, open_lens(model, kind, token), context).after.row(0));
    };
    EXPECT_LT(arma::abs(first_layer(*apart, *there) - first_layer(with_lens.model(), *here)).max(), 1e-5);
  }
  EXPECT_THAT(error_of([&] { open_lens(*apart, LensKind::logit_between, token); }),
              HasSubstr("an attached model does not tell"));
  random::Generator a(1), b(1);
  EXPECT_EQ(remote->generate(ids, {}, 4, {0.8, 10}, a, context),
            own.generate(ids, {}, 4, {0.8, 10}, b, context));
}

TEST_F(AttachedModel, SharesComputationsAndForgetsPasses) {
  {
    const PassRef plain = remote->run(ids, {}, context), off = remote->run(ids, {AblatedHead{2, 3}}, context);
    EXPECT_EQ(plain->computation_id(1), off->computation_id(1));
    EXPECT_NE(plain->computation_id(2), off->computation_id(2));
    const PassRef short_one = remote->run(ids, {}, context, 2);
    EXPECT_TRUE(are_equal_numbers(remote->input(*short_one, 2), remote->input(*plain, 2)));
    EXPECT_EQ(server.n_passes(), 3u);
  }
  remote->run({1}, {}, context);  // answers arrive in order
  remote->token(3);
  EXPECT_LE(server.n_passes(), 1u);
}

TEST_F(AttachedModel, IsEditedAndReadAsOneOfOurOwn) {
  experiment::Experiment wanted{.text = prompt};
  const experiment::TextReading before = experiment::read(*remote, wanted, nullptr, context);
  const attention::Model unedited = experiment::unedited_layer(*remote, before, 1);
  attention::Model after = unedited;
  after.projections->query.weight.set(3, 5, 2.5);
  after.mask.causal = false;
  wanted.heads_off = {{2, 3}};
  wanted = experiment::with_layer(wanted, 1, unedited, after, "W_q");
  const experiment::TextReading now = experiment::read(*remote, wanted, &before, context);
  const experiment::TextReading expected = experiment::read(own, wanted, nullptr, context);
  EXPECT_FALSE(are_equal_numbers(now.logits, before.logits));
  EXPECT_TRUE(arma::approx_equal(now.logits, expected.logits, "absdiff", 1e-4));
  EXPECT_EQ(remote->not_editable_reason(1), "");
}

TEST_F(AttachedModel, IsPatchedAsOneOfOurOwn) {
  const experiment::Experiment both{.text = "egg jam food and egg jam f",
                                    .first = experiment::FirstPrompt{prompt, "ig", "ood"}};
  const circuits::PromptPair prompts{ids, ids_of(own.tokenize(both.text)), answer_token(own, "ig", ""),
                                     answer_token(own, "ood", "")};
  for (const PatchedPart part : {PatchedPart::head, PatchedPart::keys, PatchedPart::attention}) {
    std::size_t n_known = 0;
    const circuits::PatchMap map =
        circuits::patch(*remote, both, prompts, {part}, context,
                        [&](const circuits::PatchMap& known) { n_known = known.n_known; });
    const circuits::PatchMap exact = circuits::patch(circuits::Float64Model(own), prompts, {part}, context);
    EXPECT_EQ(n_known, map.recovered.n_elem);
    EXPECT_TRUE(arma::approx_equal(map.recovered, exact.recovered, "absdiff", 1e-5));
  }
  const auto error = [&](const circuits::PatchPlan& plan) {
    return error_of([&] { circuits::patch(*remote, both, prompts, plan, context); });
  };
  EXPECT_EQ(error({PatchedPart::mlp}),
            "MLP 3: expected a part of attention, as nothing else of an attached model can be patched");
  EXPECT_THAT(error({PatchedPart::head, false, Patch{2, PatchedPart::keys, 0}}), StartsWith("through: "));
}

void expect_weights(const attention::Trace& found, const attention::Trace& expected, double tolerance) {
  ASSERT_EQ(found.n_heads(), expected.n_heads());
  for (std::size_t h = 0; h < expected.n_heads(); ++h)
    EXPECT_TRUE(support::is_near(found.at(attention::Stage::weights, h),
                                 expected.at(attention::Stage::weights, h), tolerance));
}

TEST(AttachedLayers, AreRebuiltWithEveryRuleOfTheirFamily) {
  for (const char* family :
       {"gpt2", "llama", "llama_partial", "mistral", "qwen2", "qwen3", "gpt_neox", "bert"}) {
    SCOPED_TRACE(family);
    Tools tools;
    AttachedServer server(std::string(FIXTURES "/transformer/") + family);
    const ModelRef remote = attach_model(server.address(), "right");
    const Transformer& own = server.model();
    const auto& sizes = own.description().sizes;
    std::vector<std::size_t> ids;
    for (std::size_t k = 0; k < std::min<std::size_t>(sizes.n_context, 12); ++k)
      ids.push_back((7 * k + 3) % own.description().n_tokens);
    const auto names = attention::numbered_tokens(ids.size());
    const PassRef here = own.run(ids, {}, tools.context), there = remote->run(ids, {}, tools.context);
    for (std::size_t l = 0; l < sizes.n_layers; ++l) {
      const attention::Model expected = layer_model(own, *here, l, names, {}),
                             made = layer_model(*remote, *there, l, names, {});
      EXPECT_EQ(remote->not_editable_reason(l), "");
      EXPECT_EQ(made.projections, expected.projections);
      EXPECT_EQ(made.sequences, expected.sequences);
      const auto a = attention::attend(made), b = attention::attend(expected);
      const arma::mat& output = b.at(attention::Stage::output);
      EXPECT_TRUE(support::is_near(a.at(attention::Stage::output), output,
                                   1e-5 * std::max(1.0, arma::abs(output).max())));
      expect_weights(a, b, 1e-6);
    }
    server.not_rebuilt = "its scores are secret";  // then its queries, keys and values are given
    const PassRef again = remote->run(ids, {AblatedHead{0, 0}}, tools.context);
    const attention::Model given = layer_model(*remote, *again, 0, names, {});
    EXPECT_EQ(remote->not_editable_reason(0), "its scores are secret");
    EXPECT_FALSE(given.projections);
    const auto a = attention::attend(given), b = attention::attend(layer_model(own, *here, 0, names, {}));
    expect_weights(a, b, 1e-5);
  }
}

TEST_F(AttachedModel, CancelsAPassThatIsStopped) {
  server.pass_ms = 400;
  std::jthread stops([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    token.stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(remote->run(ids, {}, context), Stopped);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(350));
  server.pass_ms = 0;
  Tools more;
  remote->run(ids, {}, more.context);
  EXPECT_THAT(server.take_operations(), testing::IsSupersetOf({"run", "cancel", "forget", "run"}));
}

TEST_F(AttachedModel, SaysThatItWasLostAndKeepsSayingSo) {
  const PassRef pass = remote->run(ids, {}, context);
  const std::string name = remote->token(686).bytes;
  server.end();
  for (int k = 0; k < 2; ++k)
    EXPECT_EQ(error_of([&] { remote->next(*pass, 3, context); }),
              server.address() + ": the connection to Python was lost: the other side has closed it");
  EXPECT_EQ(remote->token(686).bytes, name);
}

TEST_F(AttachedModel, IsNotReachedWithoutItsTokenOrAddress) {
  EXPECT_EQ(error_of([&] { attach_model(server.address(), "wrong"); }),
            server.address() + ": cannot be attached: that is not the right token");
  const std::string nowhere = server.address() + "s";
  EXPECT_EQ(error_of([&] { attach_model(nowhere, "right"); }),
            nowhere + ": cannot be reached: No such file or directory");
  EXPECT_THAT(error_of([&] { attach_model("127.0.0.1:1", "right"); }),
              StartsWith("127.0.0.1:1: cannot be reached: "));
  EXPECT_TRUE(system::is_socket_address(server.address()));
  EXPECT_TRUE(system::is_socket_address("localhost:5005"));
  EXPECT_TRUE(system::is_socket_address("[::1]:5005"));
  for (const char* none : {"model", "a/b:1", "host:", "host:70000", ":1", tiny_gpt.c_str()})
    EXPECT_FALSE(system::is_socket_address(none)) << none;
}

/// Returns the window's error for a server that alters the bytes of one answer.
std::string said_of(const std::string& operation, const std::function<std::string(std::string)>& change) {
  Tools tools;
  AttachedServer server(tiny_gpt);
  server.distort = [&](const std::string& of, std::string bytes) {
    return of == operation ? change(std::move(bytes)) : bytes;
  };
  return error_of([&] {
    const ModelRef remote = attach_model(server.address(), "right");
    const auto ids = ids_of(remote->tokenize(prompt));
    const PassRef pass = remote->run(ids, {}, tools.context);
    remote->maps(*pass, 1, 1, 13, tools.context);
    layer_model(*remote, *pass, 1, attention::numbered_tokens(ids.size()), {});
    remote->next(*pass, 13, tools.context);
  });
}

std::string replaced(std::string bytes, const std::string& what, const std::string& by) {
  const std::size_t at = bytes.find(what);
  return at == bytes.npos ? bytes : bytes.replace(at, what.size(), by);
}

TEST(DamagedAnswers, AreOneLineThatSaysWhatIsWrong) {
  struct Case {
    const char *operation, *what, *by, *words;
  };
  for (const Case& c : {
           Case{"hello", "ATNS", "HTTP", "is not attnscope.attach()"},
           {"hello", "\"protocol\":1", "\"protocol\":2", "expected protocol 1, got 2"},
           {"hello", "\"n_context\":", "\"n_contexT\":", "n_context"},
           {"hello", "\"kv_heads\":4", "\"kv_heads\":3", "different numbers of heads"},
           {"hello", "\"kv_heads\":4", "\"kv_heads\":0", "kv_heads"},
           {"tokens", "\"ends\":[", "\"endS\":[", "ends"},
           {"tokens", "\"special\":[false", "\"special\":[0    ", "special"},
           {"run", "\"layers\":[0,", "\"layers\":[0] ", "an answer"},
           {"run", "\"layers\":", "\"layerS\":", "layers"},
           {"maps", "\"F64\"", "\"F32\"", "answer"},
           {"maps", "\"F64\"", "\"X64\"", "one of"},
           {"maps", "\"data_offsets\":[0,", "\"data_offsets\":[1,", "offsets"},
           {"maps", "\"maps\"", "\"mapS\"", "lacks the array maps"},
           {"layer", "\"scale\":0", "\"scale\":x", "an answer"},
           {"parameters", "\"query.weight\"", "\"query.Weight\"", "lacks the array query.weight"},
           {"next", "\"shape\":[1,", "\"shape\":[2,", "offsets"},
           {"next", "\"F32\"", "\"I32\"", "to be float32 of 1 ×"},
       }) {
    SCOPED_TRACE(std::string(c.operation) + ": " + c.what);
    const std::string said =
        said_of(c.operation, [&](std::string bytes) { return replaced(std::move(bytes), c.what, c.by); });
    EXPECT_THAT(said, AllOf(HasSubstr(c.words), HasSubstr("attnscope-test-")));
    EXPECT_EQ(said.find('\n'), said.npos);
  }
}

TEST(DamagedAnswers, ClaimNoLengthThatIsBelieved) {
  const auto with_length = [](std::size_t at, std::uint64_t length) {
    return [=](std::string bytes) {
      std::memcpy(bytes.data() + at, &length, at == 4 ? 4 : 8);
      return bytes;
    };
  };
  EXPECT_THAT(said_of("next", with_length(4, 0xffffffff)), HasSubstr("more than answers may have"));
  EXPECT_THAT(said_of("next", with_length(8, std::uint64_t{1} << 60)),
              HasSubstr("more than answers may have"));
  EXPECT_THAT(said_of("next",
                      [](std::string bytes) {
                        const float nan = std::numeric_limits<float>::quiet_NaN();
                        std::memcpy(bytes.data() + bytes.size() - 4, &nan, 4);
                        return bytes;
                      }),
              HasSubstr("not finite"));
}

TEST(DamagedAnswers, EndInWordsWhateverByteIsAnother) {
  random::Generator generator(7);
  for (const char* operation : {"hello", "tokens", "run", "maps", "layer", "parameters", "next"})
    for (int k = 0; k < 12; ++k)
      said_of(operation, [&](std::string bytes) {
        constexpr std::size_t behind_the_id = 30;  // with another ID the answer would still be awaited
        const auto at =
            generator.randint(2, 0, static_cast<std::int64_t>(std::min<std::size_t>(bytes.size(), 600)));
        bytes[std::max(behind_the_id, static_cast<std::size_t>(at[0])) % bytes.size()] =
            static_cast<char>(at[1]);
        return bytes;
      });
}

}  // namespace
}  // namespace core::transformer
