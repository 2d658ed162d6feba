//go:build ignore

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"

	gopkg "github.com/cloudwego/gopkg/protocol/thrift"

	"github.com/slipstream-go/slipstream/bench/thrift-codec/measure"
	"github.com/slipstream-go/slipstream/thrift"
)

// A number is an element type of lists for which there are kernels.
type number interface{ int32 | int64 }

// listHead is the size of the head of a list. Buffers are aligned so that elements begin five bytes
// after a multiple of eight.
const listHead = 5

func init() {
	for _, name := range []string{"slipstream", "slipstream-control"} {
		addPut(name, 8, putOurs64)
		addPut(name, 4, putOurs32)
		addGet(name, 8, func(b []byte, to *[]int64) bool { return reader.I64s(b, 0, to) >= 0 })
		addGet(name, 4, func(b []byte, to *[]int32) bool { return thrift.ReadI32s(&reader, b, 0, to) >= 0 })
	}
	addPut("loop", 8, loopPut64)
	addPut("loop", 4, loopPut32)
	addPut("loop-two", 4, loopPutTwo)
	addGet("loop", 8, loopGet64)
	addGet("loop", 4, loopGet32)
	addGet("loop-two", 4, loopGetTwo)
	addPut("gopkg", 8, gopkgPut64)
	addPut("gopkg", 4, gopkgPut32)
	addGet("gopkg", 8, gopkgGet64)
	addGet("gopkg", 4, gopkgGet32)
}

var reader thrift.Reader

// list returns elements and their encoding with the head of a list of that type.
func list[E number](size int, shape string) (elements []E, encoded []byte, err error) {
	n, err := strconv.Atoi(shape)
	if err != nil {
		return nil, nil, err
	}
	r := rand.New(rand.NewPCG(uint64(n), 1))
	elements = make([]E, n)
	encoded = make([]byte, listHead, listHead+size*n)
	encoded[0] = map[int]byte{4: thrift.TypeI32, 8: thrift.TypeI64}[size]
	binary.BigEndian.PutUint32(encoded[1:], uint32(n))
	for i := range elements {
		elements[i] = E(r.Uint64())
		if size == 4 {
			encoded = binary.BigEndian.AppendUint32(encoded, uint32(elements[i]))
		} else {
			encoded = binary.BigEndian.AppendUint64(encoded, uint64(elements[i]))
		}
	}
	return elements, encoded, nil
}

func addPut[E number](name string, size int, put func(b []byte, list []E)) {
	subjects.Add(fmt.Sprintf("list-i%d-put", 8*size), name, func(shape string) (measure.Work, error) {
		elements, encoded, err := list[E](size, shape)
		b := make([]byte, len(encoded))
		return measure.Work{Size: len(b), Run: func() { put(b, elements) }, Check: func() error {
			if !slices.Equal(b[listHead:], encoded[listHead:]) {
				return errors.New("the encoding differs")
			}
			clear(b)
			return nil
		}}, err
	})
}

func addGet[E number](name string, size int, get func(b []byte, to *[]E) bool) {
	subjects.Add(fmt.Sprintf("list-i%d-get", 8*size), name, func(shape string) (measure.Work, error) {
		elements, encoded, err := list[E](size, shape)
		to := make([]E, len(elements))
		ok := true
		return measure.Work{Size: len(encoded), Run: func() { ok = get(encoded, &to) && ok }, Check: func() error {
			if !ok || !slices.Equal(to, elements) {
				return errors.New("the elements differ")
			}
			clear(to)
			return nil
		}}, err
	})
}

// As in generated code, the loop for a few elements is inlined.

func putOurs64(b []byte, list []int64) {
	if !thrift.PutFewI64s(b, listHead, list) {
		thrift.PutI64s(b, listHead, list)
	}
}

func putOurs32(b []byte, list []int32) {
	if !thrift.PutFewI32s(b, listHead, list) {
		thrift.PutI32s(b, listHead, list)
	}
}

// The loops below are as fast as loops in Go can be: they handle four elements at a time, without
// bounds checks.

func loopPut64(b []byte, list []int64) {
	b = b[listHead:]
	for len(list) >= 4 && len(b) >= 32 {
		binary.BigEndian.PutUint64(b, uint64(list[0]))
		binary.BigEndian.PutUint64(b[8:], uint64(list[1]))
		binary.BigEndian.PutUint64(b[16:], uint64(list[2]))
		binary.BigEndian.PutUint64(b[24:], uint64(list[3]))
		list, b = list[4:], b[32:]
	}
	for i, v := range list {
		binary.BigEndian.PutUint64(b[8*i:], uint64(v))
	}
}

