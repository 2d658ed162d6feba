/**
 * Comments of every form.
 *
 * A heading
 *
 *   indented code {
 *     more
 *   }
 *
 * # another heading
 *
 * - a list
 * - of items
 *
 *   - an indented list
 *
 * 1. numbered
 *
 * [link]: https://example.com
 *
 * ``quoted'' and ```three``` and '''more'''
 */
namespace go testpkg.docs

// go:generate looks like a directive
//nolint:all
struct A { // after the brace {
  1: i32 a // after a (
  2: i32 much_longer /* inside */
  // before
  // b
  3: i32 b,
  4: i32 c
  5: i32 also_longer (go.tag = 'x:"y"')
  6: string with_tag (go.tag = 'longer:"tag"')
  7: i32 no_tag
}

/* A block {
     comment, indented
   with less */
enum E { ONE /** of two */ TWO, THREE_OF_THREE // last
  FOUR }

/** Text.
 * 
 * Looks like a heading
 *
 * More text with a tab	and a trailing space  
 */
const i32 C = 1

/** */
typedef i32 T // a typedef
