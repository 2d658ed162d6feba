package load

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// WholeTag is the tag of the line of an HDR log that covers the whole window.
const WholeTag = "window"

// WriteHDRLog writes the latencies of a run in the log format of HdrHistogram, version 1.3, with
// histograms in its compressed V2 format: one line for each interval of the time line, whose
// latencies are at most 1.6 % too high, and one with the tag [WholeTag] for the whole window, exact
// to three digits. As the format requires, values are in nanoseconds, and the maximum of an
// interval is in milliseconds. started is when the window began.
func WriteHDRLog(w io.Writer, started time.Time, line []Interval, whole *Histogram) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#[Logged by slipstream bench]\n#[Histogram log format version 1.3]\n#[StartTime: %.3f (seconds since epoch), %s]\n",
		float64(started.UnixMilli())/1e3, started.UTC().Format(time.RFC3339))
	b.WriteString(`"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"` + "\n")
	var end time.Duration
	for i := range line {
		if err := appendHDR(&b, "", line[i].Start, line[i].Width, line[i].latencies()); err != nil {
			return err
		}
		end = line[i].Start + line[i].Width
	}
	if err := appendHDR(&b, "Tag="+WholeTag+",", 0, end, whole); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func appendHDR(b *bytes.Buffer, tag string, start, width time.Duration, h *Histogram) error {
	text, err := h.encode()
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%s%.3f,%.3f,%.3f,%s\n", tag, start.Seconds(), width.Seconds(), float64(h.Max())/float64(time.Millisecond), text)
	return nil
}

// A bucketCount is the number of requests of an interval in one latency bucket.
type bucketCount struct {
	bucket int32
	count  uint64
}

// sparse returns the non-empty buckets of a cell.
func (c *cell) sparse() (counts []bucketCount) {
	for i, n := range c.buckets {
		if n > 0 {
			counts = append(counts, bucketCount{int32(i), n})
		}
	}
	return counts
}

// latencies returns the latencies of an interval, each rounded up to the highest of its bucket.
func (i *Interval) latencies() *Histogram {
	h := new(Histogram)
	for _, c := range i.counts {
		h.add(min(time.Duration(lineTop(int(c.bucket))), max(i.Max, 1)), c.count)
	}
	return h
}
