config { a = 1 + true; b = -"x"; c = not 3; d = sqrt(2, 3); e = "a" < "b"; f = select(1, 2, 3); g = log2(8) }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! number_operators.mt:1:14: error MT0247: '+' does not take true
# !      1 | config { a = 1 + true; b = -"x"; c = not 3; d = sqrt(2, 3); e = "a" < "b"; f = select(1, 2, 3); g = …
# !        |              ^~~~~~~~
# ! number_operators.mt:1:28: error MT0247: '-' does not take "x"
# !      1 | config { a = 1 + true; b = -"x"; c = not 3; d = sqrt(2, 3); e = "a" < "b"; f = select(1, 2, 3); g = …
# !        |                            ^~~~
# ! number_operators.mt:1:38: error MT0247: 'not' does not take 3
# !      1 | config { a = 1 + true; b = -"x"; c = not 3; d = sqrt(2, 3); e = "a" < "b"; f = select(1, 2, 3); g = …
# !        |                                      ^~~~~
# ! number_operators.mt:1:49: error MT0241: sqrt takes 1 argument, got 2
# !      1 | config { a = 1 + true; b = -"x"; c = not 3; d = sqrt(2, 3); e = "a" < "b"; f = select(1, 2, 3); g = …
# !        |                                                 ^~~~~~~~~~
# ! number_operators.mt:1:65: error MT0247: '<' does not take "a"
# !      1 | config { a = 1 + true; b = -"x"; c = not 3; d = sqrt(2, 3); e = "a" < "b"; f = select(1, 2, 3); g = …
# !        |                                                                 ^~~~~~~~~
# ! number_operators.mt:1:80: error MT0247: 'select' does not take 1
# !      1 | …= sqrt(2, 3); e = "a" < "b"; f = select(1, 2, 3); g = log2(8) }
# !        |                                   ^~~~~~~~~~~~~~~
# ! number_operators.mt:1:101: error MT0222: no function 'log2' of numbers
# !      1 | … < "b"; f = select(1, 2, 3); g = log2(8) }
# !        |                                   ^~~~~~~
