package main

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	googleuuid "github.com/google/uuid"
	"github.com/tarantool/go-iproto"
	rival "github.com/tarantool/go-tarantool/v3"
	"github.com/tarantool/go-tarantool/v3/datetime"
	"github.com/tarantool/go-tarantool/v3/decimal"
	_ "github.com/tarantool/go-tarantool/v3/uuid" // reads and writes those of google/uuid

	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
	ourproto "github.com/slipstream-go/slipstream/tarantool/iproto"
)

// peerValue is a value in the types of go-tarantool and of package tarantool.
type peerValue struct{ theirs, ours any }

func peerValues(t *testing.T) []peerValue {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	number := func(text string) peerValue {
		theirs, err := decimal.NewDecimalFromString(text)
		must(err)
		ours, err := ourproto.ParseDecimal(text)
		must(err)
		return peerValue{theirs, ours}
	}
	moment := func(when time.Time) peerValue {
		theirs, err := datetime.NewDatetime(when)
		must(err)
		return peerValue{theirs, tarantool.DatetimeOf(when)}
	}
	id := "00112233-4455-6677-8899-aabbccddeeff"
	ours, err := ourproto.ParseUUID(id)
	must(err)
	moscow, err := time.LoadLocation("Europe/Moscow")
	must(err)
	return []peerValue{
		number("0"), number("-1"), number("12345.678"), number("-0.00000000000000000000000000000000000001"),
		number("99999999999999999999999999999999999999"), number("-123456789012345678901234567890.12345678"), number("100"),
		{googleuuid.MustParse(id), ours}, {googleuuid.UUID{}, ourproto.UUID{}},
		moment(time.Unix(0, 0).UTC()), moment(time.Unix(1_700_000_000, 123_456_789).UTC()), moment(time.Unix(-1, 1).UTC()),
		moment(time.Date(2024, 2, 29, 12, 0, 0, 5, moscow)), moment(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)),
		moment(time.Date(2023, 7, 1, 12, 0, 0, 0, time.FixedZone("", -5*3600-1800))),
		{datetime.Interval{}, ourproto.Interval{Adjust: ourproto.AdjustNone}},
		{
			datetime.Interval{Year: 1, Month: -2, Week: 3, Day: -4, Hour: 5, Min: -6, Sec: 7, Nsec: -8, Adjust: datetime.LastAdjust},
			ourproto.Interval{Years: 1, Months: -2, Weeks: 3, Days: -4, Hours: 5, Minutes: -6, Seconds: 7, Nanoseconds: -8, Adjust: ourproto.AdjustLast},
		},
		{datetime.Interval{Month: 100_000, Adjust: datetime.ExcessAdjust}, ourproto.Interval{Months: 100_000, Adjust: ourproto.AdjustExcess}},
		{nil, nil}, {true, true}, {"text", "text"}, {"", ""}, {[]byte{0, 0xff}, []byte{0, 0xff}},
		{int8(-1), int64(-1)}, {int64(math.MinInt64), int64(math.MinInt64)}, {uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{uint32(math.MaxUint32), int64(math.MaxUint32)}, {1.5, 1.5}, {math.Inf(-1), math.Inf(-1)}, {float32(0.25), 0.25},
		{[]any{int8(1), []any{}, nil}, []any{int64(1), []any{}, nil}},
		{map[string]any{"a": map[string]any{"b": "c"}}, map[any]any{"a": map[any]any{"b": "c"}}},
		{strings.Repeat("long ", 20_000), strings.Repeat("long ", 20_000)},
	}
}

