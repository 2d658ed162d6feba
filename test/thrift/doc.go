// Package thrift holds the tests in which libraries and compilers of others exchange Thrift messages
// with generated code: TestApacheLibrary uses the Go library of Apache Thrift, TestForeignCode, which
// make reference runs, what the compiler of Apache Thrift generates for Go and
// Python, and thriftpy2.
package thrift
