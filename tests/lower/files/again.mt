import "parts.mt"
import "again.mt"
fn thrice(x: [*]) -> [*] { return x + twice(x) }
