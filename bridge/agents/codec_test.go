package agents

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func TestStoredBytes(t *testing.T) {
	g := storedGap{marked: time.UnixMicro(1), Gap: Gap{
		Ended: time.UnixMicro(2), Since: time.UnixMicro(3), Delivered: map[string]uint64{"b": 0, "a": 300}, RecentIDs: []string{"x", ""},
	}}
	ref, _ := stateRef("t", "x")
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"state", encodeState(State{[]byte("p"), []byte("e"), -1, map[string]string{"b": "", "a": "1"}}), "0a0170" + "120165" + "1801" + "22060a0161120131" + "22030a0162"},
		{"state of nothing", encodeState(State{}), ""},
		{"gap", encodeGap(g), "0802" + "1004" + "1a060a016110ac02" + "1a030a0162" + "220178" + "2200" + "2806"},
		{"gap of nothing", encodeGap(storedGap{}), ""},
		{"claim", encodeGap(storedGap{claim: claim{"b@2", 300}}), "3203624032" + "38ac02"},
		{"state key", statePartKey(ref, 1), "7400" + "617800" + "61" + "0001"},
		{"gap key", newGapKey("t", "").stored(), "7400" + "79" + hex.EncodeToString([]byte("gaps")) + "00" + "67" + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A later version may add fields; this one passes over them.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	unknown := protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "x")
	unknown = protowire.AppendFixed64(protowire.AppendTag(unknown, 100, protowire.Fixed64Type), 7)
	s := State{Persistent: []byte("p"), Metadata: map[string]string{"a": "b"}}
	if got, err := decodeState(append(encodeState(s), unknown...)); err != nil || !cmp.Equal(s, got) {
		t.Errorf("state: %+v, %v", got, err)
	}
	g := storedGap{Gap: Gap{Delivered: map[string]uint64{"a": 1}}}
	if got, err := decodeGap(append(encodeGap(g), unknown...)); err != nil || !cmp.Equal(g.Gap, got.Gap) {
		t.Errorf("gap: %+v, %v", got, err)
	}
}

// The largest gap there may be fits a value.
func TestLargestGapFits(t *testing.T) {
	var m marks
	for i := range 3 * MaxGapTopics {
		pad := bytes.Repeat([]byte{'x'}, MaxGapTopicBytes-4)
		text := hex.EncodeToString([]byte{byte(i >> 8), byte(i)}) + string(pad)
		m.sent(text, 1<<63, text)
	}
	if n := len(encodeGap(storedGap{Gap: m.gap()})); n < MaxGapTopics*MaxGapTopicBytes || n > kv.MaxValueBytes/4 {
		t.Errorf("it takes %d bytes", n)
	}
}

// A damaged value is an error, and a damaged gap is gone afterwards.
func TestDamaged(t *testing.T) {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	d := New(engine, writer, nil)
	defer d.Close()
	state, _ := stateRef("t", "one")
	gap := gapRef("t")
	err := writer.Do(t.Context(), kv.Request{Blind: []kv.Ref{state, gap}, Stage: func(_ context.Context, tx *kv.Tx) error {
		tx.Put(kv.System, statePartKey(state, 0), []byte{0xff})
		tx.Put(kv.System, newGapKey("t", "one").stored(), []byte{0xff})
		tx.Put(kv.System, newGapKey("t", "two").stored(), []byte{0xff})
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.LoadState(t.Context(), "t", "one"); !errors.Is(err, ErrDamaged) {
		t.Errorf("state: %v", err)
	}
	if _, found, err := d.TakeGap(t.Context(), "t", "one"); found || !errors.Is(err, ErrDamaged) {
		t.Errorf("gap: %v, %v", found, err)
	}
	if _, found, err := d.TakeGap(t.Context(), "t", "one"); found || err != nil {
		t.Errorf("gap again: %v, %v", found, err)
	}
	if found, err := d.Delete(t.Context(), "t", "one"); !found || err != nil {
		t.Errorf("delete: %v, %v", found, err)
	}
	if found, err := d.Delete(t.Context(), "t", "two"); found || err != nil {
		t.Errorf("delete: %v, %v", found, err)
	}
}

func FuzzStateRoundTrip(f *testing.F) {
	f.Add([]byte("p"), []byte("e"), int64(1), "k", "v")
	f.Fuzz(func(t *testing.T, persistent, ephemeral []byte, updated int64, key, value string) {
		s := State{persistent, ephemeral, updated, map[string]string{key: value}}
		got, err := decodeState(encodeState(s))
		if diff := cmp.Diff(s, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

func FuzzGapRoundTrip(f *testing.F) {
	f.Add(int64(1), int64(2), int64(3), "topic", uint64(4), "id")
	f.Fuzz(func(t *testing.T, marked, ended, since int64, topic string, sequence uint64, id string) {
		g := storedGap{marked: time.UnixMicro(marked).UTC(), claim: claim{topic, sequence}, Gap: Gap{
			Ended:     time.UnixMicro(ended).UTC(),
			Since:     time.UnixMicro(since).UTC(),
			Delivered: map[string]uint64{topic: sequence},
			RecentIDs: []string{id, ""},
		}}
		for _, at := range []time.Time{g.marked, g.Ended, g.Since} {
			if at.IsZero() {
				return
			}
		}
		got, err := decodeGap(encodeGap(g))
		if diff := cmp.Diff(g, got, cmp.AllowUnexported(storedGap{}, claim{})); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeState(State{[]byte("p"), []byte("e"), 5, map[string]string{"k": "v"}}))
	f.Add(encodeGap(storedGap{marked: time.UnixMicro(5), Gap: Gap{Delivered: map[string]uint64{"t": 7}, RecentIDs: []string{"x"}}, claim: claim{"b@2", 3}}))
	f.Add([]byte{0x22, 0x01, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		if s, err := decodeState(b); err == nil {
			if again, err := decodeState(encodeState(s)); err != nil || !cmp.Equal(s, again, cmpopts.EquateEmpty()) {
				t.Errorf("state encoded again: %v", err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
		if g, err := decodeGap(b); err == nil {
			if _, err := decodeGap(encodeGap(g)); err != nil {
				t.Errorf("gap encoded again: %v", err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
		if !bytes.Equal(b, before) {
			t.Error("decoding changed its input")
		}
	})
}
