// Package thrift contains the tests in which third-party libraries and compilers exchange Thrift
// messages with generated code: TestApacheLibrary uses the Go library of Apache Thrift,
// TestForeignCode, which make reference runs, what the compiler of Apache Thrift generates for Go
// and Python, and thriftpy2.
//
// The tests write modules and run them. TestApacheLibrary traverses values according to the IDL
// with the Go library of Apache Thrift: random values of all structs are written by one side and
// read by the other, and the bytes are equal. TestForeignCode, a part of make reference, does the
// same with programs in Go and Python that contain what the compiler generates, and with thriftpy2;
// they also act as clients and servers. TestKitexDeclarations, another part, compares the
// declarations that Kitex's tool generates with ours, type by type; notInOurs lists what we do not
// have. The tests list how they change the IDL for each language, with the reasons, and where
// implementations differ. TestKitexJSON and TestGopkg compare JSON and the Binary protocol with
// those of Kitex's libraries.
package thrift
