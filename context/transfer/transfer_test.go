package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Whatever sessions there are, the import of their export is the same export, at once or
// one session after another, and made again it changes nothing.
func TestImportIsTheSameExport(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newMaker(t, seed)
			for range 1 + m.IntN(40) {
				m.do(t)
			}
			all := m.mustExport(t, "")
			var each [][]byte
			others := newStore(t)
			for _, id := range slices.Sorted(slices.Values(m.names)) {
				own := m.mustExport(t, id)
				each = append(each, own...)
				others.mustImport(t, own)
			}
			mustBeSame(t, "the export of all, of those of each", each, all)
			mustBeSame(t, "the export after imports of each", all, others.mustExport(t, ""))
			whole := newStore(t)
			first := whole.mustImport(t, all)
			mustBeSame(t, "the export after the import", all, whole.mustExport(t, ""))
			before := whole.content(t)
			again := whole.mustImport(t, all)
			if first.Unchanged != 0 || again.Saved != 0 || again.Unchanged != first.Saved || again.Bytes != first.Bytes {
				t.Errorf("%+v, and again %+v", first, again)
			}
			if !bytes.Equal(before, whole.content(t)) {
				t.Error("the import made again changed what is stored")
			}
		})
	}
}

// A session that comes with more messages than are there goes on; one that comes as something
// else is an error, or stays as it is.
func TestImportGoesOn(t *testing.T) {
	t.Parallel()
	lines := func(texts ...string) [][]byte {
		var msgs []session.Message
		for _, text := range texts {
			msgs = append(msgs, session.Message{Role: session.User, Content: text})
		}
		lines, err := Lines("s", msgs, slices.Repeat([]time.Time{noon}, len(msgs)))
		must(t, err)
		return lines
	}
	s := newStore(t)
	for _, one := range []struct {
		lines [][]byte
		want  Imported
	}{
		{lines("a", "b"), Imported{Saved: 1}}, {lines("a", "b"), Imported{Unchanged: 1}}, {lines("a", "b", "c"), Imported{Saved: 1}},
	} {
		if got := s.mustImport(t, one.lines); got != one.want {
			t.Errorf("%+v, want %+v", got, one.want)
		}
		mustBeSame(t, "the export", one.lines, s.mustExport(t, "s"))
	}
	for _, other := range [][][]byte{lines("a", "b"), lines("a", "x", "c"), lines("x")} {
		if err := s.tryImport(t, other); !errors.Is(err, session.ErrExists) {
			t.Error(err)
		}
		for _, dry := range []bool{true, false} {
			if got := s.mustImportAs(t, other, ImportOptions{Skip: true, DryRun: dry}); got != (Imported{Skipped: 1}) {
				t.Errorf("%+v", got)
			}
		}
	}
	mustBeSame(t, "what is there", lines("a", "b", "c"), s.mustExport(t, "s"))
}

// A session of 20 MiB is the same export after its import.
// One that is longer than all may be is neither exported nor imported.
func TestImportOfALongSession(t *testing.T) {
	m := plantLong(t, 36, 600_000)
	all := m.mustExport(t, "")
	to := newStore(t)
	if first, again := to.mustImport(t, all), to.mustImport(t, all); first.Saved != 1 || again.Unchanged != 1 {
		t.Errorf("%+v, and again %+v", first, again)
	}
	sum := func(lines [][]byte) [32]byte { return sha256.Sum256(bytes.Join(lines, []byte("\n"))) }
	t.Logf("%d lines, sha256 %x", len(all), sum(all))
	if sum(to.mustExport(t, "")) != sum(all) {
		t.Error("the export after the import differs")
	}
	to.held.Store(maxHeldParts)
	if err := to.Export(t.Context(), alice, "", func([]byte) error { return nil }); !errors.Is(err, ErrBusy) {
		t.Errorf("an export beside as much as there may be: %v", err)
	}
	if err := to.tryImport(t, all); !errors.Is(err, ErrBusy) {
		t.Errorf("an import beside as much as there may be: %v", err)
	}
	if to.held.Load() != maxHeldParts {
		t.Errorf("%d bytes are held", to.held.Load()-maxHeldParts)
	}
	to.held.Store(0)
	big := all[0:1:1]
	line := jsonLine{Kind: kindPart, Part: "entry", Stored: make([]byte, kv.MaxValueBytes)}
	for line.Number = 1; line.Number <= session.MaxPartsBytes/kv.MaxValueBytes+1; line.Number++ {
		text, err := line.encode()
		must(t, err)
		big = append(big, text)
	}
	if err := to.tryImport(t, big); !errors.Is(err, session.ErrTooLong) || to.held.Load() != 0 {
		t.Errorf("an import that is too long: %v", err)
	}
}

