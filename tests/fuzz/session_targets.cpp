#include <array>
#include <map>

#include "app/session/recovery.hpp"
#include "app/session/remembered.hpp"
#include "core/editing/presets.hpp"
#include "core/files/json.hpp"
#include "core/files/link.hpp"
#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "core/model/experiment.hpp"
#include "core/training/run_files.hpp"
#include "tests/fuzz/targets.hpp"

namespace fuzz {
namespace {

using namespace core::formats;

Seeds session_seeds() {
  Seeds seeds;
  for (const char* name :
       {"004-causal", "multi-head", "modern-rotary", "modern-alibi", "modern-cross", "head-induction"})
    seeds.push_back(session_text({core::editing::find_preset(name)->make(), "{\"tab\": 1}"}));
  seeds.push_back(R"({"attnscope": 1, "embeddings": [[0], [1]], "scale": 0, "tokens": ["a", "b"]})");
  seeds.push_back(R"({"attnscope": 1, "given": {"weights": [[[1, "inf"], [0, 1]]]}, "heads_off": [0]})");
  seeds.push_back(R"({"attnscope": 1, "embeddings": {"file": "../a.npy", "tensor": "x", "at": [1]}})");
  seeds.push_back(
      R"({"attnscope":1,"embeddings":[[1,2],[3,4]],"mask":{"window":[1,0],"cells":[[1,0,false]]},)"
      R"("dropout":{"rate":0.5,"mask":[[[1,0],[0,1]]]}})");
  return seeds;
}

/// Expects any session that can be read to survive writing and rereading.
void run_session(Bytes bytes) {
  attempt([&] {
    const Session session = parse_session(bytes, "/nowhere/a.json");
    const std::string written = session_text(session);
    expect(session_text(parse_session(written, "/nowhere/a.json")) == written, "a session reads back");
    if (session.model.n_tokens() <= 16 && session.model.sequences.size() <= 4)
      core::attention::attend(session.model, 0);
  });
}

/// Expects a link to survive writing and rereading, and reads its session.
void run_link(Bytes bytes) {
  attempt([&] {
    const Link link = parse_link(bytes);
    const Link again = parse_link(link_text(link));
    expect(again.session == link.session && again.preset == link.preset && again.lesson == link.lesson &&
               again.step == link.step && again.view == link.view && again.head == link.head,
           "a link reads back");
    if (!link.session.empty()) parse_linked_session(link.session);
  });
}

Seeds link_seeds() {
  return {"attnscope:#preset=multi-head&view=heads&head=1", "https://example.org/#lesson=000.5",
          link_text({.session = session_text({core::editing::find_preset("004-causal")->make(), ""})})};
}

void run_json(Bytes bytes) {
  attempt([&] {
    const std::string written = json_text(parse_json(bytes, "a.json"));
    expect(json_text(parse_json(written, "a.json")) == written, "JSON reads back");
  });
}

Seeds json_seeds() {
  return {R"({"a": [1, -0, 1e-5, "b\u202e", null, true, {}]})", "[[[[]]]]", "1e400"};
}

/// Reads the part of a whole-model session that is read before the model is opened.
void run_experiment(Bytes bytes) {
  attempt(
      [&] { core::experiment::parse_experiment(bytes, "/nowhere/a.json", core::UntrustedPaths::refused); });
}

Seeds experiment_seeds() {
  return {
      R"({"attnscope": 1, "whole_model": {"model": "tiny", "bytes": 12, "begin": "00", "text": "the", "made": [1],)"
      R"( "layer": 0, "heads_off": [[1, 0]], "edits": [{"layer": 1, "words": [], "inputs": [[0, 1, 2.5]]}]},)"
      R"( "view": {"tab": "layers"}})"};
}

/// Expects a journal to survive writing and rereading, and reads its session.
void run_journal(Bytes bytes) {
  attempt([&] {
    const app::JournalHeader header = app::parse_journal_header(bytes, "a.journal");
    const app::JournalSessions texts = app::parse_journal_sessions(bytes, "a.journal");
    const std::string written = app::journal_text(header, texts);
    expect(app::journal_text(app::parse_journal_header(written, "a.journal"), texts) == written,
           "its head reads back");
    const app::JournalSessions again = app::parse_journal_sessions(written, "a.journal");
    expect(again.own == texts.own && again.in_lesson == texts.in_lesson, "its sessions read back");
    expect(app::journal_summary(header, "2026-11-22 10:32").find(header.has_run ? "run" : "edit") !=
               std::string::npos,
           "it can be offered");
    parse_session(texts.own, "a.journal");
  });
}

/// Expects the session of a run of training to survive writing and rereading.
void run_run(Bytes bytes) {
  attempt([&] {
    const std::string text = core::training::run_session(core::training::parse_run(bytes, "a.json"));
    expect(core::training::run_session(core::training::parse_run(text, "a.json")) == text,
           "a run reads back");
  });
}

Seeds run_seeds() {
  using namespace core::training;
  SavedRun run{find_task("recall")->setup, std::make_shared<TaskData>(*find_task("recall")), {}, 5, 1.25};
  const std::string plain = run_session(run);
  run.data = std::make_shared<TaskData>("a \"text\"", "a");
  run.changes = {{HeadToggle{1, 0}, 2}, {MatrixChange{"unembedding", arma::mat(1, 2)}, 3, true}};
  run.changes.push_back({run.setup, 5});
  return {plain, run_session(run)};
}

Seeds journal_seeds() {
  app::JournalHeader in_lesson{"Causal",           "/tmp/a\xff.json",  "12 34",
                               "2026-11-22 10:32", "2026-11-21 23:59", 14};
  in_lesson.lesson = "causal", in_lesson.lesson_title = "Causal attention", in_lesson.lesson_step = 3;
  const std::string session = session_seeds().back();
  return {app::journal_text({"Weights \u202e"}, {session, ""}),
          app::journal_text(in_lesson, {session, session})};
}

/// Restores the valid parts of a view, and expects them to survive writing and rereading.
void run_view(Bytes bytes) {
  app::View view;
  attempt([&] {
    app::restore_view(std::string(bytes), view);
    const std::string text = app::view_text(view);
    app::View again;
    app::restore_view(text, again);
    expect(app::view_text(again) == text, "a view reads back");
  });
}

Seeds view_seeds() {
  app::View view;
  view.look.head = 2;
  return {app::view_text(view),
          R"({"tab": "tokens", "pinned": {"stage": "weights", "row": 1, "column": 0}})"};
}

/// Reads lines of "key=value", the format of the window's settings.
void run_settings(Bytes bytes) {
  std::map<std::string, std::string> settings;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const Bytes line = bytes.substr(at, end - at);
    const std::size_t sign = std::min(line.find('='), line.size());
    settings[std::string(line.substr(0, sign))] = line.substr(std::min(sign + 1, line.size()));
    at = end + 1;
  }
  app::View view;
  app::apply_settings(settings, view);
  const auto kept = app::saved_settings(view);
  app::View again;
  app::apply_settings(kept, again);
  expect(app::saved_settings(again) == kept, "settings read back");
}

Seeds settings_seeds() {
  std::string text;
  app::View view;
  view.forms.used_actions = {"model/causal", "view/present"};
  for (const auto& [key, value] : app::saved_settings(view)) text += key + "=" + value + "\n";
  return {text};
}

const std::array session_table{
    Target{"session",
           run_session,
           session_seeds,
           {"\"departures\":{", "\"rotary\":{", "\"alibi\"", "\"relative\":{", "\"score_cap\":", "\"sink\":",
            "\"normalise\":{", "\"n_kv_heads\":", "\"query_offset\":", "\"documents\":[",
            "\"key_embeddings\":", "\"snapshots\":[", "\"inverse_frequencies\":[",
            "\"blocks\":", "\"softmax_over\":", "\"context_length\":", "\"projections\":{"}},
    Target{"link", run_link, link_seeds, {"attnscope:#", "s=", "preset=", "&view=", "lesson=", "&head="}},
    Target{"json", run_json, json_seeds, {"\\ud83d\\ude42", "-0.0", "1e308"}},
    Target{"experiment",
           run_experiment,
           experiment_seeds,
           {"\"keeps_norm\":", "\"unchanged\":", "\"rules\":", "\"projections\":{"}},
    Target{"run", run_run, run_seeds, {"\"diverged\": true", "\"head\": [0, 1]"}},
    Target{"journal", run_journal, journal_seeds, {"\"edits\": 0", "\x1e"}},
    Target{"view",
           run_view,
           view_seeds,
           {"\"decoded\":", "\"heads_order\":", "\"layers\":{", "\"typed_values\":", "\"range\":["}},
    Target{"settings", run_settings, settings_seeds},
};

}  // namespace

std::span<const Target> session_targets() {
  return session_table;
}

}  // namespace fuzz
