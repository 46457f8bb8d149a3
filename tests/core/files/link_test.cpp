#include "core/files/link.hpp"

#include <gmock/gmock.h>

#include "core/base/error.hpp"
#include "core/base/packing.hpp"
#include "core/editing/presets.hpp"

namespace core::formats {
namespace {

std::string error_of(const std::string& text) {
  try {
    const Link link = parse_link(text);
    if (!link.session.empty()) parse_linked_session(link.session);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string link_to(const std::string& session) {
  return link_text({.session = session});
}

TEST(Packing, Base64IsThatOfRfc4648) {
  for (const auto& [bytes, text] :
       std::initializer_list<std::pair<std::string, std::string>>{{"", ""},
                                                                  {"f", "Zg=="},
                                                                  {"fo", "Zm8="},
                                                                  {"foo", "Zm9v"},
                                                                  {"foob", "Zm9vYg=="},
                                                                  {"\xfb\xff\xfe", "+//+"}})
    EXPECT_EQ(packing::base64(bytes), text);
  EXPECT_EQ(packing::base64url("\xfb\xff\xfe"), "-__-");
  EXPECT_EQ(packing::parse_base64url("Zm9vYg"), "foob");
  for (const char* damaged : {"Zm9vY", "Zm9v Yg", "Zm9vYg==", "Zm9vYh", "+//+"})
    EXPECT_FALSE(packing::parse_base64url(damaged)) << damaged;
}

TEST(Packing, InflatesWhatWasDeflatedUpToALimit) {
  const std::string bytes = std::string(100'000, 'a') + std::string("\0b", 2);
  EXPECT_LT(packing::deflated(bytes).size(), 1000u);
  EXPECT_EQ(packing::inflated(packing::deflated(bytes), bytes.size()), bytes);
  EXPECT_EQ(packing::inflated(packing::deflated(""), 0), "");
  EXPECT_THROW(packing::inflated(packing::deflated(bytes), bytes.size() - 1), Error);
  const std::string whole = packing::deflated(bytes);
  EXPECT_THROW(packing::inflated(whole.substr(0, whole.size() / 2), bytes.size()), Error);
  EXPECT_THROW(packing::inflated(whole + "x", bytes.size()), Error);
}

TEST(Link, CarriesASessionToTheLastBit) {
  attention::Model model = editing::find_preset("multi-head")->make();
  model.sequences[0].embeddings.set(1, 2, 0.1 + 0.2);
  const std::string session = session_text({model, "{\"tab\": \"heads\"}"});
  const std::string link = link_to(session);
  EXPECT_TRUE(link.starts_with("attnscope:#s="));
  EXPECT_TRUE(is_link(link));
  const Session read = parse_linked_session(parse_link(" " + link + "\n").session);
  EXPECT_EQ(read.model, model);
  EXPECT_EQ(session_text(read), session);
  // Whatever address the page has.
  EXPECT_EQ(parse_link("https://example.org/x/" + link.substr(link.find('#'))).session, session);
}

TEST(Link, NamesAPresetOrAStepOfALesson) {
  const Link preset = parse_link("attnscope:#preset=multi-head&view=heads&head=1");
  EXPECT_EQ(preset.preset, "multi-head");
  EXPECT_EQ(preset.view, "heads");
  EXPECT_EQ(preset.head, 1u);
  EXPECT_EQ(link_text(preset), "attnscope:#preset=multi-head&view=heads&head=1");
  const Link lesson = parse_link("attnscope:#lesson=000.5");
  EXPECT_EQ(lesson.lesson, "000");
  EXPECT_EQ(lesson.step, 4u);
  EXPECT_EQ(link_text(lesson), "attnscope:#lesson=000.5");
}

TEST(Link, IsNoPath) {
  for (const char* path :
       {"a.json", "/tmp/#s=x.json", "#s=abc", "C:\\a#preset=b", "https.json", "folder/attnscope:"})
    EXPECT_FALSE(is_link(path)) << path;
}

TEST(Link, ThatIsWrongGetsOneLine) {
  const std::string good = link_to(session_text({editing::find_preset("004-causal")->make(), ""}));
  const std::initializer_list<std::pair<std::string, std::string>> cases{
      {"attnscope:", "link: expected #s=, #preset= or #lesson=, got \"attnscope:\""},
      {"attnscope:#", "link: expected one of #s=, #l=, #preset= and #lesson=, got \"\""},
      {"attnscope:#preset=a&lesson=b",
       "link: expected one of #s=, #l=, #preset= and #lesson=, got \"preset=a&lesson=b\""},
      {"attnscope:#lesson=000.x",
       "link: expected the step of a lesson to be a whole number from 1 on, got \"x\""},
      {"attnscope:#lesson=000.0",
       "link: expected the step of a lesson to be a whole number from 1 on, got \"0\""},
      {"attnscope:#lesson=000&head=1",
       "link: expected view and head with a preset, got \"lesson=000&head=1\""},
      {"attnscope:#preset=a&view=b#preset=a&view=b", "link: expected view= once, got"},
      {"attnscope:#preset=", "link: expected a value after preset=, got \"preset=\""},
      {"attnscope:#file=/etc/passwd",
       "link: expected s, l, preset, lesson, view or head, got \"file=/etc/passwd\""},
      {"attnscope:#s=a+b", "link: expected a whole link: letters, digits, - and _ after #s=, got \"a+b\""},
      {good.substr(0, good.size() - 40), "the link may have been cut"},
      {link_to(std::string(max_linked_bytes, ' ')), "link: "},
      {link_to("{\"attnscope\": 1, \"embeddings\": {\"file\": \"a.npy\"}}"), "as a link opens no file"},
      {link_to(
           "{\"attnscope\": 1, \"embeddings\": [[1]], \"given\": {\"weights\": [[[{\"file\": \"a\"}]]]}}"),
       "as a link opens no file"},
      {link_to("{\"attnscope\": 1, \"embeddings\": [1, {\"file\": \"a.npy\"}], \"mask\": []}"),
       "as a link opens no file"},
      {link_to("{\"attnscope\": 1, \"whole_model\": {\"model\": \"tiny\"}}"), "as a link opens no file"},
      {link_to("{\"attnscope\": 1, \"embeddings\": 3}"), "link: embeddings: expected"}};
  for (const auto& [link, expected] : cases) {
    const std::string error = error_of(link);
    EXPECT_THAT(error, testing::StartsWith("link: ")) << link.substr(0, 80);
    EXPECT_THAT(error, testing::HasSubstr(expected)) << link.substr(0, 80);
    EXPECT_EQ(error.find('\n'), error.npos);
  }
  EXPECT_THROW(link_to(std::string(max_linked_bytes + 1, ' ')), Error);
}

}  // namespace
}  // namespace core::formats
