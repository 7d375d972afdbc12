package loomv1

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/proto"

	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
)

func publishOfSize(size int) *loomv1pb.Publish {
	return &loomv1pb.Publish{Topic: "t", Event: &loomv1pb.Event{Payload: make([]byte, size)}}
}

// A full queue makes who puts wait, by number and by bytes, until some is taken.
func TestPublishQueueIsBounded(t *testing.T) {
	for name, tt := range map[string]struct{ size, fits int }{
		"number": {0, maxQueuedPublishes},
		"bytes":  {1 << 20, maxQueuedPublishBytes / (1<<20 + 20)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newPublishQueue(nil)
				for range tt.fits {
					if err := q.put(t.Context(), publishOfSize(tt.size)); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 2)
				go func() { done <- q.put(ctx, publishOfSize(tt.size)) }()
				synctest.Wait()
				if len(done) != 0 {
					t.Fatal("it did not wait")
				}
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
				go func() { done <- q.put(t.Context(), publishOfSize(tt.size)) }()
				synctest.Wait()
				taken := len(q.take())
				if err := <-done; err != nil {
					t.Errorf("got %v", err)
				}
				q.close()
				for batch := q.take(); len(batch) > 0; batch = q.take() {
					taken += len(batch)
				}
				if taken != tt.fits+1 {
					t.Errorf("%d taken, want %d", taken, tt.fits+1)
				}
			})
		})
	}
}

// One publish that is larger than the queue passes when it is empty.
func TestPublishQueueTakesOneOfAnySize(t *testing.T) {
	q := newPublishQueue(nil)
	large := publishOfSize(maxQueuedPublishBytes + 1)
	if err := q.put(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	if got := q.take(); len(got) != 1 || !proto.Equal(got[0], large) {
		t.Errorf("%d taken", len(got))
	}
}

func TestPublishQueueWakesWhoTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newPublishQueue(nil)
		taken := make(chan int)
		go func() { taken <- len(q.take()) }()
		synctest.Wait()
		if err := q.put(t.Context(), publishOfSize(1)); err != nil {
			t.Fatal(err)
		}
		if got := <-taken; got != 1 {
			t.Errorf("%d taken", got)
		}
		go func() { taken <- len(q.take()) }()
		synctest.Wait()
		q.close()
		if got := <-taken; got != 0 {
			t.Errorf("%d taken from a closed queue", got)
		}
	})
}
