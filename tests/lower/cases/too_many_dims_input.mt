dim a = 2
dim b = 2
dim c = 2
dim d = 2
dim e = 2
dim f = 2
dim g = 2
dim h = 2
dim i = 2
model M(x: [a, b, c, d, e, f, g, h, i]) -> (p: [a]) { p = x }
# ! too_many_dims_input.mt:10:37: error MT0215: more than 8 dims
# !     10 | model M(x: [a, b, c, d, e, f, g, h, i]) -> (p: [a]) { p = x }
# !        |                                     ^
