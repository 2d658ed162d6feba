package http1

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestStatusLines(t *testing.T) {
	for status := range 1100 {
		for minor := range 2 {
			want := fmt.Sprintf("HTTP/1.%d %d %s\r\n", minor, status, http.StatusText(status))
			if status < 100 || status > 999 {
				want = fmt.Sprintf("HTTP/1.%d 500 Internal Server Error\r\n", minor)
			}
			if got := string(AppendStatus([]byte("x"), minor, status)); got != "x"+want {
				t.Errorf("AppendStatus(%d, %d): got %q, want %q after x", minor, status, got, want)
			}
		}
	}
	if got := string(AppendStatus(nil, 1, -200)); got != "HTTP/1.1 500 Internal Server Error\r\n" {
		t.Errorf("status -200: got %q", got)
	}
}

func TestAppendField(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"application/json", "application/json"},
		{"", ""},
		{"a\r\nSet-Cookie: b", "a  Set-Cookie: b"},
		{"\n\r\x00", "   "},
		{"a\tb\xff\x01", "a\tb\xff\x01"},
	} {
		if got, want := string(AppendField([]byte("\r\n\x00"), "Name", c.value)), "\r\n\x00Name: "+c.want+"\r\n"; got != want {
			t.Errorf("AppendField(%q): got %q, want %q", c.value, got, want)
		}
	}
}

func checkDate(t *testing.T, second int64, got, want []byte) {
	t.Helper()
	got = AppendDate(got[:0], second)
	want = time.Unix(second, 0).UTC().AppendFormat(want[:0], http.TimeFormat)
	if string(got) != string(want) {
		t.Fatalf("second %d: got %q, want %q", second, got, want)
	}
}

// TestDates checks a different second of each day for the first 430 years, more than a full cycle
// of the calendar, and of every eleventh day after them. It also checks seconds throughout the days
// at the end of certain months, years and ranges.
func TestDates(t *testing.T) {
	got, want := make([]byte, 0, 64), make([]byte, 0, 64)
	second := int64(0)
	for day := int64(0); day <= lastSecond/daySeconds; day++ {
		if day > 430*366 && day%11 != 0 {
			continue
		}
		second = (second + 50021) % daySeconds
		checkDate(t, day*daySeconds+second, got, want)
	}
	for _, c := range []struct {
		date string
		step int64
	}{
		{"2024-02-28", 1}, {"2024-02-29", 7}, {"1970-01-01", 7}, {"1999-12-31", 7}, {"2100-02-28", 7}, {"9999-12-30", 7},
	} {
		day, err := time.Parse(time.DateOnly, c.date)
		if err != nil {
			t.Fatal(err)
		}
		for s := int64(0); s < 2*daySeconds; s += c.step {
			checkDate(t, day.Unix()+s, got, want)
		}
	}
}

func TestDatesOutOfRange(t *testing.T) {
	for second, want := range map[int64]string{
		-1:             "Thu, 01 Jan 1970 00:00:00 GMT",
		-1 << 63:       "Thu, 01 Jan 1970 00:00:00 GMT",
		lastSecond:     "Fri, 31 Dec 9999 23:59:59 GMT",
		lastSecond + 1: "Fri, 31 Dec 9999 23:59:59 GMT",
		1<<63 - 1:      "Fri, 31 Dec 9999 23:59:59 GMT",
	} {
		if got := string(AppendDate(nil, second)); got != want {
			t.Errorf("second %d: got %q, want %q", second, got, want)
		}
	}
}

func TestAppendersDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 1024)
	noAllocs(t, "AppendStatus", func() { buf = AppendStatus(AppendStatus(buf[:0], 1, 200), 0, 503) })
	noAllocs(t, "AppendField", func() { buf = AppendField(buf[:0], "X", "a\r\nb") })
	noAllocs(t, "AppendDate", func() { buf = AppendDate(buf[:0], 1732233600) })
	noAllocs(t, "Reason", func() { buf = append(append(buf[:0], ReasonTooLarge.String()...), MethodHead.String()...) })
}