func loopPut32(b []byte, list []int32) {
	b = b[listHead:]
	for len(list) >= 4 && len(b) >= 16 {
		binary.BigEndian.PutUint32(b, uint32(list[0]))
		binary.BigEndian.PutUint32(b[4:], uint32(list[1]))
		binary.BigEndian.PutUint32(b[8:], uint32(list[2]))
		binary.BigEndian.PutUint32(b[12:], uint32(list[3]))
		list, b = list[4:], b[16:]
	}
	for i, v := range list {
		binary.BigEndian.PutUint32(b[4*i:], uint32(v))
	}
}

// loopPutTwo combines two elements into a word.
func loopPutTwo(b []byte, list []int32) {
	b = b[listHead:]
	for len(list) >= 4 && len(b) >= 16 {
		binary.BigEndian.PutUint64(b, uint64(uint32(list[0]))<<32|uint64(uint32(list[1])))
		binary.BigEndian.PutUint64(b[8:], uint64(uint32(list[2]))<<32|uint64(uint32(list[3])))
		list, b = list[4:], b[16:]
	}
	for i, v := range list {
		binary.BigEndian.PutUint32(b[4*i:], uint32(v))
	}
}

func loopGet64(b []byte, to *[]int64) bool {
	list := *to
	b = b[listHead:]
	for len(list) >= 4 && len(b) >= 32 {
		list[0] = int64(binary.BigEndian.Uint64(b))
		list[1] = int64(binary.BigEndian.Uint64(b[8:]))
		list[2] = int64(binary.BigEndian.Uint64(b[16:]))
		list[3] = int64(binary.BigEndian.Uint64(b[24:]))
		list, b = list[4:], b[32:]
	}
	for i := range list {
		list[i] = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	return true
}

func loopGet32(b []byte, to *[]int32) bool {
	list := *to
	b = b[listHead:]
	for len(list) >= 4 && len(b) >= 16 {
		list[0] = int32(binary.BigEndian.Uint32(b))
		list[1] = int32(binary.BigEndian.Uint32(b[4:]))
		list[2] = int32(binary.BigEndian.Uint32(b[8:]))
		list[3] = int32(binary.BigEndian.Uint32(b[12:]))
		list, b = list[4:], b[16:]
	}
	for i := range list {
		list[i] = int32(binary.BigEndian.Uint32(b[4*i:]))
	}
	return true
}

// loopGetTwo loads two elements as a word.
func loopGetTwo(b []byte, to *[]int32) bool {
	list := *to
	b = b[listHead:]
	for len(list) >= 4 && len(b) >= 16 {
		v := bits.RotateLeft64(binary.BigEndian.Uint64(b), 32)
		w := bits.RotateLeft64(binary.BigEndian.Uint64(b[8:]), 32)
		list[0], list[1] = int32(v), int32(v>>32)
		list[2], list[3] = int32(w), int32(w>>32)
		list, b = list[4:], b[16:]
	}
	for i := range list {
		list[i] = int32(binary.BigEndian.Uint32(b[4*i:]))
	}
	return true
}

// Code generated by Kitex calls a function of gopkg for each element.

func gopkgPut64(b []byte, list []int64) {
	off, n := listHead, 0
	for _, v := range list {
		n++
		off += gopkg.Binary.WriteI64(b[off:], v)
	}
	gopkg.Binary.WriteListBegin(b, gopkg.I64, n)
}

func gopkgPut32(b []byte, list []int32) {
	off, n := listHead, 0
	for _, v := range list {
		n++
		off += gopkg.Binary.WriteI32(b[off:], v)
	}
	gopkg.Binary.WriteListBegin(b, gopkg.I32, n)
}

func gopkgGet64(b []byte, to *[]int64) bool {
	_, n, off, err := gopkg.Binary.ReadListBegin(b)
	if err != nil {
		return false
	}
	list := (*to)[:0]
	for range n {
		var elem int64
		v, l, err := gopkg.Binary.ReadI64(b[off:])
		if err != nil {
			return false
		}
		off += l
		elem = v
		list = append(list, elem)
	}
	*to = list
	return true
}

func gopkgGet32(b []byte, to *[]int32) bool {
	_, n, off, err := gopkg.Binary.ReadListBegin(b)
	if err != nil {
		return false
	}
	list := (*to)[:0]
	for range n {
		var elem int32
		v, l, err := gopkg.Binary.ReadI32(b[off:])
		if err != nil {
			return false
		}
		off += l
		elem = v
		list = append(list, elem)
	}
	*to = list
	return true
}
