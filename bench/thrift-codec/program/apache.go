//go:build ignore

package main

import (
	"bytes"
	"context"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/bench/thrift-codec/gen/apache"
	pointers "github.com/slipstream-go/slipstream/bench/thrift-codec/pointers/apache"
)

// apacheStruct is what the compiler of Apache Thrift generates.
type apacheStruct[T any] interface {
	*T
	thrift.TStruct
}

func init() {
	add("apache", "edw",
		codec[apache.Message]{build: pointers.Message, sum: pointers.SumMessage, encode: apacheWrite[apache.Message], decode: apacheRead[apache.Message], thrift: true, ordered: true},
		codec[apache.Series]{build: pointers.Series, sum: pointers.SumSeries, encode: apacheWrite[apache.Series], decode: apacheRead[apache.Series], thrift: true, ordered: true})
}

// Both protocols are used again and again, as by a connection.
var (
	apacheOut      = &thrift.TMemoryBuffer{Buffer: new(bytes.Buffer)}
	apacheProtocol = thrift.NewTBinaryProtocolConf(apacheOut, nil)
	apacheReader   = thrift.NewTDeserializer()
)

func apacheWrite[T any, P apacheStruct[T]](_ []byte, p *T) []byte {
	ctx := context.Background()
	apacheOut.Reset()
	if P(p).Write(ctx, apacheProtocol) != nil || apacheProtocol.Flush(ctx) != nil {
		return nil
	}
	return apacheOut.Bytes()
}

func apacheRead[T any, P apacheStruct[T]](frame []byte, p *T) error {
	return apacheReader.Read(context.Background(), P(p), frame)
}
