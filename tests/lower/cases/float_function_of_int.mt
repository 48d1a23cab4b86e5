dim batch
dim seq = 4
model M(tokens: i32[batch, seq]) -> (a: [batch, seq], b: [batch], c: [batch, seq]) {
  a = exp(tokens)
  b = mean[seq](tokens)
  c = tokens / 2
}
# ! float_function_of_int.mt:4:7: error MT0213: exp needs a float, tokens is i32[batch, seq]
# !      4 |   a = exp(tokens)
# !        |       ^~~~~~~~~~~
# !          write exp(float(tokens))
# ! float_function_of_int.mt:5:7: error MT0213: mean needs a float, tokens is i32[batch, seq]
# !      5 |   b = mean[seq](tokens)
# !        |       ^~~~~~~~~~~~~~~~~
# !          write mean[…](float(tokens))
# ! float_function_of_int.mt:6:7: error MT0213: integers have no '/': tokens is i32[batch, seq]
# !      6 |   c = tokens / 2
# !        |       ^~~~~~~~~~
# !          write float(tokens) / …, or floor(float(tokens) / …)
