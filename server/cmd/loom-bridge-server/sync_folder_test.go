package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// inFolder are the notes of a folder, by what stands in them.
func inFolder(tb *testing.T, dir string) map[string]string {
	tb.Helper()
	all := make(map[string]string)
	must(tb, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".md") {
			_, text, _ := strings.Cut(string(mustRead(tb, path)), "\n---\n\n")
			all[strings.TrimSpace(text)] = path
		}
		return err
	}))
	return all
}

func mustFolder(t *testing.T) (s *steps, dir string) {
	t.Helper()
	dir = t.TempDir()
	s = &steps{tb: t, here: MustRun(t, t.TempDir())}
	s.args = []string{"--addr", s.here.Address, "--folder", dir, "--agent", "a", "--state", filepath.Join(t.TempDir(), "state")}
	return s, dir
}

// A folder has a note for each record. What is edited, added, renamed or deleted there is so in the
// memory, and the other way round; names and what other programs keep in front of a note stay.
func TestSyncFolder(t *testing.T) {
	t.Parallel()
	s, dir := mustFolder(t)
	gate := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "the gate is 2 m wide", Tags: []string{"b", "a"}, Origin: loombridgev1.Origin_ORIGIN_WEB, SessionId: "s"})
	rose := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "the rose is red"})
	pear := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "Ann likes pears", DerivedFrom: []string{rose}})
	s.mustSync("0 changed here, 3 there")
	s.mustSync("0 changed here, 0 there, 0 deleted, 0 conflicts")
	notes := inFolder(t, dir)
	path := notes["the gate is 2 m wide"]
	edited := strings.Replace(strings.Replace(string(mustRead(t, path)), "2 m", "3 m", 1), "---\n", "---\naliases:\n- door\n", 1)
	must(t, os.WriteFile(path, []byte(edited), 0o600))
	must(t, os.Remove(notes["the rose is red"]))
	must(t, os.Rename(notes["Ann likes pears"], filepath.Join(dir, "pears.md")))
	must(t, os.WriteFile(filepath.Join(dir, "mine.md"), []byte("a note by hand\n"), 0o600))
	s.mustSync("2 changed here, 0 there, 1 deleted, 0 conflicts, 0 refused")
	held := syncHeld(t, s.here)
	if r := held[gate]; r.GetText() != "the gate is 3 m wide" || fmt.Sprint(r.GetTags()) != "[a b]" || r.GetOrigin() != loombridgev1.Origin_ORIGIN_WEB || r.GetSessionId() != "s" {
		t.Errorf("the gate is %v", r)
	}
	if held[rose] != nil || held[pear].GetText() != "Ann likes pears" || len(held[pear].GetDerivedFrom()) != 1 || len(held) != 3 {
		t.Errorf("held: %v", held)
	}
	if got := string(mustRead(t, filepath.Join(dir, "mine.md"))); got != "a note by hand\n" {
		t.Errorf("the note by hand is %q", got)
	}
	syncChange(t, s.here, gate, "the gate is 4 m wide")
	syncDelete(t, s.here, pear)
	s.mustSync("0 changed here, 1 there, 1 deleted")
	if got := string(mustRead(t, path)); !strings.Contains(got, "the gate is 4 m wide") || !strings.Contains(got, "aliases:\n- door\n") {
		t.Errorf("the note is %q", got)
	}
	syncChange(t, s.here, gate, "the gate is 5 m wide")
	must(t, os.WriteFile(path, []byte(strings.Replace(edited, "3 m", "6 m", 1)), 0o600))
	said := s.mustSync("1 conflicts")
	s.mustSync("0 changed here, 0 there, 0 deleted, 0 conflicts")
	notes = inFolder(t, dir)
	if notes["the gate is 5 m wide"] == "" || notes["the gate is 6 m wide"] == "" || len(syncHeld(t, s.here)) != 3 {
		t.Errorf("after a conflict: %v; sync said %s", notes, said)
	}
	s.mustSync("0 changed here, 0 there, 0 deleted, 0 conflicts")
}

// A record that another replaces has no note, and is no deletion; its note comes back with it.
func TestSyncFolderReplaced(t *testing.T) {
	t.Parallel()
	s, dir := mustFolder(t)
	old := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "the rose is red"})
	s.mustSync("1 there")
	fresh := syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "the rose is white", Supersedes: old})
	s.mustSync("1 there")
	if notes := inFolder(t, dir); len(notes) != 1 || notes["the rose is white"] == "" || len(syncHeld(t, s.here)) != 2 {
		t.Errorf("notes: %v", notes)
	}
	syncDelete(t, s.here, fresh)
	s.mustSync("1 there")
	if notes := inFolder(t, dir); len(notes) != 1 || notes["the rose is red"] == "" {
		t.Errorf("notes: %v", notes)
	}
}