// peerText formats a value without the differences between the libraries: whether it is a pointer,
// the width of an integer, and the name of a time zone, which is checked separately.
func peerText(v any) string {
	switch v := v.(type) {
	case datetime.Datetime:
		return peerText(v.ToTime())
	case ourproto.Datetime:
		return peerText(tarantool.TimeOf(v))
	case time.Time:
		_, offset := v.Zone()
		return fmt.Sprint(v.Unix(), v.Nanosecond(), offset)
	case decimal.Decimal:
		return "decimal " + v.Decimal.String()
	case ourproto.Decimal:
		return "decimal " + v.String()
	case datetime.Interval:
		return fmt.Sprint("interval ", v.Year, v.Month, v.Week, v.Day, v.Hour, v.Min, v.Sec, v.Nsec, " ", v.Adjust)
	case ourproto.Interval:
		theirs := map[ourproto.Adjust]datetime.Adjust{ourproto.AdjustNone: datetime.NoneAdjust, ourproto.AdjustLast: datetime.LastAdjust, ourproto.AdjustExcess: datetime.ExcessAdjust}
		return fmt.Sprint("interval ", v.Years, v.Months, v.Weeks, v.Days, v.Hours, v.Minutes, v.Seconds, v.Nanoseconds, " ", theirs[v.Adjust])
	}
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() {
		return peerText(p.Elem().Interface())
	}
	return fmt.Sprint(v)
}

// Values sent by the client arrive unchanged, and the client reads the server's values
// unchanged, in a call and in a tuple.
func TestPeerValues(t *testing.T) {
	s := peerServer(t, tarantoolsim.Config{})
	c := peerConnect(t, s, rival.Opts{})
	var got any
	s.Func("take", func(r *tarantoolsim.Request) ([]any, error) { got = r.Args[0]; return nil, nil })
	var give any
	s.Func("give", func(*tarantoolsim.Request) ([]any, error) { return []any{give}, nil })
	for i, v := range peerValues(t) {
		if answer := peerAnswer(c.Do(rival.NewCallRequest("take").Args([]any{v.theirs}))); answer != "[]" {
			t.Fatal(answer)
		}
		if peerText(got) != peerText(v.ours) {
			t.Errorf("value %d: the server got %s, want %s", i, peerText(got), peerText(v.ours))
		}
		give = v.ours
		for _, r := range []rival.Request{
			rival.NewCallRequest("give"), rival.NewReplaceRequest("users").Tuple([]any{uint(i), fmt.Sprint(i), nil, v.theirs}),
			rival.NewSelectRequest("users").Key([]any{uint(i)}),
		} {
			data, err := c.Do(r).Get()
			if err != nil {
				t.Fatalf("value %d, %s: %v", i, r.Type(), err)
			}
			back := data[0]
			if r.Type() != iproto.IPROTO_CALL {
				back = back.([]any)[3]
			}
			if peerText(back) != peerText(v.theirs) {
				t.Errorf("value %d, %s: the client got %s, want %s", i, r.Type(), peerText(back), peerText(v.theirs))
			}
		}
	}
	if len(s.Tuples("users")) != len(peerValues(t)) {
		t.Error("tuples are missing")
	}
}

