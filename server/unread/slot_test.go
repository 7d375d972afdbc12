package unread_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
	"github.com/loom-bridge/loom-bridge/server/unread"
)

const slotRoom = 1 << 20

func newSlots(n int) (*share.Pool, []*unread.Slot) {
	pool := share.New(share.Options{Name: "bytes", Total: slotRoom, Waiting: 100, MaxWait: 10 * time.Second, OneTenant: true})
	room := unread.NewRoom(pool, slotRoom, time.Hour, time.Now)
	slots := make([]*unread.Slot, n)
	for i := range slots {
		slots[i] = room.NewSlot(nil, func() share.Owner { return share.Owner{Agent: "a"} })
	}
	return pool, slots
}

// Whatever streams do, the pool holds what they have taken and not given back, and nothing
// when they have left.
func TestSlotsGiveBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		pool, slots := newSlots(3)
		r := rand.New(rand.NewPCG(seed, 1))
		var answers []*unread.Delivery
		for range 50 {
			s, size := slots[r.IntN(len(slots))], r.IntN(100<<10)
			switch r.IntN(5) {
			case 0:
				s.Try(size)
			case 1:
				s.Give(size)
			case 2:
				s.Hand(size)
			case 3:
				if s.Try(size) {
					s.Hand(size)
					a, err := s.Send(t.Context(), size+r.IntN(100))
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					answers = append(answers, a)
				}
			case 4:
				s.Leave()
			}
			if held := pool.Held(); held < 0 || held > slotRoom {
				t.Fatalf("seed %d: %d bytes are held", seed, held)
			}
		}
		for _, s := range slots {
			s.Leave()
		}
		for _, a := range answers {
			a.Leave()
		}
		if held := pool.Held(); held != 0 {
			t.Fatalf("seed %d: %d bytes are held at the end", seed, held)
		}
	}
}

// Who waits for room has given all back, so that streams never wait for each other, and a
// message has the room that was taken before it was read.
func TestSlotsWaitForNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const page = slotRoom * 3 / 8
		pool, slots := newSlots(3)
		if !slots[0].Try(page) || !slots[1].Try(page) || slots[0].Try(page) {
			t.Fatal("the room is not what it should be")
		}
		took := make(chan error, 2)
		for _, s := range slots[:2] {
			go func() { took <- s.Take(context.Background(), slotRoom/2) }()
		}
		synctest.Wait()
		first := <-took
		if first != nil {
			t.Fatal(first)
		}
		slots[0].Leave()
		slots[1].Leave()
		if err := <-took; err != nil {
			t.Errorf("the second: %v", err)
		}
		slots[0].Leave()
		slots[1].Leave()
		if err := slots[2].Reserve(t.Context(), slotRoom/2); err != nil {
			t.Fatal(err)
		}
		answer, err := slots[2].Send(t.Context(), 64<<10)
		if err != nil || pool.Held() != 64<<10 {
			t.Errorf("%d bytes are held for a message of 64 KiB: %v", pool.Held(), err)
		}
		answer.Leave()
		if held := pool.Held(); held != 0 {
			t.Errorf("%d bytes are held at the end", held)
		}
		time.Sleep(time.Hour) // in which who watches for waiters sees that there are none
	})
}

// Without a slot nothing is bounded.
func TestNoSlot(t *testing.T) {
	t.Parallel()
	none := unread.SlotOf(t.Context())
	if !none.Try(1<<40) || none.Take(t.Context(), 1<<40) != nil || none.Reserve(t.Context(), 1<<40) != nil {
		t.Error("no slot has no room")
	}
	none.Give(1)
	none.Hand(1)
	none.Leave()
}
