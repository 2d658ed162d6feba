/* A license, which documents nothing. */

/**
 * What this file is about.
 */

include "lib/shared.thrift"
cpp_include "<vector>"
cpp_include "more.h"
namespace cpp one.two
namespace py.twisted one
namespace xsd test (uri = 'http://example.com/ns', other)
namespace * everywhere
namespace noexist some

struct Nothing {}
