// Journals of a page, in the database of the browser. A page holds a lock of the browser on each of its own
// until it ends, so that other pages leave it alone; those that no page held are taken over before the
// program starts.
#include <emscripten.h>

#include <cstdlib>
#include <memory>
#include <sstream>

#include "app/session/journal.hpp"

// clang-format off
EM_JS(void, page_write_journal, (const char* name, const char* text), { Module.page.journals.write(UTF8ToString(name), UTF8ToString(text)); });
EM_JS(char*, page_read_journal, (const char* name), { return stringToNewUTF8(Module.page.journals.read(UTF8ToString(name))); });
EM_JS(char*, page_take_leftovers, (), { return stringToNewUTF8(Module.page.journals.takeLeftovers().join("\n")); });
// clang-format on

namespace app {
namespace {

using PageText = std::unique_ptr<char, void (*)(void*)>;

std::string text_of(const std::filesystem::path& name) {
  return PageText(page_read_journal(name.c_str()), std::free).get();
}

}  // namespace

Journal::Journal(const std::filesystem::path&) : content_(core::system::random_name()) {}

Journal::Journal(std::filesystem::path name, core::system::LockFile) : content_(std::move(name)) {}

Journal::~Journal() = default;

std::vector<std::shared_ptr<Journal>> Journal::leftovers_in(const std::filesystem::path& folder) {
  std::vector<std::shared_ptr<Journal>> left;
  std::istringstream names(PageText(page_take_leftovers(), std::free).get());
  for (std::string name; std::getline(names, name);) {
    left.push_back(std::make_shared<Journal>(folder));
    left.back()->content_ = name;
  }
  return left;
}

void Journal::write(const JournalHeader& header, const JournalSessions& sessions) {
  page_write_journal(content_.c_str(), journal_text(header, sessions).c_str());
}

JournalHeader Journal::header() const {
  return parse_journal_header(text_of(content_), content_.string());
}

JournalSessions Journal::texts() const {
  return parse_journal_sessions(text_of(content_), content_.string());
}

void Journal::clear() {
  page_write_journal(content_.c_str(), "");
}

}  // namespace app
