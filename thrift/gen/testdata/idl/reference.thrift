// A struct that other libraries have encoded: see reference_test.go of package testpkg.
namespace go testpkg.reference
enum Status { NEW, PAID = 5 }
struct Leaf { 1: optional i32 number, 2: string text, 3: bool flag }
union Pick { 1: i32 a, 2: list<string> b }
struct All {
  1: required i64 id
  2: bool b
  3: i8 c
  4: i16 d
  5: optional i32 e
  6: double f
  7: string g
  8: binary h
  9: Status s
  10: list<i64> longs
  11: set<string> tags
  12: map<string, i32> counts
  13: optional Leaf leaf
  14: list<Leaf> leaves
  15: map<i32, list<Status>> states
  16: list<list<bool>> bools
  20: i32 late
  40: optional bool flag
  41: map<string, Leaf> by_name
  100: list<map<string, string>> maps
  101: optional Pick pick
  102: list<double> doubles
  103: list<i16> shorts
  104: list<i8> bytes
  105: list<set<i32>> sets
  106: map<bool, bool> flags
}