// Where a commit of a long session fails nothing is shown of it, nobody writes to a part of it,
// and the import made again ends. A line that is missing, doubled or elsewhere changes nothing,
// and neither does an import over what somebody has added meanwhile.
func TestImportOfALongSessionThatFails(t *testing.T) {
	m := plantLong(t, 36, 1000)
	all := m.mustExport(t, "")
	for fails := 1; ; fails++ {
		to := newStore(t)
		to.engine.left = fails
		err := to.tryImport(t, all)
		if to.engine.left = 0; err == nil {
			break
		}
		if !errors.Is(err, errFails) {
			t.Fatalf("commit %d: %v", fails, err)
		}
		to.mustBeWhole(t)
		if shown := to.mustExport(t, ""); len(shown) > 0 {
			t.Errorf("after commit %d had failed %d lines are shown", fails, len(shown))
		}
		if counts := to.mustImport(t, all); counts.Saved != 1 || counts.Unchanged != 0 {
			t.Errorf("after commit %d had failed: %+v", fails, counts)
		}
		mustBeSame(t, fmt.Sprintf("after commit %d had failed", fails), all, to.mustExport(t, ""))
	}
	at := 50 + slices.IndexFunc(all, func(l []byte) bool { return bytes.Contains(l, []byte(`"part":"entry"`)) })
	for name, lines := range map[string][][]byte{
		"missing":  slices.Delete(slices.Clone(all), at, at+1),
		"doubled":  slices.Insert(slices.Clone(all), at, all[at]),
		"swapped":  slices.Concat(all[:at], [][]byte{all[at+1], all[at]}, all[at+2:]),
		"cut off":  all[:len(all)-1],
		"no folds": slices.DeleteFunc(slices.Clone(all), func(l []byte) bool { return bytes.Contains(l, []byte(`"part":"folds"`)) }),
	} {
		to := newStore(t)
		if err := to.tryImport(t, lines); !errors.Is(err, ErrLine) && !errors.Is(err, session.ErrPart) || len(to.content(t)) > 0 || to.held.Load() != 0 {
			t.Errorf("%s: %v; %d bytes are stored, %d held", name, err, len(to.content(t)), to.held.Load())
		}
	}
	begun := newStore(t)
	_, err := begun.log.AppendMessages(t.Context(), alice, m.names[0], []session.Message{{Role: session.User, Content: "more"}}, "")
	must(t, err)
	before := begun.content(t)
	if err := begun.tryImport(t, all); !errors.Is(err, session.ErrExists) || !bytes.Equal(before, begun.content(t)) {
		t.Errorf("over what was added: %v", err)
	}
}

// refusals are the errors of lines that can't be taken.
var refusals = []error{ErrLine, session.ErrPart, session.ErrTooLong, session.ErrExists, session.ErrInvalid, blob.ErrExists, blob.ErrInvalid, blob.ErrQuota}