// What is no note is left alone and told, and is no deletion; more than half of the notes is not deleted
// unasked.
func TestSyncFolderHostile(t *testing.T) {
	t.Parallel()
	s, dir := mustFolder(t)
	for i := range 20 {
		syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: fmt.Sprintf("note %d", i), Kind: "../../.."})
	}
	s.mustSync("20 there")
	outside := filepath.Join(t.TempDir(), "secret.md")
	must(t, os.WriteFile(outside, []byte("a secret"), 0o600))
	notes := inFolder(t, dir)
	if len(notes) != 20 {
		t.Fatalf("%d notes", len(notes))
	}
	must(t, os.Symlink(outside, filepath.Join(dir, "link.md")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(dir, "linked")))
	must(t, os.WriteFile(filepath.Join(dir, "binary.md"), []byte("\xff\x00\xfe"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "copy.md"), mustRead(t, notes["note 3"]), 0o600))
	must(t, os.WriteFile(notes["note 0"], make([]byte, 2<<20), 0o600))
	must(t, os.WriteFile(notes["note 1"], []byte("---\nloom_id: x\nno end"), 0o600))
	must(t, os.Remove(notes["note 2"]))
	must(t, os.Symlink(outside, notes["note 2"]))
	said := s.mustSync("0 changed here, 0 there, 0 deleted, 0 conflicts")
	for _, want := range []string{"link.md: it is no regular file", "binary.md", "copy.md: it has the loom_id of", filepath.Base(notes["note 0"]) + ": it has 2097152 bytes", "does not end"} {
		if !strings.Contains(said, want) {
			t.Errorf("sync said %s, without %q", said, want)
		}
	}
	if n := len(syncHeld(t, s.here)); n != 20 {
		t.Errorf("%d records", n)
	}
	for i := 3; i < 20; i++ {
		must(t, os.Remove(notes[fmt.Sprintf("note %d", i)]))
	}
	must(t, os.Remove(filepath.Join(dir, "copy.md")))
	if said, err := s.sync(); err == nil || !strings.Contains(err.Error(), "17 of 20 records in step are gone in the folder") {
		t.Errorf("sync said %q, %v", said, err)
	}
	s.mustSync("17 deleted", "--allow-deletions")
	if n := len(syncHeld(t, s.here)); n != 3 {
		t.Errorf("%d records are left", n)
	}
}

// A folder that lost all of its few notes, as one that is not mounted, deletes nothing unasked; the
// last note of one may go.
func TestSyncFolderGone(t *testing.T) {
	t.Parallel()
	s, dir := mustFolder(t)
	for i := range 3 {
		syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: fmt.Sprintf("note %d", i)})
	}
	s.mustSync("3 there")
	for _, path := range inFolder(t, dir) {
		must(t, os.Remove(path))
	}
	if said, err := s.sync(); err == nil || !strings.Contains(err.Error(), "3 of 3 records in step are gone in the folder") {
		t.Errorf("sync said %q, %v", said, err)
	}
	if n := len(syncHeld(t, s.here)); n != 3 {
		t.Errorf("%d records are left", n)
	}
	s.mustSync("3 deleted", "--allow-deletions")
	syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "the last one"})
	s.mustSync("1 there")
	must(t, os.Remove(inFolder(t, dir)["the last one"]))
	s.mustSync("1 deleted")
}

// A sync that stays follows the files, too.
func TestSyncFolderWatch(t *testing.T) {
	t.Parallel()
	s, dir := mustFolder(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, append([]string{"sync", "--watch"}, s.args...), noEnvironment, &output{}, &output{})
	}()
	syncSave(t, s.here, &loombridgev1.MemorySaveRequest{Text: "the gate is 2 m wide"})
	eventually(t, waitTime, func() error {
		if inFolder(t, dir)["the gate is 2 m wide"] == "" {
			return errors.New("the note is missing")
		}
		return nil
	})
	must(t, os.WriteFile(filepath.Join(dir, "mine.md"), []byte("a note by hand\n"), 0o600))
	eventually(t, waitTime, func() error {
		if n := len(syncHeld(t, s.here)); n != 2 {
			return fmt.Errorf("%d records", n)
		}
		return nil
	})
	stop()
	must(t, <-ended)
}
