# The name of this package is that of a variable of generated functions.
namespace go testpkg.b
include "type.thrift"
struct Thing { 1: type.Kind kind }
