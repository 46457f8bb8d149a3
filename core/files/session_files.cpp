#include "core/files/session_files.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <system_error>

#include "core/files/composed_weights.hpp"
#include "core/files/layers.hpp"
#include "core/files/readers.hpp"
#include "core/files/session_parts.hpp"
#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/validation.hpp"
#include "core/system/file.hpp"

namespace core::formats {

namespace {

namespace fs = std::filesystem;

/// Returns the model folder of a snapshot in Hugging Face's cache, whose files are links to blobs next to it:
/// models--gpt2/snapshots/1a2b/model.safetensors leads to models--gpt2/blobs/3c4d. Else the folder itself.
fs::path with_blobs(const fs::path& folder) {
  for (fs::path snapshot = folder; snapshot.has_relative_path(); snapshot = snapshot.parent_path())
    if (const fs::path model = snapshot.parent_path().parent_path();
        snapshot.parent_path().filename() == "snapshots" && model.filename().native().starts_with("models--"))
      return model;
  return folder;
}

bool resolves_inside(const fs::path& path, const fs::path& root) {
  std::error_code error;
  const fs::path end = fs::weakly_canonical(fs::absolute(path, error), error);
  return !error && std::ranges::mismatch(root, end).in1 == root.end();
}

/// Returns a link that leads out of home, in a folder or its sequence folders; the folder itself if it cannot
/// be listed; "" if there is none.
///
/// Tensors of several sequences are in folders sequence0, sequence1 …; no reader opens other subfolders, or
/// one that cannot be listed.
fs::path find_outside_link(const fs::path& folder, const fs::path& root, bool has_folders = true) {
  const system::Listing listing = system::list_folder(folder);
  for (const fs::path& entry : listing.paths) {
    std::error_code ignored;
    if (fs::is_symlink(entry, ignored) && !resolves_inside(entry, root)) return entry;
    if (!has_folders || !entry.filename().native().starts_with("sequence") || !system::is_folder(entry))
      continue;
    if (const fs::path out = find_outside_link(entry, root, false); !out.empty() && out != entry) return out;
  }
  return listing.error != 0 ? folder : fs::path();
}

fs::path home_of(const fs::path& folder, std::error_code& error) {
  return with_blobs(fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, error));
}

}  // namespace

bool is_within(const fs::path& path, const fs::path& folder) {
  if (!path.is_relative() || std::ranges::find(path, "..") != path.end()) return false;
  std::error_code error;
  const fs::path root = home_of(folder, error);
  if (error || !resolves_inside(folder / path, root)) return false;
  return !system::is_folder(folder / path) || find_outside_link(folder / path, root).empty();
}

fs::path path_in_session(const fs::path& path, const fs::path& folder) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(path, ignored).lexically_normal(),
                 relative = whole.lexically_relative(
                     fs::absolute(folder.empty() ? "." : folder, ignored).lexically_normal());
  return relative.empty() || *relative.begin() == ".." ? whole : relative;
}

std::string link_target_text(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path root = home_of(folder, error);
  // Returns "" if the name shows it already.
  const auto link_target = [&error](const fs::path& named) {
    const fs::path end = fs::weakly_canonical(fs::absolute(named, error), error);
    return end == fs::absolute(named, error).lexically_normal() ? "" : json_quoted(end.string());
  };
  std::string words;
  if (!resolves_inside(folder / path, root)) {
    if (const std::string end = link_target(folder / path); !end.empty())
      words = ", which leads to " + end + ",";
  } else if (system::is_folder(folder / path)) {
    const fs::path out = find_outside_link(folder / path, root),
                   within = out.lexically_relative(folder / path);
    if (within == ".")
      words = ", which cannot be looked into,";
    else if (!out.empty())
      words = ", in which " + json_quoted(within.string()) + " leads to " + link_target(out) + ",";
  }
  return error ? "" : words;
}

void rethrow_redacted(const std::string& place, const fs::path& path, const fs::path& folder) {
  try {
    throw;
  } catch (const Stopped&) {
    throw;
  } catch (const UntrustedPath&) {
    throw;
  } catch (const Error&) {
    std::error_code error;
    if (is_within(path, folder) || !fs::exists(folder / path, error)) throw;
    throw Error(
        place + quoted_briefly(path.string()) +
        " cannot be used as the session wants it; it does not lie beside the session, so nothing of what "
        "it holds is quoted: open it by itself to see why");
  }
}

