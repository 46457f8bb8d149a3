#include "app/session/file_work.hpp"

namespace app {

void FileReader::begin(const std::filesystem::path& path, const Jobs::Job& reading,
                       const Jobs::Failed& failed) {
  lane_.cancel();
  path_ = path;
  is_aside_ = false;
  lane_.start(reading, failed);
}

Document document_of(const OpenedWhole& opened, Origin origin) {
  const core::experiment::Experiment& first = opened.reading->experiment;
  Document document = document_of(opened.layer, std::move(origin));
  document.whole = std::make_shared<const WholeModel>(WholeModel{
      opened.model, first, first.layer, opened.of_pass, opened.reading->pass->computed(first.layer)});
  document.saved_experiment = first;
  return document;
}

void look_at_layers(View& view) {
  view.layers.token.reset();
  view.layers.refused.reset();
  view.layers.shows_effects = false;
  view.look.tab = Tab::layers;
  view.look.head = 0;
}

}  // namespace app
