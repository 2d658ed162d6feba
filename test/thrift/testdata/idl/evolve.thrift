// Versions of a struct, and field IDs that are not positive.
namespace go testpkg.evolve

enum Old { A = 1 }
enum Later { A = 1, B = 2 }

struct OldLeaf { 2: string name }
struct LaterLeaf { 1: list<i64> more, 2: string name, 3: optional map<string, LaterLeaf> children }

struct OldTree {
  2: OldLeaf leaf
  4: list<OldLeaf> leaves
  9: optional i32 number
  20: Old kind
  30: string last
}

struct LaterTree {
  1: bool first
  2: LaterLeaf leaf
  3: list<bool> bools
  4: list<LaterLeaf> leaves
  5: i8 byte_
  6: i16 short_
  7: i64 long_
  8: double ratio
  9: optional i32 number
  10: binary bytes
  11: set<string> words
  12: map<string, list<LaterLeaf>> by_name
  13: map<i32, bool> flags
  14: list<list<double>> grid
  15: bool second
  20: Later kind
  29: optional LaterTree inner
  30: string last
  200: list<LaterLeaf> many
  32000: bool very_last
}

struct Negative {
  -1: i32 a
  -5: optional string b
  1: i64 c
  -300: list<string> d
  0: i16 e
  -32768: bool least
}

exception Failure { 1: i32 code, 2: optional string text, 3: list<string> trace }

union OneOf {
  1: i8 small
  2: i64 large
  3: double ratio
  4: string text
  5: binary bytes
  6: bool flag
  7: list<OldLeaf> leaves
  8: OldLeaf leaf
  9: Later kind
}
