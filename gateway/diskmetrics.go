package gateway

import "github.com/slipstream-go/slipstream/internal/gateway/tier/disk"

// perDisk are the metrics that only the disk tier has. A gateway without one has none of them.
var perDisk = []struct {
	metric
	value func(*disk.Stats) float64
}{
	{diskMetric("works", "0 while the file of the disk tier cannot be used or written."), func(s *disk.Stats) float64 { return truth(s.Trouble == "") }},
	{diskMetric("file_bytes", "Size of the file, which shrinks only when it is compacted."), func(s *disk.Stats) float64 { return float64(s.FileSize) }},
	{diskMetric("document_bytes", "Keys and documents in the file."), func(s *disk.Stats) float64 { return float64(s.Bytes) }},
	{diskMetric("reads_total", "Reads of the file that found a document."), func(s *disk.Stats) float64 { return float64(s.Hits) }},
	{diskMetric("read_misses_total", "Reads of the file that found none."), func(s *disk.Stats) float64 { return float64(s.Misses) }},
	{diskMetric("batches_total", "Transactions written."), func(s *disk.Stats) float64 { return float64(s.Batches) }},
	{diskMetric("batch_failures_total", "Transactions that failed."), func(s *disk.Stats) float64 { return float64(s.Failures) }},
	{diskMetric("last_batch_seconds", "Duration of the last transaction."), func(s *disk.Stats) float64 { return s.LastBatch.Seconds() }},
	{diskMetric("written_documents_total", "Documents written."), func(s *disk.Stats) float64 { return float64(s.Written) }},
	{diskMetric("written_bytes_total", "Bytes of pages that transactions wrote."), func(s *disk.Stats) float64 { return float64(s.BytesWritten) }},
	{diskMetric("removed_documents_total", "Documents removed because they changed or were purged."), func(s *disk.Stats) float64 { return float64(s.Removed) }},
	{diskMetric("declined_documents_total", "Documents not written: too large, or no room in the queue."), func(s *disk.Stats) float64 { return float64(s.Declined) }},
	{diskMetric("queued_documents", "Documents that wait to be written."), func(s *disk.Stats) float64 { return float64(s.Queued) }},
	{diskMetric("queued_bytes", "Memory of documents that wait to be written."), func(s *disk.Stats) float64 { return float64(s.QueuedBytes) }},
	{diskMetric("rebuilds_total", "Times that the file was damaged and recreated."), func(s *disk.Stats) float64 { return float64(s.Rebuilds) }},
}

var warmUpKeys = newMetric("warmup_keys", "Keys of the warm-up: all of them, and those requested so far.", "state")

func diskMetric(name, help string) metric { return newMetric("disk_"+name, help) }

// collectDisk collects the metrics of the disk tier, if there is one.
func (g *Gateway) collectDisk(to sink) {
	s, ok := g.diskStats()
	if !ok {
		return
	}
	for _, m := range perDisk {
		to.send(m.metric, m.value(&s))
	}
	to.send(warmUpKeys, float64(g.warming.total.Load()), "all")
	to.send(warmUpKeys, float64(g.warming.done.Load()), "asked")
}
