# The name of this package is a keyword of Go.
namespace go testpkg.type
enum Kind { ONE = 1 }
