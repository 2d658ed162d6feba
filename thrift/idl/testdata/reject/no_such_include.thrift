# reference: accepts with a warning, unless it is told to be strict
include "lib/nowhere.thrift"

struct A {}
