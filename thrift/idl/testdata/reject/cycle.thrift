# reference 0.17: crashes; 0.25 rejects
include "lib/first.thrift"
