//go:build ignore

// Command program measures one subject of the suite thrift-codec. It is built when the suite runs,
// together with the packages that the subjects' tools generate: see build.go of the suite.
package main

import "github.com/slipstream-go/slipstream/bench/thrift-codec/measure"

// subjects contains what can be measured. The files of subjects whose tools are installed add
// theirs.
var subjects = measure.Subjects{}

func main() { subjects.Main() }