// FuzzImport: whatever comes, it is refused with a typed error and nothing of the session
// at fault is stored, or what was imported is exported again, which can be imported.
func FuzzImport(f *testing.F) {
	for seed := range uint64(8) {
		m := newMaker(f, seed)
		for range 12 {
			m.do(f)
		}
		m.record(f, m.names[0])
		all := m.mustExport(f, "")
		f.Add(bytes.Join(all, []byte("\n")))
		for range 25 {
			f.Add(bytes.Join(m.damaged(f, all), []byte("\n")))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		to := newStore(t)
		into, before := to.Import(alice, ImportOptions{}), to.content(t)
		var of [][2]string // session and line
		var err error
		id := ""
		for _, text := range bytes.Split(text, []byte("\n")) {
			if err = into.Take(t.Context(), text); err != nil {
				break
			}
			l, _ := parse(text)
			switch l.Kind {
			case kindSession:
				id = l.Session
			case kindEnd:
				before = to.content(t)
				continue
			case kindBytes:
				continue
			}
			of = append(of, [2]string{id, string(text)})
		}
		if err == nil {
			_, err = into.End()
		}
		if err != nil {
			if _, ok := errors.AsType[*LineError](err); !ok || !slices.ContainsFunc(refusals, func(e error) bool { return errors.Is(err, e) }) {
				t.Fatalf("an error of another kind: %v", err)
			}
			if !bytes.Equal(before, to.content(t)) {
				t.Fatalf("%v, and something was stored", err)
			}
			return
		}
		all := to.mustExport(t, "")
		exported := make(map[string][][]byte)
		for _, line := range of {
			if _, ok := exported[line[0]]; !ok {
				exported[line[0]] = to.mustExport(t, line[0])
			}
			if !slices.ContainsFunc(exported[line[0]], func(l []byte) bool { return string(l) == line[1] }) {
				t.Fatalf("of session %q there came and is not exported %.500s", line[0], line[1])
			}
		}
		if again := to.mustImport(t, all); again.Saved != 0 || !bytes.Equal(before, to.content(t)) {
			t.Fatalf("the import made again: %+v", again)
		}
		other := newStore(t)
		other.mustImport(t, all)
		mustBeSame(t, "the export after the import", all, other.mustExport(t, ""))
	})
}

// damaged changes one line of an export, leaves it out, or takes it twice.
func (m *maker) damaged(tb testing.TB, all [][]byte) [][]byte {
	tb.Helper()
	all = slices.Clone(all)
	at := m.IntN(len(all))
	if results := slices.IndexFunc(all, func(l []byte) bool { return bytes.Contains(l, []byte(`"kind":"result"`)) }); results >= 0 && m.IntN(2) == 0 {
		at = results
	}
	l, err := parse(all[at])
	must(tb, err)
	switch {
	case m.IntN(8) == 0:
		return slices.Delete(all, at, at+1)
	case m.IntN(8) == 0:
		return slices.Insert(all, at, all[at])
	case m.IntN(8) == 0:
		other := m.IntN(len(all))
		all[at], all[other] = all[other], all[at]
		return all
	case l.Kind == kindPart && len(l.Stored) > 0:
		l.Stored[m.IntN(len(l.Stored))] ^= 1 << m.IntN(8)
	case l.Result != nil:
		m.change(l.Result)
	default:
		l.Session, l.Lines = m.text(), l.Lines+m.IntN(2)
	}
	all[at], err = l.encode()
	must(tb, err)
	return all
}

// change makes another result of one, mostly one that there can't be.
func (m *maker) change(r *result) {
	switch m.IntN(10) {
	case 0:
		r.Time = r.Time.In(time.FixedZone("", 3600))
	case 1:
		r.Time = r.Time.Add(time.Nanosecond)
	case 2:
		r.Time = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	case 3:
		r.TTL = []string{"0.001s", "1ms", "-1s", "2540400h10m10s"}[m.IntN(4)]
	case 4:
		r.Paths = append(r.Paths, r.Paths[0])
	case 5:
		r.Paths = append([]string{"workspace/outputs/aside.txt"}, r.Paths...)
	case 6:
		r.PromoteTime = &time.Time{}
	case 7:
		r.Session = m.text()
	case 8:
		r.Tags = append(r.Tags, "", m.text())
	default:
		r.Paths[0], r.Tier = m.text(), uint8(m.IntN(4))
	}
}
