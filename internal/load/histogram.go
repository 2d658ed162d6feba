package load

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	histogramLowest  = int64(time.Microsecond)
	histogramHighest = int64(60 * time.Second)
	histogramDigits  = 3

	// An HDR histogram of this range takes 144 KiB. With two for each of 16,384 callers, they would
	// need 4.6 GiB, although each caller records only a few dozen values. Therefore a histogram
	// keeps plain values until they take as much memory as the buckets would.
	spillAt = 16384
)

// A Histogram records durations with three significant digits between 1 us and 60 s; longer ones
// are recorded as 60 s and counted by [Histogram.Clamped]. The zero value is ready to use. A
// Histogram has one owner at a time: use one for each worker and merge them after the run.
type Histogram struct {
	values  []int64 // nanoseconds, until buckets is set
	buckets *hdrhistogram.Histogram
	clamped int64
}

// Record adds one duration. Negative durations count as zero.
func (h *Histogram) Record(d time.Duration) {
	ns := int64(d)
	if ns > histogramHighest {
		ns = histogramHighest
		h.clamped++
	} else if ns < 0 {
		ns = 0
	}
	if h.buckets == nil {
		if len(h.values) < spillAt {
			h.values = append(h.values, ns)
			return
		}
		h.spill()
	}
	_ = h.buckets.RecordValue(ns) // in range by the clamp above
}

func (h *Histogram) spill() {
	if h.buckets == nil {
		h.buckets = hdrhistogram.New(histogramLowest, histogramHighest, histogramDigits)
	}
	for _, ns := range h.values {
		_ = h.buckets.RecordValue(ns)
	}
	h.values = nil
}

// Reset discards all values and keeps the memory, so that memory allocated in a
// warm-up is not allocated again in the measured window.
func (h *Histogram) Reset() {
	h.values = h.values[:0]
	if h.buckets != nil {
		h.buckets.Reset()
	}
	h.clamped = 0
}

// add adds n values of d, which is from 0 to 60 s.
func (h *Histogram) add(d time.Duration, n uint64) {
	h.spill()
	_ = h.buckets.RecordValues(min(int64(d), histogramHighest), int64(n)) // in range
}

// Merge adds the values of other, which is not changed.
func (h *Histogram) Merge(other *Histogram) {
	h.spill()
	for _, ns := range other.values {
		_ = h.buckets.RecordValue(ns)
	}
	if other.buckets != nil {
		h.buckets.Merge(other.buckets)
	}
	h.clamped += other.clamped
}

// Count returns the number of values recorded.
func (h *Histogram) Count() int64 {
	n := int64(len(h.values))
	if h.buckets != nil {
		n += h.buckets.TotalCount()
	}
	return n
}

// Clamped returns how many values lay above 60 s.
func (h *Histogram) Clamped() int64 { return h.clamped }

// Quantile returns the value below which the share q (0 to 1) of the recorded
// values lies, and 0 if nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	h.spill()
	if h.buckets.TotalCount() == 0 {
		return 0
	}
	return time.Duration(h.buckets.ValueAtQuantile(q * 100))
}

// Mean returns the arithmetic mean, and 0 if nothing was recorded.
func (h *Histogram) Mean() time.Duration {
	h.spill()
	if h.buckets.TotalCount() == 0 {
		return 0
	}
	return time.Duration(h.buckets.Mean())
}

// Max returns the largest value, rounded up to three digits.
func (h *Histogram) Max() time.Duration {
	h.spill()
	return time.Duration(h.buckets.Max())
}

type histogramJSON struct {
	Count   int64   `json:"count"`
	Mean    float64 `json:"mean_us"`
	P50     float64 `json:"p50_us"`
	P90     float64 `json:"p90_us"`
	P99     float64 `json:"p99_us"`
	P999    float64 `json:"p999_us"`
	Max     float64 `json:"max_us"`
	Clamped int64   `json:"clamped,omitempty"`
	// HDR holds all buckets in the compressed V2 format of HdrHistogram, encoded in base64.
	HDR string `json:"hdr"`
}

// encode returns all buckets in the compressed V2 format of HdrHistogram, encoded in base64.
func (h *Histogram) encode() (string, error) {
	h.spill()
	text, err := h.buckets.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("load: encode histogram: %w", err)
	}
	return string(text), nil
}

// MarshalJSON writes common quantiles for people and the buckets for programs, so that histograms
// of several processes can be merged.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	hdr, err := h.encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(histogramJSON{
		Count: h.Count(), Mean: micros(h.Mean()),
		P50: micros(h.Quantile(0.50)), P90: micros(h.Quantile(0.90)), P99: micros(h.Quantile(0.99)),
		P999: micros(h.Quantile(0.999)), Max: micros(h.Max()), Clamped: h.clamped, HDR: hdr,
	})
}

// hdrBegin is the prefix of every histogram in that format: its first bytes in base64.
const hdrBegin = "HIST"

// UnmarshalJSON restores a histogram from its buckets.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var in histogramJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	text := []byte(in.HDR)
	if !strings.HasPrefix(in.HDR, hdrBegin) { // older programs encoded it in base64 twice
		var err error
		if text, err = base64.StdEncoding.DecodeString(in.HDR); err != nil {
			return fmt.Errorf("load: decode histogram: %w", err)
		}
	}
	buckets, err := hdrhistogram.Decode(text)
	if err != nil {
		return fmt.Errorf("load: decode histogram: %w", err)
	}
	*h = Histogram{buckets: buckets, clamped: in.Clamped}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
