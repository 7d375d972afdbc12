//go:build cgo && !norocksdb

package rockskv

/*
#include <malloc.h>

static void loom_limit_arenas(int n, int map_from) {
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, n);
#endif
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, map_from);
#endif
}
*/
import "C"

import (
	"runtime"
	"sync"
)

// limitArenas bounds the arenas of the C allocator. By default glibc gives each thread its
// own arena, up to eight for each core, and what RocksDB frees in one serves no other: with
// a hundred thousand vectors a server took a third more memory than it does so. What is as
// large as a part of a write buffer is mapped apart and given back when it is freed: glibc
// raises the size from which it does that whenever such a piece is freed, which leaves
// holes of tens of megabytes. It belongs in front of the first use of RocksDB.
var limitArenas = sync.OnceFunc(func() {
	const least, mapFrom = 2, 128 << 10 // bytes; glibc's own, fixed
	C.loom_limit_arenas(C.int(max(least, runtime.GOMAXPROCS(0)/2)), mapFrom)
})
