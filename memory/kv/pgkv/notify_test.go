package pgkv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// What could not be told is told again, together with what moved meanwhile, also when
// nothing moves any more.
func TestWhatWasNotToldIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var payloads []string
		h := &notifier{
			db: &DB{origin: "here", options: Options{Logger: slog.New(slog.DiscardHandler)}}, wake: make(chan struct{}, 1), moved: make(map[kv.Ref]struct{}),
			notify: func(_ context.Context, payload string) error {
				payloads = append(payloads, payload)
				if len(payloads) <= 3 {
					return errors.New("the connection is lost")
				}
				return nil
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.sending(ctx)
		}()
		move := func(owner string) kv.Ref {
			ref := kv.Ref{Keyspace: kv.Records, Scope: kv.AgentScope("t", owner)}
			h.announce([]kv.Guard{{Ref: ref}})
			return ref
		}
		want := []kv.Ref{move("first")}
		time.Sleep(notifyPause + listenAgain/2) // it has failed, and pauses
		want = append(want, move("second"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(payloads) != 4 {
			t.Fatalf("told %d times, want 4: %q", len(payloads), payloads)
		}
		var got []kv.Ref
		for _, move := range movesOf("there", payloads[3]) {
			got = append(got, move.Ref)
		}
		slices.SortFunc(got, func(a, b kv.Ref) int { return len(a.Scope.Owner) - len(b.Scope.Owner) })
		if !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		// More than a notification holds is told as anything.
		payloads = payloads[:0]
		for i := range 2 * maxPending {
			if move(fmt.Sprint("agent ", i)); i%(maxPending/2) == 0 {
				time.Sleep(notifyPause)
			}
		}
		time.Sleep(time.Minute)
		if last := payloads[len(payloads)-1]; last != "here "+anyMoved {
			t.Errorf("told %.60q last, want anything", last)
		}
		stop()
		<-done
	})
}
