//go:build ignore

package main

import (
	"slices"

	"google.golang.org/protobuf/proto"

	pb "github.com/slipstream-go/slipstream/bench/thrift-codec/gen/protobuf"
	pointers "github.com/slipstream-go/slipstream/bench/thrift-codec/pointers/protobuf"
)

// pbStruct is what protoc-gen-go and vtprotobuf generate together.
type pbStruct[T any] interface {
	*T
	proto.Message
	SizeVT() int
	MarshalToSizedBufferVT(b []byte) (int, error)
	UnmarshalVT(b []byte) error
	UnmarshalVTUnsafe(b []byte) error
}

func init() {
	message := codec[pb.Message]{build: pointers.Message, sum: pointers.SumMessage, encode: pbMarshal[pb.Message], decode: pbUnmarshal[pb.Message]}
	series := codec[pb.Series]{build: pointers.Series, sum: pointers.SumSeries, encode: pbMarshal[pb.Series], decode: pbUnmarshal[pb.Series]}
	add("protobuf-go", "edw", message, series)

	message.encode, message.decode = vtMarshal, vtUnmarshal
	series.encode, series.decode = vtMarshal, vtUnmarshal
	add("vtprotobuf", "edw", message, series)

	message.decode, message.keeps = vtUnmarshalUnsafe, true
	series.decode, series.keeps = vtUnmarshalUnsafe, true
	add("vtprotobuf-unsafe", "dw", message, series)
}

func pbMarshal[T any, P pbStruct[T]](b []byte, p *T) []byte {
	b, err := proto.MarshalOptions{}.MarshalAppend(b, P(p))
	if err != nil {
		return nil
	}
	return b
}

func pbUnmarshal[T any, P pbStruct[T]](frame []byte, p *T) error { return proto.Unmarshal(frame, P(p)) }

func vtMarshal[T any, P pbStruct[T]](b []byte, p *T) []byte {
	n := P(p).SizeVT()
	b = slices.Grow(b, n)[:n]
	if _, err := P(p).MarshalToSizedBufferVT(b); err != nil {
		return nil
	}
	return b
}

func vtUnmarshal[T any, P pbStruct[T]](frame []byte, p *T) error { return P(p).UnmarshalVT(frame) }

// vtUnmarshalUnsafe leaves strings and bytes in the frame.
func vtUnmarshalUnsafe[T any, P pbStruct[T]](frame []byte, p *T) error {
	return P(p).UnmarshalVTUnsafe(frame)
}
