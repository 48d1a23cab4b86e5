fn A(x: [*]) -> [*] { return x }
}
fn B(x: [*]) -> [*] { return x }
# ! stray_brace.mt:2:1: error MT0107: '}' closes nothing
# !      2 | }
# !        | ^
