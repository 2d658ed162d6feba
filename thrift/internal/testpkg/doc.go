// Package testpkg has tests of generated code. The packages below it are what thrift/gen writes for
// the files in thrift/gen/testdata/idl.
package testpkg

//go:generate go test ../../gen -run TestCommittedPackagesAreUpToDate|TestGoldenOutputs -update
