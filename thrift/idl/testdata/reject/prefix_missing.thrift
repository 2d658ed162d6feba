include "lib/plain.thrift"
namespace go x
struct A { 1: Plain b, 2: plain.Plan c }
