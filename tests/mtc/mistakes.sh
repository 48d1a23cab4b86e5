. "$(dirname "$0")/lib.sh"
# mistakes that people make, each as one edit of a shipped model: the message, and the line of the edit
#
#   mistake MODEL CODE WORDS SED
mistake() {
  sed "$4" "$ROOT/models/$1.mt" > "$1.mt"
  if cmp -s "$ROOT/models/$1.mt" "$1.mt"; then echo "$1: no edit: $4"; status=1; return; fi
  line=$(diff "$ROOT/models/$1.mt" "$1.mt" | sed -n '1s/^\([0-9]*\).*/\1/p')
  "$MTC" check "$1.mt" --preset demo > out 2> err
  [ $? = 1 ] && grep -q "error $2:" err && grep -qF "$3" err || { echo "$1, line $line, $4: wanted $2 with '$3'"; cat out err; status=1; }
  [ "$(grep -c 'error MT' err)" = 1 ] || { echo "$1, $4: not one message"; cat err; status=1; }
}

mistake gpt2 MT0206 'rename[seq -> kseq](k)?'                         's/^  k, v = rename.*//'
mistake gpt2 MT0201 'dims do not fit: pos is not in gather[vocab](wte, tokens)' 's/slice\[pos -> seq\](wpe)/wpe/'
mistake gpt2 MT0201 'slice[pos -> seq](wpe)?'                         's/slice\[pos -> seq\](wpe)/wpe/; s/pos   = maxpos/pos   = maxpos * 2/'
mistake gpt2 MT0203 'write x @[heads, hd] w to contract both'         's/return x @\[i\] w + b/return x @ w + b/'
mistake gpt2 MT0240 'LayerNorm takes 1 dim, got none'                 's/LayerNorm\[embed\](x) as ln_f/LayerNorm(x) as ln_f/'
mistake gpt2 MT0262 'two parameters are called h.0.weight'            's/LayerNorm\[embed\](x) as ln_1/LayerNorm[embed](x)/; s/LayerNorm\[embed\](x) as ln_2/LayerNorm[embed](x)/'
mistake gpt2 MT0262 'two parameters are called h.0.ln_1.weight'       's/ as ln_2/ as ln_1/'
mistake llama MT0303 'require nheads % nkv == 1 fails'                's/require nheads % nkv == 0/require nheads % nkv == 1/'
mistake llama MT0261 'names 3, gate is 2'                             's/{gate:gate_proj,up_proj}/{gate:gate_proj,up_proj,x_proj}/'
mistake bert MT0206 'which lacks kseq'                                's/expand\[batch\](index(kseq)) < lengths/expand[batch](index(seq)) < lengths/'
mistake moe MT0213 'write mean[…](float(i32(chosen)))'                's/f32(chosen)) \/ topk/i32(chosen)) * 0.5/'
mistake moe MT0212 'write select(chosen, prob, 0)'                    's/weight = select(chosen, prob, 0)/weight = chosen * prob/'
mistake moe MT0223 "'topk' is a config"                               's/^  total = 0.0/  total = 0.0; topk = 1/'
mistake gpt2 MT0221 "did you mean 'logits'?"                          's/cross_entropy\[vocab\](logits, labels)/cross_entropy[vocab](logit, labels)/'
mistake gpt2 MT0222 "did you mean 'gelu'?"                            's/h = gelu(/h = gelue(/'
mistake gpt2 MT0220 "did you mean 'embed'?"                           's/x = LayerNorm\[embed\](x) as ln_f/x = LayerNorm[embd](x) as ln_f/'
mistake gpt2 MT0208 'MLP promises [batch, seq, embed], returns float[batch, seq, ff]' 's/return Conv1D\[ff, embed\](h, std.*/return h/'
exit $status
