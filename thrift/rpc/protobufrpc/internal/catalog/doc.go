// Package catalog contains the code that protoc-gen-go generates from catalog.proto, for tests and examples of package
// protobufrpc.
package catalog

//go:generate protoc --go_out=. --go_opt=paths=source_relative catalog.proto
