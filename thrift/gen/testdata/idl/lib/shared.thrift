namespace * testpkg.shared

enum Level { LOW = 1, HIGH = 10, NEGATIVE = -3 }
enum Nothing {}

/** A point. */
struct Point {
  1: required double x
  2: required double y
}

const Point ORIGIN = {"x": 0, "y": -0.0}
const string WORD = "word"
const list<string> WORDS = ["a", WORD]
const binary BYTES = "\t\n"
const uuid KEY = "{01234567-89AB-CDEF-0123-456789ABCDEF}"
