# The oldest kind.
// Another kind.
/* And /* this. */
/**/
/***/

// Documents the struct,
// in two lines.
struct A { // after the brace
  // Documents x.
  1: i32 x, // after x
  /** Documents y. */
  // not this
  2: i32 y /* inside */ = 5 // after y
  3: i32 z /* after z */
} # after A

/**
 * Documents B.
 *
 *   indented
 */
enum B { ONE /** of two */ TWO }

// Documents nothing.

const i32 C = 1 // after C
// the end
