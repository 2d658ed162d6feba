package walk

import (
	"context"
	"fmt"
	"reflect"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// protocol calls a TProtocol until the first error.
type protocol struct {
	thrift.TProtocol
	ctx context.Context
	err error
}

func (p *protocol) check(err error) {
	if p.err == nil {
		p.err = err
	}
}

// Write writes a struct as code that the compiler of Apache Thrift generates would.
func Write(ctx context.Context, to thrift.TProtocol, v reflect.Value, s *idl.Struct) error {
	p := &protocol{to, ctx, nil}
	p.writeStruct(reflect.Indirect(v), s)
	p.check(to.Flush(ctx))
	return p.err
}

var types = map[idl.Kind]thrift.TType{
	idl.Bool: thrift.BOOL, idl.I8: thrift.BYTE, idl.I16: thrift.I16, idl.I32: thrift.I32, idl.I64: thrift.I64, idl.Double: thrift.DOUBLE,
	idl.String: thrift.STRING, idl.Binary: thrift.STRING, idl.UUID: thrift.UUID, idl.List: thrift.LIST, idl.Set: thrift.SET, idl.Map: thrift.MAP,
}

func typeOf(t *idl.Type) thrift.TType {
	t = t.True()
	if t.Struct() != nil {
		return thrift.STRUCT
	}
	if t.Kind == idl.Named {
		return thrift.I32
	}
	return types[t.Kind]
}

func (p *protocol) writeStruct(v reflect.Value, s *idl.Struct) {
	p.check(p.WriteStructBegin(p.ctx, s.Name))
	if v.IsValid() {
		for _, f := range Fields(v.Type(), s) {
			field, ok := f.Of(v, s.Kind == idl.Union)
			if !ok {
				continue
			}
			p.check(p.WriteFieldBegin(p.ctx, f.IDL.Name, typeOf(f.IDL.Type), f.IDL.ID))
			p.write(field, f.IDL.Type)
			p.check(p.WriteFieldEnd(p.ctx))
		}
	}
	p.check(p.WriteFieldStop(p.ctx))
	p.check(p.WriteStructEnd(p.ctx))
}

func (p *protocol) write(v reflect.Value, t *idl.Type) {
	t = t.True()
	switch t.Kind {
	case idl.Bool:
		p.check(p.WriteBool(p.ctx, v.Bool()))
	case idl.I8:
		p.check(p.WriteByte(p.ctx, int8(v.Int())))
	case idl.I16:
		p.check(p.WriteI16(p.ctx, int16(v.Int())))
	case idl.I32:
		p.check(p.WriteI32(p.ctx, int32(v.Int())))
	case idl.I64:
		p.check(p.WriteI64(p.ctx, v.Int()))
	case idl.Double:
		p.check(p.WriteDouble(p.ctx, v.Float()))
	case idl.String:
		p.check(p.WriteString(p.ctx, v.String()))
	case idl.Binary:
		p.check(p.WriteBinary(p.ctx, Bytes(v)))
	case idl.UUID:
		p.check(p.WriteUUID(p.ctx, thrift.Tuuid(Bytes(v))))
	case idl.List, idl.Set:
		if t.Kind == idl.List {
			p.check(p.WriteListBegin(p.ctx, typeOf(t.Elem), v.Len()))
		} else {
			p.check(p.WriteSetBegin(p.ctx, typeOf(t.Elem), v.Len()))
		}
		for i := range v.Len() {
			p.write(v.Index(i), t.Elem)
		}
	case idl.Map:
		p.check(p.WriteMapBegin(p.ctx, typeOf(t.Key), typeOf(t.Elem), v.Len()))
		for k, e := range Entries(v) {
			p.write(k, t.Key)
			p.write(e, t.Elem)
		}
	default:
		if s := t.Struct(); s != nil {
			p.writeStruct(reflect.Indirect(v), s)
			return
		}
		p.check(p.WriteI32(p.ctx, int32(v.Int())))
	}
}

// Read reads a struct. It fails if a field of the input has a type other than that in the IDL.
func Read(ctx context.Context, from thrift.TProtocol, v reflect.Value, s *idl.Struct) error {
	p := &protocol{from, ctx, nil}
	p.readStruct(reflect.Indirect(v), s)
	return p.err
}

func (p *protocol) readStruct(v reflect.Value, s *idl.Struct) {
	_, err := p.ReadStructBegin(p.ctx)
	p.check(err)
	fields := Fields(v.Type(), s)
	for p.err == nil {
		_, t, id, err := p.ReadFieldBegin(p.ctx)
		p.check(err)
		if err != nil || t == thrift.STOP {
			break
		}
		found := false
		for _, f := range fields {
			if f.IDL.ID != id {
				continue
			}
			found = true
			p.expect(t, typeOf(f.IDL.Type))
			field := v.Field(f.Index)
			if IsOpt(field.Type()) {
				field.Field(1).SetBool(true)
				field = field.Field(0)
			} else if field.Kind() == reflect.Pointer {
				field.Set(reflect.New(field.Type().Elem()))
				field = field.Elem()
			}
			p.read(field, f.IDL.Type)
		}
		if !found {
			p.check(fmt.Errorf("%s has no field %d", s.Name, id))
		}
		p.check(p.ReadFieldEnd(p.ctx))
	}
	p.check(p.ReadStructEnd(p.ctx))
}

func (p *protocol) expect(got, want thrift.TType) {
	if got != want {
		p.check(fmt.Errorf("the type is %v, not %v", got, want))
	}
}

func (p *protocol) read(v reflect.Value, t *idl.Type) {
	t = t.True()
	if p.err != nil {
		return
	}
	switch t.Kind {
	case idl.Bool:
		x, err := p.ReadBool(p.ctx)
		p.check(err)
		v.SetBool(x)
	case idl.I8:
		x, err := p.ReadByte(p.ctx)
		p.setInt(v, int64(x), err)
	case idl.I16:
		x, err := p.ReadI16(p.ctx)
		p.setInt(v, int64(x), err)
	case idl.I64:
		x, err := p.ReadI64(p.ctx)
		p.setInt(v, x, err)
	case idl.Double:
		x, err := p.ReadDouble(p.ctx)
		p.check(err)
		v.SetFloat(x)
	case idl.String, idl.Binary:
		p.readText(v)
	case idl.UUID:
		x, err := p.ReadUUID(p.ctx)
		p.check(err)
		reflect.Copy(v, reflect.ValueOf(x[:]))
	case idl.List, idl.Set:
		p.readElements(v, t)
	case idl.Map:
		p.readEntries(v, t)
	default:
		if s := t.Struct(); s != nil {
			p.readStruct(v, s)
			return
		}
		x, err := p.ReadI32(p.ctx) // I32 and enums
		p.setInt(v, int64(x), err)
	}
}

func (p *protocol) setInt(v reflect.Value, x int64, err error) {
	p.check(err)
	v.SetInt(x)
}

func (p *protocol) readText(v reflect.Value) {
	x, err := p.ReadBinary(p.ctx)
	p.check(err)
	if v.Kind() == reflect.String {
		v.SetString(string(x))
	} else {
		v.SetBytes(append([]byte{}, x...))
	}
}

func (p *protocol) readElements(v reflect.Value, t *idl.Type) {
	begin := p.ReadListBegin
	if t.Kind == idl.Set {
		begin = p.ReadSetBegin
	}
	elem, n, err := begin(p.ctx)
	p.check(err)
	if n > 0 {
		p.expect(elem, typeOf(t.Elem))
	}
	if p.err != nil {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		p.read(v.Index(i), t.Elem)
	}
}

func (p *protocol) readEntries(v reflect.Value, t *idl.Type) {
	key, elem, n, err := p.ReadMapBegin(p.ctx)
	p.check(err)
	if n > 0 {
		p.expect(key, typeOf(t.Key))
		p.expect(elem, typeOf(t.Elem))
	}
	if p.err != nil {
		return
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			p.read(v.Index(i).Field(0), t.Key)
			p.read(v.Index(i).Field(1), t.Elem)
		}
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range n {
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		p.read(k, t.Key)
		p.read(e, t.Elem)
		v.SetMapIndex(k, e)
	}
}
