// The adapter to Apache Thrift: a separate module, so that programs that do not use it do not have
// the library of Apache Thrift in their module graph.
module github.com/slipstream-go/slipstream/thrift/apache

go 1.26.0

// Others do not see this line. A release of this module requires the release of the parent that it
// was tested with, in place of v0.0.0-00010101000000-000000000000.
replace github.com/slipstream-go/slipstream => ../../

require (
	github.com/apache/thrift v0.25.0
	github.com/slipstream-go/slipstream v0.0.0-00010101000000-000000000000
)

require golang.org/x/sys v0.49.0 // indirect
