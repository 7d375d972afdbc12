package unread_test

import (
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc/mem"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/server/unread"
)

// The place of an answer comes back with its buffer, whether the transport frees that or
// loses it.
func TestPlaceComesBack(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	pool := share.New(share.Options{Name: "bytes", Total: 4 * size, OneTenant: true})
	room := unread.NewRoom(pool, 4*size, time.Hour, time.Now)
	buffer := func() mem.Buffer {
		answer, err := room.Take(t.Context(), nil, share.Owner{Agent: "a"}, size)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, size)
		return answer.Buffer(&data, nil)
	}
	freed := buffer()
	if got := pool.Held(); got != size {
		t.Fatalf("%d bytes are held", got)
	}
	freed.Free()
	if got := pool.Held(); got != 0 {
		t.Fatalf("%d bytes are held of a buffer that was freed", got)
	}
	buffer() // lost
	for end := time.Now().Add(5 * time.Minute); pool.Held() != 0; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held of a buffer that is gone", pool.Held())
		}
	}
}
