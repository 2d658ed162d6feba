include "plain.thrift"
namespace go outer
struct Outer { 1: plain.Plain a }
