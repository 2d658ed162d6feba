//go:build ignore

package main

import (
	"slices"

	"github.com/cloudwego/gopkg/protocol/thrift"

	"github.com/slipstream-go/slipstream/bench/thrift-codec/gen/kitex"
	pointers "github.com/slipstream-go/slipstream/bench/thrift-codec/pointers/kitex"
)

// kitexStruct is what the generator of kitex generates.
type kitexStruct[T any] interface {
	*T
	thrift.FastCodec
}

func init() {
	message := codec[kitex.Message]{build: pointers.Message, sum: pointers.SumMessage, encode: kitexWrite[kitex.Message], decode: kitexRead[kitex.Message], thrift: true}
	series := codec[kitex.Series]{build: pointers.Series, sum: pointers.SumSeries, encode: kitexWrite[kitex.Series], decode: kitexRead[kitex.Series], thrift: true}
	add("kitex", "edw", message, series)
	message.encode, message.decode = gopkgMarshal, gopkgUnmarshal
	series.encode, series.decode = gopkgMarshal, gopkgUnmarshal
	add("gopkg", "edw", message, series)
}

func kitexWrite[T any, P kitexStruct[T]](b []byte, p *T) []byte {
	n := P(p).BLength()
	b = slices.Grow(b, n)[:n]
	return b[:P(p).FastWriteNocopy(b, nil)]
}

func kitexRead[T any, P kitexStruct[T]](frame []byte, p *T) error {
	_, err := P(p).FastRead(frame)
	return err
}

// gopkgMarshal allocates its own buffer.
func gopkgMarshal[T any, P kitexStruct[T]](_ []byte, p *T) []byte { return thrift.FastMarshal(P(p)) }

func gopkgUnmarshal[T any, P kitexStruct[T]](frame []byte, p *T) error {
	return thrift.FastUnmarshal(frame, P(p))
}
