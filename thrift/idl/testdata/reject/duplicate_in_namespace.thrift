include "lib/plain.thrift"
namespace go plain
struct Plain {}
