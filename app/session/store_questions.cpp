// The part of the store that waits for answers: what goes on after them, and what is read meanwhile.
#include "app/session/command.hpp"
#include "app/session/store.hpp"
#include "core/base/error.hpp"

namespace app {
namespace {

bool is_answered_in(Dialog dialog) {
  return dialog == Dialog::unsaved_work || dialog == Dialog::memory || dialog == Dialog::question ||
         dialog == Dialog::save_as;  // which asks for a name before something else goes on
}

bool has_browser(Dialog dialog) {
  return dialog == Dialog::open || dialog == Dialog::open_reference || dialog == Dialog::open_tensors ||
         dialog == Dialog::open_given || dialog == Dialog::save_as || dialog == Dialog::export_files;
}

}  // namespace

void Store::wait_for(const Command& next, bool is_for_writing) {
  if (!next.as<FinishOpening>()) drop_opened();
  waiting_.next = next;
  waiting_.is_for_writing = is_for_writing;
}

void Store::drop_opened() {
  if (found_.ready) jobs_.let_go(std::exchange(found_.ready, std::nullopt));
}

void Store::go_on() {
  if (waiting_.next) dispatch(*std::exchange(waiting_.next, std::nullopt));
}

void Store::stay() {
  if (waiting_.next && waiting_.next->as<FinishOpening>()) drop_opened();
  waiting_.next.reset();
  waiting_.given_up.reset();
  waiting_.is_for_writing = false;
}

void Store::take_when_answered(Jobs::Delivery was_read) {
  if (!was_read) return;
  if (!waiting_.next) return was_read();
  waiting_.was_read = std::move(was_read);
}

void Store::take_what_was_read() {
  if (waiting_.next || !waiting_.was_read) return;
  attempt("what was read", std::exchange(waiting_.was_read, {}));
}

void Store::close(Dialog dialog) {
  if (view_.forms.dialog == dialog) view_.forms.dialog = Dialog::none;
}

void Store::tidy() {
  // Whatever else was asked first, what was left by a window before is still to be answered.
  if (view_.forms.dialog == Dialog::none && !recorder_.left().empty() && !is_reading()) show_left();
  const Dialog open = view_.forms.dialog;
  if (waiting_.next && !waiting_.is_for_writing && !is_answered_in(open)) stay();
  if (found_.tensors && open != Dialog::import_tensors)
    jobs_.let_go(std::exchange(found_.tensors, std::nullopt));
  if (!view_.forms.browser.entries.empty() && !has_browser(open)) view_.forms.browser.entries = {};
}

void Store::read_for_document(const std::filesystem::path& path, const Jobs::Job& reading) {
  const auto layer = [this] { return document_.whole ? document_.whole->layer : 0; };
  read_beside(path,
              [this, path, reading, layer, of = document_.mark,
               of_layer = layer()](const core::Token& progress) -> Jobs::Delivery {
                return [this, path, layer, of, of_layer, delivery = reading(progress)] {
                  if (document_.mark != of || layer() != of_layer)
                    throw core::Error(path.string() +
                                      ": what it was read for is no longer there, nothing was changed");
                  delivery();
                };
              });
}

}  // namespace app
