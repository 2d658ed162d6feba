include "lib/shared.thrift"

namespace go constants

enum Color { RED = 1, GREEN = 2 }

typedef i32 Number
typedef Color Paint

struct Inner { 1: i32 a, 2: list<string> words = ["x", 'y'] }
struct Outer {
  1: Inner inner = {"a": 1},
  2: map<string, Inner> by_name = {"one": {"a": 1, "words": []}, "two": {}},
  3: Color color = Color.GREEN,
  4: i64 limit = shared.LIMIT,
  5: shared.Level level = shared.Level.HIGH,
  6: bool yes = true, 7: bool no = 0,
  8: double ratio = 3
  9: string quote = 'say "hi"\n\t\\\'\"\r'
}

const bool TRUE = true
const bool ONE = 1
const i8 SMALL = -128
const i16 SHORT = 32767;
const i32 DECIMAL = 007, const i32 HEX = 0xFF
const i64 BIG = 9223372036854775807
const i64 LEAST = -9223372036854775808
const i64 MINUS_HEX = -0x10
const double D1 = 1.5
const double D2 = -1e10
const double D3 = .5
const double D4 = +2.5E-3
const double D5 = 7
const string TEXT = "text"
const binary BYTES = "bytes"
const Number N = DECIMAL
const Color C1 = Color.RED
const Color C2 = 2
const i32 FROM_ENUM = Color.GREEN
const i64 FROM_OTHER = shared.LIMIT
const i32 FROM_OTHER_ENUM = shared.Level.HIGH
const shared.Level LEVEL = shared.Level.LOW
const list<i32> LIST = [1, 2; 3 4, HEX]
const set<string> SET = ["a", 'b', TEXT]
const map<string, i32> MAP = {"a": 1, "b": 2; "c": 3 TEXT: 4}
const map<Color, list<map<i32, string>>> NESTED = {
  Color.RED: [{1: "one"}, {}],
  Color.GREEN: [],
}
const Inner STRUCT = {"a": 5, "words": ["w"]}
const shared.Point POINT = {"x": 1.5, "y": 2}
const list<i32> NONE = {}
const map<i32, i32> NO_ENTRIES = []
