package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/internal/gateway/tier/disk"
)

// perDisk are the metrics of the disk tier beyond those of every tier. A gateway without one
// has none of them.
var perDisk = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*disk.Stats) float64
}{
	{diskMetric("works", "0 while the file of the disk tier cannot be used or written."), prometheus.GaugeValue, func(s *disk.Stats) float64 { return truth(s.Trouble == "") }},
	{diskMetric("file_bytes", "Size of the file, which shrinks only when it is compacted."), prometheus.GaugeValue, func(s *disk.Stats) float64 { return float64(s.FileSize) }},
	{diskMetric("document_bytes", "Keys and documents in the file."), prometheus.GaugeValue, func(s *disk.Stats) float64 { return float64(s.Bytes) }},
	{diskMetric("reads_total", "Reads of the file that found a document."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.Hits) }},
	{diskMetric("read_misses_total", "Reads of the file that found none."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.Misses) }},
	{diskMetric("batches_total", "Transactions written."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.Batches) }},
	{diskMetric("batch_failures_total", "Transactions that failed."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.Failures) }},
	{diskMetric("last_batch_seconds", "Duration of the last transaction."), prometheus.GaugeValue, func(s *disk.Stats) float64 { return s.LastBatch.Seconds() }},
	{diskMetric("written_documents_total", "Documents written."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.Written) }},
	{diskMetric("written_bytes_total", "Bytes of pages that transactions wrote."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.BytesWritten) }},
	{diskMetric("removed_documents_total", "Documents removed because they changed or were purged."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.Removed) }},
	{diskMetric("declined_documents_total", "Documents not written: too large, or no room in the queue."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.Declined) }},
	{diskMetric("queued_documents", "Documents that wait to be written."), prometheus.GaugeValue, func(s *disk.Stats) float64 { return float64(s.Queued) }},
	{diskMetric("queued_bytes", "Memory of documents that wait to be written."), prometheus.GaugeValue, func(s *disk.Stats) float64 { return float64(s.QueuedBytes) }},
	{diskMetric("rebuilds_total", "Times that the file was damaged and recreated."), prometheus.CounterValue, func(s *disk.Stats) float64 { return float64(s.Rebuilds) }},
}

var warmUpKeys = prometheus.NewDesc("slipstream_warmup_keys", "Keys of the warm-up: all, and those that were requested so far.", []string{"state"}, nil)

func diskMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("slipstream_disk_"+name, help, nil, nil)
}

// collectDisk shows the figures of the disk tier, if there is one.
func (g *Gateway) collectDisk(send sender) {
	s, ok := g.diskStats()
	if !ok {
		return
	}
	for _, m := range perDisk {
		send(m.desc, m.kind, m.value(&s))
	}
	send(warmUpKeys, prometheus.GaugeValue, float64(g.warming.total.Load()), "all")
	send(warmUpKeys, prometheus.GaugeValue, float64(g.warming.done.Load()), "asked")
}
