namespace go testpkg.constants

include "lib/shared.thrift"

struct Inner { 1: i32 a, 2: list<string> words = ["x", 'y'] }
struct Outer { 1: Inner inner = {"a": 1}, 2: map<string, Inner> by_name = {"one": {"a": 1, "words": []}, "two": {}}, 3: optional Inner other }
struct Zeros {
  1: double plain = -0.0
  2: optional double maybe = -0.0
  3: list<double> all = [-0.0, 0.0, -0]
  4: map<string, double> by_name = {"minus": -0.0, "plus": 0.0}
  5: required double same = -0.0
}

const bool YES = true
const bool ONE = 1
const i8 SMALL = -128
const i16 SHORT = 32767
const i32 HEX = 0xFF
const i64 LEAST = -9223372036854775808
const double D1 = 1.5
const double D2 = -1e10
const double D3 = 7
const double MINUS_ZERO = -0.0
const double SAME_ZERO = MINUS_ZERO
const string TEXT = "text"
const string SAME = TEXT
const string FROM_OTHER = shared.WORD
const string FROM_BINARY = shared.BYTES
const binary BYTES = TEXT
const binary SAME_BYTES = shared.BYTES
const uuid KEY = "01234567-89ab-cdef-0123-456789abcdef"
const uuid SAME_KEY = shared.KEY
const shared.Level LEVEL = 10
const i32 FROM_ENUM = shared.Level.NEGATIVE
const list<i32> LIST = [1, 2, 3, HEX]
const list<i64> LONG_LIST = [1000000000, 2000000000, 3000000000, 4000000000, 5000000000, 6000000000, 7000000000, 8000000000, 9000000000, 10000000000, 11000000000, 12000000000, 13000000000]
const set<string> SET = ["a", 'b', TEXT]
const list<i32> NONE = {}
const map<i32, i32> NO_ENTRIES = []
const map<string, i32> MAP = {"a": 1, "key: with a colon": 2; "c": 3 TEXT: 4, "\"quoted\"": 5, "an even longer key than that one": 6}
const map<string, i32> LONG_KEYS = {"a": 1, "a key that is much longer than forty bytes, so gofmt may not align it": 2}
const map<double, i32> DOUBLES = {1: 1, 1.0: 2, 2.5: 3, 0.0: 4, -0.0: 5}
const map<double, i32> ZERO_KEYS = {-0.0: 1, 0: 2, 1: 3}
const list<double> ZERO_LIST = [MINUS_ZERO, 0.0]
const Zeros ZEROS = {"plain": 0.0, "maybe": -0.0, "same": 0}
const map<shared.Level, list<map<i32, string>>> NESTED = {shared.Level.LOW: [{1: "one"}, {}], shared.Level.HIGH: []}
const map<list<i32>, Inner> ENTRIES = {[1]: {"a": 1}, []: {}, LIST: {"words": WORDS}}
const map<bool, i32> BOOLS = {true: 1, false: 0}
const map<binary, binary> BINARIES = {"a": "b"}
const map<uuid, i32> UUIDS = {"01234567-89ab-cdef-0123-456789abcdef": 1, "{01234567-89AB-CDEF-0123-456789ABCDEF}": 2}
const list<string> WORDS = shared.WORDS
const list<list<string>> LISTS = [WORDS, shared.WORDS, ["x"]]
const Inner INNER = {"a": 5}
const Inner FULL = {"a": 5, "words": []}
const Inner DEFAULT = {}
const Outer OUTER = {"inner": INNER, "other": {"a": 7, "words": ["w"]}}
const list<Outer> OUTERS = [OUTER, {}, {"by_name": {}}]
const shared.Point POINT = shared.ORIGIN
const list<shared.Point> POINTS = [POINT, {"x": 1.5, "y": 2}]