// Errors of requests with their causes, and errors as values.
func TestPeerErrors(t *testing.T) {
	s := peerServer(t, tarantoolsim.Config{})
	c := peerConnect(t, s, rival.Opts{})
	cause := &ourproto.BoxError{Type: "CustomError", Message: "why", File: "b.lua", Line: 3, Errno: 2, Code: 5, Fields: map[string]any{"custom_type": "E", "n": int64(-7)}}
	whole := &ourproto.BoxError{Type: "ClientError", Message: "what", File: "a.lua", Line: 1 << 20, Code: 32_000, Cause: cause}
	var fails error
	s.Func("fails", func(*tarantoolsim.Request) ([]any, error) { return nil, fails })
	s.Func("returns", func(*tarantoolsim.Request) ([]any, error) { return []any{whole, 1}, nil })
	var taken any
	s.Func("takes", func(r *tarantoolsim.Request) ([]any, error) { taken = r.Args[0]; return nil, nil })

	check := func(e *rival.BoxError) {
		t.Helper()
		if e == nil || e.Prev == nil {
			t.Fatalf("%+v, want two errors", e)
		}
		if e.Type != "ClientError" || e.Msg != "what" || e.File != "a.lua" || e.Line != 1<<20 || e.Code != 32_000 || e.Errno != 0 || len(e.Fields) != 0 {
			t.Errorf("%+v", e)
		}
		p := e.Prev
		if p.Type != "CustomError" || p.Msg != "why" || p.File != "b.lua" || p.Line != 3 || p.Code != 5 || p.Errno != 2 || fmt.Sprint(p.Fields) != "map[custom_type:E n:-7]" || p.Prev != nil {
			t.Errorf("%+v", p)
		}
	}
	call := func(f string, args ...any) ([]any, error) { return c.Do(rival.NewCallRequest(f).Args(args)).Get() }
	fails = whole
	_, err := call("fails")
	var refused rival.ServerError
	if !errors.As(err, &refused) || refused.Code != 32_000 || refused.Msg != "what" {
		t.Fatal(err)
	}
	check(refused.ExtendedInfo)
	data, err := call("returns")
	if err != nil || len(data) != 2 {
		t.Fatal(data, err)
	}
	check(data[0].(*rival.BoxError))
	if _, err := call("takes", data[0]); err != nil {
		t.Fatal(err)
	}
	if e, is := taken.(*ourproto.BoxError); !is || e.Message != "what" || e.Code != 32_000 || e.Cause == nil || fmt.Sprint(e.Cause.Fields) != fmt.Sprint(cause.Fields) || e.Cause.Errno != 2 {
		t.Errorf("%+v", taken)
	}

	fails = errors.New("like one of Lua")
	if got := peerAnswer(c.Do(rival.NewCallRequest("fails"))); got != iproto.ER_PROC_LUA.String() {
		t.Error(got)
	}
	fails = tarantoolsim.Error(uint32(iproto.ER_READONLY), "no")
	peerSteps(t, c, []peerStep{
		{rival.NewCallRequest("fails"), iproto.ER_READONLY.String()},
		{rival.NewCallRequest("nothing"), iproto.ER_NO_SUCH_PROC.String()},
		{rival.NewEvalRequest("return nothing"), iproto.ER_PROC_LUA.String()},
	})
	s.SetReadOnly(true)
	peerSteps(t, c, []peerStep{{rival.NewInsertRequest("users").Tuple([]any{uint(1), "one"}), iproto.ER_READONLY.String()}})
}

// Calls and evaluations, with arguments and any number of results.
func TestPeerCalls(t *testing.T) {
	s := peerServer(t, tarantoolsim.Config{})
	c := peerConnect(t, s, rival.Opts{})
	echo := func(r *tarantoolsim.Request) ([]any, error) { return r.Args, nil }
	s.Func("echo", echo)
	s.Eval("return ...", echo)
	s.Func("box.broadcast", func(r *tarantoolsim.Request) ([]any, error) {
		s.Broadcast(r.Args[0].(string), r.Args[1])
		return nil, nil
	})
	peerSteps(t, c, []peerStep{
		{rival.NewCallRequest("echo"), "[]"},
		{rival.NewCallRequest("echo").Args([]any{1, "two", []any{3}}), "[1 two [3]]"},
		{rival.NewEvalRequest("return ...").Args([]any{nil, -1}), "[<nil> -1]"},
		{rival.NewEvalRequest("return ..."), "[]"},
		{rival.NewBroadcastRequest("key").Value([]any{"value"}), "[]"},
		{rival.NewWatchOnceRequest("key"), "[[value]]"},
	})
	const together = 1000
	futures := make([]rival.Future, together)
	s.Reorder(7)
	for i := range futures {
		futures[i] = c.Do(rival.NewCallRequest("echo").Args([]any{i}))
	}
	s.Reorder(0)
	for i, f := range futures {
		if got := peerAnswer(f); got != fmt.Sprintf("[%d]", i) {
			t.Fatalf("call %d: %s", i, got)
		}
	}
}
