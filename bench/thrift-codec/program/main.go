//go:build ignore

// Command program measures one subject of the suite thrift-codec. It is built at bench time, beside
// the packages that the subjects' tools generate: see build.go of the suite.
package main

import "github.com/slipstream-go/slipstream/bench/thrift-codec/measure"

// subjects has what can be measured; files of subjects whose tools are there add theirs.
var subjects = measure.Subjects{}

func main() { subjects.Main() }
