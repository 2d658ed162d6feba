//go:build ignore

package main

import (
	"slices"

	"github.com/slipstream-go/slipstream/bench/thrift-codec/gen/fastgo"
	pointers "github.com/slipstream-go/slipstream/bench/thrift-codec/pointers/fastgo"
)

// fastgoStruct is what the backend fastgo of thriftgo generates.
type fastgoStruct[T any] interface {
	*T
	BLength() int
	FastAppend(b []byte) []byte
	FastRead(b []byte) (int, error)
}

func init() {
	add("fastgo", "edw", fastgoMessage(fastgoSized[fastgo.Message]), fastgoSeries(fastgoSized[fastgo.Series]))
	add("fastgo-append", "e", fastgoMessage(fastgoAppend[fastgo.Message]), fastgoSeries(fastgoAppend[fastgo.Series]))
}

func fastgoMessage(encode func([]byte, *fastgo.Message) []byte) codec[fastgo.Message] {
	return codec[fastgo.Message]{build: pointers.Message, sum: pointers.SumMessage, encode: encode, decode: fastgoRead[fastgo.Message], thrift: true, ordered: true}
}

func fastgoSeries(encode func([]byte, *fastgo.Series) []byte) codec[fastgo.Series] {
	return codec[fastgo.Series]{build: pointers.Series, sum: pointers.SumSeries, encode: encode, decode: fastgoRead[fastgo.Series], thrift: true, ordered: true}
}

// fastgoSized computes the size first, as a caller without a buffer must.
func fastgoSized[T any, P fastgoStruct[T]](b []byte, p *T) []byte {
	return P(p).FastAppend(slices.Grow(b, P(p).BLength()))
}

func fastgoAppend[T any, P fastgoStruct[T]](b []byte, p *T) []byte { return P(p).FastAppend(b) }

func fastgoRead[T any, P fastgoStruct[T]](frame []byte, p *T) error {
	_, err := P(p).FastRead(frame)
	return err
}
