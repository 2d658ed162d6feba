include "second.thrift"
namespace go first