namespace {

namespace fs = std::filesystem;

/// Content that a session reads from a file: tensors, or a checkpoint layer with its configuration.
enum class ReferenceKind { tensors, layer };

/// Returns the paths outside the session's folder among a file and those read with it: shards of an index,
/// config.json. is_within() checks the content of folders.
std::vector<fs::path> untrusted_paths_of(const fs::path& file, const fs::path& folder, ReferenceKind kind) {
  if (!is_within(file, folder)) return {file};
  if (!system::is_file(folder / file)) return {};
  std::vector<std::string> names = readers::list_shards(folder / file);
  if (readers::shard_number(file)) names = readers::list_numbered_shards(folder / file);
  if (kind == ReferenceKind::layer) {
    names.emplace_back("config.json"), names.emplace_back("params.json");
    for (const char* adapter : checkpoints::adapter_files()) names.emplace_back(adapter);
  }
  std::vector<fs::path> untrusted_paths;
  for (const std::string& name : names)
    if (const fs::path with = file.parent_path() / name; !is_within(with, folder))
      untrusted_paths.push_back(with);
  return untrusted_paths;
}

TensorFile open_reference(const Json& place, const SessionFolder& folder, ReferenceKind kind) {
  const Json name = place.required("file");
  const fs::path file = name.text();
  if (name.text().find('\0') != std::string::npos) name.fail("the name of a file");
  if (folder.untrusted_paths == UntrustedPaths::refused)
    for (const fs::path& path : untrusted_paths_of(file, folder.path, kind))
      throw UntrustedPath(name.place() + "the file " + quoted_briefly(path.string()) +
                          link_target_text(path, folder.path) + " does not lie beside the session");
  return open_tensors(folder.path / file);
}

std::vector<std::string> ignored_names(const Json& place) {
  const auto list = place.member("ignore");
  return list ? list->texts("a list of what is left out") : std::vector<std::string>();
}

/// Throws core::Error unless the session ignores every unsupported feature of a checkpoint layer.
void require_ignored(const Json& place, const checkpoints::LayerRules& rules) {
  const auto ignored = ignored_names(place);
  for (const checkpoints::Feature* feature : rules.not_supported)
    if (std::ranges::find(ignored, feature->name) == ignored.end())
      place.fail(
          "a layer without " + rules.words_of(*feature) + ", or \"ignore\": [\"" + feature->name + "\"]",
          "one with them");
}

Tensor read_tensor_reference(const Json& place, const SessionFolder& folder) {
  place.expect_keys({"file", "tensor", "at"});
  const TensorFile file = open_reference(place, folder, ReferenceKind::tensors);
  const auto name = place.member("tensor");
  if (!name && file.tensors().size() != 1)
    place.fail(fmt::format("the key \"tensor\", as there are {} of them in the file", file.tensors().size()));
  std::vector<std::size_t> leading;
  if (const auto at = place.member("at"))
    for (const Json& index : at->items("a list of indices")) leading.push_back(index.whole(0));
  return file.read(name ? name->text() : file.tensors().front().name, leading);
}

ReferencedLayer read_layer_reference(const Json& place, const SessionFolder& folder,
                                     std::optional<std::size_t> n_heads) {
  place.expect_keys({"file", "layer", "ignore"});
  const checkpoints::Checkpoint checkpoint = checkpoints::read_checkpoint(
      std::make_shared<const TensorFile>(open_reference(place, folder, ReferenceKind::layer)));
  const TensorFile& file = *checkpoint.file;
  const auto chosen = place.member("layer");
  const std::string name = !chosen             ? "0"
                           : chosen->is_text() ? chosen->text()
                                               : std::to_string(chosen->whole(0));
  const checkpoints::Layer& layer = checkpoints::choose_layer(checkpoint.layers, name, file.place());
  const auto rules =
      checkpoints::infer_layer_rules(checkpoint, layer, checkpoint.config, ignored_names(place));
  require_ignored(place, rules);
  StopToken progress;
  ReferencedLayer read{
      checkpoints::read_attention(file, rules.mapping,
                                  checkpoints::resolve_head_count(file, layer, rules, n_heads), progress),
      {}};
  const std::size_t n = read.attention.n_heads;
  const std::size_t d_head = read.attention.projections.query.weight->n_cols / n;
  read.additions =
      checkpoints::read_additions(file, rules, n, read.attention.n_kv_heads.value_or(n), d_head, progress);
  return read;
}

/// Returns read(); errors do not quote files outside the session's folder.
template <class Read>
auto with_redacted_errors(const Json& place, const SessionFolder& folder, ReferenceKind kind, Read read) {
  try {
    return read();
  } catch (const Error&) {
    const Json name = place.required("file");
    if (folder.untrusted_paths == UntrustedPaths::refused) throw;
    std::error_code ignored;
    for (const fs::path& path : untrusted_paths_of(name.text(), folder.path, kind))
      if (fs::exists(folder.path / path, ignored))
        rethrow_redacted(name.place() + "the file ", path, folder.path);
    throw;
  }
}

}  // namespace

bool is_file_reference(const Json& place) {
  return place.member("file").has_value();
}

arma::mat read_referenced_matrix(const Json& place, const SessionFolder& folder) {
  return with_redacted_errors(place, folder, ReferenceKind::tensors, [&] {
    arma::mat read = matrix(read_tensor_reference(place, folder));
    require_count(place, read.n_rows, attention::max_tokens, "rows");
    return read;
  });
}

std::vector<std::string> read_referenced_texts(const Json& place, const SessionFolder& folder) {
  return with_redacted_errors(place, folder, ReferenceKind::tensors, [&] {
    Tensor tensor = read_tensor_reference(place, folder);
    if (tensor.dtype != Dtype::text || tensor.shape.size() != 1)
      place.fail("a list of texts in the file",
                 std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape));
    require_count(place, tensor.texts.size(), attention::max_tokens, "tokens");
    return std::move(tensor.texts);
  });
}

TensorStage read_referenced_stage(const Json& place, const SessionFolder& folder, attention::Stage stage) {
  return with_redacted_errors(place, folder, ReferenceKind::tensors, [&] {
    return stage_from_tensor(read_tensor_reference(place, folder), stage, 1, place.place());
  });
}

void fail_about_reference(const Json& place, const SessionFolder& folder, const std::string& expected,
                          const std::string& got) {
  if (is_file_reference(place))
    with_redacted_errors(place, folder, ReferenceKind::tensors, [&] { place.fail(expected, got); });
  place.fail(expected, got);
}

ReferencedLayer read_referenced_layer(const Json& place, const SessionFolder& folder,
                                      std::optional<std::size_t> n_heads) {
  return with_redacted_errors(place, folder, ReferenceKind::layer,
                              [&] { return read_layer_reference(place, folder, n_heads); });
}

std::vector<std::string> ignored_features(const Json& projections) {
  std::vector<std::string> words;
  for (const std::string& name : ignored_names(projections))
    for (const checkpoints::Feature& feature : checkpoints::features())
      if (name == feature.name) words.emplace_back(feature.words);
  return words;
}

}  // namespace core::formats
