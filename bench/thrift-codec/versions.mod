module github.com/slipstream-go/slipstream/bench/thrift-codec

go 1.26.0

replace github.com/slipstream-go/slipstream => ROOT

require (
	capnproto.org/go/capnp/v3 v3.1.0-alpha.2
	github.com/apache/thrift v0.25.0
	github.com/cloudwego/frugal v0.3.1
	github.com/cloudwego/gopkg v0.2.0
	github.com/planetscale/vtprotobuf v0.6.0
	github.com/slipstream-go/slipstream v0.0.0-00010101000000-000000000000
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/bytedance/gopkg v0.1.4 // indirect
	github.com/cloudwego/kitex v0.16.0 // indirect
	github.com/cloudwego/prutal v0.1.3 // indirect
	github.com/cloudwego/thriftgo v0.4.5 // indirect
	github.com/colega/zeropool v0.0.0-20230505084239-6fb4a4f75381 // indirect
	github.com/dlclark/regexp2 v1.11.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
	google.golang.org/genproto v0.0.0-20230822172742-b8732ec3820d // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

tool (
	capnproto.org/go/capnp/v3/capnpc-go
	github.com/cloudwego/kitex/tool/cmd/kitex
	github.com/cloudwego/thriftgo
	github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	google.golang.org/protobuf/cmd/protoc-gen-go
)
