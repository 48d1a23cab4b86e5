fn A(model: [*]) -> [*] {
  return model
}
fn B(x: [*]) -> [*] { return x }
# ! keyword_formal.mt:1:6: error MT0104: 'model' is a word of the language; choose another name
# !      1 | fn A(model: [*]) -> [*] {
# !        |      ^~~~~
