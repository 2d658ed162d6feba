//go:build ignore

package main

import (
	"slices"

	"github.com/cloudwego/frugal"

	gen "github.com/slipstream-go/slipstream/bench/thrift-codec/gen/frugal"
	pointers "github.com/slipstream-go/slipstream/bench/thrift-codec/pointers/frugal"
)

func init() {
	add("frugal", "edw",
		codec[gen.Message]{build: pointers.Message, sum: pointers.SumMessage, encode: frugalEncode[gen.Message], decode: frugalDecode[gen.Message], thrift: true},
		codec[gen.Series]{build: pointers.Series, sum: pointers.SumSeries, encode: frugalEncode[gen.Series], decode: frugalDecode[gen.Series], thrift: true})
}

func frugalEncode[T any](b []byte, p *T) []byte {
	n := frugal.EncodedSize(p)
	b = slices.Grow(b, n)[:n]
	n, err := frugal.EncodeObject(b, nil, p)
	if err != nil {
		return nil
	}
	return b[:n]
}

func frugalDecode[T any](frame []byte, p *T) error {
	_, err := frugal.DecodeObject(frame, p)
	return err
}
