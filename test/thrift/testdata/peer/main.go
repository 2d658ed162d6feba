// Command peer answers requests of reference_test.go with code that the compiler of Apache Thrift has
// generated. A request is a line of words; so is the answer, whose first word is ok or error. Bytes
// are hexadecimal.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/thrift/lib/go/thrift"

	"peer/testpkg/shared"
	"peer/testpkg/shop"
)

var ctx = context.Background()

func protocol(name, data string) (thrift.TProtocol, *thrift.TMemoryBuffer) {
	buffer := thrift.NewTMemoryBuffer()
	b, err := hex.DecodeString(data)
	if err != nil {
		panic(err)
	}
	buffer.Write(b)
	if name == "compact" {
		return thrift.NewTCompactProtocolConf(buffer, nil), buffer
	}
	strict := name == "binary"
	return thrift.NewTBinaryProtocolConf(buffer, &thrift.TConfiguration{TBinaryStrictRead: &strict, TBinaryStrictWrite: &strict}), buffer
}

func written(p thrift.TProtocol, b *thrift.TMemoryBuffer) string {
	if err := p.Flush(ctx); err != nil {
		panic(err)
	}
	if b.Len() == 0 {
		return "-"
	}
	return hex.EncodeToString(b.Bytes())
}

func dump(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float64:
		return fmt.Sprintf("%016x", math.Float64bits(v.Float()))
	case reflect.String:
		return fmt.Sprintf(`"%x"`, v.String())
	case reflect.Pointer:
		if v.IsNil() {
			return "{}"
		}
		return dump(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fmt.Sprintf(`"%x"`, v.Bytes())
		}
		elements := make([]string, v.Len())
		for i := range elements {
			elements[i] = dump(v.Index(i))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case reflect.Map:
		var entries []string
		for _, k := range v.MapKeys() {
			entries = append(entries, dump(k)+"="+dump(v.MapIndex(k)))
		}
		slices.Sort(entries)
		return "<" + strings.Join(entries, ",") + ">"
	case reflect.Struct:
		return dumpStruct(v)
	}
	return strconv.FormatInt(v.Int(), 10)
}

func dumpStruct(v reflect.Value) string {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	fields := make(map[int]string)
	var ids []int
	for i := 0; i < v.NumField(); i++ {
		f := v.Type().Field(i)
		tag := strings.Split(f.Tag.Get("thrift"), ",")
		if len(tag) < 2 {
			continue // it has a negative ID
		}
		if set := p.MethodByName("IsSet" + f.Name); set.IsValid() && !set.Call(nil)[0].Bool() {
			continue
		}
		id, err := strconv.Atoi(tag[1])
		if err != nil {
			panic(err)
		}
		ids = append(ids, id)
		fields[id] = dump(v.Field(i))
	}
	slices.Sort(ids)
	var b strings.Builder
	b.WriteByte('{')
	for _, id := range ids {
		fmt.Fprintf(&b, "%d:%s,", id, fields[id])
	}
	return b.String() + "}"
}

func structAndBytes(name string, value thrift.TStruct) ([]string, error) {
	out, buffer := protocol(name, "")
	if err := value.Write(ctx, out); err != nil {
		return nil, err
	}
	return []string{dump(reflect.ValueOf(value)), written(out, buffer)}, nil
}

func message(name, data string) ([]string, error) {
	p, _ := protocol(name, data)
	function, kind, seq, err := p.ReadMessageBegin(ctx)
	if err != nil {
		return nil, err
	}
	out, buffer := protocol(name, "")
	if err := out.WriteMessageBegin(ctx, function, kind, seq); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("%s|%d|%d", function, kind, seq)
	if kind == thrift.EXCEPTION {
		e := thrift.NewTApplicationException(0, "")
		if err := e.Read(ctx, p); err != nil {
			return nil, err
		}
		if err := e.Write(ctx, out); err != nil {
			return nil, err
		}
		text += fmt.Sprintf("|%d|%s", e.TypeId(), e.Error())
	}
	return []string{hex.EncodeToString([]byte(text)), written(out, buffer)}, nil
}

