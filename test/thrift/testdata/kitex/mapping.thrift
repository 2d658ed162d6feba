// What the JSON of Kitex's generic calls depends on, and the IDL of the generator's tests does not have.
namespace go testpkg.mapping

enum Kind { NONE = 0, SOME = 5 }

struct Part {
  1: i32 plain
  2: i32 number = 7
  3: optional string text = "text"
  4: optional list<i64> longs = [1, 2]
  5: optional Kind kind
  6: optional binary bytes = "bytes"
  7: list<string> words = ["a"]
}

struct Whole {
  1: i64 id (api.js_conv = "")
  2: optional list<i64> ids (api.js_conv = "")
  3: map<string, i64> by_name (api.js_conv = "")
  4: map<string, list<i64>> lists (api.js_conv = "")
  5: list<list<i64>> deep (api.js_conv = "")
  6: Part part (api.js_conv = "")
  7: i32 renamed (go.tag = 'json:"other_name,omitempty" db:"x"')
  8: optional i32 count (go.tag = 'json:"n"')
  9: map<double, i32> doubles
  10: map<bool, Kind> bools
  11: map<Kind, list<Kind>> kinds
  12: map<i64, binary> longs
  13: map<binary, Part> parts
  14: list<Part> list_of_parts
  15: optional Part maybe
  16: Part always
  17: set<Part> set_of_parts
  18: list<map<string, Part>> maps
  19: optional Kind kind = Kind.SOME
  20: list<Kind> list_of_kinds
  21: string html
  22: list<binary> binaries
  23: map<i8, bool> bytes
  24: optional bool flag
  25: Part initial = {"plain": 3}
}
