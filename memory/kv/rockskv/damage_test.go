//go:build cgo && !norocksdb

package rockskv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

// victim is the directory of a store as a kill -9 leaves it, and what was
// acknowledged of it.
type victim struct {
	files map[string][]byte // by name
	held  map[kv.Keyspace]map[string][]byte
}

// rows of each open of a victim, and the bytes of the longest.
const (
	victimRows  = 30
	victimBytes = 9000
)

// mustVictim makes a store whose keys lie in tables, blob files and the log, and
// takes its files away while it is open.
func mustVictim(tb testing.TB, random *rand.Rand) *victim {
	tb.Helper()
	dir := tb.TempDir()
	v := &victim{held: make(map[kv.Keyspace]map[string][]byte)}
	for _, ks := range kv.Keyspaces() {
		v.held[ks] = make(map[string][]byte)
	}
	for opened := range 3 {
		db := mustOpen(tb, dir, nil)
		for range victimRows {
			v.commit(tb, db, random)
		}
		if opened < 2 {
			if err := db.Close(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	v.files = make(map[string][]byte)
	for path, text := range files(tb, dir) {
		v.files[filepath.Base(path)] = []byte(text)
	}
	return v
}

// commit puts a value into each keyspace, synced, as an acknowledged save does.
func (v *victim) commit(tb testing.TB, db *rockskv.DB, random *rand.Rand) {
	c := kv.Commit{Batch: new(kv.Batch)}
	for _, ks := range kv.Keyspaces() {
		key := scopeA.Key('d', fmt.Appendf(nil, "%04d", random.IntN(1000)))
		value := make([]byte, random.IntN(victimBytes))
		for i := range value {
			value[i] = byte(random.Uint32N(40)) // packs a little
		}
		c.Guards = append(c.Guards, kv.Guard{Ref: kv.Ref{Keyspace: ks, Scope: scopeA}, Any: true})
		c.Batch.Put(ks, key, value)
		v.held[ks][string(key)] = value
	}
	mustCommit(tb, db, c)
}

// named returns the names of the victim's files that have a form, in order.
func (v *victim) named(form string) []string {
	var names []string
	for name := range v.files {
		if ok, _ := filepath.Match(form, name); ok && len(v.files[name]) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lay writes the victim's files to a new directory.
func (v *victim) lay(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, data := range v.files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// read compares what a store holds with what was acknowledged. It returns how many
// reads said that the store is damaged, and how many keys are missing or different
// without a word.
func (v *victim) read(db kv.Reader) (reported, silent int) {
	for ks, held := range v.held {
		for key, want := range held {
			values, err := db.Get(context.Background(), ks, []byte(key))
			switch {
			case errors.Is(err, kv.ErrDamaged):
				reported++
			case err != nil || !bytes.Equal(values[0], want) || values[0] == nil:
				silent++
			}
		}
	}
	return reported, silent
}

// harms are the ways in which a file of some bytes is damaged. They return what is
// left; nil: nothing, not even the file.
var harms = map[string]func(random *rand.Rand, data []byte) []byte{
	"bit flipped": func(random *rand.Rand, data []byte) []byte {
		data = bytes.Clone(data)
		data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		return data
	},
	"4 KiB zeroed": func(random *rand.Rand, data []byte) []byte {
		data = bytes.Clone(data)
		const page = 4 << 10
		at := random.IntN((len(data)+page-1)/page) * page
		clear(data[at:min(at+page, len(data))])
		return data
	},
	"cut":     func(random *rand.Rand, data []byte) []byte { return append([]byte{}, data[:random.IntN(len(data))]...) },
	"deleted": func(*rand.Rand, []byte) []byte { return nil },
}

// outcome is what became of a damaged store.
type outcome struct{ refused, reported, checked, harmless, silent int }

// TestSoakDamage damages one file of a store as kill -9 leaves it: the log, a table, a
// blob file, the manifest. Whatever becomes of it, nothing that was acknowledged is
// missing without a word.
func TestSoakDamage(t *testing.T) {
	t.Parallel()
	rounds := 2
	if os.Getenv("LOOM_SOAK_ROUNDS") != "" {
		rounds = soakRounds(t)
	}
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	v := mustVictim(t, random)
	for _, form := range []string{"*.log", "*.sst", "*.blob", "MANIFEST-*"} {
		for _, harm := range slices.Sorted(maps.Keys(harms)) {
			var all outcome
			for range rounds {
				names := v.named(form)
				name := names[random.IntN(len(names))]
				v.damaged(t, &all, name, harms[harm](random, v.files[name]))
			}
			t.Logf("%-10s %-12s %d rounds: %d refused at open, %d reported at read, %d found by check of %d opened, %d harmless, %d silently less",
				form, harm, rounds, all.refused, all.reported, all.checked, rounds-all.refused, all.harmless, all.silent)
			if all.silent > 0 || all.checked+all.harmless < rounds-all.refused {
				t.Errorf("%s, %s: %+v", form, harm, all)
			}
		}
	}
}

// damaged opens and checks the victim with one file replaced.
func (v *victim) damaged(t *testing.T, all *outcome, name string, data []byte) {
	t.Helper()
	if bytes.Equal(data, v.files[name]) {
		all.harmless++ // zeros where zeros were
		return
	}
	dir := v.lay(t)
	path := filepath.Join(dir, name)
	err := os.Remove(path)
	if data != nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	found := 0
	err = rockskv.Examine(t.Context(), dir, kv.Verification{Found: func(*kv.DamageError) error { found++; return nil }})
	if err != nil {
		t.Errorf("examine with %s damaged: %v", name, err)
	}
	if !maps.Equal(before, files(t, dir)) {
		t.Errorf("examining a store with %s damaged changed its files", name)
	}
	db, err := rockskv.Open(dir, nil)
	if err != nil {
		all.refused++
		damage, ok := errors.AsType[*kv.DamageError](err)
		if !errors.Is(err, kv.ErrDamaged) || !ok || damage.File != name || found == 0 || !maps.Equal(before, files(t, dir)) {
			t.Errorf("open with %s damaged: %v, found %d by check, files changed: %v", name, err, found, !maps.Equal(before, files(t, dir)))
		}
		return
	}
	defer db.Close()
	if found > 0 {
		all.checked++
	}
	switch reported, silent := v.read(db); {
	case silent > 0:
		all.silent++
		t.Errorf("%s damaged: %d keys are missing or wrong without a word, %d with one", name, silent, reported)
	case reported > 0:
		all.reported++
	case found == 0:
		all.harmless++
	}
}

// TestDamagedLogIsRefused wants the error of a damaged log to say what happened and
// what to do, and the files to stay.
func TestDamagedLogIsRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	v := mustVictim(t, random)
	name := v.named("*.log")[0]
	log := v.files[name]
	for harm, data := range map[string][]byte{
		"has 100 bytes, and":          log[:100],
		"is missing, and":             nil,
		"does not match its checksum": append(append(append([]byte{}, log[:5000]...), log[5000]^4), log[5001:]...),
		"zeros where a record":        append(append([]byte{}, log[:32<<10]...), make([]byte, len(log)-32<<10)...),
	} {
		dir := v.lay(t)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if data != nil {
			mustWrite(t, dir, name, string(data))
		}
		before := files(t, dir)
		wantOpenError(t, dir, kv.ErrDamaged, name, harm, "backup", "no file was changed")
		if _, err := rockskv.OpenReadOnly(dir, nil); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("open for reading alone: %v", err)
		}
		if !maps.Equal(before, files(t, dir)) {
			t.Errorf("%s: the refused open changed files", harm)
		}
	}
}

// TestLogWithACopyOfItself must not reach RocksDB, which ends the process over it.
func TestLogWithACopyOfItself(t *testing.T) {
	v := mustVictim(t, rand.New(rand.NewPCG(8, 8)))
	name := v.named("*.log")[0]
	whole := bytes.Repeat(v.files[name], 2)
	for _, marked := range []bool{true, false} {
		dir := v.lay(t)
		mustWrite(t, dir, name, string(whole))
		if !marked { // as an older version leaves it
			mustUnmark(t, dir)
		}
		before := files(t, dir)
		wantOpenError(t, dir, kv.ErrDamaged, name)
		if !maps.Equal(before, files(t, dir)) {
			t.Error("the refused open changed files")
		}
	}
}

// mustUnmark makes a store one of format 1.
func mustUnmark(tb testing.TB, dir string) {
	tb.Helper()
	if err := os.Remove(filepath.Join(dir, "LOOM-MARK")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Fatal(err)
	}
	mustWrite(tb, dir, "LOOM-FORMAT", "loom-bridge store\nformat 1\n")
}

// TestOpenFormer opens a store without a mark, and raises its format.
func TestOpenFormer(t *testing.T) {
	t.Parallel()
	v := mustVictim(t, rand.New(rand.NewPCG(9, 9)))
	dir := v.lay(t)
	mustUnmark(t, dir)
	db, err := rockskv.OpenReadOnly(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if reported, silent := v.read(db); reported+silent > 0 {
		t.Errorf("for reading alone: %d and %d keys can't be read", reported, silent)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); got[filepath.Join(dir, "LOOM-FORMAT")] == readyMarker {
		t.Error("an open for reading alone raised the format")
	}
	db = mustOpen(t, dir, nil)
	if reported, silent := v.read(db); reported+silent > 0 {
		t.Errorf("%d and %d keys can't be read", reported, silent)
	}
	if got := files(t, dir); got[filepath.Join(dir, "LOOM-FORMAT")] != readyMarker || got[filepath.Join(dir, "LOOM-MARK")] == "" {
		t.Errorf("marker %q, mark of %d bytes", got[filepath.Join(dir, "LOOM-FORMAT")], len(got[filepath.Join(dir, "LOOM-MARK")]))
	}
}

// TestMarkGone wants a store whose mark is missing or spoiled refused, and repaired
// without a loss.
func TestMarkGone(t *testing.T) {
	t.Parallel()
	v := mustVictim(t, rand.New(rand.NewPCG(10, 10)))
	for _, harm := range []string{"", strings.Repeat("\x00", 3*4096)} {
		dir := v.lay(t)
		if err := os.Remove(filepath.Join(dir, "LOOM-MARK")); err != nil {
			t.Fatal(err)
		}
		if harm != "" {
			mustWrite(t, dir, "LOOM-MARK", harm)
		}
		wantOpenError(t, dir, kv.ErrDamaged, "LOOM-MARK")
		done, err := rockskv.Repair(dir, time.Now())
		if err != nil || done.LostBytes != 0 || len(done.Cut) != 0 {
			t.Fatalf("repair: %+v, %v", done, err)
		}
		if reported, silent := v.read(mustOpen(t, dir, nil)); reported+silent > 0 {
			t.Errorf("%d and %d keys can't be read", reported, silent)
		}
	}
}

// TestFormatMarkerGone wants a store without its marker taken for what it is, not for
// somebody else's directory.
func TestFormatMarkerGone(t *testing.T) {
	t.Parallel()
	dir := mustVictim(t, rand.New(rand.NewPCG(12, 12))).lay(t)
	if err := os.Remove(filepath.Join(dir, "LOOM-FORMAT")); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	wantOpenError(t, dir, kv.ErrDamaged, "LOOM-FORMAT is missing", "backup")
	if !maps.Equal(before, files(t, dir)) {
		t.Error("the refused open changed files")
	}
}

// TestCurrentNamesNoManifest wants the file named that may be the damaged one.
func TestCurrentNamesNoManifest(t *testing.T) {
	dir := mustVictim(t, rand.New(rand.NewPCG(13, 13))).lay(t)
	mustWrite(t, dir, "CURRENT", "MANIFEST-400044\n")
	wantOpenError(t, dir, kv.ErrDamaged, "MANIFEST-400044 is missing, and CURRENT names it", "backup")
}

// TestRepair wants what was committed before the damage of a log, and the damaged
// files kept.
func TestRepair(t *testing.T) {
	t.Parallel()
	const commits = 100
	dir := t.TempDir()
	db := mustOpen(t, dir, nil)
	for n := range uint64(commits) {
		mustCommit(t, db, numbered(0, n+1))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(mustGlob(t, dir, "*.log"))
	whole := files(t, dir)
	log := whole[filepath.Join(dir, name)]
	harmed := []byte(log)
	harmed[len(log)*6/10] ^= 16
	for harm, data := range map[string]string{"flipped": string(harmed), "cut": log[:len(log)*6/10], "deleted": ""} {
		dir := t.TempDir()
		for path, text := range whole {
			mustWrite(t, dir, filepath.Base(path), text)
		}
		mustWrite(t, dir, name, data)
		if data == "" {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		done, err := rockskv.Repair(dir, time.Now())
		if err != nil || done.Damage == nil || !slices.Equal(done.Cut, []string{name}) || done.LostBytes <= 0 {
			t.Fatalf("%s: %+v, %v", harm, done, err)
		}
		kept, err := os.ReadFile(filepath.Join(done.Kept, name))
		if data != "" && (err != nil || string(kept) != data) {
			t.Errorf("%s: the damaged log is not kept: %v", harm, err)
		}
		db := mustOpen(t, dir, nil)
		left := wantWhole(t, db, 0)
		if least := map[string]uint64{"deleted": 0}[harm]; harm != "deleted" && (left < commits/2 || left > commits*7/10) || harm == "deleted" && left != least {
			t.Errorf("%s: %d commits of %d are left", harm, left, commits)
		}
		mustCommit(t, db, numbered(0, left+1))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := rockskv.Repair(dir, time.Now()); !errors.Is(err, rockskv.ErrNotDamaged) {
			t.Errorf("%s: repairing again: %v", harm, err)
		}
	}
}

// TestRepairRefuses leaves a store alone of which only a backup is left.
func TestRepairRefuses(t *testing.T) {
	v := mustVictim(t, rand.New(rand.NewPCG(11, 11)))
	for _, form := range []string{"*.sst", "*.blob", "MANIFEST-*", "CURRENT"} {
		dir := v.lay(t)
		for _, name := range []string{v.named(form)[0], "LOOM-MARK"} { // which alone could be repaired
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		before := files(t, dir)
		if _, err := rockskv.Repair(dir, time.Now()); !errors.Is(err, kv.ErrDamaged) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("repair without %s: %v", form, err)
		}
		if !maps.Equal(before, files(t, dir)) {
			t.Errorf("the refused repair of a store without %s changed files", form)
		}
	}
}
