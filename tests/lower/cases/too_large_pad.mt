# mtc --mesh tp=1048576
dim batch
dim a = 9007199254740992 pad 9007199254740991
model M(x: [batch, a]) -> (y: [batch]) { y = sum[a](x) }
parallel { map a -> tp }
# ! too_large_pad.mt:3:30: error MT0306: dim a would be stored as more than 2^62 entries
# !      3 | dim a = 9007199254740992 pad 9007199254740991
# !        |                              ^~~~~~~~~~~~~~~~