type handler struct{ forgotten int64 }

func (h *handler) Ping(context.Context) error { return nil }

func (h *handler) Find(_ context.Context, query *shop.Query, limit int32) (*shop.Order, error) {
	switch query.GetText() {
	case "missing":
		return nil, &shop.NotFound{ID: 5, Message: "none"}
	case "closed":
		return nil, &shop.Closed{}
	case "fails":
		return nil, errors.New("failed")
	}
	order := shop.NewOrder()
	order.ID = shop.OrderId(limit)
	order.Name = query.Text
	order.Place = &shared.Point{} // nil is written without fields, although some are required
	return order, nil
}

func (h *handler) Forget(_ context.Context, id shop.OrderId) error {
	h.forgotten = int64(id)
	return nil
}

func (h *handler) All(_ context.Context, states []shop.Status) ([]*shop.Order, error) {
	var orders []*shop.Order
	for _, s := range states {
		order := shop.NewOrder()
		order.ID = shop.OrderId(s)
		order.Place = &shared.Point{}
		orders = append(orders, order)
	}
	return orders, nil
}

func (h *handler) Has(_ context.Context, id shop.OrderId) (bool, error) { return id == 1, nil }

func serve(name, data string) ([]string, error) {
	h := new(handler)
	in, _ := protocol(name, data)
	out, buffer := protocol(name, "")
	// The answer contains the error, too.
	_, _ = shop.NewOrdersProcessor(h).Process(ctx, in, out)
	return []string{strconv.FormatInt(h.forgotten, 10), written(out, buffer)}, nil
}

func call(name, function string) ([]string, error) {
	in, _ := protocol(name, "")
	out, buffer := protocol(name, "")
	client := thrift.NewTStandardClient(in, out)
	text := "q"
	var args thrift.TStruct
	switch function {
	case "find":
		args = &shop.OrdersFindArgs{Query: &shop.Query{Text: &text}, Limit: 7}
	case "forget":
		args = &shop.OrdersForgetArgs{ID: 9}
	case "all":
		args = &shop.OrdersAllArgs{States: []shop.Status{shop.Status_RETURNED}}
	default:
		args = &shop.BasePingArgs{}
	}
	// Send calls a function that is not oneway; the message type is the only difference.
	if err := client.Send(ctx, out, 0, function, args); err != nil {
		return nil, err
	}
	return []string{"-", written(out, buffer)}, nil
}

func answer(name, data string) ([]string, error) {
	in, _ := protocol(name, data)
	out, _ := protocol(name, "")
	result := shop.NewOrdersFindResult()
	err := thrift.NewTStandardClient(in, out).Recv(ctx, in, 0, "find", result)
	var e thrift.TApplicationException
	switch {
	case errors.As(err, &e):
		return []string{"TApplicationException", fmt.Sprintf("%d|%s", e.TypeId(), e.Error())}, nil
	case err != nil:
		return nil, err
	case result.Missing != nil:
		return []string{"NotFound", dump(reflect.ValueOf(result.Missing))}, nil
	case result.Closed != nil:
		return []string{"Closed", dump(reflect.ValueOf(result.Closed))}, nil
	}
	return []string{"Order", dump(reflect.ValueOf(result.Success))}, nil
}

func do(words []string) (answers []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	switch words[0] {
	case "read":
		value := structs[words[2]]()
		p, _ := protocol(words[1], words[3])
		if err := value.Read(ctx, p); err != nil {
			return nil, err
		}
		return structAndBytes(words[1], value)
	case "new":
		return structAndBytes(words[1], structs[words[2]]())
	case "message":
		return message(words[1], words[2])
	case "serve":
		return serve(words[1], words[2])
	case "call":
		return call(words[1], words[2])
	case "answer":
		return answer(words[1], words[2])
	}
	return nil, errors.New("unknown request")
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		answers, err := do(strings.Fields(lines.Text()))
		text := "ok " + strings.Join(answers, " ")
		if err != nil {
			text = "error " + err.Error()
		}
		fmt.Println(strings.ReplaceAll(text, "\n", " "))
	}
}
