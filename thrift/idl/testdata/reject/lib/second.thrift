include "../cycle.thrift"
namespace go second
