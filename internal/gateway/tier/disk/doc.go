// Package disk is the tier that keeps documents in a file over restarts, on top of bbolt.
//
//	Put, Invalidate, ... --> overlay (in force at once) --batch, 1 s--> one transaction
//	Get --> overlay, else the snapshot of the last transaction
//
// Everything that changes the file goes through one writer, in batches. What a batch will do
// is in force before: reads look into the overlay of what was told since the last commit
// first. Each transaction stores, beside documents, the position of the stream that it is
// complete up to, and only documents that are not ahead of it; so a crash at any moment
// leaves a file from which the stream can go on.
//
// A document carries the epoch of its resource; a flush is a new epoch, and what is left of
// old ones is dropped by the hand of the eviction, which goes round the keys as a clock
// (second chance). Every record has a checksum over key and document. A file that proves to
// be damaged is begun anew while the gateway goes on without it.
//
// disk.go is the tier, overlay.go what is not written yet, writer.go the batches, snapshot.go and
// tree.go the readers, evict.go what goes when the file is full; record.go and table.go say what
// lies in the file, file.go, pages.go, place.go and holder_*.go open it, tools.go is for the
// commands.
package disk
