// Times of a whole model: reading a text from its beginning, one more token, a head ablated, a layer edited.
//   attnscope_bench_whole MODEL THREADS
// Reads one command per line and prints one line each: wall-clock and CPU seconds of every repeat.
//   read N REPEATS      a text of N tokens up to the logits of the next one
//   one N REPEATS       one token after N with cached keys and values
//   off N REPEATS       a head of the second-to-last layer ablated in a text of N tokens
//   edit L N REPEATS    a query weight of layer L dragged in a text of N tokens, up to all displayed readings
//   logits N            logits of the token after a text of N tokens
//   onelogits N         the same after one more token with cached keys and values
//   memory              peak resident memory in KiB
// tests/bench/whole.py makes the model and runs the same on other programs.
#include <sys/resource.h>

#include <chrono>
#include <ctime>
#include <exception>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>

#include "core/base/thread_pool.hpp"
#include "core/model/text_reading.hpp"
#include "core/model/transformer.hpp"

namespace {

using namespace core::transformer;

/// Model that answers the commands.
class Bench {
 public:
  Bench(const std::string& path, std::size_t n_threads)
      : model_(open_transformer(path, std::numeric_limits<std::uint64_t>::max())), pool_(n_threads) {}

  void answer(const std::string& command) {
    std::istringstream words(command);
    std::string what;
    std::size_t layer = 0, n = 0, repeats = 1;
    words >> what;
    if (what == "edit") words >> layer;
    words >> n >> repeats;
    if (what == "memory") return print_memory();
    std::vector<std::size_t> text = ids(n);
    PassRef before;
    if (what == "logits") return print(logits_of(text, {}, before));
    if (what != "read") before = model_->run(text, {}, context());
    if (what == "onelogits") return print(logits_of(ids(n + 1), {}, before));
    if (what == "edit") return edit(layer, text, repeats);
    std::vector<PassEdit> edits;
    if (what == "off") edits = {AblatedHead{model_->description().sizes.n_layers - 2, 0}};
    for (std::size_t k = 0; k < repeats; ++k) {
      if (what == "one") text = ids(n + k + 1);
      PassRef pass;
      print_times([&] { logits_of(text, edits, pass); });
      if (what == "one") before = pass;
    }
    std::cout << std::endl;
  }

 private:
  void edit(std::size_t layer, const std::vector<std::size_t>& text, std::size_t repeats) {
    namespace experiment = core::experiment;
    experiment::Experiment plain;
    plain.text = "a", plain.made.assign(text.begin() + 1, text.end());
    experiment::TextReading reading = experiment::read(*model_, plain, nullptr, context());
    const core::attention::Model unedited = experiment::unedited_layer(*model_, reading, layer);
    for (std::size_t k = 0; k < repeats; ++k) {
      core::attention::Model dragged = unedited;
      dragged.projections->query.weight.set(0, 0, 0.01 * static_cast<double>(k + 1));
      const auto wanted = experiment::with_layer(plain, layer, unedited, dragged, "dragged");
      print_times([&] { reading = experiment::read(*model_, wanted, &reading, context()); });
    }
    std::cout << std::endl;
  }
  template <class Work>
  static void print_times(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    const double used = processor_seconds();
    work();
    std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << ' '
              << processor_seconds() - used << ' ';
  }
  static double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
  std::vector<std::size_t> ids(std::size_t n) const {
    std::vector<std::size_t> result;
    for (std::size_t k = 0; k < n; ++k)
      result.push_back((k * 7919 + 13) % model_->description().sizes.n_vocabulary);
    return result;
  }
  CallContext context() { return {pool_, progress_}; }
  /// Returns the logits after a text and stores its pass; reuses computations of kept passes.
  arma::frowvec logits_of(const std::vector<std::size_t>& text, const std::vector<PassEdit>& edits,
                          PassRef& pass) {
    pass = model_->run(text, edits, context());
    return model_->next(*pass, text.size() - 1, context());
  }
  static void print(const arma::frowvec& logits) {
    std::cout.precision(9);
    for (const float logit : logits) std::cout << logit << ' ';
    std::cout << std::endl;
  }
  static void print_memory() {
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    std::cout << use.ru_maxrss << std::endl;
  }

  std::shared_ptr<const Transformer> model_;
  core::ThreadPool pool_;
  core::StopToken progress_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: attnscope_bench_whole MODEL THREADS\n";
    return 2;
  }
  try {
    Bench bench(arguments[1], std::stoul(arguments[2]));
    for (std::string line; std::getline(std::cin, line);) bench.answer(line);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
