// Declarations in the same Go package as those of shop.thrift.
namespace go testpkg.shop

include "lib/shared.thrift"

typedef list<list<i32>> Matrix
typedef shared.Level Importance
typedef map<string, Nested> Directory

struct Numbers {
  1: bool a_bool
  2: i8 an_i8
  3: i16 an_i16
  4: i32 an_i32
  5: i64 an_i64
  6: double a_double
  7: uuid a_uuid
  8: Importance level
  9: string a_string
  10: binary a_binary
}

struct Optional {
  1: optional bool a_bool
  2: optional i8 an_i8
  3: optional i16 an_i16
  4: optional i32 an_i32
  5: optional i64 an_i64
  6: optional double a_double
  7: optional uuid a_uuid
  8: optional Importance level
  9: optional string a_string
  10: optional binary a_binary
  11: optional list<i32> numbers
  12: optional list<string> strings
  13: optional map<string, string> strings_by_name
  14: optional map<i32, bool> flags
  15: optional list<Numbers> structs
  16: optional set<i8> bytes
  17: optional map<list<i32>, string> by_list
  18: optional list<list<string>> words
}

struct Required {
  1: required bool a_bool
  2: required i8 an_i8
  3: required i32 an_i32
  4: required string a_string
  5: required binary a_binary
  6: required list<i32> numbers
  7: required map<string, i64> longs
  8: required Numbers numbers_struct
  9: required list<shared.Point> points
}

struct Lists {
  1: list<bool> bools
  2: list<i8> bytes
  3: list<i16> shorts
  4: list<i32> ints
  5: list<i64> longs
  6: list<double> doubles
  7: list<uuid> uuids
  8: list<Importance> levels
  9: list<string> strings
  10: list<binary> binaries
  11: set<i32> set_of_ints
  12: set<Numbers> set_of_structs
  13: list<Nested> nested
}

struct Nested {
  1: Matrix matrix
  2: list<map<string, string>> string_maps
  3: map<i32, Nested> children
  4: Directory directory
  5: map<shared.Point, Nested> by_struct
  6: map<set<string>, list<map<list<bool>, shared.Level>>> strange
  7: map<binary, binary> by_binary
  8: map<uuid, double> by_uuid
  9: map<bool, list<binary>> by_bool
  10: map<double, set<i8>> by_double
  11: map<shared.Level, map<i64, map<i16, string>>> deep
  12: list<set<Numbers>> lists
  13: map<binary, string> texts
  14: list<list<list<i64>>> cube
  15: map<i8, uuid> uuids
  16: list<list<uuid>> uuid_lists
  17: list<list<i8>> byte_lists
  18: map<list<i32>, list<i32>> lists_by_list
  19: map<WithDefaults, WithDefaults> defaults
}

struct WithDefaults {
  1: i32 number = 7
  2: string text = "text"
  3: optional i64 maybe = 5
  4: list<i32> numbers = [1, 2, 3]
  5: map<string, list<i32>> more = {"a": [1], "b": []}
  6: shared.Level level = shared.Level.HIGH
  7: shared.Point place = {"x": 1, "y": 2.5}
  8: binary bytes = "\tbytes"
  9: uuid key = "01234567-89ab-cdef-0123-456789abcdef"
  10: bool yes = true
  11: optional string word = shared.WORD
  12: list<shared.Point> places = [shared.ORIGIN, {"x": 0, "y": 1}]
  13: list<string> words = shared.WORDS
  14: double ratio = 3
  15: optional list<string> maybe_words = ["x"]
}

struct UsesDefaults {
  1: WithDefaults one
  2: list<WithDefaults> many
  3: map<string, WithDefaults> by_name
  4: optional WithDefaults maybe
  5: WithDefaults changed = {"number": 1, "text": "changed"}
  6: WithDefaults same = {}
}

struct Empty {}

struct OnlyStructs {
  1: optional Empty first
  2: Empty second
  3: required Empty third
}

struct Mixed {
  1: optional Empty first
  2: i32 second
  3: optional string third
  4: Empty fourth
  5: optional i32 fifth
  6: list<string> sixth
  7: map<i32, i32> seventh
  8: i64 eighth
}

union Either {
  1: i32 number
  2: string text = "unset"
  3: Either either
  4: list<i32> numbers
  5: binary bytes
  6: Numbers numbers_struct
}

struct ManyRequired {
  1: required i8 f1
  2: required i8 f2
  3: required i8 f3
  4: required i8 f4
  5: required i8 f5
  6: required i8 f6
  7: required i8 f7
  8: required i8 f8
  9: required i8 f9
  10: required i8 f10
  11: required i8 f11
  12: required i8 f12
  13: required i8 f13
  14: required i8 f14
  15: required i8 f15
  16: required i8 f16
  17: required i8 f17
  18: required i8 f18
  19: required i8 f19
  20: required i8 f20
  21: required i8 f21
  22: required i8 f22
  23: required i8 f23
  24: required i8 f24
  25: required i8 f25
  26: required i8 f26
  27: required i8 f27
  28: required i8 f28
  29: required i8 f29
  30: required i8 f30
  31: required i8 f31
  32: required i8 f32
  33: required i8 f33
  34: required i8 f34
  35: required i8 f35
  36: required i8 f36
  37: required i8 f37
  38: required i8 f38
  39: required i8 f39
  40: required i8 f40
  41: required i8 f41
  42: required i8 f42
  43: required i8 f43
  44: required i8 f44
  45: required i8 f45
  46: required i8 f46
  47: required i8 f47
  48: required i8 f48
  49: required i8 f49
  50: required i8 f50
  51: required i8 f51
  52: required i8 f52
  53: required i8 f53
  54: required i8 f54
  55: required i8 f55
  56: required i8 f56
  57: required i8 f57
  58: required i8 f58
  59: required i8 f59
  60: required i8 f60
  61: required i8 f61
  62: required i8 f62
  63: required i8 f63
  64: required i8 f64
  65: required i8 f65
  66: required i8 f66
  67: required i8 f67
  68: required i8 f68
  69: required i8 f69
  70: required i8 f70
}

// Reset keeps the structs that are required; a struct and the first one that it requires are made together.
struct Chained {
  1: required Link link
  2: list<Link> links
  3: list<Around> each
  4: optional Link maybe
}

struct Link {
  1: i32 order = 7
  2: required Bounds bounds
}

struct Bounds {
  1: i32 low = -1
  2: required list<i32> numbers
}

struct Around {
  1: required Required has_a_map
}
