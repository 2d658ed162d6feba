package thriftfront

import (
	"encoding/binary"
	"slices"

	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
	"github.com/slipstream-go/slipstream/thrift"
)

// compactTypes are the types of the Compact protocol, by those of the Binary protocol. Only those that calls and answers
// need are listed.
var compactTypes = [...]byte{
	thrift.TypeI32: thrift.CompactTypeI32, thrift.TypeString: thrift.CompactTypeString,
	thrift.TypeStruct: thrift.CompactTypeStruct, thrift.TypeList: thrift.CompactTypeList,
}

// appendField appends a field header in the protocol of the call. last is the ID of the previous field in the same
// struct, or 0.
func (k *call) appendField(b []byte, t byte, id, last uint16) []byte {
	if k.format.Compact {
		return thrift.AppendCompactHead(b, compactTypes[t], id, last)
	}
	return append(b, t, byte(id>>8), byte(id))
}

// appendLength appends the length of a string.
func (k *call) appendLength(b []byte, n int) []byte {
	if k.format.Compact {
		return binary.AppendUvarint(b, uint64(n))
	}
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func (k *call) appendI32(b []byte, v int32) []byte {
	if k.format.Compact {
		return thrift.AppendCompactInt(b, v)
	}
	return binary.BigEndian.AppendUint32(b, uint32(v))
}

// appendListOfStructs appends the header of a list of n structs.
func (k *call) appendListOfStructs(b []byte, n int) []byte {
	if k.format.Compact {
		return thrift.AppendCompactList(b, thrift.CompactTypeStruct, n)
	}
	return binary.BigEndian.AppendUint32(append(b, thrift.TypeStruct), uint32(n))
}

// sizeOfUvarint returns the size of an unsigned number in the Compact protocol.
func sizeOfUvarint(v uint64) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], v)
}

// readCompact is read for the Compact protocol.
func (k *call) readCompact() *failure {
	for at, last, found := 0, uint16(0), false; ; {
		field, value := thrift.CompactField(k.args, at, last)
		switch {
		case value < 0:
			return failArguments
		case field == 0:
			if value != len(k.args) || !found {
				return failArguments
			}
			return nil
		}
		kind := byte(field)
		last = uint16(field >> 8)
		if at = thrift.SkipCompact(k.args, value, kind, thrift.MaxDepth); at < 0 {
			return failArguments
		}
		if last != thriftdoc.ArgumentID || kind != compactTypes[k.method.argument()] {
			continue
		}
		if found {
			return failArguments
		}
		found = true
		if f := k.readCompactKeys(k.args[value:at]); f != nil {
			return f
		}
	}
}

// readCompactKeys reads the keys in a value that SkipCompact has accepted.
func (k *call) readCompactKeys(b []byte) *failure {
	n := uint64(1)
	if k.method.list {
		head := b[0]
		b = b[1:]
		if n = uint64(head >> 4); n == 15 {
			n, b = uvarint(b)
		}
		switch {
		case n == 0 || n > maxKeys:
			return failKeys
		case head&15 != thrift.CompactTypeString:
			return failArguments
		}
	}
	for range n {
		var size uint64
		if size, b = uvarint(b); size > maxKey {
			return failLongKey
		}
		k.keys = append(k.keys, b[:size:size])
		b = b[size:]
	}
	return nil
}

// uvarint reads an unsigned number, which must be complete, and returns the bytes after it.
func uvarint(b []byte) (v uint64, rest []byte) {
	v, n := binary.Uvarint(b)
	return v, b[n:]
}

// converts reports whether the documents must be converted for the call: forms are in the Binary protocol.
func (k *call) converts() bool { return k.format.Compact && !k.method.of.json }

// convert converts the documents to the Compact protocol. In a turn, it returns errLater if that would take too long.
func (k *call) convert(inTurn bool) *failure {
	size := k.size()
	if inTurn && k.fresh+size > maxEncoded {
		return errLater
	}
	k.fresh += size
	k.scratch = slices.Grow(k.scratch[:0], size)
	for i := range k.slots {
		x := &k.slots[i]
		if x.body == nil {
			continue
		}
		from, fields := len(k.scratch), thrift.Unknown(x.body[:len(x.body)-1])
		k.scratch = append(thrift.AppendCompactUnknown(k.scratch, fields, 0), thrift.TypeStop)
		x.body = k.scratch[from:len(k.scratch):len(k.scratch)]
	}
	return k.fits(k.size()) // numbers can be larger in this protocol
}

// fits returns nil if an answer may have size bytes of documents.
func (k *call) fits(size int) *failure {
	switch {
	case k.method.list && size > maxTogether:
		return failTogether
	case size > maxAnswer:
		return failTooLarge
	}
	return nil
}
