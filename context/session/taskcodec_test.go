package session

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzDecodeTask: garbage never panics, and what decodes encodes to what decodes to
// the same.
func FuzzDecodeTask(f *testing.F) {
	at := time.UnixMicro(1700000000000001).UTC()
	f.Add(encodeTask(Task{ID: "t", Action: "execute", Parameters: []byte("{}"), Result: "r", Tags: []string{"a", "b"}, Importance: .5, CreateTime: at}, at))
	f.Add(appendEntry(nil, Entry{Time: at, Message: &Message{Role: User, Content: "hello"}}))
	f.Fuzz(func(t *testing.T, value []byte) {
		task, written, err := decodeTask(value)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, writtenAgain, err := decodeTask(encodeTask(task, written))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(task, again, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" || !written.Equal(writtenAgain) {
			t.Fatal(diff)
		}
	})
}

// FuzzDecodeTally is the same for a tally.
func FuzzDecodeTally(f *testing.F) {
	f.Add(encodeTally(Tally{Last: 9, Through: 7, Filled: []uint64{2, 300}, Second: 3, Third: 4, Moved: 5}))
	f.Fuzz(func(t *testing.T, value []byte) {
		tally, err := decodeTally(value)
		if err != nil {
			return
		}
		again, err := decodeTally(encodeTally(tally))
		if diff := cmp.Diff(tally, again, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
	})
}

// Readers that know no tasks pass over them.
func TestTaskIsNoOtherEntry(t *testing.T) {
	if _, err := decodeEntry(encodeTask(Task{ID: "t", Action: "a"}, time.Time{})); !errors.Is(err, errUnknownKind) {
		t.Error(err)
	}
}
