struct A {}
include "lib/plain.thrift"
