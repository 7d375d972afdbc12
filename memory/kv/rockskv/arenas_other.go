//go:build cgo && !norocksdb && !linux

package rockskv

// limitArenas does nothing where the C allocator has no arenas to bound.
func limitArenas() {}
