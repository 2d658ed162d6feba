// Package catalog is what protoc-gen-go makes of catalog.proto, for tests and examples of package protobufrpc.
package catalog

//go:generate protoc --go_out=. --go_opt=paths=source_relative catalog.proto
