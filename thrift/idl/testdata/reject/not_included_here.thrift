include "lib/outer.thrift"
namespace go x
struct A { 1: plain.Plain b }
