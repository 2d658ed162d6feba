// Package disk is the tier that keeps documents in a file across restarts, on top of bbolt.
//
//	Put, Invalidate, ... --> overlay (in force immediately) --batch, 1 s--> one transaction
//	Get --> overlay, else the snapshot of the last transaction
//
// Everything that changes the file goes through one writer, in batches. The effect of a batch
// is visible before it is written: reads first look into the overlay of changes since the last
// commit. Each transaction stores, with its documents, the position of the stream up to which
// it is complete, and only documents that are not ahead of it; so a crash at any moment leaves
// a file from which the stream can continue.
//
// A document carries the epoch of its resource; a flush is a new epoch, and records of old
// ones are dropped by the hand of the eviction, which moves around the keys like a clock
// (second chance). Every record has a checksum over key and document. A file that turns out to
// be damaged is recreated while the gateway continues without it.
//
// disk.go is the tier, overlay.go has changes that are not written yet, writer.go the batches,
// snapshot.go and tree.go the readers, evict.go the eviction when the file is full; record.go and
// table.go define the content of the file, file.go, pages.go, place.go and holder_*.go open it,
// tools.go is for the commands.
package disk
