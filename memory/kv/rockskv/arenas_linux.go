//go:build cgo && !norocksdb

package rockskv

/*
#include <malloc.h>

static void loom_limit_arenas(int n) {
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, n);
#endif
}
*/
import "C"

import (
	"runtime"
	"sync"
)

// limitArenas bounds the arenas of the C allocator. By default glibc gives each
// thread one of its own, up to eight for each core, and what RocksDB frees in one
// serves no other: with a hundred thousand vectors a server took a third more
// memory than it does so. It belongs in front of the first use of RocksDB.
var limitArenas = sync.OnceFunc(func() {
	const least = 2
	C.loom_limit_arenas(C.int(max(least, runtime.GOMAXPROCS(0)/2)))
})
