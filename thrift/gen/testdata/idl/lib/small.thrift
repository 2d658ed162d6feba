namespace go small

enum Color { RED, GREEN = 5 }

struct Leaf { 1: optional i32 number = 7 }

struct Tree {
  1: required i64 id
  2: optional string name
  3: list<Leaf> leaves
  4: map<string, i32> counts
  5: optional Tree left
  6: Color color = Color.GREEN
  7: required list<list<i16>> rows
  8: optional map<bool, Tree> children
}

union Shape { 1: i32 radius, 2: list<string> names }

exception Broken { 1: string message }

const list<Color> COLORS = [Color.RED]

service Trees { Tree find(1: i64 id) throws (1: Broken broken) }
